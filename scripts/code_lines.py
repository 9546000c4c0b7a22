"""Code lines of each package, without docstrings, blanks and comments.

python scripts/code_lines.py [REVISION]   prints them, and what changed since a revision
python scripts/code_lines.py --lower      lowers the numbers of scripts/code_lines.txt to them

tests/test_architecture.py compares them with scripts/code_lines.txt.
"""

import argparse
import ast
import io
import subprocess
import tarfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePath

ROOT = Path(__file__).parents[1]
SOURCE = PurePath("src")
CORE, PAPERS, LOGS = "fewbench", "fewbench_papers", "fewbench_logs"
LIMITS = Path(__file__).with_suffix(".txt")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(text: str) -> int:
    """Return how many lines of a file are code.

    >>> code_lines('"A docstring."\\n\\n# A comment.\\nx = 1  # code\\n')
    1
    """
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            first = node.body[0]
            docstrings |= set(range(first.lineno, (first.end_lineno or 0) + 1))
    lines = enumerate(map(str.strip, text.split("\n")), 1)
    return sum(bool(line) and line[0] != "#" and n not in docstrings for n, line in lines)


def by_package(files: Iterable[tuple[PurePath, str]]) -> Counter[str]:
    """Return the code lines of each package, and of the modules beside them.

    A folder of the packages beside the core is named with its package: `fewbench_papers/bento`.
    """
    lines: Counter[str] = Counter()
    for path, text in files:
        package, folder, *module = path.relative_to(SOURCE).parts
        folder = folder if module else "top level"
        lines[folder if package == CORE else f"{package}/{folder}"] += code_lines(text)
    return lines


def totals(lines: Counter[str]) -> dict[str, int]:
    """Return the code lines of the core, and of all packages."""
    core = sum(n for name, n in lines.items() if "/" not in name)
    return {"core": core, "all": lines.total()}


def now() -> Counter[str]:
    """Return the code lines of the working tree."""
    paths = (ROOT / SOURCE).rglob("*.py")
    return by_package((path.relative_to(ROOT), path.read_text(encoding="utf-8")) for path in paths)


def at(revision: str) -> Counter[str]:
    """Return the code lines of a revision."""
    command = ["git", "archive", revision, str(SOURCE)]
    packed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        sources = [one for one in files if one.name.endswith(".py")]
        texts = [files.extractfile(one).read().decode() for one in sources]  # type: ignore[union-attr]
    return by_package((PurePath(one.name), text) for one, text in zip(sources, texts, strict=True))


def limits() -> dict[str, int]:
    """Return the most code lines that each package may have."""
    rows = LIMITS.read_text(encoding="utf-8").splitlines()
    cells = (row.partition(":") for row in rows if row and not row.startswith("#"))
    return {package: int(rest.split("#")[0]) for package, _, rest in cells}


def lower() -> None:
    """Write each package's number where it is lower than its limit."""
    rows, lines = [], Counter(now() | Counter(totals(now())))
    for row in LIMITS.read_text(encoding="utf-8").splitlines():
        package, colon, rest = row.partition(":")
        if colon and not row.startswith("#") and lines[package] < int(rest.split("#")[0]):
            row = f"{package}: {lines[package]}" if lines[package] else ""
        rows.append(row)
    LIMITS.write_text("\n".join(rows) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision", nargs="?")
    parser.add_argument("--lower", action="store_true")
    options = parser.parse_args()
    if options.lower:
        lower()
    lines = now()
    before = at(options.revision) if options.revision else lines
    for package, count in [*lines.most_common(), *totals(lines).items()]:
        change = count - {**before, **totals(before)}.get(package, 0)
        print(f"{package:32}{count:7}" + (f"{change:+7}" if options.revision else ""))


if __name__ == "__main__":
    main()
