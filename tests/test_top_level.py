"""Every command is a function of the top-level namespace, and results show themselves."""

from dataclasses import replace

import pytest

import fewbench
from fewbench.testing import simulate, simulate_run
from fewbench.transfer.journal import repair_measurement

TABLE = simulate(20, 60, 3, seed=1)


def results():
    evaluation = fewbench.Evaluation(TABLE, "random-ridge", 6, ["new"])
    evaluation.tell("new", dict.fromkeys(evaluation.ask()["new"][:5], 1.0))
    estimates = evaluation.estimate()
    split = fewbench.SplitSettings()
    compared = fewbench.compare(TABLE, ["random-ridge"], [5], split, repeats=3, level=None)
    return {
        "scores": (TABLE, (20, 60), "20 models × 60 items"),
        "audit": (fewbench.audit_scores(TABLE), None, "fact:"),
        "subset": (fewbench.select_items(TABLE, "random", 5), (5, 0), "5 items chosen by random"),
        "evaluation": (evaluation, (1, 4), "at most 6 items"),
        "estimate": (estimates["new"], (4, 3), "5 of 60 items"),
        "estimates": (estimates, (1, 10), "new"),
        "comparison": (compared, None, "random-ridge"),
        "run": (
            fewbench.run(TABLE, "random", 6, answer=lambda item: 1),
            (1, 10),
            "ran 6 of 60 items",
        ),
        "versus": (fewbench.versus(*TABLE.model_ids[:2], scores=TABLE), (4, 6), "Versus: "),
        "gate": (fewbench.gate(evaluation, at_least=0.0), (1, 5), "Gate: new: pass"),
        "rank": (fewbench.rank(evaluation, models=TABLE.model_ids[:1]), (2, 8), "Ranking at 90%"),
        "track": (
            fewbench.track(simulate_run(3, 40, n_models=4), run="run"),
            (3, 9),
            "Track of run: best run/step-",
        ),
        "plan": (
            fewbench.plan(TABLE, budget=5, methods="random-ridge", target="like", repeats=3),
            (1, 25),
            "Run 5 items with ",
        ),
    }


@pytest.fixture(scope="module")
def shown():
    return results()


@pytest.mark.parametrize(
    "name",
    [
        "scores",
        "audit",
        "subset",
        "evaluation",
        "estimate",
        "estimates",
        "comparison",
        "run",
        "versus",
        "gate",
        "rank",
        "track",
        "plan",
    ],
)
def test_it_shows_itself(shown, name):
    made, shape, said = shown[name]
    frame = made.to_frame()
    assert shape is None or frame.shape == shape
    assert len(frame)
    assert said in repr(made)
    assert "<table" in made._repr_html_()


def test_scores_come_back_on_the_scale_of_the_user():
    scaled = replace(TABLE, scale=fewbench.Scale(0, 100))
    assert scaled.to_frame().max(axis=None) == 100


def test_an_estimate_that_holds_markup_is_escaped():
    evaluation = fewbench.Evaluation(TABLE, "random", 6, ["<b>"])
    evaluation.tell("<b>", dict.fromkeys(evaluation.ask()["<b>"], 1.0))
    assert "<b>" not in evaluation.estimate()["<b>"]._repr_html_()


def test_items_of_an_evaluation(shown):
    evaluation = shown["evaluation"][0]
    items = evaluation.items("new")
    assert items["status"].value_counts().to_dict() == {"": 54, "answered": 5, "open": 1}
    assert items["expected"].isna().all()  # a regression on models expects nothing of items
    other = fewbench.Evaluation(TABLE, "aipw", 6, ["new"])
    other.tell("new", dict.fromkeys(other.ask()["new"], 1.0))
    assert other.items("new")["expected"].between(0, 1).all()


def test_an_added_column_of_the_models_changes_no_fingerprint():
    column = [f"note {at}" for at in range(20)]
    noted = replace(TABLE, models=TABLE.models.assign(note=column))
    assert noted.fingerprint == TABLE.fingerprint
    assert not noted.equals(TABLE)
    renamed = replace(TABLE, models=TABLE.models.assign(family=column))
    assert renamed.fingerprint != TABLE.fingerprint  # intervals depend on families


def test_what_is_imported_from_files(tmp_path):
    (tmp_path / "r.csv").write_text("m,q1,q2\na,1,0\nb,0,1\n")
    reading = fewbench.import_results(tmp_path / "r.csv", columns=fewbench.Columns("m"))
    assert reading.scores.model_ids == ["a", "b"]


def test_a_damaged_measurement_is_repaired(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_bytes(b'{"seed":0}\nbroken\n{"seed":1}\n{"torn')
    assert repair_measurement(tmp_path) == 2
    assert path.read_bytes() == b'{"seed":0}\n{"seed":1}\n'


def test_one_method_one_budget_and_the_name_of_a_split():
    found = fewbench.compare(TABLE, "random-ridge", 5, "random", repeats=1, level=None)
    assert set(found.cells["method"]) == {"random", "random-ridge"}


@pytest.mark.parametrize("given", ["scores.parquet", None])
def test_what_is_no_scores_is_named(given):
    for call in (
        lambda: fewbench.audit_scores(given),
        lambda: fewbench.compare(given, "random", 5),
        lambda: fewbench.plan(given, budget=5),
        lambda: fewbench.Evaluation(given, "random", 5),
        lambda: fewbench.select_items(given, "random", 5),
    ):
        with pytest.raises(fewbench.FewbenchError, match="not Scores"):
            call()
