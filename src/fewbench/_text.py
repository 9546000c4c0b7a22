"""Text: aligned, wrapped, secrets masked, what would steer a terminal written out.

What the command line prints passes `plain` (`echo`, `say`). Text that comes from outside, such as
errors, replies and arguments, is masked where it comes in. Names, ids and paths are never masked.
"""

import json
import logging
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

# Names of what is secret: what Inspect's providers, lm-eval, the Hub and clouds read, and options.
_NAME = (
    r"(?:api[_-]?key|(?:access|account|private|secret)[_-]?key|secret|passw(?:or)?d|"
    r"connection[_-]string|(?:access|api|auth|bearer|hf|hub|github|gh|sas|session)[_-]token|"
    r"bearer_token_bedrock)"
)
SECRET = re.compile(rf"(?:^|_){_NAME}$", re.IGNORECASE)
# As arguments give them: --api-key X, api_key=X, {"api_key": "X"}, Authorization: Bearer X.
GIVEN = re.compile(
    rf"""((?:
        (?<![\w-]) --? (?:(?:[\w-]*[_-])?{_NAME}|token) [\s=]
        | (?:(?:\b|_){_NAME}|(?<![\w-])token) ["']? \s*[=:]
        | \bbearer\s
    )\s*["']?) (\(the\ key\) | [^\s"',;&$]+)""",
    re.IGNORECASE | re.VERBOSE,
)
ADDRESS = re.compile(r"(://[^\s/:@]*)(:[^\s/@]+@)")  # user:password@
SHORTEST = 8  # characters; shorter ones, such as "none", are not secret and appear by chance
MASK, PASSWORD = "(the key)", ":(the key)@"
# Control characters but for tabs and ends of lines, marks that reorder text, halves of pairs.
STEERS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udc7f\udd00-\udfff]"
)
COMMAND = re.compile(r"\(fewbench [^()]*\)")
WIDEST, WIDEST_TABLE = 100, 200
_KNOWN: set[str] = set()


def keep_secrets(arguments: str) -> None:
    """Mask the keys and passwords among arguments from here on, wherever they are repeated."""
    _KNOWN.update(match[2] for match in ADDRESS.finditer(arguments))
    _KNOWN.update(match[2] for match in GIVEN.finditer(arguments) if len(match[2]) >= SHORTEST)


def _secrets() -> set[str]:
    found = set(_KNOWN)
    for name, value in os.environ.items():
        if SECRET.search(name) and len(value) >= SHORTEST:
            found.add(value)
        found.update(match[2] for match in ADDRESS.finditer(value))
    return found


def masked(text: str) -> str:
    """Return text from outside without the keys in it: of the environment and of `keep_secrets`.

    Examples
    --------
    >>> keep_secrets("--model_args api_key=sk-1234567890,max_tokens=12345678")
    >>> masked("no such key: sk-1234567890 (12345678)")
    'no such key: (the key) (12345678)'
    """
    for secret in sorted(_secrets(), key=len, reverse=True):
        text = text.replace(secret, PASSWORD if ADDRESS.fullmatch(f"://{secret}") else MASK)
    return text


def masked_arguments(text: str) -> str:
    """Return arguments without what is secret by its place, too, however short.

    Examples
    --------
    >>> masked_arguments("ask --api-key none --max-tokens 5 --url http://me:x@here/v1")
    'ask --api-key (the key) --max-tokens 5 --url http://me:(the key)@here/v1'
    """
    text = ADDRESS.sub(rf"\1{PASSWORD}", text)
    return masked(GIVEN.sub(lambda match: match[1] + MASK, text))


def masked_within(value: Any) -> Any:
    """Return the content of JSON with masked texts; names of fields stay."""
    if isinstance(value, dict):
        return {name: masked_within(part) for name, part in value.items()}
    if isinstance(value, list):
        return [masked_within(part) for part in value]
    return masked(value) if isinstance(value, str) else value


@contextmanager
def masking_records() -> Iterator[None]:
    """Mask the messages and tracebacks that libraries log."""
    plain = logging.getLogRecordFactory()

    def make(*given: Any, **named: Any) -> logging.LogRecord:
        record = plain(*given, **named)
        if (said := record.getMessage()) != (text := masked(said)):
            record.msg, record.args = text, ()
        if record.exc_info and record.exc_info[0] is not None:
            shown = logging.Formatter().formatException(record.exc_info)
            if shown != (text := masked(shown)):
                record.exc_info, record.exc_text = None, text
        return record

    logging.setLogRecordFactory(make)
    try:
        yield
    finally:
        logging.setLogRecordFactory(plain)


def plain(text: str) -> str:
    r"""Return text that a terminal shows as it is: control characters as in JSON.

    Bytes of a path that this locale cannot decode are shown as UTF-8 where they are.

    Examples
    --------
    >>> print(plain("red: \x1b[31m, bell: \x07"))
    red: \u001b[31m, bell: \u0007
    >>> print(plain("r\udcc3\udca9sum\udce9"))
    résum\xe9
    """
    shown = STEERS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
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


def quoted(word: object) -> str:
    """Return a word of a command as a shell reads it: what is printed to be copied passes here."""
    return shlex.quote(str(word))


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
