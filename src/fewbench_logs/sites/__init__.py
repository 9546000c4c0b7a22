"""Public tables of single sites: a row of sources.csv, where the files are, how they are read."""

import csv
from importlib.resources import files

from fewbench.public.catalogue import COLUMNS
from fewbench.public.routes import Route
from fewbench.public.source import Source
from fewbench_logs.sites.agents import WAYS as AGENTS
from fewbench_logs.sites.logs import WAYS as LOGS
from fewbench_logs.sites.papers import WAYS as PAPERS
from fewbench_logs.sites.tables import WAYS as TABLES


def read_routes() -> dict[str, tuple[Route, ...]]:
    """Return the routes of each source."""
    lines = files("fewbench_logs.sites").joinpath("routes.csv").read_text(encoding="utf-8")
    routes: dict[str, tuple[Route, ...]] = {}
    for row in csv.DictReader(lines.splitlines()):
        source, size = row.pop("source"), int(row.pop("size") or 0)
        routes[source] = (*routes.get(source, ()), Route(**row, size=size))
    return routes


def _sources() -> dict[str, Source]:
    lines = files("fewbench_logs.sites").joinpath("sources.csv").read_text(encoding="utf-8")
    sources, ways, routes = {}, AGENTS | LOGS | PAPERS | TABLES, read_routes()
    for row in csv.DictReader(lines.splitlines()):
        find, read = ways[row["name"]]
        sources[row["name"]] = Source(
            **{key: row[key] for key in COLUMNS},
            find=find,
            read=read,
            benchmarks=tuple(row["benchmarks"].split()),
            splits=tuple(row["splits"].split()),
            default=row["default"] or None,
            has_revisions=row["has_revisions"] == "yes",
            tried_at=row["tried_at"],
            routes=routes.get(row["name"], ()),
        )
    return sources


SOURCES: dict[str, Source] = _sources()
