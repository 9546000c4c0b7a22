"""What is printed on further items does not ask for what was given already."""

import pytest

import fewbench
from fewbench.evaluation import Evaluation
from fewbench.testing import simulate


@pytest.fixture(scope="module")
def close():
    """Two targets that 20 answers do not tell apart, though all items may."""
    table = simulate(2, 2000, seed=4)
    evaluation = Evaluation(table.benchmark, "fewbench", 20, ["one", "two"])
    for n, (name, items) in enumerate(evaluation.ask().items()):
        right = [float(at % 2 < 1 or at < 4 * n) for at in range(len(items))]
        evaluation.tell(name, dict(zip(items, right, strict=True)))
    return evaluation


@pytest.mark.parametrize(
    "decide",
    [
        lambda pair, **how: fewbench.rank(pair, **how),
        lambda pair, **how: fewbench.versus((pair, "one"), (pair, "two"), **how),
        lambda pair, **how: fewbench.gate((pair, "one"), at_least=0.45, **how),
    ],
    ids=["rank", "versus", "gate"],
)
def test_sequential_is_advised_only_where_it_is_not_given(close, decide):
    assert "--next-items" in str(decide(close, fixed_items=True))
    assert "--sequential from now on" in str(decide(close, fixed_items=True)).replace("\n", " ")
    assert "--sequential" not in str(decide(close, fixed_items=True, sequential=True))
