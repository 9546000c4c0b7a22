"""All analyses of native sources over the repeats of a split, and findings in words."""

import math
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from fewbench._seeds import child_seed
from fewbench._threads import one_thread
from fewbench.errors import MethodError, StudyError
from fewbench.evaluation.opening import check_budget
from fewbench.methods import find_method
from fewbench.scores import Scores
from fewbench.study.inference import model_groups
from fewbench.study.splits import Split, SplitSettings, make_split
from fewbench_papers.tailoredbench.tailored import Tailored
from tailoredbench.methods import of_methods
from tailoredbench.native_sources import (
    OWN,
    WITH,
    WITHOUT,
    Affinity,
    Spread,
    affinity,
    native_families,
    spread,
    without_family,
)
from tailoredbench.trials import (
    CHOSEN,
    Performance,
    Trial,
    by_count,
    by_nearness,
    by_share,
    counts_to_try,
    measure,
    open_trial,
)

PARTS = ("spread", "shares", "counts", "nearness", "affinity", "absence")
SLIGHT = 0.02  # of the distance between any two items


@dataclass(frozen=True, eq=False)
class NativeAnalysis:
    """Results on native sources; a part that could not be made is None.

    Attributes
    ----------
    spread : Spread, optional
        Spread of the first repeat; `half` is the mean over repeats.
    shares, counts, nearness : Performance, optional
        By a random share of the native sources, by the number of nearest sources, by nearness.
    affinity : Affinity, optional
    absence : Performance, optional
        With and without sources of the targets' family, the mean over families.
    families : int
        Families that were left out in turn.
    by_method : DataFrame, optional
        One row per method: mae and kendall_tau with and without, the mean over families.
    absent : dict of str to str
        Why a part could not be made.
    """

    spread: Spread | None
    shares: Performance | None
    counts: Performance | None
    nearness: Performance | None
    affinity: Affinity | None
    absence: Performance | None
    families: int
    by_method: pd.DataFrame | None
    absent: dict[str, str]

    @property
    def findings(self) -> dict[str, str]:
        """One or two sentences per part, made from its numbers."""
        found = {
            "spread": self.spread and _of_spread(self.spread),
            "nearness": self.nearness and _of_nearness(self.nearness),
            "shares": self.shares and _of_shares(self.shares),
            "counts": self.counts and _of_counts(self.counts),
            "affinity": self.affinity and _of_affinity(self.affinity),
            "absence": self.absence and _of_absence(self.absence, self.families),
        }
        return {part: words for part, words in found.items() if words}


@dataclass(frozen=True, eq=False)
class _Repeat:
    """A repeat to analyze."""

    number: int
    split: Split
    method: Tailored
    budget: int
    seed: int
    counts: Sequence[int]
    others: Sequence[str]
    parts: Sequence[str]


def _parts_of(scores: Scores, repeat: _Repeat) -> dict[str, Any]:
    """Return what each analysis found in a repeat; of one that could not be made, the reason."""
    makers: dict[str, Callable[[Trial], Any]] = {
        "spread": spread,
        "shares": by_share,
        "counts": partial(by_count, counts=repeat.counts),
        "nearness": by_nearness,
        "affinity": native_families,
        "absence": partial(without_family, others=repeat.others),
    }
    parts: dict[str, Any] = {}
    with one_thread():  # in any process
        trial = open_trial(scores, repeat.split, repeat.method, repeat.budget, repeat.seed)
        for name, make in makers.items():
            if name not in repeat.parts:
                continue
            try:
                part = make(trial)
            except StudyError as error:
                part = _reason(error)
            if isinstance(part, pd.DataFrame):
                part = part.assign(repeat=repeat.number)
            parts[name] = part
    return parts


def analyze(
    scores: Scores,
    method: str | Tailored = "tailored",
    budget: int = 30,
    split: SplitSettings | None = None,
    repeats: int = 5,
    seed: int = 0,
    others: Sequence[str] = (),
    parts: Sequence[str] = PARTS,
    workers: int = 1,
) -> NativeAnalysis:
    """Analyze TailoredBench's native sources: which they are, and how useful they are.

    Parameters
    ----------
    scores : Scores
        All models; the analyses of families need their column `family`.
    method : str or Tailored
        "tailored", with or without settings.
    budget : int
        Items per target.
    split : SplitSettings, optional
        By default the models' column `role`, or a random split without that column.
    repeats : int
        Splits of the models, and seeds of the method.
    seed : int
        Random seed.
    others : sequence of str
        Methods to compare with, where a family is absent.
    parts : sequence of str
        The analyses to make; by default all.
    workers : int
        Number of processes.

    Raises
    ------
    MethodError
        If the method is not TailoredBench, or the budget does not fit.
    StudyError
        If the models cannot be split.
    """
    chosen = find_method(method) if isinstance(method, str) else method
    if not isinstance(chosen, Tailored):
        raise MethodError(
            f"{method!r} has no native sources",
            hint="use tailored",
        )
    check_budget(budget, scores.n_items)
    if repeats < 1 or seed < 0:
        raise StudyError(
            f"repeats={repeats}, seed={seed} is too low",
            hint="use 1 repeat or more, and a seed of 0 or more",
        )
    if split is None:
        split = SplitSettings("given" if "role" in scores.models else "random")
    splits = [make_split(scores, split, seed, repeat) for repeat in range(repeats)]
    counts = counts_to_try(min(len(one.sources) for one in splits))
    # The same seeds as in `compare`, which then gives the same numbers.
    jobs = [
        _Repeat(repeat, one, chosen, budget, child_seed(seed, 3, repeat), counts, others, parts)
        for repeat, one in enumerate(splits)
    ]
    made: dict[str, list[Any]] = {}
    failed: dict[str, str] = {}
    with ExitStack() as stack:
        run: Callable[..., Any] = map
        if workers > 1:
            pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))
            run = stack.enter_context(pool).map
        for of_repeat in run(partial(_parts_of, scores), jobs):
            for name, part in of_repeat.items():
                made.setdefault(name, [])
                if isinstance(part, str):
                    failed[name] = part
                else:
                    made[name].append(part)
    absent = {name: "not asked for" for name in PARTS if name not in parts}
    absent |= {name: reason for name, reason in failed.items() if not made[name]}
    tables = {
        name: pd.concat(of_repeats, ignore_index=True)
        for name, of_repeats in made.items()
        if of_repeats and isinstance(of_repeats[0], pd.DataFrame)
    }
    groups, families = model_groups(scores), 0
    results: dict[str, Any] = dict.fromkeys((*PARTS, "by_method"))
    for name, against in (("shares", "100%"), ("counts", CHOSEN), ("nearness", "0–20%")):
        if name in tables:
            results[name] = measure(tables[name], against, seed, groups=groups)
    if "absence" in tables:
        results["by_method"] = of_methods(tables["absence"], seed)
        absence = tables["absence"][tables["absence"]["method"] == OWN]
        results["absence"] = measure(absence, WITH, seed, ("repeat", "family"), groups)
        families = absence["family"].nunique()
    if "affinity" in tables:
        try:
            results["affinity"] = affinity(tables["affinity"], seed)
        except StudyError as error:
            absent["affinity"] = _reason(error)
    if spreads := made.get("spread"):
        half = {k: float(np.mean([each.half[k] for each in spreads])) for k in spreads[0].half}
        results["spread"] = replace(spreads[0], half=half)
    return NativeAnalysis(**results, families=families, absent=absent)


def _reason(error: StudyError) -> str:
    return error.message + (f" ({error.hint})" if error.hint else "")


# Findings


def _of_spread(of: Spread) -> str:
    own, half = of.shares, of.half
    gap = own["targets"] - own["sources"]
    more = "farther from" if gap > SLIGHT else "nearer to" if gap < -SLIGHT else "about as far from"
    fit, rest = half["held_out"] - half["chose"], half["targets"] - half["held_out"]
    found = (
        f"By the targets' answers, items are {more} the medoids that the sources chose: "
        f"{own['targets']:.0%} of the distance between any two items, {own['sources']:.0%} by the "
        "sources' answers."
    )
    if not (math.isfinite(fit) and gap > SLIGHT):
        return found
    part = min(max(fit / max(fit + rest, 1e-9), 0.0), 1.0)
    how = "All" if part > 0.95 else "Most" if part >= 0.6 else "Part" if part > 0.1 else "None"
    why = f"{how} of that is because medoids fit the models that chose them"
    if rest > SLIGHT:
        why += f", {'little' if part >= 0.8 else 'the rest'} because targets differ from sources"
    elif part <= 0.95:
        why += ", not because targets differ from sources"
    return (
        f"{found} {why}: if half of the sources choose, it is {half['chose']:.0%} for them, "
        f"{half['held_out']:.0%} for the other half and {half['targets']:.0%} for targets."
    )


def _of_nearness(of: Performance) -> str:
    first, last = str(of.steps.index[0]), str(of.steps.index[-1])
    agree = of.steps["agreement"]
    return (
        f"{_change(of, first, last, 'From the nearest to the farthest fifth of the sources')} "
        f"They agree with targets on {agree[first]:.0%} and {agree[last]:.0%} of the items. "
        f"{_verdict(of, last, 'The farthest fifth is', 'the nearest')}"
    )


def _of_shares(of: Performance) -> str:
    first, last = str(of.steps.index[0]), str(of.steps.index[-1])
    words = f"With {_number(of, first)} of the native sources instead of all {_number(of, last)}"
    return f"{_change(of, last, first, words)} {_verdict(of, first, 'Fewer are', 'all of them')}"


def _of_counts(of: Performance) -> str:
    tried = of.steps.drop(index=CHOSEN)
    best, every = str(tried["mae"].idxmin()), str(tried.index[-1])
    found = [
        f"The method finds {_number(of, CHOSEN)} native sources per target: {_at(of, CHOSEN)}. "
        f"Among the numbers tried, {best} has the lowest error: {_at(of, best)}."
    ]
    if of.at(best)["mae"] >= of.at(CHOSEN)["mae"]:
        found.append("No number tried has a lower error than the method's.")
    else:
        found.append(_verdict(of, best, "That is", "what the method finds"))
    if best != every:
        found.append(f"All {every} sources: {_at(of, every)}.")
        found.append(_verdict(of, every, "That is", "what the method finds"))
    return " ".join(found)


def _of_affinity(of: Affinity) -> str:
    def ratio(name: str) -> str:
        if not math.isfinite(of.low[name]):
            return f"{_two(of.ratio[name])} times"
        return f"{_two(of.ratio[name])} times [{_two(of.low[name])} to {_two(of.high[name])}]"

    meaning = "so equal strength alone does not explain it"
    if not math.isfinite(of.low["chance"]):
        meaning = "without intervals that show whether it is chance"
    elif not of.low["chance"] > 1:
        meaning = "so families are not clearly preferred"
    elif not of.low["by_strength"] > 1:
        meaning = "so equal strength may explain it"
    return (
        f"A target has {ratio('chance')} as many native sources of its own family as by chance, "
        f"and {ratio('by_strength')} as many as among the sources nearest in full score, {meaning}."
    )


def _of_absence(of: Performance, families: int) -> str:
    mean = f", mean over {families} families" if families > 1 else ""
    words = f"Without sources of the target's family, with the same number of sources{mean}"
    return (
        f"{_change(of, of.against, WITHOUT, words)} "
        f"{_verdict(of, WITHOUT, 'Without them it is', 'with them')}"
    )


def _change(of: Performance, one: str, other: str, words: str) -> str:
    a, b = of.at(one), of.at(other)
    return (
        f"{words}, the error goes from {_pp(a['mae'])} to {_pp(b['mae'])} pp and τ from "
        f"{_two(a['kendall_tau'])} to {_two(b['kendall_tau'])}."
    )


def _at(of: Performance, step: str) -> str:
    row = of.at(step)
    return f"error {_pp(row['mae'])} pp, τ {_two(row['kendall_tau'])}"


def _verdict(of: Performance, step: str, what: str, other: str) -> str:
    """Say whether a step is clearly better or worse than the step `against`."""
    row = of.at(step)
    if math.isnan(row["mae_gap_low"]):
        return "Without intervals, this difference may be chance."
    error = _sign(row["mae_gap_low"], row["mae_gap_high"])
    tau = -_sign(row["kendall_tau_gap_low"], row["kendall_tau_gap_high"])
    sides = {1: "worse", -1: "better"}
    if error == tau == 0:
        return f"{what} not clearly better or worse than {other}."
    if error == tau:
        return f"{what} clearly {sides[error]} than {other}, in error and in τ."
    if error and tau:
        return f"{what} {sides[error]} than {other} in error and {sides[tau]} in τ."
    return f"{what} clearly {sides[error or tau]} than {other} in {'error' if error else 'τ'} only."


def _sign(low: float, high: float) -> int:
    return 1 if low > 0 else -1 if high < 0 else 0


def _number(of: Performance, step: str) -> str:
    return f"{of.at(step)['natives']:.0f}"


def _pp(share: float) -> str:
    return f"{100 * share:.1f}" if math.isfinite(share) else "–"


def _two(value: float) -> str:
    return f"{value:.2f}".replace("-", "−") if math.isfinite(value) else "–"
