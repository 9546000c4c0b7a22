"""Logs written by lmms-eval itself (scripts/fixtures/lmms_eval_logs.py), and torn ones."""

import json
import shutil

import numpy as np
import pytest

from fewbench.errors import ReaderError
from fewbench.readers.harness import Wants
from fewbench.readers.join.table import join
from fewbench_logs.harnesses.lmms_eval import LmmsEval

from ...readers.toy import FIXTURES, FLEXIBLE, STRICT, A, B, capitals, sums

LOGS = FIXTURES / "lmms_eval" / "0.7.3"
STAMP = "20260101_100000"


def files(*folders):
    return sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())


def runs_of(*folders, **wants):
    harness = LmmsEval()
    return [
        run for unit in harness.find(files(*folders)) for run in harness.read(unit, Wants(**wants))
    ]


class Written:
    """Makes a samples file and its results, row by row."""

    def __init__(self, folder):
        self.folder = folder / "org__model"
        self.folder.mkdir()

    @staticmethod
    def row(doc_id, **more):
        row = {
            "doc_id": doc_id,
            "target": "yes",
            "filtered_resps": "yes",
            "token_counts": [None],
            "doc_hash": "74234e98",
            "exact_match": 1.0,
            "input": f"question {doc_id}",
        } | more
        return {key: value for key, value in row.items() if value is not None}

    def samples(self, rows, task="t", stamp=STAMP):
        path = self.folder / f"{stamp}_samples_{task}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    def results(self, stamp=STAMP, **data):
        path = self.folder / f"{stamp}_results.json"
        path.write_text(json.dumps({"model_name": "org/model"} | data))
        return path

    def runs(self, **wants):
        return runs_of(self.folder, **wants)


@pytest.fixture
def written(tmp_path):
    return Written(tmp_path)


class TestWhatLmmsEvalWrote:
    def test_a_single_file_finds_its_results(self):
        (path,) = (LOGS / "limited").rglob("*capitals.jsonl")
        (unit,) = LmmsEval().find([path])
        assert [path.suffix for path in unit.beside] == [".json"]

    def test_leaves_other_harnesses_alone(self):
        assert LmmsEval().find(files(FIXTURES / "lm_eval")) == []

    @pytest.mark.parametrize("model", [A, B])
    def test_scores(self, model):
        found = {
            (run.task, run.filter): run
            for run in runs_of(LOGS / "out")[::-1]  # the first of two runs is taken
            if run.model == model
        }
        assert set(found) == {
            ("toy_capitals", None),
            ("toy_pictures", None),
            ("toy_sums", STRICT),
            ("toy_sums", FLEXIBLE),
        }
        assert found["toy_capitals", None].numbers("exact_match").tolist() == capitals(model)
        for filter in (STRICT, FLEXIBLE):
            run = found["toy_sums", filter]
            assert run.numbers("exact_match").tolist() == sums(model, filter)
            assert run.columns["position"].tolist() == [*range(8)]
        seen = [1, 0, 0, 1] if model == A else [1, 1, 0, 0]
        pictures = found["toy_pictures", None]
        assert pictures.numbers("picture_score").tolist() == seen  # the score in a dictionary
        assert pictures.numbers("picture_match").tolist() == seen

    def test_what_the_results_say(self):
        run = runs_of(LOGS / "out")[0]
        assert (run.model, run.task) == (A, "toy_capitals")
        assert run.path.name == f"{run.stamp}_samples_toy_capitals.jsonl"
        assert (run.total, run.ran, run.version, run.is_whole) == (10, 10, "1.0", True)
        assert run.higher_is_better == {"exact_match": True}
        assert dict(run.settings) == {"pretrained": A}
        assert run.notes == ()
        assert not run.has_options

    def test_pictures_with_the_same_question_are_different_items(self):
        run = next(run for run in runs_of(LOGS / "out") if run.task == "toy_pictures")
        assert len(set(run.columns["content"].tolist())) == 4
        assert len(set(run.columns["prompt"].tolist())) == 1

    def test_a_run_of_some_items_joins_with_whole_ones(self):
        whole = [run for run in runs_of(LOGS / "out") if run.model == A]
        some = runs_of(LOGS / "limited")
        assert {(run.total, run.ran, run.n_rows) for run in some} == {(10, None, 3), (8, None, 3)}
        scores = join([*whole, *some], metric="exact_match,picture_score", filter=STRICT).scores
        row = scores.values[1]
        assert np.flatnonzero(~np.isnan(row)).tolist() == [2, 3, 4, 16, 17, 18]
        assert row[2:5].tolist() == capitals(B)[2:5]
        assert row[16:19].tolist() == sums(B, STRICT)[2:5]

    def test_torn(self, tmp_path):
        shutil.copytree(LOGS / "limited", tmp_path / "out")
        (path,) = tmp_path.rglob("*toy_capitals.jsonl")
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(ReaderError, match=r"toy_capitals\.jsonl.*line 3.*JSON"):
            runs_of(tmp_path)
        run = runs_of(tmp_path, salvage=True)[0]
        assert run.numbers("exact_match").tolist() == capitals(B)[2:4]
        assert run.notes == ("the last line is truncated and was skipped",)


class TestMetrics:
    def test_each_item_with_a_metric_of_its_own(self, written):
        # As MME has them: perception for some items, cognition for others.
        one = {"exact_match": None, "perception": {"question_id": "a", "score": 1.0}}
        two = {"exact_match": None, "cognition": {"question_id": "b", "score": 0.0}}
        written.samples([written.row(i, **(two if i == 2 else one)) for i in range(4)])
        written.results(**{"n-samples": {"t": {"original": 4, "effective": 4}}})
        first, second = written.runs()
        assert (first.task, first.total) == ("t_perception", 3)
        assert first.columns["position"].tolist() == [0, 1, 3]
        assert first.numbers("perception").tolist() == [1, 1, 1]
        assert (second.task, second.total) == ("t_cognition", 1)
        assert "split into 2: 't_perception', 't_cognition'" in first.notes[0]

    def test_a_metric_absent_from_some_items_is_no_task(self, written):
        written.samples([written.row(0, other=0.5), written.row(1)])
        written.results()
        (run,) = written.runs()
        assert run.numbers("exact_match").tolist() == [1, 1]
        with pytest.raises(ReaderError, match=r"line 2.*'other'.*'t'"):
            run.numbers("other")

    def test_the_score_has_another_name(self, written):
        written.samples([written.row(0, exact_match={"hit": 0.25, "score": 9})])
        written.results(configs={"t": {"score_key": "hit"}})
        assert written.runs()[0].numbers("exact_match").tolist() == [0.25]

    def test_numbers_of_a_dictionary_without_a_score(self, written):
        written.samples([written.row(0, exact_match={"id": "q", "hit": True, "time": 2.5})])
        (run,) = written.runs()
        assert run.metrics == ("exact_match.hit", "exact_match.time")
        assert run.numbers("exact_match.hit").tolist() == [1]

    def test_what_is_not_one_number_is_refused(self, written):
        told = {"submission": {"answer": "B"}, "words": [1, 2], "missing": float("nan")}
        written.samples([written.row(0, **told)])
        (run,) = written.runs()
        for metric, what in (
            ("submission", "an object"),
            ("words", "a list of 2"),
            ("missing", "nan"),
        ):
            with pytest.raises(ReaderError, match=rf"line 1: metric '{metric}' .* is {what}"):
                run.numbers(metric)


class TestWithoutResults:
    def test_the_folder_names_the_model(self, written):
        written.samples([written.row(0)])
        (run,) = written.runs()
        assert (run.model, run.total, run.filter) == ("org/model", None, None)
        assert "no results file in the folder" in run.notes[0]

    def test_another_run_names_the_model(self, written):
        written.samples([written.row(0)])
        written.results(stamp="20250101_000000", model_name="org/other")
        assert written.runs()[0].model == "org/other"

    def test_two_filters_cannot_be_named(self, written):
        written.samples([written.row(0), written.row(0)])
        with pytest.raises(ReaderError, match=r"line 2.*document 0"):
            written.runs()


class TestMistakes:
    def test_two_runs_in_one_second(self, written):
        rows = [written.row(i) for i in (0, 1)]
        written.samples([*rows, *rows, *rows])
        written.results(configs={"t": {"filter_list": [{"name": "one"}, {"name": "two"}]}})
        with pytest.raises(ReaderError, match=r"line 5.*document 0"):
            written.runs()

    @pytest.mark.parametrize(
        ("row", "message"),
        [
            ([1], "not a JSON object"),
            ({"target": "a"}, "'doc_id' is absent"),
            ({"doc_id": None, "target": "a"}, "'doc_id' is null"),
            ({"doc_id": "x", "target": "a"}, "'doc_id' is the text 'x'"),
            ({"doc_id": True, "target": "a"}, "'doc_id' is a number"),
            ({"doc_id": -1, "target": "a"}, "'doc_id' is"),
            ({"doc_id": 1}, "no 'target'"),
        ],
    )
    def test_rows_of_something_else(self, written, row, message):
        written.samples([written.row(0), row])
        with pytest.raises(ReaderError, match=rf"_samples_t\.jsonl, line 2: {message}"):
            written.runs()

    def test_results_of_something_else(self, written):
        written.samples([written.row(0)])
        written.results().write_text("[]")
        with pytest.raises(ReaderError, match=r"_results\.json: not a JSON object"):
            written.runs()


class TestKey:
    def test_a_field_of_the_document(self, written):
        # lmms-eval logged documents until 0.3.
        written.samples([written.row(i, doc={"question_id": i + 70}) for i in range(2)])
        (run,) = written.runs(key="question_id")
        assert run.columns["content"].tolist() == ["70", "71"]

    def test_another_target_is_another_item(self, written):
        written.samples([written.row(0), written.row(1)])
        (one,) = written.runs()
        written.samples([written.row(0), written.row(1, target="no")])
        (two,) = written.runs()
        same = one.columns["content"] == two.columns["content"]
        assert same.tolist() == [True, False]
