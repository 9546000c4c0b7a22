"""How many items a random sample needs, where too few models ran the whole benchmark to backtest.

Without sources the interval is the exact one of random sampling. With models that ran a part of the
items each, the curves of all cells say how precise a sample assisted by them is: the variance that
the difference estimator expects (see `fewbench.algorithms.assisted`).
"""

import math
from bisect import bisect_left
from typing import Any

import numpy as np

from fewbench._names import counted
from fewbench._types import FloatArray
from fewbench._version import __version__
from fewbench.algorithms.best_of_many import normal
from fewbench.algorithms.kriging import SampleModel
from fewbench.algorithms.kriging.sample import PILOT, sizes_of
from fewbench.errors import StudyError
from fewbench.methods.catalogue import FEW
from fewbench.methods.kriging import sample_model, samples_unrun
from fewbench.scores import Scores, Unit
from fewbench.scores.roles import as_sources
from fewbench.scores.table import credit_facts
from fewbench.study.forecast import Apart, Expected, Plan
from fewbench.study.repeating import repeats_advice
from fewbench.uncertainty.intervals import NORMAL, wilson
from fewbench.uncertainty.sampling import expected_random_error, interval_at

SCORES = tuple(at / 10 for at in range(1, 10))
WORST = 0.5
"""The score whose interval is the widest."""
SHARES = (0.1, 0.2, 0.3, 0.5)
USUAL = 0.2
"""Share of right and wrong answers on which two versions of a model differ: an assumption."""
PAIRED = (
    "no model ran all items, so how often two models differ is assumed. fewbench versus shows it "
    "after a few items, and how many items decide"
)
FULL = 0.6
"""Width of intervals over random sampling's with 20 models that ran all items."""


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
        measured = self.error if goal == "error" else self.half_width
        # Scores p and 1 - p need as many items, though their half widths are rounded apart.
        return _first(lambda n: measured(score, n) <= wanted + 1e-9, self.n_items)


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
    scores: Scores,
    goal: str,
    wanted: float,
    level: float,
    power: float,
    prices: FloatArray,
    priced: tuple[float | None, str, str],
    without: str = "",
    *,
    fixed_items: bool = False,
) -> Plan:
    """Plan a random sample, assisted by what models ran of the items.

    Parameters
    ----------
    scores : Scores
        Without models, or with models that each ran some of the items.
    goal, wanted : str, float
        "error", "half_width" or "budget", and its value on the scores' scale.
    level, power : float
    prices : ndarray, shape (items,)
        Costs of the items, at the price of a unit if there is one.
    priced : tuple of float or None, str, str
        The price, the unit of the costs and the limit of cost, as of `Plan`.
    without : str
        Why nothing is learned from the models: the sample is then a plain one.
    fixed_items : bool
        As of `Plan`.

    Raises
    ------
    StudyError
        For a difference on exactly these items: that needs models that ran all items.
    """
    n_items, whole = scores.n_items, 0 if without else scores.whole.n_models
    span = scores.scale.span
    unit = wanted if goal == "budget" else wanted / span
    used = as_sources(scores.benchmark) if without else scores
    if goal == "difference":
        if fixed_items:
            raise StudyError(
                "no models that ran all items to plan for a difference on exactly these items",
                hint="leave out --fixed-items (in Python fixed_items=False)",
            )
        facts = {"items": str(n_items), "average": scores.average, "version": __version__}
        return Plan(
            goal, wanted, level, power, n_items, used.n_models, *priced, scores.scale, facts,
            (PAIRED, repeats_advice(scores)),
            apart=_apart(unit, level, power, float(prices.mean())),
        )  # fmt: skip
    forecast = _Forecast(used, level)

    def expected(score: float) -> Expected:
        n = forecast.needed(goal, unit, score)
        width, random_width = forecast.half_width(score, n), forecast.random(score, n)
        enough = _first(lambda n: FULL * forecast.random(score, n) <= width, n_items)
        pays_after = None
        if n > enough and whole < FEW:
            pays_after = -(-(FEW - whole) * n_items // (n - enough))
        return Expected(
            float(scores.scale.from_unit(score)), n, width * span, forecast.error(score, n) * span,
            random_width * span, n * float(prices.mean()), pays_after,
        )  # fmt: skip

    answer = expected(forecast.typical)
    facts = {
        "models": str(scores.n_models),
        "models that ran most items": str(scores.whole.n_models),
        "items": str(n_items),
        "average": scores.average,
        "fingerprint": scores.fingerprint,
        "version": __version__,
    } | credit_facts(scores)
    return Plan(
        goal, wanted, level, power, n_items, used.n_models, *priced,
        scores.scale, facts,
        (*_notes(used, answer, without or "no model ran the items"), repeats_advice(scores)),
        expected=answer, scores=tuple(expected(score) for score in SCORES),
    )  # fmt: skip


def _apart(wanted: float, level: float, power: float, price: float) -> tuple[Apart, ...]:
    """Return what two models need, by the share of the items on which their answers differ.

    The variance of a pair of answers is the share less the squared difference. First comes a usual
    pair.
    """
    reach = normal(level) + normal(2 * power - 1)
    found = []
    for share in (USUAL, *(share for share in SHARES if share != USUAL)):
        if share > wanted:
            n_items = math.ceil(reach**2 * (share - wanted**2) / wanted**2)
            found.append(Apart(share, n_items, 2 * n_items * price))
    return tuple(found) or (Apart(1.0, math.ceil(reach**2 * (1 / wanted**2 - 1)), 0.0),)


def _notes(scores: Scores, expected: Expected, without: str) -> tuple[str, ...]:
    """Say what the models of the table are worth, and when it pays to run models in full."""
    if expected.items >= scores.n_items:
        return ()
    ratio = expected.half_width / max(expected.random_half_width, 1e-9)
    first = (
        f"what {counted(scores.n_models, 'model')} ran makes intervals {ratio:.2f} times as wide "
        f"as random sampling's (±{Unit(scores.scale).points(expected.random_half_width)})"
        if scores.n_models
        else f"{without}. These are the exact intervals of a random sample of right and wrong "
        "answers"
    )
    if samples_unrun(scores):
        beside = f"no source model ran {scores.unrun_share:.0%} of the full score: these items run "
        beside += "as a random sample, and fewbench chooses the others, so that intervals are "
        return first, f"{beside}usually narrower than here"
    full = (
        f"source models would help: {FEW} full runs made intervals 0.41 to 0.75 times as wide on "
        "eight benchmarks (0.94 times on the bundled images)"
    )
    if expected.pays_after is not None:
        runs = counted(FEW - scores.whole.n_models, "full run")
        full += f". At {FULL:g} times, {runs} of {scores.n_items:,} items pay off after about "
        full += counted(expected.pays_after, "new model")
    return first, full
