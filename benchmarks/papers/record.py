"""What the record of a paper is made of: tables of methods, other studies, and the file of both."""

import hashlib
import os
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd

from fewbench._files import written_whole
from fewbench._seeds import child_seed
from fewbench._types import FloatArray
from fewbench.checks import audit, drop
from fewbench.cli.compare import GAP
from fewbench.errors import FewbenchError
from fewbench.public import load_scores
from fewbench.scores import Scores
from fewbench.study import Comparison, SplitSettings, compare, make_split
from fewbench.study.cell import made_with
from fewbench.study.inference import model_groups, two_way
from fewbench.study.metrics import OF_TASKS, weighted_metrics
from fewbench.uncertainty.replay import replay
from papers.methods import find, paper_method
from papers.public import place

UNITS = """Errors are mean absolute errors in percentage points (pp). ± is one standard error of the
mean over the repeats of a table: random seeds where the division of the models is given, random
divisions otherwise. The choice of the models is in it only where a section says "over models";
`fewbench compare` resamples the models as well. "Another program" is an independent implementation
on the same data. `python benchmarks/reproduce.py FOLDER` writes this file."""

HEADINGS = {
    "kendall_tau": "Kendall tau",
    "spearman": "Spearman correlation",
    "pairwise_accuracy": "pairs in order (%)",
    "mae": "error (pp)",
    "weighted_mae": "error weighted by rank (pp)",
    "task_mae": "error of a task (pp)",
    "task_weighted_mae": "error of a task weighted by rank (pp)",
    "task_rank_mae": "error of a task's rank (places)",
    "task_weighted_rank_mae": "error of a task's rank weighted by rank (places)",
    "task_top10_recall": "best 10 models of a task that are found (%)",
    "task_ndcg": "NDCG of a task's ranking",
}
PERCENT = (
    "mae",
    "weighted_mae",
    "task_mae",
    "task_weighted_mae",
    "pairwise_accuracy",
    "task_top10_recall",
)
ERRORS = tuple(metric for metric in HEADINGS if metric.endswith("mae"))
CORRELATIONS = ("kendall_tau", "spearman")
TAU, MAE, SPEARMAN = "kendall_tau", "mae", "spearman"
NONE = float("nan")
NOT_RUN = "not run:"
WANTED = "not in the folder; --get fetches it"
GIVEN = "--split given"
HALVES = "--split random --targets 0.5"
PAPER, OTHER = "paper", "another program"
RESAMPLES = 499
CLEAR = 1.6
"""Standard errors of a difference that is not chance, at 90%."""


@dataclass(frozen=True)
class Context:
    """The folder with the tables of scores, and how to run a study."""

    folder: Path
    workers: int = 1
    cache: Path | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why a file is not in the folder, and how to get it."""
    record: Mapping[str, str] = field(default_factory=dict)
    """Texts of the paper's sections, as far as they are made."""

    def scores(self, file: str) -> Scores:
        """Load a table of the folder."""
        return load_scores(place(self.folder, file))


class Section(Protocol):
    """A section of a record: its heading, the files it needs, and its text."""

    @property
    def title(self) -> str: ...

    @property
    def data(self) -> tuple[str, ...]: ...

    def text(self, context: Context) -> str: ...


@dataclass(frozen=True)
class Row:
    """A method, and what others report of it: metric to figures, one a budget."""

    method: str
    label: str = ""
    reported: dict[str, tuple[float, ...]] = field(default_factory=dict)
    by: str = PAPER
    against: str | None = None
    """Method to which the difference is given, in place of the table's."""


@dataclass(frozen=True)
class Table:
    """Methods on one table of scores, at the same budgets and divisions of the models."""

    title: str
    about: str
    file: str
    """The table of scores in the folder, with its ending; `papers.public` may fetch it."""
    budgets: tuple[int | str, ...]
    split: str
    """Options of `fewbench compare`: --split, --targets, --gap, --group-by."""
    repeats: int
    metrics: tuple[str, ...]
    rows: tuple[Row, ...]
    against: str | None = None
    """Method to which differences are given, paired over the repeats."""
    distinct: bool = False
    """Whether duplicate models are dropped first."""
    every: int = 1
    """Only every n-th item is the benchmark."""
    z: str | None = None
    """Method whose one-sided z over seeds is given against the others: above 0 it is better."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if any(len(one) != len(self.budgets) for one in row.reported.values()):
                raise ValueError(f"{self.title}: {row.method} has not a figure for each budget")
        for other in filter(None, (self.z, self.against)):
            if other not in [row.method for row in self.rows]:
                raise ValueError(f"{self.title}: no row {other}, to which differences are given")

    @property
    def data(self) -> tuple[str, ...]:
        return (self.file,)

    def text(self, context: Context) -> str:
        return "\n".join(self._lines(self.compared(context.scores(self.file), context)))

    def compared(self, scores: Scores, context: Context) -> Comparison:
        """Run the table's methods."""
        scores = scores.take(items=range(0, scores.n_items, self.every))
        return compare(
            without_duplicates(scores) if self.distinct else scores,
            [paper_method(row.method) or row.method for row in self.rows],
            self.budgets,
            settings(self.split),
            self.repeats,
            level=None,
            workers=context.workers,
            cache=context.cache,
        )

    def _lines(self, outcome: Comparison) -> Iterator[str]:
        yield f"{self.about}\n"
        counts = list(dict.fromkeys(outcome.cells["budget"]))
        heads = [
            f"{count}" if isinstance(asked, int) else f"{asked} ({count})"
            for asked, count in zip(self.budgets, counts, strict=True)
        ]
        for metric in self.metrics:
            yield f"| {HEADINGS[metric]} | | {' | '.join(heads)} |"
            yield "|---" * (2 + len(heads)) + "|"
            wide = outcome.repeats.pivot(
                index="repeat", columns=["method", "budget"], values=metric
            )
            for row in self.rows:
                if row.method in wide:
                    yield from self._of_row(row, metric, wide.loc[:, (slice(None), counts)])
                else:
                    yield f"| `{row.method}` | failed |{' |' * len(heads)}"
            yield ""
        yield "```"
        file = f"FOLDER/{self.file}"
        if self.distinct:
            whole, file = file, f"{Path(self.file).stem}.parquet"
            yield f"fewbench audit {whole} --drop duplicates -o {file}"
        if self.every > 1:
            whole, file = file, f"{Path(self.file).stem}_{self.every}.parquet"
            yield (
                f"python -c \"import fewbench as f; s = f.load_scores('{whole}'); "
                f"f.save_scores(s.take(items=range(0, s.n_items, {self.every})), '{file}')\""
            )
        public = [row.method for row in self.rows if paper_method(row.method) is None]
        methods = ",".join(public)
        quoted = f"'{methods}'" if "(" in methods else methods
        budgets = ",".join(map(str, self.budgets))
        yield (
            f"fewbench compare {file} -m {quoted} -n {budgets} {self.split} "
            f"--repeats {self.repeats} --no-intervals"
        )
        if len(public) < len(self.rows):
            yield f'python benchmarks/reproduce.py FOLDER --only "{self.title}"  # all rows'
        yield "```"

    def _of_row(self, row: Row, metric: str, wide: pd.DataFrame) -> Iterator[str]:
        name = f"`{row.method}`" + (f" {row.label}" if row.label else "")
        if metric in row.reported:
            reported = (shown(value, metric) for value in row.reported[metric])
            yield f"| {name} | {row.by} | {' | '.join(reported)} |"
            name = ""
        scale = 100 if metric in PERCENT else 1
        mine = scale * wide[row.method]
        yield f"| {name} | fewbench | {' | '.join(means(mine, metric))} |"
        against = row.against or self.against
        if against is not None and row.method != against:
            less = mine - scale * wide[against]
            yield f"| | difference | {' | '.join(means(less, metric, '+'))} |"
        if self.z is not None and row.method != self.z:
            ahead = wide[self.z] - wide[row.method]
            gain = ahead.mean() * (-1 if metric in ERRORS else 1)
            z = gain / np.hypot(wide[self.z].sem(), wide[row.method].sem())
            yield f"| | z of `{self.z}` | {' | '.join(f'{value:.1f}' for value in z)} |"


@dataclass(frozen=True)
class Study:
    """A section that is not a comparison of methods."""

    title: str
    data: tuple[str, ...]
    made: Callable[[Context], str]

    def text(self, context: Context) -> str:
        """Make the text, or take it from the cache."""
        return kept(self, context, self.made)


@dataclass(frozen=True)
class Derived:
    """A section computed from the figures of another section."""

    title: str
    source: str
    made: Callable[[Mapping[str, str]], str]
    data: tuple[str, ...] = ()

    def text(self, context: Context) -> str:
        """Make the text; FewbenchError if the other section is not made."""
        if self.source not in context.record:
            raise FewbenchError(f"the record has no section {self.source!r} yet")
        return self.made(context.record)


def kept(section: Section, context: Context, make: Callable[[Context], str]) -> str:
    """Make a section's text; with a cache, take it from there if nothing that it rests on changed.

    It rests on its data, on the programs of the record, and on fewbench and its libraries.
    """
    if context.cache is None:
        return make(context)
    digest = hashlib.sha256(f"{section.title} {made_with()}".encode())
    programs = sorted(Path(__file__).parents[1].rglob("*.py"))
    for path in (*programs, *(place(context.folder, file) for file in section.data)):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    path = Path(f"{context.cache}.sections") / f"{digest.hexdigest()[:16]}.md"
    if not path.is_file():
        text = make(context)
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return path.read_text(encoding="utf-8")


def seed_of_compare(repeat: int) -> int:
    """Return the seed of a method in a repeat of `compare`."""
    return child_seed(0, 3, repeat)


@dataclass(frozen=True)
class Differences:
    """Differences of two methods, with standard errors that count the models, too."""

    title: str
    file: str
    pairs: tuple[tuple[str, str], ...]
    budgets: tuple[int, ...]
    split: str
    repeats: int
    metrics: tuple[str, ...] = (MAE,)
    distinct: bool = False
    seed_of: Callable[[int], int] = seed_of_compare
    """Seed of a repeat: by default that of a `Table`, whose differences then are the same."""

    @property
    def data(self) -> tuple[str, ...]:
        return (self.file,)

    def text(self, context: Context) -> str:
        """Return a table for each metric, or take them from the cache."""
        return kept(self, context, self._made)

    def _made(self, context: Context) -> str:
        scores = context.scores(self.file)
        scores = without_duplicates(scores) if self.distinct else scores
        splits = [make_split(scores, settings(self.split), 0, at) for at in range(self.repeats)]
        targets = [[scores.model_ids[at] for at in split.targets] for split in splits]
        resampled = two_way(targets, model_groups(scores), resamples=RESAMPLES)
        parts: dict[tuple[str, int, str], list[FloatArray]] = defaultdict(list)
        for repeat, split in enumerate(splits):
            divided = (scores.take(models=at) for at in (split.sources, split.targets))
            judged = _Judged(*divided, resampled.weights(repeat), self.metrics)
            methods = dict.fromkeys(method for pair in self.pairs for method in pair)
            for method, budget in product(methods, self.budgets):
                for metric, row in judged.by_metric(method, budget, self.seed_of(repeat)):
                    parts[method, budget, metric].append(row)
        lines = [
            f"`{self.split}`, {self.repeats} repeats. ± is one standard error over repeats and "
            "models, both resampled as in `fewbench compare`; models of a family, or with nearly "
            "the same answers, count as one. Bold: above 1.6 standard errors, and its 90% "
            "interval excludes 0."
        ]
        for metric in self.metrics:
            lines.append(
                f"\n| {HEADINGS[metric]}, the first less the second "
                f"| {' | '.join(map(str, self.budgets))} |"
            )
            lines.append("|---" * (1 + len(self.budgets)) + "|")
            scale = 100 if metric in PERCENT else 1
            for first, second in self.pairs:
                cells = []
                for budget in self.budgets:
                    ours, theirs = (
                        scale * np.array(parts[method, budget, metric])
                        for method in (first, second)
                    )
                    figure = resampled.figure(resampled.difference(ours, theirs))
                    value = shown(figure.value, metric, "+")
                    outside = figure.low > 0 or figure.high < 0
                    if outside and abs(figure.value) > CLEAR * figure.se:
                        value = f"**{value}**"
                    cells.append(f"{value} ± {shown(figure.se, metric)}")
                lines.append(f"| `{first}`, `{second}` | {' | '.join(cells)} |")
        return "\n".join(lines)


class _Judged(NamedTuple):
    """A repeat's models, and how often each target counts in each resample."""

    sources: Scores
    targets: Scores
    weights: FloatArray
    metrics: tuple[str, ...]

    def by_metric(self, method: str, budget: int, seed: int) -> Iterator[tuple[str, FloatArray]]:
        """Yield each metric of a method, shape (resamples,)."""
        of_tasks = any(metric.startswith(OF_TASKS) for metric in self.metrics)
        run = replay(find(method), self.sources, self.targets, budget, seed, tasks=of_tasks)
        truth, past = self.targets.full_scores(), self.sources.full_scores()
        values = weighted_metrics(truth, run.scores, past, self.weights)
        if of_tasks:
            tasks = zip(
                self.targets.task_scores().T, run.tasks.T, self.sources.task_scores().T, strict=True
            )
            each = [weighted_metrics(*task, self.weights) for task in tasks]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # undefined for all tasks
                values |= {
                    f"{OF_TASKS}{name}": np.nanmean([task[name] for task in each], axis=0)
                    for name in values
                }
        yield from ((metric, values[metric]) for metric in self.metrics)


@dataclass(frozen=True)
class Paper:
    """The record of a paper: results/NAME.md."""

    name: str
    title: str
    sections: tuple[Section, ...]
    about: str = ""

    def write(self, context: Context, folder: Path, only: str = "") -> Iterator[str]:
        """Write the sections whose title holds `only`, one by one; yield a line for each.

        The line says how long it took. Sections that are not run, whose data are missing or
        that fail stay as they are in the file.
        """
        path = folder / f"{self.name}.md"
        kept = sections_of(path.read_text(encoding="utf-8")) if path.is_file() else {}
        context = replace(context, record=kept)
        for section in self.sections:
            if only not in section.title:
                continue
            missing = [one for one in section.data if not place(context.folder, one).exists()]
            if missing:
                why: dict[str, list[str]] = {}
                for file in missing:
                    why.setdefault(context.reasons.get(file, WANTED), []).append(file)
                needed = "; ".join(
                    f"{', '.join(files)} ({reason})" for reason, files in why.items()
                )
                yield f"{self.name}: {NOT_RUN} {section.title}: no {needed}"
                continue
            began, spent = time.monotonic(), processor_seconds()
            try:
                kept[section.title] = section.text(context)
            except FewbenchError as error:
                yield f"{self.name}: {NOT_RUN} {section.title}: {error}"
                continue
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(self.page(kept), encoding="utf-8")
            took, spent = time.monotonic() - began, processor_seconds() - spent
            yield f"{self.name}: {section.title} ({took:,.0f} s, processors {spent:,.0f} s)"

    def page(self, kept: Mapping[str, str]) -> str:
        """Return the file with the texts of its sections."""
        parts = [f"# {self.title}", UNITS, *([self.about] if self.about else [])]
        for section in self.sections:
            if section.title in kept:
                parts += [f"## {section.title}", kept[section.title].strip()]
        return "\n\n".join(parts) + "\n"


def processor_seconds() -> float:
    """Return the processor time of this process and of its workers that have ended."""
    return sum(os.times()[:4])


def sections_of(page: str) -> dict[str, str]:
    """Return the text below each heading of a record."""
    return dict(part.split("\n", 1) for part in page.split("\n## ")[1:])  # type: ignore[misc]


def without_duplicates(scores: Scores) -> Scores:
    """As `fewbench audit FILE --drop duplicates -o FILE` does."""
    return drop(scores, audit(scores), ["duplicates"])[0]


def settings(split: str) -> SplitSettings:
    """Read the options of a split."""
    flags = {word for word in split.split() if word in ("--resample", "--gap")}
    typed = [word for word in split.split() if word not in flags]
    words = dict(zip(typed[::2], typed[1::2], strict=True))
    kind, targets = words.pop("--split"), float(words.pop("--targets", 0.25))
    group = words.pop("--group-by", "family")
    if words:
        raise ValueError(f"unknown options {list(words)} in {split!r}")
    gap = GAP if "--gap" in flags else 0.0
    return SplitSettings(kind, targets, gap, group, "--resample" in flags)  # type: ignore[arg-type]


def means(values: pd.DataFrame, metric: str, sign: str = "") -> Iterator[str]:
    """Write each column's mean ± its standard error over the repeats."""
    for _, column in values.items():
        known = column.dropna()
        text = shown(known.mean(), metric, sign)
        yield f"{text} ± {shown(known.sem(), metric)}" if len(known) > 1 else text


def shown(value: float, metric: str, sign: str = "") -> str:
    """Write a figure: correlations without the zero before the point, – for NaN."""
    if np.isnan(value):
        return "–"
    if metric in CORRELATIONS:
        return f"{value:{sign}.3f}".replace("0.", ".", 1)
    if metric == "task_ndcg":
        return f"{value:{sign}.4f}"
    return f"{value:{sign}.2f}"
