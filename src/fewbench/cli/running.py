"""What all `fewbench run` commands share: their options, the progress, and the result."""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError

from fewbench._progress import ESTIMATING, status_line
from fewbench._text import echo, say
from fewbench.cli import completion
from fewbench.cli.help import PlainCommand
from fewbench.cli.options import (
    SHARE,
    AcceptDifferences,
    ItemsOf,
    Json,
    Seed,
    Strict,
    budget_of,
    load_sources,
)
from fewbench.cli.outputs import (
    FORMATS,
    Force,
    Report,
    check_output_folder,
    check_outputs,
    write,
)
from fewbench.errors import RunError
from fewbench.evaluation import Evaluation, Stop
from fewbench.runners.progress import ProgressLine, shown
from fewbench.runners.run import set_aside
from fewbench.scores import Sources

if TYPE_CHECKING:
    from fewbench.runners.driving import Runner
    from fewbench.runners.result import RunResult

STOPPED, INTERRUPTED_CODE = 1, 130  # exit codes: by a failure of the model; by Ctrl-C
AFTER = "fewbench arguments"
"""What follows -- on the command line."""


@dataclass(frozen=True)
class RunOptions:
    """The options that all commands share."""

    scores_path: Path | None
    method: str
    budget: str | None
    limits: Mapping[str, Any]
    """Further arguments of `Stop`."""
    targets: Sequence[str]
    folder: Path
    report: Path | None
    force: bool
    is_fresh: bool
    as_json: bool
    of_run: Mapping[str, Any]
    """Further arguments of `Run.open`, by name."""

    def without_scores(self) -> "tuple[RunOptions, Path]":
        """Return the settings of a run without scores, and what was named as scores."""
        if self.scores_path is None:
            raise RunError("no questions to ask", hint="name a file of questions")
        of_run = {**self.of_run, "scores_path": None}
        return replace(self, scores_path=None, of_run=of_run), self.scores_path

    def load(self) -> Sources | None:
        """Check the outputs, read the scores if there are any, and make room for a fresh run."""
        inputs = [self.scores_path] if self.scores_path is not None else []
        check_output_folder(self.folder, inputs=inputs)
        check_outputs(self.report, inputs=inputs, force=self.force, formats=FORMATS)
        scores = None if self.scores_path is None else load_sources(self.scores_path, items=True)
        if self.is_fresh and (kept := set_aside(self.folder)) is not None:
            say(f"note: the earlier run is now in {kept}")
        return scores

    def stop(self, scores: Sources | None) -> Stop | None:
        """Return the limits; None for those of the run whose items are asked.

        RunError if there are none, or one is not possible.
        """
        items = budget_of(self.budget, scores)
        if items is None and all(
            one is None for name, one in self.limits.items() if name != "level"
        ):
            if self.of_run["items_of"] is not None:
                return None
            raise RunError(
                "no limit given", hint="give -n ITEMS, --half-width, --cost or --minutes"
            )
        try:
            return Stop(items=items, **self.limits)
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0]) if first["loc"] else "limits"
            raise RunError(
                f"the limit {name.replace('_', ' ')} is not possible: {first['msg'].lower()}",
                hint="limits are above 0, the level is between 0 and 1",
            ) from error


def _settings(
    *,
    scores: Annotated[
        Path | None,
        typer.Argument(
            metavar="SCORES",
            help="Scores file of fewbench import, .npz file, folder of logs, pack (.few), or a "
            "file of items without any scores.",
        ),
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Folder of the evaluation. Rerun the command to resume."
        ),
    ],
    method: Annotated[
        str,
        typer.Option(
            "--method",
            "-m",
            help="Method name, see fewbench methods (auto: chosen by a quick backtest on the "
            "source models).",
            autocompletion=completion.methods,
        ),
    ] = "auto",
    budget: Annotated[
        str | None,
        typer.Option("--budget", "-n", help=f"Largest number of items to run per target{SHARE}."),
    ] = None,
    half_width: Annotated[
        float | None,
        typer.Option(
            help="Stop once the half width of the interval is at most this, on the scale of the "
            "scores."
        ),
    ] = None,
    level: Annotated[float, typer.Option(help="Level of the interval.")] = 0.9,
    cost: Annotated[
        str | None,
        typer.Option(
            help="Largest cost per target: as the runner reports, or else from the items' column "
            "`cost`. May name its unit, as in '75 $'."
        ),
    ] = None,
    tokens: Annotated[
        int | None, typer.Option(help="Largest number of tokens per target, as reported.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Longest time for all targets together, in minutes.")
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(
            help="Largest number of items per batch (default: all that are asked at a time)."
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            "-t",
            metavar="NAME",
            autocompletion=completion.targets,
            help="Name of a target model (default: the model's name). Repeat it for several. In a "
            "folder that has other targets, it is asked their items first.",
        ),
    ] = None,
    items_of: ItemsOf = None,
    tries: Annotated[
        int, typer.Option(help="Number of failures after which an item is skipped.", min=1)
    ] = 3,
    accept_differences: AcceptDifferences = False,
    accept_fractions: Annotated[
        bool,
        typer.Option(
            "--accept-fractions",
            help="Accept scores between right and wrong where the source models have none.",
        ),
    ] = False,
    accept_changes: Annotated[
        bool,
        typer.Option(
            "--accept-changes",
            help="Resume although the model or its settings have changed.",
        ),
    ] = False,
    retry_skipped: Annotated[
        bool,
        typer.Option("--retry-skipped", help="Run the items again that failed and were skipped."),
    ] = False,
    strict: Strict = False,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh", help="Start anew. The folder of the earlier run is kept as DIR.1, DIR.2, …"
        ),
    ] = False,
    seed: Seed = 0,
    report: Report = None,
    force: Force = False,
    as_json: Json = False,
) -> RunOptions:
    return RunOptions(
        scores_path=scores,
        method=method,
        budget=budget,
        limits={
            "half_width": half_width,
            "level": level,
            "cost": cost,
            "tokens": tokens,
            "seconds": None if minutes is None else 60 * minutes,
        },
        targets=target or [],
        folder=output,
        report=report,
        force=force,
        is_fresh=fresh,
        as_json=as_json,
        of_run={
            "folder": output,
            "seed": seed,
            "scores_path": scores,
            "items_of": items_of,
            "batch": batch,
            "tries": tries,
            "accept_differences": accept_differences,
            "accept_fractions": accept_fractions,
            "accept_changes": accept_changes,
            "strict": strict,
            "retry_skipped": retry_skipped,
        },
    )


def run_command(
    group: typer.Typer, name: str, *without: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds a way of running a model to the group of commands.

    The function takes `Settings`, then its own options; `without` are shared options that it has
    no use for. What follows -- on the command line goes to its parameter `arguments`.
    """

    def add(function: Callable[..., None]) -> Callable[..., None]:
        shared, own = (inspect.signature(one).parameters for one in (_settings, function))
        rest = [one for key, one in own.items() if key not in ("settings", "arguments")]
        common = [one for key, one in shared.items() if key not in without]

        def run(**given: Any) -> None:
            words = {key: given.pop(key) for key in shared if key in given}
            defaults = {key: shared[key].default for key in without}
            given["arguments"] = given.pop("context").meta.get(AFTER, [])
            function(_settings(**words, **defaults), **given)

        context = inspect.Parameter(
            "context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context
        )
        every = [context]
        every += [one.replace(kind=one.KEYWORD_ONLY) for one in (common[0], *rest, *common[1:])]
        run.__doc__ = function.__doc__
        vars(run)["__signature__"] = inspect.Signature(every)
        run.__annotations__ = {one.name: one.annotation for one in every}
        group.command(name, cls=_WithArguments)(run)
        return function

    return add


class _WithArguments(PlainCommand):
    """A command that keeps what follows -- for a program or a harness."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "-- ARGUMENTS"]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            args, ctx.meta[AFTER] = args[:at], args[at + 1 :]
        return list(super().parse_args(ctx, args))


def run_and_print(runner: "Runner", settings: RunOptions) -> None:
    """Run, show progress, print estimates and costs, and write the result to the folder.

    Raises typer.Exit with code 1 after a failure of the model, and 130 after Ctrl-C.
    """
    from fewbench.runners.driving import run_with

    scores, told = settings.load(), Notes()
    with shown(runner.name) as progress:
        result = run_with(
            runner,
            scores,
            settings.method,
            settings.stop(scores),
            targets=settings.targets or None,
            on_notes=told.tell,
            **progress,
            **settings.of_run,
        )
    print_result(result, scores, settings, told)


class Notes:
    """Prints each note once."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def tell(self, notes: Sequence[str]) -> None:
        """Print those of the notes that are new."""
        for note in notes:
            if note not in self._told:
                say(f"note: {note}")
            self._told.add(note)


def print_result(
    result: "RunResult", scores: Sources | None, settings: RunOptions, told: Notes
) -> None:
    """Print a result, write it to the folder, and exit with its code if it is not whole."""
    from fewbench.runners.driving import INTERRUPTED
    from fewbench.runners.result import RESULT

    path = settings.folder / RESULT
    result.with_earlier(path).save(path)
    echo(result.to_json() if settings.as_json else str(result))
    told.tell(result.notes)
    if settings.report is not None and result.estimates:
        opened = Evaluation.open(settings.folder, scores)
        source = "" if settings.scores_path is None else settings.scores_path.name
        write(result.page(opened, source=source), result, settings.report)
    say(f"result: {path}. More answers, other levels: fewbench estimate {settings.folder}")
    if result.stopped == INTERRUPTED:
        say("Rerun the command to resume.")
        raise typer.Exit(INTERRUPTED_CODE)
    if result.is_failed:
        raise typer.Exit(STOPPED)


def run_in_inspect(run: "Callable[..., RunResult]", settings: RunOptions) -> None:
    """Run with the settings, show progress, and print the result.

    `run` takes scores, method, stop, and what else `run_inspect` takes.
    """
    scores, told = settings.load(), Notes()
    # On a terminal, Inspect shows the progress itself.
    line = nullcontext(_only_end) if sys.stderr.isatty() else status_line("running inspect")
    with line as update:
        result = run(
            scores,
            settings.method,
            settings.stop(scores),
            targets=settings.targets or None,
            quiet=settings.as_json,
            on_notes=told.tell,
            on_progress=ProgressLine(update),
            on_end=lambda: update(ESTIMATING),
            **settings.of_run,
        )
    print_result(result, scores, settings, told)


def _only_end(text: str) -> None:
    """Say what happens after Inspect's own display."""
    if text == ESTIMATING:
        say(text)
