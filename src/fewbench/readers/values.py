"""Values of logs in comparable form: numbers, item identities, and settings as text."""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from fewbench._names import some
from fewbench.errors import ReaderError

ID_LENGTH = 16
LONGEST = 200  # of a field; longer ones are hashed
LONG = 80
# In an object's text, its address and module, which depend on the run and the harness's version.
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+|(?<=<class ')[\w.]+\.(?=\w+'>)")
BOOLEANS = {"True": True, "False": False}
WORDS = {"true": True, "false": False, "none": None, "null": None}


def as_number(value: Any) -> float | None:
    """Return a number (NaN and infinity included), or None for anything else.

    Booleans and texts of numbers count as numbers, as lm-eval writes both as text in places.

    Examples
    --------
    >>> as_number(True), as_number("-3.5"), as_number("False"), as_number([1.0]), as_number("C")
    (1.0, -3.5, 0.0, None, None)
    """
    if isinstance(value, str):
        if "_" in value or not value.isascii():  # what Python reads as a number is a typing error
            return None
        value = BOOLEANS.get(value, value)
    elif not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def mean_of(values: Sequence[Any]) -> Any:
    """Return the mean of the values, or the first value that is not a number.

    Examples
    --------
    >>> mean_of([True, "0.5"]), mean_of([1, "C"])
    (0.75, 'C')
    """
    numbers = [as_number(value) for value in values]
    finite = [number for number in numbers if number is not None]
    return sum(finite) / len(finite) if len(finite) == len(values) else values[numbers.index(None)]


def is_unicode(text: str) -> bool:
    """Whether a text is valid Unicode; JSON can hold half of a surrogate pair, which is not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_position(value: Any) -> bool:
    """Whether a value can be the position of a document in its task."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def describe(value: Any) -> str:
    """Describe a value that is not one finite number.

    Examples
    --------
    >>> describe([1, 2]), describe({}), describe(float("nan")), describe(None), describe("C")
    ('a list of 2', 'an object', 'nan', 'null', "the text 'C'")
    """
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return "an object"
    number = as_number(value)
    if number is not None and not math.isfinite(number):
        return str(number)
    if value is None:
        return "null"
    return f"the text {value[:40]!r}" if isinstance(value, str) else "a number too large"


def text_hash(field: str, text: str) -> str:
    """Return FIELD=HASH of a text of a document, whatever its white space.

    Examples
    --------
    >>> text_hash("question", "2 + 2 =") == text_hash("question", "2  + 2 = ")
    True
    """
    return f"{field}={content_id(' '.join(text.split()))}"


def content_id(*texts: str) -> str:
    """Return a hash of an item's texts: question, options, right answer.

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
    """Return the value of the `--key` field of an item as text.

    Raises
    ------
    ReaderError
        If the item has no text or number of that name; `where` names the item in the message.

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
            hint=f"--key can be {some(there, most=12)}" if there else "omit --key",
        )
    text = str(value)
    return text if len(text) <= LONGEST else content_id(text)


def _is_single(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""


def setting(value: Any) -> str:
    """Return a setting as text, the same for a number, its text and words such as "True".

    Examples
    --------
    >>> [setting(value) for value in (0.70, "0.7", 1.0, "1", True, "true", None, "None")]
    ['0.7', '0.7', '1', '1', 'true', 'true', 'none', 'none']
    >>> setting({"b": "2.0", "a": ["x"]})
    '{"a": ["x"], "b": 2}'
    """
    plain = _plain(value)
    if plain is None:
        return "none"
    return shortened(plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False))


def called(
    function: str,
    arguments: Mapping[str, Any],
    unset: Mapping[str, str] | None = None,
    absent: Sequence[str] = (),
) -> str:
    """Return a function and its arguments as text, without arguments that are as if not given.

    Parameters
    ----------
    function : str
    arguments : mapping of str to anything
    unset : mapping of str to str
        Defaults of arguments, as `setting` writes them.
    absent : sequence of str
        Values that never are arguments, whatever the name.

    Examples
    --------
    >>> called("regex", {"regex_pattern": "[0-9]+", "group_select": 0}, {"group_select": "0"})
    'regex(regex_pattern=[0-9]+)'
    """
    texts = {str(name): setting(value) for name, value in arguments.items()}
    listed = [
        f"{name}={texts[name]}"
        for name in sorted(texts)
        if texts[name] not in absent and texts[name] != (unset or {}).get(name)
    ]
    return shortened(function + (f"({', '.join(listed)})" if listed else ""))


def shortened(text: str) -> str:
    """Return a text; a long text as its start and a hash."""
    if len(text) <= LONG:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[: LONG - 20]}… {digest[:12]}"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, list | tuple):
        return [_plain(element) for element in value]
    if isinstance(value, str):
        if value.strip().lower() in WORDS:
            return WORDS[value.strip().lower()]
        try:
            number = float(value)
        except ValueError:
            return value
        # Not '1_000' or 'nan', which are names here.
        return _plain(number) if math.isfinite(number) and "_" not in value else value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, bool | int | float | None) else str(value)
