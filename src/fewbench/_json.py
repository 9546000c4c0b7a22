"""JSON: any text, and files of known form; reading them never executes anything."""

import json
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from fewbench.errors import FewbenchError

Model = TypeVar("Model", bound=BaseModel)


def loads(text: str | bytes, **settings: Any) -> Any:
    """Read JSON as `json.loads` does; ValueError also for lists or objects nested too deeply."""
    try:
        return json.loads(text, **settings)
    except RecursionError:
        raise ValueError("lists or objects are nested too deeply") from None


def parse_json(
    model: type[Model], text: str | bytes, what: str, error: type[FewbenchError]
) -> Model:
    """Read a record from JSON; `error`, beginning with `what`, says where it does not fit."""
    try:
        return model.model_validate_json(text)
    except ValidationError as found:
        first = found.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise error(f"{what}: {where}: {first['msg']}") from found
