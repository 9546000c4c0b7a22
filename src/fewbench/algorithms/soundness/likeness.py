"""How similarly two models answer, beyond item difficulty and model ability.

Any two models agree on easy items. The partial correlation of their answers, given how easy each
item is, shows relatedness: the correlation of each row's residuals from a straight line on the
item means. It is about 0 for unrelated models and 1 for copies; it is 1/2 for rows with a shared
and an own part of equal variance.

Twins are equal or nearly equal models; real leaderboards contain them. A twin among the sources
makes an estimate much better than for a new model. Twins across sources and targets are therefore
counted, and residuals are cross-fitted by groups of twins.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench._blocks import (
    Matrix,
    beside,
    blocks,
    by_columns,
    by_rows,
    column_blocks,
    not_run,
    total,
)
from fewbench._types import BoolArray, FloatArray, IntArray

TWIN = 0.5
KIN = 0.3
CHANCE = 0.01
FEWEST = 10  # models, for a quartile of their pairs to mean something
_BLOCK = 256
TWIN_CORRELATION = 0.8
DUPLICATE_CORRELATION = 0.95
SCREENED = 4
"""Every so many items tell which pairs of rows may be near copies."""


@dataclass(frozen=True, eq=False)
class Likeness:
    """Partial correlations of all pairs of models, shape (models, models).

    `r` is 1 on the diagonal, and 0 where a model does not vary or two share no item. `noise` is
    the variance of r for two unrelated models, 1 where there is no r.
    """

    r: FloatArray
    noise: FloatArray

    def beyond_chance(self) -> BoolArray:
        """Whether each pair is more similar than noise explains, over all pairs at once.

        One-sided: among unrelated models, a pair is found with probability `CHANCE` (Bonferroni).
        The diagonal is False.
        """
        from scipy.special import ndtri

        pairs = max(len(self.r) * (len(self.r) - 1) / 2, 1)
        beyond = self.r / np.sqrt(self.noise) > -ndtri(CHANCE / pairs)
        np.fill_diagonal(beyond, False)
        return np.asarray(beyond)

    def kin_threshold(self) -> float | None:
        """Return the least r that unrelated pairs of this table do not reach, or None.

        The null distribution is normal, with the median of all pairs and a spread from the lower
        quartile, which related models do not affect (the empirical null of Efron 2004). Pairs are
        rejected at a false discovery rate of 5%; r is never below `KIN`.
        """
        from scipy.special import ndtr
        from scipy.stats import false_discovery_control

        if len(self.r) < FEWEST:
            return None
        pairs = self.r[np.triu_indices(len(self.r), 1)]
        quartile, median = np.quantile(pairs, [0.25, 0.5])
        spread = (median - quartile) / 0.6745
        if spread <= 0:
            return None
        rejected = false_discovery_control(ndtr(-(pairs - median) / spread)) <= 0.05
        return max(float(pairs[rejected].min()), KIN) if rejected.any() else None


def likeness(values: Matrix, weights: FloatArray | None = None) -> Likeness:
    """Compare all models with each other.

    `values`, shape (models, items), are scores in [0, 1], NaN where not run. Items with equal
    scores are left out. `weights`, shape (models,), count each model in the items' means
    (`distinct_weights` of a first pass), so many copies of one model do not define the difficulty.

    >>> rng = np.random.default_rng(0)
    >>> rows = (rng.random((30, 400)) < rng.random(400)).astype(float)
    >>> rows[1] = rows[0]
    >>> r = likeness(rows).r
    >>> round(float(r[0, 1]), 2), bool(np.abs(r[0, 2:]).max() < 0.3)
    (1.0, True)
    """
    least = by_columns(values, lambda part: np.fmin.reduce(part, axis=0))
    varies = by_columns(values, lambda part: np.fmax.reduce(part, axis=0)) - least > 1e-9
    counts = np.ones(values.shape[0]) if weights is None else weights
    mean = beside(
        [_weighted_means(values[:, at], varies[at], counts) for at in column_blocks(values)]
    )
    left = _residuals(values, mean, varies)
    blocks = column_blocks(left)
    products = total(_products(left[:, at], left[:, at]) for at in blocks)
    of_squares = total(
        _products(squares, squares) for squares in (left[:, at] ** 2 for at in blocks)
    )
    there = ~not_run(values)
    there = there if varies.all() else there[:, varies]
    if there.all():
        size = by_rows(left, lambda part: (part**2).sum(axis=1, dtype=np.float64))
        sizes, other = size[:, None], size[None, :]
    else:  # only the items that both ran
        sizes = total(_products(left[:, at] ** 2, there[:, at].astype(np.float32)) for at in blocks)
        other = sizes.T
    del left, there
    scale = np.sqrt(sizes * other)
    defined = scale > 1e-9
    r = np.where(defined, products / np.where(defined, scale, 1.0), 0.0)
    noise = np.where(defined, of_squares / np.where(defined, scale, 1.0) ** 2, 1.0)
    r = np.clip((r + r.T) / 2, -1.0, 1.0)
    np.fill_diagonal(r, 1.0)
    return Likeness(r, np.clip((noise + noise.T) / 2, 1e-12, 1.0))


def _weighted_means(values: FloatArray, kept: BoolArray, counts: FloatArray) -> FloatArray:
    values = values if kept.all() else values[:, kept]
    run = ~np.isnan(values)
    return np.asarray(counts @ np.where(run, values, 0.0) / np.maximum(counts @ run, 1e-12))


def identical(values: Matrix) -> BoolArray:
    """Whether two models have equal scores on all items that both ran, shape (models, models).

    False on the diagonal and for models without a shared item. Products of whole tables find the
    candidates; scores within 1e-9 are equal.
    """
    size: Any = 0
    products: Any = 0
    both: Any = 0
    for at in column_blocks(values):
        part = values[:, at]
        run = ~np.isnan(part)
        mean = np.where(run, part, 0.0).sum(axis=0) / np.maximum(run.sum(axis=0), 1)
        x = np.where(run, part - mean, 0.0).astype(np.float32)
        there = run.astype(np.float32)
        size = size + _products(x**2, there)
        products = products + _products(x, x)
        both = both + _products(there, there)
    apart = size + size.T - 2 * products
    likely = np.triu((apart <= 1e-4 * (size + size.T)) & (both > 0), 1)
    same = np.zeros_like(likely)
    for row in np.flatnonzero(likely.any(axis=1)):
        others = np.flatnonzero(likely[row])
        far = np.abs(values[others] - values[row]) > 1e-9  # False where one of the two is NaN
        same[row, others] = ~far.any(axis=1)
    return np.asarray(same | same.T)


def distinct_weights(likeness: Likeness, same: BoolArray) -> FloatArray:
    """Return each model's weight among distinct models, at most 1, shape (models,).

    A model counts 1 / (1 + the summed shares of variance in common with others), so each of k
    copies counts 1/k. The sum is the effective number of distinct models: the diversity of order 0
    of Leinster & Cobbold 2012 (Ecology 93:477) with squared partial correlations, less their
    noise, as similarities.

    >>> rows = (np.random.default_rng(0).random((6, 900)) < 0.5).astype(float)
    >>> rows[1] = rows[2] = rows[0]
    >>> round(float(distinct_weights(likeness(rows), identical(rows)).sum()), 1)
    4.0
    """
    return _counting_once(_shared_variance(likeness), same)


def _shared_variance(likeness: Likeness) -> FloatArray:
    noise = np.minimum(likeness.noise, 1.0 - 1e-9)
    return np.where(likeness.r > 0, (likeness.r**2 - noise) / (1.0 - noise), 0.0)


def mean_shared_variance(likeness: Likeness) -> float:
    """Return the share of variance that two models have in common, less its noise, mean over pairs.

    It is about 0 for unrelated models, however many there are.

    >>> rng = np.random.default_rng(0)
    >>> shared, own = rng.random((4, 900)) < 0.5, rng.random((40, 900)) < 0.5
    >>> alike = np.where(rng.random((40, 900)) < 0.7, np.repeat(shared, 10, axis=0), own)
    >>> shares = [mean_shared_variance(likeness(rows.astype(float))) for rows in (alike, own)]
    >>> shares[0] > 0.01 > shares[1]
    True
    """
    return float(_shared_variance(likeness)[np.triu_indices(len(likeness.r), 1)].mean())


def independent_weights(likeness: Likeness, same: BoolArray) -> FloatArray:
    """Return each model's weight in the mean of answers to one item, shape (models,).

    The variance of such a mean grows with correlations, not their squares: a model counts 1 / (1 +
    its summed correlations with others). The sum is the number of independent models with an
    equally precise mean, far below that of distinct models where models form lineages.
    Correlations count from one standard deviation of noise up, less the expected contribution of
    noise.

    >>> rng = np.random.default_rng(0)
    >>> shared, own = rng.random((1, 2000)) < 0.5, rng.random((10, 2000)) < 0.5
    >>> rows = np.where(rng.random((10, 2000)) < 0.7, shared, own).astype(float)
    >>> rows = np.vstack([rows, rng.random((50, 2000)) < 0.5])
    >>> found = likeness(rows)
    >>> bool(independent_weights(found, identical(rows))[:10].sum() < 5)  # r is 0.5 among the ten
    True
    """
    sd = np.sqrt(likeness.noise)
    by_chance = np.where(likeness.noise < 1.0, np.exp(-0.5) / np.sqrt(2 * np.pi) * sd, 0.0)
    return _counting_once(np.where(likeness.r > sd, likeness.r, 0.0) - by_chance, same)


def _counting_once(shared: FloatArray, same: BoolArray) -> FloatArray:
    shared = np.where(same, 1.0, shared)
    np.fill_diagonal(shared, 0.0)
    return np.asarray(1.0 / (1.0 + np.maximum(shared.sum(axis=1), 0.0)))


def groups_alike(likeness: Likeness, same: BoolArray, least: float) -> IntArray:
    """Return group numbers of models with a mean likeness of at least `least`.

    Average linkage: a chain of similar pairs does not join its ends. Pairs within chance count as
    different, identical rows as fully similar.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    if len(same) < 2:
        return np.zeros(len(same), dtype=np.intp)
    alike = np.where(likeness.beyond_chance(), likeness.r, np.minimum(likeness.r, 0.0))
    apart = 1.0 - np.where(same, 1.0, alike)
    np.fill_diagonal(apart, 0.0)
    tree = linkage(squareform(apart, checks=False), "average")
    return np.asarray(fcluster(tree, 1.0 - least + 1e-12, "distance") - 1, dtype=np.intp)


def _products(a: NDArray[np.float32], b: NDArray[np.float32]) -> FloatArray:
    """Products of all rows in single precision, far below the noise."""
    return np.asarray(a @ b.T, dtype=np.float64)


def _residuals(values: Matrix, easiness: FloatArray, kept: BoolArray) -> NDArray[np.float32]:
    """Residuals of each row from a straight line on the kept items' easiness, 0 where not run."""
    residuals = np.zeros((values.shape[0], len(easiness)), dtype=np.float32)
    for at in range(0, len(values), _BLOCK):  # in parts, to need less memory
        part = values[at : at + _BLOCK]
        part = part if kept.all() else part[:, kept]
        run = ~np.isnan(part)
        n = np.maximum(run.sum(axis=1, keepdims=True), 1)
        x = np.where(run, part, 0.0)
        centred = np.where(run, x - x.sum(axis=1, keepdims=True) / n, 0.0)
        line = np.where(run, easiness - (run @ easiness)[:, None] / n, 0.0)
        spread = np.einsum("ij,ij->i", line, line)
        slope = np.einsum("ij,ij->i", centred, line) / np.where(spread > 1e-12, spread, 1.0)
        left = centred - slope[:, None] * line
        # If the line explains a row completely, only rounding is left.
        real = (left**2).sum(axis=1, keepdims=True) > 1e-12 * n
        residuals[at : at + _BLOCK] = np.where(real, left, 0.0)
    return residuals


def correlations(a: FloatArray, b: FloatArray) -> FloatArray:
    """Correlation of each row of `a` with each row of `b`, 1 for identical rows.

    A constant row has correlation 0 with all rows except its copies.
    """
    rows_a = _standard(a)
    rows_b = rows_a if b is a else _standard(b)  # half the work, as the product is symmetric
    result = rows_a @ rows_b.T
    constant_a, constant_b = (np.asarray(~rows.any(axis=1)) for rows in (rows_a, rows_b))
    return _with_constant(result, constant_a, constant_b, a[:, 0], b[:, 0])


def _with_constant(
    matrix: FloatArray,
    constant_a: BoolArray,
    constant_b: BoolArray,
    first_a: FloatArray,
    first_b: FloatArray,
) -> FloatArray:
    """Set correlations of equal constant rows to 1; `first_a` and `first_b` are first columns."""
    rows, columns = np.flatnonzero(constant_a), np.flatnonzero(constant_b)
    equal = np.equal.outer(first_a[rows], first_b[columns])
    matrix[np.ix_(rows, columns)] = np.where(equal, 1.0, matrix[np.ix_(rows, columns)])
    return matrix


def nearest_twin(targets: FloatArray, sources: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return each target's highest correlation with a source, and the position of that source.

    >>> sources = np.array([[1.0, 0, 1, 0], [1, 1, 0, 0]])
    >>> r, which = nearest_twin(np.array([[1.0, 0, 1, 0]]), sources)
    >>> r.round(6).tolist(), which.tolist()
    ([1.0], [0])
    """
    all_of = correlations(targets, sources)
    return np.asarray(all_of.max(axis=1)), np.asarray(all_of.argmax(axis=1))


def duplicate_groups(values: Matrix) -> IntArray:
    """Group models that are near copies; return group numbers, shape (models,).

    Near copies correlate at `DUPLICATE_CORRELATION`; chains of mere twins can join most of a
    table.

    >>> duplicate_groups(np.array([[1.0, 0, 1, 0], [1, 0, 1, 0], [0, 1, 1, 0]])).tolist()
    [0, 0, 1]
    """
    return connected(values.shape[0], *near_copies(values))


def near_copies(values: Matrix) -> tuple[IntArray, IntArray]:
    """Return the positions of the two models of each pair of near copies, or of one model.

    On some of the items, a correlation of unit rows is at most a.b + |a'||b'|, with a' and b' of
    the other items (Cauchy-Schwarz). Few pairs of rows reach the limit by this, and only they are
    compared on all items.
    """
    every = blocks(values.shape[0], 1, _BLOCK)
    some, begins, ends = [], [], []
    for rows in every:
        unit = _standard(values[rows])
        part = unit[:, ::SCREENED]
        left = 1.0 - np.einsum("ij,ij->i", part, part)  # 1 of constant rows: may be copies, too
        some.append(np.column_stack([part, np.sqrt(np.maximum(left, 0.0))]).astype(np.float32))
    screened = np.concatenate(some)
    least = DUPLICATE_CORRELATION - 1e-4  # single precision is closer than that
    for rows in every:
        may_be = (screened[rows] @ screened[rows.start :].T >= least).any(axis=0)
        others = rows.start + np.flatnonzero(may_be)
        alike = correlations(values[rows], values[others]) >= DUPLICATE_CORRELATION
        first, other = np.nonzero(alike)
        begins.append(rows.start + first)
        ends.append(others[other])
    return np.concatenate(begins), np.concatenate(ends)


def with_families(groups: IntArray, families: NDArray[np.object_]) -> IntArray:
    """Join groups that share a family, shapes (models,); "" means that a model has no family."""
    n, model = len(groups), np.arange(len(groups))
    has_family = np.flatnonzero(families != "")
    family = np.unique(families[has_family], return_inverse=True)[1]
    ends = np.concatenate([n + groups, 2 * n + family])  # nodes of groups, then of families
    return connected(3 * n, np.concatenate([model, has_family]), ends)[:n]


def connected(n: int, begins: IntArray, ends: IntArray) -> IntArray:
    """Return the component of each of n nodes, numbered in the order of their first nodes."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = coo_array((np.ones(len(begins), dtype=bool), (begins, ends)), shape=(n, n))
    return np.asarray(connected_components(links, directed=False)[1], dtype=np.intp)


def _standard(rows: FloatArray) -> FloatArray:
    centred = rows - rows.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(centred, axis=1, keepdims=True)
    constant = norms <= 1e-9 * np.sqrt(rows.shape[1])
    centred /= np.where(constant, 1.0, norms)
    centred[constant[:, 0]] = 0.0
    return np.asarray(centred)
