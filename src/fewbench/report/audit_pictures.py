"""Pictures of a table of scores: how models score, and how items go with the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from fewbench.report.cloud import cloud
from fewbench.report.identity import Look
from fewbench.report.scales import Scale, nice_range, nice_step, nice_ticks
from fewbench.report.svg import drawing, rule, tag, text
from fewbench.report.words import fixed, tick

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 360.0, 250.0, 36.0, 20.0, 38.0, 10.0
COLUMNS = 20
MARKED = 400
WRONG = Look("goes the wrong way", "c1", "square")
SUSPECT = Look("leans the wrong way", "c4", "diamond", hollow=True)


def score_bars(
    scores: Sequence[float], models: Sequence[str], table: dict[str, Any]
) -> Markup | None:
    """How many models score how much, or None for a single model."""
    if len(scores) < 2:
        return None
    low, high = nice_range(min(scores), max(scores), COLUMNS)
    step = nice_step(high - low, COLUMNS)
    count = max(round((high - low) / step), 1)
    bins: list[list[str]] = [[] for _ in range(count)]
    for score, model in zip(scores, models, strict=True):
        at = int((score - low) / step + 1e-9)
        bins[min(max(at, 0), count - 1)].append(model)
    x = Scale(low, low + count * step, LEFT, WIDTH - RIGHT)
    most = max(map(len, bins))
    y = Scale(0, max(most, 1), HEIGHT - BOTTOM, TOP)
    body = []
    for value in nice_ticks(0, most, min(most, 5)):
        body.append(rule(LEFT, y(value), WIDTH - RIGHT, y(value), "grid" if value else "axis"))
        body.append(text(LEFT - 6, y(value) + 4, tick(value), "tick", "end"))
    for value in nice_ticks(low, low + count * step, 6):
        body.append(text(x(value), HEIGHT - BOTTOM + 16, tick(value), "tick", "middle"))
    for at, names in enumerate(bins):
        if not names:
            continue
        start, stop = x(low + at * step), x(low + (at + 1) * step)
        told = f"{tick(round(low + at * step, 10))} to {tick(round(low + (at + 1) * step, 10))}: "
        told += f"{len(names)} {'model' if len(names) == 1 else 'models'}"
        told += f", {', '.join(names[:5])}" + ("…" if len(names) > 5 else "")
        top = y(len(names))
        bar = tag(
            "rect", tag("title", told), x=start + 0.5, y=top, width=max(stop - start - 1, 1),
            height=HEIGHT - BOTTOM - top, cls="column",
        )  # fmt: skip
        body.append(bar)
    body.append(text(0, 10, "models", "unit"))
    better = " (lower is better)" if table["lower_is_better"] else ""
    middle = (LEFT + WIDTH - RIGHT) / 2
    body.append(text(middle, HEIGHT - 4, f"full score{better}", "unit", "middle"))
    return drawing(WIDTH, HEIGHT, "How many models score how much", *body, cls="c0")


def item_cloud(numbers: dict[str, Any], table: dict[str, Any]) -> Markup | None:
    """Items by mean score and by how they go with the rest, or None if none can be judged."""
    means, r = numbers["item_mean"], numbers["item_r"]
    known = [i for i, value in enumerate(r) if value is not None]
    if not known:
        return None
    low, high = table["range"]
    x = Scale(low, high, LEFT, WIDTH - RIGHT)
    bottom, top = nice_range(min(min(r[i] for i in known), 0), max(max(r[i] for i in known), 0), 5)
    y = Scale(bottom, top, HEIGHT - BOTTOM, TOP)
    body = []
    for value in nice_ticks(bottom, top, 5):
        line = "grid" if value else "target"
        body.append(rule(LEFT, y(value), WIDTH - RIGHT, y(value), line))
        body.append(text(LEFT - 6, y(value) + 4, tick(value), "tick", "end"))
    for value in nice_ticks(low, high, 5):
        body.append(rule(x(value), TOP, x(value), HEIGHT - BOTTOM, "grid"))
        body.append(text(x(value), HEIGHT - BOTTOM + 16, tick(value), "tick", "middle"))
    # The worst come first; those beyond the most that are marked are dots like the others.
    marked = {*numbers["item_wrong_way"][:MARKED], *numbers["item_suspect"][:MARKED]}
    body += cloud((x(means[i]), y(r[i])) for i in known if i not in marked)
    for look, which in ((SUSPECT, "item_suspect"), (WRONG, "item_wrong_way")):
        for i in numbers[which][:MARKED]:
            told = f"{numbers['items'][i]}: mean {fixed(means[i])}, r {fixed(r[i])}, {look.name}"
            mark = look.mark(x(means[i]), y(r[i]), 3.0)
            body.append(tag("g", tag("title", told), mark, cls=look.cls))
    body.append(text(0, 10, "r with the rest", "unit"))
    middle = (LEFT + WIDTH - RIGHT) / 2
    body.append(text(middle, HEIGHT - 4, "mean score of the item", "unit", "middle"))
    told = "Items by mean score and by correlation with the rest"
    return drawing(WIDTH, HEIGHT, told, *body, cls="c0")
