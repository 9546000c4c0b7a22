"""Threads: one at a time at what they share, and one for numerical libraries."""

import os
import sys
import threading
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS and OpenMP use one thread.

    The order of sums could change ties, and so results.
    """
    return _controller(len(sys.modules)).limit(limits=1)  # type: ignore[no-any-return]


@lru_cache(maxsize=1)
def _controller(loaded: int) -> Any:
    """Return the libraries; finding them takes milliseconds, and more come only with modules."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class Turn:
    """Lets one thread at a time into its blocks; blocks of a thread may be inside one another.

    Copies, also those in other processes, are turns of their own.
    """

    def __init__(self) -> None:
        self._lock, self._process = threading.RLock(), os.getpid()

    def __enter__(self) -> None:
        """Wait for the other threads."""
        if self._process != os.getpid():  # forked: threads that hold the lock are not here
            self._lock, self._process = threading.RLock(), os.getpid()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        """Let another thread in."""
        self._lock.release()

    def __reduce__(self) -> tuple[type["Turn"], tuple[()]]:
        """Return a new one for copies."""
        return Turn, ()
