"""Files that are not logs: tables, arrays and saved scores, one or several joined into one."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fewbench._names import some
from fewbench.errors import Mistakes, ReaderError
from fewbench.readers.frames import Columns, table_columns
from fewbench.readers.harness import Reading
from fewbench.readers.json_rows import KEYS
from fewbench.readers.json_rows import SUFFIXES as JSON
from fewbench.readers.table_hints import options_that_keep
from fewbench.readers.tables import read_table
from fewbench.scores import Scale, Scores, open_saved
from fewbench.scores.cell_words import CellWords
from fewbench.scores.files import is_saved
from fewbench.scores.joining import join_scores
from fewbench.scores.repeats import repeats_notes
from fewbench.scores.table import one_sided

SUFFIXES = (".csv", ".tsv", ".parquet", *JSON, ".npz")
NOT_OWN = re.compile(rf"__index|({KEYS.pattern})$")
"""Columns that a table does not have itself."""


@dataclass(frozen=True)
class TableOptions:
    """How tables are read; see `fewbench.import_results`."""

    columns: Columns = field(default_factory=Columns)
    transposed: bool = False
    words: CellWords = field(default_factory=CellWords)
    trials: str | None = None
    accept_differences: bool = False
    rescale: Mapping[str, float] = field(default_factory=dict)

    @property
    def given(self) -> list[str]:
        """The options for tables alone that differ from their defaults."""
        options = {"columns": self.columns != Columns(), "--transposed": self.transposed}
        options["--rescale"] = bool(self.rescale)
        options |= {f"--{name}": bool(texts) for name, texts in vars(self.words).items()}
        return [option for option, is_given in options.items() if is_given]


def refuse_options(source: Path, form: str, useless: list[str]) -> None:
    """Raise ReaderError for options that a form does not use."""
    if useless:
        raise ReaderError(
            f"{source}: read as {form!r}, which does not use {', '.join(useless)}",
            hint="omit it, or pass a different kind with --from",
        )


def read_files(
    sources: Sequence[Path],
    form: str | None,
    options: TableOptions,
    scale: Scale | None = None,
    like: Scores | None = None,
) -> Reading:
    """Read files that are not logs.

    Long tables are read as one table, whose rows may be repeated answers. Other files are joined.

    Raises
    ------
    ReaderError, ScoresError
        If a file cannot be read, or the files do not fit each other.
    """
    forms = [form or form_of(source) for source in sources]
    if set(forms) == {"table"} and options.columns.is_long:
        return _read_table(sources, options, scale, like)
    if "table" not in forms:
        useless = [*options.given, *(["--trials"] if options.trials else [])]
        refuse_options(sources[0], forms[0], useless)
    readings, mistakes = [], Mistakes()
    for source, of_file in zip(sources, forms, strict=True):
        with mistakes.noted():
            readings.append(_read_file(source, of_file, options, scale, like))
    mistakes.refuse()
    notes = [note for reading in readings for note in reading.notes]
    scores, joined = join_scores(
        [reading.scores for reading in readings],
        [str(source) for source in sources],
        accept_differences=options.accept_differences,
    )
    return Reading(scores, (*notes, *joined))


def form_of(source: Path) -> str:
    """Return the form of a file that is not a log: scores, npz or table."""
    if is_saved(source):
        return "scores"
    return "npz" if source.suffix.lower() == ".npz" else "table"


def _read_file(
    source: Path, form: str, options: TableOptions, scale: Scale | None, like: Scores | None
) -> Reading:
    if form == "table":
        return _read_table([source], options, scale, like)
    if form == "npz":
        from fewbench.readers.npz import read_npz

        return read_npz(source, scale=scale)
    reading = read_saved(source, scale)
    _ = reading.scores.cells  # a changed file is refused here
    return reading


def read_saved(source: Path, scale: Scale | None = None) -> Reading:
    """Open scores saved by fewbench, or a pack; ReaderError if their scale differs."""
    scores = open_saved(source)
    if scale not in (None, scores.scale):
        raise ReaderError(
            f"{source}: saved with a different range of scores ({scores.scale})",
            hint="omit --range and --lower-is-better",
            kind="scale",
        )
    return Reading(scores)


def _read_table(
    sources: Sequence[Path], options: TableOptions, scale: Scale | None, like: Scores | None
) -> Reading:
    notes: list[str] = []
    table = read_table(
        sources,
        options.columns,
        transposed=options.transposed,
        scale=scale,
        has_tasks=like is not None,
        words=options.words,
        trials=options.trials,
        rescale=options.rescale,
        notes=notes if like is None else None,
    )
    notes += repeats_notes(table.repeats, options.trials)
    if like is None:
        notes += _one_sided(table, some(sources, quotes=False))
        notes += _unused(sources, options)
    return Reading(table, tuple(notes))


def _unused(sources: Sequence[Path], options: TableOptions) -> list[str]:
    """Return a note on columns of a long table that are not read, of the first file of scores."""
    columns = options.columns
    has = {path: table_columns(path, columns.named) for path in sources}
    source = next((path for path in sources if columns.scored(has[path])), sources[0])
    used = columns.within(has[source])
    used += [name.partition(".")[0] for name in used]  # of JSON, values within an object
    unused = [
        name for name in has[source]
        if not {name, name.partition(".")[0]} & {*used} and not NOT_OWN.match(name)
    ]  # fmt: skip
    if not (options.columns.is_long and unused):
        return []
    keep = options_that_keep(unused) or "--keep-item COLUMN or --keep-model COLUMN"
    return [f"{source}: columns not used: {some(unused, most=8)} (to keep: {keep})"]


def _one_sided(scores: Scores, what: str) -> list[str]:
    """Return a note on a table in which every answer is wrong, or every answer is right."""
    which = one_sided(scores)
    if not which:
        return []
    rest, worst = ("right", "worst") if which == "worst" else ("wrong", "best")
    return [
        f"{what}: every score is the {worst} one. If the file lists only such answers, add the "
        f"{rest} ones: scores of a part are not scores of the benchmark"
    ]
