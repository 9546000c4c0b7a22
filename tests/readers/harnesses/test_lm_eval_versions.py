"""Logs written by lm-eval itself, versions 0.4.2 to 0.4.13, of the same made-up answers.

scripts/fixtures/lm_eval_logs.py makes them, and says how the versions differ.
"""

import shutil

import numpy as np
import pytest

from fewbench.errors import ReaderError
from fewbench.readers import import_results
from fewbench.readers.harness import Wants
from fewbench.readers.harnesses.lm_eval import LmEval
from fewbench.readers.options import LIKELIHOOD, UNCONDITIONAL, recomputed

from ..toy import FIXTURES, FLEXIBLE, STRICT, TOY, A, B, capitals, sums

LOGS = FIXTURES / "lm_eval"
LEADERBOARD = FIXTURES / "open_llm_leaderboard_v2"
VERSIONS = ("0.4.2", "0.4.3", "0.4.5", "0.4.7", "0.4.9", "0.4.13")
WITH_EXTRA = ("0.4.2", "0.4.3", "0.4.5", "0.4.13")
WITH_ALL = ("0.4.2", "0.4.3", "0.4.13")


def table(*paths, filter=FLEXIBLE, **options):
    return import_results(list(paths), metric="acc,exact_match", filter=f"{filter},none", **options)


def only(folder, task):
    """The one run of a task that a folder has."""
    (unit,) = [unit for unit in LmEval().find(files(folder)) if task in unit.path.name]
    (run,) = LmEval().read(unit, Wants())
    return run


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def first_of(folder):
    """The part of an 'out' folder in which model-a's first run lies, without its second run."""
    if folder.parent.name == "0.4.2":
        return [folder]
    model = folder / "toy__model-a"
    stamp = min(path.stem.split("_", 1)[1] for path in model.glob("results_*"))
    return [path for path in model.iterdir() if path.stem.endswith(stamp)]


class TestTheSameAnswers:
    @pytest.mark.parametrize("filter", [STRICT, FLEXIBLE])
    @pytest.mark.parametrize("version", VERSIONS)
    def test_of_one_version(self, version, filter):
        scores = table(*first_of(LOGS / version / "out"), filter=filter).scores
        assert scores.model_ids == [A]
        assert scores.tasks == ["toy_capitals", "toy_sums"]
        assert scores.values[0].tolist() == capitals(A) + sums(A, filter)
        assert scores.items["doc_id"].tolist() == [*range(10), *range(8)]

    def test_of_all_versions_join(self):
        paths = [path for version in VERSIONS for path in first_of(LOGS / version / "out")]
        scores = table(*paths, same_model="apart").scores
        assert len(scores.model_ids) == len(VERSIONS)
        assert scores.values.tolist() == [capitals(A) + sums(A, FLEXIBLE)] * len(VERSIONS)

    @pytest.mark.parametrize("version", VERSIONS)
    def test_log_likelihoods(self, version):
        (path,) = [
            path
            for one in first_of(LOGS / version / "out")
            for path in ([one] if one.is_file() else files(one))
            if "toy_capitals" in path.name
        ]
        (unit,) = LmEval().find([path])
        (run,) = LmEval().read(unit, Wants())
        said = run.columns["options"][..., LIKELIHOOD]
        assert said.tolist() == TOY["log_likelihoods"][A]["toy_capitals"]
        assert recomputed(run.columns, "acc").tolist() == run.numbers("acc").tolist()
        assert recomputed(run.columns, "acc_norm").tolist() == run.numbers("acc_norm").tolist()


class TestRuns:
    @pytest.mark.parametrize("version", WITH_ALL)
    def test_with_a_limit(self, version):
        runs = LmEval()
        (unit,) = runs.find(files(LOGS / version / "limited"))
        for run in runs.read(unit, Wants()):
            assert run.numbers("exact_match").tolist() == sums(B, run.filter)[:5]
            assert not run.is_whole
            assert run.total in (8, None)

    @pytest.mark.parametrize("version", ["0.4.9", "0.4.13"])
    def test_of_chosen_documents_beside_a_whole_one(self, version):
        chosen = LOGS / version / "chosen"
        reading = table(*first_of(LOGS / "0.4.7" / "out"), chosen)
        row = reading.scores.values[reading.scores.model_ids.index(B)]
        right = capitals(B) + sums(B, FLEXIBLE)
        ran = [0, 2, 7, 10 + 1, 10 + 4]  # 7 is the second of two equal documents
        assert np.flatnonzero(~np.isnan(row)).tolist() == ran
        assert row[ran].tolist() == [right[at] for at in ran]

    @pytest.mark.parametrize("version", WITH_ALL)
    def test_with_an_output_path_that_ends_in_json(self, version):
        run = only(LOGS / version / "named", "toy_odd")
        assert (run.model, run.task, run.total) == (A, "toy_odd", 3)

    def test_two_models_in_one_folder_without_time_stamps(self):
        # The second model's results.json took the place of the first one's.
        paths = sorted((LOGS / "0.4.2" / "shared").glob("*toy_capitals*"))
        scores = import_results(paths, metric="acc").scores
        assert scores.model_ids == [A, B]
        assert scores.values.tolist() == [capitals(A), capitals(B)]

    def test_an_array_without_results_cannot_be_named(self, tmp_path):
        shutil.copytree(LOGS / "0.4.2" / "out", tmp_path / "out")
        (tmp_path / "out" / "results.json").unlink()
        with pytest.raises(ReaderError, match=r"toy_\w+\.jsonl.*0\.4\.2 or older"):
            table(tmp_path)


class TestTraps:
    @pytest.mark.parametrize("version", WITH_EXTRA)
    def test_unconditional_log_likelihoods(self, version):
        # Between the others until 0.4.4, after them since.
        run = only(LOGS / version / "extra", "toy_mutual")
        options = run.columns["options"]
        assert options[..., LIKELIHOOD].tolist() == TOY["log_likelihoods"][A]["toy_capitals"][:4]
        assert np.allclose(options[..., UNCONDITIONAL], [[-1.0, -1.6, -2.2, -2.8]] * 4)
        for metric in ("acc", "acc_norm", "acc_mutual_info"):
            assert recomputed(run.columns, metric).tolist() == [0, 0, 1, 1]

    @pytest.mark.parametrize("version", WITH_EXTRA)
    def test_infinite_and_missing_log_likelihoods(self, version):
        run = only(LOGS / version / "extra", "toy_odd")
        assert run.numbers("acc").tolist() == [1]  # the model did not rate the others' options
        said = run.columns["options"][..., LIKELIHOOD]
        assert said.tolist() == [[-np.inf, -1.5, -0.5]]
        assert any("2 items count as not run" in note for note in run.notes)

    @pytest.mark.parametrize("version", WITH_EXTRA)
    def test_options_that_stand_in_the_prompt(self, version):
        run = only(LOGS / version / "extra", "toy_pronoun")
        assert run.numbers("acc").tolist() == [1, 1, 0, 1]
        said = run.columns["options"][..., LIKELIHOOD]
        assert said.tolist() == [[-1.0, -1.5], [-1.5, -1.0], [-1.0, -1.5], [-1.0, -1.5]]

    @pytest.mark.parametrize("version", WITH_EXTRA)
    @pytest.mark.parametrize(
        ("task", "metric"),
        [
            ("toy_pronoun", "f1"),
            ("toy_rules", "inst_level_acc"),
            ("toy_text", "word_perplexity"),
        ],
    )
    def test_lists_are_refused(self, version, task, metric):
        run = only(LOGS / version / "extra", task)
        with pytest.raises(ReaderError, match=rf"(line|row) 1: metric '{metric}'.* a list of"):
            run.numbers(metric)

    @pytest.mark.parametrize("version", WITH_EXTRA)
    def test_tasks_of_a_group(self, version):
        assert only(LOGS / version / "extra", "toy_pronoun").suite == "toy_group"


class TestLeaderboard:
    def acc_norm(self, model):
        rows = []
        for doc, said in zip(
            TOY["tasks"]["toy_capitals"], TOY["log_likelihoods"][model]["toy_capitals"], strict=True
        ):
            worth = [x / len(text) for x, text in zip(said, doc["choices"], strict=True)]
            rows.append(float(np.argmax(worth) == doc["gold"]))
        return rows

    def test_files_of_both_years_join(self):
        paths = [path for path in files(LEADERBOARD) if "toy_capitals" in path.name]
        scores = import_results(paths).scores
        assert scores.model_ids == [A, B]
        assert scores.tasks == ["leaderboard_toy_capitals"]
        assert scores.values.tolist() == [self.acc_norm(A), self.acc_norm(B)]

    def test_ifeval(self):
        scores = import_results(
            LEADERBOARD / "toy__model-a-details", metric="prompt_level_strict_acc,acc_norm"
        ).scores
        assert scores.tasks == ["leaderboard_ifeval", "leaderboard_toy_capitals"]
        assert scores.values[0].tolist() == [1, 1, 0, *self.acc_norm(A)]

    def test_parquet_says_the_same(self, tmp_path):
        (source,) = LEADERBOARD.rglob("*.parquet")
        folder = tmp_path / "toy__model-b"
        folder.mkdir()
        shutil.copy(source, folder / "samples_leaderboard_toy_capitals.parquet")
        (other,) = LEADERBOARD.rglob("samples_leaderboard_toy_capitals_*.json")
        for parquet in (folder, source):  # under lm-eval's name, and under the hub's
            scores = import_results([parquet, other]).scores
            assert scores.model_ids == [B, A]
            assert scores.values.tolist() == [self.acc_norm(B), self.acc_norm(A)]
