"""Commands made from functions: each option is a parameter with help."""

import inspect
from importlib import import_module

import pytest

from fewbench.cli.app import COMMANDS, load_command
from fewbench.cli.documented import NAMES

SHARED = {
    *("average", "scores", "cluster", "cache", "cached", "details", "output", "report"),
    *("as_json", "force", "help"),
}


def made():
    """Words, command, and the functions that it is made from."""
    for name, (place, _) in COMMANDS.items():
        module, _, member = place.partition(":")
        found = getattr(import_module(f"fewbench.cli.{module}"), member)
        if hasattr(found, "functions"):
            yield name, load_command(name), found.functions
        for one in getattr(found, "registered_commands", ()):
            if hasattr(one.callback, "functions"):
                yield one.name, load_command(name).commands[one.name], one.callback.functions


def parameters(functions):
    found = {}
    for one in reversed(functions):
        found |= inspect.signature(one).parameters
    return found


def test_every_option_has_help_and_is_a_parameter():
    wrong = []
    for name, command, functions in made():
        known = parameters(functions)
        for one in command.params:
            flags = {NAMES.get(one.name, "--" + one.name.replace("_", "-")), f"-{one.name}"}
            named = one.param_type_name == "argument" or flags & {*one.opts} or one.name in SHARED
            if one.name not in {*known, *SHARED} or not one.help or not named:
                wrong.append((name, one.name))
    assert not wrong


def test_defaults_are_those_of_the_function():
    wrong = []
    for name, command, functions in made():
        own = parameters(functions)
        for one in command.params:
            if one.name in own and one.name not in {*SHARED, "workers"}:
                default = own[one.name].default
                if default not in (inspect.Parameter.empty, ()) and one.default != default:
                    wrong.append((name, one.name, one.default))
    assert not wrong


@pytest.mark.parametrize("name", ["versus", "plan"])
def test_help_has_no_markup(ok, name):
    shown = ok(name, "--help")
    assert "`" not in shown
    assert "Parameters" not in shown
