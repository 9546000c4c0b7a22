"""Small worlds in which every two features meet, for the laws and for `benchmarks/field.py seams`.

A world is a benchmark, source models, targets with known chances, and what the targets answered.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest

from fewbench import Estimate, Evaluation, Subset
from fewbench.evaluation.interval import Interval
from fewbench.scores import Benchmark, Scale, Scores, from_arrays

N_ITEMS, BUDGET, LATER = 60, 20, 45
"""Items from LATER on are the extension, and those that no source model ran."""
TASKS, GROUPS = ("a", "b", "c"), ("x", "x", "y")
FEATURES: dict[str, tuple[str, ...]] = {
    "sources": ("none", "few", "many", "unlike", "weaker", "stronger"),
    "design": ("random", "fewbench", "fewbench-static", "aipw", "by hand"),
    "answers": ("all", "part", "skipped", "repeated", "every item"),
    "items": ("plain", "extended", "unrun", "weighted", "macro", "clustered", "grouped"),
    "scores": ("right or wrong", "fractional", "judged", "percent", "errors"),
    "baseline": ("none", "sampled", "in full", "source"),
    "targets": ("two", "four", "near copies", "reruns"),
}
IMPOSSIBLE = (
    *({"sources": "none", "design": one} for one in ("fewbench-static", "aipw")),
    {"sources": "none", "items": "unrun"},
    {"sources": "none", "baseline": "source"},
    {"items": "unrun", "baseline": "source"},  # a source model ran all items
)
"""There is nothing to choose from, no answer or no model."""
N_SOURCES = {"none": 0, "few": 6}
SCALES = {"percent": Scale(0, 100), "errors": Scale(0, 1, lower_is_better=True)}

Features = Mapping[str, str]


def is_possible(features: Features) -> bool:
    """Whether there is such a world."""
    return not any(part.items() <= features.items() for part in IMPOSSIBLE)


def covering(tries: int = 40) -> tuple[Features, ...]:
    """Return worlds in which every two values of different features meet, as few as greed finds.

    Each world is the one of some tries that has the most pairs that no earlier one has.
    """
    rng, worlds = np.random.default_rng(0), list[Features]()

    def pairs_of(world: Features) -> set[frozenset[tuple[str, str]]]:
        return {frozenset(pair) for pair in itertools.combinations(world.items(), 2)}

    left = {
        frozenset({(one, a), (other, b)})
        for one, other in itertools.combinations(FEATURES, 2)
        for a, b in itertools.product(FEATURES[one], FEATURES[other])
        if is_possible({one: a, other: b})
    }
    while left:
        wanted = dict(sorted(left, key=sorted)[0])
        drawn = [
            {name: wanted.get(name) or str(rng.choice(FEATURES[name])) for name in FEATURES}
            for _ in range(tries)
        ]
        possible = [world for world in drawn if is_possible(world)]
        if possible:
            worlds.append(max(possible, key=lambda world: len(pairs_of(world) & left)))
            left -= pairs_of(worlds[-1])
    return tuple(worlds)


@dataclass(frozen=True, eq=False)
class World:
    """A world of these features; the same seed gives the same answers.

    With `turned`, the targets come in the reverse order.
    """

    features: Features
    seed: int = 0
    turned: bool = False
    budget: int = BUDGET

    def has(self, **features: str) -> bool:
        """Whether the world has all of these features."""
        return features.items() <= self.features.items()

    @cached_property
    def _chances(self) -> tuple[np.ndarray, np.ndarray]:
        """Return chances to be right, of sources and of targets with the baseline last."""
        rng, kind = np.random.default_rng([self.seed, 1]), self.features["sources"]
        n = N_SOURCES.get(kind, 20)
        middle = {"weaker": -0.8, "stronger": 0.8}.get(kind, 0.0)
        spread = 0.4 if middle else 1.0
        difficulty = rng.normal(0, 1.2, N_ITEMS)
        targets = rng.normal(0.2, 0.5, 5)
        if self.features["targets"] in ("reruns", "near copies"):
            targets[:] = targets[0]
        of_targets = difficulty
        if kind == "unlike":
            of_targets = rng.permutation(difficulty)
        sources = 1 / (1 + np.exp(difficulty - rng.normal(middle, spread, n)[:, None]))
        return sources, 1 / (1 + np.exp(of_targets - targets[:, None]))

    def _answers(self, chances: np.ndarray, stream: int) -> np.ndarray:
        rng, kind = np.random.default_rng([self.seed, stream]), self.features["scores"]
        if kind in ("right or wrong", "errors"):
            return (rng.random(chances.shape) < chances).astype(float)
        drawn = rng.beta(0.5 + 4 * chances, 0.5 + 4 * (1 - chances))
        return np.round(drawn, 1) if kind == "judged" else np.round(drawn, 4)

    @cached_property
    def truth(self) -> dict[str, np.ndarray]:
        """Each target's scores of all items, in [0, 1], and those of the baseline, `base`."""
        answers = self._answers(self._chances[1], 2)
        if self.features["targets"] == "near copies":
            answers[:4] = answers[0]
            answers[np.arange(4), np.arange(4) * 7] = 1 - answers[0, 0]
        names = [f"t{at}" for at in range(4 if self.features["targets"] == "four" else 2)]
        rows = dict(zip(names, answers, strict=False))
        if not self.has(baseline="none"):
            rows["base"] = answers[4]
        return rows

    def apart(self, one: str, other: str) -> float:
        """Return by how much the first target is better, expected over runs; 0 for one model."""
        chances, names = self._chances[1], [f"t{at}" for at in range(4)]
        rows = [4 if name == "base" else names.index(name) for name in (one, other)]
        return float((chances[rows[0]] - chances[rows[1]]) @ self.scores.item_weights)

    @property
    def targets(self) -> list[str]:
        """The targets of the evaluation."""
        names = [name for name in self.truth if name != "base" or not self.has(baseline="source")]
        return names[::-1] if self.turned else names

    @cached_property
    def scores(self) -> Scores | Benchmark:
        """The source models, or the items alone."""
        values = self._answers(self._chances[0], 3)
        if self.has(items="unrun"):
            values[:, LATER:] = np.nan
        models = [f"s{at}" for at in range(len(values))]
        if self.has(baseline="source"):
            values, models = np.vstack([values, self.truth["base"]]), [*models, "base"]
        scale = SCALES.get(self.features["scores"], Scale())
        # An evaluation without sources has the scale of its benchmark.
        rows = values if len(values) else np.full((1, N_ITEMS), 0.5)
        task_of = np.arange(N_ITEMS) // 5 % 3
        made = from_arrays(
            scale.from_unit(rows), models=models or ["none"], scale=scale,
            tasks=[TASKS[at] for at in task_of],
        )  # fmt: skip
        items = made.items
        if self.has(items="weighted"):
            items = items.assign(weight=1.0 + np.arange(N_ITEMS) % 3)
        if self.has(items="clustered"):
            items = items.assign(cluster=[f"c{at // 4}" for at in range(N_ITEMS)])
        if self.has(items="grouped"):
            items = items.assign(group=[GROUPS[at] for at in task_of])
        if self.features["items"] in ("extended", "unrun"):
            items = items.assign(cohort=(np.arange(N_ITEMS) >= LATER).astype(int))
        made = made.changed(items=items)
        if self.has(items="macro"):
            made = made.averaged("macro")
        return made if len(values) else made.benchmark

    @property
    def known(self) -> list[str]:
        """The source models that are ranked with the targets."""
        return ["base"] if self.has(baseline="source") else []

    @property
    def is_open(self) -> bool:
        """Whether nobody answered the items of the extension."""
        return self.has(items="extended", sources="none")

    def answered(self, name: str, asked: list[str]) -> list[str]:
        """Return which of the items that are asked a target answers."""
        if name == "base" and self.has(baseline="in full"):
            return list(self.scores.items.index)
        answers = self.features["answers"]
        if answers == "every item":
            return list(self.scores.items.index)
        if self.is_open:
            asked = [item for item in asked if int(item.split("-")[1]) < LATER]
        if answers == "part":
            return asked[: len(asked) // 2]
        return [item for at, item in enumerate(asked) if answers != "skipped" or at % 4 != 1]

    def told(self, name: str, items: list[str]) -> dict[str, float]:
        """Return a target's scores of some items, as they are told."""
        at = [int(item.split("-")[1]) for item in items]
        told = np.asarray(self.scores.scale.from_unit(self.truth[name][at]))
        return dict(zip(items, told.tolist(), strict=True))

    @cached_property
    def evaluation(self) -> Evaluation:
        """The evaluation, with its answers."""
        subset, design = None, self.features["design"]
        if design == "by hand":
            subset = Subset(items=tuple(self.scores.items.index[1::3][: self.budget]))
            design = "random" if self.has(sources="none") else "fewbench-static"
        evaluation = Evaluation(
            self.scores, design, self.budget, self.targets, seed=self.seed, subset=subset
        )
        every = list(self.scores.items.index)
        whole = [name for name in self.targets if len(self.answered(name, [])) == N_ITEMS]
        evaluation.ask_more(dict.fromkeys(whole, every))
        told = dict[str, set[str]]()
        while waiting := {
            name: new
            for name, items in evaluation.ask().items()
            if (new := [one for one in items if one not in told.setdefault(name, set())])
        }:
            for name, items in waiting.items():
                told[name] |= {*items}
                if given := self.told(name, self.answered(name, items)):
                    evaluation.tell(name, given)
                if self.has(answers="repeated") and given:
                    evaluation.tell(name, given, repeat=2)
        return evaluation

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Two targets, and one beside the baseline."""
        return [("t0", "t1"), *([("t0", "base")] if "base" in self.truth else [])]

    def side(self, name: str) -> tuple[Evaluation, str] | str:
        """Return what a command is given for a model."""
        return (self.evaluation, name) if name in self.targets else name

    def with_(self, **changes: str) -> "World":
        """Return the world with other features."""
        return replace(self, features={**self.features, **changes})

    def __repr__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.features.items())


WORLDS = tuple(World(features, seed=at) for at, features in enumerate(covering()))
"""The worlds in which every two features meet."""
QUICK = tuple(
    world
    for world in WORLDS
    if world.features["design"] in ("random", "aipw") or world.features["sources"] in N_SOURCES
)
"""Those in which no errors of many source models are measured."""
BOTH = (False, True)
"""Whether exactly these items are meant."""


def ends(interval: Interval) -> tuple[float, float]:
    """Return the ends of an interval."""
    return interval.low, interval.high


def width(interval: Interval) -> float:
    """Return the width of an interval."""
    return interval.high - interval.low


def same(value: Any) -> Any:
    """Return what equals a number, or several, but for sums in another order."""
    return pytest.approx(value, abs=1e-9)


def unit_ends(estimate: Estimate) -> list[float]:
    """Return score and intervals of an estimate in [0, 1], 1 being best."""
    numbers = [estimate.score, *ends(estimate.interval), *ends(estimate.as_model)]
    return sorted(map(float, estimate.scale.to_unit(numbers)))
