"""All sources by name: a row of sources.csv, where its files are, and how they are read."""

import csv
import re
from importlib.resources import files

import pandas as pd

from fewbench._names import did_you_mean
from fewbench.errors import PublicError
from fewbench.public import agents, logs, tables
from fewbench.public.source import HUB, Files, Find, Read, Source

WAYS: dict[str, tuple[Find, Read]] = {
    "swe-bench": (agents.find_swe_bench, agents.read_swe_bench),
    "terminal-bench": (agents.find_terminal, agents.read_terminal),
    "tau2-bench": (agents.find_tau2, agents.read_tau2),
    "helm": (logs.find_helm, logs.read_helm),
    "open-llm-leaderboard-v1": (logs.find_v1, logs.read_v1),
    "open-llm-leaderboard-v2": (logs.find_v2, logs.read_v2),
    "every-eval-ever": (logs.find_eee, logs.read_eee),
    "livebench": (
        Files("hub:livebench/model_judgment", ("data/leaderboard-*.parquet",)),
        tables.read_livebench,
    ),
    "livecodebench": (tables.find_livecodebench, tables.read_livecodebench),
    "openeval": (
        Files("hub:human-centered-eval/OpenEval", ("response/*.parquet", "item/*.parquet")),
        tables.read_openeval,
    ),
    "measurement-db": (
        Files(
            "hub:aims-foundations/measurement-db",
            ("{benchmark}/response*",),
            under="{benchmark}",
            optional=("{benchmark}/subjects.*", "{benchmark}/benchmarks.*"),
        ),
        tables.read_measurement,
    ),
    "mmlu-pro": (
        Files("github:TIGER-AI-Lab/MMLU-Pro", ("*.zip",), under="eval_results", sample=slice(None)),
        tables.read_mmlu_pro,
    ),
    "alpaca-eval": (
        Files(
            "github:tatsu-lab/alpaca_eval",
            ("*/weighted_alpaca_eval_gpt4_turbo/annotations.json",),
            under="results",
            sample=slice(None),
        ),
        tables.read_alpaca,
    ),
    "metabench": (
        Files("zenodo:12819251", ("*{benchmark}*.csv",), is_one=True),
        tables.read_metabench,
    ),
    "tailoredbench": (tables.find_tailoredbench, tables.read_tailoredbench),
}
NAMED = re.compile(r"[\w.-]+/[\w.-]+")


def _sources() -> dict[str, Source]:
    lines = files("fewbench.public").joinpath("sources.csv").read_text(encoding="utf-8")
    sources = {}
    for row in csv.DictReader(lines.splitlines()):
        find, read = WAYS[row["name"]]
        sources[row["name"]] = Source(
            **{key: row[key] for key in COLUMNS},
            find=find,
            read=read,
            benchmarks=tuple(row["benchmarks"].split()),
            splits=tuple(row["splits"].split()),
            default=row["default"] or None,
            has_revisions=row["has_revisions"] == "yes",
        )
    return sources


COLUMNS = ("name", "title", "url", "models", "items", "size", "license", "cite")
SOURCES: dict[str, Source] = _sources()


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
        return logs.repository(name)
    if name not in SOURCES:
        hint = did_you_mean(name, SOURCES, "see fewbench get list, or pass hub:ORG/DATASET")
        raise PublicError(f"unknown source {name!r}", hint=hint)
    return SOURCES[name]


def public_sources() -> pd.DataFrame:
    """Return the sources of public per-item results, one row each, indexed by name.

    Numbers and sizes are approximate. See `fewbench.get`.

    Examples
    --------
    >>> public_sources().loc["livebench", "license"]
    'not stated'
    """
    rows = [
        {
            **{key: getattr(one, key) for key in COLUMNS},
            "benchmarks": "any" if one.benchmarks == ("*",) else ", ".join(one.benchmarks),
            "splits": "any" if one.splits == ("*",) else ", ".join(one.splits),
        }
        for one in SOURCES.values()
    ]
    return pd.DataFrame(rows).set_index("name")
