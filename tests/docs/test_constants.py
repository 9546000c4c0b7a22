"""The table of constants in the docs has every number of the statistics, with its value."""

import ast
import importlib
import re
from pathlib import Path

import fewbench

PACKAGE = Path(fewbench.__file__).parent
PAGE = PACKAGE.parents[1] / "docs" / "constants.md"
PACKAGES = ("uncertainty", "decide", "algorithms/kriging")


def numbers(value):
    parts = value if isinstance(value, tuple) else (value,)
    return all(
        numbers(part)
        if isinstance(part, tuple)
        else isinstance(part, int | float) and not isinstance(part, bool)
        for part in parts
    )


def defined():
    """The constants that are numbers, by file and name."""
    found = {}
    for path in sorted(path for package in PACKAGES for path in (PACKAGE / package).glob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        module = importlib.import_module(f"fewbench.{name.removesuffix('.py').replace('/', '.')}")
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            for target in ast.walk(ast.Tuple(targets)) if targets else ():
                is_name = isinstance(target, ast.Name) and re.fullmatch("[A-Z][A-Z_]+", target.id)
                if is_name and numbers(value := getattr(module, target.id)):
                    found[name, target.id] = value
    return found


def listed():
    """The constants of the page, by file and name, with their values where it has these."""
    text = PAGE.read_text(encoding="utf-8")
    found = {}
    for section in text.split("\n## ")[1:]:
        package = re.search(r"`(.*)`", section.splitlines()[0])
        for row in re.findall(r"^\| `([^|]*)` \| (.*) \|$", section, re.MULTILINE):
            if package is None:
                found |= {(row[0], name): None for name in re.findall("`([A-Z_]+)`", row[1])}
            else:
                file, name = row[0].split(": ")
                value = re.match("`([^`]*)`", row[1])[1]
                found[f"{package[1]}/{file}", name] = eval(value, {"__builtins__": {}})
    return found


def test_the_page_has_every_constant_with_its_value():
    there, found = defined(), listed()
    assert found.keys() == there.keys()
    differ = {key: there[key] for key, value in found.items() if value not in (None, there[key])}
    assert not differ
