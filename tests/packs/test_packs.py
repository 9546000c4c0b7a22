"""A pack estimates as the table does, and says what it cannot do."""

import json
from dataclasses import replace

import numpy as np
import pytest

import fewbench
from fewbench.errors import EvaluationError, PackError
from fewbench.scores.table import PROMPTS
from fewbench.testing import simulate

N = 12
TABLE = simulate(23, 90, 3, seed=2)
SOURCES, NEW = TABLE.take(range(22)), TABLE.take([22])


@pytest.fixture(autouse=True)
def _few_other_methods(monkeypatch, request):
    """Measure errors quickly: as in full for one method, on fewer divisions for the others."""
    if "anchor-points" not in request.node.name:
        monkeypatch.setattr("fewbench.uncertainty.held_out.DIVISIONS", 1)


def fractions(scores):
    rng = np.random.default_rng(0)
    return replace(
        scores, values=np.round(0.8 * scores.values + 0.2 * rng.random(scores.values.shape), 2)
    )


def gaps(scores):
    values = scores.values.copy()
    values[3, 5], values[8, ::3] = np.nan, np.nan
    return replace(scores, values=values)


def evaluated(evaluation, answers, most=N):
    """The evaluation after a target's answers, at most so many."""
    while asked := evaluation.ask(most - len(evaluation.record.answered("new"))):
        evaluation.tell("new", {item: answers[item] for item in asked["new"]})
        if len(evaluation.record.answered("new")) >= most:
            break
    return evaluation


def packed(path, *args, **kwargs):
    made = fewbench.pack(*args, backtest=False, **kwargs)
    return fewbench.open_pack(made.save(path, force=True))


METHODS = {
    "random": SOURCES,
    "random-stratified": SOURCES.averaged("macro"),
    "anchor-points": gaps(SOURCES),
    "greedy-ridge": fractions(SOURCES),
    "random+ability": SOURCES,
    "gp-irt-random": gaps(SOURCES),
    "ssepy-difference": SOURCES,
    "aipw": fractions(SOURCES),
    "fewbench": gaps(SOURCES),
    "random+mean": fractions(SOURCES),
}


@pytest.mark.parametrize("method", METHODS)
def test_a_pack_estimates_as_the_table_does(method, tmp_path):
    table = METHODS[method]
    answers = dict(zip(NEW.item_ids, NEW.values[0].tolist(), strict=True))
    pack = packed(tmp_path / "a.few", table, method, N)
    for most in (N, int(0.64 * N) + 1):
        by_pack = evaluated(pack.start(["new"]), answers, most)
        by_table = evaluated(fewbench.Evaluation(table, method, N, ["new"]), answers, most)
        assert by_pack.record.asked("new").tolist() == by_table.record.asked("new").tolist()
        ours, theirs = (one.estimate()["new"].model_dump() for one in (by_pack, by_table))
        assert ours.pop("warnings") == theirs.pop("warnings")
        ours, theirs = (np.array(numbers(one)) for one in (ours, theirs))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)


def numbers(tree):
    """All numbers of a nested record, in order."""
    if isinstance(tree, dict):
        return [one for value in tree.values() for one in numbers(value)]
    return [float(tree)] if isinstance(tree, (int, float)) else []


def test_a_pack_is_an_item_set_unless_an_adaptive_method_is_named(tmp_path):
    """Models that answer differently run the same items; a pack without a set says so."""
    sets, shown = {}, {}
    for method in ((), ("fewbench",)):
        pack = packed(tmp_path / "a.few", SOURCES, *method, budget=40)
        evaluation = pack.start(["a", "b", "c"])
        while asked := evaluation.ask():
            for at, (name, items) in enumerate(asked.items()):
                evaluation.tell(name, {item: float(hash_of(item) % 4 > at) for item in items})
        sets[method] = {frozenset(evaluation.record.asked(name).tolist()) for name in "abc"}
        shown[method] = (str(pack), pack.to_dict()["benchmarks"][0])
    assert len(sets[()]) == 1
    text, row = shown[()]
    assert (row["method"], row["asks"], len(row["chosen_items"])) == ("fewbench-static", "once", 40)
    assert "as it answers" not in text
    text, row = shown[("fewbench",)]
    assert len(sets[("fewbench",)]) == 3
    assert (row["asks"], row["chosen_items"]) == ("in rounds", None)
    assert text.startswith("40 of 90 items in place of all, chosen for each model as it answers")
    assert "two models share only a part of them" in " ".join(row["notes"])


def hash_of(item):
    return int(item.removeprefix("item-")) * 7919 % 97


def test_a_pack_holds_nothing_twice_and_nothing_unused(tmp_path):
    """Of an item response model no sources; errors in single precision."""
    arrays = packed(tmp_path / "a.few", gaps(SOURCES), "gp-irt-random", N).parts[0].arrays
    learned = {name.split()[-1] for name in arrays if "item response" in name}
    assert learned == {"discrimination", "intercept", "cuts"}
    assert {arrays[f"errors/{name}"].dtype for name in ("errors", "units")} == {np.dtype("f4")}


def test_what_needs_no_table_works_on_a_pack(tmp_path):
    pack = packed(tmp_path / "a.few", SOURCES, "greedy-ridge", N)
    evaluation = pack.start(["a", "b"])
    by_table = fewbench.Evaluation(SOURCES, "greedy-ridge", N, ["a", "b"])
    for each in (evaluation, by_table):
        for at, (name, items) in enumerate(each.ask().items()):
            each.tell(name, {item: float(hash_of(item) % 3 > at) for item in items})
    found = fewbench.versus((evaluation, "a"), (evaluation, "b"), fixed_items=True)
    whole = fewbench.versus((by_table, "a"), (by_table, "b"), fixed_items=True)
    assert found.interval == whole.interval
    assert found.random is None
    assert whole.random is not None
    assert [one.target for one in fewbench.rank(evaluation).targets] == ["a", "b"]
    for use in (
        lambda: fewbench.versus((evaluation, "a"), SOURCES.model_ids[0]),
        lambda: fewbench.rank(evaluation, models=SOURCES.model_ids[:1]),
        lambda: fewbench.versus((evaluation, "a"), (evaluation, "b"), next_items=5),
    ):
        with pytest.raises(PackError, match="chosen items only"):
            use()


def test_it_holds_the_items_identity_and_nothing_of_their_texts(tmp_path):
    secret = [f"What is {at}?" for at in range(90)]
    items = SOURCES.items.assign(text=secret, group=["g", "h"] * 45, doc_id=range(90))
    items[PROMPTS] = [f"{at:04x}" for at in range(90)]
    models = SOURCES.models.assign(family=["f", "g"] * 11)
    models.index = [f"org/own-{at}" for at in range(22)]
    table = replace(SOURCES, items=items, models=models)
    pack = packed(tmp_path / "a.few", table, "greedy-ridge", N, anonymous=True, license="MIT")
    scores = pack.scores()
    chosen = scores.origin.subset["items"]
    assert scores.items["doc_id"].tolist() == list(range(90))
    assert (scores.items.loc[chosen, PROMPTS] == items.loc[chosen, PROMPTS]).all()
    assert (scores.items[PROMPTS] == "").sum() == 90 - N
    assert scores.items["content_hash"].nunique() == 90
    assert "text" not in scores.items
    shown = pack.to_dict()
    assert (shown["license"], shown["benchmarks"][0]["models"]) == ("MIT", [])
    described = (tmp_path / "a.few").read_bytes() + json.dumps(shown).encode()
    described += repr(pack.parts[0].record).encode()
    for word in ("What is", "org/own-5"):
        assert word.encode() not in described
    assert repr(scores).startswith("Scores: 22 models × 90 items, 3 tasks")
    # What is not in it is refused, and never taken for a result.
    for use in (
        lambda: scores.values,
        lambda: scores.take(models=[0]),
        lambda: scores.changed(items=scores.items),
        lambda: fewbench.load_scores(tmp_path / "a.few"),
        lambda: scores.columns(np.setdiff1d(np.arange(90), scores.positions(chosen))),
        lambda: scores.remember("what nobody learned", lambda: scores.filled.mean()),
        lambda: scores.averaged("macro"),
        lambda: fewbench.compare(scores, ["random"], [5]),
        lambda: fewbench.pack(scores),
    ):
        with pytest.raises(PackError):
            use()
    for wrong in ({"budget": 5}, {"method": "random"}, {"seed": 7}):
        with pytest.raises(EvaluationError, check=lambda error: error.kind == "changed"):
            fewbench.Evaluation(scores, **wrong)


def test_one_pack_of_every_benchmark(tmp_path):
    pack = packed(tmp_path / "all.few", SOURCES, "random-ridge", 9, by="task")
    assert pack.names == tuple(SOURCES.tasks)
    assert len(pack.to_frame()) == 3
    one = fewbench.open_pack(f"{tmp_path}/all.few:{SOURCES.tasks[1]}").scores()
    assert one.n_items == (SOURCES.task_of == 1).sum()
    found = fewbench.run(one, score=lambda item: 1)
    assert found.targets["target"].items_run == 9
    for path in ("all.few", "all.few:tusk-1", "none.few"):
        with pytest.raises(PackError):
            fewbench.load_scores(tmp_path / path)
    with pytest.raises(PackError, match="did you mean task"):
        fewbench.pack(SOURCES, by="tsk")


def test_a_pack_of_a_share_of_the_items():
    table = simulate(30, 200, n_tasks=2, seed=1)
    sizes = np.bincount(table.task_of)
    made = fewbench.pack(table, "greedy-ridge", "20%", backtest=False)
    wanted = sum(max(20, int(np.ceil(0.2 * size))) for size in sizes)
    assert made.to_frame().loc["benchmark", "items"] == wanted


def test_the_backtest_of_a_pack_and_methods_that_cannot_be_packed():
    pack = fewbench.pack(SOURCES, "random-ridge", 9)
    rows = pack.backtest().set_index("target")
    assert {"like", "stronger"} <= set(rows.index)
    assert (rows["error"] > 0).all()
    assert rows["coverage"].between(0, 1).all()
    rng = np.random.default_rng(0)
    options = rng.dirichlet(np.ones(3), SOURCES.values.shape)
    told = fewbench.from_arrays(SOURCES.values, models=SOURCES.model_ids, probabilities=options)
    with pytest.raises(PackError, check=lambda error: error.kind == "unsupported"):
        fewbench.pack(told, "random+signature+ridge", 9)


@pytest.mark.parametrize(
    ("method", "error", "advice"),
    [
        ("random-ridge", 0.041, "fewbench, fewbench-static or aipw"),
        ("fewbench-static", 0.041, "random"),  # and not fewbench, which says the same of it
        ("random-ridge", 0.02, ""),
    ],
)
def test_a_method_that_is_worse_for_stronger_targets_says_so(method, error, advice):
    """In the pack's page and before a run; the others do not."""
    made = fewbench.pack(SOURCES, method, N, backtest=False)
    (part,) = made.parts
    row = {"target": "stronger", "error": error, "random_error": 0.026, "coverage": 0.53}
    row |= {"level": 0.9, "repeats": 3, "targets": 4.0, "sources": 16.0}
    record = part.record.model_copy(update={"backtest": [row]})
    made = replace(made, parts=(replace(part, record=record),))
    warning = (
        f"for targets stronger than all source models, the error of {method} is 4.1 pp, random "
        f"sampling's 2.6 pp, and its interval covers only 53%: use {advice} for such targets"
    )
    expected = [warning] if error > 0.026 else []
    assert made.page().warnings == expected
    assert [one for one in made.start().warnings() if "stronger than" in one] == expected
    twice = replace(
        made, parts=(*made.parts, replace(part, record=record.model_copy(update={"name": "b"})))
    )
    found = twice.page().warnings
    assert len(found) == len(expected)
    assert not found or found[0].startswith("in 2 benchmarks the method is worse than random")


def test_refreshing_says_which_answers_are_not_used(tmp_path):
    """Also without the run's own sources, and for a target that answered nothing of the pack."""
    packed(tmp_path / "old.few", SOURCES, "random", 60)
    made = packed(tmp_path / "new.few", SOURCES, "greedy-ridge", N)
    evaluation = fewbench.open_pack(tmp_path / "old.few").start(["new", "silent"])
    evaluation.save(tmp_path / "run", tmp_path / "old.few")
    answers = dict(zip(NEW.item_ids, NEW.values[0].tolist(), strict=True))
    asked = evaluation.ask()["new"]
    evaluation.tell("new", {item: answers[item] for item in asked})
    (tmp_path / "old.few").unlink()
    found = fewbench.refresh_pack(tmp_path / "run", tmp_path / "new.few")
    used = len(set(asked) & set(made.parts[0].record.subset["items"]))
    assert found["new"].before is None
    assert found["new"].items_run == used
    said = " ".join(found["new"].warnings)
    assert f"{used} of 60 answers used: the new pack does not ask for the other items" in said
    assert "silent: no answer to an item of the new pack" in said
    assert "give no estimate" in said


def test_refreshing_an_old_run(tmp_path):
    answers = dict(zip(NEW.item_ids, NEW.values[0].tolist(), strict=True))
    old, new = SOURCES.take(range(18)), SOURCES
    for method in ("random-ridge", "fewbench"):
        packed(tmp_path / "old.few", old, method, N)
        packed(tmp_path / "new.few", new, method, N)
        evaluation = fewbench.Evaluation(
            fewbench.open_pack(tmp_path / "old.few").scores(), targets=["new"]
        )
        evaluation.save(tmp_path / method, tmp_path / "old.few")
        evaluated(evaluation, answers)
        wrong = evaluation.items("new").query("score == 0").index
        again = {item: answers[item] for item in wrong[:2]}
        evaluation.tell("new", again, replies=dict.fromkeys(again, "cut"))
        found = fewbench.refresh_pack(tmp_path / method, tmp_path / "new.few")
        estimate = found["new"]
        assert "replies were cut at the token limit" in " ".join(estimate.warnings)
        assert found.to_frame().loc["new", "before"] == estimate.before != estimate.score
        assert estimate.before == evaluation.estimate()["new"].score
        assert estimate.items_run == N
        assert f"Before, new scored {estimate.before:.1%}" in str(found)
        with pytest.raises(EvaluationError, match=r"22 source.*90 i"):
            fewbench.Evaluation.open(tmp_path / method, tmp_path / "new.few")
    other = replace(SOURCES, items=SOURCES.items.set_axis([f"q{i}" for i in range(90)]))
    packed(tmp_path / "other.few", other, "random", 5)
    with pytest.raises(PackError, check=lambda error: error.kind == "changed"):
        fewbench.refresh_pack(tmp_path / "fewbench", tmp_path / "other.few")
