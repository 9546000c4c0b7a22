"""The joint estimate: the scores of all models of a command, and how their errors go together.

`versus`, `gate`, `rank` and `track` make one from what they are given and read it. They compute no
errors of their own. It answers one of two questions, about the models in general or about exactly
these items. Column 0 is the full score and column 1 + t the score on task t: other weights of the
same items.

A pair of models of a table has the answers of both to (nearly) all items (`all_pairs`). Every other
pair has two uncertain scores, whose errors go together as far as the two ran the same items
(`Contrast`), and its common answers say how far the items of the benchmark vary (`CommonAnswers`).
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.decide.differences import looks_factor
from fewbench.decide.operands import Operand, by_benchmark
from fewbench.scores import Scores
from fewbench.scores.table import MOST_MISSING
from fewbench.uncertainty.all_pairs import AllPairs, all_pairs
from fewbench.uncertainty.contrast import (
    Contrast,
    PairedAnswers,
    beside_known,
    common_answers,
    error_correlation,
    paired_answers,
)
from fewbench.uncertainty.intervals import Uncertainty
from fewbench.uncertainty.missing_blocks import block_variances
from fewbench.uncertainty.question_error import CommonAnswers, of_model, of_one_score
from fewbench.uncertainty.questions import Questions

Score = Uncertainty | float


@dataclass(frozen=True, eq=False)
class JointEstimate:
    """The scores of several models in [0, 1], and all differences between them.

    Parameters
    ----------
    sides : sequence of Operand
        With the same source models.
    level : float
        Level at which looks end at a verdict.
    fixed_items : bool
        Whether it is about exactly these items, of these runs, and not about the models.
    sequential : bool
        Whether intervals allow for looks after 10, 20, 40 … answers up to the budget.
    """

    sides: Sequence[Operand]
    level: float = 0.9
    fixed_items: bool = False
    sequential: bool = False

    @property
    def scores(self) -> Scores:
        """The source models."""
        return self.sides[0].scores

    def among(self, places: Sequence[int]) -> "JointEstimate":
        """Return the estimate of some of the models, in this order."""
        return replace(self, sides=[self.sides[at] for at in places])

    @cached_property
    def by_benchmark(self) -> "JointEstimate | None":
        """The estimate with benchmarks, groups of tasks, in place of tasks.

        There is none with one benchmark, nor for the groups of a pack: it has the answers of the
        source models to its own items only, and keeps its tasks.
        """
        is_pack = self.scores.origin is not None and bool(self.scores.groups)
        if len(self.scores.benchmarks) < 2 or is_pack:
            return None
        if not self.scores.groups:
            return self
        return replace(self, sides=[*map(by_benchmark, self.sides)])

    def estimates(self, column: int = 0) -> FloatArray:
        """Return the estimated scores, shape (models,)."""
        return np.array([float(side.estimates[column]) for side in self.sides])

    def items_run(self, column: int = 0) -> IntArray:
        """Return how many items of the score each model ran, shape (models,)."""
        counts = self._weights(column) > 0
        return np.array([np.count_nonzero(counts[side.items]) for side in self.sides])

    def ran_enough(self, column: int = 0) -> BoolArray:
        """Return which models have a score: of a table, those that ran half of the items."""
        n_items = np.count_nonzero(self._weights(column))
        is_estimated = np.array([side.evaluation is not None for side in self.sides])
        return is_estimated | (self.items_run(column) >= (1 - MOST_MISSING) * n_items)

    def is_open(self, at: int) -> bool:
        """Return whether nothing is known about a part of a model's full score."""
        score = self.sides[at].score
        return isinstance(score, Uncertainty) and score.open > 0

    def interval(self, at: int, level: float, column: int = 0) -> tuple[float, float] | None:
        """Return the interval of a score by itself, or None if nothing is known about the task."""
        side, score = self.sides[at], self.sides[at].part(column)
        if score is None:
            return None
        if side.is_of_table:
            return Contrast(score, 0.0, questions=self._of_known(side, column)).interval(level)
        if not self.fixed_items:
            answers, task = side.answers, column - 1 if column else None
            return of_model(side.scores, answers, score, task).interval(level)
        return score.interval(level) if isinstance(score, Uncertainty) else (score, score)

    def difference(self, one: int, other: int, column: int = 0) -> Contrast | None:
        """Return the score of one model minus that of another one, or None if it is unknown."""
        key = one, other, column
        if key not in self._differences:
            self._differences[key] = self._difference(*key)
        return self._differences[key]

    def _difference(self, one: int, other: int, column: int) -> Contrast | None:
        sides = first, second = self.sides[one], self.sides[other]
        questions: Questions | None = None
        if first.is_of_table and second.is_of_table:
            rows, pairs = self._of_table(column)
            if pairs is None or one not in rows or other not in rows:
                return None
            at = rows.index(one), rows.index(other)
            variance, freedom = float(pairs.variance[at]), float(pairs.freedom[at])
            questions = Questions(variance, freedom) if variance else None
            known = float(first.estimates[column]), float(second.estimates[column])
            return Contrast(*known, questions=questions)
        a, b = (first.part(column), second.part(column)) if column else _scores(first, second)
        if a is None or b is None:
            return None
        if len(second.items):
            questions = _in_common(first, second).error(column, fixed_items=self.fixed_items)
        elif not self.fixed_items:  # a number
            questions = of_one_score(first.scores, first.items, first.answers.scores[0], a)
        wider = 1.0
        if self.sequential and not column:
            wider = looks_factor(sides, self.level, fixed_items=self.fixed_items)
        paired = _paired(first, second, column)
        return Contrast(a, b, _correlation(first, second), wider, paired, questions)

    def full_interval(self, at: int, level: float) -> tuple[float, float]:
        """Return the interval of a full score, which is never unknown."""
        ends = self.interval(at, level)
        assert ends is not None
        return ends

    def full_difference(self, one: int, other: int) -> Contrast:
        """Return the difference of two full scores, which are never unknown."""
        found = self.difference(one, other)
        assert found is not None
        return found

    @cached_property
    def open_pairs(self) -> list[tuple[int, int]]:
        """The pairs with a model that is not of the table."""
        is_open = [not side.is_of_table for side in self.sides]
        pairs = itertools.combinations(range(len(self.sides)), 2)
        return [(i, j) for i, j in pairs if is_open[i] or is_open[j]]

    def errors(self, column: int = 0) -> tuple[FloatArray, FloatArray]:
        """Return standard errors of all differences, infinite if unknown, and their p values.

        Both have the shape (models, models); p values are two-sided, each by itself.
        """
        n = len(self.sides)
        errors, p_values = np.full((n, n), np.inf), np.ones((n, n))
        np.fill_diagonal(errors, 0.0)
        rows, pairs = self._of_table(column)
        if pairs is not None:
            among = np.ix_(rows, rows)
            errors[among], p_values[among] = pairs.standard_errors, pairs.p_values
        for i, j in self.open_pairs:
            if (pair := self.difference(i, j, column)) is not None:
                errors[i, j] = errors[j, i] = pair.standard_error
                p_values[i, j] = p_values[j, i] = pair.p_value
        return errors, p_values

    def _weights(self, column: int) -> FloatArray:
        return self.scores.task_weights[:, column - 1] if column else self.scores.item_weights

    @cached_property
    def _differences(self) -> dict[tuple[int, int, int], Contrast | None]:
        return {}

    @cached_property
    def _tables(self) -> dict[int, tuple[list[int], AllPairs | None]]:
        return {}

    def _of_table(self, column: int) -> tuple[list[int], AllPairs | None]:
        """Return the places of the models of the table, and their differences if there are two.

        From one product of matrices; of a task without those that ran less than half of it.
        """
        if column not in self._tables:
            enough = self.ran_enough(column)
            names = {
                side.name: at
                for at, side in enumerate(self.sides)
                if side.is_of_table and enough[at]
            }
            positions = self.scores.model_positions(names)
            rows, pairs = [*names.values()], None
            if len(rows) > 1:
                by_row = np.argsort(positions)
                rows = [rows[at] for at in by_row]
                sides, table = [self.sides[at] for at in rows], self.scores
                if len(rows) < table.n_models:
                    table = table.take(models=positions[by_row])
                of_blocks = np.array([0.0 if column else self._of_block(side) for side in sides])
                if column:
                    items = np.flatnonzero(self.scores.task_of == column - 1)
                    table = table.take(items=items).averaged("micro")
                estimates = np.array([float(side.estimates[column]) for side in sides])
                pairs = all_pairs(
                    table, estimates, fixed_items=self.fixed_items, of_blocks=of_blocks
                )
            self._tables[column] = rows, pairs
        return self._tables[column]

    def _of_block(self, side: Operand) -> float:
        """Return the variance of a full score that missing tasks leave."""
        if len(side.items) == self.scores.n_items:
            return 0.0
        return float(block_variances(self.scores)[self.scores.model_positions([side.name])[0]])

    def _of_known(self, side: Operand, column: int) -> Questions | None:
        """Return the error of the score of a model of the table, of which cells may be missing."""
        scores, counts = self.scores, self._weights(column) > 0
        items, of_block = side.items[counts[side.items]], 0.0 if column else self._of_block(side)
        values = side.answers.scores[0][counts[side.items]]
        task = column - 1 if column else None
        error = of_one_score(scores, items, values, float(side.estimates[column]), task)
        n_items = int(np.count_nonzero(counts))
        if of_block:  # items of tasks that it has are predicted by their others
            n_items = int(np.isin(scores.task_of, scores.task_of[items]).sum())
        filled = n_items / len(items)
        if self.fixed_items or of_block or error.answers is None:  # else that of these answers
            variance = error.variance * (filled - self.fixed_items) + of_block
            error = replace(error, variance=variance, answers=None)
        return error if error.variance else None


def contrast(
    one: Operand,
    other: Operand,
    *,
    level: float = 0.9,
    sequential: bool = False,
    fixed_items: bool = False,
) -> Contrast:
    """Return the difference of the full scores of two operands; see `JointEstimate`."""
    return JointEstimate((one, other), level, fixed_items, sequential).full_difference(0, 1)


def _scores(one: Operand, other: Operand) -> tuple[Score, Score]:
    """Return both scores; that of a random sample as it is beside a known model."""
    if one.is_known and not other.is_known:
        second, first = _scores(other, one)
        return first, second
    score, known = one.score, other.answers
    is_plain = one.evaluation is not None and one.evaluation.scores.counts_equally
    is_whole = other.is_known and len(known.items) == other.scores.n_items
    if not (isinstance(score, Uncertainty) and is_plain and is_whole and _is_random(score)):
        return score, other.score
    return beside_known(score, one.answers, known.scores[0]), other.score


def _is_random(score: Uncertainty) -> bool:
    """Whether the answers are a simple random sample of all items."""
    # The known model's answers to items that are open for the other do not help with these.
    is_even = score.sample is not None and not np.ptp(score.sample.chances)
    return is_even and score.kind != "held-out" and not score.open


def _in_common(one: Operand, other: Operand) -> CommonAnswers:
    items, ours, theirs = common_answers(one.answers, other.answers)
    chances = [side.chances for side in (one, other)]
    filled = 1.0
    for side in (one, other):
        if side.evaluation is None:  # a known model may lack a few answers
            filled = one.scores.n_items / len(side.items)
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


def _paired(first: Operand, other: Operand, column: int) -> PairedAnswers | None:
    both = first.score, other.score
    unsure = [score for score in both if isinstance(score, Uncertainty)]
    if not unsure or (column and len(unsure) < 2):
        return None
    scores, answers, copies = first.scores, (first.answers, other.answers), None
    if len(unsure) < 2:
        # Beside a known model, the errors on held-out sources hold for near copies, too.
        if unsure[0].kind != "held-out":
            return None
        copies = 0.0
    paired = paired_answers(*answers, scores.item_weights, copies)
    if not column or paired is None:
        return paired
    return paired_answers(*answers, scores.task_weights[:, column - 1], paired.copies)
