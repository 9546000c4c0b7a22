"""One cell of a study: one method, one budget, one division of the models."""

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict

import fewbench
from fewbench._seeds import child_seed
from fewbench._types import BoolArray, FloatArray
from fewbench.errors import FewbenchError, StudyError, first_line
from fewbench.evaluation.auto import Auto, choose_method
from fewbench.evaluation.intervals import ErrorModel
from fewbench.evaluation.replay import replay
from fewbench.methods import Method, find_method
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
    """What came out; scores and errors in [0, 1].

    `task_estimate` holds the estimates of the tasks (see `task_estimates`), empty if there are
    none. `tasks_defined` says over how many tasks the mean of a metric over tasks is, where it is
    undefined for some.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    key: str
    targets: tuple[str, ...]
    truth: tuple[float, ...]
    estimate: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    task_mae: tuple[float, ...]
    task_estimate: str
    tasks_defined: dict[str, int]
    notes: tuple[str, ...]
    metrics: dict[str, float]

    def task_estimates(self) -> FloatArray:
        """Return the estimates of the tasks, shape (targets, tasks), to seven digits."""
        flat = np.frombuffer(base64.b64decode(self.task_estimate), dtype="<f4")
        return flat.astype(np.float64).reshape(len(self.targets), -1)


@dataclass(frozen=True)
class Failure:
    """Why nothing came out of a cell."""

    key: str
    reason: str


def try_cell(scores: Scores, cell: Cell) -> CellResult | Failure:
    """Run a cell; whatever goes wrong in it is the result, so that all others stand."""
    try:
        return _run(scores, cell)
    except FewbenchError as error:
        reason = str(error)
    except Exception as error:  # a mistake in a method must not cost the other cells
        said = first_line(error)
        kind = type(error).__name__
        reason = kind if said == kind else f"{kind}: {said}"
    return Failure(cell.key(scores.fingerprint), reason)


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
    method, chosen = cell.method, list[str]()
    if isinstance(method, Auto):  # chosen once a cell, by its sources alone
        choice = choose_method(sources, cell.budget, seed)
        method = find_method(choice.method)
        chosen = [f"chose {choice.method} in repeat {cell.repeat}: {choice.reason}"]
    said = replay(method, sources, targets, cell.budget, seed, tasks=True)
    truth, past = targets.full_scores(), sources.full_scores()
    metrics = point_metrics(truth, said.scores, past)
    task_errors, task_estimate, tasks_defined = np.empty(0), "", {}
    if said.tasks is not None:
        true_tasks, past_tasks = targets.task_scores(), sources.task_scores()
        task_errors = np.abs(said.tasks - true_tasks).mean(axis=0)
        task_estimate = base64.b64encode(said.tasks.astype("<f4").tobytes()).decode()
        each = [
            point_metrics(true_tasks[:, task], said.tasks[:, task], past_tasks[:, task])
            for task in range(true_tasks.shape[1])
        ]
        for name in each[0]:
            values = np.array([one[name] for one in each])
            defined = values[~np.isnan(values)]
            metrics[f"task_{name}"] = float(defined.mean()) if len(defined) else float("nan")
            if len(defined) < len(values):
                tasks_defined[f"task_{name}"] = len(defined)
    low = high = np.full(len(truth), np.nan)
    if cell.level is not None:
        answers = [targets.values[row, items] for row, items in enumerate(said.items)]
        errors = ErrorModel(method, sources, cell.budget, seed, divisions=1)
        judged = errors.judge(said.scores, said.items, answers, cell.level)
        low, high = np.array([(one.low, one.high) for one in judged]).T
        metrics["beyond"] = float(np.mean([one.is_beyond for one in judged]))
        stated = f"{100 * cell.level:g}"
        inside = covered(low, truth, high)
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
        task_estimate=task_estimate,
        tasks_defined=tasks_defined,
        notes=(*chosen, *said.notes),
        metrics=metrics,
    )


def covered(low: FloatArray, truth: FloatArray, high: FloatArray) -> BoolArray:
    """Return whether each truth is in its interval, a sum of floats just short of it included."""
    return np.asarray((low <= truth + 1e-9) & (truth <= high + 1e-9))
