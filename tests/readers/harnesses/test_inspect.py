"""Logs that Inspect wrote (scripts/fixtures/inspect_logs.py), and what is wrong with some."""

import json
import math
import shutil
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fewbench.errors import MissingExtraError, ReaderError
from fewbench.readers.harness import LogUnit, Wants
from fewbench.readers.harnesses.inspect_logs import InspectLogs
from fewbench.readers.harnesses.inspect_logs.samples import option_table
from fewbench.readers.harnesses.inspect_logs.scores import costs_of
from fewbench.readers.join.table import join
from fewbench.readers.values import content_id

from .. import toy
from ..toy import CAPITALS, SUMS, TOY, expected

# Looked for, not imported: it would take a second whenever tests are collected.
pytestmark = pytest.mark.skipif(
    not find_spec("inspect_ai"), reason="logs of Inspect are read with inspect-ai"
)

FIXTURES = toy.FIXTURES / "inspect"


def below(*folders):
    return sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())


def runs_in(*names, key=None):
    harness = InspectLogs()
    units = harness.find(below(*(FIXTURES / name for name in names)))
    return [run for unit in units for run in harness.read(unit, Wants(key=key))]


def only(name, **wants):
    (run,) = runs_in(name, **wants)
    return run


class TestWholeRuns:
    def test_an_item_is_what_it_says(self):
        choice, free = runs_in("full")[:2]
        for item, content in zip(CAPITALS, choice.columns["content"], strict=True):
            options = item["choices"]
            assert content == content_id(item["question"], *options, options[item["gold"]])
        for item, content in zip(SUMS, free.columns["content"], strict=True):
            assert content == content_id(item["question"], item["answer"])


class TestPartsOfTasks:
    def test_chosen_samples_in_a_json_log(self):
        run = only("subset")
        assert run.path.suffix == ".json"
        assert run.columns["own_id"].tolist() == ["cap-2", "cap-7"]
        assert run.numbers("choice").tolist() == [1.0, 0.0]
        assert (run.total, run.n_rows) == (10, 2)
        # Which of the data they are the log does not tell.
        assert run.columns["position"].tolist() == [-1, -1]
        whole = runs_in("full")[0]
        assert set(run.columns["content"]) <= set(whole.columns["content"])

    def test_shuffled_data_has_no_positions(self):
        run = only("shuffled")
        assert (run.columns["position"] == -1).all()
        by_id = dict(zip(run.columns["own_id"], run.columns["content"], strict=True))
        whole = runs_in("full")[0]
        for own_id, content in zip(whole.columns["own_id"], whole.columns["content"], strict=True):
            assert by_id.get(own_id, content) == content

    def test_a_newer_run_of_a_part_replaces_that_part(self, tmp_path):
        shutil.copytree(FIXTURES / "full", tmp_path, dirs_exist_ok=True)
        shutil.copytree(FIXTURES / "rerun", tmp_path, dirs_exist_ok=True)
        harness = InspectLogs()
        runs = [
            run for unit in harness.find(below(tmp_path)) for run in harness.read(unit, Wants())
        ]
        reading = join([run for run in runs if run.task == "toy_capitals"])
        row = reading.scores.values[reading.scores.model_ids.index("toy/model-a")].tolist()
        assert row == [1.0, 1.0, *expected("toy/model-a", "toy_capitals")[2:]]
        assert any("2 of 10 items" in note and "newer run" in note for note in reading.notes)
        assert any("temperature" in note for note in reading.notes)

    def test_other_task_arguments_are_no_rerun(self):
        chat, full = only("chat"), runs_in("full")[1]
        assert (chat.group, chat.variant) == (str(FIXTURES / "chat"), "chat=true")
        assert (full.group, full.variant) == (str(FIXTURES / "full"), "")

    def test_stopped_early(self):
        run = only("early")
        assert run.columns["own_id"].tolist() == ["cap-0", "cap-1"]
        assert run.total == 10
        assert any("'stop-after' stopped the run after 2 items" in note for note in run.notes)


class TestUnanswered:
    def test_errors_are_not_run(self):
        run = only("errors")
        assert run.columns["own_id"].tolist() == ["sum-0", "sum-2"]
        assert run.numbers("match").tolist() == [0.0, 1.0]
        assert run.notes == ("samples that ended in an error count as not run (1): 'sum-1'",)

    def test_retried(self):
        failed, retried = runs_in("retried")
        assert failed.columns["own_id"].tolist() == ["sum-0"]
        assert "status 'error': RuntimeError('the service is down')" in failed.notes[0]
        assert retried.notes == ()
        assert failed.stamp < retried.stamp
        scores = join([retried, failed], metric="match").scores
        assert scores.values.tolist() == [expected("toy/model-a", "toy_sums")[:3]]

    def test_killed(self):
        run = only("killed")
        assert run.numbers("match").tolist() == expected("toy/model-a", "toy_sums")[:4]
        assert "did not finish (status 'started')" in run.notes[0]

    def test_no_sample_has_a_score(self, tmp_path):
        path = changed_json(tmp_path, lambda log: log["samples"].clear())
        with pytest.raises(ReaderError, match="--damaged skip"):
            read_one(path)


class TestScores:
    def test_epochs_are_averaged(self):
        run = only("epochs")
        scores = join([run], metric="match").scores
        assert scores.values[0].tolist() == [0.0, 0.5]
        assert scores.repeats.counts[0].tolist() == [2, 2]
        assert run.notes == ("scores are means over 2 epochs",)

    def test_letters_names_and_lists(self):
        run = only("parts")
        assert run.metrics == ("parts.right", "parts.length", "halves", "graded")
        assert run.numbers("parts.right").tolist() == [1.0, 0.0]
        assert run.numbers("parts.length").tolist() == [12.0, 13.0]
        assert run.numbers("graded").tolist() == [1.0, 0.5]
        with pytest.raises(ReaderError, match=r"sample 1.*'halves'.*2,"):
            run.numbers("halves")

    def test_a_sample_that_one_scorer_left_out_is_not_run(self):
        assert only("parts").notes == (
            "samples that have no score of 'graded' count as not run (1): 'sum-6'",
        )

    def test_what_inspect_leaves_unscored_is_not_run(self, tmp_path):
        def unscore(log):
            log["samples"][0]["scores"]["choice"]["value"] = math.nan

        run = read_one(changed_json(tmp_path, unscore))
        assert run.columns["own_id"].tolist() == ["cap-7"]
        assert "have no score" in run.notes[0]

    def test_a_value_that_is_no_number_is_named_when_taken(self, tmp_path):
        def rate(log):
            log["samples"][1]["scores"]["choice"]["value"] = "good"

        run = read_one(changed_json(tmp_path, rate))
        with pytest.raises(ReaderError, match=r"sample 2.*'choice'.*'good'"):
            run.numbers("choice")

    def test_epochs_of_which_some_failed(self, tmp_path):
        def repeat(log):
            again, failed = (json.loads(json.dumps(log["samples"][0])) for _ in range(2))
            again["epoch"], failed["epoch"] = 2, 3
            again["scores"]["choice"]["value"] = "I"
            failed["scores"] = {}
            failed["error"] = {"message": "m", "traceback": "", "traceback_ansi": ""}
            log["samples"] += [again, failed]
            log["eval"]["config"] |= {"epochs": 3, "epochs_reducer": reducers}

        means = "scores are means over 2 epochs; Inspect's own score takes "
        for reducers, score, note in (
            (["max"], 1.0, "scores are max of 2 epochs, fewer for some items"),
            (["at_least_2"], 0.0, "scores are at_least_2 of 2 epochs, fewer for some items"),
            (["at_least_2", "mean"], 0.5, f"{means}at_least_2, mean, fewer for some items"),
            (["mypackage/own"], 0.5, f"{means}mypackage/own, fewer for some items"),
        ):
            run = read_one(changed_json(tmp_path, repeat))
            assert join([run], metric="choice").scores.values[0].tolist() == [score, 0.0]
            assert run.notes == (note,)
            reducer = reducers[0] if len(reducers) == 1 else "mean"
            assert dict(run.task_settings)["scoring epochs"] == f"3 ({reducer})"

    def test_copies_of_a_sample_count_once_and_may_not_differ(self, tmp_path):
        def copy(log):
            log["samples"].append(json.loads(json.dumps(log["samples"][0])))
            log["samples"][-1]["scores"]["choice"]["value"] = value

        value = "C"
        run = read_one(changed_json(tmp_path, copy))
        assert run.numbers("choice").tolist() == [1.0, 0.0]
        assert run.notes == ("1 sample repeated, with the same scores",)
        value = "I"
        with pytest.raises(ReaderError, match=r"json: sample .* \(epoch 1\) has two answers"):
            read_one(changed_json(tmp_path, copy))

    def test_scored_although_it_failed(self, tmp_path):
        def fail(log):
            error = {"message": "m", "traceback": "", "traceback_ansi": ""}
            log["samples"][0]["error"] = error

        run = read_one(changed_json(tmp_path, fail))
        assert run.n_rows == 2
        assert run.notes == ("1 samples ended in an error but have a score",)

    def test_roles_and_arguments_are_settings(self, tmp_path):
        def cast(log):
            log["eval"]["model_roles"] = {"grader": {"model": "toy/judge", "args": {}}}
            log["eval"]["model_args"] = {"device": "cuda", "long": "x" * 500}
            log["eval"]["model_generate_config"] = {"max_tokens": 7}

        settings = dict(read_one(changed_json(tmp_path, cast)).settings)
        assert settings["role grader"] == "toy/judge"
        assert (settings["device"], settings["max_tokens"]) == ("cuda", "7")
        assert len(settings["long"]) < 100


class TestItems:
    def test_a_question_in_messages(self):
        run = only("chat")
        question = f"Answer with a number.\n{SUMS[0]['question']}"
        assert run.columns["content"][0] == content_id(question, SUMS[0]["answer"])

    def test_a_question_that_summaries_cut(self):
        run = only("long")
        question = "Take your time. " * 400 + SUMS[1]["question"]
        assert run.columns["content"][1] == content_id(question, SUMS[1]["answer"])
        assert run.columns["own_id"].tolist() == ["1", "2"]

    def test_versions_whose_summaries_lack_the_choices(self):
        old, new = only("0.3.100"), runs_in("full")[0]
        assert old.numbers("choice").tolist() == expected("toy/model-a", "toy_capitals")[:3]
        assert old.columns["content"].tolist() == new.columns["content"].tolist()[:3]

    def test_key(self):
        assert only("subset", key="id").columns["content"].tolist() == ["cap-2", "cap-7"]
        assert only("subset", key="country").columns["content"].tolist() == ["Chile", "Japan"]
        assert only("rerun", key="row").columns["content"].tolist() == ["0", "1"]

    def test_an_unknown_key(self):
        with pytest.raises(ReaderError, match=r"sample 1 \(id 'cap-0'\).*'town'.*'country', 'row'"):
            only("rerun", key="town")

    def test_pictures_tell_items_apart(self, tmp_path):
        def ask(log, *pictures):
            for sample, picture in zip(log["samples"], pictures, strict=True):
                sample["target"] = "A"
                sample["choices"] = ["cat", "dog"]
                parts = [{"type": "text", "text": "What is it?"}, picture]
                sample["input"] = [{"role": "user", "content": parts}]

        one, two = ({"type": "image", "image": f"data:image/png;base64,{n}"} for n in "12")
        gone = {"type": "image", "image": "<base64-data-removed>"}
        for pictures in ((one, two), (gone, gone)):
            path = changed_json(tmp_path, lambda log, pictures=pictures: ask(log, *pictures))
            assert len(set(read_one(path).columns["content"])) == 2
        path = changed_json(tmp_path, lambda log: ask(log, one, one))
        assert len(set(read_one(path).columns["content"])) == 1


class TestOptions:
    def test_log_probabilities_of_the_letters(self):
        run = only("logprobs")
        assert run.has_options
        said = TOY["log_likelihoods"]["toy/model-a"]["toy_capitals"][:4]
        np.testing.assert_allclose(run.columns["options"][:, :, 0], said)
        assert run.columns["right"].tolist() == [item["gold"] for item in CAPITALS[:4]]

    def samples(self):
        from inspect_ai.log import read_eval_log

        (path,) = below(FIXTURES / "logprobs")
        return read_eval_log(str(path)).samples

    def test_probabilities_of_one_letter_add_up(self):
        sample = self.samples()[0]
        token = sample.output.choices[0].logprobs.content[-1]
        extra = token.top_logprobs[0].model_copy(update={"token": "A", "logprob": -2.0})
        token.top_logprobs.append(extra)
        found = option_table(sample).likelihoods
        assert found[0] == pytest.approx(-2.0 + math.log(2))
        assert list(found[1:]) == [-1.1, -3.2, -2.3]

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda sample, tokens: tokens[-1].top_logprobs.pop(),  # a letter is not told
            lambda sample, tokens: setattr(tokens[0], "token", "I say"),
            lambda sample, tokens: setattr(tokens[-1], "token", " BC"),
            lambda sample, tokens: sample.output.choices.append(sample.output.choices[0]),
            lambda sample, tokens: setattr(
                sample.scores["choice"], "explanation", "Choices were shuffled before …"
            ),
        ],
    )
    def test_none_where_it_is_not_sure_what_they_mean(self, spoil):
        sample = self.samples()[0]
        assert option_table(sample) is not None
        spoil(sample, sample.output.choices[0].logprobs.content)
        assert option_table(sample) is None


class TestGroups:
    def test_they_are_tasks_beside_groups_of_other_harnesses(self, tmp_path):
        def group(log):
            nested = {"name": "grouped", "options": {"group_key": "country", "all": "groups"}}
            log["eval"]["metrics"] = {"choice": [nested]}

        run = read_one(changed_json(tmp_path, group))
        assert "own score is the mean of the groups by 'country'; here" in " ".join(run.notes)
        other = replace(runs_in("full")[1], suite="suite/inner", harness="lm-eval")
        items = join([run, other]).scores.items.drop_duplicates("task").set_index("task")
        assert items["group"].to_dict() == {
            "toy_capitals_Chile": "toy_capitals",
            "toy_capitals_Japan": "toy_capitals",
            "toy_sums": "suite/inner",
        }


class TestFiles:
    def test_inspect_is_not_installed(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
        with pytest.raises(MissingExtraError, match=r"fewbench\[inspect\]"):
            only("subset")

    def test_only_logs_are_found(self, tmp_path):
        (tmp_path / "logs.json").write_text('{"a.eval": {"version": 2, "status": "success"}}')
        (tmp_path / "results.json").write_text('{"version": 2, "results": {}}')
        (tmp_path / "notes.txt").write_text("version")
        (tmp_path / "other.eval").write_text("no log of Inspect")
        log = shutil.copy(below(FIXTURES / "subset")[0], tmp_path)
        assert InspectLogs().find(below(tmp_path)) == [LogUnit(Path(log))]

    def test_a_field_of_the_wrong_type(self, tmp_path):
        path = changed_json(tmp_path, lambda log: log["samples"][0].update(choices=3))
        with pytest.raises(ReaderError, match=f"{path.name}: not a whole log of Inspect"):
            read_one(path)

    def test_scored_again_counts_as_newer(self, tmp_path):
        source = below(FIXTURES / "subset")[0]
        paths = [source.name, f"{source.stem}-scored.json", f"{source.stem}-scored-1.json"]
        stamps = [read_one(Path(shutil.copy(source, tmp_path / name))).stamp for name in paths]
        assert stamps == sorted(set(stamps))


def changed_json(folder, change):
    """Return a JSON log that was changed."""
    log = json.loads(below(FIXTURES / "subset")[0].read_text("utf-8"))
    change(log)
    path = folder / "changed.json"
    path.write_text(json.dumps(log), "utf-8")
    return path


def read_one(path):
    (run,) = InspectLogs().read(LogUnit(path), Wants())
    return run


def test_tokens_and_dollars_are_means_of_epochs_that_all_state_them():
    def sample(*used):
        usage = [SimpleNamespace(total_tokens=tokens, total_cost=cost) for tokens, cost in used]
        return SimpleNamespace(model_usage=dict(zip("ab", usage, strict=False)))

    assert costs_of([sample((10, 0.5), (2, 0.5)), sample((20, 2.0))]) == {"tokens": 16, "cost": 1.5}
    assert costs_of([sample((10, 0.5)), sample((20, None))]) == {"tokens": 15}
    assert costs_of([sample((10, 0.5)), sample()]) == {}
    assert costs_of([SimpleNamespace()]) == {}
