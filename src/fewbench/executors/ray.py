"""Calls on Ray: a cluster that runs, or one of this machine."""

import logging
import os
import warnings
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from fewbench.errors import ClusterError, MissingExtraError, first_line
from fewbench.executors.calls import Parcel, Pool, call, check_address, lost_cluster

STORE = 512 * 2**20  # bytes for objects of a local Ray, which holds little but the scores
START = "ray start --head on one machine, and ray start --address HOST:6379 on the others"


def _library() -> Any:
    try:
        with warnings.catch_warnings(action="ignore"):
            return import_module("ray")
    except ImportError as error:
        raise MissingExtraError(
            "running on Ray needs ray, which has no release for Python 3.14 or newer yet",
            hint="pip install 'fewbench[ray]'",
        ) from error


def connect_ray(place: str) -> "RayPool":
    """Connect to the Ray client server at HOST:PORT; ClusterError if there is none."""
    library = _library()
    check_address(place, "ray", f"{START}; Ray's client port is 10001")
    try:
        _init(library, address=f"ray://{place}")
    except Exception as error:  # of gRPC, of Ray, and of the system
        if "ray[client]" in str(error):
            raise MissingExtraError(
                f"ray://{place}: connecting needs ray[client]", hint="pip install 'fewbench[ray]'"
            ) from error
        raise ClusterError(
            f"ray://{place}: no Ray client server answers there ({first_line(error)[:200]})",
            hint=f"check the address; start a cluster with {START}; the client port is 10001; if "
            "the cluster asks for a token, set RAY_AUTH_MODE=token here too",
        ) from error
    return RayPool(library, f"ray://{place}", is_own=True)


def start_ray(workers: int) -> "RayPool":
    """Start Ray on this machine with as many processes as workers, or use what runs here."""
    library = _library()
    is_own = not library.is_initialized()
    if is_own:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anyone
        how = {"include_dashboard": False, "object_store_memory": STORE, "log_to_driver": False}
        _init(library, address="local", num_cpus=workers, **how)
    return RayPool(library, "ray-local", is_own=is_own)


def _init(library: Any, **settings: Any) -> None:
    with warnings.catch_warnings(action="ignore"):  # of settings that will change in Ray
        library.init(logging_level=logging.ERROR, **settings)


class RayPool(Pool):
    """Ray as it is initialized in this process."""

    is_remote = True

    def __init__(self, library: Any, name: str, *, is_own: bool) -> None:
        self._library, self.name, self._is_own = library, name, is_own
        errors = library.exceptions
        self.ended = (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError)
        # Ray would repeat a call that takes too much memory without end, so it repeats none.
        self._remote = library.remote(call).options(max_retries=0, num_cpus=1)

    @contextmanager
    def sharing(self, shared: Any) -> Iterator[Any]:
        """Put what calls share into Ray's store."""
        with self._reached():
            parcel = self._library.put(Parcel.in_bytes(shared))
        yield parcel

    def submit(self, parcel: Any, packed: bytes) -> "Future[Any]":
        """Start a call; each has its own worker process."""
        with self._reached():
            future: Future[Any] = self._remote.remote(parcel, packed).future()
        return future

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except (self._library.exceptions.RayError, ConnectionError) as error:
            raise self.fault(error) from error

    def fault(self, error: BaseException) -> BaseException:
        """Return a call's own error, or that the connection was lost."""
        errors = self._library.exceptions
        if isinstance(error, errors.RayTaskError):
            return super().fault(error.cause)
        is_lost = isinstance(error, (errors.RayError, ConnectionError))
        return lost_cluster(self.name, error) if is_lost else super().fault(error)

    def cancel(self, future: Any) -> None:
        """End the call's worker."""
        if self._library.is_initialized():
            self._library.cancel(future.object_ref, force=True)

    def close(self) -> None:
        """End Ray if it was started, or the connection if it was made here."""
        if self._is_own:
            self._library.shutdown()
