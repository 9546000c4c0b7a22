"""Run any Python function: one item or a batch at a time, plain or async."""

import asyncio
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from fewbench._names import some
from fewbench._warned import issue
from fewbench.errors import RunError, first_line
from fewbench.evaluation import Stop
from fewbench.evaluation.opening import count_items
from fewbench.methods import Method
from fewbench.runners.driving import INTERRUPTED, NO_ANSWER, Answered, OnProgress, Runner, run_with
from fewbench.runners.event_loop import EventLoop
from fewbench.runners.model_facts import of_function
from fewbench.runners.progress import shown
from fewbench.runners.result import RunResult
from fewbench.scores import Average, Benchmark, Scores
from fewbench.scores.roles import as_sources

ScoreFunction = Callable[..., Any]


class FunctionRunner(Runner):
    """Runs functions as models.

    Parameters
    ----------
    score : callable, or mapping of target to callable
        Takes an item id and returns its score, on the scale of the sources; with `batched`, takes
        a list of ids and returns a mapping of id to score. May be async. An item for which it
        raises an error, or returns None, counts as failed.
    batched : bool
    concurrency : int
        Calls at the same time: in threads, or tasks of an event loop if `score` is async.
    """

    name = "function"

    def __init__(
        self,
        score: ScoreFunction | Mapping[str, ScoreFunction],
        *,
        batched: bool = False,
        concurrency: int = 1,
    ) -> None:
        if concurrency < 1:
            raise RunError(
                f"concurrency={concurrency} is too low", hint="give 1 or more", kind="range"
            )
        self._score, self._batched, self._concurrency = score, batched, concurrency
        name = score.__name__ if inspect.isfunction(score) else ""
        self.model_name = name if name.isidentifier() else None  # no lambda
        self.batch = None if batched else 16 * concurrency
        self._loop = EventLoop()

    def model_facts(self, target: str) -> Mapping[str, str]:
        """Return what can be seen of a target's function: code, and weights that it uses."""
        return of_function(self._of(target))

    def prepare(self, scores: Scores, targets: Sequence[str]) -> list[str]:
        """Check that there is a function for every target; RunError if not."""
        lacking = [name for name in targets if not callable(self._of(name))]
        if lacking:
            raise RunError(
                f"no function answers for {some(lacking)}",
                hint="pass score=f, or a mapping of target to function: score={'new': f}",
            )
        return []

    def answer(self, target: str, items: Sequence[str]) -> Answered:
        """Call the function for all items."""
        call = self._of(target)
        reply = Answered(on_answers=self.on_answers)
        try:
            for asked, result in self._results(call, items):
                scores: Mapping[str, Any] = {} if isinstance(result, BaseException) else result
                why = NO_ANSWER
                if isinstance(result, BaseException):
                    why = f"{type(result).__name__}: {first_line(result)}"
                answered = {item: scores[item] for item in asked if scores.get(item) is not None}
                reply.add(answered, {item: why for item in asked if item not in answered})
        except KeyboardInterrupt:
            reply.stopped = INTERRUPTED
        return reply

    def close(self) -> None:
        """Close the event loop."""
        self._loop.close()

    def _of(self, target: str) -> Any:
        return self._score.get(target) if isinstance(self._score, Mapping) else self._score

    def _results(
        self, call: ScoreFunction, items: Sequence[str]
    ) -> Iterator[tuple[list[str], Mapping[str, Any] | BaseException]]:
        """Yield items with their answers, or with the error of the function."""
        if self._batched:
            yield list(items), self._one(call, list(items))
        elif inspect.iscoroutinefunction(inspect.unwrap(call)):
            yield from self._each(call, items)
        elif self._concurrency == 1:
            for item in items:
                yield [item], self._one(call, item)
        else:
            with ThreadPoolExecutor(self._concurrency) as pool:
                left = {pool.submit(self._one, call, item): item for item in items}
                try:
                    while left:
                        for done in wait(left, return_when=FIRST_COMPLETED).done:
                            yield [left.pop(done)], done.result()
                finally:
                    pool.shutdown(wait=False, cancel_futures=True)

    def _one(self, call: ScoreFunction, asked: Any) -> Mapping[str, Any] | BaseException:
        try:
            result = call(asked)
            if inspect.isawaitable(result):
                result = self._loop.run(_awaited(result))
        except Exception as error:  # the user's function can raise anything
            return error
        return _mapping(result, asked, self._batched)

    def _each(
        self, call: ScoreFunction, items: Sequence[str]
    ) -> Iterator[tuple[list[str], Mapping[str, Any] | BaseException]]:
        """Yield items of an async function as they end; between these, its tasks rest."""
        free, ended = asyncio.Semaphore(self._concurrency), asyncio.Queue[Any]()

        async def one(item: str) -> None:
            async with free:
                try:
                    ended.put_nowait(([item], {item: await call(item)}))
                except (Exception, asyncio.CancelledError) as error:
                    ended.put_nowait(([item], error))

        async def start() -> list[asyncio.Task[None]]:
            return [asyncio.create_task(one(item)) for item in items]

        tasks = self._loop.run(start())
        try:
            for _ in items:
                yield self._loop.run(ended.get())
        finally:
            self._loop.run(_ended(tasks))


async def _ended(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _awaited(result: Any) -> Any:
    return await result


def _mapping(result: Any, asked: Any, batched: bool) -> Mapping[str, Any]:
    if not batched:
        return {asked: result}
    if isinstance(result, Mapping):
        return result
    raise RunError(
        f"the function returned {type(result).__name__} for a batch, not a mapping of item to "
        "score",
        hint="return {item: score, …}, or leave out batched=True if it takes one item",
    )


def run(
    scores: Scores | Benchmark,
    method: str | Method = "auto",
    budget: int | str | None = None,
    score: ScoreFunction | Mapping[str, ScoreFunction] | None = None,
    *,
    stop: Stop | None = None,
    targets: Sequence[str] | None = None,
    folder: str | Path | None = None,
    items_of: str | Path | None = None,
    batched: bool = False,
    batch: int | None = None,
    concurrency: int = 1,
    seed: int = 0,
    tries: int = 3,
    accept_fractions: bool = False,
    accept_changes: bool = False,
    retry_skipped: bool = False,
    average: Average | None = None,
    repeats: int = 1,
    on_progress: OnProgress | None = None,
) -> RunResult:
    """Run a model, given as a function, on the items that a method chooses, and estimate its score.

    Parameters
    ----------
    scores : Scores or Benchmark
        Scores of the source models; a benchmark alone (see `read_items`) is run without.
    method : str or Method
        As for `Evaluation`; `auto` chooses one.
    budget : int or str, optional
        Number of items per target, as for `Evaluation`; short for `Stop(items=budget)`. This or
        `stop` is needed, except for a pack or to resume a run.
    score : callable, or mapping of target to callable
        Takes an item id and returns the item's score, on the scale of the sources; with `batched`,
        takes a list of ids and returns a mapping of id to score. May be async. An item for which
        it raises an error, or returns None, is tried again later, and skipped after `tries` times.
        It cannot report a cost: the items' column `cost` counts, or a command's answers do.
    stop : Stop, optional
        When to stop: a number of items, the width of the interval, a cost, or a time.
    targets : sequence of str, optional
        Names of the target models (default: those of the mapping, or the function's name).
    folder : path, optional
        Keep every answer there. Repeat the call to resume after a stop or a crash. A new target
        joins those in the folder: it runs the same items first.
    items_of : path, optional
        FOLDER or FOLDER:TARGET of a run whose items run first, so that `versus` compares pairs of
        answers.
    batched : bool
        Whether `score` takes a list of items.
    batch : int, optional
        Most items per batch (default: 16 for each concurrent call; with `batched`, all that the
        method asks at a time). A crash loses the answers of the last second, or of a batch with
        `batched`.
    concurrency : int
        Calls at the same time, in threads or, of an async function, in tasks.
    seed : int
        Random seed.
    tries : int
        How often an item may fail until it is skipped.
    accept_fractions : bool
        Accept scores between right and wrong where the sources have none.
    accept_changes : bool
        Resume although the function's code, or weights that it uses, have changed.
    retry_skipped : bool
        Ask again for the items that were skipped.
    average : {"micro", "macro"}, optional
        Full score: mean over items, or over task scores (default: that of the scores).
    repeats : int
        How many times to run each item. A new round begins once all items ran, and an item's score
        is the mean of its answers. More items tell more than more runs of few items.
    on_progress : callable, optional
        Called with (run, target) after each batch, in place of the progress line on stderr;
        `run.progress(target)` says how far it is.

    Raises
    ------
    RunError
        If the folder contains a different run or a run of a different function, or another process
        runs there.
    AnswersError
        If a score does not fit the sources.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> table = simulate(21, 60, seed=1)
    >>> sources, new = table.take(models=range(20)), table.take(models=[20])
    >>> right = dict(zip(new.item_ids, new.values[0]))
    >>> run(sources, "random", 10, score=right.get).targets["target"].items_run
    10
    >>> alone = run(sources.benchmark, budget=10, score=right.get)
    >>> alone.estimates["target"].interval_kind
    'exact'
    """
    if isinstance(method, int):
        raise RunError(f"the method is {method}, a number", hint=f"pass budget={method}")
    if score is None:
        raise RunError("no function to run", hint="pass score=f, where f(item) returns a score")
    if budget is not None:
        if stop is not None:
            raise RunError(
                "budget and stop are both given",
                hint="write stop=Stop(items=…, …)",
                kind="conflict",
            )
        stop = Stop(items=count_items(budget, as_sources(scores)))
    with shown("a function", on_progress) as progress:
        result = run_with(
            FunctionRunner(score, batched=batched, concurrency=concurrency),
            scores,
            method,
            stop,
            folder=folder,
            targets=targets or (list(score) if isinstance(score, Mapping) else None),
            items_of=items_of,
            batch=batch,
            seed=seed,
            tries=tries,
            accept_fractions=accept_fractions,
            accept_changes=accept_changes,
            retry_skipped=retry_skipped,
            average=average,
            repeats=repeats,
            **progress,
        )
    issue(result.warnings)
    return result
