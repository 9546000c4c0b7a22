"""Findings on chosen tasks in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from fewbench._names import fixed
from fewbench.charts.task_sets import strongest
from fewbench.report.words import points

LISTED = 30


def better_where(found: dict[str, Any]) -> str:
    """Where one of the two is better, by the intervals that leave out zero."""
    sides: dict[str, list[int]] = {"le": [], "sim": []}
    for k, low, high in zip(found["k"], found["low"], found["high"], strict=True):
        if low is not None and high is not None and (low > 0 or high < 0):
            sides["le" if low > 0 else "sim"].append(k)
    said = [f"{name} is better at k = {_runs(ks)}" for name, ks in sides.items() if ks]
    if not said:
        return "At no k does the interval of sim − le leave out zero: neither is clearly better."
    rest = sum(map(len, sides.values())) < len(found["k"])
    clear = " and ".join(said)
    end = "; elsewhere the interval holds zero" if rest else ""
    return f"By intervals that leave out zero, {clear}{end}."


def _runs(ks: Sequence[int]) -> str:
    """Numbers with neighbours joined.

    >>> _runs([1, 2, 3, 5])
    '1–3, 5'
    """
    runs: list[list[int]] = []
    for k in ks:
        if runs and k == runs[-1][1] + 1:
            runs[-1][1] = k
        else:
            runs.append([k, k])
    return ", ".join(f"{a}" if a == b else f"{a}–{b}" for a, b in runs)


def at_k(found: dict[str, Any], k: int | None) -> str:
    """The errors of all methods at the k chosen beforehand, never at the best."""
    if k not in found["k"]:
        return ""
    at = found["k"].index(k)
    mine = found["methods"].get(found["chosen"])
    others = [(m, v[at]) for m, v in found["methods"].items() if m != found["chosen"]]
    told = [] if mine is None else [(found["chosen"], mine[at])]
    said = ", ".join(f"{m} {points(v, 1)}%" for m, v in [*told, *others] if v is not None)
    return f"At k = {k}: {said}." if said else ""


def transfers_table(found: dict[str, Any]) -> dict[str, Any]:
    """The strongest transfers in words."""
    tasks = found["tasks"]
    rows = [[tasks[i], tasks[j], fixed(v, 3)] for i, j, v in strongest(found)[:LISTED]]
    return {"header": ["Exemplars of", "help on", "above the column’s mean"], "rows": rows}


def transfers_said(found: dict[str, Any]) -> str:
    """Where strong transfers begin, and how many of them stay within a cluster."""
    every = [(int(i), int(j)) for i, j, _ in found["arcs"]]
    tasks, clusters = found["tasks"], found["clusters"]
    if not every:
        return "No transfer is stronger than the others."
    first = Counter(i for i, _ in every).most_common(2)
    begin = " and ".join(f"{tasks[i]} ({n})" for i, n in first)
    inside = sum(clusters[i] == clusters[j] for i, j in every) / len(every)
    sizes = Counter(clusters)
    pairs = len(tasks) * (len(tasks) - 1)
    chance = sum(n * (n - 1) for n in sizes.values()) / pairs
    if len(every) == 1:
        return f"The strongest transfer is from {tasks[every[0][0]]} to {tasks[every[0][1]]}."
    words = f"The {len(every):,} strongest transfers begin most often at {begin}."
    if len(sizes) > 1:
        words += f" {100 * inside:.0f}% stay within a cluster; {100 * chance:.0f}% would by chance."
    return words
