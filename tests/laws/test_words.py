"""Law 8: each sentence says which question and which items, and none contradicts a number."""

import pytest
from worlds import BOTH, WORLDS, ends

import fewbench
from fewbench.show.page import as_text

GENERAL, THESE = "in general, on questions like these", "on exactly these"


def names_its_question(found, fixed):
    """Check that the page of a result names its items and its question."""
    lower = " ".join(as_text(found.page()).lower().split())
    assert "on these 60 items" in lower or "on exactly these" in lower
    assert (GENERAL in lower) != fixed
    assert (THESE in lower) == fixed


@pytest.mark.parametrize("world", WORLDS[1::4], ids=str)
def test_pages_say_which_question_they_answer(world):
    steps = {name: at for at, name in enumerate(world.targets)}
    for fixed in BOTH:
        found = fewbench.rank(world.evaluation, models=world.known, fixed_items=fixed)
        names_its_question(found, fixed)
        for place in found.targets:
            assert place.may_be_best == (place.rank_low == 1)
            assert place.interval.low - 1e-9 <= place.score <= place.interval.high + 1e-9
            open_ranks = place.rank_high - place.rank_low
            assert len(place.tied_with) >= open_ranks
        assert found.is_settled == (found.targets[0].rank_high == 1)
        names_its_question(fewbench.track(world.evaluation, steps=steps, fixed_items=fixed), fixed)
        a, b = world.pairs[0]
        pair = fewbench.versus(world.side(a), world.side(b), fixed_items=fixed)
        names_its_question(pair, fixed)
        low, high = ends(pair.interval)
        if world.scores.scale.lower_is_better:
            low, high = -high, -low
        assert pair.verdict == ("better" if low > 0 else "worse" if high < 0 else "undecided")
        chance, sure = pair.chance_a_better, (1 + pair.level) / 2
        assert (pair.verdict == "better") == (chance >= sure - 1e-6 and chance > 0.5)
        bound = float(world.scores.scale.from_unit(0.6))
        names_its_question(
            fewbench.gate((world.evaluation, a), at_least=bound, fixed_items=fixed), fixed
        )
