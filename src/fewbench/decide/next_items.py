"""Which items to run next, so that a decision becomes sure."""

from collections.abc import Sequence

import numpy as np

from fewbench._seeds import child_seed
from fewbench._threads import one_thread
from fewbench._types import IntArray
from fewbench.algorithms.kriging import KrigingRun, next_together
from fewbench.algorithms.sampling import permanent_order
from fewbench.decide.operands import Operand, operand
from fewbench.errors import EvaluationError
from fewbench.evaluation.evaluation import Evaluation
from fewbench.methods.adaptive.unrun import budget_of_ran
from fewbench.methods.kriging import source_kriging
from fewbench.methods.selection.random import random_order
from fewbench.methods.written import check_number
from fewbench.scores import Scores
from fewbench.uncertainty.intervals import Uncertainty

MOST = 200
"""Most items that a result names without being asked."""
ONE_LOOK = (
    "this interval holds for one look at the results. If you run more items and look again, pass "
    "--sequential at every look"
)
"""For a result whose items are asked for."""


def check_next(next_items: int | None, *, ask: bool, is_shown: bool = True) -> None:
    """Raise FewbenchError for a number of items to ask for that is missing or negative.

    Also if the number has no effect without `ask`, as the result does not show the items
    (`is_shown`).
    """
    check_number("next_items", next_items, 0)
    if ask and next_items is None:
        raise EvaluationError(
            "the number of items to ask for is missing",
            hint="add it, as in --next-items 50",
            kind="missing",
        )
    if next_items is not None and not ask and not is_shown:
        raise EvaluationError(
            "a number of further items has no effect if they are not asked for", hint="add --ask"
        )


def next_items(targets: Sequence[Operand], n: int, scores: Scores) -> IntArray:
    """Choose items that all these targets run next; positions, the first ones first.

    Those that lower the sum of the targets' variances most, by fewbench's own estimator, whatever
    chose the items so far. If the items of one of the targets are a sample, it goes on for all, and
    so do a sample of items that no source ran and, beside it, one of the others. Open items,
    requested but not answered, come first.

    Parameters
    ----------
    targets : sequence of Operand
    n : int
        Most items, among those that none of the targets has answered.
    scores : Scores
        The sources.
    """
    evaluations = [target.evaluation for target in targets if target.evaluation is not None]
    open_ = [
        at
        for target in targets
        if target.evaluation is not None
        for at in target.evaluation.record.open(target.name).tolist()
    ]
    answered = np.unique(np.concatenate([target.items for target in targets]))
    first = np.array([at for at in dict.fromkeys(open_) if at not in set(answered.tolist())][:n])
    first = first.astype(np.intp)
    closed = np.union1d(answered, first)
    more = min(n - len(first), scores.n_items - len(closed))
    if more <= 0:
        return first
    seed = evaluations[0].provenance.seed
    if any(evaluation.method.random_items for evaluation in evaluations):
        rest = np.setdiff1d(np.arange(scores.n_items), closed)
        rng = np.random.default_rng(child_seed(seed, 12, len(closed)))
        return np.concatenate([first, rng.permutation(rest)[:more]])
    if any(evaluation.estimating.samples_unrun for evaluation in evaluations):
        order = permanent_order(scores.task_of, seed, scores.cohort_of)
        order = order[~np.isin(order, closed)]
        is_unrun = scores.unrun[order]
        total = max(len(target.items) for target in targets) + len(first) + more
        wanted = total - budget_of_ran(scores, total) - int(scores.unrun[closed].sum())
        unrun = order[is_unrun][: min(max(wanted, 0), more)]
        return np.concatenate([first, order[~is_unrun][: more - len(unrun)], unrun])
    if any(isinstance(target.score, Uncertainty) and target.score.sample for target in targets):
        order = permanent_order(scores.task_of, seed, scores.cohort_of)
        return np.concatenate([first, order[~np.isin(order, closed)][:more]])
    if scores.n_models < 2:
        return first
    with one_thread():
        model = source_kriging(scores, seed, len(closed) + more, closed)
        runs = [KrigingRun(model) for _ in targets]
        for run, side in zip(runs, targets, strict=True):
            run.hear(np.searchsorted(model.candidates, side.items), side.answers.scores[0])
        chosen = next_together(runs, more, np.searchsorted(model.candidates, closed))
    return np.concatenate([first, model.candidates[chosen]])


def next_of_sample(target: Operand, n: int, scores: Scores) -> IntArray | None:
    """Return the next items of a target whose items are a sample, in the order of the sample.

    Targets that ran a beginning of one order share the items of the shorter one, and each goes on
    without a gap. None if the method chose the items, or drew those that no source ran beside them.
    """
    evaluation = target.evaluation
    if evaluation is None:
        return None
    if evaluation.method.random_items:
        order = random_order(scores.n_items, evaluation.provenance.seed)
    elif (
        isinstance(target.score, Uncertainty)
        and target.score.sample
        and not evaluation.estimating.samples_unrun
    ):
        order = permanent_order(scores.task_of, evaluation.provenance.seed, scores.cohort_of)
    else:
        return None
    open_, asked = evaluation.record.open(target.name), evaluation.record.asked(target.name)
    return np.concatenate([open_, order[~np.isin(order, asked)]])[:n]


def n_left(target: Operand) -> int:
    """Return how many items a target can still run."""
    if target.evaluation is None or target.is_known:
        return 0
    skipped = len(target.evaluation.record.skipped(target.name))
    return target.scores.n_items - len(target.items) - skipped


def seed_of(targets: Sequence[Operand]) -> int:
    """Return the seed of the first target that has one."""
    seeds = (each.evaluation.provenance.seed for each in targets if each.evaluation is not None)
    return next(seeds, 0)


def ask_next(targets: Sequence[Operand], n: int, scores: Scores) -> None:
    """Ask targets for the same further items, even above the budget; see `next_items`."""
    ask_items(targets, scores.item_ids[next_items(targets, n, scores)].tolist())


def ask_items(targets: Sequence[Operand], items: Sequence[str]) -> None:
    """Ask targets for these items; models whose score is known are left out."""
    for target in targets:
        if target.evaluation is not None:
            target.evaluation.ask_more({target.name: items})


def extend(evaluation: Evaluation, targets: Sequence[str], n: int) -> None:
    """Ask targets of an evaluation for further items, even above the budget.

    Targets with the same items get the same further ones. All answers are kept.

    Parameters
    ----------
    evaluation : Evaluation
    targets : sequence of str
    n : int
        Number of further items of each target.

    Raises
    ------
    EvaluationError
        If a target has no answers, or the width of the interval ends the evaluation.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> evaluation = Evaluation(simulate(1, 200, seed=1).benchmark, "fewbench", 10)
    >>> left = evaluation.tell("target", dict.fromkeys(evaluation.ask()["target"], 1.0))
    >>> extend(evaluation, ["target"], 30)
    >>> len(evaluation.ask()["target"])
    30
    """
    if (half_width := evaluation.stop.half_width) is not None:
        raise EvaluationError(
            f"the evaluation ends at a half width of {half_width:g}, whatever items are asked for",
            hint="use fewbench run with a smaller --half-width and another folder; --items-of runs "
            "the items of this one first",
        )
    alike: dict[frozenset[int], list[Operand]] = {}
    for name in targets:
        asked = frozenset(evaluation.record.asked(name).tolist())
        alike.setdefault(asked, []).append(operand((evaluation, name), evaluation.scores))
    for several in alike.values():
        ask_next(several, n, evaluation.scores)
