"""What a method needs of the past scores, said by its parts.

A part (selector, predictor, features, regressor) says so in an attribute or property `needs`; one
without it needs nothing in particular. How many sources a part should have is where, on five real
tables, methods with it began to beat plain random sampling at 50 items: it is advice, not a limit.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal


@dataclass(frozen=True)
class Need:
    """One thing that a part needs.

    Attributes
    ----------
    what : {"sources", "distinct sources", "tasks", "probabilities", "text", "task text"}
        Models; models not counting near-copies; tasks; option probabilities (1 or 0); a text of
        every item, or of some item of every task (1 or 0).
    least : int
        How many.
    without : str
        What becomes of the method with fewer, as words after "cannot:" or "but:".
    required : bool
        Whether the method refuses to work with fewer.
    """

    what: Literal["sources", "distinct sources", "tasks", "probabilities", "text", "task text"]
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


@dataclass(frozen=True)
class Extra:
    """An optional package that a part needs, said by the part in `extras`.

    Attributes
    ----------
    name : str
        The extra of fewbench that installs it.
    package, module : str
        The package, and the module that is imported.
    """

    name: str
    package: str
    module: str

    @property
    def is_installed(self) -> bool:
        """Whether the module can be imported here."""
        return find_spec(self.module) is not None

    @property
    def hint(self) -> str:
        """How to install it."""
        return f"pip install 'fewbench[{self.name}]'"


def extras_of(*parts: object) -> tuple[Extra, ...]:
    """Return the optional packages that the parts need together, each once.

    Examples
    --------
    >>> from fewbench.methods.catalogue import CATALOGUE
    >>> [extra.package for extra in extras_of(CATALOGUE["collaborative"].method)]
    ['POT']
    """
    found = [extra for part in parts for extra in getattr(part, "extras", ())]
    return tuple(dict.fromkeys(found))


def is_costly(*parts: object) -> bool:
    """Return whether any part takes long to learn from the sources, by its own `costly`.

    Intervals of a method that does rest on one division of the sources only.

    Examples
    --------
    >>> from fewbench.methods.catalogue import CATALOGUE
    >>> [CATALOGUE[name].method.costly for name in ("random-ridge", "gp-irt-anchor")]
    [False, True]
    """
    return any(getattr(part, "costly", False) for part in parts)
