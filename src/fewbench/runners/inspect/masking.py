"""Keys in what Inspect shows and logs, where a server, a task or a library repeats them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from fewbench._text import MASK, SECRET, masked, masked_within, masking_records

# What a log names, and what readers compare, by fields that tell the kind of an object.
SPEC = {"task", "model", "dataset", "created"}
OF_SPEC = {"model_args", "model_base_url", "model_roles"}  # not compared
OWN = (
    ({"id", "epoch", "input", "target"}, {"id", "uuid", "input", "target", "choices", "metadata"}),
    ({"version", "eval"}, {"results", "tags", "metadata", "status"}),
    ({"sample_id"}, {"sample_id"}),
)


@contextmanager
def masking_inspect() -> Iterator[None]:
    """Mask keys in Inspect's logs, errors and messages while the block runs.

    The names of tasks, models and samples, what samples say, and settings stay.
    """
    writing: Any = import_module("inspect_ai._util.json")  # all logs are written by it
    errors: Any = import_module("inspect_ai._util.error").EvalError
    write, make = writing.to_json, errors.__init__

    def write_masked(value: Any, **how: Any) -> bytes:
        content: bytes = write(value, **how)
        text = content.decode("utf-8", "surrogateescape")
        if masked(text) == text:
            return content
        return bytes(write(_masked(json.loads(text)), **how))

    def make_masked(self: Any, **said: Any) -> None:
        make(self, **masked_within(said))

    writing.to_json, errors.__init__ = write_masked, make_masked
    try:
        with masking_records():
            yield
    finally:
        writing.to_json, errors.__init__ = write, make


def _masked(value: Any) -> Any:
    if isinstance(value, list):
        return [_masked(part) for part in value]
    if not isinstance(value, dict):
        return masked_within(value)
    if value.keys() >= SPEC:
        return {k: _masked(part) if k in OF_SPEC else _settings(part) for k, part in value.items()}
    own = next((names for fields, names in OWN if fields <= value.keys()), set())
    masks = {"plan": _settings} | dict.fromkeys(own, lambda part: part)
    return {name: masks.get(name, _masked)(part) for name, part in value.items()}


def _settings(value: Any) -> Any:
    """Return settings, such as arguments of a task, without those that are keys by their names."""
    if isinstance(value, list):
        return [_settings(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {
        name: MASK if SECRET.search(name) and isinstance(part, str) else _settings(part)
        for name, part in value.items()
    }
