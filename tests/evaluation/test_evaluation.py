"""The evaluation that a user holds: ask, tell, estimate, and what it refuses."""

import json
from dataclasses import replace

import numpy as np
import pytest

from fewbench.errors import AnswersError, EvaluationError, FewbenchError, MethodError, ScoresError
from fewbench.evaluation import Evaluation
from fewbench.evaluation.estimate import Estimate
from fewbench.evaluation.selecting import select_items
from fewbench.methods import Subset
from fewbench.packs import pack
from fewbench.scores import Scale, from_arrays, save_scores
from fewbench.testing import simulate
from fewbench.uncertainty.resemblance import resemblance_of
from fewbench.uncertainty.sampling import exact_interval, standard_error


@pytest.fixture
def table():
    return simulate(15, 30, seed=1)


def answers_of(targets, name, items):
    row = targets.model_positions([name])[0]
    return dict(zip(items, targets.values[row, targets.positions(items)].tolist(), strict=True))


def answer(evaluation, targets):
    while asked := evaluation.ask():
        for name, items in asked.items():
            evaluation.tell(name, answers_of(targets, name, items))
    return evaluation.estimate()


NAMES = ["model-13", "model-14"]


# -- opening ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"targets": ["model-03"]}, EvaluationError, "'model-03' is a source model already"),
        ({"targets": []}, EvaluationError, "no target"),
        ({"targets": ["a", " "]}, EvaluationError, "one without a name"),
        ({"targets": ["a", "a"]}, EvaluationError, "given twice"),
        ({"targets": "new"}, EvaluationError, "use ['new']"),
        ({"budget": 0}, MethodError, "use a budget from 1 to 30"),
        ({"budget": 31}, MethodError, "use a budget from 1 to 30"),
        ({"seed": -1}, EvaluationError, "negative"),
        ({"method": "nope"}, MethodError, "unknown method 'nope'"),
    ],
)
def test_what_cannot_be_opened(sources, change, error, says):
    with pytest.raises(error) as caught:
        Evaluation(**{"scores": sources, "method": "random", "budget": 5, **change})
    assert says in str(caught.value)


def test_a_subset_that_was_chosen_before(sources, targets):
    first = Evaluation(sources, "anchor-points", 6, NAMES)
    again = Subset.from_json(first.subset.to_json())
    second = Evaluation(sources, "anchor-points", 6, NAMES, subset=again)
    assert second.ask() == first.ask()
    assert answer(second, targets) == answer(first, targets)
    by_hand = Evaluation(
        sources, "random-ridge", 2, NAMES, subset=Subset(items=("item-3", "item-9"))
    )
    assert by_hand.ask()["model-13"] == ["item-3", "item-9"]


def test_a_subset_goes_on_with_scores_that_changed(sources, targets):
    """As far as it needs them: random items need no models, chosen ones only to be there."""
    fewer = sources.take(models=np.arange(9))
    for method, is_chosen in (("random", False), ("random-ridge", False), ("greedy-ridge", True)):
        subset = Evaluation(sources, method, 6).subset
        evaluation = Evaluation(fewer, method, 6, NAMES, subset=subset)
        assert evaluation.subset.items == subset.items
        assert evaluation.provenance.fingerprint == fewer.fingerprint
        answer(evaluation, targets)
        said = " ".join(evaluation.estimate()[NAMES[0]].warnings)
        assert ("the items were chosen from other scores" in said) == is_chosen
        lost = sources.positions([item for item in sources.item_ids if item != subset.items[0]])
        with pytest.raises(EvaluationError, match=f"the 6 chosen .* scores: '{subset.items[0]}'"):
            Evaluation(sources.take(items=lost), method, 6, subset=subset)


def test_a_subset_that_does_not_fit(sources, two_rounds):
    subset = Evaluation(sources, "random", 6).subset
    with pytest.raises(EvaluationError, match=r"6 items.*5"):
        Evaluation(sources, "random", 5, subset=subset)
    moved = subset.model_copy(update={"items": tuple(map(str, sources.item_ids[:6]))})
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "changed"):
        Evaluation(sources.take(models=np.arange(9)), "random", 6, subset=moved)
    half = sources.take(items=range(sources.n_items // 2))
    own = Subset(items=tuple(half.item_ids[:6]), chances=(6 / half.n_items,) * 6)
    given = Evaluation(half, "aipw", 6, subset=own).subset
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "changed"):
        Evaluation(sources, "aipw", 6, subset=given)
    with pytest.raises(ScoresError, match="'nope'"):
        Evaluation(sources, "random", 1, subset=Subset(items=("nope",)))
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "conflict"):
        Evaluation(sources, two_rounds, 6, subset=subset)
    assert Evaluation(sources, two_rounds, 6).subset is None


# -- telling ---------------------------------------------------------------------------------------


def test_tell_counts_what_is_left(sources):
    evaluation = Evaluation(sources, "random", 5, NAMES)
    asked = evaluation.ask()["model-13"]
    assert evaluation.tell("model-13", {}) == 5
    assert evaluation.tell("model-13", {asked[3]: 1}) == 4
    assert evaluation.ask()["model-13"] == [*asked[:3], asked[4]]
    assert evaluation.tell("model-13", dict.fromkeys(asked, 1.0)) == 0
    assert evaluation.ask() == {"model-14": asked}
    assert evaluation.tell("model-13", {asked[0]: True}) == 0  # told again, the same


@pytest.mark.parametrize(
    ("target", "told", "error", "says"),
    [
        ("nobody", {0: 1.0}, AnswersError, "'nobody' is not a target"),
        ("model-13", {0: 1.5}, AnswersError, "outside 0..1"),
        ("model-13", {0: -0.1}, AnswersError, "outside 0..1"),
        ("model-13", {0: float("nan")}, AnswersError, "has the score NaN"),
        ("model-13", {0: float("inf")}, AnswersError, "outside 0..1"),
        ("model-13", {0: "right"}, AnswersError, "not a number"),
        ("model-13", {0: None}, AnswersError, "not a number"),
        ("model-13", {-1: 1.0}, AnswersError, "was not requested"),
        ("model-13", {"nope": 1.0}, ScoresError, "'nope'"),
    ],
)
def test_what_cannot_be_told(sources, tmp_path, target, told, error, says):
    evaluation = Evaluation(sources, "random", 5, NAMES)
    evaluation.save(tmp_path)
    asked = evaluation.ask()["model-13"]
    rest = [item for item in sources.item_ids if item not in asked]
    named = {
        asked[at] if at == 0 else rest[0] if at == -1 else at: score for at, score in told.items()
    }
    with pytest.raises(error) as caught:
        evaluation.tell(target, {asked[1]: 1.0, **named})
    assert says in str(caught.value)
    assert evaluation.ask() == {"model-13": asked, "model-14": asked}, "half of it was taken"
    lines = (tmp_path / "answers.jsonl").read_text().splitlines()
    assert [set(json.loads(line)) for line in lines] == [{"kind", "targets", "items", "crc32"}]


def test_an_answer_told_twice_must_be_the_same(sources):
    evaluation = Evaluation(sources, "random", 5, NAMES)
    item = evaluation.ask()["model-13"][0]
    evaluation.tell("model-13", {item: 1.0})
    with pytest.raises(AnswersError, match="--correct"):
        evaluation.tell("model-13", {item: 0.0})
    evaluation.tell("model-14", {item: 0.0})


def test_only_targets_that_answered_are_estimated(sources):
    evaluation = Evaluation(sources, "random", 5, NAMES)
    asked = evaluation.ask()["model-13"]
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "unanswered"):
        evaluation.estimate()
    evaluation.tell("model-13", dict.fromkeys(asked, 1.0))
    assert list(evaluation.estimate()) == ["model-13"]
    assert evaluation.estimate()["model-13"].warnings == ()
    with pytest.raises(EvaluationError, match="'model-14'"):
        evaluation.estimate(targets=NAMES)
    assert evaluation.estimate(targets=[]) == {}
    with pytest.raises(AnswersError, check=lambda error: error.kind == "unknown"):
        evaluation.estimate(targets=["nobody"])
    for level in (0, 1, 90):
        with pytest.raises(FewbenchError, match="use a share"):
            evaluation.estimate(level)
    for given in ({"level": "model-13"}, {"targets": "model-13"}):
        with pytest.raises(EvaluationError, match="'model-13'"):
            evaluation.estimate(**given)


def test_a_table_of_answers_is_taken_as_far_as_it_was_asked(sources, targets):
    evaluation = Evaluation(sources, "random", 5, NAMES)
    asked = evaluation.ask()["model-13"]
    taken, unasked, *_ = evaluation.tell_table(targets)
    assert taken == 10
    assert set(unasked) == set(sources.item_ids) - set(asked)
    assert evaluation.ask() == {}
    by_hand = Evaluation(sources, "random", 5, NAMES)
    assert answer(by_hand, targets) == evaluation.estimate()


def test_a_table_of_one_model_is_the_target_whatever_its_name(sources, targets):
    one = targets.take(models=[0])
    renamed = replace(one, models=one.models.rename(index={"model-13": "ckpt-7.json"}))
    evaluation = Evaluation(sources, "random", 5, NAMES)
    assert evaluation.tell_table(renamed, "model-14")[0] == 5
    with pytest.raises(AnswersError, check=lambda error: error.kind == "unknown"):
        evaluation.tell_table(renamed)
    both = replace(targets, models=targets.models.rename(index={"model-14": "x"}))
    with pytest.raises(AnswersError, match="2 models"):
        evaluation.tell_table(both, "model-14")
    with pytest.raises(AnswersError, check=lambda error: error.kind == "unknown"):
        evaluation.tell_table(renamed, "nobody")
    alone = Evaluation(sources, "random", 5, ["only"])
    assert alone.tell_table(renamed)[0] == 5


def test_a_table_with_gaps_and_items_of_other_benchmarks(sources, targets):
    evaluation = Evaluation(sources, "random", 5, ["model-13"])
    asked = evaluation.ask()["model-13"]
    table = from_arrays([[1.0, 0.0, np.nan], [0, 0, 0]], models=["model-13", "x"],
                        items=[asked[0], "elsewhere", asked[1]])  # fmt: skip
    assert evaluation.tell_table(table)[:2] == (1, ["elsewhere"])
    assert evaluation.ask()["model-13"] == asked[1:]


# -- option probabilities --------------------------------------------------------------------------


@pytest.fixture
def with_options():
    table = simulate(15, 30, seed=1, options=3)
    return table.take(models=np.arange(13)), table.take(models=[13, 14])


def options_of(targets, row, items):
    return dict(
        zip(items, targets.probabilities.of_items(targets.positions(items))[row], strict=True)
    )


def test_probabilities_told_by_hand_or_by_table(with_options):
    sources, targets = with_options
    by_table = Evaluation(sources, "disco-pds-knn", 6, NAMES)
    by_table.tell_table(targets)
    by_hand = Evaluation(sources, "disco-pds-knn", 6, NAMES)
    for row, (name, items) in enumerate(by_hand.ask().items()):
        by_hand.tell(name, answers_of(targets, name, items), options_of(targets, row, items))
    assert by_hand.estimate() == by_table.estimate()


def test_answers_without_the_probabilities_of_a_signature_are_refused(with_options, tmp_path):
    sources, targets = with_options
    whole = Evaluation(sources, "disco-jsd-ridge", 6, NAMES[:1])
    items = whole.ask()["model-13"]
    answers, options = answers_of(targets, "model-13", items), options_of(targets, 0, items)
    whole.tell("model-13", answers, options)
    poor = Evaluation(sources, "disco-jsd-ridge", 6, NAMES[:1])
    poor.save(tmp_path)
    with pytest.raises(AnswersError, check=lambda error: error.kind == "missing"):
        poor.tell("model-13", answers)
    with pytest.raises(AnswersError, check=lambda error: error.kind == "missing"):
        poor.tell_table(targets.changed(probabilities=None), "model-13")
    assert poor.ask()["model-13"] == items
    poor.tell("model-13", answers, options)
    assert poor.estimate() == whole.estimate()
    assert Evaluation.open(tmp_path, sources).estimate() == whole.estimate()
    plain = Evaluation(sources, "kmedoids-ridge", 6, NAMES[:1])
    plain.tell("model-13", answers_of(targets, "model-13", plain.ask()["model-13"]))
    plain.estimate()  # needs none
    proxy = "strata(proxy=probabilities)+difference(proxy=probabilities)"  # the sources' alone
    sampled = Evaluation(sources, proxy, 6, NAMES[:1])
    sampled.tell("model-13", answers_of(targets, "model-13", sampled.ask()["model-13"]))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ([0.5, 0.6], "do not sum to 1"),
        ([-0.5, 1.5], "negative"),
        ([np.nan, 1.0], "negative or do not sum"),
        ([0.25] * 4, "the source models have 3"),
        ([[1.0]], "shape (1, 1)"),
        (["a", "b"], "not numbers"),
    ],
)
def test_probabilities_that_do_not_fit(with_options, row, says):
    sources, _ = with_options
    evaluation = Evaluation(sources, "disco-pds-knn", 6, NAMES)
    item = evaluation.ask()["model-13"][0]
    with pytest.raises(AnswersError) as caught:
        evaluation.tell("model-13", {item: 1.0}, {item: row})
    assert says in str(caught.value)
    with pytest.raises(AnswersError, match="1 answer"):
        evaluation.tell("model-13", {item: 1.0}, {})
    assert len(evaluation.ask()["model-13"]) == 6


# -- scales ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "scale"),
    [
        ("random", Scale(0, 100)),
        ("random-ridge", Scale(lower_is_better=True)),
        ("clustering", Scale(-1, 1)),
    ],
)
def test_estimates_are_on_the_users_scale(sources, targets, method, scale):
    plain = answer(Evaluation(sources, method, 8, NAMES), targets)
    scaled_targets = replace(targets, values=targets.values.copy())
    evaluation = Evaluation(replace(sources, scale=scale), method, 8, NAMES)
    for name, items in evaluation.ask().items():
        unit = answers_of(scaled_targets, name, items)
        evaluation.tell(name, {item: float(scale.from_unit(x)) for item, x in unit.items()})
    width = scale.high - scale.low
    for name, said in evaluation.estimate().items():
        before = plain[name]
        assert said.score == pytest.approx(float(scale.from_unit(before.score)))
        ends = sorted(scale.from_unit([before.interval.low, before.interval.high]).tolist())
        assert [said.interval.low, said.interval.high] == pytest.approx(ends)
        assert said.expected_error == pytest.approx(before.expected_error * width)
        assert said.random.expected_error == pytest.approx(before.random.expected_error * width)
        assert list(said.tasks.values()) == pytest.approx(
            scale.from_unit(list(before.tasks.values())).tolist()
        )


# -- estimates -------------------------------------------------------------------------------------


def test_an_estimate_round_trips_through_json(sources, targets):
    for estimate in answer(Evaluation(sources, "disco-pds-knn", 5, NAMES), targets).values():
        read = Estimate.from_json(estimate.to_json())  # numbers have 12 digits
        assert read.to_json() == estimate.to_json()
        assert read.score == pytest.approx(estimate.score, abs=1e-12)
        assert read.target == estimate.target
        assert (estimate.items_run, estimate.items_total, estimate.level) == (5, 30, 0.9)
        assert sum(estimate.task_items.values()) == 5
        assert list(estimate.task_items) == sources.tasks
        assert estimate.provenance.fingerprint == sources.fingerprint


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"target": "a", "score": "high"}'])
def test_what_is_no_estimate(text):
    with pytest.raises(EvaluationError, match="not an estimate"):
        Estimate.from_json(text)


@pytest.mark.parametrize(
    ("method", "average", "kind"),
    [
        ("random", "micro", "exact"),
        ("random", "macro", "sampled"),
        ("random-stratified", "micro", "sampled"),
        ("random-ridge", "micro", "held-out"),
        ("anchor-points", "micro", "held-out"),
    ],
)
def test_only_the_mean_of_a_simple_random_sample_has_the_exact_interval(
    sources, targets, method, average, kind
):
    """Other samples have a standard error; all else is made of errors on held-out sources."""
    evaluation = Evaluation(sources.averaged(average), method, 8, NAMES)
    for name, estimate in answer(evaluation, targets.averaged(average)).items():
        assert estimate.interval_kind == kind
        low, high = estimate.interval.low, estimate.interval.high
        if kind == "exact":
            assert (low, high) == exact_interval(round(8 * estimate.score), 8, 30, 0.9)
        elif kind == "held-out" and not any("may not hold" in one for one in estimate.warnings):
            judge = evaluation.estimating.judge
            answers = evaluation.record.answers(name)
            wider = resemblance_of(evaluation.scores, [answers], 0.0)[0].widening
            unit, found = standard_error(estimate.score, 8, 30) * wider, judge.quantiles(8)
            reach = max(high - estimate.score, estimate.score - low)
            own, random = found.at(0.9) * unit, judge.random.half(estimate.score, 8, 0.9)
            assert reach <= max(own, min(0.7 * (own * random) ** 0.5, random)) + 1e-9
            assert estimate.expected_error <= found.mean * unit + 1e-9


def test_the_users_own_items_are_no_random_sample(sources, targets):
    """Whatever the method is called, its interval is that of these items."""
    right = sources.values.mean(axis=0)
    easy = Subset(items=tuple(sources.item_ids[np.argsort(-right)[:8]]))
    evaluation = Evaluation(sources, "random", 8, NAMES, subset=easy)
    for estimate in answer(evaluation, targets).values():
        hits = round(8 * estimate.score)
        assert (estimate.interval.low, estimate.interval.high) != exact_interval(hits, 8, 30, 0.9)
        assert estimate.expected_error > estimate.random.expected_error


def test_a_method_without_task_scores_is_refused(sources, targets, two_rounds):
    class Poor(type(two_rounds)):
        def start(self, *args):
            session = super().start(*args)
            predict = session.predict
            session.predict = lambda names, tasks=True: predict(names, tasks=False)
            return session

    with pytest.raises(EvaluationError, check=lambda error: error.kind == "unsupported"):
        answer(Evaluation(sources, Poor(), 6, NAMES), targets)


def test_a_table_that_names_targets_is_used_as_it_says(tmp_path):
    """Its targets are no source models: in an evaluation, opened again, in packs and plans."""
    table = simulate(30, 60, seed=4)
    roles = ["source", "target"] * 15
    named = table.changed(models=table.models.assign(role=roles))
    sources = table.take(models=range(0, 30, 2))
    path = save_scores(named, tmp_path / "named.parquet")
    evaluation = Evaluation(named, "tailored", 20, [table.model_ids[1]])
    assert evaluation.scores.model_ids == sources.model_ids
    assert "15 of 30 models have the role target" in evaluation.notes[0]
    assert evaluation.ask() == Evaluation(sources, "tailored", 20, [table.model_ids[1]]).ask()
    evaluation.save(tmp_path / "run", path)
    assert Evaluation.open(tmp_path / "run").scores.model_ids == sources.model_ids
    assert any("role target" in note for note in select_items(named, "random", budget=5).notes)
    packed = pack(named, "greedy-ridge", 10, backtest=False)
    assert len(packed.record.parts[0].models["model"]) == 15
