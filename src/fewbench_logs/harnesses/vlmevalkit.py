"""VLMEvalKit: MODEL/MODEL_DATASET_JUDGE_result.xlsx and other sheets with scores."""

import csv
import importlib
import io
import re
import string
import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fewbench.errors import MissingExtraError, ReaderError, first_line
from fewbench.readers.files import head, load_json
from fewbench.readers.harness import LogRun, LogUnit, Rows, Wants, empty
from fewbench.readers.values import as_number, content_id, field_value
from fewbench.support import check_zip, counted, loads, some

SHEETS = (".xlsx", ".tsv", ".json")  # PRED_FORMAT
STATUS = "status.json"
RUN_FOLDER = re.compile(r"T\d{8}[-_]\w+")  # the folder of one run, below that of the model
# An evaluation adds the judge, if any, and a word to the name of the predictions.
MADE = re.compile(
    r"(?P<predictions>.+?)(?:_(?P<judge>exact_matching|extract_matching|openai|gpt4|"
    r"(?:chatgpt|gpt|qwen|deepseek)-.+?))?(?P<word>_results?|_auxmatch|_detailed_results)?"
)
# Intermediate sheets of an evaluation.
HALF_WAY = re.compile(r".*_(vanilla(_\w+)?_result|tmp|checkpoint|PREV|processed|response|rating)")
COLUMNS = (b"question", b"prediction", b"hit", b"score", b"eval_match")
WHOLE = re.compile(r"(-?\d{1,15})\.0+")
LONGEST = 2**30  # characters of an answer, which csv would bound by 131072
Row = dict[str, Any]
CIRCULAR = ("mmbench", "ccbench", "circular", "mmcr")  # datasets asked with options turned
TURN = 1_000_000
HIT = "hit"
SCORES = (HIT, "score")
MATCH = "eval_match"  # of question answering: how well each of the right answers was met
FAILED = "Failed to obtain answer"


class _Status(NamedTuple):
    """The status.json of a run; older versions have none."""

    model: str = ""
    eval_id: str = ""
    limit: str = ""


def _model_folder(path: Path) -> Path:
    folder = path.absolute().parent
    return folder.parent if RUN_FOLDER.fullmatch(folder.name) else folder


def _is_sheet(path: Path) -> bool:
    suffix = path.suffix.lower()
    if suffix not in SHEETS or path.name == STATUS or HALF_WAY.fullmatch(path.stem):
        return False
    if not path.name.startswith(f"{_model_folder(path).name}_"):
        match = MADE.fullmatch(path.stem)
        is_judged = match and (match["judge"] or match["word"] == "_auxmatch")
        if not is_judged and b'"eval_id"' not in head(path.parent / STATUS):
            return False
    start = head(path)
    if suffix == ".xlsx":
        return True
    if suffix == ".json":
        start = start.lstrip()
        return start[:1] == b"[" and b'"index"' in start and b'"question"' in start
    first = start.partition(b"\n")[0]
    return b"index" in first and sum(column in first for column in COLUMNS) > 1


def _is_predictions(stem: str) -> bool:
    """Whether a name is of predictions, not of their evaluation.

    Examples
    --------
    >>> _is_predictions("m_MMBench"), _is_predictions("m_MMBench_exact_matching_result")
    (True, False)
    """
    match = MADE.fullmatch(stem)
    return match is None or (match["judge"] is None and match["word"] is None)


def made_of(stem: str, stems: Iterable[str]) -> tuple[str, str]:
    """Return the predictions from which a sheet was made, and the judge ("" if none).

    `stems` are the names of predictions in the folder, which show where the dataset's name ends.

    Examples
    --------
    >>> made_of("m_a_b_mistral_result", ["m_a", "m_a_b"]), made_of("m_a_gpt-4o_result", [])
    (('m_a_b', 'mistral'), ('m_a', 'gpt-4o'))
    """
    prefixes = [name for name in stems if stem.startswith(f"{name}_")]
    match = MADE.fullmatch(stem)
    if not prefixes:
        return (match["predictions"], match["judge"] or "") if match else (stem, "")
    predictions = max(prefixes, key=len)
    end = len(stem) - len(match["word"] or "") if match else len(stem)
    return predictions, stem[len(predictions) : end].strip("_")


def _predictions_beside(path: Path) -> list[Path]:
    there = (other for other in path.parent.glob("*") if other.suffix.lower() in SHEETS)
    return sorted(o for o in there if _is_predictions(o.stem) and o.name != STATUS and o != path)


def _split_name(predictions: str, path: Path, status: _Status) -> tuple[str, str]:
    """Return model and dataset; both may hold underscores, so the folder decides."""
    for model in (status.model, _model_folder(path).name):
        if model and predictions.startswith(f"{model}_"):
            return model, predictions.removeprefix(f"{model}_")
    raise ReaderError(
        f"{path}: its name does not separate model and dataset",
        hint="keep it in VLMEvalKit's folder, which has the name of the model",
        kind="name",
    )


def _read_status(path: Path) -> _Status:
    beside = path.parent / STATUS
    data = load_json(beside) if beside.is_file() else {}
    if not isinstance(data, dict):
        return _Status()
    model, argv = data.get("model_name"), data.get("argv")
    words = [str(word) for word in argv] if isinstance(argv, list) else []
    limit = words[words.index("--limit") + 1 :] if "--limit" in words else []
    return _Status(
        model if isinstance(model, str) else "",
        str(data.get("eval_id") or ""),
        limit[0] if limit else "",
    )


def _text(value: Any) -> str:
    """Return a cell as text: whole numbers without ".0", as sheets turn 3 into 3.0.

    Examples
    --------
    >>> _text(3.0), _text(" 3.0"), _text("Oslo "), _text(None), _text(0.5)
    ('3', '3', 'Oslo', '', '0.5')
    """
    text = "" if value is None else str(value).strip()
    whole = WHOLE.fullmatch(text)
    return whole[1] if whole else text


def _read_xlsx(path: Path) -> list[Row]:
    try:
        openpyxl: Any = importlib.import_module("openpyxl")
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: reading .xlsx files needs openpyxl",
            hint="pip install 'fewbench[vlmevalkit]'; or run VLMEvalKit with PRED_FORMAT=tsv",
        ) from error
    check_zip(path)
    try:
        content = io.BytesIO(path.read_bytes())  # openpyxl leaves a torn file open
    except OSError as error:
        raise ReaderError(f"{path}: cannot be read ({error.strerror})", kind="damaged") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and dates that do not matter here
            book = openpyxl.load_workbook(content, read_only=True, data_only=True)
            sheet = book.worksheets[0]
            sheet.reset_dimensions()  # a wrong stated size would cut rows off
            lines = [list(line) for line in sheet.iter_rows(values_only=True)]
    except Exception as error:  # zip, XML and openpyxl's own, by what is broken
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise ReaderError(
            f"{path}: not a whole .xlsx file ({reason})",
            hint="copy it again, or delete it",
            kind="damaged",
        ) from error
    return _with_header(path, lines)


def _read_tsv(path: Path) -> list[Row]:
    usual = csv.field_size_limit(LONGEST)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [line for line in csv.reader(file, delimiter="\t", strict=True) if line]
    except OSError as error:
        raise ReaderError(f"{path}: cannot be read ({error.strerror})", kind="damaged") from error
    except (ValueError, csv.Error) as error:  # the decoder's and the parser's
        raise ReaderError(
            f"{path}: not a whole table with tabs ({first_line(error)})",
            hint="copy it again, or delete it",
            kind="damaged",
        ) from error
    finally:
        csv.field_size_limit(usual)
    for number, line in enumerate(lines[1:], start=1):
        if len(line) < len(lines[0]):
            raise ReaderError(
                f"{path}, row {number}: fewer cells than the table has columns",
                hint="the file is torn; copy it again",
            )
    return _with_header(path, lines)


def _read_json(path: Path) -> list[Row]:
    rows = load_json(path)
    if not isinstance(rows, list):
        raise ReaderError(f"{path}: not a list of rows, as VLMEvalKit writes .json")
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise ReaderError(f"{path}, row {number}: not an object")
    return rows


def _with_header(path: Path, lines: Sequence[list[Any]]) -> list[Row]:
    if not lines:
        return []
    names = [_text(name) for name in lines[0]]
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise ReaderError(f"{path}: two columns are named {twice[0]!r}")
    rows = []
    for number, line in enumerate(lines[1:], start=1):
        if len(line) > len(names) and any(cell not in (None, "") for cell in line[len(names) :]):
            raise ReaderError(f"{path}, row {number}: more cells than the table has columns")
        cells = zip(names, line, strict=False)
        row = {name: None if cell == "" else cell for name, cell in cells if name}
        if any(cell is not None for cell in row.values()):
            rows.append(row)
    return rows


class VLMEvalKit:
    """Read the sheets of a VLMEvalKit evaluation: .xlsx, .tsv or .json.

    Scores are `hit` and `score`; for question answering, `hit` is computed from the matches as in
    VLMEvalKit's summary. A question asked with rotated options is one item, right if every rotation
    is. An item is identified by its index, question, options and right answer, as sheets lack the
    picture. A judge becomes the filter.
    """

    name = "vlmevalkit"
    files = "MODEL/MODEL_DATASET_JUDGE_result.xlsx, MODEL_DATASET_auxmatch.xlsx and the like"

    def find(self, files: Sequence[Path]) -> list[LogUnit]:
        """Return the scored sheets, and predictions of which there are none."""
        sheets = [path for path in files if _is_sheet(path)]
        named: dict[Path, list[str]] = {}
        evaluated: set[Path] = set()
        for path in sheets:
            if path.parent not in named:
                named[path.parent] = [other.stem for other in _predictions_beside(path)]
            if not _is_predictions(path.stem):
                evaluated.add(path.with_name(made_of(path.stem, named[path.parent])[0]))
        units = [path for path in sheets if path.with_suffix("") not in evaluated]
        status = {path: path.with_name(STATUS) for path in units}
        return [
            LogUnit(path, (*([beside] if beside.is_file() else []), *_predictions_beside(path)))
            for path, beside in status.items()
        ]

    def read(self, unit: LogUnit, wants: Wants) -> list[LogRun]:
        """Return the run that a sheet is."""
        path = unit.path
        status = _read_status(path)
        source, judge = path.stem, ""
        if not _is_predictions(path.stem):
            stems = [other.stem for other in unit.beside if other.name != STATUS]
            source, judge = made_of(path.stem, stems)
        model, dataset = _split_name(source, path, status)
        readers = {".xlsx": _read_xlsx, ".tsv": _read_tsv, ".json": _read_json}
        sheet = readers[path.suffix.lower()](path)
        if not sheet:
            raise empty(path)
        rows, notes = _fill(path, dataset, sheet, wants)
        if status.limit:
            notes.append(f"partial run: --limit {status.limit}")
        folder = path.absolute().parent
        run = rows.run(
            model,
            dataset,
            filter=judge or "none",
            stamp=folder.name if RUN_FOLDER.fullmatch(folder.name) else status.eval_id,
            group=str(_model_folder(path)),
            ran=len(rows),
            higher_is_better={HIT: True},
            notes=tuple(notes),
        )
        return [run]


def _fill(path: Path, dataset: str, sheet: list[Row], wants: Wants) -> tuple[Rows, list[str]]:
    metrics = _metrics(path, sheet)
    rows, notes = Rows(path, place_word="row"), []
    unscored, failed, turned = [], 0, 0
    for index, asked in _by_index(path, dataset, sheet).items():
        number, row = asked[0]
        where = f"{path}, row {number}"
        scores = [_scores(turn, metrics, dataset, f"{path}, row {at}") for at, turn in asked]
        failed += any(FAILED in _text(turn.get("prediction")) for _, turn in asked)
        if any(value is None for score in scores for value in score.values()):
            unscored.append(index)
            continue
        turned += len(asked) > 1
        options, right = _key(row)
        content = content_id(index, _text(row.get("question")), *options, right)
        rows.append(
            field_value(row, wants.key, where) if wants.key else content,
            scores[0] if len(asked) == 1 else {name: _least(scores, name) for name in metrics},
            number,
            own_id=index,
            answer=right,
            choices=options,
        )
    if unscored:
        notes.append(
            f"{counted(len(unscored), 'item')} left out, without a score: {some(unscored)}"
        )
    if turned:
        notes.append(
            f"{turned} items ran with rotated options; an item is right if every rotation is"
        )
    if failed:
        notes.append(f"{failed} answers are failures of the model's server, scored as answers")
    return rows, notes


def _metrics(path: Path, sheet: list[Row]) -> list[str]:
    columns = list(sheet[0])
    if "index" not in columns:
        raise ReaderError(
            f"{path}: no column 'index', as VLMEvalKit writes it", hint=f"it has {some(columns)}"
        )
    names = [name for name in SCORES if name in columns]
    if MATCH in columns and HIT not in columns:
        names.append(MATCH)
    if not names:
        raise ReaderError(
            f"{path}: no column 'hit' or 'score': predictions without an evaluation of each item",
            hint="evaluate them with `run.py --mode eval --reuse`, or skip with --damaged skip",
        )
    return [HIT if name == MATCH else name for name in names]


def _by_index(path: Path, dataset: str, sheet: list[Row]) -> dict[str, list[tuple[int, Row]]]:
    """Return the numbered rows of each item: several if its options were rotated."""
    circular = any(word in dataset.lower() for word in CIRCULAR)
    groups: dict[str, list[tuple[int, Row]]] = defaultdict(list)
    seen: set[str] = set()
    for number, row in enumerate(sheet, start=1):
        index = _text(row.get("index"))
        if not index:
            raise ReaderError(f"{path}, row {number}: no index")
        if index in seen:
            raise ReaderError(
                f"{path}, row {number}: index {index} appears a second time",
                hint="the sheet was joined from two; keep one of them",
            )
        seen.add(index)
        group = _text(row.get("g_index"))
        if circular and not group and index.isascii() and index.isdigit():
            group = str(int(index) % TURN) if len(index) < 16 else index
        groups[group or index].append((number, row))
    for group, asked in groups.items():
        asked.sort(key=lambda pair: _text(pair[1].get("index")) != group)  # not turned: first
    return groups


def _scores(row: Row, metrics: list[str], dataset: str, where: str) -> dict[str, Any]:
    scores = {name: row.get(name) for name in metrics}
    if HIT in scores and HIT not in row:
        scores[HIT] = _hit_of_matches(row.get(MATCH), dataset, where)
    return scores


def _hit_of_matches(matches: Any, dataset: str, where: str) -> float | None:
    """Return VLMEvalKit's score for the matches with each right answer, by dataset."""
    if matches is None:
        return None
    try:
        listed = loads(matches) if isinstance(matches, str) else matches
    except ValueError:
        listed = None
    values = [as_number(value) for value in listed] if isinstance(listed, list) else []
    finite = [value for value in values if value is not None and np.isfinite(value)]
    if not finite or len(finite) < len(values):
        raise ReaderError(f"{where}: {MATCH} is {str(matches)[:40]!r}, not a list of numbers")
    if any(word in dataset for word in ("DocVQA", "InfoVQA")) and "TextVQA" not in dataset:
        nearest = 1 - min(finite)  # the match is a distance
        return nearest if nearest >= 0.5 else 0.0
    if any(word in dataset for word in ("ChartQA", "OCRVQA")) and "TextVQA" not in dataset:
        return max(finite)
    return sum(finite) / len(finite)


def _least(scores: list[dict[str, Any]], name: str) -> Any:
    """Return the least value over rotations, or the first that is not a number."""
    values = [score[name] for score in scores]
    numbers = [as_number(value) for value in values]
    for value, number in zip(values, numbers, strict=True):
        if number is None or not np.isfinite(number):
            return value
    return min(number for number in numbers if number is not None)


def _key(row: Row) -> tuple[list[str], str]:
    """Return the options of a row, and the right answer."""
    letters = [letter for letter in string.ascii_uppercase if _text(row.get(letter))]
    answer = _text(row.get("answer"))
    right = _text(row.get(answer)) if answer in letters else answer
    return [_text(row[letter]) for letter in letters], right
