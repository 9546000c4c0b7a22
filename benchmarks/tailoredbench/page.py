"""The page of a study of native sources: one section per question."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fewbench._names import counted, fixed
from fewbench.show.charts import forms
from fewbench.show.page import Page, Section, Table
from tailoredbench import charts as figures

RUN = (
    "Bands, and intervals in the tables, are 90% intervals, repeats and models resampled; with "
    "fewer than 3 repeats there are none. Errors are in percentage points (pp) of the scores’ "
    "range. “Clearly” means that the interval of a difference leaves out zero."
)
SECTIONS = {
    "nearness": (
        "Are nearer sources better natives?",
        "For each target, the sources are ordered by their distance on the probe items and split "
        "into fifths. Each fifth in turn serves as the native sources.",
    ),
    "shares": (
        "Are more of the native sources better?",
        "A random share of each target’s native sources is kept. Their number falls, and their "
        "mean distance stays the same.",
    ),
    "counts": (
        "Is the number that the method finds a good one?",
        "The horizontal axis is the number of nearest sources used, from a few to all. The diamond "
        "is the method with the number that it finds.",
    ),
    "items": (
        "What do the items look like to sources and to targets?",
        "Items close together have similar answers. Stars are the coreset that the sources choose; "
        "their size is the number of items they stand for. Darker dots are several items. The axes "
        "are principal components, with the same scale in both maps.",
    ),
    "spread": (
        "Do the sources’ medoids stand for the items where targets answer?",
        "Distance of each item to its medoid. Medoids fit the sources that chose them best, so the "
        "fair comparison for targets is with held-out sources.",
    ),
    "affinity": (
        "Are native sources of the target’s own family?",
        "Each row is a family of targets: the mean number of native sources of that family, the "
        "number expected by chance, and the number among the sources nearest in full score.",
    ),
    "absence": (
        "What is lost without sources of the target’s family?",
        "A family’s targets, estimated from sources including the family, and from as many sources "
        "of other families.",
    ),
    "trials": (
        "How much do trials differ?",
        "The mean of each method over trials by the number of items; bands are one standard "
        "deviation. Trials are seeds, and divisions of the models unless these are given.",
    ),
}
FIGURES = {
    "nearness": "Figure 3b", "shares": "Figure 3a", "counts": "Figure 4", "items": "Figure 1",
    "spread": "Figure 1", "affinity": "Table 11", "absence": "Table 12",
    "trials": "Figures 5 to 9",
}  # fmt: skip


def page(found: dict[str, Any], source: str = "") -> Page:
    """Return what the analyses show; `found` is `NativeAnalysis.to_dict()`."""
    facts = found["facts"]
    sections = [
        Section(
            key,
            title,
            [note, f"As {FIGURES[key]} of the paper."],
            said=found["findings"].get(key) or f"Not made: {found['absent'][key]}.",
            charts=_figures(key, found),
            tables=tables_of(key, found),
        )
        for key, (title, note) in SECTIONS.items()
    ]
    what = (
        f"{facts['method']} with {facts['budget']} items per target: {facts['sources']} sources "
        f"and {facts['targets']} targets on {facts['items']:,} items, {facts['split']} split, "
        f"{counted(facts['repeats'], 'repeat')}."
    )
    shown = {str(key).capitalize(): str(value) for key, value in facts.items()}
    return Page(
        "native sources",
        f"Native sources on {source}",
        _answer(found),
        [what],
        found["warnings"],
        [*sections, Section("run", "What was run", [RUN], facts=shown)],
    )


def _answer(found: dict[str, Any]) -> str:
    """The main finding: the error, and how it depends on distance."""
    counts, nearness = found["counts"], found["nearness"]
    if not counts:
        return "The number of native sources was not studied."
    own = next(step for step in counts["steps"] if step["step"] == counts["against"])
    said = f"With {own['natives']:.0f} native sources per target, the error is "
    said += f"{points(own['mae'], 1)} pp"
    if nearness and nearness["steps"]:
        near, far = (points(nearness["steps"][k]["mae"], 1) for k in (0, -1))
        said += f"; with the nearest fifth of the sources it is {near} pp, with the farthest {far}"
    return said + "."


MEASURES = (
    ("kendall_tau", "Ranking (higher is better)", "Kendall τ", 1.0),
    ("mae", "Error (lower is better)", "error, pp", 100.0),
)
"""Column, caption, title of the axis and factor of what is drawn upwards."""


def _figures(key: str, found: dict[str, Any]) -> list[tuple[str, Any]]:
    part = found[key]
    if not part:
        return []
    made: list[tuple[str, Any]] = []
    if key == "items":
        spread = found["spread"]
        sizes = Counter(spread["medoid_of"]) if spread else Counter()
        made += figures.item_maps(part, [sizes.get(at, 1) for at in part["medoids"]])
    elif key == "spread":
        made += [
            ("Distance of items to their medoid", figures.distances(part)),
            ("Mean distance, by who chose and who answers", figures.mean_distances(part)),
        ]
    elif key == "absence":
        for column, caption, axis, factor in reversed(MEASURES):
            title = f"{caption.split(' (')[0]}, by family of the targets"
            made.append((title, figures.families(found["by_family"], column, factor, axis)))
    elif key == "trials":
        for column, caption, axis, factor in MEASURES:
            made.append((caption, figures.trials(part, column, factor, axis)))
    elif key != "affinity":
        for column, caption, axis, factor in MEASURES:
            made.append((caption, _curve(key, part, column, axis, factor)))
    return [(caption, lambda chart=chart: chart) for caption, chart in made]


def _curve(key: str, part: dict[str, Any], column: str, axis: str, factor: float) -> Any | None:
    """A measure by the steps of a section; of counts, the method as it is is marked."""
    steps, marked = part["steps"], []

    def point(step: dict[str, Any], at: float | str) -> dict[str, Any]:
        ends = {"score": column, "low": f"{column}_low", "high": f"{column}_high"}
        values = {k: None if step[c] is None else factor * step[c] for k, c in ends.items()}
        return {"step": at, **values}

    if key == "counts":
        own = next(step for step in steps if step["step"] == part["against"])
        steps = [step for step in steps if step is not own]
        marked = [{**point(own, own["natives"]), "name": "as found"}]
        points = [point(step, step["natives"]) for step in steps]
        return forms.course(points, "number of nearest sources used", axis, marked)
    title = "fifth of the sources, nearest first"
    if key == "shares":
        title = "share of the native sources kept"
    return forms.course([point(step, str(step["step"])) for step in steps], title, axis)


def tables_of(key: str, found: dict[str, Any]) -> list[Table]:
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
        return [_table(key, head, places)]
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
        return [_table(key, head, rows)]
    if key == "affinity":
        return [_affinity(part)]
    if key == "absence":
        return [_by_family(found["by_family"]), *_by_method(found["by_method"])]
    if key == "trials":
        rows = [
            [
                f"{row['method']}, {row['budget']} items",
                *(fixed(_nan(row[name]), 3) for name in ("kendall_tau", "kendall_tau_sd")),
                *(points(_nan(row[name])) for name in ("mae", "mae_sd")),
            ]
            for row in part
        ]
        return [_table(key, ["Method", "τ", "deviation", "error pp", "deviation"], rows)]
    head = ["", "native sources", "agreement %", "τ", "90% interval", "error pp", "90% interval"]
    rows = [
        [
            str(step["step"]), fixed(_nan(step["natives"]), 0), points(_nan(step["agreement"]), 0),
            fixed(_nan(step["kendall_tau"]), 3), _interval(step, "kendall_tau", 1.0, 3),
            points(_nan(step["mae"])), _interval(step, "mae", 100.0, 2),
        ]
        for step in part["steps"]
    ]  # fmt: skip
    return [_table(key, head, rows)]


def _affinity(part: dict[str, Any]) -> Table:
    head = ["Family", "targets", "native sources of it", "by chance", "nearest in score"]
    own = sorted(part["own"], key=lambda row: (-row["targets"], row["family"]))
    rows = [
        [row["family"], str(row["targets"])]
        + [fixed(row[name], 2) for name in ("natives", "chance", "by_strength")]
        for row in own
    ]
    return _table("affinity", head, rows)


def _by_family(families: list[dict[str, Any]]) -> Table:
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
    return _table("absence", head, rows)


def _by_method(methods: list[dict[str, Any]]) -> list[Table]:
    if len(methods) < 2:
        return []
    head = ["Method", "error with, pp", "without", "90% of the rise", "τ with", "without",
            "90% of the rise"]  # fmt: skip
    rows = [
        [
            row["method"],
            *(points(_nan(row[f"mae_{step}"])) for step in ("with", "without")),
            _interval(row, "mae_gap", 100.0, 2),
            *(fixed(_nan(row[f"kendall_tau_{step}"]), 3) for step in ("with", "without")),
            _interval(row, "kendall_tau_gap", 1.0, 3),
        ]
        for row in methods
    ]
    return [_table("absence", head, rows)]


def _table(key: str, head: list[str], rows: list[list[str]]) -> Table:
    title = "The numbers of every family" if key == "affinity" else "The numbers"
    heads = [(name, at > 0) for at, name in enumerate(head)]
    return Table(SECTIONS[key][0], heads, rows, "a row", title)


def points(value: float, places: int = 2) -> str:
    """Return a share as percentage points, without the unit."""
    return fixed(100 * value, places)


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
