"""What a correction that a finding advises would change: the models' means and ranks."""

from dataclasses import replace

import numpy as np

from fewbench._names import counted
from fewbench.checks.finding import Finding
from fewbench.checks.parts import one_sided_parts, without_parts
from fewbench.scores import Scores, Unit


def with_effect(scores: Scores, finding: Finding) -> Finding:
    """Return a finding whose advice says what its correction would change."""
    after = corrected(scores, finding)
    if after is None:
        return finding
    return replace(finding, advice=f"{finding.advice}. {in_words(scores, after)}")


def corrected(scores: Scores, finding: Finding) -> Scores | None:
    """Return the scores after the correction, None if there is none that fewbench makes."""
    if finding.kind == "one-sided-part":
        return without_parts(scores, one_sided_parts(scores))
    if not finding.spare:
        return None
    spare = {*finding.spare}
    rows, columns = np.arange(scores.n_models), np.arange(scores.n_items)
    if finding.of == "items":
        columns = np.flatnonzero([item not in spare for item in scores.item_ids])
    else:
        rows = np.flatnonzero([model not in spare for model in scores.model_ids])
    if not len(rows) or not len(columns) or not scores.is_run[np.ix_(rows, columns)].any(1).all():
        return None
    return scores.take(rows, columns)


def in_words(before: Scores, after: Scores) -> str:
    """Return which means and ranks differ between two tables with models in common."""
    names = sorted(after.model_ids)
    old = before.full_scores()[before.model_positions(names)].round(9)
    new = after.full_scores()[after.model_positions(names)].round(9)
    ranks = [(-unit).argsort(kind="stable").argsort() for unit in (old, new)]
    moved = int((ranks[0] != ranks[1]).sum())
    at = int(np.abs(new - old).round(9).argmax())
    unit = Unit(before.scale)
    if abs(new[at] - old[at]) < 1e-9:
        return f"Without them {counted(len(names), 'model')} are left, with the same means"
    was, now = (unit.score(float(before.scale.from_unit(v[at]))) for v in (old, new))
    text = f"Without them {names[at]} changes most, from {was} to {now}"
    if moved:
        text += f", rank {ranks[0][at] + 1} to {ranks[1][at] + 1}; "
        text += f"{counted(moved, 'model has', 'models have')} another rank"
    return text
