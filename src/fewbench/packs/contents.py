"""A pack in memory: what is in it, what from, and how good it is."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import Any

from fewbench._lazy import pandas as pd
from fewbench._names import counted, some
from fewbench.errors import PackError
from fewbench.evaluation import Evaluation, Stop
from fewbench.evaluation.packed import beyond_warnings, known_errors, provenance_of, subset_of
from fewbench.methods import find_method
from fewbench.scores import Scores, Unit
from fewbench.scores.benchmark import average_notes
from fewbench.scores.pack_files import (
    SUFFIX,
    PackRecord,
    Part,
    choose_part,
    is_pack,
    pack_file,
    read_pack,
    scores_of,
    write_pack,
)
from fewbench.show.charts import deciding
from fewbench.show.page import Page, Section, Shown, Table
from fewbench.study.forecast import title_of

MOST_ITEMS = 2000
HEAD = [
    ("Target", False), ("Error", True), ("90% interval", True), ("Random sampling", True),
    ("Half width", True), ("Coverage", True), ("Targets", True), ("Sources", True),
]  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Pack(Shown):
    """One or several benchmarks, each with a method, its items and what its estimates need.

    Made by `fewbench.pack` or `fewbench.open_pack`.

    Attributes
    ----------
    record : PackRecord
        Name, license, citation and description of each benchmark.
    parts : tuple of Part
        The benchmarks.
    source : Path
        Where the pack was read from; its name if it was made here.

    Examples
    --------
    >>> from fewbench import pack
    >>> from fewbench.testing import simulate
    >>> made = pack(simulate(30, 80, seed=1), "random-ridge", 10, backtest=False)
    >>> made.names, made.scores().n_models
    (('benchmark',), 30)
    """

    record: PackRecord
    parts: tuple[Part, ...]
    source: Path

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the benchmarks."""
        return tuple(part.record.name for part in self.parts)

    def scores(self, name: str | None = None) -> Scores:
        """Return the scores of a benchmark, to be used in place of the source models' scores.

        `name` is needed if there are several. PackError if there is none of that name, or the
        content does not fit together.
        """
        return scores_of(self.source, choose_part(self.source, list(self.parts), name))

    def start(
        self,
        targets: Sequence[str] = ("target",),
        name: str | None = None,
        stop: Stop | None = None,
    ) -> Evaluation:
        """Start an evaluation from the pack, with its method, items and seed.

        Parameters
        ----------
        targets : sequence of str
            Names of the target models.
        name : str, optional
            The benchmark if there are several.
        stop : Stop, optional
            Further limits, such as the width of the interval.
        """
        return Evaluation(self.scores(name), targets=targets, stop=stop)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the pack to a file (.few) and return its path; PackError if the file exists."""
        target = Path(path)
        if target.suffix != SUFFIX:
            raise PackError(f"{target}: a pack's name ends in {SUFFIX}", hint=f"add {SUFFIX}")
        if target.exists() and not force:
            raise PackError(f"{target} already exists", hint="pass force=True to replace it")
        write_pack(target, self.record, [part.arrays for part in self.parts])
        return target

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        return [self._row(part) for part in self.parts]

    def _row(self, part: Part) -> dict[str, Any]:
        scores = scores_of(self.source, part)
        assert scores.origin is not None
        settings, subset = provenance_of(scores.origin, scores.n_items), subset_of(scores.origin)
        known_errors(scores, find_method(settings.method), settings)  # refuses what does not fit
        full = scores.scale.from_unit(scores.full_scores())
        return {
            "benchmark": part.record.name,
            "method": settings.method,
            "items": settings.budget,
            "of_items": scores.n_items,
            "tasks": len(scores.tasks),
            "source_models": scores.n_models,
            "source_scores_low": float(full.min()),
            "source_scores_high": float(full.max()),
            "average": scores.average,
            "answers_kept": "chosen items" if part.record.keeps == "answers" else "all items",
            "asks": "once" if subset is not None else "in rounds",
            "seed": settings.seed,
            "fingerprint": settings.fingerprint,
            "version": settings.version,
        }

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per benchmark: method, items, tasks, source models and their scores."""
        return pd.DataFrame(self._rows).set_index("benchmark")

    def backtest(self, name: str | None = None) -> "pd.DataFrame":
        """Return the method's errors on held-out source models, on the scale of the scores.

        One row per relation of targets and source models; empty if it was not measured.
        """
        record = choose_part(self.source, list(self.parts), name).record
        return pd.DataFrame(record.backtest)

    def to_dict(self) -> dict[str, Any]:
        """Return all but the answers, for JSON."""
        head = self.record.model_dump(exclude={"parts"})
        if self.source.is_file():
            head |= {"file": str(self.source), "bytes": self.source.stat().st_size}
        parts = []
        for row, part in zip(self._rows, self.parts, strict=True):
            of_part = part.record
            chosen = None if of_part.subset is None else of_part.subset["items"]
            more = {"chosen_items": chosen, "backtest": of_part.backtest, "notes": of_part.notes}
            more["models"] = [] if self.record.is_anonymous else of_part.models["model"]
            parts.append(row | more)
        return head | {"benchmarks": parts}

    def page(self) -> Page:
        """Return what the pack contains, how good it is, and how to use it."""
        values = self.to_dict()
        rows = values["benchmarks"]
        path = str(self.source if self.source.suffix else f"{self.source}{SUFFIX}")
        path = quote(path if len(rows) == 1 else f"{path}:{self.names[0]}")
        facts = {
            "License": values["license"] or "not stated",
            "Cite": values["cite"] or "not stated",
            "Names of source models": "left out" if values["is_anonymous"] else "included",
        }
        use = [f"fewbench start {path} -o run", f"fewbench run command {path} -o run -- PROGRAM"]
        answer = f"{rows[0]['items']:,} of {counted(rows[0]['of_items'], 'item')} in place of all"
        if rows[0]["chosen_items"] is None:
            answer += ", chosen for each model as it answers"
        overview = []
        if len(rows) > 1:
            answer = f"{counted(len(rows), 'benchmark')}, a few items of each"
            head = [("Benchmark", False), ("Method", False), ("Items", True), ("Of", True)]
            cells = [
                [row["benchmark"], row["method"], f"{row['items']:,}", f"{row['of_items']:,}"]
                for row in rows
            ]
            listed = Table("Benchmarks", head, cells, "a benchmark")
            overview.append(Section("benchmarks", "Benchmarks", tables=[listed]))
        sections = [self._benchmark(at, row) for at, row in enumerate(rows)]
        return Page(
            "pack",
            f"Pack {values['name']}",
            answer,
            [f"Pack {values['name']}, made {values['created']} by fewbench {values['version']}."],
            warnings=self._warnings(rows),
            sections=[*overview, *sections, Section("use", "Use it", facts=facts, commands=use)],
        )

    def _warnings(self, rows: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return what targets beyond the sources suffer; one warning for all benchmarks."""
        worse = {}
        for row in rows:
            scale = self.scores(row["benchmark"]).scale
            if warnings := beyond_warnings(row["backtest"], row["method"], scale):
                worse[row["benchmark"]] = warnings
        if len(rows) == 1 or not worse:
            return list(chain.from_iterable(worse.values()))
        return [
            f"in {counted(len(worse), 'benchmark')} the method is worse than random sampling for "
            f"targets stronger or weaker than all source models: {some(worse)}. Read their "
            "backtests (--json)"
        ]

    def _benchmark(self, at: int, part: Mapping[str, Any]) -> Section:
        rows, scale = part["backtest"], self.scores(part["benchmark"]).scale
        unit = Unit(scale)
        bars = [
            {"name": title_of(str(row["target"])), "value": row["error"], "color": "m0"}
            | {"low": row.get("error_low"), "high": row.get("error_high")}
            for row in rows
        ]
        tables = [Table("Backtest", HEAD, [_words(row, unit) for row in rows])] if rows else []
        if part["chosen_items"]:
            items = [[str(item)] for item in part["chosen_items"][:MOST_ITEMS]]
            title = f"The {len(part['chosen_items']):,} items"
            tables.append(Table(title, [("Item", False)], items, "an item", folded=title))
        facts = {
            "Method": part["method"],
            "Asks": part["asks"],
            "Tasks": str(part["tasks"]),
            "Source models": f"{part['source_models']:,}, full scores from "
            f"{unit.score(part['source_scores_low'])} to {unit.score(part['source_scores_high'])}",
            "Seed": str(part["seed"]),
            "Fingerprint": part["fingerprint"],
        }
        notes = ["Not backtested."]
        if rows:
            level = rows[0].get("level")
            notes = [
                "Mean error of the method on held-out source models, by kind of target. Read the "
                "line of the kind that your model belongs to.",
                f"Means over {counted(int(rows[0]['repeats']), 'repeat')}"
                f"{f'; intervals are stated at {level:.0%}' if level else ''}.",
            ]
        notes += average_notes(part["average"])
        notes += [f"{note[:1].upper()}{note[1:]}." for note in part["notes"]]
        return Section(
            f"benchmark-{at}",
            part["benchmark"] if len(self.parts) > 1 else "How good it is",
            notes,
            charts=[("", lambda: deciding.errors(bars, unit))] if bars else [],
            tables=tables,
            facts=facts,
            detail=len(self.parts) > 1,
        )


def _words(row: Mapping[str, Any], unit: Unit) -> list[str]:
    low, high = row.get("error_low"), row.get("error_high")
    half, holds = row.get("half_width"), row.get("coverage")
    return [
        *(title_of(str(row["target"])), unit.points(row["error"])),
        "–" if low is None or high is None else f"{unit.points(low)} to {unit.points(high)}",
        unit.points(row["random_error"]),
        "–" if half is None or half != half else f"±{unit.points(half)}",
        "–" if holds is None else f"{holds:.0%}",
        *(f"{row['targets']:,.0f}", f"{row['sources']:,.0f}"),
    ]


def open_pack(path: str | os.PathLike[str]) -> Pack:
    """Show what is in a pack, what it was made from, and how good it is.

    Parameters
    ----------
    path : path
        Pack (.few). FILE.few:NAME is one benchmark of several.

    Raises
    ------
    PackError
        If the file is not a pack, of another schema, damaged, or larger than a pack may be.
    """
    source, name = pack_file(path)
    if not is_pack(source):
        raise PackError(f"{source}: not a pack", hint="a pack's name ends in .few")
    record, parts = read_pack(source)
    made = Pack(record, tuple(parts), source)
    if name is not None:
        only = choose_part(source, parts, name)
        record = record.model_copy(update={"parts": [only.record]})
        made = Pack(record, (only,), source)
    _ = made.to_frame()  # what does not fit together is found now
    return made
