"""Charts of an audit: scores of the models, and items by difficulty and discrimination."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fewbench.scores import Unit
from fewbench.show.charts import theme
from fewbench.show.charts.estimating import full_score
from fewbench.show.charts.theme import LIGHT, finished, finite

BINS, MARKED = 24, 400
GRID = (72, 48)  # ten thousand dots of their own would make a heavy page


def model_scores(scores: Sequence[float], unit: Unit) -> Any | None:
    """How many models have which score, or None for a single model."""
    import altair as alt

    if len(scores) < 2:
        return None
    scores = [score * unit.factor for score in scores]
    counts, edges = np.histogram(scores, BINS)
    values = [
        {"low": finite(a), "high": finite(b), "models": int(n), "none": 0}
        for n, a, b in zip(counts, edges[:-1], edges[1:], strict=True) if n
    ]  # fmt: skip
    chart = (
        alt.Chart(theme.rows(values))
        .mark_rect(color=LIGHT["m0"], opacity=0.75)
        .encode(
            x=alt.X("low:Q", scale=alt.Scale(zero=False),
                    axis=alt.Axis(title=full_score(unit), tickCount=theme.ticks())),
            x2="high:Q",
            y=alt.Y("models:Q",
                    axis=alt.Axis(title="number of models", tickMinStep=1, tickCount=5)),
            y2="none:Q",
            tooltip=["models:Q", alt.Tooltip("low:Q", title="from"),
                     alt.Tooltip("high:Q", title="to")],
        )
    )  # fmt: skip
    text = f"How many models score how much: {len(scores)} models from {min(scores):.4g} to "
    text += f"{max(scores):.4g}, median {float(np.median(scores)):.4g}."
    return finished(chart, text, 250)


def items(numbers: Mapping[str, Any], unit: Unit) -> Any | None:
    """Items by mean score and correlation with the rest, or None if none can be judged.

    Parameters
    ----------
    numbers : mapping
        `items`, `item_mean`, `item_r`, and the positions `item_wrong_way` and `item_suspect`, the
        worst first; as in an audit's JSON.
    unit : Unit
        How scores are printed.
    """
    import altair as alt

    r = numbers["item_r"]
    numbered = [i for i, value in enumerate(r) if value is not None]
    means = {i: numbers["item_mean"][i] * unit.factor for i in numbered}
    if not numbered:
        return None
    low, high = unit.scale.low * unit.factor, unit.scale.high * unit.factor
    bottom, top = min(0.0, *(r[i] for i in numbered)), max(0.0, *(r[i] for i in numbered))
    wrong, suspect = numbers["item_wrong_way"][:MARKED], numbers["item_suspect"][:MARKED]
    marked = {*wrong, *suspect}
    wide, tall = (high - low) / GRID[0], ((top - bottom) or 1.0) / GRID[1]
    places = Counter(
        (round((means[i] - low) / wide), round((r[i] - bottom) / tall))
        for i in numbered if i not in marked
    )  # fmt: skip
    crowd = [
        {"mean": finite(low + a * wide), "r": finite(bottom + b * tall), "items": n}
        for (a, b), n in sorted(places.items())
    ]
    kinds_of = {"goes the wrong way": wrong, "agrees least with the others": suspect}
    named = [
        {"item": str(numbers["items"][i]), "mean": finite(means[i]), "r": finite(r[i]),
         "kind": kind}
        for kind, which in kinds_of.items() for i in which
    ]  # fmt: skip
    title = unit.score_title("mean score of the item")
    x = alt.X("mean:Q", scale=alt.Scale(domain=[low, high], nice=False),
              axis=alt.Axis(title=title, tickCount=theme.ticks()))  # fmt: skip
    y = alt.Y("r:Q", scale=alt.Scale(domain=[bottom, top]),
              axis=alt.Axis(title="correlation with the other items", tickCount=5))  # fmt: skip
    shade = alt.Scale(type="sqrt", domain=[1, 8], range=[0.3, 1], clamp=True)
    dots = alt.Chart(theme.rows(crowd)).mark_circle(color=LIGHT["m0"], size=14).encode(
        x=x, y=y, tooltip=["items:Q", "mean:Q", "r:Q"],
        opacity=alt.Opacity("items:Q", legend=None, scale=shade),
    )  # fmt: skip
    zero = alt.Chart(theme.rows([{"r": 0}])).mark_rule(color=LIGHT["soft"]).encode(y=y)
    kinds = list(kinds_of)
    marks = alt.Chart(theme.rows(named)).mark_point(filled=True, size=46, opacity=1).encode(
        x=x, y=y, tooltip=["item:N", "mean:Q", "r:Q", "kind:N"],
        color=alt.Color("kind:N", legend=None,
                        scale=alt.Scale(domain=kinds, range=[LIGHT["m1"], LIGHT["m4"]])),
        shape=alt.Shape("kind:N", legend=None,
                        scale=alt.Scale(domain=kinds, range=["square", "diamond"])),
    )  # fmt: skip
    text = f"{len(numbered):,} items by mean score and by correlation with the rest; "
    text += f"{len(numbers['item_wrong_way']):,} go the wrong way, "
    text += f"{len(numbers['item_suspect']):,} lean that way."
    return finished(alt.layer(dots, zero, marks), text, 250)
