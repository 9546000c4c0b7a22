"""Numbers and findings as text."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fewbench._names import fixed
from fewbench.report.results import Results

# Words, and the method that they name, so that the page can show names as names.
Sentence = list[tuple[str, str | None]]


def points(value: float, places: int = 2) -> str:
    """A share of 1 as percentage points, without the unit."""
    return fixed(100 * value, places)


def percent(value: float) -> str:
    """A share of 1 as a whole percentage."""
    return "–" if not math.isfinite(value) else f"{100 * value:.0f}%"


def tick(value: float) -> str:
    """An axis number without idle zeros."""
    return f"{value:g}".replace("-", "−")


def seconds(value: float) -> str:
    """A duration at two digits.

    >>> seconds(0.00042), seconds(3.14159), seconds(250)
    ('0.4 ms', '3.1 s', '4.2 min')
    """
    if not math.isfinite(value):
        return "–"
    if value >= 120:
        return f"{value / 60:.1f} min"
    if value >= 1:
        return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"
    return f"{1000 * value:.1f} ms" if value < 0.01 else f"{1000 * value:.0f} ms"


def items(budget: int | None) -> str:
    """A budget in words."""
    return "no items" if budget is None else "1 item" if budget == 1 else f"{budget:,} items"


def level_with_best(results: Results, budget: int, split: str) -> tuple[str | None, set[str], bool]:
    """The method with the lowest error, all that are level with it, and whether that was judged.

    `fewbench.study.inference.level_with_best` judges; without that column nothing is judged.
    """
    names = results.ranked(budget, split)
    names = [m for m in names if math.isfinite(results.error(m, budget, split))]
    cells = [results.at(m, budget, split) for m in names]
    judged = any(c.has("level_with_best") for c in cells)
    level = {c.method for c in cells if c["level_with_best"] == 1}
    return (names[0] if names else None), level, judged


def answer(results: Results, split: str, *, name_split: bool) -> Sentence:
    """The page's finding for one split, in one sentence."""
    budget = results.focus
    if budget is None:
        return [("No results: nothing was run.", None)]
    where = f"At {items(budget)}" + (f" on the {split} split" if name_split else "")
    best, level, judged = level_with_best(results, budget, split)
    if best is None:
        return [(f"{where}, no method has an error to report.", None)]
    ran = [m for m in results.ranked(budget, split) if results.at(m, budget, split).has("mae")]
    error = {m: f"{points(results.error(m, budget, split), 1)} pp" for m in results.methods}
    ref = results.reference
    known = ref is not None and math.isfinite(results.error(ref, budget, split))
    off = f" is off by {error[best]} on average"
    if len(ran) == 1:
        return [(f"{where}, ", None), _named(best, ref), (f"{off}.", None)]
    if not judged:
        said: Sentence = [(f"{where}, ", None), _named(best, ref), (" has the lowest error", None)]
        said += [(f", {error[best]} on average", None)]
        if known and best != ref and ref:
            said += [("; ", None), _named(ref, ref), (f" has {error[ref]}", None)]
        return [*said, (". Too few repeats to test whether this is chance.", None)]
    if best == ref:
        return [
            (f"{where}, no method beats ", None),
            _named(best, ref),
            (f", which{off}.", None),
        ]
    if ref and known and ref in level:
        return [
            (f"{where}, no method is clearly better than ", None),
            _named(ref, ref),
            (f", which is off by {error[ref]} on average; the lowest is ", None),
            (best, best),
            (f" with {error[best]}.", None),
        ]
    others = [m for m in ran if m in level - {best}]
    said = [(f"{where}, ", None), (best, best), (off, None)]
    if others:
        said += [(" (level with ", None), *_listed(others), (")", None)]
    if ref and known:
        said += [("; ", None), _named(ref, ref), (f" by {error[ref]}", None)]
    return [*said, (".", None)]


def _named(name: str, reference: str | None) -> tuple[str, str | None]:
    plain = name.lower() == "random" and name == reference
    return ("random sampling" if plain else name), name


def _listed(names: list[str]) -> Sentence:
    """Up to two names, or how many there are."""
    if len(names) > 2:
        return [(f"{len(names)} others", None)]
    return [(names[0], names[0]), *(p for n in names[1:] for p in ((" and ", None), (n, n)))]


def fact(facts: Mapping[str, str], *names: str) -> str | None:
    """The first fact with one of these names, whatever their case."""
    lowered = {k.lower(): v for k, v in facts.items()}
    return next((lowered[n] for n in names if n in lowered), None)
