"""Calls on a Dask cluster: one that runs, or one of this machine.

What calls share is the result of a task, so Dask brings it to each worker once and makes it again
if all workers that held it are gone.
"""

import logging
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from importlib import import_module
from typing import Any

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
    in_worker,
    lost_cluster,
    packed_call,
)

LOOK = 0.01  # seconds between two looks for results
NO_WORKERS = 120.0  # seconds without any worker after which a cluster counts as lost
NO_INTERRUPT = """
def dask_setup(worker):
    import signal
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # else each prints how Ctrl-C interrupted it
"""
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
    try:
        with _quiet():
            client = library.Client(
                f"tcp://{place}", timeout=2 * CONNECT_SECONDS, set_as_default=False
            )
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(
            f"dask://{place}: no Dask scheduler answers there ({first_line(error)[:200]})",
            hint=f"check the address; start a cluster with {START}",
        ) from error
    ends = ExitStack()
    ends.callback(_close, client)
    return DaskPool(client, f"dask://{place}", ends)


def with_client(client: Any) -> "DaskPool":
    """Use a client that the caller has; ClusterError if it is something else, or closed."""
    if not isinstance(client, _library().Client) or client.asynchronous:
        raise ClusterError(
            f"a {type(client).__name__} of Dask cannot make calls",
            hint="pass a client that is not asynchronous, such as distributed.Client(cluster)",
        )
    if client.status != "running":
        raise ClusterError(f"the Dask client is {client.status}", hint="make a new client")
    return DaskPool(client)


def start_dask(workers: int) -> "DaskPool":
    """Start a cluster of this machine with as many processes as workers."""
    library = _library()
    settings = {
        "distributed.scheduler.allowed-failures": MOST_DEATHS - 1,
        # Else a worker that ends twice within 15 s is closed for ever.
        "distributed.deploy.lost-worker-timeout": "1 day",
        "distributed.worker.preload": [NO_INTERRUPT],
    }
    with ExitStack() as ends:
        ends.enter_context(import_module("dask").config.set(settings))
        with _quiet():
            cluster = library.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            )
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

    def __init__(self, client: Any, name: str = "Dask", ends: ExitStack | None = None) -> None:
        self.client, self._name, self._ends = client, name, ends

    def each(
        self, function: Callable[[Any, Any], T], shared: Any, items: Sequence[Any]
    ) -> Iterator[tuple[int, T | Lost]]:
        """Make the calls. Dask repeats those whose worker ends, until it gives them up.

        A call also counts as suspicious to Dask if it waited on a worker that another one ended.
        So what was given up runs once more at the end, each call alone.
        """
        if not items:
            return
        parcel = Parcel.in_bytes(shared)
        given_up: list[int] = []
        for position, result in self._round(function, parcel, items, range(len(items)), "call"):
            if isinstance(result, Lost):
                given_up.append(position)
            else:
                yield position, result
        for position in sorted(given_up):
            yield from self._round(function, parcel, items, [position], f"again-{position}")

    def _round(
        self,
        function: Callable[[Any, Any], T],
        parcel: Parcel,
        items: Sequence[Any],
        positions: Sequence[int],
        name: str,
    ) -> Iterator[tuple[int, T | Lost]]:
        library, key = _library(), f"fewbench-{name}-{parcel.token}"
        futures: dict[Any, int] = {}
        raised: BaseException | None = None
        try:
            with _quiet():
                held = self.client.submit(_itself, parcel, key=f"fewbench-shared-{parcel.token}")
                for position in positions:
                    how = {"key": (key, position), "pure": False}
                    packed = packed_call(function, items[position])
                    futures[self.client.submit(call, held, packed, **how)] = position
            coming = library.as_completed(futures, loop=self.client.loop)
            for future in self._as_they_come(coming):
                position = futures.pop(future)
                result, error = _outcome(future, library.KilledWorker)
                if isinstance(error, library.KilledWorker):
                    result = Lost(
                        f"its worker ended each of the {error.allowed_failures + 1} times that "
                        f"it ran (killed, or out of memory; last {error.last_worker.address})"
                    )
                elif error is not None:
                    raised = error
                    break
                yield position, result
        except (OSError, TimeoutError, library.client.CancelledError) as error:
            raise lost_cluster(self._name, error) from error
        except RuntimeError as error:  # the client is closed
            if self.client.status == "running":
                raise
            raise lost_cluster(self._name, error) from error
        finally:
            if futures and self.client.status == "running":
                self.client.cancel(list(futures), force=True)
        if isinstance(raised, RuntimeError) and "deserialization of the task graph" in str(raised):
            raise ClusterError(
                f"{self._name}: the scheduler cannot read the calls",
                hint="install the same fewbench where the scheduler runs, too",
            ) from raised
        if raised is not None:
            raise in_worker(raised, self._name) from raised

    def _as_they_come(self, coming: Any) -> Iterator[Any]:
        """Yield futures as they are done; ClusterError if there are no workers for long."""
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
        if self._ends is not None:
            self._ends.close()


def _outcome(future: Any, killed: type[Exception]) -> tuple[Any, Any]:
    """Return a result, or an error; wait if the result was lost with its worker meanwhile."""
    if (error := future.exception()) is not None:
        return None, error
    try:
        return future.result(), None
    except killed as error:
        return None, error


def _itself(parcel: Parcel) -> Parcel:
    return parcel


class _quiet(warnings.catch_warnings):
    """Without Dask's warnings that do not concern the user's numbers."""

    def __enter__(self) -> None:
        super().__enter__()
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        warnings.filterwarnings("ignore", r"(?s).*Mismatched versions found", UserWarning)
        warnings.filterwarnings("ignore", "Port .* is already in use", UserWarning)
