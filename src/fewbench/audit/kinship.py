"""Which models are alike, for all findings."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.algorithms.soundness.likeness import (
    CHANCE,
    TWIN,
    Likeness,
    distinct_weights,
    groups_alike,
    identical,
    independent_weights,
    likeness,
)
from fewbench.scores import Scores

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class Kinship:
    """Likeness of models, and the groups that follow from it.

    Attributes
    ----------
    likeness : Likeness
    same_name, same_row, near_twins, kin : tuple of tuples of int
        Groups of two or more positions of models. Rows that are the same by chance (few items, or
        all right) are no group; near-twins need not be identical, kin include near-twins.
    kin_least : float, optional
        The mean likeness from which models are called kin; None if no pair stands out.
    weights : ndarray, shape (models,)
        What each model counts among distinct ones, where patterns of answers are learned from.
    independent : ndarray, shape (models,)
        What each model counts where answers to one item are averaged.
    same : ndarray of bool, shape (models, models)
        Whether two models have the same score wherever both ran.
    """

    likeness: Likeness
    same_name: Groups
    same_row: Groups
    near_twins: Groups
    kin: Groups
    kin_least: float | None
    weights: FloatArray
    independent: FloatArray
    same: BoolArray

    @property
    def distinct(self) -> float:
        """The effective number of distinct models."""
        return float(self.weights.sum())


def kinship(scores: Scores) -> Kinship:
    """Compare all models of a table."""
    same = identical(scores.values)
    rows = _components(same)
    if rows:
        run, high = ~np.isnan(scores.values), _high(scores)
        rows = tuple(group for group in rows if _chance_of_same(run, high, group) < CHANCE)
    copies = np.zeros_like(same)
    for group in rows:
        copies[np.ix_(group, group)] = same[np.ix_(group, group)]
    # Twice, so that a model with many copies does not bias the difficulty of items.
    once = distinct_weights(likeness(scores.values), copies)
    alike = likeness(scores.values, once)
    twins = _together(groups_alike(alike, copies, TWIN))
    least = alike.kin_threshold()
    kin = twins if least is None else _together(groups_alike(alike, copies, min(least, TWIN)))
    return Kinship(
        alike,
        _by_name(scores.model_ids),
        rows,
        twins,
        kin,
        least,
        distinct_weights(alike, copies),
        independent_weights(alike, copies),
        same,
    )


def plain_name(name: str) -> str:
    """Return a model's name without what says nothing of the model.

    Case, white space, `__` for `/` (as harnesses write it in file names), and a number after `#`.

    Examples
    --------
    >>> plain_name("Org__Model-7B#2"), plain_name(" org/model-7b ")
    ('org/model-7b', 'org/model-7b')
    """
    return re.sub(r"\s+", " ", re.sub(r"#\d+$", "", name.strip()).replace("__", "/")).casefold()


def complete_first(scores: Scores, group: Iterable[int]) -> list[int]:
    """Return a group, best to keep first: fewest missing cells, then shortest name."""
    missing = np.isnan(scores.values).sum(axis=1)
    return sorted(group, key=lambda m: (missing[m], len(scores.model_ids[m]), scores.model_ids[m]))


def covered(scores: Scores, same: BoolArray, group: Iterable[int]) -> dict[int, list[int]]:
    """Return the models of a group to keep, each with those whose scores it has all."""
    run = ~np.isnan(scores.values)
    keep: dict[int, list[int]] = {}
    for m in complete_first(scores, group):
        over = next((k for k in keep if same[m, k] and not (run[m] & ~run[k]).any()), None)
        if over is None:
            keep[m] = []
        else:
            keep[over].append(m)
    return keep


def _by_name(names: list[str]) -> Groups:
    found: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        found.setdefault(plain_name(name), []).append(at)
    return tuple(tuple(group) for group in found.values() if len(group) > 1)


def _together(labels: IntArray) -> Groups:
    found: dict[int, list[int]] = {}
    for at, label in enumerate(labels.tolist()):
        found.setdefault(label, []).append(at)
    return tuple(tuple(group) for group in found.values() if len(group) > 1)


def _components(linked: BoolArray) -> Groups:
    from scipy.sparse.csgraph import connected_components

    return _together(connected_components(linked, directed=False)[1].astype(np.intp))


def _high(scores: Scores) -> BoolArray:
    """Whether a cell is right; for fractional scores, above the median of the item."""
    if scores.is_binary:
        return scores.values > 0.5  # NaN is not
    median = np.nanmedian(scores.values, axis=0)
    above = scores.values > median
    return np.where(above.any(axis=0), above, scores.values >= median)


def _chance_of_same(run: BoolArray, high: BoolArray, group: tuple[int, ...]) -> float:
    """Estimate the probability that some pair of models has this group's identical row by chance.

    An item's probability of being right follows from the group's score and the other models' scores
    on it. Fractional scores count as high or low, which overstates the chance.
    """
    common = run[list(group)].all(axis=0)
    if not common.any():  # alike in pairs only
        common = run[group[0]] & run[group[1]]
    outside = np.ones(len(run), dtype=np.bool_)
    outside[list(group)] = False
    n = (run & outside[:, None]).sum(axis=0)[common]
    of_item = (high[outside].sum(axis=0)[common] + 0.5) / (n + 1)
    of_group = (high[group[0], common].sum() + 0.5) / (common.sum() + 1)
    easy = _logit(of_item)
    p = 1.0 / (1.0 + np.exp(-(easy - easy.mean() + _logit(of_group))))
    log_same = float(np.log(p * p + (1 - p) * (1 - p)).sum())
    pairs = len(run) * (len(run) - 1) / 2
    return float(min(1.0, pairs * np.exp(log_same)))


def _logit(p: FloatArray | float) -> FloatArray:
    return np.asarray(np.log(p) - np.log1p(-np.asarray(p)))
