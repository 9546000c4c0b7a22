"""Items that belong together: what audit names, and the error of verdicts on models."""

import numpy as np
import pytest

from fewbench import audit, from_arrays, versus
from fewbench.errors import ReaderError
from fewbench.readers.attributes import in_clusters
from fewbench.scores import Scores
from fewbench.uncertainty.question_error import of_one_score

PASSAGES, EACH = 40, 5


def passages(together: float, seed: int = 0, n_models: int = 12, spread: float = 0.3) -> Scores:
    """Return answers to several questions on each passage, which models know or do not."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(size=(n_models, 1)) * spread
    known = np.repeat(rng.normal(size=(n_models, PASSAGES)), EACH, axis=1)
    noise = rng.normal(size=known.shape)
    logits = ability + together * known + np.sqrt(1 - together**2) * noise
    scores = from_arrays((logits > 0).astype(float), models=[f"m{at}" for at in range(n_models)])
    names = np.repeat([f"p{at}" for at in range(PASSAGES)], EACH)
    return scores.changed(items=scores.items.assign(passage_id=names, number=np.arange(200) % 50))


def test_audit_names_a_column_of_clusters() -> None:
    found = audit(passages(0.7)).of_kind("clusters")
    assert found is not None
    assert "passage_id (40 values) looks like clusters" in found.what
    assert "--by passage_id" in found.advice
    assert found.table is not None
    assert [row[0] for row in found.table.rows] == ["passage_id"]
    plain = passages(0.0)
    unnamed = plain.changed(items=plain.items.rename(columns={"passage_id": "block"}))
    assert audit(unnamed).of_kind("clusters") is None
    stated = audit(in_clusters(passages(0.7), "passage_id")).of_kind("clusters")
    assert stated is not None
    assert stated.what == "200 items in 40 clusters of items that belong together"


def test_a_column_that_makes_no_clusters_is_refused() -> None:
    scores = passages(0.0)
    items = scores.items.assign(same="x", own=scores.items.index)
    for name, message in (
        ("same", "the same for all"),
        ("own", "different for all"),
        ("no", "no co"),
    ):
        with pytest.raises(ReaderError, match=message):
            in_clusters(scores.changed(items=items), name)
    gaps = items.assign(some=["p", "p", *[""] * 198])
    clusters = in_clusters(scores.changed(items=gaps), "some").cluster_of
    assert clusters is not None
    assert len(np.unique(clusters)) == 199  # an empty one is by itself


def test_versus_counts_no_item_of_a_passage_by_itself() -> None:
    scores = passages(0.8, seed=3)
    plain = versus("m0", "m1", scores=scores)
    clustered = versus("m0", "m1", scores=in_clusters(scores, "passage_id"))
    half = [(found.interval.high - found.interval.low) / 2 for found in (plain, clustered)]
    assert half[1] > 1.3 * half[0]
    fixed = versus("m0", "m1", scores=in_clusters(scores, "passage_id"), fixed_items=True)
    assert fixed.interval == versus("m0", "m1", scores=scores, fixed_items=True).interval


@pytest.mark.parametrize("n", [100, 200])
def test_the_error_of_a_score_is_that_over_new_passages(n: int) -> None:
    rng, clustered, plain, means = np.random.default_rng(1), [], [], []
    for seed in range(150):
        table = passages(0.8, seed, n_models=1, spread=0.0)
        items = np.sort(rng.permutation(200)[:n])
        answers = table.values[0, items]
        for variances, scores in ((plain, table), (clustered, in_clusters(table, "passage_id"))):
            error = of_one_score(scores, items, answers, float(answers.mean()))
            variances.append(error.variance)
        means.append(table.values[0].mean())
    assert np.mean(clustered) == pytest.approx(np.var(means), rel=0.35)
    assert np.mean(plain) < 0.6 * np.mean(clustered)
