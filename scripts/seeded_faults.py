"""Seeded faults: break a package in one place after another, and see whether its tests notice.

python scripts/seeded_faults.py methods                       30 faults, tests in tests/methods
python scripts/seeded_faults.py executors --tests tests/cli   tests that are elsewhere
python scripts/seeded_faults.py study -n 10 --seed 3          10 other faults

Faults are made in a copy of the repository. Prints every fault: a survivor passed all tests.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = Path("src")
CORE = "fewbench"
LEFT_OUT = (".git", ".venv", "site", "*.egg-info", ".*_cache", "__pycache__", ".hypothesis")

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
PAIRS = ("min max", "minimum maximum", "argmin argmax", "nanmin nanmax", "any all", "floor ceil")
SWAPPED = {a: b for pair in PAIRS for a, b in (pair.split(), pair.split()[::-1])}
NO_EFFECT = (ast.Import, ast.ImportFrom, ast.JoinedStr)  # imports, and texts of messages


@dataclass(frozen=True)
class Fault:
    """A node of a file, and what stands in its place."""

    path: Path
    kind: str
    node: ast.expr | ast.stmt
    text: str

    def applied(self, source: str) -> str:
        """Return the file's text with the fault in it."""
        lines = source.encode().splitlines(keepends=True)
        start = sum(map(len, lines[: self.node.lineno - 1])) + self.node.col_offset
        end = sum(map(len, lines[: (self.node.end_lineno or 0) - 1]))
        end += self.node.end_col_offset or 0
        whole = b"".join(lines)
        return (whole[:start] + self.text.encode() + whole[end:]).decode()

    def __str__(self) -> str:
        before = " ".join(ast.unparse(self.node).split())
        after = " ".join(self.text.split())
        return f"{self.path}:{self.node.lineno}: {self.kind}: {before[:90]}  ->  {after[:90]}"


def code(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree that run; no annotations, decorators, docstrings or messages."""
    if isinstance(node, NO_EFFECT):
        return
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
        return
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    yield node
    if isinstance(node, ast.Raise):  # the error is a fault of its own, its text is none
        return
    for name, field in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in field if isinstance(field, list) else [field]:
            if isinstance(child, ast.AST):
                yield from code(child)


def changes(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the kinds of faults that can be made of a node, each with what then stands there."""
    match node:
        case ast.Compare(left, [operator], [right]) if type(operator) in OPERATORS:
            changed = OPERATORS[type(operator)]()
            yield "comparison", ast.unparse(ast.Compare(left, [changed], [right]))
            if isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                yield "comparison", f"not ({ast.unparse(node)})"
        case ast.BinOp(left, operator, right) if type(operator) in OPERATORS:
            yield "arithmetic", ast.unparse(ast.BinOp(left, OPERATORS[type(operator)](), right))
        case ast.UnaryOp(ast.USub() | ast.Not(), operand):
            yield "sign", ast.unparse(operand)
        case ast.BoolOp(operator, values):
            yield "and, or", ast.unparse(ast.BoolOp(OPERATORS[type(operator)](), values))
        case ast.IfExp(test, body, orelse):
            yield "condition", ast.unparse(ast.IfExp(test, orelse, body))
        case ast.Constant(bool() as value):
            yield "constant", str(not value)
        case ast.Constant(int() | float() as value):
            yield "constant", repr(value + 1 if isinstance(value, int) else value * 2 or 1.0)
        case ast.Name(id=name) if name in SWAPPED:
            yield "min, max", SWAPPED[name]
        case ast.Attribute(value, name) if name in SWAPPED:
            yield "min, max", ast.unparse(ast.Attribute(value, SWAPPED[name]))
        case ast.Raise() | ast.AugAssign() | ast.Expr(ast.Call()):
            yield "not raised" if isinstance(node, ast.Raise) else "left out", "pass"
    if isinstance(node, ast.Call):
        for keyword in (keyword for keyword in node.keywords if keyword.arg):
            rest = [other for other in node.keywords if other is not keyword]
            yield "argument left out", ast.unparse(ast.Call(node.func, node.args, rest))


def faults(path: Path) -> Iterator[Fault]:
    """Yield all faults of a file."""
    for node in code(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        for kind, text in changes(node):
            assert isinstance(node, ast.expr | ast.stmt)
            yield Fault(path, kind, node, text if isinstance(node, ast.stmt) else f"({text})")
        if isinstance(node, ast.If):
            yield Fault(path, "condition", node.test, f"(not ({ast.unparse(node.test)}))")


def drawn(package: str, number: int, seed: int) -> list[Fault]:
    """Return faults of a package, of every kind about as many."""
    places = (ROOT / SOURCE / CORE / package, ROOT / SOURCE / package)
    folder = next(place for place in places if place.exists())
    paths = sorted(path.relative_to(ROOT) for path in folder.rglob("*.py"))
    left: dict[str, list[Fault]] = {}
    for fault in (fault for path in paths for fault in faults(path)):
        left.setdefault(fault.kind, []).append(fault)
    order = random.Random(seed)
    chosen: list[Fault] = []
    while len(chosen) < number and left:
        kind = order.choice(sorted(left))
        chosen.append(left[kind].pop(order.randrange(len(left[kind]))))
        left = {kind: rest for kind, rest in left.items() if rest}
    return chosen


def run(copy: Path, tests: list[Path], module: str, limit: float | None) -> str:
    """Run tests in the copy until one fails, first those that name the module; say how it ended."""
    files = {file for path in tests for file in (copy / path).rglob("test_*.py")}
    files |= {copy / path for path in tests if path.suffix}
    first = sorted(files, key=lambda file: (module not in file.read_text(encoding="utf-8"), file))
    command = [sys.executable, "-m", "pytest", "-x", "-n", "0", "-m", "not slow", "--tb=no"]
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        ended = subprocess.run(
            [*command, *map(str, first)],
            cwd=copy,
            env=environment,
            timeout=limit,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    except subprocess.TimeoutExpired:
        return "hangs"
    failed = [row for row in ended.stdout.splitlines() if row.startswith(("FAILED", "ERROR"))]
    return (failed or ["stops"])[0].split(" - ")[0] if ended.returncode else "SURVIVES"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("package", help="folder or file below src/fewbench, or src/")
    parser.add_argument("-n", "--number", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", type=Path, nargs="*", help="default: tests/PACKAGE")
    parser.add_argument("--limit", type=float, help="seconds a fault, default: 3 clean runs")
    options = parser.parse_args()
    of_package = options.package.removeprefix("fewbench_")  # fewbench_papers/bento
    tests = options.tests or [Path("tests", of_package)]
    found: Counter[bool] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "fewbench")
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
        start = time.monotonic()
        if (clean := run(copy, tests, "", None)) != "SURVIVES":
            sys.exit(f"The tests fail before there is a fault: {clean}")
        limit = options.limit or 3 * (time.monotonic() - start) + 30
        for fault in drawn(options.package, options.number, options.seed):
            source = (copy / fault.path).read_text(encoding="utf-8")
            (copy / fault.path).write_text(fault.applied(source), encoding="utf-8")
            ending = run(copy, tests, fault.path.stem, limit)
            (copy / fault.path).write_text(source, encoding="utf-8")
            found[ending != "SURVIVES"] += 1
            print(f"{ending}\n    {fault}", flush=True)
    print(f"{options.package}: {found[True]} of {found.total()} faults noticed")


if __name__ == "__main__":
    main()
