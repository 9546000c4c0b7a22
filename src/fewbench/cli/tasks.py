"""fewbench tasks: fewer tasks instead of fewer items."""

import json
from pathlib import Path
from typing import Annotated

import typer

from fewbench._files import written_whole
from fewbench.cli.options import Json, Seed, load, say
from fewbench.cli.progress import at_work
from fewbench.cli.select import give_subset
from fewbench.cli.tasks_input import (
    by_texts,
    listed_names,
    read_given,
    read_results,
    read_selection,
    written_name,
)
from fewbench.cli.tasks_text import describe
from fewbench.errors import MethodError
from fewbench.evaluation import Evaluation
from fewbench.methods.tasks import (
    TaskMatrix,
    TaskSelection,
    Transferability,
    read_chooser,
    select_tasks,
)
from fewbench.methods.tasks.listed import ListedTasks
from fewbench.runners import EXPORTS
from fewbench.study.tasks import TaskAnalysis, Weigh

DEFAULT = "bento-sim"

tasks = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

Matrix = Annotated[
    Path,
    typer.Argument(
        metavar="MATRIX",
        help="What fewbench transfer measure wrote, another .npz or .csv of transferability, or "
        "past scores.",
    ),
]
SelectionPath = Annotated[
    Path, typer.Argument(metavar="SELECTION", help="What fewbench tasks select -o wrote.")
]
WeighOption = Annotated[
    Weigh | None,
    typer.Option(
        help="Full score: mean over questions, or over tasks; by default the scores' own."
    ),
]
Anchor = Annotated[
    str | None, typer.Option(help="A model of the results that corrects the others.")
]
Report = Annotated[Path | None, typer.Option(help="Write an HTML page.")]


@tasks.callback()
def _all() -> None:
    """Choose few tasks that stand for all, and see how good the choice is.

    \b
    Choose:    fewbench tasks select ict -k 3 --results scores.parquet -o selection.json
    Judge:     fewbench tasks judge selection.json others.parquet
    Run them:  fewbench tasks items selection.json scores.parquet --for lm-eval
    """


@tasks.command("select")
def select(
    matrix: Matrix,
    k: Annotated[int, typer.Option("-k", help="How many tasks.")],
    method: Annotated[
        str,
        typer.Option(
            "--method",
            "-m",
            help="bento-sim, bento-le, kmedoids, km-sim, km-le, bm25-sim, bm25-le, fit (past "
            "scores only), random or list; "
            "with settings as in 'bento-le(components=5)'.",
        ),
    ] = DEFAULT,
    names: Annotated[
        str | None, typer.Option("--list", help="list: the tasks, by commas, or a file of them.")
    ] = None,
    texts: Annotated[
        list[str] | None,
        typer.Option(help="bm25: the tasks' questions, as fewbench transfer measure takes them."),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(help="Judge the choice on models: scores, or a .csv of models by tasks."),
    ] = None,
    weigh: WeighOption = None,
    anchor: Anchor = None,
    seed: Seed = 0,
    bootstraps: Annotated[
        int | None,
        typer.Option(min=0, help="Choices made again from seeds drawn with replacement."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the selection as JSON.")
    ] = None,
    report: Report = None,
    as_json: Json = False,
) -> None:
    """Choose k tasks that stand for all, and say how good the choice is.

    \b
    fewbench tasks select ict/ -k 3 --results scores.parquet
    fewbench tasks select ict/ -k 3 --method "bento-le(components=5)" -o selection.json
    fewbench tasks select ict/ -k 3 --method "bento-sim(scaling=sum,distance=cosine,exact=true)"
    fewbench tasks select ict/ -k 3 --method "bento-sim(match=0.01)"
    fewbench tasks select ict/ -k 3 --method bm25-sim --texts tasks/
    fewbench tasks select ict/ -k 3 --method list --list anatomy,law,physics --json
    fewbench tasks select scores.parquet -k 3 --method fit

    Run the chosen tasks with: fewbench tasks items SELECTION SCORES --for lm-eval
    """
    if names is not None and method == DEFAULT:
        method = "list"
    given = read_given(matrix, weigh)
    if method.strip().startswith("bm25"):
        given = by_texts(given, texts)
    elif texts:
        raise MethodError("--texts is for bm25-sim and bm25-le", hint="leave it out")
    chooser = read_chooser(method)
    if isinstance(chooser, ListedTasks) and names is not None:
        chooser = ListedTasks("|".join(map(written_name, listed_names(names))))
    elif names is not None:
        raise MethodError("--list is for --method list", hint="leave it out")
    with at_work("choosing tasks"):
        selection = select_tasks(
            chooser, given, k, seed, bootstraps=bootstraps, weigh_tasks=weigh == "tasks"
        )
        selection = selection.model_copy(
            update={"matrix": {"file": matrix.name} | selection.matrix}
        )
    _give(selection, results, given, weigh, anchor, report, as_json, output)


@tasks.command("judge")
def judge(
    selection_path: SelectionPath,
    results: Annotated[
        Path, typer.Argument(metavar="RESULTS", help="Scores, or a .csv of models by tasks.")
    ],
    matrix: Annotated[
        Path | None, typer.Option(help="The matrix, for other methods' errors and pictures.")
    ] = None,
    weigh: WeighOption = None,
    anchor: Anchor = None,
    report: Report = None,
    as_json: Json = False,
) -> None:
    """Judge a selection on models whose results are known.

    \b
    fewbench tasks judge selection.json scores.parquet
    fewbench tasks judge selection.json models.csv --matrix ict/ --report tasks.html
    """
    selection = read_selection(selection_path)
    given = None
    if matrix is not None:
        given = Transferability.load(matrix)
        if set(given.tasks) != set(selection.sizes):
            raise MethodError(f"{matrix}: is of other tasks than {selection_path}")
    _give(selection, results, given, weigh, anchor, report, as_json, None)


@tasks.command("items")
def items(
    selection_path: SelectionPath,
    scores_path: Annotated[
        Path | None,
        typer.Argument(metavar="[SCORES]", help="Past scores, which know the tasks' items."),
    ] = None,
    then: Annotated[
        str, typer.Option(help="What is done inside the tasks, as in random+mean.")
    ] = "mean",
    budget: Annotated[
        int | None, typer.Option("--budget", "-n", help="With --then: how many items.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write them as a subset for start.")
    ] = None,
    harness: Annotated[
        str, typer.Option("--for", help=f"Print items for: {', '.join(EXPORTS)}.")
    ] = "ids",
    seed: Seed = 0,
) -> None:
    """List the items of the chosen tasks, or a few of them; without SCORES, the tasks' names.

    \b
    fewbench tasks items selection.json
    fewbench tasks items selection.json scores.parquet --for lm-eval
    fewbench tasks items selection.json scores.parquet --then random+mean --budget 40 -o subset.json
    Later:  fewbench start scores.parquet --subset subset.json -o run
    """
    selection = read_selection(selection_path)
    if scores_path is None:
        if budget is not None or output is not None or harness == "inspect":
            raise MethodError("which items the tasks have, is not known", hint="give SCORES too")
        # lm-eval takes whole tasks by --tasks a,b
        print(("," if harness == "lm-eval" else "\n").join(selection.tasks))
        return
    scores = load(scores_path)
    if lacking := [task for task in selection.tasks if task not in scores.tasks]:
        raise MethodError(
            f"{scores_path}: has no task {', '.join(lacking)}",
            hint="use the tasks' names of the scores in the matrix too",
        )
    names = "|".join(map(written_name, selection.tasks))
    whole = int(scores.items["task"].isin(selection.tasks).sum())
    method = f"tasks-listed(names={names},tasks={selection.k})+{then}"
    evaluation = Evaluation(scores, method, whole if budget is None else budget, seed=seed)
    if evaluation.subset is None:
        raise MethodError(f"{then!r} chooses no items beforehand", hint="use random+mean, say")
    give_subset(evaluation.subset, scores, output, harness, "estimate with the same method")


def _give(
    selection: TaskSelection,
    results: Path | None,
    given: Transferability | TaskMatrix | None,
    weigh: Weigh | None,
    anchor: str | None,
    report: Path | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Analyse, write the files that are asked for, and print."""
    known = None if results is None else read_results(results, selection, weigh)
    with at_work("judging the choice"):
        analysis = TaskAnalysis(selection, known, given, anchor)
        found = analysis.to_dict()  # works everything out, once
    if output is not None:
        with written_whole(output) as temporary:
            temporary.write_text(selection.to_json() + "\n", encoding="utf-8")
        say(f"wrote {output}")
    if report is not None:
        from fewbench.report import write_tasks

        write_tasks(analysis, report, str(selection.matrix.get("file", "")))
        say(f"wrote {report}")
    print(json.dumps(found, ensure_ascii=False) if as_json else describe(found))
