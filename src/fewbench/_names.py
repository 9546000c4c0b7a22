"""How names and numbers of things appear in messages."""

import math
from collections.abc import Iterable
from difflib import get_close_matches
from unicodedata import normalize

from fewbench.errors import FewbenchError

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'")  # and the quote put before them


def some(names: Iterable[object], most: int = 3, *, quotes: bool = True) -> str:
    """Return the first `most` names and how many more there are.

    In quotes in messages, which name what a user typed; without on pages.

    Examples
    --------
    >>> some(["a", "b", "c", "d"], most=2)
    "'a', 'b' and 2 more"
    """
    listed = [str(name) for name in names]
    head = ", ".join(repr(name) if quotes else name for name in listed[:most])
    return head if len(listed) <= most else f"{head} and {len(listed) - most:,} more"


def did_you_mean(name: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """Return a hint for a name that is not known: the closest one, then `otherwise`.

    Without `otherwise`, all known names are listed.

    Examples
    --------
    >>> did_you_mean("groupe", ["group", "random"])
    'did you mean group? use one of group, random'
    """
    names = list(known)
    close = get_close_matches(name, names, n=1)
    rest = f"use one of {', '.join(names)}" if otherwise is None else otherwise
    return f"did you mean {close[0]}? {rest}" if close else rest


def same_text(names: Iterable[str], others: Iterable[str] = ()) -> tuple[str, str] | None:
    r"""Return two names that differ in their Unicode form only, if there are any.

    The two are among `names`, or one is among `names` and one among `others`. They look the same
    wherever they are printed.

    Examples
    --------
    >>> same_text(["caf\u00e9", "tea"], ["cafe\u0301"]) == ("cafe\u0301", "caf\u00e9")
    True
    >>> same_text(["tea", "teas"]) is None
    True
    """
    met = {normalize("NFC", name): name for name in others if not name.isascii()}
    for name in names:
        if not name.isascii() and met.setdefault(normalize("NFC", name), name) != name:
            return met[normalize("NFC", name)], name
    return None


def as_cell(text: object) -> object:
    """Return a text so that no spreadsheet takes it for a formula; numbers to 12 digits.

    A quote is put before a text that begins as a formula does, and before one that begins with a
    quote, so that two texts stay two and taking one quote away gives the text back.

    Examples
    --------
    >>> as_cell("=cmd|x"), as_cell("-"), as_cell("'-"), as_cell("org/model"), as_cell(-1)
    ("'=cmd|x", "'-", "''-", 'org/model', -1)
    >>> as_cell(0.1 + 0.2), as_cell(3.3e-16), as_cell(200.0)
    (0.3, 0, 200)
    """
    if isinstance(text, float) and math.isfinite(text):
        number = round(float(text), 12)
        return int(number) if number.is_integer() else number
    return f"'{text}" if isinstance(text, str) and text.startswith(FORMULA) else text


def rough(number: int) -> str:
    """Return a number with three digits that count.

    >>> rough(16383), rough(91)
    ('16,400', '91')
    """
    digits = max(len(str(number)) - 3, 0)
    return f"{round(number, -digits):,}"


def counted(n: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "model"), counted(1200, "model"), counted(2, "family", "families")
    ('1 model', '1,200 models', '2 families')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def sized(n_bytes: float) -> str:
    """Return a number of bytes as text, in powers of 1,000.

    >>> sized(950), sized(224_672), sized(86_540_000)
    ('950 B', '225 kB', '86.5 MB')
    """
    units = iter(("B", "kB", "MB", "GB"))
    unit, shown = next(units), n_bytes
    while shown >= 999.5 and (larger := next(units, "")):
        unit, shown = larger, shown / 1000
    return f"{shown:,.0f} {unit}" if shown >= 999.5 else f"{shown:.3g} {unit}"


def fixed(value: float, places: int = 2) -> str:
    """A number with a true minus sign, or an en dash when there is none.

    >>> fixed(-0.5, 1), fixed(float("nan")), fixed(81.25, 1), fixed(81.25 - 1e-12, 1)
    ('−0.5', '–', '81.2', '81.2')
    """
    if not math.isfinite(value):
        return "–"
    # Rounded twice: 81.25 and 81.2499999999 are the same number, differently added.
    shown = f"{round(value, places + 6):,.{places}f}"
    return shown.replace("-", "−") if shown.strip("-0.") else shown.lstrip("-")


def signed(value: float, places: int = 2) -> str:
    """A difference: `fixed`, with a plus sign where it is above 0.

    >>> signed(0.5, 1), signed(-0.5, 1), signed(0.0, 1)
    ('+0.5', '−0.5', '0.0')
    """
    shown = fixed(value, places)
    return f"+{shown}" if value > 0 and shown.strip("0.") else shown


def p_value(value: float | None) -> str:
    """A p value with three decimals; a dash where nothing was tested.

    >>> p_value(0.03), p_value(0.00002), p_value(None)
    ('0.030', '<0.001', '–')
    """
    if value is None:
        return "–"
    return "<0.001" if value < 0.001 else fixed(value, 3)


def probability(value: float) -> str:
    """A probability with two decimals; never 0 or 1, which no estimate makes sure.

    >>> probability(0.961), probability(0.996), probability(0.0)
    ('0.96', '>0.99', '<0.01')
    """
    if not 0.005 <= value < 0.995:
        return "<0.01" if value < 0.5 else ">0.99"
    return fixed(value)


def split_names(text: str) -> list[str]:
    """Split at commas outside parentheses, which hold settings.

    Examples
    --------
    >>> split_names("random, pds(models=9,stratified=true)+forest")
    ['random', 'pds(models=9,stratified=true)+forest']
    """
    names, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            names.append("")
        else:
            names[-1] += letter
    listed = [name.strip() for name in names if name.strip()]
    if not listed:
        raise FewbenchError(
            f"no name in {text!r}", hint="give one name, or several, comma-separated"
        )
    return listed
