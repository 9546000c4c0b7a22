"""fewbench versus: which of two models is better."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fewbench._names import score_digits
from fewbench.cli.options import Json, Seed, load
from fewbench.cli.outputs import Force, check_output_folder, check_outputs, write_result
from fewbench.cli.progress import at_work, status_line
from fewbench.cli.sides import ONE_LOOK, Named, Sides
from fewbench.cli.text import echo, number, say, table
from fewbench.decide import Versus
from fewbench.decide import versus as compare_two
from fewbench.errors import EvaluationError
from fewbench.evaluation import Evaluation
from fewbench.evaluation.intervals import basis
from fewbench.study.multiple import ADJUSTS

MEASURING = "measuring errors of differences on held-out source models …"
FORMATS = (".json", ".csv", ".html")
SHOWN_NEXT = 5


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
        typer.Option(
            "--output", "-o", help="File to write: .html, .json, or .csv with one row per task."
        ),
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
    if output is not None and output.suffix not in FORMATS:
        raise EvaluationError(
            f"cannot write {output}", hint="name a file that ends in .html, .json or .csv"
        )
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
        check_outputs(output, inputs=[scores], force=force)
        check_output_folder(run, inputs=[scores])
        found = _run(a, b, program, run, scores, budget, seed, settings)
    else:
        sides = Sides(scores)
        one, other = sides.read(a), sides.read(b)
        inputs = [Path(name) for name in (a, b) if Path(name).is_dir()]
        check_outputs(output, inputs=[scores, *inputs], force=force)
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
    echo(found.to_json() if as_json else describe(found, items, further))
    write_result(found, output)


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


def describe(found: Versus, items: bool = False, further: int | None = None) -> str:
    """Return a comparison as text: the answer, the numbers, the tasks, the items."""
    digits = _digits(found)

    def score(value: float) -> str:
        return number(value, digits)

    low, high = score(found.interval.low), score(found.interval.high)
    lines = [f"{found.answer} (at {found.level:.0%})", ""]
    rows = [
        [found.a, score(found.score_a), f"{found.items_a:,}"],
        [found.b, score(found.score_b), f"{found.items_b:,}"],
        ["difference", f"{found.difference:+.{digits}f}", f"{found.items_common:,} in common"],
    ]
    lines += [table(["", "score", f"items of {found.items_total:,}"], rows), ""]
    if found.kind != "known":
        lines.append(f"{found.level:.0%} interval of the difference: {low} .. {high}")
        lines.append(f"probability that {found.a} is better: {found.chance_a_better:.2f}")
        lines.append(f"interval: {_how(found)}")
    else:
        lines.append("both scores are known: the difference has no error on these items")
    if found.margin is not None:
        said = f"worse by less than {found.margin:g}, or better"
        lines.append(f"{found.a} is {said}: {_yes(found.not_worse)}")
        lines.append(f"the two differ by less than {found.margin:g}: {_yes(found.equivalent)}")
    if found.random is not None:
        plain = found.random
        lines.append(
            f"random sampling of the same {plain.items:,} items for both would give "
            f"±{score(plain.half_width)}; for an interval as narrow as this one it needs "
            f"{plain.items_needed:,}"
        )
    if found.items_needed is not None:
        lines.append(
            f"if the difference stays as it is, {needed(found.items_needed, found.items_total)}"
        )
    if found.items_if_known is not None:
        lines.append(
            f"if {found.b} ran all items once, about {found.items_if_known:,} items of {found.a} "
            "would decide it"
        )
    if found.next_items:
        shown = found.next_items if further else found.next_items[:SHOWN_NEXT]
        more = "" if len(shown) == len(found.next_items) else " … (--next N lists N of them)"
        lines.append(f"next items for both: {', '.join(shown)}{more}")
    if found.tasks:
        lines += ["", *_tasks(found, digits)]
    if found.deciding:
        lines += ["", *_items(found, items)]
    return "\n".join([*lines, *(f"warning: {said}" for said in found.warnings)])


def needed(items: int, n_items: int) -> str:
    """Say how many items decide."""
    if items >= n_items:
        return f"only all {n_items:,} items decide it"
    return f"about {items:,} of {n_items:,} items decide it"


def _digits(found: Versus) -> int:
    return score_digits(found.score_a, found.score_b)


def _yes(value: bool | None) -> str:
    return "yes" if value else "not sure"


def _how(found: Versus) -> str:
    said = basis(found.kind, found.sources)
    if found.looks:
        said += f"; holds at all looks together ({', '.join(map(str, found.looks))} answers)"
    return said


def _tasks(found: Versus, digits: int) -> list[str]:
    rows = [
        [
            one.task,
            f"{one.difference:+.{digits}f}",
            "–"
            if (ends := one.interval) is None
            else f"{number(ends.low, digits)} .. {number(ends.high, digits)}",
            f"{one.p_adjusted:.3f}",
            one.verdict,
        ]
        for one in found.tasks
    ]
    header = ["task", "difference", f"{found.level:.0%} interval", "adjusted p", "verdict"]
    return [table(header, rows), f"p values adjusted by {ADJUSTS[found.adjust]}"]


def _items(found: Versus, every: bool) -> list[str]:
    n = len(found.deciding)
    for_a = sum(one.a > one.b for one in found.deciding)
    said = (
        f"{n:,} of {found.items_common:,} common items differ: {found.a} scores higher on "
        f"{for_a:,}, {found.b} on {n - for_a:,}"
    )
    if not every:
        return [f"{said} (--items lists them)"]
    rows = [[one.item, one.task, f"{one.a:g}", f"{one.b:g}"] for one in found.deciding]
    return [said, table(["item", "task", found.a, found.b], rows, left=2)]
