"""A table of models that ran nearly everything: its scores, and all differences between them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fewbench._names import counted, some
from fewbench._types import FloatArray
from fewbench.decide.standings import Standings
from fewbench.errors import EvaluationError
from fewbench.methods.sources import opposed_models, whole_sources
from fewbench.scores import Scores
from fewbench.scores.table import MOST_MISSING
from fewbench.uncertainty.all_pairs import all_pairs
from fewbench.uncertainty.contrast import Contrast
from fewbench.uncertainty.missing_blocks import block_variances
from fewbench.uncertainty.question_error import of_one_score

FEWEST = 2
"""Models that have an order."""


def leaderboard(
    scores: Scores, models: Sequence[str], level: float, *, tasks: bool, fixed_items: bool
) -> tuple[Standings, dict[str, Standings], list[str]]:
    """Return the standings of a table's models, also by task if wanted, and warnings.

    Models that ran less than half of the items are left out, and of a task those that ran less than
    half of its items.

    Parameters
    ----------
    scores : Scores
    models : sequence of str
        The models to rank; all without any.
    level : float
        Level of the scores' intervals.
    tasks : bool
    fixed_items : bool
        Whether scores on exactly these items are meant.

    Raises
    ------
    ScoresError
        If fewer than two models ran half of the items, or a model is unknown.
    """
    if scores.chosen is not None:
        raise EvaluationError(
            "a pack of chosen items has no answers to the others, which ranking needs",
            hint="use the scores that the pack was made from",
        )
    rows = np.arange(scores.n_models)
    if models:
        rows = np.sort(scores.model_positions(models))
    full, by_task = scores.full_scores()[rows], scores.task_scores()[rows] if tasks else None
    chosen = scores.take(models=rows)
    if chosen.n_models < FEWEST:
        raise EvaluationError(
            f"ranking needs two models, and there is {counted(chosen.n_models, 'model')}",
            hint="name more models, or none to rank all",
        )
    whole, notes = whole_sources(chosen, FEWEST, "ranking")
    kept = chosen.missing_shares <= MOST_MISSING
    of_blocks = block_variances(scores)[rows][kept]
    all_items = _standings(whole, full[kept], of_blocks, level, fixed_items=fixed_items)
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
    if by_task is None:
        return all_items, {}, notes
    tables = {}
    for at, task in enumerate(scores.tasks):
        items = np.flatnonzero(scores.task_of == at)
        missing = np.isnan(whole.cells[:, items]).mean(axis=1)
        enough = np.flatnonzero(missing <= MOST_MISSING)
        if len(enough) < FEWEST:
            notes.append(f"{task}: fewer than two models ran half of its items, so it has no order")
            continue
        part = whole.take(models=enough, items=items).averaged("micro")
        estimates = by_task[kept][enough, at]
        nothing = np.zeros(len(enough))
        tables[task] = _standings(part, estimates, nothing, level, fixed_items=fixed_items)
        if len(enough) < whole.n_models:
            left_out = whole.models.index[missing > MOST_MISSING]
            notes.append(
                f"{task}: without {some(left_out, quotes=False)}, which ran less than half of its "
                "items"
            )
    return all_items, tables, notes


def _standings(
    scores: Scores,
    estimates: FloatArray,
    of_blocks: FloatArray,
    level: float,
    *,
    fixed_items: bool,
) -> Standings:
    pairs = all_pairs(scores, estimates, fixed_items=fixed_items, of_blocks=of_blocks)
    items_run = np.rint((1 - scores.missing_shares) * scores.n_items).astype(np.intp)
    intervals: list[tuple[float, float] | None] = [
        _interval(scores, row, estimate, of_block, level, fixed_items=fixed_items)
        for row, (estimate, of_block) in enumerate(
            zip(estimates.tolist(), of_blocks.tolist(), strict=True)
        )
    ]
    return Standings(
        scores.model_ids,
        estimates,
        intervals,
        items_run,
        pairs.standard_errors,
        pairs.p_values,
        level,
    ).in_order()


def _interval(
    scores: Scores, row: int, estimate: float, of_block: float, level: float, *, fixed_items: bool
) -> tuple[float, float]:
    """Return the interval of one model's score; `of_block` is the variance by missing tasks."""
    values = scores.cells[row]
    items = np.flatnonzero(~np.isnan(values))
    error = of_one_score(scores, items, values[items], estimate)
    n_items = scores.n_items
    if of_block:  # items of tasks that it has are predicted by their others
        n_items = int(np.isin(scores.task_of, scores.task_of[items]).sum())
    filled = n_items / len(items)
    if fixed_items or of_block or error.answers is None:  # else that of these answers
        variance = error.variance * (filled - fixed_items) + of_block
        error = replace(error, variance=variance, answers=None)
    return Contrast(estimate, 0.0, questions=error if error.variance else None).interval(level)
