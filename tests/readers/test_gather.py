"""Many files: read on several processors, gone on with after a stop, damaged ones named."""

import os
import signal

import numpy as np
import pytest

from fewbench.errors import ReaderError
from fewbench.readers import gather, import_results
from fewbench.readers.gather import load_part, save_part
from fewbench.readers.harness import LogUnit, Wants
from fewbench.readers.harnesses.lm_eval import LmEval


@pytest.fixture
def several(logs):
    """Six models, three tasks, different answers, one run of a part."""
    rng = np.random.default_rng(0)
    for model in range(6):
        for task in range(3):
            rows = [logs.choice(i, f"q{task}{i}", rng.normal(size=4).tolist()) for i in range(9)]
            rows = rows[: 5 if model == task == 1 else 9]
            stamp = f"2026-01-0{task + 1}T10-00-00"
            logs.write(f"org/m{model}", f"t{task}", rows, stamp=stamp, original=9)
    return logs.root / "out"


def torn(folder, cut=40):
    file = sorted(folder.rglob("samples_*"))[0]
    file.write_bytes(file.read_bytes()[:-cut])
    return file


def same(one, other):
    assert one.scores.equals(other.scores)
    assert one.notes == other.notes
    assert one.files.equals(other.files)
    probabilities = [np.stack(list(r.scores.probabilities.by_model())) for r in (one, other)]
    assert np.array_equal(*probabilities, equal_nan=True)


def test_with_a_folder_for_parts_or_without(several, tmp_path):
    same(import_results(several), import_results(several, work=tmp_path / "work"))


def test_on_one_processor_or_several(several, tmp_path, monkeypatch):
    monkeypatch.setattr(gather, "PARALLEL_FROM", 0)
    same(import_results(several), import_results(several, workers=2))
    same(import_results(several), import_results(several, workers=2, work=tmp_path / "work"))


def test_goes_on_after_a_stop(several, tmp_path):
    work = tmp_path / "work"

    def stop(done, total):
        assert total == 18
        if done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_results(several, work=work, progress=stop)
    parts = {path: path.stat().st_mtime_ns for path in work.glob("*.part")}
    assert len(parts) == 7
    same(import_results(several), import_results(several, work=work))
    assert all(path.stat().st_mtime_ns == at for path, at in parts.items())


def test_a_file_that_changed_is_read_again(several, tmp_path):
    before = import_results(several, work=tmp_path / "work")
    file = sorted(several.rglob("samples_*"))[0]
    text = file.read_text()
    file.write_text(text.replace('"acc": 1.0', '"acc": 0.0'))
    os.utime(file, ns=(1, 1))
    after = import_results(several, work=tmp_path / "work")
    assert after.scores.values[0, :9].tolist() == [0] * 9
    assert np.array_equal(after.scores.values[1:], before.scores.values[1:], equal_nan=True)


def test_results_that_changed_count_too(several, tmp_path):
    import_results(several, work=tmp_path / "work")
    results = sorted(several.rglob("results_*"))[0]
    results.write_text(results.read_text().replace('"org/m0"', '"org/renamed"'))
    assert import_results(several, work=tmp_path / "work").scores.model_ids[0] == "org/renamed"


def test_a_part_holds_all_of_a_run(several, tmp_path):
    file = next(several.rglob("samples_*"))
    runs = LmEval().read(LogUnit(file, tuple(file.parent.glob("results_*"))), Wants())
    save_part(runs, tmp_path / "a.part")
    for kept, run in zip(load_part(tmp_path / "a.part"), runs, strict=True):
        assert set(kept.columns) == set(run.columns)
        for name, column in run.columns.items():
            assert np.array_equal(kept.columns[name], column, equal_nan=column.dtype.kind == "f")
        assert {k: v for k, v in vars(kept).items() if k != "columns"} == {
            k: v for k, v in vars(run).items() if k != "columns"
        }


def test_a_damaged_part_is_read_again(several, tmp_path):
    before = import_results(several, work=tmp_path / "work")
    for part in (tmp_path / "work").glob("*.part"):
        part.write_bytes(part.read_bytes()[:20])
    same(before, import_results(several, work=tmp_path / "work"))


class Killed(LmEval):
    """Reading with this, a process comes to a sudden end."""

    def read(self, unit, wants):
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_is_told(several, tmp_path, monkeypatch):
    monkeypatch.setattr(gather, "PARALLEL_FROM", 0)
    units = [(Killed(), LogUnit(file)) for file in several.rglob("samples_*")]
    with pytest.raises(ReaderError, match="--workers 1"):
        gather.gather(units, Wants(), work=tmp_path, workers=2)


class TestFilesFound:
    def test_linked_folders_are_entered(self, logs, tmp_path):
        rows = [logs.choice(0, "q")]
        elsewhere = logs.write("org/a", "t", rows, folder="elsewhere")
        logs.write("org/b", "t", rows)
        (logs.root / "out" / "linked").symlink_to(elsewhere.parent, target_is_directory=True)
        (logs.root / "out" / "loop").symlink_to(logs.root / "out", target_is_directory=True)
        assert set(import_results(logs.root / "out").scores.model_ids) == {"org/a", "org/b"}

    @pytest.mark.skipif(os.geteuid() == 0, reason="a superuser may look into every folder")
    def test_a_folder_that_cannot_be_looked_into(self, several):
        several.chmod(0)
        with pytest.raises(ReaderError, check=lambda error: error.kind == "damaged"):
            import_results(several)

    def test_a_cache_that_names_files_by_their_hash(self, logs):
        rows = [logs.choice(0, "q")]
        for model in ("org/a", "org/b"):
            folder = logs.write(model, "t", rows, folder="snapshots", results=False)
            file = next(folder.glob("samples_*"))
            blob = logs.root / "blobs" / f"blob{model[-1]}"
            blob.parent.mkdir(exist_ok=True)
            file.rename(blob)
            file.symlink_to(blob)
        assert import_results(logs.root).scores.model_ids == ["org/a", "org/b"]


class TestDamagedFiles:
    def test_all_are_counted_and_the_first_named(self, several):
        for file in sorted(several.rglob("samples_*"))[:5]:
            file.write_bytes(file.read_bytes()[:-40])
        with pytest.raises(ReaderError, match=r"5 of 18 files.*samples_t0.*line 9"):
            import_results(several)

    def test_left_out_if_the_user_says_so(self, several):
        file = torn(several)
        with pytest.raises(ReaderError, match=r"line 9.*JSON.*--damaged rows"):
            import_results(several)
        reading = import_results(several, damaged="skip")
        assert np.isnan(reading.scores.values[0, :9]).all()
        assert reading.notes[0].startswith("1 of 18 files were left out: ")
        row = reading.files.set_index("file").loc[str(file)]
        assert row["taken"] == 0
        assert "not whole JSON" in row["note"]

    def test_whole_rows_are_kept_if_the_user_says_so(self, several):
        file = torn(several)
        reading = import_results(several, damaged="rows")
        assert np.isnan(reading.scores.values[0, :9]).tolist() == [False] * 8 + [True]
        assert any("last line is truncated and was skipped" in note for note in reading.notes)
        assert any("has 8 documents, but its results file says 9" in note for note in reading.notes)
        assert reading.files.set_index("file").loc[str(file)]["taken"] == 8

    def test_a_torn_line_that_is_not_the_last_is_never_dropped(self, several):
        file = torn(several)
        file.write_bytes(file.read_bytes() + b"\n" + file.read_bytes().split(b"\n")[0] + b"\n")
        with pytest.raises(ReaderError, match=r"line 9.*JSON"):
            import_results(file, damaged="rows")


class TestFiles:
    def test_every_file_is_listed_once_a_run(self, several):
        (several / "notes.txt").write_text("hello")
        files = import_results(several).files
        assert len(files) == 19
        assert files["taken"].sum() == 18 * 9 - 4
        assert set(files["harness"]) == {"lm-eval", ""}
        other = files.iloc[-1]
        assert other["file"].endswith("notes.txt")
        assert other["note"] == "not a result file that fewbench can read"
