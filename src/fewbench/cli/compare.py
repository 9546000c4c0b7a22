"""fewbench compare, plan: judge methods on models with known full scores."""

import shlex
import sys
from pathlib import Path

from fewbench._names import split_names
from fewbench._text import echo, wrapped
from fewbench.cli.commands import Call, command
from fewbench.cli.options import say_shares
from fewbench.cli.outputs import check_outputs, write
from fewbench.errors import StudyError
from fewbench.study import Comparison, Plan, SplitSettings
from fewbench.study import compare as run_study
from fewbench.study import plan as make_plan
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
    output: Path | None = None,
) -> Comparison:
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
    output
        Data file to write: .json or .csv.
    """
    check_outputs(output, force=call.given["force"], formats=(".json", ".csv"))
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


def _plan(call: Call) -> Plan:
    """Also print a first answer."""

    def early(first: Plan) -> None:
        echo(wrapped(f"First answer, from a few held-out models: {first.answer}"))
        echo("Judging it on others …\n")

    result: Plan = call(on_first=None if call.given["as_json"] else early)
    return result


plan = command(
    make_plan,
    work="backtesting",
    hidden=["on_first"],
    around=_plan,
    page=lambda plan_made, options: plan_made.page(str(options["scores"])),
    examples="""
fewbench plan scores.parquet --error 0.02
fewbench plan scores.parquet --half-width 0.03 --expect stronger
fewbench plan scores.parquet --budget 100 --report plan.html
fewbench plan scores.parquet --cost '75 $'
fewbench plan scores.parquet --difference 0.01 --costs tokens
""",
)
