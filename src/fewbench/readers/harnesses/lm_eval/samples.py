"""Rows of an lm-eval samples file, and a check that each belongs to its document."""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, takewhile
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any

from fewbench._json import loads
from fewbench.errors import ReaderError
from fewbench.readers.files import JsonLines, head, load_json, object_at, parquet_rows
from fewbench.readers.options import OptionTable
from fewbench.readers.values import ID_LENGTH, as_number, describe, field_value, is_position
from fewbench.scores.table import POSITION

NO_DOCUMENT = hashlib.sha256(b"null").hexdigest()
NOT_METRICS = {
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps"),
    *("doc_hash", "prompt_hash", "target_hash", "filter", "metrics"),
}
OPEN = (
    "no document matches its logged hash, and none is long enough to be found in its prompt: do "
    "not use this file if lm-eval ran with --cache_requests"
)
LEAST = 16  # characters of a text that identifies a document
WORDS = {None: "null", True: "true", False: "false"}


START_FIELDS = ["doc_id", "doc", "target", "arguments"]
"""Fields before a model's responses."""
RESPONSES = ', "resps": '
HASHES = ("doc_hash", "prompt_hash", "target_hash")
OF_WHOLE_ROWS = {*START_FIELDS, "input", "acc_mutual_info"}
MOST_KNOWN = 1 << 16


@dataclass(slots=True)
class RowStart:
    """What follows from a document and its requests, whatever a model responds.

    `document` is the document's hash, "" if it is not an object. `options` are those of the first
    response, once `is_seen`. `texts` are hashes of the document's texts, of those in its prompt,
    and whether both have any. It is None until a row carries a second hash of the document.
    """

    doc_id: int
    document: str
    choices: tuple[str, ...]
    in_context: bool
    n_responses: int
    is_seen: bool = False
    options: OptionTable | None = None
    texts: tuple[tuple[int, ...], tuple[int, ...], bool] | None = None

    @classmethod
    def from_row(cls, row: dict[str, Any], *, with_document: bool) -> "RowStart":
        """Look at a whole row."""
        requests, responses = requests_of(row), row.get("resps")
        document = row.get("doc") if with_document else None
        return cls(
            row["doc_id"],
            _sha256(indented(document)) if isinstance(document, dict) else "",
            tuple(choices_of(requests)),
            is_in_context(requests),
            len(responses) if isinstance(responses, list) else 0,
        )

    def suits(self, rest: dict[str, Any]) -> bool:
        """Whether nothing more is needed of a row that begins like this and goes on like `rest`."""
        responses = rest["resps"]
        return (
            self.is_seen
            and isinstance(responses, list)
            and len(responses) == self.n_responses
            and (self.options is not None or self.n_responses < 2)
            and OF_WHOLE_ROWS.isdisjoint(rest)
            and all(map(rest.get, HASHES))
            and {*map(type, map(rest.get, HASHES))} == {str}
            and (rest["doc_hash"] == self.document or self.texts is not None)
        )

    def options_of(
        self, row: dict[str, Any], metrics: list[str], delimiter: str
    ) -> OptionTable | None:
        """Return the options of a row, None if it is not multiple choice."""
        if not self.is_seen:
            self.is_seen, self.options = True, option_table(row, metrics, delimiter)
            return self.options
        likelihoods = None if self.options is None else likelihoods_of(row["resps"])
        if likelihoods is None or self.options is None:
            return None
        return OptionTable(likelihoods, self.options.right, self.options.texts)


_known: dict[tuple[bytes, str], RowStart] = {}


class SampleRows:
    """The rows of a samples file: JSON lines (since 0.4.3), a JSON array, or Parquet; or `listed`.

    Models with the same prompts have lines that begin alike. Only the first of them is looked at as
    a whole; the rows of others have no `doc`, `target` and `arguments`. With `key`, a field of the
    document, all rows are whole.
    """

    def __init__(
        self,
        path: Path,
        delimiter: str = " ",
        salvage: bool = False,
        key: str | None = None,
        listed: list[Any] | None = None,
    ) -> None:
        self.path, self.delimiter, self.key, self.listed = path, delimiter, key, listed
        self.lines = JsonLines(path, salvage, self._parsed)
        self.is_array = listed is not None or bool(re.match(rb"\s*\[\s*[{\]]", head(path)))
        self.is_table = path.suffix.lower() == ".parquet"

    @property
    def place_word(self) -> str:
        """Word for a place in the file."""
        return "row" if self.is_array or self.is_table else "line"

    def __iter__(self) -> Iterator[tuple[int, str, dict[str, Any], RowStart]]:
        """Yield the place as number and in words, the row and its request.

        ReaderError for a row that is not one of lm-eval.
        """
        rows: Iterable[tuple[int, Any]] = self.lines
        if self.is_table:
            rows = (
                (place, ({key: value for key, value in row.items() if value is not None}, None))
                for place, row in parquet_rows(self.path)
            )
        elif self.is_array:
            data = load_json(self.path) if self.listed is None else self.listed
            listed = data if isinstance(data, list) else [data]
            rows = enumerate(((row, None) for row in listed), start=1)
        file = f"{self.path}, {self.place_word}"
        for place, (row, start) in rows:
            where = f"{file} {place}"
            row = _checked(row, where)
            if isinstance(start, RowStart):
                yield place, where, row, start
                continue
            # Documents of a table have fields of others.
            asked = RowStart.from_row(row, with_document=not self.is_table)
            if start is not None:
                if len(_known) >= MOST_KNOWN:
                    _known.clear()
                _known[start] = asked
            yield place, where, row, asked

    def _parsed(self, line: str) -> tuple[Any, RowStart | tuple[bytes, str] | None]:
        """Return a row and the key of its start; or its rest, and the earlier request."""
        begin, mark, end = line.partition(RESPONSES)
        if not mark or self.key is not None:
            return loads(line), None
        try:
            rest = loads(f"{{{mark[2:]}{end}")
            start = hashlib.sha256(begin.encode()).digest(), self.delimiter
            asked = _known.get(start)
            if asked is not None and asked.suits(rest):
                return {"doc_id": asked.doc_id} | rest, asked
            first = loads(f"{begin}}}")
        except ValueError:  # the mark is inside of a field, or the line is torn
            return loads(line), None
        if list(first) == START_FIELDS and rest.keys().isdisjoint(START_FIELDS):
            return first | rest, start
        return loads(line), None


def filter_of(row: dict[str, Any], where: str) -> str | None:
    """Return the filter of a row, or None before 0.4.7."""
    if "filter" not in row and "metrics" not in row:
        return None
    if not isinstance(row.get("filter"), str):
        raise ReaderError(f"{where}: 'filter' is {describe(row.get('filter'))}, not a name")
    return str(row["filter"])


def metrics_of(row: dict[str, Any], where: str) -> list[str]:
    """Return the metrics of a row; before 0.4.7, all fields that are nothing else."""
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
    """Return lm-eval's hash of a document, or its field `key`; `doc_id` is also its position."""
    if key is None:
        return str(row["doc_hash"])[:ID_LENGTH]
    document = object_at(row, "doc")
    if key == POSITION and key not in document:
        return str(row[POSITION])
    return field_value(document, key, where)


def prompt_of(row: dict[str, Any]) -> str:
    """Return the hash of the prompt; "" if unknown."""
    prompt_hash = row.get("prompt_hash")
    if isinstance(prompt_hash, str):
        return prompt_hash
    requests = row.get("arguments")
    if isinstance(requests, list) and requests and isinstance(requests[0], list):
        prompt = requests[0][0] if requests[0] else None
        return _sha256(prompt) if isinstance(prompt, str) else ""
    return ""


def answer_of(row: dict[str, Any]) -> str | None:
    """Return lm-eval's hash of the right answer (computed where it was not logged), or None."""
    target_hash = row.get("target_hash")
    if isinstance(target_hash, str) and target_hash:
        return target_hash
    return _sha256(str(row["target"])) if "target" in row else None


def choices_of(requests: list[list[Any]]) -> list[str]:
    """Return the texts of options, [] if the requests are not those of a multiple-choice document.

    Where options stand in the context (as in winogrande), an option is what follows the text that
    all contexts begin with.

    Examples
    --------
    >>> choices_of([["2 + 2 =", " four"], ["2 + 2 =", " five"]])
    [' four', ' five']
    >>> choices_of([["Ann ate, for Ann", " was hungry"], ["Ann ate, for Bob", " was hungry"]])
    ['Ann', 'Bob']
    """
    asked = [query[:2] for query in requests if all(isinstance(text, str) for text in query[:2])]
    # acc_mutual_info asks options alone as well
    asked = [query for query in asked if query[0]] or asked
    if len(asked) < 2 or any(len(query) < 2 for query in asked):
        return []
    if not is_in_context(asked):
        return [option for _, option in asked]
    contexts = [context for context, _ in asked]
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*contexts, strict=False))
    start = len(list(same))
    return [context[start:] for context in contexts]


def is_in_context(requests: list[list[Any]]) -> bool:
    """Whether the options of a document stand in its contexts (as in winogrande)."""
    options = {query[1] for query in requests if len(query) > 1 and isinstance(query[1], str)}
    return len(requests) > 1 and len(options) == 1


def requests_of(row: dict[str, Any]) -> list[list[Any]]:
    """Return the requests of a row: context and continuation or generation arguments of each."""
    arguments = row.get("arguments")
    count = len(arguments) if isinstance(arguments, dict | list) else 0
    return _requests(arguments, count)


def _checked(row: Any, where: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise ReaderError(f"{where}: not a JSON object")
    if row.get("doc_hash") == NO_DOCUMENT:
        raise ReaderError(
            f"{where}: 'doc_hash' is the hash of nothing, as lmms-eval 0.2.3 writes it for every "
            "row, so items cannot be identified",
            hint="run the evaluation again with a newer lmms-eval",
        )
    if "doc_hash" not in row:
        if "doc" not in row:
            raise ReaderError(f"{where}: no 'doc_hash' and no 'doc', so not a row of lm-eval")
        # What lm-eval 0.4.3 and newer do, so that older runs join with newer ones.
        row["doc_hash"] = _sha256(json.dumps(row["doc"], indent=2, ensure_ascii=False))
    if not (isinstance(row["doc_hash"], str) and row["doc_hash"].strip()):
        raise ReaderError(f"{where}: 'doc_hash' is {describe(row['doc_hash'])}")
    if not is_position(row.get("doc_id")):
        raise ReaderError(f"{where}: 'doc_id' is not the position of a document")
    return row


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def option_table(row: dict[str, Any], metrics: list[str], delimiter: str) -> OptionTable | None:
    """Return the options of a row, None if it is not multiple choice.

    `delimiter` stands between prompt and option and does not count as part of the option.

    Examples
    --------
    >>> found = option_table(
    ...     {
    ...         "resps": [[["-1.5", "False"]], [["-inf", "False"]]],
    ...         "arguments": {"gen_args_0": {"arg_0": "2 + 2 =", "arg_1": " four"},
    ...                       "gen_args_1": {"arg_0": "2 + 2 =", "arg_1": " five!"}},
    ...         "target": "0",
    ...     }, ["acc"], " ")
    >>> found
    OptionTable(likelihoods=(-1.5, -inf), right=0, texts=('four', 'five!'), unconditional=())
    """
    likelihoods = likelihoods_of(row.get("resps"))
    if likelihoods is None:
        return None
    requests = _requests(row.get("arguments"), len(likelihoods))
    unconditional: tuple[float, ...] = ()
    if "acc_mutual_info" in metrics:
        # Up to 0.4.4 the requests alternate, later all with the question come first.
        without = [request[:1] == [""] for request in requests]
        unconditional = tuple(compress(likelihoods, without))
        whole = [not bare for bare in without]
        likelihoods, requests = tuple(compress(likelihoods, whole)), list(compress(requests, whole))
        if len(unconditional) != len(likelihoods):
            return None
    if len(likelihoods) < 2:
        return None
    texts = _option_texts(requests, delimiter)
    if len(texts) != len(likelihoods):
        return OptionTable(likelihoods, unconditional=unconditional)
    return OptionTable(likelihoods, _right(row.get("target"), texts), texts, unconditional)


def likelihoods_of(resps: Any) -> tuple[float, ...] | None:
    """Return each request's log-likelihood; resps are request × repeat × (value, is_greedy)."""
    if not isinstance(resps, list):
        return None
    values = []
    for request in resps:
        answer = request[0] if isinstance(request, list) and request else None
        if not isinstance(answer, list) or len(answer) != 2:
            return None
        value = as_number(answer[0])
        if value is None or str(answer[1]) not in ("True", "False"):
            return None
        values.append(value)
    return tuple(values)


def _requests(arguments: Any, count: int) -> list[list[Any]]:
    if isinstance(arguments, dict):
        arguments = [arguments.get(f"gen_args_{i}") for i in range(count)]
    if not isinstance(arguments, list):
        return [[]] * count
    requests = [
        [request.get("arg_0"), request.get("arg_1")] if isinstance(request, dict) else request
        for request in arguments[:count]
    ]
    requests = [request if isinstance(request, list) else [] for request in requests]
    return requests + [[]] * (count - len(requests))


def _option_texts(requests: list[list[Any]], delimiter: str) -> tuple[str, ...]:
    """Return the options' texts (empty if they are part of the context, as in winogrande)."""
    texts = [request[1] for request in requests if len(request) > 1 and isinstance(request[1], str)]
    if len(set(texts)) < 2:
        return ()
    if all(text.startswith(delimiter) for text in texts):
        texts = [text.removeprefix(delimiter) for text in texts]
    return tuple(texts)


def _right(target: Any, texts: Sequence[str]) -> int:
    """Return the right option, -1 if the target may also be an option's text."""
    text = str(target)
    if text in texts or not (text.isascii() and text.isdigit()) or len(text) > 6:
        return -1
    return int(text) if int(text) < len(texts) else -1


class DocumentCheck:
    """Compare each row's document with the hash that is logged with it.

    Hashes can also differ because documents are logged in a different form, such as those with
    pictures. A row counts as another document's only if its hash is that of another document of the
    file, or if other rows' hashes agree, or if no prompt contains its document's own texts.
    """

    def __init__(self) -> None:
        self._n_rows = 0
        self._agreeing: set[str] = set()
        self._other: dict[str, tuple[int, int, str]] = {}  # document → place, rows, logged hash
        self._texts: dict[int, int] = {}
        self._shown: dict[str, tuple[int, ...]] = {}
        self._with_text: set[str] = set()

    def add(self, row: dict[str, Any], asked: RowStart, place: int) -> None:
        """Compare one row."""
        document = asked.document
        if not document:
            return
        self._n_rows += 1
        if document == row["doc_hash"]:
            self._agreeing.add(document)
        elif document in self._other:
            first, times, logged = self._other[document]
            self._other[document] = first, times + 1, logged
        else:
            self._other[document] = place, 1, row["doc_hash"]
            asked.texts = asked.texts or _texts_of(row)
            texts, shown, both = asked.texts
            for text in texts:
                self._texts[text] = self._texts.get(text, 0) + 1
            self._shown[document] = shown
            if both:
                self._with_text.add(document)

    def check(self, path: Path, place_word: str) -> tuple[str, ...]:
        """Raise ReaderError if rows carry another document's prompt; return notes."""
        if not self._other:
            return ()
        documents = self._agreeing | self._other.keys()
        swapped = any(logged in documents for _, _, logged in self._other.values())
        # A text of several documents, such as a passage, identifies none of them.
        identified = {
            document
            for document, shown in self._shown.items()
            if any(self._texts[text] == 1 for text in shown)
        }
        if not swapped and identified and not self._agreeing:
            return ()
        suspects = self._other.keys() - identified
        if not (swapped or (suspects if self._agreeing else suspects & self._with_text)):
            return () if self._agreeing else (OPEN,)
        rows = [self._other[document] for document in suspects or self._other]
        raise ReaderError(
            f"{path}: {sum(times for _, times, _ in rows)} of {self._n_rows} rows carry the prompt "
            f"and the answer of another document, first {place_word} "
            f"{min(place for place, _, _ in rows)}: their 'doc_hash' is not the hash of their 'doc'"
            ", as lm-eval writes it with --cache_requests for chosen items or a changed dataset",
            hint="run it again without --cache_requests, or skip such files with --damaged skip",
        )


def indented(value: Any, gap: str = "\n") -> str:
    """Return JSON as `json.dumps(value, indent=2, ensure_ascii=False)` does, but faster.

    Examples
    --------
    >>> document = {"q": "Größe?", "options": ["a", {}], "answer": 1.0, "seen": None}
    >>> indented(document) == json.dumps(document, indent=2, ensure_ascii=False)
    True
    """
    kind = type(value)
    if kind is str:
        return encode_basestring(value)
    if value and kind is dict:
        inner = gap + "  "
        pairs = [f"{encode_basestring(key)}: {indented(sub, inner)}" for key, sub in value.items()]
        return f"{{{inner}{f',{inner}'.join(pairs)}{gap}}}"
    if value and kind is list:
        inner = gap + "  "
        return f"[{inner}{f',{inner}'.join([indented(sub, inner) for sub in value])}{gap}]"
    if value is None or kind is bool:
        return WORDS[value]
    if kind is int or (kind is float and math.isfinite(value)):
        return repr(value)
    return json.dumps(value)


def _texts_of(row: dict[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
    asked = _texts([row.get("arguments"), row.get("input")])
    plain = {text: _plain(text) for text in set(asked)}  # options share a context
    prompt = " ".join(filter(None, (plain[text] for text in asked)))
    texts = {_plain(text) for text in _texts(row["doc"]) if _tells_apart(text)}
    shown = tuple(hash(text) for text in texts if text in prompt)
    return tuple(map(hash, texts)), shown, bool(texts and prompt)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return []
    return [text for inner in value for text in _texts(inner)]


def _tells_apart(text: str) -> bool:
    """Whether a text may be of one document only: not a number or the name of a subject."""
    return len(text) >= LEAST and (" " in text.strip() or not text.isascii())


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
