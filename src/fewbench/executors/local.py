"""Calls in this process, in processes of this machine, or on the user's own executor."""

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any

from fewbench.errors import ClusterError, first_line
from fewbench.executors.calls import Lost, Parcel, Pool, T, call

LOOK = 1.0  # seconds between looks of a worker at whether its parent lives
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}


class InProcess(Pool):
    """One call after another in this process."""

    has_workers = False

    def each(
        self, function: Callable[[Any, Any], T], shared: Any, items: Sequence[Any]
    ) -> Iterator[tuple[int, T | Lost]]:
        """Make the calls in order."""
        for position, item in enumerate(items):
            yield position, function(shared, item)

    def submit(self, parcel: Any, packed: bytes) -> "Future[Any]":
        """Nothing is submitted here."""
        raise NotImplementedError


class Processes(Pool):
    """Processes of this machine, by joblib's loky; they start with the first call."""

    ended = (BrokenExecutor,)

    def __init__(self, workers: int) -> None:
        self._workers, self.room = workers, 2 * workers
        self._executor: Any = None

    def submit(self, parcel: Parcel, packed: bytes) -> "Future[Any]":
        """Start a call; the processes start again where one ended."""
        from joblib.externals.loky.process_executor import ProcessPoolExecutor

        for _ in range(2):
            if self._executor is None:
                self._executor = ProcessPoolExecutor(
                    self._workers, env=ONE_THREAD, initializer=_end_with, initargs=(os.getpid(),)
                )
            try:
                future: Future[Any] = self._executor.submit(call, parcel, packed)
                return future
            except BrokenExecutor:
                self.close()
        raise ClusterError("processes end as soon as they start", hint="use one worker")

    def reason(self, error: BaseException) -> str:
        """Return the exit code, which loky puts in a second line of its message."""
        code = re.search(r"\{(.+?)\}", str(error))
        how = f"exit {code[1]}" if code else first_line(error)[:80]
        return how + (", as for lack of memory" if "SIGKILL" in how else "")

    def close(self) -> None:
        """End the processes, also in the middle of a call."""
        if self._executor is not None:
            self._executor.shutdown(wait=True, kill_workers=True)
            self._executor = None


def _end_with(parent: int) -> None:
    """End this worker once its parent has ended: a killed one cannot tell its workers."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class FuturesPool(Pool):
    """The user's own executor of this machine, such as a ProcessPoolExecutor; it stays open."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def submit(self, parcel: Parcel, packed: bytes) -> "Future[Any]":
        """Start a call."""
        try:
            return self._executor.submit(call, parcel, packed)
        except BrokenExecutor as error:
            raise self.fault(error) from error

    def fault(self, error: BaseException) -> BaseException:
        """Return ClusterError if the executor broke, which it cannot recover from."""
        if not isinstance(error, BrokenExecutor):
            return super().fault(error)
        return ClusterError(
            f"the executor broke ({first_line(error)})",
            hint="make a new one and start again, or give a number of workers",
        )
