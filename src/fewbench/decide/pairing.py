"""Targets that share few items, and how to run them on the same ones."""

import os
import shlex
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from fewbench._files import folder_name
from fewbench._json import Frozen
from fewbench._names import counted
from fewbench.decide.operands import Operand, labels
from fewbench.uncertainty.contrast import FEW_COMMON


class Pairing(Frozen):
    """Targets that share few items, so that their answers make few pairs.

    Attributes
    ----------
    note : str
        How many items they share.
    command : str
        What runs one of them on the items of the other.
    """

    note: str
    command: str


def pairing(sides: Sequence[Operand]) -> Pairing | None:
    """Return which targets share less than half of their items, and how to pair them, or None."""
    open_ = sorted((side for side in sides if not side.is_known), key=lambda side: -len(side.items))
    few = []
    for first, other in combinations(open_, 2):  # the first has more answers
        common = len(np.intersect1d(first.items, other.items))
        if common < FEW_COMMON * len(other.items):
            few.append((common / len(other.items), common, first, other))
    if not few:
        return None
    _, common, first, other = min(few, key=lambda pair: pair[0])
    a, b = labels(first, other)
    note = f"{a} and {b} share {common:,} of {counted(len(other.items), 'item')}"
    if len(few) > 1:
        note = f"{len(few)} pairs of targets share few items: {note}"
    return Pairing(
        note=f"{note}; on the same items their difference is more precise",
        command=_pair(first, other),
    )


def _pair(leader: Operand, other: Operand) -> str:
    """Return the command that runs a target on the items of another one."""
    evaluation = leader.evaluation
    assert evaluation is not None
    if (folder := evaluation.folder) is None:
        return "run one of them into a folder, and the other with items_of=FOLDER"
    several = len(evaluation.targets) > 1
    path, seed = evaluation.scores_path, evaluation.provenance.seed
    words = ["fewbench", "run", "RUNNER"]
    words += [shlex.quote(os.path.relpath(path))] if path and evaluation.scores.n_models else []
    words += ["--seed", str(seed)] if seed else []
    words += ["-t", shlex.quote(other.name), "-o", shlex.quote(f"{folder_name(other.name)}-paired")]
    leader_run = f"{folder}:{leader.name}" if several else str(folder)
    return " ".join([*words, "--items-of", shlex.quote(leader_run), "--", "…"])
