"""What is compared: a target of an evaluation, a model of the sources, or a fixed score."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fewbench._names import counted, did_you_mean, some
from fewbench._types import FloatArray, IntArray
from fewbench.decide.track_folder import checkpoint_beside
from fewbench.errors import EvaluationError
from fewbench.evaluation.evaluation import Evaluation
from fewbench.methods.record import Answers
from fewbench.methods.sources import is_known
from fewbench.scores import Scores
from fewbench.scores.table import MOST_MISSING
from fewbench.uncertainty.intervals import Scored, Uncertainty

Given = Evaluation | tuple[Evaluation, str] | str
"""An evaluation of one target, an evaluation and one of its targets, or the name of a model."""


@dataclass(frozen=True, eq=False)
class Operand:
    """One of the two that are compared; scores in [0, 1], 1 being best.

    Attributes
    ----------
    name : str
    estimates : ndarray, shape (1 + tasks,)
        Full score and task scores.
    answers : Answers
        Its own, in one row.
    scores : Scores
        The source models.
    evaluation : Evaluation or None
        None if the score is known: a model of the sources, or a number.
    scored : Scored or None
        The estimates as the method made them.
    notes : tuple of str
    parts : tuple or None
        Task scores, where the tasks are not those of the evaluation (`by_benchmark`).
    """

    name: str
    estimates: FloatArray
    answers: Answers
    scores: Scores
    evaluation: Evaluation | None = None
    scored: Scored | None = None
    notes: tuple[str, ...] = ()
    parts: "tuple[Uncertainty | float | None, ...] | None" = None

    @cached_property
    def items(self) -> IntArray:
        """Positions of the items with an answer."""
        return self.answers.items

    @cached_property
    def score(self) -> Uncertainty | float:
        """The full score, and how far it may be off."""
        if self.is_known or self.evaluation is None or self.scored is None:
            return float(self.estimates[0])
        return self.evaluation.estimating.judge.uncertainty(self.scored)

    @cached_property
    def tasks(self) -> "list[Uncertainty | float | None]":
        """The task scores, or None where a score is unknown."""
        if self.parts is not None:
            return [*self.parts]
        full, score = self.score, self.scored
        if self.evaluation is None or score is None or not isinstance(full, Uncertainty):
            return [float(estimate) for estimate in self.estimates[1:]]
        return list(self.evaluation.estimating.judge.task_uncertainties(score, full))

    def part(self, column: int) -> "Uncertainty | float | None":
        """Return the full score (0) or a task score (1 + task), or None if it is unknown."""
        return self.tasks[column - 1] if column else self.score

    @cached_property
    def is_known(self) -> bool:
        """Whether the full score is known, so that it has no error."""
        return self.evaluation is None or len(self.items) == self.evaluation.scores.n_items

    @cached_property
    def is_of_table(self) -> bool:
        """Whether it is a model of the source scores, and neither a target nor a number."""
        return self.evaluation is None and len(self.items) > 0

    @cached_property
    def chances(self) -> FloatArray | None:
        """Chance of each item to be run, shape (items,), or None if a method chose the items."""
        if not isinstance(self.score, Uncertainty):
            return np.ones(self.scores.n_items)
        return None if self.score.sample is None else self.score.sample.chances

    @property
    def is_limited(self) -> bool:
        """Whether the limit on cost leaves no further item."""
        return self.evaluation is not None and self.evaluation.is_limited(self.name)

    @property
    def budget(self) -> int:
        """Number of items that the target may run."""
        return len(self.items) if self.evaluation is None else self.evaluation.provenance.budget

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Reasons to doubt the score."""
        of_score = self.score.warnings if isinstance(self.score, Uncertainty) else ()
        return (*self.notes, *of_score)


def operands(
    *given: Given,
    scores: Scores | None = None,
    beside: Sequence[Evaluation] = (),
    ask: bool = False,
) -> tuple[list[Operand], Scores, tuple[str, ...]]:
    """Return what is compared, the source scores, and a note if some items are left out.

    The source scores are `scores`, or the evaluations' table with the most models: evaluations may
    have different source models, as their tables grow with every run. Those `beside` count, too.

    Raises
    ------
    EvaluationError
        For the reasons in `on_common_items` and `operand`, without a table, or if items are asked
        for (`ask`) of evaluations with different items.
    """
    pairs = [_split(side) for side in given]
    named = [evaluation for evaluation, _ in pairs if evaluation is not None]
    own = list(dict.fromkeys([*named, *beside]))
    evaluations, scores, notes = on_common_items(own, scores)
    if scores is None and not evaluations:
        raise EvaluationError(
            "the two names can only be found in an evaluation or in scores",
            hint="pass scores (--scores), or an evaluation folder in place of a name",
        )
    if ask and notes:
        raise EvaluationError(
            f"cannot add items to evaluations with different items: {notes[0]}",
            hint="extend the other evaluation first (fewbench extend), or leave out --ask",
            kind="unsupported",
        )
    if scores is None:
        scores = max((each.scores for each in evaluations), key=lambda table: table.n_models)
    now = dict(zip(own, evaluations, strict=True))
    sides = [
        operand(
            name if evaluation is None else (now[evaluation], name),
            scores, evaluations, of_table=not evaluations,
        )
        for evaluation, name in pairs
    ]  # fmt: skip
    return sides, scores, notes


def _split(given: Given) -> tuple[Evaluation | None, str]:
    """Return the evaluation, unless only a name is given, and the target."""
    if isinstance(given, str):
        return None, given
    if isinstance(given, tuple):
        return given
    if len(given.targets) > 1:
        raise EvaluationError(
            f"the evaluation has {len(given.targets)} targets: {some(given.targets)}",
            hint=f"name one: {given.folder or 'DIR'}:{given.targets[0]}, in Python "
            "(evaluation, target)",
        )
    return given, given.targets[0]


def on_common_items(
    evaluations: Sequence[Evaluation], scores: Scores | None = None
) -> tuple[list[Evaluation], Scores | None, tuple[str, ...]]:
    """Return evaluations and scores of the items that all have, and a note if some have more.

    Where all have the same items, they stay as they are.

    Raises
    ------
    EvaluationError
        If they have no item in common, or weigh or average their items differently.
    """
    tables = [each.scores for each in evaluations] + ([] if scores is None else [scores])
    if all(_same_benchmark(tables[0], other) for other in tables[1:]):
        return [*evaluations], scores, ()
    common = tables[0].items.index
    for table in tables[1:]:
        common = common[common.isin(table.items.index)]
    beyond = [n for table in tables if (n := table.n_items - len(common))]
    parts = [table.take(items=table.positions(common)) for table in tables if len(common)]
    if not all(_same_benchmark(parts[0], part) for part in parts[1:]) or not parts:
        raise EvaluationError(
            "the evaluations are of different benchmarks (items, tasks, weights or "
            "--average), so their estimates cannot be compared",
            hint="compare them by one --average and the same --weights, on items that both have",
        )
    note = (
        f"compared on the {counted(len(common), 'item')} that all have: "
        f"{some((f'{n:,} more' for n in beyond), quotes=False)} left out"
    )
    restricted = [each.on_items(common) for each in evaluations]
    # Without others, the items are the same in a different order.
    return restricted, None if scores is None else parts[-1], (note,) if beyond else ()


def _same_benchmark(first: Scores, other: Scores) -> bool:
    if first.average != other.average:
        return False
    return first.fingerprint == other.fingerprint or (
        first.scale == other.scale
        and np.array_equal(first.item_ids, other.item_ids)
        and first.tasks == other.tasks
        and np.array_equal(first.task_of, other.task_of)
        and np.array_equal(first.item_weights, other.item_weights)
    )


def operand(
    given: Given, scores: Scores, evaluations: Sequence[Evaluation] = (), *, of_table: bool = False
) -> Operand:
    """Return an operand from what a user gives.

    Parameters
    ----------
    given : Given
    scores : Scores
        The sources.
    evaluations : sequence of Evaluation
        Those that a name may be a target of, or a checkpoint beside.
    of_table : bool
        Whether models of one table are compared, which may lack up to half of the items.

    Raises
    ------
    EvaluationError
        If a name is not known, a target has no answers, or a model of the sources lacks answers.
    """
    evaluation, name = _split(given)
    if evaluation is None:
        evaluation = next((each for each in evaluations if name in each.targets), None)
        if evaluation is None and name in scores.models.index:
            return known_operands([name], scores, of_table=of_table)[0]
    if evaluation is None:
        evaluation = checkpoint_beside(name, evaluations)
    if evaluation is not None:
        return _estimated(evaluation, name, scores)
    targets = [target for each in evaluations for target in each.targets]
    names = [*dict.fromkeys(targets), *scores.model_ids]
    folder = name.rpartition(":")[0] or name
    lacking = "" if os.path.isdir(folder) else f", and there is no folder {folder}"
    raise EvaluationError(
        f"{name!r} is neither a target nor a source model{lacking}",
        hint=did_you_mean(name, names, f"names look like {some(names)}"),
        kind="unknown",
    )


def _estimated(evaluation: Evaluation, target: str, scores: Scores) -> Operand:
    prediction, answers = evaluation.prediction(target), evaluation.record.answers(target)
    score = Scored.from_row(prediction, 0, answers, scores)
    notes = (*prediction.notes, *evaluation.answer_notes(target))
    n_open = len(np.setdiff1d(evaluation.record.open(target), evaluation.record.lost(target)))
    # Otherwise the width decides, or the open items are too expensive to run.
    if n_open and evaluation.stop.half_width is None and not evaluation.is_limited(target):
        notes = (
            *notes,
            f"{counted(n_open, 'asked item')} not answered yet: the interval is for the "
            f"{counted(len(answers.items), 'answer')} so far",
        )
    return Operand(target, score.estimates, answers, scores, evaluation, score, notes)


def known_operands(names: Sequence[str], scores: Scores, *, of_table: bool) -> list[Operand]:
    """Return operands that are models of the source scores; see `operand`."""
    full, tasks, found = scores.full_scores(), scores.task_scores(), []
    for name, row in zip(names, scores.model_positions(names).tolist(), strict=True):
        values = scores.cells[row]
        missing = float(np.isnan(values).mean())
        if of_table and missing > MOST_MISSING:
            raise EvaluationError(
                f"{name!r} ran less than half of the items, too few for its score",
                hint="run more of them, or compare models that ran most items",
            )
        if not of_table and not is_known(scores.take(models=[row]))[0]:
            raise EvaluationError(
                f"source model {name!r} lacks {missing:.0%} of its answers, so its full score is "
                "not known",
                hint=f"name the folder of its run, as in DIR:{name}, or compare with a model that "
                "ran all items",
            )
        notes: tuple[str, ...] = ()
        if missing:
            notes = (f"{missing:.1%} of the answers are missing and were filled in",)
        items = np.flatnonzero(~np.isnan(values))
        answers = Answers(items, values[None, items])
        if (repeats := scores.repeats) is not None:
            counts = repeats.counts[[row]][:, items].astype(np.float64)
            answers = replace(answers, counts=counts, variances=repeats.variances[[row]][:, items])
        found.append(Operand(name, np.append(full[row], tasks[row]), answers, scores, notes=notes))
    return found


def at_score(score: float, scores: Scores) -> Operand:
    """Return an operand that is a fixed score in [0, 1], for the full score only."""
    nothing = Answers(np.empty(0, dtype=np.intp), np.empty((1, 0)))
    return Operand(f"{score:g}", np.full(1 + len(scores.tasks), score), nothing, scores)


def by_benchmark(side: Operand) -> Operand:
    """Return an operand whose tasks are the benchmarks: groups of tasks, and tasks of no group.

    Its full score stays as it is.
    """
    scores, table = side.scores, side.scores.by_benchmark
    shares = np.array([scores.benchmarks[name] for name in table.tasks])
    estimates = shares @ side.estimates[1:]
    parts: tuple[Uncertainty | float | None, ...] = tuple(estimates.tolist())
    if side.evaluation is not None and side.scored is not None and not side.is_known:
        judge, full = side.evaluation.estimating.judge, side.score
        assert isinstance(full, Uncertainty)  # as it is not known
        tasks = judge.task_uncertainties(side.scored, full)
        of_groups = judge.group_uncertainties(side.scored, full, tasks)
        found = dict(zip((group.name for group in scores.groups), of_groups, strict=True))
        of_tasks = zip(side.estimates[1:].tolist(), tasks, strict=True)
        found |= dict(zip(scores.tasks, of_tasks, strict=True))
        of_parts = [found[name] for name in table.tasks]
        estimates = np.array([value for value, _ in of_parts])
        parts = tuple(uncertainty for _, uncertainty in of_parts)
    estimates = np.append(side.estimates[0], estimates)
    return replace(side, scores=table, estimates=estimates, parts=parts)


def labels(one: Operand, other: Operand) -> tuple[str, str]:
    """Return names that tell two operands apart: targets of one name by their folders."""
    if one.name != other.name:
        return one.name, other.name
    names = []
    for each in (one, other):
        folder = None if each.evaluation is None else each.evaluation.folder
        names.append(f"{folder.name}:{each.name}" if folder else each.name)
    if names[0] == names[1]:
        names = [f"{label} ({letter})" for label, letter in zip(names, "AB", strict=True)]
    return names[0], names[1]


def warnings_of(operands: Sequence[Operand]) -> tuple[str, ...]:
    """Return the operands' warnings, each once, with the names unless it is of every target."""
    by_text: dict[str, list[str]] = {}
    for side in operands:
        for text in side.warnings:
            by_text.setdefault(text, []).append(side.name)
    targets = [side.name for side in operands if not side.is_known]
    return tuple(
        text if names == targets else f"{some(names)}: {text}" for text, names in by_text.items()
    )
