"""Help that can be copied from."""

import inspect

import pytest

from fewbench.cli.app import _COMMANDS


@pytest.mark.parametrize("name", list(_COMMANDS))
def test_examples_stand_on_lines_of_their_own(ok, name):
    out = ok(name, "--help")
    assert ok(name, "-h") == out
    shown = [line.strip() for line in out.splitlines()]
    paragraph = inspect.cleandoc(_COMMANDS[name].__doc__).split("\b\n")[1]
    examples = [line.strip() for line in paragraph.splitlines()]
    assert examples
    assert any(f"fewbench {name}" in line for line in examples)
    for line in examples:
        assert line in shown
    assert "\b" not in out


def test_the_first_page_shows_the_way(ok):
    out = ok("--help")
    for name in _COMMANDS:
        assert any(line.strip().startswith(f"{name} ") for line in out.splitlines())
    assert any(
        line.strip() == "See which to run:      fewbench ask run" for line in out.split("\n")
    )


def test_without_a_command_there_is_help(cli):
    said = cli()
    assert said.code == 2
    assert "Usage: fewbench" in said.out + said.err
    assert "error" not in said.err
