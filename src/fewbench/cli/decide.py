"""fewbench versus, gate, rank and track."""

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fewbench._names import counted, did_you_mean
from fewbench._progress import ESTIMATING, at_work, status_line
from fewbench._text import echo, quoted, say, say_note
from fewbench.cli.answers import read_answers
from fewbench.cli.commands import Call, command
from fewbench.cli.options import SCORING, load, scoring_of
from fewbench.cli.outputs import check_output_folder
from fewbench.decide import Ranking, Track, Versus, add_checkpoint
from fewbench.decide import gate as check_target
from fewbench.decide import rank as rank_targets
from fewbench.decide import track as follow
from fewbench.decide import versus as compare_two
from fewbench.decide.track_folder import is_tracked, open_folder
from fewbench.errors import AnswersError, EvaluationError
from fewbench.evaluation import Evaluation
from fewbench.evaluation.journal import HEADER
from fewbench.methods.sources import NEARLY_COMPLETE
from fewbench.public import is_source
from fewbench.scores import Scores


def _run(
    call: Call,
    program: list[str] | None = None,
    *,
    run: Path | None = None,
    budget: int | None = None,
    seed: int | None = None,
) -> Versus:
    """Run both models first if a folder and a program are given.

    Parameters
    ----------
    program
        With `run`: the program and its arguments, after --. Without: the second target or source
        model, if A is the folder of the first one.
    run
        Folder in which the program after -- runs A and B, as fewbench run command does, until the
        difference is decided. Needs --scores.
    budget
        With `run`: largest number of items per model (default: 160).
    seed
        With `run`: random seed (default: 0).
    """
    given = call.given
    how: dict[str, Any] = {"budget": budget, "seed": seed}
    how = {name: typed for name, typed in how.items() if typed is not None}
    if run is None and program and len(program) == 1 and (Path(given["a"]) / HEADER).is_file():
        folder, names = given["a"], (given["b"], program.pop())
        targets = call.evaluation(folder).targets
        first, second = (f"{folder}:{name}" if name in targets else name for name in names)
        given |= {"a": first, "b": second}
    if run is None and not program:
        call.refuse(how, "without a run", "add --run DIR and a program after --, or leave them out")
        result: Versus = call()
        return result
    from fewbench.decide import run_versus
    from fewbench.runners.command import CommandRunner

    options = call.typed_for(compare_two)
    scores_path = options.pop("scores", None)
    call.refuse(
        [name for name in options if name not in inspect.signature(run_versus).parameters],
        "on a run, which chooses the items and stops once it is decided",
        "leave them out, or compare two evaluations that exist",
    )
    if run is None and len(program or ()) == 1:  # a folder and two targets, as it seems
        folders = [str(path.parent) for path in Path(given["a"]).parent.glob(f"*/{HEADER}")]
        others = "name the folder of both targets, or add --run DIR and --scores SCORES"
        raise EvaluationError(
            f"{given['a']}: no such folder of an evaluation",
            hint=did_you_mean(given["a"], folders, others),
        )
    if run is None or not program or scores_path is None:
        raise EvaluationError(
            "a run needs a folder, the source models and a program",
            hint="as in --run DIR --scores SCORES -- python answer.py",
        )
    check_output_folder(run, inputs=[scores_path])
    with status_line(f"running {given['a']} and {given['b']}") as update:
        return run_versus(
            load(scores_path),
            CommandRunner(program),
            names=(given["a"], given["b"]),
            folder=run,
            scores_path=scores_path,
            on_progress=lambda run, target: update(
                f"{target}: {len(run.evaluation.record.answered(target)):,} items"
            ),
            **how,
            **options,
        )


versus = command(
    compare_two,
    work=ESTIMATING,
    hidden=["warn"],
    around=_run,
    arguments=["program"],
    details=True,
    examples="""
fewbench versus new-run old-run                two evaluations of one target each
fewbench versus run step-2000 step-1000        two targets of one folder
fewbench versus run:step-2000 old-run          a target of a folder, and another folder
fewbench versus run old-model                  a target and a source model
fewbench versus run old-model --margin 0.01    not worse by more than 0.01?
fewbench versus model-a model-b --scores scores.parquet
fewbench versus model-a model-b --scores scores.parquet --fixed-items   these answers alone
fewbench versus new old --run run --scores scores.parquet -n 160 -- python answer.py
""",
)

gate = command(
    check_target,
    work=ESTIMATING,
    page=lambda result, options: result.page(options["target"].removesuffix(f":{result.target}")),
    about="The exit code is 0 for pass, 1 for fail, 2 for an error and 3 for undecided.",
    examples="""
fewbench gate run --at-least 0.70
fewbench gate run --not-below old-model --margin 0.01
fewbench gate run:step-2000 --not-below old-run --margin 0.01 --level 0.95 --report gate.md
fewbench gate run --at-least 0.70 --sequential --json
fewbench gate runs:b/step-2000 --not-below a/step-2000 --margin 0.03 --looks 30   stop run b if 1
""",
)


def _rank(call: Call, *, title: str | None = None) -> Ranking:
    """Rank, for a page with a title.

    Parameters
    ----------
    title
        Title of the page, as in 'Our board, November 2026'.
    """
    result: Ranking = call()
    return result


rank = command(
    rank_targets,
    work=ESTIMATING,
    flags={"all_models": "--all"},
    around=_rank,
    page=lambda result, options: result.page(options["title"]),
    examples="""
fewbench rank scores.parquet                           a leaderboard: models that ran all items
fewbench rank scores.parquet run-a run-b --tasks --title 'My board' --report leaderboard.html
fewbench rank scores.parquet --history                 the best model at each date
fewbench rank run
fewbench rank run-a run-b --models old-model
fewbench rank run --top 3 --json
fewbench rank run --sequential --next-items 50 --ask   50 more items, where they settle the best
""",
)


def _track(
    call: Call,
    answers: Path | None = None,
    *,
    add: str | None = None,
    item: str | None = None,
    score: str | None = None,
    missing: Sequence[str] = (),
    right: Sequence[str] = (),
    wrong: Sequence[str] = (),
) -> Track | None:
    """Add a checkpoint, or print the curve.

    Parameters
    ----------
    answers
        With `add`: table of answers, or harness logs.
    add
        Name of a checkpoint to add to the folder.
    item
        Table of answers: column with the item id.
    score
        Table of answers: column with the score.
    missing
        Table of answers: texts for items that were not run, as in 'n/a,-'.
    right
        Table of answers: texts for the best score, such as PASS.
    wrong
        Table of answers: texts for the worst score, such as FAIL.
    """
    options = call.given
    if add is None:
        if answers is not None:
            raise AnswersError(
                "the checkpoint of the answers is not named",
                hint="name it with --add NAME; checkpoints are followed in one folder",
            )
        texts = {"item": item, "score": score, "missing": missing, "right": right, "wrong": wrong}
        call.refuse(
            [name for name, typed in texts.items() if typed],
            "without --add",
            "name the checkpoint of the answers with --add NAME",
        )
        result: Track = call()
        return result
    curve = [*call.typed_for(follow), *(n for n in (*SCORING, "report", "as_json") if options[n])]
    call.refuse(
        [name for name in curve if name != "scores"],
        "with --add",
        "leave them out; give them when you print the curve",
    )
    scores = None if options["scores"] is None else load(options["scores"])
    words = {"missing": missing or (), "right": right or (), "wrong": wrong or ()}
    how = {"item": item, "score": score, **words}
    _add(options["checkpoints"], add, answers, how, scores)
    return None


def _checkpoints(call: Call, path: Path) -> Scores | list[Evaluation] | Path:
    if not path.exists() and not is_source(path):
        raise EvaluationError(
            f"{path}: no such file or folder", hint="name a scores file, or the folder of a run"
        )
    if path.is_dir() and is_tracked(path):
        call.refuse(
            [name for name in ("run",) if call.given[name]],
            "with a folder",
            "leave it out: it chooses models of a scores file. A folder is followed with all its "
            "runs; for one of them, name its own folder if it has one",
        )
        scoring = scoring_of(call.given)
        if not scoring:
            return path
        scores = call.given["scores"] if scoring.read_as else None
        return [each.rescored(scoring, scores) for each in open_folder(path)]
    if call.given["run"] is None:
        raise EvaluationError(
            "the run's checkpoints are not named",
            hint="add --run NAME, or name a folder of evaluations",
        )
    return scoring_of(call.given).of_table(load(path), path)


def _add(
    folder: Path,
    name: str,
    answers: Path | None,
    how: dict[str, Any],
    scores: Scores | None,
) -> None:
    table, share, is_whole = None, 0.0, False
    if answers is not None:
        sources = open_folder(folder, scores)[0].scores
        table = read_answers(answers, sources, [name], **how).scores
        share = float(sources.items.index.isin(table.item_ids).mean())
        is_whole = share >= 1 - NEARLY_COMPLETE
    with at_work("choosing items"):
        evaluation = add_checkpoint(folder, name, scores=scores, is_whole=is_whole)
    place = evaluation.folder
    if table is None:
        asked = evaluation.ask().get(name, [])
        for item in asked:
            echo(item)
        say(
            f"{counted(len(asked), 'item')} for {name}. Next: run them, then fewbench track "
            f"{quoted(folder)} --add {quoted(name)} ANSWERS; or run them with a runner, see "
            f"fewbench ask {quoted(place)}"
        )
        return
    taken = _tell(evaluation, table, name, is_whole=is_whole)
    if is_whole:
        say_note(f"the file has {share:.0%} of the items: {name} ran in full, as a source model")
    left = sum(len(items) for items in evaluation.ask().values())
    after = f"fewbench track {quoted(folder)}"
    if left:
        after = f"fewbench ask {quoted(place)} for {counted(left, 'more item')}"
    echo(f"recorded {counted(taken, 'answer')} of {name}. Next: {after}")


def _tell(evaluation: Evaluation, table: Scores, name: str, *, is_whole: bool) -> int:
    """Record answers, as long as the method asks for items that have one; then all of a full run.

    The items that the method asks for stay the first ones, which further targets run.
    """
    taken = 0
    while True:
        new = evaluation.tell_table(table, name).answers
        taken += new
        asked = evaluation.ask().get(name, [])
        if not new or not any(item in table.items.index for item in asked):
            break
    if is_whole:
        items = evaluation.scores.item_ids
        evaluation.ask_more({name: [item for item in items if item in table.items.index]})
        taken += evaluation.tell_table(table, name).answers
    unasked = table.n_items - len(evaluation.record.answered(name))
    if not taken and unasked:
        raise AnswersError(
            f"none of the {table.n_items:,} items was requested from {name}, or all are recorded",
            hint=f"fewbench ask {quoted(evaluation.folder)} lists the ids",
        )
    if unasked > 0:
        say_note(f"{counted(unasked, 'item')} not used: not asked for")
    return taken


track = command(
    follow,
    work=ESTIMATING,
    around=_track,
    arguments=["answers"],
    read={"checkpoints": (Path, _checkpoints, "")},
    examples="""
fewbench start scores.parquet -m aipw -n 100 -t step-1000 -o follow/step-1000
fewbench track follow --add step-2000              print the items to run, those of step-1000
fewbench track follow --add step-2000 results.csv --item id --score correct
fewbench track follow --report curve.html          print the curve, write its page
fewbench track runs                                several runs: targets a/step-1000, b/step-1000
fewbench track scores.parquet --run my-run         checkpoints in the scores file
""",
)
