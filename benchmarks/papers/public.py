"""Tables that the papers used and `fewbench get` fetches, and how each is asked for.

The papers do not name all their models, so samples of a leaderboard have as many models as the
paper, not the same ones.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from fewbench.errors import FewbenchError
from fewbench.public import find_public_files

V1 = "open-llm-leaderboard-v1"
PUBLIC: dict[str, dict[str, Any]] = {
    "gsm8k_150": {"name": "tailoredbench"},
    "mmlu": {"name": V1, "benchmark": "mmlu", "models": 424},
    "hellaswag": {"name": V1, "benchmark": "hellaswag", "models": 424},
    "winogrande": {"name": V1, "benchmark": "winogrande", "models": 424},
    "arc": {"name": V1, "benchmark": "arc", "models": 424},
    "helm_math": {"name": "helm", "benchmark": "lite", "split": "math"},
}
"""File of a table, without its ending, to what `get` is asked."""


def place(folder: Path, file: str) -> Path:
    """Return the path of a table: as named, else as `fetch` saves it."""
    path = folder / file
    return path if path.exists() or Path(file).stem not in PUBLIC else path.with_suffix(".parquet")


def fetch(
    files: Iterable[str], folder: Path, workers: int, *, dry_run: bool = False
) -> Iterator[str]:
    """Fetch the tables that are not in the folder, or list them; yield a line for each.

    A table that cannot be fetched does not keep the others from being fetched.
    """
    for file in files:
        path = place(folder, file)
        if path.exists():
            continue
        asked = PUBLIC.get(Path(file).stem)
        if asked is None:
            yield f"{file}: no public source has it; put it into {folder}"
            continue
        try:
            listed = find_public_files(**asked)
            yield f"{file}: {listed!r}"
            if not dry_run:
                folder.mkdir(parents=True, exist_ok=True)
                listed.fetch()
                listed.read(workers).save(path)
        except FewbenchError as error:
            yield f"{file}: not fetched: {error}"
