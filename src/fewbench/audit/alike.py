"""Findings on models that are alike: duplicates, near-twins, kin."""

from itertools import combinations

import numpy as np

from fewbench._names import counted
from fewbench.algorithms.soundness.likeness import TWIN
from fewbench.audit.finding import Finding, Severity, Table
from fewbench.audit.kinship import Groups, Kinship, complete_first, covered, plain_name
from fewbench.scores import Scores

ONE_NAME = "have one name (up to case, white space, '__' for '/' or a number after '#')"
DROP = "keep one of each: fewbench audit SCORES --drop duplicates -o FILE"


def alike_findings(scores: Scores, kinship: Kinship) -> list[Finding]:
    """Return the findings on models that are alike."""
    found = [
        *_same_name(scores, kinship),
        _same_row(scores, kinship),
        _near_twins(scores, kinship),
        _kin(scores, kinship),
    ]
    return [finding for finding in found if finding is not None]


def _finding(
    kind: str,
    severity: Severity,
    scores: Scores,
    groups: Groups,
    what: str,
    advice: str,
    spare: tuple[str, ...] = (),
    table: Table | None = None,
) -> Finding:
    named = tuple(tuple(scores.model_ids[m] for m in group) for group in groups)
    ids = tuple(name for group in named for name in group)
    return Finding(kind, severity, what, advice, "models", ids, named, spare, table)


def _same_name(scores: Scores, kinship: Kinship) -> list[Finding]:
    copies: list[tuple[int, ...]] = []
    differ: list[tuple[int, ...]] = []
    parts: list[tuple[int, ...]] = []
    rows = []
    for group in kinship.same_name:
        keep = covered(scores, kinship.same, group)
        copies += [(one, *others) for one, others in keep.items() if others]
        left = tuple(sorted(keep))
        if len(left) < 2:
            continue
        apart = max(
            int((np.abs(scores.values[a] - scores.values[b]) > 1e-9).sum())
            for a, b in combinations(left, 2)
        )
        (differ if apart else parts).append(left)
        if apart:
            rows.append((_listed(scores, left), len(left), apart))
    found = []
    if copies:
        found.append(
            _finding(
                "same-name",
                "problem",
                scores,
                tuple(copies),
                f"{counted(len(copies), 'model')} listed several times: the copies {ONE_NAME} and "
                "identical rows",
                DROP,
                tuple(scores.model_ids[m] for group in copies for m in group[1:]),
            )
        )
    if differ:
        found.append(
            _finding(
                "same-name-differs",
                "caution",
                scores,
                tuple(differ),
                f"{_in_groups(tuple(differ))} {ONE_NAME} but different answers: two runs, or two "
                "models",
                "give different models different names, or import only the run that you mean; "
                "--drop does not change them",
                table=Table(
                    ("models of one name", "models", "items that differ, at most"), tuple(rows)
                ),
            )
        )
    if parts:
        found.append(
            _finding(
                "same-name-parts",
                "caution",
                scores,
                tuple(parts),
                f"{_in_groups(tuple(parts))} {ONE_NAME}, ran different items and do not contradict "
                "each other",
                "if they are parts of one run, import them under one name: their cells become one "
                "row",
            )
        )
    return found


def _same_row(scores: Scores, kinship: Kinship) -> Finding | None:
    groups = tuple(
        group
        for group in kinship.same_row
        if len({plain_name(scores.model_ids[m]) for m in group}) > 1
    )
    if not groups:
        return None
    spare = tuple(
        scores.model_ids[m]
        for group in groups
        for others in covered(scores, kinship.same, group).values()
        for m in others
    )
    return _finding(
        "identical",
        "problem",
        scores,
        groups,
        f"{_in_groups(groups)} have different names but the same score on every common item, which "
        "chance does not explain",
        f"one model under two names, a copy, or models with one answer to every item: {DROP}",
        spare,
    )


def _near_twins(scores: Scores, kinship: Kinship) -> Finding | None:
    copies = {frozenset(pair) for group in kinship.same_row for pair in combinations(group, 2)}
    groups = tuple(
        group
        for group in kinship.near_twins
        if any(frozenset(pair) not in copies for pair in combinations(group, 2))
    )
    if not groups:
        return None
    held, across = _held(scores, groups)
    advice = "compare --split group keeps them together"
    if not held:
        advice = (
            "give each group one family where results are imported"
            if "family" in scores.models
            else "make groups families (fewbench audit SCORES --families -o FILE)"
        )
        advice = (
            "never split a group between sources and targets: compare with --split group, and "
            f"{advice}; or keep one of each (fewbench audit SCORES --drop near-twins -o FILE)"
        )
    return _finding(
        "near-twins",
        "fact" if held else "caution",
        scores,
        groups,
        f"{_in_groups(groups)} are near-twins: they answer almost alike, beyond what easy and "
        f"hard items explain (correlation {TWIN:g} or more, on average in a group){across}",
        advice,
        spare_twins(scores, groups),
        _likeness_table("near-twins", scores, kinship, groups),
    )


def spare_twins(scores: Scores, groups: Groups) -> tuple[str, ...]:
    """Return all models of every group except the one to keep."""
    return tuple(scores.model_ids[m] for group in groups for m in complete_first(scores, group)[1:])


def _kin(scores: Scores, kinship: Kinship) -> Finding | None:
    groups = kinship.kin
    if kinship.kin_least is None or not groups or groups == kinship.near_twins:
        return None
    held, across = _held(scores, groups)
    return _finding(
        "kin",
        "fact",
        scores,
        groups,
        f"{_in_groups(groups)}, at most {max(map(len, groups))} together, answer more alike than "
        f"unrelated models of this table (correlation {min(kinship.kin_least, TWIN):.2f} or "
        f"more): likely lineages, or models with a common weakness{across}",
        "compare --split group keeps them together"
        if held
        else "estimates are worse for a target without kin among the source models: to see how "
        "much, import lineages as families (--models models.csv with a column family) and compare "
        "with --split group",
        table=_likeness_table("kin", scores, kinship, groups),
    )


def _held(scores: Scores, groups: Groups) -> tuple[bool, str]:
    """Return whether each group lies in one family, and a remark on families."""
    if "family" not in scores.models:
        return False, ""
    families = scores.models["family"].fillna("").astype(str).to_numpy()
    named = [{families[m].strip() for m in group} for group in groups]
    if all(len(names) == 1 and "" not in names for names in named):
        return True, "; each group lies in one family"
    n = sum(len(names - {""}) > 1 for names in named)
    spans = counted(n, "group spans", "groups span")
    return False, f"; {spans} several families" if n else ""


def _in_groups(groups: Groups) -> str:
    n = counted(sum(map(len, groups)), "model")
    return n if len(groups) == 1 else f"{n} in {len(groups):,} groups"


def _likeness_table(what: str, scores: Scores, kinship: Kinship, groups: Groups) -> Table:
    rows = []
    for group in groups:
        r = [kinship.likeness.r[pair] for pair in combinations(group, 2)]
        least, largest = round(float(min(r)), 2), round(float(max(r)), 2)
        rows.append((_listed(scores, group), len(group), least, largest))
    return Table((what, "models", "least r", "largest r"), tuple(rows))


def _listed(scores: Scores, group: tuple[int, ...]) -> str:
    return ", ".join(scores.model_ids[m] for m in group)
