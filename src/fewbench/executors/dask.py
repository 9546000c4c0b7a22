"""Calls on a Dask cluster: one that runs, or one of this machine.

What calls share goes to one worker, outside the task graph. Each other worker takes it from there
once.
"""

import logging
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from fewbench.errors import ClusterError, MissingExtraError, first_line
from fewbench.executors.calls import (
    CONNECT_SECONDS,
    MOST_DEATHS,
    Parcel,
    Pool,
    call,
    check_address,
    differences,
    lost_cluster,
    versions,
)

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


def _close(resource: Any) -> None:
    with _quiet(), suppress(OSError, TimeoutError):  # of a cluster that is gone
        resource.close(timeout=10)


@dataclass
class Scattered:
    """What calls share, and where the cluster has it."""

    parcel: Parcel
    held: Any = None


class DaskPool(Pool):
    """A Dask cluster; `ends` are closed with the pool.

    Dask repeats calls whose worker ends, until it gives them up. A call also counts as suspicious
    to Dask if it waited on a worker that another one ended. Dask cancels all calls when the last
    worker that held what they share ends.
    """

    is_remote = True

    def __init__(self, client: Any, name: str, ends: ExitStack) -> None:
        self.client, self.name, self._ends = client, name, ends
        self.ended = (_library().KilledWorker, _library().client.CancelledError)

    @contextmanager
    def sharing(self, shared: Any) -> Iterator[Scattered]:
        """Check the workers, before the first call sends what is shared to one of them."""
        self._seen = time.monotonic()  # when the cluster last had a worker
        with self._reached():
            self._check_workers()
        yield Scattered(Parcel.in_bytes(shared))

    def submit(self, parcel: Scattered, packed: bytes) -> "Future[Any]":
        """Start a call, which takes what is shared from a worker that has it."""
        with self._reached():
            if parcel.held is None or parcel.held.cancelled():
                parcel.held = self.client.scatter(parcel.parcel, hash=False)
            theirs = self.client.submit(call, parcel.held, packed, pure=False)
        future = Future[Any]()

        def settle(done: Any) -> None:
            try:
                future.set_result(done.result())
            except BaseException as error:  # of the call, or of a worker that is lost with it
                future.set_exception(error)

        theirs.add_done_callback(settle)
        future.theirs = theirs  # type: ignore[attr-defined]  # else Dask forgets it
        return future

    def fault(self, error: BaseException) -> BaseException:
        """Return a call's own error, or that the connection was lost while Dask sent its result."""
        is_lost = isinstance(error, import_module("distributed.comm").CommClosedError)
        return lost_cluster(self.name, error) if is_lost else super().fault(error)

    def cancel(self, future: Any) -> None:
        """Give up a call."""
        if self.client.status == "running":
            self.client.cancel([future.theirs], force=True)

    def reason(self, error: BaseException) -> str:
        """Return why a worker ended, which Dask does not know."""
        return "killed, or out of memory"

    def _check_workers(self) -> None:
        """Wait for a worker; ClusterError says what the scheduler or a worker lacks."""
        started, first = time.monotonic(), self.client.submit(int, pure=False)
        while not first.done():
            time.sleep(0.01)
            if time.monotonic() - started > 1:
                self.look(done=False)
        try:
            self.client.run_on_scheduler(versions)
            workers = self.client.run(versions, on_error="return")
        except ImportError as error:
            workers = {"the scheduler": error}
        lacking = [f"{at}: {why}" for at, answer in workers.items() if (why := differences(answer))]
        if lacking:
            which = "; ".join(lacking[:3])
            raise ClusterError(
                f"{self.name}: {len(lacking)} of {len(workers)} cannot make calls: {which}",
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
            raise lost_cluster(self.name, error) from error

    def look(self, done: bool) -> None:
        """Raise ClusterError if the connection is lost, or there are no workers for long."""
        if self.client.status != "running":
            raise lost_cluster(self.name, ConnectionError("the scheduler does not answer"))
        if done or self.client.nthreads():
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > NO_WORKERS:
            raise ClusterError(
                f"{self.name}: the cluster has had no workers for {NO_WORKERS:.0f} s",
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
