"""All commands by name."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.main import get_group

from fewbench._plugins import Added, Registry, added
from fewbench._text import echo
from fewbench._version import __version__
from fewbench.cli.help import Commands, ListedGroup
from fewbench.errors import FewbenchError


class Listed(NamedTuple):
    """A command as it is listed. A package names one in its entry points `fewbench.commands`.

    - `place`: Where the command is, as module:name: a function that typer makes a command of, such
      as `fewbench.cli.commands.command` returns, or a group of them.
    - `summary`: The first sentence of its help.
    - `subject`: The heading under which it is listed.
    """

    place: str
    summary: str
    subject: str = "From other packages"


# A command is imported when it is used, so that the version and the list of commands do not wait
# for pandas, SciPy and the others.
OWN = {
    "Evaluate": {
        "demo": ("demo:demo", "Estimate a new classifier from a few of 1,000 items."),
        "run": ("run:run", "Run a model on chosen items and estimate its full score."),
        "start": ("evaluate:start", "Start an evaluation of one or several target models."),
        "ask": ("evaluate:ask", "Print the items to run next."),
        "tell": ("tell:tell", "Record target models' answers, or labels."),
        "estimate": ("evaluate:estimate", "Estimate full scores from the answers so far."),
        "extend": (
            "evaluate:extend",
            "Take more items or tasks into an evaluation that has answers.",
        ),
        "view": ("evaluate:view", "Serve a page on this machine that follows an evaluation."),
        "repair": ("evaluate:repair", "Drop damaged answers of an evaluation, or remove a target."),
    },
    "Compare and decide": {
        "versus": ("decide:versus", "Compare two models by their full scores."),
        "gate": ("decide:gate", "Pass or fail a target by a threshold or a baseline."),
        "rank": ("decide:rank", "Rank several models, with the probability of each rank."),
        "best": ("best:best", "Run several models until it is clear which is the best."),
        "track": ("decide:track", "Follow the checkpoints of training runs."),
    },
    "Prepare": {
        "get": ("get:get", "Fetch other models' public per-item results of a benchmark."),
        "import": ("import_:import_", "Import other models' per-item results."),
        "add": ("import_:add", "Add finished runs to the source models."),
        "audit": ("audit:audit", "Check a results table for problems and suggest fixes."),
        "plan": ("compare:plan", "Plan how many items to run and with which method."),
        "methods": ("methods:methods", "List methods: which to use, and what each does."),
        "compare": ("compare:compare", "Compare methods on models with known full scores."),
        "select": ("pack:select", "Choose items to run."),
    },
    "Share": {
        "pack": ("pack:pack", "Make a pack: a benchmark's few items in one file."),
        "verify": (
            "verify:verify",
            "Check a submission by running some of its items again.",
        ),
    },
}


def _added() -> Iterator[Added]:
    """Yield the commands that packages add."""
    for one in added("commands"):
        if not isinstance(one.thing, Listed):
            raise one.refused("not a Listed of fewbench.cli.app")
        yield one


COMMANDS: Registry[Listed] = Registry(
    {
        name: Listed(f"fewbench.cli.{place}", summary, subject)
        for subject, commands in OWN.items()
        for name, (place, summary) in commands.items()
    },
    _added,
)
"""Commands by name."""


class _Commands(ListedGroup):
    """A group whose commands are listed by their help alone, and imported to be used."""

    def added(self) -> Mapping[str, Any]:
        """Return the commands that packages add, by name."""
        names = [name for name in COMMANDS if name not in self.commands]
        return {name: _stub(name, COMMANDS[name].summary) for name in names}

    def subject(self, name: str) -> str:
        """Return the heading that a command is listed under."""
        return COMMANDS[name].subject

    def get_params(self, ctx: Any) -> Any:
        """Return the options; flags are off and not None, for which typer imports pydantic."""
        options: Any = super().get_params(ctx)
        for option in options:
            option.default = False if option.is_flag else option.default
        return options

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        return name, load_command(str(name)), rest


def load_command(name: str) -> Any:
    """Import a command, with its options, as typer makes it."""
    place = COMMANDS[name].place
    module, _, member = place.partition(":")
    try:
        loaded = getattr(import_module(module), member)
    except (ImportError, AttributeError) as error:
        hint = f"update or uninstall the package that has {module.partition('.')[0]}"
        raise FewbenchError(f"{name}: {place} cannot be loaded: {error}", hint=hint) from error
    alone = Commands()
    if isinstance(loaded, typer.Typer):
        alone.add_typer(loaded, name=name)
    else:
        kind = vars(loaded).get("command_class")
        alone.command(name, **({} if kind is None else {"cls": kind}))(loaded)
    command = get_group(alone).commands[name]
    if module.startswith("fewbench."):  # a method may be something else elsewhere: of tasks, say
        _complete_methods(command)
    return command


def _complete_methods(command: Any) -> None:
    """Let a shell complete names of methods, by published names too.

    Typer's own completion leaves out what does not begin as the typed name does.
    """
    from fewbench.cli.completion import methods

    for below in getattr(command, "commands", {}).values():
        _complete_methods(below)
    for option in command.params:
        if option.name in ("method", "methods") or (command.name, option.name) == METHOD_NAME:
            option.shell_complete = lambda _, typed: list(map(Completion, methods(typed)))


METHOD_NAME = ("methods", "name")


class Completion(NamedTuple):
    """What a shell may complete, as typer and click write it."""

    value: str
    type: str = "plain"
    help: str | None = None


app = Commands(_Commands)


def _show_version(wanted: bool) -> None:
    if wanted:
        echo(f"fewbench {__version__}")
        raise typer.Exit


@app.callback()
def _all(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Estimate what a model would score on a whole benchmark from a few of its items.

    \b
    See it work:      fewbench demo
    The first model:  fewbench run lm-eval -n 200 -o run -- --model hf --tasks gsm8k
    The next ones:    fewbench add run -o scores.parquet
    Two models:       fewbench versus run new-model old-model
    """


def _listed() -> None:
    """Stand for a command until it is used."""


def _stub(name: str, summary: str) -> Any:
    """Return a command that is listed and not imported."""
    alone = Commands()
    alone.command(name, help=summary)(_listed)
    return get_group(alone).commands[name]


for _commands in OWN.values():
    for _name, (_, _summary) in _commands.items():
        app.command(_name, help=_summary)(_listed)
