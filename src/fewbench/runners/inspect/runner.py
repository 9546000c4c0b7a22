"""Run chosen samples in Inspect: `estimated` for a task of one's own, `run_inspect` for any.

Inspect runs the model; its loop asks for samples (see `fewbench.runners.inspect.feed`). Each
answer is in the folder before the next is taken up, and logs are ordinary logs of Inspect.
"""

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from fewbench._names import some
from fewbench._text import keep_secrets, masked, masked_arguments
from fewbench._warned import issue
from fewbench.errors import FewbenchError, MissingExtraError, RunError
from fewbench.evaluation import Stop
from fewbench.evaluation.journal import INSPECT_LOGS, has_evaluation
from fewbench.methods import Method, find_method
from fewbench.methods.base import AUTO
from fewbench.public import located, open_scores
from fewbench.public.catalogue import inspect_tasks
from fewbench.runners.driving import INTERRUPTED, OnProgress
from fewbench.runners.inspect.feed import adapt, close_logs, feed_of, inspect_with_sources
from fewbench.runners.inspect.masking import masking_inspect
from fewbench.runners.inspect.pool import AnswerSettings, SharedRun
from fewbench.runners.inspect.samples import tasks_in
from fewbench.runners.joining import LeadingRun, check_limits, unnamed_target
from fewbench.runners.model_facts import of_weights
from fewbench.runners.result import RunResult
from fewbench.runners.run import Retry, Run
from fewbench.runners.run_folder import saved_benchmark, undone_if_refused
from fewbench.scores import Benchmark, Scores
from fewbench.scores.roles import as_sources

MARKUP = re.compile(r"\[/?[a-z]+\]")  # of rich, in Inspect's messages
MOST_TASKS = 1000  # that run at a time, where their number is not known before
MakeTasks = Callable[[], Sequence[Any]]
PACKAGE = "inspect_evals/"
"""Where the tasks of public sources are: pip install inspect-evals."""
REFUSED = {
    "limit": ("--limit cannot be used: fewbench chooses the samples", "give fewbench's -n instead"),
    "sample_id": ("--sample-id cannot be used: fewbench chooses the samples", "omit it"),
    "sample_shuffle": ("--sample-shuffle has no effect: fewbench chooses the order", "omit it"),
    "no_score": ("--no-score leaves answers without scores", "omit it"),
    "no_log_samples": ("answers cannot be checked with --no-log-samples", "omit it"),
    "detach": ("--detach starts another process", "omit it"),
    "json_output": ("--json is fewbench's own option here", "give it before the --"),
}


def estimated(
    task: Any,
    scores: Scores | Benchmark | str | Path | None,
    method: str | Method = AUTO,
    stop: Stop | int | None = None,
    *,
    folder: str | Path | None = None,
    target: str | None = None,
    items_of: str | Path | None = None,
    seed: int = 0,
    batch: int | None = None,
    metric: str | None = None,
    accept_differences: bool = False,
    accept_fractions: bool = False,
    accept_changes: bool = False,
    strict: bool = False,
    retry_skipped: bool = False,
    retry: Retry | None = None,
    repeats: int = 1,
) -> Any:
    """Return a task of Inspect that runs only the samples that an estimate needs.

    Solver, scorer and all else stay the task's own. Evaluate the task as always; then `result`
    gives the estimate, and so does `fewbench estimate FOLDER`. Run a stopped eval
    again to resume it in the folder.

    Parameters
    ----------
    task : Task, or list of Task
        Changed in place. A benchmark of several tasks needs all of them, and `max_tasks` of `eval`
        must be their number.
    scores : Scores, Benchmark, path or None
        Scores of the source models, imported from logs of the task. None: there are no source
        models, and samples are drawn from all of the tasks'.
    method : str or Method
        As for `fewbench.Evaluation`; `auto` chooses one.
    stop : Stop or int, optional
        When to stop; a number is a number of items. Needed, except for a pack or to resume a run.
    folder : path, optional
        Folder of the evaluation. In memory without.
    target : str, optional
        Name of the target (default: Inspect's name of the model).
    items_of : path, optional
        As for `fewbench.run`.
    seed : int
        Random seed.
    batch : int, optional
        Most samples at a time (default: all that the method asks at a time).
    metric : str, optional
        Which value of the scorers (default: that of the scores, or the only one).
    accept_differences, accept_fractions, strict : bool
        As for `fewbench.Evaluation.tell_table`.
    accept_changes : bool
        Resume in the folder although the model or the number of epochs has changed.
    retry_skipped : bool
        Ask again for the samples that were skipped.
    retry : {"limits"}, optional
        Run the samples again that a limit of Inspect ended (on time, tokens or messages). New
        answers replace these.
    repeats : int
        As for `fewbench.run`: evaluate the task once for each round.

    Raises
    ------
    RunError
        In `eval`, before any sample runs: if a sample says something else than in the source runs,
        or settings differ.
    MissingExtraError
        If inspect-ai is not installed, or too old.

    Examples
    --------
    >>> from inspect_ai import Task
    >>> from inspect_ai.dataset import Sample
    >>> from fewbench.testing import simulate
    >>> scores = simulate(20, 60, seed=1)
    >>> own = Task([Sample(id=item, input=f"Is {item} so?") for item in scores.item_ids])
    >>> task = estimated(own, scores, "random", 8)
    >>> len(task.dataset), task.tags  # fewbench gives out the samples as the task runs
    (0, ['fewbench'])
    """
    table, path = _load_scores(scores, folder, method)
    check_limits(stop, table, folder, items_of)

    def open_run(table: Scores, spec: Any) -> Run:
        facts = {"model": str(spec.model), "epochs": str(spec.config.epochs or 1)}
        facts |= _weights(spec.model, (spec.model_args or {}).values())
        name = target or spec.model
        return Run.open(
            table,
            method,
            stop,
            folder,
            [name],
            seed,
            items_of=items_of,
            scores_path=path,
            batch=batch,
            tries=1,  # further tries are Inspect's: --retry-on-error
            facts={name: facts},
            accept_differences=accept_differences,
            accept_fractions=accept_fractions,
            accept_changes=accept_changes,
            strict=strict,
            retry_skipped=retry_skipped,
            retry=retry,
            repeats=repeats,
            epochs=spec.config.epochs or 1,
        )

    settings = AnswerSettings(metric, accept_differences, accept_fractions, raises=True)
    pool = SharedRun(table, open_run, lambda model: target or model, settings)
    if isinstance(task, list | tuple):
        return [adapt(pool, each) for each in task]
    return adapt(pool, task)


def result(task: Any) -> RunResult:
    """Return what an eval of an estimated task found so far.

    Parameters
    ----------
    task : Task
        Made by `estimated`.

    Raises
    ------
    RunError
        If it is not such a task, or was not evaluated.
    """
    feed = feed_of(task)
    if feed is None:
        raise RunError(
            "not a task made by estimated",
            hint="pass the task that estimated returns",
            kind="unsupported",
        )
    if feed.pool.run is None:
        raise RunError(
            "the task was not evaluated",
            hint="evaluate it first: eval(task, model=…)",
            kind="unanswered",
        )
    outcome = feed.pool.run.result()
    issue(outcome.warnings)
    return outcome


def run_inspect(
    scores: Scores | Benchmark | None,
    method: str | Method = AUTO,
    stop: Stop | int | None = None,
    arguments: Sequence[str] = (),
    *,
    folder: str | Path,
    targets: Sequence[str] | None = None,
    own: Mapping[str, Sequence[str]] | None = None,
    metric: str | Mapping[str, str] | None = None,
    make_tasks: MakeTasks | None = None,
    tries: int = 3,
    quiet: bool = False,
    on_notes: Callable[[list[str]], None] | None = None,
    on_progress: OnProgress | None = None,
    on_end: Callable[[], None] | None = None,
    **settings: Any,
) -> RunResult:
    """Run `inspect eval` on chosen samples, and estimate the score.

    Parameters
    ----------
    scores, method, stop
        As for `estimated`.
    arguments : sequence of str
        Arguments of `inspect eval`, such as `["task.py", "--model", "openai/gpt-4o"]`.
    folder : path
        Folder of the evaluation; logs are in its folder `logs`. Repeat the call to resume.
    targets : sequence of str, optional
        Names of the models of `--model`, in their order (default: the same).
    own : mapping of target to sequence of str, optional
        Arguments of each target, added to the others. Each target then has evals of its own.
    metric : str or mapping of str to str, optional
        As for `estimated`; a mapping gives the metric of each task.
    make_tasks : callable, optional
        Returns the tasks to run, again for each model, instead of those that the arguments name.
    tries : int
        How often a sample may fail until its item is skipped.
    quiet : bool
        Whether Inspect shows nothing.
    on_notes, on_end : callable, optional
        Called with notes for the user before anything is run, and before the final estimates.
    on_progress : callable, optional
        As for `fewbench.run`.
    **settings
        `items_of`, `batch`, `seed`, `repeats`, `average`, `retry_skipped`, `accept_fractions` and
        `accept_changes` as for `fewbench.run`; `accept_differences` and `strict` as for
        `Evaluation.tell_table`.

    Raises
    ------
    RunError
        If an argument cannot be used, a sample or a setting differs from the source runs, or
        Inspect fails.
    """
    inspect_with_sources()
    known = () if make_tasks is not None else _tasks_of(scores)
    if own is None:
        evals = [_Eval.parsed(arguments, targets, folder, known, needs_tasks=make_tasks is None)]
    else:
        evals = [
            _Eval.parsed([*arguments, *more], [name], folder, known, needs_tasks=True)
            for name, more in own.items()
        ]
    names = [name for each in evals for name in each.targets]
    place = Path(folder)
    is_new = not place.exists()
    table = _load_scores(scores, place, method)[0]
    leader = settings.get("items_of")
    check_limits(stop, table, place, leader)
    accepted = {
        name: settings.get(name, False) for name in ("accept_differences", "accept_fractions")
    }
    facts = {name: of_target for each in evals for name, of_target in each.facts.items()}
    runs: list[Run] = []

    def open_run(table: Scores, spec: Any) -> Run:
        if not runs:
            params = evals[0].context.params
            epochs = params["epochs"] if spec is None else spec.config.epochs
            given = settings | {"tries": 1, "facts": facts, "epochs": epochs or 1}
            runs.append(Run.open(table, method, stop, place, names, **given))
            if on_notes is not None:
                on_notes(runs[0].notes)
        return runs[0]

    pool = SharedRun(
        table,
        open_run,
        evals[0].target_of,
        AnswerSettings(metric, **accepted, logs=place / INSPECT_LOGS, keeps_open=True),
        on_progress,
    )
    with undone_if_refused(place, lambda: pool.has_begun):
        try:
            # A limit on cost counts epochs, which a task may set: they are known once it has begun.
            first = LeadingRun.read(leader).header.limits if stop is None and leader else stop
            has_cost = isinstance(first, Stop) and first.cost is not None
            is_late = has_cost and not has_evaluation(place)
            is_left = is_late or pool.known is None or any(pool.open().next(name) for name in names)
            while is_left:
                n_before = len(runs[0].evaluation.entries) if runs else -1
                for each in evals:
                    if len(evals) > 1 and runs and not any(map(runs[0].next, each.targets)):
                        continue
                    pool.target_of = each.target_of
                    pool.settings = replace(pool.settings, targets=each.targets)
                    _set_defaults(each.context, place / INSPECT_LOGS, tries, quiet)
                    # They wait for each other.
                    n_tasks = MOST_TASKS if pool.known is None else len(pool.known.tasks)
                    each.context.params["max_tasks"] = len(each.targets) * n_tasks
                    _evaluate(each.context, pool, place / INSPECT_LOGS, make_tasks)
                    # A sample cannot run again in one eval: further rounds have evals of their own.
                    is_left = pool.begin_round()
                if len(evals) > 1:  # a target that ran alone gets more once the others have run
                    is_left = len(runs[0].evaluation.entries) > n_before
            if on_end is not None:
                on_end()
            outcome = runs[0].result()
        finally:
            for run in runs:
                run.close()
            # No task has started: tasks or arguments were wrong. Another run may be at work there.
            if is_new and not pool.evals() and (runs or not has_evaluation(place)):
                shutil.rmtree(place, ignore_errors=True)
    issue(outcome.warnings)
    return outcome


@dataclass(frozen=True)
class _Eval:
    """Arguments of `inspect eval`, the targets that they run, and what is known of each."""

    context: Any
    targets: tuple[str, ...]
    facts: Mapping[str, Mapping[str, str]]
    models: tuple[str, ...]

    @classmethod
    def parsed(
        cls,
        arguments: Sequence[str],
        targets: Sequence[str] | None,
        folder: str | Path,
        known: tuple[str, ...],
        *,
        needs_tasks: bool,
    ) -> Self:
        """Read arguments; without names, targets are named as in the folder, or as the models."""
        keep_secrets(" ".join(arguments))
        context = _parsed(arguments, needs_tasks, known)
        params = context.params
        models = [name.strip() for name in (params["model"] or "").split(",") if name.strip()]
        keep_secrets(" ".join([*params["m"], params["model_base_url"] or ""]))
        common = {"epochs": str(params["epochs"] or 1)}
        common |= {"model arguments": " ".join(params["m"])} if params["m"] else {}
        common |= {"server": params["model_base_url"]} if params["model_base_url"] else {}
        passed = [word.partition("=")[2] for word in params["m"]]
        ran = [
            common | {"model": model} | _weights(model, passed)
            for model in models or ["of the task"]
        ]
        asked = [*models, *([] if models else [None])]
        names = list(
            targets or [unnamed_target(folder, *pair) for pair in zip(ran, asked, strict=True)]
        )
        if len(names) != max(1, len(models)):
            raise RunError(
                f"{len(names)} target names for {max(1, len(models))} models",
                hint="name each model of --model, in their order, or none",
            )
        return cls(context, tuple(names), dict(zip(names, ran, strict=True)), tuple(models))

    def target_of(self, model: str) -> str:
        """Return the target that a model is."""
        if len(self.targets) == 1:
            return self.targets[0]
        return dict(zip(self.models, self.targets, strict=True)).get(model, model)


def _weights(model: Any, arguments: Iterable[Any]) -> dict[str, str]:
    """Return facts of the files of a model: PROVIDER/PATH, or an argument such as model_path."""
    return of_weights([str(model).partition("/")[2], *map(str, arguments)])


def _load_scores(
    scores: Scores | Benchmark | str | Path | None, folder: str | Path | None, method: str | Method
) -> tuple[Scores | None, Path | None]:
    """Return the scores and their file; a method of a name that is none is refused now."""
    if isinstance(method, str) and method != AUTO:
        find_method(method)
    if isinstance(scores, str | Path):
        path = located(scores)
        return open_scores(path).scores, path
    return (saved_benchmark(folder) if scores is None else as_sources(scores)), None


def _tasks_of(scores: Scores | Benchmark | None) -> tuple[str, ...]:
    """Return the Inspect tasks that scores name, if any; see `fewbench.public.routes`."""
    tasks = () if scores is None else inspect_tasks(scores.items)
    return tuple(f"{PACKAGE}{task}" for task in tasks)


def _parsed(arguments: Sequence[str], needs_tasks: bool, known: tuple[str, ...]) -> Any:
    """Return the arguments as Inspect's own command reads them; RunError if it cannot.

    Without tasks, those that are `known` run.
    """
    import click

    command = import_module("inspect_ai._cli.eval").eval_command
    import_module("inspect_ai._util.dotenv").init_dotenv()
    try:
        context = command.make_context(
            "inspect eval", list(arguments), auto_envvar_prefix="INSPECT_EVAL"
        )
    except click.ClickException as error:
        raise RunError(
            f"Inspect: {masked_arguments(error.format_message())}",
            hint="inspect eval --help lists its options",
        ) from error
    if known and not context.params["tasks"]:
        if PACKAGE and find_spec(PACKAGE.rstrip("/")) is None:
            raise MissingExtraError(
                f"{some(known)}: the package inspect-evals, which has them, is not installed",
                hint="pip install inspect-evals, or name tasks of your own after --",
            )
        context.params["tasks"] = known
    if needs_tasks and not context.params["tasks"]:
        raise RunError(
            "no Inspect task is given",
            hint="name the task after --, as in -- task.py --model openai/gpt-4o",
        )
    if not needs_tasks and context.params["tasks"]:
        raise RunError(
            f"the questions are in the file; {some(context.params['tasks'])} cannot be added",
            hint="give only options of inspect eval after --",
        )
    for name, (text, hint) in REFUSED.items():
        if context.params.get(name) not in (None, False):
            raise RunError(text, hint=hint)
    if context.get_parameter_source("log_dir") is click.core.ParameterSource.COMMANDLINE:
        raise RunError(
            f"logs are written to the folder {INSPECT_LOGS} of the evaluation",
            hint="leave out --log-dir",
        )
    return context


def _set_defaults(context: Any, logs: Path, tries: int, quiet: bool) -> None:
    """Set what fewbench decides, and what the user has not: failed samples end no run."""
    from click.core import ParameterSource

    params = context.params
    open_ = {
        name
        for name in ("retry_on_error", "fail_on_error", "no_fail_on_error", "continue_on_fail")
        if context.get_parameter_source(name) is ParameterSource.DEFAULT
    }
    params["log_dir"] = str(logs.absolute())
    if "retry_on_error" in open_:
        params["retry_on_error"] = tries - 1
    if {"fail_on_error", "no_fail_on_error", "continue_on_fail"} <= open_:
        params["no_fail_on_error"] = True
    if quiet:
        params["display"] = "none"


def _evaluate(context: Any, pool: SharedRun, logs: Path, make_tasks: MakeTasks | None) -> None:
    """Run Inspect's command on adapted tasks; raise what went wrong."""
    why = None
    if make_tasks is not None:
        context.params["tasks"] = ("fewbench",)  # Inspect hands it to its loader
    try:
        with _adapting(pool, make_tasks), masking_inspect(), context:
            context.command.invoke(context)
    except KeyboardInterrupt:
        why = ""
    except FewbenchError:
        raise
    except Exception as error:  # of Inspect, of a provider, of the task's own code
        text = masked(MARKUP.sub("", " ".join(str(error).split())))
        raise RunError(
            f"Inspect: {type(error).__name__}: {text}",
            hint="inspect eval with the same arguments shows more",
        ) from error
    finally:
        why = close_logs(logs, pool.evals()) if why is None else why
    if pool.error is not None:
        raise pool.error
    if pool.run is None:
        if why == "":
            raise KeyboardInterrupt  # no run is open that could keep it as its end
        raise RunError(
            f"Inspect ended before any sample ran{': ' if why else ''}{why or ''}",
            hint="inspect eval with the same arguments shows more",
        )
    if why is not None:  # Inspect takes Ctrl-C itself, and ends well
        pool.run.halt(f"Inspect: {why}" if why else INTERRUPTED, is_failure=bool(why))


@contextmanager
def _adapting(pool: SharedRun, make_tasks: MakeTasks | None) -> Iterator[None]:
    """Have Inspect's loader return tasks whose samples fewbench chooses.

    Only there are tasks in the hands of the caller between their creation, which may depend on the
    model, and their start.
    """
    loader: Any = import_module("inspect_ai._eval.loader")
    plain = loader.load_tasks

    def load(*given: Any, **named: Any) -> list[Any]:
        tasks = plain(*given, **named) if make_tasks is None else make_tasks()
        if pool.known is None:
            return [adapt(pool, task) for task in tasks]
        names = [task.name for task in tasks]
        there = {task for name in names for task in tasks_in(pool.scores, name)}
        if lacking := sorted(set(pool.scores.tasks) - there):
            whose = "the scores have" if pool.scores.n_models else "the run in this folder has"
            raise RunError(
                f"Inspect would run {some(names)}, but {whose} also items of {some(lacking)}",
                hint="name all tasks of the scores, or import scores of these tasks only "
                "(--only-tasks)",
            )
        return [adapt(pool, task) for task in tasks]

    loader.load_tasks = load
    try:
        yield
    finally:
        loader.load_tasks = plain
