"""What identifies an item within its task: what it says, or a field that the user names."""

import hashlib
from collections.abc import Mapping
from typing import Any

from fewbench._names import some
from fewbench.errors import ReaderError

ID_LENGTH = 16
LONGEST = 200  # of a field; longer ones are hashed


def content_id(*texts: str) -> str:
    """Return the identity of an item by what it says: question, options, right answer.

    Examples
    --------
    >>> content_id("2 + 2 =", "4")
    '918839800a423f73'
    >>> content_id("2 + 2 =", "4") == content_id("2 + 2 =4")
    False
    """
    joined = "\x1f".join(texts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:ID_LENGTH]


def field_value(fields: Mapping[str, Any], key: str, where: str) -> str:
    """Return the field of an item that `--key` names, as text.

    Raises
    ------
    ReaderError
        If the item, which `where` names, has no text or number of that name.

    Examples
    --------
    >>> field_value({"id": 7, "tags": ["a"]}, "id", "a.jsonl, line 1")
    '7'
    """
    value = fields.get(key)
    if not _is_single(value):
        there = [name for name, other in fields.items() if _is_single(other)]
        raise ReaderError(
            f"{where}: the item has no text or number {key!r}",
            hint=f"--key can be {some(there, most=12)}" if there else "leave out --key",
        )
    text = str(value)
    return text if len(text) <= LONGEST else content_id(text)


def _is_single(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""
