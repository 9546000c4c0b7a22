"""Findings on models on a different range, that ignore difficulty, or always choose one option."""

import numpy as np

from fewbench._blocks import by_columns, by_rows, row_blocks, total
from fewbench._names import counted, some
from fewbench._text import quoted
from fewbench._types import FloatArray
from fewbench.checks.duplicates import Kinship
from fewbench.checks.finding import Details, Finding, share
from fewbench.scores import Scores

ONE_OPTION = 0.8
HARDLY = 1 / 3  # of what the middle model of the table does
CHANCE = 0.01
FEWEST = 5  # models, to have others
MOST = 0.25  # of the models: where more would be named, they are a camp and not odd
ANSWERS = 20  # to items of three options or more
LEAVE = "leave out models that are broken (fewbench audit SCORES --drop odd -o FILE)"
NARROW, WIDE = 0.01, 0.1  # of the range: of scores from 0 to 1 among scores from 0 to 100


def odd_findings(scores: Scores, kinship: Kinship) -> list[Finding | None]:
    """Return the findings on models that answer in an odd way."""
    return [
        _other_range(scores),
        _other_range_of_tasks(scores),
        _unlike_all(scores, kinship),
        _one_option(scores),
    ]


def _other_range(scores: Scores) -> Finding | None:
    """Find models whose scores fill a hundredth of the range, where others use it."""
    sign = -1 if scores.scale.lower_is_better else 1
    above_low = by_rows(scores.cells, lambda part: np.nanmax(sign * part, axis=1)) + (sign < 0)
    narrow = np.flatnonzero((above_low > 0) & (above_low <= NARROW + 1e-9))
    if not len(narrow) or above_low.max() < WIDE:
        return None
    low, span = scores.scale.low, scores.scale.span
    names = tuple(scores.model_ids[m] for m in narrow)
    models = counted(len(names), "model has", "models have")
    rows = tuple(
        (name, float(f"{low + span * above_low[m]:.4g}"))
        for name, m in zip(names, narrow, strict=True)
    )
    return Finding(
        "other-range",
        "problem",
        f"{models} no score above {low + span * NARROW:g}, on a range from {low:g} to "
        f"{scores.scale.high:g}: {some(names, quotes=False)}",
        f"if they are on a range from {low:g} to {low + span * NARROW:g}, import the table again "
        f"with --rescale {quoted(names[0])}=0.01",
        "models",
        names,
        table=Details(("model", "highest score"), rows),
    )


def _other_range_of_tasks(scores: Scores) -> Finding | None:
    """Find tasks whose scores fill a hundredth of the range, where other tasks use it."""
    lower = scores.scale.lower_is_better
    of_items: FloatArray = by_columns(
        scores.cells,
        lambda part: 1 - np.fmin.reduce(part, axis=0) if lower else np.fmax.reduce(part, axis=0),
    )
    highest = np.zeros(len(scores.tasks))
    np.fmax.at(highest, scores.task_of, of_items)
    narrow = np.flatnonzero((highest > 0) & (highest <= NARROW + 1e-9))
    if not len(narrow) or highest.max() < WIDE:
        return None
    low, span = scores.scale.low, scores.scale.span
    names = tuple(scores.tasks[at] for at in narrow)
    return Finding(
        "other-range-of-task",
        "problem",
        f"{counted(len(names), 'task has', 'tasks have')} no score above {low + span * NARROW:g}, "
        f"on a range from {low:g} to {scores.scale.high:g}: {some(names, quotes=False)}",
        f"if scores of these tasks are on a range from {low:g} to {low + span * NARROW:g}, "
        "multiply them by 100 and import the table again: they hardly count in the full score",
        "tasks",
        names,
    )


def _unlike_all(scores: Scores, kinship: Kinship) -> Finding | None:
    """Find models whose right answers have little to do with the items' easiness.

    Each is compared with the median model of the table, whose estimate of easiness has the same
    noise.
    """
    from scipy.special import ndtri

    if not scores.is_binary or scores.n_models < FEWEST:
        return None
    follows, error = _follows_difficulty(scores, kinship)
    measured = ~np.isnan(follows)
    if measured.sum() < FEWEST:
        return None
    middle = float(np.median(follows[measured]))
    beyond = -ndtri(CHANCE / scores.n_models)  # one-sided, for all models at once
    with np.errstate(invalid="ignore"):
        odd = np.flatnonzero(follows + beyond * error < HARDLY * middle)
        is_camp = len(odd) > MOST * scores.n_models
        if is_camp:  # then only those that are right on the hard items
            odd = np.flatnonzero(follows + beyond * error < 0)
    if not len(odd) or len(odd) > MOST * scores.n_models:
        return None
    odd = odd[np.argsort(follows[odd], kind="stable")]
    full = scores.scale.from_unit(by_rows(scores.cells, lambda part: np.nanmean(part, axis=1)))
    rows = tuple(
        (scores.model_ids[m], round(float(full[m]), 3), round(float(follows[m]) / middle, 2))
        for m in odd
    )
    return Finding(
        "unlike-all",
        "fact" if is_camp else "caution",
        f"{counted(len(odd), 'model answers', 'models answer')} almost without regard to "
        "difficulty: the items answered right are hardly easier for other models than the items "
        "answered wrong (less than a third of the difference for the median model)",
        "look at their outputs for a wrong prompt format, unreadable answers, or guessing; "
        f"{LEAVE}",
        "models",
        tuple(scores.model_ids[m] for m in odd),
        spare=tuple(scores.model_ids[m] for m in odd),
        table=Details(("model", "score", "follows difficulty (median model: 1)"), rows),
    )


def _follows_difficulty(scores: Scores, kinship: Kinship) -> tuple[FloatArray, FloatArray]:
    """Return how much easier a model's right items are than its wrong ones, and the standard error.

    In standard deviations of the easiness for other models, near-duplicates excluded. NaN for a
    model with constant scores or no others.
    """
    weight, n = kinship.weights, scores.n_models

    def sums(models: list[int] | slice) -> tuple[FloatArray, FloatArray]:
        values = scores.cells[models]
        run = ~np.isnan(values)
        return weight[models] @ np.where(run, values, 0.0), weight[models] @ run

    each = [sums(rows) for rows in row_blocks(scores.cells)]
    right, ran = (total(part) for part in zip(*each, strict=True))
    follows, error = np.full(n, np.nan), np.full(n, np.nan)
    twins = {m: list(group) for group in kinship.near_duplicates for m in group}
    for m in range(n):
        of_twins, ran_by_twins = sums(twins.get(m, [m]))
        others = ran - ran_by_twins
        answers = scores.cells[m]
        there = ~np.isnan(answers) & (others > 1e-9)
        if not there.any():
            continue
        easy = (right - of_twins)[there] / others[there]
        answers = answers[there]
        variance, spread = answers.var(), easy.std()
        if variance > 1e-9 and spread > 1e-9:
            follows[m] = ((answers - answers.mean()) * easy).mean() / (variance * spread)
            error[m] = 1.0 / np.sqrt(there.sum() * variance)
    return follows, error


def _one_option(scores: Scores) -> Finding | None:
    if scores.probabilities is None:
        return None
    n_options = scores.items["n_options"].to_numpy(np.intp)
    rows = []
    for name, options in zip(scores.model_ids, scores.probabilities.by_model(), strict=True):
        ran = ~np.isnan(options[:, 0]) & (n_options > 2)
        if ran.sum() < ANSWERS:
            continue
        votes = np.bincount(options[ran].argmax(axis=1))
        if votes.max() >= ONE_OPTION * votes.sum():
            rows.append((name, int(votes.argmax()) + 1, round(float(votes.max() / votes.sum()), 2)))
    if not rows:
        return None
    rows.sort(key=lambda row: (-row[2], row[0]))
    return Finding(
        "one-option",
        "caution",
        f"{counted(len(rows), 'model chooses', 'models choose')} the same option on "
        f"{share(ONE_OPTION)} or more of the items",
        "their score shows where the right option is, not what they know: check the prompt format; "
        f"{LEAVE}",
        "models",
        tuple(name for name, _, _ in rows),
        spare=tuple(name for name, _, _ in rows),
        table=Details(("model", "option", "share"), tuple(rows)),
    )
