"""The rows of one samples file, of any version, checked."""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fewbench.errors import ReaderError, first_line
from fewbench.readers.files import head
from fewbench.readers.identity import ID_LENGTH, field_value
from fewbench.readers.json_files import JsonLines, load_json
from fewbench.readers.numbers import describe

NO_DOCUMENT = hashlib.sha256(b"null").hexdigest()
NOT_METRICS = {
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps"),
    *("doc_hash", "prompt_hash", "target_hash", "filter", "metrics"),
}


class SampleRows:
    """Place and row of every document in a file: lines, one indented array, or Parquet.

    lm-eval 0.4.3 and newer write a line a row; 0.4.2 and older one indented array; the datasets
    of the Open LLM Leaderboard are also stored as Parquet.
    """

    def __init__(self, path: Path, salvage: bool = False) -> None:
        self.path = path
        self.lines = JsonLines(path, salvage)
        self.is_array = re.match(rb"\s*\[\s*[{\]]", head(path)) is not None
        self.is_table = path.suffix.lower() == ".parquet"

    @property
    def place_word(self) -> str:
        """What a place in the file is called."""
        return "row" if self.is_array or self.is_table else "line"

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield place and row; ReaderError for a row that is not one of lm-eval."""
        rows = self._table() if self.is_table else self._array() if self.is_array else self.lines
        for place, row in rows:
            yield place, _checked(row, f"{self.path}, {self.place_word} {place}")

    def _array(self) -> Iterator[tuple[int, Any]]:
        data = load_json(self.path)
        yield from enumerate(data if isinstance(data, list) else [data], start=1)

    def _table(self) -> Iterator[tuple[int, Any]]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        place = 0
        try:
            for batch in pq.ParquetFile(self.path).iter_batches(batch_size=1024):
                for row in batch.to_pylist():
                    place += 1
                    yield place, {key: value for key, value in row.items() if value is not None}
        except (pa.ArrowException, OSError) as error:
            raise ReaderError(f"{self.path}: not whole Parquet ({first_line(error)})") from error


def filter_of(row: dict[str, Any], where: str) -> str | None:
    """Return a row's filter; None before 0.4.7, when rows did not name it."""
    if "filter" not in row and "metrics" not in row:
        return None
    if not isinstance(row.get("filter"), str):
        raise ReaderError(f"{where}: 'filter' is {describe(row.get('filter'))}, not a name")
    return str(row["filter"])


def metrics_of(row: dict[str, Any], where: str) -> list[str]:
    """Return the names of a row's metrics: before 0.4.7, every field that is nothing else."""
    if "metrics" not in row:
        return [key for key in row if key not in NOT_METRICS]
    names = row["metrics"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ReaderError(f"{where}: 'metrics' is not a list of names")
    lacking = [name for name in names if name not in row]
    if lacking:
        raise ReaderError(f"{where}: no value for {lacking[0]!r}, which 'metrics' names")
    return list(dict.fromkeys(names))


def content_of(row: dict[str, Any], key: str | None, where: str) -> str:
    """Return what identifies a document: lm-eval's hash of it, or the field that is named."""
    if key is None:
        return str(row["doc_hash"])[:ID_LENGTH]
    doc = row.get("doc")
    return field_value(doc if isinstance(doc, dict) else {}, key, where)


def prompt_of(row: dict[str, Any]) -> str:
    """Return the hash of what the model saw first, as newer versions log it; "" if unknown."""
    known = row.get("prompt_hash")
    if isinstance(known, str):
        return known
    requests = row.get("arguments")
    if isinstance(requests, list) and requests and isinstance(requests[0], list):
        prompt = requests[0][0] if requests[0] else None
        return _sha256(prompt) if isinstance(prompt, str) else ""
    return ""


def _checked(row: Any, where: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise ReaderError(f"{where}: not a JSON object")
    if row.get("doc_hash") == NO_DOCUMENT:
        raise ReaderError(
            f"{where}: 'doc_hash' is that of no document, as lmms-eval 0.2.3 writes it for every "
            "row: its items cannot be told apart",
            hint="run it again with a newer lmms-eval",
        )
    if "doc_hash" not in row:
        if "doc" not in row:
            raise ReaderError(f"{where}: no 'doc_hash' and no 'doc', so not a row of lm-eval")
        # What lm-eval 0.4.3 and newer do, so that older runs join with newer ones.
        row["doc_hash"] = _sha256(json.dumps(row["doc"], indent=2, ensure_ascii=False))
    if not (isinstance(row["doc_hash"], str) and row["doc_hash"].strip()):
        raise ReaderError(f"{where}: 'doc_hash' is {describe(row['doc_hash'])}")
    doc_id = row.get("doc_id")
    if isinstance(doc_id, bool) or not isinstance(doc_id, int) or not 0 <= doc_id < 2**31:
        raise ReaderError(f"{where}: 'doc_id' is not the position of a document")
    return row


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
