"""Rank: the order of several models, and how sure it is."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from fewbench._names import counted, some
from fewbench._seeds import child_seed
from fewbench._types import BoolArray, FloatArray
from fewbench._warned import issue
from fewbench.decide.allocation import allocate
from fewbench.decide.history import history_of
from fewbench.decide.joint_estimate import JointEstimate
from fewbench.decide.leaderboard import FEWEST, complete_models, table_operands
from fewbench.decide.next_items import (
    ONE_LOOK,
    ask_items,
    check_next,
    n_left,
    next_of_sample,
    seed_of,
)
from fewbench.decide.next_items import next_items as choose_next
from fewbench.decide.operands import Operand, operands, warnings_of
from fewbench.decide.pairing import pairing
from fewbench.decide.rank_result import Ranking, TaskRanking
from fewbench.decide.standings import Standings
from fewbench.errors import EvaluationError
from fewbench.evaluation.evaluation import Evaluation
from fewbench.scores import Scores
from fewbench.scores.roles import wrong_type
from fewbench.uncertainty.bounds import EXACT
from fewbench.uncertainty.contrast import ONE_SIGMA
from fewbench.uncertainty.intervals import Uncertainty
from fewbench.uncertainty.sampling import check_level


def rank(
    *evaluations: Evaluation | tuple[Evaluation, str] | Scores,
    models: Sequence[str] = (),
    all_models: bool = False,
    top: int = 1,
    tasks: bool = False,
    level: float = 0.9,
    sequential: bool = False,
    fixed_items: bool = False,
    history: bool = False,
    next_items: int | None = None,
    ask: bool = False,
) -> Ranking:
    """Rank several models, with the probability of each rank.

    Ranks a scores file, whose models ran (nearly) all items, or evaluations. Ranges and
    probabilities are of the models, on questions like these and if they run again.

    With `fixed_items`, they are of exactly these items.

    The result is the order, each model's interval, range of ranks and probability of being the
    best, which models may be the best, and which are not clearly different. All ranges hold
    together: a pair is distinguished if its difference exceeds what the largest of all pairs
    reaches by error alone (max-t, step-down). For evaluations, the result also shows which targets
    need more items.

    Parameters
    ----------
    *evaluations : Evaluation, (Evaluation, str) or Scores
        Evaluations, all of whose targets with answers are ranked, or single targets. Or a table of
        scores, whose models are ranked. Models that ran less than half of the items are left out.
        Or a table and evaluations: all targets, beside the models that ran all items.
    models : sequence of str
        For evaluations: source models to rank as well, which ran all items. For a table: the models
        to rank (default: all).
    all_models : bool
        For evaluations: rank all source models that ran all items as well.
    top : int
        Number of best models that you want to find.
    tasks : bool
        Also rank the models on each task. The level applies to each task by itself.
    level : float
        Level of the rank ranges, all together, and of each interval.
    sequential : bool
        For evaluations: allow for checks after 10, 20, 40, … answers up to the budget, until the
        best `top` are settled: the ranges are valid for all of these checks together.
    fixed_items : bool
        Rank the scores on exactly these items, of these runs, and not the models.
    history : bool
        Also show the scores in the order of dates: those of runs, and the column date of a table's
        models. With the change from one to the next, and the best so far.
    next_items : int, optional
        For evaluations: number of further items to distribute over the targets so that they settle
        the best `top`.
    ask : bool
        With `next_items`: ask for these items. fewbench ask DIR then lists them.

    Raises
    ------
    EvaluationError
        With fewer than two models, two of one name, a table beside evaluations, or a `top` out of
        range.
    ScoresError
        If fewer than two models of a table ran half of the items, or a name is unknown.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> table = simulate(4, 200, seed=1)
    >>> found = rank(table)
    >>> [(place.target, place.rank_low, place.rank_high) for place in found.targets]
    [('model-02', 1, 2), ('model-03', 1, 3), ('model-00', 2, 3), ('model-01', 4, 4)]
    """
    check_level(level)
    check_next(next_items, ask=ask)
    tables = [given for given in evaluations if isinstance(given, Scores)]
    targets = [given for given in evaluations if not isinstance(given, Scores)]
    if tables and not targets:
        _check_alone(len(tables), sequential or next_items is not None)
        scores = tables[0]
        sides, notes = table_operands(scores, models)
    else:
        _check_alone(len(tables), of_evaluations=False)
        left_out: tuple[str, ...] = ()
        if all_models or (tables and not models):
            table = tables[0] if tables else _largest_table(targets)
            models, left_out = complete_models(table)
        sides, scores, notes = _operands(targets, models, *tables, ask=ask)
        notes = (*notes, *left_out)
    names = [side.name for side in sides]
    _check_top(top, len(sides))
    dated = history_of(sides, scores, level, fixed_items=fixed_items) if history else ()
    sides.sort(key=lambda side: (-round(float(side.estimates[0]), EXACT), side.name))
    joint = JointEstimate(sides, level, fixed_items, sequential)
    standings = Standings.of(joint, level)
    by_task, no_order = _by_task(joint, level) if tasks else ((), [])
    of_sides = () if tables else warnings_of(sides)  # a table has notes on all of its models
    warnings = [*of_sides, *notes, *no_order]
    surely = standings.surely_above
    is_settled = bool(surely[:top, top:].all())
    of_items = np.zeros((len(sides), len(sides)))
    decidable = np.zeros((len(sides), len(sides)), dtype=bool)
    n_open = len(sides) * (len(sides) - 1) // 2 - int(surely.sum())
    among_left = 1 - (1 - level) / max(n_open, 1)
    for i, j in joint.open_pairs:
        pair = joint.full_difference(i, j)
        of_items[i, j] = of_items[j, i] = pair.standard_errors[0]
        at_end = 0.0 if pair.questions is None else pair.questions.half(among_left)
        decidable[i, j] = not pair.is_known and (not at_end or at_end < pair.difference)
    is_decidable = is_settled or bool((surely | decidable)[:top, top:].all())
    next_targets: tuple[str, ...] = ()
    if is_decidable and not is_settled:
        next_targets = _next(sides, standings.errors, decidable, top)
    whole = [given for given in evaluations if isinstance(given, Evaluation)]
    silent = [name for evaluation in whole for name in evaluation.targets if name not in names]
    if silent:
        warnings.append(f"{some(silent)}: no answers yet, so not ranked")
    if ask and not sequential:
        warnings.append(ONE_LOOK)
    issue(warnings)
    more = {}
    if next_items is not None and not is_settled:
        more = _next_items(sides, of_items, top, next_items, scores)
        next_targets = tuple(more) if is_decidable else ()
    for side in sides if ask else ():
        ask_items([side], more.get(side.name, ()))
    return Ranking(
        targets=standings.ranked(scores.scale, top),
        scale=scores.scale,
        average=scores.average,
        level=level,
        top=top,
        chosen=standings.chosen(scores.scale),
        fixed_items=fixed_items,
        is_settled=is_settled,
        is_decidable=is_decidable,
        items_total=scores.n_items,
        items_by_task=dict(zip(scores.tasks, np.bincount(scores.task_of).tolist(), strict=True)),
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        tasks=by_task,
        next_targets=next_targets,
        next_items=more,
        own_ids=scores.own_ids({item for items in more.values() for item in items}),
        pairing=pairing(sides),
        is_limited=any(side.is_limited for side in sides if side.name in next_targets),
        sequential=sequential,
        history=dated,
        warnings=tuple(warnings),
    )


def _check_alone(number: int, of_evaluations: bool) -> None:
    """Raise EvaluationError if several tables are ranked, or one with options of evaluations."""
    if number > 1:
        raise EvaluationError(
            f"{number} tables of scores cannot be ranked together",
            hint="join them with fewbench import, and rank that table",
        )
    if of_evaluations:
        raise EvaluationError(
            "a table of scores has no further items to run",
            hint="leave out --sequential, --next-items and --ask",
        )


def _largest_table(evaluations: Sequence[Any]) -> Scores:
    """Return the source scores that `operands` compares evaluations by."""
    own = (given[0] if isinstance(given, tuple) else given for given in evaluations)
    tables: list[Scores] = [evaluation.scores for evaluation in own]
    return max(tables, key=lambda table: table.n_models)


def _operands(
    evaluations: Sequence[Any], models: Sequence[str], table: Scores | None = None, *, ask: bool
) -> tuple[list[Operand], Scores, tuple[str, ...]]:
    """Return the targets and source models to rank, the source scores, and notes."""
    targets: list[tuple[Evaluation, str]] = []
    for given in evaluations:
        if isinstance(given, Evaluation):
            answered = [name for name in given.targets if len(given.record.answered(name))]
            targets += [(given, name) for name in answered]
        elif isinstance(given, tuple):
            targets.append(given)
        else:
            raise wrong_type(given, "evaluations or Scores")
    if not evaluations or len(targets) + len(models) < 2:
        raise EvaluationError(
            f"{counted(len(targets) + len(models), 'target')} with answers, and ranking needs two",
            hint="record answers of more targets, or name source models to rank with them",
        )
    beside = [given for given in evaluations if isinstance(given, Evaluation)]
    sides, scores, notes = operands(*targets, *models, scores=table, beside=beside, ask=ask)
    names = [side.name for side in sides]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise EvaluationError(
            f"{twice!r} is ranked twice",
            hint="name single targets (DIR:TARGET), each name once; a submission in the table "
            "needs no folder",
            kind="repeated",
        )
    return sides, scores, notes


def _by_task(joint: JointEstimate, level: float) -> tuple[tuple[TaskRanking, ...], list[str]]:
    """Return the order on each task, of the models that ran half of its items, and notes."""
    rankings, notes, scores = [], [], joint.scores
    sizes = np.bincount(scores.task_of).tolist()
    for column, (task, size) in enumerate(zip(scores.tasks, sizes, strict=True), start=1):
        enough = joint.ran_enough(column)
        if enough.sum() < FEWEST:
            notes.append(f"{task}: fewer than two models ran half of its items, so it has no order")
            continue
        part = joint
        if not enough.all():
            left_out = [joint.sides[at].name for at in np.flatnonzero(~enough).tolist()]
            notes.append(
                f"{task}: without {some(left_out, quotes=False)}, which ran less than half of its "
                "items"
            )
            part = joint.among(np.flatnonzero(enough).tolist())
        places = Standings.of(part, level, column).places(scores.scale)
        rankings.append(TaskRanking(task=task, items=size, targets=places))
    return tuple(rankings), notes


def _check_top(top: int, models: int) -> None:
    if not 1 <= top < models:
        raise EvaluationError(
            f"top = {top} is not possible with {models} targets", hint=f"use 1 to {models - 1}"
        )


def _next(
    sides: list[Operand], errors: FloatArray, decidable: BoolArray, top: int
) -> tuple[str, ...]:
    """Return the pair across the boundary that is least sure, of those that items can decide.

    Without models that ran all items.
    """
    units = np.array([float(side.estimates[0]) for side in sides])
    best: tuple[float, int, int] | None = None
    for i in range(top):
        for j in range(top, len(sides)):
            error = float(errors[i, j])
            if error > 0 and decidable[i, j]:
                pair = float(units[i] - units[j]) / error, i, j
                best = pair if best is None else min(best, pair)
    if best is None:
        return ()
    return tuple(sides[at].name for at in best[1:] if not sides[at].is_known)


def _next_items(
    sides: list[Operand], errors: FloatArray, top: int, total: int, scores: Scores
) -> dict[str, tuple[str, ...]]:
    """Return the items that each target runs next; targets run the same ones where they can.

    `errors` are those of differences that items not run leave. What is asked for is given out, also
    where all items would not settle it.
    """
    answered = np.array([len(side.items) for side in sides])
    own = [
        side.score.half(ONE_SIGMA) if isinstance(side.score, Uncertainty) else 0.0 for side in sides
    ]
    counts = allocate(
        np.array([float(side.estimates[0]) for side in sides]),
        *(errors, np.array(own), answered),
        np.array([n_left(side) for side in sides]),
        *(top, total),
        np.random.default_rng(child_seed(seed_of(sides), 22, int(answered.sum()))),
    )
    by_name, apart = {}, []
    for at in np.flatnonzero(counts).tolist():
        items = next_of_sample(sides[at], int(counts[at]), scores)
        if items is None:
            apart.append(at)
        else:
            by_name[sides[at].name] = items
    common = np.array([], dtype=np.intp)
    if apart:
        common = choose_next([sides[at] for at in apart], int(counts[apart].max()), scores)
    for at in apart:
        items = common[: counts[at]]
        if len(items) < counts[at]:  # the others ran the rest
            of_side = choose_next([sides[at]], int(counts[at]), scores)
            more = of_side[~np.isin(of_side, items)][: counts[at] - len(items)]
            items = np.concatenate([items, more])
        by_name[sides[at].name] = items
    return {name: tuple(scores.item_ids[items].tolist()) for name, items in by_name.items()}
