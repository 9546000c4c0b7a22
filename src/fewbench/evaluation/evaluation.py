"""Evaluation: ask for items, tell answers, estimate full scores."""

import os
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._types import ArrayLike, IntArray
from fewbench._warned import issue
from fewbench.errors import EvaluationError
from fewbench.evaluation.answers import Taken, match_models
from fewbench.evaluation.changes import started_scores
from fewbench.evaluation.choosing import Choosing, Start
from fewbench.evaluation.costs import Cost
from fewbench.evaluation.entries import AnswerSet, JournalEntry, RunBatch
from fewbench.evaluation.estimate import Estimates, among_sources
from fewbench.evaluation.journal import Journal
from fewbench.evaluation.ledger import Ledger
from fewbench.evaluation.opening import Stop, check_followed, check_targets
from fewbench.evaluation.packed import beyond_warnings
from fewbench.evaluation.saving import go_on_to, go_on_with, save
from fewbench.evaluation.scoring import Scoring, answers_in_logs, counted_alike
from fewbench.executors import Executor
from fewbench.methods import Method, Prediction, Provenance, Subset
from fewbench.methods.base import AUTO
from fewbench.scores import Benchmark, Scores
from fewbench.scores.benchmark import retired_note
from fewbench.scores.roles import as_sources, source_models
from fewbench.show.page import Page
from fewbench.uncertainty.intervals import FEWEST_TO_STOP
from fewbench.uncertainty.sampling import check_level

if TYPE_CHECKING:
    from fewbench.evaluation.estimating import Estimating

STEP = 0.1
"""Items asked at a time where a half width may end the run, as a share of those answered."""


class Evaluation:
    """Ask which items to run, tell the answers, estimate the full score.

    Threads may share an evaluation, and processes the folder of one that is saved.

    Parameters
    ----------
    scores : Scores or Benchmark
        Scores of the source models, or of a pack, which brings the method, the number of items and
        the seed. No target may be among them. A benchmark alone is evaluated without sources.
    method : str or Method
        A name of the catalogue, parts joined by +, or your own method. `auto` chooses one by a
        quick backtest on the sources: `provenance` names it, `reason` says why.
    budget : int or str, optional
        Number of items per target; short for `Stop(items=budget)`. Or a share of each task's
        items, such as `10%`: at least 20 of each task, or all of a smaller one.
    targets : sequence of str
        Names of the target models.
    seed : int
        Random seed.
    stop : Stop, optional
        When to stop asking: a number of items, the width of the interval, or a cost.
    subset : Subset, optional
        For a static method: items chosen earlier. A subset of your own (without provenance)
        replaces the method's selector.
    is_run : bool
        Whether fewbench runs the model, so that limits on time and tokens can be kept.
    start : Start, optional
        Parts of a saved evaluation, which `open` reads.

    Raises
    ------
    MethodError, EvaluationError
        If the method or budget does not fit, or a target is among the sources.

    Examples
    --------
    >>> from fewbench import from_arrays
    >>> import numpy as np
    >>> answers = np.random.default_rng(0).random((12, 40)) < np.linspace(0.2, 0.9, 12)[:, None]
    >>> scores = from_arrays(answers, models=[f"m{i}" for i in range(12)])
    >>> evaluation = Evaluation(scores, "random", budget=8, targets=["new"])
    >>> asked = evaluation.ask()["new"]
    >>> len(asked)
    8
    >>> evaluation.tell("new", dict.fromkeys(asked, 1.0))
    0
    >>> evaluation.estimate()["new"].score
    1.0
    """

    def __init__(
        self,
        scores: Scores | Benchmark,
        method: str | Method = AUTO,
        budget: int | str | None = None,
        targets: Sequence[str] = ("target",),
        seed: int = 0,
        *,
        stop: Stop | None = None,
        subset: Subset | None = None,
        is_run: bool = False,
        start: Start | None = None,
    ) -> None:
        scores, self._set_aside = source_models(as_sources(scores))
        self.read_notes: tuple[str, ...] = ()  # on how saved scores were read
        self.beyond: tuple[str, ...] = ()  # what these have that the evaluation leaves out
        self.scores_path: Path | None = None  # the file of the scores, where a folder names it
        if start is None:
            check_targets(scores, targets)
        self.scores = scores
        settings = start or Start.new(scores, method, budget, seed, stop, subset, is_run=is_run)
        self.stop, self.reason = settings.stop, settings.reason
        self._ledger = Ledger(scores, targets)
        self.record = self._ledger.record
        self._choosing = Choosing(scores, settings, self._ledger)
        self._estimating: Estimating | None = None
        if start is None:
            _ = self._choosing.session  # a method that cannot run raises its error now

    @property
    def targets(self) -> tuple[str, ...]:
        """The target models, in the order in which they joined."""
        return self.record.targets

    @property
    def method(self) -> Method:
        """The method, with the subset's items if it was given the user's own."""
        return self._choosing.method

    @property
    def provenance(self) -> Provenance:
        """What makes the estimates; of a folder, with the settings that the method has now."""
        return self._choosing.provenance

    @property
    def notes(self) -> tuple[str, ...]:
        """Which method `auto` chose; notes on the chosen items; models not used as sources; whether
        the method has changed.

        Models whose `role` is target are not source models. For an evaluation that was opened, the
        folder has the reason of the choice.
        """
        chosen = list[str]()
        if self._choosing.settings.started is None:
            if self.reason is not None:
                chosen.append(f"method auto chose {self.provenance.method} ({self.reason})")
            chosen += [] if self.subset is None else self.subset.notes
        return (*self.read_notes, *chosen, *self._set_aside, *self._choosing.notes)

    @property
    def subset(self) -> Subset | None:
        """The chosen items if the method chose them all before any target is run."""
        return self._choosing.subset

    @property
    def estimating(self) -> "Estimating":
        """What makes estimates, and measures how far they may be off."""
        from fewbench.evaluation.estimating import Estimating

        if self._estimating is None:
            self._estimating = Estimating(self._choosing)
        return self._estimating

    @property
    def folder(self) -> Path | None:
        """The folder of a saved evaluation, else None."""
        return self._ledger.folder

    # -- on disk -----------------------------------------------------------------------------

    def save(
        self, folder: str | os.PathLike[str], scores_path: str | os.PathLike[str] | None = None
    ) -> None:
        """Save to a folder; later changes are written there before `ask` and `tell` return.

        Parameters
        ----------
        folder : path
            Created if missing; EvaluationError if it contains an evaluation.
        scores_path : path or str, optional
            File of the scores, or the name of a public source, for `open` to read. A benchmark
            alone is saved in the folder, and so is a table that runs were added to, as their rows
            may change.
        """
        self.scores_path = save(self._choosing, Path(folder), scores_path)
        self._estimating = None  # the next keeps its errors in the folder

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        scores: Scores | str | os.PathLike[str] | None = None,
        method: Method | None = None,
        stop: Stop | None = None,
        *,
        is_run: bool = False,
    ) -> "Evaluation":
        """Open a saved evaluation with all items asked and answers recorded so far.

        If a release changed the method, the evaluation continues with the new one, with a note in
        `notes`.

        Parameters
        ----------
        folder : path
        scores : Scores, path or str, optional
            The scores it was started with, or where they are now (default: read from their file).
        method : Method, optional
            For a method that is not in the catalogue.
        stop : Stop, optional
            Go on to this cost, number of tokens or time, and record it in the folder. All answers
            are kept. The number of items and the half width stay as they are.
        is_run : bool
            As for `Evaluation`.

        Raises
        ------
        EvaluationError
            If the folder contains no evaluation, the scores differ, a file is damaged, or `stop`
            has a different number of items or half width.
        """
        journal = Journal(Path(folder))
        header = journal.header()
        path = journal.scores_path(header)
        found, notes = started_scores(journal, header, scores)
        start = Start.from_header(header, method)
        if found.is_changed:
            start = start.carried(found.scores, is_same_question=not found.is_reweighed)
        evaluation = cls(found.scores, targets=header.targets, start=start)
        evaluation.beyond = found.beyond
        evaluation.scores_path = path
        evaluation.read_notes = (*notes, *found.beyond)
        if header.subset is None:
            _ = evaluation.method  # of no known name, say, is refused now
        if found.is_changed:
            go_on_with(evaluation._choosing, found, journal)
        else:
            evaluation._ledger.go_on_in(journal)
        if stop is not None and stop != evaluation.stop:
            if not is_run:
                stop.check_without_run(found.scores)
            go_on_to(evaluation._choosing, stop, journal, method)
            return cls.open(folder, found.scores, method)
        evaluation._choosing.fits.keep_in(journal.folder)
        return evaluation

    # -- the same answers, asked otherwise ----------------------------------------------------

    def rescored(
        self, scoring: Scoring, scores: Scores | str | os.PathLike[str] | None = None
    ) -> "Evaluation":
        """Return an evaluation of another question to the same answers, in memory.

        Nothing is run, and no folder changes. Items keep the chances with which they were drawn.

        Parameters
        ----------
        scoring : Scoring
            Another average, other weights, metric or filter.
        scores : Scores, path or str, optional
            Scores of the source models with that metric or filter (default: those of this
            evaluation, read again if they are logs).

        Raises
        ------
        EvaluationError
            If the answers or the source models do not have what is asked for, or the method has
            weighed its items for one average alone.

        Examples
        --------
        >>> from fewbench.testing import simulate
        >>> scores = simulate(1, 200, seed=1)
        >>> evaluation = Evaluation(scores.benchmark, "fewbench", 50, ["new"])
        >>> right = dict(zip(scores.item_ids, scores.values[0]))
        >>> _ = evaluation.tell("new", {item: right[item] for item in evaluation.ask()["new"]})
        >>> macro = evaluation.rescored(Scoring(average="macro"))
        >>> round(evaluation.estimate().score, 2), round(macro.estimate().score, 2)
        (0.66, 0.7)
        """
        from fewbench.public import open_scores

        if not scoring:
            return self
        folder = self.folder
        if scores is None:
            sources = scoring.of_sources(self.scores, self.scores_path, folder)
        else:
            named = scores if isinstance(scores, Scores) else open_scores(scores).scores
            place = "the scores" if isinstance(scores, Scores) else os.fspath(scores)
            sources = scoring.of_table(counted_alike(named, self.scores, place), place)
        entries = list(self.entries)
        notes = [*self.read_notes, *retired_note(self.scores.n_items, sources.n_items)]
        if scoring.read_as:
            entries = [entry for entry in entries if not isinstance(entry, AnswerSet)]
            for target in self._answering():
                asked = self.scores.item_ids[self.record.answered(target)].tolist()
                answer_set, lacking = answers_in_logs(folder, target, asked, sources, scoring)
                entries.append(answer_set)
                notes += lacking
        other = self._carried(sources, entries)
        other.read_notes = tuple(notes)
        other.estimating.errors_folder = folder
        return other

    def on_items(self, items: Iterable[str]) -> "Evaluation":
        """Return the same answers on some of the items alone, in memory.

        The full score is then that of these items. ScoresError if an item is not in the scores.
        """
        part = self.scores.take(items=self.scores.positions(list(items)))
        other = self._carried(part, self.entries)
        other.estimating.errors_folder = self.folder
        return other

    def _carried(self, scores: Scores, entries: Iterable[JournalEntry]) -> "Evaluation":
        """Return the same answers with other scores, as far as these have the items."""
        start = self._choosing.start.carried(scores)
        other = type(self)(scores, targets=self.targets, start=start)
        other.scores_path = self.scores_path
        other.adopt(entries, self.targets)
        return other

    # -- ask and tell ------------------------------------------------------------------------

    def ask(
        self, at_most: int | None = None, targets: Sequence[str] | None = None
    ) -> dict[str, list[str]]:
        """Return the items to run next: ids of asked items without an answer, by target.

        Then, with `Stop.repeats`, those to run once more (see `next_repeat`).

        Finished and waiting targets (see `waiting`) are left out. Asking again returns the same.

        Parameters
        ----------
        at_most : int, optional
            Most items per target; the rest follows later.
        targets : sequence of str, optional
            Targets to ask (default: all).
        """
        self._choosing.advance()
        asked = {}
        for target in self.targets if targets is None else targets:
            items = self._choosing.affordable(target, self._due(target))
            if self.stop.half_width is not None and self.next_repeat(target) == 1:
                answered = len(self.record.answered(target))
                items = items[: max(FEWEST_TO_STOP, round(STEP * answered))]
            if len(items):
                asked[target] = self.scores.item_ids[items[:at_most]].tolist()
        return asked

    def due(self, target: str) -> list[str]:
        """Return the items that a target is to answer next, whatever they cost."""
        return [str(item) for item in self.scores.item_ids[self._due(target)]]

    def _due(self, target: str) -> IntArray:
        is_done = len(self.record.open(target)) > 0 and self.is_narrow(target)
        return self._choosing.due_again(target) if is_done else self._choosing.due(target)

    def next_repeat(self, target: str) -> int:
        """Return which answers the items that `ask` lists for a target are to have: 1 for first.

        2 once all its items ran, and are to run again (`Stop.repeats`).
        """
        due = self._due(target)
        return 1 + int(self.record.times(target)[due].min()) if len(due) else 1

    def ask_more(self, items: Mapping[str, Sequence[str]]) -> None:
        """Ask targets for further items, in addition to those that the method chooses.

        `ask` lists them, and `tell` takes their answers. Items that the target already has are left
        out. The mean of a random sample (method `random`) stays right only if these items are drawn
        at random, as `versus` and `rank` do.

        Parameters
        ----------
        items : mapping of target to item ids

        Raises
        ------
        AnswersError
            If a name is not a target.
        ScoresError
            If an item is not in the scores.
        """
        for target in items:
            self._ledger.check_target(target)
        wanted = {target: self.scores.positions(list(ids)) for target, ids in items.items()}
        with self._ledger.alone():
            for target, positions in wanted.items():
                new = positions[~np.isin(positions, self.record.asked(target))]
                if len(new):
                    self.record.add_round(target, new)
            self._ledger.note_rounds()
            self._choosing.note_drawn(wanted)

    def follow(
        self, target: str, leader: str | None = None, other: "Evaluation | None" = None
    ) -> None:
        """Ask a target the items of another one first, so that their answers make pairs.

        A target of a new name joins the evaluation. After these items, the method chooses by the
        new target's own answers. Items of a sample keep their chances: they depend on the other
        target's answers, not on this one's. `fewbench` leaves items that it chose for the other
        target if the first 10 answers are unlike.

        Parameters
        ----------
        target : str
        leader : str, optional
            The target whose items these are (default: the one with most answers).
        other : Evaluation, optional
            The evaluation of the leader (default: this one).

        Raises
        ------
        EvaluationError
            If the two evaluations differ in more than their limits, or the method chooses the items
            of several targets together.
        AnswersError
            If the target already has other items.

        Examples
        --------
        >>> from fewbench.testing import simulate
        >>> evaluation = Evaluation(simulate(30, 200, seed=1), "fewbench", 10, ["step-1"])
        >>> while asked := evaluation.ask().get("step-1"):
        ...     _ = evaluation.tell("step-1", dict.fromkeys(asked, 1.0))
        >>> evaluation.follow("step-2")
        >>> evaluation.targets, len(evaluation.ask()["step-2"])
        (('step-1', 'step-2'), 5)
        """
        ahead = self if other is None else other
        leader = ahead.most_complete(leader)
        place = "" if ahead.folder is None or ahead is self else f"{ahead.folder}:"
        if ahead is not self:
            runs = self.provenance, ahead.provenance
            is_extended = bool(ahead.scores.cohort_of.any())
            check_followed(*runs, self.method, f"{place}{leader}", is_extended=is_extended)
        most = max(len({*self.targets, target}), len(ahead.targets))
        if not self.method.targets_apart and most > 1:
            raise EvaluationError(
                f"{self.provenance.method} chooses the items of its targets together",
                hint="name all targets when you start, or use a different method",
                kind="unsupported",
            )
        if target not in self.targets:
            check_targets(self.scores, [target])
        lead = ahead.record.as_lead(leader, self.provenance.budget, ahead.provenance.budget)
        self._ledger.follow(target, lead, f"{place}{leader}")
        if ahead is self and (drawings := self.record.drawings(leader)):
            self.record.draw(target, drawings)
        self._choosing.renew()
        self._estimating = None

    def most_complete(self, target: str | None = None) -> str:
        """Return the target with most answers, or the named one; AnswersError if it is none."""
        if target is not None:
            self._ledger.check_target(target)
            return target
        return max(self.targets, key=lambda name: len(self.record.answered(name)))

    @property
    def entries(self) -> Sequence[JournalEntry]:
        """The rounds of items, answers, skipped items and batches, in order."""
        return self._ledger.entries

    def adopt(self, entries: Iterable[JournalEntry], targets: Iterable[str]) -> None:
        """Take items and answers of targets over from another evaluation, in memory.

        Items that these scores lack are left out; all others keep the chances that they had.
        """
        self._ledger.carry(entries, [*targets])

    def waiting(self) -> list[str]:
        """Return the targets that get new items once other targets have answered."""
        return self._choosing.advance() if self.ask() else []

    def finished(self) -> list[str]:
        """Return the targets that need no more answers."""
        asked = self.ask()
        more = {*asked, *(self._choosing.advance() if asked else ())}
        return [target for target in self.targets if target not in more]

    def cost(self, target: str) -> Cost | None:
        """Return what running a target cost so far, and all items, or None if no cost is known."""
        return self._choosing.cost(target)

    @property
    def batches(self) -> Sequence[RunBatch]:
        """The batches that runs of these targets recorded."""
        return self._ledger.batches

    def note_run(self, entry: RunBatch) -> None:
        """Record what a batch of a run cost, and which of its items failed.

        A limit on cost counts what was reported; without any, the items' column `cost`.
        """
        self._ledger.note_run(entry)

    def is_narrow(self, target: str) -> bool:
        """Whether a target's interval is so narrow that the limit on its half width is reached."""
        if self.stop.half_width is None or len(self.record.answered(target)) < FEWEST_TO_STOP:
            return False
        with self._ledger.turn:
            return self.estimating.is_narrow(target)

    def is_limited(self, target: str) -> bool:
        """Whether the limit on cost leaves a target no further item."""
        cost = self.cost(target)
        return cost is not None and cost.is_limit

    def limited(self, target: str) -> list[tuple[str, int]]:
        """Return the answers that are not right and that a limit ended: items and repeats."""
        return self._ledger.limited(target)

    def tell(
        self,
        target: str,
        answers: Mapping[str, float],
        probabilities: Mapping[str, ArrayLike] | None = None,
        *,
        replies: Mapping[str, str] | None = None,
        texts: Mapping[str, str] | None = None,
        accept_fractions: bool = False,
        correct: bool = False,
        strict: bool = False,
        repeat: int = 1,
    ) -> int:
        """Record a target's answers, all at once or in parts.

        Parameters
        ----------
        target : str
        answers : mapping of item id to score
            Scores on the scale of the sources. Recording the same score again changes nothing.
        probabilities : mapping of item id to option probabilities, optional
            For methods that use option probabilities, in the order of the sources' options.
        replies : mapping of item id to str, optional
            Replies that are not whole, or not of the model asked for: "cut" at a token limit,
            "filtered", or "from NAME". The estimate then carries a warning.
        texts : mapping of item id to str, optional
            The replies themselves, or their beginnings. If all are the same, the estimate carries a
            warning.
        accept_fractions : bool
            Accept scores between right and wrong where the sources have none in the task, such
            as means over runs of an item. The estimate then carries a warning.
        correct : bool
            Replace earlier answers that differ. The folder keeps the old ones.
        strict : bool
            Refuse such replies, unless they are right and only cut or filtered.
        repeat : int
            2 for second answers to items that have first ones, and so on. An item's score is the
            mean of its answers.

        Returns
        -------
        int
            Number of open items of this target.

        Raises
        ------
        AnswersError
            If an item was not requested, or a score is out of range, differs from an earlier one,
            or is a fraction where the sources have none; for answers without the option
            probabilities that the method needs; or for such a reply if `strict`.
        ScoresError
            If an item is not in the scores.
        """
        self._ledger.check_target(target)
        self._choosing.check_options(target, probabilities is not None)
        answered = self._ledger.book.given(target, answers, probabilities)
        odd = self._ledger.book.odd_replies(target, answered, replies or {}, strict=strict)
        self._check_open(target)
        accepted = {"accept_fractions": accept_fractions, "correct": correct}
        more = {"replies": odd, "texts": dict(texts or {})}
        self._ledger.tell(target, answered, accepted, repeat=repeat, **more)
        return self._left(target)

    def tell_table(
        self,
        table: Scores,
        target: str | None = None,
        *,
        replies: Mapping[str, str] | None = None,
        texts: Mapping[str, str] | None = None,
        accept_differences: bool = False,
        accept_fractions: bool = False,
        correct: bool = False,
        strict: bool = False,
        repeat: int = 1,
    ) -> Taken:
        """Record answers from a table of scores, such as a harness log.

        Parameters
        ----------
        table : Scores
            Answers, with the item ids of the sources.
        target : str, optional
            Record only this target. A table of one model may name it differently.
        replies : mapping of item id to str, optional
            As in `tell`, in addition to those in the table's log.
        texts : mapping of item id to str, optional
            As in `tell`.
        accept_differences : bool
            Accept answers whose prompts, scoring or tasks differ from the sources', as far as the
            logs or the table record that. Estimates then carry a warning.
        accept_fractions, correct, strict, repeat
            As in `tell`. A table with several answers to an item brings all of them at once.

        Returns
        -------
        Taken
            How many answers were new, what was not used, and notes.

        Raises
        ------
        AnswersError
            If prompts, scoring or tasks of the answers differ from the sources'; if a target has
            answers of another model and `target` is not given; or for the reasons in `tell`.
        """
        matched = match_models(table, self.targets, target)
        self._ledger.check_table(table, matched, is_named=target is not None)
        for name in matched:
            self._choosing.check_options(name, table.probabilities is not None)
            self._check_open(name)
        with self._ledger.alone():  # all targets' answers, or none
            taken = self._ledger.tell_table(
                table, matched, replies or {}, dict(texts or {}),
                {"accept_fractions": accept_fractions, "correct": correct}, strict=strict,
                accept_differences=accept_differences, is_named=target is not None, repeat=repeat,
            )  # fmt: skip
        for name in matched:
            self._check_open(name)
        return taken

    def skip(self, target: str, items: Iterable[str]) -> int:
        """Record that a target cannot answer some asked items; return its number of open items.

        An answer that is recorded later counts. Raises AnswersError if an item was not requested,
        or is answered.
        """
        self._ledger.check_target(target)
        at = self.scores.positions(list(items))
        self._check_open(target)
        self._ledger.skip(target, at, self._choosing.due_again(target).tolist())
        return self._left(target)

    def unskip(self, target: str, items: Iterable[str]) -> None:
        """Ask a target again for those of these items that it skipped."""
        self._ledger.check_target(target)
        self._ledger.unskip(target, self.scores.positions(list(items)))

    def _check_open(self, target: str) -> None:
        """Choose new items if a target has no open ones."""
        if not len(self.record.open(target)):
            self._choosing.advance()

    def _left(self, target: str) -> int:
        self._check_open(target)
        return len(self._choosing.affordable(target))

    # -- estimate ----------------------------------------------------------------------------

    def estimate(
        self,
        level: float = 0.9,
        targets: Sequence[str] | None = None,
        *,
        workers: int = 1,
        executor: Executor = None,
        warn: bool = True,
    ) -> Estimates:
        """Estimate full scores from the answers given so far.

        The estimate of a target with open items carries a warning.

        Parameters
        ----------
        level : float
            Level of the interval.
        targets : sequence of str, optional
            Default: all targets with answers.
        workers, executor
            Where the method's errors on held-out sources are measured; see `fewbench.compare`.
        warn : bool
            Also issue the estimates' warnings as Python warnings (EstimateWarning).

        Raises
        ------
        EvaluationError
            If a target has no answers.
        """
        for name in (level, targets):
            if isinstance(name, str):
                raise EvaluationError(
                    f"{name!r} is not a list of targets", hint=f"use estimate(targets=[{name!r}])"
                )
        check_level(level)
        names = list(targets) if targets is not None else self._answering()
        for name in names:
            self._ledger.check_target(name)
            self._ledger.check_answers(name)
        if not names:
            return Estimates()
        with self._ledger.turn, self.estimating.measured_by(workers, executor):
            estimates = self.estimating.estimates(level, names)
            for name, estimate in estimates.items():
                estimates[name] = estimate.model_copy(update={"cost": self.cost(name)})
        if warn:
            issue(estimates.warnings)
        return estimates

    def _answering(self) -> list[str]:
        names = [name for name in self.targets if len(self.record.answered(name))]
        if not names:
            raise EvaluationError(
                "no target has answered any item",
                hint="run the items that ask lists, and record the answers with tell",
                kind="unanswered",
            )
        return names

    def prediction(self, target: str, *, tasks: bool = True) -> Prediction:
        """Return what the method predicts of one target, in [0, 1], one row.

        EvaluationError if the target has no answers.
        """
        self._ledger.check_target(target)
        self._ledger.check_answers(target)
        return self._choosing.predict([target], tasks=tasks)

    def predict(self, target: str) -> float:
        """Return a target's estimated score alone, on the scale of the scores.

        Without an interval, which is measured on the sources and takes long on large tables.
        EvaluationError if the target has no answers.
        """
        from fewbench.uncertainty.bounds import bound_score

        estimate = float(self.prediction(target, tasks=False).scores[0])
        answers = self.record.answers(target)
        score = bound_score(estimate, self.scores, answers.items, answers.scores[0])
        return float(self.scores.scale.from_unit(score))

    def items(self, target: str) -> "pd.DataFrame":
        """Return one row per item of the benchmark, for one target.

        Columns: `task`; `status` ("answered", "open", "skipped", or "" if not asked); `score` and
        `expected` (the method's expected score if it has one), on the scale of the sources.
        """
        self._ledger.check_target(target)
        expected = None
        if len(self.record.answered(target)):
            expected = self._choosing.predict([target], tasks=False).items
        return self._ledger.book.table(target, None if expected is None else expected[0])

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per target: items asked, answered, skipped and open."""
        return self._ledger.book.counts()

    def __repr__(self) -> str:
        """Return method, limits and progress of the targets."""
        return (
            f"Evaluation: {self.provenance.method}, {self.stop.describe()}\n"
            f"{self.to_frame().to_string()}"
        )

    def plot(self, target: str | None = None, level: float = 0.9) -> Any:
        """Return an Altair chart of a target's estimate among the source models.

        `target` is the first one with answers by default. EvaluationError if it has none.
        """
        name = self._answering()[0] if target is None else target
        return among_sources(self.estimate(level, [name])[name], self.scores)

    def page(self, level: float = 0.9, **shown: Any) -> Page:
        """Return the page of the estimates of all targets; `shown` as of `Estimates.page`."""
        return self.estimate(level, warn=False).page(self, **shown)

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self).splitlines()[0])}</p>{self.to_frame().to_html()}"

    def warnings(self, *, workers: int = 1, executor: Executor = None) -> list[str]:
        """Return warnings about the method on these sources, before any target is run.

        Repeats the method on parts of the sources, which can take as long as 20 runs of the
        method; `estimate` reuses the results, and takes the same `workers` and `executor`.
        """
        with self._ledger.turn, self.estimating.measured_by(workers, executor):
            notes = self.estimating.method_notes()
        origin = self.scores.origin
        if origin is not None:
            notes += beyond_warnings(origin.backtest, self.provenance.method, self.scores.scale)
        return notes

    def answer_notes(self, target: str) -> tuple[str, ...]:
        """Return warnings on a target's answers: cut replies, fractions, other prompts."""
        return self._ledger.notes(target, is_compared=True)
