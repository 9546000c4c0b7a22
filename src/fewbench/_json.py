"""JSON: any text, and files of known form; reading them never executes anything."""

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from fewbench.errors import FewbenchError, FieldError

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)
Model = TypeVar("Model", bound=BaseModel)


class _Checked(ModelMetaclass):
    """Turns pydantic's errors on the arguments of a call into FieldError."""

    def __call__(cls, *args: Any, **fields: Any) -> Any:
        try:
            return super().__call__(*args, **fields)
        except ValidationError as error:
            field, mistake = _first(error)
            message = f"{cls.__name__}: {first_mistake(error)}"
            raise FieldError(message, field=field, mistake=mistake) from None


class Frozen(BaseModel, metaclass=_Checked):
    """A record that does not change, and has no other fields than those of its class."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def first_mistake(error: ValidationError, whole: str = "") -> str:
    """Return the place of the first mistake, or `whole`, and what is wrong there."""
    place, mistake = _first(error)
    return ": ".join(filter(None, (place or whole, mistake)))


def _first(error: ValidationError) -> tuple[str, str]:
    first = error.errors()[0]
    return ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")


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
        raise error(f"{what}: {first_mistake(error_of, 'the file')}") from error_of
