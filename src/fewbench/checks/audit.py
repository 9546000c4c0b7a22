"""Check a table of scores for problems."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._memory import check_fits
from fewbench._names import counted
from fewbench.algorithms.soundness.missingness import missingness
from fewbench.checks.clusters import cluster_findings
from fewbench.checks.duplicates import Kinship, alike_findings, components, kinship
from fewbench.checks.effects import with_effect
from fewbench.checks.finding import SEVERITIES, Details, Finding
from fewbench.checks.items import item_findings, measure_items, worst_first
from fewbench.checks.missing import missing_findings
from fewbench.checks.outliers import odd_findings
from fewbench.checks.parts import part_findings
from fewbench.checks.shape import shape_findings
from fewbench.methods import CATALOGUE, Need
from fewbench.methods.catalogue import ADVICE, FEW, Advice
from fewbench.methods.needs import extras_of, needs_of, supply
from fewbench.methods.sources import (
    are_alike,
    independent_in_words,
    independent_sources,
    is_known,
    whole_sources,
)
from fewbench.scores import Scores
from fewbench.scores.roles import as_scores
from fewbench.show.page import Shown, plain

FORMAT = 1
LEAST = 1
LEFT_OUT = "nothing to do: only their likeness is checked; fewbench learns from what they ran"
Verdict = Literal["fits", "works, but", "cannot"]


@dataclass(frozen=True)
class Fit:
    """Whether a method of the catalogue suits a table.

    Attributes
    ----------
    method : str
    verdict : {"fits", "works, but", "cannot"}
    because : tuple of str
        What it lacks: in the scores, or an optional package that is not installed.
    """

    method: str
    verdict: Verdict
    because: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Audit(Shown):
    """The result of `audit`.

    Attributes
    ----------
    findings : tuple of Finding
        Problems, then cautions, then facts.
    methods : tuple of Fit
        Every method of the catalogue, and whether it suits the table and can run here.
    use : tuple of Advice
        Recommended methods, by the relation of targets to sources.
    alike : tuple of tuple of str
        Groups of models with one name, identical rows, or near-duplicates, for `with_families`.
    table : dict
        Size and kind of the table: models, items, tasks, share of missing cells, `left_out` (models
        that ran too little to be more than compared), `known` (models that ran nearly all items, on
        which methods can be judged) and so on.
    numbers : dict
        Data of charts: scores of models, sizes of tasks, means and discrimination of items, shares
        of missing cells by model and task.
    changed : dict, optional
        What a corrected copy of the scores leaves out: sentences `said`, and the file `written`.
    """

    findings: tuple[Finding, ...]
    methods: tuple[Fit, ...]
    use: tuple[Advice, ...]
    alike: tuple[tuple[str, ...], ...]
    table: dict[str, Any]
    numbers: dict[str, Any]
    changed: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; undefined numbers are None."""
        use = [{"when": use.when, "methods": use.methods, "reason": use.reason} for use in self.use]
        return plain({"format": FORMAT, "table": self.table} | vars(self) | {"use": use})

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per finding, by kind: severity, what was found and what to do."""
        rows = [(entry.kind, entry.severity, entry.what, entry.advice) for entry in self.findings]
        return pd.DataFrame(rows, columns=["kind", "severity", "what", "advice"]).set_index("kind")

    def of_kind(self, kind: str) -> Finding | None:
        """Return the finding of a kind, or None."""
        return next((finding for finding in self.findings if finding.kind == kind), None)


def audit(scores: Scores) -> Audit:
    """Check a results table for problems and suggest fixes.

    Nothing is changed. Models that ran less than half of the items are only compared with other
    models.

    Parameters
    ----------
    scores : Scores
        Scores of the source models. Cells may be missing.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> found = audit(simulate(20, 60, seed=1))
    >>> [finding.kind for finding in found.findings if finding.severity == "problem"]
    []
    """
    every = as_scores(scores)
    scores, left_out = whole_sources(every, LEAST, "audit")
    check_fits(
        64.0 * every.n_models**2 + 6.0 * every.n_models * every.n_items,
        f"comparing {counted(every.n_models, 'model')} on {counted(scores.n_items, 'item')}",
    )
    kin_of_all = kinship(every)
    kin = kinship(scores) if left_out else kin_of_all
    items = measure_items(scores, kin)
    missing = missingness(scores.cells, scores.task_of) if scores.has_missing else None
    alike = _alike(every, kin_of_all)
    every_finding = [
        *alike_findings(every, kin_of_all),
        *part_findings(every),
        *odd_findings(scores, kin),
        *item_findings(scores, items),
        *missing_findings(scores, missing),
        *(_left_out(every, scores, note) for note in left_out),
        _independent_sources(scores),
        _answer_alike(scores),
        *shape_findings(scores, bool(alike)),
        *cluster_findings(scores),
    ]
    findings = [with_effect(every, finding) for finding in every_finding if finding is not None]
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    mean = scores.scale.from_unit(items.mean)
    numbers: dict[str, Any] = {
        "models": scores.model_ids,
        "scores": _plain(scores.scale.from_unit(scores.full_scores())),
        "tasks": scores.tasks,
        "task_sizes": np.bincount(scores.task_of).tolist(),
        "task_means": _plain(scores.scale.from_unit(scores.task_scores().mean(axis=0))),
        "items": [str(item) for item in scores.item_ids],
        "item_task": scores.task_of.tolist(),
        "item_mean": _plain(mean),
        "item_r": _plain(items.discrimination.r),
        "item_wrong_way": worst_first(items, items.wrong_way).tolist(),
        "item_suspect": worst_first(items, items.suspect).tolist(),
        "missing": None if missing is None else [_plain(row) for row in missing.by_task],
    }
    table: dict[str, Any] = {
        "models": every.n_models,
        "left_out": every.n_models - scores.n_models,
        "items": scores.n_items,
        "tasks": len(scores.tasks),
        "missing": round(float(every.missing_shares.mean()), 6),
        "known": int(is_known(scores).sum()),
        "binary": scores.is_binary,
        "probabilities": scores.probabilities is not None,
        "range": [scores.scale.low, scores.scale.high],
        "lower_is_better": scores.scale.lower_is_better,
        "average": scores.average,
        "independent": independent_sources(scores),
        "fingerprint": every.fingerprint,
        "credits": every.credits,
    }
    fitting = _fits(scores)
    use = _advice(fitting, independent_sources(scores))
    return Audit(tuple(findings), fitting, use, alike, table, numbers)


def _left_out(every: Scores, scores: Scores, note: str) -> Finding:
    rows = tuple(
        (name, round((1 - missing) * every.n_items))
        for name, missing in zip(every.model_ids, every.missing_shares.tolist(), strict=True)
        if name not in scores.models.index
    )
    return Finding("left-out", "fact", note, LEFT_OUT, table=Details(("model", "items run"), rows))


def _alike(scores: Scores, kin: Kinship) -> tuple[tuple[str, ...], ...]:
    linked = np.zeros_like(kin.same)
    for group in (*kin.same_name, *kin.same_row, *kin.near_duplicates):
        linked[np.ix_(group, group)] = True
    return tuple(tuple(scores.model_ids[m] for m in group) for group in components(linked))


def _plain(values: np.ndarray[Any, Any]) -> list[float | None]:
    return [None if np.isnan(v) else round(float(v), 5) for v in values]


def _fits(scores: Scores) -> tuple[Fit, ...]:
    has = supply(scores)
    fits = []
    for name, entry in CATALOGUE.items():
        lacks = [need for need in needs_of(entry.method) if has[need.what] < need.least]
        lacks = [need for need in lacks if need.required] or lacks  # which decide
        least = {need.what: max(n.least for n in lacks if n.what == need.what) for need in lacks}
        lacks = [need for need in lacks if need.least == least[need.what]]  # the strictest says it
        verdict: Verdict = "works, but" if lacks else "fits"
        if any(need.required for need in lacks):
            verdict = "cannot"
        because = _because(lacks, has)
        absent = [extra for extra in extras_of(entry.method) if not extra.is_installed]
        if absent:
            because = () if verdict != "cannot" else because
            because += tuple(f"{extra.package} is not installed: {extra.hint}" for extra in absent)
            verdict = "cannot"
        fits.append(Fit(name, verdict, because))
    return tuple(fits)


def _advice(fitting: tuple[Fit, ...], count: int) -> tuple[Advice, ...]:
    can = {fit.method for fit in fitting if fit.verdict != "cannot"}
    return tuple(
        replace(advice, methods=tuple(name for name in advice.methods if name in can))
        for advice in ADVICE
        if advice.least <= count < advice.below
    )


def _independent_sources(scores: Scores) -> Finding:
    count = independent_sources(scores)
    what = independent_in_words(scores, count)
    if count >= FEW:
        return Finding(
            "independent-sources", "fact", what, "enough for most methods that learn from sources"
        )
    return Finding(
        "independent-sources",
        "caution",
        f"{what}: fewer than {FEW}, the number from which methods that learn from sources were "
        "better on the tables tested",
        "use the methods named below, or add results of other models; compare shows what works",
    )


def _answer_alike(scores: Scores) -> Finding | None:
    if not are_alike(scores):
        return None
    return Finding(
        "answer-alike",
        "caution",
        f"the {counted(scores.n_models, 'model')} answer more alike than unrelated models do, as "
        "checkpoints of one training run would",
        "if they are relatives, name their families (fewbench import … --models models.csv with a "
        "column family): intervals may be too narrow for an unrelated model",
    )


def _because(lacks: list[Need], has: dict[str, int]) -> tuple[str, ...]:
    without: dict[str, dict[str, None]] = {}
    for need in lacks:
        opening = {
            "probabilities": "no option probabilities: ",
            "tasks": "",
            "text": "items without a text: ",
            "task text": "a task whose items have no text: ",
        }.get(
            need.what,
            f"{has[need.what]} of {need.least} {need.what.replace('sources', 'source models')}: ",
        )
        without.setdefault(opening, {}).setdefault(need.without)
    return tuple(start + ", and ".join(parts) for start, parts in without.items())
