"""Which families native sources are of (Table 11)."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fewbench.errors import StudyError
from fewbench.scores import Scores
from fewbench.study.inference import two_way
from fewbench.study.native.trial import Trial

FloatArray = NDArray[np.float64]
COUNTS = ("natives", "chance", "by_strength")


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
    >>> from fewbench.study import Split
    >>> from fewbench.study.native import open_trial
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
