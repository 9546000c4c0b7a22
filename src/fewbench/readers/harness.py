"""The interface of a harness reader: it finds result files and reads them into runs.

A run holds one model's answers to one task, in the same form for every harness. A reader fills
`Rows` row by row and turns them into a `LogRun`. All later steps (which run counts, which metric,
how runs join) do not depend on the harness.
"""

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fewbench._lazy import pandas as pd
from fewbench._names import counted
from fewbench._text import quoted
from fewbench._types import FloatArray
from fewbench.errors import ReaderError
from fewbench.readers.options import OptionTable, unrated
from fewbench.readers.values import as_number, describe, is_unicode, mean_of
from fewbench.scores import Scores
from fewbench.scores.conditions import UNKNOWN_FORM

Columns = Mapping[str, NDArray[Any]]
UNKNOWN, MIXED_UP = -1, -2  # positions that a file does not state, or states wrongly
SCORE = "score:"  # prefix of metric columns
COST = "cost:"  # prefix of columns of costs
SHA256 = re.compile("[0-9a-f]{64}")


NOT_RUN = object()
"""A score of an item that a file lists, and that the model did not run."""


@dataclass(frozen=True)
class LogRun:
    """One model's answers to one task under one filter, from one file.

    Parameters
    ----------
    path : Path
    model, task : str
    columns : mapping of str to ndarray
        One value per row, in memory or loaded on access: `content` (text that identifies the item
        within its task), `position` (int, in the task's split; negative if unknown), `own_id`
        (the harness's id, or ""), `prompt` (uint64 hash of the prompt; 0 if unknown), `key` (uint64
        of `key_of`), `place` (line or row, for messages), `score:METRIC` (float, NaN if not a
        number). If items were run several times, also `trial` (int, from 0 for each item). If every
        row is multiple choice, also `options`, `counts` and `right` (see
        `fewbench.readers.options`). If a reply is cut, also `reply` (see
        `fewbench.scores.replies`). If the file states what answers cost, also `cost:NAME` (float,
        NaN if not stated).
    metrics : tuple of str
    n_rows, n_items : int
        Number of rows, and of items: fewer if rows repeat an item.
    harness : str
        Name of the harness.
    filter : str or None
        How answers were extracted, or None if the file does not state it.
    stamp : str
        Start time as text that sorts by time within one `group`; "" if unknown.
    group, variant : str
        The folder of re-runs, and the settings that make a run a different one. A newer run
        replaces an older run of the same model and task only within one group and variant.
    unfit : mapping
        Metric → first place where the value is not one finite number, and a description of it.
    numeric : frozenset of str
        Metrics that are a number in at least one row.
    total, ran : int or None
        Number of items of the task, and number of items run according to the harness.
    version : str
        Version of the task, or "".
    suite : str
        The task's groups, outermost first, separated by "/"; "" if none.
    settings, task_settings : tuple of (str, str)
        Settings that change answers: of the model, and of the task (few-shot examples, generation
        arguments, and how answers are scored: `fewbench.scores.conditions`). Empty if unknown.
    scorers : mapping of str to str
        Metric → its name and arguments, where the file states them.
    prompt_form : str
        What model-specific text prompts contain: "" for none, a hash of the chat template, or
        `UNKNOWN_FORM`.
    harness_version : str
        Version of the harness, or "".
    higher_is_better : mapping of str to bool
        Metric → direction, where the file states it.
    aggregated : mapping of str to str
        Metric → how the harness aggregates its rows, where that is not their mean.
    layout : str
        Hash of the items in order.
    digests : mapping of str to str
        Hashes of the columns `prompt` and `key`.
    notes : tuple of str
        Notes on this file for the user.
    """

    path: Path
    model: str
    task: str
    columns: Columns = field(repr=False)
    metrics: tuple[str, ...]
    n_rows: int
    n_items: int
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
    scorers: Mapping[str, str] = field(default_factory=dict)
    prompt_form: str = UNKNOWN_FORM
    harness_version: str = ""
    higher_is_better: Mapping[str, bool] = field(default_factory=dict)
    aggregated: Mapping[str, str] = field(default_factory=dict)
    layout: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)
    has_options: bool = False
    place_word: str = "line"
    notes: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether the run has every item of the task."""
        return self.total is not None and self.total == self.n_items

    def numbers(self, metric: str) -> FloatArray:
        """Return a metric of every row; ReaderError unless each is one finite number."""
        if metric not in self.metrics:
            raise ReaderError(
                f"{self.path}: no row has the metric {metric!r}",
                hint=f"metrics in this file: {', '.join(self.metrics) or 'none'}",
            )
        if metric in self.unfit:
            place, what = self.unfit[metric]
            raise ReaderError(
                f"{self.path}, {self.place_word} {place}: metric {metric!r} of task "
                f"{self.task!r} is {what}, not one finite number",
                hint="pass another --metric, or exclude the task: --skip-tasks "
                f"{quoted(self.task)}",
            )
        return np.asarray(self.columns[SCORE + metric])

    def with_metric(self, metric: str, name: str) -> "LogRun":
        """Return the run with a metric under the name that it has in other runs."""

        def renamed(values: Mapping[str, Any]) -> dict[str, Any]:
            return {name if own == metric else own: value for own, value in values.items()}

        scorers = renamed(self.scorers)
        if scorers.get(name, "").startswith(metric):
            scorers[name] = name + scorers[name].removeprefix(metric)
        return replace(
            self,
            columns={**self.columns, SCORE + name: self.columns[SCORE + metric]},
            metrics=tuple(name if own == metric else own for own in self.metrics),
            unfit=renamed(self.unfit),
            numeric=frozenset(renamed(dict.fromkeys(self.numeric))),
            scorers=scorers,
            higher_is_better=renamed(self.higher_is_better),
            aggregated=renamed(self.aggregated),
            notes=(*self.notes, f"its metric {metric!r} counts as {name!r}"),
        )


@dataclass
class Rows:
    """Rows of a result file, collected one by one and turned into a `LogRun`.

    `place_word` is the word for a place in the file: line, row, sample …

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
    keys: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=dict)
    numeric: set[str] = field(default_factory=set)
    unfit: dict[str, tuple[int, str]] = field(default_factory=dict)
    options: list[OptionTable] | None = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    trials: list[int] = field(default_factory=list)
    costs: dict[str, list[float]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.places)

    def append(
        self,
        content: str,
        scores: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        place: int,
        *,
        trial: int = 0,
        position: int = UNKNOWN,
        own_id: str = "",
        prompt: str = "",
        answer: str | None = None,
        choices: Sequence[str] = (),
        options: OptionTable | None = None,
        reply: str = "",
        part: str = "",
        costs: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a row, or one for each time that the harness ran the item.

        Parameters
        ----------
        content : str
            Text that identifies the item within its task; see `fewbench.readers.values`.
        scores : mapping of str to anything, or sequence of these
            Metric → raw value; several if the harness ran the item so often. A value that is not a
            number is an error only if its metric is used. `NOT_RUN` says that the file lists the
            item, and the model did not run it.
        place : int
            Line or row in the file, from 1.
        prompt : str
            The prompt or its hash; "" if unknown.
        answer : str, optional
            The right answer or its hash.
        choices : sequence of str
            Texts of the options in order, none if unknown.
        options : OptionTable, optional
            The model's log-likelihood of each option. The run has options only if all rows do.
        reply : str
            Whether the reply is cut, filtered or another model's.
        part : str
            The group of the task's items that it belongs to, which then is a task of its own.
        costs : mapping of str to anything, optional
            What this answer cost: `cost` (money), `tokens` and others. Values that are not numbers
            of 0 or more are left out.
        """
        if not isinstance(scores, Mapping):
            described: dict[str, Any] = {
                "position": position,
                "own_id": own_id,
                "prompt": prompt,
                "answer": answer,
                "choices": choices,
                "options": options if len(scores) == 1 else None,
                "reply": reply,
                "part": part,
                "costs": costs,
            }
            for number, of_trial in enumerate(_alike(scores)):
                self.append(content, of_trial, place, trial=number, **described)
            return
        for metric in self.values.keys() - scores.keys():
            self.values[metric].append(math.nan)
            self.unfit.setdefault(metric, (place, "absent"))
        for metric, raw in scores.items():
            if metric not in self.values:
                self.values[metric] = [math.nan] * len(self)
                if len(self):
                    self.unfit[metric] = (self.places[0], "absent")
            value = as_number(raw)
            if value is not None or raw is NOT_RUN:
                self.numeric.add(metric)
            if raw is not NOT_RUN and (value is None or not math.isfinite(value)):
                self.unfit.setdefault(metric, (place, describe(raw)))
            self.values[metric].append(math.nan if value is None else value)
        for name in self.costs.keys() | (costs or {}).keys():
            cost = as_number((costs or {}).get(name))
            is_known = cost is not None and math.isfinite(cost) and cost >= 0
            column = self.costs.setdefault(name, [math.nan] * len(self))
            column.append(float(cost or 0) if is_known else math.nan)
        self.contents.append(content)
        self.positions.append(position)
        self.own_ids.append(own_id)
        self.prompts.append(_hashed(prompt))
        self.keys.append(key_of(answer, choices))
        self.places.append(place)
        self.replies.append(reply)
        self.parts.append(part)
        self.trials.append(trial)
        if self.options is not None:
            if options is None:
                self.options = None
            else:
                self.options.append(options)

    def run(self, model: str, task: str, **known: Any) -> LogRun:
        """Return the rows as a run; `known` sets further fields of `LogRun`.

        Raises
        ------
        ReaderError
            If there are no rows, the model or task has no name, or an id is not valid Unicode.
        """
        if not len(self):
            raise empty(self.path)
        for what, name in (("model", model), ("task", task)):
            if not (isinstance(name, str) and name.strip()):
                raise ReaderError(f"{self.path}: the {what} has no name")
        for texts in (self.contents, self.own_ids):
            if not is_unicode("".join(texts)):
                at, text = next((at, text) for at, text in enumerate(texts) if not is_unicode(text))
                raise ReaderError(
                    f"{self.path}, {self.place_word} {self.places[at]}: the item's id {text!r} is "
                    "not valid Unicode",
                    hint="the id contains half of a surrogate pair; write the file as UTF-8",
                )
        if self.options:
            known |= self._without_unrated(known)
        columns: dict[str, NDArray[Any]] = {
            "content": np.array(self.contents),
            "position": np.array(self.positions, dtype=np.int64),
            "own_id": np.array(self.own_ids),
            "prompt": np.array(self.prompts, dtype=np.uint64),
            "key": np.array(self.keys, dtype=np.uint64),
            "place": np.array(self.places, dtype=np.int64),
        }
        columns |= {SCORE + name: np.array(column) for name, column in self.values.items()}
        columns |= {COST + name: np.array(column) for name, column in self.costs.items()}
        if self.options:
            columns |= OptionTable.columns(self.options)
        if any(self.replies):
            columns["reply"] = np.array(self.replies)
        if any(self.parts):
            columns["part"] = np.array(self.parts)
        if any(self.trials):
            columns["trial"] = np.array(self.trials, dtype=np.int64)
        run = LogRun(
            path=self.path,
            model=model,
            task=task,
            columns=columns,
            metrics=tuple(self.values),
            n_rows=len(self),
            n_items=self.n_items,
            group=str(self.path.absolute().parent),
            unfit=self.unfit,
            numeric=frozenset(self.numeric),
            layout=_digest(columns, "content", "position", "own_id", "trial"),
            digests={name: _digest(columns, name) for name in ("prompt", "key")},
            has_options=bool(self.options),
            place_word=self.place_word,
        )
        return replace(run, **known)

    def _without_unrated(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """Drop rows whose options the model did not rate; return fields that change.

        ReaderError if none is left.
        """
        assert self.options is not None
        reasons = unrated([row.likelihoods for row in self.options])
        if not reasons:
            return {}
        first, why = next(iter(reasons.items()))
        where = f"{self.place_word} {self.places[first]}"
        if len(reasons) == len(self):
            raise ReaderError(
                f"{self.path}: the model rated no options: {why} ({where}, and all others)",
                hint="check the model's weights; leave the file out, or pass --damaged skip",
            )
        kept = [at for at in range(len(self)) if at not in reasons]
        for name in _PER_ROW:
            column = getattr(self, name)
            setattr(self, name, [column[at] for at in kept])
        for by_name in (self.values, self.costs):
            by_name |= {name: [column[at] for at in kept] for name, column in by_name.items()}
        note = (
            f"{self.path}: {counted(len(reasons), 'item')} count as not run, as the model rated no "
            f"options: {why} ({where})"
        )
        ran = known.get("ran")
        changed = {"notes": (*known.get("notes", ()), note)}
        return changed if ran is None else changed | {"ran": ran - len(reasons)}

    @property
    def n_items(self) -> int:
        """How many items the rows are of: rows of one place, and trials, are of one item."""
        distinct = set(self.positions)
        if len(distinct) == len(self) and min(distinct) >= 0:  # nearly always
            return len(self)
        places = zip(self.contents, self.positions, self.own_ids, self.trials, strict=True)
        firsts = [place[:3] for place in places if not place[3]]
        known = {(text, at if at >= 0 else own_id) for text, at, own_id in firsts
                 if at >= 0 or own_id}  # fmt: skip
        # Equal documents of unknown place are distinguished by their order.
        return len(known) + sum(at < 0 and not own_id for _, at, own_id in firsts)


def _alike(trials: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return the trials of an item if they have the same metrics, else the mean of each metric."""
    metrics = dict.fromkeys(name for of_trial in trials for name in of_trial)
    if all(metrics.keys() == of_trial.keys() for of_trial in trials):
        return trials
    every = {name: [each[name] for each in trials if name in each] for name in metrics}
    return [{name: mean_of(values) for name, values in every.items()}]


_PER_ROW = (
    *("contents", "positions", "own_ids", "trials"),
    *("prompts", "keys", "places", "options", "replies", "parts"),
)


def key_of(answer: str | None, choices: Sequence[str] = ()) -> int:
    """Return the key of an item: 32 bits of its right answer's hash, then 32 of its options'.

    Unknown ones are 0. Spaces around an option do not count. `key_text` makes a key a text.

    Examples
    --------
    >>> key_text(key_of("4", ["3", "4"])), key_text(key_of(None, ["3", " 4"])), key_of(None)
    ('711d7b06/300ecc10', '/300ecc10', 0)
    """
    return _key_of(answer, tuple(choices))


@lru_cache(maxsize=1 << 16)
def _key_of(answer: str | None, choices: tuple[str, ...]) -> int:
    texts = "\x1f".join(choice.strip() for choice in choices)
    halves = (_half(answer), _half(texts) if choices else 0)
    return halves[0] << 32 | halves[1]


def key_text(key: int) -> str:
    """Return a key as the table holds it, "" if nothing is known."""
    halves = (key >> 32, key & 0xFFFFFFFF)
    return "/".join(f"{half:08x}" if half else "" for half in halves) if key else ""


def _half(text: str | None) -> int:
    return 0 if text is None else _hashed(text or "\0") >> 32 or 1


def empty(path: Path) -> ReaderError:
    """Return the error for a file without answers."""
    return ReaderError(
        f"{path}: empty, no answer was logged", hint="delete the file", kind="unanswered"
    )


def _hashed(text: str) -> int:
    if not text:
        return 0
    if SHA256.fullmatch(text):  # keeps the digits by which a user finds it in the log
        return int(text[:16], 16) or 1
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") or 1


def _digest(columns: Columns, *names: str) -> str:
    digest = hashlib.sha256()
    for name in [name for name in names if name in columns]:
        column = columns[name]
        digest.update(f"{column.dtype} {len(column)}".encode())
        digest.update(np.ascontiguousarray(column).data)
    return digest.hexdigest()


@dataclass(frozen=True)
class LogUnit:
    """A file of answers (`path`) and the files that describe the same run (`beside`)."""

    path: Path
    beside: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Wants:
    """The user's settings for every reader.

    Parameters
    ----------
    key : str, optional
        Item field that identifies an item, such as `id` or `question_id`, instead of a hash of its
        content.
    salvage : bool
        Whether to read the whole rows of a truncated file.
    replies : bool
        Whether to see how each reply ended, which may take long.
    trials : bool
        Whether all answers to an item are wanted, and not what the log reduces them to.
    errors : {"wrong", "not-run"}, optional
        What answers count as that broke without the model's fault, as far as the log tells it. By
        default as the benchmark counts them.
    """

    key: str | None = None
    salvage: bool = False
    replies: bool = False
    trials: bool = False
    errors: str | None = None

    def broken(self, usual: str) -> Any:
        """Return the score of an answer that broke; `usual` is how the benchmark counts it."""
        return 0.0 if (self.errors or usual) == "wrong" else NOT_RUN


class Harness(Protocol):
    """A harness whose result files fewbench reads.

    To add one, write a file with such a class and a line in `fewbench.readers.harnesses`. `name` is
    the value of `--from`. `files` describes the harness's files in messages.
    """

    name: str
    files: str

    def find(self, files: Sequence[Path]) -> list[LogUnit]:
        """Return this harness's units among files, in their order.

        Must be cheap, as it gets every file below the user's folders: decide by name, then by
        `head`. Must not raise for files of other programs. Include damaged files of the harness;
        `read` reports them.
        """

    def read(self, unit: LogUnit, wants: Wants) -> list[LogRun]:
        """Return one run for each model, task and filter in a unit.

        Raises
        ------
        ReaderError
            If a file is damaged or not what the harness writes. Names the file and line.
        """


@runtime_checkable
class WritesTotals(Protocol):
    """A harness that also writes files with totals only; `remedy` is advice."""

    name: str
    remedy: str

    def is_totals(self, path: Path) -> bool:
        """Whether a file has a run's totals without the answers to single items."""


@dataclass(frozen=True)
class Reading:
    """Scores and notes on how they were read.

    Parameters
    ----------
    scores : Scores
    notes : tuple of str
        One sentence per fact that changes what the scores mean: which run was used, which runs
        are partial, what could not be read.
    files : DataFrame
        For logs, one row per run: columns file, harness, model, task, filter, metric, time, rows,
        taken, note.
    """

    scores: Scores
    notes: tuple[str, ...] = ()
    files: "pd.DataFrame" = field(default_factory=lambda: pd.DataFrame(), repr=False)
