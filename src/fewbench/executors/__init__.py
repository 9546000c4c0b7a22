"""Where many independent calls run: this process, processes, a Dask cluster or Ray.

Scheduling is that of joblib's loky, Dask or Ray. What is added here is the same for all of them:
what all calls share travels once per worker, a call that ends its worker several times is given
up without ending the others, and a lost cluster is a clear error.
"""

from collections.abc import Iterator
from concurrent.futures import Executor as FuturesExecutor
from contextlib import contextmanager
from typing import Any

from fewbench.errors import ClusterError
from fewbench.executors.calls import Lost, Pool
from fewbench.executors.local import FuturesPool, InProcess, Processes

__all__ = ["KINDS", "Executor", "InProcess", "Lost", "Pool", "open_pool"]

Executor = Any
"""None, a number of processes, one of `KINDS` as text, a Dask client, an executor of
concurrent.futures, or an open pool."""
KINDS = ("dask-local", "ray-local", "dask://HOST:PORT", "ray://HOST:PORT")


@contextmanager
def open_pool(executor: Executor = None, workers: int = 1) -> Iterator[Pool]:
    """Open what calls run on, and close it at the end unless it was given open.

    Parameters
    ----------
    executor : Executor
        Where to run. None means processes of this machine.
    workers : int
        Number of processes for None, `dask-local` and `ray-local`; 1 and None is this process.

    Raises
    ------
    ClusterError
        If the text is none of `KINDS`, or nothing answers at the address.
    MissingExtraError
        If Dask or Ray is not installed.

    Examples
    --------
    >>> with open_pool() as pool:
    ...     sorted(pool.each(pow, 2, [3, 4]))
    [(0, 8), (1, 16)]
    """
    if isinstance(executor, Pool):
        yield executor
        return
    pool = _pool(executor, workers)
    try:
        yield pool
    finally:
        pool.close()


def _pool(executor: Executor, workers: int) -> Pool:
    if isinstance(executor, int) and not isinstance(executor, bool):
        executor, workers = None, executor
    if workers < 1:
        raise ClusterError(f"{workers} workers are too few", hint="give 1 or more")
    if executor is None:
        return InProcess() if workers == 1 else Processes(workers)
    if isinstance(executor, FuturesExecutor):
        return FuturesPool(executor)
    if type(executor).__module__.partition(".")[0] == "distributed":
        from fewbench.executors.dask import with_client

        return with_client(executor)
    if isinstance(executor, str):
        kind, colon, place = executor.partition("://")
        if executor == "dask-local" or (kind == "dask" and place):
            from fewbench.executors.dask import connect_dask, start_dask

            return connect_dask(place) if colon else start_dask(workers)
        if executor == "ray-local" or (kind == "ray" and place):
            from fewbench.executors.ray import connect_ray, start_ray

            return connect_ray(place) if colon else start_ray(workers)
    raise ClusterError(
        f"unknown executor {executor!r}",
        hint=f"use one of {', '.join(KINDS)}, or a number of workers",
        kind="unknown",
    )
