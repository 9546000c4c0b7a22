"""Text on its way out: aligned, wrapped, secrets masked, what would steer a terminal written out.

What the command line prints passes `plain` (`echo`, `say`); text in files passes
`masked_bytes` (`fewbench._files`, `fewbench._journal`).
"""

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

SECRET = re.compile(
    r"(^|_)(API_KEY|SECRET_ACCESS_KEY|(ACCESS|AUTH|SESSION|HF|HUB|GITHUB|GH)_TOKEN)$", re.IGNORECASE
)
SHORTEST = 8  # characters; shorter ones, such as "none", are not secret and appear by chance
MASK = "(the key)"
# Control characters but for tabs and ends of lines, marks that reorder text, halves of pairs.
STEERS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udc7f\udd00-\udfff]"
)
COMMAND = re.compile(r"\(fewbench [^()]*\)")
WIDEST, WIDEST_TABLE = 100, 200
_KNOWN: dict[str, str] = {}


def keep_secrets(named: Mapping[str, object]) -> None:
    """Mask those values from here on whose names say that they are keys, such as `api_key`."""
    _KNOWN.update(_secrets(named))


def _secrets(named: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in named.items():
        if SECRET.search(name) and isinstance(value, str) and len(value) >= SHORTEST:
            yield value, name


def masked(text: str) -> str:
    """Return text without the keys in it: those of the environment and of `keep_secrets`.

    Examples
    --------
    >>> keep_secrets({"api_key": "sk-1234567890", "max_tokens": 12345678})
    >>> masked("no such key: sk-1234567890 (12345678)")
    'no such key: (the key) (12345678)'
    """
    for secret in {**_KNOWN, **dict(_secrets(os.environ))}:
        text = text.replace(secret, MASK)
    return text


def masked_bytes(text: bytes) -> bytes:
    """Return `masked` UTF-8 text."""
    return masked(text.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def plain(text: str) -> str:
    r"""Return masked text that a terminal shows as it is: control characters as in JSON.

    Bytes of a path that this locale cannot decode are shown as UTF-8 where they are.

    Examples
    --------
    >>> print(plain("red: \x1b[31m, bell: \x07"))
    red: \u001b[31m, bell: \u0007
    >>> print(plain("r\udcc3\udca9sum\udce9"))
    résum\xe9
    """
    shown = STEERS.sub(lambda match: f"\\u{ord(match[0]):04x}", masked(text))
    return shown.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def echo(text: str) -> None:
    """Print a result to stdout. All that the command line prints passes here or through `say`."""
    print(plain(text), flush=True)


def say(text: str) -> None:
    """Print a note to stderr, so that results can be piped."""
    print(plain(text), file=sys.stderr, flush=True)


def as_note(text: str) -> str:
    """Return a note as a line."""
    return f"note: {text}"


def as_warning(text: str) -> str:
    """Return a warning as a line."""
    return f"warning: {text}"


def say_note(text: str) -> None:
    """Print a note to stderr, marked as one."""
    say(as_note(text))


def say_warning(text: str) -> None:
    """Print a warning to stderr, marked as one."""
    say(as_warning(text))


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], left: int | Sequence[bool] = 1
) -> str:
    """Align columns to the left, the first `left` ones or those that it names, or to the right.

    Columns beyond `WIDEST_TABLE` characters follow below, beside the first column again.

    Examples
    --------
    >>> print(table(["name", "n"], [["a", "10"], ["bcd", "2"]]))
    name   n
    a     10
    bcd    2
    """
    is_left = [at < left for at in range(len(header))] if isinstance(left, int) else left
    lines = [list(header), *[list(row) for row in rows]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    parts, width = [[0]], widths[0]
    for column in range(1, len(header)):
        width += 2 + widths[column]
        if width > WIDEST_TABLE and len(parts[-1]) > 1:
            parts.append([0])
            width = widths[0] + 2 + widths[column]
        parts[-1].append(column)
    return "\n\n".join(
        "\n".join(
            "  ".join(
                line[at].ljust(widths[at]) if is_left[at] else line[at].rjust(widths[at])
                for at in columns
            ).rstrip()
            for line in lines
        )
        for columns in parts
    )


def wrapped(line: str, indent: int = 0) -> str:
    """Break a line between words, but not within (fewbench …); further lines are indented.

    Lines are as wide as the terminal, at most `WIDEST`.
    """
    width = WIDEST
    if sys.stdout.isatty():
        width = min(width, shutil.get_terminal_size((WIDEST, 24)).columns)
    return textwrap.fill(
        COMMAND.sub(lambda match: match[0].replace(" ", "\0"), line),
        max(width, indent + 20),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    ).replace("\0", " ")


def printed(value: Any) -> str:
    """Return a result as indented JSON, with numbers of 12 digits: further ones are rounding.

    Examples
    --------
    >>> print(printed({"score": 0.5400000000000027, "p": 1e-15}))
    {
      "score": 0.54,
      "p": 1e-15
    }
    """
    return json.dumps(_rounded(value), indent=2, ensure_ascii=False)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, dict):
        return {key: _rounded(entry) for key, entry in value.items()}
    return [_rounded(entry) for entry in value] if isinstance(value, list | tuple) else value
