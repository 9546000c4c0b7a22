"""JSON: any text, and files of known form; reading them never executes anything."""

import json
from collections import Counter
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from fewbench.errors import FewbenchError

Model = TypeVar("Model", bound=BaseModel)


class Frozen(BaseModel):
    """A record that does not change, and has no other fields than those of its class."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class RepeatedKeyError(ValueError):
    """A key that an object of JSON has twice; Python's own reader keeps the last value."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise RepeatedKeyError(f"an object has the key {key!r} twice")
    return members


DECODER = json.JSONDecoder(object_pairs_hook=_unique)


def loads(text: str | bytes) -> Any:
    """Read JSON as `json.loads` does.

    ValueError also for lists or objects nested too deeply, RepeatedKeyError for a repeated key.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode(json.detect_encoding(text), "surrogatepass")
        return DECODER.decode(text)
    except RecursionError:
        raise ValueError("lists or objects are nested too deeply") from None


def parse_json(
    model: type[Model], text: str | bytes, what: str, error: type[FewbenchError]
) -> Model:
    """Read a record from JSON; `error`, beginning with `what`, says where it does not fit."""
    try:
        return model.model_validate_json(text)
    except ValidationError as error_of:
        first = error_of.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise error(f"{what}: {where}: {first['msg']}") from error_of
