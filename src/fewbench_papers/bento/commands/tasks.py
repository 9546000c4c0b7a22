"""fewbench tasks: run fewer tasks instead of fewer items."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import numpy as np

from fewbench.cli.commands import command
from fewbench.cli.help import Commands
from fewbench.cli.options import load
from fewbench.cli.pack import give_subset
from fewbench.errors import MethodError
from fewbench.evaluation import Evaluation
from fewbench.public import is_source
from fewbench.scores import Average
from fewbench.support import echo, say, say_note, some, written_whole
from fewbench_papers.bento import (
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
from fewbench_papers.bento.choosers import ListedTasks
from fewbench_papers.bento.held_out import CostlyTasks
from fewbench_papers.bento.matrix import of_texts
from fewbench_papers.bento.measurement.journal import is_measurement
from fewbench_papers.bento.task_tables import read_question_counts, read_task_table
from fewbench_papers.bento.transferability import MATRIX, Metric, sizes_of

DEFAULT = "bento-sim"
AVERAGES: dict[Weigh | None, Average] = {"questions": "micro", "tasks": "macro"}

tasks = Commands()


@tasks.callback()
def _all() -> None:
    """Choose a few tasks to run instead of all.

    \b
    Choose:    fewbench tasks select ict -k 3 --results scores.parquet -o selection.json
    Judge:     fewbench tasks judge selection.json others.parquet
    Run them:  fewbench tasks items selection.json scores.parquet --for lm-eval
    """


def _select(
    matrix: Path,
    *,
    k: int | None = None,
    budget: float | None = None,
    task_cost: float = 0.0,
    method: str | None = None,
    list: str | None = None,
    texts: Sequence[str] | None = None,
    results: Path | None = None,
    questions: str | None = None,
    metric: Metric | None = None,
    transform: Literal["exp"] | None = None,
    lower_is_better: bool = False,
    weigh: Weigh | None = None,
    anchor: str | None = None,
    seed: int = 0,
    bootstraps: int | None = None,
    output: Path | None = None,
) -> TaskAnalysis:
    """Choose a few tasks, and measure how good the selection is.

    If MATRIX is a scores file, its models also judge the selection, each held out in turn. Run the
    chosen tasks with fewbench tasks items SELECTION SCORES --for lm-eval.

    Parameters
    ----------
    matrix
        Folder of fewbench transfer measure, .npz or .csv matrix of transferability, or scores of
        source models.
    k
        Number of tasks.
    budget
        Instead of -k: budget in questions. The source scores decide how many tasks.
    task_cost
        With `budget`: cost of setting up one task, in questions.
    method
        bento-sim, bento-le, bm25-sim, bm25-le, fit or ridge (source scores only), random or list;
        settings in parentheses, as in 'bento-le(components=5)' (default:
        bento-sim; with `budget`: ridge).
    list
        Method list: comma-separated tasks, or a file with one task per line.
    texts
        Method bm25: tasks with their questions, as for fewbench transfer measure.
    results
        Results to judge the selection on: scores, or a .csv of models × tasks.
    questions
        Number of questions per task if the matrix does not have it: a number, a .csv with columns
        task and questions, or a scores file.
    metric
        Metric of the entries of a .csv matrix (default: accuracy).
    transform
        Transform losses of the matrix and the results to exp(-loss).
    lower_is_better
        The .csv of results holds losses (default: scores in [0, 1]).
    weigh
        Full score: mean over questions or over tasks (default: as in the scores).
    anchor
        Model of the results whose known full score corrects the other models.
    seed
        Random seed.
    bootstraps
        Number of bootstrap selections, from seeds drawn with replacement.
    output
        Selection file to write (JSON).
    """
    if (k is None) == (budget is None):
        raise MethodError(
            "give either the number of tasks (-k) or a budget (--budget)",
            hint="-k 3, or --budget 1000 --task-cost 100 with scores as MATRIX",
        )
    if method is None:
        method = "list" if list is not None else DEFAULT if budget is None else "ridge"
    table, past = _read_given(matrix, weigh, metric, transform)
    results_of = None
    if results is not None:
        results_of = _read_results(results, _names(table), weigh, lower_is_better, transform)
    if sizes := _read_sizes(matrix, questions, table, results_of):
        table = table.with_sizes(sizes)
    if method.strip().startswith("bm25"):
        table = _by_texts(table, texts)
    elif texts:
        raise MethodError("--texts is for bm25-sim and bm25-le", hint="omit --texts")
    chooser = read_chooser(method)
    if isinstance(chooser, ListedTasks) and list is not None:
        chooser = ListedTasks("|".join(map(_written_name, _listed_names(list))))
    elif list is not None:
        raise MethodError("--list is for --method list", hint="omit --list")
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
        chooser, table, k, seed, bootstraps=bootstraps, weigh_tasks=weigh == "tasks"
    )
    selection = selection.model_copy(update={"matrix": {"file": matrix.name} | selection.matrix})
    if plan is not None:
        selection = selection.with_plan(plan)
    # Source models judge selections that are made without them.
    held_out = results_of is None and past is not None and selection.models is not None
    if output is not None:
        with written_whole(output) as temporary:
            temporary.write_text(selection.to_json() + "\n", encoding="utf-8")
        say(f"wrote {output}")
    sized = _sized(results_of or past, selection, weigh)
    return TaskAnalysis(selection, sized, table, anchor, held_out)


def _judge(
    selection: Path,
    results: Path,
    *,
    matrix: Path | None = None,
    questions: str | None = None,
    metric: Metric | None = None,
    transform: Literal["exp"] | None = None,
    lower_is_better: bool = False,
    weigh: Weigh | None = None,
    anchor: str | None = None,
) -> TaskAnalysis:
    """Measure how good a selection is on models with known results.

    Parameters
    ----------
    selection
        Selection file of fewbench tasks select -o.
    results
        Scores, or a .csv of models × tasks.
    matrix
        Matrix of transferability, whose model corrects the errors of the others.
    questions
        Number of questions per task if the selection does not have it: a number, a .csv with
        columns task and questions, or a scores file.
    metric
        Metric of the entries of a .csv matrix (default: accuracy).
    transform
        Transform losses of the matrix and the results to exp(-loss).
    lower_is_better
        The .csv of results holds losses (default: scores in [0, 1]).
    weigh
        Full score: mean over questions or over tasks (default: as in the scores).
    anchor
        Model of the results whose known full score corrects the other models.
    """
    chosen = _read_selection(selection)
    transfer = None
    if matrix is not None:
        transfer = _read_matrix(matrix, metric, transform)
        if set(transfer.tasks) != set(chosen.sizes):
            raise MethodError(f"{matrix}: not the tasks of {selection}")
    results_of = _read_results(results, tuple(chosen.sizes), weigh, lower_is_better, transform)
    if sizes := _read_sizes(selection, questions, chosen, results_of):
        chosen = chosen.with_sizes(sizes)
        transfer = transfer.with_sizes(sizes) if transfer is not None else None
    return TaskAnalysis(chosen, _sized(results_of, chosen, weigh), transfer, anchor)


def _items(
    selection: Path,
    scores: Path | None = None,
    *,
    then: str | None = None,
    budget: int | None = None,
    output: Path | None = None,
    harness: str = "ids",
    seed: int = 0,
) -> None:
    """Print the items of the chosen tasks; without SCORES, the names of the tasks.

    Parameters
    ----------
    selection
        Selection file of fewbench tasks select -o.
    scores
        Scores of source models, with the items of the tasks.
    then
        Method inside the tasks, as in random+mean (default: mean; for tasks chosen by ridge,
        task-means+ridge).
    budget
        With `then`: number of items.
    output
        Subset file to write, for fewbench start --subset.
    harness
        Output format: ids, lm-eval (for --samples) or inspect (for --sample-id).
    seed
        Random seed.
    """
    chosen = _read_selection(selection)
    if then is None:
        then = "task-means+ridge" if chosen.estimator == "ridge" else "mean"
        if chosen.plan is not None:
            then = f"stratified+{then}"
            budget = budget or chosen.plan.questions
    if scores is None:
        if budget is not None or output is not None or harness == "inspect":
            raise MethodError("the items of the tasks are not known", hint="give SCORES too")
        # lm-eval takes whole tasks by --tasks a,b
        echo(("," if harness == "lm-eval" else "\n").join(chosen.tasks))
        return
    table = load(scores)
    if lacking := [task for task in chosen.tasks if task not in table.tasks]:
        raise MethodError(
            f"{scores}: has no task {', '.join(lacking)}",
            hint="use the same task names in the matrix and the scores",
        )
    names = "|".join(map(_written_name, chosen.tasks))
    whole = int(table.items["task"].isin(chosen.tasks).sum())
    method = f"tasks-listed(names={names},tasks={chosen.k})+{then}"
    evaluation = Evaluation(table, method, whole if budget is None else budget, seed=seed)
    if evaluation.subset is None:
        raise MethodError(f"{then!r} is adaptive", hint="use a static method such as random+mean")
    give_subset(evaluation.subset, table, output, harness, "estimate with the same method")


def _sized(
    results: TaskResults | None, selection: TaskSelection, weigh: Weigh | None
) -> TaskResults | None:
    """Return results, with the selection's numbers of questions if they have none."""
    if results is None or results.questions is not None:
        return results
    if weigh == "questions" and not selection.sizes_known:
        raise MethodError("the numbers of questions per task are not known", hint="add --questions")
    return replace(results, sizes=sizes_of(results.tasks, selection.sizes))


def _names(table: Transferability | TaskMatrix) -> tuple[str, ...]:
    return table.tasks if isinstance(table, Transferability) else table.names


def _read_given(
    path: Path, weigh: Weigh | None, metric: Metric | None, transform: Literal["exp"] | None
) -> tuple[Transferability | TaskMatrix, TaskResults | None]:
    """Read a transferability matrix, or source scores, which also judge the selection."""
    if is_transferability(path) or is_measurement(path) or not (path.exists() or is_source(path)):
        return _read_matrix(path, metric, transform), None
    if metric is not None or transform is not None:
        raise MethodError(
            f"{path}: scores, but --metric and --transform are for a matrix",
            hint="omit them",
        )
    scores = load(path, AVERAGES.get(weigh))
    return TaskMatrix.of_scores(scores), TaskResults.of_scores(scores)


def _read_matrix(
    path: Path, metric: Metric | None, transform: Literal["exp"] | None
) -> Transferability:
    if is_measurement(path) and not (path / MATRIX).is_file():
        raise MethodError(
            f"{path}: the measurement is not finished",
            hint="run the same fewbench transfer measure again to continue",
        )
    transfer = Transferability.load(path, metric)
    return transfer if transform is None else transfer.transformed(transform)


def _read_sizes(
    source: Path,
    questions: str | None,
    table: Transferability | TaskMatrix | TaskSelection,
    results: TaskResults | None,
) -> dict[str, int] | None:
    """Return numbers of questions per task from --questions or the results, or None."""
    if table.sizes_known:
        if questions is not None:
            raise MethodError(
                f"{source}: already has numbers of questions", hint="omit --questions"
            )
        return None
    names = tuple(table.sizes) if isinstance(table, TaskSelection) else _names(table)
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
        counts = read_question_counts(path)
    else:
        numbers = load(path).items["task"].value_counts()
        counts = {str(task): int(number) for task, number in numbers.items()}
    if lacking := [name for name in names if name not in counts]:
        raise MethodError(
            f"{path}: no number of questions for {some(lacking)}", hint="add every task"
        )
    return {name: counts[name] for name in names}


def _by_texts(table: Transferability | TaskMatrix, texts: Sequence[str] | None) -> TaskMatrix:
    if not texts:
        raise MethodError(
            "bm25 needs the texts of the tasks",
            hint="add --texts tasks/, as for fewbench transfer measure",
        )
    from fewbench_papers.bento.measurement.sources import read_tasks

    texts_of = {task.name: task.whole_text for task in read_tasks(texts)}
    sizes = table.n_questions if isinstance(table, Transferability) else table.sizes
    return of_texts(texts_of, _names(table), sizes)


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
        scores = load(path, AVERAGES.get(weigh))
        if lacking := [name for name in names if name not in scores.tasks]:
            raise MethodError(
                f"{path}: has no task {some(lacking)}",
                hint="use the same task names in the matrix and the scores",
            )
        of_benchmark = scores.items["task"].isin(names).to_numpy()
        if others := len(set(scores.tasks) - set(names)):
            say_note(f"{path}: {others} tasks not used: not in the matrix")
            scores = scores.take(items=of_benchmark.nonzero()[0])
        return TaskResults.of_scores(scores)
    table, notes = read_task_table(path, list(names))
    for note in notes:
        say_note(note)
    values = table.to_numpy()
    if losses and transform == "exp":
        values, losses = np.exp(-values), False
    sizes = np.ones(len(names), dtype=np.intp)
    models = tuple(map(str, table.index))
    return TaskResults(values, models, names, sizes, weigh or "questions", losses=losses)


tasks.command("select")(
    command(
        _select,
        work="choosing and judging tasks",
        writes=["output"],
        flags={"k": "-k"},
        examples="""
fewbench tasks select ict/ -k 3 --results scores.parquet
fewbench tasks select ict/ -k 3 --method "bento-le(components=5)" -o selection.json
fewbench tasks select ict/ -k 3 --method "bento-sim(scaling=sum)"
fewbench tasks select ict/ -k 3 --method bm25-sim --texts tasks/
fewbench tasks select ict/ -k 3 --method list --list anatomy,law,physics --json
fewbench tasks select scores.parquet -k 3 --method ridge
fewbench tasks select scores.parquet --budget 1000 --task-cost 100
fewbench tasks select losses.csv -k 3 --metric loss --transform exp --questions 100
""",
    )
)
tasks.command("judge")(
    command(
        _judge,
        work="judging the selection",
        examples="""
fewbench tasks judge selection.json scores.parquet
fewbench tasks judge selection.json models.csv --matrix ict/ --report tasks.html
fewbench tasks judge selection.json losses.csv --lower-is-better --transform exp
""",
    )
)
tasks.command("items")(
    command(
        _items,
        work="choosing items",
        report=False,
        writes=["output"],
        arguments=["scores"],
        examples="""
fewbench tasks items selection.json
fewbench tasks items selection.json scores.parquet --for lm-eval
fewbench tasks items selection.json scores.parquet --then random+mean --budget 40 -o subset.json
Later:  fewbench start scores.parquet --subset subset.json -o run
""",
    )
)
