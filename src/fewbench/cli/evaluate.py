"""fewbench start, ask, estimate, view, repair: an evaluation in a folder."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fewbench._names import counted, some
from fewbench._progress import ESTIMATING, at_work
from fewbench._text import echo, quoted, say, say_note, say_warning
from fewbench.cli.documented import documented, flag
from fewbench.cli.options import (
    AcceptDifferences,
    AverageOption,
    Cluster,
    DropItemsOption,
    FilterOption,
    Folder,
    FolderOrTarget,
    ItemsOf,
    Json,
    MetricOption,
    MovedScores,
    ScoresOrPack,
    TargetName,
    Targets,
    WeightsOption,
    Workers,
    load,
    open_evaluation,
    say_asked,
    scoring_of,
    split_target,
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
from fewbench.errors import EvaluationError, MethodError

if TYPE_CHECKING:
    from fewbench.evaluation import Evaluation
    from fewbench.scores import Scores


@documented
def start(
    scores_path: ScoresOrPack,
    *,
    output: Path,
    method: str | None = None,
    budget: str | None = None,
    target: Targets = None,
    items_of: ItemsOf = None,
    half_width: float | None = None,
    level: float = 0.9,
    cost: str | None = None,
    subset: Path | None = None,
    purpose: str = "score",
    seed: int = 0,
    average: AverageOption = None,
    check: bool = True,
    workers: Workers = 1,
    cluster: Cluster = None,
) -> None:
    """Start an evaluation of one or several target models.

    \b
    fewbench start scores.parquet --budget 50 -o run
    fewbench start scores.parquet --method greedy-ridge --budget 50 -o run
    fewbench start scores.parquet -m greedy-ridge -n 50 -t step-1000 -t step-2000 -o run
    fewbench start scores.parquet -m random --half-width 0.03 -o run
    fewbench start scores.parquet --budget 50 -t step-3000 -o run       joins the targets in run
    fewbench start scores.parquet --subset subset.json -o run
    fewbench start scores.parquet --purpose difference -n 160 -t new -t old -o run
    fewbench start unlabeled.csv -n 200 -t new -o run   predictions are known, labels are not
    fewbench start mmlu-100.few -o run
    fewbench start terminal-bench -n 20 -o run          results of a public source

    Parameters
    ----------
    output
        Folder for the evaluation: a new folder, or one with other targets.
    method
        Method name, see fewbench methods (default: auto, chosen by a quick backtest on the source
        models).
    budget
        Largest number of items to run per target, or a share such as 10% (of each task's items, and
        at least 20 of each task).
    target
        Name of a target model. Repeat it for several. In a folder with other targets, a new target
        gets their items first.
    half_width
        Stop once the half width of the interval is at most this, on the scale of the scores. A
        batch then has a tenth as many items as are answered.
    level
        Level of the interval for --half-width.
    cost
        Largest cost per target, from the items' column cost. You can add a unit, as in '75 $'.
    subset
        Use the items and method of a file from fewbench select -o.
    purpose
        Purpose of the items: score, or difference (all targets run the same items; see fewbench
        versus).
    seed
        Random seed.
    check
        Measure the method's error on the source models and warn if the error is not below random
        sampling's.
    workers
        Number of processes that measure the method's error.
    """
    from fewbench.evaluation.changes import share_of_start
    from fewbench.evaluation.journal import HEADER, Journal
    from fewbench.methods import Subset
    from fewbench.methods.base import AUTO
    from fewbench.runners.joining import open_or_start

    check_output_folder(output, inputs=[scores_path])
    joins = bool(target) and (output / HEADER).exists()
    if not joins:
        Journal(output).check_free()
    chosen = None
    if purpose != "score":
        method = _for_difference(purpose, method, target or ["target"], subset)
    if subset is not None:
        try:
            chosen = Subset.from_json(subset.read_bytes())
        except MethodError as error:
            raise EvaluationError(
                f"{subset}: {error.message}", hint="give a file that fewbench select -o wrote"
            ) from error
        provenance = chosen.provenance
        if method is not None or budget is not None:
            raise EvaluationError(
                "--subset sets the method and the budget", hint="leave out --method and --budget"
            )
        if provenance is None:
            raise EvaluationError(f"{subset}: names no method")
        method, budget, seed = provenance.method, str(provenance.budget), provenance.seed
        average = average or provenance.average
    scores = load(scores_path, average, items=True)
    budget = share_of_start(output, budget)
    stop = stop_of(budget, scores, half_width=half_width, level=level, cost=cost)
    assert stop is not None
    names = target or ["target"]
    size = f"{counted(scores.n_models, 'source model')} × {counted(scores.n_items, 'item')}"
    with at_work(f"choosing items ({size})"):
        evaluation, notes = open_or_start(
            output, scores, method or AUTO, stop, names, seed, items_of, subset=chosen
        )
    for note in notes:
        say_note(note)
    method = evaluation.provenance.method
    asked = evaluation.ask()
    if not asked:
        raise EvaluationError("the cost does not allow a single item", hint="give a higher --cost")
    if not joins:
        evaluation.save(output, scores_path)
    first = asked.get(evaluation.targets[-1]) or next(iter(asked.values()))
    if len(evaluation.targets) > 1 and not evaluation.method.targets_apart:
        say_note(f"with {method}, targets wait for one another before they get more items")
    if check:
        with at_work("measuring the method's error on the source models (--no-check skips this)"):
            warnings = evaluation.warnings(workers=workers, executor=cluster)
        for warning in warnings:
            say_warning(warning)
    batch = " (the first batch)" if len(first) < evaluation.provenance.budget else ""
    n_sources = evaluation.scores.n_models
    sources = f"{counted(n_sources, 'source model')} × " if n_sources else ""
    echo(
        f"{output}: {method} on {sources}{counted(scores.n_items, 'item')}; "
        f"{counted(len(first), 'item')} to run now{batch}. Next: fewbench ask {quoted(output)}"
    )


def _for_difference(
    purpose: str, method: str | None, targets: list[str], subset: Path | None
) -> str:
    from fewbench.decide.live import difference_method

    if purpose != "difference":
        raise EvaluationError(
            f"unknown purpose {purpose!r}", hint="use --purpose score or difference", kind="unknown"
        )
    if method not in (None, "fewbench") or subset is not None:
        raise EvaluationError(
            "--purpose difference chooses items by the method fewbench",
            hint="leave out --method and --subset",
        )
    return difference_method(len(targets))


@documented
def ask(
    folder: FolderOrTarget,
    *,
    harness: str = "ids",
    target: TargetName = None,
    at_most: Annotated[int | None, typer.Option(min=1)] = None,
    positions: Annotated[Path | None, typer.Option(metavar="LOGS")] = None,
    scores: MovedScores = None,
    as_json: Json = False,
) -> None:
    """Print the items to run next.

    \b
    fewbench ask run                       one item id per line
    fewbench ask run --for lm-eval         lm_eval … --samples "$(fewbench ask run --for lm-eval)"
    fewbench ask run --for inspect         inspect eval … --sample-id "$(fewbench ask run …)"

    Parameters
    ----------
    harness
        Output format: ids, lm-eval (for --samples) or inspect (for --sample-id).
    at_most
        Largest number of items to print.
    positions
        With --for lm-eval, if the dataset changed: logs of any model on all documents, which give
        the positions.
    """
    from fewbench.runners import check_export, export_items
    from fewbench.scores.groups import harness_tasks

    check_export(harness)
    folder, target = split_target(folder, target)
    evaluation = open_evaluation(folder, scores)
    if target is not None and target not in evaluation.targets:
        raise EvaluationError(
            f"{target!r} is not a target",
            hint=f"targets: {', '.join(evaluation.targets)}",
            kind="unknown",
        )
    pending = evaluation.ask(at_most)
    if target is not None:
        pending = {name: items for name, items in pending.items() if name == target}
    if as_json and harness != "ids":
        raise EvaluationError("--json prints item ids of all targets", hint=f"omit --for {harness}")
    if as_json:
        echo(json.dumps(pending, indent=2))
        return
    if not pending and target in evaluation.waiting():
        others = some(list(evaluation.ask()))
        say(f"{target} waits for the answers of {others}, then gets new items")
        return
    if not pending:
        is_limited = any(map(evaluation.is_limited, evaluation.targets))
        why = " within the cost limit" if is_limited else ""
        say(f"nothing more to run{why}. Next: fewbench estimate {quoted(folder)}")
        return
    if len({tuple(items) for items in pending.values()}) > 1:
        raise EvaluationError(
            f"the {len(pending)} targets need different items", hint="add --target NAME, or --json"
        )
    items = next(iter(pending.values()))
    sources = evaluation.scores
    if positions is not None:
        sources, items = _positions_now(sources, items, positions, harness)
    text = export_items(sources, items, harness)
    echo(text)
    say(f"{counted(len(items), 'item')} for {', '.join(pending)}")
    if harness == "lm-eval":
        say(f"run exactly these tasks with --log_samples: {','.join(json.loads(text))}")
        say(f"--samples needs lm-eval 0.4.9 or newer{_ran_with(sources, items)}")
    if harness == "inspect":
        tasks = dict.fromkeys(harness_tasks(sources.items.loc[items]))
        say(f"run exactly these tasks: {','.join(tasks)}")


def _ran_with(sources: "Scores", items: list[str]) -> str:
    from fewbench.scores.conditions import versions_in
    from fewbench.scores.table import HARNESS_VERSION

    if HARNESS_VERSION not in sources.items:
        return ""
    versions = versions_in(sources.items[HARNESS_VERSION].loc[items])
    return f"; the source models ran with lm-eval {versions}" if versions else ""


def _positions_now(
    sources: "Scores", items: list[str], logs: Path, harness: str
) -> tuple["Scores", list[str]]:
    """Return the sources with positions from logs, and the items that the logs contain."""
    if harness != "lm-eval":
        raise EvaluationError("--positions needs --for lm-eval", hint="add --for lm-eval")
    from fewbench.readers import import_results
    from fewbench.runners import positions_in

    now = import_results(logs, like=sources, scale=sources.scale).scores
    sources, lacking = positions_in(sources, now, items)
    if len(lacking) == len(items):
        raise EvaluationError(
            f"{logs}: contains none of the {len(items):,} items to run, or no positions",
            hint="give logs of a complete run; if the documents changed, import source models that "
            "ran the new documents",
        )
    if lacking:
        say_warning(
            f"{logs}: lacks {len(lacking):,} of {len(items):,} items, not printed here: "
            f"{some(lacking)}"
        )
    return sources, [item for item in items if item not in set(lacking)]


@documented
def estimate(
    folder: FolderOrTarget,
    *,
    level: float = 0.9,
    target: TargetName = None,
    next_items: int | None = None,
    ask: bool = False,
    scores: MovedScores = None,
    average: AverageOption = None,
    metric: MetricOption = None,
    filter: FilterOption = None,
    weights: WeightsOption = None,
    drop_items: DropItemsOption = None,
    workers: Workers = 1,
    cluster: Cluster = None,
    report: Report = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Estimate full scores from the answers so far.

    Prints score, interval, rank, task scores, and the half width that the same number of random
    items would give. The rank is among the target and the source models that ran half of the items
    or more (1 is best), with the ranks at the ends of the interval in brackets. For several
    targets, prints one row per finished target and lists the others; --target NAME prints one
    target in full.

    \b
    fewbench estimate run
    fewbench estimate run:step-2000                     one of several targets
    fewbench estimate run --level 0.95 --json
    fewbench estimate run --report estimate.html
    fewbench estimate run --next-items 50 --ask         extend the evaluation by 50 items
    fewbench estimate run --average macro               another question to the same answers
    fewbench estimate run --metric acc_norm --scores acc_norm.parquet

    Parameters
    ----------
    level
        Level of the interval.
    next_items
        With --ask: number of further items for each target, even above the budget.
    ask
        With --next-items: ask for these items. All answers are kept. Rerun the command of fewbench
        run to run them, or list them with fewbench ask.
    workers
        Number of processes that measure the method's error.
    """
    folder, target = split_target(folder, target)
    check_outputs(report, inputs=[folder, scores], force=force, formats=FORMATS)
    if ask or next_items is not None:
        from fewbench.decide.next_items import check_next

        check_next(next_items, ask=ask, is_shown=False)
    asked: dict[str, Any] = {"average": average, "metric": metric, "filter": filter}
    asked |= {"weights": weights, "drop_items": drop_items}
    scoring = scoring_of(asked)
    if scoring and ask:
        raise EvaluationError(
            "items are asked for by the question that the evaluation was started with",
            hint=f"leave out {', '.join(flag(name) for name in asked if asked[name])}",
        )
    evaluation = open_evaluation(folder, scores, scoring)
    names = None
    if target is not None:
        names = [target]
    elif len(evaluation.targets) > 1:
        names = evaluation.finished() or None
    with at_work(ESTIMATING):
        estimates = evaluation.estimate(level, names, workers=workers, executor=cluster)
    echo(estimates.to_json() if as_json else str(estimates))
    for name in evaluation.targets if target is None else ():
        if name not in estimates:
            answered = len(evaluation.record.answered(name))
            n_asked = len(evaluation.record.asked(name))
            say(f"not finished: {name}, {answered:,} of {n_asked:,} items answered")
    if report is not None:
        from fewbench.evaluation.opening import BENCHMARK
        from fewbench.runners.result import RunResult

        path = evaluation.scores_path
        result = RunResult.of_folder(folder, estimates) or estimates
        source = "" if path is None or path.name == BENCHMARK else path.name
        write(result.page(evaluation, source=source), result, report)
    if next_items is not None:
        answering = [name for name in evaluation.targets if len(evaluation.record.answered(name))]
        _extend(evaluation, answering if target is None else [target], next_items)


def _extend(evaluation: "Evaluation", targets: list[str], n: int) -> None:
    """Ask targets for further items, and print how to run them."""
    from fewbench.decide.next_items import extend

    with at_work("choosing items"):
        extend(evaluation, targets, n)
    asked = evaluation.ask(targets=targets)
    for name in targets:
        if name not in asked:
            say_note(
                f"{name} gets no more items: it ran them all, or its cost limit is reached "
                "(to go on: a larger limit of fewbench start --cost or fewbench run)"
            )
    if asked:
        say_asked(evaluation, asked)


@documented
def extend(
    folder: Folder, items: ScoresOrPack, *, accept_differences: AcceptDifferences = False
) -> None:
    """Take more items or tasks into an evaluation that has answers.

    Answers stay, and no item is run twice. The same share of the new items is drawn as of the old
    ones, so that all answers together are a sample of all items. Source models without answers to
    the new items keep them empty. fewbench run does the same if it names new items or tasks.

    \b
    fewbench extend run items.csv              a file of items, or only the new ones
    fewbench extend run scores.parquet         a table that has grown
    """
    from fewbench.evaluation.extending import extend as take_in
    from fewbench.evaluation.extending import extension_note

    extended = take_in(folder, load(items, items=True), accept_differences=accept_differences)
    for note in extended.notes:
        say_note(note)
    echo(
        f"{folder}: {extension_note(extended)}. Next: rerun the command of fewbench run, or "
        f"fewbench ask {quoted(folder)}"
    )


@documented
def view(
    folder: Folder,
    *,
    level: float = 0.9,
    port: Annotated[int, typer.Option(min=0, max=65535)] = 0,
    scores: MovedScores = None,
) -> None:
    """Serve a page on this machine that follows an evaluation.

    The page shows the estimates and updates as answers come, until you press Ctrl-C. The folder is
    only read. Only this machine can open the address, and only with the token in it.

    \b
    fewbench view run
    fewbench view run --port 8000

    Parameters
    ----------
    level
        Level of the intervals.
    port
        Port on this machine (default: any free one).
    """
    from fewbench.evaluation.view import view as serve

    try:
        serve(
            folder,
            scores,
            level=level,
            port=port,
            on_ready=lambda url: echo(f"{url}\nStop with Ctrl-C."),
        )
    except KeyboardInterrupt:
        say("stopped")


@documented
def repair(folder: Folder, *, remove: str | None = None) -> None:
    """Drop damaged answers of an evaluation, or remove a target.

    Prints the numbers of the lines, and keeps the damaged file as answers.jsonl.damaged.
    Items of dropped answers run again. If a dropped line corrected an answer, the earlier
    answer counts.

    \b
    fewbench repair run
    fewbench repair run --remove step-100      keeps the folder as it was in run.1

    Parameters
    ----------
    remove
        Remove this target with all its answers, and keep a copy of the folder as DIR.1, DIR.2, …
    """
    from fewbench.evaluation.journal import Journal
    from fewbench.runners.run_folder import remove_target

    if remove is not None:
        kept = remove_target(folder, remove)
        echo(f"{folder}: removed the target {remove}; the folder as it was is now in {kept}")
        return
    dropped = Journal(folder).repair()
    if dropped:
        echo(
            f"{folder}: dropped {counted(len(dropped), 'damaged line')} (line "
            f"{some(dropped, 20, quotes=False)}); the damaged file is "
            "answers.jsonl.damaged. Items of dropped answers run again. If a dropped line "
            "corrected an answer, the earlier answer counts: correct it again. Next: fewbench ask "
            f"{quoted(folder)}"
        )
    else:
        echo(f"{folder}: nothing is damaged")
