"""Gathering what is asked at the same time into batches for one thread."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

WAIT = 0.003  # seconds for others to join a batch; a pass of a model takes longer


@dataclass(frozen=True)
class Job:
    """Something to be computed: log-probabilities, or a text where none are wanted.

    Parameters
    ----------
    ids : tuple of int
        The tokens that the model reads.
    wanted : tuple of (int, int)
        Where a token's log-probability is asked for: the position that it comes after, its id.
    stops : tuple of str
        Texts that end what is written.
    most : int
        Tokens to write at most.
    """

    ids: tuple[int, ...]
    wanted: tuple[tuple[int, int], ...] = ()
    stops: tuple[str, ...] = ()
    most: int = 0

    def like(self, other: "Job") -> bool:
        """Whether both can share a batch."""
        mine = (bool(self.wanted), self.stops, self.most)
        return mine == (bool(other.wanted), other.stops, other.most)


class Batches:
    """Runs jobs in batches, one after another, in a thread of its own.

    Parameters
    ----------
    run : callable
        Computes the results of jobs that can share a batch.
    most : int
        Jobs in a batch.
    """

    def __init__(self, run: Callable[[Sequence[Job]], Sequence[Any]], most: int) -> None:
        self._run = run
        self._most = most
        self._waiting: list[tuple[Job, asyncio.Future[Any]]] = []
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="fewbench-model")

    async def ask(self, job: Job) -> Any:
        """Return a job's result, or raise what its batch raised."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting.append((job, future))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._drain())
        return await future

    async def close(self) -> None:
        """End after the batch that is being computed; what waits is cancelled."""
        for _, future in self._waiting:
            future.cancel()
        self._waiting.clear()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        self._thread.shutdown()

    async def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(WAIT)
            batch = self._next()
            if not batch:
                return
            jobs = [job for job, _ in batch]
            try:
                results = await loop.run_in_executor(self._thread, self._run, jobs)
            except Exception as error:
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                continue
            for (_, future), result in zip(batch, results, strict=True):
                if not future.done():
                    future.set_result(result)

    def _next(self) -> list[tuple[Job, asyncio.Future[Any]]]:
        """Take the next batch: jobs that can share it, and begin alike."""
        self._waiting = [pair for pair in self._waiting if not pair[1].done()]
        if not self._waiting:
            return []
        first = self._waiting[0][0]
        alike = [pair for pair in self._waiting if pair[0].like(first)]
        alike.sort(key=lambda pair: pair[0].ids)
        batch = alike[: self._most]
        taken = {id(future) for _, future in batch}
        self._waiting = [pair for pair in self._waiting if id(pair[1]) not in taken]
        return batch
