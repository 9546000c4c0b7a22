"""Every command is a function of the top-level namespace, and results show themselves."""

import inspect
import re
import typing
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fewbench
from fewbench.cli import main
from fewbench.testing import simulate, simulate_run
from fewbench_papers.bento.measurement.journal import repair_measurement

TABLE = simulate(20, 60, 3, seed=1)


def results():
    evaluation = fewbench.Evaluation(TABLE, "random-ridge", 6, ["new"])
    evaluation.tell("new", dict.fromkeys(evaluation.ask()["new"][:5], 1.0))
    estimates = evaluation.estimate()
    split = fewbench.SplitSettings()
    compared = fewbench.compare(TABLE, ["random-ridge"], [5], split, repeats=3, level=None)
    return {
        "scores": (TABLE, (20, 60), "20 models × 60 items"),
        "audit": (fewbench.audit(TABLE), None, "Audit: No problems"),
        "subset": (
            fewbench.select_items(TABLE, "random", budget=5),
            (5, 0),
            "5 items chosen by random",
        ),
        "evaluation": (evaluation, (1, 4), "at most 6 items"),
        "estimate": (estimates["new"], (4, 7), "5 of 60 items"),
        "estimates": (estimates, (1, 12), "new"),
        "comparison": (compared, None, "Comparison: At "),
        "run": (
            fewbench.run(TABLE, "random", 6, score=lambda item: 1),
            (1, 12),
            "Estimated from 6 of 60 items",
        ),
        "versus": (fewbench.versus(*TABLE.model_ids[:2], scores=TABLE), (4, 7), "Versus: "),
        "gate": (
            fewbench.gate(evaluation, at_least=0.0),
            (1, 6),
            "Gate: new passes in general, on questions like these",
        ),
        "rank": (fewbench.rank(evaluation, models=TABLE.model_ids[:1]), (2, 12), "Ranking: "),
        "track": (
            fewbench.track(simulate_run(3, 40, n_models=4), run="run"),
            (3, 13),  # a column for each of 3 tasks
            "Track: On these 40 items, run/step-",
        ),
        "plan": (
            fewbench.plan(TABLE, budget=5, methods="random-ridge", expect="like", repeats=3),
            (1, 26),
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


def doubted(made, warnings):
    """The same result with these warnings."""
    if isinstance(made, fewbench.Estimates):
        return fewbench.Estimates({name: doubted(one, warnings) for name, one in made.items()})
    if hasattr(made, "targets") and isinstance(made.targets, dict):  # of a run
        targets = {
            name: one.model_copy(update={"estimate": doubted(one.estimate, warnings)})
            for name, one in made.targets.items()
        }
        return made.model_copy(update={"targets": targets})
    return made.model_copy(update={"warnings": warnings})


@pytest.mark.parametrize(
    "name", ["estimate", "estimates", "run", "versus", "gate", "rank", "track"]
)
def test_a_warning_travels_with_its_number(shown, name):
    long = "it may be <far> off, " + 20 * "and more so than you think, "
    made = doubted(shown[name][0], (long, "second"))
    for said in (repr(made), str(made)):
        assert "warning: " in said
        assert long in said
        assert "second" in said
    page = made._repr_html_()
    assert long.replace("<far>", "&lt;far&gt;") in page
    assert page.count("&lt;far") == 1
    assert "second" in page
    for cell in made.to_frame()["warnings"]:
        assert long in cell
        assert "second" in cell
    assert long in made.to_json() if hasattr(made, "to_json") else True
    calm = doubted(made, ())
    assert "warning:" not in repr(calm) + calm._repr_html_()
    assert set(calm.to_frame()["warnings"]) == {""}


def test_a_warning_is_a_python_warning_once_a_call(tmp_path, monkeypatch, capsys):
    """All items right: the target is beyond the sources."""
    evaluation = fewbench.Evaluation(TABLE, "greedy-ridge", 8, ["a", "b"])
    for target in ("a", "b"):
        evaluation.tell(target, dict.fromkeys(evaluation.ask()[target], 1.0))
    right = {"a": lambda item: 1.0, "b": lambda item: 1.0}
    calls = {
        "estimate": lambda: evaluation.estimate(),
        "run": lambda: fewbench.run(TABLE, "greedy-ridge", 8, score=right["a"]).estimates,
        "versus": lambda: fewbench.versus((evaluation, "a"), TABLE.model_ids[0]),
        "run_versus": lambda: fewbench.run_versus(TABLE, right, 10),
        "gate": lambda: fewbench.gate((evaluation, "a"), at_least=0.5),
        "rank": lambda: fewbench.rank(evaluation),
        "track": lambda: fewbench.track(evaluation, steps={"a": 1, "b": 2}),
    }
    for name, call in calls.items():
        with pytest.warns(fewbench.EstimateWarning) as issued:
            made = call()
        said = [str(one.message) for one in issued]
        assert said == list(made.warnings), name
        assert len(set(said)) == len(said) > 0, name
        assert {one.filename for one in issued} == {__file__}, name
    fewbench.save_scores(TABLE, tmp_path / "scores.parquet")
    evaluation.save(tmp_path / "run", tmp_path / "scores.parquet")
    monkeypatch.setattr("sys.argv", ["fewbench", "estimate", str(tmp_path / "run")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fewbench.write_report(evaluation.estimate(warn=False), tmp_path / "page.html")
        with pytest.raises(SystemExit) as ended:
            main()  # which prints them
    assert not ended.value.code
    assert (
        capsys.readouterr().out.count(
            "warning: all targets: the target does better than nearly all"
        )
        == 1
    )


def test_dir_lists_what_users_need(shown):
    assert dir(fewbench) == sorted(fewbench.__all__)
    public = [name for name in dir(shown["run"][0]) if not name.startswith("_")]
    assert {"score", "estimates", "spent", "to_frame", "plot"} <= set(public)
    assert not [name for name in public if name.startswith("model_")]


def test_the_score_of_one_target(shown):
    assert shown["run"][0].score == shown["run"][0].estimates["target"].score == 1.0
    of_two = fewbench.run(TABLE, "random", 6, score=lambda item: 1, targets=["a", "b"])
    with pytest.raises(fewbench.FewbenchError, match=r"2 targets.*'a'.*'b'"):
        print(of_two.score)
    with pytest.raises(fewbench.FewbenchError, match="no target has answers"):
        print(fewbench.Estimates().score)


def test_a_run_needs_a_limit(tmp_path):
    calls = [
        lambda: fewbench.run(TABLE, score=lambda item: 1),
        lambda: fewbench.run_lm_eval(TABLE, arguments=["--model", "dummy"]),
        lambda: fewbench.inspect.estimated(None, TABLE),
    ]
    for call in calls:
        with pytest.raises(fewbench.FewbenchError, match=r"stop=100.*half_width"):
            call()
    settings = {"score": lambda item: 1, "folder": tmp_path / "run"}
    fewbench.run(TABLE, "random", 6, **settings)
    assert fewbench.run(TABLE, "random", **settings).targets["target"].items_run == 6  # resumed


def test_scores_are_loaded_from_what_holds_them(tmp_path):
    fewbench.save_scores(TABLE, tmp_path / "scores.parquet")
    assert fewbench.load_scores(tmp_path / "scores.parquet").equals(TABLE)
    np.savez(tmp_path / "s.npz", scores=TABLE.values, models=np.array(TABLE.model_ids))
    loaded = [
        fewbench.load_scores(tmp_path / "s.npz"),
        fewbench.load_scores(TABLE.to_frame()),
        fewbench.load_scores(
            TABLE.to_frame().rename_axis("model").reset_index()
            .melt("model", var_name="item", value_name="score").assign(task="one"),
            scale=fewbench.Scale(0, 2),
        ),
    ]  # fmt: skip
    assert {one.shape for one in map(fewbench.Scores.to_frame, loaded)} == {(20, 60)}
    assert list(loaded[2].tasks) == ["one"]
    assert loaded[2].values.max() == 0.5
    logs = fewbench.load_scores(Path(__file__).parent / "readers/fixtures/swe_bench")
    assert logs.n_models > 1
    with pytest.raises(fewbench.FewbenchError, check=lambda error: error.kind == "missing-file"):
        fewbench.load_scores(tmp_path / "none")


def test_scores_come_back_on_the_scale_of_the_user():
    scaled = replace(TABLE, scale=fewbench.Scale(0, 100))
    assert scaled.to_frame().max(axis=None) == 100


def test_an_estimate_that_holds_markup_is_escaped():
    evaluation = fewbench.Evaluation(TABLE, "random", 6, ["<b>"])
    evaluation.tell("<b>", dict.fromkeys(evaluation.ask()["<b>"], 1.0))
    page = evaluation.estimate()["<b>"]._repr_html_()
    assert page.count("<b>") == 1  # of the page itself
    assert "&lt;b&gt; scores" in page


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
    whole = b'{"request":"a","value":0.5,"said":"A","prompt":7,"completion":1}\n'
    path.write_bytes(whole + b'broken\n{"seed":1}\n' + whole + b'{"torn')
    assert repair_measurement(tmp_path) == [2, 3, 5]
    assert path.read_bytes() == 2 * whole


def test_one_method_one_budget_and_the_name_of_a_split():
    found = fewbench.compare(TABLE, "random-ridge", 5, "random", repeats=1, level=None)
    assert set(found.cells["method"]) == {"random", "random-ridge"}


@pytest.mark.parametrize("given", ["scores.parquet", None])
def test_what_is_no_scores_is_named(given):
    for call in (
        lambda: fewbench.audit(given),
        lambda: fewbench.compare(given, "random", 5),
        lambda: fewbench.plan(given, budget=5),
        lambda: fewbench.Evaluation(given, "random", 5),
        lambda: fewbench.select_items(given, "random", budget=5),
    ):
        with pytest.raises(fewbench.FewbenchError, match="in place of Scores"):
            call()


def test_scores_are_read_like_a_table():
    first, second = TABLE.model_ids[:2]
    assert len(TABLE) == TABLE.n_models
    assert bool(TABLE)
    row = TABLE[first]
    assert row.index.equals(TABLE.items.index)
    assert row.tolist() == TABLE.values[0].tolist()
    assert TABLE[[second, first]].model_ids == [second, first]
    with pytest.raises(fewbench.FewbenchError, match="nobody"):
        TABLE["nobody"]
    inner = [name for name in dir(TABLE) if name.startswith("_") and "__" not in name]
    assert not inner


@pytest.mark.parametrize("read", ["load_scores", "import_results", "open_pack", "read_items"])
def test_a_missing_file_is_a_file_not_found_error(tmp_path, read):
    suffix = ".few" if read == "open_pack" else ".csv"
    with pytest.raises(
        FileNotFoundError, check=lambda error: error.kind == "missing-file"
    ) as error:
        getattr(fewbench, read)(tmp_path / f"none{suffix}")
    assert isinstance(error.value, fewbench.FewbenchError)


def test_limits_and_names_are_given_to_each_function_alike():
    with pytest.raises(fewbench.FewbenchError, match=r"outside 0\.\.1"):
        fewbench.run(TABLE, "random", budget=4, score=lambda item: 2.0)
    found = fewbench.run(TABLE, "random", stop=fewbench.Stop(items=4), score=lambda item: 1)
    assert found.score == fewbench.run(TABLE, "random", 4, lambda item: 1).score
    with pytest.raises(fewbench.FewbenchError, check=lambda error: error.kind == "conflict"):
        fewbench.run(TABLE, "random", 4, lambda item: 1, stop=fewbench.Stop(items=4))
    words = {"budget": 5, "expect": "like", "repeats": 3}
    made = [
        fewbench.plan(TABLE, methods=methods, **words).to_json()
        for methods in ("random-ridge,random", ["random-ridge", "random"])
    ]
    assert made[0] == made[1]
    assert not re.search(r"\d\.\d{14}", made[0])


def test_types_of_results_are_imported_from_the_top_level():
    for name in fewbench.__all__:
        function = getattr(fewbench, name)
        if not inspect.isfunction(function) or name in (
            "best",
            "run_versus",
        ):  # types of the checker
            continue
        kinds = [typing.get_type_hints(function).get("return")]
        kinds += typing.get_args(kinds[0])
        for kind in kinds:
            if inspect.isclass(kind) and kind.__module__.startswith("fewbench"):
                public = (fewbench, fewbench.methods)
                assert any(getattr(one, kind.__name__, None) is kind for one in public), name


def test_errors_are_also_those_of_python_and_name_the_call_that_helps():
    import numpy as np
    import pandas as pd

    frame = pd.DataFrame(np.eye(3), index=list("abc"), columns=list("xyz"))
    for call in (fewbench.compare, fewbench.Evaluation, fewbench.rank, fewbench.plan):
        for given, how in ((frame, "from_wide"), (frame.to_numpy(), "from_arrays")):
            with pytest.raises(TypeError, match="in place of") as refused:
                call(given)
            assert how in refused.value.hint
    with pytest.raises(TypeError, match="from_arrays"):
        fewbench.from_wide(frame.to_numpy())
    with pytest.raises(ValueError, match="did you mean"):
        fewbench.find_method("randm")
    with pytest.raises(ValueError, match="not a number of items"):
        fewbench.Evaluation(fewbench.from_wide(frame), "random", "ten")


def test_help_is_free_of_inner_types_and_dir_of_helpers():
    import pydoc

    from fewbench import datasets, errors, methods

    for module in (fewbench, datasets, errors, methods):
        assert set(dir(module)) == set(module.__all__)
        for name in set(module.__all__) - {"__version__"}:
            text = pydoc.render_doc(getattr(module, name))
            assert "numpy._typing" not in text, name
            assert "numpy.dtype[" not in text, name
