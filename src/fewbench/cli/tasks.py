"""fewbench tasks: run fewer tasks instead of fewer items."""

import os
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import quote

import numpy as np
import typer

from fewbench._files import written_whole
from fewbench._names import some
from fewbench.cli.options import Json, Seed, group_of_commands, load
from fewbench.cli.outputs import FORMATS, WRITES, Force, check_outputs, show
from fewbench.cli.progress import at_work
from fewbench.cli.select import give_subset
from fewbench.cli.text import echo, say
from fewbench.errors import MethodError
from fewbench.evaluation import Evaluation
from fewbench.readers.tables import read_question_counts, read_task_table
from fewbench.runners import EXPORTS
from fewbench.scores import Average, Scores
from fewbench.tasks import (
    TaskAnalysis,
    TaskMatrix,
    TaskResults,
    TaskSelection,
    Transferability,
    Weigh,
    is_transferability,
    read_chooser,
    select_tasks,
)
from fewbench.tasks.choosers import ListedTasks
from fewbench.tasks.held_out import CostlyTasks
from fewbench.tasks.matrix import of_texts
from fewbench.tasks.transferability import MATRIX, Metric

DEFAULT = "bento-sim"

tasks = group_of_commands()

Matrix = Annotated[
    Path,
    typer.Argument(
        metavar="MATRIX",
        help="Folder of fewbench transfer measure, .npz or .csv matrix of transferability, or "
        "scores of source models.",
    ),
]
SelectionPath = Annotated[
    Path, typer.Argument(metavar="SELECTION", help="Selection file of fewbench tasks select -o.")
]
WeighOption = Annotated[
    Weigh | None,
    typer.Option(help="Full score: mean over questions or over tasks (default: as in the scores)."),
]
Anchor = Annotated[
    str | None,
    typer.Option(help="Model of the results whose known full score corrects the other models."),
]
Report = Annotated[Path | None, typer.Option(help=f"{WRITES}.")]
Questions = Annotated[
    str | None,
    typer.Option(
        help="Number of questions per task, if the matrix does not have it: a number, a .csv with "
        "columns task and questions, or a scores file.",
    ),
]
MatrixMetric = Annotated[
    Metric | None,
    typer.Option("--metric", help="Metric of the entries of a .csv matrix (default: accuracy)."),
]
Transform = Annotated[
    Literal["exp"] | None,
    typer.Option(help="Transform losses of the matrix and the results to exp(-loss)."),
]
Losses = Annotated[
    bool,
    typer.Option(
        "--lower-is-better", help="The .csv of results holds losses (default: scores in [0, 1])."
    ),
]


@tasks.callback()
def _all() -> None:
    """Choose a few tasks that stand for all.

    \b
    Choose:    fewbench tasks select ict -k 3 --results scores.parquet -o selection.json
    Judge:     fewbench tasks judge selection.json others.parquet
    Run them:  fewbench tasks items selection.json scores.parquet --for lm-eval
    """


@tasks.command("select")
def select(
    matrix: Matrix,
    k: Annotated[int | None, typer.Option("-k", help="Number of tasks.")] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget",
            "-n",
            help="Instead of -k: most to spend, in questions. Source scores decide how many tasks.",
        ),
    ] = None,
    task_cost: Annotated[
        float, typer.Option(help="With --budget: cost of setting up one task, in questions.")
    ] = 0.0,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            help="bento-sim, bento-le, kmedoids, km-sim, km-le, bm25-sim, bm25-le, fit or ridge "
            "(source scores only), random or list; settings in parentheses, as in "
            "'bento-le(components=5)' (default: bento-sim; with --budget: ridge).",
        ),
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(
            "--list", help="Method list: comma-separated tasks, or a file with one task per line."
        ),
    ] = None,
    texts: Annotated[
        list[str] | None,
        typer.Option(
            help="Method bm25: tasks with their questions, as for fewbench transfer measure."
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            help="Results to judge the selection on: scores, or a .csv of models × tasks."
        ),
    ] = None,
    questions: Questions = None,
    metric: MatrixMetric = None,
    transform: Transform = None,
    lower_is_better: Losses = False,
    weigh: WeighOption = None,
    anchor: Anchor = None,
    seed: Seed = 0,
    bootstraps: Annotated[
        int | None,
        typer.Option(
            min=0, help="Number of bootstrap selections, from seeds drawn with replacement."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Selection file to write (JSON).")
    ] = None,
    report: Report = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Choose a few tasks, and measure how good the selection is.

    \b
    fewbench tasks select ict/ -k 3 --results scores.parquet
    fewbench tasks select ict/ -k 3 --method "bento-le(components=5)" -o selection.json
    fewbench tasks select ict/ -k 3 --method "bento-sim(scaling=sum,distance=cosine,exact=true)"
    fewbench tasks select ict/ -k 3 --method "bento-sim(match=0.01)"
    fewbench tasks select ict/ -k 3 --method bm25-sim --texts tasks/
    fewbench tasks select ict/ -k 3 --method list --list anatomy,law,physics --json
    fewbench tasks select scores.parquet -k 3 --method ridge
    fewbench tasks select scores.parquet --budget 1000 --task-cost 100
    fewbench tasks select losses.csv -k 3 --metric loss --transform exp --questions 100

    Scores as MATRIX also judge the selection, with each model held out.
    Run the chosen tasks with: fewbench tasks items SELECTION SCORES --for lm-eval
    """
    check_outputs(output, report, inputs=[matrix, results], force=force)
    check_outputs(report, force=force, formats=FORMATS)
    if (k is None) == (budget is None):
        raise MethodError(
            "give either the number of tasks (-k) or a budget (--budget)",
            hint="-k 3, or --budget 1000 --task-cost 100 with scores as MATRIX",
        )
    if method is None:
        method = "list" if names is not None else DEFAULT if budget is None else "ridge"
    given, past = _read_given(matrix, weigh, metric, transform)
    known = None
    if results is not None:
        known = _read_results(results, _names(given), weigh, lower_is_better, transform)
    if sizes := _read_sizes(matrix, questions, given, known):
        given = given.with_sizes(sizes)
    if method.strip().startswith("bm25"):
        given = _by_texts(given, texts)
    elif texts:
        raise MethodError("--texts is for bm25-sim and bm25-le", hint="omit --texts")
    chooser = read_chooser(method)
    if isinstance(chooser, ListedTasks) and names is not None:
        chooser = ListedTasks("|".join(map(_written_name, _listed_names(names))))
    elif names is not None:
        raise MethodError("--list is for --method list", hint="omit --list")
    with at_work("choosing tasks"):
        plan = None
        if budget is not None:
            if past is None or past.questions is None:
                raise MethodError(
                    "--budget needs source scores to decide how many tasks",
                    hint="give scores as MATRIX, or the number of tasks with -k",
                )
            plan = CostlyTasks(budget, task_cost, chooser).plan(past.questions, seed)
            k = plan.k
        assert k is not None
        selection = select_tasks(
            chooser, given, k, seed, bootstraps=bootstraps, weigh_tasks=weigh == "tasks"
        )
        selection = selection.model_copy(
            update={"matrix": {"file": matrix.name} | selection.matrix}
        )
        if plan is not None:
            selection = selection.with_plan(
                plan.budget, plan.task_cost, plan.questions[k], plan.errors
            )
    # Source models judge selections that are made without them.
    held_out = known is None and past is not None and selection.models is not None
    analysis = TaskAnalysis(
        selection, _sized(known or past, selection, weigh), given, anchor, held_out
    )
    _give(analysis, report, as_json, output)


@tasks.command("judge")
def judge(
    selection_path: SelectionPath,
    results: Annotated[
        Path, typer.Argument(metavar="RESULTS", help="Scores, or a .csv of models × tasks.")
    ],
    matrix: Annotated[
        Path | None,
        typer.Option(
            help="Matrix of transferability, to compare with other methods and draw maps."
        ),
    ] = None,
    questions: Questions = None,
    metric: MatrixMetric = None,
    transform: Transform = None,
    lower_is_better: Losses = False,
    weigh: WeighOption = None,
    anchor: Anchor = None,
    report: Report = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Measure how good a selection is on models with known results.

    \b
    fewbench tasks judge selection.json scores.parquet
    fewbench tasks judge selection.json models.csv --matrix ict/ --report tasks.html
    fewbench tasks judge selection.json losses.csv --lower-is-better --transform exp
    """
    inputs = [selection_path, results, matrix]
    check_outputs(report, inputs=inputs, force=force, formats=FORMATS)
    selection = _read_selection(selection_path)
    given = None
    if matrix is not None:
        given = _read_matrix(matrix, metric, transform)
        if set(given.tasks) != set(selection.sizes):
            raise MethodError(f"{matrix}: not the tasks of {selection_path}")
    known = _read_results(results, tuple(selection.sizes), weigh, lower_is_better, transform)
    if sizes := _read_sizes(selection_path, questions, selection, known):
        selection = selection.with_sizes(sizes)
        given = given.with_sizes(sizes) if given is not None else None
    analysis = TaskAnalysis(selection, _sized(known, selection, weigh), given, anchor)
    _give(analysis, report, as_json, None)


@tasks.command("items")
def items(
    selection_path: SelectionPath,
    scores_path: Annotated[
        Path | None,
        typer.Argument(
            metavar="[SCORES]", help="Scores of source models, with the items of the tasks."
        ),
    ] = None,
    then: Annotated[
        str | None,
        typer.Option(
            help="Method inside the tasks, as in random+mean (default: mean; for tasks chosen by "
            "ridge, task-means+ridge)."
        ),
    ] = None,
    budget: Annotated[
        int | None, typer.Option("--budget", "-n", help="With --then: number of items.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Subset file to write, for fewbench start --subset."),
    ] = None,
    harness: Annotated[
        str, typer.Option("--for", help=f"Output format: {', '.join(EXPORTS)}.")
    ] = "ids",
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Print the items of the chosen tasks; without SCORES, the names of the tasks.

    \b
    fewbench tasks items selection.json
    fewbench tasks items selection.json scores.parquet --for lm-eval
    fewbench tasks items selection.json scores.parquet --then random+mean --budget 40 -o subset.json
    Later:  fewbench start scores.parquet --subset subset.json -o run
    """
    check_outputs(output, inputs=[selection_path, scores_path], force=force)
    selection = _read_selection(selection_path)
    if then is None:
        then = "task-means+ridge" if selection.estimator == "ridge" else "mean"
        if selection.plan is not None:
            then = f"stratified+{then}"
            budget = budget or selection.plan.questions
    if scores_path is None:
        if budget is not None or output is not None or harness == "inspect":
            raise MethodError("the items of the tasks are not known", hint="give SCORES too")
        # lm-eval takes whole tasks by --tasks a,b
        echo(("," if harness == "lm-eval" else "\n").join(selection.tasks))
        return
    scores = load(scores_path)
    if lacking := [task for task in selection.tasks if task not in scores.tasks]:
        raise MethodError(
            f"{scores_path}: has no task {', '.join(lacking)}",
            hint="use the same task names in the matrix and the scores",
        )
    names = "|".join(map(_written_name, selection.tasks))
    whole = int(scores.items["task"].isin(selection.tasks).sum())
    method = f"tasks-listed(names={names},tasks={selection.k})+{then}"
    evaluation = Evaluation(scores, method, whole if budget is None else budget, seed=seed)
    if evaluation.subset is None:
        raise MethodError(f"{then!r} is adaptive", hint="use a static method such as random+mean")
    give_subset(evaluation.subset, scores, output, harness, "estimate with the same method")


def _sized(
    results: TaskResults | None, selection: TaskSelection, weigh: Weigh | None
) -> TaskResults | None:
    """Return results, with the selection's numbers of questions if they have none."""
    if results is None or results.questions is not None:
        return results
    if weigh == "questions" and not selection.sizes_known:
        raise MethodError("the numbers of questions per task are not known", hint="add --questions")
    return results.with_sizes(selection.sizes)


def _give(analysis: TaskAnalysis, report: Path | None, as_json: bool, output: Path | None) -> None:
    selection = analysis.selection
    with at_work("judging the selection"):
        page = analysis.page()
    if output is not None:
        with written_whole(output) as temporary:
            temporary.write_text(selection.to_json() + "\n", encoding="utf-8")
        say(f"wrote {output}")
    show(page, analysis, report, as_json)


def _load_scores(path: Path, weigh: Weigh | None) -> Scores:
    averages: dict[Weigh | None, Average] = {"questions": "micro", "tasks": "macro"}
    return load(path, averages.get(weigh))


def _names(given: Transferability | TaskMatrix) -> tuple[str, ...]:
    return given.tasks if isinstance(given, Transferability) else given.names


def _read_given(
    path: Path, weigh: Weigh | None, metric: Metric | None, transform: Literal["exp"] | None
) -> tuple[Transferability | TaskMatrix, TaskResults | None]:
    """Read a transferability matrix, or source scores, which also judge the selection."""
    if is_transferability(path) or _is_measurement(path) or not path.exists():
        return _read_matrix(path, metric, transform), None
    if metric is not None or transform is not None:
        raise MethodError(
            f"{path}: scores, but --metric and --transform are for a matrix",
            hint="omit them",
        )
    scores = _load_scores(path, weigh)
    return TaskMatrix.of_scores(scores), TaskResults.of_scores(scores)


def _read_matrix(
    path: Path, metric: Metric | None, transform: Literal["exp"] | None
) -> Transferability:
    if _is_measurement(path) and not (path / MATRIX).is_file():
        raise MethodError(
            f"{path}: the measurement is not finished",
            hint="run the same fewbench transfer measure again to continue",
        )
    given = Transferability.load(path, metric)
    return given if transform is None else given.transformed(transform)


def _is_measurement(path: Path) -> bool:
    from fewbench.tasks.measurement.journal import HEADER

    return (path / HEADER).is_file()


def _read_sizes(
    source: Path,
    questions: str | None,
    given: Transferability | TaskMatrix | TaskSelection,
    results: TaskResults | None,
) -> dict[str, int] | None:
    """Return numbers of questions per task from --questions or the results, or None."""
    if given.sizes_known:
        if questions is not None:
            raise MethodError(
                f"{source}: already has numbers of questions", hint="omit --questions"
            )
        return None
    names = tuple(given.sizes) if isinstance(given, TaskSelection) else _names(given)
    if questions is None:
        if results is None or results.questions is None:
            return None
        return dict(zip(results.tasks, map(int, results.sizes), strict=True))
    if questions.isdecimal():
        if int(questions) < 2:
            raise MethodError(f"--questions is {questions}", hint="use 2 or more, or a file")
        return dict.fromkeys(names, int(questions))
    path = Path(questions)
    if path.suffix.lower() == ".csv":
        found = read_question_counts(path)
    else:
        numbers = load(path).items["task"].value_counts()
        found = {str(task): int(number) for task, number in numbers.items()}
    if lacking := [name for name in names if name not in found]:
        raise MethodError(
            f"{path}: no number of questions for {some(lacking)}", hint="add every task"
        )
    return {name: found[name] for name in names}


def _by_texts(given: Transferability | TaskMatrix, texts: list[str] | None) -> TaskMatrix:
    if not texts:
        raise MethodError(
            "bm25 needs the texts of the tasks",
            hint="add --texts tasks/, as for fewbench transfer measure",
        )
    from fewbench.tasks.measurement.sources import read_tasks

    said = {task.name: task.whole_text for task in read_tasks(texts)}
    sizes = given.n_questions if isinstance(given, Transferability) else given.sizes
    return of_texts(said, _names(given), sizes)


def _listed_names(names: str) -> list[str]:
    path = Path(names)
    if os.path.isfile(path):  # Path raises an error for a long list
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise MethodError(f"{path}: not a list of names in UTF-8") from error
        return [line.strip() for line in lines if line.strip()]
    return [name.strip() for name in names.split(",") if name.strip()]


def _written_name(name: str) -> str:
    return quote(name, safe=" _-./:;!?'&=@#")


def _read_selection(path: Path) -> TaskSelection:
    if not path.is_file():
        raise MethodError(f"{path}: no such file", hint="fewbench tasks select … -o FILE writes it")
    return TaskSelection.from_json(path.read_bytes(), str(path))


def _read_results(
    path: Path,
    names: tuple[str, ...],
    weigh: Weigh | None,
    losses: bool,
    transform: Literal["exp"] | None,
) -> TaskResults:
    """Read scores, or a .csv of models × tasks without numbers of questions."""
    if path.suffix.lower() != ".csv":
        if losses:
            raise MethodError(
                f"{path}: --lower-is-better is for results in a .csv",
                hint="set it when importing scores: fewbench import --lower-is-better",
            )
        scores = _load_scores(path, weigh)
        if lacking := [name for name in names if name not in scores.tasks]:
            raise MethodError(
                f"{path}: has no task {some(lacking)}",
                hint="use the same task names in the matrix and the scores",
            )
        of_benchmark = scores.items["task"].isin(names).to_numpy()
        if others := len(set(scores.tasks) - set(names)):
            say(f"note: {path}: {others} tasks not used: not in the matrix")
            scores = scores.take(items=of_benchmark.nonzero()[0])
        return TaskResults.of_scores(scores)
    table, notes = read_task_table(path, list(names))
    for note in notes:
        say(f"note: {note}")
    values = table.to_numpy()
    if losses and transform == "exp":
        values, losses = np.exp(-values), False
    sizes = np.ones(len(names), dtype=np.intp)
    models = tuple(map(str, table.index))
    return TaskResults(values, models, names, sizes, weigh or "questions", losses=losses)
