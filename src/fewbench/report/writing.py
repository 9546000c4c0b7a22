"""Write the page of any result."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fewbench._page import Shown
from fewbench.errors import FewbenchError
from fewbench.report.frame import write_page
from fewbench.report.sections import render


def write_report(
    result: Any, path: str | os.PathLike[str], *, level: float | None = None, **told: Any
) -> Path:
    """Write a result as one self-contained HTML page and return its path.

    The same result always gives the same bytes. An existing file is replaced only once the new one
    is complete.

    Parameters
    ----------
    result : Evaluation, Estimate, Estimates, RunResult, Comparison, Plan, Audit, TaskAnalysis,
        Versus, Ranking, Gate, Track or Pack.
    path : str or os.PathLike
    level : float, optional
        Level of the intervals of an `Evaluation` (default: 0.9).
    **told
        For estimates, what the page can tell besides: `scores`, `run`, `source` (a name),
        `folder`; see `fewbench.report.estimate_page.Told`.

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
    return write_page(render_report(result, level=level, **told), path)


def render_report(result: Any, *, level: float | None = None, **told: Any) -> str:
    """Return the page of a result as text; see `write_report`."""
    if isinstance(result, Shown):
        return render(result.page())
    if hasattr(result, "cells") and hasattr(result, "estimates"):
        from fewbench.report.page import render_comparison

        return render_comparison(result)
    from fewbench.evaluation import Estimate, Evaluation
    from fewbench.report.estimate_page import Told, render_estimates
    from fewbench.runners.result import RunResult

    if isinstance(result, Evaluation):
        known = {"scores": result.scores, "evaluation": result, **told}
        if result.folder is not None:
            known.setdefault("folder", str(result.folder))
        return render_estimates(result.estimate(level or 0.9, warn=False), Told(**known))
    if isinstance(result, RunResult):
        if not result.estimates:
            raise FewbenchError("the run has no estimate", hint="run at least one item")
        return render_estimates(result.estimates, Told(**{"run": result, **told}))
    if isinstance(result, Estimate):
        return render_estimates({result.target: result}, Told(**told))
    if (
        isinstance(result, dict)
        and result
        and all(isinstance(v, Estimate) for v in result.values())
    ):
        return render_estimates(result, Told(**told))
    raise FewbenchError(
        f"there is no page for a {type(result).__name__}",
        hint="give an evaluation, an estimate, a comparison, a plan, an audit or another result",
    )
