"""Details that lighteval wrote (scripts/fixtures/lighteval*.py), and what is wrong with some."""

import atexit
import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fewbench.errors import ReaderError
from fewbench.readers.harness import LogUnit, Wants
from fewbench.readers.options import compared, recomputed, softmax
from fewbench.readers.values import content_id
from fewbench_logs.harnesses.lighteval import Lighteval

FIXTURES = Path(__file__).parents[2] / "readers/fixtures"
TOY = json.loads((FIXTURES / "lm_eval" / "toy.json").read_text("utf-8"))
CAPITALS, SUMS = TOY["tasks"]["toy_capitals"], TOY["tasks"]["toy_sums"]
# Kept as archives: their names hold letters that some file systems do not take.
LAID_OUT = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, LAID_OUT, ignore_errors=True)
for _name in ("lighteval", "open_llm_leaderboard_v1"):
    shutil.unpack_archive(FIXTURES / _name / "logs.zip", LAID_OUT / _name)
NEW, OLD = LAID_OUT / "lighteval" / "0.13.0", LAID_OUT / "lighteval" / "0.10.0"
BOARD = LAID_OUT / "open_llm_leaderboard_v1"
ORDER = {"toy_capitals": [7, 3, 2, 8, 5, 6, 9, 4, 0, 1], "toy_sums": [3, 4, 6, 7, 2, 5, 0, 1]}
MODELS = ["toy/model-a", "toy/model-b"]


def below(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def runs_in(folder, key=None):
    harness = Lighteval()
    units = harness.find(below(folder))
    return [run for unit in units for run in harness.read(unit, Wants(key=key))]


def one(folder, model, task, **wants):
    """Return the run with most rows."""
    mine = [run for run in runs_in(folder, **wants) if run.model == model and task in run.task]
    return max(mine, key=lambda run: run.n_rows)


def expected(model, task):
    """Return scores in the order in which lighteval logs: by likelihood, and by the answer."""
    if task == "toy_sums":
        answers = TOY["answers"][model][task]
        return [float(answers[at] == SUMS[at]["answer"]) for at in ORDER[task]]
    said = TOY["log_likelihoods"][model][task]
    return [float(np.argmax(said[at]) == CAPITALS[at]["gold"]) for at in ORDER[task]]


def capital_id(item):
    options = item["choices"]
    return content_id(f"Question: {item['question']}\nAnswer:", *options, options[item["gold"]])


class TestWholeRuns:
    @pytest.mark.parametrize("model", MODELS)
    @pytest.mark.parametrize(("folder", "first"), [(NEW, ""), (OLD, "custom|")])
    @pytest.mark.parametrize(("task", "metric"), [("toy_capitals", "acc"), ("toy_sums", "em")])
    def test_scores(self, model, folder, first, task, metric):
        run = one(folder, model, task)
        assert run.task == f"{first}{task}|0"
        assert run.numbers(metric).tolist() == expected(model, task)
        assert run.total == len(TOY["tasks"][task])
        assert run.is_whole
        assert run.version == "1"
        assert run.higher_is_better[metric] is True
        assert run.notes == ()

    @pytest.mark.parametrize("folder", [NEW, OLD])
    def test_an_item_is_what_it_says(self, folder):
        run = one(folder, "toy/model-a", "toy_capitals")
        items = [CAPITALS[at] for at in ORDER["toy_capitals"]]
        assert run.columns["content"].tolist() == [capital_id(item) for item in items]
        run = one(folder, "toy/model-a", "toy_sums")
        items = [SUMS[at] for at in ORDER["toy_sums"]]
        assert run.columns["content"].tolist() == [
            content_id(item["question"], item["answer"]) for item in items
        ]

    def test_positions_since_0_11(self):
        for task, order in ORDER.items():
            assert one(NEW, "toy/model-a", task).columns["position"].tolist() == order
            assert set(one(OLD, "toy/model-a", task).columns["position"]) == {-1}

    @pytest.mark.parametrize("folder", [NEW, OLD, BOARD])
    def test_option_probabilities_follow_the_score(self, folder):
        run = one(folder, "toy/model-a", "capitals")
        said = TOY["log_likelihoods"]["toy/model-a"]["toy_capitals"]
        np.testing.assert_allclose(
            run.columns["options"][:, :, 0], [said[at] for at in ORDER["toy_capitals"]]
        )
        for metric in run.metrics:
            assert recomputed(run.columns, metric).tolist() == run.numbers(metric).tolist()
        chances = softmax(compared(run.columns["options"], "acc"), run.columns["counts"])
        np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-6)


class TestParts:
    @pytest.mark.parametrize(("folder", "total"), [(NEW, None), (OLD, 8)])
    def test_a_limited_run(self, folder, total):
        part = min(runs_in(folder), key=lambda run: run.n_rows)
        assert part.n_rows == 3
        assert part.total == total
        assert part.ran in (None, 3)
        whole = one(folder, "toy/model-a", "toy_sums")
        assert part.group == whole.group
        assert part.stamp > whole.stamp
        assert part.columns["content"].tolist() == whole.columns["content"].tolist()[:3]

    def test_a_row_without_scores_is_not_run(self, tmp_path):
        path = changed(tmp_path, lambda rows: rows[1].update(metric={"em": None}))
        (run,) = Lighteval().read(LogUnit(path), Wants())
        assert run.n_rows == 7
        assert run.notes == ("1 row without a score, taken as not run: '2'",)

    def test_a_score_that_is_no_number_is_named_when_taken(self, tmp_path):
        def both(rows):
            for row in rows:
                row["metric"] = {"em": [0.0, 1.0]}

        (run,) = Lighteval().read(LogUnit(changed(tmp_path, both)), Wants())
        with pytest.raises(ReaderError, match=r"row 1.*'em'.*2"):
            run.numbers("em")


class TestLeaderboard:
    def test_both_forms(self):
        for model in MODELS:
            run = one(BOARD, model, "capitals")
            assert run.task == "harness|toy:capitals|25"
            assert run.numbers("acc").tolist() == expected(model, "toy_capitals")
            assert run.metrics == ("acc", "acc_norm")
            assert run.stamp.startswith("2023-")
            assert ":" not in run.stamp
            run = one(BOARD, model, "sums")
            assert run.metrics == ("acc",)
            assert run.numbers("acc").tolist() == expected(model, "toy_sums")

    def test_items_are_those_of_newer_files(self):
        for task in ("capitals", "sums"):
            board, new = one(BOARD, "toy/model-b", task), one(NEW, "toy/model-b", task)
            assert board.columns["content"].tolist() == new.columns["content"].tolist()

    def test_the_model_by_its_folder_alone(self, tmp_path):
        copied = tmp_path / "details_org__a__b"
        shutil.copytree(BOARD / "details_toy__model-b", copied)
        for path in copied.glob("results_*"):
            path.unlink()
        runs = runs_in(tmp_path)
        assert {run.model for run in runs} == {"org/a__b"}
        assert {run.total for run in runs} == {None}


class TestFiles:
    def test_found_with_the_results_of_the_run(self):
        units = Lighteval().find(below(NEW))
        assert len(units) == 5
        for unit in units:
            (results,) = unit.beside
            assert results.name == f"results_{unit.path.parent.name}.json"

    def test_a_file_alone(self, tmp_path, monkeypatch):
        source = Lighteval().find(below(NEW))[0].path
        shutil.copy(source, tmp_path)
        monkeypatch.chdir(tmp_path)
        (unit,) = Lighteval().find([Path(source.name)])
        assert unit.beside == ()
        (run,) = Lighteval().read(unit, Wants())
        assert run.model == tmp_path.name
        assert run.total is None

    def test_other_parquet_files_are_not_taken(self):
        others = [Path(name) for name in ("scores.parquet", "details.parquet", "details_a.parquet")]
        assert Lighteval().find(others) == []

    def test_names_in_the_documentation(self, tmp_path):
        path = changed(tmp_path, wrap=True)
        (run,) = Lighteval().read(LogUnit(path), Wants())
        assert run.numbers("em").tolist() == expected("toy/model-a", "toy_sums")

    def test_other_columns(self, tmp_path):
        path = tmp_path / "details_t_2026-01-01T10-00-00.000000.parquet"
        pq.write_table(pa.table({"question": ["q"], "score": [1.0]}), path)
        with pytest.raises(ReaderError, match=r"columns are not those .* \(question, score"):
            Lighteval().read(LogUnit(path), Wants())

    def test_a_field_of_another_type(self, tmp_path):
        def spoil(rows):
            for row in rows:
                row["doc"]["gold_index"] = "first"

        with pytest.raises(ReaderError, match="row 1"):
            Lighteval().read(LogUnit(changed(tmp_path, spoil)), Wants())

    def test_no_rows(self, tmp_path):
        source = Lighteval().find(below(NEW))[0].path
        path = tmp_path / source.name
        pq.write_table(pq.read_table(source)[:0], path)
        with pytest.raises(ReaderError, check=lambda error: error.kind == "unanswered"):
            Lighteval().read(LogUnit(path), Wants())


def test_the_space_before_options_counts_in_acc_norm_where_scores_say_so(tmp_path):
    # By 5 and 2 characters the second option is best, by 4 and 1 the first.
    row = {
        "example": "q",
        "full_prompt": "q",
        "choices": [" abcd", " e"],
        "gold_index": [0],
        "predictions": [-5.0, -1.5],
    }
    for stripped, score in ((True, 1.0), (False, 0.0)):
        path = tmp_path / f"details_t_2026-01-0{1 + stripped}T10-00-00.000000.parquet"
        pq.write_table(pa.Table.from_pylist([row | {"metrics": {"acc_norm": score}}]), path)
        (run,) = Lighteval().read(LogUnit(path), Wants())
        assert run.columns["options"][0, :, 2].tolist() == ([4, 1] if stripped else [5, 2])


def changed(folder, change=None, wrap=False):
    """Return a file of details that was changed, or has columns with the other names."""
    unit = next(
        unit
        for unit in Lighteval().find(below(NEW))
        if "model-a" in str(unit.path) and "sums" in unit.path.name
    )
    rows = pq.read_table(unit.path).to_pylist()
    if change:
        change(rows)
    if wrap:
        rows = [{f"__{name}__": value for name, value in row.items()} for row in rows]
    path = folder / unit.path.name
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path
