"""fewbench pack: a benchmark's few items, with all that estimates need, in one file."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from fewbench.cli.options import (
    AverageOption,
    Cluster,
    Folder,
    Json,
    ScoresPath,
    Seed,
    load,
)
from fewbench.cli.outputs import Force, check_outputs
from fewbench.cli.progress import at_work, status_line
from fewbench.cli.text import echo, say
from fewbench.errors import PackError
from fewbench.methods.catalogue import AUTO
from fewbench.scores.pack_files import SUFFIX

if TYPE_CHECKING:
    from fewbench.packs import Pack


class _MakesByDefault(TyperGroup):
    """A group in which a first argument that is no command is the scores file of `make`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            args = ["make", *args]
        return super().resolve_command(ctx, args)


pack = typer.Typer(
    cls=_MakesByDefault,
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@pack.callback()
def _all() -> None:
    """Make a pack: a benchmark's few items in one file.

    A pack holds the chosen items, and of the source models what estimates from these items need.
    Use a pack in place of SCORES in start and run. Options of fewbench pack SCORES: see
    fewbench pack make --help.

    \b
    fewbench pack scores.parquet -m greedy-ridge -n 100 -o mmlu-100.few
    fewbench pack show mmlu-100.few
    fewbench start mmlu-100.few -o run
    fewbench pack refresh run newer.few
    """


@pack.command()
def make(
    scores_path: ScoresPath,
    output: Annotated[Path, typer.Option("--output", "-o", help="Pack to write (.few).")],
    method: Annotated[
        str,
        typer.Option(
            "--method",
            "-m",
            help="Method name, see fewbench methods (auto: chosen by a quick backtest on the "
            "source models).",
        ),
    ] = AUTO,
    budget: Annotated[
        int, typer.Option("--budget", "-n", help="Number of items of each benchmark.", min=1)
    ] = 100,
    name: Annotated[
        str | None, typer.Option(help="Name of the pack (default: that of the file).")
    ] = None,
    license_: Annotated[
        str | None, typer.Option("--license", help="License of the source models' results.")
    ] = None,
    cite: Annotated[str | None, typer.Option(help="How to cite the results.")] = None,
    anonymous: Annotated[
        bool, typer.Option("--anonymous", help="Leave out names and dates of the source models.")
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="One benchmark for each value of this column of the items: task, group, …",
        ),
    ] = None,
    backtest: Annotated[
        bool, typer.Option(help="Measure the method on held-out source models.")
    ] = True,
    repeats: Annotated[int, typer.Option(help="Repeats of the backtest.", min=3)] = 3,
    jobs: Annotated[
        int, typer.Option(help="Processes for the backtest and the method's errors.", min=1)
    ] = 1,
    cluster: Cluster = None,
    seed: Seed = 0,
    average: AverageOption = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Make a pack of a few items of a benchmark.

    \b
    fewbench pack scores.parquet -m greedy-ridge -n 100 -o mmlu-100.few
    fewbench pack scores.parquet -n 50 --by task -o tasks.few --license MIT --anonymous
    """
    from fewbench.packs import pack as make_pack

    if output.suffix != SUFFIX:
        raise PackError(
            f"{output}: a pack's name ends in {SUFFIX}", hint=f"use {output.with_suffix(SUFFIX)}"
        )
    check_outputs(output, inputs=[scores_path], force=force)
    scores = load(scores_path, average)
    with status_line("packing:") as update:
        made = make_pack(
            scores,
            method,
            budget,
            name=name or output.stem,
            license=license_,
            cite=cite,
            anonymous=anonymous,
            by=by,
            seed=seed,
            backtest=backtest,
            repeats=repeats,
            jobs=jobs,
            executor=cluster,
            on_step=update,
        )
    made.save(output, force=force)
    if as_json:
        echo(json.dumps(_with_size(made, output), indent=2))
        return
    echo(f"wrote {output} ({_kilobytes(output)})")
    echo(str(replace(made, source=output)))


@pack.command()
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Pack (.few).")],
    report: Annotated[
        Path | None, typer.Option(help="Write the pack's page (HTML) to this file.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Show what is in a pack, what it was made from, and how good it is.

    \b
    fewbench pack show mmlu-100.few
    """
    from fewbench.packs import open_pack

    check_outputs(report, inputs=[file], force=force)
    opened = open_pack(file)
    if report is not None:
        from fewbench.report import write_report

        say(f"wrote {write_report(opened, report)}")
    if as_json:
        echo(json.dumps(_with_size(opened, opened.source), indent=2))
        return
    echo(f"{file} ({_kilobytes(opened.source)})")
    echo(str(opened))


@pack.command()
def refresh(
    folder: Folder,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The newer pack (.few).")],
    level: Annotated[float, typer.Option(help="Stated coverage of the interval.")] = 0.9,
    as_json: Json = False,
) -> None:
    """Estimate an old run again with a newer pack, and show what moved.

    The run itself is not changed. Answers to items that the newer pack does not ask for are not
    used.

    \b
    fewbench pack refresh run mmlu-100-2027.few
    """
    from fewbench.packs import refresh_pack

    with at_work("estimating again"):
        found = refresh_pack(folder, file, level)
    echo(json.dumps(found.to_dict(), indent=2) if as_json else str(found))


def _kilobytes(path: Path) -> str:
    return f"{path.stat().st_size / 1024:,.0f} kB"


def _with_size(made: "Pack", path: Path) -> dict[str, Any]:
    return {"file": str(path), "bytes": path.stat().st_size, **made.to_dict()}
