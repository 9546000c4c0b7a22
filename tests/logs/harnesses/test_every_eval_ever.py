"""Records of Every Eval Ever (fixtures made by its own converters), and what can be wrong."""

import json
import re
import shutil

import pytest

from fewbench.errors import ReaderError
from fewbench.readers.harness import Wants
from fewbench.readers.join.table import join
from fewbench.readers.values import content_id
from fewbench.scores import Scale
from fewbench_logs.harnesses.every_eval_ever import EveryEvalEver

from ...readers.toy import FIXTURES, expected, noted

RECORDS = FIXTURES / "every_eval_ever"
UUID = "0b0e7a3c-9f5d-4c1e-8a77-3f2b6d1c5e90"


@pytest.fixture
def record(tmp_path):
    """A record that is our own to change: model b on the capitals, converted from lm-eval."""
    source = RECORDS / "lm_eval" / "toy_capitals" / "toy" / "model-b"
    return Changeable(shutil.copytree(source, tmp_path / "model-b"))


class Changeable:
    """The samples and the record in a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.samples = next(folder.glob("*_samples.jsonl"))
        self.record = next(path for path in folder.glob("*.json"))

    @property
    def rows(self):
        return [json.loads(line) for line in self.samples.read_text().splitlines()]

    def write(self, rows):
        self.samples.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def change_rows(self, make):
        rows = self.rows
        for row in rows:
            make(row)
        self.write(rows)

    def change_record(self, make):
        data = json.loads(self.record.read_text())
        make(data)
        self.record.write_text(json.dumps(data))


def runs_in(*folders, **wants):
    files = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    harness = EveryEvalEver()
    return [run for unit in harness.find(files) for run in harness.read(unit, Wants(**wants))]


def joined(*folders, **options):
    return join(runs_in(*folders), **options)


def row_of(sample_id="s1", score=1.0, **changes):
    """A row of our own."""
    row = {
        "schema_version": "0.3.0",
        "evaluation_id": "e/org_m/1767261600",
        "model_id": "org/m",
        "evaluation_name": "e",
        "sample_id": sample_id,
        "interaction_type": "single_turn",
        "input": {"raw": f"What of {sample_id}?", "reference": ["that"]},
        "output": {"raw": ["that"]},
        "answer_attribution": [],
        "evaluation": {"score": score, "is_correct": bool(score)},
    }
    return row | changes


def write_rows(folder, rows, name=f"{UUID}_samples.jsonl", record=None):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    if record is not None:
        (folder / f"{UUID}.json").write_text(json.dumps(record))
    return folder


def result(result_id, name, lower=False, **details):
    return {
        "evaluation_result_id": result_id,
        "evaluation_name": "e",
        "metric_config": {"metric_name": name, "lower_is_better": lower},
        "score_details": {"score": 0.5, "details": details},
    }


class TestFromLmEval:
    def test_items_are_those_of_lm_eval_itself(self, record):
        run = runs_in(record.folder)[0]
        hashes = [row["metadata"]["doc_hash"][:16] for row in record.rows[::3]]
        assert run.columns["content"].tolist() == hashes
        assert hashes[1] == hashes[7]
        assert run.columns["position"].tolist() == list(range(10))

    def test_a_subset_joins_with_the_whole(self):
        chosen = RECORDS / "lm_eval_chosen" / "toy_capitals"
        whole = RECORDS / "lm_eval" / "toy_capitals" / "toy" / "model-a"
        values = joined(whole, chosen, metric="acc").scores.values
        b = expected("toy/model-b", "toy_capitals")
        # Items 1 and 7 are the same document: position 7 was run, and it is not the first.
        wanted = [b[at] if at in (0, 2, 7) else float("nan") for at in range(10)]
        assert values[1].tolist() == pytest.approx(wanted, nan_ok=True)

    def test_the_newer_of_two_records_is_taken(self, record):
        older = {row["sample_id"]: row["evaluation"]["score"] for row in record.rows}
        again = record.folder / f"{UUID}_samples.jsonl"
        again.write_text(record.samples.read_text())
        shutil.copyfile(record.record, record.folder / f"{UUID}.json")
        later = Changeable(record.folder)
        later.samples, later.record = again, record.folder / f"{UUID}.json"
        later.change_rows(lambda row: row["evaluation"].update(score=1.0))
        later.change_record(lambda data: data.update(evaluation_timestamp="1999999999"))
        reading = joined(record.folder, metric="acc")
        assert set(older.values()) == {0.0, 1.0}
        assert reading.scores.values.tolist() == [[1.0] * 10]
        assert noted(reading, "10 of 10 items of .* come from a newer run")

    def test_a_nought_that_stands_for_no_number(self, record):
        """The converter writes 0 and no metric where lm-eval has lists or texts."""

        def without_metric(row):
            row["evaluation_result_id"] = None
            row["evaluation"]["score"] = 0.0

        record.change_rows(without_metric)
        with pytest.raises(ReaderError, match=r"line 1.*'score'"):
            runs_in(record.folder)[0].numbers("score")

    def test_without_the_record(self, record):
        record.record.unlink()
        run = runs_in(record.folder)[0]
        assert (run.metrics, run.higher_is_better) == (("acc", "acc_norm", "acc_bytes"), {})
        assert noted(run, "no record in the folder")
        source = RECORDS / "lm_eval" / "toy_sums" / "toy" / "model-b"
        samples = next(source.glob("*.jsonl"))
        shutil.copyfile(samples, record.samples)
        runs = runs_in(record.folder)
        assert {(run.task, run.filter, run.metrics) for run in runs} == {
            ("toy_sums", "strict-match", ("exact_match",)),
            ("toy_sums", "flexible-extract", ("exact_match",)),
        }


class TestFromHelm:
    def test_metric_split_and_place(self):
        run = runs_in(RECORDS / "helm")[0]
        assert (run.model, run.task, run.filter) == ("toy/model-a", "toy_sums", "test")
        assert run.metrics == ("exact_match", "quasi_exact_match")
        assert run.columns["own_id"].tolist() == ["id6", "id2", "id1"]
        assert run.columns["position"].tolist() == [6, 2, 1]
        assert run.numbers("exact_match").tolist() == [1, 1, 1]

    def test_options_asked_one_by_one_are_one_item(self, tmp_path):
        """The converter writes a row for every request, each with the score of the instance."""
        rows = [
            row_of(name, score, input={"raw": f"Q of {name}? {o}", "reference": ["x"]})
            for name, score in (("id0", 1.0), ("id1", 0.0))
            for o in "xyz"
        ]
        record = {"eval_library": {"name": "helm"}, "evaluation_results": []}
        run = runs_in(write_rows(tmp_path / "a", rows, record=record))[0]
        assert run.columns["own_id"].tolist() == ["id0", "id1"]
        assert run.numbers("score").tolist() == [1, 0]
        record["eval_library"]["name"] = "other"
        assert runs_in(write_rows(tmp_path / "a", rows, record=record))[0].n_rows == 6

    def test_splits_and_perturbations(self, tmp_path):
        record = {
            "eval_library": {"name": "helm"},
            "evaluation_results": [
                result("em:test", "em", split="test", perturbation=""),
                result("em:valid", "em", split="valid", perturbation=""),
                result("em:test:typos", "em", split="test", perturbation="typos"),
            ],
        }
        rows = [
            row_of("id0", 1.0, evaluation_result_id="em:test"),
            row_of("id0", 0.0, evaluation_result_id="em:test:typos"),
            row_of("id1", 0.5, evaluation_result_id="em:valid"),
        ]
        runs = runs_in(write_rows(tmp_path / "a", rows, record=record))
        assert [(run.filter, run.numbers("em").tolist()) for run in runs] == [
            ("test", [1.0]),
            ("valid", [0.5]),
        ]
        assert noted(runs[0], r"1 rows of perturbed samples \('typos'\) skipped")


class TestFromInspect:
    def test_epochs_are_averaged_and_items_known_by_what_they_say(self, tmp_path):
        run = runs_in(RECORDS / "inspect_epochs")[0]
        # Each scorer has a metric called accuracy, so their ids stand for them.
        assert run.metrics == ("match:accuracy", "includes:accuracy")
        assert run.columns["content"].tolist()[0] == content_id("1 + 2 =", "3")
        assert noted(run, "2 samples have several rows of a metric, which are averaged")
        folder = RECORDS / "inspect_epochs" / "toy_sums" / "toy" / "model-a"
        epochs = Changeable(shutil.copytree(folder, tmp_path / "model-a"))

        def by_epoch(row):
            row["evaluation"]["score"] = float(row["metadata"]["epoch"] == "1")

        epochs.change_rows(by_epoch)
        n = len({row["metadata"]["epoch"] for row in epochs.rows})
        assert n > 1
        scores = join(runs_in(epochs.folder)[:1], metric="match:accuracy").scores
        assert scores.values[0].tolist() == [1 / n, 1 / n]
        assert scores.repeats.counts[0].tolist() == [n, n]

    def test_a_letter_stands_for_the_text_of_its_option(self, tmp_path):
        asked = {"raw": " Capital of Norway? ", "choices": ["Bergen", "Oslo "], "reference": ["B"]}
        run = runs_in(write_rows(tmp_path / "a", [row_of(input=asked)]))[0]
        spelt = content_id("Capital of Norway?", "Bergen", "Oslo", "Oslo")
        assert run.columns["content"].tolist() == [spelt]


class TestRows:
    def test_without_a_record_the_rows_name_the_metric(self, tmp_path):
        rows = [row_of("s1", 1.0), row_of("s2", 0.25)]
        run = runs_in(write_rows(tmp_path / "a", rows))[0]
        assert (run.model, run.task, run.filter) == ("org/m", "e", "none")
        assert run.numbers("score").tolist() == [1, 0.25]
        named = [row | {"evaluation_result_id": "rouge"} for row in rows]
        assert runs_in(write_rows(tmp_path / "b", named))[0].metrics == ("rouge",)

    def test_rows_with_an_error_are_left_out(self, tmp_path):
        rows = [row_of("s1"), row_of("s2", 0.0, error="timeout"), row_of("s3")]
        run = runs_in(write_rows(tmp_path / "a", rows))[0]
        assert run.columns["own_id"].tolist() == ["s1", "s3"]
        assert noted(run, r"1 row with an error left out \(samples 's2'\)")
        with pytest.raises(ReaderError, match=r"every sample has an error \(s2"):
            runs_in(write_rows(tmp_path / "b", rows[1:2]))

    def test_one_id_with_two_questions_is_two_items(self, tmp_path):
        rows = [row_of("1"), row_of("1", 0.0, input={"raw": "Other?", "reference": ["no"]})]
        assert runs_in(write_rows(tmp_path / "a", rows))[0].numbers("score").tolist() == [1, 0]

    def test_lower_is_better_must_be_said(self, tmp_path):
        record = {"evaluation_results": [result("wer", "wer", lower=True)]}
        rows = [row_of(evaluation_result_id="wer")]
        folder = write_rows(tmp_path / "a", rows, record=record)
        with pytest.raises(ReaderError, match=r"'wer'.*'e'"):
            joined(folder)
        assert joined(folder, scale=Scale(lower_is_better=True)).scores.n_items == 1

    def test_fewer_rows_than_the_record_says(self, record):
        record.write(record.rows[:-3])
        assert noted(runs_in(record.folder)[0], "has 27 rows, but its record says 30")

    def test_found_by_content_under_another_name(self, tmp_path):
        folder = write_rows(tmp_path / "a", [row_of()], name="rows.jsonl")
        (folder / "other.jsonl").write_text('{"doc_id": 0, "model_id": "m"}\n')
        (folder / "torn.jsonl").write_text('{"doc_id')
        assert [unit.path.name for unit in _find(folder)] == ["rows.jsonl"]
        (folder / "other.jsonl").rename(folder / f"{UUID}_samples.jsonl")
        assert len(_find(folder)) == 2


def _find(folder):
    return EveryEvalEver().find(sorted(folder.iterdir()))


class TestDamage:
    def test_torn_last_line(self, record):
        whole = record.samples.read_bytes()
        record.samples.write_bytes(whole[:-50])
        with pytest.raises(ReaderError, match=r"_samples.jsonl.*line 30.*JSON"):
            runs_in(record.folder)
        run = runs_in(record.folder, salvage=True)[0]
        assert run.numbers("acc").tolist() == expected("toy/model-b", "toy_capitals")
        assert noted(run, "the last line is truncated and was skipped")
        with pytest.raises(ReaderError, match=r"line 28.*'acc_bytes'"):
            run.numbers("acc_bytes")

    def test_torn_record(self, record):
        record.record.write_text(record.record.read_text()[:-20])
        with pytest.raises(ReaderError, match=rf"{record.record.name}: not whole JSON"):
            runs_in(record.folder)
        record.record.write_text("[1]")
        with pytest.raises(ReaderError, match=r"a list of 1, not a record of Every Eval Ever"):
            runs_in(record.folder)

    @pytest.mark.parametrize(
        ("changes", "pattern"),
        [
            ({"model_id": None}, "'model_id' is None, not a name"),
            ({"evaluation_name": 3.5}, "'evaluation_name' is 3.5, not a name"),
            ({"evaluation_name": ""}, "'evaluation_name' is '', not a name"),
            ({"sample_id": ["s"]}, "'sample_id' is ['s'], not a name"),
            ({"sample_id": True}, "'sample_id' is True, not a name"),
            ({"input": "text"}, "'input' is the text 'text', not an object"),
            ({"input": {"raw": None}}, "'input.raw' is null, not a text"),
            ({"input": {"raw": "q", "choices": "ab"}}, "'choices' or 'reference' is not a list"),
            ({"input": {"raw": "q", "reference": [1]}}, "'choices' or 'reference' is not a list"),
            ({"evaluation": None}, "'evaluation' is null, not an object"),
        ],
    )
    def test_rows_that_are_not_of_the_schema(self, tmp_path, changes, pattern):
        folder = write_rows(tmp_path / "a", [row_of("s1"), row_of("s2") | changes])
        with pytest.raises(ReaderError, match=rf"_samples.jsonl, line 2: .*{re.escape(pattern)}"):
            runs_in(folder)

    @pytest.mark.parametrize("score", [None, "high", [1], float("nan")])
    def test_a_score_that_is_no_number(self, tmp_path, score):
        rows = [row_of("s1"), row_of("s2") | {"evaluation": {"score": score}}]
        with pytest.raises(ReaderError, match=r"line 2.*'score'"):
            joined(write_rows(tmp_path / "a", rows))
