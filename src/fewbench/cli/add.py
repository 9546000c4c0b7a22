"""fewbench add: put evaluated models into a scores file."""

import warnings
from pathlib import Path

from fewbench._files import only_process
from fewbench._names import counted
from fewbench.cli.commands import Call, command
from fewbench.cli.import_ import described
from fewbench.cli.outputs import check_outputs
from fewbench.cli.text import echo, say
from fewbench.errors import EstimateWarning, FewbenchError
from fewbench.evaluation import add as add_runs
from fewbench.scores import Scores, load_scores, save_scores


def _add(call: Call, *, output: Path) -> None:
    """Add runs to a file.

    Parameters
    ----------
    output
        Scores file to write (.parquet). If it exists and --scores is not given, the models are
        added to it.
    """
    if output.suffix != ".parquet":  # before the work
        raise FewbenchError(
            f"{output}: scores are saved as Parquet", hint=f"use {output.with_suffix('.parquet')}"
        )
    grows = output.exists() and call.given["scores"] is None
    check_outputs(output, inputs=call.paths(), force=grows or call.given["force"])
    lock = output.with_name(f".{output.name}.lock")
    with (
        only_process(lock, f"{output}: another fewbench add is writing it"),
        warnings.catch_warnings(record=True) as accepted,
    ):
        warnings.simplefilter("always", EstimateWarning)
        table: Scores = call(scores=load_scores(output)) if grows else call()
        save_scores(table, output)
    for one in accepted:
        say(f"note: {one.message}")
    runs = counted(len(call.given["runs"]), "run")
    echo(f"{output}: {runs} added; {described(table)}")


def _named(_: Call, typed: list[str]) -> dict[str, str]:
    pairs = [one.rpartition("=") for one in typed]
    if wrong := [one for one, (where, _, name) in zip(typed, pairs, strict=True)
                 if not where or not name]:  # fmt: skip
        raise FewbenchError(f"{wrong[0]}: no folder and name", hint="write DIR=NAME")
    return {where: name for where, _, name in pairs}


add = command(
    add_runs,
    work="adding",
    report=None,
    around=_add,
    read={
        "runs": (list[Path], lambda _, typed: typed, ""),
        "names": (list[str], _named, "Written as DIR=NAME or DIR:TARGET=NAME; can be repeated."),
    },
    examples="""
The first runs:  fewbench add run-a run-b -o scores.parquet
One more:        fewbench add run-c -o scores.parquet
With a name:     fewbench add run-d --name run-d=my-model -o scores.parquet
Then:            fewbench run command scores.parquet -n 50 -o run-e -- python answer.py
""",
)
