"""Benchmarks drawn from the pool, and the command line on them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewbench.datasets.digits import TASKS

from .models import Model, other_kind, pool, training_run
from .shell import import_table, run_model, write_table

STEPS = (15, 25, 40, 60, 80, 100, 125, 150)


@dataclass(frozen=True)
class Questions:
    """A benchmark: questions drawn from the pool.

    Attributes
    ----------
    at : ndarray of int
        Their places in the pool.
    """

    at: np.ndarray

    @classmethod
    def draw(cls, n: int, rng: np.random.Generator) -> "Questions":
        """Draw a benchmark of n questions."""
        return cls(rng.permutation(len(pool()[1]))[:n])

    @property
    def ids(self) -> list[str]:
        return [f"q{place:04d}" for place in self.at]

    @property
    def tasks(self) -> list[str]:
        return [TASKS[task] for task in pool()[2][self.at]]

    def items(self, path: str = "items.csv") -> str:
        """Write the file of items."""
        rows = ["id,task", *map(",".join, zip(self.ids, self.tasks, strict=True))]
        with open(path, "w") as file:
            file.write("\n".join(rows))
        return path

    def table(self, rows: Mapping[str, np.ndarray], name: str = "table") -> str:
        """Write and import scores (name → score of each item)."""
        write_table(f"{name}.csv", rows, self.ids, self.tasks)
        return import_table(f"{name}.csv")

    def rows(self, models: tuple[Model, ...]) -> dict[str, np.ndarray]:
        """Return the scores of models on the benchmark."""
        return {model.name: model.right[self.at] for model in models}

    def lines(self, scores: np.ndarray) -> dict[str, dict[str, float]]:
        """Return what a program prints of each item."""
        values = zip(self.ids, scores.tolist(), strict=True)
        return {item: {"score": score} for item, score in values}

    def estimate(
        self, source: str, scores: np.ndarray, target: str, place: str, *words: object
    ) -> dict[str, Any]:
        """Run a model that gets these scores, and return its estimate."""
        said = run_model(source, self.lines(scores), target, place, *words)
        return said.json["targets"][target]["estimate"]


def sampled(model: Model, at: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return scores of one run at temperature 1."""
    return (rng.random(len(at)) < model.chances[at]) * 1.0


def run_of(number: int) -> tuple[Model, ...]:
    """Return the checkpoints of a training run."""
    return training_run(number, STEPS)


def last_of(numbers: np.ndarray) -> tuple[Model, ...]:
    """Return the last checkpoints of training runs."""
    return tuple(run_of(int(number))[-1] for number in numbers)


def others(numbers: np.ndarray) -> tuple[Model, ...]:
    """Return forests and classifiers by neighbors."""
    return tuple(other_kind(int(number)) for number in numbers)
