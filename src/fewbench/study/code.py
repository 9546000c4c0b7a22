"""Which of fewbench's code a result depends on: what its method's modules import, and so on.

The modules are found from their import statements, also those inside functions. A name that a
package only passes on leads to the module that defines it. So a new method, another command or
another page changes nothing for the results that are there.
"""

import ast
import hashlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fewbench.evaluation.auto import Auto
from fewbench.methods.base import Method

ROOT = Path(__file__).parents[1]
BASE = ("fewbench.study.cell",)
REGISTRIES = frozenset({"fewbench.methods.catalogue", "fewbench.methods.parts"})
"""Modules that import every method to find one by its name."""
CHOICE = "fewbench.evaluation.auto"
INTERVALS = {f"fewbench.evaluation.{name}" for name in ("contrast", "errors", "intervals")}
WHERE = {f"fewbench.executors{name}" for name in ("", ".calls", ".local")}
IGNORED = frozenset({"fewbench._version", "fewbench.study.code", *WHERE})
"""Modules on which no number depends."""
DISTRIBUTIONS = {"sklearn": "scikit-learn", "ot": "POT", "umap": "umap-learn"}


def code_of(method: Method, *, intervals: bool) -> str:
    """Return a hash of the code and the versions of libraries that a method's results rest on."""
    return _hash(*_ends(method, intervals))


def modules_of(method: Method, *, intervals: bool) -> frozenset[str]:
    """Return the modules of fewbench that a method's results, or also its intervals, rest on.

    Examples
    --------
    >>> from fewbench.methods import find_method
    >>> found = modules_of(find_method("random-ridge"), intervals=False)
    >>> "fewbench.methods.prediction.regression" in found, "fewbench.report.page" in found
    (True, False)
    """
    return frozenset(_closure(*_ends(method, intervals)))


def _ends(method: Method, intervals: bool) -> tuple[frozenset[str], frozenset[str]]:
    """Return the modules to begin with and those not to enter."""
    begin = {*BASE, *_modules_in(method)}
    closed = set(IGNORED)
    if not isinstance(method, Auto):  # which depends on what the catalogue holds
        closed |= {*REGISTRIES, CHOICE}
    if not intervals:
        closed |= INTERVALS
    return frozenset(begin), frozenset(closed)


def _modules_in(part: Any) -> Iterator[str]:
    """Yield the modules of a method's class, its bases and its parts."""
    for one in type(part).__mro__:
        if one.__module__.partition(".")[0] == "fewbench":
            yield one.__module__
    if is_dataclass(part):
        for field in fields(part):
            yield from _modules_in(getattr(part, field.name))


@cache
def _hash(begin: frozenset[str], closed: frozenset[str]) -> str:
    digest = hashlib.sha256()
    libraries = set[str]()
    for name, found in sorted(_closure(begin, closed).items()):
        digest.update(f"{name} {_digest(name)}\n".encode())
        libraries |= found
    for library in sorted(libraries):
        digest.update(f"{library} {_version(library)}\n".encode())
    return digest.hexdigest()


def _closure(begin: Iterable[str], closed: frozenset[str]) -> dict[str, frozenset[str]]:
    """Return the modules that are reached, each with the libraries that it imports."""
    found: dict[str, frozenset[str]] = {}
    waiting = [one for one in begin if one not in closed]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        imported, libraries = _imports(name)
        found[name] = libraries
        waiting += [one for one in imported if one not in closed]
    return found


@cache
def _imports(name: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the modules of fewbench, and the libraries, that a module imports."""
    modules, libraries = set[str](), set[str]()
    for node in _without_type_checking(_tree(name)):
        if isinstance(node, ast.Import):
            found = {alias.name: [("", alias.name)] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found = {node.module: [(alias.name, node.module) for alias in node.names]}
        else:
            continue
        for module, names in found.items():
            top = module.partition(".")[0]
            if top == "fewbench":
                modules |= {_defined_in(package, member) for member, package in names}
            elif top not in sys.stdlib_module_names:
                libraries.add(top)
    return frozenset(modules), frozenset(libraries)


def _without_type_checking(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        yield from _without_type_checking(node)


def _defined_in(module: str, name: str) -> str:
    """Return the module that defines a name which another passes on."""
    if name and source_of(f"{module}.{name}") is not None:
        return f"{module}.{name}"
    passed_on = _passed_on(module)
    return _defined_in(passed_on[name], name) if name in passed_on else module


@cache
def _passed_on(module: str) -> dict[str, str]:
    """Return where a module has its names from, if fewbench defines them elsewhere."""
    return {
        alias.asname or alias.name: node.module
        for node in ast.walk(_tree(module))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fewbench.")
        for alias in node.names
        if node.module and alias.asname in (None, alias.name)
    }


def _tree(name: str) -> ast.Module:
    source = source_of(name)
    assert source is not None, name
    try:
        return ast.parse(source)
    except SystemError:  # Python 3.11 miscounts its depth if another thread parses meanwhile
        return ast.parse(source)


@cache
def source_of(name: str) -> bytes | None:
    """Return the source of a module of fewbench; None if there is no such module."""
    path = ROOT.joinpath(*name.split(".")[1:])
    for file in (path / "__init__.py", path.with_suffix(".py")):
        if file.is_file():
            return file.read_bytes()
    # A module from another folder, as one that is tried before it is added.
    place = getattr(sys.modules.get(name), "__file__", None)
    return Path(place).read_bytes() if place and Path(place).is_file() else None


@cache
def _digest(name: str) -> str:
    """Return a hash of a module's code, for which comments and docstrings do not count."""
    tree = _tree(name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _version(library: str) -> str:
    try:
        return version(DISTRIBUTIONS.get(library, library))
    except PackageNotFoundError:
        return "absent"
