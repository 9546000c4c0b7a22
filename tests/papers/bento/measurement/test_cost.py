"""What a design costs agrees with the prompts that it makes."""

from itertools import pairwise

import pytest

from fewbench.errors import RunError
from fewbench_papers.bento.measurement.cost import Prices, cost_of, repaid_after


def written(design):
    return [(r, design.prompt(r)) for r in design.requests()]


@pytest.mark.parametrize("metric", ["accuracy", "loss", "exact-match"])
def test_estimates_follow_from_the_prompts_themselves(design, metric):
    made = design("abcd", metric=metric, questions=5, columns=3)
    prompts = written(made)
    cost = cost_of(made)
    assert cost.prompts == cost.requests == len(prompts) == len(made)
    characters = sum(len(prompt) for _, prompt in prompts)
    if metric == "loss":
        characters += sum(len(made.template.continuation(made.question(r))) for r, _ in prompts)
    assert cost.prompt_tokens == round(characters / 4)
    assert cost.completion_tokens == len(prompts)
    assert cost.tokens == cost.prompt_tokens + cost.completion_tokens


def test_what_prompts_share_with_the_one_before(design):
    made = design("abc")
    pairs = written(made)
    shared = sum(
        len(made.context(b.source, b.seed))
        for (a, _), (b, _) in pairwise(pairs)
        if (a.source, a.seed) == (b.source, b.seed)
    )
    assert cost_of(made).shared_tokens == round(shared / 4)


def test_options_one_by_one(design, task):
    made = design(tasks=[task("a", options=("x", "y")), task("b", options=("x", "y", "z", "w"))])
    cost = cost_of(made, one_by_one=True)
    requests = sum(len(made.question(r).options) for r in made.requests())
    assert cost.prompts == len(made)
    assert cost.requests == requests == 3 * len(made)
    characters = sum(len(p) * len(made.question(r).options) for r, p in written(made))
    assert cost.prompt_tokens == round(characters / 4)
    assert cost.shared_tokens > cost_of(made).prompt_tokens


def test_passes_are_of_the_whole_benchmark(design, task):
    made = design(tasks=[task("a", 100, pool=9), task("b", 50, pool=9)], questions=None, seeds=3)
    assert cost_of(made).passes == 6.0
    assert cost_of(made).benchmark == 150


def test_money(design):
    made = design()
    cost = cost_of(made, Prices(2.0, 5.0))
    assert cost.money == pytest.approx((2 * cost.prompt_tokens + 5 * cost.completion_tokens) / 1e6)
    assert cost_of(made, Prices(prompt=3.0)).money == 3 * cost.prompt_tokens / 1e6
    assert cost_of(made).money is None
    for price in (-1.0, float("nan"), float("inf")):
        with pytest.raises(RunError, match="price"):
            Prices(price)


def test_break_even_of_the_paper(design, task):
    """570 passes for 57 tasks are repaid after about 600 models on 3 tasks."""
    tasks = [task(f"t{at}", 20, pool=5) for at in range(57)]
    made = design(tasks=tasks, seeds=10, questions=None)
    assert cost_of(made).passes == 570
    assert repaid_after(made, 3) == 602  # 570 / (1 - 3 / 57)
