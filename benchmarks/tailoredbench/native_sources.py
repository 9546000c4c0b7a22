"""What distinguishes native sources: items as sources and targets answer them, and families.

Items: distances to medoids (Figure 1). Families: those of native sources (Table 11), and
targets estimated without their own family, by this method and by others (Table 12).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fewbench._seeds import child_seed
from fewbench._threads import one_thread
from fewbench._types import FloatArray, IntArray
from fewbench.errors import StudyError
from fewbench.methods import find_method
from fewbench.scores import Scores
from fewbench.study.inference import two_way
from fewbench.study.splits import Split
from fewbench.uncertainty.replay import replay
from tailoredbench.trials import Trial, open_trial

LEAST_SOURCES = 4  # that can be halved
MANY = 2000  # items; of more, distances are computed to a sample
COUNTS = ("natives", "chance", "by_strength")
WITH, WITHOUT = "with", "without"
OWN = "tailored"
TARGETS, SOURCES, OTHERS = 3, 2, 10  # least numbers of a family's models, and of other sources
MOST = 6  # families that are tried


# Items


@dataclass(frozen=True, eq=False)
class Spread:
    """Distances of items to their medoids, by the method's metric.

    Sums over models are divided by the number of models, so that different numbers of models
    compare. `…_any` is the mean distance between two items, as for a random item instead of a
    medoid.

    Attributes
    ----------
    medoids : ndarray of int, shape (m,)
        The items that the method's clustering chooses with all sources.
    medoid_of : ndarray of int, shape (items,)
        The medoid of each item by the sources, as the item's position.
    source, target : ndarray, shape (items,)
        Distance of each item to its medoid by the sources' and by the targets' answers.
    source_any, target_any : float
    half : dict of str to float
        Mean distances as shares of `…_any` if a random half of the sources chooses the medoids: by
        that half ("chose"), by the other half ("held_out") and by the targets ("targets"). Each
        half chooses once. Medoids fit those who chose them best, so targets compare with held-out
        sources.
    """

    medoids: IntArray
    medoid_of: IntArray
    source: FloatArray
    target: FloatArray
    source_any: float
    target_any: float
    half: dict[str, float]

    @property
    def shares(self) -> dict[str, float]:
        """Mean distances of sources and targets as shares of the distance between any two items."""
        return {
            "sources": _over(float(self.source.mean()), self.source_any),
            "targets": _over(float(self.target.mean()), self.target_any),
        }


def coreset(trial: Trial, sources: Scores | None = None) -> IntArray:
    """Return medoids of all sources, as many as the budget, positions ascending."""
    method = replace(trial.method, probe=trial.budget)
    chosen_by = trial.sources if sources is None else sources
    return method.start(chosen_by, trial.budget, trial.seed, trial.targets.model_ids).probe


def spread(trial: Trial) -> Spread:
    """Measure how far items are from their medoids, by sources and by targets.

    Raises
    ------
    StudyError
        If there are fewer than four sources.
    """
    if trial.sources.n_models < LEAST_SOURCES:
        raise StudyError(
            f"{trial.sources.n_models} sources cannot be halved",
            hint=f"use {LEAST_SOURCES} or more",
        )
    with one_thread():
        known, asked = trial.sources.filled.T, trial.targets.filled.T
        medoids = coreset(trial)
        medoid_of, source = _assigned(trial, known, medoids)
        target = _to_own(trial, asked, medoid_of)
        order = np.random.default_rng(child_seed(trial.seed, 5)).permutation(known.shape[1])
        middle = len(order) // 2
        halves = [np.sort(order[:middle]), np.sort(order[middle:])]
        rows = [_half(trial, mine, other) for mine, other in (halves, halves[::-1])]
    half = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    return Spread(medoids, medoid_of, source, target, _any(trial, known), _any(trial, asked), half)


def _half(trial: Trial, mine: IntArray, other: IntArray) -> dict[str, float]:
    whole = trial.sources.complete()
    chose = whole.values[mine].T
    medoid_of, own = _assigned(trial, chose, coreset(trial, whole.take(mine)))
    shares = {"chose": _over(float(own.mean()), _any(trial, chose))}
    for name, columns in (("held_out", whole.values[other].T), ("targets", trial.targets.filled.T)):
        mean = float(_to_own(trial, columns, medoid_of).mean())
        shares[name] = _over(mean, _any(trial, columns))
    return shares


def _assigned(trial: Trial, columns: FloatArray, medoids: IntArray) -> tuple[IntArray, FloatArray]:
    """Return each item's nearest medoid and its distance."""
    distances = _distances(trial, columns, medoids)
    nearest = distances.argmin(axis=1)
    nearest[medoids] = np.arange(len(medoids))  # a medoid is its own, even with ties
    return medoids[nearest], distances[np.arange(len(columns)), nearest]


def _to_own(trial: Trial, columns: FloatArray, medoid_of: IntArray) -> FloatArray:
    medoids, which = np.unique(medoid_of, return_inverse=True)
    return _distances(trial, columns, medoids)[np.arange(len(columns)), which]


def _any(trial: Trial, columns: FloatArray) -> float:
    """Return the mean distance between two items, or between all and a sample of many."""
    n = len(columns)
    among = None
    if n > MANY:
        rng = np.random.default_rng(child_seed(trial.seed, 6))
        among = np.sort(rng.choice(n, MANY, replace=False))
    distances = _distances(trial, columns, among)
    return float(distances.sum() / max(1, distances.size - distances.shape[1]))  # without itself


def _distances(trial: Trial, columns: FloatArray, among: IntArray | None = None) -> FloatArray:
    """Return distances from all items to some, per model if the metric is a sum over models."""
    sums = {"manhattan": float(columns.shape[1]), "euclidean": math.sqrt(columns.shape[1])}
    metric = getattr(trial.method, "metric", "manhattan")
    found = trial.method.distances(columns, among)
    return np.asarray(found / sums.get(metric, 1.0), dtype=np.float64)


def _over(one: float, other: float) -> float:
    return one / other if other > 0 else float("nan")


# Families


def families_of(scores: Scores) -> NDArray[np.object_]:
    """Return each model's family, shape (models,); empty text for none.

    Raises
    ------
    StudyError
        If no model has a family.
    """
    column = scores.models.get("family")
    names = [] if column is None else ["" if pd.isna(f) else str(f).strip() for f in column]
    if not any(names):
        raise StudyError(
            "the families of the models are not known",
            hint="add a column family, as with fewbench import --models",
        )
    return np.array(names, dtype=object)


def native_families(trial: Trial) -> pd.DataFrame:
    """Count the native sources of each target by family.

    Models without a family make no rows, but count among the sources.

    Returns
    -------
    DataFrame
        One row per target and family of sources: target, family, source_family, sources (of that
        family), natives (of them), chance (expected natives if drawn at random from all sources)
        and by_strength (natives if those with the nearest full score were taken).

    Raises
    ------
    StudyError
        If no source or no target has a family.
    """
    of_sources, of_targets = families_of(trial.sources), families_of(trial.targets)
    names = sorted({*of_sources} - {""})
    member = np.equal.outer(of_sources, np.array(names, dtype=object)).astype(np.float64)
    sizes = member.sum(axis=0)
    full = trial.sources.full_scores()
    rows = []
    for target, family, natives, score in zip(
        trial.targets.model_ids, of_targets, trial.natives, trial.targets.full_scores(), strict=True
    ):
        if not family:
            continue
        alike = np.argsort(np.abs(full - score), kind="stable")[: len(natives)]
        row = {
            "target": target,
            "family": family,
            "source_family": names,
            "sources": sizes.astype(int),
            "natives": member[natives].sum(axis=0),
            "chance": len(natives) * sizes / len(of_sources),
            "by_strength": member[alike].sum(axis=0),
        }
        rows.append(pd.DataFrame(row))
    return pd.concat(rows, ignore_index=True)


@dataclass(frozen=True, eq=False)
class Affinity:
    """Whether native sources are of the target's own family.

    Attributes
    ----------
    pairs : DataFrame
        One row per family of targets and of sources: number of targets and sources, mean number of
        native sources (natives), and what chance and equal strength alone would give.
    own : DataFrame
        One row per family with targets and sources: the same for sources of the own family.
    ratio, low, high : dict of str to float
        Native sources of the own family over those by chance ("chance") and by strength alone
        ("by_strength") for all targets, and a 90 % interval that resamples repeats and families
        (NaN with fewer than two families or three repeats).
    """

    pairs: pd.DataFrame
    own: pd.DataFrame
    ratio: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]


def affinity(counted: pd.DataFrame, seed: int = 0) -> Affinity:
    """Summarize rows of `native_families`, with a column `repeat` if from several trials.

    Raises
    ------
    StudyError
        If no target has a source of its family.
    """
    groups = counted.groupby(["family", "source_family"], sort=True)
    pairs = groups[["sources", *COUNTS]].mean().reset_index()
    pairs.insert(2, "targets", groups["target"].nunique().to_numpy())
    same = counted[(counted["family"] == counted["source_family"]) & (counted["sources"] > 0)]
    if same.empty:
        raise StudyError(
            "no target has a source of its own family",
            hint="use a split that does not separate families",
        )
    own = same.groupby("family", sort=True)[list(COUNTS)].mean()
    own.insert(0, "targets", same.groupby("family", sort=True)["target"].nunique())
    names = {str(name): at for at, name in enumerate(own.index)}
    of_repeats = (
        [part for _, part in same.groupby("repeat", sort=True)] if "repeat" in same else [same]
    )
    # Families are resampled: a repeat without a family counts nothing of it.
    resampled = two_way([list(names)] * len(of_repeats), names, seed)
    drawn_targets = {frozenset(part["target"]) for part in of_repeats}
    resampled = replace(resampled, fixed=len(drawn_targets) == 1)
    sums = np.zeros((len(COUNTS), len(of_repeats), len(names)))
    for repeat, part in enumerate(of_repeats):
        for name, of_family in part.groupby("family"):
            sums[:, repeat, names[str(name)]] = of_family[list(COUNTS)].sum()
    ratio, low, high = {}, {}, {}
    natives = resampled.total(sums[0])
    for column, name in enumerate(COUNTS[1:], start=1):
        base = resampled.total(sums[column])
        with np.errstate(invalid="ignore", divide="ignore"):
            figure = resampled.figure(np.where(base > 0, natives / base, np.nan), ratio=True)
        ratio[name], low[name], high[name] = figure.value, figure.low, figure.high
    return Affinity(pairs, own, ratio, low, high)


def families_to_try(sources: Scores, targets: Scores, most: int = MOST) -> list[str]:
    """Return families with enough targets and sources, and at least as many other sources.

    At most `most` families, those with the most targets first.
    """
    of_sources, of_targets = families_of(sources), families_of(targets)
    found = []
    for name in sorted({*of_targets} - {""}):
        own, targeted = int((of_sources == name).sum()), int((of_targets == name).sum())
        others = sources.n_models - own
        if targeted >= TARGETS and SOURCES <= own <= others and others >= OTHERS:
            found.append((-targeted, -own, name))
    return [name for _, _, name in sorted(found)[:most]]


def without_family(trial: Trial, most: int = MOST, others: Sequence[str] = ()) -> pd.DataFrame:
    """Estimate a family's targets with and without sources of that family.

    Both times the number of sources is the same: all other families; or the own family, filled up
    with random sources of the other families. Only the family's targets take part, so that other
    targets do not influence how many sources are native. `others` are methods that estimate the
    same targets from the same sources.

    Returns
    -------
    DataFrame
        Columns step ("with" or "without"), target, truth and estimate as of `Trial.run`; also
        method ("tailored" or one of the others), family, sources (how many) and own (how many
        sources the family has).

    Raises
    ------
    StudyError
        If families are not known, or none has three targets, two sources and ten other sources.
    """
    names = families_to_try(trial.sources, trial.targets, most)
    if not names:
        raise StudyError(
            f"no family has {TARGETS} targets and {SOURCES} sources beside at least {OTHERS}, and "
            "at least as many, other sources",
            hint="use a different split, or name larger groups as families",
        )
    of_sources, of_targets = families_of(trial.sources), families_of(trial.targets)
    runs = []
    for number, name in enumerate(names):
        own, rest = np.flatnonzero(of_sources == name), np.flatnonzero(of_sources != name)
        rng = np.random.default_rng(child_seed(trial.seed, 4, number))
        filling = rng.permutation(rest)[: len(rest) - len(own)]
        sides = {WITH: np.sort(np.concatenate([own, filling])), WITHOUT: rest}
        for step, sources in sides.items():
            part = _part(trial, sources, np.flatnonzero(of_targets == name))
            found = {OWN: part.run(step, part.natives).drop(columns=["natives", "agreement"])}
            for method in others:
                said = replay(
                    find_method(method), part.sources, part.targets, part.budget, part.seed
                )
                found[method] = found[OWN].assign(estimate=said.scores)
            runs += [
                one.assign(method=method, family=name, sources=len(sources), own=len(own))
                for method, one in found.items()
            ]
    return pd.concat(runs, ignore_index=True)


def _part(trial: Trial, sources: IntArray, targets: IntArray) -> Trial:
    """Return the same trial with some of its sources and targets."""
    a, b = trial.sources.take(sources), trial.targets.take(targets)
    both = replace(
        trial.sources,
        values=np.concatenate([a.values, b.values]),
        models=pd.concat([a.models, b.models]),
        probabilities=None,
    )
    split = Split(np.arange(len(sources)), np.arange(len(sources), both.n_models))
    return open_trial(both, split, trial.method, trial.budget, trial.seed)
