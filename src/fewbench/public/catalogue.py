"""All sources by name."""

import re

import pandas as pd

from fewbench._names import did_you_mean
from fewbench.errors import PublicError
from fewbench.public.agents import AGENTS
from fewbench.public.logs import LOGS, repository
from fewbench.public.source import Source
from fewbench.public.tables import TABLES

HUB = "hub:"
SOURCES: dict[str, Source] = {source.name: source for source in (*AGENTS, *LOGS, *TABLES)}
NAMED = re.compile(r"[\w.-]+/[\w.-]+")


def find_source(name: str) -> Source:
    """Return a source by its name, or that of a dataset repository by hub:ORG/DATASET.

    Raises PublicError for other names.

    Examples
    --------
    >>> find_source("swe-bench").splits[0]
    'verified'
    """
    if name.startswith(HUB):
        if not NAMED.fullmatch(name.removeprefix(HUB)):
            raise PublicError(f"{name!r} is not a dataset repository", hint="as in hub:ORG/DATASET")
        return repository(name)
    if name not in SOURCES:
        hint = did_you_mean(name, SOURCES, "see fewbench get list, or pass hub:ORG/DATASET")
        raise PublicError(f"unknown source {name!r}", hint=hint)
    return SOURCES[name]


def public_sources() -> pd.DataFrame:
    """Return the sources of public per-item results, one row each, indexed by name.

    Numbers and sizes are approximate, as others last saw them. See `fewbench.get`.

    Examples
    --------
    >>> public_sources().loc["livebench", "license"]
    'not stated'
    """
    rows = [
        {
            "name": one.name,
            "title": one.title,
            "benchmarks": _listed(one.benchmarks),
            "splits": _listed(one.splits),
            "models": one.models,
            "items": one.items,
            "size": one.size,
            "license": one.license,
            "cite": one.cite,
            "url": one.url,
        }
        for one in SOURCES.values()
    ]
    return pd.DataFrame(rows).set_index("name")


def _listed(names: tuple[str, ...]) -> str:
    return "any" if names == ("*",) else ", ".join(names)
