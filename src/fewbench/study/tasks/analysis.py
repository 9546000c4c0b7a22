"""Everything that is known of a selection of tasks, as plain values for text, JSON and report."""

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

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
from fewbench.methods.tasks.facility import BentoLe, BentoSim
from fewbench.methods.tasks.matrix import PAST_SCORES
from fewbench.methods.tasks.medoids import TaskMedoids
from fewbench.study.tasks.curves import curve_sizes, curves, differences, sets_of
from fewbench.study.tasks.judgement import anchor_ratio, judge, nrmse
from fewbench.study.tasks.maps import similarity_maps, strongest_transfers
from fewbench.study.tasks.results import IntArray, TaskResults

FEW_MODELS = 5
HALF = 0.5
SAME = 1e-9  # scores that differ by less are the same, differently rounded


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
    """

    selection: TaskSelection
    results: TaskResults | None = None
    given: Transferability | TaskMatrix | None = None
    anchor: str | None = None

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
                    "questions": chosen.questions,
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
            "difficulty": selection.difficulty.model_dump() if selection.difficulty else None,
            **self._curves(),
            **self._maps(),
            "clusters": self._clusters(),
        }

    def _facts(self) -> dict[str, Any]:
        selection, results = self.selection, self.results
        exact = {}
        if selection.bound is not None and selection.coverage:
            exact["unproven gap"] = f"{max(0.0, selection.bound / selection.coverage - 1):.3%}"
        known = {
            "method": selection.method,
            "k": selection.k,
            "tasks": len(selection.sizes),
            "questions": sum(selection.sizes.values()),
            "chosen questions": selection.questions,
            **exact,
        }
        free = {key: value for key, value in selection.matrix.items() if key not in known}
        judged = (
            {"judged on models": len(results.models), "weigh": results.weigh} if results else {}
        )
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
        if self.results is not None and (seen := self._seen(self.results)):
            said.append(
                f"{seen} of the {len(self.results.models)} models that it is judged on are those "
                "that tasks were compared by: on other models the error is larger"
            )
        stability = self.selection.stability
        if stability and stability.pairs < 0.5:
            said.append(
                "two choices from seeds drawn again share "
                f"{stability.pairs:.0%} of their tasks: others would have done as well"
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
        if questions["mean"] < judgement["nrmse"]:
            said.append(
                f"{questions['questions']:,} random questions err less on average "
                f"({questions['mean']:.3f}): where questions can be run by themselves, run those"
            )
        if (known := int(self.results.sizes.sum()) if self.results else 0) != (
            whole := sum(self.selection.sizes.values())
        ):
            said.append(f"the results are of {known:,} questions, and the matrix of {whole:,}")
        return said

    def _seen(self, results: TaskResults) -> int:
        """Count the models of the results among those whose scores tasks were compared by."""
        matrix = self.matrix
        if matrix is None or matrix.kind != PAST_SCORES or set(matrix.names) != set(results.tasks):
            return 0
        past = matrix.rows[[matrix.names.index(task) for task in results.tasks]].T
        apart = np.abs(results.scores[:, None] - past).max(axis=2).min(axis=1)
        return int(np.count_nonzero(apart < SAME))

    @cached_property
    def _judgement(self) -> dict[str, Any] | None:
        if self.results is None:
            return None
        results, selection = self.results, self.selection
        chosen = results.positions(selection.tasks)
        found = judge(results, chosen, selection.seed)
        return {
            "nrmse": found.nrmse,
            "nrmse_printed": found.nrmse_printed,
            "low": found.low,
            "high": found.high,
            "random_tasks": asdict(found.random_tasks) | {"percentile": found.percentile},
            "random_questions": asdict(found.random_questions) | {"questions": found.n_questions},
            "anchor_ratio": self._anchor_ratio(results, chosen),
            "models": [
                {"model": model, "full": full, "chosen": said}
                for model, full, said in found.estimates
            ],
        }

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
