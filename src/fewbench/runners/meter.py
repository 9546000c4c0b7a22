"""What a run has used, and what its limits still allow."""

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from fewbench._names import counted
from fewbench.evaluation import Evaluation
from fewbench.evaluation.entries import RunBatch
from fewbench.evaluation.opening import COST
from fewbench.runners.batches import spent_on
from fewbench.runners.result import Spent

FIRST = 10
"""Items of a first batch."""


class Meter:
    """What a run has used: money, tokens, time, and of that time fewbench's own.

    Parameters
    ----------
    evaluation : Evaluation
        Its journal keeps what batches used.
    targets : sequence of str
        All that are run.
    batch : int, optional
        Most items per batch.
    """

    def __init__(self, evaluation: Evaluation, targets: Sequence[str], batch: int | None) -> None:
        self._evaluation, self._targets, self._batch = evaluation, tuple(targets), batch
        self._stop = evaluation.stop
        self._own = 0.0  # fewbench's own seconds since the last entry
        self._is_timed = False
        self._since = time.monotonic()  # of the last entry
        self._reported: set[str] = set()
        self.at_once: int | None = None
        """Most items per batch under a limit on what is known only after an item ran."""
        self._n_before = {name: self.n_runs(name) for name in targets}

    def count_from(self, started: float) -> None:
        """Count the time since a reading of the clock as fewbench's own."""
        self._since, self._own = started, time.monotonic() - started

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count fewbench's own time."""
        if self._is_timed:
            yield
            return
        started, self._is_timed = time.monotonic(), True
        try:
            yield
        finally:
            self._own += time.monotonic() - started
            self._is_timed = False

    def note(
        self,
        target: str,
        failed: Mapping[str, str],
        counts: bool,
        cost: float,
        tokens: int,
        reported: Iterable[str] = (),
    ) -> None:
        """Record what a batch used, what the model `reported` of that, and which items failed."""
        now = time.monotonic()
        self._reported.update(reported)
        batch = RunBatch(
            target=target,
            failed=dict(failed),
            counts=counts,
            cost=cost,
            tokens=tokens,
            seconds=now - self._since,
            own=self._own,
        )
        self._evaluation.note_run(batch)
        self._since, self._own = now, 0.0

    def spent(self, targets: Sequence[str] | None = None) -> Spent:
        """Return what was spent up to now."""
        named = self._targets if targets is None else targets
        spent = spent_on(self._evaluation.batches, named, self._targets)
        return spent.model_copy(
            update={
                "seconds": spent.seconds + time.monotonic() - self._since,
                "own_seconds": spent.own_seconds + self._own,
            }
        )

    def left(self, target: str) -> tuple[float, float]:
        """Return what a target may still spend as reported: cost, and tokens."""
        stop, spent = self._stop, self.spent([target])
        return (
            math.inf if stop.cost is None else stop.cost - spent.cost,
            math.inf if stop.tokens is None else stop.tokens - spent.tokens,
        )

    def n_runs(self, target: str) -> int:
        """Return how many times a target ran an item."""
        return int(self._evaluation.record.times(target).sum())

    def most(self, target: str, n_open: int) -> int | None:
        """Return how many of the items may be run at once, so that limits are kept.

        For costs and tokens that are known only after an item ran: one item first, then at most
        twice as many as were run, and one standard deviation less than the limit allows, if costs
        differ as much as their mean.
        """
        stop, of_all = self._stop, sum(map(self.n_runs, self._targets))
        answered, spent = self.n_runs(target), self.spent([target])
        most = [] if self._batch is None else [self._batch]
        if not answered:  # a first batch may show that scores are on the wrong scale
            most.append(FIRST)
        affordable = []
        if stop.cost is not None and (spent.cost or COST not in self._evaluation.scores.items):
            affordable.append(n_open if spent.cost else 1)
        if stop.tokens is not None:
            left = stop.tokens - spent.tokens
            affordable.append(int(left * answered / spent.tokens) if spent.tokens else 1)
        if affordable and self.at_once is not None:
            most.append(self.at_once)
        most += [max(1, min(int(n - math.sqrt(n)), 2 * answered)) for n in affordable]
        if stop.seconds is not None:
            used = spent.model_seconds if of_all else 0.0
            most.append(max(1, int((stop.seconds - used) * of_all / used)) if used else FIRST)
        return min(most, default=None)

    def end_of_all(self, target: str) -> tuple[str, bool] | None:
        """Return why all targets must end, and whether that is a failure: time, or silence.

        Silence is a model that answers and reports nothing of what a limit is on. Earlier runs do
        not count: since then, it may have learned to report.
        """
        stop, ended = self._stop, None
        answered = self.n_runs(target) - self._n_before[target]
        if answered and (silent := self.silent_limits()):
            name = silent[0]
            ended = (
                f"the model reported no {name} for {counted(answered, 'item')}, so the limit on "
                f"{name} cannot be kept: report it with each answer, or leave out --{name}",
                True,
            )
        if stop.seconds is not None and self.spent().seconds >= stop.seconds:
            minutes = f"{stop.seconds / 60:,.3g} minutes"
            ended = f"the limit of {minutes} was reached (to go on: more --minutes)", False
        return ended

    def end_of(self, target: str) -> str | None:
        """Return why a target must end: its limit on tokens."""
        stop, spent = self._stop, self.spent([target])
        answered = max(1, self.n_runs(target))
        if stop.tokens is not None and spent.tokens * (1 + 1 / answered) > stop.tokens:
            return f"the limit of {stop.tokens:,} tokens was reached (to go on: more --tokens)"
        return None

    def silent_limits(self) -> list[str]:
        """Return the limits of which nothing is known: no prices, and nothing was reported."""
        stop, spent = self._stop, self.spent()
        limits = (
            ("cost", stop.cost, spent.cost or COST in self._evaluation.scores.items),
            ("tokens", stop.tokens, spent.tokens),
        )
        return [
            name
            for name, limit, used in limits
            if limit is not None and not used and name not in self._reported
        ]
