"""The tables of scores, how their models are divided, and how often."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from fewbench.audit import audit, drop
from fewbench.readers import read
from fewbench.scores import Scores
from fewbench.study import Split, SplitSettings, make_split
from fewbench.study.splits import count_twins

BUDGETS = (10, 20, 30, 50, 100)
SEED = 0
LIKE, STRONGER = "random", "performance"
SPLITS = (LIKE, STRONGER)


@dataclass(frozen=True)
class Table:
    """A table and how often its models are divided.

    `drawn` is the split in which the targets are like the sources: models drawn at random, or
    whole groups where runs of one model would otherwise be on both sides.
    """

    name: str
    repeats: int
    drawn: str = "random"

    def settings(self, split: str) -> SplitSettings:
        return SplitSettings(self.drawn if split == LIKE else split)  # type: ignore[arg-type]

    def at_most(self, repeats: int) -> "Table":
        return replace(self, repeats=min(self.repeats, repeats))


TABLES = (
    Table("gsm8k_150", 10),
    Table("openllm2_math_musr", 10),
    Table("helm_gsm", 10),
    Table("helm_med_qa", 10),
    Table("helm_commonsense", 10),
    Table("helm_math", 10),
    Table("glue_rte", 10),
    Table("glue_sst2", 10),
    Table("llmub_mmlu", 3, "group"),  # a repeat takes as long as all others together
    Table("mmlu_pro_32", 1),  # its targets are too few to count
)


@dataclass(frozen=True)
class Loaded:
    """A table without duplicates, what was left out, and what its methods lack."""

    scores: Scores
    said: str
    cannot: dict[str, tuple[str, ...]]
    lacking: dict[str, tuple[str, ...]]
    """Method to what it lacks, of those that work nevertheless."""

    def only(self, methods: Collection[str]) -> "Loaded":
        """Return the same with reasons of these methods only."""
        cannot = {name: why for name, why in self.cannot.items() if name in methods}
        lacking = {name: why for name, why in self.lacking.items() if name in methods}
        return replace(self, cannot=cannot, lacking=lacking)


@cache
def load(folder: Path, name: str) -> Loaded:
    """Read a table, as `fewbench audit FILE --drop duplicates` leaves it."""
    scores = read(folder / f"{name}.npz").scores
    found = audit(scores)
    scores, said = drop(scores, found, ["duplicates"])
    because = {fit.method: (fit.verdict, fit.because) for fit in found.methods}
    return Loaded(
        scores,
        "; ".join(said),
        {method: why for method, (verdict, why) in because.items() if verdict == "cannot"},
        {method: why for method, (verdict, why) in because.items() if verdict == "works, but"},
    )


def divisions(scores: Scores, table: Table, split: str) -> list[Split]:
    """Return the divisions of all repeats."""
    settings = table.settings(split)
    return [make_split(scores, settings, SEED, repeat) for repeat in range(table.repeats)]


def facts(scores: Scores, splits: list[Split]) -> dict[str, str]:
    """Return what a reader should know of the divisions before trusting figures of them."""
    full = scores.full_scores()
    twins = count_twins(scores, splits)
    above = np.mean([(full[s.targets] > full[s.sources].max()).mean() for s in splits])
    sizes = [np.mean([len(getattr(s, side)) for s in splits]) for side in ("sources", "targets")]
    return {
        "sources": f"{sizes[0]:.0f}",
        "targets": f"{sizes[1]:.0f}",
        "with a near-twin": f"{twins.twins / twins.targets:.0%}",
        "above every source": f"{above:.0%}",
    }
