"""Calls on Ray: a cluster that runs, or one of this machine."""

import logging
import os
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

from fewbench.errors import ClusterError, MissingExtraError, first_line
from fewbench.executors.calls import (
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

STORE = 512 * 2**20  # bytes for objects of a local Ray, which holds little but the scores
MOST_OPEN = 2000  # calls known to Ray at a time
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
        self._library, self._name, self._is_own = library, name, is_own

    def each(
        self, function: Callable[[Any, Any], T], shared: Any, items: Sequence[Any]
    ) -> Iterator[tuple[int, T | Lost]]:
        """Make the calls; each has its own worker process, so it is known which one ended it."""
        if not items:
            return
        ray = self._library
        errors = ray.exceptions
        died = (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError)
        todo, deaths = deque(range(len(items))), Counter[int]()
        running: dict[Any, int] = {}
        try:
            # Ray would repeat a call that takes too much memory without end, so it repeats none.
            remote = ray.remote(call).options(max_retries=0, num_cpus=1)
            parcel = ray.put(Parcel.in_bytes(shared))
            while todo or running:
                while todo and len(running) < MOST_OPEN:
                    position = todo.popleft()
                    packed = packed_call(function, items[position])
                    running[remote.remote(parcel, packed)] = position
                (done,), _ = ray.wait(list(running), num_returns=1)
                position = running.pop(done)
                try:
                    result = ray.get(done)
                except died as error:
                    deaths[position] += 1
                    if deaths[position] < MOST_DEATHS:
                        todo.append(position)
                        continue
                    result = Lost(
                        f"its worker ended each of the {MOST_DEATHS} times that it ran "
                        f"({type(error).__name__})"
                    )
                yield position, result
        except errors.RayTaskError as error:
            raise in_worker(error.cause, self._name) from error
        except (errors.RayError, ConnectionError) as error:
            raise lost_cluster(self._name, error) from error
        finally:
            if ray.is_initialized():
                for one in running:
                    ray.cancel(one, force=True)

    def close(self) -> None:
        """End Ray if it was started, or the connection if it was made here."""
        if self._is_own:
            self._library.shutdown()
