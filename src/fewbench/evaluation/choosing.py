"""A method at work on the targets of an evaluation: what it asks for, and what it predicts."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fewbench._threads import one_thread
from fewbench._types import FloatArray, IntArray
from fewbench._version import __version__
from fewbench.errors import AnswersError, EvaluationError
from fewbench.evaluation.costs import Cost, expected_costs
from fewbench.evaluation.journal import Header
from fewbench.evaluation.ledger import Ledger
from fewbench.evaluation.opening import Stop, check_subset, count_items, with_items
from fewbench.evaluation.packed import check_settings, provenance_of, subset_of
from fewbench.methods import Method, Prediction, Provenance, Session, StaticMethod, Subset
from fewbench.methods.base import AUTO
from fewbench.methods.kept_fits import KeptFits
from fewbench.methods.needs import require
from fewbench.methods.static import StaticSession
from fewbench.scores import Scores
from fewbench.uncertainty.open_items import with_middle

NOTHING = np.empty(0, dtype=np.intp)

# `ask` and `tell` of a static method need neither the catalogue nor SciPy nor the cells of the
# sources: these are imported, found and read where they are used.


@dataclass(frozen=True, eq=False)
class Start:
    """What an evaluation is started with.

    Attributes
    ----------
    method : str or Method
    stop : Stop
    seed : int
    subset : Subset or None
        Items chosen earlier.
    reason : str or None
        Why `auto` chose the method.
    started : Provenance or None
        What the evaluation was started with if it was saved before.
    """

    method: str | Method
    stop: Stop
    seed: int
    subset: Subset | None
    reason: str | None = None
    started: Provenance | None = None

    @classmethod
    def new(
        cls,
        scores: Scores,
        method: str | Method,
        budget: int | str | None,
        seed: int,
        stop: Stop | None,
        subset: Subset | None,
        *,
        is_run: bool,
    ) -> "Start":
        """Return the settings of a new evaluation; see `Evaluation`."""
        items = None if budget is None else count_items(budget, scores)
        if (origin := scores.origin) is not None:
            if subset is not None:
                raise EvaluationError("a pack has its own items", hint="leave out the subset")
            wanted = Stop(items=items) if stop is None and items is not None else stop
            method, stop, seed = check_settings(
                provenance_of(origin, scores.n_items), method, wanted, seed
            )
            items, subset = None, subset_of(origin)
        if (items is None) == (stop is None):
            raise EvaluationError(
                "one of budget and stop is needed",
                hint="pass budget=100 or stop=Stop(items=100)",
                kind="conflict",
            )
        limits = stop or Stop(items=items)
        if not is_run:
            limits.check_without_run(scores)
        if seed < 0:
            raise EvaluationError(f"the seed {seed} is negative", hint="use 0 or more")
        reason = None
        if method == AUTO:
            from fewbench.evaluation.auto import check_given, choose_for

            check_given(subset)
            method, reason = choose_for(scores, limits)
        return cls(method, limits, seed, subset, reason)

    @classmethod
    def from_header(cls, header: Header, method: Method | None) -> "Start":
        """Return the settings of a saved evaluation; `method` for one outside the catalogue."""
        provenance = header.provenance
        return cls(
            method or provenance.method, header.limits, provenance.seed,
            header.subset, header.reason, provenance,
        )  # fmt: skip

    def carried(self, scores: Scores, *, is_same_question: bool = False) -> "Start":
        """Return the settings of an evaluation that goes on with other scores of the same items.

        A sample's items weigh what they count now over the chance with which they were drawn; other
        weights of the method stay if the question is the same, such as after a model was renamed.

        Raises
        ------
        EvaluationError
            If the method weighed its items for the scores as they were, by more than their chances.
        """
        changed: dict[str, Any] = {"fingerprint": scores.fingerprint, "average": scores.average}
        assert self.started is not None
        if (subset := self.subset) is not None:
            kept = [at for at, item in enumerate(subset.items) if item in scores.items.index]
            changed["budget"] = len(kept)
            subset = subset.at(kept, scores, is_same_question=is_same_question)
        started = self.started.model_copy(update=changed)
        if subset is not None:
            subset = subset.model_copy(update={"provenance": started})
        return replace(self, subset=subset, started=started)


def learned_from(method: Method, subset: Subset | None, scores: Scores) -> Scores:
    """Return the part of the scores that a method learns from, by items chosen earlier or its own.

    Raises MethodError, MissingExtraError if it cannot run.
    """
    part = scores if method.takes_parts else scores.whole
    learner: object = method
    if subset is not None and isinstance(method, StaticMethod):  # its selector is not run
        learner = method.predictor
    require(learner, part)
    return part


class Choosing:
    """A method at work: it chooses items for the targets and predicts their scores.

    Parameters
    ----------
    scores : Scores
        Those of the source models.
    settings : Start
    ledger : Ledger
        The requests and answers so far. Rounds that the method asks for are noted there.
    """

    def __init__(self, scores: Scores, settings: Start, ledger: Ledger) -> None:
        self.scores, self.settings, self.ledger = scores, settings, ledger
        self.fits = KeptFits()
        self._waiting: list[str] = []
        self.changes: tuple[str, ...] = ()
        """What has changed in the scores since the folder was made."""

    @cached_property
    def method(self) -> Method:
        """The method, with the subset's items if it was given the user's own."""
        from fewbench.methods.catalogue import find_method

        chosen, subset = self.settings.method, self.settings.subset
        method = find_method(chosen) if isinstance(chosen, str) else chosen
        return method if subset is None else with_items(method, subset)

    @cached_property
    def provenance(self) -> Provenance:
        """What makes the estimates; of a folder, with the settings that the method has now."""
        settings, now = self.settings, self.method.describe()
        if settings.started is not None:
            return settings.started.model_copy(update={"settings": now, "version": __version__})
        method = settings.method
        return Provenance(
            method=method if isinstance(method, str) else method.describe(),
            settings=now,
            budget=settings.stop.budget(self.method, self.scores),
            seed=settings.seed,
            fingerprint=self.scores.fingerprint,
            average=self.scores.average,
            version=__version__,
            credit="; ".join(self.scores.credits),
        )

    @property
    def start(self) -> Start:
        """What another evaluation that goes on from this one is started with."""
        return replace(self.settings, started=self.provenance, subset=self.subset)

    @property
    def budget(self) -> int:
        """How many items the method may choose per target."""
        return (self.settings.started or self.provenance).budget

    @property
    def notes(self) -> tuple[str, ...]:
        """What has changed since the folder was made: scores, and the method."""
        before = self.settings.started
        if before is None or before.settings == self.provenance.settings:
            return self.changes
        return (
            *self.changes,
            f"started by fewbench {before.version} with {before.method} as {before.settings}; this "
            f"version continues from the recorded answers with {self.provenance.settings}",
        )

    def check_options(self, target: str, has_options: bool) -> None:
        """Raise AnswersError if the method needs option probabilities that answers lack."""
        if has_options or self.scores.probabilities is None:
            return
        needs = self.method.needs
        if any(need.what == "probabilities" and need.of_targets for need in needs):
            raise AnswersError(
                f"{target!r}: the answers have no option probabilities, which "
                f"{self.provenance.method} predicts from",
                hint="pass them too (from a log or table that has them, or in Python as "
                "probabilities), or start with a method that needs none, such as greedy-ridge",
                kind="missing",
            )

    @cached_property
    def session(self) -> Session:
        """The method on these targets; MethodError or EvaluationError if it cannot run."""
        provenance, subset, method = self.provenance, self.settings.subset, self.method
        scores = learned_from(method, subset, self.scores)
        targets = self.ledger.record.targets
        session: Session
        if subset is not None and isinstance(method, StaticMethod):  # chosen before: not again
            if self.notes:  # its items are still those that were chosen
                subset = subset.model_copy(update={"provenance": provenance})
            subset = check_subset(subset, provenance, scores, method)
            session = StaticSession(
                method.predictor, scores, subset, provenance.seed, targets,
                is_sample=method.random_items and subset.weights is None,
            )  # fmt: skip
        else:
            with self._working():  # it may fit the sources, which takes long
                session = method.start(scores, provenance.budget, provenance.seed, targets)
        session.record = self.ledger.record
        return session

    def renew(self) -> None:
        """Start the session again, for targets that joined."""
        vars(self).pop("session", None)

    @contextmanager
    def _working(self) -> Iterator[None]:
        """Use one thread, with other threads kept out, and keep fits of the sources."""
        with self.ledger.turn, one_thread(), self.fits.in_use():
            yield

    @property
    def subset(self) -> Subset | None:
        """The chosen items if the method chose them all before any target is run."""
        if not self.method.asks_once or self.session.subset is None:
            return None
        return self.session.subset.model_copy(update={"provenance": self.provenance})

    def advance(self) -> list[str]:
        """Choose items for targets without open ones; return the targets that must wait."""
        if self._is_on_record():
            self._waiting = []  # no method needed
            return []
        with self.ledger.alone(), self._working():
            asked = self.session.ask()
            new = [name for name in self.ledger.record.targets if not self.ledger.is_noted(name)]
            self.ledger.note_rounds()
            self.note_drawn(new)
        self._waiting = [name for name, items in asked.items() if not len(items)]
        return self._waiting

    def note_drawn(self, targets: Iterable[str]) -> None:
        """Note how the items of targets were drawn: their chances, whatever becomes of the scores.

        The folder is locked.
        """
        for target in targets if not self.method.asks_once else ():
            with self._working():
                self.ledger.note_drawn(target, self.session.drawn(target))

    def _is_on_record(self) -> bool:
        """Whether every target has open items or a given subset, and all requests are recorded."""
        subset, record = self.settings.subset, self.ledger.record
        n_given = self.scores.n_items + 1 if subset is None else len(subset.items)
        return all(
            (len(record.open(target)) or len(record.asked(target)) >= n_given)
            and self.ledger.is_noted(target)
            for target in record.targets
        )

    def due(self, target: str) -> IntArray:
        """Return the positions of the items that a target is to answer next.

        Once it has no open ones, and waits for no other target: those that it is to answer again.
        """
        open_ = self.ledger.record.open(target)
        return open_ if len(open_) or target in self._waiting else self.due_again(target)

    def due_again(self, target: str) -> IntArray:
        """Return the positions of answered items that are to be run once more, in their order."""
        record, wanted = self.ledger.record, self.settings.stop.repeats
        if wanted == 1:
            return NOTHING
        answered = record.answered(target)
        answered = answered[~np.isin(answered, list(record.given_up(target)))]
        times = record.times(target)[answered]
        least = int(times.min(initial=wanted))  # a round ends before the next begins
        return answered[times == least] if least < wanted else NOTHING

    def affordable(self, target: str, items: IntArray | None = None) -> IntArray:
        """Return the positions of a target's due items, or of these, that the cost limit allows.

        Up to the first one that it does not allow.
        """
        items, most = self.due(target) if items is None else items, self.settings.stop.cost
        if most is None or (costs := self._costs(target)) is None:
            return items
        spent, each = costs
        cumulated = np.cumsum(self._calls_at_a_time(target) * each[items])
        return items[spent + cumulated <= most * (1 + 1e-9)]

    def cost(self, target: str) -> Cost | None:
        """Return what a target cost, or None if no cost is known."""
        if (costs := self._costs(target)) is None:
            return None
        spent, each = costs
        stop = self.settings.stop
        wanted = stop.repeats * self._calls_at_a_time(target)
        return Cost(
            spent=spent,
            full=spent + float(each @ np.maximum(wanted - self._calls(target), 0)),
            limit=stop.cost,
            is_limit=len(self.due(target)) > 0 and not len(self.affordable(target)),
            unit=stop.unit,
            is_fixed=not (self.method.extends and self.method.targets_apart),
        )

    def _costs(self, target: str) -> tuple[float, FloatArray] | None:
        reported = self.ledger.reported_cost(target)
        reported += self.ledger.stated_cost(target, is_all=not reported)
        return expected_costs(self.scores, self._calls(target), reported)

    def _calls(self, target: str) -> FloatArray:
        """Return how many answers each item was given, also those without a score."""
        record, epochs = self.ledger.record, self.settings.stop.epochs
        return np.maximum(record.calls(target), epochs * record.times(target))

    def _calls_at_a_time(self, target: str) -> float:
        """Return how many answers an item is given each time that it is run."""
        record = self.ledger.record
        times = int(record.times(target).sum())
        so_far = float(self._calls(target).sum()) / times if times else 1.0
        return max(float(self.settings.stop.epochs), so_far)

    def predict(self, targets: list[str], *, tasks: bool) -> Prediction:
        """Return what the method predicts of the targets, in [0, 1], one row each.

        EvaluationError if it predicts no task scores although `tasks` are asked for.
        """
        with self._working():
            prediction = self.session.predict(targets, tasks=tasks)
        if tasks and prediction.tasks is None:
            raise EvaluationError("the method predicted no task scores", kind="unsupported")
        answered = [self.ledger.record.answered(name) for name in targets]
        return with_middle(prediction, self.scores, answered)
