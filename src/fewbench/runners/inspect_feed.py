"""Tasks of Inspect whose samples fewbench chooses: ask and tell inside one eval.

Inspect asks a `Feed` for samples whenever none is running (`SampleSource`), and tells it of every
sample that ends. The solver, the scorer and everything else are the task's own. A `Pool` is the
run that several feeds share: a benchmark may consist of several tasks, and several models may run
at the same time.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

import numpy as np

from fewbench._names import counted, some
from fewbench.errors import FewbenchError, MissingExtraError, RunError, first_line
from fewbench.readers.harnesses.inspect_logs import (
    MARK,
    reduce_epochs,
    reducer_of,
    scores_of,
    task_settings_of,
)
from fewbench.runners.driving import OnProgress
from fewbench.runners.inspect_samples import match_samples, task_in, with_ids
from fewbench.runners.run import Run
from fewbench.scores import Scores, from_arrays
from fewbench.scores.conditions import compare_conditions, join_settings
from fewbench.scores.table import SETTINGS

WAIT = 60.0  # seconds for which a task waits for the samples of the other tasks before it looks
FEEDS: WeakValueDictionary[str, "Feed"] = WeakValueDictionary()  # by the mark of their tasks
LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    """How answers are taken.

    - `metric`: which value of the scorers; by default that of the sources.
    - `accept_prompts`, `accept_fractions`: as for `Evaluation.tell_table`.
    - `logs`: folder with logs of earlier runs, whose answers are taken first.
    - `raises`: whether an error of fewbench also fails Inspect's task.
    """

    metric: str | None = None
    accept_prompts: bool = False
    accept_fractions: bool = False
    logs: Path | None = None
    raises: bool = False


class Pool:
    """A run, and the tasks of Inspect that share it.

    Parameters
    ----------
    scores : Scores
        Scores of the source models.
    open_run : callable
        Returns the run, given the name of a model.
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
        scores: Scores,
        open_run: Callable[[str], Run],
        target_of: Callable[[str], str],
        settings: Settings,
        on_progress: OnProgress | None = None,
    ) -> None:
        self.scores, self.settings, self.target_of = scores, settings, target_of
        self.error: FewbenchError | None = None
        self.feeds: list[Feed] = []
        self.run: Run | None = None
        self._open_run, self._on_progress = open_run, on_progress
        self._is_open = False
        self._changed: Any = None
        self._lost: dict[str, _Lost] = defaultdict(_Lost)

    def adapt(self, task: Any) -> Any:
        """Return a task of Inspect that runs the samples which the run asks for."""
        inspect_ai = inspect_with_sources()
        _watch_tasks()
        feed = Feed(self, task.dataset)
        self.feeds.append(feed)
        FEEDS[feed.mark] = feed
        source = inspect_ai.SampleSource.from_samples(
            [],
            next_samples=feed.next_samples,
            sample_complete=feed.sample_complete,
            sample_abandoned=feed.sample_abandoned,
        )
        mark = {"id": feed.mark, "note": "samples chosen by fewbench: their mean is no estimate"}
        return inspect_ai.task_with(
            task,
            dataset=source,
            metadata={**(task.metadata or {}), MARK: mark},
            tags=[*(task.tags or []), MARK],
        )

    def open(self, model: str) -> Run:
        """Open the run, unless it is open."""
        if self.run is None or not self._is_open:
            self.run = self._open_run(model)
            self._is_open = True
        return self.run

    def leave(self) -> None:
        """Close the run once all tasks have ended."""
        self._announce()
        if all(feed.is_over for feed in self.feeds) and self.run is not None:
            self.run.close()
            self._is_open = False

    def fail(self, error: FewbenchError) -> None:
        """Keep the first error, and give out no more samples."""
        self.error = self.error or error
        if self.run is not None:
            self.run.halt(error.message)
        self._announce()

    async def share(self, feed: "Feed") -> list[str] | None:
        """Return the items that a feed is to run next; None if it is done."""
        import anyio

        run, target = self.run, feed.target
        assert run is not None
        while self.error is None:
            self._take_lost(target)
            items = run.next(target)
            if mine := [item for item in items if item in feed.samples and item not in feed.given]:
                return mine
            if not self._may_change(feed, items):
                return None
            self._changed = self._changed or anyio.Event()
            with anyio.move_on_after(WAIT) as wait:
                await self._changed.wait()
            others = [one for one in self.feeds if one is not feed]
            if wait.cancelled_caught and not any(one.out for one in others):
                left = sum(one.spec is None for one in others)
                self.fail(
                    RunError(
                        f"{counted(left, 'task')} of Inspect did not start, and the others wait "
                        "for their samples",
                        hint=f"pass max_tasks={len(self.feeds)} to eval",
                    )
                )
        return None

    def _may_change(self, feed: "Feed", items: Sequence[str]) -> bool:
        """Whether other tasks may bring new items to a feed that has none."""
        others = [one for one in self.feeds if one is not feed and not one.is_over]
        unstarted = any(one.spec is None for one in others)
        of_target = [
            one for one in self.feeds if one.spec is not None and one.target == feed.target
        ]
        orphans = [item for item in items if not any(item in one.samples for one in of_target)]
        if orphans and not unstarted:
            tasks = sorted(set(self.scores.items["task"].loc[orphans].astype(str)))
            raise RunError(
                f"the items of task {some(tasks)} are in no task that Inspect runs",
                hint="run all tasks of the scores in one eval",
            )
        if any(item in one.samples for item in items for one in others if one in of_target):
            return True
        if items and unstarted:
            return True
        run = self.run
        assert run is not None
        waits = len(run.targets) > 1 and run.stopped is None
        return bool(waits and others and feed.target in run.evaluation.waiting())

    def take(self, feed: "Feed", item: str, score: float, spent: "_Lost") -> None:
        """Record an answer, with what failed since the last one."""
        assert self.run is not None
        lost = self._lost.pop(feed.target, _Lost())
        try:
            self.run.take(
                feed.target,
                feed.table([item], [score]),
                lost.failed,
                cost=spent.cost + lost.cost,
                tokens=spent.tokens + lost.tokens,
            )
        except FewbenchError as error:
            self.fail(error)
        self._announce()

    def lose(self, target: str, item: str, reason: str, spent: "_Lost") -> None:
        """Note a failed item; it is recorded with the next answer or at the end of the batch."""
        lost = self._lost[target]
        lost.failed[item] = reason
        lost.cost += spent.cost
        lost.tokens += spent.tokens
        self._announce()

    def _take_lost(self, target: str) -> None:
        if any(one.out for one in self.feeds if one.spec is not None and one.target == target):
            return
        if (lost := self._lost.pop(target, None)) is not None:
            assert self.run is not None
            self.run.take(target, {}, lost.failed, cost=lost.cost, tokens=lost.tokens)

    def show(self, target: str) -> None:
        """Show how far a target is, in Inspect's display and to the caller."""
        from inspect_ai.util import display_counter

        assert self.run is not None
        progress = self.run.progress(target, interval=False)
        display_counter(f"{target}: items", f"{progress.answered} of at most {progress.of}")
        if self._on_progress is not None and progress.answered:
            self._on_progress(self.run, target)

    def _announce(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None


@dataclass
class _Lost:
    """Failed items with their reasons, and what samples cost."""

    failed: dict[str, str] = field(default_factory=dict)
    cost: float = 0.0
    tokens: int = 0


class Feed:
    """The samples of one task of Inspect, given out as the run asks for their items."""

    def __init__(self, pool: Pool, dataset: Sequence[Any]) -> None:
        self.mark = uuid4().hex
        self.spec: Any = None
        self.target = ""
        self.samples: dict[str, Any] = {}  # item → sample
        self.given: set[str] = set()
        self.out: set[str] = set()  # given and not yet answered
        self.is_over = False
        self._host: Any = None  # the coroutine of Inspect that asks for samples
        self.pool, self._dataset = pool, dataset
        self._is_checked, self._has_metric = False, False
        self._seen: dict[str, dict[int, Any]] = {}

    def begin(self, spec: Any, plan: Any) -> None:
        """Take up what Inspect says at the start of the task, also of a retry."""
        self.spec, self._plan = spec, plan
        self._is_checked = self.is_over = False
        self.given, self.out, self._seen = set(), set(), {}

    def _watch_end(self) -> None:
        """Notice the end of Inspect's task: if the task fails, nothing else says so."""
        import asyncio

        try:
            host = asyncio.current_task()
        except RuntimeError:  # the loop is trio's
            return
        if host is not None and host is not self._host:
            self._host = host
            host.add_done_callback(self._end)

    def _end(self, host: Any = None) -> None:
        if host is self._host:
            self.is_over, self.out = True, set()
            self.pool.leave()

    # -- called by Inspect -------------------------------------------------------------------

    async def next_samples(self) -> list[Any] | None:
        """Return the samples to run next; None at the end."""
        self._watch_end()
        try:
            if not self._is_checked:
                self._check()
            items = await self.pool.share(self)
            if self.given and self.pool.error is None:
                self.pool.show(self.target)
        except FewbenchError as error:
            self.pool.fail(error)
            items = None
        if self.pool.error is not None and self.pool.settings.raises:
            raise self.pool.error
        if items is None:
            self._end(self._host)
            return None
        self.given.update(items)
        self.out.update(items)
        return [self.samples[item].model_copy() for item in items]

    async def sample_complete(self, sample: Any) -> None:
        """Take up one epoch of a sample; Inspect calls it again for reused samples."""
        own = getattr(sample.error, "message", None) or ""
        failure = first_line(RuntimeError(own)) if sample.error else "the scorer gave no score"
        self._settle(str(sample.id), sample.epoch, sample.scores or {}, failure, _spent_on(sample))

    async def sample_abandoned(self, sample: Any, epoch: int) -> None:
        """Take up an epoch that was cancelled before it began."""
        self._settle(str(sample.id), epoch, {}, "cancelled", _Lost())

    def _settle(
        self, own_id: str, epoch: int, scores: Mapping[str, Any], failure: str, spent: _Lost
    ) -> None:
        item = self._items.get(own_id)
        if item is None or self.pool.error is not None:
            return
        self._seen.setdefault(own_id, {})[epoch] = (scores, failure, spent)
        epochs = self._seen[own_id].values()
        if len(epochs) < self._epochs:
            return
        self.out.discard(item)
        whole = _Lost(cost=sum(one.cost for *_, one in epochs))
        whole.tokens = sum(one.tokens for *_, one in epochs)
        scored = [one for one, _, _ in epochs if scores_of(one)]
        try:
            value = self._value(scored) if scored else None
        except FewbenchError as error:
            self.pool.fail(error)
            return
        if value is None:
            self.pool.lose(self.target, item, failure, whole)
        else:
            self.pool.take(self, item, value, whole)

    def _value(self, epochs: list[Mapping[str, Any]]) -> float | None:
        """Return the score of a sample under the sources' metric; None if it has none."""
        found = reduce_epochs(epochs, self._reducer)
        metric = self._metric
        if metric is None and len(found) == 1:
            metric = next(iter(found))
        if metric not in found:
            if self._has_metric or not found:
                return None
            said = "the sources do not say which metric" if metric is None else f"no {metric!r}"
            raise RunError(
                f"task {self.spec.task!r}: {said}; its scorers give {some(list(found))}",
                hint="score with the scorer of the sources, or name one of these with --metric "
                "(in Python metric=…)",
            )
        self._has_metric = True
        value = found[metric]
        if not isinstance(value, float):
            raise RunError(
                f"task {self.spec.task!r}: {metric!r} is {value!r}, not one number",
                hint="name another metric",
            )
        return value

    # -- checks before anything is spent -----------------------------------------------------

    def _check(self) -> None:
        """Raise FewbenchError unless the samples and settings are those of the sources."""
        pool, spec = self.pool, self.spec
        if spec is None:
            raise RunError(
                "this version of Inspect does not say when a task starts",
                hint="pip install -U 'fewbench[inspect]'",
            )
        config = spec.config
        if config.limit is not None or config.sample_id is not None:
            raise RunError(
                "--limit and --sample-id (in Python limit and sample_id) choose samples, and "
                "fewbench chooses them too",
                hint="leave them out; say how many items to run with fewbench's own limits",
            )
        if config.log_samples is False:
            raise RunError(
                "without samples in the log, nobody can check the answers",
                hint="leave out --no-log-samples",
            )
        self.target = pool.target_of(spec.model)
        self._task = task_in(pool.scores, spec.task)
        self.samples, notes = match_samples(pool.scores, self._task, with_ids(self._dataset))
        self._items = {str(sample.id): item for item, sample in self.samples.items()}
        self._epochs = config.epochs or 1
        self._reducer = reducer_of(config.epochs_reducer)
        self._metric = pool.settings.metric or _metric_of(pool.scores, list(self.samples))
        self._settings = join_settings(
            [dict(task_settings_of(SimpleNamespace(eval=spec, plan=self._plan)))]
        )
        self._check_conditions()
        run = pool.open(spec.model)
        if self.target not in run.targets:
            raise RunError(
                f"{self.target!r} is not a target of this run ({some(run.targets)})",
                hint="run one model per folder, or name the target",
            )
        run.notes += [note for note in notes if note not in run.notes]
        self._is_checked = True
        if pool.settings.logs is not None:
            self._recover(pool.settings.logs)

    def _check_conditions(self) -> None:
        sources, settings = self.pool.scores, self.pool.settings
        items = list(self.samples)
        told = self.table(items, [0.0] * len(items), sources.scale.low)
        compared = compare_conditions(sources, told, items)
        if compared.differences and not settings.accept_prompts:
            raise RunError(
                "settings differ from the source models': " + "; ".join(compared.differences),
                hint="run the task as for the source models, or pass --accept-prompts to use the "
                "answers anyway (in Python accept_prompts=True)",
            )
        values = sources.values[:, sources.positions(items)]
        whole = bool(np.isin(values[~np.isnan(values)], (0.0, 1.0)).all())
        means = self._epochs > 1 and self._reducer is None
        if means and whole and not settings.accept_fractions:
            raise RunError(
                f"means over {self._epochs} epochs are fractions, but the source models' answers "
                f"to task {self._task!r} are right or wrong",
                hint="run one epoch, or pass --accept-fractions to use the means anyway (in Python "
                "accept_fractions=True)",
            )

    def table(self, items: list[str], values: list[float], low: float | None = None) -> Scores:
        """Return answers as scores read from a log, with the settings of the task."""
        given = [low] * len(items) if low is not None else values
        made = from_arrays(
            np.array([given], dtype=np.float64),
            models=[self.target],
            items=items,
            tasks=[self._task] * len(items),
            scale=self.pool.scores.scale,
        )
        return replace(made, items=made.items.assign(**{SETTINGS: self._settings}))

    # -- logs of earlier runs ----------------------------------------------------------------

    def _recover(self, folder: Path) -> None:
        """Take answers that an earlier run logged, and was killed before it recorded them."""
        assert self.pool.run is not None
        record, scores = self.pool.run.evaluation.record, self.pool.scores
        if not self.pool.run.next(self.target):
            return
        unanswered = set(scores.item_ids[record.open(self.target)].tolist())
        for _, header, summaries in _logs_in(folder):
            spec = header.eval
            if spec.eval_id == self.spec.eval_id:
                continue
            if (spec.task, self.pool.target_of(spec.model)) != (self.spec.task, self.target):
                continue
            logged: dict[str, list[Any]] = defaultdict(list)
            for one in summaries:
                logged[str(one.id)].append(one)
            for own_id, epochs in logged.items():
                item = self._items.get(own_id)
                is_whole = len(epochs) == (spec.config.epochs or 1) == self._epochs
                if item in unanswered and is_whole and any(one.scores for one in epochs):
                    for one in epochs:
                        self._settle(own_id, one.epoch, one.scores or {}, "", _spent_on(one))
                    unanswered.discard(item)


def _logs_in(folder: Path) -> Iterator[tuple[Path, Any, list[Any]]]:
    """Yield the logs that fewbench's runs wrote, with header and summaries of samples."""
    from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries

    for path in sorted([*folder.glob("*.eval"), *folder.glob("*.json")]):
        try:
            header = read_eval_log(str(path), header_only=True)
            if MARK in (header.eval.metadata or {}):
                yield path, header, read_eval_log_sample_summaries(str(path))
        except Exception as error:  # of zip, zstd, JSON and pydantic: the log of a killed run
            LOG.warning("%s cannot be read (%s); its samples run again", path, error)


def close_logs(folder: Path, feeds: Sequence[Feed]) -> str | None:
    """Return why tasks ended early: "" if they were interrupted, None if they did not.

    Deletes logs of stopped runs in which no sample was scored: nothing can read them.
    """
    why: str | None = None
    ids = {feed.spec.eval_id for feed in feeds if feed.spec is not None}
    for path, header, summaries in _logs_in(folder):
        if header.eval.eval_id in ids and header.status != "success":
            error = getattr(header.error, "message", None)
            why = f"{header.eval.task}: {first_line(RuntimeError(error))}" if error else why or ""
        is_stopped = header.status in ("started", "cancelled") or not summaries
        if is_stopped and not any(one.scores for one in summaries):
            path.unlink()
    return why


def _spent_on(sample: Any) -> _Lost:
    """Return what a sample cost: dollars, where Inspect knows prices, and tokens."""
    used = (sample.model_usage or {}).values()
    return _Lost(
        cost=sum(one.total_cost or 0.0 for one in used),
        tokens=sum(one.total_tokens for one in used),
    )


def _metric_of(scores: Scores, items: list[str]) -> str | None:
    if "metric" not in scores.items or not items:
        return None
    return str(scores.items["metric"].loc[items[0]]) or None


def inspect_with_sources() -> Any:
    """Return Inspect, if it is there and can choose samples while a task runs."""
    try:
        import inspect_ai
    except ImportError as error:
        raise MissingExtraError(
            "running in Inspect needs inspect-ai, which is not installed",
            hint="pip install 'fewbench[inspect]'",
        ) from error
    if not hasattr(inspect_ai, "SampleSource"):
        raise MissingExtraError(
            f"inspect-ai {inspect_ai.__version__} cannot choose samples while a task runs (it has "
            "no SampleSource)",
            hint="pip install -U inspect-ai",
        )
    return inspect_ai


def _watch_tasks() -> None:
    """Have Inspect say when a task starts, and with which settings."""
    from inspect_ai.hooks import Hooks, TaskStart, hooks

    if _watch_tasks.__dict__.get("done"):
        return

    @hooks(name="fewbench", description="chooses the samples of estimated tasks")
    class Watch(Hooks):
        async def on_task_start(self, data: TaskStart) -> None:
            if (feed := _feed_of(data.spec)) is not None:
                feed.begin(data.spec, data.plan)

    _watch_tasks.__dict__["done"] = True


def _feed_of(spec: Any) -> Feed | None:
    mark = (spec.metadata or {}).get(MARK)
    return FEEDS.get(mark.get("id", "")) if isinstance(mark, dict) else None


def feed_of_task(task: Any) -> Feed | None:
    """Return the feed of a task that `Pool.adapt` made."""
    return _feed_of(task)
