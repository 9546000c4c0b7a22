"""Real tables for results on real data; they lie beside the checkout, or the tests are skipped."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fewbench.readers import import_results
from fewbench.scores import Scores

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


@pytest.fixture(scope="session")
def real() -> Callable[[str], Scores]:
    def load(name: str) -> Scores:
        path = DATA / f"{name}.npz"
        if not path.is_file():
            pytest.skip(f"needs the table {name}.npz in ../shared/data, which is not there")
        return import_results(path).scores

    return load


@dataclass(frozen=True)
class Recorded:
    """A table of a record: method → figures with their standard errors over seeds or divisions."""

    metric: str
    scale: float
    repeats: int
    budgets: list[int]
    rows: dict[str, np.ndarray]
    printed: dict[str, np.ndarray]

    def check(self, repeats: pd.DataFrame, method: str, as_method: str | None = None) -> None:
        """Figures of some repeats are the record's, and the paper's where it gives them.

        The difference is at most 3 standard errors, which the record's noise of one repeat gives.
        """
        own = repeats[repeats["method"] == method].groupby("budget")[self.metric]
        mine, count = self.scale * own.mean(), own.size().iloc[0]
        mean, error = self.rows[as_method or method]
        allowed = 3 * error * np.sqrt(self.repeats / count + 1)
        at = [self.budgets.index(budget) for budget in mine.index]
        for figures in (mean, self.printed.get(as_method or method, mean)):
            apart = np.abs(mine.to_numpy() - figures[at])
            ok = (apart <= allowed[at]) | np.isnan(apart)
            assert ok.all(), f"{method}: {mine.tolist()}, not {figures[at]} ± {allowed[at]}"


@pytest.fixture(scope="session")
def recorded() -> Callable[[str, str, str, int], Recorded]:
    """Read a table of benchmarks/results: file, heading, first cell, repeats of the table."""

    def load(file: str, heading: str, first: str, repeats: int) -> Recorded:
        text = (RESULTS / file).read_text(encoding="utf-8")
        section = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
        lines = section.partition(f"| {first} |")[2].split("\n\n")[0].splitlines()
        cells = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
        budgets = [int(one) for one in cells[0] if one]
        rows, printed, method = {}, {}, ""
        for name, by, *figures in (row for row in cells[2:]):
            method = name.split("`")[1] if "`" in name else method
            if by == "fewbench":
                rows[method] = np.array([one.split(" ± ") for one in figures], float).T
            elif by == "paper":
                printed[method] = np.array([one.replace("–", "nan") for one in figures], float)
        metric, scale = {"Kendall tau": ("kendall_tau", 1), "error (pp)": ("mae", 100)}[first]
        return Recorded(metric, scale, repeats, budgets, rows, printed)

    return load
