"""Items chosen for a difference, in advance and while two models run."""

from dataclasses import replace

import numpy as np
import pytest

import fewbench
from fewbench.decide.joint_estimate import contrast
from fewbench.decide.operands import operand
from fewbench.errors import FewbenchError
from fewbench.evaluation import Evaluation
from fewbench.testing import simulate
from fewbench.uncertainty.held_out import looks_of

METHOD = "fewbench(together=2)"
MOST = 80


def paired_off(targets, evaluation, i, j, n):
    """Mean error of the same number of random items, over many draws."""
    apart = targets.values[i] - targets.values[j]
    rng = np.random.default_rng([i, j])
    draws = [apart[rng.permutation(len(apart))[:n]].mean() for _ in range(200)]
    return np.abs(np.array(draws) - apart.mean()).mean()


@pytest.mark.slow
def test_pairs_run_the_same_items_and_looking_again_keeps_the_level(sources, targets, play):
    order = np.argsort(targets.full_scores(), kind="stable")
    truth, errors, plain, wrong, right, held = targets.full_scores(), [], [], 0, 0, []
    pairs = [
        *zip(order[:-1:2], order[1::2], strict=True),
        *zip(order[:5], order[5:10], strict=True),
    ]
    for i, j in pairs:
        names = [targets.model_ids[i], targets.model_ids[j]]
        evaluation = Evaluation(sources, METHOD, MOST, names)
        apart, decided = truth[i] - truth[j], 0
        for n in looks_of(MOST):
            play(evaluation, upto=n)
            sides = [operand((evaluation, name), sources) for name in names]
            low, high = contrast(*sides, sequential=True, fixed_items=True).interval(0.9)
            decided = decided or int(low > 0) - int(high < 0)
            held.append(low <= apart <= high)
        assert set(evaluation.record.asked(names[0])) == set(evaluation.record.asked(names[1]))
        wrong += decided * apart < 0
        right += decided * apart > 0
        errors.append(abs(sides[0].estimates[0] - sides[1].estimates[0] - apart))
        plain.append(paired_off(targets, evaluation, i, j, MOST))
    assert np.mean(errors) < 0.9 * np.mean(plain)
    assert wrong <= 1
    assert right >= 4
    assert np.mean(held) >= 0.9


def test_a_run_stops_when_it_is_decided(sources, targets, tmp_path):
    sources = sources.take(models=range(26))
    order = np.argsort(targets.full_scores(), kind="stable")
    names = [targets.model_ids[at] for at in (order[-1], order[0])]
    rows = {name: targets.to_frame().loc[name] for name in names}
    models = {name: (lambda item, row=rows[name]: float(row[item])) for name in names}
    found = fewbench.run_versus(sources, models, 40, folder=tmp_path / "run")
    assert (found.a, found.verdict) == (names[0], "better")
    assert found.items_a == found.items_b == found.items_common < 40
    assert found.checked_at == looks_of(40)
    answered = dict.fromkeys(names, lambda item: 1 / 0)  # nothing is run again
    assert fewbench.run_versus(sources, answered, 40, folder=tmp_path / "run") == found
    models[names[0]] = lambda item: 1 / 0 if int(item[-1]) < 3 else 1.0
    assert any(
        "failed and left" in one for one in fewbench.run_versus(sources, models, 12).warnings
    )
    with pytest.raises(FewbenchError, check=lambda error: error.kind == "too-few"):
        fewbench.run_versus(sources, {names[0]: models[names[0]]}, 40)


def test_a_run_is_not_decided_within_a_batch(monkeypatch):
    """Where one model is a batch ahead; answers that are taken as they come change nothing."""
    table = simulate(46, 300, seed=0)
    models = {table.model_ids[at]: table.to_frame().iloc[at].get for at in (43, 36)}
    whole = fewbench.run_versus(table.take(models=range(26)), models, 40)
    monkeypatch.setattr("fewbench.runners.driving.SOON", 0)
    assert fewbench.run_versus(table.take(models=range(26)), models, 40) == whole


@pytest.mark.parametrize("method", [METHOD, "random", "greedy-ridge"])
def test_the_items_to_run_next_are_new_and_can_be_asked_for(
    method, sources, targets, play, tmp_path
):
    order = np.argsort(targets.full_scores(), kind="stable")
    names = [targets.model_ids[at] for at in order[9:11]]
    evaluation = Evaluation(sources, method, 20, names)
    evaluation.save(tmp_path / "run")
    play(evaluation)
    found = fewbench.versus((evaluation, names[0]), names[1], fixed_items=True)
    assert found.verdict == "undecided"
    assert len(found.next_items) == min(200, found.items_needed - 20)
    as_models = fewbench.versus((evaluation, names[0]), names[1])
    assert not as_models.is_decidable  # neighbors in score: no number of these items is enough
    assert (as_models.next_items, as_models.items_needed, as_models.page().next) == ((), None, [])
    assert as_models.questions_needed > sources.n_items
    more = fewbench.versus((evaluation, names[0]), names[1], next_items=30).next_items
    assert len(set(more)) == 30
    assert not set(sources.positions(more)) & set(evaluation.record.asked(names[0]).tolist())
    evaluation.ask_more(dict.fromkeys(names, more))
    opened = Evaluation.open(tmp_path / "run", sources)
    assert opened.ask() == {name: list(more) for name in names}
    play(opened)
    wider = found.interval.high - found.interval.low
    looking, found = (
        fewbench.versus((opened, names[0]), names[1], sequential=again, fixed_items=True)
        for again in (True, False)
    )
    width = found.interval.high - found.interval.low
    assert found.items_common == 50
    assert width < wider
    assert looking.interval.high - looking.interval.low > 1.25 * width  # (50 / 20)^.25, and looks
    with pytest.raises(FewbenchError, check=lambda error: error.kind == "unknown"):
        opened.ask_more({"nobody": more})


def test_a_random_sample_stays_one(sources, targets, play, monkeypatch):
    first, second = (
        play(Evaluation(sources, method, 20, [name]))
        for method, name in zip(("greedy-ridge", "random"), targets.model_ids, strict=False)
    )
    monkeypatch.delattr("fewbench.decide.next_items.source_kriging")  # which would choose
    found = fewbench.versus(first, second, next_items=15)
    assert len(set(found.next_items)) == 15
    benchmark = sources.benchmark
    first, second, longer = (
        play(Evaluation(benchmark, "fewbench", n, [name]))
        for n, name in zip((20, 20, 35), targets.model_ids, strict=False)
    )
    found = fewbench.versus(first, second, next_items=15)
    asked = benchmark.item_ids[longer.record.asked(targets.model_ids[2])].tolist()
    assert [*found.next_items] == asked[20:]


@pytest.mark.filterwarnings("ignore::fewbench.EstimateWarning")
def test_checkpoints_that_answer_alike_are_sent_to_a_random_sample():
    """Chosen items say little of a small difference; random ones would, and the result says it."""
    table = simulate(31, 400, 2, seed=3)
    table = replace(table, models=table.models.drop(columns="family"))
    sources, old = table.take(models=range(30)), table.values[30]
    new = old.copy()
    new[np.random.default_rng(0).choice(np.flatnonzero(old == 0), 20, replace=False)] = 1
    answers = {"old": old, "new": new}
    position = {item: at for at, item in enumerate(table.item_ids)}
    evaluation = fewbench.Evaluation(sources, "fewbench-static", 40, list(answers))
    for target, items in evaluation.ask().items():
        evaluation.tell(target, {item: answers[target][position[item]] for item in items})
    for fixed, rest in ((True, 1 / 400), (False, 0)):
        result = fewbench.versus((evaluation, "new"), (evaluation, "old"), fixed_items=fixed)
        n_apart = len(result.deciding)
        variance = (n_apart - n_apart**2 / 40 + 2) / 41  # they differ by 1 where they do
        expected = 1.6449 * np.sqrt(variance * (1 / 40 - rest))
        # As the sources predict where they differ, chosen items show a little too much of it.
        assert 0.85 * expected < result.random.half_width < expected
        assert expected < 0.9 * (result.interval.high - result.interval.low) / 2
        assert "run both with -m random" in result.warnings[-1]


def test_a_random_sample_of_graded_scores_says_how_far_two_differ():
    """Sources that answer alike say nothing of two targets that do not."""
    rng = np.random.default_rng(0)
    values = np.clip(rng.random(200) + 0.01 * rng.random((12, 200)), 0, 1)
    scores = fewbench.from_arrays(values, models=[f"m{i}" for i in range(12)])
    evaluation = fewbench.Evaluation(scores, "random", 40, ["a", "b"])
    for name, items in evaluation.ask().items():
        evaluation.tell(name, dict(zip(items, rng.random(40).tolist(), strict=True)))
    found = fewbench.versus((evaluation, "a"), (evaluation, "b"), fixed_items=True, warn=False)
    exact = 1.645 * np.sqrt((1 / 6 + 2 / 41) * (1 / 40 - 1 / 200))
    assert found.random.half_width == pytest.approx(exact, rel=0.25)
