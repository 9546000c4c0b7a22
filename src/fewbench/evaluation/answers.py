"""Check targets' answers, and bring those that users give to the form of the record."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fewbench._blocks import by_columns
from fewbench._lazy import pandas as pd
from fewbench._names import counted, some
from fewbench._types import ArrayLike, BoolArray, FloatArray, IntArray
from fewbench.errors import AnswersError
from fewbench.methods import Answers, Record
from fewbench.scores import Scale, Scores
from fewbench.scores.conditions import (
    Compared,
    asked_elsewhere,
    compare_conditions,
    compare_targets,
    is_recorded,
)
from fewbench.scores.probabilities import SUM_TOLERANCE
from fewbench.scores.replies import describe_replies, is_odd
from fewbench.scores.table import KEYS, NO_TASK, PROMPTS, SETTINGS

WHOSE = (
    "of logs, name the model with --model NAME; of a table, keep one model's rows, or start with "
    "targets named as there"
)
ENOUGH = 100  # source answers per task; fewer may all be 0 or 1 by chance


class Taken(NamedTuple):
    """What became of a table of answers.

    Attributes
    ----------
    answers : int
        Number of new answers.
    unasked_items, other_models : list of str
        What the table holds beyond the asked items and the targets. It is not used.
    empty_items : sequence of str
        Items that the table holds without an answer, of those that a target has left to answer.
    answers_before : int
        Number of answers that were recorded already.
    notes : tuple of str
        How prompts and settings differ from the sources', and what could not be compared.
    uncompared : dict of str to sequence of str
        Items of which something could not be compared, by a note with {} for their number.
    unskipped_items : tuple of str
        Items that a target had skipped and has answered now.
    renamed : dict of str to str
        Targets whose answers have a different name in the table, and that name.
    corrected : int
        Number of earlier answers that new ones replaced.
    """

    answers: int
    unasked_items: list[str]
    other_models: list[str]
    empty_items: Sequence[str] = ()
    answers_before: int = 0
    notes: tuple[str, ...] = ()
    unskipped_items: tuple[str, ...] = ()
    renamed: Mapping[str, str] = {}
    uncompared: Mapping[str, Sequence[str]] = {}
    corrected: int = 0


class AnswerBook:
    """Checks answers against the sources' items, scale and options, and shows the record."""

    def __init__(self, scores: Scores, record: Record) -> None:
        self.sources, self.record = scores, record

    @property
    def scale(self) -> Scale:
        """Scale of the sources' scores."""
        return self.sources.scale

    def notes(self, target: str) -> tuple[str, ...]:
        """Return a warning if fractions were accepted where the sources have none."""
        answers = self.record.answers(target)
        answered = dict(zip(answers.items.tolist(), answers.scores[0].tolist(), strict=True))
        times = _counts_of(answers)
        pairs = zip(answered.items(), times, strict=True)
        fractions = [at for (at, score), n in pairs if self._is_odd(at, score, n)]
        if not fractions:
            return ()
        return (
            f"{len(fractions)} of {len(answered)} answers are fractions, first "
            f"{self.sources.item_ids[fractions[0]]!r}; the source models have only right or wrong "
            "answers there. If the metric differs, the estimate is wrong",
        )

    def _is_odd(self, at: int, score: float, n: float) -> bool:
        """Whether a score is a fraction but no mean of n right or wrong answers."""
        is_mean = n > 1 and abs(score * n - round(score * n)) < 1e-6
        return 0.0 < score < 1.0 and not is_mean and bool(self._whole_items[at])

    @cached_property
    def _whole_items(self) -> BoolArray:
        """Whether each item's task has only right or wrong source answers."""
        sources = self.sources
        if not sources.n_models:
            return np.zeros(sources.n_items, dtype=bool)
        if sources.is_binary:
            return np.ones(sources.n_items, dtype=bool)
        whole = sources.remember("whole tasks", lambda: whole_tasks(sources))
        return np.asarray(whole[sources.task_of], dtype=bool)

    def check(
        self,
        target: str,
        answers: Answers,
        *,
        accept_fractions: bool,
        correct: bool = False,
        repeat: int = 1,
    ) -> None:
        """Raise AnswersError for a score out of range, an item not asked, or another earlier score.

        Also for a fraction where the sources have none, unless accepted. `correct` lets answers
        replace earlier ones. With `repeat` 2, these are the second answers to their items.
        """
        scale = self.sources.scale
        before = self.record.scores_of(target, repeat)
        first = self.record.first_scores(target)
        rows = zip(
            answers.items.tolist(), answers.scores[0].tolist(), _counts_of(answers),
            self.record.is_asked(target, answers.items).tolist(), strict=True,
        )  # fmt: skip
        for at, score, n, is_asked in rows:
            name = f"{target!r}: item {self.sources.item_ids[at]!r}"
            if np.isnan(score):
                raise AnswersError(
                    f"{name} has the score NaN",
                    hint="leave out an item that was not run; give 0 for a wrong answer",
                )
            if not 0.0 <= score <= 1.0:
                raise AnswersError(
                    f"{name} has a score outside {scale.low:g}..{scale.high:g}",
                    hint=f"give scores from {scale.low:g} to {scale.high:g}",
                )
            if self._is_odd(at, score, n) and not accept_fractions:
                raise AnswersError(
                    f"{name} has the score {float(scale.from_unit(score)):g}; the source models' "
                    f"answers are right ({scale.from_unit(1.0):g}) or wrong "
                    f"({scale.from_unit(0.0):g})",
                    hint="use the metric of the source models; record several runs of an item "
                    "one by one, with --repeat 2 and so on (in Python repeat=2); or pass "
                    "--accept-fractions (in Python accept_fractions=True)",
                    kind="scale",
                )
            if not is_asked:
                raise AnswersError(
                    f"{name} was not requested", hint="give answers only to items that ask lists"
                )
            if repeat > 1 and np.isnan(first[at]):
                raise AnswersError(
                    f"{name} has no first answer",
                    hint="record the first answers without --repeat (in Python without repeat=)",
                    kind="unanswered",
                )
            if not correct and not np.isnan(before[at]) and before[at] != score:
                raise AnswersError(
                    f"{name} already has a different score",
                    hint="pass --correct to replace the answer (in Python correct=True); or, for a "
                    "second answer, --repeat 2 (in Python repeat=2)",
                    kind="taken",
                )

    def odd_replies(
        self, target: str, answers: Answers, replies: Mapping[str, str], *, strict: bool
    ) -> dict[str, str]:
        """Return the replies that deserve a warning; AnswersError if there are any and `strict`."""
        items = self.sources.item_ids[answers.items].tolist()
        odd = {
            item: replies[item]
            for item, score in zip(items, answers.scores[0].tolist(), strict=True)
            if item in replies and is_odd(replies[item], score)
        }
        if odd and strict:
            raise AnswersError(
                f"{target!r}: {'; '.join(describe_replies(odd, len(items)))}",
                hint="run these items again so that replies are whole, or leave out --strict (in "
                "Python strict=False) to use them with a warning",
            )
        return odd

    def from_table(self, table: Scores, row: int, target: str) -> Answers:
        """Return a table row's answers to a target's items."""
        positions = self.sources.items.index.get_indexer(table.items.index)
        asked = self.record.asked(target)
        columns = np.flatnonzero(np.isin(positions, asked) & ~np.isnan(table.cells[row]))
        options = None
        if table.probabilities is not None:
            rows = table.probabilities.take(np.array([row])).of_items(columns)[0]
            options = self.options(list(rows))
        counts = variances = None
        if table.repeats is not None and (table.repeats.counts[row, columns] > 1).any():
            counts = table.repeats.counts[[row]][:, columns].astype(np.float64)
            variances = table.repeats.variances[[row]][:, columns]
        scores = table.cells[[row]][:, columns]
        return Answers(positions[columns].astype(np.intp), scores, options, counts, variances)

    def given(
        self,
        target: str,
        answers: Mapping[str, float],
        probabilities: Mapping[str, ArrayLike] | None,
    ) -> Answers:
        """Return answers by item id on the scale of the sources as positions, in [0, 1].

        AnswersError for a score that is not a number, or an answer without probabilities.
        """
        options = None
        if probabilities is not None:
            lacking = [item for item in answers if item not in probabilities]
            if lacking:
                raise AnswersError(
                    f"{counted(len(lacking), 'answer')} without probabilities: {some(lacking)}"
                )
            options = self.options([probabilities[item] for item in answers])
        scores = []
        score: Any  # of a user's function it may be anything
        for item, score in answers.items():
            try:
                scores.append(float(score))
            except (TypeError, ValueError, OverflowError) as error:
                hint = "give a number on the scale of the source models"
                if isinstance(score, tuple | dict):
                    hint += "; what an item costs is read from the items' column cost"
                raise AnswersError(
                    f"{target!r}: the score of item {item!r} is not a number: {error}", hint=hint
                ) from error
        unit = self.scale.to_unit(np.array([scores]))
        return Answers(self.sources.positions(answers), unit, options)

    def options(self, rows: Sequence[ArrayLike]) -> FloatArray | None:
        """Return option probabilities, shape (1, items, options), or None if the sources have
        none.
        """
        if self.sources.probabilities is None:
            return None
        width = self.sources.probabilities.shape[2]
        padded = np.zeros((1, len(rows), width))
        for i, row in enumerate(rows):
            try:
                values = np.asarray(row, dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise AnswersError(f"option probabilities are not numbers: {error}") from error
            if values.ndim != 1 or len(values) > width:
                raise AnswersError(
                    f"option probabilities have shape {values.shape}, but the source models have "
                    f"{width} options"
                )
            unknown = np.isnan(values).all()
            if not unknown and not ((values >= 0).all() and abs(values.sum() - 1) <= SUM_TOLERANCE):
                raise AnswersError("option probabilities are negative or do not sum to 1")
            padded[0, i, : len(values)] = values
            if unknown:
                padded[0, i] = np.nan
        return padded

    def check_skipped(self, target: str, items: IntArray, again: Collection[int] = ()) -> None:
        """Raise AnswersError unless the items are open, or run `again`."""
        left = set(self.record.open(target).tolist()) | set(again)
        wrong = [str(self.sources.item_ids[at]) for at in items.tolist() if at not in left]
        if wrong:
            raise AnswersError(
                f"{target!r}: {some(wrong)} cannot be skipped: not asked, or already answered",
                hint="skip only items that ask lists",
                kind="unknown",
            )

    def compare(
        self, table: Scores, matched: Mapping[str, int], *, accept_differences: bool
    ) -> Compared:
        """Compare prompts and scoring of answers; AnswersError for differences that are not
        accepted.
        """
        used: dict[str, None] = {}
        for name, row in matched.items():
            answers = self.from_table(table, row, name)
            used |= dict.fromkeys(self.sources.item_ids[answers.items].tolist())
        compare = compare_conditions if self.sources.n_models else compare_targets
        compared = compare(self.sources, table, self._known_to_sources(used))
        compared = replace(compared, differences=(*compared.differences, *self._tasks(table, used)))
        if compared.differences and not accept_differences:
            whose = "the source models" if self.sources.n_models else "the benchmark"
            raise AnswersError(
                f"prompts or scoring differ from those of {whose}: "
                + "; ".join(compared.differences),
                hint=f"run the items like {whose}, or pass --accept-differences to use "
                "these answers anyway (in Python accept_differences=True)",
            )
        if self.sources.n_models and is_recorded(table) and not is_recorded(self.sources):
            harness = str(next(iter(table.items.get("harness", [""]))))
            doubts = asked_elsewhere(self.sources, harness)
            return replace(compared, doubts=doubts, notes=())
        return compared

    def _known_to_sources(self, items: Iterable[str]) -> list[str]:
        """Return the items except those that no source ran and that have no records."""
        asked = list(items)
        recorded = self.sources.items.columns.intersection([PROMPTS, KEYS, SETTINGS])
        if not len(recorded):
            return asked  # with a note
        texts = self.sources.items.loc[asked, recorded].fillna("")
        blank = [item for item, row in zip(asked, texts.to_numpy(), strict=True) if not any(row)]
        cells = self.sources.columns(self.sources.positions(blank))
        unrun = {item for item, is_run in zip(blank, (~np.isnan(cells)).T, strict=True)
                 if not is_run.any()}  # fmt: skip
        return [item for item in asked if item not in unrun]

    def _tasks(self, table: Scores, items: Iterable[str]) -> Iterator[str]:
        """Yield how tasks differ; in tables only, as ids of items from logs begin with the task."""
        every = (table, self.sources)
        ours, theirs = (side.items["task"].astype(str).loc[list(items)] for side in every)
        if "harness" in table.items or set(ours) == {NO_TASK} or set(theirs) == {NO_TASK}:
            return
        differ = np.flatnonzero(ours.to_numpy() != theirs.to_numpy())
        if len(differ):
            at = differ[0]
            where = "the sources" if self.sources.n_models else "the benchmark"
            yield (
                f"{len(differ)} of {counted(len(ours), 'item')} have a different task than in "
                f"{where}, such as {ours.index[at]!r}: {ours.iloc[at]!r} in the answers, "
                f"{theirs.iloc[at]!r} in {where}"
            )

    def table(self, target: str, expected: FloatArray | None) -> "pd.DataFrame":
        """Return one row per item (see `Evaluation.items`); `expected` has shape (items,)."""
        status = np.full(self.sources.n_items, "", dtype=object)
        status[self.record.asked(target)] = "open"
        status[list(self.record.skipped(target))] = "skipped"
        status[self.record.answered(target)] = "answered"
        scale = self.sources.scale
        table = pd.DataFrame({"task": self.sources.items["task"], "status": status})
        table["score"] = scale.from_unit(self.record.scores(target))
        table["expected"] = np.nan if expected is None else scale.from_unit(expected)
        return table

    def counts(self) -> "pd.DataFrame":
        """Return one row per target: items asked, answered, skipped and open."""
        record = self.record
        rows = {
            name: {
                "asked": len(record.asked(name)),
                "answered": len(record.answered(name)),
                "skipped": len(record.skipped(name)),
                "open": len(record.open(name)),
            }
            for name in record.targets
        }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("target")


def _counts_of(answers: Answers) -> list[float]:
    """Return how many answers each score is the mean of."""
    n_items = len(answers.items)
    return [1.0] * n_items if answers.counts is None else answers.counts[0].tolist()


def whole_tasks(sources: Scores) -> BoolArray:
    """Return whether each task has only right and wrong answers, and enough of them."""

    def counts(values: FloatArray) -> FloatArray:
        kinds = np.stack([~np.isnan(values), (values > 0) & (values < 1)])
        return np.asarray(kinds.sum(axis=1))

    run, fraction = by_columns(sources.cells, counts)
    n_tasks = len(sources.tasks)
    many = np.bincount(sources.task_of, run, n_tasks) >= ENOUGH
    whole = np.bincount(sources.task_of, fraction, n_tasks) == 0
    return np.asarray(many & whole)


def match_models(table: Scores, targets: Sequence[str], target: str | None) -> dict[str, int]:
    """Return the row of each target in a table of answers.

    `target` names the table's only model, whatever its name there. Raises AnswersError if a row is
    ambiguous or no target is in the table.
    """
    models = table.model_ids
    if target is None and len(models) == 1 and len(targets) == 1:
        target = targets[0]
    if target is not None and target not in targets:
        raise AnswersError(
            f"{target!r} is not a target", hint=f"the targets are {some(targets)}", kind="unknown"
        )
    if target is not None:
        if len(models) == 1 or target in models:
            return {target: models.index(target) if target in models else 0}
        raise AnswersError(
            f"the table has {len(models)} models, none named {target!r}",
            hint=WHOSE,
            kind="unknown",
        )
    matched = {name: models.index(name) for name in targets if name in models}
    if not matched:
        raise AnswersError(
            f"no answers of the targets {some(targets)}: the models are {some(models)}",
            hint=f"with several targets, name one with --target NAME; {WHOSE}",
            kind="unknown",
        )
    return matched
