"""The numbers behind the pictures of native sources."""

from __future__ import annotations

from typing import Any

from fewbench.report.words import fixed, points


def tables_of(key: str, found: dict[str, Any]) -> list[dict[str, Any]]:
    """The numbers behind the pictures of a section."""
    part = found[key]
    if not part:
        return []
    if key == "items":
        places = [
            [part["medoid_ids"][k], *(fixed(v) for v in (*part["source"][at], *part["target"][at]))]
            for k, at in enumerate(part["medoids"])
        ]
        head = ["Medoid", "sources: first", "second", "targets: first", "second"]
        return [{"header": head, "rows": places}]
    if key == "spread":
        whole, half = part["shares"], part["half"]
        rows = [
            [
                "all sources",
                "sources",
                _share_of(whole["sources"]),
                fixed(_mean(part["source"]), 3),
            ],
            [
                "all sources",
                "targets",
                _share_of(whole["targets"]),
                fixed(_mean(part["target"]), 3),
            ],
            ["half of the sources", "those who chose", _share_of(half["chose"]), ""],
            ["half of the sources", "the other sources", _share_of(half["held_out"]), ""],
            ["half of the sources", "targets", _share_of(half["targets"]), ""],
        ]
        head = ["Who chose", "who answers", "% of any two", "distance a model"]
        return [{"header": head, "rows": rows}]
    if key == "affinity":
        return _affinity_tables(part)
    if key == "absence":
        return [_by_family(found["by_family"])]
    head = ["", "native sources", "agreement %", "τ", "90% interval", "error pp", "90% interval"]
    rows = [
        [
            str(step["step"]), fixed(_nan(step["natives"]), 0), points(_nan(step["agreement"]), 0),
            fixed(_nan(step["kendall_tau"]), 3), _interval(step, "kendall_tau", 1.0, 3),
            points(_nan(step["mae"])), _interval(step, "mae", 100.0, 2),
        ]
        for step in part["steps"]
    ]  # fmt: skip
    return [{"header": head, "rows": rows}]


def _affinity_tables(part: dict[str, Any]) -> list[dict[str, Any]]:
    head = ["Family", "targets", "native sources of it", "by chance", "nearest in score"]
    own = sorted(part["own"], key=lambda row: (-row["targets"], row["family"]))
    rows = [
        [row["family"], str(row["targets"])]
        + [fixed(row[name], 2) for name in ("natives", "chance", "by_strength")]
        for row in own
    ]
    return [{"header": head, "rows": rows}]


def _by_family(families: list[dict[str, Any]]) -> dict[str, Any]:
    head = ["Family", "targets", "sources", "its own", "error with, pp", "without",
            "90% of the rise", "τ with", "without"]  # fmt: skip
    rows = [
        [
            row["family"], str(row["targets"]), fixed(row["sources"], 0), fixed(row["own"], 1),
            points(_nan(row["mae_with"])), points(_nan(row["mae_without"])),
            _interval(row, "mae_gap", 100.0, 2),
            fixed(_nan(row["kendall_tau_with"])), fixed(_nan(row["kendall_tau_without"])),
        ]
        for row in families
    ]  # fmt: skip
    return {"header": head, "rows": rows}


def _interval(row: dict[str, Any], key: str, factor: float, places: int) -> str:
    ends = [row[f"{key}_low"], row[f"{key}_high"]]
    if None in ends:
        return "–"
    return " to ".join(fixed(factor * end, places) for end in ends)


def _share_of(value: float | None) -> str:
    return points(_nan(value), 1)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _nan(value: float | None) -> float:
    return float("nan") if value is None else float(value)
