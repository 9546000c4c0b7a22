"""The ratio that corrects for chosen items that are easier than all."""

import numpy as np
import pytest

from fewbench.methods import Answers, Subset
from fewbench.scores import from_arrays
from fewbench_papers.bento.ratio import AnchorRatio

VALUES = np.array([[1, 1, 0, 0, 1.0], [1, 0, 0, 0, 0.5], [0, 0, 0, 0, 0.0]])


def table(average="micro", values=VALUES):
    models = [f"m{at}" for at in range(len(values))]
    scores = from_arrays(values, models=models, tasks=["x", "x", "x", "y", "y"])
    return scores.averaged(average)


def predict(said, average="micro", items=(0, 4), weights=None, scores=None):
    scores = table(average) if scores is None else scores
    names = tuple(scores.item_ids[list(items)])
    fitted = AnchorRatio().fit(scores, Subset(items=names, weights=weights), 0)
    at = np.array(items)
    return fitted.predict(Answers(at, np.atleast_2d(said)))


def test_ratio_of_all_past_models_by_hand():
    """Sums over models: full .6 + .3 + 0, on items 0 and 4 1 + .75 + 0."""
    assert predict([1.0, 0.5]).scores[0] == pytest.approx(0.75 * 0.9 / 1.75)


def test_with_a_mean_over_tasks():
    """Items weigh 1/6 in x and 1/4 in y; the models score 2/3, 1/3, 0 on x and 1/2, 1/4, 0 on y."""
    full = (2 / 3 + 1 / 2 + 1 / 3 + 1 / 4) / 2
    chosen = (2 / 6 + 1.5 / 4) / (1 / 6 + 1 / 4)
    said = (0.2 / 6 + 0.4 / 4) / (1 / 6 + 1 / 4)
    assert predict([0.2, 0.4], "macro").scores[0] == pytest.approx(said * full / chosen)


def test_with_the_subset_s_weights():
    found = predict([0.4, 0.8], weights=(3.0, 1.0))
    assert found.scores[0] == pytest.approx(0.5 * 0.9 / ((3 * 2 + 1.5) / 4))


def test_no_score_is_above_1():
    hard = table(values=np.array([[0, 1, 1, 1, 0.5], [0, 1, 1, 1, 0.5]]))
    assert predict([1.0, 1.0], scores=hard).scores[0] == 1.0


def test_without_a_right_answer_there_is_no_ratio():
    nothing = table(values=np.array([[0, 1, 1, 1, 0.0], [0, 1, 0, 1, 0.0]]))
    assert predict([1.0, 0.0], scores=nothing).scores[0] == 0.5


def test_task_scores_are_the_means_of_their_items():
    found = predict([1.0, 0.5], items=(0, 4))
    assert found.tasks.tolist() == [[1.0, 0.5]]
