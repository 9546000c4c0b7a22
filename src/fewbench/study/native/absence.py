"""Targets estimated with and without sources of their family (Table 12)."""

from dataclasses import replace

import numpy as np
import pandas as pd

from fewbench._seeds import child_seed
from fewbench.errors import StudyError
from fewbench.scores import Scores
from fewbench.study.native.families import families_of
from fewbench.study.native.trial import IntArray, Trial, open_trial
from fewbench.study.splits import Split

WITH, WITHOUT = "with", "without"
TARGETS, SOURCES, OTHERS = 3, 2, 10  # a family is tried that has so many, and so many others
MOST = 6


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
