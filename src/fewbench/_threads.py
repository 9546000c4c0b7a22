"""One thread for numerical libraries: sums in another order could turn ties, and so results."""

from contextlib import AbstractContextManager
from typing import Any


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS and OpenMP use one thread."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)  # type: ignore[no-any-return]
