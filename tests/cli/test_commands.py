"""Commands made from functions: each option is a parameter with help."""

import inspect
from importlib import import_module

import pytest

from fewbench.cli.app import COMMANDS, load_command

SHARED = {
    *("average", "scores", "cluster", "cache", "cached", "details", "output", "report"),
    *("as_json", "force", "help"),
}
# Parameters of the functions that a command puts around the library's.
OWN = {
    "versus": {"program", "run", "budget", "seed"},
    "track": {"answers", "add", "item", "score", "average"},
}


def made():
    for name, (place, _) in COMMANDS.items():
        module, _, member = place.partition(":")
        found = getattr(import_module(f"fewbench.cli.{module}"), member)
        if hasattr(found, "function"):
            yield name, found.function


def test_every_option_has_help_and_is_a_parameter():
    wrong = []
    for name, function in made():
        known = SHARED | OWN.get(name, set()) | set(inspect.signature(function).parameters)
        for one in load_command(name).params:
            flag = "--" + one.name.replace("_", "-")
            named = one.param_type_name == "argument" or flag in one.opts or one.name in SHARED
            if one.name not in known or not one.help or not named:
                wrong.append((name, one.name))
    assert not wrong


def test_defaults_are_those_of_the_function():
    wrong = []
    for name, function in made():
        own = inspect.signature(function).parameters
        for one in load_command(name).params:
            if one.name in own and one.name not in {*SHARED, *OWN.get(name, ()), "workers"}:
                default = own[one.name].default
                if default not in (inspect.Parameter.empty, ()) and one.default != default:
                    wrong.append((name, one.name, one.default))
    assert not wrong


@pytest.mark.parametrize("name", ["versus", "plan"])
def test_help_has_no_markup(ok, name):
    shown = ok(name, "--help")
    assert "`" not in shown
    assert "Parameters" not in shown
