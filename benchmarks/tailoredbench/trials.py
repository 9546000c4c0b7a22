"""Estimate targets from given native sources: by their number, share and nearness."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fewbench._threads import one_thread
from fewbench._types import FloatArray, IntArray
from fewbench.errors import MethodError, StudyError
from fewbench.evaluation.opening import check_budget
from fewbench.methods import Answers, Method
from fewbench.scores import Scores
from fewbench.study.inference import TwoWay, two_way
from fewbench.study.metrics import weighted_correlations
from fewbench.study.splits import Split
from fewbench.uncertainty.bounds import EXACT
from fewbench.uncertainty.replay import replay
from fewbench_papers.algorithms.clustering.distances import nearest_first
from fewbench_papers.tailoredbench.tailored import Tailored, TailoredSession

SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)  # of the native sources
CHOSEN = "as found"
SHARES_OF_ALL = (0.03, 0.07, 0.13, 0.27, 0.4, 0.6, 0.8, 1.0)
PARTS = 5
LEAST_IN_PART = 2  # sources in each part
RESAMPLES = 499
METRICS = ("mae", "kendall_tau")


@dataclass(frozen=True, eq=False)
class Trial:
    """Sources and targets after the targets have answered the probe set.

    Attributes
    ----------
    sources, targets : Scores
    method : Tailored
    budget, seed : int
    probe : ndarray of int
        Positions of the probe items.
    natives : tuple of ndarray of int, one per target
        The native sources that the method chooses, positions ascending.
    order : ndarray of int, shape (targets, sources)
        The sources by distance to each target on the probe items, nearest first. The native
        sources are the first of each row.
    """

    sources: Scores
    targets: Scores
    method: Tailored
    budget: int
    seed: int
    probe: IntArray
    natives: tuple[IntArray, ...]
    order: IntArray

    def nearest(self, count: int) -> list[IntArray]:
        """Each target's `count` nearest sources, positions ascending."""
        return [np.sort(row[:count]) for row in self.order]

    def run(self, step: str, natives: Sequence[IntArray]) -> pd.DataFrame:
        """Estimate the targets from given native sources, one array of positions per target.

        Returns
        -------
        DataFrame
            One row per target: step (the given name), natives (how many), agreement (with the
            target on all items: 1 minus the mean difference of scores), target, truth, estimate;
            scores in [0, 1].
        """
        given = dict(zip(self.targets.model_ids, natives, strict=True))
        chosen = _Chosen(self.method, given)
        replayed = replay(chosen, self.sources, self.targets, self.budget, self.seed)
        known = self.sources.filled
        agreement = [
            1.0 - float(np.abs(known[of] - own).mean())
            for of, own in zip(natives, self.targets.values, strict=True)
        ]
        return pd.DataFrame(
            {
                "step": step,
                "natives": [len(of) for of in natives],
                "agreement": agreement,
                "target": self.targets.model_ids,
                "truth": self.targets.full_scores(),
                "estimate": replayed.scores,
            }
        )


def open_trial(scores: Scores, split: Split, method: Tailored, budget: int, seed: int) -> Trial:
    """Split the models, and let the targets answer the probe set.

    Missing cells of sources are filled (see `Scores.filled`); targets must be complete.

    Raises
    ------
    MethodError
        If the budget or a setting of the method does not fit.
    """
    check_budget(budget, scores.n_items)
    if method.values != "scores":
        raise MethodError(
            f"values={method.values}: nearness is measured by scores here", hint="use values=scores"
        )
    sources, targets = scores.take(split.sources), scores.take(split.targets)
    with one_thread():
        session = method.start(sources, budget, seed, targets.model_ids)
        session.ask()
        answers = targets.values[:, session.probe]
        for row, target in enumerate(targets.model_ids):
            session.tell(target, Answers(session.probe, answers[[row]]))
        alone = [np.array([row]) for row in range(len(answers))]
        groups = alone if method.targets_apart else [np.arange(len(answers))]
        known = sources.filled[:, session.probe]
        order = np.concatenate([_by_distance(known, answers[rows], method) for rows in groups])
    found = [session.natives_of(target) for target in targets.model_ids]
    natives = tuple(one for one in found if one is not None)
    return Trial(sources, targets, method, budget, seed, session.probe, natives, order)


def _by_distance(sources: FloatArray, targets: FloatArray, method: Tailored) -> IntArray:
    return nearest_first(method.distances(np.concatenate([sources, targets])), len(sources))


@dataclass(frozen=True, eq=False)
class _Chosen(Method):
    """TailoredBench with given native sources."""

    method: Tailored
    natives: dict[str, IntArray]

    def start(
        self, scores: Scores, budget: int, seed: int, targets: Sequence[str]
    ) -> TailoredSession:
        session = self.method.start(scores, budget, seed, targets)
        chosen = session.natives_of
        session.natives_of = lambda name: None if chosen(name) is None else self.natives[name]
        return session

    def describe(self) -> str:
        return f"{self.method.describe()} with native sources given"


def by_share(trial: Trial, shares: tuple[float, ...] = SHARES) -> pd.DataFrame:
    """Estimate targets from random shares of their native sources, as `Trial.run` returns.

    Smaller shares are parts of larger ones. Targets with the same native sources share the draw.
    """
    runs = [
        trial.run(f"{share:.0%}", [_drawn(trial.seed, own, share) for own in trial.natives])
        for share in shares
    ]
    return pd.concat(runs, ignore_index=True)


def _drawn(seed: int, natives: IntArray, share: float) -> IntArray:
    rng = np.random.default_rng([seed, 2, *natives.tolist()])
    count = max(1, round(share * len(natives)))
    return np.sort(rng.permutation(natives)[:count])


def counts_to_try(n_sources: int) -> list[int]:
    """Numbers of native sources from few to all."""
    return sorted({max(1, round(share * n_sources)) for share in SHARES_OF_ALL})


def by_count(trial: Trial, counts: Sequence[int] | None = None) -> pd.DataFrame:
    """Estimate targets from their nearest sources by number, and from those the method finds.

    Returns what `Trial.run` returns; the last step is "as found".

    Raises
    ------
    StudyError
        If a number is below 1 or above the number of sources.
    """
    n = trial.sources.n_models
    tried = counts_to_try(n) if counts is None else list(counts)
    for count in tried:
        if not 1 <= count <= n:
            raise StudyError(
                f"{count} native sources of {n} sources are not possible", hint=f"use 1 to {n}"
            )
    runs = [trial.run(str(count), trial.nearest(count)) for count in tried]
    return pd.concat([*runs, trial.run(CHOSEN, trial.natives)], ignore_index=True)


def by_nearness(trial: Trial, parts: int = PARTS) -> pd.DataFrame:
    """Estimate targets from the nearest part of the sources, the next, … and the farthest.

    Returns what `Trial.run` returns, with steps named by percentiles, as "20–40%". Parts have the
    same size; if the sources cannot be divided evenly, some parts leave out their last sources.

    Raises
    ------
    StudyError
        If a part would have fewer than two sources.
    """
    n = trial.sources.n_models
    size = n // parts
    if size < LEAST_IN_PART:
        raise StudyError(
            f"{n} sources cannot be divided by nearness into {parts} parts",
            hint=f"use {parts * LEAST_IN_PART} sources or more",
        )
    runs = []
    for part in range(parts):
        first = part * n // parts
        name = f"{100 * part / parts:.0f}–{100 * (part + 1) / parts:.0f}%"
        runs.append(trial.run(name, [np.sort(row[first : first + size]) for row in trial.order]))
    return pd.concat(runs, ignore_index=True)


@dataclass(frozen=True, eq=False)
class Performance:
    """Error and ranking at several steps.

    Attributes
    ----------
    steps : DataFrame
        One row per step, in order: `natives` and `agreement` as in `Trial.run`, means over
        targets; `mae` and `kendall_tau`, means over repeats, with 90 % intervals (`…_low`,
        `…_high`); their differences to the step `against` (`…_gap`, `…_gap_low`, `…_gap_high`).
        Intervals resample repeats and targets, the same for all steps (see
        `fewbench.study.inference`), NaN with fewer than 3 repeats.
    against : str
        The step that the others are compared with.
    runs : DataFrame
        One row per step, repeat and target: truth and estimate.
    """

    steps: pd.DataFrame
    against: str
    runs: pd.DataFrame

    def at(self, step: str) -> dict[str, float]:
        """Return the numbers of a step by column."""
        row = self.steps.loc[[step]].to_numpy(np.float64)[0]
        return dict(zip(map(str, self.steps), row.tolist(), strict=True))


def measure(
    runs: pd.DataFrame,
    against: str,
    seed: int = 0,
    within: Sequence[str] = ("repeat",),
    groups: Mapping[str, Hashable] | None = None,
) -> Performance:
    """Measure error and ranking of runs, as `Trial.run` returns them.

    Parameters
    ----------
    runs : DataFrame
        Columns step, target, truth, estimate, repeat, and those of `within`. Every step has the
        same targets; `natives` and `agreement` are averaged if present.
    against : str
        The step to compare the others with.
    seed : int
        Seed of the resampling.
    within : sequence of str
        Error and ranking are computed within each combination of these columns, then averaged;
        each repeat has the same weight.
    groups : mapping of str, optional
        The group of each target that is resampled as one (see `model_groups`).
    """
    first = runs[runs["step"] == against]
    repeats = [part for _, part in first.groupby("repeat", sort=False)]
    resampled = two_way([list(part["target"]) for part in repeats], groups, seed, RESAMPLES)
    found: dict[str, dict[str, FloatArray]] = {}
    for step, rows in runs.groupby("step", sort=False):
        each = []
        for repeat, (_, of_repeat) in enumerate(rows.groupby("repeat", sort=False)):
            at = pd.Index(repeats[repeat]["target"])
            weights = resampled.weights(repeat)
            each.append(
                [
                    _weighted(part, weights[:, at.get_indexer(pd.Index(part["target"]))])
                    for _, part in of_repeat.groupby(list(within), sort=False)
                ]
            )
        found[str(step)] = {
            name: np.stack([_mean([part[name] for part in parts]) for parts in each])
            for name in METRICS
        }
    table = {step: _row(resampled, of, found[against]) for step, of in found.items()}
    steps = pd.DataFrame.from_dict(table, orient="index").rename_axis("step")
    for place, column in enumerate(c for c in ("natives", "agreement") if c in runs):
        steps.insert(place, column, runs.groupby("step", sort=False)[column].mean())
    return Performance(steps, against, runs)


def _row(
    resampled: TwoWay, of: dict[str, FloatArray], base: dict[str, FloatArray]
) -> dict[str, float]:
    row = {}
    for name in METRICS:
        whole, gap = resampled.mean(of[name]), resampled.difference(of[name], base[name])
        for column, values in ((name, whole), (f"{name}_gap", gap)):
            figure = resampled.figure(values, ratio=column == "mae")
            row[column], row[f"{column}_low"] = figure.value, figure.low
            row[f"{column}_high"] = figure.high
    return row


def _weighted(part: pd.DataFrame, weights: FloatArray) -> dict[str, FloatArray]:
    """Return error and Kendall's tau-b for each row of target weights."""
    truth, estimate = (
        np.round(part[name].to_numpy(np.float64), EXACT) for name in ("truth", "estimate")
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "mae": weights @ np.abs(estimate - truth) / weights.sum(axis=1),
            "kendall_tau": weighted_correlations(truth, estimate, weights)["kendall_tau"],
        }


def _mean(parts: list[FloatArray]) -> FloatArray:
    """Return the mean of defined values, NaN where nothing is defined."""
    values = np.stack(parts)
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0))
