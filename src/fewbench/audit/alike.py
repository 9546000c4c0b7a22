"""Findings on models that are alike: duplicates, near-twins, kin."""

import numpy as np
from numpy.typing import NDArray

from fewbench.algorithms.likeness import TWIN
from fewbench.audit.finding import Cell, Finding, Table, counted
from fewbench.audit.kinship import Groups, Kinship, kept, plain_name
from fewbench.scores import Scores


def alike_findings(scores: Scores, kinship: Kinship) -> list[Finding]:
    """Return the findings on models that are alike."""
    found = [
        _same_name(scores, kinship),
        _same_row(scores, kinship),
        _near_twins(scores, kinship),
        _kin(scores, kinship),
    ]
    return [finding for finding in found if finding is not None]


def _same_name(scores: Scores, kinship: Kinship) -> Finding | None:
    groups = kinship.same_name
    if not groups:
        return None
    together = {frozenset(pair) for group in kinship.same_row for pair in _pairs(group)}
    copies = sum(all(frozenset(p) in together for p in _pairs(group)) for group in groups)
    rows: list[tuple[Cell, ...]] = []
    for group in groups:
        differ = max(_differing(scores, *pair) for pair in _pairs(group))
        rows.append((*_names(scores, group[:2]), len(group), differ))
    says = "all with identical rows" if copies == len(groups) else f"{copies} with identical rows"
    return Finding(
        "same-name",
        "problem",
        f"{counted(len(groups), 'model')} more than once under one name (but for case, white "
        f"space, '__' for '/' or a number after '#'), {says}",
        "keep one of each (fewbench audit SCORES --drop duplicates -o FILE); if they are different "
        "models, give them different names",
        "models",
        _flat(scores, groups),
        _named(scores, groups),
        _spare(scores, groups),
        Table(("model", "also as", "times", "items that differ"), tuple(rows)),
    )


def _same_row(scores: Scores, kinship: Kinship) -> Finding | None:
    groups = tuple(
        group
        for group in kinship.same_row
        if len({plain_name(scores.model_ids[m]) for m in group}) > 1
    )
    if not groups:
        return None
    return Finding(
        "identical",
        "problem",
        f"{counted(sum(map(len, groups)), 'model')} in {counted(len(groups), 'group')} have other "
        "names but the same score on every item that they share, which chance does not explain",
        "one model under two names, a copy, or models that give the same answer to every item: "
        "keep one of each (fewbench audit SCORES --drop duplicates -o FILE)",
        "models",
        _flat(scores, groups),
        _named(scores, groups),
        _spare(scores, groups),
    )


def _near_twins(scores: Scores, kinship: Kinship) -> Finding | None:
    r = kinship.likeness.r
    copies = {frozenset(p) for group in kinship.same_row for p in _pairs(group)}
    groups = tuple(
        group
        for group in kinship.near_twins
        if any(frozenset(pair) not in copies for pair in _pairs(group))
    )
    if not groups:
        return None
    rows = tuple(
        (", ".join(_names(scores, group)), len(group), *_range(r, group)) for group in groups
    )
    n = sum(map(len, groups))
    return Finding(
        "near-twins",
        "caution",
        f"{counted(n, 'model')} in {counted(len(groups), 'group')} are near-twins: what they "
        f"answer beyond items' difficulty correlates at {TWIN:g} or more, on average in a group"
        f"{_families_across(scores, groups)}",
        "never split a group between sources and targets: compare with --split group, "
        f"{_as_families(scores)}; or keep one of each (fewbench audit SCORES --drop near-twins "
        "-o FILE)",
        "models",
        _flat(scores, groups),
        _named(scores, groups),
        _spare(scores, groups),
        Table(("near-twins", "models", "least r", "largest r"), rows),
    )


def _kin(scores: Scores, kinship: Kinship) -> Finding | None:
    groups = kinship.kin
    if kinship.kin_least is None or not groups or groups == kinship.near_twins:
        return None
    rows = tuple(
        (", ".join(_names(scores, group)), len(group), *_range(kinship.likeness.r, group))
        for group in groups
    )
    least = min(kinship.kin_least, TWIN)
    return Finding(
        "kin",
        "fact",
        f"{counted(sum(map(len, groups)), 'model')} in {counted(len(groups), 'group')}, the "
        f"largest of {max(map(len, groups))}, answer more alike than unrelated models of this "
        f"table do (correlation from {least:.2f}): likely lineages, or models that share a "
        f"weakness{_families_across(scores, groups)}",
        "errors for a model without kin among the sources will be larger than for one of a "
        f"lineage: see compare --split group, {_as_families(scores)}",
        "models",
        _flat(scores, groups),
        _named(scores, groups),
        (),
        Table(("kin", "models", "least r", "largest r"), rows),
    )


def _as_families(scores: Scores) -> str:
    """How groups become families: fewbench writes the column only where there is none."""
    if "family" in scores.models:
        return "and give a group one family where results are imported"
    return "with groups as families (fewbench audit SCORES --families -o FILE)"


def _families_across(scores: Scores, groups: Groups) -> str:
    if "family" not in scores.models:
        return ""
    families = scores.models["family"].fillna("").astype(str).to_numpy()
    n = sum(len({families[m] for m in group if families[m]}) > 1 for group in groups)
    return f"; {counted(n, 'group holds', 'groups hold')} more than one named family" if n else ""


def _pairs(group: tuple[int, ...]) -> list[tuple[int, int]]:
    return [(a, b) for at, a in enumerate(group) for b in group[at + 1 :]]


def _differing(scores: Scores, a: int, b: int) -> int:
    """Items that both ran and on which their scores differ."""
    return int((np.abs(scores.values[a] - scores.values[b]) > 1e-9).sum())


def _range(r: NDArray[np.float64], group: tuple[int, ...]) -> tuple[float, float]:
    values = [r[pair] for pair in _pairs(group)]
    return round(float(min(values)), 2), round(float(max(values)), 2)


def _names(scores: Scores, group: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(scores.model_ids[m] for m in group)


def _named(scores: Scores, groups: Groups) -> tuple[tuple[str, ...], ...]:
    return tuple(_names(scores, group) for group in groups)


def _flat(scores: Scores, groups: Groups) -> tuple[str, ...]:
    return tuple(name for group in groups for name in _names(scores, group))


def _spare(scores: Scores, groups: Groups) -> tuple[str, ...]:
    """All of every group but the one to keep."""
    return tuple(scores.model_ids[m] for group in groups for m in group if m != kept(scores, group))
