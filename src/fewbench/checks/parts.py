"""Findings on parts of a table: runs of worst or best scores, items that only some models ran."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from fewbench._blocks import by_rows
from fewbench._names import counted, some
from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.checks.finding import Details, Finding
from fewbench.checks.missing import LEAST_SHARE
from fewbench.scores import Scores, Unit
from fewbench.scores.repeats import Repeats

FEWEST = 5  # models, to have others
CHANCE = 0.01  # of one such part in the whole table
ALIKE = 20  # other models that a model is compared with
OTHERS = 0.1  # of them may have lost the same part


@dataclass(frozen=True, eq=False)
class OneSided:
    """Items of a task, one after the other, on which a model has only the worst or best score.

    `of_others` is the median of similar models' mean scores on them, in [0, 1].
    """

    model: int
    items: IntArray
    is_worst: bool
    is_whole: bool
    of_others: float


def one_sided_parts(scores: Scores) -> list[OneSided]:
    """Return parts of tasks in which a model has one score only, which chance does not explain.

    Each is compared with what else the model ran, in the same task if it ran more of it, so that
    weak models do not count as lost; and on the same items with the models that are most like it
    elsewhere, of which a tenth may have lost them too, so that hard items do not.
    """
    if scores.n_models < FEWEST:
        return []
    parts: list[OneSided] = []
    for end in (0.0, 1.0):
        counts = by_rows(scores.cells, partial(_counts, end=end))
        for task in range(len(scores.tasks)):
            items = np.flatnonzero(scores.task_of == task)
            parts += _of_task(scores.columns(items), items, end, counts, scores.n_items)
    return parts


def _of_task(
    block: FloatArray, items: IntArray, end: float, counts: IntArray, n_items: int
) -> Iterator[OneSided]:
    """Yield the parts of a task; `counts` are of all items: those run, and those off the end."""
    ran = ~np.isnan(block)
    off: BoolArray = ran & (np.abs(block - end) > 1e-9)
    usual = off.sum(axis=0) / np.maximum(ran.sum(axis=0), 1)
    n_tests = len(block) * n_items
    every = _counts(block, end)
    place = np.arange(len(items), dtype=np.int32)
    since = place - np.maximum.accumulate(np.where(off, place, np.int32(-1)), axis=1)
    longest, last = since.max(axis=1), since.argmax(axis=1)
    hardest = float(usual.max())
    for model in range(len(block)):
        if _chance(hardest, int(longest[model]), n_tests) > CHANCE:
            continue  # whatever its items
        at = np.arange(last[model] + 1 - longest[model], last[model] + 1)
        at = at[ran[model, at]]
        if not len(at) or _chance(float(usual[at].max()), len(at), n_tests) > CHANCE:
            continue  # as for nearly all
        is_whole = every[model, 0] == len(at)
        n_left, n_off_left = (counts if is_whole else every)[model] - (len(at), 0)
        if _chance(_at_least(n_off_left, n_left), len(at), n_tests) > CHANCE:
            continue
        n_ran = ran[:, at].sum(axis=1)
        n_off = off[:, at].sum(axis=1)
        rest = (counts if is_whole else every) - np.stack([n_ran, n_off], axis=1)
        shares = rest[:, 1] / np.maximum(rest[:, 0], 1)
        others = np.flatnonzero((n_ran > 0) & (np.arange(len(block)) != model))
        alike = others[np.argsort(np.abs(shares[others] - shares[model]), kind="stable")[:ALIKE]]
        if len(alike) < FEWEST - 1:
            continue
        theirs = n_off[alike] / n_ran[alike]
        if _chance(float(np.quantile(theirs, OTHERS)), len(at), n_tests) <= CHANCE:
            means = np.nansum(block[np.ix_(alike, at)], axis=1) / n_ran[alike]
            yield OneSided(model, items[at], end == 0, bool(is_whole), float(np.median(means)))


def _counts(values: FloatArray, end: float) -> IntArray:
    """Return how many items each model ran, and on how many it does not have this score."""
    return np.stack(
        [(~np.isnan(values)).sum(axis=1), (np.abs(values - end) > 1e-9).sum(axis=1)], axis=1
    )


def _at_least(count: float, n: int) -> float:
    """Return a share, less two standard errors of the count."""
    return float(max(0.0, count - 2 * count**0.5) / max(n, 1))


def _chance(share: float, n: int, n_tests: int) -> float:
    return float(n_tests * (1.0 - min(share, 1.0)) ** n)


def without_parts(scores: Scores, parts: list[OneSided]) -> Scores:
    """Return the scores without these parts, which then are not run."""
    values = np.array(scores.values)
    for part in parts:
        values[part.model, part.items] = np.nan
    kept = np.flatnonzero((~np.isnan(values)).any(axis=1))
    left, repeats = scores.take(kept), None
    if left.repeats is not None:
        counts = np.where(np.isnan(values[kept]), 0, left.repeats.counts)
        repeats = Repeats.from_counts(counts, left.repeats.variances)
    return left.changed(values=values[kept], repeats=repeats)


def part_findings(scores: Scores) -> list[Finding | None]:
    """Return the findings on parts of the table."""
    return [_one_sided(scores), _strangers(scores), _halves(scores)]


def _one_sided(scores: Scores) -> Finding | None:
    parts = one_sided_parts(scores)
    if not parts:
        return None
    unit = Unit(scores.scale)
    rows = tuple(
        (
            scores.model_ids[part.model],
            scores.tasks[scores.task_of[part.items[0]]] + ("" if part.is_whole else " (a part)"),
            len(part.items),
            "worst" if part.is_worst else "best",
            unit.score(float(scores.scale.from_unit(part.of_others))),
        )
        for part in sorted(parts, key=lambda part: (scores.model_ids[part.model], part.items[0]))
    )
    names = list(dict.fromkeys(row[0] for row in rows))
    shown = (
        f"{model} on {task}: {n:,} items, similar models {other}"
        for model, task, n, _, other in rows
    )
    which = sorted({row[3] for row in rows}, reverse=True)
    return Finding(
        "one-sided-part",
        "problem",
        f"{counted(len(names), 'model has', 'models have')} only the {' or '.join(which)} score in "
        f"a task or a part of it, where similar models do not: {some(shown, quotes=False)}",
        "if these items were not run, or not read, import them as not run, or leave out these "
        "scores (fewbench audit SCORES --drop one-sided -o FILE)",
        "models",
        tuple(names),
        table=Details(("model", "task", "items", "score", "median of similar models"), rows),
    )


def _strangers(scores: Scores) -> Finding | None:
    """Find groups of models without any item in common: items have other ids in some files."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not scores.has_missing:
        return None
    models, items = np.nonzero(scores.is_run)
    size = scores.n_models + scores.n_items
    links = coo_array((np.ones(len(models), bool), (models, scores.n_models + items)), (size, size))
    n_groups, group = connected_components(links, directed=False)
    of_models, of_items = group[: scores.n_models], group[scores.n_models :]
    if len(np.unique(of_models)) < 2:
        return None
    rows = []
    for at in range(n_groups):
        names = sorted(scores.model_ids[m] for m in np.flatnonzero(of_models == at))
        ids = sorted(scores.item_ids[of_items == at])
        if names:
            rows.append((some(names, quotes=False), len(names), len(ids), some(ids, quotes=False)))
    rows.sort(key=lambda row: (-row[1], row[0]))
    return Finding(
        "no-common-items",
        "problem",
        f"{len(rows)} groups of models have no item in common: {rows[0][1]:,} ran items such as "
        f"{rows[0][3]}, and {rows[1][1]:,} items such as {rows[1][3]}",
        "if these are the same items under other ids, give them one id and import again (for logs "
        "fewbench import … --key FIELD, for tables --item with another column)",
        "models",
        tuple(scores.model_ids),
        table=Details(("models", "number", "items", "such as"), tuple(rows)),
    )


def _halves(scores: Scores) -> Finding | None:
    """Find two models that ran complementary items, as parts of one run do."""
    ran = scores.is_run
    part = np.flatnonzero((ran.mean(axis=1) < 1 - LEAST_SHARE) & (ran.mean(axis=1) > LEAST_SHARE))
    counts = ran[part].astype(np.float32)
    shared = counts @ counts.T
    together = counts.sum(axis=1)[:, None] + counts.sum(axis=1)[None, :]
    whole = ran.any(axis=0).sum()
    meets = (shared <= LEAST_SHARE * whole) & (np.abs(together - whole) <= LEAST_SHARE * whole)
    pairs = np.argwhere(np.triu(meets, 1))
    times = np.bincount(pairs.ravel(), minlength=len(part))
    alone = pairs[(times[pairs] == 1).all(axis=1)]
    if not len(alone):
        return None
    names = (sorted(scores.model_ids[part[at]] for at in pair) for pair in alone)
    groups = tuple(sorted(map(tuple, names)))
    return Finding(
        "halves",
        "caution",
        f"{counted(len(groups), 'pair')} of models ran complementary items, as two parts of one "
        f"run would: {some((' and '.join(pair) for pair in groups), quotes=False)}",
        "if they are parts of one model's run, import them under one name: their cells become one "
        "row",
        "models",
        tuple(name for pair in groups for name in pair),
        groups,
    )
