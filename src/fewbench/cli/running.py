"""What all `fewbench run` commands share: their options, the progress, and the result."""

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer
from typer.models import OptionInfo

from fewbench._progress import ESTIMATING, status_line
from fewbench._text import echo, masked_arguments, quoted, say, say_note
from fewbench.cli.documented import as_command, documented, option_parameter
from fewbench.cli.help import USAGE_ERROR, PlainCommand
from fewbench.cli.options import (
    AcceptDifferences,
    AverageOption,
    ItemsOf,
    Json,
    Strict,
    Targets,
    load,
    stop_of,
)
from fewbench.cli.outputs import (
    FORMATS,
    Force,
    Report,
    check_output_folder,
    check_outputs,
    write,
)
from fewbench.errors import FewbenchError, RunError
from fewbench.evaluation import Evaluation, Stop
from fewbench.evaluation.changes import share_of_start
from fewbench.evaluation.journal import HEADER
from fewbench.runners.progress import ProgressLine
from fewbench.runners.run_folder import renewed
from fewbench.scores import Scores

if TYPE_CHECKING:
    from fewbench.runners.result import RunResult

STOPPED, INTERRUPTED_CODE = 1, 130  # exit codes: by a failure of the model; by Ctrl-C

AFTER = "fewbench arguments"
"""What follows -- on the command line."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options that all commands share.

    Parameters
    ----------
    scores
        Scores file of fewbench import, .npz file, folder of logs, pack (.few), a file of items
        without any scores, or a public source: NAME or NAME:BENCHMARK of fewbench get list.
    output
        Folder of the evaluation. Rerun the command to resume.
    method
        Method name, see fewbench methods (auto: chosen by a quick backtest on the source models).
    budget
        Largest number of items to run per target, or a share such as 10% (of each task's items, and
        at least 20 of each task).
    half_width
        Stop once the half width of the interval is at most this, on the scale of the scores.
    level
        Level of the interval.
    cost
        Largest cost per target, as the program reports it or else from the items' column cost. You
        can add a unit, as in '75 $'. Reported costs may exceed it by the answers in progress.
    tokens
        Largest number of tokens per target, as reported. They may exceed it like the cost.
    minutes
        Longest time for all targets together, in minutes.
    batch
        Largest number of items per batch (default: as many as the method asks for).
    target
        Name of a target model (default: the model's name). Repeat it for several. In a folder with
        other targets, a new target gets their items first.
    repeats
        Number of times to run each item. A new round begins once all items ran; an item's score is
        the mean of its answers. More items tell more than more runs of few items.
    tries
        Number of failures after which an item is skipped.
    accept_fractions
        Accept scores between right and wrong where the source models have none.
    accept_changes
        Resume although the model or its settings have changed.
    retry_skipped
        Run the items again that failed and were skipped.
    retry
        "limits": run the items again whose answers a limit of the harness ended (on time, tokens or
        messages). New answers replace these.
    fresh
        Start over; with --target, only these targets. The earlier run is kept in DIR.1, DIR.2, …
    seed
        Random seed.
    """

    scores: Annotated[Path | None, typer.Argument(metavar="SCORES")] = None
    output: Path
    method: str = "auto"
    budget: str | None = None
    half_width: float | None = None
    level: float = 0.9
    cost: str | None = None
    tokens: int | None = None
    minutes: float | None = None
    batch: int | None = None
    target: Targets = None
    items_of: ItemsOf = None
    repeats: Annotated[int, typer.Option(min=1)] = 1
    tries: Annotated[int, typer.Option(min=1)] = 3
    accept_differences: AcceptDifferences = False
    accept_fractions: bool = False
    accept_changes: bool = False
    retry_skipped: bool = False
    retry: Literal["limits"] | None = None
    strict: Strict = False
    fresh: bool = False
    seed: int = 0
    average: AverageOption = None
    report: Report = None
    force: Force = False
    as_json: Json = False

    @property
    def of_run(self) -> dict[str, Any]:
        """Further arguments of `Run.open`, by name."""
        names = [
            *("seed", "items_of", "batch", "tries", "accept_differences", "accept_fractions"),
            *("accept_changes", "strict", "retry_skipped", "retry", "average", "repeats"),
        ]
        passed = {name: getattr(self, name) for name in names}
        return passed | {"folder": self.output, "scores_path": self.scores}

    def without_scores(self) -> "tuple[RunOptions, Path]":
        """Return the settings of a run without scores, and what was named as scores."""
        if self.scores is None:
            raise RunError("no questions to ask", hint="name a file of questions")
        return replace(self, scores=None), self.scores

    def load(self, notes: list[str]) -> Scores | None:
        """Check the outputs, and read the scores if there are any.

        `notes` receives the notes on the scores. A resumed run does not print them again.
        """
        inputs = [self.scores] if self.scores is not None else []
        check_output_folder(self.output, inputs=inputs)
        check_outputs(self.report, inputs=inputs, force=self.force, formats=FORMATS)
        scores, is_known = None, not self.fresh and (self.output / HEADER).is_file()
        if self.scores is not None:
            scores = load(self.scores, self.average, items=True, kept=notes, is_known=is_known)
        return scores

    @contextmanager
    def room(self) -> Iterator[None]:
        """Make room for a fresh run; a run that is refused leaves the folder as it was."""
        if not self.fresh:
            yield
            return
        kept = None
        try:
            with renewed(self.output, self.target or []) as kept:
                if kept is not None:
                    say_note(f"the earlier run is now in {kept}")
                yield
        except FewbenchError:
            if kept is not None and not kept.exists():
                say_note(f"the earlier run is back in {self.output}")
            raise

    def stop(self, scores: Scores | None) -> Stop | None:
        """Return the limits, or None for those of the run that is followed.

        RunError if there are none, or one is not possible.
        """
        seconds = None if self.minutes is None else 60 * self.minutes
        size = self.budget if self.fresh else share_of_start(self.output, self.budget)
        return stop_of(
            size, scores, is_needed=self.items_of is None, half_width=self.half_width,
            level=self.level, cost=self.cost, tokens=self.tokens, seconds=seconds,
        )  # fmt: skip


def run_command(
    group: typer.Typer, name: str, *without: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds a way of running a model to the group of commands.

    The function takes `RunOptions`, then its own options, which the help lists first; `without` are
    shared options that it has no use for. What follows -- on the command line goes to its parameter
    `arguments`.
    """

    def add(function: Callable[..., None]) -> Callable[..., None]:
        group.command(name, cls=WithArguments)(with_arguments(function, *without))
        return function

    return add


def with_arguments(function: Callable[..., None], *without: str) -> Callable[..., None]:
    """Return a function of `RunOptions` and `arguments` as a command; see `run_command`."""
    run = documented(function, ["options"], [*without, "arguments"])
    shared = {field.name for field in fields(RunOptions)}

    def place(option: inspect.Parameter) -> int:
        is_option = isinstance(get_args(option.annotation)[1], OptionInfo)
        return 0 if not is_option else 1 + (option.name in shared)

    def run_with_arguments(context: typer.Context, **typed: Any) -> None:
        run(**typed, arguments=context.meta[AFTER])

    vars(run_with_arguments)["command_class"] = WithArguments
    options = [option_parameter("context", typer.Context)]
    options += sorted(inspect.signature(run).parameters.values(), key=place)
    return as_command(run_with_arguments, options, run.__doc__ or "")


class WithArguments(PlainCommand):
    """A command that keeps what follows -- for a program or a harness."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line."""
        return [*super().collect_usage_pieces(ctx), "-- ARGUMENTS"]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep what follows --, and read the rest."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[AFTER] = args[at + 1 :]
        try:
            return list(super().parse_args(ctx, args[:at]))
        except USAGE_ERROR as error:
            if at < len(args) or "unexpected extra" not in error.format_message():
                raise
            after = masked_arguments(error.format_message().partition(" (")[2].removesuffix(")"))
            raise RunError(
                f"no -- before {after}", hint=f"put -- before the program: … -- {after}"
            ) from error


def run_and_print(run: "Callable[..., RunResult]", options: RunOptions, name: str) -> None:
    """Run, show progress, print estimates and costs, and write the result to the folder.

    `run` takes scores, method, stop, and what else `run_with` takes; `name` is that of the runner.
    Exits with code 1 after a failure of the model, and 130 after Ctrl-C.
    """
    of_scores: list[str] = []
    scores, notes = options.load(of_scores), Notes(of_scores)
    # On a terminal, Inspect shows the progress itself.
    is_shown = name == "inspect" and sys.stderr.isatty()
    line = nullcontext(_only_end) if is_shown else status_line(f"running {name}")
    with options.room(), line as update:
        result = run(
            scores,
            options.method,
            options.stop(scores),
            targets=options.target or None,
            on_notes=notes.tell,
            on_progress=ProgressLine(update, on_notes=notes.tell),
            on_end=lambda: update(ESTIMATING),
            **options.of_run,
        )
    kept = (*of_scores, *(note for note in result.notes if note not in of_scores))
    print_result(result.model_copy(update={"notes": kept}), scores, options, notes)


class Notes:
    """Prints each note once, and none of those `told` before."""

    def __init__(self, told: Sequence[str] = ()) -> None:
        self._told = set(told)

    def tell(self, notes: Sequence[str]) -> None:
        """Print those of the notes that are new."""
        for note in notes:
            if note not in self._told:
                say_note(note)
            self._told.add(note)


def print_result(
    result: "RunResult", scores: Scores | None, options: RunOptions, told: Notes
) -> None:
    """Print a result, write it to the folder, and exit with its code if it is not whole."""
    from fewbench.runners.driving import INTERRUPTED
    from fewbench.runners.result import RESULT

    path = options.output / RESULT
    result.with_earlier(path).save(path)
    echo(result.to_json() if options.as_json else str(result))
    told.tell(result.notes)
    if options.report is not None and result.estimates:
        evaluation = Evaluation.open(options.output, scores)
        source = "" if options.scores is None else options.scores.name
        write(result.page(evaluation, source=source), result, options.report)
    more = (
        f". Again, or at a different level: fewbench estimate {quoted(options.output)} --level 0.95"
    )
    say(f"result: {path}{more if result.estimates else ''}")
    if result.stopped == INTERRUPTED:
        say("Rerun the command to resume.")
        sys.exit(INTERRUPTED_CODE)  # of other commands, main says that nothing is damaged
    if result.is_failed:
        say("Fix the cause, then rerun the command to resume.")
        raise typer.Exit(STOPPED)


def _only_end(text: str) -> None:
    """Say what happens after Inspect's own display, whose metrics are not estimates."""
    if text == ESTIMATING:
        say_note("the metrics above are means of the samples that ran; fewbench estimates all")
        say(text)
