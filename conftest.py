"""Before numpy is imported: threads, and the entry points of this checkout.

Tests run side by side, and threads that wait for work cost time. An installed fewbench may be of
another checkout or of an earlier day; its entry points are not those of pyproject.toml.
"""

import atexit
import os
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")


def write_info(project: dict, folder: Path) -> None:
    """Write what an installer leaves of a project in a folder: its name and its entry points."""
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(head)
    lines = []
    for group, entries in project.get("entry-points", {}).items():
        lines += [f"[{group}]", *(f"{name} = {place}" for name, place in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))


_site = Path(tempfile.mkdtemp(prefix="fewbench-entry-points-"))
atexit.register(shutil.rmtree, _site, ignore_errors=True)
_project = tomllib.loads(Path(__file__).with_name("pyproject.toml").read_text())["project"]
if os.environ.get("FEWBENCH_ALONE"):  # tests/test_core_alone.py
    del _project["entry-points"]
write_info(_project, _site)
sys.path.insert(0, str(_site))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_site), os.environ.get("PYTHONPATH")]))


@pytest.fixture(scope="session")
def install():
    """The function that installs a project."""
    return write_info
