"""lighteval: details_TASK_TIME.parquet, also of the first Open LLM Leaderboard."""

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fewbench.errors import ReaderError, first_line
from fewbench.readers.files import JsonObject, object_at, parquet_rows, starts_as_results
from fewbench.readers.harness import UNKNOWN, LogRun, LogUnit, Rows, Wants
from fewbench.readers.options import NO_ANSWER, OptionTable, recomputed
from fewbench.readers.values import ADDRESS, as_number, content_id, field_value, setting, shortened
from fewbench.scores.conditions import GENERATION, SCORING
from fewbench.support import counted, some

# The leaderboard's first files have colons in the time, later ones hyphens.
NAME = re.compile(r"details_(.+)_(\d{4}-\d\d-\d\dT\d\d[-:]\d\d[-:]\d\d(?:\.\d+)?)\.parquet")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d[-:]\d\d[-:]\d\d(?:\.\d+)?")
# Entries of a run that are not settings of the model.
ASIDE = (
    *("cache_dir", "config", "end_time", "job_id", "lighteval_sha", "max_samples"),
    *("model_config", "model_name", "model_size", "num_fewshot_seeds", "start_time"),
    "total_evaluation_time_secondes",
)
NESTED = (("doc", "model_response", "metric"), ("__doc__", "__model_response__", "__metric__"))
LOGPROBS = ("logprobs", "unconditioned_logprobs")
# Columns of a flat row that are not metrics.
FLAT = frozenset(
    {
        *("example", "instruction", "full_prompt", "predictions", "prediction_logits", "gold"),
        *("input_tokens", "cont_tokens", "truncated", "padded", "pred_logits", "choices"),
        *("gold_index", "metrics", "specifics", "num_effective_few_shots", "hashes", "hash"),
        *("num_asked_few_shots", "instance_id", "doc_id", "id", "index"),
        *("__index_level_0__", "non_truncated", "non_padded"),
    }
)
# Large and not needed.
UNREAD = (
    *("input_tokens", "cont_tokens", "padded", "truncated", "pred_logits", "prediction_logits"),
    *("fewshot_samples", "output_tokens", "logits", "reasonings", "text", "text_post_processed"),
)


def _named(path: Path) -> tuple[str, str] | None:
    """Return task and time of details_TASK_TIME.parquet, None for other names.

    Examples
    --------
    >>> _named(Path("details_harness|arc:challenge|25_2023-07-19T16:22:31.218.parquet"))
    ('harness|arc:challenge|25', '2023-07-19T16-22-31.218')
    >>> _named(Path("results_2023-07-19T16:22:31.218.parquet"))
    """
    match = NAME.fullmatch(path.name)
    return (match[1], match[2].replace(":", "-")) if match else None


def _home_of(path: Path) -> Path:
    """Return the folder of all runs of a model, above the folders of times."""
    folder = path.absolute().parent
    return folder.parent if TIME.fullmatch(folder.name) else folder


def _model_of(path: Path) -> str:
    """Return the model by the folders: details/ORG/MODEL/TIME, or details_ORG__MODEL/TIME.

    Examples
    --------
    >>> _model_of(Path("out/details/org/a/2026-01-01T10-00-00.0/details_x|0_T.parquet"))
    'org/a'
    >>> _model_of(Path("details_org__a/2026-01-01T10-00-00.0/details_x|0_T.parquet"))
    'org/a'
    """
    home = _home_of(path)
    if home.name.startswith("details_"):
        return home.name.removeprefix("details_").removesuffix("_private").replace("__", "/", 1)
    parts = home.parts
    if "details" in parts[:-1]:
        last = len(parts) - 1 - parts[::-1].index("details")
        if last < len(parts) - 1:
            return "/".join(parts[last + 1 :])
    return home.name


def _results_of(path: Path, stamp: str) -> Path | None:
    above = path.absolute().parent.parent
    folders = [path.absolute().parent, above]
    details = [folder for folder in list(above.parents)[:4] if folder.name == "details"]
    folders += [folder.parent / "results" / above.relative_to(folder) for folder in details[:1]]
    day, _, time = stamp.partition("T")
    names = [f"results_{stamp}.json", f"results_{day}T{time.replace('-', ':')}.json"]
    there = (folder / name for folder in folders for name in names)
    return next((results for results in there if results.is_file()), None)


class _Results(JsonObject):
    @property
    def model(self) -> str | None:
        name = self.part("config_general").get("model_name")
        return name.strip("/") if isinstance(name, str) and name.strip("/ ") else None

    def sizes(self, task: str, logged: int) -> tuple[int | None, int | None]:
        """Return the number of documents of a task and of those run if known.

        Since 0.11 the file has no numbers; without --max-samples the logged rows are then all.
        """
        config = self._config(task)
        total, ran = config.get("original_num_docs"), config.get("effective_num_docs")
        if _is_count(total):
            return total, ran if _is_count(ran) else None
        general = self.part("config_general")
        whole = "max_samples" in general and general["max_samples"] is None
        return (logged if whole else None), None

    def version(self, task: str) -> str:
        version = self.part("versions").get(task, self._config(task).get("version"))
        return "" if version is None else str(version)

    def settings(self) -> tuple[tuple[str, str], ...]:
        general = self.part("config_general")
        values = {key: value for key, value in general.items() if key not in ASIDE}
        if isinstance(model_config := general.get("model_config"), dict):
            values |= {key: value for key, value in model_config.items() if key not in ASIDE}
        if isinstance(more := values.pop("generation_parameters", None), dict):
            values |= more
        return tuple((key, str(values[key])) for key in sorted(values) if values[key] is not None)

    def task_settings(self, task: str) -> tuple[tuple[str, str], ...]:
        """Return the settings of a task that change answers or scores."""
        config = self._config(task)
        names = {"generation_size": f"{GENERATION}max_gen_toks", "num_samples": f"{SCORING}repeats"}
        names |= {"stop_sequence": f"{GENERATION}stop_sequence", "version": "task version"}
        settings = {text: setting(config[name]) for name, text in names.items() if name in config}
        return tuple(sorted(settings.items()))

    def scorers(self, task: str) -> dict[str, str]:
        """Return metric → its function with arguments, which lighteval logs since 0.11."""
        functions = {}
        for name, metric in self._metrics(task):
            how = str(metric.get("sample_level_fn"))
            if "(" in how:  # else only "compute"
                functions[name] = shortened(ADDRESS.sub("", how))
        return functions

    def _metrics(self, task: str) -> Iterator[tuple[str, dict[str, Any]]]:
        config = self._config(task)
        listed = config.get("metrics", config.get("metric"))
        for metric in listed if isinstance(listed, list) else []:
            if isinstance(metric, dict):
                yield from ((str(name), metric) for name in _listed(metric.get("metric_name")))

    def higher_is_better(self, task: str) -> dict[str, bool]:
        directions = {}
        for name, metric in self._metrics(task):
            higher = metric.get("higher_is_better")
            direction = higher.get(name) if isinstance(higher, dict) else higher
            if isinstance(direction, bool):
                directions[name] = direction
        return directions

    def _config(self, task: str) -> dict[str, Any]:
        configs = self.part("config_tasks")
        # Until 0.10 the key lacks the number of examples, which ends the task's name.
        for name in (task, task.rpartition("|")[0]):
            if isinstance(config := configs.get(name), dict):
                return config
        return {}


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


@dataclass(frozen=True)
class _Detail:
    question: str
    prompt: str
    choices: list[str]
    golds: list[str]
    gold_index: list[int]
    likelihoods: list[float]
    scores: dict[str, Any]
    fields: Mapping[str, Any] = field(repr=False)
    unconditional: list[float] = field(default_factory=list)
    position: int = UNKNOWN
    images: tuple[str, ...] = ()

    @property
    def content(self) -> tuple[str, ...]:
        options = self.choices if len(self.choices) > len(self.golds) else []
        texts = (self.question, *options, *self.golds)
        return (*(text.strip() for text in texts), *self.images)


def _read_details(path: Path) -> Iterator[tuple[int, _Detail]]:
    for at, row in parquet_rows(path, partial(_columns, path)):
        three = _nested_names(row)
        try:
            yield at, _nested(*(row[name] for name in three)) if three else _flat(row)
        except (TypeError, ValueError, AttributeError, KeyError, IndexError) as error:
            raise ReaderError(
                f"{path}, row {at}: not as lighteval writes it ({first_line(error)})"
            ) from error


def _nested_names(names: Collection[str]) -> tuple[str, ...] | None:
    return next((three for three in NESTED if set(three) <= set(names)), None)


def _columns(path: Path, schema: Any) -> list[str]:
    import pyarrow as pa

    names = schema.names
    if three := _nested_names(names):
        columns = [three[2]]
        for name in three[:2]:
            kind = schema.field(name).type
            parts = kind if pa.types.is_struct(kind) else ()
            columns += [f"{name}.{sub.name}" for sub in parts if sub.name not in UNREAD] or [name]
        return columns
    if "full_prompt" in names:
        return [name for name in names if name not in UNREAD]
    raise ReaderError(
        f"{path}: its columns are not those of lighteval's details ({', '.join(names[:8])} …)",
        hint="they are doc, model_response and metric; before 0.11 example, full_prompt, metrics …",
    )


def _nested(doc: Any, response: Any, metric: Any) -> _Detail:
    choices = [str(choice) for choice in doc.get("choices") or []]
    gold_index = _indices(doc.get("gold_index"))
    label = str(doc.get("id") or "")
    logprobs, alone = (response.get(name) or [] for name in LOGPROBS)
    likelihoods, unconditional = _halves(logprobs, len(choices))
    if alone:
        likelihoods = likelihoods if len(logprobs) == len(choices) else []
        unconditional = [float(value) for value in alone] if len(alone) == len(choices) else []
    return _Detail(
        question=str(doc["query"]),
        prompt=_text(response.get("input")),
        choices=choices,
        golds=[choices[at] for at in gold_index if 0 <= at < len(choices)],
        gold_index=gold_index,
        likelihoods=likelihoods,
        unconditional=unconditional,
        scores=_scores(metric),
        fields={**object_at(doc, "specific"), **doc},
        position=int(label) if label.isascii() and label.isdigit() and len(label) < 10 else UNKNOWN,
        images=tuple(_digest(image) for image in doc.get("images") or []),
    )


def _flat(row: dict[str, Any]) -> _Detail:
    choices = [str(choice) for choice in row.get("choices") or []]
    gold_index = _indices(row.get("gold_index"))
    golds = [choices[at] for at in gold_index if 0 <= at < len(choices)]
    if not golds:
        golds = [str(gold) for gold in _listed(row.get("gold")) if gold is not None]
    predictions = row.get("predictions") or []
    values = [part[0] if isinstance(part, list) and part else part for part in predictions]
    are_likelihoods = len(choices) > 1 and all(isinstance(value, float | int) for value in values)
    likelihoods, unconditional = _halves(values if are_likelihoods else [], len(choices))
    prompt = _text(row.get("full_prompt"))
    metrics = row.get("metrics")
    if not isinstance(metrics, dict):
        metrics = {
            name: value
            for name, value in row.items()
            if name not in FLAT and not name.startswith("hash") and isinstance(value, float | int)
        }
    return _Detail(
        question=_text(row.get("example")) or prompt,
        prompt=prompt,
        choices=choices,
        golds=golds,
        gold_index=gold_index,
        likelihoods=likelihoods,
        unconditional=unconditional,
        scores=_scores(metrics),
        fields={**object_at(row, "specifics"), **row},
    )


def _halves(values: list[Any], count: int) -> tuple[list[float], list[float]]:
    """Split log-likelihoods of options into those with and without the question."""
    numbers = [float(value) for value in values]
    if len(numbers) == 2 * count:
        return numbers[:count], numbers[count:]
    return (numbers, []) if len(numbers) == count else ([], [])


def _scores(metric: Any) -> dict[str, Any]:
    return {str(name): value for name, value in metric.items() if value is not None}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _indices(value: Any) -> list[int]:
    return [int(index) for index in _listed(value) if index is not None]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else repr(value)


def _digest(image: Any) -> str:
    content = image.get("bytes") or image.get("path") if isinstance(image, dict) else image
    raw = content if isinstance(content, bytes) else str(content).encode("utf-8", "surrogatepass")
    return hashlib.sha256(raw).hexdigest()


class Lighteval:
    """Read details of lighteval 0.1 to 0.13 and of the Open LLM Leaderboard until June 2024.

    An item is a document, identified by its question, options and right answers as in lighteval's
    prompt. Since 0.11 files state each document's position in the split; older files shuffle rows
    and do not. A task keeps lighteval's name, which ends with the number of examples. Newer runs
    replace older ones in the same model folder.
    """

    name = "lighteval"
    files = "details_TASK_TIME.parquet"
    remedy = "run lighteval again with --save-details, and import its details folder"

    def is_totals(self, path: Path) -> bool:
        """Whether a file has results alone."""
        return starts_as_results(path, b"config_general")

    def find(self, files: Sequence[Path]) -> list[LogUnit]:
        """Return the files of details, each with the results of its run beside."""
        runs: dict[tuple[Path, str], Path | None] = {}
        units = []
        for path in files:
            if named := _named(path):
                run = path.parent, named[1]
                if run not in runs:
                    runs[run] = _results_of(path, named[1])
                results = runs[run]
                units.append(LogUnit(path, (results,) if results else ()))
        return units

    def read(self, unit: LogUnit, wants: Wants) -> list[LogRun]:
        """Return the one run of a file of details."""
        path = unit.path
        named = _named(path)
        if named is None:
            raise ReaderError(
                f"{path}: not a file name of lighteval", hint="name it details_TASK_TIME.parquet"
            )
        task, stamp = named
        results = _Results.read(unit.beside[0]) if unit.beside else _Results(path, {})
        details = list(_read_details(path))
        rows = Rows(path, "row")
        texts = _texts([detail for _, detail in details])
        lacking = []
        for place, detail in details:
            if not detail.scores:
                lacking.append(place)
                continue
            rows.append(
                field_value(detail.fields, wants.key, f"{path}, row {place}")
                if wants.key
                else content_id(*detail.content),
                detail.scores,
                place,
                position=detail.position,
                prompt=detail.prompt,
                answer="\x1f".join(text.strip() for text in detail.golds) or None,
                choices=detail.choices if len(detail.choices) > 1 else (),
                options=_options(detail, texts),
            )
        note = f"{counted(len(lacking), 'row')} without a score, taken as not run: {some(lacking)}"
        total, ran = results.sizes(task, len(details))
        return [
            rows.run(
                results.model or _model_of(path),
                task,
                stamp=stamp,
                group=str(_home_of(path)),
                total=total,
                ran=ran,
                version=results.version(task),
                settings=results.settings(),
                task_settings=results.task_settings(task),
                scorers=results.scorers(task),
                higher_is_better=results.higher_is_better(task),
                notes=(note,) if lacking else (),
            )
        ]


def _options(detail: _Detail, texts: str) -> OptionTable | None:
    if len(detail.likelihoods) < 2:
        return None
    right = detail.gold_index[0] if len(detail.gold_index) == 1 else NO_ANSWER
    named_texts = [text.lstrip(" ") if texts == "stripped" else text for text in detail.choices]
    return OptionTable(detail.likelihoods, right, named_texts, detail.unconditional)


def _texts(details: Sequence[_Detail]) -> str:
    """Return "stripped" if `acc_norm` ignores the leading space of options, else "whole".

    lighteval does either, so the logged scores decide.
    """
    scored = [
        (detail, score)
        for detail in details
        if len(detail.likelihoods) > 1
        and (score := as_number(detail.scores.get("acc_norm"))) is not None
    ]
    if not scored:
        return "whole"
    scores = np.array([score for _, score in scored])
    explained = {}
    for texts in ("whole", "stripped"):
        tables = [_options(detail, texts) for detail, _ in scored]
        columns = OptionTable.columns([table for table in tables if table is not None])
        explained[texts] = int((recomputed(columns, "acc_norm") == scores).sum())
    return max(explained, key=lambda texts: explained[texts])
