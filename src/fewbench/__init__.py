"""fewbench: estimate what a model would score on a whole benchmark from a few of its items.

Commands and functions mirror each other:

- get: `get`, `find_public_files`, `public_sources` · import: `import_results`, `read_items`
- audit: `audit` · methods: `CATALOGUE`, `find_method`
- select: `select_items` · start, ask, tell, estimate: `Evaluation` · run: `run`,
  `run_lm_eval`, `run_inspect`, `run_command` · add: `add`
- pack: `pack`, `open_pack`, `refresh_pack`, `get_pack`
- view: `view` · versus: `versus`, `run_versus` · gate: `gate` · rank: `rank` · best: `best` ·
  track: `track`, `add_checkpoint` · verify: `verify`
- compare: `compare` · plan: `plan` · reports: `write_report`

docs/stability.md lists the other modules that users import from; the rest is internal.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fewbench._version import __version__

if TYPE_CHECKING:
    from fewbench.checks import Audit, audit
    from fewbench.decide import (
        BestResult,
        Gate,
        Ranking,
        Track,
        Verification,
        Versus,
        add_checkpoint,
        best,
        gate,
        rank,
        run_versus,
        track,
        verify,
        versus,
    )
    from fewbench.errors import EstimateWarning, FewbenchError
    from fewbench.evaluation import Estimate, Estimates, Evaluation, Stop, add, select_items
    from fewbench.evaluation.extending import Extended, extend
    from fewbench.evaluation.scoring import Scoring
    from fewbench.evaluation.view import view
    from fewbench.methods import CATALOGUE, Subset, find_method
    from fewbench.packs import Pack, open_pack, pack, refresh_pack
    from fewbench.public import (
        PublicFiles,
        PublicResults,
        find_public_files,
        get,
        get_pack,
        load_scores,
        public_sources,
    )
    from fewbench.readers import Columns, Reading, import_results, read_items
    from fewbench.runners.command import run_command
    from fewbench.runners.function import run
    from fewbench.runners.inspect.runner import run_inspect
    from fewbench.runners.lm_eval.runner import run_lm_eval
    from fewbench.runners.result import RunResult
    from fewbench.scores import (
        Benchmark,
        OptionProbabilities,
        Scale,
        Scores,
        from_arrays,
        from_long,
        from_wide,
        save_scores,
    )
    from fewbench.show.html import write_report
    from fewbench.study import Comparison, Plan, SplitSettings
    from fewbench.study.compare import compare
    from fewbench.study.plan import plan

__all__ = [
    "CATALOGUE",
    "Audit",
    "Benchmark",
    "BestResult",
    "Columns",
    "Comparison",
    "Estimate",
    "EstimateWarning",
    "Estimates",
    "Evaluation",
    "Extended",
    "FewbenchError",
    "Gate",
    "OptionProbabilities",
    "Pack",
    "Plan",
    "PublicFiles",
    "PublicResults",
    "Ranking",
    "Reading",
    "RunResult",
    "Scale",
    "Scores",
    "Scoring",
    "SplitSettings",
    "Stop",
    "Subset",
    "Track",
    "Verification",
    "Versus",
    "__version__",
    "add",
    "add_checkpoint",
    "audit",
    "best",
    "compare",
    "extend",
    "find_method",
    "find_public_files",
    "from_arrays",
    "from_long",
    "from_wide",
    "gate",
    "get",
    "get_pack",
    "import_results",
    "load_scores",
    "open_pack",
    "pack",
    "plan",
    "public_sources",
    "rank",
    "read_items",
    "refresh_pack",
    "run",
    "run_command",
    "run_inspect",
    "run_lm_eval",
    "run_versus",
    "save_scores",
    "select_items",
    "track",
    "verify",
    "versus",
    "view",
    "write_report",
]

# Where each name is. A module is imported when one of its names is first used: pandas, SciPy and
# pydantic, which most modules need, take longer to import than a program may want to wait.
_NAMES = {
    "checks": ("Audit", "audit"),
    "decide": (
        *("BestResult", "Gate", "Ranking", "Track", "Verification", "Versus", "best", "gate"),
        *("add_checkpoint", "rank", "run_versus", "track", "verify", "versus"),
    ),
    "errors": ("EstimateWarning", "FewbenchError"),
    "evaluation": ("Estimate", "Estimates", "Evaluation", "Stop", "add", "select_items"),
    "inspect": (),  # for tasks of Inspect: fewbench.inspect.estimated
    "methods": ("CATALOGUE", "Subset", "find_method"),
    "packs": ("Pack", "open_pack", "pack", "refresh_pack"),
    "public": (
        *("PublicFiles", "PublicResults", "find_public_files", "get", "get_pack"),
        *("load_scores", "public_sources"),
    ),
    "readers": ("Columns", "Reading", "import_results", "read_items"),
    "scores": (
        *("Benchmark", "OptionProbabilities", "Scale", "Scores", "from_arrays"),
        *("from_long", "from_wide", "save_scores"),
    ),
    "study": ("Comparison", "Plan", "SplitSettings", "compare", "plan"),
}
_PLACES = {name: (module, name) for module, names in _NAMES.items() for name in names}
_PLACES |= {name: ("evaluation.extending", name) for name in ("Extended", "extend")}
_PLACES |= {"Scoring": ("evaluation.scoring", "Scoring")}
_PLACES |= {"run": ("runners.function", "run"), "RunResult": ("runners.result", "RunResult")}
_PLACES |= {"run_command": ("runners.command", "run_command")}
_PLACES |= {
    f"run_{name}": (f"runners.{name}.runner", f"run_{name}") for name in ("inspect", "lm_eval")
}
_PLACES |= {"view": ("evaluation.view", "view"), "write_report": ("show.html", "write_report")}


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        module, member = _PLACES[name]
        return getattr(import_module(f"fewbench.{module}"), member)
    if name in _NAMES:
        return import_module(f"fewbench.{name}")
    raise AttributeError(f"module 'fewbench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
