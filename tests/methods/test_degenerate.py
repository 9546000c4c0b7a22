"""Tables in which hardly anything differs: a number between 0 and 1, or an error of ours."""

import numpy as np
import pytest

from fewbench import from_arrays
from fewbench.errors import FewbenchError
from fewbench.evaluation import Evaluation

RNG = np.random.default_rng(0)
ANSWERS = (RNG.random((25, 40)) < RNG.random((25, 1))).astype(float)
TABLES = {
    "one value": np.full((25, 40), 0.5),
    "another value": np.full((25, 40), 0.3),
    "all right": np.ones((25, 40)),
    "constant models": np.repeat(RNG.random((25, 1)), 40, axis=1),
    "constant items": np.repeat(RNG.random((1, 40)), 25, axis=0),
    "two values": np.where(RNG.random((25, 40)) < 0.5, 0.25, 0.75),
    "one model": np.repeat(ANSWERS[:1], 25, axis=0),
    "one model and its opposite": np.vstack([np.repeat(ANSWERS[:1], 24, axis=0), 1 - ANSWERS[:1]]),
    "rounding errors": 0.5 + 1e-12 * RNG.random((25, 40)),
    "exact curves": np.clip(np.add.outer(np.linspace(0.1, 0.4, 25), np.linspace(0, 0.5, 40)), 0, 1),
}
METHODS = (
    "fewbench", "fewbench-static", "aipw", "random-linear", "greedy-ridge", "anchor-points",
    "disco-pds-ridge", "tailored", "random-stratified",
)  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", TABLES)
def test_a_table_in_which_hardly_anything_differs(kind, method):
    scores = from_arrays(TABLES[kind], models=[f"m{at}" for at in range(25)])
    target = dict(zip(scores.item_ids, scores.values[3].tolist(), strict=True))
    try:
        evaluation = Evaluation(scores, method, 10)
        while asked := evaluation.ask():
            evaluation.tell("target", {item: target[item] for item in asked["target"]})
        estimate = evaluation.estimate(warn=False)["target"]
    except FewbenchError as error:
        assert error.hint  # noqa: PT017
        return
    assert 0 <= estimate.interval.low <= estimate.score <= estimate.interval.high <= 1
    if np.ptp(scores.values) == 0:
        assert estimate.score == pytest.approx(scores.values[0, 0], abs=0.01)
