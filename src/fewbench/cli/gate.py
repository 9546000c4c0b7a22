"""fewbench gate: pass or fail, for CI."""

from pathlib import Path
from typing import Annotated

import typer

from fewbench.cli.options import Json, TargetName
from fewbench.cli.outputs import FORMATS, WRITES, Force, check_outputs, show
from fewbench.cli.progress import at_work
from fewbench.cli.sides import Sides
from fewbench.cli.versus import MEASURING
from fewbench.decide import gate as decide


def gate(
    folder: Annotated[
        str,
        typer.Argument(metavar="DIR", help="Folder of the evaluation (start -o), or DIR:TARGET."),
    ],
    at_least: Annotated[
        float | None,
        typer.Option(help="Pass if the full score is at least this, on the scale of the scores."),
    ] = None,
    not_below: Annotated[
        str | None,
        typer.Option(
            metavar="BASELINE",
            help="Pass if the target is not worse than this: another evaluation's folder, "
            "DIR:TARGET, another target, or a source model.",
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            help="With --not-below: largest loss that passes, on the scale of the scores (default: "
            "0)."
        ),
    ] = None,
    level: Annotated[
        float,
        typer.Option(
            help="Level of the interval. At most (1 - LEVEL)/2 of the models that should not pass "
            "do: 5 % at 0.9."
        ),
    ] = 0.9,
    sequential: Annotated[
        bool,
        typer.Option(
            "--sequential",
            help="You look again after 10, 20, 40, … answers up to the budget, and stop at pass or "
            "fail. The interval is wide enough for all looks together.",
        ),
    ] = False,
    target: TargetName = None,
    scores: Annotated[
        Path | None, typer.Option("--scores", help="Scores file, if it was moved.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help=f"{WRITES}. .md suits a CI summary."),
    ] = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Check whether a target passes a threshold or holds up to a baseline.

    The exit code is 0 for pass, 1 for fail, 2 for an error and 3 for undecided. The interval is
    the one that fewbench estimate prints.

    \b
    fewbench gate run --at-least 0.70
    fewbench gate run --not-below old-model --margin 0.01
    fewbench gate run --not-below old-run --margin 0.01 --level 0.95 -o gate.md
    fewbench gate run --at-least 0.70 --sequential --json
    """
    sides = Sides(scores)
    own = sides.read(folder)
    if isinstance(own, str):
        own = sides.open(Path(folder))
    if target is not None:
        own = (own[0] if isinstance(own, tuple) else own, target)
    baseline = None if not_below is None else sides.read(not_below)
    inputs = [Path(folder)]
    if not_below is not None and Path(not_below).is_dir():
        inputs.append(Path(not_below))
    check_outputs(output, inputs=[scores, *inputs], force=force, formats=FORMATS)
    with at_work(MEASURING):
        found = decide(
            own,
            at_least=at_least,
            not_below=baseline,
            margin=margin,
            level=level,
            sequential=sequential,
        )
    place = folder if Path(folder).is_dir() else folder.rpartition(":")[0]
    show(found.page(place), found, output, as_json)
    raise typer.Exit(found.exit_code)
