"""All sources by name: those that packages add, and dataset repositories."""

import re
from collections.abc import Iterable, Iterator

from fewbench._lazy import pandas as pd
from fewbench._names import did_you_mean
from fewbench._plugins import Added, Registry, added
from fewbench._text import quoted
from fewbench.errors import PublicError
from fewbench.public.repository import repository
from fewbench.public.source import HUB, Source
from fewbench.scores.groups import harness_tasks
from fewbench.scores.table import ROUTE

NAMED = re.compile(r"[\w.-]+/[\w.-]+")


COLUMNS = (
    *("name", "title", "url", "models", "items", "size", "license", "cite"),
    *("run_with", "tried"),
)


def _added() -> Iterator[Added]:
    """Yield the sources that packages add."""
    for one in added("sources"):
        if not isinstance(one.thing, Source):
            raise one.refused("not a Source of fewbench.public.source")
        yield one


SOURCES: Registry[Source] = Registry({}, _added)
"""Sources by name."""


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
        raise PublicError(f"unknown source {name!r}", hint=hint, kind="unknown")
    return SOURCES[name]


def public_results(harness: str, tasks: Iterable[str]) -> list[str]:
    """Return a note on a source with results on tasks of a harness, if there is any.

    One whose real files were read comes first.

    Examples
    --------
    >>> public_results("lm-eval", ["mmlu_pro_law", "mmlu_pro_math"])
    ['results of 48 models on these tasks are public: fewbench run lm-eval mmlu-pro …']
    >>> public_results("inspect", ["mmlu_pro"])
    ['results of 48 models on these tasks are public: fewbench run inspect mmlu-pro …']
    >>> public_results("lm-eval", ["my_task"])
    []
    """
    names = list(tasks)
    for source in sorted(SOURCES.values(), key=lambda source: not source.tried):
        for route in source.routes:
            is_same = route.harness == harness and all(map(route.runs, names))
            if names and (is_same or (harness == "inspect" and names == [route.inspect])):
                is_default = route.benchmark in ("", source.default)
                name = source.name if is_default else f"{source.name}:{route.benchmark}"
                return [
                    f"results of {source.models.partition(' (')[0]} models on these tasks are "
                    f"public: fewbench run {harness} {quoted(name)} …"
                ]
    return []


def inspect_tasks(items: "pd.DataFrame") -> tuple[str, ...]:
    """Return the tasks of Inspect that run the items of a public source, none if none does."""
    tasks = tuple(dict.fromkeys(harness_tasks(items)))
    harness = set(items.get(ROUTE, ()))
    if harness == {"inspect"}:
        return tasks
    routes = [route for source in SOURCES.values() for route in source.routes if route.inspect]
    return tuple(route.inspect for route in routes if harness and all(map(route.runs, tasks)))[:1]


def public_sources() -> "pd.DataFrame":
    """Return the sources of public per-item results, one row each, indexed by name.

    Numbers and sizes are approximate. See `fewbench.get`.

    Examples
    --------
    >>> public_sources().loc["livebench", "license"]
    'not stated'
    """
    rows = [
        {
            **{key: getattr(source, key) for key in COLUMNS},
            "benchmarks": "any" if source.benchmarks == ("*",) else ", ".join(source.benchmarks),
            "splits": "any" if source.splits == ("*",) else ", ".join(source.splits),
        }
        for source in SOURCES.values()
    ]
    return pd.DataFrame(rows).set_index("name")
