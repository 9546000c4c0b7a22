"""Findings on missing cells: where they are, and whether they look random."""

from collections.abc import Sequence

import numpy as np

from fewbench._names import counted, some
from fewbench.algorithms.soundness.missingness import Missingness
from fewbench.checks.finding import Details, Finding, share
from fewbench.methods.sources import NEARLY_COMPLETE, is_known
from fewbench.scores import Scores, Unit

LEVEL = 0.01
LEAST_SHARE = 0.02  # of the items, for a group of them
FEWEST_ITEMS = 5
LACKING = 0.1  # of the models, for items that only some ran
MOST_GROUPS = 3


def missing_findings(scores: Scores, found: Missingness | None) -> list[Finding]:
    """Return the findings on missing cells."""
    if found is None:
        return []
    return [_where(scores, found), _random_or_not(scores, found)]


def incomplete(scores: Scores, rows: Sequence[int]) -> tuple[list[str], list[str]]:
    """Return the models of these rows that lack much, and the items that another of them lacks."""
    complete = is_known(scores)
    whole = [at for at in rows if complete[at]]
    lacking = ~scores.is_run[whole].all(axis=0)
    models = [scores.model_ids[at] for at in rows if not complete[at]]
    return models, scores.item_ids[lacking].tolist()


def cost_of_dropping(scores: Scores, models: Sequence[str], items: Sequence[str]) -> str:
    """Return in words how many models and items go.

    >>> from fewbench.testing import simulate
    >>> cost_of_dropping(simulate(9, 40), ["model-0"], ["item-0", "item-1"])
    '1 of 9 models and 2 of 40 items'
    """
    counts = ((len(models), scores.n_models, "model"), (len(items), scores.n_items, "item"))
    parts = [f"{n:,} of {counted(total, what)}" for n, total, what in counts if n]
    return " and ".join(parts) or "nothing"


def _where(scores: Scores, gaps: Missingness) -> Finding:
    gone = ~scores.is_run
    lacking = sorted(
        np.flatnonzero(gone.any(axis=1)).tolist(),
        key=lambda m: (-gaps.by_model[m], scores.model_ids[m]),
    )
    most = lacking[0]
    much = int((~is_known(scores)).sum())
    of_most = gone[most].sum() / gone.sum()
    whole = [
        (scores.model_ids[m], scores.tasks[t]) for m, t in np.argwhere(gaps.by_task >= 1.0).tolist()
    ]
    what = (
        f"{int(gone.sum()):,} cells ({share(float(gone.mean()))}) were not run, in "
        f"{counted(len(lacking), 'model')} of {scores.n_models:,} and on "
        f"{counted(int(gone.any(axis=0).sum()), 'item')} of {scores.n_items:,}; "
        f"{scores.model_ids[most]} lacks most: {share(float(gaps.by_model[most]))} of the items, "
        f"{share(float(of_most))} of all missing cells"
    )
    if whole:
        what += f"; {counted(len(whole), 'task is', 'tasks are')} missing entirely for a model"
    if groups := _groups(scores):
        what += f"; groups of items were run by the same models: {'; '.join(groups[:MOST_GROUPS])}"
    advice = "run them if you can: a model is judged by the items that it ran"
    empty = np.asarray(scores.item_ids, dtype=object)[gone.all(axis=0)]
    if len(empty):
        what += f"; no model ran {counted(len(empty), 'item')}: {some(empty)}"
        advice += (
            "; an item that no model ran counts as the mean of its task, except with fewbench, "
            "which draws of such items: leave it out if no target is to run it"
        )
    if much:
        advice += (
            f"; {counted(much, 'model lacks', 'models lack')} more than {share(NEARLY_COMPLETE)}: "
            "methods learn from such models, but no errors are measured on them"
        )
    if much < scores.n_models:
        cost = cost_of_dropping(scores, *incomplete(scores, range(scores.n_models)))
        advice += f". --drop incomplete would leave out {cost}"
    return Finding(
        "missing",
        "caution" if much or len(empty) else "fact",
        what,
        advice,
        "models",
        tuple(scores.model_ids[m] for m in lacking),
        table=Details(
            ("model", "missing", "share", "others' score there less elsewhere", "p at most"),
            tuple(
                (
                    scores.model_ids[m],
                    int(gone[m].sum()),
                    round(float(gaps.by_model[m]), 4),
                    _rounded(_on_scale(scores, gaps.easier[m]), 3),
                    _rounded(gaps.p_easier[m], 4),
                )
                for m in lacking
            ),
        ),
    )


def _groups(scores: Scores) -> list[str]:
    """Return in words which groups of items only the same part of the models ran, largest first."""
    patterns = np.packbits(scores.is_run, axis=0).T
    _, group, sizes = np.unique(patterns, axis=0, return_inverse=True, return_counts=True)
    found = []
    for at in np.flatnonzero(sizes >= max(FEWEST_ITEMS, LEAST_SHARE * scores.n_items)).tolist():
        items = np.flatnonzero(group.ravel() == at)
        ran = scores.is_run[:, items[0]]
        if 0 < ran.sum() <= (1 - LACKING) * scores.n_models:
            found.append((-len(items), sorted(scores.item_ids[items]), scores.models.index[ran]))
    return [
        f"{some(items, quotes=False)} only by {some(sorted(names), quotes=False)}"
        for _, items, names in sorted(found, key=lambda each: each[:2])
    ]


def _random_or_not(scores: Scores, gaps: Missingness) -> Finding:
    tested = np.flatnonzero(~np.isnan(gaps.p_easier))
    # Bonferroni correction over the models, then over the three kinds.
    p_difficulty = min(1.0, float(gaps.p_easier[tested].min()) * len(tested)) if len(tested) else 1
    against = []
    if gaps.p_task * 3 <= LEVEL:
        model, task = _most_heaped(scores, gaps)
        against.append(
            f"they concentrate in tasks (most in {scores.tasks[task]}: "
            f"{scores.model_ids[model]} lacks {share(float(gaps.by_task[model, task]))} of it)"
        )
    if gaps.p_item * 3 <= LEVEL:
        against.append("several models lack the same items")
    if p_difficulty * 3 <= LEVEL:
        worst_model = int(tested[np.argmin(gaps.p_easier[tested])])
        easier = float(gaps.easier[worst_model])
        points = Unit(scores.scale).points(abs(_on_scale(scores, easier)))
        against.append(
            f"what {scores.model_ids[worst_model]} lacks is "
            f"{'easier' if easier > 0 else 'harder'} for the others than what it ran: they score "
            f"{points} {'better' if easier > 0 else 'worse'} there"
        )
    biased = p_difficulty * 3 <= LEVEL or gaps.p_task * 3 <= LEVEL
    if not against:
        return Finding(
            "missing-at-random",
            "fact",
            "missing cells look random: spread over tasks and items, and as hard as the rest",
            "nothing to do: they are filled from the means of the item and the model",
        )
    return Finding(
        "missing-not-at-random",
        "caution",
        f"missing cells do not look random: {'; '.join(against)}",
        (
            "do not compare means over what each model ran; fewbench fills missing cells from the "
            "means of the item and the model, which accounts for hard items, but running them is "
            "better"
            if biased
            else "items that many models lack are known less well; run them if you can"
        ),
        "models",
        tuple(scores.model_ids[m] for m in np.flatnonzero(gaps.by_model > 0)),
    )


def _most_heaped(scores: Scores, gaps: Missingness) -> tuple[int, int]:
    """Return the model and task with the most missing cells beyond the model's own share."""
    excess = np.round(gaps.by_task - gaps.by_model[:, None], 9)
    most = np.argwhere(excess == excess.max()).tolist()
    model, task = min(most, key=lambda at: (scores.model_ids[at[0]], scores.tasks[at[1]]))
    return model, task


def _on_scale(scores: Scores, difference: float) -> float:
    return float(scores.scale.from_unit(difference) - scores.scale.from_unit(0.0))


def _rounded(value: float, digits: int) -> float | None:
    return None if np.isnan(value) else round(float(value), digits)
