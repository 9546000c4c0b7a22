"""The checkpoints of a run: whole ones find more changes, few verdicts are wrong."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import fewbench
from fewbench.decide.checkpoints import read_run
from fewbench.decide.joint_estimate import contrast
from fewbench.decide.operands import operand
from fewbench.decide.step_names import read_steps
from fewbench.errors import FewbenchError
from fewbench.evaluation import Evaluation
from fewbench.scores import Scale
from fewbench.testing import simulate_run


def test_a_run_needs_no_source_models():
    table = simulate_run(4, 200, n_models=2, rise=0.3, seed=1)
    benchmark = table.take(models=[]).benchmark
    evaluations = []
    for row in range(2, 6):
        evaluation = Evaluation(benchmark, "random", 200 if row == 2 else 60, [f"step-{row}"])
        items = evaluation.ask()[f"step-{row}"]
        answers = table.values[row][table.positions(items)]
        evaluation.tell(f"step-{row}", dict(zip(items, answers, strict=True)))
        evaluations.append(evaluation)
    part = fewbench.track(evaluations[1:])
    found = fewbench.track(evaluations)  # the first one ran all items
    assert [one.is_known for one in found.points] == [True, False, False, False]
    for own, points in ((evaluations, found.points), (evaluations[1:], part.points)):
        assert [one.score for one in points] == [one.estimate().score for one in own]


def parts(table, n_models=40):
    """Return source models and checkpoints."""
    return (
        table.take(models=range(n_models)),
        table.take(models=range(n_models, table.n_models)),
    )


def evaluated(sources, run, names, method, n, seed=0, upto=None):
    """Return an evaluation of checkpoints, answered as far as wanted."""
    evaluation = Evaluation(sources, method, n, names, seed)
    asked = evaluation.ask()
    while asked:
        for name, items in asked.items():
            items = items if upto is None else items[:upto]
            row = run.values[run.model_ids.index(name)][run.positions(items)]
            unit = np.asarray(sources.scale.from_unit(row))
            evaluation.tell(name, dict(zip(items, unit.tolist(), strict=True)))
        asked = evaluation.ask() if upto is None else {}
    return evaluation


@pytest.mark.parametrize(
    ("names", "steps"),
    [
        (["run/step-1000", "run/step-2k"], [1000, 2000]),
        (["iter0003000", "iter0012000"], [3000, 12000]),
        (["ckpt-5B", "ckpt-1.5T"], [5e9, 1.5e12]),
        (["m_global_step10-epoch1", "m_global_step20-epoch1"], [10, 20]),
        (["llama-7b-checkpoint_500", "llama-7b-checkpoint_50"], [500, 50]),
        (["epoch=1.5", "epoch=2"], [1.5, 2]),
        (["net/01", "net/14"], [1, 14]),
    ],
)
def test_steps_are_read_from_names(names, steps):
    assert read_steps(names).tolist() == steps


@pytest.mark.parametrize(
    ("names", "given", "said"),
    [
        (["step-1", "final"], None, "no step in the name of 'final'"),
        (["step-1", "epoch-2"], None, "different units: step, epoch"),
        (["step-1-step-2", "step-3"], None, "has two steps, 1 and 2"),
        (["a-7b", "b-13b"], None, "no step in the name"),
        (["step1000x", "step-1_000"], None, "no step in the name of 'step1000x'"),
        (["step-1", "b"], {"step-1": 1.0, "c": 2.0}, "not a checkpoint"),
        (["a", "b"], {"a": 1.0, "b": np.nan}, "the step of 'b' is nan"),
    ],
)
def test_names_without_one_step_are_refused(names, given, said):
    with pytest.raises(FewbenchError, match=said):
        read_steps(names, given)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["aipw", "fewbench-static"])
def test_checkpoints_are_tested_against_the_last_whole_one(method):
    """Which joins the sources: its changes are those of `versus` against a source model."""
    found = {True: 0, False: 0}
    for seed in range(3):
        sources, run = parts(simulate_run(9, 400, n_models=24, rise=0.3, seed=seed), 24)
        names, full = run.model_ids, run.full_scores()
        truth = dict(zip(names, full.tolist(), strict=True))
        whole = [names[0], names[4]]
        rest = [name for name in names if name not in whole]
        some = evaluated(sources, run, rest, method, 60, seed)
        given = [some, evaluated(sources, run, whole, "random", 400)]
        together, alone = fewbench.track(given), fewbench.track(some)
        assert (alone.sources, together.sources) == (24, 26)
        pairs = [(names[0], name) for name in names[1:5]]
        pairs += [(names[4], name) for name in names[5:]]
        assert [(one.before, one.after) for one in together.changes[:8]] == pairs
        neighbors = [(one.before, one.after) for one in alone.changes[:6]]
        assert neighbors == [*pairwise(rest)]
        for name in whole:
            assert together[name].is_known
            assert together[name].score == pytest.approx(truth[name])
            assert together[name].interval.low == together[name].interval.high
        assert "pp better –" in " ".join(str(fewbench.track(given[1], fixed_items=True)).split())
        same = read_run(given, None, None)
        for one in together.changes[:8]:
            if one.after in rest:
                of = same.evaluations[one.after]
                other = fewbench.versus((of, one.after), one.before, next_items=0)
                assert (one.interval, one.difference) == (other.interval, other.difference)
        for is_whole, tracked in ((True, together), (False, alone)):
            for one in tracked.changes:
                apart = truth[one.after] - truth[one.before]
                if {one.before, one.after} & set(rest) and one.verdict != "undecided":
                    assert one.verdict == ("better" if apart > 0 else "worse")
                    found[is_whole] += 1
        neighbors = [operand((some, name), sources) for name in rest[2:4]]
        assert contrast(*neighbors).correlation > 0.2  # their errors move together
    assert found[True] > found[False]


def test_a_sudden_loss_is_found_by_a_whole_checkpoint_before_it():
    table = simulate_run(8, 1000, drops={4: 0.08}, rise=0.03, persistence=0.99, seed=1)
    sources, run = parts(table)
    names = run.model_ids
    told = evaluated(sources, run, [*names[:3], *names[4:]], "random", 300)
    whole = evaluated(sources, run, [names[3]], "random", 1000)
    found = fewbench.track([told, whole])
    verdicts = {(one.before, one.after): one.verdict for one in found.changes}
    assert verdicts[names[3], names[4]] == "worse"
    assert sum(one != "undecided" for one in verdicts.values()) <= 4
    assert found.best != names[4]
    assert found[names[4]].chance_best < 0.01
    assert found.to_frame()["chance_best"].sum() == pytest.approx(1)
    plain = fewbench.track(told, change=0.005, fixed_items=True)
    assert 300 < plain.items_needed <= 1000
    for change, is_findable in ((0.005, False), (0.06, True)):
        plain = fewbench.track(told, change=change)
        assert (plain.items_needed is not None) == plain.is_findable == is_findable


@pytest.mark.slow
def test_few_runs_without_change_show_one():
    """At most about one of ten, at 90 %."""
    wrong = 0
    for seed in range(25):
        sources, run = parts(simulate_run(6, 400, n_models=12, rise=0.0, seed=seed), 12)
        rng, values = np.random.default_rng(seed), run.values.copy()
        for row in values:  # all are right on as many items
            over = int(row.sum() - values[0].sum())
            flipped = rng.choice(np.flatnonzero(row == (over > 0)), abs(over), replace=False)
            row[flipped] = 1 - row[flipped]
        assert len(set(values.sum(axis=1))) == 1
        run = replace(run, values=values)
        found = fewbench.track(evaluated(sources, run, run.model_ids, "random", 80, seed))
        wrong += bool(found.real_changes)
    assert wrong <= 5  # of 25; more by chance in 1 of 30


def test_checkpoints_in_a_table_with_steps_in_a_column():
    table = simulate_run(6, 120, n_models=14, seed=2)
    names = [f"ckpt {letter}" for letter in "fabced"]
    models = table.models.copy()
    models.index = [*table.model_ids[:14], *names]
    models["step"] = [""] * 14 + [6, 1, 2, 3, 5, 4]
    values = table.values.copy()
    values[15:, ::2] = np.nan
    values[16, 5:] = np.nan  # very few answers
    table = replace(table, models=models, values=values)
    found = fewbench.track(table, run="run")
    assert [one.checkpoint for one in found.points] == [f"ckpt {letter}" for letter in "abcdef"]
    assert found["ckpt f"].is_known
    assert found["ckpt b"].items_run == 2
    assert any("'ckpt b': fewer than 10 answers" in said for said in found.warnings)
    width = {one.checkpoint: one.interval.high - one.interval.low for one in found.points}
    assert width["ckpt b"] > width["ckpt a"] > width["ckpt f"] == 0
    with pytest.raises(FewbenchError, match="'runs'"):
        fewbench.track(table, run="runs")
    wrong = replace(table, models=models.assign(step="late"))
    with pytest.raises(FewbenchError, match="column `step` holds 'late'"):
        fewbench.track(wrong, run="run")


def test_a_scale_where_lower_is_better():
    sources, run = parts(simulate_run(4, 200, n_models=15, rise=0.4, seed=1), 15)
    scale = Scale(0, 100, lower_is_better=True)
    found = fewbench.track(evaluated(sources, run, run.model_ids, "random", 60))
    sources, run = (replace(one, scale=scale) for one in (sources, run))
    scaled = fewbench.track(evaluated(sources, run, run.model_ids, "random", 60))
    for one, other in zip(found.points, scaled.points, strict=True):
        assert other.score == pytest.approx(100 - 100 * one.score)
        assert other.interval.low == pytest.approx(100 - 100 * one.interval.high)
    for one, other in zip(found.changes, scaled.changes, strict=True):
        assert (other.verdict, other.p_value) == (one.verdict, pytest.approx(one.p_value))
        assert other.difference == pytest.approx(-100 * one.difference)
    assert any(one.verdict == "better" for one in scaled.changes)


def test_a_folder_grows_and_survives_a_torn_line(tmp_path):
    sources, run = parts(simulate_run(4, 100, n_models=15, seed=1), 15)
    path = fewbench.save_scores(sources, tmp_path / "scores.parquet")
    folder = tmp_path / "follow"
    Evaluation(sources, "random", 20, ["step-100"]).save(folder / "step-100", path)

    def add(name, row, **how):
        evaluation = fewbench.add_checkpoint(folder, name, **how)
        for items in evaluation.ask().values():
            answers = run.values[row][run.positions(items)]
            evaluation.tell(name, dict(zip(items, answers.tolist(), strict=True)))
        return evaluation

    first = add("step-100", 0)
    alone = fewbench.track(folder, half_width=0.05)
    estimate = first.estimate()["step-100"]
    assert (alone["step-100"].interval, alone.changes) == (estimate.interval, ())
    assert str(alone).startswith(f"On these {run.n_items} items, step-100 scores an estimated ")
    assert "best with" not in str(alone)
    assert alone.items_needed > 20
    with pytest.raises(FewbenchError, match="1 checkpoint"):
        fewbench.track(folder, change=0.05)
    late = add("late/b", 2)
    assert late.provenance.budget == 20
    asked = [one.record.asked(one.targets[0]).tolist() for one in (first, late)]
    assert asked[0] == asked[1]
    add("org/run", 1)
    add("org/run", 1, is_whole=True)  # takes the place of the part
    steps = {"late/b": 300, "org/run": 150}
    found = fewbench.track(folder, steps=steps)
    assert [one.checkpoint for one in found.points] == ["step-100", "org/run", "late/b"]
    assert [one.is_known for one in found.points] == [False, True, False]
    lines = folder / "late_b" / "answers.jsonl"
    with lines.open("ab") as file:
        file.write(b'{"target": "late/b", "ite')
    fewbench.add_checkpoint(folder, "step-900")
    assert "'step-900': no answers yet" in fewbench.track(folder, steps=steps).warnings
    run_elsewhere = Evaluation(sources, "random", 10, ["step-400"])
    run_elsewhere.tell("step-400", dict.fromkeys(run_elsewhere.ask()["step-400"], 1.0))
    run_elsewhere.save(folder / "by hand", path)
    again = fewbench.track(folder, steps=steps | {"late/b": 120.0})
    assert again.best == "step-400"
    assert [one.step for one in again.points] == [100, 120, 150, 400]
    assert again["late/b"].score == found["late/b"].score
    wrong = {
        "holds the checkpoint 'late/b'": lambda: fewbench.add_checkpoint(folder, "late:b"),
        "no checkpoints here": lambda: fewbench.add_checkpoint(tmp_path, "a"),
        "a source model already": lambda: fewbench.add_checkpoint(folder, "model-01"),
        "no step in the name of 'late/b', 'org/run'": lambda: fewbench.track(folder),
        "half width is 2": lambda: fewbench.track(folder, steps=steps, half_width=2.0),
        "give one of the two": lambda: fewbench.track(
            folder, steps=steps, half_width=0.1, change=0.1
        ),
        "two checkpoints are called": lambda: fewbench.track([first, first]),
    }
    for said, call in wrong.items():
        with pytest.raises(FewbenchError, match=said):
            call()
