"""One thread for numerical libraries: the order of sums could change ties, and so results."""

import sys
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS and OpenMP use one thread."""
    return _controller(len(sys.modules)).limit(limits=1)  # type: ignore[no-any-return]


@lru_cache(maxsize=1)
def _controller(loaded: int) -> Any:
    """Return the libraries; finding them takes milliseconds, and more come only with modules."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
