"""The few SVG pieces that the maps of tasks share; every text and attribute is escaped."""

from __future__ import annotations

from markupsafe import Markup, escape

# Widths of Arial-like letters in units of the font size, for the ones far from average.
_NARROW = {**dict.fromkeys("ijl.,:;'|!", 0.26), **dict.fromkeys("frt()[]/- I", 0.34)}
_WIDE = {**dict.fromkeys("mwMW@%", 0.88), **dict.fromkeys("ABCDEFGHKNOPQRSTUVXYZ&", 0.7)}


def num(value: float) -> str:
    """A coordinate, short: one decimal is finer than a screen shows here.

    >>> num(3.0), num(-0.04), num(12.345)
    ('3', '0', '12.3')
    """
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def tag(name: str, *body: str, **attributes: str | float | None) -> Markup:
    """One element; underscores in attribute names become hyphens, ``cls`` is ``class``.

    >>> tag("text", "a < b", x=1.0, cls="tick")
    Markup('<text x="1" class="tick">a &lt; b</text>')
    """
    parts = [Markup("<"), escape(name)]
    for key, value in attributes.items():
        if value is not None:
            shown = num(value) if isinstance(value, int | float) else value
            key = "class" if key == "cls" else key.rstrip("_").replace("_", "-")
            parts.append(Markup(' {}="{}"').format(Markup(key), shown))
    if not body:
        return Markup("").join([*parts, Markup("/>")])
    return Markup("").join([*parts, Markup(">"), *map(escape, body), Markup(f"</{name}>")])


def text(x: float, y: float, words: str, cls: str = "", anchor: str | None = None) -> Markup:
    """A line of text with its baseline at `y`; `anchor` is ``middle`` or ``end``."""
    return tag("text", words, x=x, y=y, cls=cls or None, text_anchor=anchor)


def rule(x1: float, y1: float, x2: float, y2: float, cls: str) -> Markup:
    """A straight line."""
    return tag("path", d=f"M{num(x1)} {num(y1)}L{num(x2)} {num(y2)}", cls=cls)


def drawing(width: float, height: float, label: str, *body: str, cls: str = "") -> Markup:
    """A picture that scales with its column and says what it shows to a screen reader."""
    return tag(
        "svg",
        tag("title", label),
        *body,
        viewBox=f"0 0 {num(width)} {num(height)}",
        cls=cls or None,
        role="img",
        aria_label=label,
        xmlns="http://www.w3.org/2000/svg",
    )


def text_width(words: str, size: float) -> float:
    """About how wide `words` are drawn, a little on the safe side."""
    return size * sum(_NARROW.get(c) or _WIDE.get(c) or (1.0 if ord(c) > 0x2E7F else 0.58)
                      for c in words)  # fmt: skip


def fit(words: str, width: float, size: float) -> str:
    """`words`, with its middle left out when it is wider than `width`.

    The middle goes because names that are made from parts differ at both ends.

    >>> fit("ridge", 100, 12), fit("a-very-long-method-name", 80, 12)
    ('ridge', 'a-very…-name')
    """
    if text_width(words, size) <= width:
        return words
    for kept in range(len(words) - 1, 1, -1):
        head, tail = (kept + 1) // 2, kept // 2
        short = f"{words[:head].rstrip()}…{words[len(words) - tail :].lstrip()}"
        if text_width(short, size) <= width:
            return short
    return words[:1] + "…"
