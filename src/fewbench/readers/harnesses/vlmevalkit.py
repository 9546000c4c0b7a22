"""VLMEvalKit: MODEL/MODEL_DATASET_JUDGE_result.xlsx and other sheets with scores."""

import json
import string
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fewbench._names import some
from fewbench.errors import ReaderError
from fewbench.readers.harness import Unit, Wants
from fewbench.readers.harnesses._vlmevalkit.files import (
    RUN,
    STATUS,
    Status,
    is_predictions,
    is_sheet,
    made_of,
    model_folder,
    predictions_beside,
    read_status,
    split_name,
)
from fewbench.readers.harnesses._vlmevalkit.sheets import Row, read_sheet, text
from fewbench.readers.identity import content_id, field_value
from fewbench.readers.numbers import as_number
from fewbench.readers.run import Rows, Run

CIRCULAR = ("mmbench", "ccbench", "circular", "mmcr")  # datasets asked with options turned
TURN = 1_000_000
HIT = "hit"
SCORES = (HIT, "score")
MATCH = "eval_match"  # of question answering: how well each of the right answers was met
FAILED = "Failed to obtain answer"


class VLMEvalKit:
    """The sheets that an evaluation by VLMEvalKit leaves: .xlsx, .tsv or .json.

    The scores are `hit` and `score`, as the sheets have them; of question answering `hit` is
    taken of the matches, as VLMEvalKit does for its summary. A question that was asked with its
    options turned is one item, right if it was right at every turn. An item is known by its
    index, question, options and right answer together: the picture is not in the sheets, and
    other pictures are asked the same. Where a judge decided, it is the filter.
    """

    name = "vlmevalkit"
    files = "MODEL/MODEL_DATASET_JUDGE_result.xlsx, MODEL_DATASET_auxmatch.xlsx and the like"

    def find(self, files: Sequence[Path]) -> list[Unit]:
        """Return the scored sheets, and predictions of which there are none."""
        sheets = [path for path in files if is_sheet(path)]
        named: dict[Path, list[str]] = {}
        evaluated: set[Path] = set()
        for path in sheets:
            if path.parent not in named:
                named[path.parent] = [other.stem for other in predictions_beside(path)]
            if not is_predictions(path.stem):
                evaluated.add(path.with_name(made_of(path.stem, named[path.parent])[0]))
        units = [path for path in sheets if path.with_suffix("") not in evaluated]
        return [Unit(path, (*_status_beside(path), *predictions_beside(path))) for path in units]

    def read(self, unit: Unit, wants: Wants) -> list[Run]:
        """Return the run that a sheet is."""
        path = unit.path
        status = read_status(path)
        source, judge = path.stem, ""
        if not is_predictions(path.stem):
            stems = [other.stem for other in unit.beside if other.name != STATUS]
            source, judge = made_of(path.stem, stems)
        model, dataset = split_name(source, path, status)
        sheet = read_sheet(path)
        rows, notes = _fill(path, dataset, sheet, wants)
        return [_run(rows, notes, path, (model, dataset, judge), status)]


def _status_beside(path: Path) -> list[Path]:
    status = path.with_name(STATUS)
    return [status] if status.is_file() else []


def _fill(path: Path, dataset: str, sheet: list[Row], wants: Wants) -> tuple[Rows, list[str]]:
    metrics = _metrics(path, sheet)
    rows, notes = Rows(path, place_word="row"), []
    unscored, failed, turned = [], 0, 0
    for index, asked in _by_index(path, dataset, sheet).items():
        number, row = asked[0]
        where = f"{path}, row {number}"
        scores = [_scores(one, metrics, dataset, f"{path}, row {at}") for at, one in asked]
        failed += any(FAILED in text(one.get("prediction")) for _, one in asked)
        if any(value is None for score in scores for value in score.values()):
            unscored.append(index)
            continue
        turned += len(asked) > 1
        rows.append(
            field_value(row, wants.key, where) if wants.key else _content(index, row),
            scores[0] if len(asked) == 1 else {name: _least(scores, name) for name in metrics},
            number,
            own_id=index,
        )
    if unscored:
        notes.append(f"{len(unscored)} items have no score and are left out: {some(unscored)}")
    if turned:
        notes.append(
            f"{turned} items were asked with their options turned; right is what was right at "
            "every turn"
        )
    if failed:
        notes.append(f"{failed} answers are failures of the model's server, scored as answers")
    return rows, notes


def _metrics(path: Path, sheet: list[Row]) -> list[str]:
    """Return the columns that are scores.

    Raises
    ------
    ReaderError
        If there are none, as in predictions that were not evaluated, or no `index`.
    """
    columns = list(sheet[0])
    if "index" not in columns:
        raise ReaderError(
            f"{path}: no column 'index', as VLMEvalKit writes it", hint=f"there is {some(columns)}"
        )
    found = [name for name in SCORES if name in columns]
    if MATCH in columns and HIT not in columns:
        found.append(MATCH)
    if not found:
        raise ReaderError(
            f"{path}: no column 'hit' or 'score': predictions without an evaluation of each item",
            hint="evaluate them with `run.py --mode eval --reuse`, or leave them out with "
            "--damaged skip",
        )
    return [HIT if name == MATCH else name for name in found]


def _by_index(path: Path, dataset: str, sheet: list[Row]) -> dict[str, list[tuple[int, Row]]]:
    """Return the rows of each item, with their numbers: several where options were turned."""
    circular = any(word in dataset.lower() for word in CIRCULAR)
    found: dict[str, list[tuple[int, Row]]] = defaultdict(list)
    seen: set[str] = set()
    for number, row in enumerate(sheet, start=1):
        index = text(row.get("index"))
        if not index:
            raise ReaderError(f"{path}, row {number}: no index")
        if index in seen:
            raise ReaderError(
                f"{path}, row {number}: index {index} for the second time",
                hint="the sheet was joined from two; keep one of them",
            )
        seen.add(index)
        group = text(row.get("g_index"))
        if circular and not group and index.isascii() and index.isdigit():
            group = str(int(index) % TURN) if len(index) < 16 else index
        found[group or index].append((number, row))
    for group, asked in found.items():
        asked.sort(key=lambda pair: text(pair[1].get("index")) != group)  # not turned: first
    return found


def _scores(row: Row, metrics: list[str], dataset: str, where: str) -> dict[str, Any]:
    scores = {name: row.get(name) for name in metrics}
    if HIT in scores and HIT not in row:
        scores[HIT] = _hit_of_matches(row.get(MATCH), dataset, where)
    return scores


def _hit_of_matches(matches: Any, dataset: str, where: str) -> float | None:
    """Return what VLMEvalKit makes of the matches with each right answer, by the dataset."""
    if matches is None:
        return None
    try:
        listed = json.loads(matches) if isinstance(matches, str) else matches
    except (ValueError, RecursionError):
        listed = None
    values = [as_number(value) for value in listed] if isinstance(listed, list) else []
    known = [value for value in values if value is not None and np.isfinite(value)]
    if not known or len(known) < len(values):
        raise ReaderError(f"{where}: {MATCH} is {str(matches)[:40]!r}, not a list of numbers")
    if any(word in dataset for word in ("DocVQA", "InfoVQA")) and "TextVQA" not in dataset:
        nearest = 1 - min(known)  # the match is a distance
        return nearest if nearest >= 0.5 else 0.0
    if any(word in dataset for word in ("ChartQA", "OCRVQA")) and "TextVQA" not in dataset:
        return max(known)
    return sum(known) / len(known)


def _least(scores: list[dict[str, Any]], name: str) -> Any:
    """Return the least of a metric over turns; a value that is no number, if there is one."""
    values = [score[name] for score in scores]
    numbers = [as_number(value) for value in values]
    for value, number in zip(values, numbers, strict=True):
        if number is None or not np.isfinite(number):
            return value
    return min(number for number in numbers if number is not None)


def _content(index: str, row: Row) -> str:
    letters = [letter for letter in string.ascii_uppercase if text(row.get(letter))]
    answer = text(row.get("answer"))
    right = text(row.get(answer)) if answer in letters else answer
    options = [text(row[letter]) for letter in letters]
    return content_id(index, text(row.get("question")), *options, right)


def _run(
    rows: Rows, notes: list[str], path: Path, named: tuple[str, str, str], status: Status
) -> Run:
    model, dataset, judge = named
    folder = path.absolute().parent
    if status.limit:
        notes.append(f"a part of the dataset was run: --limit {status.limit}")
    return rows.run(
        model,
        dataset,
        filter=judge or "none",
        stamp=folder.name if RUN.fullmatch(folder.name) else status.eval_id,
        group=str(model_folder(path)),
        ran=len(rows),
        higher_is_better={HIT: True},
        notes=tuple(notes),
    )
