"""All analyses of native sources, over the repeats of a split, and their outcome."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from fewbench._seeds import child_seed
from fewbench._version import __version__
from fewbench.errors import MethodError, StudyError
from fewbench.evaluation.opening import check_budget
from fewbench.methods import find_method
from fewbench.methods.adaptive.tailored import Tailored
from fewbench.scores import Scores
from fewbench.study.inference import model_groups, too_few_repeats
from fewbench.study.splits import Split, SplitSettings, make_split
from fewbench.study.tailoredbench.families import (
    WITH,
    WITHOUT,
    Affinity,
    affinity,
    native_families,
    without_family,
)
from fewbench.study.tailoredbench.findings import (
    of_absence,
    of_affinity,
    of_counts,
    of_items,
    of_nearness,
    of_shares,
    of_spread,
)
from fewbench.study.tailoredbench.items import ItemMap, Spread, item_map, spread
from fewbench.study.tailoredbench.trials import (
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
from fewbench.study.twins import count_twins

FORMAT = 1
FEW_TARGETS = 10
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class NativeAnalysis:
    """What was found on native sources; parts that could not be made are None.

    Attributes
    ----------
    items : ItemMap, optional
        Of the first repeat.
    spread : Spread, optional
        Of the first repeat; `half` is the mean over repeats.
    shares, counts, nearness : Performance, optional
        By a random share of the native sources, by the number of nearest sources, by nearness.
    affinity : Affinity, optional
    absence : Performance, optional
        With and without sources of the targets' family, the mean over families.
    by_family : DataFrame, optional
        The same, one row a family: targets, sources, own, and mae and kendall_tau with and without.
    absent : dict of str to str
        Why a part could not be made.
    warnings : list of str
    facts : dict of str
    """

    items: ItemMap | None
    spread: Spread | None
    shares: Performance | None
    counts: Performance | None
    nearness: Performance | None
    affinity: Affinity | None
    absence: Performance | None
    by_family: pd.DataFrame | None
    absent: dict[str, str]
    warnings: list[str]
    facts: dict[str, Any]

    @property
    def findings(self) -> dict[str, str]:
        """What each part says, in a sentence or two made from its numbers."""
        families = 0 if self.by_family is None else len(self.by_family)
        said = {
            "items": self.items and of_items(self.items),
            "spread": self.spread and of_spread(self.spread),
            "nearness": self.nearness and of_nearness(self.nearness),
            "shares": self.shares and of_shares(self.shares),
            "counts": self.counts and of_counts(self.counts),
            "affinity": self.affinity and of_affinity(self.affinity),
            "absence": self.absence and of_absence(self.absence, families),
        }
        return {part: words for part, words in said.items() if words}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; an undefined number is None."""
        of = self.affinity
        parts: dict[str, Any] = {
            "format": FORMAT,
            "facts": self.facts,
            "warnings": self.warnings,
            "findings": self.findings,
            "absent": self.absent,
            "items": self.items and _arrays(self.items),
            "spread": self.spread and {**_arrays(self.spread), "shares": self.spread.shares},
            "affinity": of and {**_arrays(of), "own": of.own.reset_index().to_dict("records")},
            "by_family": None if self.by_family is None else self.by_family.to_dict("records"),
        }
        for name in ("shares", "counts", "nearness", "absence"):
            one: Performance | None = getattr(self, name)
            parts[name] = one and {
                "against": one.against,
                "steps": one.steps.reset_index().to_dict("records"),
            }
        return {key: _plain(value) for key, value in parts.items()}


def _arrays(one: Any) -> dict[str, Any]:
    return {field.name: getattr(one, field.name) for field in fields(one)}


def _plain(value: Any) -> Any:
    """Make lists of arrays and tables; None where a number is not defined."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, pd.DataFrame):
        return _plain(value.to_dict("records"))
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value


def analyze(
    scores: Scores,
    method: str | Tailored = "tailored",
    budget: int = 30,
    split: SplitSettings | None = None,
    repeats: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> NativeAnalysis:
    """Study the native sources of TailoredBench: which they are, and what they are good for.

    Parameters
    ----------
    scores : Scores
        All models; `family` among their columns makes the analyses of families possible.
    method : str or Tailored
        "tailored", with settings or without.
    budget : int
        Items for each target.
    split : SplitSettings, optional
        By default as the models' column `role` says, at random if they have none.
    repeats : int
        Divisions of the models, and seeds of the method.
    seed : int
        All randomness follows from it.
    progress : callable, optional
        Called with the numbers of finished parts and of all.

    Raises
    ------
    MethodError
        If the method is not TailoredBench, or the budget does not fit.
    StudyError
        If the models cannot be divided so.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> found = analyze(simulate(40, 80), budget=15, repeats=1)
    >>> found.nearness.steps.index.tolist()
    ['0–20%', '20–40%', '40–60%', '60–80%', '80–100%']
    >>> list(found.absent)
    ['absence']
    """
    chosen = find_method(method) if isinstance(method, str) else method
    if not isinstance(chosen, Tailored):
        raise MethodError(
            f"{method!r} has no native sources", hint="use tailored, or tailored(setting=value,…)"
        )
    check_budget(budget, scores.n_items)
    if repeats < 1 or seed < 0:
        raise StudyError(f"{repeats} repeats, seed {seed}", hint="1 or more, and 0 or more")
    if split is None:
        split = SplitSettings("given" if "role" in scores.models else "random")
    splits = [make_split(scores, split, seed, repeat) for repeat in range(repeats)]
    counts = counts_to_try(min(len(one.sources) for one in splits))
    makers: dict[str, Callable[[Trial], Any]] = {
        "items": item_map,
        "spread": spread,
        "shares": by_share,
        "counts": partial(by_count, counts=counts),
        "nearness": by_nearness,
        "affinity": native_families,
        "absence": without_family,
    }
    made: dict[str, list[Any]] = {name: [] for name in makers}
    absent: dict[str, str] = {}
    done = 0
    for repeat, one in enumerate(splits):
        # The seed of the repeats of `compare`, so that its numbers are found again.
        trial = open_trial(scores, one, chosen, budget, child_seed(seed, 3, repeat))
        for name, make in makers.items():
            if name != "items" or not repeat:
                try:
                    found = make(trial)
                    table = isinstance(found, pd.DataFrame)
                    made[name].append(found.assign(repeat=repeat) if table else found)
                except StudyError as error:
                    absent[name] = error.message + (f" ({error.hint})" if error.hint else "")
            done += 1
            if progress is not None:
                progress(done, repeats * len(makers))
    return _gather(made, absent, seed, _warnings(scores, split, splits), model_groups(scores),
                   _facts(scores, chosen, budget, split, splits, seed))  # fmt: skip


def _gather(
    made: dict[str, list[Any]],
    absent: dict[str, str],
    seed: int,
    warnings: list[str],
    groups: dict[str, int],
    facts: dict[str, Any],
) -> NativeAnalysis:
    why = {name: said for name, said in absent.items() if not made[name]}

    def table(name: str) -> pd.DataFrame | None:
        return pd.concat(made[name], ignore_index=True) if made[name] else None

    def measured(name: str, against: str) -> Performance | None:
        runs = table(name)
        return None if runs is None else measure(runs, against, seed, groups=groups)

    kin, counted, absence, by_family = None, table("affinity"), table("absence"), None
    if counted is not None:
        try:
            kin = affinity(counted, seed)
        except StudyError as error:
            why["affinity"] = f"{error.message} ({error.hint})"
    if absence is not None:
        by_family = _each_family(absence, seed)
    return NativeAnalysis(
        items=made["items"][0] if made["items"] else None,
        spread=_mean_spread(made["spread"]) if made["spread"] else None,
        shares=measured("shares", "100%"),
        counts=measured("counts", CHOSEN),
        nearness=measured("nearness", "0–20%"),
        affinity=kin,
        absence=None
        if absence is None
        else measure(absence, WITH, seed, ("repeat", "family"), groups),
        by_family=by_family,
        absent=why,
        warnings=warnings,
        facts=facts,
    )


def _mean_spread(each: list[Spread]) -> Spread:
    half = {name: float(np.mean([one.half[name] for one in each])) for name in each[0].half}
    return replace(each[0], half=half)


def _each_family(runs: pd.DataFrame, seed: int) -> pd.DataFrame:
    rows = []
    for name, part in runs.groupby("family", sort=False):
        # Within one family its targets are what is drawn.
        steps = measure(part, WITH, seed).steps
        row: dict[str, Any] = {"family": name, "targets": part["target"].nunique()}
        row |= {column: float(part[column].mean()) for column in ("sources", "own")}
        for metric in ("mae", "kendall_tau"):
            row |= {f"{metric}_{step}": steps.at[step, metric] for step in (WITH, WITHOUT)}
            row |= {
                f"{metric}_gap{end}": steps.at[WITHOUT, f"{metric}_gap{end}"]
                for end in ("", "_low", "_high")
            }
        rows.append(row)
    return pd.DataFrame(rows)


def _warnings(scores: Scores, split: SplitSettings, splits: list[Split]) -> list[str]:
    twins = count_twins(scores, splits if split.is_drawn else splits[:1]).warning(split.kind)
    found = [twins] if twins else []
    too_few = too_few_repeats(len(splits))
    found += [too_few] if too_few else []
    fewest = min(len(one.targets) for one in splits)
    if fewest < FEW_TARGETS:
        found.append(f"only {fewest} targets: errors and rankings are of little weight")
    missing = float(np.isnan(scores.values).mean())
    if missing:
        found.append(f"{missing:.1%} of the cells are missing; those of sources are filled in")
    return found


def _facts(
    scores: Scores,
    method: Tailored,
    budget: int,
    split: SplitSettings,
    splits: list[Split],
    seed: int,
) -> dict[str, Any]:
    return {
        "models": scores.n_models,
        "sources": round(np.mean([len(one.sources) for one in splits])),
        "targets": round(np.mean([len(one.targets) for one in splits])),
        "items": scores.n_items,
        "tasks": len(scores.tasks),
        "method": method.describe(),
        "budget": budget,
        "split": split.describe(),
        "repeats": len(splits),
        "seed": seed,
        "full score": f"{scores.average} average",
        "fingerprint": scores.fingerprint,
        "version": f"fewbench {__version__}",
    }
