"""What a method needs of the past scores, said by its parts.

A part (selector, predictor, features, regressor) says so in an attribute or property `needs`; one
without it needs nothing in particular. How many sources a part should have is where, on five real
tables, methods with it began to beat plain random sampling at 50 items: it is advice, not a limit.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Need:
    """One thing that a part needs.

    Attributes
    ----------
    what : {"sources", "distinct sources", "tasks", "probabilities", "text"}
        Models; models not counting near-copies; tasks; option probabilities (1 or 0); a text of
        every item (1 or 0).
    least : int
        How many.
    without : str
        What becomes of the method with fewer, as words after "cannot:" or "but:".
    required : bool
        Whether the method refuses to work with fewer.
    """

    what: Literal["sources", "distinct sources", "tasks", "probabilities", "text"]
    least: int
    without: str
    required: bool = False


def needs_of(*parts: object) -> tuple[Need, ...]:
    """Return what the parts need together, each need once.

    Examples
    --------
    >>> from fewbench.methods.catalogue import CATALOGUE
    >>> [need.what for need in needs_of(CATALOGUE["random-linear"].method)]
    ['sources', 'distinct sources']
    >>> needs_of(CATALOGUE["random"].method)
    ()
    """
    found = [need for part in parts for need in getattr(part, "needs", ())]
    return tuple(dict.fromkeys(found))
