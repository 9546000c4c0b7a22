"""Law 3: the same evidence gives the same statement, whatever command, format or order says it."""

import json
from dataclasses import replace

import pytest
from worlds import BOTH, QUICK, WORLDS, ends, same, unit_ends

import fewbench
from fewbench.scores import from_arrays


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_every_command_says_the_same_of_a_score(world):
    estimates = world.evaluation.estimate(warn=False)
    bound = float(world.scores.scale.from_unit(0.6))
    for fixed in BOTH:
        found = fewbench.rank(world.evaluation, models=world.known, fixed_items=fixed)
        places = {place.target: place for place in found.targets}
        for name in world.targets:
            estimate = estimates[name]
            said = estimate.score, *ends(estimate.interval if fixed else estimate.as_model)
            (check,) = fewbench.gate(
                (world.evaluation, name), at_least=bound, fixed_items=fixed
            ).checks
            assert (check.value, *ends(check.interval)) == same(said)
            assert (places[name].score, *ends(places[name].interval)) == same(said)
        assert {found.items_total, estimate.items_total} == {world.scores.n_items}


@pytest.mark.parametrize("world", WORLDS[::4], ids=str)
def test_a_training_run_says_the_same_of_its_checkpoints(world):
    estimates = world.evaluation.estimate(warn=False)
    steps = {name: at for at, name in enumerate(world.targets)}
    for point in fewbench.track(world.evaluation, steps=steps).points:
        estimate = estimates[point.checkpoint]
        assert (point.score, *ends(point.interval)) == same(
            (estimate.score, *ends(estimate.interval))
        )
        assert ends(point.as_model) == same(ends(estimate.as_model))


@pytest.mark.parametrize("world", WORLDS[1::2], ids=str)
def test_every_command_says_the_same_of_a_difference(world):
    for (a, b), fixed in ((pair, fixed) for pair in world.pairs for fixed in BOTH):
        sides = world.side(a), world.side(b)
        pair = fewbench.versus(*sides, scores=world.evaluation.scores, fixed_items=fixed)
        said = pair.difference, *ends(pair.interval)
        (check,) = fewbench.gate(sides[0], not_below=sides[1], fixed_items=fixed).checks
        assert (check.value, *ends(check.interval)) == said
        assert pair.difference == same(pair.score_a - pair.score_b)
        written = json.loads(pair.to_json())
        assert (written["difference"], *written["interval"].values()) == same(said)
        row = pair.to_frame().loc["all"]
        assert (row["difference"], row["low"], row["high"]) == same(said)


@pytest.mark.parametrize("world", [world for world in QUICK if len(world.targets) > 2], ids=str)
def test_the_order_of_targets_does_not_matter(world):
    turned = replace(world, turned=True)
    for name, estimate in world.evaluation.estimate(warn=False).items():
        again = turned.evaluation.estimate(warn=False)[name]
        assert (again.score, *ends(again.interval)) == same(
            (estimate.score, *ends(estimate.interval))
        )
    found, again = (fewbench.rank(one.evaluation, models=one.known) for one in (world, turned))
    assert {place.target: (place.rank_low, place.rank_high) for place in found.targets} == {
        place.target: (place.rank_low, place.rank_high) for place in again.targets
    }


@pytest.mark.parametrize(
    "world", [world for world in WORLDS if world.has(answers="every item")], ids=str
)
def test_a_table_says_the_same_as_the_runs_that_it_is_made_of(world):
    scores, names = world.scores, world.targets
    table = from_arrays(
        scores.scale.from_unit([world.truth[name] for name in names]),
        models=names, items=list(scores.items.index), tasks=list(scores.items["task"]),
        scale=scores.scale,
    )  # fmt: skip
    table = table.changed(items=scores.items).averaged(scores.average)
    for fixed in BOTH:
        of_table = fewbench.versus("t0", "t1", scores=table, fixed_items=fixed)
        of_runs = fewbench.versus(world.side("t0"), world.side("t1"), fixed_items=fixed)
        for one, other in zip((of_table, *of_table.tasks), (of_runs, *of_runs.tasks), strict=True):
            assert (one.difference, *ends(one.interval)) == same(
                (other.difference, *ends(other.interval))
            )
        ranked = (
            fewbench.rank(given, tasks=True, fixed_items=fixed)
            for given in (table, world.evaluation)
        )
        for one, other in zip(*(found.tasks for found in ranked), strict=True):
            of_name = {place.target: place for place in other.targets}
            for place in one.targets:
                said = of_name[place.target]
                assert place.items_run == said.items_run
                assert (place.rank_low, place.rank_high) == (said.rank_low, said.rank_high)
                assert ends(place.interval) == same(ends(said.interval))


@pytest.mark.parametrize(
    "world", [world for world in QUICK if world.features["scores"] in ("percent", "errors")],
    ids=str,
)  # fmt: skip
def test_another_scale_says_the_same_on_its_own_scale(world):
    other = world.with_(
        scores={"percent": "fractional", "errors": "right or wrong"}[world.features["scores"]]
    )
    for name, estimate in world.evaluation.estimate(warn=False).items():
        plain = other.evaluation.estimate(warn=False)[name]
        assert unit_ends(estimate) == pytest.approx(unit_ends(plain), abs=1e-4)
