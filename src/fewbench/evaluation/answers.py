"""What targets have answered so far, checked as it comes in."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fewbench._names import some
from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.errors import AnswersError
from fewbench.evaluation.journal import Asked, Entry, Skipped, Told
from fewbench.methods import Answers, Record
from fewbench.scores import Scores
from fewbench.scores.conditions import Comparison, compare_conditions
from fewbench.scores.probabilities import SUM_TOLERANCE

ENOUGH = 100  # answers of sources to a task; of fewer, all may be 0 or 1 by chance


class Taken(NamedTuple):
    """What became of a table of answers.

    Attributes
    ----------
    answers : int
        Number of new answers; with `correct`, of changed ones.
    unasked_items, other_models : list of str
        What the table holds beyond the asked items and the targets. It is not used.
    notes : tuple of str
        How prompts and settings differ from the sources', and what could not be compared.
    unskipped_items : tuple of str
        Items that a target had skipped and has answered now.
    """

    answers: int
    unasked_items: list[str]
    other_models: list[str]
    notes: tuple[str, ...] = ()
    unskipped_items: tuple[str, ...] = ()


class AnswerBook:
    """Checks answers as they come in, brings them to the form of the record, and shows them.

    Parameters
    ----------
    scores : Scores
        The sources: their items, scale and options are the yardstick.
    record : Record
        What was answered so far.
    """

    def __init__(self, scores: Scores, record: Record) -> None:
        self._sources, self._record = scores, record
        self._restored: dict[str, int] = {}  # number of the round whose ask was lost

    def notes(self, target: str) -> tuple[str, ...]:
        """Return a warning if fractions were accepted where the sources are right or wrong."""
        told = self._record.answers(target)
        answered = dict(zip(told.items.tolist(), told.scores[0].tolist(), strict=True))
        fractions = [at for at, score in answered.items() if self._is_odd(at, score)]
        if not fractions:
            return ()
        return (
            f"{len(fractions)} of {len(answered)} answers are fractions, such as that to "
            f"{self._sources.item_ids[fractions[0]]!r}, where every answer of the sources is right "
            "or wrong: if the metric is another than the sources', the estimate is wrong",
        )

    def _is_odd(self, at: int, score: float) -> bool:
        return 0.0 < score < 1.0 and bool(self._whole_items[at])

    @cached_property
    def _whole_items(self) -> BoolArray:
        """Which items belong to tasks where every source is right or wrong."""
        sources = self._sources
        if sources.is_binary:
            return np.ones(sources.n_items, dtype=bool)
        run = ~np.isnan(sources.values)
        fraction = run & (sources.values > 0) & (sources.values < 1)
        n_tasks = len(sources.tasks)
        many = np.bincount(sources.task_of, run.sum(axis=0), n_tasks) >= ENOUGH
        whole = np.bincount(sources.task_of, fraction.sum(axis=0), n_tasks) == 0
        return np.asarray((many & whole)[sources.task_of])

    def check(
        self, target: str, answers: Answers, *, accept_fractions: bool, correct: bool = False
    ) -> None:
        """Raise AnswersError unless the answers are in range, were asked and contradict none.

        Fractions where the sources are right or wrong are an error too, unless they are accepted.
        With `correct`, answers may replace earlier ones.
        """
        scale = self._sources.scale
        before = self._record.scores(target)
        asked = set(self._record.asked(target).tolist())
        for at, score in zip(answers.items.tolist(), answers.scores[0].tolist(), strict=True):
            name = f"{target!r}: item {self._sources.item_ids[at]!r}"
            if not 0.0 <= score <= 1.0:
                raise AnswersError(
                    f"{name} has a score that is not within {scale.low:g}..{scale.high:g}",
                    hint="give answers on the scale of the source models",
                )
            if self._is_odd(at, score) and not accept_fractions:
                raise AnswersError(
                    f"{name} has the score {float(scale.from_unit(score)):g}, where every answer "
                    f"of the sources is right ({scale.from_unit(1.0):g}) or wrong "
                    f"({scale.from_unit(0.0):g})",
                    hint="tell the metric of the sources; for means of several runs of an item, "
                    "accept fractions (tell --accept-fractions, or accept_fractions=True)",
                )
            if at not in asked:
                raise AnswersError(f"{name} was not asked", hint="tell only what ask() returned")
            if not correct and not np.isnan(before[at]) and before[at] != score:
                raise AnswersError(
                    f"{name} already has another score",
                    hint="pass --correct to replace the answer (in Python correct=True)",
                )

    def check_known(self, target: str, answers: Answers) -> None:
        """Raise AnswersError unless every answer replaces an earlier one."""
        new = answers.items[np.isnan(self._record.scores(target)[answers.items])]
        if len(new):
            raise AnswersError(
                f"{target!r}: {some(self._sources.item_ids[new].tolist())} not answered yet, so "
                "there is nothing to correct",
                hint="tell new answers without --correct (in Python correct=True)",
            )

    def to_record(self, target: str, answers: Answers) -> Told:
        """Return answers as the journal keeps them."""
        options = answers.probabilities
        return Told(
            target=target,
            items=tuple(self._sources.item_ids[answers.items]),
            scores=tuple(answers.scores[0].tolist()),
            probabilities=None if options is None else tuple(map(tuple, options[0].tolist())),
        )

    def from_record(self, told: Told) -> Answers:
        """Return answers that the journal kept."""
        options = None
        if told.probabilities is not None:
            options = np.array([told.probabilities], dtype=np.float64)
        return Answers(self._sources.positions(told.items), np.array([told.scores]), options)

    def from_table(self, table: Scores, row: int, target: str) -> Answers:
        """Return what one model of a table answered to the items that a target was asked."""
        known = self._sources.items.index.get_indexer(table.items.index)
        asked = self._record.asked(target)
        columns = np.flatnonzero(np.isin(known, asked) & ~np.isnan(table.values[row]))
        options = None
        if table.probabilities is not None:
            rows = table.probabilities.take(np.array([row])).of_items(columns)[0]
            options = self.options(list(rows))
        return Answers(known[columns].astype(np.intp), table.values[[row]][:, columns], options)

    def options(self, rows: Sequence[ArrayLike]) -> FloatArray | None:
        """Bring option probabilities to the sources' width; None where sources have none.

        Returns an array of shape (1, items, options).
        """
        if self._sources.probabilities is None:
            return None
        width = self._sources.probabilities.shape[2]
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

    def check_skipped(self, target: str, items: IntArray) -> None:
        """Raise AnswersError unless a target was asked these items and answered none of them."""
        left = set(self._record.open(target).tolist())
        wrong = [str(self._sources.item_ids[at]) for at in items.tolist() if at not in left]
        if wrong:
            raise AnswersError(
                f"{target!r}: {some(wrong)} cannot be skipped: not asked, or already answered",
                hint="skip only what ask() returns",
            )

    def compare(
        self, table: Scores, matched: Mapping[str, int], *, accept_prompts: bool
    ) -> Comparison:
        """Compare the prompts and settings of a table's answers with those of the sources.

        AnswersError if they differ and that is not accepted.
        """
        used: dict[str, None] = {}
        for name, row in matched.items():
            answers = self.from_table(table, row, name)
            used |= dict.fromkeys(self._sources.item_ids[answers.items].tolist())
        compared = compare_conditions(self._sources, table, used)
        if compared.differences and not accept_prompts:
            raise AnswersError(
                "the answers come from other prompts or settings than the source models': "
                + "; ".join(compared.differences),
                hint="run the items like the source models, or pass --accept-prompts to use these "
                "answers anyway (in Python accept_prompts=True)",
            )
        return compared

    def replay(self, entry: Entry) -> None:
        """Put an entry of the journal into the record; AnswersError if it does not fit."""
        targets = entry.targets if isinstance(entry, Asked) else (entry.target,)
        for target in targets:
            if target not in self._record.targets:
                raise AnswersError(f"{target!r} is not a target")
        if isinstance(entry, Asked):
            items = self._sources.positions(entry.items)
            for target in targets:  # but for what two processes asked at once
                if not np.isin(items, self._record.asked(target)).all():
                    self._record.add_round(target, items)
        elif isinstance(entry, Skipped):
            items = self._sources.positions(entry.items)
            self._restore_asked(entry.target, items)
            left = items[np.isnan(self._record.scores(entry.target)[items])]
            self._record.skip(entry.target, left.tolist())
        else:
            answers = self.from_record(entry)
            self._restore_asked(entry.target, answers.items)
            # The last word counts: a repair may have dropped the correction between two answers.
            self.check(entry.target, answers, accept_fractions=True, correct=True)
            self._record.tell(entry.target, answers)

    def _restore_asked(self, target: str, items: IntArray) -> None:
        """Add a round of items that no entry asks for: a repair dropped the line that did."""
        lost = np.setdiff1d(items, self._record.asked(target))
        rounds = self._record.rounds(target)
        if len(lost) and self._restored.get(target) == len(rounds):  # more of the same round
            rounds[-1] = np.append(rounds[-1], lost)
        elif len(lost):
            self._record.add_round(target, lost)
            self._restored[target] = len(rounds)

    def table(self, target: str, expected: FloatArray | None) -> pd.DataFrame:
        """Return one row per item, for one target (see `Evaluation.items`).

        `expected`, shape (items,), is what the method expects of each item, in [0, 1].
        """
        status = np.full(self._sources.n_items, "", dtype=object)
        status[self._record.asked(target)] = "open"
        status[list(self._record.skipped(target))] = "skipped"
        status[self._record.answered(target)] = "answered"
        scale = self._sources.scale
        table = pd.DataFrame({"task": self._sources.items["task"], "status": status})
        table["score"] = scale.from_unit(self._record.scores(target))
        table["expected"] = np.nan if expected is None else scale.from_unit(expected)
        return table

    def counts(self) -> pd.DataFrame:
        """Return one row per target: items asked, answered, skipped and open."""
        record = self._record
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


def match_models(table: Scores, targets: Sequence[str], target: str | None) -> dict[str, int]:
    """Find which rows of a table of answers are which targets.

    Parameters
    ----------
    target : str, optional
        The one target that the table's only model is, whatever its name there.

    Raises
    ------
    AnswersError
        If that cannot be told.
    """
    models = table.model_ids
    if target is None and len(models) == 1 and len(targets) == 1:
        target = targets[0]
    if target is not None and target not in targets:
        raise AnswersError(f"{target!r} is not a target", hint=f"the targets are {some(targets)}")
    if target is not None:
        if len(models) == 1 or target in models:
            return {target: models.index(target) if target in models else 0}
        raise AnswersError(
            f"the answers of {len(models)} models do not say which model is {target!r}",
            hint="name the model with --model NAME, or give targets the names in the table",
        )
    found = {name: models.index(name) for name in targets if name in models}
    if not found:
        raise AnswersError(
            f"the answers include none of the targets {some(targets)}",
            hint=f"they are of {some(models)}; name the model with --model NAME, and with several "
            "targets the target with --target NAME",
        )
    return found
