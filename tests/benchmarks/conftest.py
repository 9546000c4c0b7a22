"""The benchmarks are imported from their folder; beside an installed package there are none."""

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
collect_ignore_glob = [] if (BENCHMARKS / "papers").is_dir() else ["*"]
sys.path.append(str(BENCHMARKS))
