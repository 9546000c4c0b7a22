"""Submissions that are verified: what a rerun proves, and how often it is wrong."""

import numpy as np
import pytest

import fewbench
from fewbench.errors import AnswersError, EvaluationError
from fewbench.testing import simulate

TABLE = simulate(30, 200, 2, seed=1)
NAME = TABLE.model_ids[20]
ROW = TABLE.values[20]


def rerun(answers):
    return dict(zip(TABLE.item_ids, answers.tolist(), strict=True))


def verified(answers, **how):
    return fewbench.verify(NAME, rerun(answers), scores=TABLE, **{"seed": 5} | how)


def test_what_is_proven_is_rarely_wrong_and_as_often_right_as_stated():
    """Answers that vary are no proof; of false answers, as many are proven as the page says."""
    rng, n = np.random.default_rng(3), 120
    chance = rng.uniform(0.2, 0.9, TABLE.n_items)
    honest, false, covered = [], [], []
    for seed in range(n):
        submitted, again = rng.random((2, TABLE.n_items)) < chance
        table = fewbench.from_arrays([submitted], models=["a"], items=TABLE.item_ids)
        how = {"seed": seed, "budget": 30, "level": 0.9, "scores": table}
        honest.append(fewbench.verify("a", rerun(1.0 * again), **how).verdict)
        wrong = rng.permutation(TABLE.n_items)[: TABLE.n_items // 5]
        table = np.where(np.isin(np.arange(TABLE.n_items), wrong), 1.0, 0.0)
        how["scores"] = fewbench.from_arrays([table], models=["a"], items=TABLE.item_ids)
        found = fewbench.verify("a", rerun(np.zeros(TABLE.n_items)), **how)
        false.append(found.verdict)
        covered.append(found.higher.low <= 0.2 <= found.higher.high)
    assert honest.count("inflated") <= 0.1 * n
    assert sum(covered) >= 0.9 * n
    stated = {c.false_share: c.proven for c in found.chances}[0.2]
    assert false.count("inflated") / n == pytest.approx(stated, abs=0.12)


def test_one_difference_proves_it_of_a_model_without_randomness():
    again = ROW.copy()
    item = fewbench.verify(NAME, seed=5, scores=TABLE).items[0]
    at = TABLE.positions([item])[0]
    row = TABLE.values[20].copy()
    again[at] = 0.0
    row[at] = 1.0
    table = fewbench.from_arrays([row], models=[NAME], items=TABLE.item_ids)
    how = {"seed": 5, "scores": table}
    assert fewbench.verify(NAME, rerun(again), **how).verdict == "not proven"
    found = fewbench.verify(NAME, rerun(again), noise=0.0, **how)
    assert (found.verdict, found.exit_code, found.p_value) == ("inflated", 1, 0.0)
    assert [row.item for row in found.different] == [item]
    assert found.chances[1].proven == found.chances[1].seen
    # Worse answers than the rerun's are no inflation.
    turned = fewbench.verify(NAME, rerun(np.ones(200)), noise=0.0, **how)
    assert (turned.verdict, turned.n_higher) == ("not proven", 0)


def test_the_draw_follows_from_the_seed_and_the_items_alone():
    drawn = fewbench.verify(NAME, seed=5, budget=30, scores=TABLE).items
    turned = TABLE.take(items=np.arange(200)[::-1])
    assert fewbench.verify(NAME, seed=5, scores=turned).items == drawn[:20]
    assert fewbench.verify(NAME, seed=6, budget=30, scores=TABLE).items != drawn


def test_a_submission_of_a_pack_and_missing_reruns(tmp_path):
    pack = fewbench.pack(TABLE.take(models=range(29)), budget=40, backtest=False).scores()
    evaluation = fewbench.Evaluation(pack, targets=["new"])
    asked = evaluation.ask()["new"]
    evaluation.tell("new", dict.fromkeys(asked, 1.0))
    found = fewbench.verify(evaluation, seed=1, budget=10)
    assert set(found.items) <= set(asked)
    assert found.items_submitted == 40
    part = dict.fromkeys(found.items[:8], 0.0)
    with pytest.warns(fewbench.EstimateWarning, match="2 drawn items without an answer"):
        found = fewbench.verify(evaluation, part, seed=1, budget=10)
    assert (found.items_rerun, found.verdict) == (8, "inflated")
    with pytest.raises(AnswersError, match="ran again"):
        fewbench.verify(evaluation, {"x": 1.0}, seed=1)
    with pytest.raises(EvaluationError, match="40 answers"):
        fewbench.verify(evaluation, seed=1, budget=41)


def test_answers_that_ignore_difficulty_are_a_hint_only():
    rng = np.random.default_rng(0)
    shuffled = ROW[rng.permutation(TABLE.n_items)]
    values = np.vstack([TABLE.values, shuffled])
    table = fewbench.from_arrays(values, items=TABLE.item_ids, models=[*TABLE.model_ids, "fake"])
    found = fewbench.verify("fake", rerun(shuffled), seed=2, scores=table)
    assert (found.fit, found.verdict) == (0.0, "not proven")
    assert "A hint, and no proof" in str(found)
    assert fewbench.verify(NAME, seed=2, scores=table).fit > 0
