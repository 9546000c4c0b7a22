"""Our own readers keep the promises that readers of other packages are tested by."""

import pytest

from fewbench.readers.harnesses import HARNESSES
from fewbench.testing.reader_conformance import ReaderConformance

from .test_any_door import DOORS, opened


class TestOurs(ReaderConformance):
    @pytest.fixture(params=DOORS)
    def reader(self, request, monkeypatch):
        monkeypatch.setattr(type(self), "options", DOORS[request.param][1])
        return HARNESSES[request.param]

    @pytest.fixture
    def logs(self, reader, tmp_path_factory):
        if reader.name == "inspect":
            pytest.importorskip("inspect_ai")
        return opened(DOORS[reader.name][0], tmp_path_factory.mktemp("logs"))
