"""Fetch a little from every real source of public results, and say what came.

    python scripts/check_public.py [NAME …] [--models 3]

Run by hand, as tests use no network. Gated sources need `hf auth login` and their terms accepted.
Files go to a temporary folder. Exit code 1 if any source fails.
"""

import argparse
import sys
import tempfile
import time
from datetime import UTC, datetime

import fewbench
from fewbench.errors import FewbenchError
from fewbench.public import SOURCES

# What to ask of sources that need a benchmark, chosen to be small.
ASKED = {
    "helm": {"benchmark": "lite", "split": "gsm"},
    "open-llm-leaderboard-v1": {"benchmark": "winogrande"},
    "open-llm-leaderboard-v2": {"benchmark": "ifeval"},
    "openeval": {"benchmark": "ifeval"},
    "measurement-db": {"benchmark": "ai2d_test"},
    "every-eval-ever": {"benchmark": "terminal-bench-2.0"},
    "metabench": {"benchmark": "gsm8k"},
}


def main() -> int:
    """Try the named sources, all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(SOURCES))
    parser.add_argument("--models", type=int, default=3)
    given = parser.parse_args()
    failed = 0
    print(f"fewbench {fewbench.__version__}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
    for name in given.names:
        started = time.monotonic()
        asked = {**ASKED.get(name, {}), "models": given.models}
        try:
            with tempfile.TemporaryDirectory() as folder:
                results = fewbench.get(name, cache=folder, **asked)
                size = sum(one.stat().st_size for one in results.files.folder.rglob("*.*"))
            shape = f"{results.scores.n_models} models × {results.scores.n_items} items"
            said = f"{shape}, {size / 1e6:.1f} MB, commit {results.files.commit[:12]}"
            attributes = ", ".join(results.scores.models.columns)
            said += f", attributes: {attributes or 'none'}"
            notes = [f"  note: {note}" for note in results.notes]
        except FewbenchError as error:
            said, notes, failed = f"FAILED: {error}", [], failed + 1
        print("\n".join([f"{name} ({time.monotonic() - started:.0f} s): {said}", *notes]))
    print(f"{len(given.names) - failed} of {len(given.names)} sources work")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
