"""Ways of choosing tasks as they are written: a name, settings in parentheses."""

from dataclasses import is_dataclass
from typing import Any, cast

from fewbench._names import some
from fewbench.errors import MethodError
from fewbench.methods.tasks.bento import BentoLe, BentoSim
from fewbench.methods.tasks.choosers import (
    FittedTasks,
    ListedTasks,
    RandomTasks,
    RidgeTasks,
    TaskChooser,
    TaskMedoids,
)
from fewbench.methods.written import Piece, split, with_settings, write

CHOOSERS: dict[str, type[Any]] = {
    "bento-sim": BentoSim,
    "bento-le": BentoLe,
    "tasks-medoids": TaskMedoids,
    "tasks-fit": FittedTasks,
    "tasks-ridge": RidgeTasks,
    "tasks-random": RandomTasks,
    "tasks-listed": ListedTasks,
}
_NAMES = {chooser: name for name, chooser in CHOOSERS.items()}
# Names that the command line knows besides: the paper's, and shorter ones.
SHORT: dict[str, tuple[str, dict[str, str]]] = {
    "kmedoids": ("tasks-medoids", {}),
    "km-raw": ("tasks-medoids", {"space": "raw"}),
    "km-sim": ("tasks-medoids", {"space": "sim"}),
    "km-le": ("tasks-medoids", {"space": "le"}),
    "bm25": ("bento-sim", {}),
    "bm25-sim": ("bento-sim", {}),
    "bm25-le": ("bento-le", {}),
    "fit": ("tasks-fit", {}),
    "ridge": ("tasks-ridge", {}),
    "random": ("tasks-random", {}),
    "list": ("tasks-listed", {}),
}


def read_chooser(text: str) -> TaskChooser:
    """Make a chooser from a name, settings in parentheses; MethodError if there is none such.

    Examples
    --------
    >>> read_chooser("bento-le(components=5)").components
    5
    """
    pieces = split(text)
    if len(pieces) > 1:
        raise MethodError(f"{text!r} is several parts; one chooses the tasks")
    piece = pieces[0]
    if piece.name in SHORT:
        name, settings = SHORT[piece.name]
        piece = Piece(name, settings | piece.settings)
    return make_chooser(piece)


def make_chooser(piece: Piece) -> TaskChooser:
    """Make a chooser of a piece."""
    if piece.name not in CHOOSERS:
        raise MethodError(
            f"no way of choosing tasks is called {piece.name!r}",
            hint=f"use {some([*CHOOSERS, *SHORT], 20)}",
        )
    return cast(TaskChooser, with_settings(CHOOSERS[piece.name], piece.settings, piece.name))


def describe_chooser(chooser: TaskChooser) -> str:
    """Write a chooser as `read_chooser` reads it, settings that differ only."""
    part: Any = chooser
    name = _NAMES.get(type(part), type(part).__name__)
    return write(name, part) if is_dataclass(part) else name
