"""Printed results compared as numbers, not as text."""

import re

NUMBER = re.compile(r"[+\-−]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)")


def same_printed(text: str, other: str) -> bool:
    """Return whether two texts have the same words, and numbers that are the same as printed.

    A number that lies on the edge between two printed digits may be printed as either: numbers may
    differ by one unit of the last digit. Spaces do not count, as they align columns.

    >>> same_printed("scores 12.3% (±0.0)", "scores 12.4% (±-0.0)")
    True
    >>> same_printed("scores 12.3%", "scores 12.5%"), same_printed("12 items", "12 tasks")
    (False, False)
    >>> same_printed("tau +.000", "tau -.001"), same_printed("tau .862", "tau .865")
    (True, False)
    """
    words, other_words = (NUMBER.sub("#", one).split() for one in (text, other))
    numbers, other_numbers = (NUMBER.findall(one) for one in (text, other))
    return words == other_words and all(map(_same_number, numbers, other_numbers))


def _same_number(one: str, other: str) -> bool:
    digits = len(one.partition(".")[2])
    if digits != len(other.partition(".")[2]):
        return False
    a, b = (float(number.replace(",", "").replace("−", "-")) for number in (one, other))
    return a == b if not digits else abs(a - b) < 1.5 * 10.0**-digits
