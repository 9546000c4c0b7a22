"""Several answers of a model to one item."""

import itertools
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fewbench import from_arrays, load_scores, save_scores
from fewbench.errors import ScoresError
from fewbench.scores import Scores, from_long, open_saved
from fewbench.scores import files as scores_files
from fewbench.scores.repeats import Repeats, pass_at, pool_answers, reduce_answers


def rows(seed: int = 0, trials: int = 4) -> pd.DataFrame:
    """Return a long table with several answers of each model to each item."""
    rng = np.random.default_rng(seed)
    cells = itertools.product("abc", [f"q{at}" for at in range(9)], range(trials))
    table = pd.DataFrame(cells, columns=["model", "item", "trial"])
    return table.assign(score=rng.integers(0, 2, len(table)).astype(float))


def read(table: pd.DataFrame, trials: str | None) -> Scores:
    return from_long(table, model="model", item="item", score="score", trials=trials)


def test_answers_are_averaged_and_their_spread_is_kept() -> None:
    table = rows()
    scores = read(table, "mean")
    groups = table.groupby(["model", "item"], sort=False)["score"]
    assert scores.repeats is not None
    np.testing.assert_allclose(scores.values.ravel(), groups.mean())
    np.testing.assert_array_equal(scores.repeats.counts, 4)
    np.testing.assert_allclose(scores.repeats.variances.ravel(), groups.var())
    first = read(table, "first")
    np.testing.assert_array_equal(first.values.ravel(), groups.first())
    assert first.repeats is None


def test_on_another_scale_the_variance_is_of_scores_in_0_1() -> None:
    table = rows()
    unit = read(table, "mean")
    scaled = from_long(
        table.assign(score=100 - 100 * table["score"]), model="model", item="item", score="score",
        trials="mean", scale=scores_files.Scale(0, 100, lower_is_better=True),
    )  # fmt: skip
    np.testing.assert_allclose(scaled.values, unit.values)
    assert scaled.repeats is not None
    assert unit.repeats is not None
    np.testing.assert_allclose(scaled.repeats.variances, unit.repeats.variances)


@pytest.mark.parametrize(("n", "k"), [(4, 1), (4, 2), (5, 3), (3, 3)])
def test_pass_at_k_is_the_share_of_draws_with_a_right_answer(n: int, k: int) -> None:
    for c in range(n + 1):
        answers = [1.0] * c + [0.0] * (n - c)
        draws = [max(draw) for draw in itertools.combinations(answers, k)]
        assert pass_at(n, c, k) == pytest.approx(np.mean(draws))


def test_the_variance_of_pass_at_k_is_that_over_new_runs() -> None:
    rng, n, k = np.random.default_rng(1), 16, 2
    answers = (rng.random((4000, n)) < 0.3).astype(float)
    cells = np.repeat(np.arange(len(answers)), n)
    scores, counts, variances = reduce_answers(cells, answers.ravel(), len(answers), f"pass@{k}")
    assert scores.mean() == pytest.approx(1 - 0.7**2, abs=0.01)
    assert (variances / counts).mean() == pytest.approx(scores.var(), rel=0.1)


def test_one_answer_more_has_no_variance_of_pass_at_k() -> None:
    _, _, variances = reduce_answers(np.zeros(2, int), np.array([1.0, 0.0]), 1, "pass@2")
    assert np.isnan(variances).all()


@pytest.mark.parametrize(
    ("change", "trials", "message"),
    [
        (
            lambda t: t,
            None,
            "81 rows repeat a cell, .* of them with a different score.*--trials mean, pass@K",
        ),
        (lambda t: t.assign(score=1), None, "the same score.*delete the repeated rows; or"),
        (lambda t: t, "pass@5", "pass@5 needs 5 answers.*27 items have fewer, the fewest 4"),
        (lambda t: t.assign(score=0.5), "pass@2", "some are fractions"),
        (lambda t: t, "median", "trials cannot be 'median'"),
        (lambda t: t, "pass@0", "trials cannot be"),
    ],
)
def test_what_cannot_be_reduced(
    change: Callable[[pd.DataFrame], pd.DataFrame], trials: str | None, message: str
) -> None:
    with pytest.raises(ScoresError) as caught:
        read(change(rows()), trials)
    assert re.search(message, f"{caught.value.message} {caught.value.hint}")


@pytest.mark.parametrize("is_large", [False, True])
def test_a_file_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_large: bool) -> None:
    if is_large:
        monkeypatch.setattr(scores_files, "is_large", lambda _: True)
    table = rows()
    scores = read(table[~((table["model"] == "a") & (table["trial"] > 0))], "mean")
    path = save_scores(scores, tmp_path / "scores.parquet")
    for again in (load_scores(path), open_saved(path)):
        assert again.repeats is not None
        assert scores.repeats is not None
        np.testing.assert_array_equal(again.repeats.counts, scores.repeats.counts)
        np.testing.assert_array_equal(again.repeats.variances, scores.repeats.variances)
        assert again.equals(scores)
    part = scores.take(models=[1, 2], items=[3, 4])
    assert part.repeats is not None
    np.testing.assert_array_equal(part.repeats.counts, 4)
    assert scores.take(models=[0]).repeats is None  # the model that answered once


def test_the_number_of_answers_is_part_of_a_table() -> None:
    plain = from_arrays([[0.5, 1.0]], models=["a"])
    counts = Repeats.from_counts(np.array([[2, 2]]), np.array([[0.5, 0.0]]))
    assert not plain.changed(repeats=counts).equals(plain)
    with pytest.raises(ScoresError, check=lambda error: error.kind == "conflict"):
        from_arrays([[0.5]], models=["a"]).changed(repeats=counts)


def test_pooled_parts_are_as_all_answers_at_once() -> None:
    rng = np.random.default_rng(2)
    answers = rng.random((5, 3))
    expected = answers.mean(axis=0), answers.var(axis=0, ddof=1)
    two = answers[:2].mean(axis=0), np.full(3, 2.0), answers[:2].var(axis=0, ddof=1)
    single = [(row, np.ones(3), np.full(3, np.nan)) for row in answers[2:]]
    scores, counts, variances = pool_answers([two, *single])
    np.testing.assert_allclose(scores, expected[0])
    np.testing.assert_array_equal(counts, 5)
    np.testing.assert_allclose(variances, expected[1])
