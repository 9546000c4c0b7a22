"""What users get wrong: one line that says what, a hint, exit code 2, and no traceback."""

import shutil
from importlib import import_module

import pytest

from fewbench.evaluation import Evaluation
from fewbench.public import load_scores
from fewbench.scores import save_scores
from fewbench.testing import simulate

ONE = "--item id --score points"
LONG = f"--model llm {ONE}"
IS_SCORE = "is this the score column? If it is, "
QUICK = "--repeats 1 --workers 1 --no-intervals"


@pytest.fixture
def wrong(cli):
    """Run a command that must fail the right way, and return what it says."""

    def run(*words):
        said = cli(*words)
        assert said.code == 2
        assert said.err.startswith("fewbench: error: ")
        assert said.err.count("\n") == 1
        assert said.err.endswith("\n")
        assert "Traceback" not in said.err
        assert "hint: None" not in said.err
        return said.err

    return run


def prepare(path, scores, long_csv):
    shutil.copy(scores, path / "s.parquet")
    shutil.copy(long_csv, path / "results.csv")
    Evaluation(load_scores(path / "s.parquet"), "random", 4).save(path / "run", path / "s.parquet")
    return path


@pytest.fixture
def folder(tmp_path, scores, long_csv):
    """s.parquet, results.csv, an evaluation `run` of 4 random items, and no answers yet."""
    return prepare(tmp_path, scores, long_csv)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory, scores, long_csv):
    """The same, once, for mistakes that leave it as it is."""
    return prepare(tmp_path_factory.mktemp("mistakes"), scores, long_csv)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        # files
        ("select nope.parquet -m random -n 4", "nope.parquet: no such file"),
        ("compare nope.parquet -m random -n 4", "nope.parquet: no such file"),
        ("import nope.csv --model llm -o x.parquet", "nope.csv: no such file"),
        (f"import results.csv {LONG} --range 0,100 -o x.csv", "x.csv"),
        # methods and budgets
        ("select s.parquet -m medoids(colour=1)+mean -n 4", "medoids has no setting 'colour'"),
        ("select s.parquet -m mean+random -n 4", "'random' is out of place"),
        ("select s.parquet -m random -n -1", "budget of -1"),
        ("select s.parquet -m random -n 41", "from 1 to 40"),
        ("select s.parquet -m random -n many", "the budget 'many' is not a number of items"),
        ("select s.parquet -m random -n 4 --for nope", "unknown harness 'nope'"),
        ("select s.parquet -m random -n 4 --for lm-eval", "doc_id"),
        ("select s.parquet -m random", "--budget"),
        ("select s.parquet -m random -n 4 --sed 1", "--sed"),
        ("select s.parquet -m random -n 4 --seed -1", "negative"),
        ("frobnicate", "frobnicate"),
        # start
        ("start s.parquet -m random -n 4 -o run", "already contains an evaluation"),
        ("start s.parquet -o new", "no limit given"),
        ("start s.parquet -m random -o new", "no limit given"),
        ("start s.parquet -m random --half-width 0 -o new", "the limit half width is not possible"),
        ("start s.parquet -m random --half-width 70 -o new", "half width below 0.5"),
        ("start s.parquet -m random -n 4 -t a -t a -o new", "a target is given twice among"),
        ("start s.parquet -m random -n 4 --average median -o new", "--average"),
        ("start s.parquet --subset results.csv -o new", "results.csv: not a subset"),
        # run, add
        ("run command s.parquet -m nope -n 4 -o new -- true", "unknown method 'nope'"),
        ("run command s.parquet -n 400 -o new/deep -- true", "budget of 400"),
        ("run command s.parquet -n 4 -o new python answer.py", "… -- python answer.py)"),
        ("add nowhere -o new/x.parquet", "no evaluation here"),
        # ask, tell, estimate
        ("ask nowhere", "no evaluation here"),
        ("rank missing.parquet", "no such file"),
        ("ask run --for nope", "unknown harness 'nope'"),
        (f"tell nowhere results.csv {LONG}", "no evaluation here"),
        ("tell run results.csv", "no columns named; its columns are "),
        ("tell run results.csv --item id --score right", "no column 'right'"),
        (f"tell run results.csv {LONG}", "on the scale of the source models, 0 to 1"),
        ("estimate nowhere", "no evaluation here"),
        ("tell run", "nothing to record"),
        ("tell run --skip nope", "'nope'"),
        ("repair nowhere", "no evaluation here"),
        ("estimate run --level 1.5", "level 1.5"),
        # compare
        (f"compare s.parquet -m random -n a,b {QUICK}", "the budget 'a' is not a number of items"),
        (f"compare s.parquet -m random -n 4,99 {QUICK}", "budget of 99"),
        (f"compare s.parquet -m random -n 4 {QUICK} --split nope", "unknown split 'nope'"),
        (f"compare s.parquet -m random -n 4 {QUICK} --split ,", "no name"),
        (f"compare s.parquet -m random -n 4 {QUICK} --split group --group-by lab", "column 'lab'"),
        (f"compare s.parquet -m random -n 4 {QUICK} --targets 1.5", "targets 1.5 is not a share"),
        ("compare s.parquet -m random -n 4 --level 1.5", "level 1.5"),
        ("compare s.parquet -m random -n 4 --repeats 0", "1 or more"),
        ("compare s.parquet -m random -n 4 --workers 0", "1 or more"),
        ("compare s.parquet -m random -n 4 --cluster spark://h:1", "unknown executor 'spark://h:1'"),
        (f"compare s.parquet -m random -n 4 {QUICK} --report run", "run is a folder"),
        (f"compare s.parquet -m random -n 4 {QUICK} -o .", ". is a folder"),
        ("plan s.parquet --error 2%", "(hint: write 2% as 0.02; see fewbench plan --help)"),
        ("compare s.parquet -n 10% --seed x", "(hint: see fewbench compare --help)"),
        # import
        (f"import results.csv {LONG} --range 5 -o x.parquet", "cannot read the range '5'"),
        (f"import results.csv {LONG} --range 100,0 -o x.parquet", "in order"),
        (f"import results.csv {LONG} --range 0,inf -o x.parquet", "finite"),
        (f"import results.csv {LONG} --from cvs -o x.parquet", "unknown form 'cvs'"),
        ("import results.csv --model llm --item id --score ok -o x.parquet", "no column 'ok'"),
        ("import results.csv --model llm --item id --score llm -o x.parquet", IS_SCORE),
        (f"import results.csv {LONG} --range 100,0 -o new/x.parquet", "in order"),
        (f"import results.csv {LONG}", "--output"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_a_hint(wrong, prepared, monkeypatch, line, said):
    monkeypatch.chdir(prepared)
    before = sorted(prepared.rglob("*"))
    err = wrong(*line.split())
    assert said in err
    if "no such file" not in said and "target is given twice" not in said:
        assert "(hint: " in err
    assert sorted(prepared.rglob("*")) == before


@pytest.mark.parametrize(
    "line",
    [
        "select s.parquet -m random -n 4 -o results.csv/x.json",
        "start s.parquet -m random -n 4 -o results.csv/new",
        f"compare s.parquet -m random -n 4 {QUICK} --no-cache -o results.csv/x.json",
        f"compare s.parquet -m random -n 4 {QUICK} --no-cache --report results.csv/x.html",
        f"compare s.parquet -m random -n 4 {QUICK} --cache run",
        "start s.parquet --subset nope.json -o new",
    ],
)
def test_an_unusable_path_is_named(wrong, prepared, monkeypatch, line):
    monkeypatch.chdir(prepared)
    err = wrong(*line.split())
    assert "Errno" not in err
    assert any(name in err for name in ("results.csv", "run is ", "nope.json: "))


def test_a_subset_comes_with_its_method(ok, wrong, folder):
    ok("select", "s.parquet", "-m", "random", "-n", "4", "-o", "sub.json")
    err = wrong("start", "s.parquet", "--subset", "sub.json", "-m", "random", "-o", "new")
    assert "--subset sets the method" in err
    other = simulate(20, 40, seed=9)
    items = other.items.set_axis([f"other-{at}" for at in range(40)])
    save_scores(other.changed(items=items), folder / "other.parquet")
    assert "chosen items are not in the scores" in (
        wrong("start", "other.parquet", "--subset", "sub.json", "-o", "new")
    )


def test_answers_only_for_items_not_asked(wrong, folder, answers, asked):
    items = asked()["target"]
    other = [f"item-{at}" for at in range(40) if f"item-{at}" not in items]
    err = wrong("tell", "run", answers(dict.fromkeys(other, 1)), *ONE.split())
    assert "36 items, none of them asked for" in err
    assert "hint: fewbench ask run" in err


def test_costs_of_a_table_are_recorded_once(ok, folder, asked):
    items = asked()["target"]
    rows = [f"{item},1,$4.5e-1" for item in items]
    (folder / "costs.csv").write_text("\n".join(["id,score,cost", *rows]))
    for _ in range(2):
        ok("tell", "run", "costs.csv")
    assert Evaluation.open("run").cost("target").spent == pytest.approx(0.45 * len(items))


def test_fractions_where_the_sources_are_right_or_wrong(wrong, ok, folder, answers, asked):
    items = asked()["target"]
    told = answers(dict.fromkeys(items, 0.5))
    err = wrong("tell", "run", told, *ONE.split())
    assert f"item {items[0]!r} has the score 0.5; the source models' answers are right" in err
    assert asked()["target"] == items
    ok("tell", "run", told, *ONE.split(), "--accept-fractions")
    assert "4 of 4 answers are fractions" in ok("estimate", "run")


def test_answers_of_nobody_in_particular(wrong, folder, answers, ok, asked):
    ok("start", "s.parquet", "-m", "random", "-n", "4", "-t", "a", "-t", "b", "-o", "two")
    rows = [[model, item, 1] for model in "xy" for item in asked("two")["a"]]
    err = wrong("tell", "two", answers(rows), *LONG.split())
    assert "no answers of the targets 'a', 'b'" in err
    assert "'x', 'y'" in err


def test_ctrl_c(cli, folder, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module("fewbench.study.compare"), "try_cell", stop)
    said = cli("compare", "s.parquet", "-m", "random", "-n", "4", *QUICK.split())
    assert (said.code, said.err) == (130, "fewbench: stopped; no file is damaged\n")
