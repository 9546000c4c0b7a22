"""Findings on models that are alike: duplicates, near-twins, kin."""

import numpy as np

from fewbench._names import counted
from fewbench._types import FloatArray
from fewbench.algorithms.soundness.likeness import TWIN
from fewbench.audit.finding import Finding, Table
from fewbench.audit.kinship import Groups, Kinship, complete_first, covered, plain_name
from fewbench.scores import Scores

ONE_NAME = "under one name (but for case, white space, '__' for '/' or a number after '#')"


def alike_findings(scores: Scores, kinship: Kinship) -> list[Finding]:
    """Return the findings on models that are alike."""
    found = [
        *_same_name(scores, kinship),
        _same_row(scores, kinship),
        _near_twins(scores, kinship),
        _kin(scores, kinship),
    ]
    return [finding for finding in found if finding is not None]


def _same_name(scores: Scores, kinship: Kinship) -> list[Finding | None]:
    copies: list[tuple[int, ...]] = []
    differ: list[tuple[int, ...]] = []
    parts: list[tuple[int, ...]] = []
    most = []
    for group in kinship.same_name:
        keep = covered(scores, kinship.same, group)
        copies += [(one, *others) for one, others in keep.items() if others]
        left = tuple(sorted(keep))
        if len(left) > 1:
            apart = max(_differing(scores, *pair) for pair in _pairs(left))
            (differ if apart else parts).append(left)
            most += [apart] if apart else []
    return [
        _copies(scores, tuple(copies)),
        _contradicting(scores, tuple(differ), most),
        _parts(scores, tuple(parts)),
    ]


def _copies(scores: Scores, groups: Groups) -> Finding | None:
    if not groups:
        return None
    spare = tuple(scores.model_ids[m] for group in groups for m in group[1:])
    return Finding(
        "same-name",
        "problem",
        f"{counted(len(groups), 'model')} more than once {ONE_NAME}, with identical rows",
        "keep one of each (fewbench audit SCORES --drop duplicates -o FILE)",
        "models",
        _flat(scores, groups),
        _named(scores, groups),
        spare,
    )


def _contradicting(scores: Scores, groups: Groups, most: list[int]) -> Finding | None:
    if not groups:
        return None
    rows = tuple(
        (", ".join(_names(scores, group)), len(group), apart)
        for group, apart in zip(groups, most, strict=True)
    )
    return Finding(
        "same-name-differs",
        "caution",
        f"{_in_groups(groups)} go {ONE_NAME} but have other answers: two runs, or two models",
        "give different models different names, or import only the run that you mean; --drop "
        "leaves them alone",
        "models",
        _flat(scores, groups),
        _named(scores, groups),
        table=Table(("models of one name", "models", "items that differ, at most"), rows),
    )


def _parts(scores: Scores, groups: Groups) -> Finding | None:
    if not groups:
        return None
    return Finding(
        "same-name-parts",
        "caution",
        f"{_in_groups(groups)} go {ONE_NAME}, do not contradict each other, and were run on "
        "different items",
        "if they are parts of one run, import them under one name: their cells become one row",
        "models",
        _flat(scores, groups),
        _named(scores, groups),
    )


def _same_row(scores: Scores, kinship: Kinship) -> Finding | None:
    groups = tuple(
        group
        for group in kinship.same_row
        if len({plain_name(scores.model_ids[m]) for m in group}) > 1
    )
    if not groups:
        return None
    spare = [
        scores.model_ids[m]
        for group in groups
        for others in covered(scores, kinship.same, group).values()
        for m in others
    ]
    return Finding(
        "identical",
        "problem",
        f"{_in_groups(groups)} have other names but the same score on every item that they "
        "share, which chance does not explain",
        "one model under two names, a copy, or models that give the same answer to every item: "
        "keep one of each (fewbench audit SCORES --drop duplicates -o FILE)",
        "models",
        _flat(scores, groups),
        _named(scores, groups),
        tuple(spare),
    )


def _near_twins(scores: Scores, kinship: Kinship) -> Finding | None:
    copies = {frozenset(p) for group in kinship.same_row for p in _pairs(group)}
    groups = tuple(
        group
        for group in kinship.near_twins
        if any(frozenset(pair) not in copies for pair in _pairs(group))
    )
    if not groups:
        return None
    held, across = _held(scores, groups)
    return Finding(
        "near-twins",
        "fact" if held else "caution",
        f"{_in_groups(groups)} are near-twins: they answer almost alike, beyond what easy and "
        f"hard items explain (correlation {TWIN:g} or more, on average in a group){across}",
        "compare --split group keeps them together"
        if held
        else "never split a group between sources and targets: compare with --split group, "
        f"{_as_families(scores)}; or keep one of each (fewbench audit SCORES --drop near-twins "
        "-o FILE)",
        "models",
        _flat(scores, groups),
        _named(scores, groups),
        spare_twins(scores, groups),
        _likeness_table("near-twins", scores, kinship, groups),
    )


def spare_twins(scores: Scores, groups: Groups) -> tuple[str, ...]:
    """Return all of every group but the one to keep."""
    return tuple(scores.model_ids[m] for group in groups for m in complete_first(scores, group)[1:])


def _kin(scores: Scores, kinship: Kinship) -> Finding | None:
    groups = kinship.kin
    if kinship.kin_least is None or not groups or groups == kinship.near_twins:
        return None
    held, across = _held(scores, groups)
    return Finding(
        "kin",
        "fact",
        f"{_in_groups(groups)}, at most {max(map(len, groups))} together, answer more alike than "
        f"unrelated models of this table do (correlation {min(kinship.kin_least, TWIN):.2f} or "
        f"more): likely lineages, or models that share a weakness{across}",
        "compare --split group keeps them together"
        if held
        else "estimates of a model without kin among the sources will be worse: to see how much, "
        "give each lineage a family where results are imported (--models models.csv with a column "
        "family) and compare with --split group",
        "models",
        _flat(scores, groups),
        _named(scores, groups),
        (),
        _likeness_table("kin", scores, kinship, groups),
    )


def _as_families(scores: Scores) -> str:
    """Return advice on families; `--families` needs scores without families."""
    if "family" in scores.models:
        return "and give a group one family where results are imported"
    return "with groups as families (fewbench audit SCORES --families -o FILE)"


def _held(scores: Scores, groups: Groups) -> tuple[bool, str]:
    if "family" not in scores.models:
        return False, ""
    families = scores.models["family"].fillna("").astype(str).to_numpy()
    named = [{families[m].strip() for m in group} for group in groups]
    if all(len(names) == 1 and "" not in names for names in named):
        return True, "; the families that are named hold them together"
    n = sum(len(names - {""}) > 1 for names in named)
    across = counted(n, "group holds", "groups hold")
    return False, f"; {across} more than one named family" if n else ""


def _in_groups(groups: Groups) -> str:
    n = counted(sum(map(len, groups)), "model")
    return n if len(groups) == 1 else f"{n} in {len(groups):,} groups"


def _pairs(group: tuple[int, ...]) -> list[tuple[int, int]]:
    return [(a, b) for at, a in enumerate(group) for b in group[at + 1 :]]


def _differing(scores: Scores, a: int, b: int) -> int:
    return int((np.abs(scores.values[a] - scores.values[b]) > 1e-9).sum())


def _likeness_table(what: str, scores: Scores, kinship: Kinship, groups: Groups) -> Table:
    r = kinship.likeness.r
    rows = tuple(
        (", ".join(_names(scores, group)), len(group), *_range(r, group)) for group in groups
    )
    return Table((what, "models", "least r", "largest r"), rows)


def _range(r: FloatArray, group: tuple[int, ...]) -> tuple[float, float]:
    values = [r[pair] for pair in _pairs(group)]
    return round(float(min(values)), 2), round(float(max(values)), 2)


def _names(scores: Scores, group: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(scores.model_ids[m] for m in group)


def _named(scores: Scores, groups: Groups) -> tuple[tuple[str, ...], ...]:
    return tuple(_names(scores, group) for group in groups)


def _flat(scores: Scores, groups: Groups) -> tuple[str, ...]:
    return tuple(name for group in groups for name in _names(scores, group))
