"""fewbench rank: the order of several targets."""

from pathlib import Path
from typing import Annotated

import typer

from fewbench.cli.options import Json, open_evaluation
from fewbench.cli.outputs import FORMATS, WRITES, Force, check_outputs, show
from fewbench.cli.progress import at_work
from fewbench.cli.sides import ONE_LOOK
from fewbench.cli.text import say
from fewbench.cli.versus import MEASURING
from fewbench.decide import rank as rank_targets
from fewbench.errors import EvaluationError


def rank(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR", help="Folders of evaluations (start -o).")
    ],
    model: Annotated[
        list[str] | None,
        typer.Option("--model", help="A source model to rank, too. Repeat it for several."),
    ] = None,
    top: Annotated[int, typer.Option(help="How many best targets you want to find.", min=1)] = 1,
    level: Annotated[float, typer.Option(help="Level of the rank ranges, all together.")] = 0.9,
    sequential: Annotated[
        bool,
        typer.Option(
            "--sequential",
            help="You look again after more answers, until the best --top are settled.",
        ),
    ] = False,
    further: Annotated[
        int | None,
        typer.Option(
            "--next",
            help="Choose so many items, over all targets, that settle the best --top.",
            min=1,
        ),
    ] = None,
    ask: Annotated[
        bool,
        typer.Option(
            "--ask", help="With --next: also ask for them. fewbench ask DIR then lists them."
        ),
    ] = False,
    scores: Annotated[
        Path | None, typer.Option("--scores", help="Scores file, if it was moved.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help=f"{WRITES}.")] = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Rank several targets, with the probability of each rank.

    All targets with answers are ranked. Prints the order, the range of ranks of each target, and
    which targets to run more items of.

    \b
    fewbench rank run
    fewbench rank run-a run-b --model old-model
    fewbench rank run --top 3 --json
    fewbench rank run --sequential --next 50 --ask   50 more items, where they settle the best
    """
    if ask and further is None:
        raise EvaluationError("how many items to ask for?", hint="add --next, as in --next 50")
    check_outputs(output, inputs=[scores, *folders], force=force, formats=FORMATS)
    evaluations = [open_evaluation(folder, scores) for folder in folders]
    with at_work(MEASURING):
        found = rank_targets(
            *evaluations,
            models=model or (),
            top=top,
            level=level,
            sequential=sequential,
            next_items=further,
        )
    if ask:
        for evaluation in evaluations:
            own = {name: found.next_items.get(name, ()) for name in evaluation.targets}
            evaluation.ask_more(own)
        if not sequential:
            say(ONE_LOOK)
    show(found.page(), found, output, as_json)
