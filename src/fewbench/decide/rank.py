"""Rank: the order of several targets, and how sure it is."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
from pydantic import Field

from fewbench._json import Frozen
from fewbench._lazy import pandas as pd
from fewbench._names import counted, probability, some
from fewbench._types import FloatArray
from fewbench._warned import in_cell, issue
from fewbench.decide.allocation import allocate, chances_of_top
from fewbench.decide.history import Dated, history_of, history_section
from fewbench.decide.multiple import adjusted_p_values
from fewbench.decide.next_items import ask_items
from fewbench.decide.next_items import next_items as choose_next
from fewbench.decide.operands import (
    ONE_LOOK,
    Given,
    Operand,
    Pairing,
    check_next,
    contrast,
    operand,
    pairing,
    scores_of,
    warnings_of,
)
from fewbench.errors import EvaluationError
from fewbench.evaluation.evaluation import Evaluation
from fewbench.scores import Average, Scale, Scores, Unit
from fewbench.scores.benchmark import average_notes
from fewbench.show.charts import deciding
from fewbench.show.page import Page, Section, Shown, Table
from fewbench.uncertainty.bounds import EXACT
from fewbench.uncertainty.sampling import check_level


def rank(
    *evaluations: Evaluation | tuple[Evaluation, str],
    models: Sequence[str] = (),
    top: int = 1,
    level: float = 0.9,
    sequential: bool = False,
    next_items: int | None = None,
    ask: bool = False,
) -> Ranking:
    """Rank several targets, with the probability of each rank.

    The result is the order, each target's range of ranks, and which targets need more items. Its
    page also shows the history: scores and changes in the order of the runs' dates. Two
    targets differ if the interval of their difference excludes 0, as in fewbench versus. With more
    than two targets, p values are adjusted by Holm's rule for the number of pairs.

    Parameters
    ----------
    *evaluations : Evaluation or (Evaluation, str)
        Evaluations, all of whose targets with answers are ranked, or single targets.
    models : sequence of str
        Source models to rank as well; their full scores are known.
    top : int
        Number of best targets that you want to find.
    level : float
        Level of the rank ranges, all together.
    sequential : bool
        Allow for checks after 10, 20, 40, … answers up to the budget, until the best `top` are
        settled: the ranges are valid for all of these checks together.
    next_items : int, optional
        Number of further items to distribute over the targets so that they settle the best `top`.
    ask : bool
        With `next_items`: ask for these items. fewbench ask DIR then lists them.

    Raises
    ------
    EvaluationError
        With fewer than two targets, two of one name, or a `top` out of range.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> evaluation = Evaluation(simulate(30, 200, seed=1), "random", 40, ["a", "b"])
    >>> for name, score in (("a", 0.0), ("b", 1.0)):
    ...     asked = evaluation.ask()[name]
    ...     left = evaluation.tell(name, dict.fromkeys(asked, score))
    >>> found = rank(evaluation)
    >>> [one.target for one in found.targets], found.is_settled
    (['b', 'a'], True)
    """
    check_level(level)
    check_next(next_items, ask=ask)
    whole = [given for given in evaluations if isinstance(given, Evaluation)]
    targets: list[Given] = []
    for given in evaluations:
        if isinstance(given, Evaluation):
            answered = [name for name in given.targets if len(given.record.answered(name))]
            targets += [(given, name) for name in answered]
        elif isinstance(given, tuple):
            targets.append(given)
        else:
            raise EvaluationError(
                f"rank takes evaluations, not {type(given).__name__}",
                hint="name source models to rank with them: rank(evaluation, models=[...])",
            )
    if not evaluations or len(targets) + len(models) < 2:
        raise EvaluationError(
            f"{counted(len(targets) + len(models), 'target')} with answers, and ranking needs two",
            hint="record answers of more targets, or name source models to rank with them",
        )
    scores = scores_of(*evaluations)
    sides = [operand(target, scores, evaluations) for target in (*targets, *models)]
    names = [side.name for side in sides]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise EvaluationError(
            f"{twice!r} is ranked twice",
            hint="name single targets (DIR:TARGET), each name once",
        )
    if not 1 <= top < len(sides):
        raise EvaluationError(
            f"top = {top} is not possible with {len(sides)} targets",
            hint=f"use 1 to {len(sides) - 1}",
        )
    history = history_of(sides, scores, level)
    sides.sort(key=lambda side: (-round(float(side.estimates[0]), EXACT), side.name))
    pairs = {
        (i, j): contrast(sides[i], sides[j], level=level, sequential=sequential)
        for i, j in itertools.combinations(range(len(sides)), 2)
    }
    errors = np.zeros((len(sides), len(sides)))
    surely = np.zeros((len(sides), len(sides)), dtype=bool)
    adjusted = adjusted_p_values(np.array([pair.p_value for pair in pairs.values()]))
    for ((i, j), pair), p_value in zip(pairs.items(), adjusted, strict=True):
        errors[i, j] = errors[j, i] = pair.standard_error
        surely[i, j] = p_value <= 1 - level + 1e-12 and pair.difference > 0
    units = np.array([float(side.estimates[0]) for side in sides])
    best, among_top = (chances_of_top(units, errors, places) for places in (1, top))
    ranks = 1 + (np.round(units, EXACT)[:, None] < np.round(units, EXACT)).sum(axis=1)
    ranked = tuple(
        Ranked(
            target=side.name,
            score=float(scores.scale.from_unit(units[at])),
            rank=int(ranks[at]),
            rank_low=1 + int(surely[:, at].sum()),
            rank_high=len(sides) - int(surely[at].sum()),
            chance_best=float(best[at]),
            chance_top=float(among_top[at]),
            tied_with=tuple(
                sides[other].name
                for other in range(len(sides))
                if other != at and not surely[at, other] and not surely[other, at]
            ),
            items_run=len(side.items),
        )
        for at, side in enumerate(sides)
    )
    is_settled = bool(surely[:top, top:].all())
    next_targets = () if is_settled else _next(sides, errors, top)
    warnings = [*warnings_of(sides)]
    silent = [name for evaluation in whole for name in evaluation.targets if name not in names]
    if silent:
        warnings.append(f"{some(silent)}: no answers yet, so not ranked")
    if ask and not sequential:
        warnings.append(ONE_LOOK)
    issue(warnings)
    more = {}
    if next_items is not None and not is_settled:
        more = _next_items(sides, errors, top, next_items, scores)
    for side in sides if ask else ():
        ask_items([side], more.get(side.name, ()))
    return Ranking(
        targets=ranked,
        scale=scores.scale,
        average=scores.average,
        level=level,
        top=top,
        is_settled=is_settled,
        next_targets=next_targets,
        next_items=more,
        pairing=pairing(sides),
        is_limited=any(side.is_limited for side in sides if side.name in next_targets),
        history=history,
        warnings=tuple(warnings),
    )


def _next(sides: list[Operand], errors: FloatArray, top: int) -> tuple[str, ...]:
    """Return the pair across the boundary that is least sure, without known scores."""
    units = np.array([float(side.estimates[0]) for side in sides])
    best: tuple[float, int, int] = (math.inf, 0, 1)
    for i in range(top):
        for j in range(top, len(sides)):
            error = float(errors[i, j])
            if error > 0:
                best = min(best, (float(units[i] - units[j]) / error, i, j))
    return tuple(sides[at].name for at in best[1:] if not sides[at].is_known)


def _next_items(
    sides: list[Operand], errors: FloatArray, top: int, total: int, scores: Scores
) -> dict[str, tuple[str, ...]]:
    """Return the items that each target runs next; targets run the same ones where they can."""
    counts = allocate(
        np.array([float(side.estimates[0]) for side in sides]),
        errors,
        np.array([len(side.items) for side in sides]),
        np.array([side.is_known for side in sides]),
        *(top, total, scores.n_items),
    )
    chosen = [at for at in range(len(sides)) if counts[at]]
    if not chosen:
        return {}
    common = choose_next([sides[at] for at in chosen], int(counts.max()), scores)
    by_name = {}
    for at in chosen:
        items = common[: counts[at]]
        if len(items) < counts[at]:  # the others ran the rest
            of_side = choose_next([sides[at]], int(counts[at]), scores)
            more = of_side[~np.isin(of_side, items)][: counts[at] - len(items)]
            items = np.concatenate([items, more])
        by_name[sides[at].name] = tuple(scores.item_ids[items].tolist())
    return by_name
