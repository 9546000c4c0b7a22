"""Commands made from functions: the signature gives the options, the docstring their help."""

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo

from fewbench._files import cache_folder
from fewbench._names import split_names
from fewbench._progress import at_work, progress_bar, status_line
from fewbench.cli.documented import (
    Reader,
    as_command,
    as_typed,
    documentation,
    flag,
    option_parameter,
    options_of,
    read_typed,
)
from fewbench.cli.options import (
    SCORING,
    AverageOption,
    Cluster,
    DropItemsOption,
    Json,
    MovedScores,
    load,
    open_evaluation,
    say_asked,
    scoring_of,
)
from fewbench.cli.outputs import FORMATS, WRITES, Force, check_outputs, show
from fewbench.decide.track_folder import full_or_part
from fewbench.errors import FewbenchError
from fewbench.evaluation import Evaluation
from fewbench.evaluation.journal import HEADER, folder_and_target
from fewbench.public import is_source
from fewbench.scores import Benchmark, Scores

PASSED = {"progress", "on_step", "executor"}
"""Parameters that get a value with options of their own, or none."""
CACHE = typer.Option(
    metavar="PLACE",
    help="Cache for finished results: a file or a folder (FOLDER/) (default: a file in your cache "
    "directory).",
)
CACHED = typer.Option("--cached/--no-cache", help="Reuse finished results of earlier runs.")
DETAILS = typer.Option("--details", help="Print all details.")


class Call:
    """A call of a function, with what is typed.

    Attributes
    ----------
    given : dict of str
        Values of the options and arguments, by parameter.
    read : dict of str
        What the function was called with.
    """

    def __init__(
        self, function: Callable[..., Any], readers: Mapping[str, Reader], given: dict[str, Any],
        work: str,
    ) -> None:  # fmt: skip
        self.given = given
        self.read: dict[str, Any] = {}
        self._function, self._readers, self._work = function, readers, work
        self._opened: dict[Path, Evaluation] = {}

    def __call__(self, **more: Any) -> Any:
        """Read what is typed, and call the function with it and with more."""
        words = self.arguments() | more
        parameters = inspect.signature(self._function).parameters
        if "workers" in parameters:
            words.setdefault("workers", os.cpu_count() or 1)
        if "executor" in parameters:
            words["executor"] = self.given["cluster"]
        if self.given.get("cached"):
            words["cache"] = self.given["cache"] or default_cache(words["scores"])
        self.read = dict(words)
        first = [
            words.pop(name)
            for name, parameter in parameters.items()
            if parameter.kind is parameter.VAR_POSITIONAL
        ]
        if "progress" in parameters:
            with progress_bar(self._work) as progress:
                return self._function(**words, progress=progress)
        if "on_step" in parameters:
            with status_line(self._work) as update:
                return self._function(**words, on_step=update)
        with at_work(self._work):
            return self._function(*(word for several in first for word in several), **words)

    def typed_for(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Return what is typed for a function's parameters, without arguments and defaults.

        A command that calls a function other than its own passes these on, or refuses them:
        `refuse` the rest.
        """
        parameters = inspect.signature(function).parameters
        return {
            name: self.given[name]
            for name, parameter in parameters.items()
            if name in self.given
            and parameter.kind is parameter.KEYWORD_ONLY
            and self.given[name] not in (None, parameter.default)
        }

    def refuse(self, names: Iterable[str], why: str, hint: str) -> None:
        """Raise FewbenchError if there are names of options; they would have no effect."""
        if flags := [flag(name) for name in names]:
            raise FewbenchError(f"{', '.join(flags)}: no effect {why}", hint=hint, kind="conflict")

    def arguments(self) -> dict[str, Any]:
        """Read what is typed for the function."""
        return read_typed(self._readers, self)

    def paths(self) -> list[Path]:
        """Return the files and folders that are typed, without the output."""
        typed = [
            value for name, value in self.given.items() if name not in ("output", "report", "cache")
        ]
        flat = [value for some in typed for value in (some if isinstance(some, list) else [some])]
        return [
            Path(value) for value in flat if isinstance(value, str | Path) and os.path.exists(value)
        ]

    def operand(self, name: str) -> Evaluation | tuple[Evaluation, str] | str:
        """Read an evaluation's folder or DIR:TARGET; other names stay."""
        if (full_or_part(Path(name)) / HEADER).is_file():
            return self.evaluation(name)
        if (named := folder_and_target(name)) is None:
            return name
        folder, target = named
        evaluation = self.evaluation(str(folder))
        return evaluation if target is None else (evaluation, target)

    def target(self, name: str) -> Evaluation | tuple[Evaluation, str]:
        """Read an evaluation's folder or DIR:TARGET."""
        operand = self.operand(name)
        return self.evaluation(name) if isinstance(operand, str) else operand

    def ranked(self, name: str) -> Evaluation | tuple[Evaluation, str] | Scores:
        """Read an evaluation's folder, DIR:TARGET, or a scores file."""
        operand, path = self.operand(name), Path(name)
        if not isinstance(operand, str):
            return operand
        is_file = path.exists() and not any(path.glob(f"*/{HEADER}"))
        if not is_file and not is_source(name):
            return self.target(name)
        return scoring_of(self.given).of_table(load(path), path)

    def evaluation(self, folder: str) -> Evaluation:
        """Open an evaluation's folder, once; of a checkpoint that ran all items, that one."""
        place = full_or_part(Path(folder))
        key = place.resolve()
        if key not in self._opened:
            scoring = scoring_of(self.given)
            self._opened[key] = open_evaluation(place, self.given["scores"], scoring)
        return self._opened[key]

    def say_asked(self) -> None:
        """Print which items the targets of the evaluations are to run now."""
        for evaluation in self._opened.values():
            if asked := evaluation.ask():
                say_asked(evaluation, asked)

    def scores(self, path: Path, *, items: bool = False) -> Scores | None:
        """Read scores, or None if evaluations were opened with them. `items` as for `load`."""
        if self._opened:
            return None
        return scoring_of(self.given).of_table(load(path, items=items), path)


def command(
    function: Callable[..., Any],
    *,
    examples: str,
    about: str = "",
    work: str = "",
    report: bool = True,
    writes: Iterable[str] = (),
    arguments: Iterable[str] = (),
    flags: Mapping[str, str] | None = None,
    hidden: Iterable[str] = (),
    details: bool = False,
    read: Mapping[str, tuple[Any, Reader, str]] | None = None,
    groups: Iterable[str] = (),
    around: Callable[..., Any] | None = None,
    page: Callable[[Any, dict[str, Any]], Any] = lambda result, _: result.page(),
) -> Callable[..., None]:
    """Return a command that calls a function and shows its result.

    Parameters
    ----------
    function : callable
        With annotations and a numpydoc docstring. It returns a `Shown`.
    examples : str
        Lines of the help that stay as they are typed.
    about : str
        What the help says besides the docstring.
    work : str
        What the progress says.
    report : bool
        Whether the result is printed, and written to the file of --report. If not, `around` shows
        the result.
    writes : iterable of str
        Parameters that name further files to write.
    arguments : iterable of str
        Parameters with a default that are arguments and not options.
    flags : mapping of str to str, optional
        Names of options, by parameter, where they differ.
    hidden : iterable of str
        Parameters without an option.
    details : bool
        Whether the text leaves something out that can be asked for.
    read : mapping of parameter to (type, Reader, str), optional
        What is typed, how it is read and written, where the annotation does not tell it.
    groups : iterable of str
        Parameters that are dataclasses: their fields become options.
    around : callable, optional
        Called with a `Call` in place of the function; its other parameters become options. It
        returns the result.
    page : callable, optional
        Returns the page of a result, which is also called with what is typed.
    """
    summary = documentation(function)[0]
    parameters = inspect.signature(function).parameters
    passed = PASSED | ({"cache"} & {*parameters} if "scores" in parameters else set())
    settings: dict[str, Any] = {"flags": flags, "arguments": {*arguments}, "read_as": _reader_of}
    typed, readers = options_of(
        function, {*hidden} | passed, read=read, groups={*groups}, **settings
    )
    readers_of: dict[str, Reader] = {}
    if around is not None:
        more, readers_of = options_of(around, {"call"}, **settings)
        n_arguments = sum(isinstance(get_args(o.annotation)[1], ArgumentInfo) for o in typed)
        at = len(typed) if report else n_arguments  # first what the file is made of, if it is all
        typed[at:at] = more
    typed += _shared(function, {option.name for option in typed}, report, details)

    def run(**given: Any) -> None:
        from fewbench.study.cache import is_folder

        call = Call(function, readers, given, work)
        output, inputs = given["report"] if report else None, call.paths()
        others = [given[name] for name in writes]
        check_outputs(output, *others, inputs=inputs, force=given["force"])
        check_outputs(output, inputs=inputs, force=given["force"], formats=FORMATS)
        cache = given.get("cache")
        if "cached" in given and cache is not None and not is_folder(cache):
            check_outputs(Path(cache), inputs=inputs, force=True)  # it grows
        if around is None:
            result = call()
        else:
            words = {
                n: None if given[n] is None else readers_of[n](call, given[n]) for n in readers_of
            }
            result = around(call, **words)
        if result is None or not report:
            return
        with at_work(work):
            shown = page(result, given)
        is_asked = bool(given.get("ask") and getattr(result, "next_items", ()))
        if is_asked:  # the lines below name the next step
            shown = replace(shown, next=())
        more = [section.id for section in shown.sections] if given.get("details") else []
        show(shown, result, output, given["as_json"], *more)
        if is_asked:
            call.say_asked()
        if code := getattr(result, "exit_code", 0):
            raise typer.Exit(code)

    functions = [each for each in (function, around) if each]
    vars(run).update(functions=functions, groups={*groups}, flags=dict(flags or {}))
    texts = (summary, about, f"\b\n{examples.strip()}")
    return as_command(run, typed, "\n\n".join(filter(None, texts)))


def default_cache(scores: Scores) -> str:
    """Return the cache file for these scores."""
    return str(cache_folder() / f"cells-{scores.fingerprint}.jsonl")


def _reader_of(hint: Any) -> tuple[Any, Reader, str]:
    """Return what is typed for an annotation, how it is read, and how to write it."""
    is_union = get_origin(hint) in (Union, UnionType)
    one_of = {member for member in get_args(hint) if member is not NoneType} if is_union else {hint}
    if hint == list[Evaluation | tuple[Evaluation, str] | Scores]:
        form = "Each written as DIR or DIR:TARGET, or one SCORES file."
        return list[str], lambda call, names: [call.ranked(name) for name in names], form
    if Evaluation in one_of and str in one_of:
        return str, Call.operand, "Written as DIR, DIR:TARGET or NAME."
    if Evaluation in one_of:
        return str, Call.target, "Written as DIR or DIR:TARGET."
    if Scores in one_of:
        return Path, partial(Call.scores, items=Benchmark in one_of), ""
    if os.PathLike[str] in one_of:
        return Path, as_typed, ""
    if Sequence[str] in one_of:
        return list[str], lambda _, typed: split_names(",".join(typed)), "Comma-separated."
    if len(one_of) > 1 and str in one_of:
        return str, as_typed, ""
    if Mapping[str, float] in one_of:
        numbers = "Written as NAME=NUMBER; can be repeated."
        return list[str], lambda _, typed: dict(map(_numbered, typed)), numbers
    return next(iter(one_of)) if len(one_of) == 1 else hint, as_typed, ""


def _numbered(text: str) -> tuple[str, float]:
    """Read NAME=NUMBER."""
    name, equals, number = text.rpartition("=")
    if not equals or not name:
        raise FewbenchError(f"{text}: no name", hint="write NAME=NUMBER")
    try:
        return name, float(number)
    except ValueError as error:
        raise FewbenchError(
            f"{text}: {number!r} is not a number", hint="NAME=NUMBER", kind="range"
        ) from error


def _shared(
    function: Callable[..., Any], names: set[str], report: bool, details: bool
) -> list[inspect.Parameter]:
    """Return the options that are not parameters of the function."""
    parameters, hints = inspect.signature(function).parameters, get_type_hints(function)
    options = []
    if hints.get("scores") in (Scores, Scores | Benchmark, Scores | Benchmark | int):
        options.append(option_parameter("average", AverageOption, None))
        options.append(option_parameter("drop_items", DropItemsOption, None))
    if any("Evaluation" in str(hint) for hint in hints.values()):
        if "scores" not in names:
            options.append(option_parameter("scores", MovedScores, None))
        options += [option_parameter(name, kind, None) for name, kind in SCORING.items()]
    if "executor" in parameters:
        options.append(option_parameter("cluster", Cluster, None))
    if {"cache", "scores"} <= {*parameters}:
        options.append(option_parameter("cache", Annotated[str | None, CACHE], None))
        options.append(option_parameter("cached", Annotated[bool, CACHED], True))
    if details:
        options.append(option_parameter("details", Annotated[bool, DETAILS], False))
    if report:
        file = typer.Option("--report", help=WRITES)
        options.append(option_parameter("report", Annotated[Path | None, file], None))
        options.append(option_parameter("as_json", Json, False))
    return options if "force" in names else [*options, option_parameter("force", Force, False)]
