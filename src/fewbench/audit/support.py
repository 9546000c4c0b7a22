"""Which methods a table supports, and how many distinct source models it has."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from fewbench._names import counted
from fewbench.audit.finding import Finding
from fewbench.audit.kinship import Kinship
from fewbench.methods import ADVICE, CATALOGUE, FEW, Advice, Need, extras_of, needs_of, supply
from fewbench.scores import Scores

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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def fits(scores: Scores, distinct: float) -> tuple[Fit, ...]:
    """Judge every method of the catalogue by the needs that its parts declare."""
    has = supply(scores) | {"distinct sources": round(distinct)}
    found = []
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
            because += tuple(f"{one.package} is not installed: {one.hint}" for one in absent)
            verdict = "cannot"
        found.append(Fit(name, verdict, because))
    return tuple(found)


def advice(fitting: tuple[Fit, ...], distinct: float) -> tuple[Advice, ...]:
    """Return the recommended methods by regime, without those that cannot run here."""
    can = {fit.method for fit in fitting if fit.verdict != "cannot"}
    return tuple(
        replace(one, methods=tuple(name for name in one.methods if name in can))
        for one in ADVICE
        if one.least <= round(distinct) < one.below
    )


def support_finding(scores: Scores, kinship: Kinship) -> Finding:
    """Say how many distinct sources there are."""
    distinct = kinship.distinct
    few = round(distinct) < FEW
    what = f"the {counted(scores.n_models, 'model counts', 'models count')} as about "
    what += f"{distinct:.0f} distinct {'one' if round(distinct) == 1 else 'ones'}"
    what += " (models that answer alike, beyond what easy and hard items explain, count as one)"
    if not few:
        return Finding(
            "distinct-sources", "fact", what, "enough for most methods that learn from sources"
        )
    return Finding(
        "distinct-sources",
        "caution",
        what + f": fewer than {FEW}, the number from which methods that learn from sources were "
        "better on the tables tested",
        "use the methods named below, or add results of other models; compare shows what works",
    )


def _because(lacks: list[Need], has: dict[str, int]) -> tuple[str, ...]:
    """Say what is missing and what each lack means, once per lack."""
    without: dict[str, dict[str, None]] = {}
    for need in lacks:
        said = {
            "probabilities": "no option probabilities: ",
            "tasks": "",
            "text": "items without a text: ",
            "task text": "a task whose items have no text: ",
        }.get(need.what, f"{has[need.what]} of {need.least} {need.what}: ")
        without.setdefault(said, {}).setdefault(need.without)
    return tuple(said + ", and ".join(parts) for said, parts in without.items())
