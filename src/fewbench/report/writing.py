"""Write the page of any result."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fewbench.errors import FewbenchError
from fewbench.report.frame import write_page
from fewbench.report.sections import render


def write_report(result: Any, path: str | os.PathLike[str], **shown: Any) -> Path:
    """Write a result as one self-contained HTML page and return its path.

    The same result always gives the same bytes. An existing file is replaced only once the new one
    is complete.

    Parameters
    ----------
    result : Evaluation, Estimate, Estimates, RunResult, Comparison, Plan, Audit, TaskAnalysis,
        Versus, Ranking, Gate, Track or Pack.
    path : str or os.PathLike
    **shown
        Arguments of the result's `page`, such as `level` of an `Evaluation`, or `evaluation` and
        `source` (a name of the scores) of estimates.

    Raises
    ------
    FewbenchError
        If there is no page for such a result.

    Examples
    --------
    >>> write_report([1, 2], "page.html")
    Traceback (most recent call last):
    ...
    fewbench.errors.FewbenchError: there is no page for a list ...
    """
    return write_page(render_report(result, **shown), path)


def render_report(result: Any, **shown: Any) -> str:
    """Return the page of a result as text; see `write_report`."""
    if hasattr(result, "page"):
        return render(result.page(**shown))
    raise FewbenchError(
        f"there is no page for a {type(result).__name__}",
        hint="give an evaluation, an estimate, a comparison, a plan, an audit or another result",
    )
