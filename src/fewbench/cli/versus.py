"""fewbench versus: which of two models is better."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fewbench.cli.options import Json, Seed, load
from fewbench.cli.outputs import FORMATS, WRITES, Force, check_output_folder, check_outputs, show
from fewbench.cli.progress import at_work, status_line
from fewbench.cli.sides import ONE_LOOK, Named, Sides
from fewbench.cli.text import say
from fewbench.decide import Versus
from fewbench.decide import versus as compare_two
from fewbench.errors import EvaluationError
from fewbench.evaluation import Evaluation

MEASURING = "measuring errors of differences on held-out source models …"


def versus(
    a: Annotated[
        str, typer.Argument(metavar="A", help="Folder of an evaluation, DIR:TARGET, or a model.")
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="What to compare with; as A.")],
    program: Annotated[
        list[str] | None,
        typer.Argument(metavar="PROGRAM", help="With --run: program and arguments, after --."),
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option("--scores", help="Scores file: of two source models, or if it was moved."),
    ] = None,
    level: Annotated[float, typer.Option(help="Level of the interval.")] = 0.9,
    margin: Annotated[
        float | None,
        typer.Option(help="Largest difference that does not matter, on the scale of the scores."),
    ] = None,
    adjust: Annotated[
        str,
        typer.Option(
            help="Adjust the tasks' p values for their number: holm (no false verdict) or bh "
            "(Benjamini-Hochberg: few false verdicts)."
        ),
    ] = "holm",
    sequential: Annotated[
        bool,
        typer.Option(
            "--sequential",
            help="You look again after more answers (10, 20, 40, …) and stop at a verdict.",
        ),
    ] = False,
    items: Annotated[
        bool, typer.Option("--items", help="Also print all items that the two score differently.")
    ] = False,
    further: Annotated[
        int | None,
        typer.Option(
            "--next", help="Print so many items for both to run next, one id per line.", min=1
        ),
    ] = None,
    ask: Annotated[
        bool,
        typer.Option("--ask", help="Also ask for these items: fewbench ask DIR then lists them."),
    ] = False,
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Run A and B by the program after --, as fewbench run command does, in this "
            "folder, until the difference is decided. Needs --scores.",
        ),
    ] = None,
    budget: Annotated[
        int, typer.Option("--budget", "-n", help="With --run: most items of each.", min=1)
    ] = 160,
    seed: Seed = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help=f"{WRITES}. A table has one row per task."),
    ] = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Compare the full scores of two models.

    Prints the difference with its interval, the probability that A is better, and what random
    sampling of as many items would give. A folder's targets are evaluated; a source model's full
    score is known.

    \b
    fewbench versus new-run old-run                two evaluations of one target each
    fewbench versus run:step-2000 run:step-1000    two targets of one evaluation
    fewbench versus run old-model                  a target and a source model
    fewbench versus run old-model --margin 0.01    not worse by more than 0.01?
    fewbench versus model-a model-b --scores scores.parquet
    fewbench versus new old --run run --scores scores.parquet -n 160 -- python answer.py
    """
    settings: dict[str, Any] = {"level": level, "margin": margin, "adjust": adjust}
    if run is not None or program:
        if ask or further or sequential:
            raise EvaluationError(
                "--next, --ask and --sequential are for two evaluations that exist",
                hint="leave them out: --run chooses the items, and looks until it is decided",
            )
        if run is None or not program or scores is None:
            raise EvaluationError(
                "a run needs a folder, the source models and a program",
                hint="as in --run DIR --scores SCORES -- python answer.py",
            )
        check_outputs(output, inputs=[scores], force=force, formats=FORMATS)
        check_output_folder(run, inputs=[scores])
        found = _run(a, b, program, run, scores, budget, seed, settings)
    else:
        sides = Sides(scores)
        one, other = sides.read(a), sides.read(b)
        inputs = [Path(name) for name in (a, b) if Path(name).is_dir()]
        check_outputs(output, inputs=[scores, *inputs], force=force, formats=FORMATS)
        named = None
        if isinstance(one, str) and isinstance(other, str) and scores is not None:
            named = load(scores)
        with at_work(MEASURING):
            found = compare_two(
                *(one, other), scores=named, sequential=sequential, next_items=further, **settings
            )
        if ask:
            _ask((one, other), found)
            if not sequential:
                say(ONE_LOOK)
    details = [name for name, on in (("items", items), ("next", further)) if on]
    show(found.page(), found, output, as_json, *details)


def _run(
    a: str,
    b: str,
    program: list[str],
    folder: Path,
    scores: Path,
    budget: int,
    seed: int,
    settings: dict[str, Any],
) -> Versus:
    from fewbench.decide import run_versus
    from fewbench.runners.command import CommandRunner

    with status_line(f"running {a} and {b}") as update:
        return run_versus(
            load(scores),
            CommandRunner(program),
            budget,
            names=(a, b),
            folder=folder,
            scores_path=scores,
            seed=seed,
            on_progress=lambda run, target: update(
                f"{target}: {len(run.evaluation.record.answered(target)):,} of {budget:,} items"
            ),
            **settings,
        )


def _ask(sides: tuple[Named, Named], found: Versus) -> None:
    """Ask the targets for the items to run next."""
    opened = [one[0] if isinstance(one, tuple) else one for one in sides]
    for at, side in enumerate(sides):
        evaluation, other = opened[at], opened[1 - at]
        name = side[1] if isinstance(side, tuple) else side
        if isinstance(name, Evaluation):
            name = name.targets[0]
        elif isinstance(evaluation, str) and isinstance(other, Evaluation):
            evaluation = other if name in other.targets else evaluation
        if isinstance(evaluation, Evaluation):
            evaluation.ask_more({name: found.next_items})
