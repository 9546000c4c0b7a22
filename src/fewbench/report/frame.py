"""The frame and style of all pages, and how to write them."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from fewbench._files import written_whole


class HasValues(Protocol):
    """An object with the values that its command prints with `--json`."""

    def to_dict(self) -> dict[str, Any]:
        """Return the values; those that are not known are None."""


def render_page(template: str, **parts: Any) -> str:
    """A page as text, from one of the templates beside this file."""
    environment = Environment(
        loader=FunctionLoader(_read),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = Markup(_read("style.css"))
    return environment.get_template(template).render(style=style, **parts) + "\n"


def write_page(page: str, path: str | os.PathLike[str]) -> Path:
    """Write a page; an existing file is replaced only once the new one is complete."""
    wanted = Path(path)
    with written_whole(wanted) as unfinished:
        unfinished.write_text(page, encoding="utf-8", newline="\n")
    return wanted


def _read(name: str) -> str:
    return resources.files("fewbench.report").joinpath(name).read_text("utf-8")
