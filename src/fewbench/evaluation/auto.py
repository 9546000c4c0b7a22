"""The method `auto`: the source models show which method to use.

A quick backtest: every source model is estimated by methods that were fitted without it. The
preferred method is taken unless another one is clearly better, and no worse for targets stronger
than their sources. Plain random sampling is taken unless the method is clearly better than that.
Methods are judged at the same numbers of items and with the same random numbers, whatever is to be
run, so that a table has one answer. With few source models a backtest is a lottery: then it is
fewbench, whose items are a random sample.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from fewbench._names import counted
from fewbench._seeds import child_seed
from fewbench._threads import one_thread
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms import ties
from fewbench.errors import EvaluationError, FewbenchError
from fewbench.evaluation.opening import Stop, check_budget
from fewbench.methods import CATALOGUE, Method, Session, Subset, find_method
from fewbench.methods.base import AUTO
from fewbench.methods.catalogue import ADVICE, FEW, STRONGER
from fewbench.methods.kriging import MOST_UNRUN, samples_unrun
from fewbench.methods.needs import obstacle
from fewbench.methods.sources import (
    RELIABLE,
    carrying_sources,
    independent_sources,
    is_known,
    known_scores,
    reliability,
)
from fewbench.scores import Scores
from fewbench.uncertainty.held_out import FOLDS, HeldOut, measure
from fewbench.uncertainty.replay import replay
from fewbench.uncertainty.sampling import expected_random_errors, sampling_effect

RANDOM = "random"
OWN = ("fewbench", "fewbench-static")
"""fewbench's own methods, the first to prefer, where the catalogue has them."""
DEFAULT = OWN[0]
SAFE = "aipw"
"""A method that depends little on the source models."""
MOST_MODELS, MOST_ITEMS = 80, 2000
"""Size of the part of the table that the quick backtest uses."""
STRONGEST = 0.75
"""Sources above this quantile serve as targets that beat all others."""
ALPHA = 0.1
LOOKS = (10, 20, 40, 80)
"""Numbers of items at which methods are judged, at most half of the table's."""
SEED = 0
"""For every backtest, so that one table has one answer."""
TINY = 1e-9


Beats = Callable[[str, str, int], bool]


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
        chosen = choose_method(scores, budget).method
        return find_method(chosen).start(scores, budget, seed, targets)

    def describe(self) -> str:
        """Return `auto`."""
        return AUTO


def candidates(scores: Scores, *, beyond: bool = False) -> tuple[str, ...]:
    """Return the methods to consider for a table of sources, the preferred first, random last.

    Methods that the table does not allow are left out.

    Parameters
    ----------
    scores : Scores
    beyond : bool
        For targets stronger or weaker than all source models.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> candidates(simulate(40, 60))[-1]
    'random'
    """
    count = carrying_sources(scores)
    advised = next(
        advice.methods
        for advice in ADVICE
        if advice.least <= count < advice.below
        and (count < FEW or (advice.methods == STRONGER) == beyond)
    )
    special = [name for name in OWN if name in CATALOGUE]
    if special:  # others that adapt take long to backtest
        advised = tuple(n for n in advised if n not in OWN and CATALOGUE[n].method.asks_once)
    able = [n for n in advised if n != RANDOM and obstacle(CATALOGUE[n].method, scores) is None]
    special = [n for n in special if obstacle(CATALOGUE[n].method, scores) is None]
    return (*special[:1], *able[:1], RANDOM) if special else (*able, RANDOM)


def choose_method(scores: Scores, budget: int, *, extends: bool = False) -> Choice:
    """Choose a method by a backtest on the source models that takes a few seconds.

    Parameters
    ----------
    scores : Scores
        The source models. At most 80 of them and 2,000 items are used, drawn at random.
    budget : int
        Number of items to run. The choice does not depend on it.
    extends : bool
        Choose only among methods that do not need the number of items beforehand.

    Returns
    -------
    Choice
        The name of a method of the catalogue, and the reason in a sentence.

    Notes
    -----
    Methods are judged by their error over that of random sampling, mean over 10, 20, 40 and 80
    items. It is compared by Student's t test over the folds of a cross-fit: the
    models of a fold share the items that were drawn, so their errors move together. The level is
    10%, divided by the number of methods compared (Bonferroni).

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> choose_method(simulate(4, 60), 10).reason
    'with fewer than 20 independent source models methods cannot be compared, and its items ...'
    """
    check_budget(budget, scores.n_items)
    known = choice_without_backtest(scores)
    if known is not None:
        return known
    with one_thread():
        return _by_backtest(scores.whole, SEED, extends)


def choice_without_backtest(scores: Scores) -> Choice | None:
    """Return what `choose_method` does where it needs no backtest, else None."""
    whole = scores.whole
    alpha, count = reliability(whole), carrying_sources(whole)
    unrun = scores.unrun_share > MOST_UNRUN
    if scores.proxies.size and count < FEW:
        return Choice(SAFE, "the items have proxies (columns proxy:NAME), which it uses as sources")
    if whole.n_models < 2 or unrun or (whole is not scores and count < FEW):
        return Choice(DEFAULT, _without_whole(scores))
    if whole.n_models >= FEW and alpha < RELIABLE:
        return Choice(
            RANDOM,
            f"the source models hardly differ in ability (reliability {max(alpha, 0):.2f} of 1), "
            "so they do not show which items tell models apart",
        )
    if count < FEW:
        return Choice(
            DEFAULT,
            f"with fewer than {FEW} independent source models methods cannot be compared, and its "
            "items are a random sample",
        )
    return None


def _without_whole(scores: Scores) -> str:
    if not scores.n_models:
        return "there are no source models, so the items are a random sample, spread over tasks"
    if scores.unrun_share > MOST_UNRUN:
        text = f"no source model ran {scores.unrun_share:.0%} of the benchmark, so "
        if samples_unrun(scores):
            return f"{text}it chooses among the other items alone: of these it draws at random"
        return f"{text}the items are a random sample"
    count = independent_sources(scores.whole)
    few = f"{count} of them independent, and {FEW} are needed to choose items"
    return (
        f"{scores.whole.n_models} of {counted(scores.n_models, 'source model')} ran half of the "
        f"items or more, {few if count < FEW else 'and they hardly differ in ability'}: the items "
        "are a random sample, and what all source models ran makes the estimate more precise"
    )


def choose_for(scores: Scores, stop: Stop) -> Choice:
    """Choose a method for an evaluation that stops by these limits."""
    budget = stop.budget(find_method(RANDOM), scores)
    return choose_method(scores, budget, extends=stop.items is None)


def pick(names: Sequence[str], means: Mapping[str, float], beats: Beats) -> str:
    """Return the method to take: the first, unless another one has a clearly lower error.

    A method is taken only if its error is clearly lower than that of random sampling. If no method
    is, random sampling is taken.

    Parameters
    ----------
    names : sequence of str
        The preferred first, without random sampling.
    means : mapping of str to float
        Their errors.
    beats : callable
        Whether the error of one method is clearly lower, given the number of comparisons.
    """
    preferred, *others = names
    better = [name for name in others if beats(name, preferred, len(others))]
    chosen = min(better, key=lambda name: means[name]) if better else preferred
    if beats(chosen, RANDOM, 1):
        return chosen
    clear = [name for name in names if beats(name, RANDOM, len(names))]
    return min(clear, key=lambda name: means[name]) if clear else RANDOM


def _by_backtest(scores: Scores, seed: int, extends: bool) -> Choice:
    candidate_names = candidates(scores)[:-1]
    special = [name for name in candidate_names if name in OWN][:1]
    names = list(dict.fromkeys([*special, *[n for n in candidate_names if n not in OWN][:1], SAFE]))
    names = [n for n in names if not extends or CATALOGUE[n].method.extends]
    methods = {name: CATALOGUE[name].method.for_sources(scores) for name in names}
    part = _part(scores, seed)
    looks = [n for n in LOOKS if n <= part.n_items // 2] or [max(1, part.n_items // 2)]
    every = {name: _shares(methods[name], part, looks, child_seed(seed, 10)) for name in names}
    errors = {name: pair[0] for name, pair in every.items() if pair.size}
    if not errors:
        return Choice(RANDOM, "no other method could be judged on these source models")
    preferred = next(iter(errors))
    over = f"times that of random sampling, mean over {looks[0]} to {looks[-1]} items"
    shares = {name: float(error.mean()) for name, error in errors.items()}
    nearer = dict[str, str]()
    """Methods with a lower error than the preferred one, but not beyond the source models."""

    def beats(name: str, other: str, comparisons: int) -> bool:
        apart = errors[name] - (every[name][1] if other == RANDOM else errors[other])
        if not _is_below(apart, ALPHA / comparisons):
            return False
        # At the most items: an error that does not fall with their number is still hidden at few.
        if other == RANDOM or _holds_beyond(methods[name], methods[other], part, looks[-1], seed):
            return True
        nearer[name] = (
            f"the error of {name} is lower ({shares[name]:.2f}), but higher for models stronger "
            "or weaker than its sources"
        )
        return False

    chosen = pick(list(errors), shares, beats)
    if chosen == RANDOM:
        return Choice(
            RANDOM,
            "no method is clearly better than random sampling on your source models: the error of "
            f"the method {preferred} is {shares[preferred]:.2f} {over}",
        )
    reason = f"on your source models, its error is {shares[chosen]:.2f} {over}"
    if chosen == preferred:
        if preferred != DEFAULT and DEFAULT in CATALOGUE:
            reason += f"; {DEFAULT} could not be judged on parts of them"
        return Choice(chosen, "; ".join([reason, *nearer.values()]))
    why = "clearly higher" if beats(chosen, preferred, len(errors) - 1) else "not clearly below 1"
    return Choice(chosen, f"{reason}; that of {preferred} is {shares[preferred]:.2f} times, {why}")


def _shares(method: Method, part: Scores, looks: Sequence[int], seed: int) -> FloatArray:
    """Return errors over random sampling's, mean over numbers of items, shape (2, folds).

    The second row is of random sampling on the models of each fold; its mean over all is 1.
    """
    of = partial(measure, method, part, seed=seed, divisions=1, has_units=False)
    runs: list[tuple[HeldOut, int]] = [(of(n), 0) for n in looks if not method.extends]
    if method.extends:
        measured = of(looks[-1], looks=looks)
        runs = [(measured, at) for at in range(len(looks))]
    full, effect = part.full_scores(), sampling_effect(part, looks[-1])
    shares = []
    for n, (measured, at) in zip(looks, runs, strict=True):
        folds = [measured.parts == fold for fold in range(FOLDS)]
        if not all(fold.any() for fold in folds):  # it could not be fitted on all
            return np.empty((2, 0))
        of_models = (
            np.abs(measured.errors[:, at, 0]),
            expected_random_errors(full[measured.models], n, part.n_items, effect),
        )
        means = np.array([[errors[fold].mean() for fold in folds] for errors in of_models])
        shares.append(means / max(means[1].mean(), TINY))
    return np.asarray(np.mean(shares, axis=0))


def _holds_beyond(method: Method, preferred: Method, part: Scores, budget: int, seed: int) -> bool:
    """Whether a method errs no more than the preferred one beyond the sources, at both ends."""
    levels = ties.levels(part.full_scores())
    ends = (np.argsort(by, kind="stable") for by in (levels, -levels))
    return all(_holds_at(order, method, preferred, part, budget, seed) for order in ends)


def _holds_at(
    order: IntArray, method: Method, preferred: Method, part: Scores, budget: int, seed: int
) -> bool:
    """Whether it is not, with the last models of an order as targets."""
    below = round(STRONGEST * len(order))
    sources = part.take(models=np.sort(order[:below]))
    judged = np.sort(order[below:])
    judged = judged[is_known(part)[judged]]
    if not len(judged):
        return False
    targets, (truth, _) = part.take(models=judged), known_scores(part, judged)
    try:
        mine, other = (
            np.abs(replay(name, sources, targets, budget, seed).scores - truth)
            for name in (method, preferred)
        )
    except FewbenchError:
        return False
    return float(mine.mean()) <= float(other.mean())


def _part(scores: Scores, seed: int) -> Scores:
    """Return a part of a large table."""
    rng = np.random.default_rng(child_seed(seed, 11))
    models = items = None
    if scores.n_models > MOST_MODELS:
        models = np.sort(rng.permutation(scores.n_models)[:MOST_MODELS])
    if scores.n_items > MOST_ITEMS:
        items = np.sort(rng.permutation(scores.n_items)[:MOST_ITEMS])
        # Items that none of the models answered are left out.
        seen = scores.cells[slice(None) if models is None else models]
        items = items[~np.isnan(seen[:, items]).all(axis=0)]
    return scores if models is None and items is None else scores.take(models, items)


def _is_below(differences: FloatArray, alpha: float) -> bool:
    """Whether the mean is below 0 by a one-sided t test."""
    from scipy.special import stdtrit

    n = len(differences)
    mean, sd = float(differences.mean()), float(differences.std(ddof=1))
    return mean < 0 and mean + float(stdtrit(n - 1, 1 - alpha)) * sd / math.sqrt(n) < 0


def check_given(subset: Subset | None) -> None:
    """Raise EvaluationError for `auto` with items that were chosen before."""
    if subset is not None:
        raise EvaluationError(
            "method 'auto' and a given subset",
            hint="name the method that the subset is for",
            kind="conflict",
        )
