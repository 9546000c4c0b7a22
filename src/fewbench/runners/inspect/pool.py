"""The run that several tasks of Inspect share: what each runs next, and what became of it."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fewbench._names import counted, some
from fewbench.errors import FewbenchError, RunError
from fewbench.runners.driving import Answered, OnProgress
from fewbench.runners.inspect.samples import benchmark_of
from fewbench.runners.run import Run
from fewbench.scores import Scores
from fewbench.scores.roles import as_sources

WAIT = 60.0  # seconds for which a task waits for the samples of the other tasks before it looks


@dataclass(frozen=True)
class AnswerSettings:
    """How answers are taken.

    - `metric`: which value of the scorers, also task → value; by default that of the sources.
    - `accept_differences`, `accept_fractions`: as for `Evaluation.tell_table`.
    - `logs`: folder with logs of earlier runs, whose answers are taken first.
    - `targets`: names of the targets that are run, kept in the logs.
    - `raises`: whether an error of fewbench also fails Inspect's task.
    - `keeps_open`: whether the run stays open once all tasks have ended, as more evals may follow.
    """

    metric: str | Mapping[str, str] | None = None
    accept_differences: bool = False
    accept_fractions: bool = False
    logs: Path | None = None
    targets: tuple[str, ...] = ()
    raises: bool = False
    keeps_open: bool = False


class RunningTask:
    """A task of Inspect that shares a run: its settings in Inspect, and its samples.

    Attributes
    ----------
    dataset : sequence of Sample
        All samples, as the task has them.
    spec, plan
        What Inspect reports at the start of the task, or None before.
    target : str
    samples : dict of item to Sample
    given, out : set of str
        The items that were given out, and those of them without an answer yet.
    is_checked, is_over : bool
        Whether its samples and settings are in order, and whether it has ended.
    """

    def __init__(self, dataset: Sequence[Any]) -> None:
        self.dataset, self.target = dataset, ""
        self.is_checked = self.is_over = False
        self.spec: Any = None
        self.plan: Any = None
        self.samples: dict[str, Any] = {}
        self.given, self.out = set[str](), set[str]()

    @property
    def header(self) -> Any:
        """What a log of the task says at its start."""
        return SimpleNamespace(eval=self.spec, plan=self.plan)


class SharedRun:
    """A run, and the tasks of Inspect that share it.

    Parameters
    ----------
    scores : Scores, optional
        Scores of the source models, or of none. By default the samples of all tasks are the items:
        they are known once all tasks have begun.
    open_run : callable
        Returns the run, given the scores and Inspect's specification of an eval, if one has begun.
    target_of : callable
        Returns the target, given the name of a model.
    settings : Settings
    on_progress : callable, optional
        Called with (run, target) after each batch.

    Attributes
    ----------
    error : FewbenchError, optional
        The first error. Inspect would only log it; no more samples are given out after it.
    """

    def __init__(
        self,
        scores: Scores | None,
        open_run: Callable[[Scores, Any], Run],
        target_of: Callable[[str], str],
        settings: AnswerSettings,
        on_progress: OnProgress | None = None,
    ) -> None:
        self.known, self.settings, self.target_of = scores, settings, target_of
        self.notes: list[str] = []
        self.error: FewbenchError | None = None
        self.feeds: list[RunningTask] = []
        self.run: Run | None = None
        self._open_run, self._on_progress = open_run, on_progress
        self._is_open = False
        self.has_begun = False  # whether a task was found to be in order, so that samples may run
        self._changed: Any = None
        self._lost: dict[str, Answered] = defaultdict(Answered)  # failed since the last answer
        self._repeat: dict[str, int] = {}  # which answers this eval gives, by target

    @property
    def scores(self) -> Scores:
        """The scores, once they are known."""
        assert self.known is not None
        return self.known

    def evals(self) -> set[str]:
        """Return Inspect's ids of the evals that have started."""
        return {feed.spec.eval_id for feed in self.feeds if feed.spec is not None}

    def open(self, spec: Any = None) -> Run:
        """Open the run, unless it is open."""
        if self.run is None or not self._is_open:
            self.run = self._open_run(self.scores, spec)
            self._is_open = True
        return self.run

    def leave(self) -> None:
        """Close the run once all tasks have ended."""
        self._announce()
        is_over = all(feed.is_over for feed in self.feeds) and not self.settings.keeps_open
        if is_over and self.run is not None:
            self.run.close()
            self._is_open, self._repeat = False, {}

    def begin_round(self) -> bool:
        """Return whether samples are to run again, in another eval: no sample runs twice in one."""
        run, ended = self.run, self._repeat
        self._repeat = {}
        return run is not None and any(
            run.next(name) and run.repeat(name) > repeat for name, repeat in ended.items()
        )

    def fail(self, error: FewbenchError) -> None:
        """Keep the first error, and give out no more samples."""
        self.error = self.error or error
        if self.run is not None:
            self.run.halt(error.message)
        self._announce()

    async def learn_items(self) -> None:
        """Wait until all tasks have begun, unless the items are known; their samples are these."""
        while self.known is None and self.error is None:
            if all(feed.spec is not None for feed in self.feeds):
                begun = [(feed.header, feed.dataset) for feed in self.feeds]
                benchmark, self.notes = benchmark_of(begun, self.settings.metric)
                self.known = as_sources(benchmark)
                self._announce()
            else:
                await self._wait()

    async def check_all(self) -> None:
        """Wait until all tasks are in order: none is to be paid for if another one is refused."""
        self._announce()
        while self.error is None and not all(one.is_checked or one.is_over for one in self.feeds):
            await self._wait()
        self.has_begun = self.has_begun or self.error is None

    async def share(self, feed: RunningTask) -> list[str] | None:
        """Return the items that a feed is to run next, or None if it is done."""
        run, target = self.run, feed.target
        assert run is not None
        while self.error is None:
            self._take_lost(target)
            items = run.next(target)
            if run.repeat(target) > self._repeat.setdefault(target, run.repeat(target)):
                return None
            if mine := [item for item in items if item in feed.samples and item not in feed.given]:
                return mine
            if not self._may_change(feed, items):
                return None
            await self._wait()
        return None

    async def _wait(self) -> None:
        """Wait until something changes; RunError if nothing does, and tasks have not begun."""
        import anyio

        self._changed = self._changed or anyio.Event()
        with anyio.move_on_after(WAIT) as wait:
            await self._changed.wait()
        left = sum(feed.spec is None for feed in self.feeds)
        if wait.cancelled_caught and left and not any(feed.out for feed in self.feeds):
            raise RunError(
                f"{counted(left, 'task')} of Inspect did not start, and the others wait for "
                "their samples",
                hint=f"pass max_tasks={len(self.feeds)} to eval",
            )

    def _may_change(self, feed: RunningTask, items: Sequence[str]) -> bool:
        """Whether other tasks may bring new items to a feed that has none."""
        others = [other for other in self.feeds if other is not feed and not other.is_over]
        unstarted = any(other.spec is None for other in others)
        of_target = [
            other for other in self.feeds if other.spec is not None and other.target == feed.target
        ]
        orphans = [item for item in items if not any(item in other.samples for other in of_target)]
        if orphans and not unstarted:
            tasks = sorted(set(self.scores.items["task"].loc[orphans].astype(str)))
            raise RunError(
                f"the items of task {some(tasks)} are in no task that Inspect runs",
                hint="run all tasks of the scores in one eval",
            )
        if any(item in other.samples for item in items for other in others if other in of_target):
            return True
        if items and unstarted:
            return True
        run = self.run
        assert run is not None
        waits = len(run.targets) > 1 and run.stopped is None
        is_waiting = run.is_planned or (waits and feed.target in run.evaluation.waiting())
        return bool(waits and others and is_waiting)

    def take(self, target: str, item: str, answered: Answered) -> None:
        """Record the answer to an item, with what failed since the last one."""
        assert self.run is not None
        lost = self._lost.pop(target, Answered())
        lost.failed.pop(item, None)  # it was run again
        times = self.run.evaluation.record.times(target)[self.scores.positions([item])[0]]
        if times >= self.run.repeat(target) and not self.run.runs_again(target, item):
            answered.cost = answered.tokens = 0  # a reused sample of an earlier try
        answered.cost += lost.cost
        answered.tokens += lost.tokens
        try:
            self.run.take(target, answered.answers, lost.failed, **answered.more)
        except FewbenchError as error:
            self.fail(error)
        self._announce()

    def lose(self, target: str, item: str, reason: str, spent: Answered) -> None:
        """Note a failed item; it is recorded with the next answer or at the end of the batch."""
        lost = self._lost[target]
        lost.failed[item] = reason
        lost.cost += spent.cost
        lost.tokens += spent.tokens
        self._announce()

    def _take_lost(self, target: str) -> None:
        if any(feed.out for feed in self.feeds if feed.spec is not None and feed.target == target):
            return
        if (lost := self._lost.pop(target, None)) is not None:
            assert self.run is not None
            self.run.take(target, {}, lost.failed, **lost.more)

    def show(self, target: str) -> None:
        """Show how far a target is, in Inspect's display and to the caller."""
        from inspect_ai.util import display_counter

        assert self.run is not None
        progress = self.run.progress(target, interval=False)
        display_counter(f"{target}: items", f"{progress.answered} of at most {progress.budget}")
        if self._on_progress is not None and progress.answered:
            self._on_progress(self.run, target)

    def _announce(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None
