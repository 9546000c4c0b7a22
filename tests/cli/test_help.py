"""Help that can be copied from."""

import inspect
import re
from pathlib import Path

import pytest

import fewbench
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
    assert " ".join(summary.split()) == COMMANDS[name].summary


def test_the_first_page_lists_every_command_by_subject(ok):
    lines = ok("--help").split("\n")
    for subject in {listed.subject for listed in COMMANDS.values()}:
        names = [name for name, listed in COMMANDS.items() if listed.subject == subject]
        at = lines.index(f"{subject}:") + 1
        assert [line.split()[0] for line in lines[at : at + len(names)]] == [*names]


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_is_whole_and_in_words(ok, monkeypatch, name):
    """At 80 columns: no summary is cut, and no kind of value is a name of Python's."""
    monkeypatch.setenv("COLUMNS", "80")
    below = getattr(load_command(name), "commands", {}) if name else {}
    for words in ([name], *([name, one] for one in below)):
        out = ok(*filter(None, words), "--help")
        assert not re.search(r"\w\.\.\.$", out.partition("\n")[2], re.M), words
        assert "}" not in out.splitlines()[0], words
        assert "in Python" not in out, words
        assert not re.search(r"<|\[\[|\{[A-Z]|\brange\b.*x>=", out.split("Options:")[1]), words


def test_docstrings_speak_of_arguments():
    """Options are named by the help, where `next_items` is --next-items."""
    for name in fewbench.__all__:
        public = getattr(fewbench, name)
        members = vars(public).values() if inspect.isclass(public) else ()
        for of in (public, *(member for member in members if callable(member))):
            ours = re.sub(r"--(tasks|model)", "", inspect.getdoc(of) or "")  # lm-eval's
            assert not re.search(r"\s`?--[a-z]", ours), name


def completed(ok, monkeypatch, line):
    monkeypatch.setenv("_FEWBENCH_COMPLETE", "complete_fish")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", f"fewbench {line}")
    return ok().split()


def test_a_shell_completes_what_there_is(ok, monkeypatch):
    items = Path("items.csv")
    items.write_text("id\n" + "\n".join(f"q{n}" for n in range(40)))
    ok("start", items, "-n", "9", "-t", "new", "-o", "runs/first")
    ok("start", items, "-t", "newer", "-n", "9", "-o", "runs/first")
    for line, words in {
        "compare s.parquet -m random,greedy-r": ["random,greedy-ridge"],
        "run command s.parquet -m ssepy-n": ["ssepy-neyman"],
        "compare s.parquet --split chron": ["chronological"],
        "import logs --metric acc_n": ["acc_norm"],
        "versus runs/": ["runs/first"],
        "versus runs/first:": ["runs/first:new", "runs/first:newer"],
        "estimate runs/first -t newe": ["newer"],
        "plan s.parquet --expect str": ["stronger"],
    }.items():
        assert completed(ok, monkeypatch, line) == words, line


def test_without_a_command_there_is_help(cli):
    said = cli()
    assert said.code == 2
    assert "Usage: fewbench" in said.out + said.err
    assert "error" not in said.err
