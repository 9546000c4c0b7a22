"""A selection of tasks: what it says of itself is so."""

import json

import numpy as np
import pytest

from fewbench.errors import MethodError
from fewbench.testing import simulate
from fewbench_papers.bento import (
    TaskMatrix,
    TaskSelection,
    Transferability,
    read_chooser,
    select_tasks,
)

METHODS = (
    "bento-sim",
    "bento-le(components=3,printed=true)",
    "tasks-random",
    "tasks-listed(names=task 3|task 1|task 8|task 2)",
)


def made(n=9, seeds=3, noise=0.02, seed=0):
    rng = np.random.default_rng(seed)
    names = tuple(f"task {at}" for at in range(n))
    base = 0.3 + 0.4 * rng.random(n) + 0.1 * rng.random((n, n))
    values = base + noise * rng.normal(size=(seeds, n, n))
    return Transferability(values, names, names, rng.integers(5, 90, n))


def select(text, given=None, k=4, seed=0, **more):
    more = {"bootstraps": 5} | more
    return select_tasks(read_chooser(text), given or made(), k, seed, **more)


@pytest.mark.parametrize("method", METHODS)
def test_what_is_written_is_read_and_leads_to_the_same_choice(method):
    selection = select(method)
    again = TaskSelection.from_json(selection.to_json())
    assert again == selection
    assert select(again.method) == selection
    assert selection.k == len(selection.tasks) == len(set(selection.tasks)) == 4


@pytest.mark.parametrize("method", METHODS)
def test_facts_of_the_chosen(method):
    given = made()
    selection = select(method, given)
    sizes = dict(zip(given.tasks, given.n_questions.tolist(), strict=True))
    assert selection.sizes == sizes
    assert [chosen.questions for chosen in selection.chosen] == [
        sizes[task] for task in selection.tasks
    ]
    assert selection.questions == sum(sizes[task] for task in selection.tasks)
    assert sum(chosen.stands_for for chosen in selection.chosen) == 9
    assert min(chosen.stands_for for chosen in selection.chosen) >= 1
    assert set(selection.clusters) == set(given.tasks)
    assert [chosen.cluster for chosen in selection.chosen] == [
        selection.clusters[task] for task in selection.tasks
    ]


@pytest.mark.parametrize("method", METHODS)
def test_steps_are_what_the_method_chooses_for_fewer_tasks(method):
    selection = select(method)
    apart = any(word in method for word in ("exact", "match", "medoids"))
    assert list(selection.steps) == ([4] if apart else [1, 2, 3, 4])
    assert selection.steps[4] == selection.tasks
    for k, tasks in selection.steps.items():
        assert tasks == select(method, k=k).tasks


def test_a_choice_with_exchanges_is_not_made_for_every_size():
    given = TaskMatrix.of_scores(simulate(12, 80, 6, seed=1))
    assert list(select("tasks-fit", given).steps) == [4]


def test_difficulty_is_by_hand():
    given = made(5, seeds=1)
    selection = select("bento-sim", given, 2)
    ease, sizes = given.values[0].mean(axis=0), given.n_questions
    at = [given.tasks.index(task) for task in selection.tasks]
    chosen = (ease[at] * sizes[at]).sum() / sizes[at].sum()
    whole = (ease * sizes).sum() / sizes.sum()
    assert selection.difficulty.chosen == pytest.approx(chosen)
    assert selection.difficulty.all == pytest.approx(whole)
    pairs = [[a, b] for a in range(5) for b in range(a)]
    off = np.array([abs((ease[p] * sizes[p]).sum() / sizes[p].sum() - whole) for p in pairs])
    expected = (off <= abs(chosen - whole) + 1e-12).mean()
    assert selection.difficulty.percentile == pytest.approx(expected, abs=0.05)


def test_seeds_of_noise_do_not():
    given = made(30, seeds=4, noise=1.0)
    selection = select("bento-sim", given, 3, bootstraps=40)
    found = selection.stability
    assert found.pairs < 0.6
    assert sum(found.tasks.values()) == pytest.approx(3)
    kept = [found.tasks.get(task, 0.0) for task in selection.tasks]
    assert [chosen.stability for chosen in selection.chosen] == kept
    assert found.shared == pytest.approx(np.mean(kept))
    assert list(found.tasks.values()) == sorted(found.tasks.values(), reverse=True)
    again = select("bento-sim", given, 3, bootstraps=40)
    assert again == selection
    assert select("bento-sim", given, 3, 1, bootstraps=40).stability != found


def test_what_has_no_stability():
    for method, given, bootstraps in (
        ("tasks-random", made(), 5),
        ("bento-sim", made(), 0),
        ("bento-sim", made(seeds=1), 5),
        ("bento-sim", TaskMatrix.of_transfer(made()), 5),
    ):
        selection = select(method, given, bootstraps=bootstraps)
        assert selection.stability is None
        assert {chosen.stability for chosen in selection.chosen} == {None}


def test_seeds_with_gaps_that_a_bootstrap_may_miss():
    """An entry that one seed alone measured is unknown in draws without that seed."""
    given = made(5, seeds=3)
    given.values[1:, 0, 1] = np.nan
    selection = select("bento-sim", given, 2, bootstraps=20)
    assert selection.tasks == select("bento-sim", given, 2, bootstraps=0).tasks
    assert selection.stability.bootstraps == 20


@pytest.mark.parametrize("k", [-1, 0, 10])
def test_k_that_does_not_fit(k):
    with pytest.raises(MethodError, match=f"cannot choose {k} of 9 tasks"):
        select("bento-sim", k=k)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"k": 3}, "3 different tasks"),
        ({"chosen": []}, "chosen"),
        ({"chosen": [{"task": "task 1", "questions": 3}] * 4}, "4 different tasks"),
        ({"sizes": {"task 1": 3}}, "does not have"),
        ({"steps": {"1": ["task x"]}}, "does not have: 'task x'"),
        ({"format": 2}, "format"),
        ({"more": 1}, "more"),
    ],
)
def test_json_that_is_no_selection(change, said):
    text = json.dumps(json.loads(select("bento-sim").to_json()) | change)
    with pytest.raises(MethodError, match=rf"x\.json: .*{said}"):
        TaskSelection.from_json(text, "x.json")


@pytest.mark.parametrize("text", ["", "[]", "{", "null", b"\xff"])
def test_text_that_is_no_selection(text):
    with pytest.raises(MethodError, match="not a selection of tasks: "):
        TaskSelection.from_json(text)


def test_stability_stands_beside_its_chance_level_and_the_signal_beside_noise():
    """Choices from the same few seeds agree even where sources do not differ at all."""
    names = tuple(f"t{at}" for at in range(30))
    rng = np.random.default_rng(5)
    noise = rng.normal(size=(6, 30, 30))
    sizes = np.full(30, 9)
    same = Transferability(0.5 + 0.02 * noise, names, names, sizes)
    found = select("bento-sim", same, 5, bootstraps=40)
    assert found.stability.chance == pytest.approx(5 / 30)
    assert found.stability.noise > found.stability.chance + 0.05
    assert found.stability.pairs == pytest.approx(found.stability.noise, abs=0.2)
    assert found.noise.ratio < 0.3
    assert found.noise.p_value > 0.05
    differ = Transferability(
        0.5 + 0.1 * rng.normal(size=(30, 30)) + 0.02 * noise, names, names, sizes
    )
    found = select("bento-sim", differ, 5, bootstraps=40)
    assert found.noise.ratio == pytest.approx(0.1**2 / (0.02**2 / 6), rel=0.2)
    assert found.noise.p_value < 0.05
    assert found.stability.pairs > found.stability.noise + 0.2


def test_what_a_source_s_exemplars_do_in_one_seed_is_no_signal():
    """Draws of exemplars that help or hurt on all targets at once are noise of the seed."""
    names = tuple(f"t{at}" for at in range(20))
    rng = np.random.default_rng(2)
    values = 0.5 + 0.05 * rng.normal(size=(5, 20, 1)) + 0.01 * rng.normal(size=(5, 20, 20))
    found = select("bento-sim", Transferability(values, names, names, np.full(20, 9)), 3)
    assert found.noise.p_value > 0.05


def test_the_formula_is_the_ridge_on_past_scores():
    from fewbench.algorithms.ridge_and_neighbors import fit_ridge

    given = TaskMatrix.of_scores(simulate(12, 80, 6, seed=1))
    selection = select("ridge", given, 2)
    assert selection.estimator == "ridge"
    at = [given.names.index(task) for task in selection.tasks]
    fitted = fit_ridge(given.rows[at].T, (given.weights @ given.rows)[:, None])
    said = selection.formula.estimate(given.rows.T, given.names)
    np.testing.assert_allclose(said, fitted.predict(given.rows[at].T)[:, 0].clip(0, 1))
    assert set(selection.models) == set(given.models)
    assert select("random", given, 2).models is None
