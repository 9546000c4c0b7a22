"""Processor time to start fewbench, against `import numpy` in a bare interpreter."""

import resource
import subprocess
import sys

STARTS = {
    "import fewbench": ["-c", "import fewbench"],
    "fewbench --version": ["-m", "fewbench", "--version"],
    "fewbench --help": ["-m", "fewbench", "--help"],
    "fewbench.Evaluation": ["-c", "import fewbench; fewbench.Evaluation"],
}


def seconds(arguments: list[str], runs: int = 5) -> float:
    """The least processor time that a fresh interpreter takes."""
    spent = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spent)


def main() -> None:
    numpy = seconds(["-c", "import numpy"])
    print(f"import numpy: {numpy:.2f} s")
    for name, arguments in STARTS.items():
        own = seconds(arguments)
        print(f"{name}: {own:.2f} s, {own / numpy:.1f} of importing numpy")


if __name__ == "__main__":
    main()
