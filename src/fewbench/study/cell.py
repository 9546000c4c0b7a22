"""One cell of a study: one method, one budget, one division of the models."""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

import fewbench
from fewbench._seeds import child_seed
from fewbench.errors import FewbenchError, StudyError
from fewbench.evaluation.assemble import interval
from fewbench.evaluation.intervals import calibrate
from fewbench.evaluation.replay import replay
from fewbench.methods import Method
from fewbench.scores import Scores
from fewbench.study.metrics import point_metrics
from fewbench.study.splits import Split


@dataclass(frozen=True, eq=False)
class Cell:
    """What is to be run.

    Parameters
    ----------
    name, method
        The method as it was asked for, and itself.
    split_name, split, repeat
        The division of the models and which repeat it is of.
    cached : bool
        Whether the result may be kept: of methods that their description determines.
    level : float or None
        Level of the intervals; None for none, which saves most of the time.
    """

    name: str
    method: Method
    budget: int
    split_name: str
    split: Split
    repeat: int
    seed: int
    level: float | None
    cached: bool

    def key(self, fingerprint: str) -> str:
        """Return a hash of all that the result depends on."""
        digest = hashlib.sha256()
        parts = (fingerprint, self.method.describe(), self.budget, self.repeat, self.seed)
        digest.update(repr((*parts, self.level, _code())).encode())
        digest.update(self.split.sources.astype(np.int64).tobytes() + b"|")
        digest.update(self.split.targets.astype(np.int64).tobytes())
        return digest.hexdigest()[:32]


@cache
def _code() -> str:
    """Return a hash of fewbench's own code and of the libraries that results depend on."""
    digest = hashlib.sha256()
    for name in ("numpy", "scipy", "scikit-learn"):
        digest.update(f"{name} {version(name)}\n".encode())
    for path in sorted(Path(fewbench.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class CellResult(BaseModel):
    """What came out; scores and errors in [0, 1]."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    key: str
    targets: tuple[str, ...]
    truth: tuple[float, ...]
    estimate: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    task_mae: tuple[float, ...]
    notes: tuple[str, ...]
    metrics: dict[str, float]


def run_cell(scores: Scores, cell: Cell) -> CellResult:
    """Run a cell: the same result in any process, on any number of cores.

    Raises
    ------
    StudyError
        If the method cannot be run, naming the cell.
    """
    try:
        return _run(scores, cell)
    except FewbenchError as error:
        raise StudyError(
            f"{cell.name} at {cell.budget} items, {cell.split_name} split, repeat {cell.repeat}: "
            f"{error.message}",
            hint=error.hint,
        ) from error


def _run(scores: Scores, cell: Cell) -> CellResult:
    sources = scores.take(models=cell.split.sources)
    targets = scores.take(models=cell.split.targets)
    # Methods of a repeat share a seed, so that what they draw alike (random items) is alike.
    seed = child_seed(cell.seed, 3, cell.repeat)
    said = replay(cell.method, sources, targets, cell.budget, seed, tasks=True)
    truth, past = targets.full_scores(), sources.full_scores()
    metrics = point_metrics(truth, said.scores, past)
    task_errors = np.empty(0)
    if said.tasks is not None:
        true_tasks, past_tasks = targets.task_scores(), sources.task_scores()
        task_errors = np.abs(said.tasks - true_tasks).mean(axis=0)
        each: list[dict[str, Any]] = [
            point_metrics(true_tasks[:, task], said.tasks[:, task], past_tasks[:, task])
            for task in range(true_tasks.shape[1])
        ]
        metrics |= {f"task_{name}": _mean([one[name] for one in each]) for name in each[0]}
    low = high = np.full(len(truth), np.nan)
    if cell.level is not None:
        calibration = calibrate(cell.method, sources, cell.budget, seed)
        ends = [
            interval(
                float(said.scores[row]),
                items,
                targets.values[row, items],
                sources,
                calibration,
                cell.level,
            )[:2]
            for row, items in enumerate(said.items)
        ]
        low, high = np.array(ends).T
        stated = f"{100 * cell.level:g}"
        # Ends are rounded where a sum of floats could fall just short of an exact truth.
        inside = (low <= truth + 1e-9) & (truth <= high + 1e-9)
        metrics[f"coverage{stated}"] = float(inside.mean())
        metrics[f"width{stated}"] = float((high - low).mean())
    if said.outside is not None:
        metrics["outside"] = float(said.outside.mean())
    metrics["seconds_fit"] = said.seconds_fit
    metrics["seconds_predict"] = said.seconds_predict
    metrics["items_run"] = float(np.mean([len(items) for items in said.items]))
    return CellResult(
        key=cell.key(scores.fingerprint),
        targets=tuple(targets.model_ids),
        truth=tuple(truth.tolist()),
        estimate=tuple(said.scores.tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        task_mae=tuple(task_errors.tolist()),
        notes=said.notes,
        metrics=metrics,
    )


def _mean(values: list[float]) -> float:
    """Mean of what is defined; NaN if nothing is."""
    defined = [value for value in values if not np.isnan(value)]
    return float(np.mean(defined)) if defined else float("nan")
