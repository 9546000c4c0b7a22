"""What is compared: a target of an evaluation, a model of the sources, or a fixed score."""

import math
import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from fewbench._files import folder_name
from fewbench._json import Frozen
from fewbench._lazy import pandas as pd
from fewbench._names import counted, did_you_mean, some
from fewbench._types import FloatArray, IntArray
from fewbench._warned import in_cell
from fewbench.decide.track_folder import checkpoint_beside
from fewbench.errors import EvaluationError
from fewbench.evaluation.evaluation import Evaluation
from fewbench.evaluation.interval import Interval
from fewbench.evaluation.journal import Journal
from fewbench.methods.record import Answers
from fewbench.methods.sources import is_known
from fewbench.methods.written import check_number
from fewbench.scores import Scale, Scores
from fewbench.scores.table import MOST_MISSING
from fewbench.uncertainty.all_pairs import all_pairs
from fewbench.uncertainty.contrast import (
    FEW_COMMON,
    Contrast,
    PairedAnswers,
    common_answers,
    error_correlation,
    look_factor,
    paired_answers,
)
from fewbench.uncertainty.held_out import looks_of
from fewbench.uncertainty.intervals import Scored, Uncertainty
from fewbench.uncertainty.question_error import CommonAnswers, of_one_score
from fewbench.uncertainty.questions import Questions

Given = Evaluation | tuple[Evaluation, str] | str
"""An evaluation of one target, an evaluation and one of its targets, or the name of a model."""

PRIOR_PAIRS = 10.0
"""So many pairs of answers count for errors that do not move together, where few are common."""
AHEAD = 3.0
"""With this bound, looks after every doubling of one side alone, up to 64 times its budget, miss
together in 11% at 90%, after those up to the budget; without one they do in 11%, with 2 in 13%
(200,000 draws). A baseline that ran 64 times its budget then widens 1.3 times, not 2.8."""
ONE_LOOK = (
    "this interval holds for one look at the results. If you run more items and look again, pass "
    "--sequential at every look"
)
"""For a result whose items are asked for."""


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
    """

    name: str
    estimates: FloatArray
    answers: Answers
    scores: Scores
    evaluation: Evaluation | None = None
    scored: Scored | None = None
    notes: tuple[str, ...] = ()

    @property
    def items(self) -> IntArray:
        """Positions of the items with an answer."""
        return self.answers.items

    @cached_property
    def score(self) -> Uncertainty | float:
        """The full score, and how far it may be off."""
        if self.is_known or self.evaluation is None or self.scored is None:
            return float(self.estimates[0])
        return self.evaluation.estimating.judge.of(self.scored)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval of the full score; that of a known score has no width."""
        score = self.score
        return score.interval(level) if isinstance(score, Uncertainty) else (score, score)

    @cached_property
    def tasks(self) -> "list[Uncertainty | float | None]":
        """The task scores, or None where a score is unknown."""
        full, score = self.score, self.scored
        if self.evaluation is None or score is None or not isinstance(full, Uncertainty):
            return [float(estimate) for estimate in self.estimates[1:]]
        return list(self.evaluation.estimating.judge.of_tasks(score, full))

    @property
    def is_known(self) -> bool:
        """Whether the full score is known, so that it has no error."""
        return self.evaluation is None or len(self.items) == self.evaluation.scores.n_items

    @property
    def is_of_table(self) -> bool:
        """Whether it is a model of the source scores, and neither a target nor a number."""
        return self.evaluation is None and len(self.items) > 0

    @property
    def chances(self) -> FloatArray | None:
        """Chance of each item to be run, shape (items,), or None if a method chose the items."""
        if not isinstance(self.score, Uncertainty):
            return np.ones(self.scores.n_items)
        return None if self.score.sample is None else self.score.sample.chances

    @property
    def has_gaps(self) -> bool:
        """Whether an item still lacks its answer although a later one is answered.

        Not where the width of the interval ends a run: it may end within a batch.
        """
        if self.evaluation is None or self.evaluation.stop.half_width is not None:
            return False
        record = self.evaluation.record
        asked, answered = record.asked(self.name), record.answered(self.name)
        begun = asked[: 1 + int(np.flatnonzero(np.isin(asked, answered)).max(initial=-1))]
        return bool(np.isin(begun, record.open(self.name)).any())

    @property
    def is_limited(self) -> bool:
        """Whether the limit on cost leaves no further item."""
        return self.evaluation is not None and self.evaluation.is_limited(self.name)

    @property
    def budget(self) -> int:
        """Number of items that the target may run."""
        return len(self.items) if self.evaluation is None else self.evaluation.provenance.budget

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons to doubt the score."""
        of_score = self.score.warnings if isinstance(self.score, Uncertainty) else ()
        return (*self.notes, *of_score)


def contrast(
    one: Operand,
    other: Operand,
    *,
    level: float = 0.9,
    sequential: bool = False,
    fixed_items: bool = False,
) -> Contrast:
    """Return the difference of the full scores of two operands.

    For the models in general, on questions like these and in a new run, or with `fixed_items`, on
    exactly these items. With `sequential`, for checks after 10, 20, 40 … answers up to the budget
    that end at a verdict at this level.
    """
    wider = looks_factor((one, other), level, fixed_items=fixed_items) if sequential else 1.0
    questions: Questions | None = None
    if one.is_of_table and other.is_of_table:
        questions = _of_table(one, other, fixed_items=fixed_items)
    elif len(other.items):
        questions = _in_common(one, other).of_full_score(fixed_items=fixed_items)
    elif not fixed_items:  # a number
        questions = of_one_score(one.scores, one.items, one.answers.scores[0], one.score)
    return Contrast(
        one.score, other.score, _correlation(one, other), wider, _paired(one, other), questions
    )


def _of_table(one: Operand, other: Operand, *, fixed_items: bool) -> Questions | None:
    """Return the error of two models of a table, as `rank` has it of all its pairs."""
    two = one.scores.take(models=one.scores.model_positions([one.name, other.name]))
    estimates = np.array([one.estimates[0], other.estimates[0]])
    pairs = all_pairs(two, estimates, fixed_items=fixed_items)
    variance, freedom = float(pairs.variance[0, 1]), float(pairs.freedom[0, 1])
    return Questions(variance, freedom) if variance else None


def score_interval(
    side: Operand, level: float, task: int | None = None, *, fixed_items: bool
) -> tuple[float, float] | None:
    """Return the interval of a full score or a task score, of the model or on exactly these items.

    None if nothing is known about the task.
    """
    score = side.score if task is None else side.tasks[task]
    if score is None:
        return None
    questions = None
    if not fixed_items:
        questions = of_one_score(side.scores, side.items, side.answers.scores[0], score, task)
    return Contrast(score, 0.0, questions=questions).interval(level)


def _in_common(one: Operand, other: Operand) -> CommonAnswers:
    items, ours, theirs = common_answers(one.answers, other.answers)
    chances = [side.chances for side in (one, other)]
    n_items, filled = one.scores.n_items, 1.0
    known = [side for side in (one, other) if side.evaluation is None]
    if known and any(len(side.items) < n_items for side in known):
        filled = n_items / (len(items) if len(known) == 2 else len(known[0].items))
    return CommonAnswers(
        max((one.scores, other.scores), key=lambda scores: scores.n_models),
        items,
        ours - theirs,
        np.array([one.estimates, other.estimates]),
        None
        if chances[0] is None or chances[1] is None
        else np.minimum(chances[0], chances[1])[items],
        min(len(one.items), len(other.items)),
        filled,
    )


def looks_factor(
    sides: Sequence[Operand], level: float, least: int = 0, *, fixed_items: bool = False
) -> float:
    """Return how much wider the interval of a difference is for one of several looks.

    It is the larger factor of the two sides. If a target is ahead of the other one, at most `AHEAD`
    times the other one's share of its budget counts: its further answers hardly change the
    difference. 1 for models of the sources, and with `fixed_items` if both scores are known: after
    all items only a verdict on the models has an error that earlier looks add to.

    Parameters
    ----------
    sides : sequence of Operand
    level : float
    least : int
        As it would be after so many answers of each side, where it has fewer.
    fixed_items : bool
    """
    open_ = _looked_at(sides, fixed_items=fixed_items)
    answers = [max(len(side.items), least) for side in open_]
    shares = [n / side.budget for n, side in zip(answers, open_, strict=True)]
    most = AHEAD * min(shares, default=0.0)
    factors = [
        look_factor(min(n, math.ceil(most * side.budget)), side.budget, level)
        for n, side in zip(answers, open_, strict=True)
    ]
    return max(factors, default=1.0)


def _looked_at(sides: Sequence[Operand], *, fixed_items: bool) -> list[Operand]:
    """Return the operands whose errors hang on how often one looks."""
    return [
        side for side in sides if not (side.is_known if fixed_items else side.evaluation is None)
    ]


def task_contrasts(
    one: Operand, other: Operand, *, fixed_items: bool = False
) -> "list[Contrast | None]":
    """Return the difference of every task, or None where it is unknown."""
    correlation, pairs = _correlation(one, other), _paired_by_task(one, other)
    errors = _in_common(one, other).of_tasks(fixed_items=fixed_items)
    return [
        None
        if a is None or b is None
        else Contrast(a, b, correlation, paired=paired, questions=questions)
        for a, b, paired, questions in zip(one.tasks, other.tasks, pairs, errors, strict=True)
    ]


def judged(
    scale: Scale,
    level: float,
    difference: float,
    pair: Contrast | None,
    p_value: float | None,
    p_adjusted: float | None,
) -> dict[str, Any]:
    """Return what is found of one of several differences, as fields of a result.

    It is better or worse if the p value that is adjusted for their number is at most 1 - level.
    `difference` is in [0, 1]; the interval is on the scale of the scores, None if nothing is known.
    The p values are None where nothing is tested: then, or for a difference without error.
    """
    verdict = "undecided"
    if p_adjusted is not None and p_adjusted <= 1 - level + 1e-12 and difference != 0:
        verdict = "better" if difference > 0 else "worse"
    is_tested = pair is not None and not pair.is_certain
    return {
        "difference": float(scale.difference_from_unit(difference)),
        "interval": None
        if pair is None
        else Interval.between(scale.difference_from_unit(pair.interval(level))),
        "p_value": p_value if is_tested else None,
        "p_adjusted": p_adjusted if is_tested else None,
        "verdict": verdict,
    }


def check_next(next_items: int | None, *, ask: bool, is_shown: bool = True) -> None:
    """Raise FewbenchError for a number of items to ask for that is missing or negative.

    Also if the number has no effect without `ask`, as the result does not show the items
    (`is_shown`).
    """
    check_number("next_items", next_items, 0)
    if ask and next_items is None:
        raise EvaluationError(
            "the number of items to ask for is missing", hint="add it, as in --next-items 50"
        )
    if next_items is not None and not ask and not is_shown:
        raise EvaluationError(
            "a number of further items has no effect if they are not asked for", hint="add --ask"
        )


class Pairing(Frozen):
    """Targets that share few items, so that their answers make few pairs.

    Attributes
    ----------
    note : str
        How many items they share.
    command : str
        What runs one of them on the items of the other.
    """

    note: str
    command: str


def pairing(sides: Sequence[Operand]) -> Pairing | None:
    """Return which targets share less than half of their items, and how to pair them, or None."""
    open_ = sorted((side for side in sides if not side.is_known), key=lambda side: -len(side.items))
    few = []
    for first, other in combinations(open_, 2):  # the first has more answers
        common = len(np.intersect1d(first.items, other.items))
        if common < FEW_COMMON * len(other.items):
            few.append((common / len(other.items), common, first, other))
    if not few:
        return None
    _, common, first, other = min(few, key=lambda pair: pair[0])
    a, b = labels(first, other)
    note = f"{a} and {b} share {common:,} of {counted(len(other.items), 'item')}"
    if len(few) > 1:
        note = f"{len(few)} pairs of targets share few items: {note}"
    return Pairing(
        note=f"{note}; on the same items their difference is more precise",
        command=_pair(first, other),
    )


def _pair(leader: Operand, other: Operand) -> str:
    """Return the command that runs a target on the items of another one."""
    evaluation = leader.evaluation
    assert evaluation is not None
    if (folder := evaluation.folder) is None:
        return "run one of them into a folder, and the other with items_of=FOLDER"
    several = len(evaluation.targets) > 1
    path, seed = Journal(folder).scores_path(), evaluation.provenance.seed
    words = ["fewbench", "run", "RUNNER"]
    words += [shlex.quote(os.path.relpath(path))] if path and evaluation.scores.n_models else []
    words += ["--seed", str(seed)] if seed else []
    words += ["-t", shlex.quote(other.name), "-o", shlex.quote(f"{folder_name(other.name)}-paired")]
    of = f"{folder}:{leader.name}" if several else str(folder)
    return " ".join([*words, "--items-of", shlex.quote(of), "--", "…"])


def if_paired(made: Contrast, one: Operand, other: Operand) -> Contrast:
    """Return the difference as it would be if both had answered the same items."""
    a, b = one.score, other.score
    if not isinstance(a, Uncertainty) or not isinstance(b, Uncertainty):
        return made
    if a.sample is None or b.sample is None:
        return made
    common = np.isfinite(a.sample.influence) & np.isfinite(b.sample.influence)
    influence, theirs = a.sample.influence[common], b.sample.influence[common]
    size = math.sqrt(float(influence @ influence) * float(theirs @ theirs))
    alike = float(influence @ theirs) / size if size > 0 else 0.0
    alike *= len(influence) / (len(influence) + PRIOR_PAIRS)
    return replace(made, correlation=max(made.correlation, alike))


def _correlation(first: Operand, other: Operand) -> float:
    """Return how far the errors of two estimates move together."""
    a, b = first.score, other.score
    if not isinstance(a, Uncertainty) or not isinstance(b, Uncertainty):
        return 0.0
    assert first.evaluation is not None
    assert other.evaluation is not None
    ours, theirs = first.evaluation.provenance, other.evaluation.provenance
    same = (ours.fingerprint, ours.settings, ours.budget) == (
        theirs.fingerprint, theirs.settings, theirs.budget,
    )  # fmt: skip
    if ours.seed != theirs.seed and first.evaluation.method.asks_once:
        same = False  # each ran items of its own
    errors = first.evaluation.estimating.judge.errors if same else None
    return error_correlation(a, b, min(len(first.items), len(other.items)), errors)


def _paired(first: Operand, other: Operand) -> PairedAnswers | None:
    if first.evaluation is None or other.evaluation is None:
        return None
    return paired_answers(first.answers, other.answers, first.evaluation.scores.item_weights)


def _paired_by_task(first: Operand, other: Operand) -> "list[PairedAnswers | None]":
    paired = _paired(first, other)
    if paired is None or first.evaluation is None:
        return [None] * len(first.tasks)
    return [
        paired_answers(first.answers, other.answers, weights, paired.copies)
        for weights in first.evaluation.scores.task_weights.T
    ]


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


def checked_at(*operands: Operand, fixed_items: bool = False) -> tuple[int, ...]:
    """Return the numbers of answers after which the longest evaluation is checked."""
    budgets = [side.budget for side in _looked_at(operands, fixed_items=fixed_items)]
    return looks_of(max(budgets)) if budgets else ()


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


def scores_of(*given: Given, scores: Scores | None = None) -> Scores:
    """Return the source scores to compare with: `scores`, or the table with the most models.

    Evaluations may have different source models: their tables grow with every run. EvaluationError
    if there is no table.
    """
    sides = [side[0] if isinstance(side, tuple) else side for side in given]
    tables = [side.scores for side in sides if isinstance(side, Evaluation)]
    if not tables and scores is None:
        raise EvaluationError(
            "the two names can only be found in an evaluation or in scores",
            hint="pass scores (--scores), or an evaluation folder in place of a name",
        )
    return scores if scores is not None else max(tables, key=lambda table: table.n_models)


def on_common_items(
    *given: Given, scores: Scores | None = None
) -> tuple[tuple[Given, ...], Scores | None, tuple[str, ...]]:
    """Return operands and scores of the items that all of them have, and a note if some have more.

    Where all have the same items, they stay as they are.

    Raises
    ------
    EvaluationError
        If they have no item in common, or weigh or average their items differently.
    """
    sides = [side[0] if isinstance(side, tuple) else side for side in given]
    evaluations = {id(side): side for side in sides if isinstance(side, Evaluation)}
    tables = [each.scores for each in evaluations.values()] + ([] if scores is None else [scores])
    if all(_same_benchmark(tables[0], other) for other in tables[1:]):
        return given, scores, ()
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
    restricted = {key: each.on_items(common) for key, each in evaluations.items()}
    changed: list[Given] = []
    for side in given:
        if isinstance(side, tuple):
            changed.append((restricted[id(side[0])], side[1]))
        else:
            changed.append(restricted[id(side)] if isinstance(side, Evaluation) else side)
    note = (
        f"compared on the {counted(len(common), 'item')} that all have: "
        f"{some((f'{n:,} more' for n in beyond), quotes=False)} left out"
    )
    return tuple(changed), None if scores is None else parts[-1], (note,)


def refuse_to_ask(notes: Sequence[str]) -> None:
    """Raise EvaluationError if --ask is given for evaluations with different items."""
    if notes:
        raise EvaluationError(
            f"cannot add items to evaluations with different items: {notes[0]}",
            hint="extend the other evaluation first (fewbench extend), or leave out --ask",
        )


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
    given: Given, scores: Scores, others: Sequence[Given] = (), *, of_table: bool = False
) -> Operand:
    """Return an operand from what a user gives.

    Parameters
    ----------
    given : Given
    scores : Scores
        The sources.
    others : sequence of Given
        Evaluations that a name may be a target of, or a checkpoint beside.
    of_table : bool
        Whether models of one table are compared, which may lack up to half of the items.

    Raises
    ------
    EvaluationError
        If a name is not known, a target has no answers, or a model of the sources lacks answers.
    """
    if isinstance(given, Evaluation):
        if len(given.targets) > 1:
            raise EvaluationError(
                f"the evaluation has {len(given.targets)} targets: {some(given.targets)}",
                hint=f"name one: {given.folder or 'DIR'}:{given.targets[0]}, in Python "
                "(evaluation, target)",
            )
        return _estimated(given, given.targets[0], scores)
    if isinstance(given, tuple):
        return _estimated(*given, scores)
    sides = [side[0] if isinstance(side, tuple) else side for side in others]
    evaluations = [side for side in sides if isinstance(side, Evaluation)]
    for evaluation in evaluations:
        if given in evaluation.targets:
            return _estimated(evaluation, given, scores)
    if given in scores.models.index:
        return _known(given, scores, of_table=of_table)
    if (beside := checkpoint_beside(given, evaluations)) is not None:
        return _estimated(beside, given, scores)
    targets = [name for evaluation in evaluations for name in evaluation.targets]
    names = [*dict.fromkeys(targets), *scores.model_ids]
    folder = given.rpartition(":")[0] or given
    lacking = "" if os.path.isdir(folder) else f", and there is no folder {folder}"
    raise EvaluationError(
        f"{given!r} is neither a target nor a source model{lacking}",
        hint=did_you_mean(given, names, f"names look like {some(names)}"),
    )


def _estimated(evaluation: Evaluation, target: str, scores: Scores) -> Operand:
    prediction, answers = evaluation.prediction(target), evaluation.record.answers(target)
    score = Scored.of(prediction, 0, answers, scores)
    notes = (*prediction.notes, *evaluation.answer_notes(target))
    n_open = len(evaluation.record.open(target))
    # Otherwise the width decides, or the open items are too expensive to run.
    if n_open and evaluation.stop.half_width is None and not evaluation.is_limited(target):
        notes = (
            *notes,
            f"{counted(n_open, 'asked item')} not answered yet: the interval is for the "
            f"{counted(len(answers.items), 'answer')} so far",
        )
    return Operand(target, score.estimates, answers, scores, evaluation, score, notes)


def _known(name: str, scores: Scores, *, of_table: bool) -> Operand:
    row = int(scores.model_positions([name])[0])
    values = scores.cells[row]
    missing = float(np.isnan(values).mean())
    if of_table and missing > MOST_MISSING:
        raise EvaluationError(
            f"{name!r} ran less than half of the items, too few for its score",
            hint="run more of them, or compare models that ran most items",
        )
    if not of_table and not is_known(scores.take(models=[row]))[0]:
        raise EvaluationError(
            f"source model {name!r} lacks {missing:.0%} of its answers, so its full score is not "
            "known",
            hint=f"name the folder of its run, as in DIR:{name}, or compare with a model that ran "
            "all items",
        )
    notes: tuple[str, ...] = ()
    if missing:
        notes = (f"{missing:.1%} of the answers are missing and were filled in",)
    estimates = np.array([scores.full_scores()[row], *scores.task_scores()[row]])
    items = np.flatnonzero(~np.isnan(values))
    answers = Answers(items, values[None, items])
    if (repeats := scores.repeats) is not None:
        counts = repeats.counts[[row]][:, items].astype(np.float64)
        answers = replace(answers, counts=counts, variances=repeats.variances[[row]][:, items])
    return Operand(name, estimates, answers, scores, notes=notes)


def at_score(score: float, scores: Scores) -> Operand:
    """Return an operand that is a fixed score in [0, 1], for the full score only."""
    nothing = Answers(np.empty(0, dtype=np.intp), np.empty((1, 0)))
    return Operand(f"{score:g}", np.full(1 + len(scores.tasks), score), nothing, scores)


def frame_of(
    parts: Iterable[Any], columns: Sequence[str], warnings: Iterable[str]
) -> "pd.DataFrame":
    """Return a row for each part, with the ends of its interval as low and high, and warnings."""
    rows = [{**dict(part), **dict(part.interval or {})} for part in parts]
    return pd.DataFrame(rows, columns=list(columns)).assign(warnings=in_cell(warnings))
