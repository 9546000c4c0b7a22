"""Plain values on a selection of tasks, for text, JSON and report."""

import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fewbench._names import did_you_mean
from fewbench._types import FloatArray, IntArray
from fewbench._warned import in_cell
from fewbench.errors import StudyError
from fewbench.show.page import Page, Shown
from fewbench.study.inference import Figure
from fewbench.tasks import (
    Similarity,
    TaskChooser,
    TaskMatrix,
    TaskSelection,
    Transferability,
    describe_chooser,
    read_chooser,
)
from fewbench.tasks.choosers import BentoLe, BentoSim, TaskMedoids
from fewbench.tasks.curves import (
    Curves,
    curve_sizes,
    curves,
    differences,
    sets_of,
    similarity_maps,
    strongest_transfers,
)
from fewbench.tasks.held_out import HeldOut
from fewbench.tasks.judgement import (
    TaskResults,
    anchor_ratio,
    judge,
    nrmse,
    questions_by_chance,
    spread,
    tasks_by_chance,
)
from fewbench.tasks.matrix import SOURCE_SCORES
from fewbench.tasks.page import tasks_page
from fewbench.tasks.selection import model_digest

if TYPE_CHECKING:
    import pandas as pd

FEW_MODELS = 5
HALF = 0.5
UNLIKELY = 0.05
RANDOM_RIDGES = 200, 20  # random sets for ridge regression, in a judgement and for a curve


@dataclass(frozen=True, eq=False, repr=False)
class TaskAnalysis(Shown):
    """A selection of tasks with its judgement, stability, curves and maps.

    Parameters
    ----------
    selection : TaskSelection
    results : TaskResults, optional
        Models with known results; without them, the selection is not judged.
    given : Transferability or TaskMatrix, optional
        The data for comparing tasks; without it, there are no maps and no other methods.
    anchor : str, optional
        The model of the results whose full score corrects the others; by default the measured
        model if every task was measured.
    held_out : bool
        Whether the results are the source scores that tasks were compared by. Each model is then
        judged by a selection without it (and its family).
    """

    selection: TaskSelection
    results: TaskResults | None = None
    given: Transferability | TaskMatrix | None = None
    anchor: str | None = None
    held_out: bool = False

    @cached_property
    def _parts(self) -> HeldOut | None:
        """The source scores in parts if models are held out."""
        if not self.held_out:
            return None
        assert self.results is not None
        assert self.matrix is not None
        ridge = self.selection.estimator == "ridge"
        return HeldOut(self.results, self.matrix, ridge, self.selection.seed)

    @cached_property
    def matrix(self) -> TaskMatrix | None:
        """The data for comparing tasks."""
        if isinstance(self.given, Transferability):
            return TaskMatrix.of_transfer(self.given)
        return self.given

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as in `--json` and the report."""
        return self._values

    def to_json(self) -> str:
        """Return the values as JSON."""
        return json.dumps(self._values, ensure_ascii=False)

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per chosen task."""
        import pandas as pd

        warnings = in_cell(self._values["warnings"])
        return pd.DataFrame(self._values["chosen"]).set_index("task").assign(warnings=warnings)

    def page(self) -> Page:
        """Return the chosen tasks, how good they are, and what they were chosen by."""
        return tasks_page(self._values)

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
        results, judgement = self.results, self._judgement
        found = [] if judgement is None else self._worse_than_chance(judgement)
        found += self.selection.notes
        if results is None:
            found.append(
                "not judged: no results of other models were given, so the error of these tasks is "
                "not known; pass --results"
            )
        elif len(results.models) < FEW_MODELS:
            found.append(f"judged on {len(results.models)} models only")
        if results is not None and not self.held_out:
            found += self._seen(results)
        if results is not None and not results.sizes_known:
            found.append(
                "the numbers of questions are not known, so every task has the same weight and "
                "random questions are not compared; pass --questions FILE or N"
            )
        return found + self._unstable()

    def _unstable(self) -> list[str]:
        """Warn if the selection depends on the seeds."""
        stability, noise = self.selection.stability, self.selection.noise
        notes = self.selection.matrix.get("notes", "").split("\n")
        found = [note for note in notes if "guessing" in note]
        if noise and noise.p_value > UNLIKELY:
            found.append(
                "the matrix does not exceed noise: its sources differ no more than its seeds "
                f"(p = {noise.p_value:.2f}), so the selection is random; measure more seeds or "
                "more questions"
            )
        if stability and stability.pairs < HALF:
            compared = ""
            if stability.noise is not None and stability.chance is not None:
                compared = (
                    f" ({stability.noise:.0%} for equal sources, {stability.chance:.0%} for random "
                    "tasks)"
                )
            found.append(
                "two selections from resampled seeds share only "
                f"{stability.pairs:.0%} of their tasks{compared}: other tasks would do as well"
            )
        return found

    def _worse_than_chance(self, judgement: dict[str, Any]) -> list[str]:
        """Warn if random tasks or questions do as well."""
        found = []
        tasks, questions = judgement["random_tasks"], judgement["random_questions"]
        if tasks["percentile"] >= HALF:
            found.append(
                f"{tasks['percentile']:.0%} of random task sets are as good or better: this "
                "selection is no better than chance"
            )
        elif not _below(tasks["difference"]):
            found.append(
                f"{len(judgement['models'])} models do not show that these tasks have a lower "
                "error than random tasks (the interval of the difference contains 0)"
            )
        if questions and _above(questions["difference"]):
            found.append(
                f"{questions['questions']:,} random questions have a lower error (mean "
                f"{100 * questions['mean']:.1f}%): if you can run single questions, run those"
            )
        elif questions and not _below(questions["difference"]):
            found.append(
                f"{questions['questions']:,} random questions have about the same error (mean "
                f"{100 * questions['mean']:.1f}%; the interval of the difference contains 0)"
            )
        known = int(self.results.sizes.sum()) if self.results and self.results.sizes_known else 0
        if known and self._sized and known != (whole := sum(self.selection.sizes.values())):
            found.append(f"the results have {known:,} questions, but the matrix has {whole:,}")
        return found

    def _seen(self, results: TaskResults) -> list[str]:
        """Warn of models in the results that tasks were chosen by, by their names or scores."""
        selection = self.selection
        if selection.models is None:
            measured = selection.matrix.get("model")
            if measured in results.models:
                return [
                    f"the results include {measured}, which tasks were compared by: the error on "
                    "other models is larger"
                ]
            if selection.matrix.get("rows") == SOURCE_SCORES and self._compares:
                return [
                    "the selection does not record the models that its tasks were chosen by: if "
                    "the results include them, the error on other models is larger"
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
            f"tasks were chosen by {seen} of the {len(results.models)} models in the results: the "
            "error on other models is larger"
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
        """NRMSE of the ridge formula if the estimate is the plain score."""
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
        """NRMSE after the anchor's correction, over the other models."""
        if self.anchor is not None:
            if self.anchor not in results.models:
                raise StudyError(
                    f"the results have no model {self.anchor!r}",
                    hint=did_you_mean(self.anchor, results.models, "name one of their models"),
                )
            at = results.models.index(self.anchor)
            tasks, others = results.scores[at], np.arange(len(results.models)) != at
            name = self.anchor
        else:
            matrix = self.matrix
            if matrix is None or matrix.ease is None or set(matrix.names) != set(results.tasks):
                return None
            if self.held_out or results.losses:  # models would correct themselves
                return None
            tasks = matrix.ease[[matrix.names.index(task) for task in results.tasks]]
            others = np.ones(len(results.models), dtype=bool)
            name = "source models" if matrix.kind == SOURCE_SCORES else "the measured model"
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
        """Return errors of the selection's method by number of tasks, with models held out."""
        results, seed = parts.results, self.selection.seed
        chooser, full = read_chooser(self.selection.method), results.full
        sizes = curve_sizes(self.selection.k, len(parts.matrix.names))
        if getattr(chooser, "exact", False):
            sizes = [self.selection.k]
        orders = parts.orders(chooser, sizes)
        # At the chosen number the same draws as in the judgement: one question has one answer.
        draws = {k: RANDOM_RIDGES[k != self.selection.k] for k in sizes}
        drawn = [
            spread(
                nrmse(parts.by_chance(k, draws[k]), full)
                if parts.ridge
                else tasks_by_chance(results, k, seed)
            )
            for k in sizes
        ]
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
        """How the selection's method compares tasks, or the default."""
        own: Similarity = getattr(read_chooser(self.selection.method), "similarity", Similarity())
        return replace(own, components=min(own.components, len(self.selection.sizes) - 1))

    def _others(self) -> dict[str, str]:
        """Return methods to compare with, using the selection's scaling and distance."""
        own = self._similarity
        scaling, distance = own.scaling, own.distance
        choosers: dict[str, TaskChooser] = {
            "bento-sim": BentoSim(scaling, distance),
            "bento-le": BentoLe(
                scaling,
                distance,
                components=own.components,
                self_loops=own.self_loops,
                t=own.t,
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
        found: dict[int, list[str]] = {cluster: [] for cluster in sorted(set(clusters.values()))}
        for task, cluster in clusters.items():
            found[cluster].append(task)
        chosen = set(self.selection.tasks)
        return [
            {"cluster": cluster, "tasks": tasks, "chosen": [t for t in tasks if t in chosen]}
            for cluster, tasks in found.items()
        ]


def _ends(figure: Figure) -> dict[str, float | None]:
    """Return a mean and its interval as plain values; None without interval."""
    known = figure.has_interval
    low, high = (figure.low, figure.high) if known else (None, None)
    return {"mean": figure.value, "low": low, "high": high}


def _below(difference: dict[str, float | None]) -> bool:
    return difference["high"] is not None and difference["high"] < 0.0


def _above(difference: dict[str, float | None]) -> bool:
    return difference["low"] is not None and difference["low"] > 0.0
