"""A target that is asked the items of another one first: same items, same chances."""

import numpy as np
import pytest

from fewbench import versus
from fewbench.errors import AnswersError, EvaluationError
from fewbench.evaluation import Evaluation
from fewbench.testing import simulate

TABLE = simulate(40, 300, 3, seed=2)
FIRST, SECOND = TABLE.values[-1], TABLE.values[-2]
COINS = np.random.default_rng(1).integers(0, 2, 300).astype(float)


def sources(n):
    return TABLE.take(models=range(n)) if n else TABLE.benchmark


def play(evaluation, name, row, upto=None):
    """Answer what a target is asked, up to so many answers."""
    places = {item: at for at, item in enumerate(TABLE.item_ids)}
    while asked := evaluation.ask(targets=[name]).get(name):
        left = None if upto is None else upto - len(evaluation.record.answered(name))
        if left is not None and left <= 0:
            break
        evaluation.tell(name, {item: row[places[item]] for item in asked[:left]})
    return evaluation


def draws_of(evaluation, name):
    return evaluation._choosing.session._runs((name,))[0].draws


@pytest.mark.parametrize("n_sources", [0, 8, 30])
@pytest.mark.parametrize("budget", [25, 40, 60])
def test_items_and_chances_are_those_of_the_other_target(n_sources, budget):
    """The first one's answers are coins: with sources its items become a sample."""
    first = play(Evaluation(sources(n_sources), "fewbench", 40, ["first"]), "first", COINS)
    other = Evaluation(sources(n_sources), "fewbench", budget, ["second"])
    other.follow("second", other=first)
    play(other, "second", SECOND)
    theirs, own = first.record.asked("first"), other.record.asked("second")
    n = min(len(theirs), len(own))
    assert (own[:n] == theirs[:n]).all()
    assert len(own) == budget
    leads, follows = draws_of(first, "first"), draws_of(other, "second")
    assert leads
    for lead, follow in zip(leads, follows, strict=False):
        assert lead.chances_of(9) == pytest.approx(follow.chances_of(9))
    alone = play(Evaluation(sources(n_sources), "fewbench", budget, ["second"]), "second", SECOND)
    if n_sources == 8 and budget > 25:  # by its own answers the chances would be others
        assert draws_of(alone, "second")[1].chances_of(9) != pytest.approx(leads[1].chances_of(9))


def test_items_chosen_for_an_unlike_target_are_left():
    """Items for a weak model say little of a strong one: they would make it look perfect."""
    order = TABLE.full_scores().argsort()
    weak, strong = TABLE.values[order[4]], TABLE.values[order[-5]]
    table = TABLE.take(models=np.delete(order, [4, -5]))
    first = play(Evaluation(table, "fewbench", 40, ["weak"]), "weak", weak)
    first.follow("strong", "weak")
    play(first, "strong", strong)
    assert not draws_of(first, "weak")
    theirs, own = (first.record.asked(name) for name in ("weak", "strong"))
    assert own[:10].tolist() == theirs[:10].tolist()
    assert set(own[10:]) != set(theirs[10:])
    assert len(own) == 40
    alone = play(Evaluation(table, "fewbench", 40, ["strong"]), "strong", strong)
    found, own = (each.estimate(warn=False)["strong"].score for each in (first, alone))
    assert abs(found - own) < 0.05  # on all items of the weak one it would look perfect
    apart = versus((first, "weak"), "strong")  # said of items that a method chose, too
    assert f"share {apart.items_common} of 40 items" in apart.pairing.note
    assert apart.items_common < 20


@pytest.mark.parametrize("n_sources", [8, 30])
def test_targets_that_join_a_folder_are_there_when_it_is_opened_again(n_sources, tmp_path):
    started = Evaluation(sources(n_sources), "fewbench", 40, ["first"])
    started.save(tmp_path)
    play(started, "first", COINS, upto=22)
    started.follow("second")
    play(started, "second", SECOND)
    started.follow("third", "second")
    play(started, "third", FIRST, upto=30)
    opened = Evaluation.open(tmp_path, sources(n_sources))
    assert opened.targets == ("first", "second", "third")
    assert opened.estimate(warn=False) == started.estimate(warn=False)
    n = len(started.record.asked("first"))
    asked = [opened.record.asked(name).tolist() for name in opened.targets]
    assert asked[0] == asked[1][:n]
    assert asked[1] == asked[2]
    assert play(opened, "third", FIRST).finished() == ["second", "third"]
    leads = [draws_of(opened, name) for name in ("second", "third")]
    assert len(leads[0]) == len(leads[1])
    for lead, follow in zip(*leads, strict=True):
        assert lead.chances_of(9) == pytest.approx(follow.chances_of(9))


@pytest.mark.parametrize("method", ["collaborative(transport=false)", "aipw"])
def test_every_method_asks_the_same_items(method):
    first = play(Evaluation(sources(30), method, 20, ["first"]), "first", FIRST)
    other = Evaluation(sources(30), method, 20, ["second"])
    other.follow("second", other=first)
    play(other, "second", SECOND)
    theirs, own = first.record.asked("first"), other.record.asked("second")
    assert own[: len(theirs)].tolist() == theirs.tolist()
    assert np.isfinite(other.estimate(warn=False)["second"].score)


def test_what_cannot_follow_is_refused():
    first = Evaluation(sources(30), "fluid", 20, ["first"])
    play(first, "first", FIRST)
    for n, settings, said in (
        (29, {}, "other scores of source models"),
        (30, {"method": "random"}, "method fluid, not random"),
        (30, {"seed": 4}, "seed 0, not 4"),
    ):
        given = {"method": "fluid", "budget": 20, "targets": ["second"]} | settings
        with pytest.raises(EvaluationError, match=said):
            Evaluation(sources(n), **given).follow("second", other=first)
    given = (sources(30), "greedy-ridge", 20, ["a"])
    with pytest.raises(EvaluationError, match="20 items"):
        Evaluation(*given[:2], 30, ["b"]).follow("b", other=play(Evaluation(*given), "a", FIRST))
    together = Evaluation(sources(30), "fewbench(together=2)", 20, ["a", "b"])
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "unsupported"):
        together.follow("c")
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "taken"):
        first.follow(TABLE.model_ids[0])
    own = play(Evaluation(sources(30), "fluid", 20, ["second"]), "second", SECOND)
    with pytest.raises(AnswersError, check=lambda error: error.kind == "taken"):
        own.follow("second", other=first)
