"""Which models are alike, and findings on them: duplicates, near-duplicates, relatives."""

import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fewbench._blocks import by_columns, of_columns
from fewbench._names import counted
from fewbench._types import BoolArray, FloatArray
from fewbench.algorithms.item_curves import logit
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
from fewbench.checks.finding import Details, Finding, Severity
from fewbench.scores import Scores
from fewbench.scores.families import FAMILY, families_of

Groups = tuple[tuple[int, ...], ...]
ONE_NAME = "have one name (up to case, white space, '-', '_', '.' or a number after '#')"
DROP = "keep one of each (fewbench audit SCORES --drop duplicates -o FILE)"


@dataclass(frozen=True, eq=False)
class Kinship:
    """Likeness of models, and groups of two or more positions of alike models.

    `same_row` excludes rows that are equal by chance; `kin`, related models, includes
    `near_duplicates`. `kin_least` is the mean likeness from which models count as related, None if
    no pair does. `weights` and `independent`, shape (models,), are what a model counts for learning
    patterns of answers, and for averaging answers to an item. `same`, shape (models, models): equal
    scores wherever both ran.
    """

    likeness: Likeness
    same_name: Groups
    same_row: Groups
    near_duplicates: Groups
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
    same = identical(scores.cells)
    rows = components(same)
    if rows:
        run, high = scores.is_run, _high(scores)
        rows = tuple(group for group in rows if _chance_of_same(run, high, group) < CHANCE)
    copies = np.zeros_like(same)
    for group in rows:
        copies[np.ix_(group, group)] = same[np.ix_(group, group)]
    # Twice, so that a model with many copies does not bias the difficulty of items.
    once = distinct_weights(likeness(scores.cells), copies)
    alike = likeness(scores.cells, once)
    twins = _together(groups_alike(alike, copies, TWIN))
    least = alike.kin_threshold()
    kin = twins if least is None else _together(groups_alike(alike, copies, min(least, TWIN)))
    return Kinship(
        alike,
        _together(map(_plain_name, scores.model_ids)),
        rows,
        twins,
        kin,
        least,
        distinct_weights(alike, copies),
        independent_weights(alike, copies),
        same,
    )


def _plain_name(name: str) -> str:
    """Return a model's name without the parts that do not identify it.

    Case, white space, `-`, `_` and `.`, `__` for `/` (as harnesses write it in file names), and a
    number after `#`.

    Examples
    --------
    >>> _plain_name("Org__Model_7B v1.5#2"), _plain_name(" org/model-7b-v1-5 ")
    ('org/model-7b-v1-5', 'org/model-7b-v1-5')
    """
    plain = re.sub(r"#\d+$", "", name.strip()).replace("__", "/")
    return re.sub(r"[\s_.-]+", "-", plain).casefold()


def _complete_first(scores: Scores, group: Iterable[int]) -> list[int]:
    missing = scores.missing_shares
    return sorted(group, key=lambda m: (missing[m], len(scores.model_ids[m]), scores.model_ids[m]))


def _covered(scores: Scores, same: BoolArray, group: Iterable[int]) -> dict[int, list[int]]:
    run = scores.is_run
    keep: dict[int, list[int]] = {}
    for m in _complete_first(scores, group):
        over = next((k for k in keep if same[m, k] and not (run[m] & ~run[k]).any()), None)
        if over is None:
            keep[m] = []
        else:
            keep[over].append(m)
    return keep


def _together(labels: Iterable[Hashable]) -> Groups:
    groups: dict[Hashable, list[int]] = {}
    for at, label in enumerate(labels):
        groups.setdefault(label, []).append(at)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def components(linked: BoolArray) -> Groups:
    """Return groups of two or more models that are linked, also by way of others."""
    from scipy.sparse.csgraph import connected_components

    return _together(connected_components(linked, directed=False)[1])


def _high(scores: Scores) -> BoolArray:
    high: BoolArray = by_columns(scores.cells, _high_half(scores.is_binary))
    return high


def _high_half(is_binary: bool) -> Callable[[FloatArray], BoolArray]:
    def high(values: FloatArray) -> BoolArray:
        if is_binary:
            return values > 0.5  # NaN is not
        median = of_columns(values, np.nanmedian)
        above = values > median
        return np.where(above.any(axis=0), above, values >= median)

    return high


def _chance_of_same(run: BoolArray, high: BoolArray, group: tuple[int, ...]) -> float:
    """Estimate the probability that some pair of models has this group's identical row by chance.

    An item's probability of being right follows from the group's score and the other models' scores
    on it. Fractional scores count as high or low, which overstates the chance.
    """
    common = run[list(group)].all(axis=0)
    if not common.any():  # alike in pairs only
        common = run[group[0]] & run[group[1]]
    if not common.any():
        return 1.0
    outside = np.ones(len(run), dtype=np.bool_)
    outside[list(group)] = False
    n = (run & outside[:, None]).sum(axis=0)[common]
    of_item = (high[outside].sum(axis=0)[common] + 0.5) / (n + 1)
    of_group = (high[group[0], common].sum() + 0.5) / (common.sum() + 1)
    easy = logit(of_item)
    p = 1.0 / (1.0 + np.exp(-(easy - easy.mean() + logit(of_group))))
    log_same = float(np.log(p * p + (1 - p) * (1 - p)).sum())
    pairs = len(run) * (len(run) - 1) / 2
    return float(min(1.0, pairs * np.exp(log_same)))


def alike_findings(scores: Scores, kinship: Kinship) -> list[Finding | None]:
    """Return the findings on models that are alike."""
    return [
        *_same_name(scores, kinship),
        _same_row(scores, kinship),
        _near_duplicates(scores, kinship),
        _kin(scores, kinship),
    ]


def _finding(
    kind: str,
    severity: Severity,
    scores: Scores,
    groups: Groups,
    what: str,
    advice: str,
    spare: tuple[str, ...] = (),
    table: Details | None = None,
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
        keep = _covered(scores, kinship.same, group)
        copies += [(first, *others) for first, others in keep.items() if others]
        left = tuple(sorted(keep))
        if len(left) < 2:
            continue
        apart = max(
            int((np.abs(scores.cells[a] - scores.cells[b]) > 1e-9).sum())
            for a, b in combinations(left, 2)
        )
        (differ if apart else parts).append(left)
        if apart:
            rows.append((_listed(scores, left), len(left), apart))
    findings = []
    if copies:
        findings.append(
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
        findings.append(
            _finding(
                "same-name-differs",
                "caution",
                scores,
                tuple(differ),
                f"{_in_groups(tuple(differ))} {ONE_NAME} but different answers: two runs, or two "
                "models",
                "give different models different names, or import only the run that you mean; "
                "--drop does not change them",
                table=Details(
                    ("models of one name", "models", "items that differ, at most"), tuple(rows)
                ),
            )
        )
    if parts:
        findings.append(
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
    return findings


def _same_row(scores: Scores, kinship: Kinship) -> Finding | None:
    groups = tuple(
        group
        for group in kinship.same_row
        if len({_plain_name(scores.model_ids[m]) for m in group}) > 1
    )
    if not groups:
        return None
    spare = tuple(
        scores.model_ids[m]
        for group in groups
        for others in _covered(scores, kinship.same, group).values()
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


def _near_duplicates(scores: Scores, kinship: Kinship) -> Finding | None:
    copies = {frozenset(pair) for group in kinship.same_row for pair in combinations(group, 2)}
    groups = tuple(
        group
        for group in kinship.near_duplicates
        if any(frozenset(pair) not in copies for pair in combinations(group, 2))
    )
    if not groups:
        return None
    together, across = _held(scores, groups)
    advice = "compare --split group keeps them together"
    if not together:
        advice = (
            "give each group one family where results are imported"
            if FAMILY in scores.models
            else "make groups families (fewbench audit SCORES --families -o FILE)"
        )
        advice = (
            "never split a group between sources and targets: compare with --split group, and "
            f"{advice}; or keep one of each (fewbench audit SCORES --drop near-duplicates -o FILE)"
        )
    return _finding(
        "near-duplicates",
        "fact" if together else "caution",
        scores,
        groups,
        f"{_in_groups(groups)} are near-duplicates: they answer almost alike, more than easy and "
        f"hard items explain (correlation {TWIN:g} or more, on average in a group){across}",
        advice,
        spare_twins(scores, groups),
        _likeness_table("near-duplicates", scores, kinship, groups),
    )


def spare_twins(scores: Scores, groups: Groups) -> tuple[str, ...]:
    """Return all models of every group except the one to keep."""
    return tuple(
        scores.model_ids[m] for group in groups for m in _complete_first(scores, group)[1:]
    )


def _kin(scores: Scores, kinship: Kinship) -> Finding | None:
    groups = kinship.kin
    if kinship.kin_least is None or not groups or groups == kinship.near_duplicates:
        return None
    together, across = _held(scores, groups)
    return _finding(
        "related",
        "fact",
        scores,
        groups,
        f"{_in_groups(groups)}, at most {max(map(len, groups))} together, answer more alike than "
        f"unrelated models of this table (correlation {min(kinship.kin_least, TWIN):.2f} or "
        f"more): likely lineages, or models with a common weakness{across}",
        "compare --split group keeps them together"
        if together
        else "estimates are worse for a target that resembles no source model: to see how "
        "much, import lineages as families (--models models.csv with a column family) and compare "
        "with --split group",
        table=_likeness_table("related", scores, kinship, groups),
    )


def _held(scores: Scores, groups: Groups) -> tuple[bool, str]:
    families = families_of(scores)
    if not any(families):
        return False, ""
    named = [{families[m] for m in group} for group in groups]
    if all(len(names) == 1 and "" not in names for names in named):
        return True, "; each group is in one family"
    n = sum(len(names - {""}) > 1 for names in named)
    spans = counted(n, "group spans", "groups span")
    return False, f"; {spans} several families" if n else ""


def _in_groups(groups: Groups) -> str:
    n = counted(sum(map(len, groups)), "model")
    return n if len(groups) == 1 else f"{n} in {len(groups):,} groups"


def _likeness_table(what: str, scores: Scores, kinship: Kinship, groups: Groups) -> Details:
    rows = []
    for group in groups:
        r = [kinship.likeness.r[pair] for pair in combinations(group, 2)]
        least, largest = round(float(min(r)), 2), round(float(max(r)), 2)
        rows.append((_listed(scores, group), len(group), least, largest))
    return Details((what, "models", "least r", "largest r"), tuple(rows))


def _listed(scores: Scores, group: tuple[int, ...]) -> str:
    return ", ".join(scores.model_ids[m] for m in group)
