"""All commands by name."""

from collections.abc import Callable
from typing import Annotated

import typer

from fewbench._version import __version__
from fewbench.cli.audit import audit
from fewbench.cli.compare import compare
from fewbench.cli.demo import demo
from fewbench.cli.evaluate import ask, estimate, start, tell
from fewbench.cli.import_ import import_
from fewbench.cli.methods import methods
from fewbench.cli.select import select
from fewbench.cli.study import study
from fewbench.cli.tasks import tasks
from fewbench.cli.transfer import transfer

app = typer.Typer(
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


_COMMANDS: dict[str, Callable[..., None]] = {
    "import": import_,
    "audit": audit,
    "methods": methods,
    "select": select,
    "start": start,
    "ask": ask,
    "tell": tell,
    "estimate": estimate,
    "compare": compare,
    "demo": demo,
}
for _name, _command in _COMMANDS.items():
    app.command(_name)(_command)
app.add_typer(transfer, name="transfer")
app.add_typer(tasks, name="tasks")
app.add_typer(study, name="study")
