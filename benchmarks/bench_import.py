"""Processor time to start fewbench and its small commands, against `import numpy`.

Each in an interpreter of its own, with modules compiled before as an installation has them; `ask`
and `tell` on runs with 447 source models × 1,650 items, and with 2,000 × 30,000. Then `plan` on the
first table, `start` on the second, and the collection of the tests, against limits in seconds. One
thread, and no result of an earlier run.
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from fewbench import Evaluation, save_scores
from fewbench.testing import simulate

ROOT = Path(__file__).parents[1]
SMALL_LIMIT = 0.35  # seconds for ask and tell
BARE = """import sys, typer
def estimate(folder: str, level: float = 0.9, target: str | None = None, scores: str | None = None,
    workers: int = 1, cluster: str | None = None, report: str | None = None, force: bool = False,
    as_json: bool = False): ...
sys.argv = ["estimate", "--help"]
typer.run(estimate)"""
STARTS = {
    "import fewbench": ["-c", "import fewbench"],
    "fewbench --version": ["-m", "fewbench", "--version"],
    "fewbench --help": ["-m", "fewbench", "--help"],
    "help of as many options by typer alone": ["-c", BARE],
    "fewbench estimate --help": ["-m", "fewbench", "estimate", "--help"],
    "fewbench gate --help, made from a function": ["-m", "fewbench", "gate", "--help"],
    "import pandas, the least of the commands below": ["-c", "import pandas, pyarrow.parquet"],
    "fewbench.Evaluation": ["-c", "import fewbench; fewbench.Evaluation"],
}


def seconds(arguments: list[str], compiled: Path, runs: int = 5) -> float:
    """The least processor time that a fresh interpreter takes; `compiled` keeps its modules."""
    environment = os.environ | {
        "PYTHONPYCACHEPREFIX": str(compiled),
        "XDG_CACHE_HOME": str(compiled.parent / "cache"),
        "OPENBLAS_NUM_THREADS": "1",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    spent = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spent)


def commands(folder: Path, n_models: int, n_items: int) -> dict[str, list[str]]:
    """Start a run and answer half of its items; return the commands that follow."""
    scores = simulate(n_models, n_items, seed=0)
    path = save_scores(scores, folder / f"{n_models}.parquet")
    run, answers = folder / f"run-{n_models}", folder / f"answers-{n_models}.csv"
    evaluation = Evaluation(scores, "random", 100, ["new"])
    evaluation.save(run, path)
    asked = evaluation.ask()["new"]
    answers.write_text("item,score\n" + "".join(f"{item},1\n" for item in asked[:50]))
    tell = ["tell", str(run), str(answers), "--item", "item", "--score", "score"]
    size = f"{n_models:,} × {n_items:,}"
    small = {f"tell, {size}": tell, f"ask, {size}": ["ask", str(run)]}
    return {name: ["-m", "fewbench", *words] for name, words in small.items()}


def long_commands(folder: Path) -> dict[str, tuple[list[str], float, int]]:
    """Return commands on the tables of `commands`, limits in seconds, and how often each runs."""
    plan = ["fewbench", "plan", str(folder / "447.parquet"), "--error", "0.03", "--workers", "1"]
    start = ["fewbench", "start", str(folder / "2000.parquet"), "--budget", "100", "-o"]
    collect = ["pytest", "--collect-only", "-p", "no:cacheprovider", "-c"]
    of = [str(ROOT / name) for name in ("pyproject.toml", "tests", "src")]
    return {
        "plan, 447 × 1,650": (["-m", *plan], 40, 1),
        "start, 2,000 × 30,000": (["-m", *start, str(folder / "started")], 12, 1),
        "collection of the tests": (["-m", *collect, *of], 6, 2),  # the first one compiles them
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        numpy = seconds(["-c", "import numpy"], folder / "compiled")
        print(f"import numpy: {numpy:.2f} s")
        later = commands(folder, 447, 1650) | commands(folder, 2000, 30_000)
        for what, arguments in (STARTS | later).items():
            own = seconds(arguments, folder / "compiled")
            text = f"{what}: {own:.2f} s, {own / numpy:.1f} of importing numpy"
            if what in later:
                text += f", {own / SMALL_LIMIT:.2f} of the limit of {SMALL_LIMIT:g} s"
            print(text, flush=True)
        for what, (arguments, limit, runs) in long_commands(folder).items():
            own = seconds(arguments, folder / "compiled", runs)
            print(f"{what}: {own:.1f} s, {own / limit:.2f} of the limit of {limit} s", flush=True)


if __name__ == "__main__":
    main()
