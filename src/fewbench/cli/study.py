"""fewbench study: analyses of single methods on models with known full scores."""

import json
from pathlib import Path
from typing import Annotated

import typer

from fewbench.cli.options import (
    AverageOption,
    Budget,
    Cluster,
    Json,
    MethodName,
    ScoresPath,
    Seed,
    group_of_commands,
    load,
)
from fewbench.cli.outputs import Force, check_outputs
from fewbench.cli.progress import progress_bar
from fewbench.cli.text import echo, say, wrapped
from fewbench.study import KINDS, SplitSettings
from fewbench.study.tailoredbench import NativeAnalysis, analyze

TITLES = {
    "nearness": "nearness",
    "shares": "number, at random",
    "counts": "number, nearest",
    "items": "maps of items",
    "spread": "medoids",
    "affinity": "families",
    "absence": "no family",
}

study = group_of_commands()


@study.callback()
def _all() -> None:
    """Analyze single methods (TailoredBench).

    \b
    TailoredBench:  fewbench study native-sources scores.parquet --budget 30 -o native-sources.html
    """


@study.command("native-sources")
def native_sources(
    scores_path: ScoresPath,
    budget: Budget,
    method: MethodName = "tailored",
    split: Annotated[
        str | None,
        typer.Option(
            "--split", help=f"One of {', '.join(KINDS)} (default: given if models have roles)."
        ),
    ] = None,
    targets: Annotated[float, typer.Option(help="Share of the models used as targets.")] = 0.25,
    group_by: Annotated[
        str, typer.Option(help="Split group: column of the models that names the group.")
    ] = "family",
    repeats: Annotated[
        int, typer.Option(help="Number of random splits and seeds to average over.")
    ] = 5,
    seed: Seed = 0,
    average: AverageOption = None,
    workers: Annotated[int, typer.Option(help="Number of processes.", min=1)] = 1,
    cluster: Cluster = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="HTML report to write.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Analyze the native sources of TailoredBench and how much they help.

    \b
    fewbench study native-sources scores.parquet --budget 30 -o native-sources.html
    fewbench study native-sources scores.parquet --budget 30 --split every --json
    fewbench study native-sources scores.parquet -n 30 --method "tailored(metric=cosine)"

    \b
    Analyses:
    nearness           estimates from the nearest fifth of the sources to the farthest
    number, at random  estimates from a random share of the native sources
    number, nearest    estimates from a fixed number of nearest sources, and from the method's own
    maps of items      items by the answers of sources and of targets
    medoids            distances of items to their medoids
    families           families of the native sources
    no family          estimates without sources of the target's family
    """
    check_outputs(output, inputs=[scores_path], force=force)
    scores = load(scores_path, average)
    kind = split or ("given" if "role" in scores.models else "random")
    settings = SplitSettings(kind, targets, group_by=group_by)  # type: ignore[arg-type]
    with progress_bar("native sources") as progress:
        found = analyze(
            *(scores, method, budget, settings, repeats, seed, progress),
            workers=workers,
            executor=cluster,
        )
    if output is not None:
        from fewbench.report import write_native

        write_native(found, output, scores_path.name)
        say(f"wrote {output}")
    echo(json.dumps(found.to_dict(), ensure_ascii=False) if as_json else describe(found))


def describe(found: NativeAnalysis) -> str:
    """Return the results as text for a terminal."""
    facts = found.facts
    lines = [
        f"{facts['method']}, {facts['budget']} items, {facts['sources']} sources, "
        f"{facts['targets']} targets, {facts['split']} split, repeats: {facts['repeats']}",
        *(f"warning: {warning}" for warning in found.warnings),
    ]
    blocks = [wrapped(line, 2) for line in lines]
    width = max(map(len, TITLES.values())) + 2
    said = found.findings | {key: f"not made: {why}" for key, why in found.absent.items()}
    blocks += [
        "",
        *(wrapped(f"{TITLES[k]:<{width}}{said[k]}", width) for k in TITLES if k in said),
    ]
    return "\n".join(blocks)
