"""What a story finds, and the table of all stories."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

COVERED, WRONG, SAVED, SILENT = "coverage", "wrong verdicts", "items saved", "silently wrong"
ELSEWHERE, ALARM, LOST = "said elsewhere only", "false alarms", "paid twice or lost"
MEASURES = (COVERED, WRONG, SAVED, SILENT, ELSEWHERE, ALARM, LOST)


@dataclass(frozen=True)
class Found:
    """One thing that a story counts.

    Attributes
    ----------
    case : str
    measure : str
        One of `MEASURES`.
    value : float
    world : int
        What is found in one world hangs together: its models run the same items.
    """

    case: str
    measure: str
    value: float
    world: int


def covers(interval: dict[str, float], truth: float) -> float:
    """Return whether an interval in JSON contains a number; both are rounded."""
    return float(interval["low"] - 1e-6 <= truth <= interval["high"] + 1e-6)


def is_wrong(verdict: str, difference: float) -> float:
    """Return whether a verdict says the opposite of a difference; of 0, whether it takes sides."""
    said = {"better": 1, "worse": -1, "pass": 1, "fail": -1}.get(verdict, 0)
    return float(said * difference < 0 or (said != 0 and difference == 0))


def estimates_of(case: str, world: int, estimate: dict[str, Any], truth: float) -> Iterable[Found]:
    """Return what an estimate in JSON is worth, beside the score of a full run."""
    yield Found(case, COVERED, covers(estimate["interval"], truth), world)
    yield Found(case, SAVED, 1 - estimate["items_run"] / estimate["items_total"], world)


def table(rows: Iterable[Found]) -> str:
    """Return a line for each case: means, with standard errors over worlds."""
    frame = _cells(rows, lambda case: case)
    return frame.loc[:, (frame != "–").any()].to_markdown()


def summary(stories: Mapping[str, Iterable[Found]]) -> str:
    """Return the same for all stories, with cases together that begin alike up to a colon.

    What is quoted, such as the text of a warning, is in the story's own table only.
    """
    parts = {
        name: _cells(
            (row for row in rows if not row.case.startswith("“")), lambda case: case.split(":")[0]
        )
        for name, rows in stories.items()
    }
    frame = pd.concat(parts, names=["story"]).reset_index()
    frame["story"] = frame["story"].where(~frame["story"].duplicated(), "")
    lines = [" | ".join(cells) for cells in [list(frame), *frame.to_numpy().tolist()]]
    lines.insert(1, "|".join(["---"] * frame.shape[1]))
    return "\n".join(f"| {line} |" for line in lines).replace("| --", "|--").replace("-- |", "--|")


def _cells(rows: Iterable[Found], name_of: Callable[[str], str]) -> pd.DataFrame:
    values: dict[str, dict[str, dict[int, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for row in rows:
        values[name_of(row.case)][row.measure][row.world].append(row.value)
    lines = {case: _line(measures) for case, measures in values.items()}
    return pd.DataFrame.from_dict(lines, orient="index").rename_axis("case")


def _line(measures: Mapping[str, dict[int, list[float]]]) -> dict[str, str]:
    line = {name: share(measures[name]) if name in measures else "–" for name in MEASURES}
    if SAVED in measures:
        line[SAVED] = f"{np.mean([value for of in measures[SAVED].values() for value in of]):.0%}"
    return line


def share(by_world: dict[int, list[float]]) -> str:
    """Return the mean of all with its standard error over worlds, and their number."""
    sizes = np.array([len(of) for of in by_world.values()], dtype=float)
    sums = np.array([sum(of) for of in by_world.values()])
    n, worlds, mean = int(sizes.sum()), len(sizes), sums.sum() / sizes.sum()
    off = ((sums - mean * sizes) ** 2).sum() * worlds / max(worlds - 1, 1)
    if off < 1e-9:  # all worlds are alike: the spread says nothing
        return f"{sums.sum():.0f} of {n}"
    return f"{_bare(mean)} ± {_bare(np.sqrt(off) / n)} ({n})"


def _bare(value: float) -> str:
    return f"{value:.3f}".replace("0.", ".", 1)
