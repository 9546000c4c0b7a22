"""fewbench view: serve a page on this machine that follows an evaluation."""

from typing import Annotated

import typer

from fewbench.cli.options import Folder, MovedScores, open_evaluation
from fewbench.cli.text import echo, say


def view(
    folder: Folder,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.9,
    port: Annotated[
        int, typer.Option(help="Port on this machine (default: any free one).", min=0, max=65535)
    ] = 0,
    scores: MovedScores = None,
) -> None:
    """Serve a page on this machine that follows an evaluation.

    The page shows the estimates and updates as answers come, until you press Ctrl-C. The folder is
    only read. Only this machine can open the address, and only with the token in it.

    \b
    fewbench view run
    fewbench view run --port 8000
    """
    from fewbench.evaluation.view import view as serve

    try:
        serve(
            folder,
            level=level,
            port=port,
            on_ready=lambda url: echo(f"{url}\nStop with Ctrl-C."),
            opened=lambda copy: open_evaluation(copy, scores),
        )
    except KeyboardInterrupt:
        say("stopped")
