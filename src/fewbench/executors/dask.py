"""Calls on a Dask cluster: one that runs, or one of this machine.

What calls share goes to one worker, outside the task graph. Each other worker takes it from there
once.
"""

import logging
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import import_module
from typing import Any
from uuid import uuid4

from fewbench.errors import ClusterError, MissingExtraError, first_line
from fewbench.executors.calls import (
    CONNECT_SECONDS,
    MOST_DEATHS,
    Lost,
    Parcel,
    Pool,
    T,
    call,
    check_address,
    differences,
    in_worker,
    lost_cluster,
    packed_call,
    versions,
)

LOOK = 0.01  # seconds between two looks for results
NO_WORKERS = 120.0  # seconds without any worker after which a cluster counts as lost
NO_INTERRUPT = """
def dask_setup(worker):
    import signal
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # else each prints how Ctrl-C interrupted it
"""
# Without Dask's warnings, which do not concern the user's numbers.
_quiet = partial(warnings.catch_warnings, action="ignore", category=UserWarning)
START = "dask scheduler, and dask worker HOST:PORT --nthreads 1 on each machine"


def _library() -> Any:
    try:
        return import_module("distributed")
    except ImportError as error:
        raise MissingExtraError(
            "running on Dask needs distributed", hint="pip install 'fewbench[dask]'"
        ) from error


def connect_dask(place: str) -> "DaskPool":
    """Connect to the scheduler at HOST:PORT; ClusterError if there is none."""
    library = _library()
    check_address(place, "dask", START, speaks_first=True)
    how = {"timeout": 2 * CONNECT_SECONDS, "set_as_default": False}
    with _silent() as ends, _quiet():
        try:
            client = library.Client(f"tcp://{place}", **how)
        except (OSError, TimeoutError, ValueError) as error:
            raise ClusterError(
                f"dask://{place}: no Dask scheduler answers there ({first_line(error)[:200]})",
                hint=f"check the address; start a cluster with {START}",
            ) from error
        ends.callback(_close, client)
        return DaskPool(client, f"dask://{place}", ends.pop_all())


def with_client(client: Any) -> "DaskPool":
    """Use a client that the caller has; ClusterError if it is something else, or closed."""
    if not isinstance(client, _library().Client) or client.asynchronous:
        raise ClusterError(
            f"a {type(client).__name__} of Dask cannot make calls",
            hint="pass a client that is not asynchronous, such as distributed.Client(cluster)",
        )
    if client.status != "running":
        raise ClusterError(f"the Dask client is {client.status}", hint="make a new client")
    return DaskPool(client, "Dask", _silent())


def start_dask(workers: int) -> "DaskPool":
    """Start a cluster of this machine with as many processes as workers."""
    library = _library()
    settings = {
        "distributed.scheduler.allowed-failures": MOST_DEATHS - 1,
        # Else a worker that ends twice within 15 s is closed for ever.
        "distributed.deploy.lost-worker-timeout": "1 day",
        "distributed.worker.preload": [NO_INTERRUPT],
    }
    how = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": logging.CRITICAL}
    with _silent() as ends, _quiet():
        ends.enter_context(import_module("dask").config.set(settings))
        cluster = library.LocalCluster(n_workers=workers, processes=True, **how)
        ends.callback(_close, cluster)
        client = library.Client(cluster, set_as_default=False)
        ends.callback(_close, client)
        return DaskPool(client, "dask-local", ends.pop_all())


def _close(one: Any) -> None:
    with _quiet(), suppress(OSError, TimeoutError):  # of a cluster that is gone
        one.close(timeout=10)


class DaskPool(Pool):
    """A Dask cluster; `ends` are closed with the pool."""

    is_remote = True

    def __init__(self, client: Any, name: str, ends: ExitStack) -> None:
        self.client, self._name, self._ends = client, name, ends

    def each(
        self, function: Callable[[Any, Any], T], shared: Any, items: Sequence[Any]
    ) -> Iterator[tuple[int, T | Lost]]:
        """Make the calls. Dask repeats those whose worker ends, until it gives them up.

        A call also counts as suspicious to Dask if it waited on a worker that another one ended.
        So what was given up runs once more at the end, each call alone. Dask cancels all calls when
        the last worker that held what they share ends; they run again.
        """
        if not items:
            return
        with self._reached():
            self._check_workers()
        groups, parcel, held = deque([(list(range(len(items))), 1)]), Parcel.in_bytes(shared), None
        while groups:
            (group, tries), lost = groups.popleft(), dict[int, Lost]()
            with self._reached():
                if held is None or held.cancelled():
                    held = self.client.scatter(parcel, hash=False)
            for position, result in self._round(function, held, items, group):
                if isinstance(result, Lost):
                    lost[position] = result
                else:
                    yield position, result
            if lost and held.cancelled() and tries < MOST_DEATHS:
                groups.appendleft((list(lost), tries + 1))
            elif len(group) > 1:
                groups.extend(([position], 1) for position in sorted(lost))
            else:
                yield from lost.items()

    def _check_workers(self) -> None:
        """Wait for a worker; ClusterError says what the scheduler or a worker lacks."""
        list(self._as_they_come([self.client.submit(int, pure=False)]))
        try:
            self.client.run_on_scheduler(versions)
            found = self.client.run(versions, on_error="return")
        except ImportError as error:
            found = {"the scheduler": error}
        lacking = [f"{at}: {why}" for at, one in found.items() if (why := differences(one))]
        if lacking:
            which = "; ".join(lacking[:3])
            raise ClusterError(
                f"{self._name}: {len(lacking)} of {len(found)} cannot make calls: {which}",
                hint="install the same Python, fewbench and packages for the scheduler and workers",
            )

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Raise ClusterError if the connection is lost meanwhile."""
        try:
            yield
        except (OSError, TimeoutError, _library().client.CancelledError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and self.client.status == "running":
                raise  # else the client is closed
            raise lost_cluster(self._name, error) from error

    def _round(
        self, function: Callable[[Any, Any], T], held: Any, items: Sequence[Any], group: list[int]
    ) -> Iterator[tuple[int, T | Lost]]:
        key, futures, error = f"fewbench-call-{uuid4().hex}", dict[Any, int](), None
        try:
            with self._reached():
                for position in group:
                    how = {"key": (key, position), "pure": False}
                    packed = packed_call(function, items[position])
                    futures[self.client.submit(call, held, packed, **how)] = position
                for future in self._as_they_come(list(futures)):
                    position = futures.pop(future)
                    result, error = self._outcome(future)
                    if error is not None:
                        break
                    yield position, result
        finally:
            if futures and self.client.status == "running":
                self.client.cancel(list(futures), force=True)
        if error is not None:
            raise in_worker(error, self._name) from error

    def _outcome(self, future: Any) -> tuple[Any, BaseException | None]:
        """Return a result, or an error; wait if the result was lost with its worker meanwhile."""
        ended = (_library().KilledWorker, _library().client.CancelledError)
        if (error := future.exception()) is None:
            try:
                return future.result(), None
            except ended as late:
                error = late
        if not isinstance(error, ended):
            return None, error
        if self.client.status != "running":
            raise lost_cluster(self._name, error)
        return Lost("its worker ended each time that it ran (killed, or out of memory)"), None

    def _as_they_come(self, futures: list[Any]) -> Iterator[Any]:
        """Yield futures as they are done; ClusterError if there are no workers for long."""
        coming = _library().as_completed(futures, loop=self.client.loop)
        seen = looked = time.monotonic()
        while not coming.is_empty():
            if coming.has_ready():
                yield from coming.next_batch(block=False)
                seen = time.monotonic()
                continue
            time.sleep(LOOK)
            now = time.monotonic()
            if now - looked > 5:
                looked = now
                if self.client.nthreads():
                    seen = now
                elif now - seen > NO_WORKERS:
                    raise ClusterError(
                        f"{self._name}: the cluster has had no workers for {NO_WORKERS:.0f} s",
                        hint="start workers: dask worker HOST:PORT --nthreads 1",
                    )

    def close(self) -> None:
        """End what was started; a client that was given stays open."""
        self._ends.close()


def _silent() -> ExitStack:
    """Switch off what Dask logs, until the stack is closed: errors say what users must know."""
    ends = ExitStack()
    for name in ("distributed", "distributed.client"):  # the loggers with levels of their own
        logger = logging.getLogger(name)
        ends.callback(logger.setLevel, logger.level)
        logger.setLevel(logging.CRITICAL)
    return ends
