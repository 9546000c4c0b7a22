"""fewbench start, ask, tell, estimate: one evaluation, in a folder."""

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from fewbench._names import some
from fewbench.cli.options import (
    AverageOption,
    Filter,
    Folder,
    ItemColumn,
    Json,
    Key,
    Metric,
    ModelColumn,
    MovedScores,
    ScoreColumn,
    ScoresPath,
    Seed,
    load,
    open_evaluation,
    say,
)
from fewbench.cli.progress import at_work
from fewbench.cli.text import number, table
from fewbench.errors import AnswersError, EvaluationError, MethodError
from fewbench.evaluation import Estimate, Evaluation
from fewbench.evaluation.estimate import Interval
from fewbench.methods import Subset
from fewbench.readers import Columns, are_logs, read
from fewbench.readers.join.notes import NO_OPTIONS
from fewbench.runners import EXPORTS, export_items
from fewbench.scores import Scale, Scores

TargetName = Annotated[str | None, typer.Option("--target", "-t", help="Which target.")]


def start(
    scores_path: ScoresPath,
    output: Annotated[Path, typer.Option("--output", "-o", help="A new folder.")],
    method: Annotated[
        str | None, typer.Option("--method", "-m", help="See fewbench methods.")
    ] = None,
    budget: Annotated[int | None, typer.Option("--budget", "-n", help="Items to run.")] = None,
    target: Annotated[
        list[str] | None,
        typer.Option("--target", "-t", help="A new model's name; give it for each one."),
    ] = None,
    subset: Annotated[
        Path | None, typer.Option(help="Use what fewbench select -o wrote: items and method.")
    ] = None,
    seed: Seed = 0,
    average: AverageOption = None,
) -> None:
    """Open an evaluation of one or several new models, with any method.

    \b
    fewbench start scores.parquet --method kmedoids-ridge --budget 50 -o run
    fewbench start scores.parquet -m kmedoids-ridge -n 50 -t step-1000 -t step-2000 -o run
    fewbench start scores.parquet --subset subset.json -o run
    """
    chosen = None
    if subset is not None:
        try:
            chosen = Subset.from_json(subset.read_bytes())
        except MethodError as error:
            raise EvaluationError(
                f"{subset}: {error.message}", hint="give a file that fewbench select -o wrote"
            ) from error
        made = chosen.provenance
        if method is not None or budget is not None:
            raise EvaluationError("--subset brings its method and budget", hint="leave them out")
        if made is None:
            raise EvaluationError(f"{subset}: does not say which method it is for")
        method, budget, seed = made.method, made.budget, made.seed
        average = average or made.average
    if method is None or budget is None:
        raise EvaluationError("which items?", hint="give --method and --budget, or --subset FILE")
    scores = load(scores_path, average)
    evaluation = Evaluation(scores, method, budget, target or ["target"], seed, subset=chosen)
    evaluation.save(output, scores_path)
    first = next(iter(evaluation.ask().values()))
    if len(evaluation.targets) > 1 and not getattr(evaluation.method, "targets_apart", True):
        say(f"note: with {method} targets wait for one another before they are asked again")
    print(
        f"{output}: {method} on {scores.n_models} models × {scores.n_items} items; "
        f"{len(first)} items to run now. Next: fewbench ask {output}"
    )


def ask(
    folder: Folder,
    harness: Annotated[
        str, typer.Option("--for", help=f"In the words of: {', '.join(EXPORTS)}.")
    ] = "ids",
    target: TargetName = None,
    scores: MovedScores = None,
    as_json: Json = False,
) -> None:
    """Print what to run next.

    \b
    fewbench ask run                       one item id a line
    fewbench ask run --for lm-eval         lm_eval … --samples "$(fewbench ask run --for lm-eval)"
    fewbench ask run --for inspect         inspect eval … --sample-id "$(fewbench ask run …)"
    """
    evaluation = open_evaluation(folder, scores)
    pending = evaluation.ask()
    if target is not None:
        if target not in evaluation.targets:
            raise EvaluationError(
                f"{target!r} is not a target", hint=f"targets: {', '.join(evaluation.targets)}"
            )
        pending = {name: items for name, items in pending.items() if name == target}
    if as_json and harness != "ids":
        raise EvaluationError(
            "--json gives the items' own ids, for all targets", hint=f"leave out --for {harness}"
        )
    if as_json:
        print(json.dumps(pending, indent=2))
        return
    if not pending and target in evaluation.waiting():
        others = some(list(evaluation.ask()))
        say(f"{target} waits for the answers of {others}, and is asked again after them")
        return
    if not pending:
        say(f"nothing more to run. Next: fewbench estimate {folder}")
        return
    if len({tuple(items) for items in pending.values()}) > 1:
        raise EvaluationError(
            f"{len(pending)} targets wait for different items", hint="add --target NAME, or --json"
        )
    items = next(iter(pending.values()))
    text = export_items(evaluation.scores, items, harness)
    print(text)
    say(f"{len(items)} items for {', '.join(pending)}")
    if harness == "lm-eval":
        say(f"run exactly these tasks with --log_samples: {','.join(json.loads(text))}")


def tell(
    folder: Folder,
    answers: Annotated[Path, typer.Argument(metavar="ANSWERS", help="Table, .npz, logs.")],
    target: TargetName = None,
    model: ModelColumn = None,
    item: ItemColumn = None,
    score: ScoreColumn = None,
    metric: Metric = None,
    filter_: Filter = None,
    key: Key = None,
    scores: MovedScores = None,
) -> None:
    """Give a target's answers, on the scale of the sources.

    \b
    fewbench tell run answers.csv --item id --score correct
    fewbench tell run answers.csv --model llm --item id --score correct    several targets
    fewbench tell run logs/                                                logs of a harness
    fewbench tell run logs/ --model org/new                                of one of their models

    Of logs the metric and filter are those of the sources, unless others are named.
    """
    evaluation = open_evaluation(folder, scores)
    is_logs = item is None and score is None and are_logs(answers)
    columns = _columns(model, item, score, target, evaluation.targets)
    reading = read(
        answers,
        columns=Columns() if is_logs else columns,
        metric=metric,
        filter=filter_,
        key=key,
        like=evaluation.scores,
        scale=evaluation.scores.scale,
    )
    for note in reading.notes:
        if not note.startswith(NO_OPTIONS):  # which do not matter here
            say(f"note: {note}")
    told = reading.scores
    if is_logs and model is not None:
        told = _of_model(told, model)
    for note in _other_scores(evaluation.scores, told):
        say(f"warning: {note}")
    taken, unasked, others = evaluation.tell_table(told, target)
    if unasked and not taken:
        raise AnswersError(
            f"{answers}: none of its {len(unasked)} items was asked for: {some(unasked)}",
            hint=f"fewbench ask {folder} lists the ids",
        )
    if others:
        say(f"note: {some(others)} in {answers} is no target here and is not used")
    if unasked:
        say(f"note: {len(unasked)} items of {answers} were not asked for and are not used")
    left = sum(len(items) for items in evaluation.ask().values())
    after = f"ask {folder} for {left} more" if left else f"estimate {folder}"
    whose = f" of {target}" if target is not None and len(evaluation.targets) > 1 else ""
    print(f"took {taken} answers{whose}. Next: fewbench {after}")


def _of_model(told: Scores, model: str) -> Scores:
    """Return what one model answered."""
    row = told.model_positions([model])
    return told.take(models=row, items=np.flatnonzero(~np.isnan(told.values[row[0]])))


def _other_scores(sources: Scores, told: Scores) -> Iterator[str]:
    """Say for which tasks answers are of another metric or filter than the sources'."""
    for column in ("metric", "filter"):
        known, given = (
            {} if column not in one.items else _by_task(one, column) for one in (sources, told)
        )
        tasks: dict[tuple[str, str], list[str]] = defaultdict(list)
        for task in known.keys() & given.keys():
            if known[task] != given[task]:
                tasks[known[task], given[task]].append(task)
        for (was, now), names in sorted(tasks.items()):
            yield (
                f"answers to {some(sorted(names))} are of {column} {now or 'none'!r}, those of "
                f"the sources of {was or 'none'!r}"
            )


def _by_task(scores: Scores, column: str) -> dict[str, str]:
    return dict(zip(scores.items["task"], scores.items[column], strict=True))


def _columns(
    model: str | None,
    item: str | None,
    score: str | None,
    target: str | None,
    targets: Sequence[str],
) -> Columns:
    """Return the columns of a table of answers; without a models' column all are one target's."""
    if model is not None:
        return Columns(model, item, score)
    if item is None and score is None:
        return Columns()
    if target is None and len(targets) > 1:
        raise AnswersError(
            f"whose answers are these? there are {len(targets)} targets: {some(targets)}",
            hint="add --target NAME, or --model COLUMN if the table names the models",
        )
    return Columns(None, item, score, only_model=target or targets[0])


def estimate(
    folder: Folder,
    level: Annotated[float, typer.Option(help="Stated coverage of the interval.")] = 0.9,
    target: TargetName = None,
    scores: MovedScores = None,
    as_json: Json = False,
) -> None:
    """Print score, interval, rank and task scores, and what random sampling would have given.

    The rank is among the sources and the new model itself, 1 being the best; in brackets the
    ranks at the ends of the score's interval.

    \b
    fewbench estimate run
    fewbench estimate run --level 0.95 --json
    """
    evaluation = open_evaluation(folder, scores)
    with at_work("how far off the method is on sources that it did not learn from …"):
        estimates = evaluation.estimate(level, None if target is None else [target])
    if as_json:
        found = {name: one.model_dump(mode="json") for name, one in estimates.items()}
        print(json.dumps(found, indent=2))
        return
    scale = evaluation.scores.scale
    print("\n\n".join(describe(one, scale) for one in estimates.values()))


def describe(one: Estimate, scale: Scale) -> str:
    """Return an estimate as a few lines of text."""
    digits = max(0, 3 - round(math.log10(scale.high - scale.low)))

    def line(name: str, score: str, interval: Interval, error: float | None) -> list[str]:
        ends = f"{interval.low:.{digits}f} .. {interval.high:.{digits}f}"
        return [name, score, ends, "–" if error is None else number(error, digits)]

    made = one.provenance
    rows = [line("estimate", number(one.score, digits), one.interval, one.expected_error)]
    if made.settings != "random+mean":  # which needs no line beside itself
        plain = one.random
        rows.append(line("random would give", "", plain.interval, plain.expected_error))
    lines = [
        f"{one.target}: {one.items_run} of {one.items_total} items run, method {made.method}",
        table(["", "score", f"{one.level:.0%} interval", "typical error"], rows),
    ]
    if one.rank is not None and one.rank_interval is not None:
        ends = f"{one.rank_interval.best} .. {one.rank_interval.worst}"
        lines.append(f"rank {one.rank} of {one.ranked_among} ({ends})")
    if len(one.tasks) > 1:
        # Where a task was not run at all, that must show: its score is past models' guess.
        header = ["task", "score", "rank"]
        some_not_run = 0 in one.task_items.values()
        of_tasks = []
        for task, score in one.tasks.items():
            row = [task, number(score, digits), str(one.task_ranks.get(task, "–"))]
            of_tasks.append([*row, str(one.task_items[task])] if some_not_run else row)
        lines += ["", table([*header, "items run"] if some_not_run else header, of_tasks)]
        if some_not_run:
            lines.append("scores of tasks with 0 items run are read off the others, by past models")
    lines += [f"warning: {warning}" for warning in one.warnings]
    return "\n".join(lines)
