"""Plain aligned text for terminals and pipes."""

from fewbench._text import plain, say

__all__ = ["echo", "say"]


def echo(text: str) -> None:
    """Print a result to stdout. All that the command line prints passes here or through `say`."""
    print(plain(text), flush=True)
