"""fewbench get: fetch public per-item results by name."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from fewbench._names import counted
from fewbench._page import as_text
from fewbench._text import table
from fewbench.cli.options import Cluster, Filter, Json, Metric
from fewbench.cli.outputs import Force, check_outputs
from fewbench.cli.progress import at_work, progress_bar
from fewbench.cli.text import echo, say
from fewbench.errors import PublicError
from fewbench.public import (
    PublicFiles,
    PublicResults,
    find_public_files,
    get_pack,
    public_sources,
)
from fewbench.public.get import megabytes, source_file
from fewbench.readers import FORMS

PACK = "pack"
LISTED = ("models", "items", "size", "license")


def get(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A source of fewbench get list, or hub:ORG/DATASET; or list."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Scores file to write (.parquet; default: NAME.parquet)."
        ),
    ] = None,
    benchmark: Annotated[
        str | None, typer.Option(help="Benchmark, if the source has several.")
    ] = None,
    models: Annotated[
        int | None,
        typer.Option(help="Fetch a fixed random sample of so many models (default: all)."),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="Part of the benchmark; for hub:ORG/DATASET, a folder."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="For hub:ORG/DATASET: format, if it is not recognized: "
            + ", ".join((*FORMS, PACK))
            + ".",
        ),
    ] = None,
    revision: Annotated[
        str | None, typer.Option(help="Commit, tag or release (default: the newest).")
    ] = None,
    metric: Metric = None,
    filter_: Filter = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="Folder for fetched files (default: in your cache directory)."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(help="Number of processes that read logs (default: all processors)."),
    ] = None,
    cluster: Cluster = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show files and bytes; fetch only listings.")
    ] = False,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Fetch other models' public per-item results of a benchmark.

    Files are kept in your cache directory. An interrupted download continues when you run it
    again. NAME.source.json says where the results come from. Respect the license of the source.

    \b
    Sources:          fewbench get list
    Files and bytes:  fewbench get livebench --dry-run
    One benchmark:    fewbench get open-llm-leaderboard-v1 --benchmark gsm8k --models 300
    Agents:           fewbench get swe-bench --split verified -o swe.parquet
    Your repository:  fewbench get hub:ORG/DATASET --from lm-eval -o scores.parquet
    A pack:           fewbench get hub:ORG/NAME --from pack -o mmlu-100.few
    """
    if name == "list":
        given = [output, benchmark, models, split, form, revision, metric, filter_, cache]
        given += [workers, cluster]
        if dry_run or force or any(one is not None for one in given):
            raise PublicError("get list has no options but --json", hint="omit the others")
        _list(as_json)
        return
    if form == PACK or name.endswith(".few"):
        given = [benchmark, models, split, metric, filter_, workers, cluster]
        if dry_run or as_json or any(one is not None for one in given):
            raise PublicError("a pack is one file", hint="give -o, --revision, --cache, --force")
        with progress_bar("fetching (MB)") as progress:
            pack = get_pack(
                *(name, output), revision=revision, cache=cache, force=force, progress=progress
            )
        echo(f"wrote {pack}. Next: fewbench pack show {pack}")
        return
    if output is None:
        parts = [name.rpartition("/")[2], split, benchmark]
        output = Path("-".join(one for one in parts if one).replace("/", "-") + ".parquet")
    if output.suffix != ".parquet":  # before the work
        raise PublicError(
            f"{output}: scores are saved as Parquet", hint=f"use {output.with_suffix('.parquet')}"
        )
    if not dry_run:
        check_outputs(output, source_file(output), force=force)
    with at_work(f"listing {name}"):
        files = find_public_files(
            name,
            benchmark=benchmark,
            models=models,
            split=split,
            revision=revision,
            form=form,
            metric=metric,
            filter=filter_,
            cache=cache,
        )
    if dry_run:
        _show(files, as_json)
        return
    say(f"{files!r}")
    if left := files.n_missing_bytes:
        say(f"fetching {megabytes(left)} into {files.folder}")
    with progress_bar("fetching (MB)") as progress:
        files.fetch(progress)
    with at_work("reading"):
        results = files.read((os.cpu_count() or 1) if workers is None else workers, cluster)
    for note in results.notes:
        say(f"note: {note}")
    with at_work("writing"):
        results = results.save(output, force=force)
    _report(results, as_json)


def _report(results: PublicResults, as_json: bool) -> None:
    path = results.path
    with at_work("auditing"):
        found = results.audit
    if as_json:
        said = {"written": str(path), **results.to_dict(), "audit": found.to_dict()}
        echo(json.dumps(said, indent=2, ensure_ascii=False))
        return
    source = results.files.source
    echo(f"wrote {path}")
    echo(f"license: {source.license}; cite: {source.cite}\n")
    echo(as_text(found.page(str(path))))


def _show(files: PublicFiles, as_json: bool) -> None:
    if as_json:
        echo(json.dumps(files.to_dict(), indent=2, ensure_ascii=False))
        return
    unknown = sum(one.size is None for one in files.found.files)
    known = sum(one.size or 0 for one in files.found.files)
    echo(f"{files!r}")
    echo(f"cite: {files.source.cite}")
    size = megabytes(known) + (f" and {counted(unknown, 'file')} of unknown size" * bool(unknown))
    echo(f"{size}; {megabytes(files.n_missing_bytes)} to fetch into {files.folder}")
    for note in files.notes:
        echo(f"note: {note}")
    for one in files.found.files[:5]:
        echo(f"  {one.path}")
    if len(files.found.files) > 5:
        echo(f"  and {len(files.found.files) - 5:,} more")


def _list(as_json: bool) -> None:
    sources = public_sources()
    if as_json:
        rows = sources.reset_index().to_dict("records")
        echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    listed = [[str(name), *(str(row[key]) for key in LISTED)] for name, row in sources.iterrows()]
    echo(table(["name", *LISTED], listed, left=5))
    echo("\nbenchmarks and splits, how to cite:")
    for name, row in sources.iterrows():
        echo(f"\n{name}: {row['title']} ({row['url']})")
        for key in ("benchmarks", "splits"):
            if row[key]:
                echo(f"  --{key[:-1]} {row[key]}")
        echo(f"  cite: {row['cite']}")
    echo("\nNumbers and sizes are approximate. hub:ORG/DATASET reads any dataset repository.")
