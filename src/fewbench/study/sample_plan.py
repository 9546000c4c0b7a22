"""How many items a random sample needs, where too few models ran the whole benchmark to backtest.

Without sources the interval is the exact one of random sampling. With models that ran a part of the
items each, the curves of all cells say how precise a sample assisted by them is: the variance that
the difference estimator expects (see `fewbench.algorithms.assisted`).
"""

import math
from bisect import bisect_left
from dataclasses import asdict, dataclass
from shlex import quote
from typing import Any

import numpy as np
import pandas as pd

from fewbench._names import counted
from fewbench._types import FloatArray
from fewbench._version import __version__
from fewbench.algorithms.kriging import SampleModel
from fewbench.algorithms.kriging.sample import PILOT, sizes_of
from fewbench.errors import StudyError
from fewbench.methods.catalogue import FEW
from fewbench.methods.kriging import sample_model
from fewbench.scores import Scale, Scores, Unit
from fewbench.show.page import Page, Section, Shown, Table, plain
from fewbench.uncertainty.intervals import NORMAL, wilson
from fewbench.uncertainty.sampling import expected_random_error, interval_at

SCORES = tuple(at / 10 for at in range(1, 10))
WORST = 0.5
"""The score whose interval is the widest."""
FULL = 0.6
"""Width of intervals over random sampling's with 20 models that ran all items."""


@dataclass(frozen=True)
class Expected:
    """What to expect of a model with this score, on the scores' scale.

    Attributes
    ----------
    score : float
    items : int
    half_width, error : float
        Half width of the interval, and expected absolute error.
    random_half_width : float
        Half width of the interval of as many items of plain random sampling.
    """

    score: float
    items: int
    half_width: float
    error: float
    random_half_width: float


@dataclass(frozen=True, eq=False, repr=False)
class SamplePlan(Shown):
    """How many items to run, where too few models ran the whole benchmark to backtest.

    Attributes
    ----------
    goal, wanted : str, float
        "error", "half_width" or "budget", and its value.
    level : float
        Level of the intervals.
    expected : Expected
        For the score of the answer: that of the models that ran a part, or the worst case.
    scores : tuple of Expected
        For other scores.
    pays_after : int or None
        New models after which it has paid to run models in full until there are 20.
    n_items, n_models, n_whole : int
        Items, models, and models that ran most of the items.
    scale : Scale
        The scale of the scores.
    cost : float
        Of a run if all items that it draws cost the mean.
    facts : dict of str
    """

    goal: str
    wanted: float
    level: float
    expected: Expected
    scores: tuple[Expected, ...]
    pays_after: int | None
    n_items: int
    n_models: int
    n_whole: int
    scale: Scale
    cost: float
    facts: dict[str, str]

    @property
    def answer(self) -> str:
        """What to run, in a sentence."""
        forecast, unit = self.expected, Unit(self.scale)
        run = f"Run {counted(forecast.items, 'item')} of {self.n_items:,}"
        if forecast.items >= self.n_items:
            run = f"Run all {self.n_items:,} items: no part of them is enough"
        whose = "as good as those of the table" if self.n_models else "at the worst score"
        width = f"half width {unit.points(forecast.half_width)} at {self.level:.0%}"
        expected = f"{width}, expected error {unit.points(forecast.error)}"
        return f"{run}: {expected}, for a model {whose} ({unit.score(forecast.score)})."

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on these numbers."""
        expected, unit = self.expected, Unit(self.scale)
        if expected.items >= self.n_items:
            return ()
        notes = []
        if not self.n_models:
            notes.append(
                "nothing is known of the items, so these are the exact intervals of a random "
                "sample of right and wrong answers"
            )
        else:
            ratio = expected.half_width / max(expected.random_half_width, 1e-9)
            notes.append(
                f"what {counted(self.n_models, 'model')} ran makes intervals {ratio:.2f} times as "
                f"wide as random sampling's (±{unit.points(expected.random_half_width)})"
            )
        return (*notes, self._full())

    def _full(self) -> str:
        """Say when it pays to run models in full."""
        more, now = FEW - self.n_whole, self.expected
        ratio = now.half_width / max(now.random_half_width, 1e-9)
        text = (
            f"{FEW} models run in full made intervals .41 to .75 times as wide as random "
            "sampling's on eight benchmarks, and .94 times on the bundled images; what is there "
            f"now gives {ratio:.2f}"
        )
        if self.pays_after is None:
            return text
        cost = f"{counted(more, 'full run')} of {self.n_items:,} items"
        after = counted(self.pays_after, "new model")
        return f"{text}. At {FULL:g}, {cost} pay after about {after}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per score: items, half width, error, and random sampling's half width."""
        return pd.DataFrame([asdict(score) for score in self.scores]).set_index("score")

    def page(self, source: str = "", unit: str = "items") -> Page:
        """Return what to run, and what to expect at every score.

        `source` is the path of the items or scores, and `unit` that of the costs.
        """
        shown = Unit(self.scale)
        head = [("Score", True), ("Items", True), (f"Interval {self.level:.0%}", True)]
        head += [("Error", True)]
        rows = []
        for expected in self.scores:
            width = f"±{shown.points(expected.half_width)}"
            rows.append(
                [
                    shown.score(expected.score, exact=True),
                    f"{expected.items:,}",
                    width,
                    shown.points(expected.error),
                ]
            )
        if self.n_models:
            head.append(("Random sampling", True))
            for row, expected in zip(rows, self.scores, strict=True):
                row.append(f"±{shown.points(expected.random_half_width)}")
        start = f"fewbench start {quote(source or 'ITEMS')} --budget {self.expected.items} -o DIR"
        is_part = self.expected.items < self.n_items
        cost = {} if unit == "items" else {"Cost of a run": f"{self.cost:,.6g} {unit}"}
        lines = [f"{note[0].upper()}{note[1:]}." for note in self.notes]
        facts = {key.capitalize(): value for key, value in self.facts.items()}
        return Page(
            "plan",
            f"Plan for {source}" if source else "Plan of an evaluation",
            self.answer,
            sections=[
                Section("run", "By the model’s score", tables=[Table("Scores", head, rows)]),
                Section("notes", "What to know", lines=lines, facts=cost),
                Section("facts", "What it rests on", facts=facts, detail=True),
            ],
            next=[start] if is_part else [],
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        names = ("answer", "goal", "wanted", "level", "pays_after", "cost", "facts")
        return plain(
            {name: getattr(self, name) for name in (*names, "expected", "scores", "notes")}
        )


class _Forecast:
    """Half widths and errors in [0, 1] of a sample assisted by the curves of all cells."""

    def __init__(self, scores: Scores, level: float) -> None:
        self.n_items, self.level = scores.n_items, level
        self.model = sample_model(scores)
        self.is_exact = self.model.is_flat and scores.counts_equally
        self._means = self.model.expected[:, 0]
        self._variances = _variances(self.model)

    @property
    def typical(self) -> float:
        """Score of a model as able as the sources are on average."""
        if self.model.is_flat:
            return WORST
        abilities = self.model.abilities
        return float(np.interp(abilities.sources.mean(), abilities.grid, self._means))

    def error(self, score: float, n: int) -> float:
        """Return the expected absolute error with n items."""
        if self.is_exact:
            return expected_random_error(score, n, self.n_items)
        return NORMAL * self._spread(score, n)

    def half_width(self, score: float, n: int) -> float:
        """Return the half width with n items."""
        if self.is_exact:
            return self.random(score, n)
        low, high = wilson(score, self._spread(score, n), max(n - 1.0, 1.0), self.level)
        return (high - low) / 2

    def random(self, score: float, n: int) -> float:
        """Return the half width of n items of plain random sampling."""
        below = math.floor(score * n)
        ends = [
            interval_at(hits / n, n, self.n_items, self.level)
            for hits in (below, min(below + 1, n))
        ]
        widths = [(high - low) / 2 for low, high in ends]
        return widths[0] + (score * n - below) * (widths[1] - widths[0])

    def _spread(self, score: float, n: int) -> float:
        first, rest = (np.interp(score, self._means, variance) for variance in self._variances)
        pilot = min(n, PILOT)
        left = 1 - n / self.n_items
        return float(np.sqrt(max(left, 0.0) / (pilot / first + (n - pilot) / rest)))

    def needed(self, goal: str, wanted: float, score: float) -> int:
        """Return the number of items that a goal needs."""
        if goal == "budget":
            return int(wanted)
        of = self.error if goal == "error" else self.half_width
        return _first(lambda n: of(score, n) <= wanted, self.n_items)


def _first(is_enough: Any, n_items: int) -> int:
    return 1 + bisect_left(range(1, n_items + 1), True, key=is_enough)


def _variances(model: SampleModel) -> tuple[FloatArray, FloatArray]:
    """Return the variance of one item of the pilot and of one after it, shape (nodes,) each."""
    chances, weights = model.abilities.chances, model.weights[0]
    noise = model.dispersion * chances * (1 - chances)
    first = noise @ weights
    if model.is_flat:
        return first, first
    sizes = np.array([sizes_of(model, row, None) for row in noise])
    return first, (weights**2 * noise / sizes).sum(axis=1) * sizes.sum(axis=1)


def plan_sample(
    scores: Scores, goal: str, wanted: float, level: float, prices: FloatArray
) -> SamplePlan:
    """Plan a random sample, assisted by what models ran of the items.

    Parameters
    ----------
    scores : Scores
        Of no models, or of models that ran a part of the items each.
    goal, wanted : str, float
        "error", "half_width" or "budget", and its value on the scores' scale.
    level : float
    prices : ndarray, shape (items,)

    Raises
    ------
    StudyError
        For a difference of two models: that needs models that ran all items.
    """
    whole = scores.whole.n_models
    if goal == "difference":
        raise StudyError(
            f"{counted(whole, 'model')} of {scores.n_models} ran most of the items: too few to "
            "plan for a difference",
            hint=f"run {FEW} models in full, or give a half width (--half-width)",
        )
    span = scores.scale.high - scores.scale.low
    unit = wanted if goal == "budget" else wanted / span
    forecast = _Forecast(scores, level)

    def expected(score: float) -> Expected:
        n = forecast.needed(goal, unit, score)
        values = forecast.half_width(score, n), forecast.error(score, n), forecast.random(score, n)
        return Expected(
            float(scores.scale.from_unit(score)), n, *(value * span for value in values)
        )

    typical = forecast.typical
    answer, n_items = expected(typical), scores.n_items
    reached = answer.half_width / span
    enough = _first(lambda n: FULL * forecast.random(typical, n) <= reached, n_items)
    saved = answer.items - enough
    return SamplePlan(
        goal, wanted, level, answer, tuple(expected(score) for score in SCORES),
        -(-(FEW - whole) * n_items // saved) if saved > 0 else None,
        n_items, scores.n_models, whole, scores.scale, answer.items * float(prices.mean()),
        {
            "models": str(scores.n_models),
            "models that ran most items": str(whole),
            "items": str(n_items),
            "fingerprint": scores.fingerprint,
            "version": __version__,
        },
    )  # fmt: skip
