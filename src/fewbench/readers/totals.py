"""Files that a harness writes beside its per-item results, and that hold none: totals only."""

import re
from collections.abc import Sequence
from pathlib import Path

from fewbench._content import is_lfs_pointer
from fewbench._names import counted, some
from fewbench.readers.files import head

RESULTS = {".json", ".jsonl", ".ndjson", ".parquet", ".npz", ".csv", ".tsv", ".eval", ".xlsx"}
LM_EVAL = re.compile(rb'^\s*\{\s*"results":\s*\{')
LIGHTEVAL = re.compile(rb'^\s*\{\s*"config_general":\s*\{')
HELM_TOTALS = {"stats.json", "run_spec.json"}
HINTS = {
    "lm-eval": "run lm-eval again with --log_samples --output_path FOLDER, and import that folder",
    "lighteval": "run lighteval again with --save-details, and import its folder of details",
    "helm": "copy per_instance_stats.json of each run too: helm-run writes it in the same folder",
    "opencompass": "import the folder that holds predictions and results, and not the summary only",
}


def is_result_pointer(path: Path) -> bool:
    """Whether a file that may hold results is a pointer of Git LFS."""
    return path.suffix.lower() in RESULTS and is_lfs_pointer(path)


def totals_only(files: Sequence[Path]) -> tuple[str, str] | None:
    """Return which of the files, that no reader takes, hold totals without items, and a hint."""
    found: dict[str, list[Path]] = {}
    for path in files:
        if (harness := _harness_of(path)) is not None:
            found.setdefault(harness, []).append(path)
    if not found:
        return None
    harness, paths = max(found.items(), key=lambda pair: len(pair[1]))
    holds = "holds totals" if len(paths) == 1 else "hold totals"
    return (
        f"{counted(len(paths), 'file')} of {harness} {holds} without the answers to single items: "
        f"{some(paths)}",
        HINTS[harness],
    )


def _harness_of(path: Path) -> str | None:
    name = path.name
    if path.suffix == ".json" and "results" in name:
        start = head(path)
        if LM_EVAL.match(start):
            return "lm-eval"
        return "lighteval" if LIGHTEVAL.match(start) else None
    if name in HELM_TOTALS and not path.with_name("per_instance_stats.json").exists():
        return "helm"
    if name.startswith("summary_") and path.parent.name == "summary":
        return "opencompass"
    return None
