"""Step numbers of checkpoints, from their names or from a column."""

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np

from fewbench._names import did_you_mean, some
from fewbench._types import FloatArray
from fewbench.errors import EvaluationError
from fewbench.scores.families import TIMES, UNITS, seed_run, trained_for

_UNITS = tuple(dict.fromkeys(UNITS.values()))
"""The first unit that all names have is used."""
_LAST = re.compile(r"(\d+(?:\.\d+)?)([kmbt])?$")
_HOW = "name each one's step: --steps NAME=NUMBER, or a column `step` of the models' table"
_UNNUMBERED = "name targets with a number, such as release-2; or add --steps {}=1 and so on"


def runs_of(names: Sequence[str]) -> list[str]:
    """Return the training run of each checkpoint, by names that differ in more than their steps.

    All are of one run, "", unless every name has a step and some run two checkpoints.

    Examples
    --------
    >>> runs_of(["a/step-1", "a/step-2", "b/step-1"]), runs_of(["step-1", "step-2"])
    (['a', 'a', 'b'], ['', ''])
    """
    runs = [seed_run(name) for name in names]
    if len(set(runs)) in (1, len(runs)) or not all(map(trained_for, names)):
        return [""] * len(names)
    return runs


def read_steps(names: Sequence[str], given: Mapping[str, float] | None = None) -> FloatArray:
    """Return the step of each checkpoint.

    A number counts after a word such as step, iter, checkpoint, ckpt, tokens or epoch, with k, M,
    B or T for thousands to trillions. If no name has such a word, names that differ only in the
    number at their end will do.

    Parameters
    ----------
    names : sequence of str
    given : mapping of name to number, optional
        Steps that are known; names are read only of the others.

    Returns
    -------
    ndarray, shape (names,)

    Raises
    ------
    EvaluationError
        If a name has no step, or two; if names have different units; or if a given step is not a
        finite number of 0 or more, or of an unknown name.

    Examples
    --------
    >>> read_steps(["run/step-1000", "run/step-2k"]).tolist()
    [1000.0, 2000.0]
    >>> read_steps(["iter0003000-epoch1", "iter0006000-epoch1"]).tolist()
    [3000.0, 6000.0]
    """
    numbers = dict(given or {})
    for name, step in numbers.items():
        if name not in names:
            raise EvaluationError(
                f"a step is given for {name!r}, which is not a checkpoint",
                hint=did_you_mean(name, names),
            )
        if not math.isfinite(step) or step < 0:
            raise EvaluationError(
                f"the step of {name!r} is {step:g}", hint="give a number of 0 or more"
            )
    left = [name for name in names if name not in numbers]
    if left:
        numbers |= dict(zip(left, _steps_in(left), strict=True))
    return np.array([numbers[name] for name in names], dtype=np.float64)


def _steps_in(names: Sequence[str]) -> list[float]:
    by_unit = [trained_for(name) for name in names]
    for unit in _UNITS:
        if not all(unit in units for units in by_unit):
            continue
        for name, of_name in zip(names, by_unit, strict=True):
            if len(of_name[unit]) > 1:
                numbers = " and ".join(f"{number:g}" for number in sorted(of_name[unit]))
                raise EvaluationError(f"{name!r} has two {unit}s, {numbers}", hint=_HOW)
        return [min(units[unit]) for units in by_unit]
    if any(by_unit):
        lacking = [name for name, units in zip(names, by_unit, strict=True) if not units]
        if lacking:
            raise EvaluationError(f"no step in the name of {some(lacking)}", hint=_HOW)
        units = dict.fromkeys(unit for units in by_unit for unit in units)
        raise EvaluationError(
            f"the checkpoints' names have different units: {', '.join(units)}", hint=_HOW
        )
    return _numbers_at_the_end(names)


def _numbers_at_the_end(names: Sequence[str]) -> list[float]:
    ends = [_LAST.search(name.lower()) for name in names]
    lacking = [name for name, end in zip(names, ends, strict=True) if end is None]
    stems = {name[: end.start()] for name, end in zip(names, ends, strict=True) if end}
    if lacking or len(stems) > 1 or len(names) == 1:
        raise EvaluationError(
            f"no step in the name of {some(lacking or names)}, so the order is unknown",
            hint=_UNNUMBERED.format((lacking or names)[0]),
        )
    return [float(end[1]) * TIMES[end[2] or ""] for end in ends if end]
