"""Calls in this process, in processes of this machine, or on the user's own executor."""

import re
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, as_completed, wait
from typing import Any

from fewbench.errors import ClusterError, first_line
from fewbench.executors.calls import MOST_DEATHS, Lost, Parcel, Pool, T, call, packed_call

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


class Processes(Pool):
    """Processes of this machine, by joblib's loky; they start with the first call."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._executor: Any = None

    def each(
        self, function: Callable[[Any, Any], T], shared: Any, items: Sequence[Any]
    ) -> Iterator[tuple[int, T | Lost]]:
        """Make the calls; those that may have ended a process run again, each of them alone."""
        todo, suspects = deque(range(len(items))), deque[int]()
        deaths: Counter[int] = Counter()
        running: dict[Future[Any], int] = {}
        if not items:
            return
        with tempfile.TemporaryDirectory(prefix="fewbench-") as folder:
            parcel = Parcel.in_file(shared, folder)
            while todo or suspects or running:
                # Which of the running calls ended the process is not known.
                source, most = (suspects, 1) if suspects else (todo, 2 * self._workers)
                while source and len(running) < most:
                    position = source.popleft()
                    running[self._submit(parcel, packed_call(function, items[position]))] = position
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                errors = [future.exception() for future in done]
                ended = next((one for one in errors if isinstance(one, BrokenExecutor)), None)
                if ended is not None:
                    done, _ = wait(running)
                for future in done:
                    if not isinstance(future.exception(), BrokenExecutor):
                        yield running.pop(future), future.result()
                if ended is None:
                    continue
                self.close()
                for position in sorted(running.values()):
                    deaths[position] += 1
                    if deaths[position] < MOST_DEATHS:
                        suspects.append(position)
                    else:
                        yield position, Lost(_reason(ended))
                running.clear()

    def _submit(self, *what: Any) -> "Future[Any]":
        from joblib.externals.loky.process_executor import ProcessPoolExecutor

        for _ in range(2):
            if self._executor is None:
                self._executor = ProcessPoolExecutor(self._workers, env=ONE_THREAD)
            try:
                future: Future[Any] = self._executor.submit(call, *what)
                return future
            except BrokenExecutor:  # a process ended while it had nothing to do
                self.close()
        raise ClusterError("processes end as soon as they start", hint="use one worker")

    def close(self) -> None:
        """End the processes, also in the middle of a call."""
        if self._executor is not None:
            self._executor.shutdown(wait=True, kill_workers=True)
            self._executor = None


def _reason(error: BaseException) -> str:
    """Return why a call is given up; loky tells the exit code in a further line of its message."""
    code = re.search(r"\{(.+?)\}", str(error))
    how = f"exit {code[1]}" if code else first_line(error)[:80]
    killed = ", as for lack of memory" if "SIGKILL" in how else ""
    return f"its process ended each of the {MOST_DEATHS} times that it ran ({how}{killed})"


class FuturesPool(Pool):
    """The user's own executor of this machine, such as a ProcessPoolExecutor; it stays open."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def each(
        self, function: Callable[[Any, Any], T], shared: Any, items: Sequence[Any]
    ) -> Iterator[tuple[int, T | Lost]]:
        """Make the calls; ClusterError if the executor breaks, which it cannot recover from."""
        with tempfile.TemporaryDirectory(prefix="fewbench-") as folder:
            parcel = Parcel.in_file(shared, folder)
            futures = {
                self._executor.submit(call, parcel, packed_call(function, item)): position
                for position, item in enumerate(items)
            }
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            except BrokenExecutor as error:
                raise ClusterError(
                    f"the executor broke ({first_line(error)})",
                    hint="make a new one and start again, or give a number of workers",
                ) from error
            finally:
                for future in futures:
                    future.cancel()
