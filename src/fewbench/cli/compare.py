"""fewbench compare, plan: judge methods on models with known full scores."""

import inspect
import os
import shlex
import sys
from pathlib import Path

from fewbench._names import split_names
from fewbench._progress import progress_bar
from fewbench._text import echo, wrapped
from fewbench.cli.commands import Call, command
from fewbench.cli.options import load, say_shares
from fewbench.cli.outputs import check_outputs, write
from fewbench.errors import StudyError
from fewbench.scores import Scores
from fewbench.scores.roles import as_sources
from fewbench.study import Comparison, Plan, SearchStudy, SplitSettings, compare_best
from fewbench.study import compare as run_study
from fewbench.study import plan as make_plan
from fewbench.study.plan import benchmark_of_size
from fewbench.study.splits import EXTRAPOLATE

GAP = 0.2  # DISCO's: targets from the best 30%, sources from the worst 50%


def _compare(
    call: Call,
    *,
    targets: float = 0.25,
    gap: bool = False,
    group_by: str = "family",
    resample: bool = False,
    intervals: bool = True,
    best: int | None = None,
    neighbors: bool = False,
    margin: float | None = None,
    output: Path | None = None,
) -> Comparison | SearchStudy:
    """Split as the options say, and write the data.

    Parameters
    ----------
    targets
        Share of the models used as targets.
    gap
        Splits performance and weakest: leave out the 20% of models between sources and targets.
    group_by
        Split group: column of the models that names the group.
    resample
        Draw sources and targets with replacement.
    intervals
        Measure the coverage of intervals too. This takes most of the time.
    best
        Compare ways of finding the best of this many models instead: best (fewbench best), halving,
        ucb-e, uniform, random. --sources sets the number of source models; use 100 --repeats or
        more.
    neighbors
        With `best`: draw models that are next to each other in rank.
    margin
        With `best`: as for fewbench best.
    output
        Data file to write: .json or .csv.
    """
    check_outputs(output, force=call.given["force"], formats=(".json", ".csv"))
    if best is not None:
        return _compare_best(call, best, output, neighbors=neighbors, margin=margin)
    call.refuse(
        [name for name, typed in {"neighbors": neighbors, "margin": margin}.items() if typed],
        "without --best",
        "add --best NUMBER, or leave them out",
    )
    kinds = split_names(",".join(call.given["split"] or ["random"]))
    settings = [
        SplitSettings(
            kind,  # type: ignore[arg-type]
            targets,
            GAP if gap and (kind in EXTRAPOLATE or not set(kinds) & set(EXTRAPOLATE)) else 0.0,
            group_by,
            resample,
        )
        for kind in kinds
    ]
    command = shlex.join(["fewbench", *sys.argv[1:]])
    facts = {"scores": call.given["scores"].name, "command": command}
    level = call.given["level"] if intervals else None
    outcome: Comparison = call(split=settings, level=level, facts=facts)
    if budgets := call.given["budgets"]:
        say_shares(split_names(",".join(budgets)), call.read["scores"])
    if output is not None:
        write(outcome.page(), outcome, output)
    return outcome


def _compare_best(
    call: Call, targets: int, output: Path | None, *, neighbors: bool, margin: float | None
) -> SearchStudy:
    """Compare searches for the best of several models."""
    options = call.typed_for(run_study)
    own = inspect.signature(compare_best).parameters
    given = call.given
    usual = {name: each.default for name, each in inspect.signature(run_study).parameters.items()}
    of_methods = ("methods", "budgets", "split")
    typed = [*options]
    typed += [name for name in of_methods if tuple(given[name] or ()) not in ((), usual[name])]
    call.refuse([name for name in typed if name not in own], "with --best", "leave them out")
    sizes = parse_sizes(",".join(given["sources"])) if given["sources"] else [0]
    if len(sizes) > 1:
        raise StudyError(
            f"{len(sizes)} numbers of source models with --best", hint="give one number"
        )
    with progress_bar("comparing") as progress:
        outcome = compare_best(
            load(given["scores"], given["average"]),
            targets,
            given["repeats"],
            given["seed"],
            sources=sizes[0],
            neighbors=neighbors,
            margin=margin or 0.0,
            workers=given["workers"] or os.cpu_count() or 1,
            executor=given["cluster"],
            progress=progress,
        )
    if output is not None:
        write(outcome.page(), outcome, output)
    return outcome


def parse_sizes(text: str) -> list[int]:
    """Read '20,50,100'; StudyError for other text."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise StudyError(f"cannot read the sources {text!r}", hint="as in 20,50,100") from error


SEVERAL = "Comma-separated; can be repeated."

compare = command(
    run_study,
    work="comparing",
    writes=["output"],
    hidden=["facts"],
    read={
        "methods": (list[str], lambda _, typed: split_names(",".join(typed)), SEVERAL),
        "budgets": (list[str], lambda _, typed: split_names(",".join(typed)), SEVERAL),
        "sources": (list[str], lambda _, typed: parse_sizes(",".join(typed)), SEVERAL),
        "split": (list[str], lambda _, typed: typed, SEVERAL),
    },
    around=_compare,
    about="If a method fails, the exit code is 1.",
    examples="""
fewbench compare scores.parquet
fewbench compare scores.parquet --methods greedy-ridge --budgets 20,50,100
fewbench compare scores.parquet -m collaborative,clustering -n 10% --metrics task_mae,task_rank_mae
fewbench compare scores.parquet -m anchor-points,disco-pds-rf -n 100 --split random,group
fewbench compare scores.parquet -m greedy-ridge -n 50 --split performance --targets 0.3 --gap
fewbench compare scores.parquet -m greedy-ridge -n 50 --sources 10,30
fewbench compare scores.parquet -m greedy-ridge -n 50 -o out.json --report out.html
fewbench compare scores.parquet -m fewbench -n 100 --cluster dask://10.0.0.1:8786
fewbench compare scores.parquet --best 20 --repeats 100      find the best of 20 models
fewbench compare scores.parquet --best 20 --neighbors --sources 50 --repeats 200


Splits:
random         targets are drawn at random
every          every k-th model is a target
given          the column role of the models names sources and targets
chronological  the newest models are targets
performance    the strongest models are targets; with --gap, sources are much weaker
group          whole families (or another column, --group-by) are targets
""",
)


def _source(typed: Path) -> str:
    """Return the file of scores, or nothing for a number of items."""
    return "" if str(typed).isdecimal() and not typed.exists() else str(typed)


def _plan(call: Call) -> Plan:
    """Also print a first answer."""

    def early(first: Plan) -> None:
        echo(wrapped(f"First answer, from a few held-out models: {first.answer}"))
        echo("Judging it on others …\n")

    result: Plan = call(on_first=None if call.given["as_json"] else early)
    return result


def _scores_or_number(call: Call, typed: Path) -> Scores | None:
    """Return the scores; of a number those of no models on as many items."""
    text = str(typed)
    if text.isdecimal() and not typed.exists():
        return as_sources(benchmark_of_size(int(text)))
    return call.scores(typed, items=True)


plan = command(
    make_plan,
    details=True,
    read={"scores": (Path, _scores_or_number, "")},
    work="backtesting",
    hidden=["on_first"],
    around=_plan,
    page=lambda plan_made, options: plan_made.page(_source(options["scores"])),
    examples="""
fewbench plan 500 --half-width 0.05       a benchmark of 500 items, no other models
fewbench plan 500 --difference 0.1        items for a comparison of two models
fewbench plan scores.parquet --error 0.02
fewbench plan scores.parquet --half-width 0.03 --expect stronger
fewbench plan scores.parquet --budget 100 --report plan.html
fewbench plan scores.parquet --cost '75 $'
fewbench plan scores.parquet --difference 0.01 --costs tokens
""",
)
