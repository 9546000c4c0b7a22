"""Options that several commands share, and how to read their values."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fewbench._names import some, split_names
from fewbench._progress import at_work
from fewbench._text import quoted, say, say_note
from fewbench.cli import completion
from fewbench.errors import FewbenchError, FieldError, ReaderError, RunError

if TYPE_CHECKING:  # imported where used: the help does not wait for pandas and SciPy
    from fewbench.evaluation import Evaluation, Stop
    from fewbench.evaluation.scoring import Scoring
    from fewbench.scores import Average, Scale, Scores

ScoresOrPack = Annotated[
    Path,
    typer.Argument(
        metavar="SCORES",
        help="Scores file of fewbench import, .npz file, folder of logs, pack (.few), a file of "
        "items without any scores (.csv, .jsonl or .parquet with a column id), or a public source: "
        "NAME or NAME:BENCHMARK of fewbench get list.",
    ),
]
Folder = Annotated[
    Path,
    typer.Argument(metavar="DIR", help="Folder of the evaluation.", autocompletion=completion.runs),
]
FolderOrTarget = Annotated[
    Path,
    typer.Argument(
        metavar="DIR",
        help="Folder of the evaluation, or DIR:TARGET.",
        autocompletion=completion.runs,
    ),
]
TargetName = Annotated[
    str | None,
    typer.Option(
        "--target", "-t", metavar="NAME", help="Target model.", autocompletion=completion.targets
    ),
]
Targets = Annotated[
    list[str] | None,
    typer.Option("--target", "-t", metavar="NAME", autocompletion=completion.targets),
]
ItemsOf = Annotated[
    str | None,
    typer.Option(
        metavar="RUN",
        autocompletion=completion.runs,
        help="Run the items of an earlier run first, so that the two can be compared item by item: "
        "its folder, or FOLDER:TARGET.",
    ),
]
MovedScores = Annotated[
    Path | None,
    typer.Option(
        "--scores",
        help="Scores file of the source models if it was moved, or a public source.",
    ),
]
AverageOption = Annotated[
    Literal["micro", "macro"] | None,
    typer.Option(
        "--average", help="Full score: mean over items (micro) or over task scores (macro)."
    ),
]
MetricOption = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="Metric to read from the logs that the run keeps, in place of that of its answers.",
    ),
]
FilterOption = Annotated[
    str | None, typer.Option("--filter", metavar="NAME", help="Filter to read from these logs.")
]
WeightsOption = Annotated[
    Path | None,
    typer.Option(
        "--weights",
        metavar="FILE",
        help="Weights in the full score: a table with a column weight, and task (how much a task "
        "counts, whatever its size) or id. A weight of 0 retires it.",
    ),
]
DropItemsOption = Annotated[
    Path | None,
    typer.Option(
        "--drop-items",
        metavar="FILE",
        help="Items that are retired and do not count: a text file with one id a line, or a table "
        "with a column id.",
    ),
]
SCORING = {
    "average": AverageOption,
    "metric": MetricOption,
    "filter": FilterOption,
    "weights": WeightsOption,
    "drop_items": DropItemsOption,
}
"""Options that ask another question of answers that are there."""
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="WHERE",
        help="Run on a cluster instead: dask://HOST:PORT, ray://HOST:PORT, dask-local or "
        "ray-local.",
    ),
]
Workers = Annotated[int, typer.Option(min=1)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse wrong replies that were truncated at a token limit or filtered, and replies "
        "of another model. By default they count, and the estimate carries a warning.",
    ),
]
AcceptDifferences = Annotated[
    bool,
    typer.Option(
        "--accept-differences",
        help="Accept other prompts, settings, answer keys or scoring than those of the source "
        "models. Estimates then carry a warning.",
    ),
]


def load(
    path: Path,
    average: "Average | None" = None,
    *,
    items: bool = False,
    kept: list[str] | None = None,
    is_known: bool = False,
) -> "Scores":
    """Read the scores that a user names, and print notes unless the user has seen them.

    `items` says whether the command can do without a table: with a file of items alone, or a pack
    of the chosen ones. ReaderError and PackError if it cannot. `kept` receives the notes.
    """
    from fewbench.public import located, open_scores
    from fewbench.scores.roles import as_scores

    place = located(path)  # first: fetching shows its own progress
    with at_work(f"reading {path}"):
        reading = open_scores(place)
        scores = reading.scores if items else as_scores(reading.scores)
    for note in () if is_known else reading.notes:
        say_note(note)
    for credit in () if is_known else scores.credits:
        say(f"source results: {credit}")
    if kept is not None:
        kept += reading.notes
    if not scores.n_models and not items:
        raise ReaderError(
            f"{path}: items without scores of models, which this command needs",
            hint="run a model on them (fewbench run, fewbench start), or name a scores file",
            kind="missing",
        )
    return scores.averaged(average or scores.average)


def budget_of(budget: str | None, scores: "Scores | None") -> int | None:
    """Return the number of items of a budget; without one, that of a pack."""
    from fewbench.evaluation.opening import count_items
    from fewbench.evaluation.packed import provenance_of

    if budget is None:
        if scores is None or scores.origin is None:
            return None
        return provenance_of(scores.origin, scores.n_items).budget
    n_items = count_items(budget, scores)
    say_shares([budget], scores)
    return n_items


def stop_of(
    budget: str | None, scores: "Scores | None", *, is_needed: bool = True, **limits: Any
) -> "Stop | None":
    """Return the limits that are typed; RunError if there are none or one is not possible.

    None if there are none and none `is_needed`. `limits` are fields of `Stop`.
    """
    from fewbench.evaluation import Stop

    limits["items"] = budget_of(budget, scores)
    if all(limit is None for name, limit in limits.items() if name != "level"):
        if not is_needed:
            return None
        raise RunError(
            "no limit given",
            hint="give -n ITEMS, --half-width or --cost; --help lists all limits",
        )
    try:
        return Stop(**limits)
    except FieldError as error:
        name = error.field.replace("_", " ") or "limits"
        raise RunError(
            f"the limit {name} is not possible: {error.mistake.lower()}",
            hint="limits are above 0, the level is between 0 and 1",
        ) from error


def say_shares(budgets: Iterable[int | str], scores: "Scores | None") -> None:
    """Print how many items each budget is that is a share."""
    from fewbench.evaluation.opening import share_note

    for budget in budgets:
        if scores is not None and (note := share_note(budget, scores)):
            say_note(note)


def scoring_of(given: Mapping[str, Any]) -> "Scoring":
    """Return the question of the options that are typed; their defaults ask none."""
    from fewbench.evaluation.scoring import Scoring

    return Scoring(**{name: given[name] for name in SCORING if given.get(name) is not None})


def split_target(folder: Path, target: str | None) -> tuple[Path, str | None]:
    """Return the folder and the target that DIR or DIR:TARGET names, beside --target.

    FewbenchError if both name one, and not the same.
    """
    from fewbench.evaluation.journal import folder_and_target

    place, named = folder_and_target(str(folder)) or (folder, None)
    if None not in (named, target) and named != target:
        raise FewbenchError(
            f"two targets are named: {named!r} and {target!r}", hint="leave out --target"
        )
    return place, named or target


def open_evaluation(
    folder: Path, scores: Path | None = None, scoring: "Scoring | None" = None
) -> "Evaluation":
    """Open a saved evaluation with its scores, or with those of --scores, and print notes.

    With `scoring`, `scores` have its metric or filter, if it has one.
    """
    from fewbench.evaluation.evaluation import Evaluation

    with at_work(f"opening {folder}"):
        asks_again = scoring is not None and bool(scoring.read_as)
        evaluation = Evaluation.open(folder, None if asks_again else scores)
        if scoring is not None:
            evaluation = evaluation.rescored(scoring, scores if asks_again else None)
    is_new = scores is not None or bool(scoring)  # others were printed at the start
    for note in evaluation.read_notes if is_new else evaluation.beyond:
        say_note(note)
    return evaluation


def say_asked(evaluation: "Evaluation", asked: Mapping[str, Sequence[str]]) -> None:
    """Print how many items targets are asked for, and how to run them."""
    items = some((f"{len(items):,} of {name}" for name, items in asked.items()), quotes=False)
    say(
        f"asked for more items: {items}. Next: rerun the command of fewbench run, or fewbench ask "
        f"{quoted(evaluation.folder)}"
    )


def parse_range(text: str | None, lower_is_better: bool) -> "Scale | None":
    """Read --range LOW,HIGH, or None if neither option was given."""
    from fewbench.scores import Scale

    if text is None:
        return Scale(lower_is_better=True) if lower_is_better else None
    ends = text.split(",")
    try:
        low, high = (float(end) for end in ends)
    except ValueError as error:
        raise FewbenchError(
            f"cannot read the range {text!r}", hint="as in --range 0,100"
        ) from error
    return Scale(low, high, lower_is_better)


def split_texts(typed: list[str] | None) -> list[str]:
    """Split the values of an option that can be repeated at commas (empty if it is not given)."""
    return split_names(",".join(typed)) if typed else []
