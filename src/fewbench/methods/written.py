"""How methods and settings are written: `name(setting=value,…)`, joined by +."""

import re
from dataclasses import MISSING, Field, dataclass, fields
from math import inf, isfinite
from types import NoneType
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from fewbench._names import did_you_mean, some
from fewbench.errors import MethodError

_PIECE = re.compile(r"\s*([a-z][a-z0-9-]*)\s*(?:\(([^()]*)\))?\s*")


@dataclass(frozen=True)
class Piece:
    """A name and its settings as written."""

    name: str
    settings: dict[str, str]


def split(text: str) -> list[Piece]:
    """Split 'a(x=1)+b' into pieces; MethodError names the one that cannot be read.

    >>> split("pds(models=100)+forest")
    [Piece(name='pds', settings={'models': '100'}), Piece(name='forest', settings={})]
    """
    pieces = []
    for written in text.split("+"):
        match = _PIECE.fullmatch(written)
        if match is None:
            raise MethodError(
                f"cannot read {written!r} in the method {text!r}",
                hint="write name or name(setting=value,…), joined by +",
            )
        settings = {}
        for setting in filter(str.strip, (match[2] or "").split(",")):
            key, equals, value = setting.partition("=")
            if not equals:
                raise MethodError(f"setting {setting!r} in {text!r} has no value")
            if key.strip() in settings:
                raise MethodError(f"{key.strip()} is set twice in {text!r}", hint="set it once")
            settings[key.strip()] = value.strip()
        pieces.append(Piece(match[1], settings))
    return pieces


def with_settings(part: type[Any], settings: dict[str, str], name: str) -> Any:
    """Make a part (a dataclass) from settings as text; MethodError names a wrong setting."""
    names = [setting.name for setting in fields(part)]
    unknown = [key for key in settings if key not in names]
    if unknown:
        raise MethodError(
            f"{name} has no setting {some(unknown)}",
            hint=did_you_mean(unknown[0], names, f"it has {', '.join(names)}")
            if names
            else "it has no settings",
        )
    optional = [setting.name for setting in fields(part) if NoneType in get_args(setting.type)]
    values = {
        key: None if value == "none" and key in optional else value
        for key, value in settings.items()
    }
    try:
        built = TypeAdapter(part).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = first["loc"][0] if first["loc"] else "?"
        raise MethodError(f"{name}({key}={settings.get(str(key))}): {first['msg']}") from error
    for key, value in settings.items():
        number = getattr(built, key)
        if isinstance(number, float) and not isfinite(number):
            raise MethodError(f"{name}({key}={value}): {key} is not a finite number")
    return built


def settings_of(part: type[Any]) -> str:
    """Return a part's settings with their defaults, as the command line writes them.

    >>> from fewbench.methods.prediction.features import AnswerFeatures
    >>> settings_of(AnswerFeatures)
    'values=scores'
    """
    return ", ".join(f"{setting.name}={plain(setting.default)}" for setting in fields(part))


def choices(setting: Field[Any]) -> tuple[str, str]:
    """Return a setting's default and its few possible values if it has a fixed list.

    >>> from fewbench.methods.prediction.features import AnswerFeatures
    >>> choices(fields(AnswerFeatures)[0])
    ('scores', 'scores, probabilities')
    """
    choices = get_args(setting.type)
    words = "true, false" if setting.type is bool else ", ".join(str(value) for value in choices)
    return plain(setting.default), "" if NoneType in choices else words


def check_words(part: Any) -> None:
    """Raise MethodError if a setting is not one of its allowed words.

    Settings as text are checked when they are read; those of a part made in Python are not.

    >>> from fewbench.methods.prediction.features import AnswerFeatures
    >>> check_words(AnswerFeatures(values="ranks"))
    Traceback (most recent call last):
    fewbench.errors.MethodError: values is 'ranks' (hint: use one of scores, probabilities)
    """
    for setting in fields(part):
        words, value = get_args(setting.type), getattr(part, setting.name)
        if words and NoneType not in words and value not in words:
            raise MethodError(
                f"{setting.name} is {value!r}",
                hint=f"use one of {', '.join(str(word) for word in words)}",
            )


def check_number(setting: str, value: float | None, low: float, high: float | None = None) -> None:
    """Raise MethodError if a number is not from low to high (None means not set).

    Without `high`, any finite number from `low` passes. NaN never passes.

    >>> check_number("alpha", 10.0, 0)
    >>> check_number("alpha", float("nan"), 0)
    Traceback (most recent call last):
    fewbench.errors.MethodError: alpha is nan (hint: use 0 or more, but finite)
    """
    if value is None or (low <= value < inf if high is None else low <= value <= high):
        return
    bounds = f"{low} or more, but finite" if high is None else f"{low} to {high}"
    raise MethodError(f"{setting} is {value}", hint=f"use {bounds}")


def check_hash(what: object, found: str | None, wanted: str | None) -> None:
    """Raise MethodError if the hash of the content differs from the setting `hash`."""
    if wanted not in (None, found):
        raise MethodError(
            f"{what}: the content has hash {found or 'none'}, not {wanted}",
            hint="put the same content back, or leave hash out to accept it as it is",
            kind="changed",
        )


def write(name: str, part: Any) -> str:
    """Write a dataclass as `split` and `with_settings` read it, with changed settings only.

    >>> from fewbench.methods.prediction.features import AnswerFeatures
    >>> write("answers", AnswerFeatures(values="probabilities"))
    'answers(values=probabilities)'
    """
    settings = []
    for setting in fields(part):
        value = getattr(part, setting.name)
        if setting.default is MISSING or value != setting.default:
            settings.append(f"{setting.name}={plain(value)}")
    return f"{name}({','.join(settings)})" if settings else name


def plain(value: object) -> str:
    """Return a setting's value as the command line writes it."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(value).replace("e+", "e")  # + joins the parts
