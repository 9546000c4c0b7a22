"""fewbench compare: the tables, the files it writes, and its cache."""

import json
import re
from importlib import import_module

import pytest

from fewbench._names import split_names
from fewbench._text import table
from fewbench.errors import FewbenchError, MethodError
from fewbench.scores import save_scores
from fewbench.testing import simulate

QUICK = ["--repeats", "2", "--workers", "1", "--no-intervals"]


def test_json_report_and_tables(cli, scores, tmp_path):
    words = [scores, "-m", "random-linear", "-n", "4,8"]
    files = ["-o", "o/out.json", "--report", "o/out.html"]
    said = cli("compare", *words, "--repeats", "3", "--workers", "1", *files)
    assert said.code == 0
    for budget in (4, 8):
        assert f"random split, {budget} items" in said.out
    assert said.out.count("\nrandom-linear ") == 2
    assert said.out.count("In 90% interval") == 2
    assert sorted(said.err.splitlines()) == ["wrote o/out.html", "wrote o/out.json"]
    found = json.loads((tmp_path / "o" / "out.json").read_text(), parse_constant=pytest.fail)
    assert len(found["cells"]) == 3 * 2
    assert {"seed", "fingerprint", "versions", "facts", "warnings"} <= set(found)
    linear, plain = (
        next(cell for cell in found["cells"] if cell["method"] == name)
        for name in ("random-linear", "random")
    )
    assert f"{100 * linear['metrics']['mae']['mean']:.2f} ± " in said.out
    # The row of random is what was drawn, everywhere; the expected error is called that.
    assert f"\nrandom  {100 * plain['metrics']['mae']['mean']:.2f} " in re.sub(" +", "  ", said.out)
    assert f"sampling: {100 * plain['expected_random_mae']:.1f} pp" in " ".join(said.out.split())
    assert found["facts"]["command"].startswith("fewbench compare ")
    page = (tmp_path / "o" / "out.html").read_text()
    assert "random-linear" in page
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == ["out.html", "out.json"]


def test_two_repeats_show_no_interval_and_say_why(cli, scores):
    said = cli(
        "compare", scores, "-m", "random-linear", "-n", "4", *QUICK, "--split", "random,group"
    )
    assert "group split, 4 items" in said.out
    table = said.out[said.out.index("random split, 4 items") :]
    assert "±" not in table
    assert "[0" not in table
    assert "2 repeats are too few to say how sure a number is" in said.out


def test_a_failing_cell_is_shown_and_the_exit_code_says_so(cli, scores, tmp_path, monkeypatch):
    module = import_module("fewbench.study.cell")
    real = module.replay

    def replay(method, *args, **settings):
        if "medoids" in method.describe():
            raise MethodError("too few sources", hint="take more")
        return real(method, *args, **settings)

    monkeypatch.setattr(module, "replay", replay)
    words = ["-m", "random-linear,kmedoids-ridge", "-n", "4", *QUICK]
    said = cli("compare", scores, *words, "--report", "o.html", "-o", "o.json")
    assert said.code == 1
    assert "\nkmedoids-ridge   " in said.out
    assert "failed: kmedoids-ridge at 4 items, random split, repeat 0" in said.out
    assert "\nrandom-linear " in said.out
    failed = [c for c in json.loads((tmp_path / "o.json").read_text())["cells"] if c["failed"]]
    assert [c["method"] for c in failed] == ["kmedoids-ridge"]
    assert failed[0]["failed"][0]["reason"] in said.out
    page = (tmp_path / "o.html").read_text()
    assert "too few sources (hint: take more)" in page
    assert "exit code is 1" in " ".join(cli("compare", "--help").out.split())


def test_a_second_run_takes_the_cells_of_the_first(cli, scores, monkeypatch, tmp_path):
    words = ["compare", scores, "-m", "random-linear", "-n", "4", *QUICK, "-o", "o.json"]
    first = cli(*words)
    one = (tmp_path / "o.json").read_text()
    (cache,) = (tmp_path / "cache" / "fewbench").iterdir()
    assert len(cache.read_text().splitlines()) == 6
    (tmp_path / "o.json").unlink()
    monkeypatch.setattr(import_module("fewbench.study.compare"), "try_cell", pytest.fail)
    second = cli(*words)
    assert second.code == 0
    assert (second.out, (tmp_path / "o.json").read_text()) == (first.out, one)


def test_no_cache(cli, scores, tmp_path):
    said = cli("compare", scores, "-m", "random-linear", "-n", "4", *QUICK, "--no-cache")
    assert said.code == 0
    assert not (tmp_path / "cache").exists()
    words = ["compare", scores, "-m", "random-linear", "-n", "4", *QUICK, "--cache", "mine.jsonl"]
    cli(*words, "--no-cache")
    assert not (tmp_path / "mine.jsonl").exists()
    cli(*words)
    assert (tmp_path / "mine.jsonl").exists()
    assert not (tmp_path / "cache").exists()


def test_fewer_sources_too(ok, cli, scores, tmp_path):
    words = ["compare", scores, "-m", "random-linear", "-n", "4", *QUICK]
    out = ok(*words, "--sources", "5,8", "-o", "o.json")
    cells = json.loads((tmp_path / "o.json").read_text())["cells"]
    assert {(cell["split"], cell["n_sources"]) for cell in cells} == {
        ("random", 15), ("5-source random", 5), ("8-source random", 8)
    }  # fmt: skip
    assert re.search(r"\nError \(pp\) +5 +8 +15\n", out)
    assert "'few'" in cli(*words, "--sources", "few").err
    many = cli(*words, "--sources", "16")
    assert "16 source models are wanted, and the random split has 15" in many.err


def test_names_are_split_at_outer_commas():
    assert split_names("a, b(x=1,y=2)+c ,d,") == ["a", "b(x=1,y=2)+c", "d"]
    with pytest.raises(FewbenchError):
        split_names(" , ")


def test_text():
    assert table(["a", "n"], [["bb", "1"], ["c", "22"]]) == "a    n\nbb   1\nc   22"


@pytest.mark.parametrize(
    "words",
    [
        ("select", "-m", "random"),
        ("run", "command", "-m", "random", "-o", "ran"),
    ],
)
def test_a_share_is_printed_with_its_number_of_items(cli, tmp_path, words):
    path = save_scores(simulate(16, 160, 2, seed=1), tmp_path / "two.parquet")
    cut = 2 if words[0] == "run" else 1
    program = ("--", "false") if words[0] == "run" else ()
    said = cli(*words[:cut], path, *words[cut:], "-n", "20%", *program)
    assert "note: 42 items: 20% of each task's items, at least 20 of each" in said.err
