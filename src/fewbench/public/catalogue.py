"""All sources by name."""

import re

import pandas as pd

from fewbench._names import did_you_mean
from fewbench.errors import PublicError
from fewbench.public.agents import AGENTS, DOMAINS, TERMINAL_2
from fewbench.public.logs import EEE, LOGS, V1, V1_AUTHOR, V2, V2_AUTHOR, repository
from fewbench.public.source import HUB, Source
from fewbench.public.tables import LIVEBENCH, METABENCH, TABLES
from fewbench.readers.harnesses.swe_bench import SPLITS

AT_HUB = "https://huggingface.co/datasets"
# Numbers and sizes are approximate, as others last saw them.
_ALL = (
    Source(
        "swe-bench",
        "SWE-bench: submissions of agents, resolved or not by instance",
        "https://github.com/SWE-bench/experiments",
        *("180 (verified)", "500 (verified)", "a few MB"),
        "not stated in the repository; its site is CC BY-NC",
        "Jimenez et al. 2024, SWE-bench, ICLR",
        *AGENTS["swe-bench"],
        splits=SPLITS,
    ),
    Source(
        "terminal-bench",
        "Terminal-Bench: tasks in a terminal, five trials each",
        f"{AT_HUB}/{TERMINAL_2}",
        *("75 (2), 12 (1)", "89 (2), 80 (1)", "a few MB"),
        "Apache-2.0",
        "Terminal-Bench, https://www.tbench.ai",
        *AGENTS["terminal-bench"],
        benchmarks=("2", "1"),
        default="2",
    ),
    Source(
        "tau2-bench",
        "tau2-bench: conversations with tools, four trials each",
        "https://github.com/sierra-research/tau2-bench",
        *("29", "278", "varies"),
        "MIT",
        "Barres et al. 2025, tau2-bench",
        *AGENTS["tau2-bench"],
        splits=DOMAINS,
    ),
    Source(
        "helm",
        "HELM: runs of its public leaderboards",
        "https://crfm.stanford.edu/helm",
        *("68 to 91", "by scenario", "100 kB per run"),
        "not stated",
        "Liang et al. 2023, HELM, TMLR",
        *LOGS["helm"],
        benchmarks=("mmlu", "lite", "capabilities", "safety"),
        splits=("*",),
    ),
    Source(
        "open-llm-leaderboard-v1",
        "Open LLM Leaderboard v1, until June 2024",
        f"https://huggingface.co/{V1_AUTHOR}",
        *("more than 5,000", "817 to 14,042", "1.4 (winogrande) to 80 MB (mmlu) per model"),
        "not stated",
        "Beeching et al. 2023, Open LLM Leaderboard",
        *LOGS["open-llm-leaderboard-v1"],
        benchmarks=tuple(V1),
        has_revisions=False,
    ),
    Source(
        "open-llm-leaderboard-v2",
        "Open LLM Leaderboard v2, until March 2025",
        f"https://huggingface.co/{V2_AUTHOR}",
        *("4,576", "541 (ifeval) to 12,032 (mmlu_pro)", "up to 378 MB (mmlu_pro) per model"),
        "terms to accept for each model",
        "Fourrier et al. 2024, Open LLM Leaderboard v2",
        *LOGS["open-llm-leaderboard-v2"],
        benchmarks=tuple(V2),
        has_revisions=False,
    ),
    Source(
        "every-eval-ever",
        "Every Eval Ever: records of many harnesses in one schema",
        f"{AT_HUB}/{EEE}",
        *("varies", "varies", "varies"),
        "MIT",
        f"Every Eval Ever, {AT_HUB}/{EEE}",
        *LOGS["every-eval-ever"],
        benchmarks=("*",),
    ),
    Source(
        "livebench",
        "LiveBench: judged answers to questions that are replaced regularly",
        f"{AT_HUB}/livebench/model_judgment",
        *("195", "494", "1 MB"),
        "not stated",
        "White et al. 2025, LiveBench, ICLR",
        *TABLES["livebench"],
        benchmarks=(*LIVEBENCH, "all"),
        default="all",
    ),
    Source(
        "livecodebench",
        "LiveCodeBench: code generation",
        "https://livecodebench.github.io",
        *("28", "1,055", "7 MB"),
        "CC BY-SA 4.0",
        "Jain et al. 2025, LiveCodeBench, ICLR",
        *TABLES["livecodebench"],
        has_revisions=False,
    ),
    Source(
        "openeval",
        "OpenEval: item-level responses of several benchmarks",
        f"{AT_HUB}/human-centered-eval/OpenEval",
        *("124", "541 (IFEval)", "1.3 GB for all"),
        "CC BY-NC",
        f"OpenEval, {AT_HUB}/human-centered-eval/OpenEval",
        *TABLES["openeval"],
        benchmarks=("*",),
    ),
    Source(
        "measurement-db",
        "measurement-db: responses of more than 100 benchmarks",
        f"{AT_HUB}/aims-foundations/measurement-db",
        *("varies", "varies", "varies"),
        "share-alike; terms to accept",
        f"AI measurement database, {AT_HUB}/aims-foundations/measurement-db",
        *TABLES["measurement-db"],
        benchmarks=("*",),
    ),
    Source(
        "mmlu-pro",
        "MMLU-Pro: answers of its leaderboard",
        "https://github.com/TIGER-AI-Lab/MMLU-Pro",
        *("48", "12,032", "200 MB"),
        "Apache-2.0",
        "Wang et al. 2024, MMLU-Pro, NeurIPS",
        *TABLES["mmlu-pro"],
        splits=("*",),
    ),
    Source(
        "alpaca-eval",
        "AlpacaEval 2: preference over GPT-4 Turbo",
        "https://github.com/tatsu-lab/alpaca_eval",
        *("223", "805", "varies"),
        "Apache-2.0",
        "Li et al. 2023, AlpacaEval; Dubois et al. 2024",
        *TABLES["alpaca-eval"],
    ),
    Source(
        "metabench",
        "metabench: six benchmarks of the Open LLM Leaderboard",
        "https://zenodo.org/records/12819251",
        *("more than 5,000", "817 to 14,042", "varies"),
        "CC BY-NC-SA",
        "Kipnis et al. 2025, metabench, ICLR",
        *TABLES["metabench"],
        benchmarks=METABENCH,
        has_revisions=False,
    ),
)
SOURCES: dict[str, Source] = {source.name: source for source in _ALL}
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
