"""Build the package, look into it, and try it in an empty environment.

python scripts/check_package.py [FOLDER]

Checks that wheel and sdist build; that they hold what the program needs, and no tests or test data;
that both install with wheels only into an empty environment; that the command and an estimate work
there; and that a type checker sees fewbench's types from outside. With FOLDER, wheel and sdist stay
there. Needs the extra `dev`, and a package index for the dependencies.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
NEEDED = (
    *("fewbench/py.typed", "fewbench/datasets/zoo.npz", "fewbench/show/style.css"),
    *("fewbench/show/frame.html.j2", "fewbench/cli/app.py", "fewbench_papers/py.typed"),
    *("fewbench_logs/py.typed", "fewbench_logs/sites/sources.csv"),
)
UNWANTED = ("/tests/", "/benchmarks/", "/fixtures/", "/.github/", "/.ci/", "__pycache__", ".pyc")
BIN = "Scripts" if os.name == "nt" else "bin"
SMALL = 5_000_000  # bytes; more is data that nobody meant to ship

ESTIMATE = """
import fewbench
from fewbench.datasets import load_zoo, train_newcomer

model = train_newcomer(seed=0)
scores = load_zoo().take(models=range(0, 280, 5))
result = fewbench.run(scores, "fewbench-static", 40, score=lambda item: model.answer([item])[0][0])
estimate = result.estimates["target"]
assert estimate.interval.low <= estimate.score <= estimate.interval.high, estimate
assert abs(estimate.score - model.full_score()) < 0.15, estimate
fewbench.write_report(fewbench.compare(scores, "greedy-ridge", 20, repeats=3), "report.html")
print(f"estimate {estimate.score:.3f}, full score {model.full_score():.3f}")
"""

CONSUMER = """
import fewbench

scores: fewbench.Scores = fewbench.load_scores("scores.parquet")
result = fewbench.run(scores, "fewbench", 50, score=lambda item: 1.0)
score: float = result.estimates["target"].score
wrong: int = fewbench.plan(scores, error=0.02)
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(name) / "dist"
        python("-m", "build", "-q", "--outdir", folder, ROOT)
        wheel, sdist = only(folder, "*.whl"), only(folder, "*.tar.gz")
        look_into(wheel, sdist)
        environment = Path(name) / "environment"
        venv.create(environment, with_pip=True)
        try_out(wheel, environment, "--only-binary=:all:")
        try_out(sdist, environment, "--no-deps", "--force-reinstall")
        print(run(environment / BIN / "python", "-c", ESTIMATE, cwd=environment).strip())
        check_types(Path(name))
    print("the package is fit to be released")


def only(folder: Path, pattern: str) -> Path:
    """Return the only file of a kind; the folder must hold no older one."""
    (found,) = folder.glob(pattern)
    return found


def look_into(wheel: Path, sdist: Path) -> None:
    """Check what the two archives hold."""
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = archive.namelist()
    with tarfile.open(sdist) as archive:
        in_sdist = archive.getnames()
    for path, names, base in ((wheel, in_wheel, ""), (sdist, in_sdist, "src/")):
        missing = [one for one in NEEDED if not any(name.endswith(base + one) for name in names)]
        unwanted = [name for name in names if any(part in f"/{name}" for part in UNWANTED)]
        size = path.stat().st_size
        assert not missing, f"{path.name} lacks {missing}"
        assert not unwanted, f"{path.name} holds {unwanted[:5]}"
        assert size < SMALL, f"{path.name} has {size:,} bytes"
        print(f"{path.name}: {len(names)} files, {size:,} bytes")
    sources = {path.relative_to(ROOT / "src") for path in (ROOT / "src").rglob("*.py")}
    lacking = {path.as_posix() for path in sources} - set(in_wheel)
    assert not lacking, f"{wheel.name} lacks {sorted(lacking)[:5]}"


def try_out(archive: Path, environment: Path, *options: str) -> None:
    """Install an archive and start its command."""
    pip = (environment / BIN / "python", "-m", "pip", "install", "-q")
    options = ("--disable-pip-version-check", "-c", str(ROOT / "constraints.txt"), *options)
    run(*pip, *options, archive, cwd=environment)
    said = run(environment / BIN / "fewbench", "--version", cwd=environment).strip()
    assert archive.name.startswith(said.replace(" ", "-")), f"{said}, not that of {archive.name}"
    listed = {"methods": "tailored", "get list": "swe-bench", "--help": "transfer"}
    for words, named in listed.items():  # of the packages beside the core: their entry points
        out = run(environment / BIN / "fewbench", *words.split(), cwd=environment)
        assert named in out, f"fewbench {words} does not name {named}"
    print(f"{archive.name}: installs and runs on Python {sys.version.split()[0]}")


def check_types(folder: Path) -> None:
    """Check a program that uses fewbench: its types are seen, and its one mistake is found."""
    program = folder / "consumer.py"
    program.write_text(CONSUMER)
    python_of = ("--python-executable", folder / "environment" / BIN / "python")
    words = [sys.executable, "-m", "mypy", "--strict", "--config-file=", *python_of, program]
    found = subprocess.run(list(map(str, words)), cwd=folder, capture_output=True, text=True)
    errors = [line for line in found.stdout.splitlines() if "error:" in line]
    line = CONSUMER.splitlines().index("wrong: int = fewbench.plan(scores, error=0.02)") + 1
    assert len(errors) == 1, found.stdout + found.stderr
    assert f"consumer.py:{line}" in errors[0], errors
    assert '"Plan"' in errors[0], errors
    print("a type checker sees fewbench's types")


def python(*words: object) -> str:
    return run(sys.executable, *words, cwd=ROOT)


def run(*words: object, cwd: Path) -> str:
    """Run a program and return what it prints; what it says on standard error if it fails."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    found = subprocess.run(
        list(map(str, words)), cwd=cwd, env=clean, capture_output=True, text=True
    )
    assert found.returncode == 0, f"{words}\n{found.stdout[-2000:]}\n{found.stderr[-4000:]}"
    return found.stdout


if __name__ == "__main__":
    main()
