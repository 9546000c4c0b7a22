"""What all `fewbench run` commands share: their options, the progress, and the result."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError

from fewbench.cli.evaluate import MEASURING
from fewbench.cli.options import load
from fewbench.cli.outputs import FORMATS, check_output_folder, check_outputs, write
from fewbench.cli.progress import status_line
from fewbench.cli.text import echo, say
from fewbench.errors import RunError
from fewbench.evaluation import Estimate, Evaluation, Stop
from fewbench.scores import Scores

if TYPE_CHECKING:
    from fewbench.runners.driving import Runner
    from fewbench.runners.result import Progress, RunResult
    from fewbench.runners.run import Run

STOPPED, INTERRUPTED_CODE = 1, 130  # exit codes: by a failure of the model; by Ctrl-C
SHARE = 0.1
"""Largest share of the time that estimates for the progress line may take."""
SECONDS_PER_CELL = 1.3e-5
"""About how long the first interval takes, for each cell of the source models' table."""
OFTEN = 1.0  # seconds between estimates without an interval

Method = Annotated[
    str,
    typer.Option(
        "--method",
        "-m",
        help="Method name, see fewbench methods (auto: chosen by a quick backtest on the source "
        "models).",
    ),
]
Items = Annotated[
    int | None, typer.Option("--budget", "-n", help="Most items to run per target.", min=1)
]
HalfWidth = Annotated[
    float | None,
    typer.Option(
        help="Stop once the interval is at most this much to either side, on the scale of the "
        "scores."
    ),
]
Level = Annotated[float, typer.Option(help="Level of the interval.")]
Cost = Annotated[
    float | None,
    typer.Option(
        help="Most to spend per target: by the column `cost` of the items, and as reported."
    ),
]
Tokens = Annotated[int | None, typer.Option(help="Most tokens per target, as reported.")]
Minutes = Annotated[float | None, typer.Option(help="Longest time, of all targets together.")]
BatchSize = Annotated[
    int | None,
    typer.Option("--batch", help="Most items per batch (default: all that are asked at a time)."),
]
Targets = Annotated[
    list[str] | None,
    typer.Option("--target", "-t", help="Name of a target model. Repeat it for several."),
]
Tries = Annotated[int, typer.Option(help="How often an item may fail until it is skipped.", min=1)]
Output = Annotated[
    Path,
    typer.Option(
        "--output", "-o", help="Folder of the evaluation. The same command goes on there."
    ),
]
AcceptFractions = Annotated[
    bool,
    typer.Option(
        "--accept-fractions",
        help="Take scores between right and wrong where the source models have none.",
    ),
]
AcceptChanges = Annotated[
    bool,
    typer.Option(
        "--accept-changes", help="Go on in the folder although the model is run in another way."
    ),
]


@dataclass(frozen=True)
class Settings:
    """The options that all commands share."""

    scores_path: Path
    method: str
    stop: Stop
    targets: Sequence[str]
    seed: int
    folder: Path
    batch: int | None = None
    tries: int = 3
    accept_differences: bool = False
    accept_fractions: bool = False
    accept_changes: bool = False
    strict: bool = False
    report: Path | None = None
    force: bool = False
    as_json: bool = False

    def load(self) -> Scores:
        """Check the outputs, and read the scores."""
        check_output_folder(self.folder, inputs=[self.scores_path])
        check_outputs(self.report, inputs=[self.scores_path], force=self.force, formats=FORMATS)
        return load(self.scores_path, pack=True)

    def of_run(self) -> dict[str, Any]:
        """Return those that are arguments of `Run.open`, by name."""
        names = (
            *("folder", "seed", "scores_path", "batch"),
            *("accept_differences", "accept_fractions", "accept_changes", "strict"),
        )
        return {name: getattr(self, name) for name in names}


def stop_of(
    items: int | None,
    half_width: float | None,
    level: float,
    cost: float | None,
    tokens: int | None,
    minutes: float | None,
) -> Stop:
    """Return the limits; RunError if there are none, or one is not possible."""
    if (items, half_width, cost, tokens, minutes) == (None,) * 5:
        raise RunError("no limit given", hint="give -n ITEMS, --half-width, --cost or --minutes")
    try:
        seconds = None if minutes is None else 60 * minutes
        return Stop(
            items=items,
            half_width=half_width,
            level=level,
            cost=cost,
            tokens=tokens,
            seconds=seconds,
        )
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "limits"
        raise RunError(
            f"the limit {name.replace('_', ' ')} is not possible: {first['msg'].lower()}",
            hint="limits are above 0, the level is between 0 and 1",
        ) from error


def run_and_print(runner: "Runner", scores: Scores, settings: Settings) -> None:
    """Run, show progress, print estimates and costs, and write the result to the folder.

    Raises typer.Exit with code 1 after a failure of the model, and 130 after Ctrl-C.
    """
    from fewbench.runners.driving import run_with

    told = Notes()
    with status_line(f"running {runner.name}") as update:
        result = run_with(
            runner,
            scores,
            settings.method,
            settings.stop,
            targets=settings.targets,
            tries=settings.tries,
            on_notes=told.tell,
            on_progress=ProgressLine(update),
            on_end=lambda: update(MEASURING),
            **settings.of_run(),
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


def print_result(result: "RunResult", scores: Scores, settings: Settings, told: Notes) -> None:
    """Print a result, write it to the folder, and exit with its code if it is not whole."""
    from fewbench.runners.driving import INTERRUPTED
    from fewbench.runners.result import RESULT

    path = result.save(settings.folder / RESULT)
    echo(result.to_json() if settings.as_json else str(result))
    told.tell(result.notes)
    if settings.report is not None and result.estimates:
        opened = Evaluation.open(settings.folder, scores)
        source = settings.scores_path.name
        write(result.page(opened, source=source), result, settings.report)
    say(f"result: {path}. More answers, other levels: fewbench estimate {settings.folder}")
    if result.stopped == INTERRUPTED:
        say("The same command goes on from here.")
        raise typer.Exit(INTERRUPTED_CODE)
    if result.is_failed:
        raise typer.Exit(STOPPED)


class ProgressLine:
    """Shows how far a run is: with the interval, as long as that takes little time.

    `estimates` holds the last estimate of each target.
    """

    def __init__(
        self, update: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._update, self._clock = update, clock
        self._started, self._used, self._last = clock(), 0.0, 0.0
        self._shown = 0.0
        self.estimates: dict[str, Estimate] = {}

    def __call__(self, run: "Run", target: str) -> None:
        """Show a target's state after a batch."""
        now = self._clock()
        sources = run.evaluation.scores
        self._last = self._last or SECONDS_PER_CELL * sources.n_models * sources.n_items
        is_known = run.stop.half_width is not None  # then the estimate was made anyway
        enough = self._used + self._last <= SHARE * (now - self._started)
        is_due = now - self._shown >= OFTEN
        found = run.progress(target, interval=is_known or (enough and is_due), score=is_due)
        if found.score is None and self._shown and not is_due:
            return  # too soon after the last one
        self._shown = self._clock()
        if found.estimate is not None and not is_known:
            self._last = self._clock() - now
            self._used += self._last
        if found.estimate is not None:
            self.estimates[target] = found.estimate
        self._update(progress_text(found, self.estimates.get(target)))


def progress_text(found: "Progress", last: Estimate | None = None) -> str:
    """Return how far a target is, in a line, with the interval of its last estimate."""
    said = [f"{found.target}: {found.answered:,} of {found.of:,} items"]
    if found.score is not None:
        said.append(f"score {found.score:.3g}")
    if last is not None:
        at = "" if last.items_run == found.answered else f" at {last.items_run:,} items"
        ends = f"{last.interval.low:.3g} .. {last.interval.high:.3g}"
        said.append(f"{last.level:.0%} interval {ends}{at}")
    full = found.total / max(1, found.answered)  # what all items would cost
    if found.spent.cost:
        said.append(f"cost {found.spent.cost:,.3g} of {found.spent.cost * full:,.3g} in full")
    if found.spent.tokens:
        said.append(f"{found.spent.tokens:,} tokens of {found.spent.tokens * full:,.0f} in full")
    return " · ".join(said)
