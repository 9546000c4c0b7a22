"""OpenCompass: STAMP/results/MODEL/DATASET.json, predictions and configs."""

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from fewbench.errors import ReaderError
from fewbench.readers.files import head, load_json, load_object
from fewbench.readers.harness import UNKNOWN, LogRun, LogUnit, Rows, Wants, empty
from fewbench.readers.options import NO_ANSWER, OptionTable
from fewbench.readers.values import as_number, content_id, field_value, shortened
from fewbench.scores.conditions import SCORING
from fewbench.support import counted, some

STAMP = re.compile(r"\d{8}_\d{6}")
WRITTEN = ("configs", "predictions", "summary")  # beside the results
PIECE = re.compile(r"(.+)_(\d{1,6})")  # pieces of predictions: DATASET_0.json, DATASET_1.json, …
FROM = re.compile(r"\[\s*(\d{0,9})\s*:\s*\d*\s*\]")
SETTINGS = ("type", "path", "max_seq_len", "max_out_len", "generation_kwargs", "meta_template")
DETAILS = (b'"example_abbr"', b'"origin_prediction"', b'"is_correct"')
NUMBERED = re.compile(r".*_(\d{1,9})")
AGAIN = (
    "run `opencompass CONFIG --mode eval --reuse STAMP --dump-eval-details`{}, or leave it out "
    "with --damaged skip"
)
MODULE = re.compile(r"'(?:\w+\.)+(\w+)'")
METRIC = "correct"
RIGHT = ("correct", "is_correct", "cascade_correct")  # in OpenCompass's order


class _Place(NamedTuple):
    """The folder of one OpenCompass run (`work`), and the names in the path of a file."""

    work: Path
    part: str
    model: str
    task: str

    def beside(self, part: str, task: str) -> Path:
        return self.work / part / self.model / f"{task}.json"

    def predictions(self) -> list[Path]:
        """Return the predictions: one file, or its consecutive pieces."""
        whole = self.beside("predictions", self.task)
        if whole.is_file():
            return [whole]
        pieces: list[Path] = []
        while (piece := self.beside("predictions", f"{self.task}_{len(pieces)}")).is_file():
            pieces.append(piece)
        return pieces


def _place_of(path: Path) -> _Place | None:
    parts = path.absolute().parts
    if path.suffix != ".json" or path.name.startswith("tmp_"):
        return None
    folders = [at for at, part in enumerate(parts[:-2]) if part in ("results", "predictions")]
    start = head(path).lstrip()
    has_details = b'"details"' in start and any(word in start for word in DETAILS)
    if not folders:  # moved elsewhere
        return _moved(path) if has_details else None
    at = folders[-1]
    # Relative where possible, so that messages name files as the user does.
    up = len(parts) - at - 1
    work = path.parents[up] if len(path.parents) > up else Path(*parts[:at])
    if not has_details and not _is_work(work):
        return None
    if parts[at] == "results":  # skip files of an evaluator, such as a judge, among the results
        results = Path(*parts[: at + 1])
        inside = [folder for folder in path.absolute().parents if results in folder.parents]
        judged = any(folder.with_name(f"{folder.name}.json").is_file() for folder in inside)
        if judged or re.match(rb'\{\s*"0"\s*:', start):
            return None
    return _Place(work, parts[at], "/".join(parts[at + 1 : -1]), path.stem)


def _moved(path: Path) -> _Place:
    return _Place(path.parent, "results", path.absolute().parent.name, path.stem)


def _is_work(folder: Path) -> bool:
    there = {name for name in WRITTEN if (folder / name).is_dir()}
    if STAMP.fullmatch(folder.absolute().name):
        return bool(there)
    return "predictions" in there and len(there) > 1


class _Config(NamedTuple):
    """The part of the task that was run (`test_range`), the model's settings, and the scoring."""

    known: bool = False
    test_range: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    scoring: tuple[tuple[str, str], ...] = ()

    def first(self) -> int:
        """Return the position of the first row, UNKNOWN if rows may be out of order."""
        if not self.known:
            return UNKNOWN
        start = FROM.fullmatch(self.test_range)
        return int(start[1] or 0) if start else UNKNOWN if self.test_range else 0


def _configured(paths: tuple[Path, ...], place: _Place) -> _Config:
    ranges: set[str] = set()
    settings: tuple[tuple[str, str], ...] = ()
    scoring: set[tuple[tuple[str, str], ...]] = set()
    for path in paths:
        for abbr, named in _named(path, path.stat().st_mtime_ns if path.is_file() else 0):
            if abbr == place.task and "reader_cfg" in named:
                reader = next(_dicts(named["reader_cfg"]), {})
                bounds = reader.get("test_range", ast.Constant(""))
                value = bounds.value if isinstance(bounds, ast.Constant) else ast.unparse(bounds)
                ranges.add(str(value or ""))
                scoring.add(_scoring(named))
            elif abbr == place.model and "type" in named:
                settings = tuple((key, ast.unparse(named[key])) for key in SETTINGS if key in named)
    is_single = len(ranges) == 1
    scored = scoring.pop() if len(scoring) == 1 else ()
    return _Config(is_single, ranges.pop() if is_single else "", settings, scored)


def _scoring(named: dict[str, ast.expr]) -> tuple[tuple[str, str], ...]:
    """Return how a data set is scored: its evaluator and postprocessors, and repeats."""
    scoring = {f"{SCORING}repeats": ast.unparse(named["n"]) if "n" in named else "1"}
    for name, part in next(_dicts(named["eval_cfg"]), {}).items() if "eval_cfg" in named else ():
        scoring[SCORING + name] = _scorer(part)
    return tuple(sorted(scoring.items()))


def _scorer(node: ast.expr) -> str:
    """Return an evaluator or postprocessor as text: its class, and a hash of its arguments.

    Only the model of a judge counts. Modules do not: other versions rearrange them.
    """
    for child in ast.walk(node):
        if isinstance(child, ast.Call):
            child.keywords.sort(key=lambda pair: pair.arg or "")
            for pair in child.keywords:
                if pair.arg == "judge_cfg":
                    pair.value = next(_dicts(pair.value), {}).get("path", pair.value)
    arguments = next(_dicts(node), {})
    text = MODULE.sub(r"'\1'", ast.unparse(node))
    if "type" not in arguments:
        return shortened(text)
    kind = ast.unparse(arguments["type"]).strip("'\"").rpartition(".")[2]
    return f"{kind} {content_id(text)}" if len(arguments) > 1 else kind


@lru_cache(maxsize=16)
def _named(path: Path, changed: int) -> list[tuple[object, dict[str, ast.expr]]]:
    """Return all entries of a config that have an `abbr`; the config is parsed, not executed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in the config
            tree = ast.parse(path.read_bytes())
        every = list(_dicts(tree))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    pairs = [(named.get("abbr"), named) for named in every]
    return [(abbr.value, named) for abbr, named in pairs if isinstance(abbr, ast.Constant)]


def _dicts(tree: ast.AST) -> Iterator[dict[str, ast.expr]]:
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and isinstance(called, ast.Name) and called.id == "dict":
            yield {pair.arg: pair.value for pair in node.keywords if pair.arg}


class _Item(NamedTuple):
    """The details and the prediction of one item."""

    detail: dict[str, Any]
    prediction: dict[str, Any]

    @property
    def labels(self) -> dict[str, dict[str, Any]]:
        """The entry of each option, {} if the task is not scored by perplexity."""
        original = self.detail.get("origin_prediction")
        return {
            name.removeprefix("label: "): value
            for name, value in (original if isinstance(original, dict) else self.prediction).items()
            if isinstance(value, dict) and ("PPL" in value or "Loglikelihood" in value)
        }

    @property
    def gold(self) -> str:
        for name in ("references", "refr", "answer"):
            if name in self.detail:
                return str(_only(self.detail[name]))
        return str(_only(self.prediction.get("gold")))

    @property
    def raw_gold(self) -> str | None:
        """The right answer before evaluators process it, None if it is not logged."""
        original = self.detail.get("origin_prediction")
        for record in (self.prediction, original if isinstance(original, dict) else {}):
            if "gold" in record:
                return str(_only(record["gold"]))
        return None

    @property
    def prompts(self) -> list[str]:
        """The prompt, or one prompt per option; [] if unknown."""
        options = [_text(value.get("prompt")) for value in self.labels.values()]
        if options and all(options):
            return options
        shown = self.detail.get("prompt") or self.prediction.get("origin_prompt")
        return [text] if (text := _text(shown)) else []

    @property
    def options(self) -> OptionTable | None:
        labels = self.labels
        values = [_likelihood(value) for value in labels.values()]
        likelihoods = [value for value in values if value is not None]
        if len(likelihoods) < max(2, len(values)):
            return None
        names = list(labels)
        return OptionTable(likelihoods, names.index(self.gold) if self.gold in names else NO_ANSWER)

    @property
    def position(self) -> int:
        """The position in the whole task, logged since 0.4.1."""
        named = NUMBERED.fullmatch(str(self.detail.get("example_abbr", "")))
        return int(named[1]) if named else UNKNOWN


def _only(value: Any) -> Any:
    """Unpack a list of one: since 0.4.1 a value stands in a list of repeats."""
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value


def _text(prompt: Any) -> str:
    """Return the text of a prompt: a text, messages, or a list of repeats of either."""
    if isinstance(prompt, str):
        return prompt.strip()
    if not isinstance(prompt, list) or not prompt:
        return ""
    turns = [msg.get("prompt", msg.get("content")) for msg in prompt if isinstance(msg, dict)]
    if turns:
        return "\n".join(part for part in turns if isinstance(part, str)).strip()
    return _text(prompt[0])


def _likelihood(entry: dict[str, Any]) -> float | None:
    if "Loglikelihood" in entry:
        return as_number(entry["Loglikelihood"])
    loss = as_number(entry["PPL"])  # in fact the mean negative log-likelihood of a token
    return None if loss is None else -loss


def _read_results(path: Path) -> dict[str, Any]:
    data = load_object(path, "an object, as OpenCompass writes its results")
    if "error" in data and "details" not in data:
        raise ReaderError(
            f"{path}: the evaluation failed ({str(data['error'])[:200]})", hint="run it again"
        )
    if not data.get("details"):
        scores = [name for name, value in data.items() if as_number(value) is not None]
        raise ReaderError(
            f"{path}: no details of single items, only {some(scores) if scores else 'nothing'}",
            hint=AGAIN.format(" after deleting it"),
        )
    return data


def _entries(path: Path, details: Any) -> list[dict[str, Any]]:
    if isinstance(details, dict):
        numbers = [key for key in details if key != "type"]
        if sorted(numbers) != sorted(map(str, range(len(numbers)))):
            raise ReaderError(
                f"{path}: entries are not numbered from 0 without gaps: {some(numbers)}",
                hint="the file belongs to a custom evaluator, or was edited",
            )
        details = [details[str(number)] for number in range(len(numbers))]
    if not isinstance(details, list):
        raise ReaderError(f"{path}: the details are neither a list nor an object")
    for number, entry in enumerate(details):
        if not isinstance(entry, dict):
            raise ReaderError(f"{path}, entry {number + 1}: not an object")
    return details


def _pair_up(path: Path, results: dict[str, Any], predictions: list[dict[str, Any]]) -> list[_Item]:
    details = _entries(path, results["details"])
    if not predictions:
        return [_Item(detail, {}) for detail in details]
    # With n repeats the predictions hold the dataset n times.
    if not details or len(predictions) % len(details):
        raise ReaderError(
            f"{path}: {len(details)} items, but the predictions of the same name have "
            f"{len(predictions)}",
            hint="one of them belongs to another run: delete it, or evaluate again",
        )
    return [_Item(*pair) for pair in zip(details, predictions, strict=False)]


def _scores_of(
    path: Path, items: list[_Item], results: dict[str, Any]
) -> tuple[list[Any], list[str]]:
    """Return the scores of each item (None if it has none), and notes."""
    if not results:
        if not all(
            item.labels and {"prediction", "gold"} <= item.prediction.keys() for item in items
        ):
            raise ReaderError(
                f"{path}: predictions that were not evaluated",
                hint=AGAIN.format(""),
                kind="unanswered",
            )
        cells = [{METRIC: str(item.prediction["prediction"]) == item.gold} for item in items]
        return cells, ["not evaluated by OpenCompass; the option of least perplexity is the answer"]
    named = next((name for name in RIGHT if any(name in item.detail for item in items)), None)
    if named is not None:
        values = [item.detail.get(named) for item in items]
        most = max((len(value) for value in values if isinstance(value, list)), default=1)
        notes = [f"each item was run {most} times; scores are means"] if most > 1 else []
        return [None if _only(value) is None else _trials_of(value) for value in values], notes
    if all({"predictions", "references"} <= item.detail.keys() for item in items):
        return _compared(path, items, results)
    metrics = [
        name
        for name in items[0].detail
        if all(as_number(_only(item.detail.get(name))) is not None for item in items)
    ]
    if not metrics:
        raise ReaderError(
            f"{path}: the details do not say which items are right",
            hint=f"an item has {some(items[0].detail, most=12)}",
        )
    return [{name: _only(item.detail[name]) for name in metrics} for item in items], []


def _trials_of(value: Any) -> list[dict[str, Any]]:
    """Return the score of each trial of an item: numbers of a list, or the value alone."""
    numbers = [as_number(entry) for entry in value] if isinstance(value, list) else []
    if not numbers or None in numbers:
        return [{METRIC: _only(value)}]
    return [{METRIC: number} for number in numbers]


def _compared(
    path: Path, items: list[_Item], results: dict[str, Any]
) -> tuple[list[Any], list[str]]:
    """Compare answers with references if this gives the stated accuracy."""
    right = [str(item.detail["predictions"]) == str(item.detail["references"]) for item in items]
    stated = as_number(results.get("accuracy"))
    if stated is None or not abs(100 * sum(right) / len(right) - stated) < 0.006:
        raise ReaderError(
            f"{path}: the details do not say which items are right, and comparing answers with "
            f"references gives {100 * sum(right) / len(right):.2f}, not the accuracy "
            f"{stated if stated is not None else 'that the file should have'}",
            hint="use an evaluator with details, such as AccwithDetailsEvaluator",
        )
    note = (
        "the details do not say which items are right; an answer equal to the reference counts as "
        "right, which gives the stated accuracy"
    )
    return [{METRIC: is_right} for is_right in right], [note]


class OpenCompass:
    """Read work folders of OpenCompass 0.2 to 0.5.

    The score is `correct` of the details, 0 or 1, averaged over repeats. An item is identified by
    its prompt (for perplexity tasks, by the prompts of all options). Perplexity tasks carry
    options: the log-likelihood per token is the negative of what OpenCompass calls PPL.
    """

    name = "opencompass"
    files = "results/MODEL/DATASET.json with details, as --dump-eval-details writes them"
    remedy = "import the folder with predictions and results, not only the summary"

    def is_totals(self, path: Path) -> bool:
        """Whether a file is a summary."""
        return path.name.startswith("summary_") and path.parent.name == "summary"

    def find(self, files: Sequence[Path]) -> list[LogUnit]:
        """Return the results among files, and predictions that were never evaluated."""
        units: dict[Path, LogUnit] = {}
        for path in files:
            place = _place_of(path)
            if place is None:
                continue
            if place.part == "predictions":
                place = _evaluated(place)
            results = place.beside("results", place.task)
            beside = place.predictions()
            unit = path if place.part == "results" else results if results.is_file() else beside[0]
            if unit not in units:
                others = [other for other in beside if other != unit]
                units[unit] = LogUnit(
                    unit, (*others, *sorted((place.work / "configs").glob("*.py")))
                )
        return list(units.values())

    def read(self, unit: LogUnit, wants: Wants) -> list[LogRun]:
        """Return the run that a results file is."""
        path = unit.path
        place = _place_of(path) or _moved(path)  # moved if it was named with its form
        beside = [file for file in unit.beside if file.suffix == ".json"]
        if place.part == "predictions":
            place = _evaluated(place)
            results: dict[str, Any] = {}
            beside = [path, *beside]
        else:
            results = _read_results(path)
        predictions = [entry for file in beside for entry in _entries(file, load_json(file))]
        items = (
            _pair_up(path, results, predictions)
            if results
            else [_Item({}, prediction) for prediction in predictions]
        )
        if not items:
            raise empty(path)
        config = _configured(tuple(file for file in unit.beside if file.suffix == ".py"), place)
        return [_run(path, place, items, _scores_of(path, items, results), config, wants)]


def _evaluated(place: _Place) -> _Place:
    """Return the place of predictions without the number of a piece."""
    piece = PIECE.fullmatch(place.task)
    if piece is None or place.beside("results", place.task).is_file():
        return place
    whole = place._replace(task=piece[1])
    pieces = whole.predictions()
    is_piece = whole.beside("results", whole.task).is_file() or len(pieces) > int(piece[2])
    return whole if is_piece and pieces else place


def _run(
    path: Path,
    place: _Place,
    items: list[_Item],
    scored: tuple[list[Any], list[str]],
    config: _Config,
    wants: Wants,
) -> LogRun:
    scores, notes = scored
    rows = Rows(path, place_word="entry")
    first, nameless, unscored = config.first(), 0, []
    for at, (item, score) in enumerate(zip(items, scores, strict=True)):
        if score is None:
            unscored.append(at)
            continue
        position = item.position
        if position == UNKNOWN and first != UNKNOWN:
            position = first + at
        prompts = item.prompts
        content = content_id(*prompts) if prompts else f"{at if position < 0 else position}"
        nameless += not prompts
        if wants.key:
            fields = {name: _only(value) for name, value in (item.prediction | item.detail).items()}
            content = field_value(fields, wants.key, f"{path}, entry {at + 1}")
        rows.append(
            content,
            score,
            at + 1,
            position=position,
            prompt="\n".join(prompts),
            answer=item.raw_gold,
            options=item.options,
        )
    if unscored:
        notes.append(
            f"{counted(len(unscored), 'item')} left out, without a score: {some(unscored)}"
        )
    if nameless and not wants.key:
        notes.append(
            f"{counted(nameless, 'item')} without a prompt, identified by position; keep the "
            "predictions folder with the results folder"
        )
    whole = config.known and not config.test_range
    if config.test_range:
        notes.append(f"partial run: test_range is {config.test_range!r}")
    work = place.work.absolute()
    stamped = STAMP.fullmatch(work.name)
    return rows.run(
        place.model,
        place.task,
        stamp=work.name if stamped else "",
        group=str(work.parent if stamped else work),
        total=len(items) if whole else None,
        ran=len(items) - len(unscored),
        settings=config.settings,
        task_settings=config.scoring,
        higher_is_better={METRIC: True},
        notes=tuple(notes),
    )
