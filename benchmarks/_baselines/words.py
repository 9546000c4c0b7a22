"""Figures as they are written on the pages."""

import math

from fewbench.study.inference import Figure, OverTables

MISSING = "–"


def bare(value: float, digits: int = 2, sign: str = "") -> str:
    """Write a number without the nought before its point."""
    if math.isnan(value):
        return MISSING
    text = f"{value:{sign}.{digits}f}"
    return text.replace("0.", ".", 1) if text.lstrip("+-").startswith("0.") else text


def points(error: float) -> str:
    """Write an error of scores in [0, 1] in percentage points."""
    return MISSING if math.isnan(error) else f"{100 * error:.2f}"


def interval(found: Figure | OverTables) -> str:
    """Write a ratio with its interval, if it has one."""
    if math.isnan(found.low):
        return bare(found.value)
    return f"{bare(found.value)} [{bare(found.low)}, {bare(found.high)}]"


def bold(text: str, yes: bool) -> str:
    """Mark what is level with the best."""
    return f"**{text}**" if yes else text
