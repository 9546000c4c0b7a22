"""fewbench best: run several models until it is clear which is the best."""

import shlex
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from fewbench._progress import at_work, status_line
from fewbench._text import say, say_note
from fewbench.cli.options import Targets, WeightsOption, stop_of
from fewbench.cli.outputs import show
from fewbench.cli.running import INTERRUPTED_CODE, STOPPED, Notes, RunOptions, with_arguments
from fewbench.errors import RunError

if TYPE_CHECKING:
    from fewbench.runners.driving import Runner
    from fewbench.runners.result import RunResult
    from fewbench.scores import Scores

MODEL_ARGS = "--model_args"
UNUSED = ("method", "half_width", "tokens", "minutes", "items_of", "repeats", "retry")
"""Options of fewbench run that this command has no use for."""


def _best(
    options: RunOptions,
    arguments: list[str],
    *,
    target: Targets = None,
    targets: Path | None = None,
    budget: str | None = None,
    cost: str | None = None,
    margin: float = 0.0,
    top: int = 1,
    level: float = 0.95,
    in_general: bool = False,
    batch: int | None = None,
    weights: WeightsOption = None,
    runner: Literal["command", "lm-eval", "inspect"] = "command",
) -> None:
    """Run several models until it is clear which is the best.

    All models run the same items in one random order, some further than others. After each round,
    the models that may still be the best run on, and the others are dropped. The run ends once it
    is settled, or at the limit on answers or cost. Rerun the command to resume, or with a larger
    limit to go on. fewbench rank, versus and track read the folder.

    \b
    fewbench best items.jsonl -t step-1000 -t step-2000 -n 2000 -o run -- python answer.py
    fewbench best items.jsonl -t terse="--prompt a.txt" -t long="--prompt b.txt" -n 500 -o run \\
        -- python answer.py
    fewbench best scores.parquet --targets models.txt -n 10% --margin 0.01 --top 3 -o run \\
        -- python answer.py
    fewbench best --runner lm-eval -t org/a -t org/b -n 2000 --batch 100 -o run \\
        -- --model hf --tasks gsm8k
    fewbench best --runner inspect -t openai/gpt-4o -t openai/gpt-4o-mini --cost '20 $' -o run \\
        -- task.py

    \b
    After -- comes what runs the models:
    command   a program as for fewbench run command, whose lines of input name the target
    lm-eval   arguments of lm-eval; a target is a model of --model_args pretrained=NAME
    inspect   arguments of inspect eval; a target is a name of --model, or NAME="ARGUMENTS"

    Parameters
    ----------
    target
        Name of a target model, or NAME="ARGUMENTS" with what is added to the arguments after -- for
        this target. Repeat it for each.
    targets
        File with the target models, one a line, written as for --target.
    budget
        Largest number of answers of all targets together, or a share of all answers such as 10%.
    cost
        Largest cost of all targets together, as the program reports it or else from the items'
        column cost. You can add a unit, as in '75 $'.
    margin
        Also stop once no other model is better by more than this, on the scale of the scores.
    top
        Number of best models to find.
    level
        Probability at which the run stops.
    in_general
        Find the model that is the best on questions like these and if it runs again, and not on
        exactly these items.
    batch
        Smallest number of further items of a target at a time, where loading a model takes long.
    runner
        What runs the models.
    """
    from fewbench.decide.best import Search, run_best, total_of

    given = _targets(target or [], targets)
    limit = None if cost is None else stop_of(None, None, cost=cost)
    of_scores: list[str] = []
    scores, notes = options.load(of_scores), Notes(of_scores)
    if weights is not None:
        scores = _weighed(scores, weights)
    search = Search(
        targets=tuple(given),
        answers=total_of(budget, len(given), scores),
        cost=None if limit is None else limit.cost,
        unit="" if limit is None else limit.unit,
        margin=margin,
        top=top,
        level=level,
        in_general=in_general,
        batch=batch,
        seed=options.seed,
    )
    search.check()
    run = _runner(runner, given, arguments, options)
    passed = options.of_run
    for name in ("seed", "batch", "items_of", "repeats", "retry"):
        del passed[name]
    with options.room(), status_line(f"running {runner}") as update:
        result = run_best(run, scores, search, on_progress=update, on_notes=notes.tell, **passed)
    notes.tell(result.notes)
    show(result.page(), result, options.report, options.as_json)
    if result.stopped == "interrupted":
        say("Rerun the command to resume.")
        sys.exit(INTERRUPTED_CODE)
    if result.is_failed:
        say(f"{result.stopped}. Fix the cause, then rerun the command to resume.")
        raise typer.Exit(STOPPED)


best = with_arguments(_best, *UNUSED)


def _weighed(scores: "Scores | None", weights: Path) -> "Scores":
    """Return the scores with these weights, or raise RunError without items to weigh."""
    from fewbench.evaluation.scoring import Scoring

    if scores is None:
        raise RunError(
            "--weights: the items are not known before the run", hint="name a file of the items"
        )
    if scores.n_models:
        say_note(
            f"the folder has these weights, {weights}, for this command alone: give them to rank, "
            "versus and estimate as well"
        )
    return Scoring(weights=weights).of_table(scores)


def _targets(typed: Sequence[str], path: Path | None) -> dict[str, list[str]]:
    """Return the targets, and what is added to the arguments for each."""
    lines = [] if path is None else path.read_text(encoding="utf-8").splitlines()
    texts = [*typed, *(line.strip() for line in lines if line.strip()[:1] not in ("", "#"))]
    targets: dict[str, list[str]] = {}
    for text in texts:
        name, _, more = text.partition("=")
        if not name or name in targets:
            raise RunError(
                f"{text}: {'a target without a name' if not name else 'named twice'}",
                hint='write NAME, or NAME="ARGUMENTS", each name once',
            )
        try:
            targets[name] = shlex.split(more)
        except ValueError as error:
            raise RunError(f"{text}: {error}", hint="close its quotation marks") from error
    return targets


def _runner(
    kind: str,
    targets: dict[str, list[str]],
    arguments: list[str],
    options: RunOptions,
) -> "Callable[..., RunResult]":
    """Return what runs the targets, as `run_best` calls it."""
    from fewbench.runners.driving import run_with
    from fewbench.runners.each import EachRunner

    if kind == "inspect":
        return _inspect(targets, arguments, quiet=options.as_json)
    runner: Runner
    if kind == "lm-eval":
        from fewbench.evaluation.journal import LM_EVAL_LOGS
        from fewbench.runners.lm_eval.runner import LmEvalRunner

        with at_work("reading lm-eval's arguments"):
            runner = EachRunner(
                {
                    name: LmEvalRunner(
                        _of_lm_eval(arguments, name, more),
                        folder=options.output / LM_EVAL_LOGS,
                        accept_differences=options.accept_differences,
                    )
                    for name, more in targets.items()
                }
            )
        return partial(run_with, runner)
    from fewbench.runners.command import CommandRunner

    if not arguments:
        raise RunError("no program to run", hint="name it after --, as in -- python answer.py")
    if any(targets.values()):
        runner = EachRunner(
            {name: CommandRunner([*arguments, *more]) for name, more in targets.items()}
        )
    else:
        runner = CommandRunner(arguments)
    return partial(run_with, runner)


def _of_lm_eval(arguments: Sequence[str], name: str, more: Sequence[str]) -> list[str]:
    """Return the arguments of lm-eval for a target: its model is its name, or named in `more`."""
    own = [word for word in more if "=" in word and not word.startswith("-")]
    if own and own == list(more):
        more = [MODEL_ARGS, ",".join(own)]
    more = list(more) or [MODEL_ARGS, f"pretrained={name}"]
    words = list(arguments)
    if MODEL_ARGS in more and MODEL_ARGS in words:  # lm-eval takes the last one alone
        at, own_at = words.index(MODEL_ARGS) + 1, more.index(MODEL_ARGS)
        words[at : at + 1] = [f"{value},{more[own_at + 1]}" for value in words[at : at + 1]]
        del more[own_at : own_at + 2]
    return [*words, *more]


def _inspect(
    targets: dict[str, list[str]], arguments: Sequence[str], *, quiet: bool
) -> "Callable[..., RunResult]":
    """Return what runs the targets in Inspect: models in one eval, or arguments in evals each."""
    from fewbench.runners.inspect.runner import run_inspect

    if not any(word.startswith("-") for more in targets.values() for word in more):
        models = [more[0] if more else name for name, more in targets.items()]
        words = [*arguments, "--model", ",".join(models)]
        return partial(run_inspect, arguments=words, quiet=quiet)
    own = {
        name: ["--model", *more] if len(more) == 1 and not more[0].startswith("-") else more
        for name, more in targets.items()
    }
    return partial(run_inspect, arguments=arguments, own=own, quiet=quiet)
