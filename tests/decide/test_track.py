"""The curve of a run: whole checkpoints help, sudden losses show, few verdicts are wrong."""

from dataclasses import replace

import numpy as np
import pytest
from fewbench.decide.curve import OWN, smooth
from fewbench.decide.steps import read_steps

import fewbench
from fewbench.errors import FewbenchError
from fewbench.evaluation import Evaluation
from fewbench.scores import Scale
from fewbench.testing import simulate_run


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
        (["step-1", "b"], {"step-1": 1.0, "c": 2.0}, "no checkpoint"),
        (["a", "b"], {"a": 1.0, "b": np.nan}, "the step of 'b' is nan"),
    ],
)
def test_names_without_one_step_are_refused(names, given, said):
    with pytest.raises(FewbenchError, match=said):
        read_steps(names, given)


def test_neighbors_help_where_changes_are_small_and_never_hide_a_sudden_one():
    rng = np.random.default_rng(0)
    steps = np.cumsum(rng.integers(1, 5, 20)).astype(float)
    errors = np.full(20, 0.04)
    own, drawn = [], []
    for _ in range(100):
        truth = 0.5 + np.linspace(0, 0.05, 20) + rng.normal(0, 0.002, 20).cumsum()
        shared, single = rng.normal(0, 0.04 * np.sqrt(1 - OWN)), rng.normal(0, 0.04, 20)
        estimates = truth + shared + np.sqrt(OWN) * single
        found = smooth(steps, estimates, errors)
        own.append(np.std(estimates - truth))
        drawn.append(np.std(found.scores - truth))
    assert np.mean(drawn) < 0.65 * np.mean(own)
    fallen = truth - 0.3 * (np.arange(20) == 9)
    found = smooth(steps, fallen, errors)
    assert np.abs(found.scores - fallen).max() <= np.sqrt(OWN) * 0.04 + 1e-12
    known = np.where(np.arange(20) % 7 == 0, 0.0, errors)
    assert smooth(steps, fallen, known).scores[::7].tolist() == pytest.approx(fallen[::7])
    again = smooth(np.repeat(steps, 2), np.repeat(fallen, 2), np.repeat(known, 2))  # repeated steps
    assert np.isfinite(again.scores).all()
    few = smooth(np.array([1.0, 2.0]), fallen[:2], errors[:2])
    assert (few.scores == fallen[:2]).all()
    assert np.isnan(few.left_out).all()


def test_whole_checkpoints_join_the_sources_and_the_others_err_less(monkeypatch):
    monkeypatch.setattr("fewbench.evaluation.intervals.DIVISIONS", 1)  # to save time
    errors = []
    for seed in range(2):
        sources, run = parts(simulate_run(9, 400, n_models=24, seed=seed), 24)
        names = run.model_ids
        truth = dict(zip(names, run.full_scores().tolist(), strict=True))
        whole = [names[0], names[4], names[8]]
        rest = [name for name in names if name not in whole]
        some = evaluated(sources, run, rest, "fewbench-static", 40, seed)
        alone = fewbench.track(some)
        together = fewbench.track([some, evaluated(sources, run, whole, "random", 400)])
        assert (alone.sources, together.sources) == (24, 27)
        for found in (alone, together):
            miss = [abs(found[name].alone - truth[name]) for name in rest]
            errors.append(np.mean(miss))
            inside = [found[n].interval.low <= truth[n] <= found[n].interval.high for n in rest]
            assert np.mean(inside) >= 0.6
        for name in whole:
            assert together[name].is_known
            assert together[name].score == pytest.approx(truth[name])
            assert together[name].interval.low == together[name].interval.high
        chances = together.to_frame()["chance_best"]
        assert chances.sum() == pytest.approx(1)
    assert np.mean(errors[1::2]) < 0.85 * np.mean(errors[::2])


def test_a_sudden_loss_is_flagged_and_not_smoothed_away():
    table = simulate_run(8, 1000, drops={4: 0.05}, rise=0.03, persistence=0.99, seed=1)
    sources, run = parts(table)
    names = run.model_ids
    told = evaluated(sources, run, names, "random", 400)
    found = fewbench.track(told, neighbors=True)
    verdicts = {(one.before, one.after): one.verdict for one in found.changes}
    assert verdicts[names[3], names[4]] == "worse"
    assert verdicts[names[4], names[5]] == "better"
    assert sum(one != "undecided" for one in verdicts.values()) <= 4
    assert abs(found[names[4]].score - found[names[4]].alone) < 0.02
    assert found[names[4]].score < min(found[names[3]].score, found[names[5]].score) - 0.02
    plain = fewbench.track(told, change=0.005)
    assert 400 < plain.items_needed <= 1000
    assert (plain.is_smoothed, found.is_smoothed) == (False, True)
    assert [one.score for one in plain.points] == [one.alone for one in plain.points]
    assert plain.changes == found.changes


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
    with pytest.raises(FewbenchError, match="no model of the scores belongs to the run 'runs'"):
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
    header = fewbench.start_track(sources, folder, budget=20, method="random", scores_path=path)

    def add(name, row, **how):
        evaluation = fewbench.add_checkpoint(folder, name, **how)
        for items in evaluation.ask().values():
            answers = run.values[row][run.positions(items)]
            evaluation.tell(name, dict(zip(items, answers.tolist(), strict=True)))
        return evaluation

    first = add("step-100", 0)
    assert set(first.record.asked("step-100")) == set(sources.positions(header.subset.items))
    with pytest.raises(FewbenchError, match="a curve needs 2"):
        fewbench.track(folder)
    add("late/b", 2, step=300)
    add("org/run", 1, step=150)
    add("org/run", 1, is_whole=True)  # takes the place of the part
    found = fewbench.track(folder)
    assert [one.checkpoint for one in found.points] == ["step-100", "org/run", "late/b"]
    assert [one.is_known for one in found.points] == [False, True, False]
    lines = folder / "late_b" / "answers.jsonl"
    with lines.open("ab") as file:
        file.write(b'{"target": "late/b", "ite')
    fewbench.add_checkpoint(folder, "step-900")
    assert "'step-900': no answers yet" in fewbench.track(folder).warnings
    run_elsewhere = Evaluation(sources, "random", 10, ["step-400"])
    run_elsewhere.tell("step-400", dict.fromkeys(run_elsewhere.ask()["step-400"], 1.0))
    run_elsewhere.save(folder / "by hand", path)
    assert fewbench.track(folder).best == "step-400"
    again = fewbench.track(folder, steps={"late/b": 120.0})
    assert [one.step for one in again.points] == [100, 120, 150, 400]
    assert again["late/b"].alone == found["late/b"].alone
    wrong = {
        "already holds": lambda: fewbench.start_track(sources, folder, budget=20),
        "holds the checkpoint 'late/b'": lambda: fewbench.add_checkpoint(folder, "late:b"),
        "no run is followed here": lambda: fewbench.add_checkpoint(tmp_path, "a"),
        "no checkpoints here": lambda: fewbench.track(tmp_path / "nothing"),
        "a source model already": lambda: fewbench.add_checkpoint(folder, "model-01"),
        "step of 'c' is -1": lambda: fewbench.add_checkpoint(folder, "c", step=-1),
        "'//' cannot name a folder": lambda: fewbench.add_checkpoint(folder, "//"),
        "half width is 2": lambda: fewbench.track(folder, half_width=2.0),
        "is there twice": lambda: fewbench.track([first, first]),
        "different source scores": lambda: fewbench.track(
            [first, Evaluation(run, "random", 20, ["step-9"])]
        ),
    }
    for said, call in wrong.items():
        with pytest.raises(FewbenchError, match=said):
            call()
