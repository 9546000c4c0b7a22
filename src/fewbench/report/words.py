"""Numbers and findings in words."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fewbench.report.results import Cell, Results

# A difference smaller than this many standard errors is not called a difference.
NOISE = 2.0

# Words, and the method that they name, so that the page can show names as names.
Sentence = list[tuple[str, str | None]]


def fixed(value: float, places: int = 2) -> str:
    """A number with a true minus sign, or an en dash when there is none.

    >>> fixed(-0.5, 1), fixed(float("nan"))
    ('−0.5', '–')
    """
    if not math.isfinite(value):
        return "–"
    shown = f"{value:.{places}f}"
    return shown.lstrip("-") if not float(shown) else shown.replace("-", "−")


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


def level_with_best(results: Results, budget: int, split: str) -> tuple[str | None, set[str]]:
    """The method with the lowest error, and all that cannot be told apart from it.

    Two methods are told apart when their errors differ by more than `NOISE` standard errors
    of the difference.  Without standard errors only equal numbers count as level, and the
    page says that nothing was judged.
    """
    cells = [results.at(m, budget, split) for m in results.ranked(budget, split)]
    cells = [c for c in cells if c.has("mae")]
    if not cells:
        return None, set()
    best = cells[0]
    return best.method, {c.method for c in cells if not apart(best, c)}


def apart(one: Cell, other: Cell) -> bool:
    """Whether two errors differ by more than noise."""
    spread = [s if math.isfinite(s) else 0.0 for s in (one["mae_se"], other["mae_se"])]
    gap = abs(one["mae"] - other["mae"])
    return gap > NOISE * math.hypot(*spread) + 1e-12


def beats_random(cell: Cell, reference: Cell | None) -> bool:
    """Whether the method does better than random sampling by more than noise.

    The paired interval decides when there is one, because it knows that both methods were
    tried on the same targets.
    """
    if cell.has("ratio_to_random_high"):
        return cell["ratio_to_random_high"] < 1
    if reference is None or not reference.has("mae"):
        return True
    return cell["mae"] < reference["mae"] and apart(cell, reference)


def answer(results: Results, split: str, *, name_split: bool) -> Sentence:
    """The page's finding for one split, in one sentence."""
    budget = results.focus
    if budget is None:
        return [("Nothing was run, so there is nothing to report.", None)]
    where = f"At {items(budget)}" + (f" on the {split} split" if name_split else "")
    best, level = level_with_best(results, budget, split)
    if best is None:
        return [(f"{where}, no method has an error to report.", None)]
    error = {m: f"{points(results.at(m, budget, split)['mae'], 1)} pp" for m in results.methods}
    ref = results.reference
    at_random = results.at(ref, budget, split) if ref else None
    known = at_random is not None and at_random.has("mae")
    off = f" is off by {error[best]} on average"
    if ref is None or best != ref:
        if ref and known and not beats_random(results.at(best, budget, split), at_random):
            return [
                (f"{where}, no method is clearly better than ", None),
                _named(ref, ref),
                (f", which is off by {error[ref]} on average; the lowest is ", None),
                (best, best),
                (f" with {error[best]}.", None),
            ]
        others = [m for m in results.ranked(budget, split) if m in level - {best, ref}]
        said: Sentence = [(f"{where}, ", None), (best, best), (off, None)]
        if others:
            said += [(" (level with ", None), *_listed(others), (")", None)]
        if ref and known:
            said += [("; ", None), _named(ref, ref), (f" by {error[ref]}", None)]
        return [*said, (".", None)]
    if len(results.ranked(budget, split)) == 1:
        return [(f"{where}, ", None), _named(best, ref), (f"{off}.", None)]
    return [
        (f"{where}, no method beats ", None),
        _named(best, ref),
        (f", which{off}.", None),
    ]


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
