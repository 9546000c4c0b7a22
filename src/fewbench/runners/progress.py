"""The progress of a run in a line: items, score, interval, cost."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fewbench._progress import ESTIMATING, pace, status_line
from fewbench.evaluation import Estimate
from fewbench.runners.result import Progress
from fewbench.runners.run import Run
from fewbench.scores import Unit
from fewbench.scores.costs import amount

SHARE = 0.1
"""Largest share of the time that estimates for the progress line may take."""
SECONDS_PER_CELL = 1.3e-5
"""About how long the first interval takes, for each cell of the source models' table."""
OFTEN = 1.0  # seconds between estimates without an interval


class ProgressLine:
    """Shows the progress of a run, with the interval if it takes little time.

    `estimates` holds the last estimate of each target. `on_notes` is called with the run's notes.
    """

    def __init__(
        self,
        update: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        on_notes: Callable[[list[str]], None] | None = None,
    ) -> None:
        self._update, self._clock, self._on_notes = update, clock, on_notes
        self._started, self._used, self._last = clock(), 0.0, 0.0
        self._shown = 0.0
        self._first: dict[str, tuple[float, int]] = {}  # time of the first answers, and their count
        self.estimates: dict[str, Estimate] = {}

    def __call__(self, run: Run, target: str) -> None:
        """Show a target's state."""
        if self._on_notes is not None:
            self._on_notes(run.notes)
        now = self._clock()
        sources = run.evaluation.scores
        self._last = self._last or SECONDS_PER_CELL * sources.n_models * sources.n_items
        # After a batch with a limit on the half width, the estimate is made anyway.
        is_known = run.stop.half_width is not None and not run.is_amid_batch(target)
        enough = self._used + self._last <= SHARE * (now - self._started)
        is_due = now - self._shown >= OFTEN
        progress = run.progress(target, interval=is_known or (enough and is_due), score=is_due)
        if progress.score is None and self._shown and not is_due:
            return  # too soon after the last one
        self._shown = self._clock()
        if progress.estimate is not None and not is_known:
            self._last = self._clock() - now
            self._used += self._last
        if progress.estimate is not None:
            self.estimates[target] = progress.estimate
        since, before = self._first.setdefault(target, (now, progress.answered))
        speed = pace(progress.answered - before, progress.budget - before, now - since)
        self._update(progress_text(progress, self.estimates.get(target), speed))


def progress_text(found: Progress, last: Estimate | None = None, speed: str = "") -> str:
    """Return how far a target is, in a line, with the interval of its last estimate."""
    parts = [f"{found.target}: {found.answered:,} of {found.budget:,} items{speed}"]
    if found.score is not None:
        parts.append(f"score {Unit(found.scale).score(found.score)}")
    if last is not None:
        at = "" if last.items_run == found.answered else f" at {last.items_run:,} items"
        ends = Unit(last.scale).scores(last.interval)
        parts.append(f"{last.level:.0%} interval {ends}{at}")
    full = found.total / max(1, found.answered)  # what all items would cost
    if (cost := found.cost) is not None:
        limit = "" if cost.limit is None else f" of at most {amount(cost.limit, cost.unit)}"
        parts.append(f"cost {amount(cost.spent, cost.unit)}{limit}")
        parts[-1] += f", {amount(cost.full, cost.unit)} in full"
    if found.spent.tokens:
        parts.append(f"{found.spent.tokens:,} tokens of {found.spent.tokens * full:,.0f} in full")
    return " · ".join(parts)


@contextmanager
def shown(
    name: str, on_progress: Callable[[Run, str], None] | None = None
) -> Iterator[dict[str, Any]]:
    """Give what a run is called with to show its progress on stderr, or by `on_progress`."""
    with status_line(f"running {name}") as update:
        yield {
            "on_progress": on_progress or ProgressLine(update),
            "on_end": lambda: update(ESTIMATING),
        }
