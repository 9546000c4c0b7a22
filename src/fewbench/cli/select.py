"""fewbench select: choose items and write a subset file."""

from pathlib import Path
from typing import Annotated

import typer

from fewbench._files import written_whole
from fewbench.cli.options import AverageOption, Budget, MethodName, ScoresPath, Seed, load
from fewbench.cli.outputs import Force, check_outputs
from fewbench.cli.progress import at_work
from fewbench.cli.text import echo, say
from fewbench.evaluation import select_items
from fewbench.methods import Subset, find_method
from fewbench.methods.catalogue import AUTO
from fewbench.runners import EXPORTS, export_items
from fewbench.scores import Scores


def select(
    scores_path: ScoresPath,
    budget: Budget,
    method: MethodName = AUTO,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="JSON file for the chosen items (default: print the ids)."
        ),
    ] = None,
    harness: Annotated[
        str, typer.Option("--for", help=f"Output format: {', '.join(EXPORTS)}.")
    ] = "ids",
    seed: Seed = 0,
    average: AverageOption = None,
    force: Force = False,
) -> None:
    """Choose items to run.

    For adaptive methods, only the first batch.

    \b
    fewbench select scores.parquet --method greedy-ridge --budget 50 -o subset.json
    fewbench select scores.parquet --method greedy-ridge --budget 50 --for lm-eval
    Later:  fewbench start scores.parquet --subset subset.json -o run
    """
    check_outputs(output, inputs=[scores_path], force=force)
    scores = load(scores_path, average)
    with at_work("choosing items"):
        subset = select_items(scores, method, budget, seed)
    made = subset.provenance
    whole = find_method(method if made is None else made.method).asks_once
    then = "estimate with the same method" if whole else f"the first of {budget} to run"
    give_subset(subset, scores, output, harness, then)


def give_subset(
    subset: Subset, scores: Scores, output: Path | None, harness: str, then: str
) -> None:
    """Write a subset to a file or print its items, and print its notes."""
    for note in subset.notes:
        say(f"note: {note}")
    if output is None:
        echo(export_items(scores, subset.items, harness))
        return
    with written_whole(output) as temporary:
        temporary.write_text(subset.to_json() + "\n", encoding="utf-8")
    say(f"{output}: {len(subset.items)} items of {scores.n_items}; {then}")
