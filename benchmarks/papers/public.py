"""Tables of the papers: which `fewbench get` fetches, and which are built from authors' files.

TailoredBench names its models (Tables 14 to 17). DISCO's program lists candidates: every fifth
model of a list of the leaderboard with more than 30% on MMLU, and newer ones; it does not say which
were used. Two-stage collaborative filtering names none. Both samples of a leaderboard here have as
many models as the paper, not the same ones.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fewbench.errors import FewbenchError, first_line
from fewbench.public import find_public_files
from fewbench.public.fetching import TIMEOUT
from fewbench.public.hosts import HOSTS
from papers import bento_files, pickled_files
from papers.authors import AuthorsFiles

V1 = "open-llm-leaderboard-v1"
TAILORED = "tailoredbench"
NAMES = Path(__file__).parent / "models"


def _named(benchmark: str) -> list[str]:
    """Return the models that TailoredBench names for a benchmark."""
    return (NAMES / f"{benchmark}.txt").read_text(encoding="utf-8").splitlines()


PUBLIC: dict[str, dict[str, Any]] = {
    "gsm8k_150": {"name": TAILORED},
    "tailored_arc": {"name": TAILORED, "benchmark": "arc_challenge"},
    "tailored_hellaswag": {"name": TAILORED, "benchmark": "hellaswag"},
    "tailored_winogrande": {
        "name": V1,
        "benchmark": "winogrande",
        "models": _named("winogrande"),
    },
    "mmlu": {"name": V1, "benchmark": "mmlu", "models": 424},
    "hellaswag": {"name": V1, "benchmark": "hellaswag", "models": 424},
    "winogrande": {"name": V1, "benchmark": "winogrande", "models": 424},
    "arc": {"name": V1, "benchmark": "arc", "models": 424},
    "helm_math": {"name": "helm", "benchmark": "lite", "split": "math"},
    "mmlu_pro_32": {"name": "mmlu-pro"},
}
"""File of a table, without its ending, to the arguments of `get`."""

BUILT = bento_files.BUILT | pickled_files.BUILT
"""Files that are built from files of their authors."""


OWN = {
    "tailored_pope.parquet": (
        f"no source has scores by item. Answers of {len(_named('pope'))} models, in "
        "papers/models/pope.txt, are at huggingface.co/datasets/VLMEval/OpenVLMRecords "
        "(mmeval/MODEL/MODEL_POPE.xlsx); score them with VLMEvalKit (vlmutil eval POPE FILE), and "
        "read the folder: fewbench import FOLDER -o tailored_pope.parquet"
    )
}
"""Files that one makes oneself, and how."""


def place(folder: Path, file: str) -> Path:
    """Return the path of a table: as named, else as `fetch` saves it."""
    path = folder / file
    return path if path.exists() or Path(file).stem not in PUBLIC else path.with_suffix(".parquet")


def site_of(file: str) -> str:
    """Return the address of the site that has a file."""
    name = PUBLIC.get(Path(file).stem, {}).get("name")
    if name == V1:
        return os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    return HOSTS["gcs" if name == "helm" else "github-api"]


@dataclass
class Tables:
    """Tables in a folder, and why others are not there.

    - `reasons`: Why a file is not there, and how to get it, by file.
    """

    folder: Path
    workers: int = 1
    reasons: dict[str, str] = field(default_factory=dict)
    _unreachable: dict[str, str] = field(default_factory=dict)

    def fetch(self, files: Iterable[str], *, dry_run: bool = False) -> Iterator[str]:
        """Fetch the tables that are not in the folder, or list them; yield a line for each.

        A table that cannot be fetched does not keep the others from being fetched, and a site that
        does not answer is not tried again.
        """
        for file in files:
            if place(self.folder, file).exists():
                continue
            if file in OWN:
                self.reasons[file] = OWN[file]
                continue
            if silent := self._silent(site_of(file)):
                self.reasons[file] = silent
                continue
            try:
                if file in BUILT:
                    listed = AuthorsFiles(BUILT[file])
                    yield f"{file}: {listed!r}"
                    if not dry_run:
                        listed.build(self.folder / file)
                    continue
                found = find_public_files(**PUBLIC[Path(file).stem])
                yield f"{file}: {found!r}"
                if not dry_run:
                    self.folder.mkdir(parents=True, exist_ok=True)
                    results = found.fetch().read(self.workers)
                    results.save(place(self.folder, file))
                    for note in results.notes:
                        yield f"{file}: {note}"
            except FewbenchError as error:
                self.reasons[file] = f"not fetched: {error}"

    def _silent(self, site: str) -> str | None:
        """Return why a site does not answer; it is tried once."""
        import requests

        if site not in self._unreachable:
            self._unreachable[site] = ""
            try:
                requests.head(site, timeout=TIMEOUT)
            except requests.ConnectionError as error:
                cause = getattr(error.args[0] if error.args else "", "reason", None)
                if cause is not None:  # it did not even open a connection
                    why = first_line(cause).rpartition(": ")[2]
                    self._unreachable[site] = (
                        f"{site} cannot be reached ({why}); check the network and run the command "
                        "again"
                    )
        return self._unreachable[site] or None
