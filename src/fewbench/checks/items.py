"""Findings on items: constant, saturated, and worse for better models."""

from dataclasses import dataclass

import numpy as np

from fewbench._blocks import by_columns, of_columns
from fewbench._names import counted
from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.algorithms.soundness.discrimination import Discrimination, discrimination
from fewbench.checks.duplicates import Kinship
from fewbench.checks.finding import Cell, Details, Finding, share
from fewbench.scores import Scores, Unit

EASY = 0.95
LEVEL = 0.05
SUSPECT = 0.01
LISTED = 30
AGREES = 0.8
"""Probability of a lower correlation with the others, of the median item: 0.5 if none agrees."""
CORRELATION = "correlation with other items"
ENOUGH = 0.5
"""Share of the most answers to an item that make it constant: of new items, few models ran any."""


@dataclass(frozen=True, eq=False)
class ItemNumbers:
    """Measurements of every item, arrays of shape (items,).

    `mean` is in [0, 1], over the models that ran the item; `saturated` items have a mean of `EASY`
    or more without being constant, and both kinds have enough answers. `wrong_way` is at a false
    discovery rate of `LEVEL`; `suspect` are the others of the `LISTED` items that agree least with
    the rest, if items agree at all.
    """

    mean: FloatArray
    constant: BoolArray
    saturated: BoolArray
    discrimination: Discrimination
    wrong_way: BoolArray
    suspect: BoolArray


def measure_items(scores: Scores, kinship: Kinship) -> ItemNumbers:
    """Measure every item, with models weighted by their independence."""
    mean = by_columns(scores.cells, lambda part: of_columns(part, np.nanmean))
    range_ = by_columns(
        scores.cells, lambda part: np.fmax.reduce(part, axis=0) - np.fmin.reduce(part, axis=0)
    )
    answers = by_columns(scores.cells, lambda part: (~np.isnan(part)).sum(axis=0))
    enough = answers >= ENOUGH * answers.max(initial=0)
    constant = (range_ <= 1e-9) & enough
    separation = discrimination(scores.cells, kinship.independent)
    wrong = separation.wrong_way(LEVEL)
    suspect = np.zeros_like(wrong)
    p = np.sort(separation.p[~np.isnan(separation.p)].round(9))
    if len(p) and np.median(p) > AGREES:
        with np.errstate(invalid="ignore"):  # of equal ones, none or all
            suspect = (separation.p.round(9) < p[min(LISTED, len(p) // 10)]) & ~wrong
    saturated = (mean >= EASY) & (range_ > 1e-9) & enough
    return ItemNumbers(mean, constant, saturated, separation, wrong, suspect)


def item_findings(scores: Scores, numbers: ItemNumbers) -> list[Finding | None]:
    """Return all findings on items."""
    return [
        _wrong_way(scores, numbers),
        _suspect(scores, numbers),
        _constant(scores, numbers),
        _saturated(scores, numbers),
    ]


def _wrong_way(scores: Scores, numbers: ItemNumbers) -> Finding | None:
    at = worst_first(numbers, numbers.wrong_way)
    if not len(at):
        return None
    ids = tuple(str(scores.item_ids[i]) for i in at)
    return Finding(
        "wrong-way",
        "problem",
        f"{counted(len(at), 'item goes', 'items go')} the wrong way: the better a model is on the "
        f"others, the worse on {'it' if len(at) == 1 else 'them'} (expect at most 1 in "
        f"{1 / LEVEL:.0f} of them to be chance)",
        "check their keys: a wrong key, two right options, or a trap; correct keys and import "
        "again, or remove the items (fewbench audit SCORES --drop wrong-way -o FILE)",
        "items",
        ids,
        spare=ids,
        table=_table(scores, numbers, at),
    )


def _suspect(scores: Scores, numbers: ItemNumbers) -> Finding | None:
    at = worst_first(numbers, numbers.suspect)
    tested = int((~np.isnan(numbers.discrimination.p)).sum())
    if not len(at):
        return None
    leaning = int((numbers.discrimination.p[at] <= SUSPECT).sum())
    also = " besides those that go the wrong way" if numbers.wrong_way.any() else ""
    return Finding(
        "suspect-keys",
        "fact",
        f"{counted(len(at), 'item agrees', 'items agree')} least with the others{also}; "
        f"{counted(leaning, 'leans', 'lean')} the wrong way at 1 in {1 / SUSPECT:.0f}, and chance "
        f"alone gives {SUSPECT * tested:.0f} of {tested:,} at most",
        "look at their keys by hand, from the first of the list: a test of all items finds few of "
        "the wrong keys",
        "items",
        tuple(str(scores.item_ids[i]) for i in at),
        table=_table(scores, numbers, at),
    )


def _constant(scores: Scores, numbers: ItemNumbers) -> Finding | None:
    if scores.n_models < 2 or not numbers.constant.any():
        return None
    low = numbers.constant & (numbers.mean <= 1e-9)
    high = numbers.constant & (numbers.mean >= 1 - 1e-9)
    n = int(numbers.constant.sum())
    parts = [
        f"{int(which.sum()):,} {words}"
        for which, words in (
            (low, "that no model gets right" if scores.is_binary else "worst from all"),
            (high, "that every model gets right" if scores.is_binary else "best from all"),
            (numbers.constant & ~low & ~high, "in between"),
        )
        if which.any()
    ]
    ids = tuple(str(scores.item_ids[i]) for i in np.flatnonzero(numbers.constant))
    advice = (
        "they separate no models but are part of the full score: keep them, unless you want the "
        "score without them (fewbench audit SCORES --drop constant -o FILE)"
    )
    if low.any() and scores.is_binary:
        advice += "; if no model gets an item right, check its answer key"
    return Finding(
        "constant",
        "caution" if n > 0.1 * scores.n_items else "fact",
        f"{counted(n, 'item has', 'items have')} the same score from every model "
        f"({share(n / scores.n_items)} of all): {', '.join(parts)}",
        advice,
        "items",
        ids,
        spare=ids,
    )


def _saturated(scores: Scores, numbers: ItemNumbers) -> Finding | None:
    n = int(numbers.saturated.sum())
    if not n:
        return None
    most = Unit(scores.scale).score(float(scores.scale.from_unit(EASY)), exact=True)
    return Finding(
        "saturated",
        "fact",
        f"{counted(n, 'item is', 'items are')} nearly saturated: a mean of {most} or better, but "
        "not the same from all "
        f"({share(n / scores.n_items)} of all)",
        "nothing to do: methods that use source scores rarely choose them",
        "items",
        tuple(str(scores.item_ids[i]) for i in np.flatnonzero(numbers.saturated)),
    )


def worst_first(numbers: ItemNumbers, which: BoolArray) -> IntArray:
    """Return the positions of some items, the least likely by chance first."""
    at = np.flatnonzero(which)
    return at[np.argsort(numbers.discrimination.p[at], kind="stable")]


def _table(scores: Scores, numbers: ItemNumbers, at: IntArray) -> Details:
    header = ["item", "task", "mean", CORRELATION]
    chosen = _chosen_by_strong(scores, at)
    rows: list[tuple[Cell, ...]] = []
    for k, i in enumerate(at.tolist()):
        mean = float(scores.scale.from_unit(numbers.mean[i]))
        row: list[Cell] = [str(scores.item_ids[i]), scores.tasks[scores.task_of[i]]]
        row += [round(mean, 3), round(float(numbers.discrimination.r[i]), 2)]
        if chosen is not None:
            row.append(chosen[k])
        rows.append(tuple(row))
    if chosen is not None:
        header.append("strong models choose")
    return Details(tuple(header), tuple(rows))


def _chosen_by_strong(scores: Scores, at: IntArray) -> list[str] | None:
    if scores.probabilities is None or not len(at):
        return None
    full = scores.full_scores()
    strong = np.flatnonzero(full >= np.median(full))
    votes = np.zeros((len(at), scores.probabilities.shape[2]))
    for options in scores.probabilities.take(strong).by_model():
        here = np.asarray(options[at])
        ran = np.flatnonzero(~np.isnan(here[:, 0]))
        votes[ran, here[ran].argmax(axis=1)] += 1
    most = votes.argmax(axis=1)
    parts = votes.max(axis=1) / np.maximum(votes.sum(axis=1), 1)
    return [f"option {option + 1} ({part:.0%})" for option, part in zip(most, parts, strict=True)]
