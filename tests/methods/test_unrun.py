"""Items that no source ran: a random sample of them, beside what fewbench asks of the others."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbench import Benchmark, Evaluation, versus
from fewbench.algorithms.sampling import permanent_order
from fewbench.evaluation import Stop
from fewbench.evaluation.extending import extend
from fewbench.evaluation.scoring import Scoring
from fewbench.methods.adaptive.unrun import WithUnrun, budget_of_ran, unrun_beside
from fewbench.methods.record import Answers, Record
from fewbench.scores import from_arrays, save_scores
from fewbench.testing import simulate

OLD, NEW, SOURCES = 320, 40, 30
IDS = [f"q{at:04d}" for at in range(OLD + NEW)]


def world(seed, n_targets=2):
    """Answers of sources and targets; the newest items are harder."""
    rng = np.random.default_rng([71, seed])
    difficulty = rng.normal(0, 1, OLD + NEW) + 0.7 * (np.arange(OLD + NEW) >= OLD)
    ability = rng.normal(0, 1, SOURCES + n_targets)
    chances = 1 / (1 + np.exp(-1.6 * (ability[:, None] - difficulty)))
    answers = (rng.random(chances.shape) < chances) * 1.0
    sources = answers[:SOURCES].copy()
    sources[:, OLD:] = np.nan
    return sources, answers[SOURCES:]


def table(sources, tasks=4, **how):
    return from_arrays(
        sources,
        models=[f"m{at}" for at in range(len(sources))],
        items=IDS[: sources.shape[1]],
        tasks=[f"t{at % tasks}" for at in range(sources.shape[1])],
        **how,
    )


def run(scores, rows, budget=60, **how):
    """An evaluation of targets that answered all that was asked."""
    names = [f"x{at}" for at in range(len(rows))]
    evaluation = Evaluation(scores, "fewbench", budget, targets=names, **how)
    answer(evaluation, rows)
    return evaluation


def answer(evaluation, rows):
    asked = 0
    by_name = dict(zip([f"x{at}" for at in range(len(rows))], rows, strict=True))
    while pending := evaluation.ask():
        for name, items in pending.items():
            evaluation.tell(name, {item: by_name[name][IDS.index(item)] for item in items})
            asked += len(items)
    return asked


@pytest.fixture(scope="module")
def first():
    sources, rows = world(0)
    return table(sources), rows


def test_as_large_a_share_of_the_new_items_runs_for_every_target_the_same(first):
    scores, rows = first
    evaluation = run(scores, rows)
    record, new = evaluation.record, np.flatnonzero(scores.unrun)
    assert new.tolist() == list(range(OLD, OLD + NEW))
    asked = [record.asked(name) for name in ("x0", "x1")]
    assert [len(items) for items in asked] == [60, 60]
    of_new = [items[np.isin(items, new)].tolist() for items in asked]
    assert of_new[0] == of_new[1]
    assert len(of_new[0]) == unrun_beside(scores, 60 - len(of_new[0])) == 7
    for items in asked:  # as large a share at any time
        for n in (6, 12, 24, 60):
            assert abs(np.isin(items[:n], new).sum() - n * NEW / (OLD + NEW)) <= 1.2


@pytest.mark.parametrize("budget", [1, 2, 9, 10, 59, 60, 360])
def test_the_budget_is_never_exceeded(first, budget):
    scores, _ = first
    n = budget_of_ran(scores, budget)
    assert n + unrun_beside(scores, n) <= max(budget, 2)
    assert n == scores.ran.n_items or n + 1 + unrun_beside(scores, n + 1) > budget


def test_what_sources_ran_is_estimated_as_without_the_others(first):
    """The same items and the same estimate as on the table of old items, with its budget."""
    scores, rows = first
    both, old = run(scores, rows), run(scores.ran, rows[:, :OLD], budget_of_ran(scores, 60))
    for name in ("x0", "x1"):
        asked = both.record.asked(name)
        assert asked[asked < OLD].tolist() == old.record.asked(name).tolist()
        ran = both.prediction(name).ran.prediction
        assert ran.scores == pytest.approx(old.prediction(name).scores, abs=1e-12)
        known = np.isin(np.arange(OLD, OLD + NEW), asked)
        new = rows[int(name[1]), OLD:]
        left = (new[known].sum() + ran.scores[0]) / (known.sum() + 1)
        mean = (new[known].sum() + left * (~known).sum()) / NEW
        expected = (OLD * ran.scores[0] + NEW * mean) / (OLD + NEW)
        assert both.prediction(name).scores[0] == pytest.approx(expected)


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_all_items_give_the_score_itself(average):
    sources, rows = world(1, 1)
    tasks = [f"t{min(at // 100, 3)}" for at in range(OLD + NEW)]  # the last has the new items too
    items = pd.DataFrame({"task": tasks}, index=IDS)
    scores = table(sources).changed(items=items).averaged(average)
    found = run(scores, rows, OLD + NEW).estimate(warn=False)["x0"]
    truth = Benchmark(items, average=average).item_weights @ rows[0]
    assert found.score == pytest.approx(truth)
    assert (found.interval.low, found.interval.high) == pytest.approx((truth, truth))
    assert found.tasks["t3"] == pytest.approx(rows[0][300:].mean())


def test_where_tasks_lack_other_shares_the_macro_average_holds():
    """A task of few old and many new items weighs as all its items do, not as the old ones."""
    sources, rows = world(2, 12)
    tasks = [f"t{min(at // 100, 3)}" for at in range(OLD + NEW)]
    sources[:, 300:OLD] = rows[:, 300:OLD] = 0  # the old items of the last task, nobody solves
    scores = table(sources).changed(items=pd.DataFrame({"task": tasks}, index=IDS))
    scores = scores.averaged("macro")
    weights = scores.item_weights
    assert scores.ran.item_weights == pytest.approx(weights[:OLD] / weights[:OLD].sum())
    found = run(scores, rows, 90).estimate(warn=False)
    errors = [found[f"x{at}"].score - weights @ row for at, row in enumerate(rows)]
    assert abs(np.mean(errors)) < 0.03


def test_another_average_that_counts_the_new_items_more_has_wider_intervals(tmp_path):
    """11% of the micro average and 60% of the macro average: 7 answers decide most of it."""
    covered, sources_of = [], [world(100 + seed, 8) for seed in range(3)]
    tasks = [f"t{at % 2}" if at < OLD else f"new{at % 3}" for at in range(OLD + NEW)]
    for at, (sources, rows) in enumerate(sources_of):
        scores = table(sources).changed(items=pd.DataFrame({"task": tasks}, index=IDS))
        save_scores(scores, tmp_path / f"{at}.parquet")
        evaluation = run(scores, rows)
        evaluation.save(tmp_path / f"run{at}", tmp_path / f"{at}.parquet")
        macro = evaluation.rescored(Scoring(average="macro"))
        found = macro.estimate(warn=False)
        for place, row in enumerate(rows):
            one = found[f"x{place}"]
            truth = macro.scores.item_weights @ row
            covered.append(one.interval.low <= truth <= one.interval.high)
            assert one.interval.high - one.interval.low > 0.2
            assert one.random.half_width > 0.07
    assert np.mean(covered) >= 0.85


def test_a_task_that_no_source_ran_has_the_interval_of_its_sample(first):
    scores, rows = first
    tasks = ["new" if at >= OLD else f"t{at % 3}" for at in range(OLD + NEW)]
    changed = scores.changed(items=scores.items.assign(task=tasks))
    found = run(changed, rows[:1]).estimate(warn=False)["x0"]
    answers = rows[0, OLD:]
    interval = found.task_intervals["new"]
    assert interval.high - interval.low > 0.3  # 7 answers
    assert interval.low <= answers.mean() <= interval.high
    assert found.interval.high - found.interval.low < 0.3
    assert "40 items (11% of the full score): 7 answers are a random sample of them" in str(
        found.warnings
    )


def test_a_folder_goes_on_as_if_it_had_never_stopped(first, tmp_path):
    scores, rows = first
    save_scores(scores, tmp_path / "s.parquet")
    kept = Evaluation(scores, "fewbench", 60, targets=["x0", "x1"])
    kept.save(tmp_path / "run", tmp_path / "s.parquet")
    while pending := (kept := Evaluation.open(tmp_path / "run")).ask():
        name, items = next(iter(pending.items()))
        row = rows[int(name[1])]
        kept.tell(name, {item: row[IDS.index(item)] for item in items[:7]})
    never = run(scores, rows)
    for name in ("x0", "x1"):
        assert sorted(kept.record.asked(name)) == sorted(never.record.asked(name))
        ours, theirs = (e.estimate(warn=False)[name] for e in (kept, never))
        assert (ours.score, ours.interval) == (theirs.score, theirs.interval)


def test_new_items_that_no_source_ran_are_all_that_an_extension_asks(tmp_path):
    sources, rows = world(5, 1)
    save_scores(table(sources[:, :OLD]), tmp_path / "s.parquet")
    evaluation = Evaluation(table(sources[:, :OLD]), "fewbench", 60, targets=["x0"])
    evaluation.save(tmp_path / "run", tmp_path / "s.parquet")
    answer(evaluation, rows)
    before = evaluation.estimate(warn=False)["x0"]
    tasks = [f"t{at % 4}" for at in range(OLD + NEW)]
    extended = extend(tmp_path / "run", Benchmark(pd.DataFrame({"task": tasks}, index=IDS)))
    assert extended.asked == {"x0": 8}  # 60 of 320
    opened = Evaluation.open(tmp_path / "run")
    assert answer(opened, rows) == 8
    after = opened.estimate(warn=False)["x0"]
    assert after.items_run == 68
    assert opened.prediction("x0").ran.prediction.scores[0] == pytest.approx(before.score)
    assert after.interval.high - after.interval.low < 1.3 * (
        before.interval.high - before.interval.low
    )


def test_few_new_items_do_not_make_an_extension_ask_for_old_ones(tmp_path):
    """At least 5 new items run, a larger share than of the old: still these alone."""
    sources, rows = world(5, 1)
    save_scores(table(sources[:, :OLD]), tmp_path / "s.parquet")
    evaluation = Evaluation(table(sources[:, :OLD]), "fewbench", 60, targets=["x0"])
    evaluation.save(tmp_path / "run", tmp_path / "s.parquet")
    answer(evaluation, rows)
    tasks = [f"t{at % 4}" for at in range(OLD + 6)]
    extended = extend(
        tmp_path / "run", Benchmark(pd.DataFrame({"task": tasks}, index=IDS[: OLD + 6]))
    )
    opened = Evaluation.open(tmp_path / "run")
    assert (extended.asked["x0"], answer(opened, rows)) == (5, 5)
    assert len(opened.record.asked("x0")) == opened.provenance.budget == 65


def test_new_items_of_unequal_weight_count_once_in_an_extension(tmp_path):
    """A small new task that nobody solves, and a large one that all do, each count the same."""
    sources, rows = world(7, 1)
    items = pd.DataFrame({"task": [f"t{at % 2}" for at in range(OLD)]}, index=IDS[:OLD])
    scores = table(sources[:, :OLD]).changed(items=items).averaged("macro")
    save_scores(scores, tmp_path / "s.parquet")
    evaluation = Evaluation(scores, "fewbench", 60, targets=["x0"])
    evaluation.save(tmp_path / "run", tmp_path / "s.parquet")
    answer(evaluation, rows)
    new = {f"n{at:03d}": "small" if at < 40 else "large" for at in range(240)}
    extend(tmp_path / "run", Benchmark(pd.DataFrame({"task": [*new.values()]}, index=[*new])))
    opened = Evaluation.open(tmp_path / "run")
    while pending := opened.ask().get("x0"):
        opened.tell("x0", {item: float(new[item] == "large") for item in pending})
    found = opened.estimate(warn=False)["x0"]
    truth = scores.item_weights @ rows[0, :OLD] / 2 + 0.25
    assert found.score == pytest.approx(truth, abs=0.1)


def test_further_items_for_a_comparison_are_a_sample_too(first):
    scores, rows = first
    evaluation = run(scores, rows)
    versus((evaluation, "x0"), (evaluation, "x1"), next_items=30, ask=True, warn=False)
    answer(evaluation, rows)
    order = permanent_order(scores.task_of, 0)
    order = order[order >= OLD]
    for name in ("x0", "x1"):
        new = [at for at in evaluation.record.asked(name).tolist() if at >= OLD]
        assert sorted(new) == sorted(order[: len(new)])  # by nothing but their places
        assert len(new) == 10  # of 90 answers


def test_a_sample_stays_one_when_sources_have_run_the_new_items(tmp_path):
    sources, _ = world(6, 1)
    rng = np.random.default_rng(6)
    chances = np.where(np.arange(OLD + NEW) < OLD - 100, 0.5, 0.95)
    rows = (rng.random((8, OLD + NEW)) < chances) * 1.0  # unlike any source
    sources[:, OLD - 100 :] = np.nan
    save_scores(table(sources), tmp_path / "s.parquet")
    evaluation = run(table(sources), rows, 90)
    evaluation.save(tmp_path / "run", tmp_path / "s.parquet")
    is_new = np.isnan(sources).all(axis=0)
    drawn = {name: evaluation._choosing.session.drawn(name) for name in evaluation.targets}
    assert sum(map(bool, drawn.values())) >= 4
    for name, phases in drawn.items():
        asked = evaluation.record.asked(name)
        asked = asked[is_new[asked]]
        for phase in phases:
            assert phase.chances[asked] == pytest.approx(len(asked) / is_new.sum())
    sources[:, is_new] = (rng.random((SOURCES, int(is_new.sum()))) < 0.3) * 1.0
    save_scores(table(sources), tmp_path / "s.parquet")
    found = Evaluation.open(tmp_path / "run").estimate(warn=False)
    errors = [
        found[name].score - row.mean()
        for name, row in zip(evaluation.targets, rows, strict=True)
        if drawn[name]
    ]
    assert abs(np.mean(errors)) < 0.05


def test_answers_to_one_part_alone_leave_the_other_open(first):
    scores, rows = first
    for wanted in (True, False):
        evaluation = Evaluation(scores, "fewbench", 20, targets=["x0"])
        items = [item for item in evaluation.ask()["x0"] if (item >= IDS[OLD]) == wanted]
        evaluation.tell("x0", {item: rows[0][IDS.index(item)] for item in items})
        found = evaluation.estimate(warn=False)["x0"]
        assert found.items_run == len(items)
        assert found.interval.low <= rows[0].mean() <= found.interval.high
        assert found.interval.high - found.interval.low > 0.25
        assert ("ran neither on the target nor on a source model" in str(found.warnings)) == (
            not wanted
        )


def test_answers_given_several_times_and_lost_ones_count_as_elsewhere(first):
    scores, rows = first
    evaluation = Evaluation(scores, "fewbench", targets=["x0"], stop=Stop(items=40, repeats=2))
    lost = ""
    while lost == "" or len(evaluation.record.answered("x0")) < 39:
        items = evaluation.ask()["x0"]
        if lost == "" and (new := [item for item in items if item >= IDS[OLD]]):
            lost = new[0]
            evaluation.skip("x0", [lost])
        answers = {item: rows[0][IDS.index(item)] for item in items if item != lost}
        evaluation.tell("x0", answers)
    again = evaluation.ask()["x0"]
    assert lost not in again
    evaluation.tell("x0", {item: 1 - rows[0][IDS.index(item)] for item in again}, repeat=2)
    assert not evaluation.ask()
    found = evaluation.estimate(warn=False)["x0"]
    assert (found.items_run, found.answers_mean) == (39, 0.5)
    assert found.interval.low < 0.5 < found.interval.high


@given(
    st.lists(st.lists(st.integers(0, 11), min_size=1, max_size=5, unique=True), max_size=4),
    st.sets(st.integers(0, 11), min_size=1),
    st.data(),
)
@settings(max_examples=60, deadline=None)
def test_a_part_of_a_record_knows_what_the_record_knows_of_it(rounds, items, data):
    record, at = Record(["a", "b"], 12), np.array(sorted(items))
    for asked in rounds:
        record.add_round("a", np.array(asked))
        told = data.draw(st.sets(st.sampled_from(asked)))
        for repeat in range(1, 1 + data.draw(st.integers(1, 2))):
            values = np.array([[(place * repeat % 3) / 2 for place in sorted(told)]])
            if told:
                record.tell("a", Answers(np.array(sorted(told)), values), repeat)
        record.skip("a", data.draw(st.sets(st.sampled_from(asked))))
    part = record.part(at)
    assert part.targets == record.targets
    assert len(part.rounds("a")) == len(rounds)
    for name in ("asked", "open", "answered"):
        whole, ours = getattr(record, name)("a"), getattr(part, name)("a")
        assert at[ours].tolist() == [place for place in whole.tolist() if place in items]
    assert {at[place] for place in part.given_up("a")} == record.given_up("a") & items
    for name in ("scores", "times", "calls"):
        whole, ours = getattr(record, name)("a")[at], getattr(part, name)("a")
        np.testing.assert_array_equal(ours, whole)
    assert not len(part.asked("b"))


@pytest.mark.parametrize(
    ("share", "sources", "beside"),
    [(0.1, SOURCES, True), (0.005, SOURCES, False), (0.7, SOURCES, True), (0.1, 8, False)],
)
def test_where_too_little_is_known_all_items_are_a_sample(share, sources, beside):
    answers, _ = world(3, 1)
    answers = np.where(np.isnan(answers), 0.0, answers)[:sources]
    answers[:, OLD + NEW - round(share * (OLD + NEW)) :] = np.nan
    session = Evaluation(table(answers), "fewbench", 40)._choosing.session
    assert isinstance(session, WithUnrun) == beside


@pytest.mark.slow
@pytest.mark.parametrize("budget", [30, 60])
def test_intervals_hold_and_are_narrower_than_those_of_random_items(budget):
    covered, of_tasks, widths, random = [], [], [], []
    for seed in range(12):
        whole = simulate(65, OLD + NEW, seed=500 + seed)
        cells, of_items = whole.cells[:].copy(), whole.task_scores()[60:]
        cells[:60, OLD:] = np.nan
        sources = whole.changed(values=cells, items=whole.items.set_axis(IDS)).take(
            models=np.arange(60)
        )
        found = run(sources, cells[60:], budget).estimate(warn=False)
        for row, tasks, one in zip(cells[60:], of_items, found.values(), strict=True):
            covered.append(one.interval.low <= row.mean() <= one.interval.high)
            widths.append(one.interval.high - one.interval.low)
            random.append(2 * one.random.half_width)
            of_tasks += [
                interval.low - 1e-9 <= truth <= interval.high + 1e-9
                for truth, interval in zip(tasks, one.task_intervals.values(), strict=True)
                if interval is not None
            ]
    assert np.mean(covered) >= 0.85
    assert np.mean(of_tasks) >= 0.85
    assert np.mean(widths) <= 0.88 * np.mean(random)
