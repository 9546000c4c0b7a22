"""fewbench select: a plain subset file, for static methods."""

from pathlib import Path
from typing import Annotated

import typer

from fewbench._files import written_whole
from fewbench.cli.options import AverageOption, Budget, MethodName, ScoresPath, Seed, load, say
from fewbench.errors import MethodError
from fewbench.evaluation import Evaluation
from fewbench.runners import EXPORTS, export_items


def select(
    scores_path: ScoresPath,
    method: MethodName,
    budget: Budget,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the subset as JSON.")
    ] = None,
    harness: Annotated[
        str, typer.Option("--for", help=f"Print items for: {', '.join(EXPORTS)}.")
    ] = "ids",
    seed: Seed = 0,
    average: AverageOption = None,
) -> None:
    """Choose the items once and for all, for a method that needs no target to choose.

    \b
    fewbench select scores.parquet --method kmedoids-ridge --budget 50 -o subset.json
    fewbench select scores.parquet --method kmedoids-ridge --budget 50 --for lm-eval
    Later:  fewbench start scores.parquet --subset subset.json -o run
    """
    scores = load(scores_path, average)
    subset = Evaluation(scores, method, budget, seed=seed).subset
    if subset is None:
        raise MethodError(
            f"{method} chooses items for the target at hand", hint="use fewbench start"
        )
    if output is None:
        print(export_items(scores, subset.items, harness))
        return
    with written_whole(output) as temporary:
        temporary.write_text(subset.to_json() + "\n", encoding="utf-8")
    say(f"{output}: {len(subset.items)} items of {scores.n_items}; estimate with the same method")
