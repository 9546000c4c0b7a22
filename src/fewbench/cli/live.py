"""fewbench view, and --live of fewbench run: a page on this machine that follows an evaluation."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fewbench.cli.options import Folder, MovedScores, open_evaluation
from fewbench.cli.text import echo, say
from fewbench.evaluation import Estimate
from fewbench.scores import Scores

if TYPE_CHECKING:
    from fewbench.cli.running import ProgressLine
    from fewbench.report.live import LivePage
    from fewbench.runners.driving import OnProgress
    from fewbench.runners.result import RunResult
    from fewbench.runners.run import Run

SHARE, OFTEN = 0.1, 2.0
"""Largest share of the time that the page may take, and least seconds between two pages."""


def view(
    folder: Folder,
    level: Annotated[float, typer.Option(help="Stated coverage of the intervals.")] = 0.9,
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
    from fewbench.report.live import view as serve

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


class Following:
    """Shows a run on a live page, if there is one."""

    def __init__(self, page: "LivePage | None", folder: Path, source: str) -> None:
        self._page, self._folder, self._source = page, folder, source
        self._started, self._shown, self._used = time.monotonic(), 0.0, 0.0
        self._estimates: dict[str, Estimate] = {}
        if page is not None:
            from fewbench.report.live import History

            self._history = History()

    def after(self, line: "ProgressLine") -> "OnProgress":
        """Return a function that updates the line and then the page."""
        if self._page is None:
            return line

        def update(run: "Run", target: str) -> None:
            line(run, target)
            self._update(run, line)

        return update

    def _update(self, run: "Run", line: "ProgressLine") -> None:
        from fewbench.report.estimate_page import Told, render_estimates
        from fewbench.report.live import state_of

        assert self._page is not None
        now = time.monotonic()
        is_new = [self._history.add(one) for one in line.estimates.values()]
        if now - self._shown < OFTEN or self._used > SHARE * (now - self._started):
            return
        state = state_of(run.evaluation)
        if line.estimates and any(is_new):
            told = Told(
                scores=run.evaluation.scores,
                evaluation=run.evaluation,
                source=self._source,
                folder=str(self._folder),
                history=self._history.points,
                state=state,
            )
            made = render_estimates(line.estimates, told, version=self._page.version)
            self._page.show(made)
        elif not line.estimates:
            self._page.wait(f"{state}. The first interval follows.")
        self._shown = time.monotonic()
        self._used += self._shown - now

    def end(self, result: "RunResult", scores: Scores) -> None:
        """Show the result, and give an open page the time to fetch it."""
        if self._page is None:
            return
        from fewbench.evaluation import Evaluation
        from fewbench.report.estimate_page import Told, render_estimates
        from fewbench.report.live import LINGER

        if result.estimates:
            told = Told(
                scores=scores,
                evaluation=Evaluation.open(self._folder, scores),
                run=result,
                source=self._source,
                folder=str(self._folder),
                history=self._history.points,
                state="the run has ended",
            )
            page = render_estimates(result.estimates, told, version=self._page.version)
            self._page.show(page, is_done=True)
            self._page.linger(LINGER)


@contextmanager
def followed(is_live: bool, folder: Path, source: str) -> Iterator[Following]:
    """Serve a page while a run goes on, if asked for."""
    if not is_live:
        yield Following(None, folder, source)
        return
    from fewbench.report.live import LivePage

    with LivePage() as page:
        say(f"live: {page.url}")
        yield Following(page, folder, source)
