"""fewbench gate: pass or fail, for CI."""

from pathlib import Path
from typing import Annotated

import typer

from fewbench._files import written_whole
from fewbench._names import counted, score_digits
from fewbench.cli.options import Json, TargetName
from fewbench.cli.outputs import Force, check_outputs
from fewbench.cli.progress import at_work
from fewbench.cli.sides import Sides
from fewbench.cli.text import echo, number, say, table
from fewbench.cli.versus import MEASURING, needed
from fewbench.decide import Gate
from fewbench.decide import gate as decide
from fewbench.errors import EvaluationError

FORMATS = (".json", ".md", ".html")


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
        typer.Option(
            "--output", "-o", help="File to write: .html, .json, or .md for a CI summary."
        ),
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
    if output is not None and output.suffix not in FORMATS:
        raise EvaluationError(
            f"cannot write {output}", hint="name a file that ends in .html, .json or .md"
        )
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
    check_outputs(output, inputs=[scores, *inputs], force=force)
    with at_work(MEASURING):
        found = decide(
            own,
            at_least=at_least,
            not_below=baseline,
            margin=margin,
            level=level,
            sequential=sequential,
        )
    echo(found.to_json() if as_json else describe(found, folder))
    if output is not None:
        text = found.to_markdown() if output.suffix == ".md" else found.to_json() + "\n"
        if output.suffix == ".html":
            from fewbench.report.writing import render_report

            text = render_report(found)
        with written_whole(output) as temporary:
            temporary.write_text(text, encoding="utf-8")
        say(f"wrote {output}")
    raise typer.Exit(found.exit_code)


def describe(found: Gate, folder: str = "DIR") -> str:
    """Return a verdict as text: the answer, the checks, what to do next."""
    digits = score_digits(*(one.value for one in found.checks))
    rows = [
        [
            one.rule,
            number(one.value, digits),
            f"{number(one.interval.low, digits)} .. {number(one.interval.high, digits)}",
            one.verdict,
        ]
        for one in found.checks
    ]
    level = found.checks[0].level
    run = f"{found.items_run:,} of {counted(found.items_total, 'item')} run"
    lines = [
        f"{found.verdict}: {found.target}, {run}",
        table(["condition", "value", f"{level:.0%} interval", "verdict"], rows),
    ]
    if found.looks:
        lines.append(
            f"the interval holds at all looks together ({', '.join(map(str, found.looks))} answers)"
        )
    lines += [f"warning: {said}" for said in found.warnings]
    if found.verdict == "undecided":
        most = max(one.items_needed or 0 for one in found.checks)
        if most:
            lines.append(f"if the value stays as it is, {needed(most, found.items_total)}")
        if any(one.items_if_known for one in found.checks):
            known = max(one.items_if_known or one.items_needed or 0 for one in found.checks)
            lines.append(f"if the baseline ran all items once, about {known:,} would decide it")
        if found.items_open:
            place = folder if Path(folder).is_dir() else folder.rpartition(":")[0]
            lines.append(f"Next: fewbench ask {place} --target {found.target}")
        else:
            lines.append("all asked items are answered: start an evaluation with a larger budget")
    return "\n".join(lines)
