"""Commands made from functions: each option is a parameter with help."""

import inspect
from importlib import import_module
from typing import get_args, get_type_hints

import pytest

from fewbench.cli.app import COMMANDS, load_command
from fewbench.cli.documented import NAMES

SHARED = {
    *("average", "scores", "cluster", "cache", "cached", "details", "output", "report"),
    *("as_json", "force", "help"),
    *("metric", "filter", "weights", "drop_items"),  # in Python, Evaluation.rescored
}


def made():
    """Words, command, and the function that it is made as."""
    for name, listed in COMMANDS.items():
        module, _, member = listed.place.partition(":")
        found = getattr(import_module(module), member)
        if hasattr(found, "functions"):
            yield name, load_command(name), found
        for one in getattr(found, "registered_commands", ()):
            if hasattr(one.callback, "functions"):
                yield one.name, load_command(name).commands[one.name], one.callback


def parameters(functions, groups):
    """Parameters by name; in place of a group, the fields of its dataclass."""
    found = {}
    for function in reversed(functions):
        hints = get_type_hints(function)
        for name, parameter in inspect.signature(function).parameters.items():
            if name in groups:
                dataclass = next(iter(get_args(hints[name])), hints[name])
                found |= parameters([dataclass], groups - {name})
            else:
                found[name] = parameter
    return found


def test_every_option_has_help_and_is_a_parameter():
    wrong = []
    for name, command, run in made():
        known = {*parameters(run.functions, run.groups), *SHARED}
        for one in command.params:
            flag = "--" + one.name.replace("_", "-")
            flags = {run.flags.get(one.name, NAMES.get(one.name, flag)), f"-{one.name}"}
            named = one.param_type_name == "argument" or one.name in SHARED
            named = named or flags & {*one.opts, "/".join([*one.opts, *one.secondary_opts])}
            if one.name not in known or not one.help or not named:
                wrong.append((name, one.name))
    assert not wrong


def test_defaults_are_those_of_the_function():
    """None stands for the function's own."""
    wrong = []
    for name, command, run in made():
        own = parameters(run.functions, run.groups)
        for one in command.params:
            if one.name in own and one.name not in {*SHARED, "workers"}:
                default = own[one.name].default
                if default not in (inspect.Parameter.empty, ()):
                    wrong += [(name, one.name, one.default)] * (one.default not in (None, default))
    assert not wrong


@pytest.mark.parametrize("name", ["versus", "plan"])
def test_help_has_no_markup(ok, name):
    shown = ok(name, "--help")
    assert "`" not in shown
    assert "Parameters" not in shown
