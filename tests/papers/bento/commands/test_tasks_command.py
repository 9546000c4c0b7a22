"""fewbench tasks: select, judge and items, as a user writes them."""

import json
from pathlib import Path

import numpy as np
import pytest

from fewbench.scores import from_arrays, save_scores
from fewbench.testing import simulate
from fewbench_papers.bento import TaskSelection, Transferability

NAMES = ("algebra", "law, civil (b)", "a+b|c", "poetry", "origins", "ärzte = x")
SOURCES, TARGET = range(11), 11


def tasks_table():
    """Twelve models on six tasks whose names are not all plain."""
    made = simulate(12, 90, 6, seed=4)
    tasks = [NAMES[at] for at in made.task_of]
    return from_arrays(made.values, models=made.model_ids, tasks=tasks)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """ict/matrix.npz, scores.parquet of eleven models, models.csv of all twelve."""
    folder = tmp_path_factory.mktemp("tasks")
    table = tasks_table()
    sizes = np.bincount(table.task_of)
    rng = np.random.default_rng(0)
    values = 0.3 + 0.4 * rng.random(6) + 0.1 * rng.random((3, 6, 6))
    (folder / "ict").mkdir()
    Transferability(values, NAMES, NAMES, sizes, about={"model": "toy"}).save(
        folder / "ict" / "matrix.npz"
    )
    save_scores(table.take(models=SOURCES), folder / "scores.parquet")
    save_scores(table, folder / "all.parquet")
    quoted = [f'"{name}"' for name in NAMES]
    lines = [f"model,{','.join(quoted)},origin"]
    for model, row in zip(table.model_ids, table.task_scores(), strict=True):
        lines.append(",".join([model, *(f"{score:.4f}" for score in row), "made up"]))
    (folder / "models.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def here(prepared, monkeypatch, tmp_path):
    """Work in a folder of one's own; files of `prepared` by their full names."""
    monkeypatch.chdir(tmp_path)
    return prepared


QUICK = ("--bootstraps", 4)


@pytest.mark.parametrize("method", ["bento-sim(scaling=sum,tie=last)", "random"])
def test_select_prints_text_and_json_of_the_same_choice(ok, here, method):
    words = ("tasks", "select", here / "ict", "-k", 2, "-m", method, *QUICK)
    text = ok(*words, "--results", here / "models.csv")
    found = json.loads(ok(*words, "--results", here / "models.csv", "--json"))
    chosen = [row["task"] for row in found["chosen"]]
    assert len(chosen) == 2
    assert set(chosen) < set(NAMES)
    lines = text.splitlines()
    assert "2 of 6 tasks, " in text
    assert all(any(line.startswith(task) for line in lines) for task in chosen)
    assert "On 12 models" in text
    assert f" {100 * found['judgement']['nrmse']:.1f}% " in text
    assert max(len(line) for line in lines if not line.startswith("warning: ")) <= 100
    assert found["facts"]["model"] == "toy"


def test_a_list_of_names_or_a_file_of_them(ok, here, tmp_path):
    words = ("tasks", "select", here / "ict", "-m", "list", "--json")
    found = json.loads(ok(*words, "-k", 2, "--list", "poetry, algebra,origins"))
    assert [row["task"] for row in found["chosen"]] == ["poetry", "algebra"]
    (tmp_path / "names.txt").write_text("\n".join(NAMES[::-1]) + "\n", encoding="utf-8")
    found = json.loads(ok(*words, "-k", 6, "--list", "names.txt"))
    assert [row["task"] for row in found["chosen"]] == list(NAMES[::-1])


def test_files_are_written_and_judged_again(cli, ok, here, tmp_path):
    words = ("tasks", "select", here / "ict", "-k", 3, *QUICK, "--results", here / "models.csv")
    said = cli(*words, "-o", "out/s.json", "--report", "page.html", "--json")
    assert said.code == 0
    assert "wrote out/s.json\n" in said.err
    assert "wrote page.html\n" in said.err
    assert "'origin'" in said.err
    selection = TaskSelection.from_json((tmp_path / "out/s.json").read_bytes())
    first = json.loads(said.out)
    assert [row["task"] for row in first["chosen"]] == list(selection.tasks)
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "law, civil (b)" in page
    judged = ("tasks", "judge", "out/s.json", here / "models.csv")
    again = json.loads(ok(*judged, "--matrix", here / "ict", "--json"))
    assert again == first
    alone = json.loads(ok(*judged, "--json"))
    assert alone["judgement"]["nrmse"] == first["judgement"]["nrmse"]
    ok(*judged, "--report", "again.html")
    assert (tmp_path / "again.html").is_file()


@pytest.mark.parametrize("then", [(), ("--then", "stratified+mean", "-n", 12)])
def test_items_to_estimate(ok, here, answers, then):
    """Choose tasks, run their items, and read the estimate."""
    ok("tasks", "select", here / "ict", "-k", 2, "-m", "list", "--list",
       "poetry,origins", *QUICK, "-o", "s.json")  # fmt: skip
    printed = ok("tasks", "items", "s.json", here / "scores.parquet", *then).split()
    table = tasks_table()
    inside = table.items["task"].isin(["poetry", "origins"]).to_numpy()
    assert len(printed) == (12 if then else inside.sum())
    assert set(printed) <= set(table.item_ids[inside])
    ok("tasks", "items", "s.json", here / "scores.parquet", *then, "-o", "subset.json")
    ok("start", here / "scores.parquet", "--subset", "subset.json", "-o", "run", "--target", "new")
    (asked,) = json.loads(ok("ask", "run", "--json")).values()
    assert set(asked) == set(printed)
    row = dict(zip(table.item_ids, table.values[TARGET].tolist(), strict=True))
    ok("tell", "run", answers([["new", item, row[item]] for item in asked]),
       "--model", "llm", "--item", "id", "--score", "points")  # fmt: skip
    out = json.loads(ok("estimate", "run", "--json"))
    said = ok("estimate", "run")
    assert "Items run" in said
    assert "Tasks with 0 items run: scores predicted" in said
    if not then:
        assert out["new"]["score"] == pytest.approx(np.mean([row[item] for item in asked]))


@pytest.fixture
def wrong(cli):
    """Run a command that must fail the right way, and return what it says."""

    def run(*words):
        said = cli(*words)
        assert said.code == 2, said
        assert said.out == ""
        error = said.err.splitlines()[-1]
        assert error.startswith("fewbench: error: ")
        assert all(line.startswith("note: ") for line in said.err.splitlines()[:-1])
        assert "hint: None" not in error
        return error

    return run


@pytest.mark.parametrize(
    ("line", "said"),
    [
        # the matrix
        ("select nope.npz -k 2", "nope.npz: no such file"),
        ("select nope -k 2", "nope: no such file"),
        ("select empty -k 2", "empty"),
        ("select junk.npz -k 2", "junk.npz"),
        ("select junk.csv -k 2", "junk.csv: not a table of numbers"),
        # how many
        ("select {ict} -k 0", "cannot choose 0 of 6 tasks"),
        ("select {ict} -k 7", "cannot choose 7 of 6 tasks"),
        ("select {ict} -k -1", "cannot choose -1 of 6 tasks"),
        ("select {ict} -k two", "-k"),
        ("select {ict}", "-k"),
        ("select {ict} -k 2 --bootstraps -1", "bootstraps is -1"),
        ("select {ict} -k 2 --seed -1", "seed"),
        # methods
        ("select {ict} -k 2 -m nope", "unknown task chooser 'nope'"),
        ("select {ict} -k 2 -m bento-le(components=6)", "6 eigenvectors of 6 tasks"),
        ("select {ict} -k 2 -m bento-le(components=-2)", "components is -2"),
        ("select {ict} -k 2 -m bento-le(t=1)", "t is 1"),
        ("select {ict} -k 2 -m fit", "tasks are fitted to scores of source models"),
        ("select {ict} -k 2 -m list", "0 tasks are listed, but 2 are needed"),
        ("select {ict} -k 2 -m list --list poetry,nope", "no such task: 'nope'"),
        ("select {ict} -k 2 -m list --list junk.npz", "junk.npz: not a list of names"),
        ("select {ict} -k 2 -m bento-le --list poetry", "--list is for --method list"),
        ("select {ict} -k 2 -m bm25", "needs the texts"),
        ("select {ict} -k 2 -m bm25-le --texts nope.jsonl", "nope.jsonl"),
        ("select {ict} -k 2 --texts nope.jsonl", "--texts is for bm25-sim"),
        # results
        ("select {ict} -k 2 --results nope.parquet", "nope.parquet: no such file"),
        ("select {ict} -k 2 --results junk.csv", "junk.csv: no column 'model'"),
        ("select {ict} -k 2 --results less.csv", "no column for 1 of 6 tasks: 'ärzte = x'"),
        ("select {ict} -k 2 --results {models} --weigh odd", "--weigh"),
        ("select {ict} -k 2 --results {models} --anchor me", "the results have no model 'me'"),
        # selections
        ("judge nope.json {models}", "nope.json: no such file"),
        ("judge junk.csv {models}", "junk.csv: the file"),
        ("judge s.json nope.csv", "nope.csv: no such file"),
        ("judge s.json {models} --matrix other.npz", "other.npz: not the tasks of s.json"),
        ("items nope.json {scores}", "nope.json: no such file"),
        ("items s.json nope.parquet", "nope.parquet: no such file"),
        ("items s.json {scores} -n 91", "from 1 to 90"),
        ("items s.json {scores} --then nope", "'nope'"),
        ("items s.json {scores} --for nope", "unknown harness 'nope'"),
        ("nope", "nope"),
    ],
)
def test_mistakes_are_one_line(wrong, here, ok, tmp_path, line, said):
    (tmp_path / "empty").mkdir()
    for name in ("junk.npz", "junk.csv"):
        (tmp_path / name).write_bytes(b"PK\xff,a\nb,c\n" if name == "junk.npz" else b"x,a\nb,c\n")
    text = (here / "models.csv").read_text("utf-8")
    (tmp_path / "percent.csv").write_text(text.replace(",0.", ","), "utf-8")
    lines = [row.rsplit(",", 2)[0] for row in text.splitlines()]
    (tmp_path / "less.csv").write_text("\n".join(lines), "utf-8")
    save_scores(simulate(6, 30), tmp_path / "other.parquet")
    names = ("task-0", "task-1", "task-2")
    Transferability(np.ones((1, 3, 3)), names, names, np.ones(3, dtype=int)).save(
        tmp_path / "other.npz"
    )
    if "s.json" in line:
        ok("tasks", "select", here / "ict", "-k", 2, "--bootstraps", 0, "-o", "s.json")
    files = {"ict": "ict", "models": "models.csv", "scores": "scores.parquet"}
    words = line.format(**{key: here / name for key, name in files.items()}).split(" ")
    assert said in wrong("tasks", *words)


def test_texts_of_tasks(ok, wrong, here, tmp_path):
    names = ("rivers", "salt", "quarks")
    Transferability(np.ones((1, 3, 3)), names, names, np.ones(3, dtype=int)).save(
        tmp_path / "m.npz"
    )
    questions = {
        "rivers": "Does a river run to the salt sea?",
        "salt": "Is the sea full of salt?",
        "quarks": "How many flavours are there?",
    }
    for name, text in questions.items():
        rows = [
            {"question": f"{text} {at}", "options": ["yes", "no"], "answer": 0} for at in range(3)
        ]
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["tasks", "select", "m.npz", "-k", 2, "-m", "bm25-sim", "--json"]
    for name in names:
        words += ["--texts", f"{name}.jsonl"]
    found = json.loads(ok(*words))
    assert found["facts"]["rows"] == "BM25"
    assert len({row["task"] for row in found["chosen"]}) == 2
    assert "1 task without a text: 'quarks'" in wrong(*words[:-2])


# What a matrix in a .csv does not say, losses, and models that chose the tasks.


def plain(name, rows, head=None):
    """Write a .csv of numbers; rows begin with names where `head` is longer than them."""
    lines = [",".join(head)] if head else []
    Path(name).write_text("\n".join([*lines, *(",".join(map(str, row)) for row in rows)]) + "\n")


@pytest.fixture
def loose(here):
    """matrix.csv and bare.csv (without row names) of the tasks, and results.csv, in a folder."""
    rng = np.random.default_rng(3)
    names = [f"t{at}" for at in range(6)]
    values = (0.3 + 0.4 * rng.random((6, 6))).round(4)
    rows = [[name, *row] for name, row in zip(names, values.tolist(), strict=True)]
    plain("matrix.csv", rows, ["source", *names])
    plain("bare.csv", values.tolist(), names)
    models = (0.2 + 0.6 * rng.random((8, 6))).round(3)
    rows = [[f"m{at}", *row] for at, row in enumerate(models.tolist())]
    plain("results.csv", rows, ["model", *names])
    losses = (5 * rng.random((6, 6)) + 0.1).round(3)
    plain("losses.csv", losses.tolist(), names)
    rows = [[row[0], *(4 * np.array(row[1:])).round(3)] for row in rows]
    plain("model-losses.csv", rows, ["model", *names])
    return names


def test_without_numbers_of_questions_there_are_no_random_questions(ok, wrong, loose):
    words = ("tasks", "select", "matrix.csv", "-k", 2, "--results", "results.csv")
    text = ok(*words)
    assert "random questions  " not in text
    assert "the numbers of questions are not known" in " ".join(text.split())
    found = json.loads(ok(*words, "--json", "--report", "page.html"))
    assert found["judgement"]["random_questions"] is None
    assert found["facts"]["questions"] is None
    assert found["facts"]["weigh"] == "tasks"
    assert "random questions" not in Path("page.html").read_text("utf-8").split("<section")[1]
    assert "numbers of questions" in wrong(*words, "--weigh", "questions")


@pytest.mark.parametrize("given", ["100", "counts.csv"])
def test_numbers_of_questions_can_be_given(ok, wrong, loose, given):
    plain("counts.csv", [[name, 100] for name in loose], ["task", "questions"])
    words = ("tasks", "select", "matrix.csv", "-k", 2, "--results", "results.csv")
    found = json.loads(ok(*words, "--questions", given, "--json", "-o", "s.json"))
    assert found["judgement"]["random_questions"]["questions"] == 200
    ok(*words, "-o", "unknown.json")
    judged = ("tasks", "judge", "unknown.json", "results.csv", "--json")
    assert json.loads(ok(*judged))["judgement"]["random_questions"] is None
    again = json.loads(ok(*judged, "--questions", given))["judgement"]["random_questions"]
    assert again["mean"] == found["judgement"]["random_questions"]["mean"]
    assert "omit --questions" in wrong("tasks", "judge", "s.json", "results.csv", "--questions", 9)


def test_results_of_single_questions_give_their_numbers(ok, here):
    names = [f"task-{at}" for at in range(6)]
    table = simulate(12, 90, 6, seed=4)
    save_scores(table, "plain.parquet")
    rows = np.random.default_rng(0).random((6, 6))
    plain("m.csv", [[name, *row] for name, row in zip(names, rows, strict=True)], ["", *names])
    words = ("tasks", "select", "m.csv", "-k", 2, "--results", "plain.parquet", "--json")
    found = json.loads(ok(*words))
    assert found["facts"]["questions"] == 90
    chosen = [row["task"] for row in found["chosen"]]
    expected = int(table.items["task"].isin(chosen).sum())
    assert found["judgement"]["random_questions"]["questions"] == expected


def test_losses_are_said_and_can_be_transformed(ok, wrong, loose):
    assert "pass --metric loss" in wrong("tasks", "select", "losses.csv", "-k", 2)
    assert "for losses" in wrong("tasks", "select", "matrix.csv", "-k", 2, "--transform", "exp")
    losses = np.loadtxt("losses.csv", delimiter=",", skiprows=1)
    plain("exp.csv", np.exp(-losses).tolist(), loose)
    words = ("-k", 3, "--metric", "loss", "--json")
    read = json.loads(ok("tasks", "select", "losses.csv", *words))
    assert read["facts"]["metric"] == "loss"
    assert read["difficulty"]["all"] == pytest.approx(-losses.mean())
    exp = json.loads(ok("tasks", "select", "losses.csv", *words, "--transform", "exp"))
    plainly = json.loads(ok("tasks", "select", "exp.csv", "-k", 3, "--json"))
    assert exp["chosen"] == plainly["chosen"]
    assert exp["difficulty"]["all"] == pytest.approx(np.exp(-losses).mean())


def test_results_may_be_losses_of_any_range(ok, wrong, loose):
    words = ("tasks", "select", "losses.csv", "-k", 2, "--metric", "loss", "--results")
    assert "--lower-is-better for losses" in wrong(*words, "model-losses.csv")
    losses = ("model-losses.csv", "--lower-is-better")
    found = json.loads(ok(*words, *losses, "--questions", 50, "--json"))["judgement"]
    assert max(row["full"] for row in found["models"]) > 1
    assert found["random_questions"] is None  # nothing is known about losses on single questions
    exp = json.loads(ok(*words, *losses, "--transform", "exp", "--json"))["judgement"]
    assert exp["nrmse"] != pytest.approx(found["nrmse"])
    assert max(row["full"] for row in exp["models"]) < 1


def test_judge_knows_the_models_that_chose(ok, here, tmp_path):
    """By their names, or by their scores under other names, without the matrix."""
    ok("tasks", "select", here / "scores.parquet", "-k", 2, "-m", "fit", "-o", "s.json")
    said = "of the 12 models in the results"
    assert f"11 {said}" in " ".join(ok("tasks", "judge", "s.json", here / "all.parquet").split())
    table = tasks_table()
    renamed = from_arrays(
        table.values, models=[f"x{at}" for at in range(12)], tasks=list(table.items["task"])
    )
    save_scores(renamed, tmp_path / "renamed.parquet")
    assert f"11 {said}" in " ".join(ok("tasks", "judge", "s.json", "renamed.parquet").split())
    save_scores(table.take(models=[TARGET]), tmp_path / "new.parquet")
    assert "that it is judged on" not in ok("tasks", "judge", "s.json", "new.parquet")


@pytest.mark.parametrize("method", ["ridge"])
def test_past_scores_judge_by_models_that_are_held_out(ok, here, method):
    words = ("tasks", "select", here / "scores.parquet", "-k", 2, "-m", method)
    found = json.loads(ok(*words, "--json"))
    assert not any("not judged" in said for said in found["warnings"])
    assert found["judgement"]["held_out"] >= 2
    assert len(found["judgement"]["models"]) == 11
    said = ok(*words, "--report", "page.html")
    assert "Held out: each model is estimated from tasks chosen without it" in said
    assert "chosen without it" in Path("page.html").read_text("utf-8")
    seen = json.loads(ok(*words, "--results", here / "scores.parquet", "--json"))
    assert any("11 of the 11 models" in warning for warning in seen["warnings"])


def test_a_budget_with_a_cost_for_each_task(ok, wrong, here, tmp_path):
    table = simulate(20, 200, 8, seed=2)
    save_scores(table, tmp_path / "past.parquet")
    words = ("tasks", "select", "past.parquet", "--budget", 60, "--task-cost")
    found = {}
    for cost in (0, 18):
        found[cost] = json.loads(ok(*words, cost, "--json", "-o", f"{cost}.json"))
        plan, k = found[cost]["plan"], found[cost]["facts"]["k"]
        assert plan["questions"] <= 60 - cost * k
        assert plan["errors"][str(k)] == min(plan["errors"].values())
    assert found[18]["facts"]["k"] <= 3 < max(map(int, found[0]["plan"]["errors"]))
    assert "run " in ok(*words, 18)
    ok("tasks", "items", "18.json", "past.parquet", "-o", "subset.json")
    subset = json.loads(Path("subset.json").read_text())
    assert len(subset["items"]) == found[18]["plan"]["questions"]
    assert subset["provenance"]["settings"].endswith("stratified+task-means+ridge")
    assert "give either" in wrong(*words, 0, "-k", 2)
    assert "is too small for a task" in wrong(*words, 200)
    assert "needs source scores" in wrong("tasks", "select", here / "ict", "-m", "bento-sim",
                                        "--budget", 9)  # fmt: skip
