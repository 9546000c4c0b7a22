"""Tables of every kind: missing cells, few models or items, constant answers, twins."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fewbench.errors import MethodError
from fewbench.evaluation.replay import replay
from fewbench.methods import Method
from fewbench.scores import OptionProbabilities
from fewbench.testing.promises.base import Promises, all_options


class Tables(Promises):
    """Tables of every kind are estimated, or refused by an error of ours."""

    def test_missing_cells_in_sources(self, method: Method) -> None:
        """Sources need not have run every item, with option probabilities or without."""
        if not self.supports_missing:
            pytest.skip("the method needs whole sources")
        for options in (None, 3):
            targets = self._tables(options=options, n_models=16)[1]
            sources = self._tables(options=options, n_models=16, missing=0.2)[0]
            assert sources.has_missing
            assert not targets.has_missing
            self._predicts(method, sources, targets, 8)

    @pytest.mark.parametrize(
        "shape",
        [
            {"n_models": 8, "n_items": 150},
            {"n_models": 40, "n_items": 12, "n_tasks": 1},
            {"continuous": True},
            {"options": 2},
            {"options": 5},
            {"n_items": 24, "n_tasks": 24},
        ],
        ids=["wide", "tall", "continuous", "two options", "unequal options", "an item a task"],
    )
    def test_tables_of_every_shape(self, method: Method, shape: dict[str, Any]) -> None:
        """Many items, few items, continuous scores, option probabilities, many tasks."""
        sources, targets = self._tables(**shape)
        said = [self._play(method, sources, targets, 9, tasks=True).prediction.scores]
        truth = targets.full_scores()
        if np.abs(said[0] - truth).mean() >= 0.3:  # nine items of one or two tasks, say
            said = [replay(method, sources, targets, 9, seed).scores for seed in range(10)]
        assert np.abs(said - truth).mean() < 0.3, "the estimates have nothing to do with the truth"

    @pytest.mark.parametrize("constant", ["items", "sources", "everything", "targets"])
    def test_constant_answers(self, method: Method, constant: str) -> None:
        """Items that all or none get right, and models that get all or none right."""
        sources, targets = self._tables()
        values, answers = sources.values.copy(), targets.values.copy()
        if constant == "items":
            values[:, ::2], values[:, 1::4] = 1.0, 0.0
        elif constant == "sources":
            values[::2], values[1::4] = 1.0, 0.0
        elif constant == "everything":
            values[:] = 1.0
        else:
            answers[:] = [[0.0], [1.0], [1.0]]
        sources, targets = replace(sources, values=values), replace(targets, values=answers)
        self._play(method, sources, targets, 6, tasks=True)

    def test_twins_among_the_sources(self, method: Method) -> None:
        """Real leaderboards hold the same model several times."""
        sources, targets = self._tables(n_models=15)
        twins = np.repeat(np.arange(5), 3)
        values = sources.values[twins]
        options = None
        if sources.probabilities is not None:
            options = OptionProbabilities(all_options(sources)[twins])
        same = replace(sources, values=values, probabilities=options)
        self._play(method, same, targets, 8, tasks=True)

    @pytest.mark.parametrize("n_sources", [1, 2, 3])
    def test_few_sources(self, method: Method, n_sources: int) -> None:
        """A handful of sources gives an estimate, or an error of ours that says so."""
        sources, targets = self._tables(n_models=n_sources)
        with suppress(MethodError):
            self._predicts(method, sources, targets, 8)

    @pytest.mark.parametrize("n_items", [1, 2])
    def test_few_items(self, method: Method, n_items: int) -> None:
        """A benchmark of one item, or two, gives an estimate, or an error of ours."""
        sources, targets = self._tables(n_items=n_items, n_tasks=2)
        for budget in range(1, n_items + 1):
            with suppress(MethodError):
                self._play(method, sources, targets, budget, tasks=True)
