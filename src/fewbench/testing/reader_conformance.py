"""A pytest class with the promises that every reader of logs must keep, your own readers too.

A subclass supplies two fixtures, the reader and a folder of logs that its harness wrote:

    class TestMyReader(ReaderConformance):
        options = {"metric": "correct"}  # of import_results

        @pytest.fixture
        def reader(self):
            return MyReader()

        @pytest.fixture
        def logs(self):
            return Path("tests/logs")

What a pass shows: the reader finds its own files and none of other programs, reads them alike each
time and in any order, and refuses a damaged file by its name. It does not show that the scores are
those of the harness: compare them with what you know of your logs.
"""

import json
import shutil
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from fewbench.errors import FewbenchError, ReaderError
from fewbench.readers import Reading, import_results
from fewbench.readers.files import list_files
from fewbench.readers.harness import Harness, Wants
from fewbench.readers.harnesses import HARNESSES

__all__ = ["ReaderConformance"]


def __dir__() -> list[str]:
    return __all__


OTHERS = {
    "empty.json": b"",
    "other.json": json.dumps({"name": "other", "version": [1]}).encode(),
    "other.jsonl": b'{"a": 1}\n[2]\n"three"\n',
    "table.csv": b"model,item,score\na,q1,1\n",
    "broken.json": b'{"cut": [1, 2',
    "bytes.bin": bytes(range(256)),
}
"""Files of other programs."""


class ReaderConformance:
    """What every reader keeps."""

    options: ClassVar[dict[str, Any]] = {}
    """How the logs are imported: arguments of `import_results`."""

    @pytest.fixture(autouse=True)
    def _registered(self, reader: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(HARNESSES, reader.name, reader)

    def _read(self, reader: Harness, paths: Path | list[Path]) -> Reading:
        return import_results(paths, form=reader.name, **self.options)

    def test_finds_its_own_files(self, reader: Harness, logs: Path) -> None:
        """Units are of the files that are offered, in their order, each once."""
        files = list_files([logs])
        paths = [unit.path for unit in reader.find(files)]
        assert paths, f"no file of {logs} is found"
        assert paths == [path for path in files if path in set(paths)]

    def test_leaves_files_of_other_programs(self, reader: Harness, tmp_path: Path) -> None:
        """Neither takes them nor fails at them."""
        for name, content in OTHERS.items():
            (tmp_path / name).write_bytes(content)
        assert not reader.find(list_files([tmp_path]))

    def test_runs_are_whole(self, reader: Harness, logs: Path) -> None:
        """Each run names its model and task; each column has a value for each row."""
        for unit in reader.find(list_files([logs])):
            for run in reader.read(unit, Wants()):
                assert run.model
                assert run.task
                assert run.n_rows >= run.n_items > 0
                lengths = {name: len(run.columns[name]) for name in ("content", "place")}
                assert set(lengths.values()) == {run.n_rows}, lengths
                assert run.metrics, f"{unit.path} has no metric"

    def test_order_of_files_changes_nothing(self, reader: Harness, logs: Path) -> None:
        """The same scores, with the files the other way round, and once more."""
        units = reader.find(list_files([logs]))
        files = list(dict.fromkeys(path for unit in units for path in (unit.path, *unit.beside)))
        first = self._read(reader, files).scores.to_frame()
        for paths in (files, files[::-1]):
            again = self._read(reader, paths).scores.to_frame()
            np.testing.assert_array_equal(again.loc[first.index, first.columns], first)

    def test_is_found_without_its_name(self, reader: Harness, logs: Path) -> None:
        """`--from` is not needed: no other reader takes the files."""
        named = self._read(reader, logs).scores
        found = import_results(logs, **self.options).scores
        assert named.fingerprint == found.fingerprint

    def test_a_cut_file_is_refused_by_name(
        self, reader: Harness, logs: Path, tmp_path: Path
    ) -> None:
        """Half of a file is a ReaderError that names the file, or is no longer found."""
        for unit in reader.find(list_files([logs])):
            cut = tmp_path / unit.path.name
            shutil.copyfile(unit.path, cut)
            content = cut.read_bytes()
            half_of_it = content[: len(content) // 2].rstrip(b"{[ \r\n\t")
            cut.write_bytes(half_of_it[:-1])  # amid a line, not at its end
            for half in reader.find([cut]):
                with pytest.raises(FewbenchError) as error:
                    reader.read(half, Wants())
                assert isinstance(error.value, ReaderError)
                assert cut.name in str(error.value)
