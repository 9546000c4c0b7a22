"""Help that can be copied from."""

import pytest

from fewbench.cli.app import COMMANDS, load_command


@pytest.mark.parametrize(
    "name", [name for name in COMMANDS if name not in {"transfer", "tasks", "run", "pack"}]
)
def test_examples_stand_on_lines_of_their_own(ok, name):
    out = ok(name, "--help")
    assert ok(name, "-h") == out
    shown = [line.strip() for line in out.splitlines()]
    paragraph = load_command(name).help.split("\b\n")[1]
    examples = [line.strip() for line in paragraph.splitlines()]
    assert examples
    assert any(f"fewbench {name}" in line for line in examples)
    for line in examples:
        assert line in shown
    assert "\b" not in out


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_shows_the_start_of_their_own_help(name):
    summary = load_command(name).help.split("\n\n")[0]
    assert " ".join(summary.split()) == COMMANDS[name][1]


def test_the_first_page_shows_the_way(ok):
    out = ok("--help")
    for name in COMMANDS:
        assert any(line.strip().startswith(f"{name} ") for line in out.splitlines())
    assert any(
        line.strip() == "Print items to run:     fewbench ask run" for line in out.split("\n")
    )


def test_without_a_command_there_is_help(cli):
    said = cli()
    assert said.code == 2
    assert "Usage: fewbench" in said.out + said.err
    assert "error" not in said.err
