"""Tasks of Inspect whose samples fewbench chooses: ask and tell inside one eval.

Inspect asks a `Feed` for samples whenever none is running (`SampleSource`), and tells it of every
sample that ends. The solver, the scorer and everything else are the task's own. Several feeds may
share a run (`fewbench.runners.inspect.pool`): a benchmark may consist of several tasks, and several
models may run at the same time.
"""

import logging
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._memory import check_zip
from fewbench._names import some
from fewbench._types import FloatArray
from fewbench.errors import FewbenchError, MissingExtraError, RunError
from fewbench.evaluation.entries import AnswerSet
from fewbench.evaluation.opening import COST
from fewbench.public import public_results
from fewbench.readers.harness import key_of, key_text
from fewbench.readers.harnesses.inspect_logs.header import (
    MARK,
    metrics_of,
    scorer_of,
    task_settings_of,
)
from fewbench.readers.harnesses.inspect_logs.samples import answer_key, option_table
from fewbench.readers.harnesses.inspect_logs.scores import (
    describe_reduction,
    score_samples,
)
from fewbench.readers.options import OptionTable, compared, softmax
from fewbench.runners.checks import check_alike, check_score
from fewbench.runners.driving import Answered
from fewbench.runners.inspect.pool import RunningTask, SharedRun
from fewbench.runners.inspect.samples import match_samples, tasks_in, with_ids
from fewbench.runners.run import Run
from fewbench.runners.servers import failure_of, in_words
from fewbench.scores import Benchmark, Scores, from_arrays
from fewbench.scores.conditions import NAMES, SCORING, compare_targets, join_settings
from fewbench.scores.groups import harness_tasks
from fewbench.scores.repeats import MEAN, Repeats, reduce_answers
from fewbench.scores.table import KEYS, ROUTE, SETTINGS

LOG = logging.getLogger(__name__)
BEFORE = ("the beginning of this run", "the task now")  # names where there are no sources
LOGGED = "the logs of this run"
AT_ONCE = 10
"""Samples that run at a time under a limit on cost or tokens, unless the user sets a number."""
FEEDS: WeakValueDictionary[str, "Feed"] = WeakValueDictionary()  # by the mark of their tasks


def adapt(pool: SharedRun, task: Any) -> Any:
    """Return a task of Inspect that runs the samples which the pool's run asks for.

    Raises
    ------
    RunError
        If its samples are made while it runs.
    MissingExtraError
        If inspect-ai is not installed, or too old.
    """
    inspect_ai = inspect_with_sources()
    if task.sample_source is not None:
        raise RunError(
            f"the samples of task {task.name!r} are made while it runs",
            hint="pass the plain task, with a data set, and not one that estimated returned",
        )
    _watch_tasks()
    feed = Feed(pool, task.dataset)
    pool.feeds.append(feed)
    FEEDS[feed.mark] = feed
    source = inspect_ai.SampleSource.from_samples(
        [],
        next_samples=feed.next_samples,
        sample_complete=feed.sample_complete,
        sample_abandoned=feed.sample_abandoned,
    )
    mark = {
        "id": feed.mark,
        "targets": list(pool.settings.targets),
        "note": "samples chosen by fewbench: their mean is not an estimate",
    }
    return inspect_ai.task_with(
        task,
        dataset=source,
        metadata={**(task.metadata or {}), MARK: mark},
        tags=[*(task.tags or []), MARK],
    )


class Feed(RunningTask):
    """The samples of one task of Inspect, given out as the run asks for their items."""

    def __init__(self, pool: SharedRun, dataset: Sequence[Any]) -> None:
        super().__init__(dataset)
        self.pool, self.mark = pool, uuid4().hex
        self._host: Any = None  # the coroutine of Inspect that asks for samples
        self._has_metric, self._needs_prices = False, False
        self._seen: dict[str, dict[int, Any]] = {}

    def begin(self, spec: Any, plan: Any) -> None:
        """Take up what Inspect says at the start of the task, also of a retry."""
        self.spec, self.plan = spec, plan
        self.is_checked = self.is_over = False
        self.given, self.out, self._seen = set(), set(), {}

    def _watch_end(self) -> None:
        """Notice the end of Inspect's task: a failure of the task has no other sign."""
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
        """Return the samples to run next, or None at the end."""
        self._watch_end()
        try:
            if not self.is_checked:
                await self.pool.learn_items()
                if self.pool.error is None:
                    self._check()
                if self._needs_prices:
                    await self.pool.check_all()
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
        self._settle(str(sample.id), sample.epoch, sample, failure_of(sample))

    async def sample_abandoned(self, sample: Any, epoch: int) -> None:
        """Take up an epoch that was cancelled before it began."""
        self._settle(str(sample.id), epoch, None, "cancelled")

    def _settle(self, own_id: str, epoch: int, sample: Any, failure: str) -> None:
        """Take up what became of an epoch, and of the sample once all epochs have ended."""
        item = self._items.get(own_id)
        if item is None or self.pool.error is not None:
            return
        epochs = self._seen.setdefault(own_id, {})
        epochs[epoch] = sample
        if len(epochs) < self._epochs:
            return
        self.out.discard(item)
        samples = [ended for ended in self._seen.pop(own_id).values() if ended is not None]
        answered = _spent_on(samples)
        try:
            scored = score_samples(samples, self.spec.config.epochs_reducer).items
            value = self._value(scored[0].scores) if scored else None
        except FewbenchError as error:
            self.pool.fail(error)
            return
        if value is None:
            self.pool.lose(self.target, item, failure, answered)
            return
        chances = self._chances(option_table(samples[0]) if self._epochs == 1 else None)
        text = getattr(getattr(sample, "output", None), "completion", None)
        answer = from_arrays(
            np.array([[value]]), models=[self.target], items=[item],
            tasks=[self.pool.scores.items["task"][item]],
            probabilities=chances, scale=self.pool.scores.scale,
        )  # fmt: skip
        answer = answer.changed(repeats=self._repeats(scored[0].trials))
        asked = self._asked({item: self.samples[item]}, self._settings)
        asked_as = asked.items[["harness", SETTINGS, KEYS]]
        answered.answers = replace(answer, items=answer.items.join(asked_as))
        answered.replies = {item: scored[0].reply} if scored[0].reply else None
        answered.texts = None if text is None else {item: text}
        self.pool.take(self.target, item, answered)
        if self._needs_prices and (unpriced := _unpriced(samples)):
            text = f"the limit on cost cannot be kept: no price of {some(unpriced)}"
            self.pool.fail(RunError(text, hint=_how_to_price(unpriced), kind="missing"))

    def _repeats(self, trials: Sequence[Mapping[str, Any]]) -> Repeats | None:
        """Return how many epochs a mean is of, and how far they vary."""
        values = [self._value(dict(scores)) for scores in trials]
        unit = self.pool.scores.scale.to_unit([value for value in values if value is not None])
        cells = np.zeros(len(unit), dtype=np.intp)
        _, counts, variances = reduce_answers(cells, unit, 1, MEAN)
        return Repeats.from_counts(counts[None], variances[None])

    def _chances(self, options: OptionTable | None) -> FloatArray | None:
        """Return option probabilities, shape (1, 1, options), if the sources have them."""
        if options is None or self.pool.scores.probabilities is None:
            return None
        columns = OptionTable.columns([options])
        chances = softmax(compared(columns["options"], self._metric or ""), columns["counts"])
        return None if np.isnan(chances).any() else chances[None].astype(np.float64)

    def _value(self, values: dict[str, Any]) -> float | None:
        """Return the score of a sample under the sources' metric, or None if it has none."""
        metric = self._metric
        if metric is None and len(values) == 1:
            metric = next(iter(values))
        if metric not in values:
            if self._has_metric or not values:
                return None
            problem = "the sources do not say which metric" if metric is None else f"no {metric!r}"
            raise self._no_metric(problem, list(values))
        self._has_metric = True
        value = values[metric]
        if not isinstance(value, float):
            raise RunError(
                f"task {self.spec.task!r}: {metric!r} is {value!r}, not one number",
                hint="name a different metric",
            )
        check_score(value, self.pool.scores, f"task {self.spec.task!r}: {metric!r}")
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
                "--limit and --sample-id (in Python limit and sample_id) cannot be used: fewbench "
                "chooses the samples",
                hint="leave them out; say how many items to run with fewbench's own limits",
            )
        if config.log_samples is False:
            raise RunError(
                "answers cannot be checked without samples in the log",
                hint="leave out --no-log-samples",
            )
        self.target = pool.target_of(spec.model)
        tasks = tasks_in(pool.scores, spec.task)
        self._task = tasks[0] if len(tasks) == 1 else spec.task
        self.samples, notes = match_samples(pool.scores, tasks, with_ids(self.dataset))
        notes += pool.notes
        self._items = {str(sample.id): item for item, sample in self.samples.items()}
        if not pool.scores.n_models:
            own_tasks = dict.fromkeys(harness_tasks(pool.scores.items))
            names = [task.rpartition("/")[2] for task in own_tasks]
            notes += public_results("inspect", names)
        self._epochs = config.epochs or 1
        if self._epochs > 1:
            how = describe_reduction(config.epochs_reducer, self._epochs)
            notes.append(f"task {self._task!r}: {how}")
        self._metric = self._chosen_metric()
        self._check_metric()
        self._settings = self._settings_of(self.header)
        self._check_conditions()
        run = pool.open(spec)
        if self.target not in run.targets:
            raise RunError(
                f"{self.target!r} is not a target of this run ({some(run.targets)})",
                hint="run one model per folder, or name the target",
            )
        self._check_limits(run)
        notes += self._check_own(run)
        run.note(notes)
        self.is_checked = True
        pool.has_begun = pool.has_begun or not self._needs_prices
        if pool.settings.logs is not None:
            self._recover(pool.settings.logs)

    def _check_limits(self, run: Run) -> None:
        """Raise RunError for a limit on cost without prices; run few samples at a time."""
        from inspect_ai.model import get_model, get_model_info

        models = [get_model(), *(get_model(role=role) for role in self.spec.model_roles or ())]
        infos = {str(model): get_model_info(model) for model in models}
        unpriced = [name for name, info in infos.items() if info is None or info.cost is None]
        run.check_limits(["tokens"] if unpriced else ["cost", "tokens"], _how_to_price(unpriced))
        self._needs_prices = run.stop.cost is not None and COST not in run.evaluation.scores.items
        config, asked = self.spec.config, self.spec.model_generate_config
        at_once = config.max_samples or asked.max_connections or AT_ONCE
        run.limit_batches(at_once, self._epochs)

    def _chosen_metric(self) -> str | None:
        """Return the metric that the user named, or that of the scores."""
        wanted, recorded = (
            self.pool.settings.metric,
            _metric_of(self.pool.scores, list(self.samples)),
        )
        named = wanted.get(self._task) if isinstance(wanted, Mapping) else wanted
        if self.pool.scores.n_models or recorded is None:
            return named or recorded
        if named and recorded not in [name.strip() for name in named.split(",")]:
            raise RunError(
                f"the run in this folder scores task {self._task!r} by {recorded!r}, not {named!r}",
                hint="use the same --metric to resume, or another folder",
            )
        return recorded

    def _check_metric(self) -> None:
        """Raise RunError if no scorer gives the metric, as far as the task shows this
        beforehand.
        """
        given = metrics_of(self.header)
        if not given or any(name.endswith("*") for name in given):
            return
        if self._metric is None and len(given) > 1:
            problem = "the sources do not say which metric"
        elif self._metric is not None and self._metric not in given:
            problem = f"no {self._metric!r}"
        else:
            return
        raise self._no_metric(problem, given)

    def _no_metric(self, problem: str, given: Sequence[str]) -> RunError:
        return RunError(
            f"task {self.spec.task!r}: {problem}; its scorers give {some(given)}",
            hint="score with the scorer of the sources, or name one of these with --metric "
            "(in Python metric=…)",
        )

    def _settings_of(self, header: Any) -> str:
        """Return the settings of a run of the task, with the scorer of the sources' metric."""
        settings = dict(task_settings_of(header))
        scorer = None if self._metric is None else scorer_of(header, self._metric)
        return join_settings([settings | ({f"{SCORING}metric": scorer} if scorer else {})])

    def _check_conditions(self) -> None:
        """Compare with the source models; without these, only the scoring with that of the run."""
        sources, has_sources = self.pool.scores, bool(self.pool.scores.n_models)
        check_alike(
            sources, self._asked(self.samples, self._settings), self.samples,
            NAMES if has_sources else BEFORE,
            accept=self.pool.settings.accept_differences, only_scoring=not has_sources,
        )  # fmt: skip

    def _check_own(self, run: Run) -> Sequence[str]:
        """Compare a target with its answers so far; return how it differs from the first target."""
        then = {
            entry.items[at]: text
            for entry in run.evaluation.entries
            if isinstance(entry, AnswerSet) and entry.target == self.target
            for text, places in entry.conditions.get(SETTINGS, {}).items()
            for at in places
            if entry.items[at] in self.samples
        }
        now, accept = self._asked(self.samples, self._settings), self.pool.settings
        if then:
            before = self._asked({item: self.samples[item] for item in then}, [*then.values()])
            check_alike(before, now, then, BEFORE, accept=accept.accept_differences)
        if self.pool.scores.n_models:
            return ()
        return compare_targets(self.pool.scores, now, self.samples).notes

    def _asked(self, samples: Mapping[str, Any], settings: str | list[str]) -> Benchmark:
        """Return items with their keys and the settings of the task, as an import has them."""
        columns = {
            "task": harness_tasks(self.pool.scores.items.loc[list(samples)]).to_numpy(),
            "harness": "inspect",
            SETTINGS: settings,
            KEYS: [key_text(key_of(*answer_key(sample))) for sample in samples.values()],
        }
        return Benchmark(pd.DataFrame(columns, index=pd.Index(samples, dtype=object)))

    # -- logs of earlier runs ----------------------------------------------------------------

    def _recover(self, folder: Path) -> None:
        """Take answers that an earlier run logged, and was killed before it recorded them."""
        from inspect_ai.log import read_eval_log_sample

        assert self.pool.run is not None
        record, scores = self.pool.run.evaluation.record, self.pool.scores
        if not self.pool.run.next(self.target):
            return
        unanswered = set(scores.item_ids[record.open(self.target)].tolist())
        for path, header, summaries in kept_logs(folder):
            spec = header.eval
            if spec.eval_id == self.spec.eval_id:
                continue
            if self.target not in spec.metadata[MARK]["targets"]:
                continue
            if (spec.task, self.pool.target_of(spec.model)) != (self.spec.task, self.target):
                continue
            logged: dict[str, list[Any]] = defaultdict(list)
            for summary in summaries:
                logged[str(summary.id)].append(summary)
            ran = {
                self._items[sample]: logged[sample][0] for sample in logged if sample in self._items
            }
            if ran:
                then = self._asked(ran, self._settings_of(header))
                now, names = self._asked(self.samples, self._settings), (LOGGED, BEFORE[1])
                accept = self.pool.settings.accept_differences
                check_alike(then, now, ran, names, accept=accept)
            for own_id, epochs in logged.items():
                item = self._items.get(own_id)
                is_whole = len(epochs) == (spec.config.epochs or 1) == self._epochs
                if item in unanswered and is_whole and any(epoch.scores for epoch in epochs):
                    for summary in epochs:  # summaries lack how replies ended
                        sample = read_eval_log_sample(str(path), summary.id, summary.epoch)
                        self._settle(own_id, summary.epoch, sample, "")
                    unanswered.discard(item)


def kept_logs(folder: Path) -> Iterator[tuple[Path, Any, list[Any]]]:
    """Yield the logs that fewbench's runs wrote, with header and summaries of samples."""
    from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries

    for path in sorted([*folder.glob("*.eval"), *folder.glob("*.json")]):
        try:
            if path.suffix == ".eval":
                check_zip(path)
            header = read_eval_log(str(path), header_only=True)
            if MARK in (header.eval.metadata or {}):
                yield path, header, read_eval_log_sample_summaries(str(path))
        except Exception as error:  # of zip, zstd, JSON and pydantic: the log of a killed run
            LOG.warning("%s cannot be read (%s); its samples run again", path, error)


def close_logs(folder: Path, evals: Container[str]) -> str | None:
    """Return why evals (by id) ended early: "" if they were interrupted, None if they did not.

    Deletes logs of stopped runs in which no sample was scored: nothing can read them.
    """
    why: str | None = None
    for path, header, summaries in kept_logs(folder):
        if header.eval.eval_id in evals and header.status != "success":
            error = getattr(header.error, "message", None)
            why = f"{header.eval.task}: {in_words(error)}" if error else why or ""
        is_stopped = header.status in ("started", "cancelled") or not summaries
        if is_stopped and not any(summary.scores for summary in summaries):
            path.unlink()
    return why


def _spent_on(samples: Iterable[Any]) -> Answered:
    """Return what samples cost: dollars, where Inspect has prices, and tokens."""
    answered = Answered()
    for sample in samples:
        for usage in (sample.model_usage or {}).values():
            answered.count(usage.total_cost, usage.total_tokens)
    return answered


def _unpriced(samples: Iterable[Any]) -> list[str]:
    """Return the models that samples used and that have no price."""
    used = [pair for sample in samples for pair in (sample.model_usage or {}).items()]
    return list(dict.fromkeys(name for name, usage in used if usage.total_cost is None))


def _how_to_price(models: Sequence[str]) -> str:
    return (
        f"give the prices of {some(models)}: --model-cost-config FILE after -- (in Python "
        "model_cost_config= of eval); docs/how-to/inspect.md has an example"
    )


def _metric_of(scores: Scores, items: list[str]) -> str | None:
    """Return the metric of the scores, or None if they come from a different harness."""
    rows = scores.items
    ran_in = set(rows[ROUTE] if ROUTE in rows else rows.get("harness", ()))
    if "metric" not in rows or not items or ran_in - {"inspect", ""}:
        return None
    return str(scores.items["metric"].loc[items[0]]) or None


def inspect_with_sources() -> Any:
    """Return Inspect if it is there and can choose samples while a task runs."""
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


@cache
def _watch_tasks() -> None:
    """Have Inspect say when a task starts, and with which settings; once is enough."""
    from inspect_ai.hooks import Hooks, TaskStart, hooks

    @hooks(name="fewbench", description="chooses the samples of estimated tasks")
    class Watch(Hooks):
        async def on_task_start(self, data: TaskStart) -> None:
            if (feed := feed_of(data.spec)) is not None:
                feed.begin(data.spec, data.plan)


def feed_of(task: Any) -> Feed | None:
    """Return the feed of a task that `adapt` made, or of Inspect's specification of it."""
    mark = (task.metadata or {}).get(MARK)
    return FEEDS.get(mark.get("id", "")) if isinstance(mark, dict) else None
