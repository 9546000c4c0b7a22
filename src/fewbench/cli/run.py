"""fewbench run: run a model on chosen items and estimate its score."""

from collections.abc import Iterator, Mapping
from functools import partial
from inspect import getdoc
from pathlib import Path
from typing import Any, Literal

from typer.main import get_group

from fewbench._plugins import Added, Registry, added
from fewbench._progress import at_work
from fewbench.cli.help import Commands, ListedGroup
from fewbench.cli.running import RunOptions, run_and_print, run_command
from fewbench.errors import RunError


class _Runners(ListedGroup):
    """Our ways of running a model, and those that packages add."""

    def added(self) -> Mapping[str, Any]:
        """Return the commands of runners that packages add, by name."""
        return RUNNERS


def _added() -> Iterator[Added]:
    """Yield a command for each runner that packages add."""
    from fewbench.runners.driving import Runner

    for one in added("runners"):
        if not (isinstance(one.thing, type) and issubclass(one.thing, Runner)):
            raise one.refused("not a Runner of fewbench.runners.driving")
        if one.name in [command.name for command in run.registered_commands]:
            raise one.refused("this name is taken")
        yield one.of(one.name, _command_of(one.name, one.thing))


def _command_of(name: str, runner: Any) -> Any:
    """Return the command of a runner, which is made from what follows --."""
    from fewbench.runners.driving import run_with

    def run_it(options: RunOptions, arguments: list[str]) -> None:
        run_and_print(partial(run_with, runner(arguments)), options, name)

    run_it.__doc__ = getdoc(runner)
    alone = Commands()
    run_command(alone, name)(run_it)
    return get_group(alone).commands[name]


RUNNERS: Registry[Any] = Registry({}, _added)
run = Commands(_Runners)


@run.callback()
def _all() -> None:
    """Run a model on chosen items and estimate its full score.

    With scores of 20 or more independent models (SCORES), fewbench chooses the most informative
    items. With fewer, or none, the items are a random sample, spread over tasks.

    \b
    lm-eval:      fewbench run lm-eval -n 200 -o run -- --model hf --model_args pretrained=X
                  --tasks mmlu,gsm8k
    with sources: fewbench run lm-eval scores.parquet -n 50 -o run -- --model hf --model_args
                  pretrained=X
    public ones:  fewbench run lm-eval mmlu-pro -n 100 -o run -- --model hf --model_args
                  pretrained=X
    A program:    fewbench run command scores.parquet -n 50 -o run -- python answer.py
    An endpoint:  fewbench run endpoint scores.parquet items.jsonl -n 50 --model M --url U -o run
    Inspect:      fewbench run inspect scores.parquet -n 50 -o run -- task.py --model MODEL
    """


@run_command(run, "lm-eval", "tokens", "strict")
def lm_eval(
    options: RunOptions,
    arguments: list[str],
    *,
    key: str | None = None,
    metric: str | None = None,
    filter: str | None = None,
) -> None:
    """Run a model in lm-eval on chosen documents.

    Arguments of lm-eval follow --. The model is loaded once. Without SCORES, --tasks names tasks,
    groups and tags, and documents are drawn from all of them. The full score is then the mean over
    documents; in a group with weight_by_size: false, each task counts the same. With SCORES, the
    tasks are those of the scores. Before it runs the model, fewbench compares documents and prompts
    with the source models' logs. What the scores do not record, or a different harness recorded,
    causes a warning that stays with the estimate. Logs in lm-eval's own form are written to
    DIR/lm_eval. Rerun the command to resume. Needs the extra lm-eval.

    \b
    fewbench run lm-eval -n 200 -o run -- --model hf --model_args pretrained=X --tasks gsm8k
    fewbench run lm-eval scores.parquet -n 50 -o run -- --model hf --model_args pretrained=X
    fewbench run lm-eval scores.parquet -m fluid -n 30 -o run -- --model hf --model_args \\
        pretrained=X --include_path tasks

    Parameters
    ----------
    key
        Field that identifies a document (default: the one that the scores record, else its
        content). doc_id is its number.
    metric
        Metric of each task, comma-separated names in order of preference (default: that of SCORES;
        without SCORES, the first that the task or its group has).
    filter
        Filter of each task, as --metric.
    """
    from fewbench.evaluation.journal import LM_EVAL_LOGS
    from fewbench.runners.driving import run_with
    from fewbench.runners.lm_eval.runner import LmEvalRunner

    accepts = options.accept_differences
    with at_work("reading lm-eval's arguments"):  # imports lm-eval
        runner = LmEvalRunner(
            arguments,
            folder=options.output / LM_EVAL_LOGS,
            key=key,
            accept_differences=accepts,
            metric=metric,
            filter=filter,
        )
    run_and_print(partial(run_with, runner), options, runner.name)


@run_command(run, "inspect")
def inspect(
    options: RunOptions,
    arguments: list[str],
    *,
    metric: str | None = None,
) -> None:
    """Run chosen samples of Inspect tasks.

    After -- come arguments of inspect eval: tasks, --model, -T, --epochs and other options. Without
    SCORES, samples are drawn from all tasks. With SCORES, fewbench compares samples and settings
    with the source models' logs before it sends requests. For a public source that names its tasks
    (see fewbench get list), tasks may be left out. Logs are in DIR/logs. Rerun the command
    to resume.

    \b
    fewbench run inspect -n 100 -o run -- task.py --model openai/gpt-4o
    fewbench run inspect scores.parquet -n 50 -o run -- task.py --model openai/gpt-4o
    fewbench run inspect swe-bench -n 50 -o run -- --model openai/gpt-4o
    fewbench run inspect scores.parquet -m fluid --half-width 0.03 -o run -- task.py@name \\
        --model openai/gpt-4o -T level=hard --max-connections 20

    Parameters
    ----------
    metric
        Value of the scorers to read (default: as for the source models).
    """
    from fewbench.runners.inspect.runner import run_inspect

    quiet = options.as_json
    ask = partial(run_inspect, arguments=arguments, metric=metric, quiet=quiet)
    run_and_print(ask, options, "inspect")


@run_command(run, "endpoint", "accept_fractions")
def endpoint(
    options: RunOptions,
    arguments: list[str],
    items: Path | None = None,
    *,
    model: list[str],
    url: str | None = None,
    scorer: Literal["auto", "choice", "exact", "match", "pattern"] = "auto",
    pattern: str | None = None,
) -> None:
    """Ask a model the questions of a file, through Inspect.

    Options of inspect eval follow --. Without SCORES, the questions are drawn from the file. Logs
    are in DIR/logs. Rerun the command to resume.

    \b
    fewbench run endpoint items.jsonl -n 100 -o run --model openai/gpt-4o
    fewbench run endpoint scores.parquet items.jsonl -n 50 -o run --model openai/gpt-4o
    fewbench run endpoint scores.parquet items.jsonl -n 50 -o run \\
        --model openai-api/local/NAME --url http://localhost:8000/v1 -- --max-tokens 500

    \b
    Scorers:
    auto     choice for tasks with options, exact for others
    choice   the reply names the right option's letter, as in ANSWER: B
    exact    the reply is the answer, up to case, spaces, punctuation and articles
    match    the reply ends with the answer
    pattern  what --pattern finds in the reply is the answer, up to case

    \b
    A line of ITEMS: {"id": "q1", "question": "2 + 2 =", "options": ["3", "4"], "answer": "B"}

    Parameters
    ----------
    items
        Questions: .jsonl or .csv, one per line.
    model
        Inspect's name of the model, such as openai/gpt-4o or openai-api/local/NAME. Repeat it for
        several targets.
    url
        Server address, such as http://localhost:8000/v1.
    scorer
        Inspect's scorer, see above.
    pattern
        Regular expression that finds the answer, for --scorer pattern.
    """
    from fewbench.runners.endpoint import run_endpoint

    if items is None:  # a single file is that of the questions
        options, items = options.without_scores()
    ask = partial(
        run_endpoint, items, model, url=url, scorer=scorer, pattern=pattern, arguments=arguments,
        quiet=options.as_json,
    )  # fmt: skip
    run_and_print(ask, options, "inspect")


@run_command(run, "command", "accept_differences", "strict")
def command(
    options: RunOptions,
    arguments: list[str],
    *,
    timeout: float | None = None,
) -> None:
    """Run a program that reads items as JSON lines and prints answers as JSON lines.

    SCORES may be a file of items (CSV, JSONL or Parquet with a column id, and task, weight or cost
    if there are any). The program and its arguments follow --.

    Each line of its input names an item: {"item": ID, "target": NAME, "task": TASK, "last": BOOL}.
    For each line it prints {"item": ID, "score": NUMBER} or {"item": ID, "error": TEXT}, in any
    order, and may add "cost" and "tokens". With --repeats, lines of later rounds also have
    "repeat": 2 and so on. Rerun the command to resume.

    \b
    fewbench run command items.jsonl -n 100 -o run -- python answer.py
    fewbench run command scores.parquet -n 50 -o run -- python answer.py
    fewbench run command scores.parquet -m fluid --half-width 0.03 -o run -- ./answer.sh

    Parameters
    ----------
    timeout
        Restart the program after this many seconds without a line.
    """
    from fewbench.runners.command import CommandRunner
    from fewbench.runners.driving import run_with

    if not arguments:
        raise RunError("no program to run", hint="name it after --, as in -- python answer.py")
    run_and_print(partial(run_with, CommandRunner(arguments, timeout=timeout)), options, "command")
