"""OpenCompass: what the tool wrote of toy questions, and what went wrong with it."""

import atexit
import json
import re
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest

from fewbench.errors import ReaderError
from fewbench.readers import import_results
from fewbench.readers.harness import LogUnit, Wants
from fewbench.readers.join.table import join
from fewbench_logs.harnesses.opencompass import OpenCompass

from ...readers.toy import A, B, capitals, noted, sums

# Kept as an archive, as it holds configurations in Python that are not ours to keep tidy.
FIXTURES = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, FIXTURES, ignore_errors=True)
shutil.unpack_archive(
    Path(__file__).parents[2] / "readers/fixtures" / "opencompass" / "logs.zip", FIXTURES
)
NEW, OLD = FIXTURES / "v0.5.4", FIXTURES / "v0.3.9"
LIKELIHOODS = [-2.0, -1.1, -3.2, -2.3]  # of model-a, first of toy_capitals


def runs_of(folder, wants=None):
    harness = OpenCompass()
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return [run for unit in harness.find(files) for run in harness.read(unit, wants or Wants())]


@pytest.fixture
def copy(tmp_path):
    """A copy of one of the folders, to be changed."""

    def of(name, root=NEW):
        return Path(shutil.copytree(root / name, tmp_path / "work"))

    return of


def results(folder, model="toy__model-a", task="toy_sums"):
    """The first results file of a model and task, which is of the whole task."""
    return min(folder.rglob(f"results/{model}/{task}.json"))


def change(path, how):
    data = json.loads(path.read_text())
    path.write_text(json.dumps(how(data) or data))
    return path


class TestTable:
    def test_models_tasks_and_scores(self):
        scores = import_results(NEW / "main").scores
        assert scores.model_ids == ["toy__model-a", "toy__model-b"]
        assert scores.tasks == ["toy_capitals", "toy_capitals_gen", "toy_sums", "toy_sums_plain"]
        generated = (scores.items["task"] == "toy_capitals_gen").to_numpy()
        assert scores.values[:, generated].tolist() == [capitals(A), capitals(B)]

    def test_a_part_of_a_task_joins_by_what_was_asked(self):
        part = next(run for run in runs_of(NEW / "main") if run.n_rows == 4)
        whole = next(run for run in runs_of(NEW / "main") if run.task == part.task)
        assert part.columns["content"].tolist() == whole.columns["content"].tolist()[2:6]
        assert part.columns["position"].tolist() == [2, 3, 4, 5]
        assert (part.total, part.ran) == (None, 4)
        assert noted(part.notes, re.escape("test_range is '[2:6]'"))

    def test_options_are_by_log_likelihood_per_token(self):
        run = next(run for run in runs_of(NEW / "main") if run.task == "toy_capitals")
        assert run.columns["options"][0, :, 0].tolist() == pytest.approx(LIKELIHOODS)
        assert run.columns["right"].tolist() == [0, 1, 2, 3, 1, 0, 2, 1, 3, 1]
        best = run.columns["options"][:, :, 0].argmax(axis=1) == run.columns["right"]
        assert best.tolist() == [bool(score) for score in capitals(run.model.replace("__", "/"))]

    def test_probabilities(self, copy):
        folder = copy("main")
        for path in folder.rglob("results/*/*.json"):
            if path.stem != "toy_capitals":
                path.unlink()
        for path in folder.rglob("predictions/*/*.json"):
            if path.stem != "toy_capitals":
                path.unlink()
        scores = import_results(folder).scores
        chances = np.exp(LIKELIHOODS) / np.exp(LIKELIHOODS).sum()
        assert scores.probabilities.of_items(np.array([0]))[0, 0] == pytest.approx(
            chances, rel=1e-5
        )


class TestForms:
    def test_of_0_3_are_the_items_of_0_5(self):
        old = {run.task: run for run in runs_of(OLD)}
        first = min(run.stamp for run in runs_of(NEW / "main"))
        for run in runs_of(NEW / "main"):
            if run.model == "toy__model-a" and run.task in old and run.stamp == first:
                before = old[run.task]
                assert run.columns["content"].tolist() == before.columns["content"].tolist()
                assert run.columns["prompt"].tolist() == before.columns["prompt"].tolist()
                assert run.numbers("correct").tolist() == before.numbers("correct").tolist()
                assert run.has_options == before.has_options
                del old[run.task]
        assert not old

    def test_predictions_in_pieces_follow_one_another(self):
        (run,) = runs_of(NEW / "split")
        whole = next(run for run in runs_of(NEW / "main") if run.task == "toy_sums")
        assert run.columns["content"].tolist() == whole.columns["content"].tolist()
        assert run.numbers("correct").tolist() == sums(A)

    def test_one_piece_of_predictions_finds_its_results(self):
        piece = next(NEW.glob("split/*/predictions/*/toy_sums_split_1.json"))
        (unit,) = OpenCompass().find([piece])
        assert unit.path.parts[-3:] == ("results", "toy__model-a", "toy_sums_split.json")
        assert [path.stem[-1] for path in unit.beside if path.suffix == ".json"] == ["0", "1", "2"]

    def test_repeats_are_averaged(self):
        (run,) = runs_of(NEW / "twice")
        scores = join([run]).scores
        assert scores.values[0].tolist() == [0.5, *sums(A)[1:]]
        assert scores.repeats.counts[0].tolist() == [2] * 8
        assert noted(run.notes, "run 2 times")
        assert run.n_items == run.total == 8

    def test_a_prompt_of_messages_is_the_same_item(self, copy):
        folder = copy("main")
        expected = runs_of(folder)[1]
        said = [{"role": "HUMAN", "prompt": "1"}, {"role": "BOT", "content": "2"}]
        flat = change(results(folder, task="toy_sums_plain"), self.with_prompts("1\n2"))
        (plain,) = runs_of(flat.parent.parent.parent / "results" / "toy__model-a")[-1:]
        change(flat, self.with_prompts(said))
        (chat,) = runs_of(flat.parent)[-1:]
        change(flat, self.with_prompts([said]))
        (repeated,) = runs_of(flat.parent)[-1:]
        assert plain.columns["content"].tolist() == chat.columns["content"].tolist()
        assert plain.columns["content"].tolist() == repeated.columns["content"].tolist()
        assert plain.columns["content"][0] != expected.columns["content"][0]

    @staticmethod
    def with_prompts(prompt):
        def change(data):
            for key, entry in data["details"].items():
                if key != "type":
                    entry["prompt"] = prompt

        return change

    def test_right_by_comparison_only_where_it_gives_the_accuracy(self, copy):
        folder = copy("main")
        path = results(folder, task="toy_sums_plain")
        run = next(run for run in runs_of(folder) if run.path == path)
        assert run.numbers("correct").tolist() == [1, *sums(A)[1:]]
        assert noted(run.notes, "do not say which items are right")
        change(path, lambda data: data | {"accuracy": 50.0})
        with pytest.raises(ReaderError, match=r"62\.50, .* 50\.0"):
            runs_of(folder)

    def test_predictions_alone_tell_tasks_by_perplexity(self):
        by_task = {
            unit.path.stem: unit
            for unit in OpenCompass().find(list(NEW.glob("predictions_only/*/*/*/*")))
        }
        (run,) = OpenCompass().read(by_task["toy_capitals"], Wants())
        assert run.numbers("correct").tolist() == capitals(A)[:3]
        assert noted(run.notes, "not evaluated by OpenCompass")
        with pytest.raises(ReaderError, check=lambda error: error.kind == "unanswered") as error:
            OpenCompass().read(by_task["toy_sums"], Wants())
        assert "--mode eval" in error.value.hint

    def test_named_from_within_its_folder(self, monkeypatch):
        (stamped,) = (NEW / "split").iterdir()
        monkeypatch.chdir(stamped / "results")
        (unit,) = OpenCompass().find([Path("toy__model-a/toy_sums_split.json")])
        (run,) = OpenCompass().read(unit, Wants())
        assert (run.model, run.stamp) == ("toy__model-a", stamped.name)
        assert run.group == str(NEW / "split")

    def test_only_a_percentage(self):
        with pytest.raises(ReaderError, match="'score'") as error:
            import_results(NEW / "no_details")
        assert "--dump-eval-details" in error.value.hint

    def test_scores_of_other_names(self, copy):
        folder = copy("twice")
        path = results(folder, task="toy_sums_twice")

        def graded(data):
            for at, entry in enumerate(data["details"]):
                del entry["correct"]
                for name in [name for name in entry if "Pass@" in name]:
                    del entry[name]
                entry["score"] = [at / 10]

        change(path, graded)
        (run,) = runs_of(folder)
        assert run.metrics == ("score",)
        assert run.numbers("score").tolist() == pytest.approx(np.arange(8) / 10)


class TestWhatIsAsked:
    def test_a_field_as_key(self):
        unit = OpenCompass().find([results(NEW / "twice", task="toy_sums_twice")])[0]
        (run,) = OpenCompass().read(unit, Wants(key="example_abbr"))
        named = [f"toy_sums_twice_{i}" for i in range(8) for _ in range(2)]
        assert run.columns["content"].tolist() == named
        with pytest.raises(ReaderError, match=r"entry 1.*'id'") as error:
            OpenCompass().read(unit, Wants(key="id"))
        assert "'example_abbr'" in error.value.hint

    def test_a_file_alone_and_moved(self, tmp_path):
        moved = tmp_path / "org__model" / "sums.json"
        moved.parent.mkdir()
        shutil.copy(results(OLD), moved)
        (unit,) = OpenCompass().find([moved])
        assert unit == LogUnit(moved)
        (run,) = OpenCompass().read(unit, Wants())
        assert (run.model, run.task, run.stamp, run.total) == ("org__model", "sums", "", None)
        assert run.columns["position"].tolist() == [-1] * 8
        assert run.numbers("correct").tolist() == sums(A)

    def test_without_predictions_items_are_known_by_place(self, copy):
        folder = copy("split")
        shutil.rmtree(next(folder.rglob("predictions")))
        (run,) = runs_of(folder)
        assert run.columns["content"].tolist() == list("01234567")
        assert noted(run.notes, "without a prompt, identified by position")

    def test_models_with_a_slash(self, copy):
        folder = copy("no_details")
        for part in ("results", "predictions"):
            (old,) = folder.rglob(f"{part}/toy__model-a")
            (old.parent / "toy").mkdir()
            old.rename(old.parent / "toy" / "model-a")
        (unit,) = OpenCompass().find(sorted(folder.rglob("*.json")))
        change(unit.path, lambda _: json.loads(results(OLD).read_text()))
        (run,) = OpenCompass().read(unit, Wants())
        assert run.model == "toy/model-a"

    def test_what_an_evaluator_keeps_is_no_result(self, copy):
        folder = copy("twice")
        path = results(folder, task="toy_sums_twice")
        judged = {"0": {"origin_prompt": "…", "prediction": "A", "gold": "7"}}
        path.with_name("toy_sums_twice_replica0.json").write_text(json.dumps(judged))
        path.with_suffix("").mkdir()
        (path.with_suffix("") / "judge.json").write_text(
            json.dumps({"details": {}, "is_correct": 1})
        )
        assert [run.path for run in runs_of(folder)] == [path]

    def test_results_of_other_programs_are_left_alone(self, tmp_path):
        for name in ("results/m/a.json", "results/m/results_2026.json", "predictions/m/a.json"):
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text('{"accuracy": 50.0}')
        assert OpenCompass().find(sorted(tmp_path.rglob("*.json"))) == []

    def test_a_config_that_cannot_be_parsed_says_nothing(self, copy):
        folder = copy("split")
        next(folder.rglob("configs/*.py")).write_text("datasets = [dict(")
        assert runs_of(folder)[0].total is None


def with_details(details):
    return lambda text: json.dumps({"details": details})


def with_first(score):
    return lambda text: text.replace("false", score, 1)


BROKEN = {
    "torn": (lambda text: text[: len(text) // 2], "not whole JSON"),
    "empty": (lambda text: "", "not whole JSON"),
    "a list": (lambda text: "[]", "not an object"),
    "an error": (lambda text: '{"error": "none found"}', r"evaluation failed \(none found\)"),
    "of one": (with_details({"pass@1": [1]}), "not numbered from 0.*'pass@1'"),
    "a gap": (with_details({"0": {}, "2": {}}), "not numbered from 0"),
    "a text": (with_details("x"), "neither a list nor an object"),
    "a number": (with_details([{}, 1]), "entry 2: not an object"),
    "no scores": (with_details([{"pred": "x"}] * 8), "do not say which items are right"),
    "fewer": (with_details([{"correct": True}] * 3), "3 items, but the predictions .* have 8"),
    "a score of text": (with_first('"no"'), "entry 1: metric 'correct'.*'no'"),
    "a score not a number": (with_first("NaN"), "entry 1: metric 'correct'.* is nan"),
}


@pytest.mark.parametrize(("how", "message"), BROKEN.values(), ids=BROKEN)
def test_broken_results(copy, how, message):
    folder = copy("split")
    path = results(folder, task="toy_sums_split")
    path.write_text(how(path.read_text()))
    with pytest.raises(ReaderError, match=message) as error:
        import_results(folder, form="opencompass")
    assert str(path) in str(error.value)


def test_items_without_a_score_are_left_out_and_named(copy):
    folder = copy("split")
    change(
        results(folder, task="toy_sums_split"), lambda data: data["details"][3].update(correct=None)
    )
    (run,) = runs_of(folder)
    assert (run.n_rows, run.ran, run.total) == (7, 7, 8)
    assert run.columns["position"].tolist() == [0, 1, 2, 4, 5, 6, 7]
    assert noted(run.notes, "1 item left out, without a score: '3'")
