"""Whether rows carry the prompt of their own document.

lm-eval stores built prompts with `--cache_requests`, under a name that does not say which
documents they are of. A later run of other documents (`--samples`, a changed dataset) then logs one
document with the prompt, the answer and the `doc_hash` of another.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any

from fewbench.errors import ReaderError

OPEN = (
    "no document has the hash that is logged with it, and none is long enough to be found in its "
    "prompt: do not use this file if lm-eval ran with --cache_requests"
)
LEAST = 16  # characters of a text that tells a document from others
WORDS = {None: "null", True: "true", False: "false"}


class Documents:
    """The rows of a file, each compared with the hash that is logged with it.

    A hash can also differ because documents were logged otherwise than they were hashed, such as
    those with pictures. So a row counts as another document's only with further evidence: the
    hash is that of another document of the file; or hashes of other rows do agree, or not one
    row's prompt shows its document's own texts.
    """

    def __init__(self) -> None:
        self._n_rows = 0
        self._agreeing: set[str] = set()
        self._other: dict[str, tuple[int, int, str]] = {}  # document → place, rows, logged hash
        self._texts: Counter[int] = Counter()
        self._shown: dict[str, set[int]] = {}
        self._with_text: set[str] = set()

    def add(self, row: dict[str, Any], place: int) -> None:
        """Compare a row's document with its logged hash."""
        document = row.get("doc")
        if not isinstance(document, dict):
            return
        self._n_rows += 1
        text = indented(document).encode("utf-8", "surrogatepass")
        found = hashlib.sha256(text).hexdigest()
        if found == row["doc_hash"]:
            self._agreeing.add(found)
        elif found in self._other:
            first, times, logged = self._other[found]
            self._other[found] = first, times + 1, logged
        else:
            self._other[found] = place, 1, row["doc_hash"]
            asked = _plain(" ".join(_texts([row.get("arguments"), row.get("input")])))
            texts = {_plain(one) for one in _texts(document) if _tells_apart(one)}
            self._texts.update(map(hash, texts))
            self._shown[found] = {hash(one) for one in texts if one in asked}
            if texts and asked.strip():
                self._with_text.add(found)

    def check(self, path: Path, place_word: str) -> tuple[str, ...]:
        """Raise ReaderError if rows carry another document's prompt; note if that is open."""
        if not self._other:
            return ()
        documents = self._agreeing | self._other.keys()
        swapped = any(logged in documents for _, _, logged in self._other.values())
        # A text of several documents, such as a passage, also stands in the other's prompt.
        own = {
            found
            for found, shown in self._shown.items()
            if any(self._texts[one] == 1 for one in shown)
        }
        if not swapped and own and not self._agreeing:
            return ()
        suspects = self._other.keys() - own
        if not (swapped or (suspects if self._agreeing else suspects & self._with_text)):
            return () if self._agreeing else (OPEN,)
        rows = [self._other[found] for found in suspects or self._other]
        raise ReaderError(
            f"{path}: {sum(times for _, times, _ in rows)} of {self._n_rows} rows carry the prompt "
            f"and the answer of another document, first {place_word} "
            f"{min(place for place, _, _ in rows)}: their 'doc_hash' is not the hash of their 'doc'"
            ", as lm-eval writes it with --cache_requests for chosen items or a changed dataset",
            hint="run it again without --cache_requests; fewbench import leaves such files out "
            "with --damaged skip",
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
        pairs = [f"{encode_basestring(key)}: {indented(one, inner)}" for key, one in value.items()]
        return f"{{{inner}{f',{inner}'.join(pairs)}{gap}}}"
    if value and kind is list:
        inner = gap + "  "
        return f"[{inner}{f',{inner}'.join([indented(one, inner) for one in value])}{gap}]"
    if value is None or kind is bool:
        return WORDS[value]
    if kind is int or (kind is float and math.isfinite(value)):
        return repr(value)
    return json.dumps(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _tells_apart(text: str) -> bool:
    """Whether a text may be of one document only: not the name of a subject, or a number."""
    return len(text) >= LEAST and (" " in text.strip() or not text.isascii())


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
