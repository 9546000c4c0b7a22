"""Flash-HELM: its tiers, who reaches them, and what stopping early does to the mean."""

import numpy as np
import pytest

from fewbench.errors import MethodError
from fewbench.methods import Answers
from fewbench.scores import from_arrays
from fewbench.testing import simulate
from fewbench.testing.conformance import MethodConformance
from fewbench.uncertainty.replay import replay
from papers.methods.flash_helm import FlashHelm


class TestFlashHelm(MethodConformance):
    estimates = False

    @pytest.fixture
    def method(self):
        return FlashHelm()


def table_of(values, **more):
    return from_arrays(values, models=[f"m{row}" for row in range(len(values))], **more)


def ladder(n_sources, n_items):
    """Sources whose full scores are 0, 1/n, … of all items."""
    rights = np.linspace(0, n_items, n_sources).round().astype(int)
    return table_of((np.arange(n_items) < rights[:, None]).astype(float))


def run(method, sources, answers, budget, seed=0):
    """Items run in each round, and the estimate."""
    session = method.start(sources, budget, seed, ["new"])
    rounds = []
    while wanted := session.ask():
        rounds.append(wanted["new"])
        session.tell("new", Answers(wanted["new"], answers[None, wanted["new"]]))
    return rounds, session.predict(["new"]).scores[0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"tiers": 0},
        {"least": 0},
        {"ratio": 0.5},
        {"ratio": float("nan")},
        {"top": 0.0},
        {"top": 101.0},
        {"ranked_by": "luck"},
    ],
)
def test_settings_out_of_range(wrong):
    with pytest.raises(MethodError, match=f"{next(iter(wrong))} is"):
        replay(FlashHelm(**wrong), simulate(8, 20), simulate(3, 20), 8, 0)


def test_sizes_and_ranks_of_the_tiers():
    assert FlashHelm(tiers=4, ratio=2, least=1).sizes(100) == [13, 25, 50, 100]
    assert FlashHelm(tiers=3, ratio=10, least=5).sizes(100) == [5, 10, 100]
    assert FlashHelm().sizes(4) == [4] * 5
    assert FlashHelm(tiers=1).sizes(30) == [30]
    assert FlashHelm(tiers=3, top=1).lowest_ranks(100) == [100, 10, 1]
    assert FlashHelm(tiers=2, top=1).lowest_ranks(5) == [5, 1]
    assert FlashHelm(top=100).lowest_ranks(7) == [7] * 5


@pytest.mark.parametrize("ranked_by", ["full", "same"])
def test_the_best_climb_to_the_top_and_the_worst_are_let_go(ranked_by):
    sources = ladder(20, 100)
    method = FlashHelm(ranked_by=ranked_by)
    rounds, score = run(method, sources, np.ones(100), 80)
    assert [len(items) for items in rounds] == [10, 10, 20, 40]
    assert len(set(np.concatenate(rounds).tolist())) == 80
    assert score == pytest.approx(1.0)
    rounds, score = run(method, sources, np.zeros(100), 80)
    assert [len(items) for items in rounds] == [10]
    assert score == 0.0


def test_a_tier_of_no_more_items_is_passed_without_asking():
    method = FlashHelm(tiers=3, ratio=1, least=5)
    rounds, _ = run(method, ladder(20, 100), np.ones(100), 30)
    assert [len(items) for items in rounds] == [30]


def test_who_stops_is_outside_the_next_tier_by_hand():
    sources = ladder(40, 200)
    full = sources.full_scores()
    method = FlashHelm(least=5)
    answers = np.random.default_rng(3).random(200) < 0.7
    rounds, score = run(method, sources, answers.astype(float), 160, seed=1)
    sizes, lowest = method.sizes(160), method.lowest_ranks(41)
    run_on = np.cumsum([len(items) for items in rounds]).tolist()
    order = np.concatenate(rounds)
    tier = 0
    for n in run_on:
        assert n == sizes[tier]
        rank = 1 + (full > answers[order[:n]].mean() + 1e-9).sum()
        while tier + 1 < 5 and rank <= lowest[tier + 1]:
            tier += 1
            if sizes[tier] > n:
                break
        else:
            assert n == run_on[-1]
    assert score == pytest.approx(answers[order].mean())
    assert 10 < len(order) < 160  # neither at once nor never


def test_of_equals_the_target_is_the_first():
    sources = table_of(np.ones((6, 30)))
    rounds, _ = run(FlashHelm(least=5), sources, np.ones(30), 30)
    assert sum(map(len, rounds)) == 30


def test_all_items_are_exact_for_those_who_reach_the_top():
    table = simulate(60, 45, n_tasks=4, seed=1)
    for average in ("micro", "macro"):
        sources = table.take(models=np.arange(30)).averaged(average)
        targets = table.take(models=np.arange(30, 60)).averaged(average)
        said = replay(FlashHelm(), sources, targets, 45, 0, tasks=True)
        whole = np.array([len(items) == 45 for items in said.items])
        assert 0 < whole.sum() < 30
        np.testing.assert_allclose(said.scores[whole], targets.full_scores()[whole])
        np.testing.assert_allclose(said.tasks[whole], targets.task_scores()[whole])


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_every_beginning_has_every_task_by_its_share(average):
    tasks = np.repeat(["a", "b", "c"], [10, 60, 130])
    sources = table_of(np.eye(5, 200), tasks=tasks).averaged(average)
    order = FlashHelm().start(sources, 200, 0, ["new"]).order
    assert sorted(order) == list(range(200))
    shares = np.bincount(sources.task_of, weights=sources.item_weights)
    for n in (10, 20, 30):
        counts = np.bincount(sources.task_of[order[:n]], minlength=3)
        assert (np.abs(counts - n * shares) < 1.7).all()


@pytest.mark.slow
@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("n", [90])
def test_a_fixed_number_of_items_is_unbiased(average, n):
    rng = np.random.default_rng(5)
    tasks = np.repeat(["a", "b", "c"], [30, 50, 120])
    values = (rng.random((4, 200)) < 0.5).astype(float)
    answers = (rng.random(200) < np.repeat([0.9, 0.5, 0.2], [30, 50, 120])).astype(float)
    sources = table_of(values, tasks=tasks).averaged(average)
    said = [run(FlashHelm(tiers=1), sources, answers, n, seed)[1] for seed in range(1500)]
    error = np.std(said) / np.sqrt(len(said))
    assert abs(np.mean(said) - answers @ sources.item_weights) < 3.5 * error


def test_targets_do_not_wait_for_one_another():
    sources = ladder(20, 100)
    session = FlashHelm().start(sources, 80, 0, ["good", "slow"])
    first = session.ask()["good"]
    session.tell("good", Answers(first, np.ones((1, len(first)))))
    then = session.ask()
    assert len(then["good"]) == 10
    assert np.array_equal(then["slow"], first)
    assert set(then["good"]).isdisjoint(first)
