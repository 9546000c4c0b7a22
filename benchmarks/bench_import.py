"""Time to import fewbench beyond numpy and pandas, against the limit of half a second."""

import subprocess
import sys

LIMIT = 0.5
CODE = """
import time, numpy, pandas
started = time.perf_counter()
import fewbench
print(time.perf_counter() - started)
"""


def main() -> None:
    runs = [
        float(subprocess.run([sys.executable, "-c", CODE], capture_output=True, check=True).stdout)
        for _ in range(5)
    ]
    best = min(runs)
    print(f"import fewbench beyond numpy and pandas: {best:.2f} s, {best / LIMIT:.2f} of the limit")


if __name__ == "__main__":
    main()
