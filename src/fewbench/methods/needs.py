"""What a method needs from the source scores, declared by its parts, and why it cannot run.

A part (selector, predictor, features, regressor) may declare `needs`, `extras` and `costly`, and
have a method `for_sources`.
Advised numbers of sources are those from which, on five real tables, methods with the part beat
plain random sampling at 50 items; they are not limits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal, TypeVar

import numpy as np

from fewbench._names import counted, some
from fewbench.errors import FewbenchError, MethodError, MissingExtraError
from fewbench.methods.sources import independent_sources
from fewbench.scores import Scores

_Part = TypeVar("_Part")


@dataclass(frozen=True)
class Need:
    """One thing that a part needs.

    - `what` ("sources", "independent sources", "tasks", "probabilities", "text", "task text"):
      Models; models where a family counts as one; tasks; option probabilities (1 or 0); a text of
      each item, or of some item of each task (1 or 0).
    - `least`: How many.
    - `without`: What happens to the method with fewer, as words after "cannot:" or "but:".
    - `required`: Whether the method refuses to run with fewer.
    - `of_targets`: Whether the targets' answers need it, too, where the sources have it.
    """

    what: Literal["sources", "independent sources", "tasks", "probabilities", "text", "task text"]
    least: int
    without: str
    required: bool = False
    of_targets: bool = False


def needs_of(*parts: object) -> tuple[Need, ...]:
    """Return what the parts need together, each need once.

    >>> from fewbench.methods.catalogue import CATALOGUE
    >>> [need.what for need in needs_of(CATALOGUE["random-linear"].method)]
    ['sources', 'independent sources']
    >>> needs_of(CATALOGUE["random"].method)
    ()
    """
    return tuple(dict.fromkeys(need for part in parts for need in getattr(part, "needs", ())))


@dataclass(frozen=True)
class Extra:
    """An optional package that a part needs.

    `name` is the extra of fewbench that installs it, `package` the package and `module` the
    imported module.
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
        """How to install the extra."""
        return f"pip install 'fewbench[{self.name}]'"


def extras_of(*parts: object) -> tuple[Extra, ...]:
    """Return the optional packages that the parts need together, each once.

    >>> from fewbench.methods.catalogue import CATALOGUE
    >>> [extra.package for extra in extras_of(CATALOGUE["collaborative"].method)]
    ['POT']
    """
    return tuple(dict.fromkeys(extra for part in parts for extra in getattr(part, "extras", ())))


def is_costly(*parts: object) -> bool:
    """Return whether any part takes long to learn from the sources.

    Intervals of such a method rest on one split of the sources only.

    >>> from fewbench.methods.catalogue import CATALOGUE
    >>> [CATALOGUE[name].method.costly for name in ("random-ridge", "gp-irt-anchor")]
    [False, True]
    """
    return any(getattr(part, "costly", False) for part in parts)


def for_sources(part: _Part, scores: Scores) -> _Part:
    """Return a part with the rules that depend on the number of sources fixed (see `Method`)."""
    fix = getattr(part, "for_sources", None)
    return part if fix is None else fix(scores)


def obstacle(method: object, scores: Scores | None = None) -> FewbenchError | None:
    """Return why a method or part cannot run, as the error to raise, or None if it can.

    Without `scores`, only missing packages are found.

    >>> from fewbench.methods import find_method
    >>> from fewbench.testing import simulate
    >>> print(obstacle(find_method("random-ridge"), simulate(n_models=1)))
    a regression needs two sources: there is 1 source model, and 2 are needed (hint: use random,
    or add source models)
    >>> obstacle(find_method("random"), simulate(n_models=1)) is None
    True
    """
    for extra in extras_of(method):
        if not extra.is_installed:
            return MissingExtraError(f"{extra.package} is not installed", hint=extra.hint)
    for need in needs_of(method):
        if scores is not None and need.required and _COUNTS[need.what](scores) < need.least:
            return _lack(need, scores)
    return None


def require(part: object, scores: Scores) -> None:
    """Raise the error of `obstacle` if a method or part cannot run."""
    if (error := obstacle(part, scores)) is not None:
        raise error


def supply(scores: Scores) -> dict[str, int]:
    """Return how much a table has of each thing that a `Need` can name."""
    return {what: count(scores) for what, count in _COUNTS.items()}


def item_texts(scores: Scores) -> list[str]:
    """Return the stripped text of each item, "" where there is none.

    >>> from fewbench.scores import from_arrays
    >>> item_texts(from_arrays([[1, 0]], models=["a"]))
    ['', '']
    """
    if "text" not in scores.items:
        return [""] * scores.n_items
    column = scores.items["text"]
    return ["" if lacks else str(x).strip() for x, lacks in zip(column, column.isna(), strict=True)]


def _tasks_have_text(scores: Scores) -> bool:
    has_text = np.array([bool(text) for text in item_texts(scores)])
    return len(np.unique(scores.task_of[has_text])) == len(scores.tasks)


_COUNTS: dict[str, Callable[[Scores], int]] = {
    "sources": lambda scores: scores.n_models,
    "independent sources": independent_sources,
    "tasks": lambda scores: len(scores.tasks),
    "probabilities": lambda scores: int(scores.probabilities is not None),
    "text": lambda scores: int(all(item_texts(scores))),
    "task text": lambda scores: int(_tasks_have_text(scores)),
}


def _lack(need: Need, scores: Scores) -> MethodError:
    if need.what in ("text", "task text"):
        texts = item_texts(scores)
        blank = [item for item, text in zip(scores.item_ids, texts, strict=True) if not text]
        return MethodError(
            f"{len(blank):,} of {scores.n_items:,} items have no text: {some(blank)}",
            hint="import the scores with --items FILE, a table with columns item and text",
        )
    if need.what == "probabilities":
        return MethodError(need.without, hint="use the scores instead", kind="missing")
    if need.what == "tasks":
        return MethodError(f"{need.without}: there is {counted(len(scores.tasks), 'task')}")
    there = f"there {'is' if scores.n_models == 1 else 'are'} "
    return MethodError(
        f"{need.without}: {there}{counted(scores.n_models, 'source model')}, and {need.least} are "
        "needed",
        hint="use random, or add source models",
    )
