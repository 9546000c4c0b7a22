"""A leaderboard's month: from the table to the next month's pack, against simulated truth."""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fewbench
from fewbench.cli import main
from fewbench.errors import EvaluationError, PackError
from fewbench.evaluation.scoring import Scoring

N = 150
TASKS = np.repeat(["math", "code", "law"], N)
IDS = [f"{task}-{at:03d}" for at, task in enumerate(TASKS)]


class Keeper:
    """Types commands in a folder."""

    def __init__(self, capsys, monkeypatch):
        self.capsys, self.patch = capsys, monkeypatch

    def __call__(self, line, code=0):
        self.patch.setattr(sys, "argv", ["fewbench", *line.split()])
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as done:
            main()
        seen = self.capsys.readouterr()
        assert (done.value.code or 0) == code, f"{line}\n{seen.err}"
        return seen.out if code != 2 else seen.err

    def json(self, line, code=0):
        return json.loads(self(f"{line} --json", code))


@pytest.fixture
def keeper(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Keeper(capsys, monkeypatch)


def simulated(rng):
    """Return 40 models by date, the chances of two submissions, and five wrong keys."""
    hard, sharp = rng.normal(0, 1, 3 * N), rng.lognormal(0.3, 0.3, 3 * N)

    def chances(skill):
        return 1 / (1 + np.exp(-sharp * (skill - hard)))

    skills = rng.normal(np.linspace(-0.8, 0.8, 40), 0.5)
    models = np.array([chances(skill) for skill in skills])
    board = (rng.random(models.shape) < models) * 1.0
    fair = np.flatnonzero((board.mean(axis=0) > 0.4) & (board.mean(axis=0) < 0.8))
    wrong = rng.choice(fair, 5, replace=False)
    board[:, wrong] = 1 - board[:, wrong]
    return board, models.mean(axis=1), chances(0.7), chances(-0.4), wrong


def write(name, scores):
    pd.DataFrame({"item": IDS, "score": scores}).to_csv(name, index=False)


def test_a_month_of_a_leaderboard(keeper):
    rng = np.random.default_rng(5)
    board, expected, honest, weak, wrong = simulated(rng)
    names = [f"lab{at % 7}/model-{at:02d}" for at in range(40)]
    table = pd.DataFrame(board, names, IDS)
    # Dirt: one model in percent, one under two spellings, one in two halves.
    half = rng.random(3 * N) < 0.5
    table.loc["Lab3/Model_10"] = table.loc["lab3/model-10"].where(rng.random(3 * N) > 0.02, 0.0)
    table.loc["part-1"] = table.loc["lab4/model-11"].where(half)
    table.loc["part-2"] = table.loc["lab4/model-11"].where(~half)
    table.loc["lab5/model-05"] *= 100
    table.rename_axis("model").to_csv("board.csv")
    dates = pd.date_range("2026-01-05", periods=43, freq="7D").strftime("%Y-%m-%d")
    pd.DataFrame({"model": table.index, "date": dates}).to_csv("dates.csv", index=False)
    pd.DataFrame({"item": IDS, "task": TASKS}).to_csv("items.csv", index=False)

    read = "import board.csv --model model --items items.csv --models dates.csv -o board.parquet"
    assert "--rescale lab5/model-05=100" in keeper(read, code=2)
    keeper(f"{read} --rescale lab5/model-05=100")
    findings = {f["kind"]: f for f in keeper.json("audit board.parquet")["findings"]}
    assert set(findings["same-name-differs"]["ids"]) == {"lab3/model-10", "Lab3/Model_10"}
    assert set(findings["halves"]["ids"]) == {"part-1", "part-2"}
    text = keeper("audit board.parquet --details")
    listed = text.partition("Correlation with other items")[2].splitlines()[1:16]
    assert {IDS[at] for at in wrong} <= {line.split()[0] for line in listed}

    clean = [name for name in names if name != "lab4/model-11"]
    scores = fewbench.load_scores("board.parquet")
    fewbench.save_scores(scores.take(models=scores.model_positions(clean)), "november.parquet")
    keeper("pack november.parquet -n 60 --no-backtest --workers 1 -o november.few")
    sent = {}
    for name, chance in {"honest": honest, "faked": weak}.items():
        answers = (rng.random(3 * N) < chance) * 1.0
        again = (rng.random(3 * N) < chance) * 1.0
        made_up = rng.random(3 * N) < 0.6
        sent[name] = np.where(made_up, 1.0, answers) if name == "faked" else answers
        for file, values in {f"{name}.csv": sent[name], f"{name}-again.csv": again}.items():
            values[wrong] = 1 - values[wrong]
            write(file, values)
        keeper(f"start november.few -t {name} -o sent/{name}")
        keeper(f"tell sent/{name} {name}.csv")

    drawn = keeper("verify sent/honest -n 30 --seed 8231").split()
    assert len(set(drawn)) == 30
    checked = keeper.json("verify sent/honest honest-again.csv -n 30 --seed 8231")
    assert (checked["verdict"], checked["items"]) == ("not proven", drawn)
    checked = keeper.json("verify sent/faked faked-again.csv -n 30 --seed 8231", code=1)
    assert checked["verdict"] == "inflated"

    keeper("rank november.parquet sent/honest --tasks --history --title Board --report board.html")
    page = Path("board.html").read_text(encoding="utf-8")
    assert all(text in page for text in (">Board<", "math (150), code (150), law (150)", "Date"))
    ranked = keeper.json("rank november.parquet sent/honest --history --tasks")
    places = {place["target"]: place for place in ranked["targets"]}
    assert set(places) == {*clean, "honest"}
    estimate = places["honest"]["interval"]
    assert estimate["low"] <= sent["honest"].mean() <= estimate["high"]
    truth = dict(zip(names, expected, strict=True))
    order = sorted(clean, key=lambda name: -truth[name])
    for at, name in enumerate(order):  # the submission may be before or after
        assert places[name]["rank_low"] <= at + 2
        assert places[name]["rank_high"] >= at + 1
    for record in ranked["history"]:
        if record["best"] == record["target"] != "honest":
            ends = record["best_interval"]
            assert ends["low"] - 0.02 <= truth[record["target"]] <= ends["high"] + 0.02
    keeper("rank sent/honest --all --top 3")

    before = keeper.json("estimate sent/honest")["honest"]
    retired = [IDS[at] for at in wrong]
    Path("retired.txt").write_text("\n".join(retired), encoding="utf-8")
    keeper("audit november.parquet --drop-items retired.txt -o december.parquet")
    keeper(
        "pack december.parquet -n 60 --keep november.few --no-backtest --workers 1 -o december.few"
    )
    items = {name: fewbench.open_pack(f"{name}.few").scores().origin.subset["items"]
             for name in ("november", "december")}  # fmt: skip
    stays = [item for item in items["november"] if item not in retired]
    assert items["december"][: len(stays)] == stays
    assert len(set(items["december"])) == 60
    after = keeper.json("pack refresh sent/honest december.few")["honest"]
    assert after["before"] == before["score"]
    assert any("of 450 items, and this one of 445" in text for text in after["warnings"])
    assert keeper.json("estimate sent/honest")["honest"] == before
    other = keeper.json("rank november.parquet sent/honest --drop-items retired.txt")
    assert other["items_total"] == 445


def test_retired_items_do_not_count(tmp_path):
    rng = np.random.default_rng(0)
    values = (rng.random((4, 40)) < 0.6) * 1.0
    names, ids = [f"m{at}" for at in range(4)], [f"q{at}" for at in range(40)]
    table = fewbench.from_arrays(values, models=names, items=ids)
    left = Scoring(drop_items=("q0", "q7", "gone")).of_table(table)
    assert left.n_items == 38
    assert left.full_scores() == pytest.approx(np.delete(values, [0, 7], axis=1).mean(axis=1))
    (tmp_path / "ids.csv").write_text("id\nq0\nq7\n")
    assert Scoring(drop_items=tmp_path / "ids.csv").of_table(table).fingerprint == left.fingerprint
    for bad in (("x",), tuple(table.item_ids)):
        with pytest.raises(EvaluationError, match="of the 40 items listed there"):
            Scoring(drop_items=bad).of_table(table)
    evaluation = fewbench.Evaluation(table.benchmark, "random", 20, ["a"])
    evaluation.tell("a", dict.fromkeys(evaluation.ask()["a"], 1.0))
    assert "2 items of 40 retired" in str(
        evaluation.rescored(Scoring(drop_items=("q0", "q7"))).read_notes
    )
    # A weight of 0 retires, in a file of items and in attributes.
    weighed = "\n".join(f"q{at},{0 if at in (0, 7) else 1}" for at in range(40))
    (tmp_path / "items.csv").write_text(f"item,weight\n{weighed}\n")
    with pytest.warns(fewbench.EstimateWarning, match="2 items of 40 retired"):
        assert fewbench.read_items(tmp_path / "items.csv").n_items == 38
    frame = pd.DataFrame(values, names, ids)
    frame.rename_axis("model").to_csv(tmp_path / "t.csv")
    from fewbench.readers import Columns, join_attributes

    read = fewbench.import_results(tmp_path / "t.csv", columns=Columns("model")).scores
    assert join_attributes(read, items=tmp_path / "items.csv").n_items == 38


def test_what_cannot_be_kept_is_refused(tmp_path):
    from fewbench.testing import simulate

    table = simulate(24, 80, 2, seed=1)
    fewbench.pack(table, "greedy-ridge", 10, backtest=False).save(tmp_path / "a.few")
    fewbench.pack(table, "random", 10, backtest=False).save(tmp_path / "r.few")
    how = {"backtest": False, "keep": tmp_path / "a.few"}
    earlier = fewbench.open_pack(tmp_path / "a.few").scores().origin.subset["items"]
    more = fewbench.pack(table, "greedy-ridge", 14, **how).scores()
    assert list(more.origin.subset["items"][:10]) == list(earlier)
    assert fewbench.Evaluation(more).estimate is not None
    with pytest.raises(PackError, match="the budget is 8"):
        fewbench.pack(table, "greedy-ridge", 8, **how)
    for method, keep in (("random", "a.few"), ("greedy-ridge", "r.few")):
        with pytest.raises(PackError, match="keep"):
            fewbench.pack(table, method, 14, backtest=False, keep=tmp_path / keep)


def test_submissions_stand_beside_complete_models():
    from fewbench.testing import simulate

    table = simulate(20, 90, 3, seed=2)
    evaluation = fewbench.Evaluation(table, "random", 30, ["new"])
    evaluation.tell("new", dict.fromkeys(evaluation.ask()["new"], 1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        beside = fewbench.rank(table, evaluation, tasks=True)
        named = fewbench.rank(evaluation, models=table.model_ids, tasks=True)
        every = fewbench.rank(evaluation, all_models=True, tasks=True)
    assert beside == named == every
    (shown,) = next(part.tables for part in beside.page("Ours").sections if part.id == "places")
    titles = [title for title, _ in shown.head]
    assert set(table.tasks) < set(titles)
    cell = next(row for row in shown.rows if row[0] == "new")[titles.index(table.tasks[0])]
    assert " ± " in cell
    assert beside.page("Ours").title == "Ours"
