"""Which of several models is the best: beliefs about their scores, and which ones run on.

The models run the same items in the same order, some further than others. The answers of all
models to an item are a draw from a normal distribution. Its covariance, shrunk towards one common
correlation, says how much the answers of a model that ran further tell of one that did not. What
a model answered has no error; scores are alike by as much as the answers show (a normal
distribution with unknown mean and variance), so that the highest score is not above what to expect.

Answers are spent on pairs of models either of which may be the best (top-two sampling: Russo 2020,
Operations Research 68(6)); of the two, the one that ran fewer items runs on, so that they share
items.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fewbench._types import BoolArray, FloatArray, IntArray

AXES = 12
"""Ways in which source models differ that predict answers, at most."""
COMMON, COMMON_OF_EACH = 20.0, 10.0
"""Items that the common correlation counts for, and of them for each model. With fewer, the inverse
of a covariance of many models from few items is sure of what is not so: of 100 models, 89% of the
choices were right at 20% of the answers, with these all."""
PRIOR_ITEMS = 16.0
"""Items that the mean variance of all models counts for, in that of each."""
FEW_ITEMS = 10.0
"""With fewer items than about this, errors are larger than the variance of the answers says."""
LEAST_SIZE = 0.02
"""Least eigenvalue of the correlations."""
EQUAL, TINY = 1e-9, 1e-12
LEAST_NOISE, WIDER_NOISE = 0.01, 1.15
LEVEL = 0.5
"""Standard deviation of the level of all scores before any answer; with sources `LEVEL_LEFT`."""
LEVEL_LEFT = 0.05
SPREADS = np.geomspace(0.002, 0.4, 16)
"""How far models may lie apart: scales of the t distribution of scores, each as likely. With more
weight on equal models (from .0001 on), P(best) of 20 equal ones says .14 in place of .20 (it is
.05), but where models differ by half of the error, the winner's score is covered .76, not .87."""
TAILS, ROUNDS = 1.0, 4
"""Degrees of freedom of this distribution, and rounds in which it is fitted. Few: the best of a
leaderboard often lie far from the others. With 4, they look 2 points too low at 5% of the answers.
"""
DRAWS = 2000
SHARPER = 0.5
"""By this, half of the draws lie nearer to what is expected where answers are shared out. With 1,
the one found of 20 models next in rank is 1.25 points behind the best at 10% of the answers, with
less .6 to .8; at 1%, of 20 random models, 5.4 and 2 to 4. The other half lets unlikely rivals run
on, so that the search ends."""
LOOKS, FEW_MODELS = 1.3, 20
"""By how much errors count more as the leader is looked at after every round. With more models the
lead of one is more often luck: then times the fourth root of their number over this. Among
100 models of the Open LLM Leaderboard, 74% of the stops are right without it, and 91% with it."""
FIRST = 8
"""Items that every model runs first, unless they are half of the budget."""
LEAST_FIRST = 2
GROWTH = 0.05
"""Answers of a round, over those so far."""
LEAST_STEP, STEPS = 4, 200
"""Items that a model gets at a time, at least, and into how many steps all items are divided."""


@dataclass(frozen=True, eq=False)
class SourceAxes:
    """What source models show: how hard items are, and along which axes models differ.

    Attributes
    ----------
    mean : ndarray, shape (items,)
    axes : ndarray, shape (items, axes)
        Scaled so that models vary by 1 along each.
    noise : float
        Variance of an answer that the axes leave.
    """

    mean: FloatArray
    axes: FloatArray
    noise: float

    @classmethod
    def fit(cls, sources: FloatArray) -> "SourceAxes":
        """Return the axes of source models, shape (sources, items), two or more."""
        mean = sources.mean(axis=0)
        centered = (sources - mean) / np.sqrt(len(sources) - 1)
        _, sizes, rows = np.linalg.svd(centered, full_matrices=False)
        axes = (rows.T * sizes)[:, : max(1, min(AXES, len(sources) // 4))]
        left = float(((sources - mean) ** 2).mean() - (axes**2).sum(axis=1).mean())
        return cls(mean, axes, max(left, LEAST_NOISE) * WIDER_NOISE)

    def predict(self, answers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return predicted answers, and each answer less its prediction without it (else NaN)."""
        predicted, left = np.empty_like(answers), np.full_like(answers, np.nan)
        for row, (seen, given) in enumerate(zip(~np.isnan(answers), answers, strict=True)):
            axes = self.axes[seen]
            inverse = np.linalg.inv(np.eye(axes.shape[1]) + axes.T @ axes / self.noise)
            told = axes.T @ (given[seen] - self.mean[seen]) / self.noise
            predicted[row] = self.mean + self.axes @ (inverse @ told)
            leverage = ((axes @ inverse) * axes).sum(axis=1) / self.noise
            left[row, seen] = (given[seen] - predicted[row, seen]) / (1 - leverage)
        return predicted, left


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Beliefs about the full scores of several models: a mixture of normal distributions.

    Attributes
    ----------
    weights : ndarray, shape (parts,)
    means : ndarray, shape (parts, models)
    covariances : ndarray, shape (parts, models, models)
    """

    weights: FloatArray
    means: FloatArray
    covariances: FloatArray

    @property
    def scores(self) -> FloatArray:
        """Expected scores, shape (models,)."""
        return np.asarray(self.weights @ self.means)

    @property
    def errors(self) -> FloatArray:
        """Standard deviations, shape (models,)."""
        within = self.weights @ np.diagonal(self.covariances, axis1=1, axis2=2)
        between = self.weights @ (self.means - self.scores) ** 2
        return np.asarray(np.sqrt(within + between))

    def draw(self, rng: np.random.Generator, draws: int = DRAWS) -> FloatArray:
        """Return draws of all scores, shape (draws, models)."""
        n_models, ends = self.means.shape[1], np.round(np.cumsum(self.weights) * draws)
        counts = np.diff(ends.astype(int), prepend=0)
        drawn = []
        for n, mean, covariance in zip(counts, self.means, self.covariances, strict=True):
            if n:
                root = np.linalg.cholesky(covariance + TINY * np.eye(n_models))
                root[np.diag(covariance) <= TINY] = 0.0  # models that ran all items
                drawn.append(mean + rng.standard_normal((n, n_models)) @ root.T)
        return np.concatenate(drawn)


def believe(
    answers: FloatArray,
    sources: SourceAxes | None = None,
    weights: FloatArray | None = None,
    *,
    lost: FloatArray | None = None,
    in_general: bool = False,
) -> Beliefs:
    """Return what is believed of the full scores, given the answers so far.

    Parameters
    ----------
    answers : ndarray, shape (models, items)
        In [0, 1], NaN where a model has not run an item. Each model has one or more.
    sources : SourceAxes, optional
        Made from the same items.
    weights : ndarray, shape (items,), optional
        How much each item counts in the full score (default: all alike).
    lost : ndarray, shape (models,), optional
        Share of the items that each model ran to which it gave no answer: they may be right or
        wrong.
    in_general : bool
        Scores of the models on questions like these and if they run again, not on these items.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> answers = (rng.random((3, 400)) < np.array([[0.8], [0.5], [0.5]])) * 1.0
    >>> answers[1:, 100:] = np.nan
    >>> beliefs = believe(answers)
    >>> int(beliefs.scores.argmax()), bool(np.argmin(beliefs.errors) == 0)
    (0, True)
    """
    n_models, n_items = answers.shape
    seen = ~np.isnan(answers)
    if weights is not None and np.ptp(weights):
        level = float(np.nanmean(np.where(seen, answers, np.nan)))
        shares = weights * (n_items / weights.sum())
        answers = level + shares * (answers - level)  # whose mean is the weighted one
        if sources is not None:
            mean = level + shares * (sources.mean - level)
            sources = SourceAxes(mean, sources.axes * shares[:, None], sources.noise)
    if sources is None:
        predicted, left = np.zeros((n_models, 1)), answers
    else:
        predicted, left = sources.predict(answers)
    patterns = _Patterns.of(seen, left, answers - predicted)
    means = patterns.means
    covariance = _covariance(left, seen, means)
    n = seen.sum(axis=1)
    precision, pull = np.zeros((n_models, n_models)), np.zeros(n_models)
    base = predicted.mean(axis=1)
    turn = np.eye(n_models) * (n_items - patterns.n_items) / n_items
    error = covariance * (n_items - patterns.n_items) / n_items**2
    for ran, count, mean, exact in patterns:
        inverse = np.linalg.inv(covariance[np.ix_(ran, ran)])
        precision[np.ix_(ran, ran)] += count * inverse
        pull[ran] += count * (inverse @ mean)
        base[ran] += count / n_items * exact
        lacking = np.setdiff1d(np.arange(n_models), ran, assume_unique=True)
        if len(lacking):
            slope = covariance[np.ix_(lacking, ran)] @ inverse
            base[lacking] += count / n_items * (slope @ mean)
            turn[lacking, lacking] += count / n_items
            turn[np.ix_(lacking, ran)] -= count / n_items * slope
            after = covariance[np.ix_(lacking, lacking)] - slope @ covariance[np.ix_(ran, lacking)]
            error[np.ix_(lacking, lacking)] += count / n_items**2 * after
    center = 0.0 if sources is not None else float(np.average(means, weights=n / (n + FEW_ITEMS)))
    level, spreads = LEVEL, SPREADS
    if sources is not None:  # nothing but the answers shows how well the axes fit these models
        level, spreads = LEVEL_LEFT, SPREADS[SPREADS >= LEVEL_LEFT]
    apart = np.linalg.inv(precision)
    wider = np.sqrt(1 + FEW_ITEMS / (n + FEW_ITEMS))
    errors = (apart * np.outer(wider, wider)).astype(np.float64)
    moved = believe_estimates(apart @ pull, errors, center, level, spreads)
    if in_general:
        base, turn, error = predicted.mean(axis=1), np.eye(n_models), np.zeros_like(covariance)
        if sources is not None:
            error = np.cov(predicted) / n_items
    if lost is not None:
        error = error + np.diag((lost / 2) ** 2)
    covariances = turn @ moved.covariances @ turn.T + error
    covariances = (covariances + covariances.swapaxes(1, 2)) / 2
    return Beliefs(moved.weights, base + moved.means @ turn.T, covariances)


def believe_estimates(
    estimates: FloatArray,
    errors: FloatArray,
    center: float,
    level: float = LEVEL,
    spreads: FloatArray = SPREADS,
) -> Beliefs:
    """Return what is believed of scores that are alike, given estimates of them.

    Parameters
    ----------
    estimates : ndarray, shape (models,)
    errors : ndarray, shape (models, models)
        Covariance of their errors; positive definite.
    center, level : float
        What is known of the level of all scores before any answer: its mean and standard deviation.
    spreads : ndarray
        How far models may lie apart, each as likely.

    Examples
    --------
    >>> errors = 0.02**2 * np.eye(3)
    >>> believe_estimates(np.array([0.53, 0.5, 0.5]), errors, 0.5).scores.round(2).tolist()
    [0.51, 0.51, 0.51]
    >>> believe_estimates(np.array([0.8, 0.5, 0.5]), errors, 0.5).scores.round(2).tolist()
    [0.8, 0.5, 0.5]
    """
    precision = np.linalg.inv(errors).astype(np.float64)
    likely, moved, spread = _posterior(precision, precision @ (estimates - center), level, spreads)
    return Beliefs(likely, moved + center, spread)


def _posterior(
    precision: FloatArray, pull: FloatArray, level: float, spreads: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return how likely each spread of the models is, and means and covariances given it.

    Scores are alike up to a Student t distribution: a normal one whose variance is larger for
    models that lie far from the others (variational: Tipping & Lawrence 2005, Neurocomputing
    69(1-3)). `precision` and `pull` (precision times mean) are those of the answers alone.
    """
    n = len(pull)
    center = np.eye(n) - 1 / n
    scales = np.ones((len(spreads), n))
    for _ in range(ROUNDS):
        prior = (spreads[:, None] ** 2 * scales)[:, :, None] * np.eye(n) + level**2
        after = np.linalg.inv(np.linalg.inv(prior) + precision)
        means = after @ pull
        middle = (means / scales).sum(axis=1) / (1 / scales).sum(axis=1)
        about = np.diagonal(center @ after @ center, axis1=1, axis2=2)
        far = ((means - middle[:, None]) ** 2 + about) / spreads[:, None] ** 2
        before, scales = scales, (TAILS + far) / (TAILS + 1)
    fit = (np.linalg.slogdet(after)[1] - np.linalg.slogdet(prior)[1] + means @ pull) / 2
    # In place of each model's normal density that of the t distribution.
    fit += ((np.log(before) + far / before - (TAILS + 1) * np.log1p(far / TAILS)) / 2).sum(axis=1)
    likely = np.exp(fit - fit.max())
    likely /= likely.sum()
    kept = likely > 1e-3
    return likely[kept] / likely[kept].sum(), means[kept], after[kept]


@dataclass(frozen=True, eq=False)
class _Patterns:
    """Items by the models that ran them.

    Attributes
    ----------
    ran : list of ndarray
        The models of each pattern.
    counts : ndarray, shape (patterns,)
    sums, exact : ndarray, shape (models, patterns)
        Sums of what predictions without the item leave of each answer, and with it.
    """

    ran: list[IntArray]
    counts: IntArray
    sums: FloatArray
    exact: FloatArray

    @classmethod
    def of(cls, seen: BoolArray, left: FloatArray, exact: FloatArray) -> "_Patterns":
        """Return the patterns of which models ran which items, shape (models, items)."""
        items = np.flatnonzero(seen.any(axis=0))
        packed = np.ascontiguousarray(np.packbits(seen[:, items], axis=0).T)
        keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        member = np.zeros((len(items), len(first)))
        member[np.arange(len(items)), inverse] = 1.0
        filled = [np.where(seen[:, items], part[:, items], 0.0) for part in (left, exact)]
        return cls(
            [np.flatnonzero(seen[:, at]) for at in items[first]],
            np.bincount(inverse),
            *(part @ member for part in filled),
        )

    @property
    def n_items(self) -> int:
        """Items that any model ran."""
        return int(self.counts.sum())

    @property
    def means(self) -> FloatArray:
        """Mean of what each model's answers leave, shape (models,)."""
        counts = np.zeros(len(self.sums))
        for ran, count in zip(self.ran, self.counts, strict=True):
            counts[ran] += count
        return np.asarray(self.sums.sum(axis=1) / counts)

    def __iter__(self) -> Iterator[tuple[IntArray, int, FloatArray, FloatArray]]:
        """Yield the models, the number of items, and both means."""
        for at, (ran, count) in enumerate(zip(self.ran, self.counts.tolist(), strict=True)):
            yield ran, count, self.sums[ran, at] / count, self.exact[ran, at] / count


def _covariance(left: FloatArray, seen: BoolArray, means: FloatArray) -> FloatArray:
    """Return the covariance of answers over items, shrunk towards one common correlation."""
    centered = np.where(seen, left - means[:, None], 0.0)
    both = seen.astype(float) @ seen.T
    n = np.diag(both)
    products = centered @ centered.T
    variances = np.diag(products)
    usual = max(float(variances.sum() / n.sum()), 1e-3)
    variances = (variances + PRIOR_ITEMS * usual) / (n + PRIOR_ITEMS)
    deviations = np.sqrt(variances)
    correlations = products / np.maximum(both, 1) / np.outer(deviations, deviations)
    return np.asarray(steadied(correlations, both) * np.outer(deviations, deviations))


def steadied(correlations: FloatArray, both: FloatArray, least: float = LEAST_SIZE) -> FloatArray:
    """Return correlations of models, shrunk towards a common one, whose inverse is not too sure.

    Parameters
    ----------
    correlations, both : ndarray, shape (models, models)
        Correlations of answers, and the number of items behind each.
    least : float
        Least eigenvalue.
    """
    n_models = len(both)
    others = both * ~np.eye(n_models, dtype=bool)
    common = float(
        np.clip((correlations * others).sum() / max(others.sum(), 1), 0, 1 - 2.5 * least)
    )
    weight = COMMON + COMMON_OF_EACH * n_models
    correlations = (both * correlations + weight * common) / (both + weight)
    np.fill_diagonal(correlations, 1.0)
    sizes, axes = np.linalg.eigh(correlations)
    if sizes[0] < least:
        correlations = (axes * np.maximum(sizes, least)) @ axes.T
        scale = np.sqrt(np.diag(correlations))
        correlations /= np.outer(scale, scale)
    return np.asarray(correlations)


def chance_of_lead(
    drawn: FloatArray, scores: FloatArray, top: int = 1, margin: float = 0.0
) -> float:
    """Return how likely no other model is better than the `top` highest by more than the margin.

    Errors count `LOOKS` times, as the leader is looked at after every round.

    Parameters
    ----------
    drawn : ndarray, shape (draws, models)
    scores : ndarray, shape (models,)
    """
    order = np.argsort(-scores, kind="stable")
    looks = LOOKS * max(1.0, len(scores) / FEW_MODELS) ** 0.25
    wide = (scores + looks * (drawn - scores))[:, order]
    lead = wide[:, top:].max(axis=1) - wide[:, :top].min(axis=1)
    return float((lead <= margin + EQUAL).mean())


def round_of(n_items: int, answers: int, batch: int = 0) -> tuple[int, float]:
    """Return how many items a model gets at a time, and all models in a round.

    >>> round_of(1000, 400), round_of(1000, 400, batch=100)
    ((5, 20.0), (100, 200))
    """
    step = max(LEAST_STEP, n_items // STEPS, batch)
    return step, max(2 * step, GROWTH * answers)


def first_items(budget: float, n_models: int, n_items: int) -> int:
    """Return how many items every model runs first, of a budget of answers in all.

    >>> [first_items(budget, 20, 1000) for budget in (2000, 200, 40)]
    [8, 5, 2]
    """
    return int(min(FIRST, max(LEAST_FIRST, budget / n_models / 2), n_items))


def among_top(drawn: FloatArray, top: int) -> BoolArray:
    """Return which models are the `top` best in each draw, shape (draws, models)."""
    is_best = np.zeros(drawn.shape, dtype=bool)
    best = np.argpartition(-drawn, top - 1, axis=1)[:, :top]
    np.put_along_axis(is_best, best, values=True, axis=1)
    return is_best


def chances_top(drawn: FloatArray, top: int) -> FloatArray:
    """Return how likely each model is among the `top` best, shape (models,).

    Equal scores share the places.

    >>> chances_top(np.array([[0.5, 0.5, 0.2], [0.5, 0.5, 0.9]]), 1).tolist()
    [0.25, 0.25, 0.5]
    """
    above = drawn - np.partition(drawn, -top, axis=1)[:, -top, None]
    is_above, is_level = above > EQUAL, np.abs(above) <= EQUAL
    left = (top - is_above.sum(axis=1)) / is_level.sum(axis=1)
    return np.asarray((is_above + is_level * left[:, None]).mean(axis=0))


def normal(level: float) -> float:
    """Return the half width of an interval in standard errors."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2))


def share_out(
    drawn: FloatArray,
    answered: IntArray,
    room: IntArray,
    total: float,
    step: int,
    rng: np.random.Generator,
    top: int = 1,
    costs: FloatArray | None = None,
) -> IntArray:
    """Return how many further items each model runs, for at most `total` in all.

    Two draws with different best models: of one that is the best in the one and one that is the
    best in the other, the one that ran fewer items (times the root of what one costs) runs on.

    Parameters
    ----------
    drawn : ndarray, shape (draws, models)
    answered, room : ndarray of int, shape (models,)
        Items that each model ran, and can still run.
    total : float
        Answers, or with costs their sum.
    step : int
        Items that a model gets at a time.
    rng : Generator
    top : int
        The number of best models that are looked for.
    costs : ndarray, shape (models,), optional
        What an answer costs (default: 1).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> drawn = np.array([0.7, 0.69, 0.3]) + 0.02 * rng.standard_normal((1000, 3))
    >>> share_out(drawn, np.full(3, 20), np.full(3, 80), 40, 4, rng).tolist()
    [20, 20, 0]
    """
    n_models = len(answered)
    costs = np.ones(n_models) if costs is None else costs
    planned = answered.astype(float)
    most = planned + room
    expected = drawn.mean(axis=0)
    sharper = expected + SHARPER * (drawn[1::2] - expected)
    is_best = among_top(np.concatenate([drawn[::2], sharper]), top)
    order = np.argsort(-expected, kind="stable")
    last, next_one = order[top - 1], order[top]
    in_top = np.isin(np.arange(n_models), order[:top])
    border = np.where(in_top, next_one, last)  # whom a model is compared with
    gaps = np.abs(expected - expected[border])
    sure = gaps / np.maximum((drawn - drawn[:, border]).std(axis=0), TINY)
    effort = np.sqrt(costs)
    spent = 0.0
    while spent < total and (planned < most).any():
        one = is_best[rng.integers(len(is_best))]
        unlike = np.flatnonzero((is_best != one).any(axis=1))
        pair = np.array([], dtype=np.intp)
        if len(unlike):
            other = is_best[unlike[rng.integers(len(unlike))]]
            pair = np.array([rng.choice(np.flatnonzero(one & ~other)),
                             rng.choice(np.flatnonzero(other & ~one))])  # fmt: skip
        pair = pair[planned[pair] < most[pair]]
        if not len(pair):  # the model that is least sure, and whom it is compared with
            at = int(np.where(planned < most, sure, np.inf).argmin())
            pair = np.array([at, border[at]])
            pair = pair[planned[pair] < most[pair]]
        lag = planned[pair] * effort[pair]
        for model in pair[lag <= lag.min() + EQUAL]:
            left = int((total - spent) / costs[model] + EQUAL)
            more = min(step, most[model] - planned[model], left)
            if more <= 0:
                return np.asarray(planned - answered, dtype=np.intp)
            planned[model] += more
            spent += more * costs[model]
    return np.asarray(planned - answered, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Prospect:
    """What is known of the models after some answers.

    Attributes
    ----------
    beliefs : Beliefs
    drawn : ndarray, shape (draws, models)
    chance : float
        That no other model is better than the best by more than the margin.
    is_settled : bool
    run, room : ndarray of int, shape (models,)
        Items that each model got, and can still get.
    """

    beliefs: Beliefs
    drawn: FloatArray
    chance: float
    is_settled: bool
    run: IntArray
    room: IntArray

    @classmethod
    def of(
        cls,
        beliefs: Beliefs,
        run: IntArray,
        n_items: int,
        rng: np.random.Generator,
        *,
        top: int = 1,
        margin: float = 0.0,
        level: float = 0.95,
    ) -> "Prospect":
        """Return what beliefs tell of the best `top` models; the margin is in [0, 1]."""
        drawn = beliefs.draw(rng)
        chance = chance_of_lead(drawn, beliefs.scores, top, margin)
        # Not before every model ran its first items: after 4 each, 18% of the ends were wrong.
        is_settled = chance >= level and int(run.min()) >= min(FIRST, n_items)
        return cls(beliefs, drawn, chance, is_settled, run, n_items - run)

    def round(
        self,
        first: int,
        left: float,
        rng: np.random.Generator,
        *,
        top: int = 1,
        batch: int = 0,
        costs: FloatArray | None = None,
    ) -> IntArray:
        """Return how many further items each model runs.

        Parameters
        ----------
        first : int
            Items that every model runs first.
        left : float
            Answers that the budget leaves, or with costs their sum.
        rng : Generator
        top, batch : int
            See `share_out`, and the least number of items that a model gets at a time.
        costs : ndarray, shape (models,), optional
            What an answer costs (default: 1).
        """
        answers = int(self.run.sum())
        step, of_round = round_of(int(self.run[0] + self.room[0]), answers, batch)
        each = 1.0 if costs is None else float(costs @ self.run) / answers
        more = np.minimum(np.maximum(first - self.run, 0), self.room)
        if more.any() and more.sum() * each <= left:
            return more
        # After a smaller budget some lack a few.
        total = min(each * of_round, left)
        return share_out(self.drawn, self.run, self.room, total, step, rng, top, costs)
