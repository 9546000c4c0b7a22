"""Every result file that stands here, changed in every way that files get broken.

A changed file is answered by a reading or by an error of ours, never by another exception. What is
known of the answer is held against it: answers that were cut short are an error that names the
file, and a file that says the same in other bytes has the same scores.
"""

import atexit
import copy
import io
import json
import math
import random
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fewbench.errors import FewbenchError
from fewbench.readers import Reading, import_results
from fewbench.readers.gather import find_units
from fewbench.readers.harness import Harness, LogUnit, Wants
from fewbench.readers.harnesses import HARNESSES

FIXTURES = Path(__file__).parent / "fixtures"
WHOLE_OR_TORN = (".json", ".jsonl", ".parquet", ".xlsx", ".eval")  # a cut of these can be seen
LAID_OUT = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, LAID_OUT, ignore_errors=True)
EACH = 1  # changes of a file that are drawn by its name, besides cutting it
UNKNOWN = "no result files of a known kind"  # too little is left to see whose the file was


@dataclass(frozen=True)
class Case:
    """A file, and what is read together with it."""

    root: Path
    file: Path
    harness: Harness | None = None
    unit: LogUnit | None = None

    def copied_to(self, folder: Path) -> Path:
        """Copy all that is read together, with its folders; return the copy of the file."""
        together = (self.unit.path, *self.unit.beside) if self.unit else (self.file,)
        for path in together:
            target = folder / path.relative_to(self.root.parent)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        return folder / self.file.relative_to(self.root.parent)

    def __str__(self) -> str:
        return str(self.file.relative_to(self.root.parent))


def find_roots() -> list[Path]:
    """Return the folders of all harnesses; what is kept as an archive is laid out first."""
    roots = [path for path in sorted(FIXTURES.glob("*")) if path.is_dir()]
    for archive in sorted(FIXTURES.rglob("*.zip")):
        root = LAID_OUT / archive.parent.name / archive.stem
        shutil.unpack_archive(archive, root)
        roots.append(root)
    return roots


def find_cases() -> list[Case]:
    roots = find_roots()
    found = []
    for root in roots:
        files = [path for path in sorted(root.rglob("*")) if path.is_file()]
        by_file: dict[Path, tuple[Harness, LogUnit]] = {}
        for harness, unit in find_units(files)[0]:
            for path in (unit.path, *unit.beside):
                by_file.setdefault(path, (harness, unit))
        found += [Case(root, path, *by_file.get(path, (None, None))) for path in files]
    return found


CASES = find_cases()[::2]  # the files of a harness are much alike
READ = [case for case in CASES if case.unit]


def options_of(case: Case) -> dict[str, str]:
    """What has to be named to read a unit, if anything has."""
    if case.harness is None or case.unit is None:
        return {}
    runs = case.harness.read(case.unit, Wants())
    numeric = {name: None for run in runs for name in run.metrics if name in run.numeric}
    fit = [name for name in numeric if not any(name in run.unfit for run in runs)]
    filters = {run.filter: None for run in runs if run.filter is not None}
    named = {"metric": ",".join(fit or numeric), "filter": ",".join(filters)}
    return {option: names for option, names in named.items() if names}


@cache
def untouched(case: Case) -> tuple[Reading | None, dict[str, str]]:
    """Read a case as it is; None if even that is an error, as of an optional part."""
    with tempfile.TemporaryDirectory() as folder:
        case.copied_to(Path(folder))
        try:
            options = options_of(case)
            return (import_results(folder, **options) if case.unit else None), options
        except FewbenchError:
            return None, {}


def answered(case: Case, change: Callable[[bytes], bytes], tmp_path: Path) -> Reading | str:
    """Read a case with one of its files changed; the text of the error, if it is one of ours."""
    _, options = untouched(case)
    changed = case.copied_to(tmp_path)
    changed.write_bytes(change(changed.read_bytes()))
    try:
        reading = import_results(tmp_path if case.unit else changed, **options)
    except FewbenchError as error:
        return str(error)
    assert isinstance(reading, Reading)
    values = reading.scores.values
    assert values.shape == (len(reading.scores.model_ids), len(reading.scores.item_ids))
    assert not np.isinf(values).any()
    return reading


# Changes: each takes bytes and a source of chance, and gives bytes.


def cut(data: bytes, chance: random.Random) -> bytes:
    """Cut what ends in the midst of it: not only a line's end is lost."""
    end = len(data.rstrip())
    if data[:1] not in b"[{" or b"\n{" not in data:
        return data[: chance.randrange(end)]
    starts = [0, *(at.end() for at in re.finditer(rb"\n", data[:end]))]
    last = chance.choice(starts)  # of JSON lines a whole one must not be the last
    stop = data.find(b"\n", last)
    return data[: chance.randrange(last + 1, min(end, stop) if stop > 0 else end)]


def flip(data: bytes, chance: random.Random) -> bytes:
    found = bytearray(data or b"\0")
    for _ in range(chance.choice((1, 1, 3, 30))):
        found[chance.randrange(len(found))] ^= 1 << chance.randrange(8)
    return bytes(found)


def drop(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + data[at + chance.choice((1, 2, 50)) :]


def insert(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    junk = (b"\xff\xfe", b"\xc3", b"\0", b"}", b"]", b'"', b"{", b",", b"\xed\xa0\x80", b"9" * 400)
    return data[:at] + chance.choice(junk) + data[at:]


def empty(data: bytes, chance: random.Random) -> bytes:
    return chance.choice((b"", b"\n", b"{}", b"[]", b"null", b"\xff" * 9, b"[" * 20_000))


def repeat_line(data: bytes, chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    return b"".join([*lines, chance.choice(lines)])


def with_mark(data: bytes, chance: random.Random) -> bytes:
    return b"\xef\xbb\xbf" + data


def with_returns(data: bytes, chance: random.Random) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def restructure(data: bytes, chance: random.Random) -> bytes:
    """Change a field of JSON, of a line of JSON, or a column of a table."""
    if data[:4] == b"PAR1":
        return _other_columns(data, chance)
    try:
        return _changed_json(data, chance)
    except (ValueError, RecursionError):
        pass
    lines = data.splitlines(keepends=True)
    at = chance.randrange(len(lines)) if lines else 0
    try:
        return b"".join([*lines[:at], _changed_json(lines[at], chance) + b"\n", *lines[at + 1 :]])
    except (ValueError, RecursionError, IndexError):
        return _other_cells(data, chance)


def _changed_json(data: bytes, chance: random.Random) -> bytes:
    tree = json.loads(data)
    for _ in range(chance.choice((1, 1, 4))):
        tree = _changed(tree, chance)
    return json.dumps(tree).encode()


def _changed(tree: object, chance: random.Random) -> object:
    """Go down to some place and change what is there."""
    if not isinstance(tree, dict | list) or not tree or chance.random() < 0.1:
        return _another(tree, chance)
    tree = copy.copy(tree)
    key = chance.choice(list(tree) if isinstance(tree, dict) else range(len(tree)))
    what = chance.random()
    if what < 0.6:
        tree[key] = _changed(tree[key], chance)
    elif what < 0.75:
        del tree[key]
    elif isinstance(tree, dict):
        tree[chance.choice(("", "renamed", "0", "é\ud800"))] = tree.pop(key)
    else:
        tree.insert(chance.randrange(len(tree) + 1), tree[key])
    return tree


def _another(value: object, chance: random.Random) -> object:
    odd = (None, True, -1, 10**400, math.nan, math.inf, 1e300, "", "x", "NaN", "1", [], {}, [[]])
    return chance.choice((*odd, [value], {"value": value}, str(value), {"0": [value, value]}))


def _other_columns(data: bytes, chance: random.Random) -> bytes:
    table = pq.read_table(io.BytesIO(data))
    at = chance.randrange(table.num_columns)
    name = table.column_names[at]
    what = chance.randrange(5)
    if what == 0:
        table = table.drop_columns([name])
    elif what == 1:
        table = table.rename_columns([*table.column_names[:at], "x", *table.column_names[at + 1 :]])
    elif what == 2:
        table = pa.concat_tables([table, table.slice(0, 1)])
    elif what == 3:
        nulls = pa.nulls(len(table), table.schema.field(at).type)
        table = table.set_column(at, name, nulls)
    else:
        texts = pa.array([str(value) for value in table.column(at).to_pylist()])
        table = table.set_column(at, name, texts)
    kept = io.BytesIO()
    pq.write_table(table, kept)
    return kept.getvalue()


def _other_cells(data: bytes, chance: random.Random) -> bytes:
    rows = [line.split(b"\t") for line in data.split(b"\n")]
    row = chance.choice(rows)
    at = chance.randrange(len(row))
    if chance.random() < 0.5:
        row[at] = chance.choice((b"", b'"x"', b'"nan"', b'"1e999"', b'"', b'"[[]]"'))
    else:
        rows = [[cell for n, cell in enumerate(cells) if n != at] for cells in rows]
    return b"\n".join(b"\t".join(cells) for cells in rows)


CHANGES = (flip, drop, insert, empty, repeat_line, with_mark, with_returns, restructure)
SAME = (with_mark, with_returns)  # if they are read, then as what they say


def hold(case: Case, change: Callable[[bytes, random.Random], bytes], seed: str, folder: Path):
    """Change a case and hold what is known about the answer against it."""
    answer = answered(case, lambda data: change(data, random.Random(seed)), folder)
    whole, _ = untouched(case)
    is_text = case.file.suffix not in (".parquet", ".xlsx", ".eval")
    if whole is None or isinstance(answer, str):
        return answer
    is_answers = case.file == case.unit.path
    if change is cut and is_answers and case.file.suffix in WHOLE_OR_TORN:
        pytest.fail(f"{case}, cut short, was read as if it were whole")
    # A companion may be cut where it is not needed, but never change what is read.
    same = change in SAME or (change is repeat_line and case.file.suffix in (".jsonl", ".tsv"))
    if (same and is_text) or (change is cut and not is_answers):
        assert answer.scores.model_ids == whole.scores.model_ids
        assert np.array_equal(answer.scores.values, whole.scores.values, equal_nan=True)
    return answer


def test_there_is_enough_to_break():
    assert len(READ) * (EACH + 1) >= 100
    assert {case.harness.name for case in READ} == set(HARNESSES)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_changed_by_chance_or_cut_short(case, tmp_path):
    chance = random.Random(str(case))
    for number, change in enumerate(chance.sample(CHANGES, EACH)):
        hold(case, change, f"{case} {number}", tmp_path / str(number))
    if case.unit is not None:
        answer = hold(case, cut, str(case), tmp_path / "cut")
        if isinstance(answer, str) and untouched(case)[0] is not None:
            assert any(told in answer for told in (case.file.name, case.unit.path.name, UNKNOWN))
