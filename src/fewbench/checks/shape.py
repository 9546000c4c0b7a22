"""Findings on the shape of a table: tasks, options, score distribution, dates, families."""

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._names import counted
from fewbench.checks.finding import Details, Finding, share
from fewbench.scores import Scores, Unit
from fewbench.scores.conditions import disagreements
from fewbench.scores.families import FAMILY, families_of, stated_families
from fewbench.scores.table import one_sided

SMALL_TASK = 30
CEILING = 0.95
SHOWN = 3
PILES = 3
FEW_LEVELS = 11
MOST_CELLS = 2_000_000
"""Cells that show where scores pile up."""


def shape_findings(scores: Scores, kin_found: bool) -> list[Finding | None]:
    """Return the findings on shape; `kin_found`: whether there are groups to make families of."""
    return [
        _tasks(scores),
        _options(scores),
        _one_sided(scores),
        _in_between(scores),
        *_conditions(scores),
        _spread(scores),
        _dates(scores),
        _families(scores, kin_found),
    ]


def _tasks(scores: Scores) -> Finding:
    if len(scores.tasks) == 1:
        return Finding(
            "tasks",
            "fact",
            f"{counted(scores.n_items, 'item')} of one task, {scores.tasks[0]}",
            "import tasks if there are any (fewbench import … --task COLUMN, or --items items.csv)",
        )
    sizes = np.bincount(scores.task_of)
    order = sorted(range(len(sizes)), key=lambda t: (-sizes[t], scores.tasks[t]))
    small = [scores.tasks[t] for t in order if sizes[t] < SMALL_TASK]
    largest, smallest = order[0], order[-1]
    means = scores.scale.from_unit(scores.task_scores().mean(axis=0))
    what = (
        f"{len(scores.tasks)} tasks of {sizes[smallest]:,} to {sizes[largest]:,} items, the "
        f"largest {scores.tasks[largest]} ({share(sizes[largest] / scores.n_items)} of all)"
        if sizes[largest] > sizes[smallest]
        else f"{len(scores.tasks)} tasks of {counted(int(sizes[largest]), 'item')} each"
    )
    advice = ""
    if sizes[largest] > 2 * sizes[smallest]:
        advice = (
            "the full score is the mean over items, so large tasks weigh most; --average macro "
            "weighs tasks equally"
            if scores.average == "micro"
            else "the full score weighs tasks equally, so items of small tasks weigh most"
        )
    if small:
        what += f"; {counted(len(small), 'task has', 'tasks have')} fewer than {SMALL_TASK} items"
    return Finding(
        "tasks",
        "fact",
        what,
        advice,
        "tasks",
        tuple(small),
        table=Details(
            ("task", "items", "mean score"),
            tuple((scores.tasks[t], int(sizes[t]), round(float(means[t]), 3)) for t in order),
        ),
    )


def _options(scores: Scores) -> Finding | None:
    if scores.probabilities is None or "n_options" not in scores.items:
        return None
    counts = scores.items["n_options"].to_numpy(np.int64)
    values, times = np.unique(counts, return_counts=True)
    if len(values) == 1:
        return None
    by = "; ".join(f"{n:,} with {v}" for v, n in zip(values, times, strict=True))
    return Finding(
        "unequal-options",
        "caution",
        f"items have {values[0]} to {values[-1]} options ({by})",
        "PDS divides by the number of options and so prefers items with few options; "
        "jsd+mean is not affected",
        table=Details(
            ("options", "items"),
            tuple((int(v), int(n)) for v, n in zip(values, times, strict=True)),
        ),
    )


def _one_sided(scores: Scores) -> Finding | None:
    which = one_sided(scores)
    if not which:
        return None
    rest = "right" if which == "worst" else "wrong"
    return Finding(
        "one-sided",
        "problem" if which == "worst" else "caution",
        f"every score is the {which} one",
        f"if the file lists only such answers, import the {rest} ones too; else check how replies "
        "are read and scored",
    )


def _in_between(scores: Scores) -> Finding | None:
    """Describe scores that are neither right nor wrong: where they lie, and how far they vary."""
    if scores.is_binary:
        return None
    cells = np.asarray(scores.cells[: max(1, MOST_CELLS // scores.n_items)])
    cells = cells[~np.isnan(cells)]
    levels, times = np.unique(np.round(cells, 6), return_counts=True)
    unit = Unit(scores.scale)

    def shown(level: float) -> str:
        return unit.score(float(scores.scale.from_unit(level)), exact=True)

    often = np.argsort(-times, kind="stable")[:PILES]
    piles = ", ".join(f"{shown(levels[at])} ({share(times[at] / len(cells))})" for at in often)
    mean = float(cells.mean())
    what = (
        f"scores are not just right or wrong: {counted(len(levels), 'distinct value')} from "
        f"{shown(levels[0])} to {shown(levels[-1])}, most often {piles}"
    )
    if 0 < mean < 1:
        ratio = float(cells.std() / np.sqrt(mean * (1 - mean)))
        what += (
            f"; they vary {ratio:.2f} times as far as right and wrong answers of the same mean, "
            "and intervals are as much narrower"
        )
    few = len(levels) <= FEW_LEVELS
    return Finding(
        "in-between",
        "fact",
        what,
        "verdicts are about mean scores; methods for right or wrong answers do not apply"
        + ("; if the levels are an order only, import whether a level is reached" if few else ""),
        table=Details(
            ("score", "share"),
            tuple((shown(levels[at]), round(float(times[at] / len(cells)), 4)) for at in often),
        ),
    )


def _conditions(scores: Scores) -> list[Finding | None]:
    return [
        Finding(
            "other-conditions",
            "problem",
            what,
            "import models with the same prompts and scoring: a difference between them may be one "
            "of prompts, settings or keys; every estimate from this table carries a warning",
        )
        for what in disagreements(scores)
    ]


def _spread(scores: Scores) -> Finding:
    unit = scores.full_scores()
    full = scores.scale.from_unit(unit)
    shown = Unit(scores.scale).score
    low, q1, q2, q3, high = (shown(float(v)) for v in np.quantile(full, [0, 0.25, 0.5, 0.75, 1]))
    best = min(m for m, v in zip(scores.model_ids, unit, strict=True) if v > unit.max() - 1e-9)
    if scores.n_models == 1:
        return Finding("range", "fact", f"the one model, {best}, scores {high}")
    what = (
        f"scores range from {low} to {high}, half of them between {q1} and {q3} (median {q2}); the "
        f"best model is {best}"
        if np.ptp(unit) > 1e-9
        else f"all models score {high}"
    )
    level = _level(scores, scores.model_ids.index(best))
    advice = "for a target stronger than all sources, most methods do worse than random sampling"
    if unit.max() >= CEILING:
        advice = f"the best are near the ceiling: few items separate them; {advice}"
    if level and np.ptp(unit) > 1e-9:
        others = counted(level, "other is", "others are")
        what += f"; {others} equal within the noise of {counted(scores.n_items, 'item')}"
    return Finding("range", "fact", what, advice)


def _level(scores: Scores, best: int) -> int:
    """Count models within two standard errors (of paired differences) of the best."""
    level = 0
    best_row = scores.cells[best]
    for other in np.delete(np.arange(scores.n_models), best).tolist():
        row = scores.cells[other]
        both = ~np.isnan(best_row) & ~np.isnan(row)
        if both.any():
            difference = best_row[both] - row[both]
            weight = scores.item_weights[both] / scores.item_weights[both].sum()
            mean = weight @ difference
            level += mean <= 2 * np.sqrt(weight**2 @ (difference - mean) ** 2) + 1e-9
    return int(level)


def _dates(scores: Scores) -> Finding:
    if "date" not in scores.models:
        return Finding(
            "dates",
            "fact",
            "no dates of models",
            "add dates to test methods on newer models (fewbench import … --models models.csv with "
            "a column date, then compare --split chronological)",
        )
    text = scores.models["date"].fillna("").astype(str)
    dates = pd.to_datetime(text, errors="coerce", format="ISO8601", utc=True)
    named, dated = (text.str.strip() != ""), dates.notna()
    unread = tuple(str(m) for m in scores.models.index[(named & ~dated).to_numpy()])
    what = f"dates for {int(dated.sum())} of {counted(scores.n_models, 'model')}"
    if dated.any():
        what += f", {dates.min():%Y-%m-%d} to {dates.max():%Y-%m-%d}"
    if unread:
        what += f"; {counted(len(unread), 'date')} cannot be read"
    return Finding(
        "dates",
        "caution" if unread else "fact",
        what,
        "write dates as 2025-06-30" if unread else "",
        "models",
        unread,
    )


def _families(scores: Scores, kin_found: bool) -> Finding:
    means = (
        "make groups of alike models families (fewbench audit SCORES --families -o FILE), or add "
        "your own (fewbench import … --models models.csv with a column family)"
        if kin_found
        else "add families if there are any (fewbench import … --models models.csv with a column "
        "family)"
    )
    family = pd.Series(families_of(scores), dtype=object)
    if FAMILY not in scores.models and not any(family):
        return Finding(
            "families",
            "caution" if kin_found else "fact",
            "no families of models: intervals and splits treat models as unrelated unless their "
            "rows are nearly identical",
            means,
        )
    counts = family[family != ""].value_counts(sort=False)
    counts = counts.sort_index().sort_values(ascending=False, kind="stable")
    without = int(scores.n_models - counts.sum())
    if counts.empty:
        return Finding("families", "caution", "the column family is empty", means)
    largest = ", ".join(f"{name} ({n})" for name, n in counts.head(SHOWN).items())
    what = f"{counted(len(counts), 'family', 'families')}, the largest {largest}"
    if not any(stated_families(scores)):
        what = f"{counted(len(counts), 'family', 'families')} by the models' names, the largest "
        what += largest
    if without:
        what += f"; {counted(without, 'model')} without one"
    return Finding(
        "families",
        "fact",
        what,
        "intervals count a family as one model; compare --split group holds out whole families",
        table=Details(("family", "models"), tuple((str(k), int(v)) for k, v in counts.items())),
    )
