"""Files that are something else than they seem: named, with what to do, or read as they are."""

import json
import os
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fewbench import _memory
from fewbench.errors import FewbenchError
from fewbench.public import load_scores
from fewbench.readers import Columns, import_results, join_attributes
from fewbench.scores import from_long
from fewbench_papers.bento import Transferability
from fewbench_papers.bento.task_tables import read_task_table

LONG = Columns("m", "i", "s", task="t")
TABLE = "m,i,s,t\nmüller,q,1,x\nmüller,r,0,x\nb,q,0,x\nb,r,1,x\n"
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n"
FIXTURES = Path(__file__).parent / "fixtures"
LM_EVAL = FIXTURES / "lm_eval" / "0.4.13"


@pytest.fixture
def lm_eval(tmp_path):
    """A run of lm-eval with its samples and totals."""
    totals = next(path for path in sorted(LM_EVAL.rglob("results_*.json")))
    shutil.copytree(totals.parent, tmp_path / "logs" / "model")
    return tmp_path / "logs"


class TestGitLfs:
    @pytest.mark.parametrize("name", ["x.csv", "x.npz", "x.parquet", "x.jsonl"])
    def test_a_file(self, tmp_path, name):
        (tmp_path / name).write_text(POINTER)
        with pytest.raises(FewbenchError, check=lambda error: error.kind == "format"):
            import_results(tmp_path / name, columns=LONG)

    def test_others(self, tmp_path):
        for name in ("x.csv", "x.npz", "x.parquet"):
            (tmp_path / name).write_text(POINTER)
        scores = from_long(pd.DataFrame({"m": ["a"], "i": ["q"], "s": [1]}),
                           model="m", item="i", score="s")  # fmt: skip
        for use in (
            lambda: load_scores(tmp_path / "x.parquet"),
            lambda: join_attributes(scores, models=tmp_path / "x.csv"),
            lambda: Transferability.load(tmp_path / "x.npz"),
            lambda: Transferability.load(tmp_path / "x.csv"),
            lambda: read_task_table(tmp_path / "x.csv", ["x"]),
        ):
            with pytest.raises(FewbenchError, check=lambda error: error.kind == "format"):
                use()

    def test_among_logs_that_are_there(self, lm_eval):
        """Left out silently, a model would be missing."""
        other = lm_eval / "other" / "per_instance_stats.json"
        other.parent.mkdir()
        other.write_text(POINTER)
        with pytest.raises(FewbenchError, match=r"1 file.*per_instance_stats"):
            import_results(lm_eval)


class TestTotals:
    def test_of_lm_eval(self, lm_eval):
        for path in lm_eval.rglob("samples_*"):
            path.unlink()
        (totals,) = lm_eval.rglob("results_*")
        for path in (lm_eval, totals):
            with pytest.raises(FewbenchError, match="--log_samples"):
                import_results(path)

    def test_of_one_model_among_others(self, lm_eval):
        (totals,) = lm_eval.rglob("results_*")
        (lm_eval / "other").mkdir()
        shutil.copy(totals, lm_eval / "other")
        notes = import_results(lm_eval, metric="acc,exact_match", filter="none,strict-match").notes
        assert any("1 file of lm-eval holds totals" in note for note in notes)

    def test_of_helm_and_lighteval(self, tmp_path):
        for harness, name, content, hint in (
            ("helm", "stats.json", [], "per_instance_stats.json"),
            ("lighteval", "results_2026.json", {"config_general": {}}, "--save-details"),
        ):
            folder = tmp_path / harness
            folder.mkdir()
            (folder / name).write_text(json.dumps(content))
            with pytest.raises(FewbenchError, match=rf"{harness} holds totals .*{hint}"):
                import_results(folder)


class TestText:
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
    def test_what_states_its_encoding_is_read(self, tmp_path, encoding):
        text = "\ufeff" + TABLE if encoding == "utf-16-le" else TABLE
        (tmp_path / "x.csv").write_bytes(text.encode(encoding))
        rows = [dict(zip("mist", line.split(","), strict=True)) for line in TABLE.split()[1:]]
        lines = "".join(
            json.dumps(row | {"s": int(row["s"])}, ensure_ascii=False) + "\n" for row in rows
        )
        lines = "\ufeff" + lines if encoding == "utf-16-le" else lines
        (tmp_path / "x.jsonl").write_bytes(lines.encode(encoding))
        for name in ("x.csv", "x.jsonl"):
            scores = import_results(tmp_path / name, columns=LONG).scores
            assert scores.model_ids == ["müller", "b"]
            assert scores.values.tolist() == [[1, 0], [0, 1]]

    @pytest.mark.parametrize("columns", [LONG, Columns("m", "i", "s", keep_model=("note",))])
    def test_latin_1_is_named_with_the_line(self, tmp_path, columns):
        text = TABLE if columns is LONG else "m,i,s,note\na,q,1,x\nb,q,0,größe\n"
        path = tmp_path / "x.csv"
        path.write_bytes(text.encode("latin-1"))
        line = 2 if columns is LONG else 3
        with pytest.raises(FewbenchError, match=rf"byte 0xf. at line {line}, '[üö]'.*iconv"):
            import_results(path, columns=columns)

    def test_logs_in_utf_16(self, lm_eval):
        samples = next(lm_eval.rglob("samples_*"))
        samples.write_bytes(samples.read_text().encode("utf-16"))
        with pytest.raises(FewbenchError, match=r"UTF-16 text, not UTF-8.*iconv -f UTF-16"):
            import_results(lm_eval)

    @pytest.mark.parametrize(("mark", "words"), [(";", "';'"), ("\t", "tabs"), ("|", r"'\|'")])
    def test_other_separators(self, tmp_path, mark, words):
        path = tmp_path / "x.csv"
        path.write_text(TABLE.replace(",", mark).replace("1", "0,5"))
        for use in (
            lambda: import_results(path, columns=LONG),
            lambda: import_results(path, columns=Columns("m")),
            lambda: read_task_table(path, ["x"]),
            lambda: Transferability.load(path),
        ):
            with pytest.raises(FewbenchError, match=rf"look separated by {words}, not by ','"):
                use()


class TestMemory:
    """Told by sizes and headers alone: nothing of the kind is read."""

    @pytest.fixture(autouse=True)
    def _little_memory(self, monkeypatch):
        monkeypatch.setattr(_memory, "available_memory", lambda: 10_000)

    def test_a_header_of_an_npz(self, tmp_path):
        head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000), }"
        head += b" " * (117 - len(head)) + b"\n"
        with zipfile.ZipFile(tmp_path / "x.npz", "w") as file:
            file.writestr("scores.npy", b"\x93NUMPY\x01\x00\x76\x00" + head)
            file.writestr("models.npy", b"")
        with pytest.raises(FewbenchError, match=r"14,901.2.*GB"):
            import_results(tmp_path / "x.npz")

    def test_a_large_file(self, tmp_path):
        path = tmp_path / "x.csv"
        path.write_text(TABLE)
        os.truncate(path, 20_000)
        with pytest.raises(FewbenchError, match=r"x.csv"):
            import_results(path, columns=Columns("m"))

    def test_a_parquet_file(self, tmp_path):
        pd.DataFrame({"m": ["a"] * 10_000}).to_parquet(tmp_path / "x.parquet")
        for columns in (LONG, Columns("m")):
            with pytest.raises(FewbenchError, match="10,000 rows"):
                import_results(tmp_path / "x.parquet", columns=columns)

    def test_few_rows_of_many_models_and_items(self):
        names = [str(at) for at in range(40)]
        table = pd.DataFrame({"m": names, "i": names, "s": np.ones(40)})
        with pytest.raises(FewbenchError, match=r"40 models.*40 items"):
            from_long(table, model="m", item="i", score="s")
