"""An event loop that is kept between calls, so that connections stay open."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self, TypeVar

Outcome = TypeVar("Outcome")


class EventLoop:
    """Runs coroutines to their end, one after another, in one event loop.

    Where an event loop runs already, as in a notebook, it works in a thread of its own.

    Examples
    --------
    >>> async def double(number):
    ...     return 2 * number
    >>> with EventLoop() as loop:
    ...     loop.run(double(4)), loop.run(double(5))
    (8, 10)
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._thread: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, work: Coroutine[Any, Any, Outcome]) -> Outcome:
        """Return the result of a coroutine. Ctrl-C cancels it and raises KeyboardInterrupt."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            if self._thread is None:
                return self._runner.run(work)
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1)
        started: list[asyncio.Task[Outcome]] = []

        async def noted() -> Outcome:
            task = asyncio.current_task()
            assert task is not None
            started.append(task)
            return await work

        running = self._thread.submit(self._runner.run, noted())
        try:
            return running.result()
        except BaseException:
            if not running.done() and started:  # only the main thread gets Ctrl-C
                self._runner.get_loop().call_soon_threadsafe(started[0].cancel)
            raise

    def close(self) -> None:
        """Close the loop."""
        if self._thread is None:
            self._runner.close()
            return
        self._thread.submit(self._runner.close).result()
        self._thread.shutdown()
