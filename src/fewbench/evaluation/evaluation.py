"""Evaluation: the ask / tell / estimate session that a user holds."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fewbench._names import counted, some
from fewbench._threads import one_thread
from fewbench._types import FloatArray, IntArray
from fewbench._version import __version__
from fewbench.errors import AnswersError, EvaluationError, ScoresError
from fewbench.evaluation.answers import AnswerBook, Taken, match_models
from fewbench.evaluation.auto import AUTO, check_given, choose_for
from fewbench.evaluation.estimate import Estimates
from fewbench.evaluation.estimating import Estimator, Heard
from fewbench.evaluation.intervals import ErrorModel
from fewbench.evaluation.journal import Asked, Entry, Header, Journal, Skipped, Told
from fewbench.evaluation.opening import (
    FEWEST,
    Stop,
    check_scores,
    check_subset,
    check_targets,
    costs_of,
    with_items,
)
from fewbench.evaluation.sampling import check_level
from fewbench.methods import (
    Answers,
    Method,
    Prediction,
    Provenance,
    Record,
    Session,
    StaticMethod,
    Subset,
    find_method,
    obstacle,
)
from fewbench.methods.item_response import fits_kept_in, keep_fits
from fewbench.methods.static import StaticSession
from fewbench.scores import Scores, load_scores
from fewbench.scores.table import check_is_scores

STEP = 0.1
"""Share of the budget asked at a time where a half width may end the run."""


class Evaluation:
    """Ask which items to run, tell the answers, estimate the full score.

    Parameters
    ----------
    scores : Scores
        The sources. A target may not be among them.
    method : str or Method
        A name of the catalogue, a combination written out, or a method of your own. `auto`
        chooses one by a quick backtest on the sources; `provenance` names it, `reason` says why.
    budget : int, optional
        Number of items to run each target on; short for `Stop(items=budget)`.
    targets : sequence of str
        Names of the models to be estimated.
    seed : int
        Random seed.
    stop : Stop, optional
        When to stop asking: a number of items, the width of the interval, or a cost.
    subset : Subset, optional
        For a static method: items chosen before, instead of choosing now. A subset of your own
        (without provenance) makes a method of its own: its items, the method's predictor.

    Raises
    ------
    MethodError, EvaluationError
        If the method or budget does not fit, or a target is among the sources.

    Examples
    --------
    >>> from fewbench import from_arrays
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
        scores: Scores,
        method: str | Method,
        budget: int | None = None,
        targets: Sequence[str] = ("target",),
        seed: int = 0,
        *,
        stop: Stop | None = None,
        subset: Subset | None = None,
    ) -> None:
        self._prepare(scores, method, budget, targets, seed, stop, subset)
        if method == AUTO:  # what it is follows from the checked arguments
            chosen = choose_for(scores, self.stop, seed)
            limits = self.stop
            self._prepare(scores, chosen.method, None, targets, seed, limits, None, chosen.reason)
        _ = self._session  # a method that cannot run says so now

    def _prepare(
        self,
        scores: Scores,
        method: str | Method,
        budget: int | None,
        targets: Sequence[str],
        seed: int,
        stop: Stop | None,
        subset: Subset | None,
        reason: str | None = None,
    ) -> None:
        check_is_scores(scores)
        if (budget is None) == (stop is None):
            raise EvaluationError(
                "give either a budget or a stop", hint="as in budget=100 or stop=Stop(items=100)"
            )
        self.stop = Stop(items=budget) if stop is None else stop
        self.scores = scores
        self.reason = reason
        if method == AUTO:
            method = "random"  # only to check the arguments
            check_given(subset)
        self.method = find_method(method) if isinstance(method, str) else method
        items = self.stop.budget(self.method, scores)
        check_targets(scores, targets)
        if seed < 0:
            raise EvaluationError(f"the seed {seed} is negative", hint="use 0 or more")
        if subset is not None:
            self.method = with_items(self.method, subset)
        self.targets = tuple(targets)
        self.provenance = Provenance(
            method=method if isinstance(method, str) else method.describe(),
            settings=self.method.describe(),
            budget=items,
            seed=seed,
            fingerprint=scores.fingerprint,
            average=scores.average,
            version=__version__,
        )
        self.notes: tuple[str, ...] = ()
        self._given = subset
        self.record = Record(self.targets, scores.n_items)
        self._book = AnswerBook(scores, self.record)
        self._entries: list[Entry] = []
        self._written = dict.fromkeys(self.targets, 0)  # rounds that are among the entries
        self._journal: Journal | None = None
        self._estimator = Estimator(self.method, scores, self.provenance)

    @cached_property
    def _session(self) -> Session:
        """The method at work; made when first needed, for it may take long to learn."""
        made, subset = self.provenance, self._given
        method = self.method
        session: Session
        if subset is not None and isinstance(method, StaticMethod):  # its selector is not run
            if error := obstacle(method.predictor, self.scores):
                raise error
            check_subset(subset, made)
            session = StaticSession(method.predictor, self.scores, subset, made.seed, self.targets)
        else:
            if error := obstacle(method, self.scores):
                raise error
            with self._working():
                session = method.start(self.scores, made.budget, made.seed, self.targets)
        session.record = self.record
        return session

    @contextmanager
    def _working(self) -> Iterator[None]:
        """While the method works: one thread, and fitted models kept in the folder."""
        with one_thread(), fits_kept_in(None if self._journal is None else self._journal.folder):
            yield

    @property
    def subset(self) -> Subset | None:
        """The chosen items, if the method chose them all before any target is run."""
        if not self.method.asks_once or self._session.subset is None:
            return None
        return self._session.subset.model_copy(update={"provenance": self.provenance})

    # -- on disk -----------------------------------------------------------------------------

    def save(
        self, folder: str | os.PathLike[str], scores_path: str | os.PathLike[str] | None = None
    ) -> None:
        """Keep this evaluation in a folder from now on: every tell is written before it returns.

        Parameters
        ----------
        folder : path
            Made if needed; EvaluationError if it holds an evaluation already.
        scores_path : path, optional
            Where the scores lie, so that `open` finds them by itself.
        """
        journal = Journal(Path(folder))
        journal.create(
            Header(
                scores=None if scores_path is None else str(Path(scores_path).resolve()),
                targets=self.targets,
                subset=self.subset,
                stop=self.stop,
                provenance=self.provenance,
                reason=self.reason,
            )
        )
        for entry in self._entries:
            journal.append(entry)
        keep_fits(self.scores, journal.folder)
        self._keep_in(journal)

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        scores: Scores | None = None,
        method: Method | None = None,
    ) -> "Evaluation":
        """Open a saved evaluation where it stopped: nothing told is lost or asked again.

        Nothing is asked of the method again either: what was asked is in the folder. If the
        method has changed since, it goes on from there, and `notes` says so.

        Parameters
        ----------
        folder : path
        scores : Scores, optional
            Those it was opened with; by default they are read from where they were.
        method : Method, optional
            For a method that is not of the catalogue.

        Raises
        ------
        EvaluationError
            If there is none, the scores are others, or a file is damaged.
        """
        journal = Journal(Path(folder))
        header = journal.header()
        made = header.provenance
        if scores is None:
            if header.scores is None:
                raise EvaluationError(
                    f"{folder}: the evaluation does not say where its scores lie",
                    hint="give the scores when opening it",
                )
            scores = load_scores(header.scores).averaged(made.average)
        check_scores(scores, made, str(folder))
        evaluation = cls.__new__(cls)
        stop = header.stop or Stop(items=made.budget)
        evaluation._prepare(
            *(scores, method or made.method, None, header.targets, made.seed),
            *(stop, header.subset, header.reason),
        )
        evaluation._resume(made, journal)
        return evaluation

    def _resume(self, made: Provenance, journal: Journal) -> None:
        if self.provenance.settings != made.settings:
            self.notes = (
                f"started by fewbench {made.version} with {made.method} as {made.settings}; this "
                f"version goes on from the recorded answers with {self.provenance.settings}",
            )
            if self._given is not None:  # its items are still those that were chosen
                self._given = self._given.model_copy(update={"provenance": self.provenance})
        self.provenance = self.provenance.model_copy(update={"budget": made.budget})
        self._take_up(journal)
        self._keep_in(journal)

    def _take_up(self, journal: Journal) -> None:
        """Put into the record what the folder holds and is not there yet."""
        for entry in journal.fresh():
            try:
                self._book.replay(entry)
            except (AnswersError, ScoresError) as error:
                raise EvaluationError(
                    f"{journal.folder}: entry {len(self._entries) + 1} does not fit the "
                    f"evaluation: {error.message}",
                    hint="the journal was changed by hand; restore it from a backup",
                ) from error
            self._entries.append(entry)
            if isinstance(entry, Asked):
                self._written |= {name: len(self.record.rounds(name)) for name in entry.targets}
            else:
                self._written[entry.target] = len(self.record.rounds(entry.target))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Take up what other processes added to the folder; they wait until the block ends."""
        if self._journal is None:
            yield
            return
        with self._journal.locked():
            self._take_up(self._journal)
            yield

    def _keep_in(self, journal: Journal) -> None:
        self._journal = journal
        self._estimator = Estimator(self.method, self.scores, self.provenance, journal.folder)

    def _note(self, entry: Entry) -> None:
        """Write an entry to the folder, if there is one, before anything follows from it."""
        if self._journal is not None:
            self._journal.append(entry)
        self._entries.append(entry)

    # -- ask and tell ------------------------------------------------------------------------

    def ask(self, at_most: int | None = None) -> dict[str, list[str]]:
        """Return what each target should be run on next: ids of items not answered yet.

        Targets that need nothing more are left out, and so are those that wait (see `waiting`).
        Asking again returns the same.

        Parameters
        ----------
        at_most : int, optional
            Return no more than this many items per target; the rest is asked later.
        """
        self._advance()
        asked = {}
        for target in self.targets:
            items = self._affordable(target)
            if self.stop.half_width is not None and len(items):
                if self._is_narrow(target):
                    continue
                items = items[: max(FEWEST, round(STEP * self.provenance.budget))]
            if len(items):
                asked[target] = self.scores.item_ids[items[:at_most]].tolist()
        return asked

    def waiting(self) -> list[str]:
        """Return the targets that are asked again once others have answered."""
        return self._waiting(self.ask())

    def _waiting(self, asked: Mapping[str, Sequence[str]]) -> list[str]:
        """Return the targets that wait for those that are asked; nobody waits for no one."""
        return self._advance() if asked else []

    def finished(self) -> list[str]:
        """Return the targets that need no more answers."""
        asked = self.ask()
        more = {*asked, *self._waiting(asked)}
        return [target for target in self.targets if target not in more]

    def _advance(self) -> list[str]:
        """Have the method choose for targets without open items, and note what it asks.

        Returns the targets that wait for the answers of others.
        """
        if self._is_on_record():
            return []  # the method need not be at work
        with self._alone(), self._working():
            asked = self._session.ask()
            new: dict[tuple[int, ...], list[str]] = {}
            for target in self.targets:
                for items in self.record.rounds(target)[self._written[target] :]:
                    new.setdefault(tuple(items.tolist()), []).append(target)
            for positions, targets in new.items():
                ids = tuple(self.scores.item_ids[list(positions)])
                self._note(Asked(targets=tuple(targets), items=ids))
                for target in targets:
                    self._written[target] += 1
        return [name for name, items in asked.items() if not len(items)]

    def _is_on_record(self) -> bool:
        """Whether every target has open items, and all that was asked is noted."""
        return all(
            len(self.record.open(target))
            and self._written[target] == len(self.record.rounds(target))
            for target in self.targets
        )

    def _affordable(self, target: str) -> IntArray:
        """Return a target's open items, as many as the cost allows."""
        items = self.record.open(target)
        if self.stop.cost is None or not len(items):
            return items
        spent = float(self._costs[self.record.answered(target)].sum())
        return items[spent + np.cumsum(self._costs[items]) <= self.stop.cost * (1 + 1e-9)]

    @cached_property
    def _costs(self) -> FloatArray:
        return costs_of(self.scores)

    def _is_narrow(self, target: str) -> bool:
        """Whether a target's interval is already as narrow as wanted."""
        if self.stop.half_width is None or len(self.record.answered(target)) < FEWEST:
            return False
        interval = self._estimate(self.stop.level, [target])[target].interval
        return (interval.high - interval.low) / 2 <= self.stop.half_width

    def tell(
        self,
        target: str,
        answers: Mapping[str, float],
        probabilities: Mapping[str, ArrayLike] | None = None,
        *,
        accept_fractions: bool = False,
        correct: bool = False,
    ) -> int:
        """Take a target's answers, all at once or in parts.

        Parameters
        ----------
        target : str
        answers : mapping of item id to score
            On the user's scale. An item may be told again with the same score.
        probabilities : mapping of item id to option probabilities, optional
            For methods that use signatures, in the order of the sources' options.
        accept_fractions : bool
            Take scores between right and wrong where the sources have none in the task, such as
            means of several runs of an item. The estimate then carries a warning.
        correct : bool
            Replace earlier answers. The old ones stay in the folder's journal.

        Returns
        -------
        int
            How many of the items asked of this target are still to be answered.

        Raises
        ------
        AnswersError
            If an item was not asked, a score is out of range, differs from one told before, or is
            a fraction where the sources are right or wrong.
        ScoresError
            If an item is not in the scores.
        """
        options = None
        if probabilities is not None:
            lacking = [item for item in answers if item not in probabilities]
            if lacking:
                raise AnswersError(f"{len(lacking)} answers lack probabilities: {some(lacking)}")
            options = self._book.options([probabilities[item] for item in answers])
        try:
            given = [float(score) for score in answers.values()]
        except (TypeError, ValueError) as error:
            raise AnswersError(f"{target!r}: a score is not a number: {error}") from error
        unit = self.scores.scale.to_unit(np.array([given]))
        self._check_target(target)
        told = Answers(self.scores.positions(answers), unit, options)
        return self._tell(target, told, accept_fractions=accept_fractions, correct=correct)

    def tell_table(
        self,
        table: Scores,
        target: str | None = None,
        *,
        accept_prompts: bool = False,
        accept_fractions: bool = False,
        correct: bool = False,
    ) -> Taken:
        """Take answers from a table of scores, such as one read from a harness's log.

        Parameters
        ----------
        table : Scores
            Item ids as in the sources.
        target : str, optional
            Take only this target. The table's only model is it, whatever its name there.
        accept_prompts : bool
            Take answers although their prompts or settings differ from those of the sources;
            estimates will warn of it. Compared is what the logs of both record.
        accept_fractions, correct : bool
            As in `tell`.

        Returns
        -------
        Taken
            How many answers were new, which items and models of the table were not used, and
            notes on prompts and settings.

        Raises
        ------
        AnswersError
            If the answers are to other prompts or settings than those of the sources, or do not
            fit what was asked.
        """
        if table.scale != self.scores.scale:
            raise AnswersError(
                f"the answers are on the scale {table.scale}, the sources on {self.scores.scale}",
                hint="read the answers with the scale of the sources",
            )
        taken, asked_of_any = 0, set[str]()
        matched = match_models(table, self.targets, target)
        if any(not len(self.record.open(name)) for name in matched):
            self._advance()
        compared = self._book.compare(table, matched, accept_prompts=accept_prompts)
        every = {name: self._book.from_table(table, row, name) for name, row in matched.items()}
        for name, answers in every.items():  # before any is taken
            self._book.check(name, answers, accept_fractions=accept_fractions, correct=correct)
        for name, answers in every.items():
            before = self.record.scores(name)[answers.items]
            taken += int(((answers.scores[0] != before) if correct else np.isnan(before)).sum())
            asked_of_any.update(self.scores.item_ids[self.record.asked(name)])
            self._tell(
                name,
                answers,
                accept_fractions=accept_fractions,
                correct=correct,
                differences=compared.differences,
            )
        rows = set(matched.values())
        return Taken(
            taken,
            [item for item in table.item_ids if item not in asked_of_any],
            [model for row, model in enumerate(table.model_ids) if row not in rows],
            (*compared.differences, *compared.notes),
        )

    def skip(self, target: str, items: Iterable[str]) -> int:
        """Note that a target cannot answer some of the items asked; they are not asked again.

        Returns how many of the items asked of this target are still to be answered. An answer
        told later counts all the same.

        Raises
        ------
        AnswersError
            If an item was not asked, or is answered.
        """
        self._check_target(target)
        at = self.scores.positions(list(items))
        self._check_open(target)
        with self._alone():
            self._book.check_skipped(target, at)
            self._note(Skipped(target=target, items=tuple(self.scores.item_ids[at])))
            self.record.skip(target, at.tolist())
        return self._left(target)

    def _check_target(self, target: str) -> None:
        if target not in self.targets:
            raise AnswersError(
                f"{target!r} is not a target", hint=f"the targets are {some(self.targets)}"
            )

    def _check_open(self, target: str) -> None:
        """Have the method choose, if all that it asked of a target is answered."""
        if not len(self.record.open(target)):
            self._advance()

    def _tell(
        self,
        target: str,
        answers: Answers,
        *,
        accept_fractions: bool,
        correct: bool = False,
        differences: tuple[str, ...] = (),
    ) -> int:
        self._check_open(target)
        with self._alone():
            self._book.check(target, answers, accept_fractions=accept_fractions, correct=correct)
            if correct:
                self._book.check_known(target, answers)
            if len(answers.items):
                told = self._book.to_record(target, answers)
                how = {"differences": differences, "corrects": correct}
                self._note(told.model_copy(update=how))
                self.record.tell(target, answers)
        return self._left(target)

    def _left(self, target: str) -> int:
        self._check_open(target)
        return len(self._affordable(target))

    # -- estimate ----------------------------------------------------------------------------

    def estimate(self, level: float = 0.9, targets: Sequence[str] | None = None) -> Estimates:
        """Estimate full scores from the answers given so far.

        An estimate of a target with items left to answer carries a warning.

        Parameters
        ----------
        level : float
            Stated coverage of the interval.
        targets : sequence of str, optional
            By default all that have answered something.

        Raises
        ------
        EvaluationError
            If a target has answered nothing.
        """
        check_level(level)
        names = list(targets) if targets is not None else self._answering()
        for name in names:
            self._check_target(name)
            if not len(self.record.answered(name)):
                raise EvaluationError(
                    f"{name!r} has answered none of the asked items",
                    hint="run the items that ask lists, and tell the answers",
                )
        return self._estimate(level, names) if names else Estimates()

    def _answering(self) -> list[str]:
        names = [name for name in self.targets if len(self.record.answered(name))]
        if not names:
            raise EvaluationError(
                "no target has answered any item",
                hint="run the items that ask lists, and tell the answers",
            )
        return names

    def _estimate(self, level: float, names: list[str]) -> Estimates:
        waiting = self._advance()
        heard = []
        for name in names:
            goes_on = len(self.record.open(name)) > 0 or name in waiting
            rests_on = self._rests_on(name, name in waiting)
            notes = (*rests_on, *self._book.notes(name), *self._accepted(name))
            heard.append(Heard(name, self.record.answers(name), goes_on, notes))
        prediction = self._predict(names, tasks=True)
        return self._estimator.estimate(prediction, heard, level, self.notes)

    def _predict(self, names: list[str], *, tasks: bool) -> Prediction:
        with self._working():
            return self._session.predict(names, tasks=tasks)

    def _rests_on(self, target: str, is_waiting: bool) -> tuple[str, ...]:
        """Return a warning if the estimate rests on fewer answers than were asked for."""
        answered, asked = len(self.record.answered(target)), len(self.record.asked(target))
        left, budget = len(self.record.open(target)), self.provenance.budget
        skipped = asked - answered - left
        found = []
        if left and self.stop.half_width is not None:
            found.append(
                f"{answered} of at most {asked} items answered; the width of the interval decides "
                "when to stop, so it holds the score a little less often than its level says"
            )
        elif left and self.stop.cost is not None and not len(self._affordable(target)):
            found.append(f"the cost allowed {answered} of the {asked} items chosen")
        elif left and self.method.asks_once:
            found.append(
                f"{answered} of {asked} items answered: the estimate uses {answered}; tell the "
                f"missing {counted(left, 'answer')}, or skip items that cannot be answered"
            )
        elif left or is_waiting:
            found.append(
                f"{answered} of {budget} items answered: the method would ask for more before it "
                "estimates"
            )
        elif self.method.whole_budget and asked < budget:
            found.append(f"only {asked} of {budget} items were asked: the rest was lost or changed")
        if skipped:
            found.append(
                f"{counted(skipped, 'item')} skipped: if a model fails on items because they are "
                "hard for it, leaving them out makes the estimate too high"
            )
        return tuple(found)

    def items(self, target: str) -> pd.DataFrame:
        """Return one row per item of the benchmark, for one target.

        Columns: `task`; `status` ("answered", "open", "skipped", or "" if not asked); `score` on
        the user's scale; `expected`, what the method expects of the item, where it has that.
        """
        self._check_target(target)
        expected = None
        if len(self.record.answered(target)):
            expected = self._predict([target], tasks=False).items
        return self._book.table(target, None if expected is None else expected[0])

    def to_frame(self) -> pd.DataFrame:
        """Return one row per target: items asked, answered, skipped and open."""
        return self._book.counts()

    def __repr__(self) -> str:
        """Return method, limits and how far the targets are."""
        return (
            f"Evaluation: {self.provenance.method}, {self.stop.describe()}\n"
            f"{self.to_frame().to_string()}"
        )

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self).splitlines()[0])}</p>{self.to_frame().to_html()}"

    def warnings(self) -> list[str]:
        """Return what to know of the method on these sources, before any target is run.

        The method is repeated on parts of the sources for it, which can take as long as 20 runs
        of the method; `estimate` uses the same.
        """
        return self._estimator.warnings()

    def _accepted(self, target: str) -> list[str]:
        """Return warnings of answers that were taken although they were asked otherwise."""
        told = [one for one in self._entries if isinstance(one, Told) and one.target == target]
        return [
            f"accepted answers to other prompts or settings than the sources': {said}"
            for said in dict.fromkeys(said for one in told for said in one.differences)
        ]

    @property
    def error_model(self) -> ErrorModel:
        """What is known of the method's errors on the sources, with the whole budget."""
        return self._estimator.errors()
