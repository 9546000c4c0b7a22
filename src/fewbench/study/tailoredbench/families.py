"""Families of native sources, and targets estimated without their own family (Tables 11, 12)."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fewbench._seeds import child_seed
from fewbench._types import IntArray
from fewbench.errors import StudyError
from fewbench.scores import Scores
from fewbench.study.inference import two_way
from fewbench.study.splits import Split
from fewbench.study.tailoredbench.trials import Trial, open_trial

COUNTS = ("natives", "chance", "by_strength")
WITH, WITHOUT = "with", "without"
TARGETS, SOURCES, OTHERS = 3, 2, 10  # a family is tried that has so many, and so many others
MOST = 6


def families_of(scores: Scores) -> NDArray[np.object_]:
    """Each model's family, shape (models,); empty text where it has none.

    Raises
    ------
    StudyError
        If no model has a family.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> families_of(simulate(4, 20)).tolist()
    ['family-0', 'family-0', 'family-1', 'family-1']
    """
    column = scores.models.get("family")
    names = [] if column is None else ["" if pd.isna(f) else str(f).strip() for f in column]
    if not any(names):
        raise StudyError(
            "families of the models are not known",
            hint="add a column family, as with fewbench import --models",
        )
    return np.array(names, dtype=object)


def native_families(trial: Trial) -> pd.DataFrame:
    """Count the native sources of each target by family.

    Returns
    -------
    DataFrame
        One row a target and family of sources: target, family, source_family, sources (of that
        family), natives (of them), chance (natives of that family if as many were drawn at random
        from all sources) and by_strength (if those with the nearest full score were taken, which
        an affinity beyond being equally good must exceed). Models without a family are none's kin
        and make no rows, but they count among the sources.

    Raises
    ------
    StudyError
        If no source or no target has a family.

    Examples
    --------
    >>> from fewbench.methods.adaptive.tailored import Tailored
    >>> from fewbench.testing import simulate
    >>> trial = open_trial(simulate(30, 80), Split(np.arange(0, 30, 2), np.arange(1, 30, 2)),
    ...                    Tailored(), budget=15, seed=0)
    >>> found = native_families(trial)
    >>> len(found), float(found["natives"].sum()), float(found["chance"].sum().round(6))
    (225, 105.0, 105.0)
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
        rows.append(
            pd.DataFrame(
                {
                    "target": target,
                    "family": family,
                    "source_family": names,
                    "sources": sizes.astype(int),
                    "natives": member[natives].sum(axis=0),
                    "chance": len(natives) * sizes / len(of_sources),
                    "by_strength": member[alike].sum(axis=0),
                }
            )
        )
    return pd.concat(rows, ignore_index=True)


@dataclass(frozen=True, eq=False)
class Affinity:
    """Whether native sources are of the target's own family.

    Attributes
    ----------
    pairs : DataFrame
        One row a family of targets and of sources: targets (how many), sources, and the mean
        number of native sources (natives), beside what chance and strength alone would give.
    own : DataFrame
        Of targets with sources of their own family, the mean number of those among their native
        sources, columns natives, chance, by_strength; one row a family.
    ratio, low, high : dict of str to float
        Native sources of the own family over those by chance ("chance") and by strength alone
        ("by_strength"), all targets together, and the ends of a 90 % interval, repeats and whole
        families resampled; NaN with fewer than two families or three repeats.
    """

    pairs: pd.DataFrame
    own: pd.DataFrame
    ratio: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]


def affinity(counted: pd.DataFrame, seed: int = 0) -> Affinity:
    """Sum up what `native_families` counted, in one trial or several.

    Parameters
    ----------
    counted : DataFrame
        Rows of `native_families`, of several trials with a column `repeat`.
    seed : int
        Of the resampling.

    Raises
    ------
    StudyError
        If no target has a source of its family.
    """
    by = ["family", "source_family"]
    groups = counted.groupby(by, sort=True)
    pairs = groups[["sources", *COUNTS]].mean().reset_index()
    pairs.insert(2, "targets", groups["target"].nunique().to_numpy())
    kin = counted[(counted["family"] == counted["source_family"]) & (counted["sources"] > 0)]
    if kin.empty:
        raise StudyError(
            "no target has a source of its own family",
            hint="take a split that does not part families",
        )
    own = kin.groupby("family", sort=True)[list(COUNTS)].mean()
    own.insert(0, "targets", kin.groupby("family", sort=True)["target"].nunique())
    names = {str(name): at for at, name in enumerate(own.index)}
    of_repeats = (
        [part for _, part in kin.groupby("repeat", sort=True)] if "repeat" in kin else [kin]
    )
    # Families are what is drawn: a repeat in which one lacks counts nothing of it.
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
    """Families with enough targets and sources, and fewer sources than the others have together.

    Those with the most targets come first; at most `most`.
    """
    of_sources, of_targets = families_of(sources), families_of(targets)
    found = []
    for name in sorted({*of_targets} - {""}):
        own, targeted = int((of_sources == name).sum()), int((of_targets == name).sum())
        others = sources.n_models - own
        if targeted >= TARGETS and SOURCES <= own <= others and others >= OTHERS:
            found.append((-targeted, -own, name))
    return [name for _, _, name in sorted(found)[:most]]


def without_family(trial: Trial, most: int = MOST) -> pd.DataFrame:
    """Estimate a family's targets by sources among whom the family is, and by others only.

    Both times there are as many sources: all of the other families; and the family's own with as
    many of the others, drawn at random, as make up the number. Only the family's targets take
    part, so that others do not tell how many sources are near.

    Parameters
    ----------
    trial : Trial
    most : int
        Families tried, those with the most targets first.

    Returns
    -------
    DataFrame
        As of `Trial.run`, steps "with" and "without"; also `family`, `sources` (how many) and
        `own` (of them the family's, where it takes part).

    Raises
    ------
    StudyError
        If families are not known, or none has three targets and two sources beside ten others.

    Examples
    --------
    >>> from fewbench.methods.adaptive.tailored import Tailored
    >>> from fewbench.testing import simulate
    >>> scores = simulate(40, 80)
    >>> named = replace(scores, models=scores.models.assign(family=["a", "b", "c", "d"] * 10))
    >>> trial = open_trial(named, Split(np.arange(24), np.arange(24, 40)), Tailored(), 15, seed=0)
    >>> runs = without_family(trial, most=1)
    >>> runs[["step", "family", "sources", "own"]].drop_duplicates().to_numpy().tolist()
    [['with', 'a', 18, 6], ['without', 'a', 18, 6]]
    """
    names = families_to_try(trial.sources, trial.targets, most)
    if not names:
        raise StudyError(
            f"no family has {TARGETS} targets or more, and {SOURCES} sources or more that the "
            f"others, {OTHERS} or more, are as many as",
            hint="take another split, or name larger groups as families",
        )
    of_sources, of_targets = families_of(trial.sources), families_of(trial.targets)
    runs = []
    for number, name in enumerate(names):
        own, others = np.flatnonzero(of_sources == name), np.flatnonzero(of_sources != name)
        rng = np.random.default_rng(child_seed(trial.seed, 4, number))
        filling = rng.permutation(others)[: len(others) - len(own)]
        sides = {WITH: np.sort(np.concatenate([own, filling])), WITHOUT: others}
        for step, sources in sides.items():
            part = _part(trial, sources, np.flatnonzero(of_targets == name))
            found = part.run(step, part.natives)
            runs.append(found.assign(family=name, sources=len(sources), own=len(own)))
    return pd.concat(runs, ignore_index=True)


def _part(trial: Trial, sources: IntArray, targets: IntArray) -> Trial:
    """The same trial with some of its sources and targets."""
    a, b = trial.sources.take(sources), trial.targets.take(targets)
    both = replace(
        trial.sources,
        values=np.concatenate([a.values, b.values]),
        models=pd.concat([a.models, b.models]),
        probabilities=None,
    )
    split = Split(np.arange(len(sources)), np.arange(len(sources), both.n_models))
    return open_trial(both, split, trial.method, trial.budget, trial.seed)
