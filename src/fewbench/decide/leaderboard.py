"""The models of a table that are ranked, and what is peculiar about them."""

from collections.abc import Sequence

import numpy as np

from fewbench._names import counted, some
from fewbench.decide.operands import Operand, known_operands
from fewbench.errors import EvaluationError
from fewbench.methods.sources import is_known, opposed_models, whole_sources
from fewbench.scores import Scores

FEWEST = 2
"""Models that have an order."""


def complete_models(scores: Scores) -> tuple[list[str], tuple[str, ...]]:
    """Return the models of a table that ran nearly all items, and a note on the others.

    Only such models are ranked beside estimates: the error of a score with other missing answers is
    known among models of one table alone.
    """
    _check_whole(scores)
    is_complete = is_known(scores)
    names = np.array(scores.model_ids, dtype=object)
    others = names[~is_complete].tolist()
    note = (
        f"{counted(len(others), 'model')} of the table left out, as they lack answers: "
        f"{some(others, quotes=False)}. Rank the table by itself to see them"
    )
    return names[is_complete].tolist(), (note,) * bool(others)


def _check_whole(scores: Scores) -> None:
    if scores.chosen is not None:
        raise EvaluationError(
            "a pack of chosen items has no answers to the others, which ranking needs",
            hint="use the scores that the pack was made from",
        )


def table_operands(scores: Scores, models: Sequence[str]) -> tuple[list[Operand], tuple[str, ...]]:
    """Return the models of a table that ran at least half of the items, and warnings.

    Parameters
    ----------
    scores : Scores
    models : sequence of str
        The models to rank; all without any.

    Raises
    ------
    ScoresError
        If fewer than two models ran half of the items, or a model is unknown.
    """
    _check_whole(scores)
    rows = np.arange(scores.n_models)
    if models:
        rows = np.sort(scores.model_positions(models))
    chosen = scores.take(models=rows)
    if chosen.n_models < FEWEST:
        raise EvaluationError(
            f"ranking needs two models, and there is {counted(chosen.n_models, 'model')}",
            hint="name more models, or none to rank all",
        )
    whole, notes = whole_sources(chosen, FEWEST, "ranking")
    incomplete = whole.models.index[whole.missing_shares > 0]
    if len(incomplete):
        notes.append(
            f"{counted(len(incomplete), 'model lacks', 'models lack')} up to "
            f"{whole.missing_shares.max():.1%} of the answers: {some(incomplete, quotes=False)}. "
            "Their scores count missing items as the other answers predict, and the intervals "
            "allow for it. If a missing answer is a failure, import it as wrong"
        )
    if opposed := opposed_models(whole):
        notes.append(
            f"{counted(len(opposed), 'model tends', 'models tend')} to be right where the others "
            f"are wrong: {some(opposed, quotes=False)}. If these scores are errors, or are of "
            "other items, their ranks are wrong"
        )
    return known_operands(whole.model_ids, scores, of_table=True), tuple(notes)
