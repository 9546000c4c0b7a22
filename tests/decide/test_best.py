"""The best of several models, on one budget: what is said holds, and nothing runs twice."""

import numpy as np
import pytest

import fewbench
from fewbench.algorithms.best_of_many import SourceAxes, believe, chance_of_lead, share_out
from fewbench.errors import FewbenchError
from fewbench.evaluation import Evaluation
from fewbench.study import compare_best
from fewbench.testing import simulate

TABLE = simulate(10, 400, seed=3)
NAMES = list(TABLE.model_ids)
TRUE = dict(zip(NAMES, TABLE.full_scores(), strict=True))
BEST = max(NAMES, key=TRUE.get)


def models_of(table, calls=None, fails=()):
    """A function for each model, which counts its calls."""

    def model(name, row):
        def score(item):
            if calls is not None:
                calls.append((name, item))
            return None if (name, item) in fails else row[item]

        return score

    rows = table.to_frame()
    return {name: model(name, rows.loc[name].to_dict()) for name in table.model_ids}


def alike(seed, n_models=20, n_items=1000, concentration=0.6):
    """Models that are equal in general: each item has a chance that is the same for all."""
    rng = np.random.default_rng(seed)
    chances = rng.beta(concentration, concentration, n_items)
    return (rng.random((n_models, n_items)) < chances) * 1.0


def test_the_best_is_found_and_a_run_goes_on_where_it_ended(tmp_path):
    calls: list = []
    models, folder = models_of(TABLE, calls), tmp_path / "run"
    first = fewbench.best(TABLE.benchmark, models, 120, folder=folder)
    assert (first.answers, first.is_settled, first.ended) == (120, False, "answers")
    assert "undecided" in str(first)
    found = fewbench.best(TABLE.benchmark, models, "50%", folder=folder)
    assert found.is_settled
    assert found.winners == (BEST,)
    assert found.answers < 0.5 * TABLE.values.size
    assert len(calls) == len(set(calls)) == found.answers  # nothing ran twice
    again = fewbench.best(TABLE.benchmark, models, "50%", folder=folder)
    assert again.targets == found.targets
    assert len(calls) == found.answers
    evaluation = Evaluation.open(folder)
    asked = [evaluation.record.asked(name).tolist() for name in NAMES]
    longest = max(asked, key=len)
    assert all(set(items) == set(longest[: len(items)]) for items in asked)  # of one order
    ranked = fewbench.rank(evaluation)
    assert ranked.targets[0].target == BEST
    assert fewbench.versus((evaluation, BEST), NAMES[0] if NAMES[0] != BEST else NAMES[1])
    whole = fewbench.best(TABLE.benchmark, models, "50%")
    assert whole.winners == found.winners  # without a folder, in one go


def test_a_run_that_dies_amid_a_round_resumes(tmp_path):
    calls: list = []
    models = models_of(TABLE, calls)

    def dies(item):
        if len(calls) > 150:
            raise KeyboardInterrupt
        return models[BEST](item)

    ended = fewbench.best(TABLE.benchmark, models | {BEST: dies}, 900, folder=tmp_path / "run")
    assert (ended.ended, ended.is_settled) == ("stopped", False)
    found = fewbench.best(
        TABLE.benchmark, models, 900, folder=tmp_path / "run", accept_changes=True
    )
    assert found.winners == (BEST,)
    assert len(calls) == len(set(calls)) == found.answers


def test_sources_weights_costs_fractions_and_several_best():
    order = sorted(NAMES, key=TRUE.get, reverse=True)
    sources = simulate(40, 400, seed=3).take(models=range(10, 40))
    with_sources = fewbench.best(sources, models_of(TABLE), 1500)
    assert with_sources.winners == (BEST,)
    two = fewbench.best(TABLE.benchmark, models_of(TABLE), 3000, top=2, margin=0.05)
    assert two.is_settled
    assert min(TRUE[name] for name in two.winners) >= TRUE[order[1]] - 0.05
    priced = TABLE.changed(items=TABLE.items.assign(cost=0.5)).benchmark
    spent = fewbench.best(priced, models_of(TABLE), cost=80)
    assert 75 < spent.cost <= 80
    assert spent.answers == 2 * spent.cost
    with pytest.raises(FewbenchError, check=lambda error: error.kind == "missing"):
        fewbench.best(TABLE.benchmark, models_of(TABLE), cost=80)
    weighted = TABLE.averaged("macro")
    truth = dict(zip(NAMES, weighted.full_scores(), strict=True))
    macro = fewbench.best(weighted.benchmark, models_of(TABLE), "100%", level=0.9999)
    top = macro.targets[0]
    assert abs(top.score - truth[top.target]) < 0.03
    halves = models_of(TABLE.changed(values=0.25 + TABLE.values / 2))
    found = fewbench.best(TABLE.benchmark, halves, 2000)
    assert found.winners == (BEST,)
    assert found.targets[0].score == pytest.approx(0.25 + TRUE[BEST] / 2, abs=0.05)


def test_failed_items_are_open_and_said():
    fails = {(BEST, item) for item in TABLE.item_ids[::3]}
    with pytest.warns(UserWarning, match="failed and count as open"):
        found = fewbench.best(TABLE.benchmark, models_of(TABLE, fails=fails), 400, tries=1)
    plain = fewbench.best(TABLE.benchmark, models_of(TABLE), 400)
    widths = [
        next(one.interval.high - one.interval.low for one in each.targets if one.target == BEST)
        for each in (found, plain)
    ]
    assert widths[0] > 1.5 * widths[1]


def test_what_is_not_possible_is_refused():
    models = models_of(TABLE)
    for words, text in [
        ({"budget": 3}, "for 10 targets"),
        ({"budget": None}, "no limit"),
        ({"budget": "0%"}, "not a number of answers"),
        ({"budget": 100, "top": 10}, "top = 10"),
        ({"budget": 100, "level": 1.0}, "level"),
        ({"budget": 100, "margin": -0.1}, "margin"),
    ]:
        with pytest.raises(FewbenchError, match=text):
            fewbench.best(TABLE.benchmark, models, **words)
    with pytest.raises(FewbenchError, check=lambda error: error.kind == "too-few"):
        fewbench.best(TABLE.benchmark, {BEST: models[BEST]}, 100)


def test_a_run_of_a_smaller_benchmark_does_not_go_on(tmp_path):
    """Of new items a smaller share would have run, and the score is theirs as well."""
    models, few = models_of(TABLE), TABLE.take(items=range(TABLE.n_items // 2))
    fewbench.best(few.benchmark, models, 20, folder=tmp_path)  # all run alike
    fewbench.extend(tmp_path, TABLE.benchmark)
    with pytest.raises(FewbenchError, match="extended"):
        fewbench.best(TABLE.benchmark, models, 400, folder=tmp_path)


@pytest.mark.parametrize("concentration", [0.6, 0.12])
def test_models_that_are_equal_do_not_look_better_than_they_are(concentration):
    """At so many answers, the highest mean of 20 equal models is 6 to 8 points too high."""
    off, covered, plain = [], [], []
    for seed in range(40):
        answers = alike(seed, concentration=concentration)
        seen = np.full(answers.shape, np.nan)
        seen[:, :50] = answers[:, :50]
        beliefs = believe(seen)
        best, true = int(beliefs.scores.argmax()), answers.mean(axis=1)
        off.append(beliefs.scores[best] - true[best])
        covered.append(abs(off[-1]) <= 1.645 * beliefs.errors[best])
        plain.append(np.nanmean(seen, axis=1).max() - true[np.nanmean(seen, axis=1).argmax()])
    assert np.mean(plain) > 0.05
    assert abs(np.mean(off)) < 0.02
    assert np.mean(covered) >= 0.8


def test_all_items_are_exact_and_in_general_never_certain():
    answers = alike(1, 5, 200)
    beliefs = believe(answers)
    assert beliefs.scores == pytest.approx(answers.mean(axis=1))
    assert beliefs.errors == pytest.approx(0.0, abs=1e-6)
    drawn = beliefs.draw(np.random.default_rng(0))
    assert chance_of_lead(drawn, beliefs.scores) == 1.0
    general = believe(answers, in_general=True)
    assert general.errors.min() > 0.02
    drawn = general.draw(np.random.default_rng(0))
    assert chance_of_lead(drawn, general.scores) < 0.9
    assert chance_of_lead(drawn, general.scores, margin=0.3) > 0.95


def test_equal_known_scores_share_the_first_place():
    row = np.repeat([1.0, 0.0], 10)
    rows = [row, row[::-1], 0 * row]
    table = fewbench.from_arrays(rows, models=["a", "b", "c"], items=[f"i{n}" for n in range(20)])
    models = models_of(table)
    found = fewbench.best(table.benchmark, {name: models[name] for name in "ab"}, 40)
    assert (found.ended, found.tied) == ("settled", ("b",))
    assert [one.chance_top for one in found.targets] == [0.5, 0.5]
    assert "is the best" not in str(found)
    found = fewbench.best(table.benchmark, models, 60, top=2)
    assert found.tied == ()
    assert found.targets[1].chance_top > 0.95


def test_right_and_wrong_exchanged_are_the_same_statement():
    answers = alike(2, 6, 300)
    answers[np.arange(300) >= np.array([[40], [40], [80], [80], [160], [160]])] = np.nan
    one, other = believe(answers), believe(1 - answers)
    assert other.scores == pytest.approx(1 - one.scores, abs=1e-6)
    assert other.errors == pytest.approx(one.errors, abs=1e-6)


def test_sources_tell_of_items_that_no_model_ran():
    table = simulate(60, 400, seed=4)
    values, axes = table.values, SourceAxes.fit(table.values[10:])
    errors = {"with": [], "without": []}
    for seed in range(8):
        rng, seen = np.random.default_rng(seed), np.full((10, 400), np.nan)
        items = rng.permutation(400)[:12]
        seen[:, items] = values[:10][:, items]
        for how, beliefs in (("with", believe(seen, axes)), ("without", believe(seen))):
            errors[how].append(np.abs(beliefs.scores - values[:10].mean(axis=1)).mean())
    assert np.mean(errors["with"]) < 0.9 * np.mean(errors["without"])


def test_answers_go_where_they_decide_and_money_where_it_is_cheap():
    rng = np.random.default_rng(0)
    drawn = np.array([0.7, 0.69, 0.68, 0.3]) + 0.02 * rng.standard_normal((1000, 4))
    n, room = np.array([40, 20, 30, 20]), np.array([60, 80, 2, 80])
    more = share_out(drawn, n, room, 60, 4, rng)
    assert more.sum() == 60
    assert more[3] == 0
    assert more[1] > more[0]  # the one that lags
    assert more[2] <= 2
    costs = np.array([1.0, 1.0, 1.0, 1.0])
    costs[0] = 16.0
    priced = share_out(drawn, np.full(4, 20), np.full(4, 500), 400, 4, rng, costs=costs)
    assert priced @ costs <= 400
    assert priced[1] > 2 * priced[0]
    two = share_out(drawn, np.full(4, 20), np.full(4, 80), 60, 4, rng, top=2)
    assert two[:3].min() > 0


def test_rank_gives_out_as_many_items_as_it_is_asked_for_until_it_is_settled():
    """Rounds by hand without sources ended with fewer items than asked for, or none."""
    table = simulate(8, 600, seed=2)
    rows = {name: table.to_frame().loc[name] for name in table.model_ids}
    evaluation = Evaluation(table.benchmark, "auto", 10, NAMES[:8], seed=2)
    for _ in range(12):
        while asked := evaluation.ask():
            for name, items in asked.items():
                evaluation.tell(name, rows[name][items].to_dict())
        found = fewbench.rank(evaluation, sequential=True, next_items=100, ask=True)
        if found.is_settled:
            break
        assert sum(map(len, found.next_items.values())) == 100
    run = {one.target: one.items_run for one in found.targets}
    true = dict(zip(table.model_ids, table.full_scores(), strict=True))
    first, second = sorted(run, key=true.get)[-2:]
    assert min(run[first], run[second]) > 0.5 * max(run.values())  # true rivals run on


def test_the_study_shows_each_search_on_a_table():
    table = simulate(30, 300, seed=1)
    study = compare_best(table, 6, repeats=12, sources=20, shares=[0.05, 0.4])
    by_name = {(one.search, one.share): one for one in study.results}
    assert by_name["best", 0.4].right > by_name["random", 0.4].right
    assert by_name["best", 0.4].regret <= by_name["uniform", 0.05].regret
    assert study.stops.stopped > 0.5
    assert study.stops.right >= 0.9
    close = compare_best(table, 6, repeats=12, neighbors=True, shares=[0.4])
    assert close.results[-1].regret < by_name["random", 0.4].regret
    assert len(study.to_frame()) == 10
    with pytest.raises(FewbenchError, match="models"):
        compare_best(table, 25, sources=10)
