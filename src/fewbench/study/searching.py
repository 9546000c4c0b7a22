"""Ways of finding the best of several models, on full answers: which one each takes when.

A search is called with answers, shape (models, items), a random generator and budgets, increasing
numbers of answers in all. It returns a `Found` for each budget.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from fewbench._types import FloatArray
from fewbench.algorithms.best_of_many import Prospect, SourceAxes, believe, first_items

BATCH = 32
"""Items that UCB-E runs at a time."""


class Found(NamedTuple):
    """What a search says after so many answers: the best model, its score with its standard error.

    `stopped` is whether it stopped by itself, after `share` of the answers.
    """

    best: int
    score: float
    error: float = np.nan
    stopped: bool = False
    share: float = 0.0


Search = Callable[..., list[Found]]


def best(
    answers: FloatArray,
    rng: np.random.Generator,
    budgets: Sequence[int],
    margin: float = 0.0,
    level: float = 0.95,
    *,
    sources: FloatArray | None = None,
    goes_on: bool = False,
) -> list[Found]:
    """Search as `fewbench.best` does, and stay with what it says when it stops.

    `sources` are answers of source models to the same items, shape (sources, items). If it
    `goes_on` after that, what it found then, or at the end, comes last.
    """
    n_models, n_items = answers.shape
    order = rng.permutation(n_items)
    answers = answers[:, order]
    axes = None if sources is None else SourceAxes.fit(sources[:, order])
    n = np.full(n_models, first_items(budgets[0], n_models, n_items))
    found, at_stop = list[Found](), list[Found]()
    while True:
        seen = np.where(np.arange(n_items) < n[:, None], answers, np.nan)
        look = Prospect.of(believe(seen, axes), n, n_items, rng, margin=margin, level=level)
        used, stops, scores = int(n.sum()), look.is_settled, look.beliefs.scores
        leader = int(scores.argmax())
        error = float(look.beliefs.errors[leader])
        now = Found(leader, float(scores[leader]), error, stops, used / answers.size)
        if stops and not at_stop:
            at_stop.append(now)
        is_over = (stops and not goes_on) or not look.room.any()
        while len(found) < len(budgets) and (is_over or used >= budgets[len(found)]):
            found.append(now)
        if len(found) == len(budgets):
            return found + [*at_stop, now][: int(goes_on)]
        budget = budgets[len(found)]
        n = n + look.round(first_items(budget, n_models, n_items), budget - used, rng)


def halving(
    answers: FloatArray,
    rng: np.random.Generator,
    budgets: Sequence[int],
) -> list[Found]:
    """Successive halving: an equal share of the budget a round, and the better half goes on."""
    n_models, n_items = answers.shape
    sums = np.cumsum(answers[:, rng.permutation(n_items)], axis=1)
    n_rounds, found = int(np.ceil(np.log2(n_models))), []
    for budget in budgets:
        live, n, left, means = np.arange(n_models), 0, budget, np.zeros(n_models)
        for at in range(n_rounds):
            more = min(n_items, n + left // (n_rounds - at) // len(live))
            left -= (more - n) * len(live)
            n = max(more, 1)
            means = sums[live, n - 1] / n + 1e-9 * rng.random(len(live))
            order = np.argsort(-means, kind="stable")
            live, means = live[order], means[order]
            live = live[: max(1, (len(live) + 1) // 2)]
            if len(live) == 1:
                break
        found.append(Found(int(live[0]), float(means[0])))
    return found


def ucb_e(
    answers: FloatArray,
    rng: np.random.Generator,
    budgets: Sequence[int],
    *,
    exploration: float = 1.0,
    is_shared: bool = False,
) -> list[Found]:
    """UCB-E (Audibert, Bubeck & Munos 2010), with batches; each model has an order of its own."""
    n_models, n_items = answers.shape
    orders = np.tile(rng.permutation(n_items), (n_models, 1))
    if not is_shared:
        orders = rng.permuted(orders, axis=1)
    sums = np.cumsum(np.take_along_axis(answers, orders, axis=1), axis=1)
    sums = np.concatenate([np.zeros((n_models, 1)), sums], axis=1)
    n, every, found = np.zeros(n_models, dtype=np.intp), np.arange(n_models), list[Found]()
    for budget in budgets:
        while n.sum() < budget and (n < n_items).any():
            least = np.maximum(n, 1)
            bounds = np.where(n, sums[every, n] / least + np.sqrt(exploration / least), np.inf)
            at = int(np.where(n < n_items, bounds, -np.inf).argmax())
            n[at] += min(BATCH, n_items - n[at], budget - n.sum())
        means = np.where(n, sums[every, n] / np.maximum(n, 1), -1.0)
        at = int((means + 1e-9 * rng.random(n_models)).argmax())
        found.append(Found(at, float(means[at])))
    return found


def uniform(
    answers: FloatArray,
    rng: np.random.Generator,
    budgets: Sequence[int],
) -> list[Found]:
    """The same random items for all models."""
    n_models, n_items = answers.shape
    sums, found = np.cumsum(answers[:, rng.permutation(n_items)], axis=1), []
    for budget in budgets:
        n = min(max(1, budget // n_models), n_items)
        means = sums[:, n - 1] / n
        at = int((means + 1e-9 * rng.random(n_models)).argmax())
        found.append(Found(at, float(means[at])))
    return found


def at_random(
    answers: FloatArray,
    rng: np.random.Generator,
    budgets: Sequence[int],
) -> list[Found]:
    """Any model, without an answer."""
    at = int(rng.integers(len(answers)))
    return [Found(at, float(answers[at].mean()))] * len(budgets)


SEARCHES: dict[str, Search] = {
    "best": best,
    "halving": halving,
    "ucb-e": ucb_e,
    "uniform": uniform,
    "random": at_random,
}
