"""Options of a command whose help is in the docstring of its function."""

import inspect
import re
from collections.abc import Callable, Iterable
from copy import copy
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo

from fewbench.cli import completion

SHORT = {"budget": "-n", "budgets": "-n", "method": "-m", "methods": "-m", "output": "-o"}
"""Short names. A parameter that has one is an option, even where it is needed."""
NAMES = {"form": "--from", "harness": "--for", "as_json": "--json", "names": "--name"}
"""Options that do not have the name of their parameter: keywords of Python, and repeated ones."""


def documented(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function as a command: keyword-only parameters are options, others arguments."""
    parameters = documented_parameters(function)
    function.__doc__ = documentation(function)[0]
    function.__annotations__ = {one.name: one.annotation for one in parameters}
    vars(function)["__signature__"] = inspect.Signature(parameters)
    return function


def documented_parameters(
    function: Callable[..., Any], hidden: Iterable[str] = ()
) -> list[inspect.Parameter]:
    """Return the parameters of a function or data class, with the help that it documents.

    An annotation may hold more of an option, such as its short name, and its help too.
    """
    texts, hints = documentation(function)[1], get_type_hints(function, include_extras=True)
    parameters = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in hidden:
            continue
        hint, option = hints[name], _option(name, parameter)
        if get_origin(hint) is Annotated:
            hint, option = get_args(hint)[0], copy(get_args(hint)[1])
        option.help = option.help or texts[name]
        parameters.append(parameter.replace(annotation=Annotated[hint, option]))
    return parameters


def _option(name: str, parameter: inspect.Parameter) -> ArgumentInfo | OptionInfo:
    if parameter.kind is not parameter.KEYWORD_ONLY:
        argument: ArgumentInfo = typer.Argument(metavar=name.upper())
        return argument
    names = [] if parameter.default is True else [flag(name), *SHORT.get(name, "").split()]
    option: OptionInfo = typer.Option(*names, autocompletion=completion.BY_NAME.get(name))
    return option


def documentation(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return a docstring's text above its parameters, and what it says of each."""
    text, _, rest = (inspect.getdoc(function) or "").partition("Parameters\n----------\n")
    rest = re.split(r"\n\n\w+\n-+\n", rest)[0]
    found = {}
    for names, words in re.findall(r"^(\S[^:\n]*)(?: :[^\n]*)?\n((?:    [^\n]*\n?)+)", rest, re.M):
        for name in names.split(","):
            found[name.strip(" *")] = " ".join(words.split())
    return _as_help(text.strip(), found), {
        name: _as_help(one, found) for name, one in found.items()
    }


def _as_help(text: str, parameters: Iterable[str]) -> str:
    """Write the names of parameters as options, and other names plainly."""

    def plain(name: re.Match[str]) -> str:
        return flag(name[1]) if name[1] in parameters else name[1]

    return re.sub(r"`([^`]+)`", plain, text)


def flag(name: str) -> str:
    """Return the option of a parameter."""
    return NAMES.get(name, "--" + name.replace("_", "-"))
