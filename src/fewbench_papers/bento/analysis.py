"""Plain values on a selection of tasks, for text, JSON and report."""

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fewbench.errors import StudyError
from fewbench.show.page import Shown, plain
from fewbench.study.metrics import nrmse
from fewbench.support import FloatArray, IntArray, did_you_mean, in_cell
from fewbench.support import pandas as pd
from fewbench_papers.bento.choosers import read_chooser
from fewbench_papers.bento.held_out import HeldOutTasks
from fewbench_papers.bento.judgement import TaskResults, anchor_ratio, judge
from fewbench_papers.bento.matrix import SOURCE_SCORES, TaskMatrix
from fewbench_papers.bento.selection import TaskSelection, model_digest
from fewbench_papers.bento.transferability import Transferability

FEW_MODELS = 5
HALF = 0.5
UNLIKELY = 0.05
RANDOM_RIDGES = 200  # random sets of tasks, each with a ridge regression


@dataclass(frozen=True, eq=False, repr=False)
class TaskAnalysis(Shown):
    """A selection of tasks with its judgement and stability.

    Parameters
    ----------
    selection : TaskSelection
    results : TaskResults, optional
        Models with known results; without them, the selection is not judged.
    given : Transferability or TaskMatrix, optional
        The data for comparing tasks. If every task was measured, the measured model corrects the
        others.
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
    def _parts(self) -> HeldOutTasks | None:
        """The source scores in parts if models are held out."""
        if not self.held_out:
            return None
        assert self.results is not None
        assert self.matrix is not None
        ridge = self.selection.estimator == "ridge"
        return HeldOutTasks(self.results, self.matrix, ridge, self.selection.seed)

    @cached_property
    def _sets(self) -> list[IntArray]:
        """The tasks chosen without each part of the source models."""
        assert self._parts is not None
        k = self.selection.k
        return self._parts.orders(read_chooser(self.selection.method), [k])[k]

    @cached_property
    def matrix(self) -> TaskMatrix | None:
        """The data for comparing tasks."""
        if isinstance(self.given, Transferability):
            return TaskMatrix.of_transfer(self.given)
        return self.given

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as in `to_json` and the report."""
        return self._values

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per chosen task."""
        warnings = in_cell(self._values["warnings"])
        return pd.DataFrame(self._values["chosen"]).set_index("task").assign(warnings=warnings)

    @cached_property
    def _values(self) -> dict[str, Any]:
        selection = self.selection
        values = {
            "facts": self._facts(),
            "warnings": self._warnings(),
            "chosen": [
                vars(chosen) | ({} if selection.sizes_known else {"questions": None})
                for chosen in selection.chosen
            ],
            "judgement": self._judgement,
            "stability": self._stability(),
            **{
                name: getattr(selection, name)
                for name in ("noise", "formula", "plan", "difficulty")
            },
            "clusters": self._clusters(),
        }
        return plain(values)

    def _facts(self) -> dict[str, Any]:
        selection, results = self.selection, self.results
        facts = {
            "method": selection.method,
            "k": selection.k,
            "tasks": len(selection.sizes),
            "questions": sum(selection.sizes.values()) if selection.sizes_known else None,
            "chosen questions": selection.questions if selection.sizes_known else None,
        }
        free = {key: value for key, value in selection.matrix.items() if key not in facts}
        judged: dict[str, Any] = {}
        if results:
            judged = {"judged on models": len(results.models), "weigh": results.weigh}
        if results and not results.sizes_known:
            judged["weigh"] = "tasks"
        if self._parts is not None:
            judged["held out in"] = f"{len(self._parts.parts)} parts"
        return facts | free | judged

    def _warnings(self) -> list[str]:
        results, judgement = self.results, self._judgement
        warnings = [] if judgement is None else self._worse_than_chance(judgement)
        warnings += self.selection.notes
        if results is None:
            warnings.append(
                "not judged: no results of other models were given, so the error of these tasks is "
                "not known; pass --results"
            )
        elif len(results.models) < FEW_MODELS:
            warnings.append(f"judged on {len(results.models)} models only")
        if results is not None and not self.held_out:
            warnings += self._seen(results)
        if results is not None and not results.sizes_known:
            warnings.append(
                "the numbers of questions are not known, so every task has the same weight and "
                "random questions are not compared; pass --questions FILE or N"
            )
        return warnings + self._unstable()

    def _unstable(self) -> list[str]:
        """Warn if the selection depends on the seeds."""
        stability, noise = self.selection.stability, self.selection.noise
        guesses = self.selection.matrix.get("guesses")
        warnings = [guesses] if guesses else []
        if noise and noise.p_value > UNLIKELY:
            warnings.append(
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
            warnings.append(
                "two selections from resampled seeds share only "
                f"{stability.pairs:.0%} of their tasks{compared}: other tasks would do as well"
            )
        return warnings

    def _worse_than_chance(self, judgement: dict[str, Any]) -> list[str]:
        """Warn if random tasks or questions do as well."""
        warnings = []
        tasks, questions = judgement["random_tasks"], judgement["random_questions"]
        if tasks["percentile"] >= HALF:
            warnings.append(
                f"{tasks['percentile']:.0%} of random task sets are as good or better: this "
                "selection is no better than chance"
            )
        elif not tasks["difference"]["high"] < 0:
            warnings.append(
                f"{len(judgement['models'])} models do not show that these tasks have a lower "
                "error than random tasks (the interval of the difference contains 0)"
            )
        if questions and questions["difference"]["low"] > 0:
            warnings.append(
                f"{questions['questions']:,} random questions have a lower error (mean "
                f"{100 * questions['mean']:.1f}%): if you can run single questions, run those"
            )
        elif questions and not questions["difference"]["high"] < 0:
            warnings.append(
                f"{questions['questions']:,} random questions have about the same error (mean "
                f"{100 * questions['mean']:.1f}%; the interval of the difference contains 0)"
            )
        questions_known = (
            int(self.results.sizes.sum()) if self.results and self.results.sizes_known else 0
        )
        if (
            questions_known
            and self.selection.sizes_known
            and questions_known != (whole := sum(self.selection.sizes.values()))
        ):
            warnings.append(
                f"the results have {questions_known:,} questions, but the matrix has {whole:,}"
            )
        return warnings

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
            digest = tasks and model_digest({task: scores[task] for task in selection.sizes})
            seen += model in selection.models or digest in digests
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
            estimates = self._parts.estimates(self._sets)
            if self._parts.ridge:
                by_chance = self._parts.by_chance(selection.k, RANDOM_RIDGES)
        elif selection.estimator == "ridge":
            estimates = self._by_formula(results)
        judgement = judge(results, chosen, selection.seed, estimates=estimates, by_chance=by_chance)
        return asdict(judgement) | {
            "estimator": selection.estimator,
            "held_out": len(self._parts.parts) if self._parts is not None else None,
            "anchor_ratio": self._anchor_ratio(results, chosen),
            "ridge": self._ridge(results),
        }

    def _by_formula(self, results: TaskResults) -> FloatArray:
        assert self.selection.formula is not None
        return self.selection.formula.estimate(results.scores, results.tasks)

    def _ridge(self, results: TaskResults) -> dict[str, Any] | None:
        """NRMSE of the ridge formula if the estimate is the plain score."""
        if self.selection.formula is None or self.selection.estimator == "ridge":
            return None
        if self._parts is not None:
            estimates = replace(self._parts, ridge=True).estimates(self._sets)
        else:
            estimates = self._by_formula(results)
        return {"nrmse": float(nrmse(estimates, results.full))}

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
        estimates = anchor_ratio(results, chosen, tasks)[others]
        return {"anchor": name, "nrmse": float(nrmse(estimates, results.full[others]))}

    def _stability(self) -> dict[str, Any] | None:
        stability = self.selection.stability
        if stability is None:
            return None
        tasks = [{"task": task, "share": share} for task, share in stability.tasks.items()]
        return stability.model_dump() | {"tasks": tasks}

    def _clusters(self) -> list[dict[str, Any]] | None:
        clusters = self.selection.clusters
        if clusters is None:
            return None
        members: dict[int, list[str]] = {cluster: [] for cluster in sorted(set(clusters.values()))}
        for task, cluster in clusters.items():
            members[cluster].append(task)
        chosen = set(self.selection.tasks)
        return [
            {"cluster": cluster, "tasks": tasks, "chosen": [t for t in tasks if t in chosen]}
            for cluster, tasks in members.items()
        ]
