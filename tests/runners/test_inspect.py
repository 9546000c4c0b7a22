"""Runs in the real Inspect, with a scripted model: chosen samples, checks, faults."""

import asyncio
import importlib.util
import json
import os
import random
import signal
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import fewbench
from fewbench.cli import main as fewbench_main
from fewbench.errors import AnswersError, ReaderError, RunError
from fewbench.evaluation import Evaluation, Stop
from fewbench.inspect import estimated, result
from fewbench.readers.harnesses.inspect_logs.samples import content_of
from fewbench.readers.values import content_id
from fewbench.runners.inspect.pool import SharedRun
from fewbench.runners.inspect.samples import match_samples, tasks_in, with_ids
from fewbench.scores.conditions import COLUMNS
from fewbench.scores.roles import as_scores
from fewbench.testing import simulate

QUIZ = Path(__file__).with_name("inspect_quiz.py")
ADAPTIVE = "fluid"
pytestmark = [
    # Looked for, not imported: it would take a second whenever tests are collected.
    pytest.mark.skipif(not importlib.util.find_spec("inspect_ai"), reason="needs inspect-ai"),
    # Of tenacity, as Inspect 0.3.285 uses it.
    pytest.mark.filterwarnings("ignore:The 'initial' parameter:DeprecationWarning"),
]


def quiz_module():
    spec = importlib.util.spec_from_file_location("inspect_quiz", QUIZ)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", autouse=True)  # it registers the scripted model
def quiz():
    return quiz_module()


def sources(folder, tasks, **settings):
    """Scores of simulated models, on the items of a real log."""
    import inspect_ai

    how = {"model": "scripted/one-9", "log_dir": str(folder), "display": "none"} | settings
    for log in inspect_ai.eval(tasks, **how):
        assert log.status == "success", log.error
    read = fewbench.import_results(folder).scores
    made = simulate(24, read.n_items, seed=4)
    values = np.where(np.isin(read.values, (0, 1)).all(), made.values, 0.5 + 0.5 * made.values)
    table = fewbench.from_arrays(
        values, models=made.model_ids, items=read.item_ids, tasks=read.items["task"].tolist()
    )
    return replace(table, items=read.items)


@pytest.fixture(scope="module")
def scores(quiz, tmp_path_factory):
    return sources(tmp_path_factory.mktemp("sources"), [f"{QUIZ}@quiz"])


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """The questions that the model was asked so far."""
    path = tmp_path / "asked.txt"
    monkeypatch.setenv("ASKED", str(path))
    return lambda: path.read_text().splitlines() if path.exists() else []


def edited_amid_a_run(scores, folder, monkeypatch):
    """Run half, change the scorer's options, and go on."""
    monkeypatch.delenv("NUMERIC")
    run(scores, folder, method="random")
    path = folder / "answers.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:8]))
    monkeypatch.setenv("NUMERIC", "1")
    run(scores, folder, method="random")


def run(scores, folder, *arguments, task="quiz", model="scripted/new-9", **settings):
    from fewbench.runners.inspect.runner import run_inspect

    given = {"method": "auto" if scores is None else ADAPTIVE, "stop": 8} | settings
    arguments = [f"{QUIZ}@{task}", "--model", model, *arguments]
    return run_inspect(scores, arguments=arguments, folder=folder, quiet=True, **given)


def logs_of(folder):
    from inspect_ai.log import read_eval_log

    return [read_eval_log(str(path)) for path in sorted(Path(folder, "logs").iterdir())]


def told(folder):
    """Item → score, as the folder has them."""
    path = Path(folder, "answers.jsonl")
    lines = path.read_text().splitlines() if path.exists() else []
    entries = [json.loads(line) for line in lines if line.endswith("}")]
    return {
        item: score
        for entry in entries
        if "scores" in entry
        for item, score in zip(entry["items"], entry["scores"], strict=True)
    }


def question_of(scores, item):
    return f"Is {scores.items['sample_id'][item].removeprefix('q')} so?"


class TestWhatRuns:
    def test_the_chosen_samples_run_once_and_nothing_else(self, scores, tmp_path, asked, quiz):
        seen = []
        result = run(scores, tmp_path / "run", on_progress=lambda run, name: seen.append(name))
        answers = told(tmp_path / "run")
        assert len(answers) == 8
        assert sorted(asked()) == sorted(question_of(scores, item) for item in answers)
        (log,) = logs_of(tmp_path / "run")
        assert log.status == "success"
        assert {f"quiz/{content_id(*content_of(one))}" for one in log.samples} == set(answers)
        assert [step.solver for step in log.plan.steps] == ["generate"]
        assert log.eval.metadata["fewbench"]["note"].startswith("samples chosen by fewbench")
        one = result.targets["scripted/new-9"]
        assert (one.items_run, one.tokens, one.failed) == (8, 88, {})
        assert len(seen) > 1  # an adaptive method: several batches in one eval
        # By hand, with the log: the same.
        by_hand = Evaluation(scores, ADAPTIVE, 8, ["scripted/new-9"])
        reading = fewbench.import_results(tmp_path / "run" / "logs", like=scores)
        assert any("fewbench chose the items" in note for note in reading.notes)
        while by_hand.ask():
            assert by_hand.tell_table(reading.scores).answers
        assert by_hand.estimate()["scripted/new-9"].score == one.estimate.score
        # Samples that moved and got other ids are found by what they say.
        run(scores, tmp_path / "moved", "-T", "renamed=true", accept_differences=True)
        assert told(tmp_path / "moved") == answers

    def test_several_tasks_and_models_share_a_run(self, tmp_path, asked, monkeypatch, quiz):
        import inspect_ai

        both = [f"{QUIZ}@quiz", f"{QUIZ}@more"]
        table = sources(tmp_path / "sources", both)
        models = "scripted/good-16,scripted/bad-2"
        with pytest.raises(RunError, match=r"'quiz'.*'more'"):
            run(table, tmp_path / "run", model=models, stop=12)
        assert not (tmp_path / "run").exists()
        asked_before = len(asked())
        found = run(table, tmp_path / "run", both[1], model=models, stop=12).estimates
        assert len(asked()) - asked_before == 24
        assert found["scripted/good-16"].score > found["scripted/bad-2"].score
        logs = logs_of(tmp_path / "run")
        assert {(log.eval.task, log.eval.model, log.status) for log in logs} == {
            (task, model, "success") for task in ("quiz", "more") for model in models.split(",")
        }
        with pytest.raises(RunError, match=r"1 target.*2 models"):
            run(table, tmp_path / "other", both[1], model=models, targets=["new"])
        # A task that fails does not leave the other one waiting for its samples.
        chosen = Evaluation(table, "random", 12, ["new"]).ask()["new"]
        first = next(item for item in chosen if item.startswith("quiz"))
        monkeypatch.setenv("FAIL", question_of(table, first))
        given = ["--fail-on-error", "1"]
        failed = run(table, tmp_path / "failed", both[1], *given, method="random", stop=12, tries=1)
        assert "the service is down" in failed.stopped
        monkeypatch.delenv("FAIL")
        # Tasks that wait for one that never starts say so.
        monkeypatch.setattr("fewbench.runners.inspect.pool.WAIT", 0.1)
        tasks = estimated([quiz.quiz(), quiz.more()], table, "random", 12)
        log, _ = inspect_ai.eval(
            tasks, model="scripted/a-9", max_tasks=1, log_dir=str(tmp_path), display="none"
        )
        assert "1 task of Inspect did not start" in log.error.message

    def test_epochs_are_reduced_as_inspect_does(self, scores, tmp_path):
        from inspect_ai.scorer import value_to_float

        epochs = ("-M", "unsteady=true", "--epochs", "3", "--epochs-reducer")
        with pytest.raises(RunError, match=r"'quiz'.*3.*at_least_2.*1"):
            run(scores, tmp_path / "run", *epochs, "at_least_2")
        for reducer in ("at_least_2", "mean"):
            folder = tmp_path / reducer
            accepted = {"accept_differences": True, "accept_fractions": True}
            (found,) = run(scores, folder, *epochs, reducer, **accepted).estimates.values()
            assert any(f"3 ({reducer}) in the answers" in one for one in found.warnings)
            (log,) = logs_of(folder)
            value_of = value_to_float()
            reduced = {one.sample_id: value_of(one.value) for one in log.reductions[0].samples}
            own = {scores.items["sample_id"][i]: value for i, value in told(folder).items()}
            assert own == pytest.approx(reduced)
        both = run(scores, tmp_path / "both", *epochs, "at_least_2,mean", **accepted)
        own = "Inspect's own score takes at_least_2, mean"
        assert f"task 'quiz': scores are means over 3 epochs; {own}" in both.notes

    @pytest.mark.parametrize("how", [("--epochs", "3"), ("-T", "epochs=3")])
    def test_a_limit_on_cost_counts_every_epoch(self, scores, tmp_path, asked, how):
        table = scores.changed(items=scores.items.assign(cost=2.0))
        folder, accepted = tmp_path / "run", {"accept_differences": True}
        found = run(table, folder, *how, method="random", stop=Stop(cost=24), **accepted)
        assert len(asked()) == 12  # 4 items, 3 epochs each, for 2.0 each
        (target,) = found.targets.values()
        assert (target.items_run, target.cost, target.full_cost) == (4, 24.0, 180.0)
        assert Evaluation.open(folder, table).cost("scripted/new-9").spent == 24.0

    def test_a_limit_on_cost_needs_prices(self, scores, tmp_path, asked, monkeypatch):
        """Of all models; reported costs pass it by no more than the samples that run at a time."""
        from inspect_ai.model import ModelCost, ModelInfo, set_model_info

        folder, how = tmp_path / "run", {"method": "random", "accept_differences": True}
        for stop in (Stop(cost=1), Stop(cost=1, items=20)):
            with pytest.raises(RunError, check=lambda error: error.kind == "missing") as refused:
                run(scores, folder, "--epochs", "3", stop=stop, **how)
            assert "--model-cost-config" in refused.value.hint
            assert not folder.exists()
        assert not asked()
        prices = ModelCost(input=1e5, output=0, input_cache_write=0, input_cache_read=0)
        set_model_info("scripted/new-9", ModelInfo(cost=prices))  # 1 for each answer
        try:
            with pytest.raises(RunError, check=lambda error: error.kind == "missing"):
                run(scores, folder, model="scripted/new-9,scripted/b-9", stop=Stop(cost=20), **how)
            assert not asked()
            words = ("--epochs", "3", "--max-samples", "6")
            found = run(scores, folder, *words, stop=Stop(cost=20), **how)
        finally:
            set_model_info("scripted/new-9", ModelInfo())
        assert len(asked()) == found.spent.cost == 18
        assert any("passed by the 6 samples that run" in note for note in found.notes)

    def test_epochs_are_answers_whose_spread_is_kept(self, scores, tmp_path):
        settings = ("-M", "unsteady=true", "--epochs", "3")
        folder = tmp_path / "run"
        found = run(scores, folder, *settings, accept_differences=True)  # and no accept_fractions
        (estimate,) = found.estimates.values()
        assert not any("fractions" in warning for warning in estimate.warnings)
        answers = Evaluation.open(folder, scores).record.answers("scripted/new-9")
        assert (answers.counts == 3).all()
        assert np.nanmax(answers.variances) > 0
        read = fewbench.import_results(folder / "logs").scores
        assert read.repeats is not None
        at = read.positions(scores.item_ids[answers.items])
        np.testing.assert_allclose(read.values[0, at], answers.scores[0])
        np.testing.assert_allclose(read.repeats.variances[0, at], answers.variances[0])
        either = fewbench.import_results(folder / "logs", trials="pass@2").scores
        assert (either.values[0, at] >= read.values[0, at]).all()
        assert not either.equals(read)

    def test_samples_run_again_once_all_ran(self, scores, tmp_path, asked):
        folder = tmp_path / "run"
        found = run(scores, folder, "-M", "unsteady=true", repeats=3)
        assert (len(asked()), len(set(asked()))) == (24, 8)
        assert len(set(asked()[:8])) == 8
        assert len(logs_of(folder)) == 3
        assert found.stopped is None
        evaluation = Evaluation.open(folder, scores)
        assert (evaluation.record.answers("scripted/new-9").counts == 3).all()
        again = run(scores, folder, "-M", "unsteady=true", repeats=3)
        assert len(asked()) == 24
        assert any("nothing was run" in warning for warning in again.warnings)

    def test_a_scorer_of_several_values(self, tmp_path):
        import inspect_ai

        from fewbench.runners.inspect.runner import run_inspect

        inspect_ai.eval(
            str(QUIZ) + "@quiz",
            model="scripted/one-9",
            task_args={"scored": "parts"},
            log_dir=str(tmp_path / "sources"),
            display="none",
        )
        read = fewbench.import_results(tmp_path / "sources", metric="parts.right").scores
        values = np.repeat(read.values, 20, axis=0)
        table = fewbench.from_arrays(
            values, models=[f"m{at}" for at in range(20)], items=read.item_ids, tasks=["quiz"] * 30
        )
        table = replace(table, items=read.items)
        run(table, tmp_path / "run", "-T", "scored=parts", method="random")
        assert set(told(tmp_path / "run").values()) == {0.5, 1.0}
        plain = replace(table, items=table.items.drop(columns="metric"))
        arguments = [f"{QUIZ}@quiz", "--model", "scripted/new-9", "-T", "scored=parts"]
        for metric, what in ((None, "do not say which metric"), ("match", "no 'match'")):
            with pytest.raises(RunError, match=f"{what}; its scorers give 'parts.right', 'par"):
                run_inspect(
                    plain, "random", 8, arguments, folder=tmp_path / "m", metric=metric, quiet=True
                )

    def test_option_probabilities_for_methods_that_compare_them(self, tmp_path, quiz):
        import inspect_ai

        given = {"display": "none", "max_tasks": 9, "log_dir": str(tmp_path / "sources")}
        models = [f"scripted/m{at}-{3 * at}" for at in range(6)]
        inspect_ai.eval(f"{QUIZ}@letters", model=models, **given)
        table = fewbench.import_results(tmp_path / "sources").scores
        assert table.probabilities is not None
        run(table, tmp_path / "run", task="letters", method="random-signature-knn", stop=6)
        lines = Path(tmp_path, "run", "answers.jsonl").read_text().splitlines()
        told = [entry for entry in map(json.loads, lines) if "scores" in entry]
        assert len(told) == 6
        for entry in told:
            (((first, second),), (score,)) = entry["probabilities"], entry["scores"]
            assert first + second == pytest.approx(1)
            assert (first > 0.5) == (score == 1)


class TestChecksBeforeAnythingIsSpent:
    def test_what_is_refused(self, scores, tmp_path, asked):
        plain = scores.items.drop(columns=["harness", "sample_id"]).rename(index=lambda i: f"x{i}")
        for arguments, settings, what in (
            (["-T", "changed=q7"], {}, r"1 sample changed: 'q7' \(of 30\)"),
            (["-T", "n=28"], {}, r"2 samples missing: 'q28', 'q29'"),
            (["-T", "n=28"], {"accept_differences": True}, r"2 samples missing: 'q28', 'q29'"),
            (["--temperature", "0.5"], {}, r"temperature of task 'quiz': 0.5 in the answers, not"),
            (["--token-limit", "50"], {}, r"token_limit of task 'quiz': 50"),
            ([], {"task": "polite"}, r"solver of task 'quiz': system_message"),
            (["--limit", "5"], {}, r"--limit cannot be used"),
            (["--sample-id", "q1"], {}, r"--sample-id cannot be used"),
            (["--no-score"], {}, r"--no-score"),
            (["--log-dir", "x"], {}, r"logs are written to the folder logs"),
            (["--what"], {}, r"Inspect: No such option '--what'"),
            ([], {"task": "nothing"}, r"Inspect: .*nothing"),
            ([], {"model": "scripted"}, r"Inspect: "),
            ([], {"metric": "f1"}, r"task 'quiz': no 'f1'; its scorers give 'match'"),
            ([], {"scores": replace(scores, items=plain)}, r"30 items of 30 not found in"),
        ):
            given = {"scores": scores, "folder": tmp_path / "run"} | settings
            with pytest.raises(RunError, match=what):
                run(given.pop("scores"), given.pop("folder"), *arguments, **given)
            assert not told(tmp_path / "run")
            for path in (tmp_path / "run").glob("*.json*"):
                path.unlink()
        assert not asked()

    @pytest.mark.parametrize(
        ("harness", "said"),
        [
            ("swe-bench", "models ran in swe-bench, not in inspect"),
            ("", "scores do not record"),
        ],
    )
    def test_samples_of_another_harness_run_by_id_with_a_warning(
        self, scores, tmp_path, harness, said
    ):
        own = {id: f"quiz-{at}" for at, id in enumerate(scores.item_ids)}
        items = scores.items.rename(index=own).drop(columns=["key_hashes", "task_settings"])
        items = items.assign(harness=harness) if harness else items.drop(columns="harness")
        result = run(replace(scores, items=items), tmp_path / "run", method="random")
        assert result.targets["scripted/new-9"].items_run == 8
        assert said in " ".join(result.notes)
        again = Evaluation.open(tmp_path / "run", replace(scores, items=items)).estimate(warn=False)
        assert said in " ".join(again["scripted/new-9"].warnings)

    def test_another_way_of_scoring_is_refused(self, scores, quiz, tmp_path, asked, monkeypatch):
        """Options of a scorer, epochs; in runs, in logs, among sources, and amid a run."""
        import inspect_ai

        thrice = sources(tmp_path / "thrice", [f"{QUIZ}@quiz"], epochs=3)
        asked_before = len(asked())
        other = r"epochs of task 'quiz': 1 in the answers, 3 \(mean\) in the sources"
        with pytest.raises(RunError, match=other):
            run(thrice, tmp_path / "run")
        monkeypatch.setenv("NUMERIC", "1")
        numeric = r"metric of task 'quiz': match\(numeric=true\) in the answers, match in the sour"
        with pytest.raises(RunError, match=numeric):
            run(scores, tmp_path / "run")
        # Sources that do not record it: the answers so far do.
        plain = replace(scores, items=scores.items.drop(columns=["task_settings", "key_hashes"]))
        amid = r"match\(numeric=true\) in the task now, match in the beginning of this run"
        with pytest.raises(RunError, match=amid):
            edited_amid_a_run(plain, tmp_path / "amid", monkeypatch)
        assert len(asked()) - asked_before == 8  # before the task was edited
        monkeypatch.setenv("NUMERIC", "1")
        how = {"log_dir": str(tmp_path / "n"), "display": "none"}
        inspect_ai.eval(f"{QUIZ}@quiz", model="scripted/other-3", **how)
        evaluation = Evaluation(scores, "random", 8, ["new"])
        evaluation.ask()
        with pytest.raises(AnswersError, match=numeric):
            evaluation.tell_table(fewbench.import_results(tmp_path / "n", like=scores).scores)
        monkeypatch.delenv("NUMERIC")
        run(scores, tmp_path / "plain")  # numeric=False is what the scorer does anyway
        with pytest.raises(ReaderError, match="'quiz'"):
            fewbench.import_results([tmp_path / "n", tmp_path / "plain" / "logs"])

    def test_scores_of_a_plain_table_are_matched_by_id(self, scores, tmp_path):
        ids = scores.items["sample_id"].tolist()
        plain = fewbench.from_arrays(scores.values, models=scores.model_ids, items=ids)
        result = run(plain, tmp_path / "run")
        assert any("compared with the sources by id only" in note for note in result.notes)
        assert set(told(tmp_path / "run")) <= set(ids)


def test_which_sample_is_which_item(scores):
    """Equal samples are told apart; images are compared by id; what is unknown is named."""

    def sample(own_id, said="Is it so?", image=None):
        parts = [SimpleNamespace(text=said)] + [SimpleNamespace(image=image)] * bool(image)
        asked = [SimpleNamespace(content=parts)] if image else said
        return SimpleNamespace(id=own_id, input=asked, choices=None, target="yes")

    same = content_id(*content_of(sample("a")))
    seen = content_id(*content_of(sample("c", image="c.png")))
    items = [f"quiz/{same}", f"quiz/{same}#2", f"quiz/{seen}"]
    table = fewbench.from_arrays(np.eye(3), models=list("xyz"), items=items, tasks=["quiz"] * 3)
    known = {"harness": "inspect", "sample_id": ["a", "b", "c"]}
    table = replace(table, items=table.items.assign(**known))
    there = [sample("new"), sample("b"), sample("c", image="data:…")]
    found, notes = match_samples(table, ["quiz"], there)
    assert [found[item].id for item in items] == ["new", "b", "c"]
    assert notes == [
        "1 sample of task 'quiz' with images or other media are compared with the sources by id "
        "only"
    ]
    with pytest.raises(RunError, match=r"1 sample.*'b'.*1 sample.*'c'.*3"):
        match_samples(table, ["quiz"], [sample("new"), sample("b", "And it?")])
    assert [tasks_in(table, name) for name in ("quiz", "own/quiz", "any")] == [("quiz",)] * 3
    with pytest.raises(RunError, match="the id '1'"):
        with_ids([sample(1), sample("1")])


class TestFaults:
    def test_samples_that_fail_are_tried_again_then_skipped_and_named(
        self, scores, tmp_path, quiz, asked, monkeypatch
    ):
        import inspect_ai

        chosen = Evaluation(scores, "random", 8, ["new"]).ask()["new"]
        failing = [question_of(scores, item) for item in chosen[:2]]
        monkeypatch.setenv("FAIL", ",".join(failing))
        found = run(scores, tmp_path / "run", method="random", targets=["new"])
        assert set(found.targets["new"].failed) == set(chosen[:2])
        assert "the service is down" in found.targets["new"].failed[chosen[0]]
        assert [asked().count(one) for one in failing] == [3, 3]
        assert (found.targets["new"].items_run, found.stopped) == (6, None)
        monkeypatch.delenv("FAIL")
        how = {"folder": tmp_path / "run", "target": "new", "retry_skipped": True}
        task = estimated(quiz.quiz(), scores, "random", 8, **how)
        inspect_ai.eval(task, model="scripted/new-9", log_dir=str(tmp_path), display="none")
        assert result(task).targets["new"].items_run == 8
        monkeypatch.setenv("FAIL", ",".join(failing))
        # The user's own policy counts: the first error ends the eval.
        own = run(scores, tmp_path / "own", "--fail-on-error", "1", method="random", tries=1)
        assert own.is_failed
        assert own.stopped == "Inspect: quiz: RuntimeError: the service is down"

    def test_a_model_that_always_fails_ends_the_run(self, scores, tmp_path, monkeypatch):
        monkeypatch.setenv("DIE", "1")
        found = run(scores, tmp_path / "run", method="random", tries=1)
        assert found.is_failed
        assert "failed on" in found.stopped
        monkeypatch.delenv("DIE")
        assert (
            run(scores, tmp_path / "run", method="random").targets["scripted/new-9"].items_run == 8
        )

    @pytest.mark.parametrize("n_items", [20])
    def test_an_outage_after_some_answers_skips_no_sample(
        self, scores, tmp_path, monkeypatch, n_items
    ):
        chosen = Evaluation(scores, "random", n_items, ["new"]).ask()["new"]
        monkeypatch.setenv("FAIL", ",".join(question_of(scores, item) for item in chosen[12:]))
        given = {"method": "random", "stop": n_items, "targets": ["new"], "batch": 8, "tries": 1}
        found = run(scores, tmp_path / "run", "--max-samples", "1", **given)
        assert found.is_failed
        assert "items in a row, first: " in found.stopped
        assert (found.targets["new"].items_run, found.targets["new"].failed) == (12, {})
        monkeypatch.delenv("FAIL")
        found = run(scores, tmp_path / "run", **given)
        assert (found.targets["new"].items_run, found.stopped) == (n_items, None)

    @pytest.mark.usefixtures("quiz")
    def test_scores_on_another_scale_end_the_run_with_the_first_batch(self, tmp_path, asked):
        with pytest.raises(RunError, match=r"'points': 'fixed' is 87, outside 0\.\.1") as error:
            run(None, tmp_path / "run", task="points", stop=30)
        assert "--metric" in error.value.hint
        assert len(asked()) <= 10

    def test_what_only_the_log_has_is_read_from_it(self, scores, tmp_path, asked):
        name = "scripted/new-9"
        first = run(scores, tmp_path / "run", method="random")
        path = tmp_path / "run" / "answers.jsonl"
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:8]))
        assert len(told(tmp_path / "run")) == 3
        again = run(scores, tmp_path / "run", method="random")
        assert len(asked()) == 8
        assert len(logs_of(tmp_path / "run")) == 1  # a log without samples is of no use
        with pytest.raises(RunError, match=r"other-3,.*new-9"):
            run(scores, tmp_path / "run", method="random", model="scripted/other-3", targets=[name])
        assert again.estimates[name].score == first.estimates[name].score
        assert run(scores, tmp_path / "run", method="random").targets[name].items_run == 8

    def test_another_model_joins_and_gets_the_same_samples(self, tmp_path, asked):
        """The first one's logs are in the folder, and are not taken for its answers."""
        sources, names = None, ("scripted/new-9", "scripted/other-3")
        for name in names:
            run(sources, tmp_path / "run", model=name)
            run(sources, tmp_path / name.replace("/", "-"), model=name, items_of=tmp_path / "run")
        assert len(asked()) == 4 * 8
        both = Evaluation.open(tmp_path / "run", sources)
        assert both.targets == names
        items = [both.record.asked(name).tolist() for name in names]
        assert items[0] == items[1]
        for name in names:
            alone = Evaluation.open(tmp_path / name.replace("/", "-"), sources)
            answers = [one.record.answers(name).scores.tolist() for one in (alone, both)]
            assert answers[0] == answers[1]
        again = run(sources, tmp_path / "run", model=names[0])
        assert list(again.targets) == [names[0]]
        assert len(asked()) == 4 * 8

    # From Python 3.12 on, fork warns of threads; Inspect's are idle between evals.
    @pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
    def test_killed_and_interrupted_at_any_moment(self, scores, tmp_path, asked, monkeypatch, fork):
        """Nothing recorded is asked again or lost, and the estimate is that of a run in peace."""
        left = kills = int(os.environ.get("FEWBENCH_KILLS", "3"))
        monkeypatch.setenv("SLOW", ".03")
        peace = estimate_of(scores, tmp_path / "peace")
        rng = random.Random(1)
        while left:
            folder, kept, out = tmp_path / f"run{left}", {}, tmp_path / f"estimate{left}"
            while not out.exists():
                before = len(asked())
                pid = fork(partial(write_estimate, scores, folder, out))
                ended, status = 0, 0
                if left:
                    end = signal.SIGINT if left == kills - 1 else signal.SIGKILL
                    # By what was asked: after some time it may not have begun, or have ended.
                    more = rng.randrange(end == signal.SIGINT, max(2, 12 - len(kept)))
                    while not ended and len(asked()) < before + more:
                        time.sleep(0.002)
                        ended, status = os.waitpid(pid, os.WNOHANG)
                    if not ended:
                        os.kill(pid, end)
                    left -= 1
                if not ended:
                    _, status = os.waitpid(pid, 0)
                assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
                assert not {question_of(scores, item) for item in kept} & set(asked()[before:])
                assert not {item for item in kept if told(folder).get(item) != kept[item]}
                kept = told(folder)
            assert out.read_text() == str(peace)


def estimate_of(scores, folder):
    found = run(scores, folder, "--max-samples", "2", stop=12, batch=6)
    return None if found.stopped else found.estimates["scripted/new-9"].score


def write_estimate(scores, folder, out):
    with suppress(KeyboardInterrupt):  # before the first sample, or after the last one
        if (found := estimate_of(scores, folder)) is not None:
            part = out.with_suffix(".part")  # a kill may come amid the writing
            part.write_text(str(found))
            part.rename(out)


def test_by_the_command_line(scores, tmp_path, monkeypatch, capsys, asked):
    path = fewbench.save_scores(scores, tmp_path / "scores.parquet")
    folder = tmp_path / "run"

    def say(*words):
        monkeypatch.setattr("sys.argv", ["fewbench", *map(str, words)])
        with pytest.raises(SystemExit) as exit_:
            fewbench_main()
        said = capsys.readouterr()
        return exit_.value.code or 0, said.out, said.err

    given = ("run", "inspect", path, "-m", "random", "-n", 6, "-o", folder)
    code, out, err = say(*given, "--json", "--", f"{QUIZ}@quiz", "--model", "scripted/new-9")
    assert code == 0, err
    assert json.loads(out)["targets"]["scripted/new-9"]["items_run"] == 6
    assert (say("tell", folder, folder / "logs")[1]).startswith("recorded 0 answers")
    for arguments, what in (
        (["--limit", "3", f"{QUIZ}@quiz"], "fewbench: error: --limit cannot be used"),
        ([f"{QUIZ}@quiz", "--model", "scripted/new-9", "-T", "n=9"], "21 samples missing"),
        (["--model", "scripted/new-9"], "no Inspect task is given"),
    ):
        code, _, err = say(*given[:-1], tmp_path / "other", "--", *arguments)
        assert (code, "Traceback" in err) == (2, False)
        assert what in err
    assert len(asked()) == 6


@pytest.mark.usefixtures("quiz")  # which registers the model
class TestWithoutSources:
    def test_ctrl_c_before_the_run_is_open(self, tmp_path, asked, monkeypatch):
        """Nothing says so but the interrupt itself; a rerun begins as if nothing had been."""

        async def interrupted(pool):
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(60)  # which is cancelled

        with monkeypatch.context() as patched:
            patched.setattr(SharedRun, "learn_items", interrupted)
            with pytest.raises(KeyboardInterrupt):
                run(None, tmp_path / "run")
        assert not asked()
        assert run(None, tmp_path / "run").targets["scripted/new-9"].items_run == 8

    def test_items_settings_and_metric_are_those_of_an_import(self, tmp_path, asked):
        import inspect_ai

        both = [f"{QUIZ}@quiz", f"{QUIZ}@more"]
        notes = []
        first = run(None, tmp_path / "run", both[1], stop=12, on_notes=notes.extend)
        found = first.estimates["scripted/new-9"]
        assert (found.items_run, len(asked())) == (12, 12)
        assert any("there are no source models" in note for note in notes)
        made = fewbench.load_scores(tmp_path / "run" / "benchmark.parquet")
        how = {"model": "scripted/one-9", "log_dir": str(tmp_path / "whole"), "display": "none"}
        inspect_ai.eval(both, **how)
        whole = fewbench.import_results(tmp_path / "whole").scores
        assert made.n_models == 0
        assert made.items.equals(whole.items.drop(columns="tokens"))  # which logs alone know
        # Rerun: the same samples, nothing is asked again; the folder's logs can be told.
        asked_before = len(asked())
        again = run(None, tmp_path / "run", both[1], stop=12)
        assert len(asked()) == asked_before
        assert again.estimates["scripted/new-9"].score == found.score
        by_hand = Evaluation(whole.benchmark, budget=12, targets=["scripted/new-9"])
        while by_hand.ask():
            reading = fewbench.import_results(tmp_path / "run" / "logs", like=by_hand.scores)
            assert by_hand.tell_table(reading.scores).answers
        assert by_hand.estimate()["scripted/new-9"].interval == found.interval

    def test_models_tasks_and_values_of_scorers(self, tmp_path, quiz, asked):
        import inspect_ai

        models = "scripted/good-16,scripted/bad-2"
        found = run(None, tmp_path / "two", f"{QUIZ}@more", model=models, stop=12)
        assert {name: one.items_run for name, one in found.estimates.items()} == dict.fromkeys(
            models.split(","), 12
        )
        found = run(None, tmp_path / "parts", "-T", "scored=parts")
        said = "metric 'parts.right' of 1 task: 'quiz'; there is also 'parts.brief', see --metric"
        assert said in found.notes
        assert set(told(tmp_path / "parts").values()) <= {0.5, 1.0}
        (tmp_path / "parts" / "answers.jsonl").write_text("")
        with pytest.raises(RunError, match=r"'quiz'.*'parts.right'"):
            run(None, tmp_path / "parts", "-T", "scored=parts", metric="parts.brief")
        tasks = estimated([quiz.quiz(), quiz.more()], None, stop=12, folder=tmp_path / "own")
        options = {"model": "scripted/a-9", "log_dir": str(tmp_path / "logs"), "display": "none"}
        inspect_ai.eval(tasks, max_tasks=2, **options)
        assert result(tasks[0]).estimates["scripted/a-9"].items_run == 12

    def test_what_is_refused(self, scores, tmp_path, asked, monkeypatch):
        run(None, tmp_path / "run")
        path = tmp_path / "run" / "answers.jsonl"
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:8]))
        asked_before = len(asked())
        began = "task 'quiz' has changed since this run began"
        for arguments, what in (
            (["-T", "changed=q7"], rf"{began}: 1 sample changed: 'q7' \(of 30\)"),
            (["-T", "n=28"], rf"{began}: 2 samples missing: 'q28', 'q29'"),
            (["-T", "n=31"], rf"{began}: 1 sample added: 'q30'"),
            (["--temperature", "0.5"], "temperature of task 'quiz': 0.5 in the task now, not set"),
            ([f"{QUIZ}@more"], "the run in this folder has no task 'more'; its tasks are 'quiz'"),
        ):
            with pytest.raises(RunError, match=what):
                run(None, tmp_path / "run", *arguments)
        with pytest.raises(RunError, match="dataset is empty"):
            run(None, tmp_path / "empty", "-T", "n=0")
        run(scores, tmp_path / "sources")
        with pytest.raises(RunError, check=lambda error: error.kind == "changed"):
            run(None, tmp_path / "sources")
        assert len(asked()) == asked_before + 8


class TestReplies:
    """Those that are cut, filtered or another model's, run here or told from a log."""

    @pytest.mark.parametrize(
        ("variable", "value", "said"),
        [
            ("ENDS", "max_tokens", "cut at the token limit"),
            ("ENDS", "content_filter", "stopped by a content filter"),
            ("OTHER", "scripted/small", "written by the model 'scripted/small'"),
            ("ENDS", "stop", None),
        ],
    )
    def test_they_are_counted_or_refused(
        self, scores, tmp_path, monkeypatch, variable, value, said
    ):
        monkeypatch.setenv(variable, value)
        found = run(scores, tmp_path / "run", method="random").targets["scripted/new-9"]
        wrong = sum(score < 1 for score in told(tmp_path / "run").values())
        assert 1 < wrong < 8
        n = wrong if variable == "ENDS" else 8
        warnings = " ".join(found.estimate.warnings)
        expected = said and f"{n} of 8 replies were {said}"
        assert expected in warnings if said else " replies " not in warnings
        # The same by hand, with the log.
        logs = tmp_path / "run" / "logs"
        reading = fewbench.import_results(logs, like=scores)
        for strict in (True, False):
            by_hand = Evaluation(scores, "random", 8)
            if strict and said:
                with pytest.raises(AnswersError, match=expected):
                    by_hand.tell_table(reading.scores, strict=True)
                assert not len(by_hand.record.answered("target"))
                continue
            taken = by_hand.tell_table(reading.scores, strict=strict)
            assert taken.renamed == {"target": "scripted/new-9"}
            assert by_hand.estimate()["target"].warnings == found.estimate.warnings
        if said:
            with pytest.raises(AnswersError, match=r"1 of 1 reply was|leave out --strict"):
                run(scores, tmp_path / "strict", method="random", strict=True)

    @pytest.mark.parametrize("repeats", [1, 2])
    def test_answers_that_a_limit_ended_are_counted_and_run_again(
        self, scores, tmp_path, asked, repeats, monkeypatch
    ):
        monkeypatch.setenv("LONG", "1")
        folder, how = tmp_path / "run", {"method": "random", "repeats": repeats}
        how["accept_differences"] = True
        found = run(scores, folder, "--token-limit", "500", **how)
        wrong = [item for item in told(folder) if question_of(scores, item)[-5] in "13579"]
        assert 1 < len(wrong) < 8
        (estimate,) = found.estimates.values()
        said = f"{len(wrong)} of 8 samples ended by a token limit and count as wrong; --retry lim"
        assert any(said in warning for warning in estimate.warnings)
        n_asked, (old,) = len(asked()), found.targets.values()
        how["retry"] = "limits"
        found = run(scores, folder, "--token-limit", "5000", **how)
        again = repeats * [question_of(scores, item) for item in wrong]
        assert sorted(asked()[n_asked:]) == sorted(again)
        (new,) = found.targets.values()
        assert not any("ended by" in warning for warning in new.estimate.warnings)
        assert new.items_run == 8
        assert not found.reused
        assert new.tokens == old.tokens + 1011 * len(again)
        last = run(scores, folder, "--token-limit", "5000", **how)
        assert len(asked()) == n_asked + len(again)
        assert last.reused
        assert last.targets["scripted/new-9"].tokens == new.tokens

    def test_a_killed_run_takes_them_from_its_log(self, scores, tmp_path, monkeypatch):
        monkeypatch.setenv("ENDS", "max_tokens")
        whole = run(scores, tmp_path / "run", method="random").estimates["scripted/new-9"]
        answers = tmp_path / "run" / "answers.jsonl"
        lines = answers.read_text().splitlines(keepends=True)
        answers.write_text("".join(line for line in lines if '"scores"' not in line))
        again = run(scores, tmp_path / "run", method="random").estimates["scripted/new-9"]
        assert again.warnings == whole.warnings
        assert "replies were cut" in " ".join(again.warnings)


class TestOwnTask:
    def test_two_lines_in_a_task_of_ones_own(self, scores, tmp_path, quiz, asked):
        import inspect_ai

        fewbench.save_scores(scores, tmp_path / "scores.parquet")

        @inspect_ai.task(name="quiz")
        def own():
            plain = quiz.quiz()
            return estimated(
                plain, tmp_path / "scores.parquet", ADAPTIVE, 8, folder=tmp_path / "run"
            )

        options = {"model": "scripted/new-9", "log_dir": str(tmp_path / "logs"), "display": "none"}
        task = own()
        with pytest.raises(RunError, check=lambda error: error.kind == "unanswered"):
            result(task)
        (log,) = inspect_ai.eval(task, **options)
        assert (log.status, len(log.samples)) == ("success", 8)
        kept = Evaluation.open(tmp_path / "run").estimate()["scripted/new-9"].score
        assert result(task).estimates["scripted/new-9"].score == kept
        before = len(asked())
        inspect_ai.eval(own(), **options)  # the folder has all answers
        assert len(asked()) == before
        with pytest.raises(RunError, check=lambda error: error.kind == "unsupported"):
            result(quiz.quiz())

    def test_a_retry_tells_reused_samples_again(self, scores, tmp_path, quiz, asked, monkeypatch):
        import inspect_ai

        made = []

        @inspect_ai.task(name="quiz")
        def own():
            made.append(estimated(quiz.quiz(), scores, "random", 8))
            return made[-1]

        chosen = Evaluation(scores, "random", 8, ["new"]).ask()["new"]
        monkeypatch.setenv("FAIL", question_of(scores, chosen[-1]))
        options = {"log_dir": str(tmp_path / "logs"), "display": "none"}
        (log,) = inspect_ai.eval(own(), model="scripted/new-9", max_samples=1, **options)
        assert log.status == "error"
        monkeypatch.delenv("FAIL")
        (again,) = inspect_ai.eval_retry(log, **options)
        assert again.status == "success"
        assert result(made[-1]).targets["scripted/new-9"].items_run == 8
        assert len(asked()) == 9  # the one that failed, twice

    def test_mistakes_end_the_task_with_their_reason(self, scores, tmp_path, quiz, asked):
        import inspect_ai

        options = {"model": "scripted/new-9", "log_dir": str(tmp_path / "logs"), "display": "none"}
        for given, evaluated, what in (
            ({"changed": "q3"}, {}, "1 sample changed: 'q3'"),
            ({}, {"limit": 4}, "fewbench chooses the samples"),
            ({}, {"log_samples": False}, "cannot be checked"),
        ):
            task = estimated(quiz.quiz(**given), scores, ADAPTIVE, 8)
            (log,) = inspect_ai.eval(task, **options, **evaluated)
            assert log.status == "error"
            assert what in log.error.message
        assert not asked()
        with pytest.raises(fewbench.FewbenchError, match="did you mean"):
            estimated(quiz.quiz(), scores, "fluidd", 8)


def test_a_run_without_sources_becomes_one_with_its_settings(scores, tmp_path, asked):
    unknown = [name for name in COLUMNS if name in scores.items and name != "harness"]
    items = scores.items.drop(columns=unknown)
    run(as_scores(fewbench.Benchmark(items)), tmp_path / "first", method="random")
    table = fewbench.add(tmp_path / "first")
    assert table.model_ids == ["scripted/new-9"]
    assert set(table.items["task_settings"]) == set(scores.items["task_settings"])
    ran = table.items.index[~np.isnan(table.values[0])]
    keys, known = (one.items["key_hashes"].loc[ran].tolist() for one in (table, scores))
    assert keys == known
    with pytest.raises(RunError, match=r"'quiz'.*0.5"):
        run(table, tmp_path / "second", "--temperature", "0.5", method="random", targets=["next"])
