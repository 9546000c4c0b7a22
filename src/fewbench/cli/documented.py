"""Options of a command whose help is in the docstring of its function."""

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from types import GenericAlias, NoneType, SimpleNamespace
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from fewbench.cli import completion

Reader = Callable[[Any, Any], Any]
"""Makes what a function takes of what is typed, given the call (`given`: all that is typed)."""
SHORT = {"budget": "-n", "budgets": "-n", "method": "-m", "methods": "-m", "output": "-o"}
"""Short names. A parameter that has one is an option, even where it is needed."""
NAMES = {"form": "--from", "harness": "--for", "as_json": "--json", "names": "--name"}
"""Options that do not have the name of their parameter: keywords of Python, and repeated ones."""


def documented(
    function: Callable[..., Any], groups: Iterable[str] = (), hidden: Iterable[str] = ()
) -> Callable[..., Any]:
    """Return a function as a command: keyword-only parameters are options, others arguments.

    Parameters in `groups` are dataclasses, whose fields become options, except those that the
    function itself has. Those in `hidden` have no option.
    """
    parameters = inspect.signature(function).parameters
    arguments = [name for name, each in parameters.items() if each.kind is not each.KEYWORD_ONLY]
    options, readers = options_of(function, {*hidden}, arguments=arguments, groups=groups)
    readers |= {name: as_typed for name in hidden if name in parameters}

    def run(**typed: Any) -> None:
        function(**read_typed(readers, SimpleNamespace(given=typed)))

    return as_command(run, options, documentation(function)[0])


def as_command(
    run: Callable[..., None], options: Sequence[inspect.Parameter], text: str
) -> Callable[..., None]:
    """Give a function the options and the help that typer shows."""
    run.__doc__, vars(run)["__signature__"] = text, inspect.Signature(options)
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


def as_typed(_: Any, typed: Any) -> Any:
    """Read a value that is used as it is typed."""
    return typed


def read_typed(readers: Mapping[str, Reader], call: Any) -> dict[str, Any]:
    """Read what is typed for parameters; those for which nothing is typed are left out."""
    return {
        name: read(call, call.given.get(name))
        for name, read in readers.items()
        if name not in call.given or call.given[name] is not None
    }


def _grouped(group: Any, readers: Mapping[str, Reader], call: Any, _: Any) -> Any:
    """Make a dataclass of what is typed for its fields."""
    return group(**read_typed(readers, call))


def options_of(
    function: Callable[..., Any],
    hidden: Collection[str] = (),
    *,
    read: Mapping[str, tuple[Any, Reader, str]] | None = None,
    read_as: Callable[[Any], tuple[Any, Reader, str]] = lambda hint: (hint, as_typed, ""),
    flags: Mapping[str, str] | None = None,
    arguments: Iterable[str] = (),
    groups: Iterable[str] = (),
) -> tuple[list[inspect.Parameter], dict[str, Reader]]:
    """Return an option or argument for each parameter, and how its value is read.

    `read_as` returns, for an annotation, what is typed, how it is read, and how to write it; `read`
    has the same by parameter. An annotation may hold more of an option, and its help.
    """
    texts, hints = documentation(function)[1], get_type_hints(function, include_extras=True)
    options, readers = [], dict[str, Reader]()
    for name, parameter in inspect.signature(function).parameters.items():
        if name in hidden:
            continue
        if name in groups:
            group = next(
                member for member in (*get_args(hints[name]), hints[name]) if member is not NoneType
            )
            inner = {*groups} - {name}
            own = {*hidden, *inspect.signature(function).parameters} - {*groups}
            more, fields = options_of(
                group, own, read=read, read_as=read_as, flags=flags, groups=inner
            )
            options += more
            readers[name] = partial(_grouped, group, fields)
            continue
        if get_origin(hints[name]) is Annotated:
            hint, declared = get_args(hints[name])[0], copy(get_args(hints[name])[1])
            declared.help, readers[name] = declared.help or texts[name], as_typed
            options.append(option_parameter(name, Annotated[hint, declared], parameter.default))
            continue
        several = parameter.kind is parameter.VAR_POSITIONAL
        hint = GenericAlias(list, hints[name]) if several else hints[name]
        kind, readers[name], form = (read or {}).get(name) or read_as(hint)
        words = f"{texts[name]} {form}".strip()
        default = None if NoneType in get_args(kind) else parameter.default
        if name == "workers":
            default, words = None, f"{words.removesuffix('.')} (default: all processors)."
        is_needed = several or default is parameter.empty
        if not is_needed and default in (None, ()):
            default, kind = None, kind | None
        is_choice = any(get_origin(member) is Literal for member in (kind, *get_args(kind)))
        shell = None if is_choice else completion.BY_NAME.get(name)
        declared = typer.Argument(metavar=name.upper(), help=words, autocompletion=shell)
        is_option = name in SHORT or parameter.kind is parameter.KEYWORD_ONLY or not is_needed
        if is_option and name not in arguments:
            names = [(flags or {}).get(name, flag(name)), *SHORT.get(name, "").split()]
            flagged = [] if default is True else names
            declared = typer.Option(*flagged, help=words, autocompletion=shell)
        default = parameter.empty if is_needed else default
        options.append(option_parameter(name, Annotated[kind, declared], default))
    return options, readers


def option_parameter(
    name: str, kind: Any, default: Any = inspect.Parameter.empty
) -> inspect.Parameter:
    """Return a parameter that typer takes as an option or argument."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def documentation(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return a docstring's text above its parameters, and the text of each."""
    text, _, rest = (inspect.getdoc(function) or "").partition("Parameters\n----------\n")
    rest = re.split(r"\n\n\w+\n-+\n", rest)[0]
    texts = {}
    for names, words in re.findall(r"^(\S[^:\n]*)(?: :[^\n]*)?\n((?:    [^\n]*\n?)+)", rest, re.M):
        for name in names.split(","):
            texts[name.strip(" *")] = " ".join(words.split())
    return _as_help(text.strip(), texts), {
        name: _as_help(text, texts) for name, text in texts.items()
    }


def _as_help(text: str, parameters: Iterable[str]) -> str:
    """Write the names of parameters as options, and other names plainly."""

    def plain(name: re.Match[str]) -> str:
        return flag(name[1]) if name[1] in parameters else name[1]

    return re.sub(r"`([^`]+)`", plain, text)


def flag(name: str) -> str:
    """Return the option of a parameter."""
    return NAMES.get(name, "--" + name.replace("_", "-"))
