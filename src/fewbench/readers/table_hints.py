"""Hints on tables: which options name their columns, and what tells repeated rows apart."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote

from fewbench._lazy import pandas as pd
from fewbench._names import some
from fewbench.errors import FewbenchError, ReaderError
from fewbench.readers.files import GZIP
from fewbench.readers.frames import Columns, load_table, table_columns
from fewbench.readers.json_rows import KEYS, flat

KEPT = {
    "task": "--task",
    "date": "--date",
    "family": "--family",
    "role": "--keep-model",
    "cost": "--keep-item",
}
"""Options that keep columns of usual names in a long table."""
NAMED_BY_FILE = "(model)"
"""Column of models that are called as their files."""
TRIAL = re.compile(
    r"(trial|run|epoch|seed|repeat|repetition|attempt|sample|iteration|try)s?"
    r"(_?(id|idx|index|no|num|number))?|timestamp|time|date|n|k|i"
)
"""Usual names of columns that count the answers of one model to an item."""
MOST_SYSTEMS = 40
USUAL = {
    "item": (
        *("item", "id", "item_id", "question_id", "task_id", "instance_id", "sample_id"),
        *("question", "input", "inputs", "prompt"),
    ),
    "model": ("model", "model_name", "model_id"),
    "score": (
        *("score", "correct", "is_correct", "acc", "accuracy", "exact_match", "passed", "success"),
        *("resolved", "is_resolved", "reward"),
    ),
}
"""Usual names of columns, which hints propose."""


TARGETS = {
    *("target", "targets", "gold", "label", "reference", "expected", "expected_output", "truth"),
    *("answer", "correct_answer", "ground_truth", "gold_answer", "reference_answer"),
}
"""Usual names of columns of right answers."""
PREDICTIONS = ("prediction", "pred", "predicted", "output", "response")
"""Usual names of columns of answers, beside those of right answers."""


def systems_in(sources: Sequence[Path], columns: Columns, frame: "pd.DataFrame") -> Iterator[str]:
    """Yield what tells rows of one model and item apart: files, or columns with few values.

    A model run with two settings is two systems more often than one that answered twice.
    """
    every = pd.DataFrame(index=frame.index)
    with suppress(FewbenchError):  # too large to read whole
        rows = [load_table(path, []).to_dict("records") for path in sources]
        tables = [
            pd.DataFrame([flat({str(name): cell for name, cell in row.items()}) for row in of_file])
            for of_file in rows
        ]
        if sum(map(len, tables)) == len(frame):
            names = names_of_files(sources)
            files = [name for name, table in zip(names, tables, strict=True) for _ in table.index]
            every = pd.concat(tables, ignore_index=True)
            every.insert(0, NAMED_BY_FILE, files)
    keys = frame[[columns.model, columns.item]].astype(str).reset_index(drop=True)
    for name in every.columns:
        values = every[name].astype(str)
        shown = list(dict.fromkeys(values))
        known = name in columns.named or TRIAL.fullmatch(str(name).lower())
        if known or not 1 < len(shown) <= MOST_SYSTEMS or keys.assign(by=values).duplicated().any():
            continue
        if name == NAMED_BY_FILE:
            yield f"if each file is a system of its own ({some(shown)}): --model-from file"
            continue
        model = name if columns.model == NAMED_BY_FILE else f"{columns.model},{name}"
        ways = [f"--model {quote(model)} if it names systems"]
        ways += [f"--item {quote(f'{columns.item},{name}')} if it names items"]
        yield f"the column {name!r} tells these rows apart ({some(shown)}): {', '.join(ways)}"


def options_that_keep(columns: Sequence[str]) -> str:
    """Return the options that keep the columns of usual names among these.

    >>> options_that_keep(["cost", "reply", "Task"])
    '--keep-item cost --task Task'
    """
    options = ((name, KEPT.get(name.lower())) for name in columns)
    return " ".join(f"{option} {quote(name)}" for name, option in options if option)


def no_columns_named(source: Path, named: Columns) -> ReaderError:
    """Return the error for a table whose columns are not all named, with the columns it has."""
    table = load_table(source, [])  # says what is wrong with a damaged file
    how = table.attrs.get("found", "")
    columns = table_columns(source)
    fields = ("item", "model", "score")
    usual = {field: name for field in fields if (name := getattr(named, field))}
    which = "too few" if usual else "no"
    for field, names in USUAL.items():
        if field in usual:
            continue
        there = {name.lower(): name for name in columns if name not in usual.values()}
        if found := next((there[name] for name in names if name in there), None):
            usual[field] = found
    if "score" not in usual and "model" not in usual:  # objects of models, with scores in each
        endings = Counter(name.rpartition(".")[2].lower() for name in columns if "." in name)
        if ending := next((name for name in USUAL["score"] if endings[name] > 1), None):
            usual["score"] = f"*.{ending}"
    keys = [name for name in columns if KEYS.fullmatch(name) and table[name].nunique() > 1]
    # Keys of rows of numbers alone are models of a wide table; other rows are answers to items.
    rest = table.drop(columns=[name for name in table if KEYS.fullmatch(str(name))])
    are_answers = "score" in usual or not all(map(pd.api.types.is_numeric_dtype, rest.dtypes))
    for name in keys[::-1]:  # items are within models
        if are_answers and named.item is None and table[name].is_unique:
            usual["item"] = name  # one answer for each key
        else:
            usual.setdefault("item" if are_answers and "item" not in usual else "model", name)
    there = {name.lower(): name for name in columns}
    answers = next((there[name] for name in PREDICTIONS if name in there), None)
    right = next((there[name] for name in there if name in TARGETS), None)
    of_answers = ""
    if answers and right and usual.get("score", answers) == answers:
        usual["score"], of_answers = answers, f" --target {quote(right)}"
    model, item, score = (
        f"--{field} {quote(usual.get(field, 'COLUMN'))}" for field in ("model", "item", "score")
    )
    by_file = "; without --model, the model is called as the file is"
    if {"item", "score"} <= {*usual}:
        options = [item, score + of_answers, *([model] if "model" in usual else [])]
        hint = " ".join([*options, options_that_keep(columns)]).strip()
        hint += "" if "model" in usual or "*" in score else by_file
    else:
        hint = (
            f"long table: {item} {score} {model}{by_file}; wide table: {model} (one row per model) "
            f"or {item} --transposed (one row per item)"
        )
        if not {"item", "id"} & {*columns}:
            hint += "; a file of items, which has no scores, needs a column id"
    return ReaderError(
        f"{source}: {which} columns named; its columns are {some(columns, most=8)}"
        f"{f' ({how})' if how else ''}",
        hint=f"{hint}; in Python, the same as arguments of import_results",
    )


def names_of_files(paths: Sequence[Path], of_folders: bool = False) -> list[str]:
    """Return names of models, one for each file: the parts of paths, or folders, that differ.

    Examples
    --------
    >>> names_of_files([Path("out/gpt-x.jsonl")])
    ['gpt-x']
    >>> names_of_files([Path("out/gpt-x/answers.jsonl"), Path("out/claude-y/answers.jsonl")])
    ['gpt-x', 'claude-y']
    >>> names_of_files([Path("gpt-x.csv"), Path("gpt-x.json")])
    ['gpt-x.csv', 'gpt-x.json']
    """
    if of_folders:
        folders = list(dict.fromkeys(path.absolute().parent for path in paths))
        names = names_of_files([folder.with_name(f"{folder.name}.x") for folder in folders])
        return [names[folders.index(path.absolute().parent)] for path in paths]
    paths = [path.with_suffix("") if path.suffix.lower() == GZIP else path for path in paths]
    stems = [path.absolute().with_suffix("") for path in paths]
    times = Counter(stems)
    parts = [
        [*(path.absolute() if times[stem] > 1 else stem).parts]
        for path, stem in zip(paths, stems, strict=True)
    ]
    if len(parts) == 1:
        return [parts[0][-1]]
    while len({own[0] for own in parts}) == 1 and min(map(len, parts)) > 1:
        parts = [own[1:] for own in parts]
    while len({own[-1] for own in parts}) == 1 and min(map(len, parts)) > 1:
        parts = [own[:-1] for own in parts]
    return ["/".join(own) for own in parts]
