"""Remove models and items that an audit found, or add the families that it found."""

from collections import Counter
from collections.abc import Collection

import numpy as np

from fewbench._names import counted, did_you_mean, some
from fewbench.checks.audit import Audit
from fewbench.checks.duplicates import kinship, spare_twins
from fewbench.checks.missing import cost_of_dropping, incomplete
from fewbench.checks.parts import one_sided_parts, without_parts
from fewbench.errors import ScoresError
from fewbench.methods.sources import NEARLY_COMPLETE, is_known
from fewbench.scores import Scores
from fewbench.scores.families import FAMILY, families_of

DROPS: dict[str, tuple[str, ...]] = {
    "duplicates": ("same-name", "identical"),
    "near-duplicates": ("near-duplicates",),
    "constant": ("constant",),
    "wrong-way": ("wrong-way",),
    "odd": ("unlike-all", "one-option"),
    "one-sided": (),
    "incomplete": (),
}


def drop(scores: Scores, found: Audit, words: Collection[str]) -> tuple[Scores, tuple[str, ...]]:
    """Remove what an audit of the scores found.

    Each group of duplicates or near-duplicates keeps the model with fewest missing cells, then with
    the shortest name. A duplicate is removed only if the other has all its scores. Near-duplicates
    are removed until none is left. "odd" removes models that answer without regard to difficulty,
    or always choose one option. "one-sided" removes the scores of a model in a part of a task in
    which it has only the worst or the best one: they then count as not run. "incomplete" removes
    the models that lack more than 5% of the full score, and the items that another model lacks, so
    that no cell is missing.

    Parameters
    ----------
    scores : Scores
    found : Audit
    words : collection of str
        duplicates, near-duplicates, constant, wrong-way, odd, one-sided, incomplete.

    Returns
    -------
    scores : Scores
        The remaining scores.
    said : tuple of str
        One sentence per kind on what was removed, and what else changes.

    Raises
    ------
    ScoresError
        If a word is unknown, or nothing would remain.

    Examples
    --------
    >>> from fewbench.checks import audit
    >>> from fewbench.scores import from_arrays
    >>> scores = from_arrays([[1, 0, 1], [1, 1, 1]], models=["a", "b"])
    >>> left, said = drop(scores, audit(scores), ["constant"])
    >>> left.item_ids.tolist(), said[0]
    (['item-1'], 'constant: 2 items left out: item-0, item-2')
    """
    notes, parts = [], one_sided_parts(scores) if "one-sided" in words else []
    if parts:
        theirs = dict.fromkeys(scores.model_ids[part.model] for part in parts)
        n_cells = counted(sum(len(part.items) for part in parts), "score")
        notes.append(f"one-sided: {n_cells} left out, of {some(theirs, quotes=False)}")
        scores = without_parts(scores, parts)
    elif "one-sided" in words:
        notes.append("one-sided: none found")
    unknown = [word for word in words if word not in DROPS]
    if unknown:
        raise ScoresError(f"cannot drop {some(unknown)}", hint=did_you_mean(unknown[0], DROPS))
    gone: dict[str, set[str]] = {"models": set(), "items": set()}
    for word in sorted(dict.fromkeys(words), key="incomplete".__eq__):  # of what the others leave
        if word == "one-sided":
            continue
        if word == "incomplete":
            rows = [at for at, model in enumerate(scores.model_ids) if model not in gone["models"]]
            models, items = incomplete(scores, rows)
            notes.append(f"{word}: {cost_of_dropping(scores, models, items)} left out")
            gone["models"].update(models)
            gone["items"].update(items)
            continue
        kind, ids = "models", []
        for finding in found.findings:
            if finding.kind in DROPS[word]:
                kind = finding.of
                ids += [spare for spare in finding.spare if spare not in ids]
        gone[kind].update(ids)
        if word == "near-duplicates" and ids:
            more = _more_twins(scores, gone["models"])
            gone[kind].update(more)
            ids += more
        notes.append(
            f"{word}: {counted(len(ids), kind[:-1])} left out: {some(ids, quotes=False)}"
            if ids
            else f"{word}: none found"
        )
    left = np.array([at for at, m in enumerate(scores.model_ids) if m not in gone["models"]])
    kept = np.array([at for at, i in enumerate(scores.item_ids) if i not in gone["items"]])
    if not len(left) or not len(kept):
        raise ScoresError(
            "nothing is left",
            hint="drop fewer kinds"
            if is_known(scores).any()
            else f"every model lacks more than {NEARLY_COMPLETE:.0%} of the items: run what is "
            "missing, or keep the table; fewbench plan and start take missing cells",
            kind="too-few",
        )
    ran = scores.is_run[np.ix_(left, kept)]
    alone = ~ran.any(axis=0)
    if alone.any():
        n = counted(int(alone.sum()), "item")
        names = some(scores.item_ids[kept[alone]], quotes=False)
        notes.append(f"{n} left out that no remaining model ran: {names}")
        kept, ran = kept[~alone], ran[:, ~alone]
    idle = ~ran.any(axis=1)
    if idle.any():
        n = counted(int(idle.sum()), "model")
        names = some((scores.model_ids[m] for m in left[idle]), quotes=False)
        notes.append(f"{n} left out that ran no remaining item: {names}")
        left = left[~idle]
    if len(kept) < scores.n_items:
        notes.append(f"a full score is now of {counted(len(kept), 'item')}, not {scores.n_items:,}")
    return scores.take(left, kept), tuple(notes)


def _more_twins(scores: Scores, gone: set[str]) -> list[str]:
    """Return near-duplicates that appear as items' difficulty shifts without the others."""
    more: list[str] = []
    while True:
        rows = [at for at, m in enumerate(scores.model_ids) if m not in gone and m not in more]
        items = np.flatnonzero(scores.is_run[rows].any(axis=0))
        left = scores.take(rows, items)
        spare = spare_twins(left, kinship(left).near_duplicates)
        if not spare:
            return more
        more += spare


def with_families(scores: Scores, found: Audit) -> tuple[Scores, str]:
    """Make every training run and every group of alike models a family.

    A training run is known by the models' names. A group of alike models has its shortest name, or
    that of a training run that it has a model of. Every other model is a family of its own. Returns
    scores with a column `family`, and a sentence with the number of families. Raises ScoresError if
    the scores have families.
    """
    if FAMILY in scores.models:
        raise ScoresError(
            "the scores already have families",
            hint="omit --families, or drop the column",
            kind="taken",
        )
    runs = dict(zip(scores.model_ids, families_of(scores), strict=True))
    family = {model: run or model for model, run in runs.items()}
    for group in found.alike:
        joined = {family[model] for model in group}
        name = min({runs[model] for model in group} - {""} or group, key=lambda n: (len(n), n))
        family |= {model: name for model, label in family.items() if label in joined}
    sizes = Counter(family.values())
    several = sum(size > 1 for size in sizes.values())
    alone = counted(len(sizes) - several, "model")
    named = scores.models.assign(**{FAMILY: [family[model] for model in scores.model_ids]})
    return scores.changed(models=named), (
        f"families: {several} of more than one model, {alone} in families of one"
    )
