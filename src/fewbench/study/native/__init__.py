"""Native sources of TailoredBench: which they are, and what they are good for."""

from fewbench.study.native.absence import families_to_try, without_family
from fewbench.study.native.analysis import analyse
from fewbench.study.native.counts import by_count, counts_to_try
from fewbench.study.native.families import Affinity, affinity, families_of, native_families
from fewbench.study.native.item_map import ItemMap, item_map
from fewbench.study.native.nearness import by_nearness
from fewbench.study.native.performance import Performance, measure
from fewbench.study.native.result import NativeAnalysis
from fewbench.study.native.shares import by_share
from fewbench.study.native.spread import Spread, coreset, spread
from fewbench.study.native.trial import Trial, open_trial

__all__ = [
    "Affinity",
    "ItemMap",
    "NativeAnalysis",
    "Performance",
    "Spread",
    "Trial",
    "affinity",
    "analyse",
    "by_count",
    "by_nearness",
    "by_share",
    "coreset",
    "counts_to_try",
    "families_of",
    "families_to_try",
    "item_map",
    "measure",
    "native_families",
    "open_trial",
    "spread",
    "without_family",
]
