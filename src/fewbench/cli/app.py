"""All commands by name."""

from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_group

from fewbench._version import __version__
from fewbench.cli.text import echo

# Where a command is, and the first sentence of its help: a command is imported when it is used,
# so that the version and the list of commands do not wait for pandas, SciPy and the others.
COMMANDS = {
    "get": (
        "get:get",
        "Fetch other models' public per-item results of a benchmark.",
    ),
    "import": (
        "import_:import_",
        "Import other models' per-item results.",
    ),
    "audit": ("audit:audit", "Check a results table for problems and suggest fixes."),
    "methods": (
        "methods:methods",
        "List methods: which to use, and what each does.",
    ),
    "select": (
        "select:select",
        "Choose items to run.",
    ),
    "run": (
        "run:run",
        "Run a model on chosen items and estimate its full score.",
    ),
    "start": ("evaluate:start", "Start an evaluation of one or several target models."),
    "ask": ("evaluate:ask", "Print the items to run next."),
    "tell": (
        "tell:tell",
        "Record a target model's answers.",
    ),
    "estimate": (
        "evaluate:estimate",
        "Estimate full scores from the answers so far.",
    ),
    "add": (
        "add:add",
        "Add evaluated models to a table of scores, as source models of the next evaluations.",
    ),
    "view": ("live:view", "Serve a page on this machine that follows an evaluation."),
    "versus": ("decide:versus", "Compare the full scores of two models."),
    "gate": (
        "decide:gate",
        "Check whether a target reaches a threshold or is no worse than a baseline.",
    ),
    "rank": ("decide:rank", "Rank several targets, with the probability of each rank."),
    "track": ("decide:track", "Follow the checkpoints of a training run."),
    "repair": ("evaluate:repair", "Drop damaged lines of an evaluation's answers."),
    "compare": (
        "compare:compare",
        "Compare methods on models with known full scores.",
    ),
    "plan": ("study:plan", "Plan how many items to run and with which method."),
    "pack": (
        "pack:pack",
        "Make a pack: a benchmark's few items in one file.",
    ),
    "demo": (
        "demo:demo",
        "Estimate a new classifier from a few of 1,000 items.",
    ),
    "transfer": (
        "transfer:transfer",
        "Measure how tasks transfer to each other (BenTo).",
    ),
    "tasks": (
        "tasks:tasks",
        "Choose a few tasks to run in place of all.",
    ),
}


class _Commands(TyperGroup):
    """A group whose commands are listed by their help alone, and imported to be used."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        return name, load_command(str(name)), rest


def load_command(name: str) -> Any:
    """Import a command, with its options, as typer makes it."""
    module, _, member = COMMANDS[name][0].partition(":")
    found = getattr(import_module(f"fewbench.cli.{module}"), member)
    alone = typer.Typer(rich_markup_mode=None)
    if isinstance(found, typer.Typer):
        alone.add_typer(found, name=name)
    else:
        alone.command(name)(found)
    command = get_group(alone).commands[name]
    if name != "tasks":  # whose methods are choosers of tasks
        _complete_methods(command)
    return command


def _complete_methods(command: Any) -> None:
    """Let a shell complete names of methods, by published names too.

    Typer's own completion leaves out what does not begin as the typed name does.
    """
    for below in getattr(command, "commands", {}).values():
        _complete_methods(below)
    for option in command.params:
        if option.name in ("method", "methods") or (command.name, option.name) == METHOD_NAME:
            option.shell_complete = lambda _, typed: list(map(Completion, methods_for(typed)))


METHOD_NAME = ("methods", "name")


class Completion(NamedTuple):
    """What a shell may complete, as typer and click write it."""

    value: str
    type: str = "plain"
    help: str | None = None


def methods_for(typed: str) -> list[str]:
    """Return the methods that an unfinished name may mean; of comma-separated names, the last.

    Examples
    --------
    >>> methods_for("random,tailored-"), methods_for("DISC")[0]
    (['random,tailored-as-printed'], 'disco-pds-rf')
    """
    from fewbench.methods.catalogue import CATALOGUE, WITH_FILE, published_as

    before, comma, last = typed.rpartition(",")
    begun = [name for name in (*CATALOGUE, *WITH_FILE) if name.startswith(last)]
    return [f"{before}{comma}{name}" for name in begun or published_as(last)]


app = typer.Typer(
    cls=_Commands,
    add_completion=True,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


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
    See it work:            fewbench demo
    The first model:        fewbench run lm-eval -n 200 -o run -- --model hf --tasks gsm8k
    Fetch source results:   fewbench get livebench -o scores.parquet
    Import source results:  fewbench import logs/ -o scores.parquet
    Compare methods:        fewbench compare scores.parquet --methods greedy-ridge --budgets 50
    Plan an evaluation:     fewbench plan scores.parquet --half-width 0.03
    Run and estimate:       fewbench run command scores.parquet -n 50 -o run -- python answer.py
    Choose items:           fewbench start scores.parquet --budget 50 -o run
    Print items to run:     fewbench ask run
    Record answers:         fewbench tell run answers.csv --item item --score score
    Estimate the score:     fewbench estimate run
    Use it as a source:     fewbench add run -o scores.parquet
    Watch an evaluation:    fewbench view run
    Compare two models:     fewbench versus new-run old-run --margin 0.01
    Pass or fail in CI:     fewbench gate run --at-least 0.70
    Follow a training run:  fewbench track scores.parquet --run my-run
    Share chosen items:     fewbench pack scores.parquet -n 100 -o mmlu-100.few
    Run fewer tasks:        fewbench tasks select scores.parquet -k 3 --method fit
    """


def _listed() -> None:
    """Stand for a command until it is used."""


for _name, (_, _summary) in COMMANDS.items():
    app.command(_name, help=_summary)(_listed)
