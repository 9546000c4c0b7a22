"""fewbench track: the checkpoints of a training run."""

from pathlib import Path
from typing import Annotated

import typer

from fewbench._names import counted
from fewbench.cli.options import (
    AverageOption,
    ItemColumn,
    Json,
    MovedScores,
    ScoreColumn,
    load,
)
from fewbench.cli.outputs import FORMATS, WRITES, Force, check_outputs, show
from fewbench.cli.progress import at_work
from fewbench.cli.text import echo, say
from fewbench.decide import add_checkpoint
from fewbench.decide import track as follow
from fewbench.decide.track_folder import is_tracked, open_folder
from fewbench.errors import AnswersError, EvaluationError
from fewbench.evaluation import Evaluation
from fewbench.evaluation.errors import NEARLY_COMPLETE
from fewbench.readers import Columns, are_logs, read
from fewbench.scores import Scores

MEASURING = "measuring the method's error on held-out source models …"


def track(
    path: Annotated[
        Path,
        typer.Argument(metavar="PATH", help="Scores file, or folder of the run or an evaluation."),
    ],
    answers: Annotated[
        Path | None,
        typer.Argument(metavar="ANSWERS", help="With --add: table of answers, or harness logs."),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            "--run", help="Checkpoints in the scores file: their family, or how their names start."
        ),
    ] = None,
    add: Annotated[
        str | None, typer.Option("--add", metavar="NAME", help="Add a checkpoint to the folder.")
    ] = None,
    steps: Annotated[
        list[str] | None,
        typer.Option(
            "--step",
            metavar="NAME=NUMBER",
            help="Step of a checkpoint whose name does not tell it. Repeat it for several.",
        ),
    ] = None,
    level: Annotated[
        float, typer.Option(help="Level of each interval, and of all verdicts.")
    ] = 0.9,
    half_width: Annotated[
        float | None,
        typer.Option(
            help="Print how many items the next checkpoint needs for an interval of this half "
            "width."
        ),
    ] = None,
    change: Annotated[
        float | None,
        typer.Option(
            help="Print how many items the next checkpoint needs to find a change of this size."
        ),
    ] = None,
    item: ItemColumn = None,
    score: ScoreColumn = None,
    scores: MovedScores = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help=f"{WRITES}."),
    ] = None,
    average: AverageOption = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Follow the checkpoints of a training run.

    Prints the score of each checkpoint with its interval, which changes are real, and which
    checkpoint is probably the best. Checkpoints that ran all items join the source models.

    \b
    fewbench start scores.parquet -m aipw -n 100 -t step-1000 -o follow/step-1000
    fewbench track follow --add step-2000              print the items to run, those of step-1000
    fewbench track follow --add step-2000 answers.csv --item id --score correct
    fewbench track follow -o curve.html                print the curve, write its page
    fewbench track scores.parquet --run my-run         checkpoints in the scores file

    Steps are read from names such as step-1000, iter_0003000, ckpt-5B or epoch2, from a column
    `step` of the models, or from --step.
    """
    if not path.exists():
        raise EvaluationError(
            f"{path}: no such file or folder", hint="name a scores file, or the folder of a run"
        )
    followed = path.is_dir() and is_tracked(path)
    if add is not None:
        if steps:
            raise EvaluationError("a step with --add", hint="give --step when you print the curve")
        _add(path, add, answers, Columns(None, item, score), scores)
        return
    if answers is not None:
        raise AnswersError("answers of which checkpoint?", hint="name it with --add NAME")
    check_outputs(output, inputs=[scores, path], force=force, formats=FORMATS)
    given: Scores | Path = path
    moved = None if scores is None else load(scores, average)
    if not followed:
        if run is None:
            raise EvaluationError(
                "which models are the run's checkpoints?",
                hint="add --run NAME, or name a folder of evaluations",
            )
        given = load(path, average)
    with at_work(MEASURING):
        found = follow(
            given,
            run=run,
            steps=_named_steps(steps),
            scores=moved,
            level=level,
            half_width=half_width,
            change=change,
        )
    show(found.page(), found, output, as_json)


def _named_steps(given: list[str] | None) -> dict[str, float]:
    """Read NAME=NUMBER."""
    found = {}
    for text in given or ():
        name, equals, step = text.rpartition("=")
        if not equals or not name:
            raise EvaluationError(f"--step {text}: no name", hint="write --step NAME=NUMBER")
        found[name] = _step(step)
    return found


def _step(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise EvaluationError(
            f"the step {text!r} is no number", hint="write it as in --step 1000"
        ) from error


def _add(
    folder: Path,
    name: str,
    answers: Path | None,
    columns: Columns,
    moved: Path | None,
) -> None:
    scores = None if moved is None else load(moved)
    told, is_whole = None, False
    if answers is not None:
        known = open_folder(folder, scores)[0].scores
        told = _told(answers, columns, known, name)
        is_whole = bool(known.items.index.isin(told.item_ids).mean() >= 1 - NEARLY_COMPLETE)
    with at_work("choosing items"):
        evaluation = add_checkpoint(folder, name, scores=scores, is_whole=is_whole)
    place = evaluation.folder
    if told is None:
        asked = evaluation.ask().get(name, [])
        for one in asked:
            echo(one)
        say(
            f"{counted(len(asked), 'item')} for {name}. Next: run them, then fewbench track "
            f"{folder} --add {name} ANSWERS; or run them with a runner, see fewbench ask {place}"
        )
        return
    taken = _tell(evaluation, told, name)
    left = sum(len(items) for items in evaluation.ask().values())
    after = f"ask {place} for {counted(left, 'more item')}" if left else f"track {folder}"
    echo(f"recorded {counted(taken, 'answer')} of {name}. Next: fewbench {after}")


def _told(answers: Path, columns: Columns, scores: Scores, name: str) -> Scores:
    is_logs = columns.item is None and columns.score is None and are_logs(answers)
    if is_logs or (columns.item is None and columns.score is None):
        columns = Columns()
    else:
        columns = Columns(None, columns.item, columns.score, only_model=name)
    reading = read(answers, columns=columns, like=scores, scale=scores.scale)
    for note in reading.notes:
        say(f"note: {note}")
    return reading.scores


def _tell(evaluation: Evaluation, told: Scores, name: str) -> int:
    """Record answers, as long as the method asks for items that have one."""
    taken = 0
    while True:
        new = evaluation.tell_table(told, name).answers
        taken += new
        asked = evaluation.ask().get(name, [])
        if not new or not any(one in told.items.index for one in asked):
            break
    unasked = told.n_items - len(evaluation.record.answered(name))
    if not taken and unasked:
        raise AnswersError(
            f"none of the {told.n_items} items was asked of {name}, or all are recorded already",
            hint=f"fewbench ask {evaluation.folder} lists the ids",
        )
    if unasked > 0:
        say(f"note: {counted(unasked, 'item')} not used: not asked for")
    return taken
