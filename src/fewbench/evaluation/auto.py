"""The method `auto`: the source models show which method to use.

A quick backtest: every source model is estimated by methods that were fitted without it. The
preferred method is taken unless another one is clearly better, and no worse for targets stronger
than their sources. Plain random sampling is taken unless the method is clearly better than that.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fewbench._names import counted
from fewbench._seeds import child_seed
from fewbench._threads import one_thread
from fewbench._types import FloatArray
from fewbench.errors import EvaluationError, FewbenchError
from fewbench.evaluation.errors import FOLDS, measure
from fewbench.evaluation.opening import Stop, check_budget
from fewbench.evaluation.replay import replay
from fewbench.methods import ADVICE, CATALOGUE, FEW, Method, Session, Subset, find_method, obstacle
from fewbench.methods.catalogue import AUTO, STRONGER
from fewbench.methods.sources import RELIABLE, distinct_sources, reliability
from fewbench.scores import Scores

RANDOM = "random"
OWN = ("fewbench", "fewbench-static")
"""fewbench's own methods, the first to prefer, where the catalogue has them."""
SAFE = "aipw"
"""A method that rests little on the source models."""
MOST_MODELS, MOST_ITEMS = 80, 2000
"""Size of the part of the table that the quick backtest uses."""
STRONGEST = 0.75
"""Sources above this quantile stand for targets that beat all others."""
ALPHA = 0.1
UNKNOWN_BUDGET = 100
"""Items to backtest with where only the width of the interval is given."""


class Choice(NamedTuple):
    """A method of the catalogue, and why it was chosen."""

    method: str
    reason: str


@dataclass(frozen=True)
class Auto(Method):
    """Chooses a method by the source models, then is that method."""

    costly = True

    def start(self, scores: Scores, budget: int, seed: int, targets: Sequence[str]) -> Session:
        """Choose a method and open its session."""
        chosen = choose_method(scores, budget, seed).method
        return find_method(chosen).start(scores, budget, seed, targets)

    def describe(self) -> str:
        """Return `auto`."""
        return AUTO


def candidates(scores: Scores, *, stronger: bool = False) -> tuple[str, ...]:
    """Return the methods to consider for a table of sources, the preferred first, random last.

    Methods that the table does not allow are left out.

    Parameters
    ----------
    scores : Scores
    stronger : bool
        For targets stronger than all source models.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> candidates(simulate(40, 60))[-1]
    'random'
    """
    distinct = distinct_sources(scores)
    advised = next(
        one.methods
        for one in ADVICE
        if one.least <= distinct < one.below
        and (distinct < FEW or (one.methods == STRONGER) == stronger)
    )
    own = [name for name in OWN if name in CATALOGUE]
    if own:  # others that adapt take long to backtest
        advised = tuple(n for n in advised if n not in OWN and CATALOGUE[n].method.asks_once)
    able = [n for n in advised if n != RANDOM and obstacle(CATALOGUE[n].method, scores) is None]
    own = [n for n in own if obstacle(CATALOGUE[n].method, scores) is None]
    return (*own[:1], *able[:1], RANDOM) if own else (*able, RANDOM)


def choose_method(scores: Scores, budget: int, seed: int = 0, *, extends: bool = False) -> Choice:
    """Choose a method by a backtest on the source models that takes a few seconds.

    Parameters
    ----------
    scores : Scores
        The source models. At most 80 of them and 2,000 items are used, drawn at random.
    budget : int
        Number of items to run.
    seed : int
        Random seed.
    extends : bool
        Choose only among methods that need not know the number of items beforehand.

    Returns
    -------
    Choice
        The name of a method of the catalogue, and the reason in a sentence.

    Notes
    -----
    Errors are compared by Student's t test over the folds of a cross-fit: the models of a fold
    share the items that were drawn, so their errors move together. The level is 10 %, divided by
    the number of methods compared (Bonferroni).

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> choose_method(simulate(4, 60), 10).reason
    'there are only 4 distinct source models, too few to compare methods on'
    """
    check_budget(budget, scores.n_items)
    alpha = reliability(scores)
    if alpha < RELIABLE and scores.n_models >= FOLDS:
        return Choice(
            RANDOM,
            f"the source models hardly differ in ability (reliability {max(alpha, 0):.2f} of 1), "
            "so they do not show which items tell models apart",
        )
    distinct = distinct_sources(scores) or scores.n_models
    if distinct < FOLDS:
        models = counted(distinct, "distinct source model")
        return Choice(RANDOM, f"there are only {models}, too few to compare methods on")
    with one_thread():
        return _by_backtest(scores, budget, seed, extends)


def choose_for(scores: Scores, stop: Stop, seed: int) -> Choice:
    """Choose a method for an evaluation that stops by these limits."""
    budget = stop.budget(find_method(RANDOM), scores)
    unknown = stop.items is None and stop.cost is None
    if unknown:
        budget = min(UNKNOWN_BUDGET, max(1, scores.n_items // 4))
    return choose_method(scores, budget, seed, extends=unknown)


def _by_backtest(scores: Scores, budget: int, seed: int, extends: bool) -> Choice:
    found = candidates(scores)[:-1]
    own = [name for name in found if name in OWN][:1]
    names = list(dict.fromkeys([*own, *[n for n in found if n not in OWN][:1], SAFE]))
    names = [n for n in names if not extends or CATALOGUE[n].method.extends]
    methods = {name: CATALOGUE[name].method.for_sources(scores) for name in names}
    part, budget_here = _part(scores, budget, seed)
    errors: dict[str, FloatArray] = {}
    random = np.empty((0,))
    for name in names:
        held = measure(methods[name], part, budget_here, child_seed(seed, 10), divisions=1)
        folds = np.unique(held.parts)
        if len(folds) < FOLDS:  # it could not be fitted on every part of the sources
            continue
        sizes = np.abs(held.errors[:, -1, 0])
        errors[name] = np.array([sizes[held.parts == fold].mean() for fold in folds])
        random = np.array([held.random[held.parts == fold].mean() for fold in folds])
    if not errors:
        return Choice(RANDOM, "no other method could be judged on these source models")
    preferred = next(iter(errors))
    better = {
        name: mean
        for name, mean in ((n, float(e.mean())) for n, e in errors.items())
        if name != preferred
        and _is_below(errors[name] - errors[preferred], ALPHA / max(len(errors) - 1, 1))
    }
    chosen = min(better, key=lambda name: better[name]) if better else preferred
    passed_over = ""
    pair = methods[chosen], methods[preferred]
    if chosen != preferred and not _holds_beyond(*pair, part, budget_here, seed):
        passed_over = f"; {chosen} errs less there, but more for models stronger than its sources"
        del errors[chosen]
        chosen = preferred
    if not _is_below(errors[chosen] - random, ALPHA):
        passed_over = ""
        clear = [n for n in errors if _is_below(errors[n] - random, ALPHA / len(errors))]
        if not clear:
            return Choice(
                RANDOM,
                "no method is clearly better than random sampling on your source models: "
                f"{chosen} errs by {_said(errors[chosen], scores)} with {budget} items, random "
                f"sampling by {_said(random, scores)}",
            )
        chosen = min(clear, key=lambda name: float(errors[name].mean()))
    return Choice(
        chosen,
        f"on your source models it errs by {_said(errors[chosen], scores)} with {budget} items, "
        f"random sampling by {_said(random, scores)}{passed_over}",
    )


def _holds_beyond(method: Method, preferred: Method, part: Scores, budget: int, seed: int) -> bool:
    """Whether a method errs no more than the preferred one where targets beat all sources."""
    order = np.argsort(part.full_scores(), kind="stable")
    below = round(STRONGEST * len(order))
    sources = part.take(models=np.sort(order[:below]))
    targets = part.complete().take(models=np.sort(order[below:]))
    try:
        mine, other = (
            np.abs(replay(one, sources, targets, budget, seed).scores - targets.full_scores())
            for one in (method, preferred)
        )
    except FewbenchError:
        return False
    return float(mine.mean()) <= float(other.mean())


def _part(scores: Scores, budget: int, seed: int) -> tuple[Scores, int]:
    """Return a part of a large table, and the budget that leaves the same share of it."""
    rng = np.random.default_rng(child_seed(seed, 11))
    models = items = None
    most_items = max(MOST_ITEMS, 4 * budget)
    if scores.n_models > MOST_MODELS:
        models = np.sort(rng.permutation(scores.n_models)[:MOST_MODELS])
    if scores.n_items > most_items:
        items = np.sort(rng.permutation(scores.n_items)[:most_items])
        # Items that none of the models answered are left out.
        seen = scores.cells[slice(None) if models is None else models]
        items = items[~np.isnan(seen[:, items]).all(axis=0)]
    if models is None and items is None:
        return scores, budget
    part = scores.take(models, items)
    return part, min(budget, part.n_items)


def _is_below(differences: FloatArray, alpha: float) -> bool:
    """Whether the mean is below 0 by a one-sided t test."""
    from scipy.special import stdtrit

    n = len(differences)
    mean, sd = float(differences.mean()), float(differences.std(ddof=1))
    return mean < 0 and mean + float(stdtrit(n - 1, 1 - alpha)) * sd / math.sqrt(n) < 0


def _said(errors: FloatArray, scores: Scores) -> str:
    return f"{float(errors.mean()) * (scores.scale.high - scores.scale.low):.3g}"


def check_given(subset: Subset | None) -> None:
    """Raise EvaluationError for `auto` with items that were chosen before."""
    if subset is not None:
        raise EvaluationError(
            "method 'auto' and a given subset", hint="name the method that the subset is for"
        )
