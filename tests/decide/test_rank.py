"""The order of several targets: how often ranges of ranks hold, and what to run next."""

import os
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import fewbench
from fewbench.algorithms.best_of_many import believe
from fewbench.decide.allocation import beliefs_of, chances_of_top
from fewbench.errors import FewbenchError
from fewbench.evaluation import Evaluation
from fewbench.scores import Scale
from fewbench.testing import simulate


@pytest.mark.slow
def test_ranges_of_ranks_hold_together_and_chances_are_honest(sources, targets, play):
    truth = targets.full_scores()
    evaluation = Evaluation(sources, "fewbench", 60, targets.model_ids)
    play(evaluation)
    found = fewbench.rank(evaluation, top=5)
    order = {
        name: 1 + int((truth > own).sum())
        for name, own in zip(targets.model_ids, truth, strict=True)
    }
    outside = [
        one.target
        for one in found.targets
        if not one.rank_low <= order[one.target] <= one.rank_high
    ]
    assert len(outside) <= 2  # in one of ten rankings one pair is told apart wrongly
    assert [one.rank for one in found.targets] == sorted(one.rank for one in found.targets)
    frame = found.to_frame()
    assert frame["chance_best"].sum() == pytest.approx(1)
    assert frame["chance_top"].sum() == pytest.approx(5)
    assert np.mean(frame["rank_high"] - frame["rank_low"]) < 12  # of 19
    among = frame["chance_top"][[name for name, place in order.items() if place <= 5]]
    assert among.mean() > 0.6
    for one in found.targets:
        for other in one.tied_with:
            assert one.target in found.targets[list(frame.index).index(other)].tied_with
    assert not found.is_settled
    assert not found.next_targets  # of models, all items leave the best five open
    assert "Even all" in str(found)
    of_items = fewbench.rank(evaluation, top=5, fixed_items=True)
    assert 1 <= len(of_items.next_targets) <= 2
    assert "<table" in found._repr_html_()


def test_the_printed_table_has_the_items_run(sources, targets, play):
    names = targets.model_ids[:3]
    evaluation = Evaluation(sources, "random", 30, names)
    play(evaluation)
    found = fewbench.rank(evaluation)
    (table,) = next(part.tables for part in found.page().sections if part.id == "places")
    titles = [title for title, _ in table.head]
    shown = {title: [row[titles.index(title)] for row in table.rows] for title in titles}
    assert shown["Items run"] == ["30"] * 3
    assert shown["Rank"] == [str(one.rank) for one in found.targets]
    assert shown["Range"] == [f"{one.rank_low} to {one.rank_high}" for one in found.targets]


def test_the_history_has_the_runs_by_date_and_how_scores_changed(sources, targets, play, tmp_path):
    runs, scale = [], Scale(0, 100)
    for at, name in enumerate(targets.model_ids[:3]):
        runs.append(Evaluation(replace(sources, scale=scale), "random", 40, [name]))
        play(runs[-1], truth=replace(targets, scale=scale))
        runs[-1].save(tmp_path / name)
        os.utime(tmp_path / name / "evaluation.json", (1e9 - 86_400 * at, 1e9 - 86_400 * at))
    assert (
        fewbench.rank(*runs[:2], models=[sources.model_ids[0]], history=True).history[0].change
        is None
    )
    assert not fewbench.rank(*runs).history  # runs of unrelated models have none
    found = fewbench.rank(*runs, history=True)
    assert [row.target for row in found.history] == list(targets.model_ids[2::-1])
    assert [row.date[:10] for row in found.history] == ["2001-09-07", "2001-09-08", "2001-09-09"]
    for before, row in pairwise(found.history):
        assert row.change == pytest.approx(row.score - before.score)
        assert row.change_interval.low < row.change < row.change_interval.high
        assert row.change_interval.high - row.change_interval.low > 1  # in points
    page = found.page()
    history = next(section for section in page.sections if section.id == "history")
    assert history.charts[0][1]() is not None


def test_the_history_has_targets_of_one_evaluation_in_its_order(sources, targets, play, tmp_path):
    names = [targets.model_ids[at] for at in np.argsort(targets.full_scores())[:4]]
    first, later = (Evaluation(sources, "random", 40, part) for part in (names[:3], names[3:]))
    for at, evaluation in enumerate((first, later)):
        play(evaluation)
        evaluation.save(tmp_path / str(at))
        os.utime(tmp_path / str(at) / "evaluation.json", (1e9 + 86_400 * at, 1e9 + 86_400 * at))
    assert [row.target for row in fewbench.rank(first, later, history=True).history] == names
    assert not fewbench.rank(first, history=True).history  # of one date


def test_known_models_and_mistakes(sources, targets, play):
    evaluation = Evaluation(sources, "random", 12, targets.model_ids[:2])
    full = sources.full_scores()
    order = np.argsort(-full)
    known = [sources.model_ids[at] for at in order[:3]]
    wrong = {
        "ranking needs two": lambda: fewbench.rank(evaluation),
        "ranked twice": lambda: fewbench.rank(evaluation, models=[known[0], known[0]]),
        "top = 3 is not possible with 3": lambda: fewbench.rank(evaluation, models=known, top=3),
        "list in place of evaluations": lambda: fewbench.rank([evaluation]),
        "neither a target": lambda: fewbench.rank(evaluation, models=["x", "y"]),
    }
    for said, call in wrong.items():
        with pytest.raises(FewbenchError, match=said):
            call()
    play(evaluation)
    with pytest.raises(FewbenchError, match="DIR:TARGET"):
        fewbench.rank(evaluation, evaluation)
    first = evaluation.targets[0]
    alone = fewbench.rank((evaluation, first), models=known)
    assert {one.target for one in alone.targets} == {first, *known}
    assert not alone.warnings
    found = fewbench.rank(evaluation, models=known)
    places = {one.target: one for one in found.targets}
    assert [places[name].score for name in known] == pytest.approx(full[order[:3]])
    assert known[1] in places[known[0]].tied_with  # the models, not only these answers
    places = {
        one.target: one for one in fewbench.rank(evaluation, models=known, fixed_items=True).targets
    }
    apart = full[order[0]] - full[order[1]] > 1e-9
    assert (known[1] in places[known[0]].tied_with) != apart
    assert not set(found.next_targets) & set(known)


@pytest.mark.slow
def test_items_go_where_they_settle_the_best(sources, targets, play, tmp_path):
    """Against equal shares: fewer answers until the best is settled, summed over several sets."""
    spent = {"allocated": 0, "equal": 0}
    settled = {"allocated": 0, "equal": 0}
    order = np.argsort(-targets.full_scores(), kind="stable")
    for at in range(2):
        names = [targets.model_ids[one] for one in order[at::4]]
        for how in spent:
            evaluation = Evaluation(sources, "greedy-ridge", 20, names)
            evaluation.save(tmp_path / f"{how}-{at}")
            play(evaluation)
            for _ in range(6):
                found = fewbench.rank(evaluation, next_items=50)
                if found.is_settled:
                    settled[how] += 1
                    break
                more = found.next_items
                assert sum(map(len, more.values())) == 50
                if how == "equal":
                    rest = np.random.default_rng(0).permutation(sources.n_items)
                    more = {
                        name: [sources.item_ids[i] for i in rest
                               if i not in set(evaluation.record.asked(name))][:10]
                        for name in names
                    }  # fmt: skip
                evaluation.ask_more(more)
                play(evaluation)
            spent[how] += sum(one.items_run for one in fewbench.rank(evaluation).targets)
    assert settled["allocated"] >= settled["equal"]
    assert spent["allocated"] < spent["equal"]


@pytest.mark.parametrize("spread", [0.0, pytest.param(0.01, marks=pytest.mark.slow), 0.03])
def test_the_best_of_many_is_not_as_good_as_it_looks(spread):
    """As they look, the best of 20 are 2 to 4 points too good."""
    rng, n, error, found = np.random.default_rng(1), 20, 0.02, []
    true = rng.normal(0.5, spread, (100, n))
    how = error * np.sqrt(2) * (1 - np.eye(n)), np.full(n, error), np.full(n, 600)
    for general, seen in zip(true, true + rng.normal(0, error, true.shape), strict=True):
        beliefs, best = beliefs_of(seen, *how), int(seen.argmax())
        chances = chances_of_top(beliefs, 1)
        is_best = general[best] == general.max() if spread else 1 / n
        luck = beliefs.scores[best] - general[best]
        covers = abs(luck) < 1.645 * beliefs.errors[best]
        found.append((luck, seen[best] - general[best], chances[best] - is_best, covers))
    luck, as_it_looks, overstated, covers = np.mean(found, axis=0)
    assert abs(luck) < 0.0085
    assert as_it_looks > 0.015
    assert abs(overstated) < 0.17
    assert covers > 0.84


def test_imprecise_models_do_not_lower_what_is_expected_of_precise_ones():
    rng, own, off = np.random.default_rng(1), np.array([0.04, 0.04, 0.15]), []
    errors = np.hypot(own[:, None], own) * (1 - np.eye(3))
    true = rng.normal(0.7, 0.05, (400, 3))
    for general, seen in zip(true, true + rng.normal(0, own, true.shape), strict=True):
        believed = beliefs_of(seen, errors, own, np.array([130, 130, 9])).scores[0]
        off.append((believed - general[0], seen[0] - general[0]))
    assert np.std(off, axis=0)[0] < np.std(off, axis=0)[1]
    assert abs(np.mean(off, axis=0)[0]) < 0.005


def test_rank_says_of_two_models_what_versus_says(sources, targets, play):
    names = targets.model_ids[:3]
    evaluation = Evaluation(sources, "random", 30, names)
    play(evaluation)
    for a, b in ((names[0], names[1]), (names[2], names[1])):
        pair = (evaluation, a), (evaluation, b)
        versus = fewbench.versus(*pair)
        chances = {one.target: one.chance_best for one in fewbench.rank(*pair).targets}
        assert chances[a] == pytest.approx(versus.chance_a_better, abs=1e-9)
        assert chances[b] == pytest.approx(1 - versus.chance_a_better, abs=1e-9)


def test_the_best_of_near_copies_that_is_clearly_better_is_probably_the_best():
    """`versus` says > .99 beside the next one; by their spread about one mean, P(best) is .59."""
    rng, n = np.random.default_rng(0), 1000
    rows = np.tile((rng.random(n) < 0.7) * 1.0, (20, 1))
    rows = np.where(rng.random(rows.shape) < 0.01, 1 - rows, rows)
    rows[0, np.flatnonzero(rows[0] == 0)[:35]] = 1
    found = fewbench.rank(fewbench.from_arrays(rows, models=[f"m{at:02}" for at in range(20)]))
    assert found.targets[0].chance_best > 0.95


def test_rank_and_best_believe_the_same():
    """Of models that ran the same items: one engine."""
    table = simulate(6, 400, seed=3)
    evaluation = Evaluation(table.benchmark, "random", 100, table.model_ids)
    for name, items in evaluation.ask().items():
        row = table.to_frame().loc[name]
        evaluation.tell(name, row[items].to_dict())
    answers = np.array([evaluation.record.scores(name) for name in table.model_ids])
    chances = chances_of_top(believe(answers), 1)
    found = fewbench.rank(evaluation, fixed_items=True)
    ranked = [one.chance_best for one in sorted(found.targets, key=lambda one: one.target)]
    assert ranked == pytest.approx(chances, abs=0.05)


def test_the_models_named_to_run_on_are_those_that_get_the_items():
    table = simulate(3, 400, seed=4)
    evaluation = Evaluation(table.benchmark, "random", 100, table.model_ids, seed=0)
    for n, row, (name, items) in zip(
        (100, 60, 20), table.values, evaluation.ask().items(), strict=True
    ):
        known = dict(zip(table.item_ids, row, strict=True))
        evaluation.tell(name, {item: known[item] for item in items[:n]})
    found = fewbench.rank(evaluation, next_items=30, fixed_items=True)
    assert found.next_items
    assert set(found.next_targets) == set(found.next_items)
