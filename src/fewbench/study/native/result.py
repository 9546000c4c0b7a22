"""The outcome of a study of native sources."""

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from fewbench.study.native.families import Affinity
from fewbench.study.native.findings import (
    of_absence,
    of_affinity,
    of_counts,
    of_items,
    of_nearness,
    of_shares,
    of_spread,
)
from fewbench.study.native.item_map import ItemMap
from fewbench.study.native.performance import Performance
from fewbench.study.native.spread import Spread

FORMAT = 1


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
