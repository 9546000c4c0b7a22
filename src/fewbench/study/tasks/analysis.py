"""Everything that is known of a selection of tasks, as plain values for text, JSON and report."""

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.errors import StudyError
from fewbench.methods.tasks import (
    Similarity,
    TaskChooser,
    TaskMatrix,
    TaskSelection,
    Transferability,
    describe_chooser,
    read_chooser,
)
from fewbench.methods.tasks.choosers import BentoLe, BentoSim, TaskMedoids
from fewbench.methods.tasks.matrix import PAST_SCORES
from fewbench.methods.tasks.selection import model_digest
from fewbench.study.inference import Figure
from fewbench.study.tasks.curves import (
    Curves,
    curve_sizes,
    curves,
    differences,
    sets_of,
    similarity_maps,
    strongest_transfers,
)
from fewbench.study.tasks.held_out import HeldOut
from fewbench.study.tasks.judgement import (
    TaskResults,
    anchor_ratio,
    judge,
    nrmse,
    questions_by_chance,
    spread,
)

FEW_MODELS = 5
HALF = 0.5
UNLIKELY = 0.05
RANDOM_RIDGES = 200, 20  # random sets that a ridge is fitted to, in a judgement and for a curve


@dataclass(frozen=True, eq=False)
class TaskAnalysis:
    """A selection with all that can be said of it.

    Parameters
    ----------
    selection : TaskSelection
    results : TaskResults, optional
        Models whose results are known; without them the selection is not judged.
    given : Transferability or TaskMatrix, optional
        What tasks were compared by; without it there are no pictures and no other methods.
    anchor : str, optional
        The model of the results whose full score corrects the others; by default the measured
        model itself, where every task was measured.
    held_out : bool
        Whether the results are the past scores that tasks were compared by: each model is then
        judged by a choice that was made without it (and its family).
    """

    selection: TaskSelection
    results: TaskResults | None = None
    given: Transferability | TaskMatrix | None = None
    anchor: str | None = None
    held_out: bool = False

    @cached_property
    def _parts(self) -> HeldOut | None:
        """The past scores in parts, if models are judged by choices without them."""
        if not self.held_out:
            return None
        assert self.results is not None
        assert self.matrix is not None
        ridge = self.selection.estimator == "ridge"
        return HeldOut(self.results, self.matrix, ridge, self.selection.seed)

    @cached_property
    def matrix(self) -> TaskMatrix | None:
        """What tasks were compared by."""
        if isinstance(self.given, Transferability):
            return TaskMatrix.of_transfer(self.given)
        return self.given

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: what `--json` prints and the report shows."""
        return self._values

    @cached_property
    def _values(self) -> dict[str, Any]:
        selection = self.selection
        return {
            "facts": self._facts(),
            "warnings": self._warnings(),
            "chosen": [
                {
                    "task": chosen.task,
                    "questions": chosen.questions if self._sized else None,
                    "gain": chosen.gain,
                    "cluster": chosen.cluster,
                    "stands_for": chosen.stands_for,
                    "stability": chosen.kept,
                }
                for chosen in selection.chosen
            ],
            "answer": None,
            "judgement": self._judgement,
            "stability": self._stability(),
            "noise": selection.noise.model_dump() if selection.noise else None,
            "formula": selection.formula.model_dump() if selection.formula else None,
            "plan": selection.plan.model_dump() if selection.plan else None,
            "difficulty": selection.difficulty.model_dump() if selection.difficulty else None,
            **self._curves(),
            **self._maps(),
            "clusters": self._clusters(),
        }

    @property
    def _sized(self) -> bool:
        """Whether the tasks' numbers of questions are known."""
        return self.selection.sizes_known

    def _facts(self) -> dict[str, Any]:
        selection, results = self.selection, self.results
        exact = {}
        if selection.bound is not None and selection.coverage:
            exact["unproven gap"] = f"{max(0.0, selection.bound / selection.coverage - 1):.3%}"
        known = {
            "method": selection.method,
            "k": selection.k,
            "tasks": len(selection.sizes),
            "questions": sum(selection.sizes.values()) if self._sized else None,
            "chosen questions": selection.questions if self._sized else None,
            **exact,
        }
        free = {key: value for key, value in selection.matrix.items() if key not in known}
        judged: dict[str, Any] = {}
        if results:
            judged = {"judged on models": len(results.models), "weigh": results.weigh}
        if results and not results.sizes_known:
            judged["weigh"] = "tasks"
        if self._parts is not None:
            judged["held out in"] = f"{len(self._parts.parts)} parts"
        return known | free | judged

    def _warnings(self) -> list[str]:
        said = list(self.selection.notes)
        if self.results is None:
            said.append(
                "not judged: no results of other models were given, so how far scores on these "
                "tasks are from full scores is not known"
            )
        elif len(self.results.models) < FEW_MODELS:
            said.append(f"judged on {len(self.results.models)} models only")
        if self._judgement is not None:
            said = [*self._worse_than_chance(self._judgement), *said]
        if self.results is not None and not self.held_out:
            said += self._seen(self.results)
        if self.results is not None and not self.results.sizes_known:
            said.append(
                "how many questions each task has is not known: every task counts the same, and "
                "there is no comparison with random questions (--questions FILE or N gives them)"
            )
        return [*said, *self._unstable()]

    def _unstable(self) -> list[str]:
        """Say where the choice hangs on the seeds."""
        said = []
        stability, noise = self.selection.stability, self.selection.noise
        notes = self.selection.matrix.get("notes", "").split("\n")
        said += [note for note in notes if "guessing" in note]
        if noise and noise.p_value > UNLIKELY:
            said.append(
                "the matrix does not exceed noise: its sources do not differ by more than the "
                f"seeds make them (p = {noise.p_value:.2f}), so which tasks are chosen is chance; "
                "measure more seeds or more questions"
            )
        if stability and stability.pairs < HALF:
            beside = ""
            if stability.noise is not None and stability.chance is not None:
                beside = (
                    f" ({stability.noise:.0%} if sources did not differ, {stability.chance:.0%} "
                    "if drawn at random)"
                )
            said.append(
                "two choices from seeds drawn again share "
                f"{stability.pairs:.0%} of their tasks{beside}: others would have done as well"
            )
        return said

    def _worse_than_chance(self, judgement: dict[str, Any]) -> list[str]:
        """Say where chance does as well: first of all that there is to know."""
        said = []
        tasks, questions = judgement["random_tasks"], judgement["random_questions"]
        if tasks["percentile"] >= HALF:
            said.append(
                f"{tasks['percentile']:.0%} of random task sets are as good or better: there is "
                "nothing in this choice"
            )
        elif not _below(tasks["difference"]):
            said.append(
                f"{len(judgement['models'])} models do not show that these tasks err less than "
                "random ones (the interval of the difference contains 0)"
            )
        if questions and _above(questions["difference"]):
            said.append(
                f"{questions['questions']:,} random questions err less ({questions['mean']:.3f} on "
                "average): where questions can be run by themselves, run those"
            )
        elif questions and not _below(questions["difference"]):
            said.append(
                f"{questions['questions']:,} random questions err about as much "
                f"({questions['mean']:.3f} on average; the interval of the difference contains 0)"
            )
        known = int(self.results.sizes.sum()) if self.results and self.results.sizes_known else 0
        if known and self._sized and known != (whole := sum(self.selection.sizes.values())):
            said.append(f"the results are of {known:,} questions, and the matrix of {whole:,}")
        return said

    def _seen(self, results: TaskResults) -> list[str]:
        """Say which models of the results tasks were chosen by, by their names or scores."""
        selection = self.selection
        if selection.models is None:
            measured = selection.matrix.get("model")
            if measured in results.models:
                return [f"{measured}, which tasks were compared by, is among the models judged on"]
            if selection.matrix.get("rows") == PAST_SCORES and self._compares:
                return [
                    "the selection does not say which models its tasks were chosen by: if they are "
                    "among these, the error on other models is larger"
                ]
            return []
        digests = set(selection.models.values())
        tasks = set(selection.sizes) <= set(results.tasks)
        seen = 0
        for model, row in zip(results.models, results.scores.tolist(), strict=True):
            scores = dict(zip(results.tasks, row, strict=True))
            own = tasks and model_digest({task: scores[task] for task in selection.sizes})
            seen += model in selection.models or own in digests
        if not seen:
            return []
        return [
            f"{seen} of the {len(results.models)} models that it is judged on are those "
            "that tasks were compared by: on other models the error is larger"
        ]

    @property
    def _compares(self) -> bool:
        return read_chooser(self.selection.method).compares

    @cached_property
    def _judgement(self) -> dict[str, Any] | None:
        if self.results is None:
            return None
        results, selection = self.results, self.selection
        chosen = results.positions(selection.tasks)
        estimates = by_chance = None
        if self._parts is not None:
            sets = self._parts.orders(read_chooser(selection.method), [selection.k])
            estimates = self._parts.estimates(sets[selection.k])
            if self._parts.ridge:
                by_chance = self._parts.by_chance(selection.k, RANDOM_RIDGES[0])
        elif selection.estimator == "ridge":
            estimates = self._by_formula(results)
        found = judge(results, chosen, selection.seed, estimates=estimates, by_chance=by_chance)
        questions = None
        if found.random_questions is not None and found.over_questions is not None:
            questions = asdict(found.random_questions) | {
                "questions": found.n_questions,
                "difference": _ends(found.over_questions),
            }
        return {
            "nrmse": found.nrmse,
            "nrmse_printed": found.nrmse_printed,
            "low": found.low,
            "high": found.high,
            "estimator": selection.estimator,
            "held_out": len(self._parts.parts) if self._parts is not None else None,
            "random_tasks": asdict(found.random_tasks)
            | {"percentile": found.percentile, "difference": _ends(found.over_tasks)},
            "random_questions": questions,
            "anchor_ratio": self._anchor_ratio(results, chosen),
            "ridge": self._ridge(results),
            "models": [
                {"model": model, "full": full, "chosen": said}
                for model, full, said in found.estimates
            ],
        }

    def _by_formula(self, results: TaskResults) -> FloatArray:
        assert self.selection.formula is not None
        return self.selection.formula.of(results.scores, results.tasks)

    def _ridge(self, results: TaskResults) -> dict[str, Any] | None:
        """NRMSE of the formula that past models give, where the estimate is the plain score."""
        if self.selection.formula is None or self.selection.estimator == "ridge":
            return None
        if self._parts is not None:
            ridge = replace(self._parts, ridge=True)
            sets = ridge.orders(read_chooser(self.selection.method), [self.selection.k])
            said = ridge.estimates(sets[self.selection.k])
        else:
            said = self._by_formula(results)
        return {"nrmse": float(nrmse(said, results.full))}

    def _anchor_ratio(self, results: TaskResults, chosen: IntArray) -> dict[str, Any] | None:
        """NRMSE after the correction, over all models but the anchor."""
        if self.anchor is not None:
            if self.anchor not in results.models:
                raise StudyError(f"the results have no model {self.anchor!r}")
            at = results.models.index(self.anchor)
            tasks, others = results.scores[at], np.arange(len(results.models)) != at
            name = self.anchor
        else:
            matrix = self.matrix
            if matrix is None or matrix.ease is None or set(matrix.names) != set(results.tasks):
                return None
            if self.held_out or results.losses:  # models would be corrected by themselves
                return None
            tasks = matrix.ease[[matrix.names.index(task) for task in results.tasks]]
            others = np.ones(len(results.models), dtype=bool)
            name = "past models" if matrix.kind == PAST_SCORES else "the measured model"
        if not others.any() or (tasks < 0).any():  # a loss has no ratio
            return None
        said = anchor_ratio(results, chosen, tasks)[others]
        return {"anchor": name, "nrmse": float(nrmse(said, results.full[others]))}

    def _stability(self) -> dict[str, Any] | None:
        found = self.selection.stability
        if found is None:
            return None
        tasks = [{"task": task, "share": share} for task, share in found.tasks.items()]
        return found.model_dump() | {"tasks": tasks}

    def _curves(self) -> dict[str, Any]:
        results, selection, matrix = self.results, self.selection, self.matrix
        if results is None:
            return {"curves": None, "difference": None}
        if self._parts is not None:
            return {"curves": self._curve_held_out(self._parts).to_dict(), "difference": None}
        own = {k: results.positions(tasks) for k, tasks in selection.steps.items()}
        name = selection.method
        sets: dict[str, Any] = {name: own}
        between = None
        if matrix is not None:
            sizes = curve_sizes(selection.k, len(matrix.names))
            at = results.positions(matrix.names)
            others = self._others()
            for other, written in others.items():
                found = sets_of(written, matrix, sizes, selection.seed)
                sets[other] = {k: at[tasks] for k, tasks in found.items()}
            if len(own) == 1 and "exact" not in name:  # an exact choice takes long
                fewer = [k for k in sizes if k <= selection.k]
                found = sets_of(name, matrix, fewer, selection.seed)
                sets[name] = {k: at[tasks] for k, tasks in found.items()}
            between = asdict(
                differences(results, sets["bento-sim"], sets["bento-le"], selection.seed)
            )
            name = next((other for other, written in others.items() if written == name), name)
            if name != selection.method:  # the same by a shorter name
                del sets[selection.method]
        return {
            "curves": curves(results, sets, name, selection.seed).to_dict(),
            "difference": between,
        }

    def _curve_held_out(self, parts: HeldOut) -> Curves:
        """Errors of the selection's method at every number of tasks, each model held out."""
        results, seed = parts.results, self.selection.seed
        chooser, full = read_chooser(self.selection.method), results.full
        sizes = curve_sizes(self.selection.k, len(parts.matrix.names))
        if getattr(chooser, "exact", False):
            sizes = [self.selection.k]
        orders = parts.orders(chooser, sizes)
        drawn = [spread(nrmse(parts.by_chance(k, RANDOM_RIDGES[1]), full)) for k in sizes]
        questions: list[float | None] = [None] * len(sizes)
        if results.sizes_known and results.has_questions:
            mean = [np.mean([results.sizes[one].sum() for one in orders[k]]) for k in sizes]
            questions = [
                float(questions_by_chance(results, round(n), seed, 200).mean()) for n in mean
            ]
        return Curves(
            sizes,
            {
                self.selection.method: [
                    float(nrmse(parts.estimates(orders[k]), full)) for k in sizes
                ]
            },
            [one.mean for one in drawn],
            [one.low for one in drawn],
            [one.high for one in drawn],
            questions,
            self.selection.method,
        )

    @property
    def _similarity(self) -> Similarity:
        """How the selection's method compares tasks, or would."""
        own: Similarity = getattr(read_chooser(self.selection.method), "similarity", Similarity())
        return replace(own, components=min(own.components, len(self.selection.sizes) - 1))

    def _others(self) -> dict[str, str]:
        """Return methods to compare with, as written, with the selection's scaling and distance."""
        own = self._similarity
        scaling, distance = own.scaling, own.distance
        choosers: dict[str, TaskChooser] = {
            "bento-sim": BentoSim(scaling, distance),
            "bento-le": BentoLe(
                scaling, distance, components=own.components, self_loops=own.self_loops
            ),
            "k-medoids": TaskMedoids(scaling=scaling, distance=distance),
        }
        return {name: describe_chooser(chooser) for name, chooser in choosers.items()}

    def _maps(self) -> dict[str, Any]:
        matrix, clusters = self.matrix, self.selection.clusters
        if matrix is None or clusters is None:
            return {"maps": None, "transfers": None}
        square = isinstance(self.given, Transferability) and self.given.is_square
        return {
            "maps": similarity_maps(matrix, self._similarity, clusters),
            "transfers": strongest_transfers(matrix, clusters) if square else None,
        }

    def _clusters(self) -> list[dict[str, Any]] | None:
        clusters = self.selection.clusters
        if clusters is None:
            return None
        chosen = set(self.selection.tasks)
        found = []
        for cluster in sorted(set(clusters.values())):
            tasks = [task for task, of in clusters.items() if of == cluster]
            found.append(
                {
                    "cluster": cluster,
                    "tasks": tasks,
                    "chosen": [task for task in tasks if task in chosen],
                }
            )
        return found


def _ends(figure: Figure) -> dict[str, float | None]:
    """Return an interval as plain values, None where there is none."""
    known = figure.has_interval
    low, high = (figure.low, figure.high) if known else (None, None)
    return {"mean": figure.value, "low": low, "high": high}


def _below(difference: dict[str, float | None]) -> bool:
    return difference["high"] is not None and difference["high"] < 0.0


def _above(difference: dict[str, float | None]) -> bool:
    return difference["low"] is not None and difference["low"] > 0.0
