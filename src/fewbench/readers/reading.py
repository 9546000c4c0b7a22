"""What a reader gives back: the scores, and what the user should know about them."""

from dataclasses import dataclass

from fewbench.scores import Scores


@dataclass(frozen=True)
class Reading:
    """Scores and notes on how they were read.

    Parameters
    ----------
    scores : Scores
        The table.
    notes : tuple of str
        Facts that change what the scores mean: which of several runs was taken, which runs were
        of a subset, what could not be read. One sentence each, for people.
    """

    scores: Scores
    notes: tuple[str, ...] = ()
