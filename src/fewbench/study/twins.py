"""Targets that answer as a source does, or nearly so."""

from dataclasses import dataclass

import numpy as np

from fewbench._names import some
from fewbench.algorithms.soundness.likeness import TWIN_CORRELATION, nearest_twin
from fewbench.scores import Scores
from fewbench.study.splits import Split


@dataclass(frozen=True)
class TwinCount:
    """How many targets, over all repeats, have a twin among the sources."""

    targets: int
    twins: int
    identical: int
    examples: tuple[str, ...]

    def warning(self, split: str) -> str | None:
        """Return what to say of it, if anything."""
        if not self.twins:
            return None
        advice = "" if split == "group" else "; compare with a split by group"
        return (
            f"{split} split: {self.twins} of {self.targets} targets "
            f"({self.twins / self.targets:.0%}) have answers correlated at {TWIN_CORRELATION:g} or "
            f"more with those of a source, {self.identical} the same answers, e.g. "
            f"{some(self.examples, 2)}: errors for models without such a source will be larger"
            f"{advice}"
        )


def count_twins(scores: Scores, splits: list[Split]) -> TwinCount:
    """Count targets whose answers are (nearly) those of a source, over the splits."""
    targets = twins = identical = 0
    examples: dict[str, None] = {}
    for split in splits:
        sources, own = scores.filled[split.sources], scores.filled[split.targets]
        r, which = nearest_twin(own, sources)
        near = np.flatnonzero(r >= TWIN_CORRELATION)
        targets += len(own)
        twins += len(near)
        identical += int((own == sources[which]).all(axis=1).sum())
        for at in near:
            target = scores.model_ids[split.targets[at]]
            examples.setdefault(f"{target} ~ {scores.model_ids[split.sources[which[at]]]}")
    return TwinCount(targets, twins, identical, tuple(examples))
