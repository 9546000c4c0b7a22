"""The lines of one samples file, checked and sorted by filter."""

import json
from typing import Any

from fewbench.errors import ReaderError
from fewbench.readers._lm_eval.block import Block
from fewbench.readers._lm_eval.logs import Log
from fewbench.readers._lm_eval.numbers import describe

NEWER = "run it again with lm-eval 0.4.7 or newer"
NOT_METRICS = {
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps"),
    *("doc_hash", "prompt_hash", "target_hash", "filter", "metrics"),
}
Seen = tuple[str | None, int, str]  # filter, doc_id, doc_hash


def read_rows(log: Log) -> dict[str | None, Block]:
    """Read a samples file: filter → its rows; None before 0.4.7, when rows did not name it.

    Raises
    ------
    ReaderError
        If a line is torn, is not a row of lm-eval, or is of a version that cannot be read.
    """
    blocks: dict[str | None, Block] = {}
    seen: set[Seen] = set()
    try:
        with log.path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    _add(line, number, log, blocks, seen)
    except OSError as error:
        raise ReaderError(f"{log.path}: cannot be read ({error.strerror})") from error
    if not blocks:
        raise ReaderError(f"{log.path}: empty, no document was logged", hint="delete it")
    return blocks


def _add(
    line: bytes, number: int, log: Log, blocks: dict[str | None, Block], seen: set[Seen]
) -> None:
    where = f"{log.path}, line {number}"
    row = _checked(_parsed(line, number, where), where)
    name = _filter(row, where)
    if blocks and (name is None) != (None in blocks):
        raise ReaderError(f"{where}: some rows name their filter and some do not")
    key = (name, row["doc_id"], "" if name is None else row["doc_hash"])
    if key in seen:
        raise _repeated(name, row["doc_id"], where)
    seen.add(key)
    blocks.setdefault(name, Block(log, name)).append(row, _metrics(row, where), number)


def _parsed(line: bytes, number: int, where: str) -> Any:
    try:
        row = [] if number == 1 and line.strip() == b"[" else json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ReaderError(
            f"{where}: not whole JSON ({error})", hint="the file is torn; copy it again"
        ) from error
    if isinstance(row, list):
        raise ReaderError(f"{where}: a list, as lm-eval 0.4.2 and older wrote it", hint=NEWER)
    return row


def _checked(row: Any, where: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise ReaderError(f"{where}: not a JSON object")
    if "doc_hash" not in row:
        raise ReaderError(
            f"{where}: no 'doc_hash', so not written by lm-eval 0.4.3 or newer", hint=NEWER
        )
    if not (isinstance(row["doc_hash"], str) and row["doc_hash"].strip()):
        raise ReaderError(f"{where}: 'doc_hash' is {describe(row['doc_hash'])}")
    doc_id = row.get("doc_id")
    if isinstance(doc_id, bool) or not isinstance(doc_id, int) or not 0 <= doc_id < 2**31:
        raise ReaderError(f"{where}: 'doc_id' is not the position of a document")
    return row


def _filter(row: dict[str, Any], where: str) -> str | None:
    if "filter" not in row and "metrics" not in row:
        return None
    if not isinstance(row.get("filter"), str):
        raise ReaderError(f"{where}: 'filter' is {describe(row.get('filter'))}, not a name")
    return str(row["filter"])


def _metrics(row: dict[str, Any], where: str) -> list[str]:
    if "metrics" not in row and "filter" not in row:
        return [key for key in row if key not in NOT_METRICS]
    names = row.get("metrics")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ReaderError(f"{where}: 'metrics' is not a list of names")
    lacking = [name for name in names if name not in row]
    if lacking:
        raise ReaderError(f"{where}: no value for {lacking[0]!r}, which 'metrics' names")
    return list(dict.fromkeys(names))


def _repeated(name: str | None, doc_id: int, where: str) -> ReaderError:
    if name is None:
        return ReaderError(
            f"{where}: document {doc_id} has a second row; before 0.4.7 lm-eval wrote one for "
            "each filter and did not say which",
            hint=NEWER,
        )
    return ReaderError(
        f"{where}: document {doc_id} is logged a second time for filter {name!r}",
        hint="the file was joined from two; keep one of them",
    )
