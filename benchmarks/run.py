"""All speed benchmarks: ratios against a peer or a limit, taken in one run."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
FULL = {"bench_disagreement.py", "bench_readers.py", "bench_tailored.py"}
QUICK = {
    "bench_kmedoids.py": ["--quick"],
    "bench_collaborative.py": ["--quick"],
    "bench_plan.py": ["--quick"],
    "bench_models.py": ["--quick"],
    "bench_large.py": ["--models", "1250", "--items", "7500", "--options"],
}


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:  # results of an earlier run never answer
        run_all(os.environ | {"XDG_CACHE_HOME": cache})


def run_all(environment: dict[str, str]) -> None:
    for script in sorted(HERE.glob("bench_*.py")):
        print(f"== {script.name}", flush=True)
        arguments = [] if "--full" in sys.argv else QUICK.get(script.name, [])
        if "--full" in sys.argv and script.name in FULL:
            arguments = ["--full"]
        started = time.perf_counter()
        subprocess.run([sys.executable, str(script), *arguments], check=True, env=environment)
        print(f"-- {script.name}: {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
