"""Probabilities of the right options: read off sources and targets, and what methods do by them."""

from dataclasses import replace

import numpy as np
import pytest

from fewbench.errors import AnswersError, MethodError
from fewbench.methods import Answers, find_method
from fewbench.methods.confidence import confidence
from fewbench.scores import OptionProbabilities, from_arrays
from fewbench.testing import simulate
from fewbench.testing.conformance import MethodConformance, Settings
from fewbench.testing.playing import all_options
from fewbench.uncertainty.replay import replay

BOTH = "medoids(standardise=true,values=probabilities)+answers(values=probabilities)+ridge"
METHODS = [
    "tailored(values=probabilities)",
    "tailored(values=probabilities,printed=true)",
    "medoids(metric=correlation,values=probabilities)+mean",
    BOTH,
]


class TestByProbabilities(MethodConformance):
    needs_probabilities = True

    @pytest.fixture(params=[METHODS[0], BOTH])
    def method(self, request):
        return find_method(request.param)


class TestOptions(Settings):
    needs_probabilities = True
    estimates = False

    @pytest.fixture(params=METHODS[1:3])
    def method(self, request):
        return find_method(request.param)


def tables(n_sources=20, n_targets=4, n_items=60, **kind):
    table = simulate(n_sources + n_targets, n_items, **kind)
    rows = np.arange(n_sources + n_targets)
    return table.take(models=rows[:n_sources]), table.take(models=rows[n_sources:])


def certain(scores):
    """The same scores, and all probability on option 0 where right, on option 1 where wrong."""
    options = np.stack([scores.values, 1 - scores.values], axis=2)
    items = scores.items.assign(n_options=2)
    return replace(scores, items=items, probabilities=OptionProbabilities(options))


@pytest.mark.parametrize("method", METHODS)
def test_probabilities_of_1_and_0_are_scores(method):
    sources, targets = (certain(one) for one in tables(seed=2))
    ours = replay(find_method(method), sources, targets, 15, 0, tasks=True)
    plain = find_method(method.replace("values=probabilities", "values=scores"))
    theirs = replay(plain, sources, targets, 15, 0, tasks=True)
    assert [a.tolist() for a in ours.items] == [a.tolist() for a in theirs.items]
    np.testing.assert_allclose(ours.scores, theirs.scores, rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours.tasks, theirs.tasks, rtol=0, atol=1e-12)


def test_a_target_is_read_by_the_option_that_the_sources_find_right():
    p = np.array([[[0.7, 0.3], [0.4, 0.6]], [[0.2, 0.8], [0.1, 0.9]], [[0.9, 0.1], [0.8, 0.2]]])
    found = confidence(
        from_arrays([[1, 1], [0, 1], [1, 0]], models=["a", "b", "c"], probabilities=p)
    )
    assert found.right.tolist() == [0, 1]
    assert found.sources.tolist() == [[0.7, 0.6], [0.2, 0.9], [0.9, 0.2]]
    options = np.array([[[0.25, 0.75], [0.6, 0.4]], [[np.nan, np.nan], [0.5, 0.5]]])
    answers = Answers(np.array([1, 0]), np.array([[1.0, 1.0], [0.0, 0.0]]), options)
    assert found.of_targets(answers).tolist() == [[0.75, 0.6], [0.0, 0.5]]
    assert found.on(np.array([1])).of_targets(answers).tolist() == [[0.75, 0.6], [0.0, 0.5]]


@pytest.mark.parametrize("method", METHODS)
def test_a_table_without_probabilities_is_refused_before_anything_runs(method):
    with pytest.raises(MethodError, check=lambda error: error.kind == "missing"):
        find_method(method).start(tables()[0], 15, 0, ["new"])


@pytest.mark.parametrize("method", [METHODS[0], BOTH])
def test_answers_without_probabilities_are_refused(method):
    sources, targets = tables(options=4)
    session = find_method(method).start(sources, 15, 0, ["new"])
    items = session.ask()["new"]
    session.tell("new", Answers(items, targets.values[:1][:, items]))
    with pytest.raises(AnswersError, check=lambda error: error.kind == "missing"):
        session.predict(["new"])


def test_items_that_scores_cannot_tell_apart_are_told_apart():
    """Everyone is right on all items; on half of the items every other source barely so."""
    p = np.full((24, 40, 2), 0.5)
    p[..., 0] = np.where(np.arange(40) % 2 * np.arange(24)[:, None] % 2, 0.51, 0.95)
    p[..., 1] = 1 - p[..., 0]
    scores = from_arrays(np.ones((24, 40)), models=[f"m{k}" for k in range(24)], probabilities=p)
    items = find_method("medoids(values=probabilities)+mean").start(scores, 2, 0, ["new"]).ask()
    assert sorted(items["new"] % 2) == [0, 1]


def test_tailored_predicts_scores_from_the_targets_lead_in_probability():
    """Eq. 8-10 with the natives' mean score over their mean probability at the medoid."""
    sources, targets = tables(seed=5, options=4)
    method = find_method("tailored(values=probabilities,printed=true,probe=5,company=sources)")
    session = method.start(sources, 12, 0, targets.model_ids)
    options = all_options(targets)
    for _ in range(2):
        for name, items in session.ask().items():
            row = targets.model_ids.index(name)
            answers = targets.values[[row]][:, items]
            session.tell(name, Answers(items, answers, options[[row]][:, items]))
    found = confidence(sources)
    for row, name in enumerate(targets.model_ids):
        natives = session.natives([name])[name]
        chosen = session.native_set(natives)
        own = options[row, np.arange(60), found.right]
        p, c = found.sources[natives].mean(axis=0), sources.values[natives].mean(axis=0)
        expected = np.empty(60)
        for item in range(60):
            medoid = chosen.medoids[chosen.share[item].argmax()]
            expected[item] = (own[medoid] + 0.5) * (c[item] + 0.5) / (p[medoid] + 0.5) - 0.5
        run = session.record.answered(name)
        expected[run] = targets.values[row, run]
        said = session.predict([name]).scores[0]
        assert said == pytest.approx(expected @ sources.item_weights, abs=1e-6)
