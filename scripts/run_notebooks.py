"""Run the documentation's notebooks, each in an empty folder, and keep their outputs.

python scripts/run_notebooks.py [--check]

With --check nothing is written. Outputs are free of times, paths of the machine and counts of runs,
so that running a notebook again changes only what comes out differently. Needs the extra `docs`.
"""

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
MACHINE = re.compile(r"(?:/home/|/root/|/tmp/|/Users/|[A-Z]:\\Users)[\w./\\-]*")
SECONDS = 300  # for one cell


def main() -> None:
    check = "--check" in sys.argv[1:]
    for path in sorted(FOLDER.glob("*.ipynb")):
        book = run(path)
        if not check:
            nbformat.write(book, path)
        print(f"{path.name}: {len(book.cells)} cells run")


def run(path: Path) -> Any:
    """Run a notebook and return it with its outputs; CellExecutionError if a cell fails."""
    book = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(book, timeout=SECONDS, kernel_name="python3")
        client.execute(cwd=folder)
    book.metadata = nbformat.from_dict({"kernelspec": KERNEL})
    for at, cell in enumerate(book.cells):
        cell.id = f"cell-{at}"
        cell.metadata = nbformat.from_dict({})
        if cell.cell_type == "code":
            cell.outputs = [one for one in cell.outputs if one.get("name") != "stderr"]
            for output in cell.outputs:
                output.pop("execution_count", None)
                if output.output_type == "execute_result":
                    output.execution_count = None
            cell.execution_count = None
    if found := MACHINE.search(nbformat.writes(book)):
        raise SystemExit(f"{path.name} holds a path of this machine: {found[0]}")
    return book


if __name__ == "__main__":
    main()
