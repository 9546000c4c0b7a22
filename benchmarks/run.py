"""All speed benchmarks: ratios against a peer or a limit, taken in one run."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
FULL = {"bench_disagreement.py", "bench_readers.py", "bench_tailored.py"}
QUICK = {
    "bench_kmedoids.py": ["--quick"],
    "bench_collaborative.py": ["--quick"],
    "bench_large.py": ["--models", "1250", "--items", "7500", "--options"],
}


def main() -> None:
    for script in sorted(HERE.glob("bench_*.py")):
        print(f"== {script.name}", flush=True)
        arguments = [] if "--full" in sys.argv else QUICK.get(script.name, [])
        if "--full" in sys.argv and script.name in FULL:
            arguments = ["--full"]
        subprocess.run([sys.executable, str(script), *arguments], check=True)


if __name__ == "__main__":
    main()
