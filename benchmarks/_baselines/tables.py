"""The tables of scores, how their models are divided, and how often."""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from fewbench.checks import audit, drop
from fewbench.readers import import_results
from fewbench.scores import Scores
from fewbench.study import Split, SplitSettings, make_split
from fewbench.study.splits import count_twins

BUDGETS = (10, 20, 30, 50, 100)
SEED = 0
LIKE, STRONGER, GAP, WEAKER, GAP_BELOW = "random", "performance", "gap", "weakest", "gap below"
SPLITS = (LIKE, STRONGER, GAP, WEAKER, GAP_BELOW)


@dataclass(frozen=True)
class Table:
    """A table and how often its models are divided.

    `drawn` is the split in which the targets are like the sources: models drawn at random, or
    whole groups where runs of one model would otherwise be on both sides. `by_strength` is how
    often the splits by strength are repeated, whose targets are always the same.
    """

    name: str
    repeats: int = 10
    drawn: str = "random"
    by_strength: int = 3

    def settings(self, split: str) -> SplitSettings:
        if split in (GAP, GAP_BELOW):
            kind = "performance" if split == GAP else "weakest"
            return SplitSettings(kind, targets=0.3, gap=0.2)
        return SplitSettings(self.drawn if split == LIKE else split)  # type: ignore[arg-type]

    def repeats_of(self, split: str) -> int:
        return self.repeats if split == LIKE else min(self.repeats, self.by_strength)

    def at_most(self, repeats: int) -> "Table":
        return replace(self, repeats=min(self.repeats, repeats))


TABLES = (
    Table("gsm8k_150"),
    Table("openllm2_math_musr"),
    Table("helm_gsm"),
    Table("helm_med_qa"),
    Table("helm_commonsense"),
    Table("helm_math"),
    Table("glue_rte"),
    Table("glue_sst2"),
    Table("llmub_mmlu", 3, "group", 1),  # a repeat takes as long as all others together
    Table("mmlu_pro_32", 1),  # its targets are too few to count
)


@dataclass(frozen=True)
class Loaded:
    """A table without duplicate models, and the methods that cannot run on it."""

    scores: Scores
    cannot: frozenset[str]


@cache
def load(folder: Path, name: str) -> Loaded:
    """Read a table, as `fewbench audit FILE --drop duplicates` leaves it."""
    scores = import_results(folder / f"{name}.npz").scores
    found = audit(scores)
    cannot = frozenset(fit.method for fit in found.methods if fit.verdict == "cannot")
    return Loaded(drop(scores, found, ["duplicates"])[0], cannot)


def divisions(scores: Scores, table: Table, split: str) -> list[Split]:
    """Return the divisions of all repeats."""
    settings = table.settings(split)
    return [make_split(scores, settings, SEED, repeat) for repeat in range(table.repeats_of(split))]


def facts(scores: Scores, splits: list[Split]) -> dict[str, int]:
    """Return mean numbers of models, and percentages of targets that matter for the figures."""
    full = scores.full_scores()
    twins = count_twins(scores, splits)
    above = np.mean([(full[s.targets] > full[s.sources].max()).mean() for s in splits])
    sizes = [np.mean([len(getattr(s, side)) for s in splits]) for side in ("sources", "targets")]
    return {
        "sources": round(sizes[0]),
        "targets": round(sizes[1]),
        "near_twin": round(100 * twins.twins / twins.targets),
        "above": round(100 * above),
    }
