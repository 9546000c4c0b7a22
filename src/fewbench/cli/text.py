"""Plain aligned text for terminals and pipes."""

import sys

from fewbench._text import plain


def echo(text: str) -> None:
    """Print a result to stdout. All that the command line prints passes here or through `say`."""
    print(plain(text), flush=True)


def say(text: str) -> None:
    """Print a note to stderr, so that results can be piped."""
    print(plain(text), file=sys.stderr, flush=True)
