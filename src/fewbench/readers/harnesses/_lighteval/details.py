"""The rows of a file of details, in the three forms that lighteval wrote over time.

Since 0.11 a row has the columns `doc`, `model_response` and `metric`; the documentation calls them
`__doc__`, `__model_response__` and `__metric__`. Before, it was flat, with `metrics` in one column,
and in the first files of the leaderboard every metric was a column of its own.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fewbench.errors import ReaderError, first_line
from fewbench.readers.run import UNKNOWN

NESTED = ("doc", "model_response", "metric")
# Of a flat row, columns that are not metrics although they may be numbers.
FLAT = frozenset(
    {
        *("example", "instruction", "full_prompt", "predictions", "prediction_logits", "gold"),
        *("input_tokens", "cont_tokens", "truncated", "padded", "pred_logits", "choices"),
        *("gold_index", "metrics", "specifics", "num_effective_few_shots", "hashes", "hash"),
        *("num_asked_few_shots", "instance_id", "doc_id", "id", "index"),
        *("__index_level_0__", "non_truncated", "non_padded"),
    }
)
# May be large, and is not needed.
UNREAD = (
    *("input_tokens", "cont_tokens", "padded", "truncated", "pred_logits", "prediction_logits"),
    *("fewshot_samples", "output_tokens", "logits", "reasonings", "text", "text_post_processed"),
)


@dataclass(frozen=True)
class Detail:
    """One row: a document, what the model made of it, and its scores."""

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
        """What identifies the item: question, options, right answers; and its pictures."""
        options = self.choices if len(self.choices) > len(self.golds) else []
        texts = (self.question, *options, *self.golds)
        return (*(text.strip() for text in texts), *self.images)


def read_details(path: Path) -> Iterator[tuple[int, Detail]]:
    """Yield row number, from 1, and row.

    Raises
    ------
    ReaderError
        If the file is torn, or of a form that lighteval does not write.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            form, columns = _form(path, file.schema_arrow)
            at = 0
            for batch in file.iter_batches(columns=columns, batch_size=1024):
                for row in batch.to_pylist():
                    at += 1
                    try:
                        yield at, form(row)
                    except (TypeError, ValueError, AttributeError, KeyError, IndexError) as error:
                        raise ReaderError(
                            f"{path}, row {at}: not as lighteval writes it ({first_line(error)})"
                        ) from error
    except (pa.ArrowException, OSError) as error:
        raise ReaderError(
            f"{path}: not a whole Parquet file ({first_line(error)})", hint="copy it again"
        ) from error


def _form(path: Path, schema: Any) -> tuple[Callable[[dict[str, Any]], Detail], list[str]]:
    """Return what makes a detail of a row, and the columns that it needs."""
    names = schema.names
    for wrapped in ("{}", "__{}__"):
        three = [wrapped.format(name) for name in NESTED]
        if set(three) <= set(names):
            doc, response, metric = three
            return partial(_nested, names=three), [
                *_parts(schema, doc),
                *_parts(schema, response),
                metric,
            ]
    if "full_prompt" in names:
        return _flat, [name for name in names if name not in UNREAD]
    raise ReaderError(
        f"{path}: its columns are not those of details of lighteval ({', '.join(names[:8])} …)",
        hint="they are doc, model_response and metric; before 0.11 example, full_prompt, metrics …",
    )


def _parts(schema: Any, name: str) -> list[str]:
    """Return the parts of a column that are needed, by the names that Parquet has for them."""
    import pyarrow as pa

    kind = schema.field(name).type
    if not pa.types.is_struct(kind):
        return [name]
    return [f"{name}.{part.name}" for part in kind if part.name not in UNREAD] or [name]


def _nested(row: dict[str, Any], names: list[str]) -> Detail:
    doc, response, metric = (row[name] for name in names)
    choices = [str(choice) for choice in doc.get("choices") or []]
    gold_index = _indices(doc.get("gold_index"))
    own = str(doc.get("id") or "")
    logprobs = [float(value) for value in response.get("logprobs") or []]
    unconditional = [float(value) for value in response.get("unconditioned_logprobs") or []]
    if len(logprobs) == 2 * len(choices) and not unconditional:
        logprobs, unconditional = logprobs[: len(choices)], logprobs[len(choices) :]
    specific = doc.get("specific")
    return Detail(
        question=str(doc["query"]),
        prompt=_text(response.get("input")),
        choices=choices,
        golds=[choices[at] for at in gold_index if 0 <= at < len(choices)],
        gold_index=gold_index,
        likelihoods=logprobs if len(logprobs) == len(choices) else [],
        unconditional=unconditional if len(unconditional) == len(choices) else [],
        scores=_scores(metric),
        fields={**(specific if isinstance(specific, dict) else {}), **doc},
        position=int(own) if own.isascii() and own.isdigit() and len(own) < 10 else UNKNOWN,
        images=tuple(_digest(image) for image in doc.get("images") or []),
    )


def _flat(row: dict[str, Any]) -> Detail:
    choices = [str(choice) for choice in row.get("choices") or []]
    gold_index = _indices(row.get("gold_index"))
    golds = [choices[at] for at in gold_index if 0 <= at < len(choices)]
    if not golds:
        gold = row.get("gold")
        golds = [
            str(one) for one in (gold if isinstance(gold, list) else [gold]) if one is not None
        ]
    predictions = row.get("predictions") or []
    likelihoods, unconditional = _likelihoods(predictions, len(choices))
    prompt = _text(row.get("full_prompt"))
    metrics = row.get("metrics")
    if not isinstance(metrics, dict):
        metrics = {
            name: value
            for name, value in row.items()
            if name not in FLAT and not name.startswith("hash") and isinstance(value, float | int)
        }
    specifics = row.get("specifics")
    return Detail(
        question=_text(row.get("example")) or prompt,
        prompt=prompt,
        choices=choices,
        golds=golds,
        gold_index=gold_index,
        likelihoods=likelihoods,
        unconditional=unconditional,
        scores=_scores(metrics),
        fields={**(specifics if isinstance(specifics, dict) else {}), **row},
    )


def _likelihoods(predictions: Any, count: int) -> tuple[list[float], list[float]]:
    """Return log-likelihoods with and without the question; each may stand beside is_greedy."""
    values = [one[0] if isinstance(one, list) and one else one for one in predictions]
    if count < 2 or not all(isinstance(value, float | int) for value in values):
        return [], []
    found = [float(value) for value in values]
    if len(found) == 2 * count:
        return found[:count], found[count:]
    return (found, []) if len(found) == count else ([], [])


def _scores(metric: Any) -> dict[str, Any]:
    """Return a row's metrics; those of which it has nothing are of other rows."""
    return {str(name): value for name, value in metric.items() if value is not None}


def _indices(value: Any) -> list[int]:
    return [int(one) for one in (value if isinstance(value, list) else [value]) if one is not None]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else repr(value)


def _digest(image: Any) -> str:
    said = image.get("bytes") or image.get("path") if isinstance(image, dict) else image
    raw = said if isinstance(said, bytes) else str(said).encode("utf-8", "surrogatepass")
    return hashlib.sha256(raw).hexdigest()
