"""All commands by name."""

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from fewbench._version import __version__

# Where a command is, and the first sentence of its help: a command is imported when it is used,
# so that the version and the list of commands do not wait for pandas, SciPy and the others.
COMMANDS = {
    "import": (
        "import_:import_",
        "Read other models' per-item results and write them as one scores file.",
    ),
    "audit": (
        "audit:audit",
        "Look a table of past results over: what is wrong or peculiar, and what to do about it.",
    ),
    "methods": (
        "methods:methods",
        "List which methods to use, which cannot run here, all methods, and the parts to combine.",
    ),
    "select": (
        "select:select",
        "Choose the items; of a method that chooses as answers come in, the first ones.",
    ),
    "start": (
        "evaluate:start",
        "Open an evaluation of one or several new models, with any method.",
    ),
    "ask": ("evaluate:ask", "Print what to run next."),
    "tell": ("evaluate:tell", "Give a target's answers, on the scale of the sources."),
    "estimate": (
        "evaluate:estimate",
        "Print score, interval, rank and task scores, and what random sampling would have given.",
    ),
    "compare": (
        "compare:compare",
        "Compare methods by estimating models whose full score is known.",
    ),
    "natives": (
        "natives:natives",
        "Study the native sources of TailoredBench on models whose full score is known.",
    ),
    "demo": (
        "demo:demo",
        "Train a new classifier, ask it 50 of 1000 items, and check the estimate against the "
        "truth.",
    ),
    "transfer": (
        "transfer:transfer",
        "Measure how well a model answers one task shown another's examples.",
    ),
    "tasks": (
        "tasks:tasks",
        "Choose few tasks that stand for all, and see how good the choice is.",
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
    return get_group(alone).commands[name]


app = typer.Typer(
    cls=_Commands,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"fewbench {__version__}")
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
    See it work:           fewbench demo
    Read past results:     fewbench import logs/ -o scores.parquet
    Judge methods on them: fewbench compare scores.parquet --methods greedy-ridge --budgets 50
    Choose the items:      fewbench start scores.parquet --method greedy-ridge --budget 50 -o run
    See which to run:      fewbench ask run
    Give the answers:      fewbench tell run answers.csv --item item --score score
    Read the estimate:     fewbench estimate run
    Run fewer tasks:       fewbench tasks select scores.parquet -k 3 --method fit
    """


def _listed() -> None:
    """Stand for a command until it is used."""


for _name, (_, _summary) in COMMANDS.items():
    app.command(_name, help=_summary)(_listed)
