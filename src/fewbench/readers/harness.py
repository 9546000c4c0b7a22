"""What a reader of a harness's files is: it finds its files, and reads them into runs.

A run is what one file says of one model on one task, the common form of all harnesses' results. A
reader fills `Rows` row by row and turns them into a `Run`. Everything after that (which run counts,
which metric, how items of different runs join) is the same for every harness.
"""

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fewbench._types import FloatArray
from fewbench.errors import ReaderError
from fewbench.readers.options import OptionTable
from fewbench.readers.values import as_number, describe
from fewbench.scores import Scores
from fewbench.scores.conditions import UNKNOWN_FORM

Columns = Mapping[str, NDArray[Any]]
UNKNOWN, MIXED_UP = -1, -2  # positions that a file does not tell, or not reliably
SCORE = "score:"  # before the metric, in the names of columns
SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Run:
    """One model's answers to one task under one filter, as one file has them.

    Parameters
    ----------
    path : Path
        The file.
    model, task : str
    columns : mapping of str to ndarray
        In memory or read when asked for. `content` (text: what identifies an item within its
        task), `position` (int, in the task's split, negative
        where not known), `own_id` (text, the
        harness's own id, "" where it has none), `prompt` (uint64 hash of what the model saw, 0
        where not known), `place` (int: line or row, for messages), `score:METRIC` (float, NaN
        where the file has no number), and, if every row is multiple choice, `options`, `counts`
        and `right` (see `fewbench.readers.options`).
    metrics : tuple of str
    n_rows : int
    harness : str
        Whose file it is; set where files are gathered.
    filter : str or None
        How answers were extracted, where a file has several; None if it does not say.
    stamp : str
        When it ran: text that sorts by time among runs of one `group`, "" if not known.
    group, variant : str
        Where re-runs of this one would lie, usually the folder, and with what settings it ran that
        make it another run. Within one group and variant a newer run replaces an older one of the
        same model and task; others know nothing of each other.
    unfit : mapping
        Metric → the first place where it is not one finite number, and what is there instead.
    numeric : frozenset of str
        Metrics that are a number in at least one row.
    total, ran : int or None
        How many items the task has and how many the harness says it ran.
    version : str
        The task's version, "" if not known.
    suite : str
        The group of tasks to which the task belongs, outermost first with "/" between, "" if none.
    settings : tuple of (str, str)
        The model's arguments and what else changes answers; for comparison only.
    task_settings : tuple of (str, str)
        How the task was asked, as far as it changes answers and is not the model's own: few-shot
        examples, generation arguments, and the like. Empty if not known.
    prompt_form : str
        What the prompts carry that differs between models: "" if nothing, a hash of the model's
        chat template, or `UNKNOWN_FORM`.
    harness_version : str
        The version of the harness, or what is known of it; "" if nothing is.
    higher_is_better : mapping of str to bool
        For metrics of which the file says it.
    layout, prompts : str
        Equal for runs with the same items in the same order, and with the same prompts of them.
    notes : tuple of str
        What the reader wants the user to know of this file.
    """

    path: Path
    model: str
    task: str
    columns: Columns = field(repr=False)
    metrics: tuple[str, ...]
    n_rows: int
    harness: str = ""
    filter: str | None = None
    stamp: str = ""
    group: str = ""
    variant: str = ""
    unfit: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    numeric: frozenset[str] = frozenset()
    total: int | None = None
    ran: int | None = None
    version: str = ""
    suite: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    task_settings: tuple[tuple[str, str], ...] = ()
    prompt_form: str = UNKNOWN_FORM
    harness_version: str = ""
    higher_is_better: Mapping[str, bool] = field(default_factory=dict)
    layout: str = ""
    prompts: str = ""
    has_options: bool = False
    place_word: str = "line"
    notes: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether every item of the task was run and is here."""
        return self.total is not None and self.total == self.n_rows

    def has(self, metric: str) -> bool:
        """Whether the file has a metric."""
        return metric in self.metrics

    def numbers(self, metric: str) -> FloatArray:
        """Return a metric of every row; ReaderError unless each is one finite number."""
        if metric not in self.metrics:
            raise ReaderError(
                f"{self.path}: no row has the metric {metric!r}",
                hint=f"it has {', '.join(self.metrics) or 'none'}",
            )
        if metric in self.unfit:
            place, what = self.unfit[metric]
            raise ReaderError(
                f"{self.path}, {self.place_word} {place}: metric {metric!r} of task "
                f"{self.task!r} is {what}, not one finite number",
                hint="name another metric of the task with --metric, or leave the task out with "
                f"--skip-tasks {self.task}",
            )
        return np.asarray(self.columns[SCORE + metric])


@dataclass
class Rows:
    """Columns that grow row by row, and become a `Run`.

    Parameters
    ----------
    path : Path
        The file, for messages.
    place_word : str
        What a place in the file is called: line, row, sample …

    Examples
    --------
    >>> from fewbench.readers.values import content_id
    >>> rows = Rows(Path("a.jsonl"))
    >>> for line, (question, score) in enumerate({"1+1": 1, "2+2": "0.0"}.items(), start=1):
    ...     rows.append(content_id(question), {"exact_match": score}, line)
    >>> run = rows.run(model="org/a", task="sums")
    >>> run.numbers("exact_match").tolist()
    [1.0, 0.0]
    """

    path: Path
    place_word: str = "line"
    contents: list[str] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    own_ids: list[str] = field(default_factory=list)
    prompts: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=dict)
    numeric: set[str] = field(default_factory=set)
    unfit: dict[str, tuple[int, str]] = field(default_factory=dict)
    options: list[OptionTable] | None = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.places)

    def append(
        self,
        content: str,
        scores: Mapping[str, Any],
        place: int,
        *,
        position: int = UNKNOWN,
        own_id: str = "",
        prompt: str = "",
        options: OptionTable | None = None,
    ) -> None:
        """Add a row.

        Parameters
        ----------
        content : str
            What identifies the item within its task; see `fewbench.readers.values`.
        scores : mapping of str to anything
            Metric → its value as the file has it. What is not one number is remembered, and
            becomes an error only if the metric is the one that is taken.
        place : int
            Line or row in the file, from 1.
        prompt : str
            What the model saw, or a hash of it; "" if not known.
        options : OptionTable, optional
            What the model said of each option. All rows need it, or the run has none.
        """
        for metric in self.values.keys() - scores.keys():
            self.values[metric].append(math.nan)
            self.unfit.setdefault(metric, (place, "absent"))
        for metric, raw in scores.items():
            if metric not in self.values:
                self.values[metric] = [math.nan] * len(self)
                if len(self):
                    self.unfit[metric] = (self.places[0], "absent")
            value = as_number(raw)
            if value is not None:
                self.numeric.add(metric)
            if value is None or not math.isfinite(value):
                self.unfit.setdefault(metric, (place, describe(raw)))
            self.values[metric].append(math.nan if value is None else value)
        self.contents.append(content)
        self.positions.append(position)
        self.own_ids.append(own_id)
        self.prompts.append(_hashed(prompt))
        self.places.append(place)
        if self.options is not None:
            if options is None:
                self.options = None
            else:
                self.options.append(options)

    def run(self, model: str, task: str, **known: Any) -> Run:
        """Return the rows as a run; `known` are further fields of `Run`.

        Raises
        ------
        ReaderError
            If there are no rows, the model or task has no name, or an id is not valid Unicode.
        """
        if not len(self):
            raise ReaderError(f"{self.path}: empty, no answer was logged", hint="delete it")
        for what, name in (("model", model), ("task", task)):
            if not (isinstance(name, str) and name.strip()):
                raise ReaderError(f"{self.path}: the {what} has no name")
        self._check_unicode()
        columns: dict[str, NDArray[Any]] = {
            "content": np.array(self.contents),
            "position": np.array(self.positions, dtype=np.int64),
            "own_id": np.array(self.own_ids),
            "prompt": np.array(self.prompts, dtype=np.uint64),
            "place": np.array(self.places, dtype=np.int64),
        }
        columns |= {SCORE + name: np.array(column) for name, column in self.values.items()}
        if self.options:
            columns |= OptionTable.columns(self.options)
        run = Run(
            path=self.path,
            model=model,
            task=task,
            columns=columns,
            metrics=tuple(self.values),
            n_rows=len(self),
            group=str(self.path.absolute().parent),
            unfit=self.unfit,
            numeric=frozenset(self.numeric),
            layout=_digest(columns, "content", "position", "own_id"),
            prompts=_digest(columns, "prompt"),
            has_options=bool(self.options),
            place_word=self.place_word,
        )
        return replace(run, **known)

    def _check_unicode(self) -> None:
        for texts in (self.contents, self.own_ids):
            try:
                "".join(texts).encode()
            except UnicodeEncodeError as error:
                bad = next(at for at, text in enumerate(texts) if not _is_unicode(text))
                raise ReaderError(
                    f"{self.path}, {self.place_word} {self.places[bad]}: the item's id "
                    f"{texts[bad]!r} is not valid Unicode",
                    hint="half of a surrogate pair was cut off; write the file as UTF-8",
                ) from error


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _hashed(text: str) -> int:
    if not text:
        return 0
    if SHA256.fullmatch(text):  # keeps the digits by which a user finds it in the log
        return int(text[:16], 16) or 1
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") or 1


def _digest(columns: Columns, *names: str) -> str:
    found = hashlib.sha256()
    for name in names:
        column = columns[name]
        found.update(f"{column.dtype} {len(column)}".encode())
        found.update(np.ascontiguousarray(column).data)
    return found.hexdigest()


@dataclass(frozen=True)
class Unit:
    """What is read at a time: a file of answers, and the files beside it that say more of it.

    Parameters
    ----------
    path : Path
    beside : tuple of Path
        Read along; they need not be among the files that were named.
    """

    path: Path
    beside: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Wants:
    """What the user asked of every reader.

    Parameters
    ----------
    key : str, optional
        The field of an item that identifies it, such as `id` or `question_id`, instead of a hash
        of its content: for joining with results that have no content.
    salvage : bool
        Whether whole rows of a torn file are read, and the torn last one left out with a note.
    """

    key: str | None = None
    salvage: bool = False


class Harness(Protocol):
    """A harness whose result files fewbench reads.

    A new one is a file with a class like this and a line in `fewbench.readers.harnesses`.
    `name` is the word for `--from`; `files` says which files the harness writes, for messages.
    """

    name: str
    files: str

    def find(self, files: Sequence[Path]) -> list[Unit]:
        """Return the units among files, in their order; [] if none is of this harness.

        Called with all files below what the user named, so it must be cheap: decide by name, then
        by `head`. Never raises for what other programs wrote. A file that has the harness's name
        but is torn is found, and named when it is read.
        """

    def read(self, unit: Unit, wants: Wants) -> list[Run]:
        """Return what a unit says: a run for each model, task and filter in it.

        Raises
        ------
        ReaderError
            If a file is torn or holds what the harness does not write: which file, which line.
        """


@dataclass(frozen=True)
class Reading:
    """Scores and notes on how they were read.

    Parameters
    ----------
    scores : Scores
        The table.
    notes : tuple of str
        Facts that change what the scores mean: which of several runs was taken, which runs were
        of a subset, what could not be read. One sentence each, for people.
    files : DataFrame
        For logs, what became of every file: columns file, harness, model, task, filter, metric,
        time, rows, taken, note. A file with several runs has several rows.
    """

    scores: Scores
    notes: tuple[str, ...] = ()
    files: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False)
