"""Early stopping in Inspect: a user's own task ends once its interval is narrow enough.

Inspect calls the object before and after every sample (`inspect_ai.util.EarlyStopping`). The
samples run in a random order, so that those that have run are a random sample of the data set. The
interval is computed between batches, when no sample is running: quick samples would otherwise count
before slow ones.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from weakref import WeakValueDictionary

from fewbench._lazy import pandas as pd
from fewbench._names import some
from fewbench.errors import RunError
from fewbench.evaluation import Estimate, Evaluation, Stop
from fewbench.evaluation.journal import has_evaluation
from fewbench.readers.harnesses.inspect_logs.header import metrics_of
from fewbench.readers.harnesses.inspect_logs.scores import scores_of
from fewbench.runners.inspect.feed import inspect_with_sources
from fewbench.scores import Benchmark

RUNNING: WeakValueDictionary[str, "EarlyStopping"] = WeakValueDictionary()  # by id of the eval


class EarlyStopping:
    """End a task of Inspect once the interval of its score is narrow enough.

    Pass it as `early_stopping` of a `Task`, whose data set is shuffled. Each task and model needs
    an object of its own. With epochs, the first one decides which samples run, and an item's score
    is the mean of its epochs.

    Parameters
    ----------
    stop : Stop or float
        When to end: a half width of the interval on the scale 0 to 1, its level, and a largest
        number of samples. A number is a half width.
    group : str, optional
        Field of the samples' metadata that names their task, for estimates by task.
    metric : str, optional
        Which value of the scorers: SCORER, or SCORER.KEY (default: the only one).
    folder : path, optional
        Where to save the evaluation at the end.

    Attributes
    ----------
    evaluation : Evaluation
        The evaluation, once the task has started.

    Raises
    ------
    MissingExtraError
        If inspect-ai is not installed, or too old.
    RunError
        In `eval`, before any sample runs: if the samples are not in random order, no scorer gives
        the metric, or the folder has an evaluation.

    Examples
    --------
    >>> from inspect_ai import Task
    >>> from inspect_ai.dataset import MemoryDataset, Sample
    >>> data = MemoryDataset([Sample(id=n, input=f"{n} + 1 =") for n in range(500)])
    >>> data.shuffle(seed=1)
    >>> task = Task(data, early_stopping=EarlyStopping(0.05))
    """

    evaluation: Evaluation

    def __init__(
        self,
        stop: Stop | float,
        *,
        group: str | None = None,
        metric: str | None = None,
        folder: str | Path | None = None,
    ) -> None:
        inspect_with_sources()
        self._stop = stop if isinstance(stop, Stop) else Stop(half_width=stop)
        others = (self._stop.cost, self._stop.tokens, self._stop.seconds)
        if self._stop.half_width is None or others != (None, None, None):
            raise RunError(
                f"EarlyStopping cannot keep this limit: {self._stop.describe()}",
                hint="give a half width, and a number of items if you like; Inspect has limits on "
                "cost, tokens and time of its own",
            )
        self._group, self._metric, self._folder = group, metric, folder
        self._target, self._is_running, self._is_over = "", False, False
        self._chosen, self._out = set[str](), set[str]()  # to run; without an answer yet
        self._changed: Any = None

    @property
    def estimate(self) -> Estimate:
        """The estimate from the samples that have run."""
        return self.evaluation.estimate(self._stop.level)[self._target]

    # -- called by Inspect -------------------------------------------------------------------

    async def start_task(self, task: Any, samples: Sequence[Any], epochs: int) -> str:
        """Check the task, and begin an evaluation of its samples in their order."""
        if self._is_running:
            raise RunError(
                "two running tasks or models share one EarlyStopping",
                hint="make the task in a function with @task, which makes one for each of them",
            )
        self._check(task)
        ids = [str(sample.id) for sample in samples]
        names = [self._task_of(sample, task.task) for sample in samples]
        benchmark = Benchmark(pd.DataFrame({"task": names}, index=pd.Index(ids, dtype=object)))
        self._target = str(task.model)
        limits = self._stop.model_copy(
            update={"items": min(self._stop.items or len(ids), len(ids))}
        )
        drawn = Evaluation(benchmark, "random", targets=[self._target], stop=limits).subset
        assert drawn is not None
        # A sample as random as the one drawn, in the order in which Inspect runs it.
        order = drawn.model_copy(update={"items": tuple(ids[: len(drawn.items)])})
        self.evaluation = Evaluation(
            benchmark, "random", targets=[self._target], stop=limits, subset=order
        )
        self._chosen, self._out = set(), set()
        self._is_running, self._is_over = True, False
        _watch_failures()
        RUNNING[task.eval_id] = self
        return "fewbench"

    async def schedule_sample(self, id: str | int, epoch: int) -> Any:
        """Return None for a sample that is to run, once this is known, else why it is not."""
        import anyio
        from inspect_ai.util import EarlyStop

        item = str(id)
        while item not in self._chosen:
            if self._is_over:
                return EarlyStop(id=id, epoch=epoch, reason=f"fewbench: {self._stop.describe()}")
            if not self._out:
                self._look()
            else:
                self._changed = self._changed or anyio.Event()
                await self._changed.wait()
        return None

    async def complete_sample(self, id: str | int, epoch: int, scores: Mapping[str, Any]) -> None:
        """Take up the score of one epoch of a sample."""
        item = str(id)
        if epoch > 1 and item not in self._chosen:
            return
        self._chosen.add(item)  # a retried eval completes reused samples that it did not schedule
        given = scores_of({name: one.score for name, one in scores.items()})
        value = given.get(self._metric or "")
        if value is None:
            self._settle(item, is_answered=False)
            return
        if not isinstance(value, float):
            raise RunError(
                f"{self._metric!r} is {value!r}, not one number", hint="name a different metric"
            )
        times = self.evaluation.record.times(self._target)
        repeat = 1 + int(times[self.evaluation.scores.positions([item])[0]])
        self.evaluation.tell(self._target, {item: value}, repeat=repeat)
        self._settle(item, is_answered=True)

    async def complete_task(self) -> dict[str, Any]:
        """Return the estimate, for the log, and save the evaluation."""
        self._is_running = False
        if not len(self.evaluation.record.answered(self._target)):
            return {}
        if self._folder is not None:
            self.evaluation.save(self._folder)
        estimate = self.estimate
        return {
            "note": "the accuracy in this log is the mean of the samples that ran",
            "score": estimate.score,
            "low": estimate.interval.low,
            "high": estimate.interval.high,
            "level": self._stop.level,
            "items_run": len(self.evaluation.record.answered(self._target)),
            "items_total": self.evaluation.scores.n_items,
            "warnings": list(estimate.warnings),
        }

    # -- the rest ----------------------------------------------------------------------------

    def _check(self, spec: Any) -> None:
        if not spec.dataset.shuffled:
            raise RunError(
                f"the samples of task {spec.task!r} are not in random order: the first ones may "
                "be easier",
                hint="shuffle them: dataset.shuffle(seed=1), or --sample-shuffle 1",
            )
        if spec.config.limit is not None or spec.config.sample_id is not None:
            raise RunError(
                "--limit and --sample-id cannot be used: the estimate is of all samples",
                hint="leave them out; Stop(…, items=100) sets the most samples",
            )
        given = metrics_of(SimpleNamespace(eval=spec))
        if self._metric is None and len(given) == 1 and not given[0].endswith("*"):
            self._metric = given[0]
        is_known = not any(name.endswith("*") for name in given)
        if self._metric is None or (is_known and self._metric not in given):
            problem = "metric is needed" if self._metric is None else f"no {self._metric!r}"
            raise RunError(
                f"task {spec.task!r}: {problem}; its scorers give {some(given)}",
                hint=f"name one: Stop(…, metric={given[0] if given else 'SCORER'!r})",
            )
        if self._folder is not None and has_evaluation(Path(self._folder)):
            raise RunError(f"{self._folder} has an evaluation", hint="use another folder")

    def _task_of(self, sample: Any, name: str) -> str:
        if self._group is None:
            return name
        if self._group not in (sample.metadata or {}):
            raise RunError(
                f"sample {sample.id!r} has no {self._group!r} in its metadata",
                hint="add it to every sample, or leave out group",
            )
        return str(sample.metadata[self._group])

    def _look(self) -> None:
        """Let the next batch run, or end the task."""
        batch = self.evaluation.ask().get(self._target, [])
        self._chosen.update(batch)
        self._out.update(batch)
        self._is_over = not batch
        self._announce()

    def _settle(self, item: str, *, is_answered: bool) -> None:
        is_first = item in self._out
        self._out.discard(item)
        if is_first and not is_answered:
            self.evaluation.skip(self._target, [item])
        self._announce()

    def fail(self, sample: Any) -> None:
        """Take up that a sample failed; Inspect then completes it without a score."""
        if str(sample.id) in self._out:
            self._settle(str(sample.id), is_answered=False)

    def _announce(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None


@cache
def _watch_failures() -> None:
    """Have Inspect report failed samples, which early stopping is not told of; once is enough."""
    from inspect_ai.hooks import Hooks, SampleEnd, hooks

    @hooks(name="fewbench-stop", description="counts failed samples of tasks that stop early")
    class WatchFailures(Hooks):
        async def on_sample_end(self, data: SampleEnd) -> None:
            stopper = RUNNING.get(data.eval_id)
            if stopper is not None and data.sample.error is not None and data.sample.epoch == 1:
                stopper.fail(data.sample)
