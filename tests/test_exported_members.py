"""What is public exists, is listed once, in order, and is documented."""

import doctest
import importlib
import inspect
import pkgutil
import re

import pytest

import fewbench


def public_modules():
    for found in pkgutil.walk_packages(fewbench.__path__, "fewbench."):
        if not any(part.startswith("_") for part in found.name.split(".")):
            yield found.name


def kind_and_name(name):
    """Constants, then classes, then functions, as ruff sorts them."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def faults(name):
    module = importlib.import_module(name)
    exported = getattr(module, "__all__", [])
    if not module.__doc__:
        yield f"{name} has no docstring"
    if len(set(exported)) < len(exported):
        yield f"__all__ of {name} names a member twice"
    if exported != sorted(exported, key=kind_and_name):
        yield f"__all__ of {name} is not in order"
    for member in exported:
        if not hasattr(module, member):
            yield f"{name} exports {member}, which is not there"


def test_every_exported_name_exists_and_the_list_is_sorted():
    rooms = ["fewbench", *public_modules()]
    assert len(rooms) > 1
    assert not [fault for name in rooms for fault in faults(name)]


@pytest.mark.parametrize("name", ["fewbench", "fewbench.methods", "fewbench.scores"])
def test_what_a_room_imports_is_exported(name):
    module = importlib.import_module(name)
    own = {
        member
        for member, value in vars(module).items()
        if not member.startswith("_") and getattr(value, "__module__", "").startswith("fewbench")
    }
    assert own <= set(module.__all__)


def test_the_version_is_that_of_the_project():
    from importlib.metadata import PackageNotFoundError, version

    try:
        assert version("fewbench") == fewbench.__version__
    except PackageNotFoundError:
        pytest.skip("fewbench is not installed")


def test_examples_can_be_pasted_alone():
    imports = {"pd.": "import pandas as pd", "np.": "import numpy as np"}
    imports["Path("] = "from pathlib import Path"
    for name in fewbench.__all__:
        text = inspect.getdoc(getattr(fewbench, name)) or ""
        source = "".join(example.source for example in doctest.DocTestParser().get_examples(text))
        for use, line in imports.items():
            assert not re.search(rf"(?<![\w.]){re.escape(use)}", source) or line in source, name
