"""TailoredBench as a method: its settings, its rounds, and who depends on whom."""

import numpy as np
import pytest

from fewbench.errors import MethodError
from fewbench.methods import Answers, find_method
from fewbench.testing import simulate
from fewbench.testing.conformance import Settings
from fewbench.uncertainty.replay import replay
from fewbench_papers.tailoredbench.tailored import Tailored

OPTIONS = ["tailored(probe=4,company=sources)", "tailored(probe=4,printed=true)"]


class TestOptions(Settings):
    estimates = False

    @pytest.fixture(params=OPTIONS)
    def method(self, request):
        return find_method(request.param)


def tables(n_targets=4, **kind):
    table = simulate(20 + n_targets, 60, **kind)
    return table.take(models=np.arange(20)), table.take(models=np.arange(20, 20 + n_targets))


def tell(session, targets, name, items):
    session.tell(name, Answers(items, targets.values[[targets.model_ids.index(name)]][:, items]))


@pytest.mark.parametrize("text", ["tailored+mean", "random+collaborative(alpha=1)"])
def test_nothing_is_joined_to_a_whole_method(text):
    with pytest.raises(MethodError, check=lambda error: error.kind == "conflict"):
        find_method(text)


def test_two_rounds_and_targets_that_wait():
    sources, targets = tables()
    names = targets.model_ids
    session = Tailored().start(sources, 16, 0, names)
    probe = session.ask()
    assert all(np.array_equal(items, session.probe) for items in probe.values())
    assert len(session.probe) == 10
    for name in names[:-1]:
        tell(session, targets, name, session.probe)
    waiting = session.ask()
    assert [len(waiting[name]) for name in names] == [0, 0, 0, 10]
    tell(session, targets, names[-1], session.probe)
    then = session.ask()
    assert [len(items) for items in then.values()] == [6] * 4
    for name, items in then.items():
        assert not set(items) & set(session.probe)
        tell(session, targets, name, items)
    assert session.ask() == {}


def test_with_the_sources_for_company_no_target_waits():
    sources, targets = tables()
    names = targets.model_ids
    session = Tailored(company="sources").start(sources, 16, 0, names)
    tell(session, targets, names[0], session.probe)
    assert [len(items) for items in session.ask().values()] == [6, 10, 10, 10]


def test_a_budget_within_the_probe_set_asks_once():
    sources, targets = tables()
    said = replay(Tailored(), sources, targets, 4, 0)
    assert all(len(items) == 4 for items in said.items)
    assert all(np.array_equal(items, said.items[0]) for items in said.items)


def test_item_expectations_make_the_scores():
    sources, targets = tables(n_tasks=3)
    for average in ("micro", "macro"):
        past, new = sources.averaged(average), targets.averaged(average)
        session = Tailored(probe=5).start(past, 12, 0, new.model_ids)
        asked = {name: [] for name in new.model_ids}
        while wanted := session.ask():
            for name, items in wanted.items():
                tell(session, new, name, items)
                asked[name] += items.tolist()
        said = session.predict(new.model_ids)
        assert (said.items @ past.item_weights - said.scores >= -1e-12).all()  # clipped at 0
        assert (past.task_means(said.items) - said.tasks >= -1e-12).all()
        np.testing.assert_allclose(said.items @ past.item_weights, said.scores, atol=0.02)
        for row, items in enumerate(asked.values()):
            assert np.array_equal(said.items[row, items], new.values[row, items])
