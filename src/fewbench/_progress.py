"""Progress on stderr: a bar on a terminal, one line per minute in a pipe."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fewbench._text import plain, say

ESTIMATING = "estimating, with intervals …"
MINUTE = 60.0  # seconds between lines in a pipe
OnStep = Callable[[int, int], None]
"""Called with how many steps are done, and how many there are."""
_titles: list[str] = []  # of the work that is shown; work within it is not


def pace(done: int, total: int, seconds: float) -> str:
    """Return how fast work goes, and how long it will take; nothing before the first second.

    Examples
    --------
    >>> pace(40, 120, 120.0), pace(1, 3, 10.0), pace(3, 3, 10.0), pace(0, 3, 10.0)
    (', 20 a minute, about 4 min left', ', 6 a minute, about 20 s left', ', 18 a minute', '')
    """
    if not done or seconds < 1:
        return ""
    rate, left = 60 * done / seconds, seconds * (total - done) / done
    text = f", {rate:,.3g} a minute"
    if left <= 0:
        return text
    return (
        f"{text}, about {left:.0f} s left"
        if left < 120
        else f"{text}, about {left / 60:,.0f} min left"
    )


@contextmanager
def progress_bar(title: str) -> Iterator[OnStep]:
    """Give a function of (done, all) that updates the progress."""
    if not sys.stderr.isatty():
        with _lines(title) as update:
            yield update
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (title, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    to_terminal = sys.stdout.isatty()  # results that are piped stay out of the way of the bar
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, redirect_stdout=to_terminal) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def at_work(title: str) -> Iterator[None]:
    """Show that work of unknown length is running, unless it is part of other such work."""
    if _titles or not title:
        yield
        return
    _titles.append(title)
    try:
        with _at_work(title):
            yield
    finally:
        _titles.pop()


@contextmanager
def _at_work(title: str) -> Iterator[None]:
    if not sys.stderr.isatty():
        with _lines(title):
            yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(plain(title))):
        yield


@contextmanager
def status_line(title: str) -> Iterator[Callable[[str], None]]:
    """Give a function that replaces the text after the title."""
    if not sys.stderr.isatty():
        with _texts(title) as update:
            yield update
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(plain(title))) as status:
        yield lambda text: status.update(Text(plain(text)))


@contextmanager
def _lines(title: str) -> Iterator[OnStep]:
    started = time.monotonic()
    with _texts(title) as update:
        yield lambda done, total: update(
            f"{done:,} of {total:,}{pace(done, total, time.monotonic() - started)}"
        )


@contextmanager
def _texts(title: str) -> Iterator[Callable[[str], None]]:
    started, over = time.monotonic(), threading.Event()
    state = ""

    def update(text: str) -> None:
        nonlocal state
        state = f" {text},"

    def tell() -> None:  # a single step may take many minutes
        while not over.wait(MINUTE):
            minutes = (time.monotonic() - started) / 60
            say(f"{title.removesuffix('…').strip()}:{state} {minutes:.0f} min so far")

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield update
    finally:
        over.set()
        thread.join()
