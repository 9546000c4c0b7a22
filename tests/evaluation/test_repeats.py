"""Items that are run several times: rounds, means, costs, and what estimates say of them."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fewbench
from fewbench import Evaluation, Stop, from_arrays, run, versus
from fewbench.errors import AnswersError, RunError
from fewbench.evaluation.entries import RunBatch
from fewbench.runners.command import CommandRunner
from fewbench.runners.driving import run_with
from fewbench.scores import Scores, from_long
from fewbench.testing import simulate
from fewbench.uncertainty.reruns import noise_of_score

TABLE = simulate(31, 60, seed=1)
SOURCES = TABLE.take(models=range(30))


class Unsteady:
    """A model that is right half of the time, and keeps what it was asked."""

    def __init__(self, seed: int = 0) -> None:
        self.rng, self.asked = np.random.default_rng(seed), list[str]()
        self.answers: dict[str, list[float]] = {}

    def __call__(self, item: str) -> float:
        self.asked.append(item)
        self.answers.setdefault(item, []).append(float(self.rng.random() < 0.5))
        return self.answers[item][-1]


@pytest.mark.parametrize("method", ["random", "fewbench"])
def test_a_new_round_begins_once_all_items_ran(tmp_path: Path, method: str) -> None:
    model = Unsteady()
    how = {"folder": tmp_path / "run", "targets": ["new"]}
    first = run(SOURCES, method, 12, score=model, **how)
    result = run(SOURCES, method, 12, score=model, repeats=3, **how)  # the folder goes on
    rounds = [set(model.asked[at : at + 12]) for at in (0, 12, 24)]
    assert len(model.asked) == 36
    assert rounds[0] == rounds[1] == rounds[2]
    record = Evaluation.open(tmp_path / "run", SOURCES).record
    items = SOURCES.item_ids[record.answered("new")]
    means = [np.mean(model.answers[item]) for item in items]
    np.testing.assert_allclose(record.answers("new").scores[0], means)
    np.testing.assert_array_equal(record.first_scores("new")[record.answered("new")],
                                  [model.answers[item][0] for item in items])  # fmt: skip
    estimate = result.estimates["new"]
    assert estimate.repeats is not None
    assert estimate.repeats.answers_per_item == 3
    assert "Run-to-run noise (12 items, 3 answers each)" in " ".join(str(result).split())
    assert first.estimates["new"].repeats is None
    assert not any("fractions" in warning for warning in estimate.warnings)


def test_repeats_leave_the_chances_of_a_sample_as_they_were(tmp_path: Path) -> None:
    """Later rounds were chosen by first answers: those decide the chances, not the means."""
    table = simulate(41, 300, seed=2)
    sources, truth = table.take(models=range(40)), table.values[40]
    once = Evaluation(sources, "fewbench", 40, ["new"])
    while asked := once.ask().get("new"):
        once.tell("new", dict(zip(asked, truth[sources.positions(asked)], strict=True)))
    before = once.prediction("new").scores[0]
    asked = sources.item_ids[once.record.answered("new")].tolist()
    once.tell("new", dict(zip(asked, truth[sources.positions(asked)], strict=True)), repeat=2)
    assert once.prediction("new").scores[0] == pytest.approx(before, abs=1e-6)


def test_a_second_answer_is_told_by_its_number(tmp_path: Path) -> None:
    evaluation = Evaluation(SOURCES, "random", 5, ["new"], stop=None)
    asked = evaluation.ask()["new"]
    ones, zeros = dict.fromkeys(asked, 1.0), dict.fromkeys(asked, 0.0)
    with pytest.raises(AnswersError, check=lambda error: error.kind == "unanswered"):
        evaluation.tell("new", ones, repeat=2)
    evaluation.tell("new", ones)
    with pytest.raises(AnswersError, check=lambda error: error.kind == "taken") as caught:
        evaluation.tell("new", zeros)
    assert "--repeat 2" in str(caught.value.hint)
    for _ in range(2):  # telling the same again changes nothing
        evaluation.tell("new", zeros, repeat=2)
    assert evaluation.estimate(warn=False)["new"].answers_mean == 0.5
    evaluation.save(tmp_path / "run")
    again = Evaluation.open(tmp_path / "run", SOURCES)
    assert again.estimate(warn=False).to_json() == evaluation.estimate(warn=False).to_json()
    table = fewbench.add(tmp_path / "run", SOURCES)
    assert table.repeats is not None
    assert table.repeats.counts[-1].sum() == 10
    assert fewbench.add(tmp_path / "run", table).equals(table)


def test_a_table_of_several_answers_brings_all_of_them() -> None:
    evaluation = Evaluation(SOURCES, "random", 5, ["new"])
    asked = evaluation.ask()["new"]
    thirds = from_arrays([[1 / 3] * 5], models=["new"], items=asked)
    with pytest.raises(AnswersError, check=lambda error: error.kind == "scale"):
        evaluation.tell_table(thirds)
    repeats = fewbench.scores.repeats.Repeats.from_counts(
        np.full((1, 5), 3), np.full((1, 5), 1 / 3)
    )
    evaluation.tell_table(thirds.changed(repeats=repeats))
    answers = evaluation.record.answers("new")
    assert answers.counts is not None
    assert answers.counts[0].tolist() == [3] * 5


def test_every_answer_costs() -> None:
    priced = SOURCES.changed(items=SOURCES.items.assign(cost=2.0))
    model = Unsteady()
    result = run(priced, "random", score=model, targets=["new"], stop=Stop(cost=24), repeats=3)
    assert len(model.asked) == 12  # all of it for items, as more items tell more
    assert result.targets["new"].cost == 24
    few = run(
        priced, "random", score=Unsteady(), targets=["new"], stop=Stop(items=4, cost=20), repeats=3
    )
    target = few.targets["new"]
    assert (target.items_run, target.cost, target.full_cost) == (4, 20, 360)
    assert few.stopped == "new: the cost limit of 20 was reached"


def test_a_program_is_told_which_answer_it_gives(tmp_path: Path) -> None:
    log = tmp_path / "lines"
    code = (
        "import json, sys\n"
        "for line in sys.stdin:\n"
        f" open({str(log)!r}, 'a').write(line)\n"
        " row = json.loads(line)\n"
        " out = {'item': row['item'], 'score': row.get('repeat', 1) % 2, 'cost': 3}\n"
        " print(json.dumps(out), flush=True)"
    )
    result = run_with(CommandRunner(["python3", "-c", code]), SOURCES, "random", 4, repeats=2)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line.get("repeat") for line in lines] == [None] * 4 + [2] * 4
    (target,) = result.targets.values()
    assert target.cost == 24
    assert target.estimate is not None
    assert target.estimate.answers_mean == 0.5


def test_an_item_that_fails_once_more_keeps_its_answers() -> None:
    model = Unsteady()

    def score(item: str) -> float | None:
        is_lost = item == model.asked[0] and len(model.answers[item]) == 1 if model.asked else False
        return None if is_lost else model(item)

    result = run(SOURCES, "random", 4, score=score, targets=["new"], repeats=3, tries=2)
    assert len(model.asked) == 1 + 3 * 3
    assert "new: 1 item failed when run again, and has fewer answers than the others" in (
        result.notes
    )
    assert result.targets["new"].failed == {}
    with pytest.raises(RunError, check=lambda error: error.kind == "range"):
        run(SOURCES, "random", 4, score=model, repeats=0)


def test_the_noise_is_how_far_reruns_differ() -> None:
    rng, n, k = np.random.default_rng(3), 200, 4
    chances, halves, shares, means, models = rng.random(n), [], [], [], []
    for _ in range(200):
        answers = (rng.random((k, n)) < chances).astype(float)
        told = fewbench.methods.Answers(
            np.arange(n), answers.mean(axis=0)[None], None,
            np.full((1, n), float(k)), answers.var(axis=0, ddof=1)[None],
        )  # fmt: skip
        noise = noise_of_score(told, np.full(n, 1 / n), 0.9)
        assert noise is not None
        halves.append(noise.half_width)
        shares.append(noise.share)
        means.append(answers.mean())
        models.append((rng.random((k, n)) < rng.random(n)).mean())  # other questions
    assert np.mean(halves) == pytest.approx(1.645 * np.std(means), rel=0.15)
    assert np.mean(shares) == pytest.approx(np.var(means) / np.var(models), rel=0.3)


def test_versus_says_how_much_is_run_to_run_noise() -> None:
    rng = np.random.default_rng(4)
    answers = (rng.random((2, 5, 80)) < rng.random(80)).astype(float)
    table = from_arrays(answers.mean(axis=1), models=["a", "b"])
    counts, variances = np.full((2, 80), 5), answers.var(axis=1, ddof=1)
    both: Scores = table.changed(
        repeats=fewbench.scores.repeats.Repeats.from_counts(counts, variances)
    )
    found = versus("a", "b", scores=both)
    assert found.repeats is not None
    assert found.repeats.share > 0.8  # the same model
    assert "Run-to-run noise (80 items, 5 answers each)" in " ".join(str(found).split())
    assert json.loads(found.to_json())["repeats"]["items"] == 80
    assert versus("a", "b", scores=table).repeats is None


def test_scores_that_are_pass_at_k_are_not_taken_for_means(tmp_path: Path) -> None:
    rng, rows = np.random.default_rng(5), []
    for model in (f"m{at}" for at in range(12)):
        rows += [(model, f"q{at}", float(rng.random() < 0.4)) for at in range(30) for _ in range(4)]
    table = pd.DataFrame(rows, columns=["model", "item", "score"])
    columns = {"model": "model", "item": "item", "score": "score"}
    sources = from_long(table, **columns, trials="pass@2")
    new = from_long(table[table["model"] == "m0"].assign(model="new"), **columns, trials="pass@2")
    evaluation = Evaluation(sources, "random", 30, ["new"])
    evaluation.ask()
    evaluation.tell_table(new)
    assert not any("pass@2" in text for text in evaluation.estimate(warn=False).warnings)
    single = Evaluation(sources, "random", 30, ["new"])
    single.tell("new", dict.fromkeys(single.ask()["new"], 1.0), accept_fractions=True)
    (warning,) = [text for text in single.estimate(warn=False).warnings if "pass@2" in text]
    assert "are pass@2, and the target's are not known to be" in warning


def test_told_answers_are_paid_once_and_unknown_prices_are_the_mean() -> None:
    priced = SOURCES.changed(items=SOURCES.items.assign(cost=0.5))
    evaluation = Evaluation(priced, "random", 20, ["new"])
    asked = evaluation.ask()["new"]

    def log(items: list[str], score: float, *, lacking: int = 0) -> Scores:
        table = from_arrays([[score] * len(items)], models=["new"], items=items)
        stated = ["" if at < lacking else '{"new": 2.0}' for at in range(len(items))]
        return table.changed(items=table.items.assign(answer_costs=stated))

    def spent() -> float:
        cost = evaluation.cost("new")
        assert cost is not None
        return cost.spent

    evaluation.tell_table(log(asked[:10], 1.0, lacking=1))
    assert spent() == 20
    evaluation.tell_table(log(asked[:10], 1.0))  # the same again
    evaluation.tell_table(log(asked[:4], 0.0), correct=True)  # graded anew
    evaluation.tell("new", {asked[0]: 1.0}, correct=True)
    assert spent() == 20
    evaluation.tell("new", dict.fromkeys(asked[10:15], 1.0))  # of no known cost
    assert spent() == 30
    evaluation.note_run(RunBatch(target="new", cost=60.0))  # of a runner, for its answers
    assert spent() == 80
