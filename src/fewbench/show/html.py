"""A `Page` as one self-contained HTML file, with its charts, style and script."""

from __future__ import annotations

import gzip
import json
import os
import re
from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from fewbench._files import cache_folder, written_whole
from fewbench.errors import FewbenchError
from fewbench.show.charts.theme import DARK, LIGHT, page_config, page_spec, unchecked
from fewbench.show.page import Page, Section

BEGIN, END, SCRIPTS, CONTENTS = (
    "<!-- page begins -->", "<!-- page ends -->", "<!-- scripts -->", "<!-- contents -->",
)  # fmt: skip
HOLDER = '<script type="application/json" id="charts">'
_SECTION = re.compile(r'<section[^>]* id="([\w-]+)"[^>]*>.*?<h2>(.*?)</h2>', re.DOTALL)


def write_report(result: Any, path: str | os.PathLike[str], **shown: Any) -> Path:
    """Write a result as one self-contained HTML page and return its path.

    The same result always gives the same bytes. An existing file is replaced only once the new one
    is complete.

    Parameters
    ----------
    result : Evaluation, Estimate, Estimates, RunResult, Comparison, Plan, Audit, TaskAnalysis,
        Versus, Ranking, Gate, Track or Pack.
    path : str or os.PathLike
    **shown
        Arguments of the result's `page`, such as `level` of an `Evaluation`, or `evaluation` and
        `source` (a name of the scores) of estimates.

    Raises
    ------
    FewbenchError
        If there is no page for such a result.

    Examples
    --------
    >>> write_report([1, 2], "page.html")
    Traceback (most recent call last):
    ...
    fewbench.errors.FewbenchError: there is no page for a list ...
    """
    if hasattr(result, "page"):
        return write_page(render(result.page(**shown)), path)
    raise FewbenchError(
        f"there is no page for a {type(result).__name__}",
        hint="give an evaluation, an estimate, a comparison, a plan, an audit or another result",
    )


def render(page: Page, version: int | None = None, status: str = "") -> str:
    """Return the file as text; charts that cannot be made are left out.

    A live page has a version and a status, and asks for newer ones. The content security policy
    allows no request, or, of a live page, those to its own server.
    """
    charts = Charts()
    subjects, groups = [], dict[str, list[Section]]()
    for section in page.sections:
        groups.setdefault(section.id, []).append(section)
    for parts in groups.values():
        drawn = [
            charts.placed(*((caption, unchecked(make)) for caption, make in section.charts))
            for section in parts
        ]
        notes = dict.fromkeys(
            note for section in parts for note in (*section.legend, *section.notes)
        )
        subjects.append((parts, drawn, list(notes)))
    most = max((len(parts) for parts, *_ in subjects), default=0)
    live = version is not None
    environment = Environment(
        loader=FunctionLoader(_asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    text = environment.get_template("frame.html.j2").render(
        style=Markup(_palette() + _asset("style.css")),
        version=version,
        status=status,
        connect="'self'" if live else "'none'",
        page=page,
        subjects=subjects,
        most=most,
    )
    text = f"{text}\n".replace(CONTENTS, _contents(text), 1)
    return text.replace(SCRIPTS, _scripts(charts, always=live))


@dataclass(frozen=True)
class Placed:
    """A chart in a page: its id, what it tells in words, and its height in pixels.

    A chart with a param `only` is drawn once for each of the param's options.
    """

    id: str
    told: str
    height: int
    only: tuple[str, ...] = ()


class Charts:
    """The charts of a page, by id; they are written once, however often they are shown."""

    def __init__(self) -> None:
        self.specs: dict[str, dict[str, Any]] = {}

    def add(self, chart: Any | None) -> Placed | None:
        """Add an Altair chart; None stays None."""
        if chart is None:
            return None
        spec = _packed(page_spec(chart))
        name = f"c{len(self.specs)}"
        text = str(spec.get("description", ""))
        self.specs[name] = spec
        params = {param["name"]: param for param in spec.get("params", ())}
        only = params["only"]["bind"]["options"] if "only" in params else ()
        return Placed(name, text, int(spec.get("height", 200)), tuple(only))

    def placed(self, *made: tuple[str, Any | None]) -> list[tuple[str, Placed]]:
        """Add charts with captions, without those that could not be made."""
        added = [(caption, self.add(chart)) for caption, chart in made]
        return [(caption, chart) for caption, chart in added if chart is not None]

    def as_script(self) -> str:
        """Return configuration and charts; safe inside a script element."""
        script = json.dumps(
            {"config": page_config(), "specs": self.specs}, ensure_ascii=False,
            separators=(",", ":"),
        )  # fmt: skip
        # No text of the data may end the script element or begin a comment in it.
        return (
            script.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
        )


def _packed(value: Any) -> Any:
    """Tables of a chart as columns, with each word once: a third of the weight. page.js unpacks."""
    if isinstance(value, list):
        return [_packed(part) for part in value]
    if not isinstance(value, dict):
        return value
    packed = {
        key: _packed(part) for key, part in value.items() if key != "values" or not _is_table(part)
    }
    if _is_table(value.get("values")):
        packed["columns"] = [_column(value["values"], name) for name in value["values"][0]]
    return packed


def _is_table(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) > 20
        and all(isinstance(row, dict) and row.keys() == value[0].keys() for row in value)
    )


def _column(table: list[dict[str, Any]], name: str) -> dict[str, Any]:
    cells = [row[name] for row in table]
    if not all(isinstance(cell, str) for cell in cells):
        return {"name": name, "cells": cells}
    words = {word: at for at, word in enumerate(dict.fromkeys(cells))}
    return {"name": name, "words": list(words), "cells": [words[cell] for cell in cells]}


def body_of(page: str) -> str:
    """The part of a page that changes when its numbers do."""
    return page[page.index(BEGIN) + len(BEGIN) : page.index(END)]


def write_page(page: str, path: str | os.PathLike[str]) -> Path:
    """Write a page; an existing file is replaced only once the new one is complete."""
    wanted = Path(path)
    with written_whole(wanted) as unfinished:
        unfinished.write_text(page, encoding="utf-8", newline="\n")
    return wanted


def _contents(page: str) -> str:
    """Links to the sections of a page; without any, nothing."""
    links = "".join(f'<li><a href="#{at}">{title}</a></li>' for at, title in _SECTION.findall(page))
    return f'<nav class="contents" aria-label="Contents"><ul>{links}</ul></nav>' if links else ""


def charts_of(page: str) -> str:
    """The charts of a page as JSON."""
    start = page.index(HOLDER) + len(HOLDER)
    return page[start : page.index("</script>", start)]


def _scripts(charts: Charts, *, always: bool) -> str:
    """The data of the charts and the scripts; the bundle where there are charts, or will be."""
    parts = [f"{HOLDER}{charts.as_script()}</script>"]
    if charts.specs or always:
        parts.append(f'<script type="text/plain" id="bundle">{_bundle()}</script>')
    return "\n".join([*parts, f"<script>{_asset('page.js')}</script>"])


@lru_cache(maxsize=1)
def _bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed, which need no network: compressed, a third of the weight."""
    import vl_convert

    kept = cache_folder() / f"charts-{version('vl-convert-python')}.txt"
    with suppress(OSError, UnicodeDecodeError):
        return kept.read_text("ascii")
    bundle = str(vl_convert.javascript_bundle())  # type: ignore[call-arg]
    packed = b64encode(gzip.compress(bundle.encode(), mtime=0)).decode()
    with suppress(OSError), written_whole(kept) as temporary:  # a second of work for the next page
        temporary.write_text(packed, "ascii")
    return packed


def _palette() -> str:
    """The colors as CSS variables, light, dark, and for print."""

    def block(colors: dict[str, str]) -> str:
        return ":root{" + "".join(f"--{name}:{color};" for name, color in colors.items()) + "}\n"

    dark = "@media screen and (prefers-color-scheme:dark){" + block(DARK) + "}\n"
    classes = "".join(f".{name}{{--c:var(--{name})}}" for name in LIGHT if name[0] in "mr")
    return block(LIGHT) + dark + classes + "\n"


def _asset(name: str) -> str:
    return resources.files("fewbench.show").joinpath(name).read_text("utf-8")
