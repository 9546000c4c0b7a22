"""Settings of runs as text: equal text for what is equal in meaning."""

import hashlib
import json
import math
from typing import Any

LONG = 80
WORDS = {"true": True, "false": False, "none": None, "null": None}


def setting(value: Any) -> str:
    """Return a setting as text; lm-eval writes the same one as text, number or word.

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


def shortened(text: str) -> str:
    """Return a text, or its start and a hash where it is long."""
    if len(text) <= LONG:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[: LONG - 20]}… {digest[:12]}"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
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
