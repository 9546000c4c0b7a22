"""fewbench tell: record answers of target models."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fewbench._names import counted, some
from fewbench._text import echo, quoted, say_note, say_warning
from fewbench.cli.answers import read_answers
from fewbench.cli.documented import documented
from fewbench.cli.options import (
    AcceptDifferences,
    FolderOrTarget,
    MovedScores,
    Strict,
    TargetName,
    open_evaluation,
    split_target,
    split_texts,
)
from fewbench.errors import AnswersError

if TYPE_CHECKING:
    from fewbench.evaluation import Evaluation
    from fewbench.evaluation.answers import Taken
    from fewbench.scores import Scores


@documented
def tell(
    folder: FolderOrTarget,
    answers: Path | None = None,
    *,
    target: TargetName = None,
    form: str | None = None,
    model: str | None = None,
    item: str | None = None,
    score: str | None = None,
    label: str | None = None,
    transposed: bool = False,
    missing: list[str] | None = None,
    right: list[str] | None = None,
    wrong: list[str] | None = None,
    metric: str | None = None,
    filter: str | None = None,
    key: str | None = None,
    skip: Annotated[list[str] | None, typer.Option(metavar="ID")] = None,
    correct: bool = False,
    repeat: Annotated[int, typer.Option(min=1)] = 1,
    trials: str | None = None,
    accept_differences: AcceptDifferences = False,
    scores: MovedScores = None,
    accept_fractions: bool = False,
    strict: Strict = False,
) -> None:
    """Record target models' answers, or labels.

    Scores are on the scale of the source models.

    \b
    fewbench tell run results.csv                                          columns id and score
    fewbench tell run results.csv --item id --score correct
    fewbench tell run results.csv --model llm --item id --score correct    several targets
    fewbench tell run logs/                                                harness logs
    fewbench tell run logs/ --model org/new                                one of several models
    fewbench tell run agent.run1.json --from swe-bench                     benchmark's own harness
    fewbench tell run labels.csv --label label                             right answers
    fewbench tell run --skip q17                                           no answer possible

    For harness logs, the metric and filter of the source models are used unless you pass --metric
    or --filter. The target must have the source models' prompts, settings (few-shot examples,
    generation arguments, …), right answers, filters and metrics. A table with a column task must
    have the same tasks.

    Parameters
    ----------
    answers
        Table, .npz or logs of a harness, also of the benchmark's own (SWE-bench's report,
        Terminal-Bench, tau2-bench, MMLU-Pro, LiveCodeBench). Costs that logs state are recorded.
    form
        Format if it is not recognized: npz, table, or the name of a harness.
    model
        Table: column with the model. Harness logs: model to read.
    item
        Table: column with the item id (default: id or item).
    score
        Long table: column with the score (default: score).
    label
        Table of right answers: column with the label of each item. The score of each target is
        whether the items' column prediction:TARGET is equal to the label.
    transposed
        Wide table: rows are items, columns models.
    missing
        Table: texts for items that were not run, as in 'n/a,-', besides empty cells. With 'wrong',
        empty cells and null count as the worst score. Comma-separated.
    right
        Table: texts for the best score, such as PASS. Comma-separated.
    wrong
        Table: texts for the worst score, such as FAIL. Comma-separated.
    metric
        Logs: metric to read if there are several.
    filter
        Logs: filter to read if there are several.
    key
        Logs: field that identifies an item (default: the one that the scores record, else its
        content).
    skip
        An item that the target cannot answer. Repeat it for several. The estimate uses the others.
    correct
        Replace earlier answers that differ, and record new ones. The folder keeps the old ones.
    repeat
        Which answers to the items these are: 2 for second ones beside the first, and so on. An
        item's score is the mean of its answers.
    trials
        Long table or logs with several answers to an item: mean, first, or pass@K.
    accept_fractions
        Accept scores between right and wrong where the source models have none.
    """
    from fewbench.runners.joining import leaving_note

    folder, target = split_target(folder, target)
    evaluation = open_evaluation(folder, scores)
    if answers is None and not skip:
        raise AnswersError("nothing to record", hint="give a file of answers, or --skip ID")
    if skip and target is None and len(evaluation.targets) > 1:
        raise AnswersError(
            f"no target named for the skipped items; there are {len(evaluation.targets)}",
            hint="add --target NAME",
            kind="missing",
        )
    took = []
    if answers is not None:
        told = read_answers(
            answers,
            evaluation.scores,
            evaluation.targets,
            target,
            form=form,
            model=model,
            item=item,
            score=score,
            label=label,
            transposed=transposed,
            missing=split_texts(missing),
            right=split_texts(right),
            wrong=split_texts(wrong),
            metric=metric,
            filter=filter,
            key=key,
            accept_differences=accept_differences,
            trials=trials,
        )
        for note in _other_scores(evaluation.scores, told.scores):
            say_warning(note)
        moved = _moved(evaluation, told.scores) if told.is_logs else ""
        taken = evaluation.tell_table(
            told.scores,
            told.target,
            accept_differences=accept_differences,
            accept_fractions=accept_fractions,
            correct=correct,
            strict=strict,
            repeat=repeat,
        )
        _say_taken(taken, evaluation, answers, told.scores.n_items, moved, told.is_logs)
        whose = f" of {target}" if target is not None and len(evaluation.targets) > 1 else ""
        if taken.answers or not taken.corrected:
            took.append(f"recorded {counted(taken.answers, 'answer')}{whose}")
        if taken.corrected:
            took.append(f"corrected {counted(taken.corrected, 'answer')}{whose}")
    if skip:
        evaluation.skip(target or evaluation.targets[0], skip)
        took.append(f"skipped {counted(len(skip), 'item')}")
    left = {name: f"{len(items):,} more" for name, items in evaluation.ask().items()}
    for name in left:
        if (leaves := leaving_note(evaluation, name)) is not None:
            say_note(leaves)
    after = f"fewbench ask {quoted(folder)} for " if left else f"fewbench estimate {quoted(folder)}"
    if len(evaluation.targets) == 1:
        after += "".join(left.values())
    else:
        after += some((f"{n} of {name}" for name, n in left.items()), quotes=False)
    echo(f"{', '.join(took)}. Next: {after}")


def _moved(evaluation: "Evaluation", answers: "Scores") -> str:
    """Name documents of a log that differ from the sources' at the same position."""
    from fewbench.runners import moved_documents

    pending = {item for items in evaluation.ask().values() for item in items}
    elsewhere = [item for item in sorted(pending) if item not in answers.items.index]
    return "; ".join(moved_documents(evaluation.scores, answers, elsewhere))


def _say_taken(
    taken: "Taken",
    evaluation: "Evaluation",
    answers: Path,
    n_items: int,
    moved: str,
    is_logs: bool,
) -> None:
    """Print what was not used; AnswersError if nothing was."""
    from fewbench.scores.conditions import count_uncompared

    if taken.unskipped_items:
        say_note(f"{some(taken.unskipped_items)} skipped earlier; the estimate uses them now")
    for note in (*taken.notes, *count_uncompared(taken.uncompared)) if is_logs else ():
        say_note(note)
    for name, model in taken.renamed.items():
        say_note(f"{answers}: answers of the model {model!r} are recorded as those of {name!r}")
    if moved:
        advice = (
            "if lm-eval ran with --cache_requests, run it again without; if the dataset changed, "
            "run all documents of these tasks with any model (--model dummy is free) and take "
            f"positions from its log: fewbench ask {quoted(evaluation.folder)} --for lm-eval "
            "--positions LOGS"
        )
        if not taken.answers + taken.corrected:
            raise AnswersError(f"{answers}: {moved}, so no answer is used", hint=advice)
        say_warning(f"{moved}; {advice}")
    unasked = taken.unasked_items
    if unasked and not taken.answers and len(unasked) == n_items:
        raise AnswersError(
            f"{answers}: {counted(n_items, 'item')}, none of them asked for: {some(unasked)}",
            hint=f"fewbench ask {quoted(evaluation.folder)} lists the ids",
        )
    if taken.other_models:
        say_note(f"{answers}: {some(taken.other_models)} not used: no target of this evaluation")
    ids = evaluation.scores.items.index
    unknown = [item for item in unasked if item not in ids]
    for items, why in (
        (taken.empty_items, "asked for, but without an answer here (an empty cell means not run)"),
        (unknown, "not in the benchmark, so not used"),
        ([item for item in unasked if item in ids], "not asked for, so not used"),
    ):
        if items:
            say_note(f"{answers}: {counted(len(items), 'item')} {why}: {some(items)}")
    if taken.answers_before:
        say_note(f"{answers}: {counted(taken.answers_before, 'answer')} recorded already")


def _other_scores(sources: "Scores", answers: "Scores") -> Iterator[str]:
    """Yield the tasks whose metric or filter differs from the sources'."""
    for column in ("metric", "filter"):
        of_sources, of_answers = (
            {} if column not in table.items else _by_task(table, column)
            for table in (sources, answers)
        )
        tasks: dict[tuple[str, str], list[str]] = defaultdict(list)
        for task in of_sources.keys() & of_answers.keys():
            if of_sources[task] != of_answers[task]:
                tasks[of_sources[task], of_answers[task]].append(task)
        for (was, now), names in sorted(tasks.items()):
            yield (
                f"{some(sorted(names))}: the answers have the {column} {now or 'none'!r}, the "
                f"source models {was or 'none'!r}"
            )


def _by_task(scores: "Scores", column: str) -> dict[str, str]:
    return dict(zip(scores.items["task"], scores.items[column], strict=True))
