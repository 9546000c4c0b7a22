"""VLMEvalKit: what the tool wrote of toy questions, and what went wrong with it."""

import json
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest

from fewbench.errors import MissingExtraError, ReaderError
from fewbench.readers import import_results
from fewbench.readers.harness import Wants
from fewbench_logs.harnesses.vlmevalkit import VLMEvalKit, made_of

from ...readers.toy import A, B, capitals, noted

FIXTURES = Path(__file__).parents[2] / "readers/fixtures" / "vlmevalkit"
TSV = "tsv/toy-model-a/toy-model-a_toy_capitals_exact_matching_result.tsv"
RESULT = TSV.rpartition("/")[2]


@pytest.fixture
def excel():
    return pytest.importorskip("openpyxl", reason="openpyxl is not installed: no .xlsx files")


def runs_of(folder, wants=None):
    harness = VLMEvalKit()
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return [run for unit in harness.find(files) for run in harness.read(unit, wants or Wants())]


@pytest.fixture
def sheet(tmp_path):
    """A scored sheet with tabs in a model's folder: `sheet(rows, name=…)`."""

    def write(rows, name="m_ds_exact_matching_result.tsv", model="m"):
        path = tmp_path / model / name
        path.parent.mkdir(exist_ok=True)
        pd.DataFrame(rows).to_csv(path, sep="\t", index=False, quoting=1)
        return path

    return write


def rows(n=3, **changes):
    """Rows as of an evaluation; changes are lists of cells."""
    made = [
        {"index": i, "question": f"q{i}", "A": "x", "B": "y", "answer": "B", "hit": i % 2}
        for i in range(n)
    ]
    for name, cells in changes.items():
        for row, cell in zip(made, cells, strict=True):
            row[name] = cell
    return made


def only(path, wants=None):
    (unit,) = VLMEvalKit().find([path])
    (run,) = VLMEvalKit().read(unit, wants or Wants())
    return run


class TestTable:
    def test_yes_and_no(self, excel):
        scores = import_results(FIXTURES / "xlsx").scores
        task = scores.items["task"].to_numpy()
        yes_no = scores.values[:, task == "toy_yes_no"]
        assert yes_no.tolist() == [[0, *[1] * 9], [0, 1, 1, 0, 1, 0, 1, 1, 0, 1]]

    def test_turned_options_are_one_item_right_at_every_turn(self, excel):
        by_model = {
            run.model: run
            for run in runs_of(FIXTURES / "xlsx")
            if run.task == "toy_capitals_circular"
        }
        assert by_model["toy-model-a"].numbers("hit").tolist() == [1, 0, 1, 1]
        assert by_model["toy-model-b"].numbers("hit").tolist() == [1, 0, 0, 0]
        assert by_model["toy-model-a"].columns["own_id"].tolist() == ["2", "3", "5", "9"]

    def test_sheets_with_tabs_are_the_same_items(self, excel):
        books = {run.task: run for run in runs_of(FIXTURES / "xlsx" / "toy-model-a")}
        for run in runs_of(FIXTURES / "tsv"):
            book = books[run.task]
            assert run.columns["content"].tolist() == book.columns["content"].tolist()
            (metric,) = run.metrics
            assert run.numbers(metric).tolist() == book.numbers(metric).tolist()

    def test_a_later_run_replaces_an_earlier_one(self, excel):
        reading = import_results(FIXTURES / "stamped")
        assert reading.scores.values.tolist() == [[1, *capitals(A)[1:]]]
        assert noted(reading.notes, "10 of 10 items .* come from a newer run")

    def test_links_to_the_newest_run_are_read_once(self, excel, tmp_path):
        folder = shutil.copytree(FIXTURES / "stamped", tmp_path / "out") / "toy-model-a"
        newest = max(folder.glob("T*"))
        for path in newest.glob("*.xlsx"):
            (folder / path.name).symlink_to(path)
        assert import_results(tmp_path / "out").scores.equals(
            import_results(FIXTURES / "stamped").scores
        )

    def test_a_limited_run_joins_a_whole_one(self, excel):
        reading = import_results([FIXTURES / "limited", FIXTURES / "xlsx"])
        task = (reading.scores.items["task"] == "toy_capitals").to_numpy()
        values = dict(zip(reading.scores.model_ids, reading.scores.values, strict=True))
        assert values["toy-model-b"][task].tolist() == capitals(B)
        assert noted(reading.notes, "--limit 4")

    def test_the_judge_is_the_filter(self, sheet):
        sheet(rows(prediction=["B"] * 3), name="m_ds.tsv")
        sheet(rows(), name="m_ds_my_own-judge_result.tsv")
        exact = sheet(rows(hit=[1, 1, 1]))
        runs = {run.filter: run for run in runs_of(exact.parent)}
        assert runs["exact_matching"].numbers("hit").tolist() == [1, 1, 1]
        assert runs["my_own-judge"].numbers("hit").tolist() == [0, 1, 0]
        with pytest.raises(ReaderError, match="--filter"):
            import_results(exact.parent)
        assert import_results(exact).scores.values.tolist() == [[1, 1, 1]]


class TestNames:
    @pytest.mark.parametrize(
        ("stem", "beside", "expected"),
        [
            ("m_MMBench_V11_exact_matching_result", [], ("m_MMBench_V11", "exact_matching")),
            ("m_MMB_V11_openai_result", ["m_MMB", "m_MMB_V11"], ("m_MMB_V11", "openai")),
            ("m_MMB_openai_result", ["m_MMB", "m_MMB_V11"], ("m_MMB", "openai")),
            ("m_POPE_auxmatch", [], ("m_POPE", "")),
            ("m_DocVQA_VAL_results", ["m_DocVQA_VAL"], ("m_DocVQA_VAL", "")),
            ("m_MathVista_MINI_gpt-4o-mini", [], ("m_MathVista_MINI", "gpt-4o-mini")),
        ],
    )  # fmt: skip
    def test_where_the_dataset_ends(self, stem, beside, expected):
        assert made_of(stem, beside) == expected

    def test_a_file_out_of_its_folder(self, sheet, tmp_path):
        path = sheet(rows())
        moved = tmp_path / path.name
        shutil.move(path, moved)
        with pytest.raises(ReaderError, check=lambda error: error.kind == "name"):
            import_results(moved, form="vlmevalkit")

    def test_the_run_s_status_names_the_model(self, sheet):
        path = sheet(rows(), name="org_m_ds_openai_result.tsv", model="moved")
        status = path.with_name("status.json")
        status.write_text(json.dumps({"model_name": "org_m", "eval_id": "T20260101-000000"}))
        run = only(path)
        assert (run.model, run.task, run.stamp) == ("org_m", "ds", "T20260101-000000")
        status.write_text('{"model_name": "or')
        with pytest.raises(ReaderError, match=r"status\.json.*JSON"):
            only(path)

    def test_half_way_sheets_are_not_results(self, sheet):
        path = sheet(rows(), name="m_ds_exact_matching_vanilla_all_result.tsv")
        assert VLMEvalKit().find([path]) == []

    def test_other_tables_are_left_alone(self, tmp_path):
        (tmp_path / "a.tsv").write_text("model\titem\tscore\nm\ti\t1\n")
        (tmp_path / "index.json").write_text('[{"index": 1, "question": "q"}]')
        (tmp_path / "a.csv").write_text("index,question,hit\n1,q,1\n")
        (tmp_path / "status.json").write_text("{}")
        (tmp_path / "their_results.xlsx").write_bytes(b"PK")
        assert VLMEvalKit().find(sorted(tmp_path.iterdir())) == []


class TestScores:
    def test_turns_in_one_sheet_count_only_together(self, sheet):
        made = rows(4, index=[1, 2, 1_000_001, 1_000_002], hit=[1, 1, 1, 0])
        run = only(sheet(made, name="m_MMBench_DEV_openai_result.tsv"))
        assert run.columns["own_id"].tolist() == ["1", "2"]
        assert run.numbers("hit").tolist() == [1, 0]
        assert noted(run.notes, "2 items ran with rotated options")
        apart = only(sheet(made, name="m_RealWorldQA_openai_result.tsv"))
        assert apart.numbers("hit").tolist() == [1, 1, 1, 0]

    def test_groups_that_the_sheet_names(self, sheet):
        made = rows(4, index=[5, 1, 2, 3], g_index=[2, 1, 2, 1], hit=[0, 1, 1, 1])
        run = only(sheet(made))
        assert dict(zip(run.columns["own_id"].tolist(), run.numbers("hit"), strict=True)) == {
            "2": 0,
            "1": 1,
        }

    @pytest.mark.parametrize(
        ("dataset", "hits"),
        [
            ("DocVQA_VAL", [0.6, 0, 1]),
            ("ChartQA_TEST", [0.8, 1, 0]),
            ("TextVQA_VAL", [0.6, 0.75, 0]),
        ],
    )
    def test_matches_become_hits_as_the_dataset_s_summary_has_it(self, sheet, dataset, hits):
        made = rows(eval_match=["[0.4, 0.8]", "[1.0, 0.5]", "[0.0]"])
        for row in made:
            del row["hit"]
        made[1]["eval_match"] = "[1.0, 0.51]" if dataset == "DocVQA_VAL" else "[1.0, 0.5]"
        run = only(sheet(made, name=f"m_{dataset}_results.tsv"))
        assert run.numbers("hit").tolist() == pytest.approx(hits)

    def test_matches_that_are_none(self, sheet):
        made = rows(eval_match=["[1.0]", "[None]", "[1.0]"])
        for row in made:
            del row["hit"]
        with pytest.raises(ReaderError, match=r"row 2.*eval_match.*'\[None\]'"):
            only(sheet(made, name="m_GQA_results.tsv"))

    def test_items_without_a_score_are_left_out_and_named(self, sheet):
        run = only(sheet(rows(hit=[1, None, 0])))
        assert run.columns["own_id"].tolist() == ["0", "2"]
        assert noted(run.notes, "1 item left out, without a score: '1'")

    def test_failures_of_a_server_are_told(self, sheet):
        run = only(sheet(rows(prediction=["B", "Failed to obtain answer via API.", "A"])))
        assert run.n_rows == 3
        assert noted(run.notes, "1 answers are failures of the model's server")

    def test_an_item_is_its_index_and_what_it_says(self, sheet):
        run = only(sheet(rows(question=["same"] * 3)))
        assert len(set(run.columns["content"].tolist())) == 3
        other = only(sheet(rows(question=["same", "same", "other"])))
        same = run.columns["content"] == other.columns["content"]
        assert same.tolist() == [True, True, False]

    def test_numbers_as_a_sheet_turns_them(self, sheet):
        run = only(sheet(rows(A=["3", "4", "5"])))
        turned = only(sheet(rows(A=[3.0, 4.0, 5.0], index=[0.0, 1.0, 2.0])))
        assert run.columns["content"].tolist() == turned.columns["content"].tolist()


class TestBroken:
    @pytest.mark.parametrize("folder", ["infer", "json"])
    def test_predictions_without_an_evaluation(self, folder, request):
        if folder == "infer":
            request.getfixturevalue("excel")
        with pytest.raises(ReaderError, match=r"'hit'.*'score'") as error:
            import_results(FIXTURES / folder)
        assert "--damaged skip" in error.value.hint

    @pytest.mark.parametrize(
        ("how", "message"),
        [
            (lambda text: text[:-5], "row 10: fewer cells|not a whole table"),
            (lambda text: "", "no result file"),
            (lambda text: text.partition("\n")[0], "empty"),
            (lambda text: text.replace('"index"', '"index_"'), "no column 'index'"),
            (lambda text: text.replace('"A"', '"B"', 1), "two columns are named 'B'"),
            (
                lambda text: text.replace('"3"\t', '"2"\t', 1),
                "row 4: index 2 appears a second",
            ),
            (lambda text: text.replace('"3"\t', '""\t', 1), "row 4: no index"),
            (lambda text: text.replace('"1"\t"Match', '"yes"\t"Match', 1), "metric 'hit'.*'yes'"),
            (lambda text: text.replace('"1"\t"Match', '"inf"\t"Match', 1), "metric 'hit'.* is inf"),
            (lambda text: text + '"a"\t"b"\n', "row 11: fewer cells"),
            (lambda text: text + "x\t" * 20 + "\n", "row 11: more cells"),
        ],
    )
    def test_broken_sheets(self, tmp_path, how, message):
        path = shutil.copytree((FIXTURES / TSV).parent, tmp_path / "toy-model-a") / RESULT
        path.write_text(how(path.read_text()))
        with pytest.raises(ReaderError, match=message) as error:
            import_results(path, form="vlmevalkit")
        assert str(path) in str(error.value)

    def test_openpyxl_is_asked_for(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "openpyxl", None)
        with pytest.raises(MissingExtraError, match="openpyxl") as error:
            import_results(FIXTURES, damaged="skip")  # not the sheet is damaged
        assert "fewbench[vlmevalkit]" in error.value.hint

    def test_json_that_is_no_list(self, tmp_path):
        folder = shutil.copytree(FIXTURES / "json" / "toy-model-b", tmp_path / "toy-model-b")
        path = folder / "toy-model-b_toy_capitals.json"
        unit = VLMEvalKit().find([path])[0]
        for text, message in (
            ("{}", "not a list of rows"),
            ("[1]", "row 1: not an object"),
            ("[", "JSON"),
            ("[]", "empty"),
        ):
            path.write_text(text)
            with pytest.raises(ReaderError, match=message):
                VLMEvalKit().read(unit, Wants())

    def test_scored_rows_of_json(self, tmp_path):
        path = tmp_path / "m" / "m_ds_openai_result.json"
        path.parent.mkdir()
        path.write_text(json.dumps(rows(hit=[1, 0, True])))
        assert only(path).numbers("hit").tolist() == [1, 0, 1]
