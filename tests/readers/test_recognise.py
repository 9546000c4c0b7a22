import numpy as np
import pytest

from fewbench.errors import FewbenchError, ReaderError
from fewbench.readers import Columns, import_results
from fewbench.scores import Scale, from_arrays, save_scores

SCORES = from_arrays([[1, 0], [0, 1]], models=["a", "b"], items=["q", "r"])
LONG = Columns("m", "i", "s")


FORMS = ("scores", "npz", "table", "lm-eval")


@pytest.fixture
def files(tmp_path, logs):
    """One readable file or folder of each form."""
    save_scores(SCORES, tmp_path / "scores.parquet")
    np.savez(tmp_path / "t.npz", scores=SCORES.values, models=["a", "b"], items=["q", "r"])
    (tmp_path / "t.csv").write_text("m,i,s\na,q,1\na,r,0\nb,q,0\nb,r,1\n")
    logs.write("a", "t", [logs.free(0, "x")])
    paths = [tmp_path / "scores.parquet", tmp_path / "t.npz", tmp_path / "t.csv", tmp_path / "out"]
    return dict(zip(FORMS, paths, strict=True))


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_recognised(files, form):
    columns = LONG if form == "table" else None
    by_itself = import_results(files[form], columns=columns)
    assert by_itself.scores.equals(import_results(files[form], form=form, columns=columns).scores)
    if form != "lm-eval":
        assert by_itself.scores.equals(SCORES)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("wrong", FORMS)
def test_a_wrong_form_is_an_error(files, form, wrong):
    if wrong != form and (form, wrong) != ("scores", "table"):
        with pytest.raises(FewbenchError, match=files[form].name.replace(".", r"\.")):
            import_results(files[form], form=wrong, columns=LONG if wrong == "table" else None)


def test_jsonl_with_the_name_of_a_log_may_be_a_table(tmp_path):
    (tmp_path / "samples_x.jsonl").write_text('{"m": "a", "i": "q", "s": 1}\n')
    assert import_results(tmp_path / "samples_x.jsonl", columns=LONG).scores.n_items == 1


def test_saved_scores_keep_their_scale(tmp_path):
    percent = from_arrays([[50.0, 100.0]], models=["a"], scale=Scale(0, 100))
    path = save_scores(percent, tmp_path / "s.parquet")
    assert import_results(path, scale=Scale(0, 100)).scores.equals(percent)
    with pytest.raises(ReaderError, check=lambda error: error.kind == "scale"):
        import_results(path, scale=Scale(0, 10))


@pytest.mark.parametrize(
    ("form", "options", "named"),
    [
        ("npz", {"columns": LONG}, "columns"),
        ("scores", {"transposed": True}, "--transposed"),
        ("table", {"metric": "acc"}, "--metric"),
        ("npz", {"filter": "none"}, "--filter"),
        ("lm-eval", {"columns": LONG}, "columns"),
    ],
)
def test_options_that_do_not_apply(files, form, options, named):
    with pytest.raises(ReaderError, match=f"does not use {named}"):
        import_results(files[form], **options)


def test_several_paths_of_different_kinds(files):
    with pytest.raises(ReaderError, match=r"t\.csv"):
        import_results([files["lm-eval"], files["table"]])
    with pytest.raises(ReaderError, check=lambda error: error.kind == "too-few"):
        import_results([])


def test_a_folder_without_results(tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ReaderError, match=r"'notes\.txt'"):
        import_results(tmp_path)


def test_unknown_form_and_path(tmp_path):
    with pytest.raises(ReaderError, match="'excel'"):
        import_results(tmp_path, form="excel")
    with pytest.raises(ReaderError, check=lambda error: error.kind == "missing-file"):
        import_results(tmp_path / "absent.csv")
