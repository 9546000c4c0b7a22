"""TailoredBench's tables on all five benchmarks: printed figures, and sections for each file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from papers.methods.tailored import TailoredVariant
from papers.record import (
    GIVEN,
    HALVES,
    MAE,
    NONE,
    TAU,
    Context,
    Derived,
    Row,
    Section,
    Study,
    Table,
    settings,
    shown,
)
from tailoredbench.analysis import analyze

Figures = tuple[tuple[float, ...], tuple[float, ...]]
FEW = (20, 25, 30, 35, 40)
MORE = (50, 100, 150)
TABLE_6: dict[str, dict[str, Figures]] = {
    "ARC Challenge": {
        "tailored": ((0.711, 0.737, 0.756, 0.766, 0.773), (3.1, 2.9, 2.8, 2.7, 2.7)),
        "anchor-points-correlation": (
            (0.662, 0.663, 0.676, 0.713, 0.714),
            (6.4, 5.8, 5.3, 4.8, 4.3),
        ),
        "gp-irt-random": ((0.589, 0.620, 0.662, 0.681, 0.695), (4.6, 4.6, 3.6, 3.6, 2.9)),
        "random": ((0.626, 0.659, 0.676, 0.694, 0.712), (7.8, 6.5, 6.7, 6.2, 5.7)),
    },
    "HellaSwag": {
        "tailored": ((0.900, 0.909, 0.913, 0.914, 0.918), (2.0, 1.8, 1.8, 1.7, 1.7)),
        "anchor-points-correlation": (
            (0.860, 0.880, 0.877, 0.897, 0.898),
            (6.0, 6.1, 6.7, 5.9, 5.7),
        ),
        "gp-irt-random": ((0.724, 0.776, 0.810, 0.827, 0.849), (6.2, 5.3, 4.3, 3.8, 3.2)),
        "random": ((0.811, 0.836, 0.850, 0.863, 0.871), (8.3, 7.7, 6.6, 6.0, 5.8)),
    },
    "Winogrande": {
        "tailored": ((0.565, 0.568, 0.604, 0.608, 0.618), (2.8, 2.6, 2.4, 2.3, 2.2)),
        "anchor-points-correlation": (
            (0.472, 0.487, 0.514, 0.521, 0.518),
            (8.6, 8.5, 7.5, 8.7, 7.3),
        ),
        "gp-irt-random": ((0.263, 0.313, 0.353, 0.392, 0.419), (4.1, 3.8, 3.8, 3.6, 3.4)),
        "random": ((0.373, 0.408, 0.446, 0.470, 0.492), (7.8, 6.7, 6.2, 5.5, 5.2)),
    },
    "POPE": {
        "tailored": ((0.521, 0.547, 0.562, 0.563, 0.574), (3.6, 3.5, 3.1, 3.1, 3.2)),
        "anchor-points-correlation": (
            (0.474, 0.483, 0.518, 0.547, 0.556),
            (4.0, 3.8, 3.4, 3.3, 3.1),
        ),
        "gp-irt-random": ((0.481, 0.470, 0.462, 0.482, 0.477), (3.8, 3.7, 3.6, 3.4, 3.3)),
        "random": ((0.488, 0.510, 0.507, 0.515, 0.547), (5.8, 5.4, 4.8, 4.4, 4.0)),
    },
    "GSM8K": {
        "tailored": ((0.852, 0.858, 0.863, 0.869, 0.878), (3.5, 3.4, 3.3, 3.1, 2.9)),
        "anchor-points-correlation": (
            (0.786, 0.791, 0.796, 0.800, 0.799),
            (8.7, 7.9, 7.3, 7.1, 7.1),
        ),
        "gp-irt-random": ((0.787, 0.807, 0.829, 0.842, 0.858), (5.5, 4.7, 4.1, 3.8, 3.4)),
        "random": ((0.811, 0.828, 0.839, 0.847, 0.858), (6.2, 5.5, 5.2, 4.9, 4.4)),
    },
}
"""Benchmark and method: Kendall's tau and error at 20 to 40 items."""
TABLE_5: dict[str, Figures] = {
    "tailored": ((0.923, 0.934, 0.943), (1.6, 1.4, 1.2)),
    "anchor-points-correlation": ((0.915, 0.931, 0.940), (4.6, 4.0, 4.0)),
    "gp-irt-random": ((0.869, 0.915, 0.936), (2.6, 1.5, 1.2)),
    "random": ((0.887, 0.920, 0.935), (5.3, 3.8, 3.0)),
}
"""The same on HellaSwag, at 50 to 150 items."""
ON = ("ARC Challenge", "HellaSwag", "Winogrande", "POPE")
PARTS: dict[str, tuple[dict[str, object], tuple[float, ...], tuple[float, ...]]] = {
    "as published": ({}, (0.756, 0.913, 0.604, 0.562), (2.8, 1.8, 2.4, 3.1)),
    "correlation distance": (
        {"metric": "correlation"},
        (0.766, 0.903, 0.557, 0.547),
        (3.3, 1.9, 2.9, 3.8),
    ),
    "cosine distance": ({"metric": "cosine"}, (0.746, 0.914, 0.616, 0.577), (3.1, 1.9, 2.4, 2.4)),
    "no calibration": ({"calibrate": False}, (0.748, 0.910, 0.588, 0.531), (2.6, 1.7, 2.8, 4.3)),
    "dynamic n̄": ({"natives": "dynamic"}, (0.741, 0.909, 0.592, 0.604), (2.9, 1.8, 2.5, 3.1)),
    "free G": ({"anchored": False}, (NONE,) * 4, (NONE,) * 4),
    "a probe set of 5": ({"probe": 5}, (0.719, 0.912, 0.624, 0.549), (3.1, 1.9, 2.6, 3.7)),
    "a probe set of 15": ({"probe": 15}, (0.751, 0.911, 0.608, 0.556), (2.9, 1.8, 2.5, 3.3)),
    "a probe set of 20": ({"probe": 20}, (0.740, 0.910, 0.621, 0.541), (2.9, 1.8, 2.6, 3.4)),
    "a probe set of 25": ({"probe": 25}, (0.725, 0.909, 0.638, 0.533), (3.0, 1.9, 2.6, 3.6)),
}
"""Settings, and tau and error at 30 items on four benchmarks (Tables 7 to 9 and 13)."""
BY_CONFIDENCE = {
    "tailored": "tailored(values=probabilities)",
    "anchor-points-correlation": "medoids(metric=correlation,values=probabilities)+mean",
}
"""What the paper compares by the probabilities of the right options."""


@dataclass(frozen=True)
class Benchmark:
    """A benchmark of the paper whose table is not at hand."""

    name: str
    file: str
    split: str
    natives: int
    """Native sources that the paper finds."""
    by_probabilities: bool = False

    @property
    def about(self) -> str:
        if self.by_probabilities:
            return (
                "The authors' arrays of options' probabilities, their source models and targets, "
                "{} seeds. The full score is the share of right answers, as in the authors' "
                "program."
            )
        table = 16 if self.name == "Winogrande" else 17
        return f"The models that the paper's Table {table} names; {{}} random halves."

    @property
    def sections(self) -> tuple[Section, ...]:
        return (self.table_6, self.parts, self.native_sources)

    @property
    def table_6(self) -> Table:
        """Table 6, and the means of Figures 5 to 9, with their spread."""
        rows = []
        for method, (tau, error) in TABLE_6[self.name].items():
            run = BY_CONFIDENCE.get(method, method) if self.by_probabilities else method
            rows.append(Row(run, "" if run == method else method, {TAU: tau, MAE: error}))
        rows.append(Row("kmedoids-ridge", "static, not in the paper"))
        title, about = f"TailoredBench's Table 6: {self.name}", self.about.format(30)
        return Table(title, about, self.file, FEW, self.split, 30, (TAU, MAE), tuple(rows))

    @property
    def parts(self) -> Table:
        """Tables 7 to 10 and 13."""
        at, rows = ON.index(self.name), []
        by = {"values": "probabilities"} if self.by_probabilities else {}
        for label, (parts, tau, error) in PARTS.items():
            if self.by_probabilities and label == "no calibration":
                continue  # a probability is not a share of right answers
            variant = TailoredVariant(**by, **parts)  # type: ignore[arg-type]
            reported = {TAU: (tau[at],), MAE: (error[at],)}
            rows.append(Row(variant.describe(), label, reported))
        title, about = f"TailoredBench's Tables 7 to 10 and 13: {self.name}", self.about.format(10)
        return Table(
            title,
            about,
            self.file,
            (30,),
            self.split,
            10,
            (TAU, MAE, "pairwise_accuracy"),
            tuple(rows),
            against=rows[0].method,
        )

    @property
    def native_sources(self) -> Study:
        about = f"By right and wrong answers. The paper finds {self.natives} native sources"
        return Study(
            f"TailoredBench's native sources on {self.name} (Figures 10 to 23)",
            (self.file,),
            native_sources(self.file, self.split, about),
        )


BENCHMARKS = (
    Benchmark("ARC Challenge", "tailored_arc.parquet", GIVEN, 45, by_probabilities=True),
    Benchmark("HellaSwag", "tailored_hellaswag.parquet", GIVEN, 40, by_probabilities=True),
    Benchmark("Winogrande", "tailored_winogrande.parquet", HALVES, 33),
    Benchmark("POPE", "tailored_pope.parquet", HALVES, 35),
)
WITH_MORE = Table(
    "TailoredBench's Table 5: HellaSwag with more items",
    "As in Table 6.",
    "tailored_hellaswag.parquet",
    MORE,
    GIVEN,
    30,
    (TAU, MAE),
    tuple(
        Row(BY_CONFIDENCE.get(method, method), "", {TAU: tau, MAE: error})
        for method, (tau, error) in TABLE_5.items()
    ),
    z=BY_CONFIDENCE["tailored"],
)
ARC = Table(
    "TailoredBench on ARC Challenge, right and wrong",
    "The 153 models that the paper's Table 14 names, in random halves, 5 of them. The paper has "
    "probabilities of options, and its own sources and targets.",
    "arc_153.npz",
    (20, 30, 40),
    HALVES,
    5,
    (TAU, MAE),
    tuple(
        Row(method, "", {TAU: tau[::2], MAE: error[::2]})
        for method, (tau, error) in TABLE_6["ARC Challenge"].items()
    ),
)
ON_GSM8K = "TailoredBench on GSM8K, the paper's sources and targets"


def reductions(record: Mapping[str, str]) -> str:
    """How much lower the error is than the best baseline's, printed and measured."""
    lines = ["| error less, % | 20 | 25 | 30 | 35 | 40 | mean |", "|---" * 7 + "|"]
    printed, sums = [], np.zeros(2)
    for benchmark, methods in TABLE_6.items():
        error = {method: np.array(figures[1]) for method, figures in methods.items()}
        own = error.pop("tailored")
        best = np.min(list(error.values()), axis=0)
        printed.append(100 * (1 - own / best))
        sums += own.sum(), best.sum()
        lines.append(_reduced(f"{benchmark}, paper", printed[-1]))
    lines.append(_reduced("mean of five, paper", np.mean(printed, axis=0)))
    ours = {name: _measured(record[ON_GSM8K], name) for name in ("tailored", "gp-irt-random")}
    share = 100 * (1 - ours["tailored"] / ours["gp-irt-random"])
    lines.append(_reduced("GSM8K, fewbench", share))
    return (
        "From the printed errors of Table 6, and from those of the first table. The baseline is "
        "the best one printed at each number of items; on GSM8K it is gp-IRT of random items. "
        "The paper's abstract says 31.4 %. One less the ratio of the errors' sums, over the 25 "
        f"rounded cells of Table 6, is {1 - sums[0] / sums[1]:.1%}.\n\n" + "\n".join(lines)
    )


def _reduced(name: str, shares: np.ndarray) -> str:
    return f"| {name} | {' | '.join(f'{share:.1f}' for share in (*shares, shares.mean()))} |"


def _measured(text: str, method: str) -> np.ndarray:
    """Return a method's mean errors in the text of a `Table`."""
    rows = text.partition("| error (pp) |")[2].splitlines()
    first = next(at for at, row in enumerate(rows) if row.startswith(f"| `{method}`"))
    own = next(row for row in rows[first:] if "| fewbench |" in row)
    return np.array([float(cell.split("±")[0]) for cell in own.split("|")[3:-1]])


REDUCTIONS = Derived("TailoredBench's errors less those of the best baseline", ON_GSM8K, reductions)
NATIVE_PARTS = ("spread", "nearness", "shares", "counts")


def native_sources(file: str, split: str, about: str) -> Callable[[Context], str]:
    """Return a study of what native sources are good for, as in Figures 1, 3, 4 and 10 to 23."""
    return lambda context: of_native_sources(context, file, split, about)


def of_native_sources(context: Context, file: str, split: str, about: str) -> str:
    """Errors by number, share and nearness of the native sources."""
    found = analyze(
        context.scores(file),
        budget=30,
        split=settings(split),
        parts=NATIVE_PARTS,
        workers=context.workers,
    )
    lines = [
        f"{about}, 30 items, 5 repeats; in brackets, 90 % intervals. Distances are of items to "
        "their medoids, and between any two items as for a random item.\n",
        *(f"- {found.findings[part]}" for part in NATIVE_PARTS),
    ]
    for title, part in (
        ("fifths of the sources, the nearest first", found.nearness),
        ("share of the native sources", found.shares),
        ("number of nearest sources", found.counts),
    ):
        if part is None:
            raise ValueError(f"{title}: {found.absent}")
        lines += [
            f"\n| {title} | error (pp) | less that of {part.against} | Kendall tau | less |",
            "|---" * 5 + "|",
        ]
        for step, row in part.steps.iterrows():
            cells = [
                cell
                for metric, scale in ((MAE, 100), (TAU, 1))
                for cell in (
                    shown(scale * row[metric], metric),
                    "{} [{}, {}]".format(
                        *(
                            shown(scale * row[f"{metric}_gap{end}"], metric, "+")
                            for end in ("", "_low", "_high")
                        )
                    ),
                )
            ]
            lines.append(f"| {step} | {' | '.join(cells)} |")
    return "\n".join(lines)
