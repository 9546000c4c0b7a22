"""fewbench audit: check a results table."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from fewbench.audit import DROPS, drop, with_families
from fewbench.audit import audit as run_audit
from fewbench.cli.options import AverageOption, Json, ScoresPath, load, split_names
from fewbench.cli.outputs import FORMATS, WRITES, Force, check_outputs, show
from fewbench.cli.progress import at_work
from fewbench.cli.text import say
from fewbench.errors import FewbenchError
from fewbench.scores import save_scores


def audit(
    scores_path: ScoresPath,
    as_json: Json = False,
    report: Annotated[Path | None, typer.Option(help=f"{WRITES}.")] = None,
    dropped: Annotated[
        str | None,
        typer.Option(
            "--drop", help=f"With -o: comma-separated kinds to leave out: {', '.join(DROPS)}."
        ),
    ] = None,
    families: Annotated[
        bool, typer.Option("--families", help="With -o: give similar models the same family.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Scores file to write (.parquet)."),
    ] = None,
    average: AverageOption = None,
    force: Force = False,
) -> None:
    """Check a results table for problems and suggest fixes.

    Nothing is changed, except in a new file with --drop or --families.

    \b
    fewbench audit scores.parquet
    fewbench audit scores.parquet --report audit.html
    fewbench audit scores.parquet --json
    fewbench audit scores.parquet --drop duplicates,wrong-way -o clean.parquet
    fewbench audit scores.parquet --families -o named.parquet

    \b
    Kinds to leave out:
    duplicates  models with the same answers as another model
    near-twins  all but one model of each group that answers almost alike
    constant    items with the same score from every model
    wrong-way   items on which better models do worse
    """
    if (output is None) != (dropped is None and not families):
        raise FewbenchError(
            "--output needs --drop or --families, and they need --output",
            hint="pass both, as in --drop duplicates -o FILE",
        )
    check_outputs(report, output, inputs=[scores_path], force=force)
    check_outputs(report, inputs=[scores_path], force=force, formats=FORMATS)
    scores = load(scores_path, average)
    with at_work("auditing"):
        found = run_audit(scores)
    if output is not None:
        left, said = scores, list[str]()
        if dropped is not None:
            left, left_out = drop(left, found, split_names(dropped))
            said += left_out
        if families:
            left, named = with_families(left, run_audit(left) if dropped else found)
            said.append(named)
        written = save_scores(left, output)
        for line in said:
            say(line)
        say(f"wrote {written}: {left.n_models} models × {left.n_items} items")
        found = replace(found, changed={"said": said, "written": str(written)})
    show(found.page(str(scores_path)), found, report, as_json)
