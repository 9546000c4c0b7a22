"""What tells a model from another one of the same name: its files, its weights, its code.

Facts of a run, as far as they can be seen. A server's model cannot be seen.
"""

import dis
import hashlib
import inspect
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

LARGE = 1 << 28  # bytes
WEIGHTS, CODE = "weights", "code"
"""Facts of a model object and of a function."""
FILES = "file "
"""Prefix of facts of files."""
OF_PATH = "weights of "
"""Prefix of facts of a model's files and folders."""
OF_OBJECT = "\0weights "
WEIGHT_FILES = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".gguf", ".msgpack", ".h5", ".npz")
SAMPLED = 1024
"""Numbers of each parameter that are looked at: training changes nearly all of them."""
VALUES = (str, bytes, int, float, bool, type(None))
DEPTH = 4
"""Calls from a function to functions of its own module that are looked at."""


def of_file(path: Path) -> str:
    """Return a hash of a file's content; its state if it is large, so that reading takes long."""
    state = path.stat()
    if state.st_size > LARGE or not os.access(path, os.R_OK):
        return f"of {state.st_size:,} bytes, changed at {state.st_mtime_ns}"
    return f"with the hash {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"


def of_weights(paths: Iterable[str]) -> dict[str, str]:
    """Return facts of the paths that are files, or folders with files of weights."""
    facts = {}
    for name in filter(None, paths):
        path = Path(name)
        if path.is_file():
            facts[OF_PATH + name] = of_file(path)
        elif path.is_dir():
            files = sorted(file for file in path.iterdir() if file.suffix in WEIGHT_FILES)
            if files:
                states = [f"{file.name} {of_file(file)}" for file in files if file.is_file()]
                facts[OF_PATH + name] = f"with the hash {_digest(states)}"
    return facts


def of_model(model: Any) -> dict[str, str]:
    """Return facts of a model object: a hash of numbers of all its parameters (of torch).

    Empty if it has no parameters that can be seen.
    """
    weights = next((text for part in _parts(model) if (text := _parameters(part))), None)
    return {} if weights is None else {WEIGHTS: f"with the hash {weights}"}


def of_function(function: Callable[..., Any]) -> dict[str, str]:
    """Return facts of a function: a hash of its code, and of values and weights that it uses.

    Lists and other objects that may change as it is called are not looked at.

    Examples
    --------
    >>> def ask(name):
    ...     return lambda item: len(item + name)
    >>> of_function(ask("a")) == of_function(ask("a")), of_function(ask("a")) == of_function(len)
    (True, False)
    """
    seen = list(_seen(function, DEPTH))
    weights = sorted({text for text in seen if text.startswith(OF_OBJECT)})
    facts = {CODE: f"with the hash {_digest(text for text in seen if text not in weights)}"}
    return facts | ({WEIGHTS: f"with the hash {_digest(weights)}"} if weights else {})


def _seen(value: Any, depth: int) -> Iterator[str]:
    """Yield what can be seen of a function, and of what it uses."""
    if isinstance(value, VALUES):
        yield repr(value)
    elif isinstance(value, tuple):
        for part in value:
            yield from _seen(part, depth)
    elif isinstance(value, partial):
        yield from _seen((value.func, value.args, tuple(value.keywords.items())), depth)
    elif isinstance(value, MethodType):
        yield from _seen((value.__func__, value.__self__), depth)
    elif isinstance(value, FunctionType):
        inner = inspect.unwrap(value)
        function = inner if isinstance(inner, FunctionType) else value
        yield from _code(function.__code__)
        if depth:
            yield from _seen(_used(function), depth - 1)
    else:
        yield f"{type(value).__module__}.{type(value).__qualname__}"
        for part in _parts(value):
            if (weights := _parameters(part)) is not None:
                yield OF_OBJECT + weights


def _code(code: CodeType) -> Iterator[str]:
    yield from (code.co_code.hex(), repr(code.co_names))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        elif isinstance(constant, frozenset):
            yield repr(sorted(map(repr, constant)))
        else:
            yield repr(constant)


def _used(function: FunctionType) -> tuple[Any, ...]:
    """Return defaults, and the outer variables that a function reads and does not assign."""
    code = function.__code__
    inner = [code, *(part for part in code.co_consts if isinstance(part, CodeType))]
    stores = {step.argval for part in inner for step in dis.get_instructions(part)
              if step.opname.startswith("STORE_")}  # fmt: skip
    used = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    values: list[Any] = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for name, cell in used.items():
        with suppress(ValueError):  # not filled yet
            values += [] if name in stores else [cell.cell_contents]
    reads = {name for part in inner for name in part.co_names} - stores
    module = function.__globals__
    values += [
        module[name]
        for name in sorted(reads)
        if name in module and not inspect.ismodule(module[name]) and not _is_foreign(module[name])
    ]
    return tuple(values)


def _is_foreign(value: Any) -> bool:
    """Whether a function or class is of an installed package, which its version names."""
    try:
        return "site-packages" in (inspect.getsourcefile(value) or "")
    except TypeError:  # no function or class
        return False


def _parts(model: Any) -> list[Any]:
    """Return an object and the models that it may wrap."""
    inner = [getattr(model, name, None) for name in ("model", "_model", "module")]
    return [part for part in [model, *inner] if callable(getattr(part, "named_parameters", None))]


def _parameters(model: Any) -> str | None:
    digest, is_empty = hashlib.sha256(), True
    try:
        for name, parameter in model.named_parameters():
            numbers = parameter.detach().flatten()
            sample = numbers[:: max(1, len(numbers) // SAMPLED)].float().cpu().numpy()
            digest.update(f"{name} {len(numbers)}".encode())
            digest.update(np.ascontiguousarray(sample).tobytes())
            is_empty = False
    except Exception:  # a library's own parameters can raise anything
        return None
    return None if is_empty else digest.hexdigest()[:12]


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:12]
