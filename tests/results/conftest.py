"""Real tables for results on real data; they lie beside the checkout, or the tests are skipped."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fewbench.readers import read
from fewbench.scores import Scores

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


@pytest.fixture(scope="session")
def real() -> Callable[[str], Scores]:
    def load(name: str) -> Scores:
        path = DATA / f"{name}.npz"
        if not path.is_file():
            pytest.skip(f"needs the table {name}.npz in ../shared/data, which is not there")
        return read(path).scores

    return load
