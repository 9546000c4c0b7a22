"""Items that a user gives, whatever they come from."""

import hashlib
from dataclasses import dataclass

from fewbench.methods.subset import Subset
from fewbench.scores import Scores


@dataclass(frozen=True)
class Given:
    """The same items whatever the scores: a subset of the user's own.

    Parameters
    ----------
    subset : Subset
    """

    subset: Subset

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Return the items."""
        return self.subset

    def describe(self) -> str:
        """Return how many items there are, and a hash of them and their weights."""
        content = self.subset.model_dump_json(include={"items", "weights"})
        digest = hashlib.sha256(content.encode()).hexdigest()[:12]
        return f"given(items={len(self.subset.items)},hash={digest})"
