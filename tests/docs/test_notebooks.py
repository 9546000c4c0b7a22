"""The notebooks of the documentation run, and their kept outputs are those of their code."""

from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    not (find_spec("nbformat") and find_spec("nbclient")), reason="needs nbformat and nbclient"
)
ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def script():
    path = ROOT / "scripts/run_notebooks.py"
    spec = spec_from_file_location("run_notebooks", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, script, monkeypatch):
    import nbformat

    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"), prepend=":")
    kept, found = nbformat.read(path, as_version=4), script.run(path)
    for before, after in zip(kept.cells, found.cells, strict=True):
        assert before.get("source") == after.get("source")
        assert _kinds(before) == _kinds(after), "run: make notebooks"
    assert any("image/svg+xml" in kind for cell in found.cells for kind in _kinds(cell))


def _kinds(cell) -> list[tuple[str, ...]]:
    """Return what kinds of results a cell has, not the numbers: these differ between machines.

    Printed lines come in one part or several, as time has it.
    """
    outputs = [one for one in cell.get("outputs", []) if one.output_type != "stream"]
    return [tuple(sorted(one.get("data", {one.output_type: ""}))) for one in outputs]
