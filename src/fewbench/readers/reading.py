"""What a reader gives back: the scores, and what the user should know about them."""

from dataclasses import dataclass, field

import pandas as pd

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
    files : DataFrame
        For logs, what became of every file: columns file, harness, model, task, filter, metric,
        time, rows, taken, note. A file with several runs has several rows.
    """

    scores: Scores
    notes: tuple[str, ...] = ()
    files: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False)
