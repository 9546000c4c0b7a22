"""What a method asks, that it repeats itself, and that it leaves all else alone."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from fewbench.methods import Method
from fewbench.testing.playing import assert_same
from fewbench.testing.promises.base import Promises


class Asking(Promises):
    """A method asks for its budget, repeats itself, and leaves all else alone."""

    def test_says_what_it_is(self, method: Method) -> None:
        """The description is one line of text."""
        text = method.describe()
        assert text.strip()
        assert "\n" not in text

    @pytest.mark.parametrize("budget", [1, 7, 40])
    def test_asks_distinct_items_as_many_as_the_budget(self, method: Method, budget: int) -> None:
        """Every target is asked `budget` distinct items of the benchmark; `play` checks it."""
        self._play(method, *self._tables(), budget)

    def test_same_seed_same_answer(self, method: Method) -> None:
        """Two sessions of one seed ask and predict the same, whatever numpy's global state."""
        sources, targets = self._tables()
        before = str(np.random.get_state(legacy=False))  # noqa: NPY002 - it must stay untouched
        one = self._play(method, sources, targets, 8, seed=5, tasks=True)
        after = str(np.random.get_state(legacy=False))  # noqa: NPY002
        assert before == after, "numpy's global generator was used"
        two = self._play(method, sources, targets, 8, seed=5, tasks=True)
        assert_same(one, two, exactly=True)

    def test_threads_change_nothing(self, method: Method) -> None:
        """One thread and two ask and predict the same, and so do one processor and two."""
        sources, targets = self._tables()
        played = []
        for n in (1, 2):
            with _processors(n):
                played.append(self._play(method, sources, targets, 8, tasks=True))
        assert_same(*played)

    def test_sources_are_left_alone(self, method: Method) -> None:
        """The sources are the same after a session as before."""
        sources, targets = self._tables(options=3)
        fingerprint = sources.fingerprint
        self._play(method, sources, targets, 8, tasks=True)
        assert replace(sources).fingerprint == fingerprint


@contextmanager
def _processors(n: int) -> Iterator[None]:
    """Let numerical libraries use n threads, and the machine seem to have n processors."""
    with pytest.MonkeyPatch.context() as patch, threadpool_limits(n):
        patch.setattr(os, "cpu_count", lambda: n)
        for name in ("process_cpu_count", "sched_getaffinity"):  # not on every platform
            found: Any = set(range(n)) if name == "sched_getaffinity" else n
            patch.setattr(os, name, lambda *_, found=found: found, raising=False)
        patch.setenv("OMP_NUM_THREADS", str(n))
        yield
