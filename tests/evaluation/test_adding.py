"""Evaluated models become rows of a table, and the next evaluation uses them."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fewbench
from fewbench.errors import AnswersError, EstimateWarning, EvaluationError, ScoresError
from fewbench.evaluation import Evaluation, Stop, add
from fewbench.evaluation.journal import Journal
from fewbench.public import load_scores
from fewbench.scores import Benchmark, Scale, Scores, from_arrays, save_scores
from fewbench.scores.families import families_of
from fewbench.scores.table import HARNESS_VERSION, KEYS, PROMPTS, SETTINGS
from fewbench.testing import simulate

WHOLE = simulate(8, 120, 3, seed=2)
ITEMS = WHOLE.benchmark
NAMES = WHOLE.model_ids


def known(row: int) -> dict[str, float]:
    return dict(zip(WHOLE.item_ids, WHOLE.values[row], strict=True))


def ran(folder: Path, row: int, n: int = 30, seed: int = 0, table=ITEMS, target=None) -> Path:
    """Run a model of the simulation on some items."""
    names = [target or NAMES[row]]
    fewbench.run(table, "random", n, known(row).get, targets=names, folder=folder, seed=seed)
    return folder


def told(folder: Path, row: int, items: list[str], table=ITEMS, **columns) -> Path:
    """Evaluate a model by a table of answers, with columns that say how it was asked."""
    evaluation = Evaluation(table, "random", ITEMS.n_items, [NAMES[row]], seed=row)
    evaluation.save(folder)
    evaluation.ask()
    answers = WHOLE.take(models=[row], items=WHOLE.positions(items))
    columns = {"harness": "lm-eval"} | columns
    evaluation.tell_table(answers.changed(items=answers.items.assign(**columns)))
    return folder


def test_models_from_nothing_are_the_sources_of_the_next(tmp_path):
    runs = [ran(tmp_path / f"run{row}", row, 20 + 10 * row, seed=row) for row in range(3)]
    table = add(runs)
    assert table.model_ids == NAMES[:3]
    assert (~np.isnan(table.values)).sum(axis=1).tolist() == [20, 30, 40]
    for row in range(3):
        at = ~np.isnan(table.values[row])
        np.testing.assert_array_equal(table.values[row, at], WHOLE.values[row, at])
    assert table.benchmark.items.equals(ITEMS.items)
    path = save_scores(table, tmp_path / "scores.parquet")
    found = fewbench.run(
        load_scores(path), budget=40, score=known(3).get, targets=["new"], folder=tmp_path / "new"
    )
    assert found.estimates["new"].items_run == 40
    assert Evaluation.open(tmp_path / "new", load_scores(path)).scores.n_models == 3
    assert Evaluation.open(runs[0], table).scores.n_models == 0
    more = add(tmp_path / "new", load_scores(path))
    assert more.model_ids == [*NAMES[:3], "new"]
    np.testing.assert_array_equal(more.values[:3], table.values)


def test_without_a_table_the_sources_of_the_run_are_kept(tmp_path):
    path = save_scores(WHOLE.take(models=np.arange(5)), tmp_path / "scores.parquet")
    evaluation = Evaluation(load_scores(path), "random", 20, ["new"])
    evaluation.save(tmp_path / "run", path)
    evaluation.tell("new", {item: known(6)[item] for item in evaluation.ask()["new"]})
    table = add([ran(tmp_path / "other", 7), tmp_path / "run"])
    assert table.model_ids == [*NAMES[:5], NAMES[7], "new"]
    assert table.models["run"].tolist()[:5] == [""] * 5


def test_a_run_goes_on_after_its_table_has_grown(tmp_path):
    path = save_scores(WHOLE.take(models=np.arange(5)), tmp_path / "scores.parquet")
    evaluation = Evaluation(load_scores(path), "random", 20, ["new"])
    evaluation.save(tmp_path / "run", path)
    items = evaluation.ask()["new"]
    evaluation.tell("new", {item: known(6)[item] for item in items[:8]})
    for runs in (ran(tmp_path / "other", 7), tmp_path / "run"):
        save_scores(add(runs, load_scores(path)), path)
    opened = Evaluation.open(tmp_path / "run")
    assert opened.scores.model_ids == NAMES[:5]
    assert Evaluation.open(tmp_path / "run", load_scores(path)).scores.n_models == 5
    opened.tell("new", {item: known(6)[item] for item in items[8:]})
    table = add(tmp_path / "run", load_scores(path))
    assert table.model_ids == [*NAMES[:5], NAMES[7], "new"]
    assert (~np.isnan(table.values[6])).sum() == 20
    fewer = load_scores(path).take(models=[1, 2, 3, 4, 5, 6])
    (note,) = Evaluation.open(tmp_path / "run", fewer).notes
    assert f"{NAMES[0]!r} left the scores" in note


def test_a_run_goes_on_after_a_row_of_its_table_was_replaced(tmp_path):
    other = told(tmp_path / "other", 0, list(WHOLE.item_ids[:40]))
    path = save_scores(add(other), tmp_path / "scores.parquet")
    fewbench.run(load_scores(path), "random", 5, known(3).get, targets=["new"],
                 folder=tmp_path / "run")  # fmt: skip
    rest = {item: known(0)[item] for item in WHOLE.item_ids[40:]}
    Evaluation.open(other).tell(NAMES[0], rest)
    save_scores(add(other, load_scores(path)), path)
    for given in (None, load_scores(path)):
        opened = Evaluation.open(tmp_path / "run", given)
        assert (~np.isnan(opened.scores.values)).sum() == 40


def test_the_same_run_adds_nothing_until_it_has_more_answers(tmp_path):
    runs = [told(tmp_path / f"run{row}", row, list(WHOLE.item_ids[:40])) for row in (0, 1)]
    table = add(runs)
    shutil.copytree(runs[0], tmp_path / "copy")
    for again in (runs, [runs[0]], [tmp_path / "copy"]):
        with pytest.warns(EstimateWarning, match=f"no new answers of '{NAMES[0]} "):
            assert add(again, table).fingerprint == table.fingerprint
    with pytest.warns(EstimateWarning, match="the table has them all"):
        assert add([runs[0], runs[0]]).n_models == 1
    evaluation = Evaluation.open(runs[0])
    evaluation.tell(NAMES[0], {item: known(0)[item] for item in WHOLE.item_ids[40:60]})
    grown = add(runs[0], table, names={str(runs[0]): "another name"})
    assert grown.model_ids == NAMES[:2]
    assert (~np.isnan(grown.values)).sum(axis=1).tolist() == [60, 40]
    np.testing.assert_array_equal(grown.values[1], table.values[1])


def test_corrected_and_skipped_answers(tmp_path):
    evaluation = Evaluation(ITEMS, "random", 10, ["a"])
    evaluation.save(tmp_path / "run")
    first, second, *_ = evaluation.ask()["a"]
    evaluation.tell("a", {first: 0.0})
    table = add(tmp_path / "run")
    evaluation.tell("a", {first: 1.0}, correct=True)
    evaluation.skip("a", [second])
    corrected = add(tmp_path / "run", table)
    at = int(table.positions([first])[0])
    assert (table.values[0, at], corrected.values[0, at]) == (0.0, 1.0)
    assert (~np.isnan(corrected.values)).sum() == 1


def test_several_targets_and_names(tmp_path):
    evaluation = Evaluation(ITEMS, "random", 12, ["a", "b", "c"])
    evaluation.save(tmp_path / "both")
    for row, name in enumerate("ab"):
        items = evaluation.ask()[name]
        evaluation.tell(name, {item: known(row)[item] for item in items})
    assert add(tmp_path / "both").model_ids == ["a", "b"]
    other = ran(tmp_path / "other", 2, target="a")
    with pytest.raises(EvaluationError, match="'a'") as error:
        add([tmp_path / "both", other])
    assert f"--name {other}:a=NAME" in str(error.value.hint)
    for where in (f"{other}", f"{other}:a", f"{other}/"):
        assert add([tmp_path / "both", other], names={where: "x"}).model_ids == ["a", "b", "x"]
    with pytest.raises(EvaluationError, match="'nowhere'"):
        add(other, names={"nowhere": "x"})
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "unknown"):
        add(tmp_path / "both", names={str(tmp_path / "both"): "x"})


# -- how items were asked ------------------------------------------------------------------------


def asked(prompt: str = "9f00", shots: str = "0", key: str = "aa/bb") -> dict:
    settings = json.dumps({"few-shot examples": [shots], "generation: temperature": ["0"]})
    return {PROMPTS: prompt, KEYS: key, SETTINGS: settings, HARNESS_VERSION: "0.4.9"}


def test_conditions_go_along_and_the_next_model_is_compared(tmp_path):
    items = list(WHOLE.item_ids)
    table = add(told(tmp_path / "a", 0, items[:60], **asked()))
    assert set(table.items[PROMPTS][:60]) == {"9f00"}
    assert set(table.items[PROMPTS][60:]) == {""}
    tasks = set(table.items["task"][:60])
    of_tasks = table.items[SETTINGS][table.items["task"].isin(tasks)]
    assert len(set(of_tasks)) == 1
    assert set(table.items[HARNESS_VERSION]) <= {"0.4.9", ""}
    evaluation = Evaluation(table, "random", 120, ["new"])
    evaluation.ask()
    answers = WHOLE.take(models=[1])
    other = answers.changed(items=answers.items.assign(harness="lm-eval", **asked("1234")))
    with pytest.raises(AnswersError, match="18 of 18 items"):
        evaluation.tell_table(other, "new")
    same = answers.changed(items=answers.items.assign(harness="lm-eval", **asked()))
    assert evaluation.tell_table(same, "new").answers == 120


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"prompt": "1234"}, "other prompts than in the table"),
        ({"shots": "5"}, "few-shot examples of task .* 5 in the run, 0 in the table"),
        ({"key": "cc/bb"}, "another right answer than in the table"),
        ({"key": "aa/dd"}, "other options than in the table"),
    ],
)
def test_runs_that_were_asked_in_another_way_are_refused(tmp_path, other, message):
    items = list(WHOLE.item_ids[:50])
    first = told(tmp_path / "a", 0, items, **asked())
    second = told(tmp_path / "b", 1, items, **asked(**other))
    with pytest.raises(EvaluationError, match=message):
        add([first, second])
    with pytest.warns(EstimateWarning, match=message):
        table = add([first, second], accept_differences=True)
    assert table.n_models == 2
    both = [*asked().values(), *asked(**other).values()]
    texts = " ".join(table.items[name].iloc[0] for name in (PROMPTS, KEYS, SETTINGS))
    assert other.get("shots", "0") in texts
    assert all(one in texts for one in both if " " not in one and "." not in one)


def test_conditions_of_another_harness_are_left_out(tmp_path):
    table = ITEMS.items.assign(harness="inspect")
    run = told(tmp_path / "a", 0, list(WHOLE.item_ids), Benchmark(table), **asked())
    assert PROMPTS not in add(run).items


# -- what does not fit ---------------------------------------------------------------------------


def test_a_folder_that_is_no_run(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(EvaluationError, check=lambda error: error.kind == "missing"):
            add(folder)
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "too-few"):
        add([])


def test_a_run_without_answers(tmp_path):
    Evaluation(ITEMS, "random", 10, ["a"]).save(tmp_path / "run")
    with pytest.raises(EvaluationError, match="'a'"):
        add(tmp_path / "run")


def test_a_run_whose_answers_were_all_removed(tmp_path):
    sources = WHOLE.take(models=range(7))
    begun = Evaluation(sources, "fewbench", 30, ["new"])
    begun.save(tmp_path)
    items = begun.ask()["new"]
    begun.tell("new", dict.fromkeys(items, 1.0))
    left = sources.take(items=np.flatnonzero(~np.isin(sources.item_ids, items)))
    evaluation = Evaluation.open(tmp_path, left)
    evaluation.skip("new", evaluation.ask()["new"][:1])  # the removal is in the journal now
    with pytest.raises(EvaluationError, match="'new'"):
        add(tmp_path, left)


def test_a_run_whose_table_is_not_known(tmp_path):
    run = ran(tmp_path / "run", 7, table=WHOLE.take(models=np.arange(5)))
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "missing"):
        add(run)
    assert add(run, WHOLE.take(models=np.arange(5))).n_models == 6


def test_a_benchmark_that_changed_between_two_runs(tmp_path):
    run, items = ran(tmp_path / "run", 0), ITEMS.items
    fewer = Benchmark(items.iloc[:100])
    with pytest.raises(EvaluationError, match="20 items"):
        add(run, fewer)
    with pytest.warns(EstimateWarning, match="20 items"):
        assert add(run, fewer, accept_differences=True).n_items == 100
    with pytest.warns(EstimateWarning, match=rf"of 30 answers of {NAMES[0]!r} are left out: the"):
        add(run, fewer, accept_differences=True)
    more = Benchmark(pd.concat([items, items.iloc[:1].set_axis(["extra"])]))
    with pytest.raises(EvaluationError, match=r"1 item.*'extra'"):
        add(run, more)
    renamed = Benchmark(items.assign(task=np.where(items["task"] == "task-0", "x", items["task"])))
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "changed"):
        add(run, renamed)
    ids = [f"other-{at}" for at in range(120)]
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "changed"):
        add(run, Benchmark(items.set_axis(ids)), accept_differences=True)
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "changed"):
        add(run, Benchmark(items, Scale(0, 100)))


def test_items_in_another_order_are_the_same(tmp_path):
    order = np.random.default_rng(0).permutation(120)
    table = add(ran(tmp_path / "run", 0), Benchmark(ITEMS.items.iloc[order]))
    there = np.flatnonzero(~np.isnan(table.values[0]))
    assert len(there) == 30
    assert all(table.values[0, at] == known(0)[table.item_ids[at]] for at in there)


def test_option_probabilities_are_kept_or_missed(tmp_path):
    whole = simulate(6, 20, options=4, seed=1)
    table = whole.take(models=np.arange(5))
    evaluation = Evaluation(table, "random", 8, ["new"])
    evaluation.save(tmp_path / "with")
    items = evaluation.ask()["new"]
    places = whole.positions(items)
    answers = dict(zip(items, whole.values[5, places], strict=True))
    chances = whole.probabilities.of_items(places)[5]
    evaluation.tell("new", answers, dict(zip(items, chances, strict=True)))
    found = add(tmp_path / "with", table)
    np.testing.assert_allclose(found.probabilities.of_items(places)[5], chances)
    assert np.isnan(found.probabilities.of_model(5)).all(axis=1).sum() == 12
    np.testing.assert_array_equal(found.probabilities.of_model(2), table.probabilities.of_model(2))
    assert load_scores(save_scores(found, tmp_path / "s.parquet")).equals(found)
    without = Evaluation(table, "random", 8, ["new"])
    without.save(tmp_path / "without")
    without.tell("new", answers)
    with pytest.raises(EvaluationError, match="8 answers"):
        add(tmp_path / "without", table)


def test_attributes_of_models_and_items_stay(tmp_path):
    table = from_arrays(
        WHOLE.values[:2],
        models=NAMES[:2],
        items=list(WHOLE.item_ids),
        tasks=list(WHOLE.items["task"]),
        dates=["2024-01-01", "2025-01-01"],
    )
    table = table.changed(
        models=table.models.assign(role="source", size=[7, 70]),
        items=table.items.assign(weight=np.linspace(1, 2, 120), note="x"),
    )
    found = add(ran(tmp_path / "run", 3), table)
    assert found.models["role"].tolist() == ["source"] * 3
    assert found.models["size"].tolist()[:2] == [7, 70]
    assert found.items.equals(table.items)
    assert load_scores(save_scores(found, tmp_path / "s.parquet")).equals(found)
    clash = table.changed(items=table.items.rename(columns={"note": "run"}))
    with pytest.raises(ScoresError, match="'run'"):
        add(tmp_path / "run", clash)


def test_a_run_from_nothing_has_its_benchmark_in_its_folder(tmp_path):
    stop = Stop(items=10)
    evaluation = Evaluation(ITEMS, "random", targets=["a"], stop=stop)
    evaluation.save(tmp_path / "run")
    assert Journal(tmp_path / "run").header().scores == "benchmark.parquet"
    asked = evaluation.ask()
    (tmp_path / "run").rename(tmp_path / "moved")
    opened = Evaluation.open(tmp_path / "moved")
    assert isinstance(opened.scores, Scores)
    assert opened.scores.fingerprint == evaluation.scores.fingerprint
    assert opened.ask() == asked


def test_a_family_is_named_for_added_runs(tmp_path):
    """It counts before that of the names, also for runs that are in the table already."""
    targets = [f"A/step-{step}" for step in (100, 200, 300)]
    runs = [ran(tmp_path / f"run{row}", row, target=name) for row, name in enumerate(targets)]
    table = add(runs[:2])
    assert families_of(table) == ["A", "A"]
    assert "family" not in table.models
    table = add(runs[2], table, family="other")
    assert table.models["family"].tolist() == ["", "", "other"]
    assert families_of(table.take(models=[0, 1])) == ["A", "A"]
    with pytest.warns(EstimateWarning, match="no new answers"):
        table = add(runs[:2], table, family="A")
    assert table.models["family"].tolist() == ["A", "A", "other"]
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "name"):
        add(runs[2], table, family=" ")
