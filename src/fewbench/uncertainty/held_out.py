"""A method's errors on held-out source models: one measurement, for every interval and verdict.

The whole method is repeated on four fifths of the sources, selection included, and estimates the
others. Sources of one family, or nearly the same, are held out together and count as one, after
Lee, Barber & Willett 2023 (arXiv 2306.06342). Rules that depend on the number of sources stay
those of all sources. Errors are kept in units of what is known about each target: the root of the
method's own standard error times that of random sampling, and the larger the less its answers are
like those of the sources. For a method that chooses items as answers arrive, its own error is not
enough.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from fewbench._arrays import read_arrays, to_arrays, write_arrays
from fewbench._seeds import child_seed
from fewbench._threads import one_thread
from fewbench._types import FloatArray, IntArray
from fewbench._version import __version__
from fewbench.algorithms import ties
from fewbench.errors import EvaluationError, MethodError, ScoresError
from fewbench.executors import InProcess, Lost, Pool
from fewbench.methods.base import Method
from fewbench.methods.difficulty import difficulty_index
from fewbench.methods.sources import is_known, known_scores, learned_from, source_groups
from fewbench.methods.static import StaticMethod
from fewbench.methods.subset import Given
from fewbench.scores import Scores
from fewbench.uncertainty.intervals import Scored
from fewbench.uncertainty.replay import LearnedPart, shared_part
from fewbench.uncertainty.resemblance import resemblance_of
from fewbench.uncertainty.sampling import expected_random_error, sampling_effect, standard_error

FOLDS, DIVISIONS = 5, 3
"""Parts of the sources, and how often a method that learns quickly is measured on other parts."""
CHEAP = 250_000
"""Most cells of a table on which such a method is measured several times."""
MOST_JUDGED = 60
"""Held-out sources of a method that chooses items for each of them."""
MOST_ITEMS, PER_ITEM = 4000, 10
"""Items used of a larger table, across tasks and difficulties; at least ten for each item run."""
FEWEST_GROUPS = 3
FIRST_LOOK, GROWTH = 10, 2
SAMPLED = -1.0
"""In place of a unit, where the estimate rests on a sample."""
SINGLE = ("errors", "units")
"""Arrays of `HeldOut` in single precision: most of the bytes of a pack."""
FORMAT = 4
"""Raise it when errors are measured differently."""
DEGREES = (3.0, 4.0, 6.0, 10.0, 30.0)
"""Degrees of freedom of the Student distributions that errors are fitted by."""
CONFORMAL = 40.0
"""Number of groups at which the conformal quantile counts as much as Student's."""
TINY = 1e-9
_MEASURED: WeakKeyDictionary[Scores, "dict[str, HeldOut]"] = WeakKeyDictionary()


def looks_of(budget: int) -> tuple[int, ...]:
    """Return the numbers of answers at which errors are measured.

    >>> looks_of(100)
    (10, 20, 40, 80, 100)
    """
    looks = [min(FIRST_LOOK, budget)]
    while looks[-1] < budget:
        looks.append(min(budget, GROWTH * looks[-1]))
    return tuple(looks)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Errors on held-out sources, of the full score and then of every task.

    Attributes
    ----------
    looks : ndarray of int, shape (looks,)
        Numbers of answers.
    errors : ndarray, shape (judged, looks, 1 + tasks)
        True score minus estimate, in [-1, 1].
    units : ndarray, same shape
        Units of the errors; -1 where the estimate rests on a sample with known probabilities, whose
        interval needs no held-out errors.
    estimates : ndarray, shape (judged,)
        Estimated full scores after the last look.
    random : ndarray, shape (judged,)
        Expected error of plain random sampling of as many items as the last look has.
    models, groups, parts, sessions : ndarray of int, shape (judged,)
        Positions of the models, their groups, and the part that each was held out with; models of
        one session ran the same items, chosen for their differences.
    """

    looks: IntArray
    errors: FloatArray
    units: FloatArray
    estimates: FloatArray
    random: FloatArray
    models: IntArray
    groups: IntArray
    parts: IntArray
    sessions: IntArray

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "HeldOut":
        """Return errors of arrays by name; ValueError if they do not fit together."""
        names = [field.name for field in fields(cls)]
        if set(arrays) != set(names):
            raise ValueError(f"fields {sorted(arrays)} in place of {sorted(names)}")
        looks, errors = arrays["looks"], arrays["errors"]
        n = len(arrays["models"])
        if errors.ndim != 3 or errors.shape[:2] != (n, len(looks)):
            raise ValueError(f"errors of shape {errors.shape}")
        units = arrays["units"]
        if units.shape != errors.shape or not ((units >= 0) | (units == SAMPLED)).all():
            raise ValueError(f"units of shape {units.shape}, or below 0")
        for name in names[3:]:
            if arrays[name].shape != (n,):
                raise ValueError(f"{name} of shape {arrays[name].shape}")
        whole = ("looks", "models", "groups", "parts", "sessions")
        for name in whole:
            if arrays[name].dtype.kind not in "iu":
                raise ValueError(f"{name} that are not whole numbers")
        return cls(
            **{name: arrays[name].astype(np.intp if name in whole else float) for name in names}
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, errors and units in single precision."""
        arrays = to_arrays(self)
        return arrays | {name: arrays[name].astype(np.float32) for name in SINGLE}

    def at(self, answered: int) -> int:
        """Return the position of the last check up to this number of answers, or of the first."""
        return max(0, int(np.searchsorted(self.looks, answered, side="right")) - 1)

    @property
    def relative(self) -> FloatArray:
        """Errors in units; 0 where all is known, NaN where the estimate rests on a sample."""
        nothing = np.where(self.units < 0, np.nan, 0.0)
        return np.divide(self.errors, self.units, out=nothing, where=self.units > 0)

    @property
    def mean_error(self) -> float | None:
        """Mean absolute error after the last look, all groups weighted equally."""
        if not len(self.models):
            return None
        return float(equal_weights(self.groups) @ np.abs(self.errors[:, -1, 0]))

    @property
    def mean_random(self) -> float | None:
        """Mean error of random sampling on the same sources."""
        return float(equal_weights(self.groups) @ self.random) if len(self.models) else None

    @cached_property
    def is_worse_than_random(self) -> bool:
        """Whether the error after the last look is clearly above that of random sampling.

        By a one-sided paired t test at 95% over the groups.
        """
        from scipy.special import stdtrit

        gaps = np.abs(self.errors[:, -1, 0]) - self.random
        each = [gaps[self.groups == group].mean() for group in np.unique(self.groups)]
        if len(each) < 2:
            return False
        least = stdtrit(len(each) - 1, 0.95) * np.std(each, ddof=1) / math.sqrt(len(each))
        return bool(np.mean(each) > least)


def measure(
    method: Method,
    scores: Scores,
    budget: int,
    seed: int,
    looks: Sequence[int] | None = None,
    *,
    divisions: int | None = None,
    most: int = MOST_JUDGED,
    folder: Path | None = None,
    pool: Pool | None = None,
    has_units: bool = True,
    shares_fits: bool = False,
) -> HeldOut:
    """Run the whole method on held-out sources and return its errors.

    Parameters
    ----------
    method : Method
    scores : Scores
        The sources. Models that lack much (see `is_known`) are learned from but not judged.
    budget, seed : int
        As for the evaluation.
    looks : sequence of int, optional
        Numbers of answers, increasing (default: the budget alone).
    divisions : int, optional
        Random divisions into parts (default: 3 for a method that learns quickly, else 1).
    most : int
        Most sources to judge, of a method that chooses items for each of them.
    folder : Path, optional
        Where the errors are kept.
    pool : Pool, optional
        Where the parts run (default: in this process).
    has_units : bool
        Without them (all 0), errors take less time and give no intervals.
    shares_fits : bool
        Whether what is fitted to the parts is kept for studies of the same parts.
    """
    looks = [budget] if looks is None else list(looks)
    if divisions is None:
        quick = method.asks_once and not method.costly
        divisions = DIVISIONS if quick and scores.n_models * scores.n_items <= CHEAP else 1
    made_of = (__version__, FORMAT, FOLDS, most, MOST_ITEMS, divisions)
    key = repr((*made_of, scores.average, method.describe(), budget, seed, looks))
    key += "" if has_units else " without units"
    measured = _MEASURED.setdefault(scores, {})
    if key in measured:
        return measured[key]
    path = None
    if folder is not None:
        name = hashlib.sha256(f"{scores.fingerprint} {key}".encode()).hexdigest()[:12]
        path = folder / f"errors-{name}.npz"
    errors = None if path is None else read_arrays(path, HeldOut.from_arrays)
    if errors is None:
        fitted, how = method.for_sources(scores), (budget, seed, looks, divisions, most)
        errors = _measure(fitted, scores, *how, pool, has_units, shares_fits)
        if path is not None:
            write_arrays(path, errors.arrays())
    measured[key] = errors
    return errors


def measure_for(
    method: Method,
    scores: Scores,
    budget: int,
    seed: int,
    answered: int,
    *,
    stops_early: bool = False,
    folder: Path | None = None,
    pool: Pool | None = None,
) -> HeldOut:
    """Return the errors for targets with this number of answers, at the looks up to the budget.

    A method that asks once, with answers to all that it asks, needs the last look alone, unless the
    width of an interval stops runs early. Parameters as for `measure`.
    """
    looks = looks_of(budget)
    if method.asks_once and not stops_early:
        looks = looks[:-1] if len(looks) > 1 and answered < looks[-1] else looks[-1:]
    return measure(method, scores, budget, seed, looks, folder=folder, pool=pool)


@dataclass(frozen=True, eq=False)
class Fold:
    """Sources to learn from and others to judge, by position, their groups, seed and number."""

    learned: IntArray
    judged: IntArray
    groups: IntArray
    seed: int
    part: int


@dataclass(frozen=True, eq=False)
class _Job:
    """A method to fit on some sources and to judge on others."""

    method: Method
    fold: Fold
    budget: int
    limits: Sequence[int | None]
    effect: float
    has_units: bool
    shares_fits: bool


def _measure(
    method: Method,
    scores: Scores,
    budget: int,
    seed: int,
    looks: Sequence[int],
    divisions: int,
    most: int,
    pool: Pool | None,
    has_units: bool,
    shares_fits: bool,
) -> HeldOut:
    if not scores.n_models:
        return no_errors(looks, len(scores.tasks))
    table = _part_of(method, scores, budget, seed)
    limits = [None if look == budget else look for look in looks]
    effect = sampling_effect(scores, budget)
    jobs = [
        _Job(method, fold, budget, limits, effect, has_units, shares_fits)
        for fold in folds(
            scores, seed, divisions, None if method.asks_once else most, method.together
        )
    ]
    parts: list[HeldOut] = []
    for judged in (pool or InProcess()).in_order(_judge, table, jobs):
        if isinstance(judged, Lost):
            raise EvaluationError(
                f"the method's errors cannot be measured: {judged.reason}",
                hint="use one worker, or workers with more memory",
            )
        if judged is not None:
            parts.append(judged)
    if not parts:
        return no_errors(looks, len(scores.tasks))
    sessions, joined = 0, []
    for part in parts:
        joined.append(part.sessions + sessions)
        sessions += int(part.sessions.max(initial=-1)) + 1
    values = {
        field.name: np.concatenate([getattr(part, field.name) for part in parts])
        for field in fields(HeldOut)
    }
    # Rounded here, so that what is read from a file gives the same intervals.
    values |= {name: values[name].astype(np.float32).astype(np.float64) for name in SINGLE}
    return HeldOut(**(values | {"looks": np.array(looks), "sessions": np.concatenate(joined)}))


def no_errors(looks: Sequence[int], n_tasks: int) -> HeldOut:
    """Return the errors of no source."""
    shape, whole = (0, len(looks), 1 + n_tasks), np.empty(0, dtype=np.intp)
    no = np.empty(0)
    return HeldOut(
        np.array(looks), np.empty(shape), np.empty(shape), no, no, whole, whole, whole, whole,
    )  # fmt: skip


def folds(
    scores: Scores, seed: int, divisions: int = 1, most: int | None = MOST_JUDGED, together: int = 1
) -> Iterator[Fold]:
    """Yield the parts of the sources on which `measure` judges a method, at most so many models."""
    if scores.n_models < 3:
        return
    groups = source_groups(scores)
    apart = groups if groups.max() > 0 else np.arange(len(groups))
    n_groups = int(apart.max()) + 1
    is_source = is_known(scores)
    if most is not None:
        order = np.random.default_rng(child_seed(seed, 2)).permutation(np.flatnonzero(is_source))
        is_source[order[most:]] = False
    for division in range(divisions):
        # The first division does not depend on the number of divisions.
        seed_of = seed if division == 0 else child_seed(seed, 3, division)
        part_of = deal(apart, min(FOLDS, n_groups), seed_of)
        for part in range(int(part_of.max()) + 1):
            rows = np.flatnonzero((part_of == part) & is_source)
            if together > 1:  # close models run together, as the targets are expected to be
                rows = _by_score(scores, rows)
            rest = np.flatnonzero(part_of != part)
            if len(rows):
                number = division * FOLDS + part
                yield Fold(rest, rows, groups[rows], child_seed(seed_of, 1, part), number)


def _by_score(scores: Scores, rows: IntArray) -> IntArray:
    """Return models in the order of their full scores; of an odd number the middle one is last.

    Neighbors are then the same from either end, and so are pairs of them.
    """
    # Models of one score come in an order that is reversed with it: by weights of the items that
    # differ a little.
    answers = scores.filled_cells[rows]
    weights = scores.item_weights * (1 + 1e-6 * np.random.default_rng(0).random(scores.n_items))
    rows = rows[np.argsort(answers @ weights, kind="stable")]
    middle = len(rows) // 2
    return np.append(np.delete(rows, middle), rows[middle]) if len(rows) % 2 else rows


def deal(groups: IntArray, n_parts: int, seed: int) -> IntArray:
    """Deal groups to parts, largest first and ties at random, each to the smallest part so far.

    Returns the part of each model.
    """
    n_groups = int(groups.max()) + 1
    sizes = np.bincount(groups, minlength=n_groups)
    shuffled = np.random.default_rng(child_seed(seed, 0)).permutation(n_groups)
    filled = np.zeros(n_parts, dtype=np.intp)
    part_of = np.empty(n_groups, dtype=np.intp)
    for group in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        part_of[group] = filled.argmin()
        filled[part_of[group]] += sizes[group]
    return np.asarray(part_of[groups])


def _part_of(method: Method, scores: Scores, budget: int, seed: int) -> Scores:
    """Return the items of a large table on which errors are measured.

    An error depends on the number of items run far more than on the number of all items. Those of
    a user's own subset are among them.
    """
    most = max(MOST_ITEMS, PER_ITEM * budget)
    if scores.n_items <= most:
        return scores
    rng = np.random.default_rng(child_seed(seed, 4))
    order = np.lexsort((rng.random(scores.n_items), difficulty_index(scores), scores.task_of))
    places = (np.arange(most) + rng.random()) * scores.n_items / most
    part = order[places.astype(np.intp)]
    if isinstance(method, StaticMethod) and isinstance(method.selector, Given):
        part = np.append(part, scores.positions(method.selector.subset.items))
    return scores.take(items=np.unique(part))


def _judge(table: Scores, job: _Job) -> HeldOut | None:
    """Return the errors of a part, or None if the method cannot be fitted."""
    method, fold = job.method, job.fold
    judged, n = fold.judged, len(fold.judged)
    if job.shares_fits:
        part = shared_part(table, fold.learned)
    else:
        part = LearnedPart(learned_from(table, fold.learned))
    with one_thread():  # in any process
        try:
            replayed = part.replays(method, table, judged, job.budget, fold.seed, job.limits)
        except (MethodError, ScoresError):  # too few sources are left for the method
            return None
        shape = n, 1 + len(table.tasks)
        units = [
            _units(replay.scored, part.scores, method.reach) if job.has_units else np.zeros(shape)
            for replay in replayed
        ]
    truth = np.column_stack(known_scores(table, judged))
    last, together = replayed[-1], method.together
    return HeldOut(
        np.empty(0, dtype=np.intp),
        np.stack([truth - np.column_stack([r.scores, r.tasks]) for r in replayed], axis=1),
        np.stack(units, axis=1),
        last.scores,
        np.array(
            [
                expected_random_error(full, len(items), table.n_items, job.effect)
                for full, items in zip(truth[:, 0], last.items, strict=True)
            ]
        ),
        judged,
        fold.groups,
        np.full(n, fold.part),
        np.arange(n) // together if together > 1 else np.zeros(n, dtype=np.intp),
    )


def _units(scored: Sequence[Scored], sources: Scores, reach: float) -> FloatArray:
    """Return the units of the errors of several targets; -1 where a sample needs none."""
    is_sampled = np.array(
        [
            np.zeros(len(score.estimates), bool)
            if score.freedom is None
            else np.isfinite(score.freedom)
            for score in scored
        ]
    )
    units = np.full(is_sampled.shape, SAMPLED)
    model_based = np.flatnonzero(~is_sampled.all(axis=1)).tolist()
    near = resemblance_of(sources, [scored[at].answers for at in model_based], reach)
    for at, resemblance in zip(model_based, near, strict=True):
        units[at] = units_of(scored[at], sources) * resemblance.widening
    return np.where(is_sampled, SAMPLED, units)


def units_of(score: Scored, scores: Scores) -> FloatArray:
    """Return the units of one target's errors, shape (1 + tasks,).

    The root of the method's own standard error times that of random sampling with as many items,
    or the latter alone, for a target most like the sources. A task without items counts as one with
    half an item.
    """
    sizes = np.bincount(scores.task_of, minlength=len(scores.tasks))
    items = score.answers.items
    run = np.bincount(scores.task_of[items], minlength=len(sizes))
    plain = np.array(
        [
            standard_error(float(estimate), max(float(n), 0.5), size)
            for estimate, n, size in zip(
                score.estimates, [len(items), *run], [scores.n_items, *sizes], strict=True
            )
        ]
    )
    units = plain.copy()
    if score.spread is not None:
        units[0] = score.spread
    if score.task_spread is not None:
        units[1:] = score.task_spread
    return np.asarray(np.sqrt(units * plain))


def equal_weights(labels: IntArray) -> FloatArray:
    """Return weights of sum 1 in which every label counts the same."""
    if not len(labels):
        return np.empty(0)
    _, inverse, counts = np.unique(labels, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / counts[inverse] / len(counts))


class Quantiles:
    """Quantiles of absolute relative errors, every group of sources weighted equally.

    Between the conformal quantile, which needs many groups, and that of a fitted Student
    distribution, which assumes a shape: q = conformal^(G/(G+40)) student^(40/(G+40)) for G groups.

    Parameters
    ----------
    relative : ndarray, shape (n,)
        Signed errors in their units.
    groups : ndarray of int, shape (n,)

    Examples
    --------
    >>> errors = np.random.default_rng(0).standard_normal(400)
    >>> round(Quantiles(errors, np.arange(400)).at(0.9), 1)
    1.5
    """

    def __init__(self, relative: FloatArray, groups: IntArray) -> None:
        self.groups = len(np.unique(groups))
        self._weights = equal_weights(groups)
        order = np.argsort(np.abs(relative), kind="stable")
        self._sizes, self._reached = np.abs(relative)[order], np.cumsum(self._weights[order])
        self._relative = relative

    @cached_property
    def _student(self) -> tuple[float, float]:
        """Degrees of freedom and scale of greatest likelihood."""
        from scipy.special import gammaln

        x, w = self._relative, self._weights
        fits, scales = [], []
        for nu in DEGREES:
            scale = max(float(w @ x**2), TINY**2)
            for _ in range(50):
                # EM for the scale: an error counts less the farther out it is (Lange, Little &
                # Taylor 1989).
                scale = max(float(w @ ((nu + 1) / (nu + x**2 / scale) * x**2)), TINY**2)
            fit = float(gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(np.pi * nu * scale))
            fit -= (nu + 1) / 2 * float(w @ np.log1p(x**2 / (nu * scale)))
            fits.append(fit)
            scales.append(math.sqrt(scale))
        best = int(ties.argmax(np.array(fits)))
        return DEGREES[best], scales[best]

    @cached_property
    def mean(self) -> float:
        """Mean absolute relative error."""
        return float(self._weights @ np.abs(self._relative))

    def at(self, level: float) -> float:
        """Return the quantile of the absolute relative error at a level."""
        from scipy.special import stdtrit

        nu, scale = self._student
        groups = self.groups
        # One more error is predicted, by a scale that is itself estimated from so many groups.
        wider = math.sqrt(1 + 1 / groups) * (1 + 1 / groups)
        student = scale * float(stdtrit(nu, 0.5 + level / 2)) * wider
        # The target is one more group, with an error that may be any.
        share = groups / (groups + 1)
        if level <= share * (1 - 1e-12):
            conformal = self.plain(level / share)
        else:  # more than these groups can show: it grows as Student's
            ratio = float(stdtrit(nu, 0.5 + level / 2) / stdtrit(nu, 0.5 + share / 2))
            conformal = float(self._sizes[-1]) * ratio
        weight = groups / (groups + CONFORMAL)
        return float(max(conformal, TINY) ** weight * max(student, TINY) ** (1 - weight))

    def plain(self, level: float) -> float:
        """Return the quantile of the held-out errors themselves."""
        at = int(np.searchsorted(self._reached, level - 1e-12))
        return float(self._sizes[min(at, len(self._sizes) - 1)])


def of_weighted(errors: HeldOut, shares: FloatArray) -> HeldOut:
    """Return the errors of weighted means of task scores in place of those of tasks.

    Their units are those of independent task scores: the quantiles measure what these leave out.
    `shares` are weights of sum 1, shape (means, tasks).
    """
    if np.array_equal(shares, np.eye(len(shares))):
        return errors
    return _of_weighted(errors, shares.tobytes(), len(shares))


@lru_cache(maxsize=16)
def _of_weighted(errors: HeldOut, weights: bytes, n: int) -> HeldOut:
    shares = np.frombuffer(weights).reshape(n, -1)
    of_full, of_tasks = errors.errors[..., :1], errors.errors[..., 1:]
    units = np.sqrt(np.maximum(errors.units[..., 1:], 0.0) ** 2 @ shares.T**2)
    sampled = (errors.units[..., 1:] == SAMPLED).astype(float) @ shares.T > 0
    units = np.where(sampled, SAMPLED, units)
    return replace(
        errors,
        errors=np.concatenate([of_full, of_tasks @ shares.T], axis=-1),
        units=np.concatenate([errors.units[..., :1], units], axis=-1),
    )


@lru_cache(maxsize=1024)
def quantiles_of(
    errors: HeldOut, first: int, last: int, look: int | None = None
) -> Quantiles | None:
    """Return the quantiles of the errors of some scores together, or None for fewer than 3 groups.

    The full score is at 0, then come the tasks. In their units the errors of a method that asks in
    rounds hardly depend on the number of answers, so all looks count, unless one is given: few
    errors measure one look badly, and a width would rise and fall with the number of items. Every
    target's interval asks for the same: the fit is kept.
    """
    looks = slice(None) if look is None else slice(look, look + 1)
    relative, units = (
        array[:, looks, first:last].ravel() for array in (errors.relative, errors.units)
    )
    groups = np.repeat(errors.groups, len(relative) // max(len(errors.models), 1))
    # At a look where all is known no error is left to learn from, unless there is no other look.
    counts = units > 0 if (units > 0).any() else units == 0
    if len(np.unique(groups[counts])) < FEWEST_GROUPS:
        return None
    return Quantiles(relative[counts], groups[counts])
