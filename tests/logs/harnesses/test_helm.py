"""HELM's own files (fixtures/helm, made by HELM 0.5.16), and what can be wrong with them."""

import json
import re
import zipfile

import numpy as np
import pytest

from fewbench.errors import ReaderError
from fewbench.readers.harness import Wants
from fewbench.readers.join.table import join
from fewbench.readers.values import content_id
from fewbench_logs.harnesses.helm import Helm

from ...readers.toy import CAPITALS, FIXTURES, MODELS, TOY, noted
from ...readers.toy import capitals as right_capitals
from ...readers.toy import sums as right_sums

SEPARATE = "toy_capitals:method=multiple_choice_separate_original"
JOINT = "toy_capitals:method=multiple_choice_joint"


@pytest.fixture
def suites(tmp_path):
    """The folder `runs` as HELM leaves it."""
    with zipfile.ZipFile(FIXTURES / "helm" / "runs.zip") as archive:
        archive.extractall(tmp_path)
    return tmp_path / "benchmark_output" / "runs"


@pytest.fixture
def capitals(suites):
    """The run of model a on the capitals, asked option by option."""
    return suites / "v1" / f"{SEPARATE},model=toy_model-a"


@pytest.fixture
def letters(suites):
    """A run with perturbed instances and two trials, answered by letters."""
    return suites / "v2" / f"{JOINT},model=toy_model-b,data_augmentation=lower"


@pytest.fixture
def sums(suites):
    return suites / "v1" / "toy_sums:model=toy_model-a"


def runs_in(*folders, key=None):
    files = [path for folder in folders for path in sorted(folder.rglob("*.json"))]
    return [run for unit in Helm().find(files) for run in Helm().read(unit, Wants(key=key))]


def joined(*folders, key=None, **options):
    return join(runs_in(*folders, key=key), **options)


def change(file, make):
    """Rewrite a JSON file: `make` returns other data, or changes them in place."""
    data = json.loads(file.read_text())
    made = make(data)
    file.write_text(json.dumps(data if made is None else made))


def statistic(entry, name):
    return next(one for one in entry["stats"] if one["name"]["name"] == name)


class TestTable:
    def test_items_are_known_by_what_they_say(self, suites):
        ids = joined(suites / "v1", metric="exact_match").scores.item_ids.tolist()
        for item in (CAPITALS[2], CAPITALS[9]):
            texts = [item["question"], *item["choices"], item["choices"][item["gold"]]]
            assert f"{SEPARATE}/{content_id(*texts)}" in ids
        assert f"toy_sums/{content_id('1 + 2 =', '3')}" in ids

    def test_an_item_that_occurs_twice_is_told_apart_by_its_id(self, capitals):
        run = runs_in(capitals)[0]
        contents = run.columns["content"].tolist()
        assert contents[1] == contents[7]
        assert run.columns["own_id"].tolist()[1:8:6] == ["id3", "id9"]
        other = capitals.with_name(f"{SEPARATE},model=toy_model-b")
        for name in ("per_instance_stats", "scenario_state"):
            file = other / f"{name}.json"
            change(file, lambda data: data.reverse() if isinstance(data, list) else None)
        reading = joined(capitals, other)
        assert reading.scores.values.tolist() == [right_capitals(m) for m in MODELS]

    def test_statistics_or_what_is_shown_of_them_are_the_same(self, suites):
        reading = joined(suites / "v1", suites / "shown", metric="exact_match")
        alone = joined(suites / "v1", metric="exact_match")
        assert reading.scores.equals(alone.scores)

    def test_one_file_is_enough_to_find_the_others(self, capitals):
        unit = Helm().find([capitals / "per_instance_stats.json"])[0]
        assert {path.stem for path in unit.beside} >= {"run_spec", "scenario_state"}
        assert Helm().find([capitals / "stats.json", capitals / "run_spec.json"]) == []
        assert Helm().find([capitals / "scenario_state.json"]) == [unit]

    def test_a_whole_run_and_one_that_may_be_a_part(self, suites):
        whole = runs_in(suites / "v1" / "toy_sums:model=toy_model-b")[0]
        part = runs_in(suites / "v2" / "toy_sums:model=toy_model-a")[0]
        assert (whole.total, whole.ran, part.total, part.ran) == (8, 8, None, 3)
        assert noted(part, "at most 3 instances, so the run may be partial")

    def test_a_copy_cut_short(self, sums):
        change(sums / "per_instance_stats.json", lambda data: data[:-1])
        reading = joined(sums, metric="exact_match")
        assert noted(reading, "has 7 documents, but its results file says 8")
        assert noted(reading, "1 instance left out, without a score: 'id7'")


class TestRuns:
    def test_the_same_run_in_a_later_suite_replaces_items(self, suites):
        again = suites / "v2" / "toy_sums:model=toy_model-a"
        reading = joined(suites / "v1", again, metric="exact_match")
        expected = right_sums("toy/model-a")
        expected[6] = 1.0  # items 1, 2 and 6 were run again, and 6 was wrong before
        assert reading.scores.values[0, -8:].tolist() == expected
        assert noted(reading, "3 of 8 items of per_instance_stats.json come from a newer run")

    def test_splits_are_filters(self, suites):
        folder = suites / "v2" / "toy_sums:valid=2,model=toy_model-b"
        with pytest.raises(ReaderError, match=r"--filter.*'toy_sums:valid=2'.*'valid'"):
            joined(folder, metric="exact_match")
        for split, rows in (("valid", slice(0, 2)), ("test", slice(2, 8))):
            values = joined(folder, metric="exact_match", filter=split).scores.values
            assert values.tolist() == [right_sums("toy/model-b")[rows]]
        assert [(run.total, run.ran) for run in runs_in(folder)] == [(2, 2), (6, 6)]

    def test_perturbed_instances_are_not_taken_and_trials_averaged(self, letters):
        run = runs_in(letters)[0]
        assert run.task == JOINT
        scores = join([run], metric="exact_match").scores
        assert scores.items["sample_id"].tolist() == ["id4", "id10"]
        assert scores.values[0].tolist() == [1, 0]
        assert scores.repeats.counts[0].tolist() == [2, 2]
        assert noted(run, r"4 rows of perturbed instances \('lowercase'\) skipped")
        assert noted(run, "2 instances were run in several trials, which are averaged")

        def half(entries):
            entry = next(one for one in entries if one["train_trial_index"] == 1)
            assert "perturbation" not in entry
            statistic(entry, "exact_match")["mean"] = 0.0

        change(letters / "per_instance_stats.json", half)
        run = runs_in(letters)[0]
        assert join([run], metric="exact_match").scores.values[0].tolist() == [0.5, 0]

    def test_only_perturbed_instances(self, letters):
        def perturbed(entries):
            return [entry for entry in entries if "perturbation" in entry]

        change(letters / "per_instance_stats.json", perturbed)
        with pytest.raises(ReaderError, match="no instance was scored, except perturbed ones"):
            runs_in(letters)

    def test_failed_requests_are_noted(self, sums):
        def fail(state):
            state["request_states"][3]["result"] |= {"success": False, "error": "blocked"}

        change(sums / "scenario_state.json", fail)
        assert noted(runs_in(sums)[0], "1 requests failed; HELM scored them as empty answers")


class TestMetrics:
    def test_must_be_asked_and_bookkeeping_is_not_offered(self, letters):
        with pytest.raises(ReaderError, match="--metric") as caught:
            joined(letters)
        assert "'exact_match', 'exact_match@5', 'quasi_exact_match'" in str(caught.value)
        assert not re.search("num_|runtime|logprob|max_prob|co2", str(caught.value))

    def test_a_value_that_helm_left_out(self, sums):
        def leave_out(entries):
            entries[2]["stats"].remove(statistic(entries[2], "exact_match"))

        change(sums / "per_instance_stats.json", leave_out)
        run = runs_in(sums)[0]
        assert run.numbers("quasi_exact_match").tolist() == right_sums("toy/model-a")
        with pytest.raises(ReaderError, match=r"entry 3.*'exact_match'"):
            run.numbers("exact_match")

    def test_two_metrics_of_one_name(self, sums):
        def twice(entries):
            other = json.loads(json.dumps(entries[0]))
            statistic(other, "exact_match")["mean"] = 0.25
            entries.append(other)

        change(sums / "per_instance_stats.json", twice)
        run = runs_in(sums)[0]
        assert run.n_rows == 8
        with pytest.raises(ReaderError, match=r"entry 1.*'exact_match'.*2"):
            run.numbers("exact_match")


def letters_told(state, likelihoods):
    """Make a run's first trial one of HELM before 0.5, which told the most likely tokens."""
    state["request_states"] = [
        made for made in state["request_states"] if made["train_trial_index"] == 0
    ]
    for made in state["request_states"]:
        token = made["result"]["completions"][0]["tokens"][0]
        answered = token["text"]
        others = [letter for letter in [" A", " B", " C", " D"] if letter != answered]
        listed = dict(zip([answered, *others], likelihoods, strict=False))
        token["top_logprobs"] = listed | {" The": -4.0}


class TestOptions:
    def test_probabilities_are_of_what_helm_compares(self, suites):
        scores = joined(suites / "v1" / f"{SEPARATE},model=toy_model-a").scores
        assert scores.probabilities is not None
        found = np.stack(list(scores.probabilities.by_model()))[0]
        worths = np.array(TOY["log_likelihoods"]["toy/model-a"]["toy_capitals"])
        lengths = [[len(text.split()) for text in item["choices"]] for item in CAPITALS]
        expected = np.exp(worths / lengths)
        expected /= expected.sum(axis=1, keepdims=True)
        assert found == pytest.approx(expected, abs=1e-6)
        assert found.argmax(axis=1).tolist() == TOY["answers"]["toy/model-a"]["toy_capitals"]

    def test_not_kept_where_they_do_not_lead_to_helm_s_choice(self, capitals):
        def other(entries):
            statistic(entries[4], "predicted_index")["mean"] = 3.0

        change(capitals / "per_instance_stats.json", other)
        run = runs_in(capitals)[0]
        assert not run.has_options
        assert noted(run, "1 instances are dropped: .* do not explain HELM's choice")

    @pytest.mark.parametrize("spoil", ["text", "logprob", "tokens"])
    def test_not_kept_where_tokens_do_not_spell_the_option(self, capitals, spoil):
        def change_tokens(state):
            completion = state["request_states"][0]["result"]["completions"][0]
            if spoil == "tokens":
                del completion["tokens"]
            else:
                completion["tokens"][-1][spoil] = {"text": " paris", "logprob": None}[spoil]

        change(capitals / "scenario_state.json", change_tokens)
        assert not runs_in(capitals)[0].has_options

    def test_calibrated(self, capitals):
        """As HELM compares them: the gain over the option after "Answer:" alone."""
        alone = [-1.0, -3.0, -0.5, -2.0]
        given = TOY["log_likelihoods"]["toy/model-a"]["toy_capitals"]

        def calibrate(state):
            for made in list(state["request_states"]):
                option = made["reference_index"]
                words = [
                    f" {word}"
                    for word in made["instance"]["references"][option]["output"]["text"].split()
                ]
                tokens = [{"text": word, "logprob": alone[option] / len(words)} for word in words]
                other = made | {"request_mode": "calibration"}
                other["result"] = made["result"] | {"completions": [{"tokens": tokens}]}
                state["request_states"].append(other)

        def scored(entries):
            for entry, worths in zip(entries, given, strict=True):
                gains = np.subtract(worths, alone)
                chances = np.exp(gains) / np.exp(gains).sum()
                statistic(entry, "predicted_index")["mean"] = float(gains.argmax())
                statistic(entry, "max_prob")["mean"] = float(chances.max())

        change(capitals / "scenario_state.json", calibrate)
        change(capitals / "per_instance_stats.json", scored)
        change(
            capitals / "run_spec.json",
            lambda spec: spec["adapter_spec"].update(method="multiple_choice_separate_calibrated"),
        )
        run = runs_in(capitals)[0]
        assert run.has_options
        assert run.columns["options"][3, :, 0] == pytest.approx(np.subtract(given[3], alone))

    def test_letters_where_helm_tells_the_most_likely_tokens(self, letters):
        change(letters / "scenario_state.json", lambda s: letters_told(s, [-0.1, -1, -2, -3]))
        change(
            letters / "per_instance_stats.json",
            lambda entries: [entry for entry in entries if entry["train_trial_index"] == 0],
        )
        run = runs_in(letters)[0]
        assert run.columns["options"][0, :, 0].tolist() == [-1, -2, -0.1, -3]
        assert run.columns["right"].tolist() == [2, 3]

    @pytest.mark.parametrize("likelihoods", [[-0.1, -1, -2], [-2, -1, -0.1, -3]])
    def test_not_where_a_letter_lacks_or_another_was_answered(self, letters, likelihoods):
        change(letters / "scenario_state.json", lambda s: letters_told(s, likelihoods))
        change(
            letters / "per_instance_stats.json",
            lambda entries: [entry for entry in entries if entry["train_trial_index"] == 0],
        )
        assert not runs_in(letters)[0].has_options


class TestWhatIsMissing:
    def test_without_instances_the_id_is_all(self, suites, sums):
        (sums / "scenario_state.json").unlink()
        run = runs_in(sums)[0]
        assert run.columns["content"].tolist() == [f"id{i}" for i in range(8)]
        assert noted(run, "identified by HELM's id; .*--key id")
        other = sums.with_name("toy_sums:model=toy_model-b")
        scores = joined(sums, other, key="id", metric="exact_match").scores
        assert scores.values.tolist() == [right_sums(model) for model in MODELS]

    def test_another_key(self, sums):
        def add(state):
            for at, made in enumerate(state["request_states"]):
                made["instance"]["extra_data"] = {"question": 100 + at}

        error = str(_error(lambda: runs_in(sums, key="question")))
        assert re.search(r"scenario_state.json, instance 'id0': .*--key can be 'id'\)", error)
        change(sums / "scenario_state.json", add)
        contents = runs_in(sums, key="question")[0].columns["content"].tolist()
        assert contents == [str(100 + at) for at in range(8)]

    def test_without_a_run_spec(self, capitals):
        (capitals / "run_spec.json").unlink()
        run = runs_in(capitals)[0]  # scenario_state.json names the model too
        assert (run.model, run.task, run.has_options) == ("toy/model-a", SEPARATE, True)
        (capitals / "scenario_state.json").unlink()
        run = runs_in(capitals)[0]
        assert (run.model, run.task) == ("toy_model-a", SEPARATE)
        assert noted(run, "no run_spec.json in the folder")
        moved = capitals.rename(capitals.with_name("moved"))
        with pytest.raises(ReaderError, match=r"run_spec.json"):
            runs_in(moved)

    def test_answers_that_were_never_scored(self, sums):
        (sums / "per_instance_stats.json").unlink()
        with pytest.raises(ReaderError, match=r"scenario_state.json"):
            runs_in(sums)

    def test_pictures_are_known_by_the_id(self, sums):
        def picture(state):
            media = {"media_objects": [{"content_type": "image/png", "location": "a.png"}]}
            state["request_states"][0]["instance"]["input"]["multimedia_content"] = media

        change(sums / "scenario_state.json", picture)
        run = runs_in(sums)[0]
        assert run.columns["content"].tolist()[0] == "id0"
        assert noted(run, "1 instance with more than text .* identified by HELM's id")


def _error(call):
    with pytest.raises(ReaderError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize(
    ("name", "make", "pattern"),
    [
        ("per_instance_stats", lambda data: {}, "an object, not a list as HELM writes it"),
        ("per_instance_stats", lambda data: [], "no instance was scored"),
        ("per_instance_stats", lambda data: [*data[:2], 7], "entry 3: .*not an object"),
        ("per_instance_stats", lambda data: data[4].pop("instance_id") and None, "entry 5: 'inst"),
        ("per_instance_stats", lambda data: data[4].update(stats={}), "entry 5: 'stats' is an obj"),
        ("per_instance_stats", lambda data: data[4].update(stats=[1]), "entry 5: a stat.* no name"),
        (
            "per_instance_stats",
            lambda data: data[4].update(train_trial_index="x"),
            "entry 5: 'train_trial_index' is 'x', not a number",
        ),
        ("run_spec", lambda data: [data], "run_spec.json: a list of 1, not an object"),
        ("scenario_state", lambda data: [data], "scenario_state.json: a list of 1, not an obj"),
        ("scenario_state", lambda data: {"request_states": 3}, "'request_states' is not a list"),
        (
            "scenario_state",
            lambda data: data["request_states"][1].update(instance=None),
            "request 2: the instance has no id",
        ),
        (
            "scenario_state",
            lambda data: data["request_states"].pop(5) and None,
            "no instance 'id5', which has scores",
        ),
    ],
)
def test_files_that_are_not_helm_s(sums, name, make, pattern):
    change(sums / f"{name}.json", make)
    error = str(_error(lambda: runs_in(sums)))
    assert re.search(pattern, error)
    assert str(sums) in error


def test_files_of_other_programs_are_not_found(tmp_path):
    (tmp_path / "per_instance_stats.json").write_text("no JSON")
    (tmp_path / "instances.json").write_text("[]")
    assert Helm().find(sorted(tmp_path.iterdir())) == []
