"""Hints that can be followed: every option that a message names is there."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from named_options import OPTION, OTHERS, options_of

import fewbench
from fewbench.cli.app import COMMANDS, load_command
from fewbench.errors import PackError, ScoresError

ROOT = Path(fewbench.__file__).parent


def every_command(words=(), command=None):
    """Yield the words of each command and group."""
    for name in COMMANDS if command is None else getattr(command, "commands", ()):
        below = load_command(name) if command is None else command.commands[name]
        yield [*words, name]
        yield from every_command([*words, name], below)


def test_every_option_in_the_source_exists():
    """In messages, and in docstrings and comments too."""
    known = set().union(*(options_of(words) for words in every_command()))
    for path in ROOT.rglob("*.py"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            unknown = set(OPTION.findall(line)) - known - OTHERS
            assert not unknown, f"{path.relative_to(ROOT)}, line {number}: {unknown}"


def test_every_option_in_help_is_of_the_command(ok):
    """Or of a command that the same text names."""
    for words in every_command():
        own = options_of(words)
        for text in re.split(r"\n\s*\n|\.\s", ok(*words, "--help")):
            named = {name for name in OPTION.findall(own_part(text)) if name not in own | OTHERS}
            lacking = {one for one in named if not any_has(text, one)}
            assert not lacking, (words, lacking, text)


def own_part(text):
    """Leave out what is passed on, after --."""
    return re.sub(r"\s--\s.*", "", text, flags=re.DOTALL)


def any_has(text, option):
    return any(
        option in options_of(words)
        for words in every_command()
        if re.search(rf"(fewbench|by|of|as) {' '.join(words)}\b", text)
    )


def test_a_scale_has_a_finite_width(tmp_path):
    from fewbench.scores.pack_files import scores_of
    from fewbench.testing import simulate

    with pytest.raises(ScoresError, check=lambda error: error.kind == "range"):
        fewbench.Scale(-1e308, 1e308)
    packed = fewbench.pack(simulate(12, 40), "random", 5, backtest=False)
    part = packed.parts[0]
    wide = replace(part, record=part.record.model_copy(update={"scale": [-1e308, 1e308, False]}))
    with pytest.raises(PackError, check=lambda error: error.kind == "damaged") as found:
        scores_of(tmp_path, wide)
    assert found.value.hint == "fetch or make the pack again"


def test_hints_that_are_followed_lead_on(cli, ok, scores, answers, asked):
    """Each step does what the last hint says, until it works."""
    ok("start", scores, "-m", "random", "-n", 4, "-o", "run")
    items = asked()["target"]
    given = dict.fromkeys(items, 1) | {items[0]: "N/A"}
    columns = ("--item", "id", "--score", "points")
    said = cli("tell", "run", answers(given), *columns)
    assert "'N/A' at row 1" in said.err
    assert "say what these texts mean: --missing N/A" in said.err
    ok("tell", "run", answers(given), *columns, "--missing", "N/A")
    warned = ok("estimate", "run")
    assert "record the missing 1 answer" in warned.replace("\n", " ")
    ok("tell", "run", "--skip", items[0])
    rows = [[model, item, 1] for model in "xy" for item in items]
    table = answers(rows)
    ok("start", scores, "-m", "random", "-n", 4, "-o", "two")
    said = cli("tell", "two", table, "--model", "llm", *columns)
    assert "of a table, keep one model's rows, or start with targets named as there" in said.err
    ok("tell", "two", answers([row for row in rows if row[0] == "x"]), "--model", "llm", *columns)
    assert np.isfinite(json.loads(ok("estimate", "two", "--json"))["target"]["score"])


def test_options_of_other_programs_are_not_fewbenchs(cli, monkeypatch):
    """What follows -- in a hint is not looked up among the options of fewbench import."""
    from fewbench.errors import RunError

    def fail(*_: object, **__: object) -> None:
        raise RunError("no task", hint="name it after --, as in -- task.py --model X")

    monkeypatch.setattr("fewbench.cli.app", fail)
    said = cli("run", "inspect")
    assert said.err.strip().endswith("(hint: name it after --, as in -- task.py --model X)")


PUBLISHED = {
    "DISCO": "disco-pds-rf",
    "TailoredBench": "tailored-as-printed",
    "BenTo": "bento-sim(matrix=FILE)+mean",
    "bento-le": "bento-le(matrix=FILE)+mean",
    "gp-irt": "gp-irt-random",
    "tinyBenchmarks": "gp-irt-anchor",
    "Two-Stage Collaborative Filtering": "collaborative",
    "Rubinstein": "disco-jsd-rf",
    "Yuan et al. 2025": "tailored",
    "Fluid Benchmarking": "fluid",
    "AnchorPoints": "anchor-points",
    "CF": "collaborative",
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_names_find_their_methods(name, ok, cli, scores):
    """In the list of methods, in what compare suggests, and in completion of a shell."""
    method = PUBLISHED[name]
    assert method in ok("methods", name)
    assert method in cli("compare", scores, "-m", name).err
    options = {one.name: one for one in load_command("compare").params}
    completed = [one.value for one in options["methods"].shell_complete(None, f"random,{name}")]
    assert (f"random,{method}" in completed) == ("FILE" not in method)


def test_the_list_of_methods_has_bento_and_names_what_is_in_the_repository_alone(ok, cli, scores):
    assert "bento-sim(matrix=FILE)+mean" in ok("methods")
    assert "benchmarks/papers/methods" in cli("compare", scores, "-m", "UCBE").err
    for name in ("UCBE-LRF", "Sort & Search", "S&S"):
        assert "benchmarks/papers/methods" in cli("methods", name).err
    assert "metabench" not in ok("methods", "DISCO")


def test_an_option_that_takes_one_value_is_not_taken_from_the_last_of_two(cli, scores):
    said = cli("tasks", "select", scores, "-k", "2", "-m", "ridge", "--method", "random")
    assert "--method is given twice" in said.err
