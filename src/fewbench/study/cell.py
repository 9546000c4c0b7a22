"""One cell of a study: a method, a budget and a split."""

import base64
import hashlib
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict

from fewbench._plugins import sources
from fewbench._seeds import child_seed
from fewbench._threads import one_thread
from fewbench._types import BoolArray, FloatArray
from fewbench._version import __version__
from fewbench.errors import FewbenchError, first_line
from fewbench.evaluation.auto import Auto, choose_method
from fewbench.methods import Answers, Method, find_method
from fewbench.methods.sources import known_scores
from fewbench.scores import Scores
from fewbench.study.metrics import OF_TASKS, point_metrics
from fewbench.study.splits import Split
from fewbench.uncertainty.contrast import Contrast, error_correlation, paired_answers
from fewbench.uncertainty.held_out import HeldOut, measure_for
from fewbench.uncertainty.intervals import Uncertainty
from fewbench.uncertainty.judge import Judge
from fewbench.uncertainty.replay import LearnedPart, replay, shared_part

PACKAGE = Path(__file__).parents[1]
LIBRARIES = ["numpy", "scipy", "pandas", "scikit-learn", "POT"]


@dataclass(frozen=True, eq=False)
class Cell:
    """One cell to run.

    Parameters
    ----------
    name, method
        The method's name as given, and the method.
    split_name, split, repeat
        The kind of split, the split of the models, and its repeat.
    cached : bool
        Whether the result may be kept: only if the name determines the method.
    level : float or None
        Level of the intervals, or None for no intervals, which saves most of the time.
    held : HeldOut or None
        Errors that the intervals rest on; by default they are measured on the sources.
    pairs : bool
        Whether to return the half widths of differences between targets as well.
    shares_fits : bool
        Whether fits of the cell before are used again. The seconds are then not the method's own.
    ladder : tuple of int
        Budgets, increasing and the cell's own among them, at all of which one run of the method
        predicts: for methods whose larger budgets extend smaller ones, with shared fits.
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
    held: HeldOut | None = None
    pairs: bool = False
    shares_fits: bool = False
    ladder: tuple[int, ...] = ()

    def key(self, fingerprint: str) -> str:
        """Return a hash of all that the result depends on."""
        digest = hashlib.sha256()
        parts = (fingerprint, self.method.describe(), self.budget, self.repeat, self.seed)
        digest.update(repr((*parts, self.level, self.pairs, self.ladder, made_with())).encode())
        if self.held is not None:
            digest.update(self.held.errors.tobytes() + self.held.units.tobytes())
        if self.split.seed is not None:
            digest.update(str(self.split.seed).encode())
        digest.update(self.split.sources.astype(np.int64).tobytes() + b"|")
        digest.update(self.split.targets.astype(np.int64).tobytes())
        return digest.hexdigest()[:32]


@cache
def made_with() -> str:
    """Return a hash of the versions of fewbench and its libraries; of a checkout, of its code."""
    digest = hashlib.sha256(__version__.encode())
    for name in LIBRARIES:
        try:
            digest.update(f" {name} {version(name)}".encode())
        except PackageNotFoundError:
            continue
    for package, files in sources("methods"):
        digest.update(f" {package}".encode())
        for path in files:
            digest.update(path.read_bytes())
    if (PACKAGE.parents[1] / "pyproject.toml").is_file():
        for path in sorted(PACKAGE.rglob("*.py")):
            digest.update(path.relative_to(PACKAGE).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


class CellResult(BaseModel):
    """The result of a cell; scores and errors in [0, 1].

    `task_estimate` holds the estimates of the tasks (see `task_estimates`), empty if there are
    none. `tasks_defined` has the number of tasks in a metric's mean over tasks, for metrics that
    are undefined for some tasks. `pair_half` holds the half widths of differences (see
    `pair_halves`), empty if there are none.
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
    pair_half: str = ""

    def pair_halves(self) -> FloatArray:
        """Return half widths of the targets' differences, shape (targets, targets)."""
        flat = np.frombuffer(base64.b64decode(self.pair_half), dtype="<f4")
        return flat.astype(np.float64).reshape(len(self.targets), -1)

    def task_estimates(self) -> FloatArray:
        """Return the tasks' estimates, shape (targets, tasks).

        Every digit is there: rounded ones would no longer tie with the sources' scores.
        """
        flat = np.frombuffer(base64.b64decode(self.task_estimate), dtype="<f8")
        return flat.reshape(len(self.targets), -1)


@dataclass(frozen=True)
class Failure:
    """Why a cell failed."""

    key: str
    reason: str


def try_cell(scores: Scores, cell: Cell, key: str) -> CellResult | Failure:
    """Run a cell; an error in it is its result, so that all others stand."""
    try:
        with one_thread():  # on any machine, and in any process
            return run_cell(scores, cell, key)
    except FewbenchError as error:
        reason = str(error)
    except Exception as error:  # a mistake in a method must not stop the other cells
        words, kind = first_line(error), type(error).__name__
        reason = kind if words == kind else f"{kind}: {words}"
    return Failure(key, reason)


def run_cell(scores: Scores, cell: Cell, key: str) -> CellResult:
    """Run a cell; FewbenchError if the method cannot be run."""
    rows = cell.split.sources
    shared = (
        shared_part(scores, rows) if cell.shares_fits else LearnedPart(scores.take(models=rows))
    )
    sources = shared.scores
    # Methods of a repeat share a seed, and so random items.
    seed = cell.split.seed
    if seed is None:
        seed = child_seed(cell.seed, 3, cell.repeat)
    method, chosen = cell.method, list[str]()
    if isinstance(method, Auto):  # chosen once a cell, by its sources alone
        choice = choose_method(sources, cell.budget)
        method = find_method(choice.method)
        chosen = [f"chose {choice.method} in repeat {cell.repeat}: {choice.reason}"]
    if cell.shares_fits:
        replayed = shared.replay(method, scores, cell.split.targets, cell.budget, seed, cell.ladder)
    else:
        targets = scores.take(models=cell.split.targets)
        replayed = replay(method, sources, targets, cell.budget, seed, tasks=True)
    (truth, true_tasks), past = known_scores(scores, cell.split.targets), sources.full_scores()
    metrics = point_metrics(truth, replayed.scores, past)
    task_errors, task_estimate, tasks_defined = np.empty(0), "", {}
    if replayed.tasks.size:
        past_tasks = sources.task_scores()
        task_errors = np.abs(replayed.tasks - true_tasks).mean(axis=0)
        task_estimate = base64.b64encode(replayed.tasks.astype("<f8").tobytes()).decode()
        each = [
            point_metrics(true_tasks[:, task], replayed.tasks[:, task], past_tasks[:, task])
            for task in range(true_tasks.shape[1])
        ]
        for name in each[0]:
            values = np.array([metrics[name] for metrics in each])
            defined = values[~np.isnan(values)]
            metrics[f"{OF_TASKS}{name}"] = float(defined.mean()) if len(defined) else float("nan")
            if len(defined) < len(values):
                tasks_defined[f"{OF_TASKS}{name}"] = len(defined)
    low = high = np.full(len(truth), np.nan)
    pair_half = ""
    if cell.level is not None:
        fitted, held = method.for_sources(sources), cell.held
        errors = partial(measure_for, fitted, sources, cell.budget, seed)
        judge = Judge(fitted, sources, cell.budget, errors if held is None else lambda _: held)
        scored = replayed.scored
        sure = [judge.uncertainty(score) for score in scored]
        low, high = np.array([uncertainty.interval(cell.level) for uncertainty in sure]).T
        if cell.pairs:
            halves = _pair_halves(sure, [score.answers for score in scored], judge, cell.level)
            pair_half = base64.b64encode(halves.astype("<f4").tobytes()).decode()
        metrics["sampled"] = float(np.mean([score.is_sampled for score in scored]))
        stated = f"{100 * cell.level:g}"
        inside = covered(low, truth, high)
        metrics[f"coverage{stated}"] = float(inside.mean())
        metrics[f"half_width{stated}"] = float((high - low).mean() / 2)
    if replayed.outside is not None:
        metrics["outside"] = float(replayed.outside.mean())
    metrics |= {
        "seconds_fit": replayed.seconds_fit,
        "seconds_predict": replayed.seconds_predict,
        "items_run": float(np.mean([len(items) for items in replayed.items])),
    }
    return CellResult(
        key=key,
        targets=tuple(scores.model_ids[at] for at in cell.split.targets),
        truth=tuple(truth.tolist()),
        estimate=tuple(replayed.scores.tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        task_mae=tuple(task_errors.tolist()),
        task_estimate=task_estimate,
        tasks_defined=tasks_defined,
        notes=(*chosen, *replayed.notes),
        metrics=metrics,
        pair_half=pair_half,
    )


def _pair_halves(
    sure: list[Uncertainty], answers: list[Answers], judge: Judge, level: float
) -> FloatArray:
    """Return the half widths of differences as `versus` has them."""
    halves = np.zeros((len(sure), len(sure)))
    for i, j in zip(*np.triu_indices(len(sure), 1), strict=True):
        a, b = sure[i], sure[j]
        n = min(len(answers[i].items), len(answers[j].items))
        correlation = error_correlation(a, b, n, judge.errors)
        paired = paired_answers(answers[i], answers[j], judge.scores.item_weights)
        halves[i, j] = halves[j, i] = Contrast(a, b, correlation, paired=paired).half(level)
    return halves


def covered(low: FloatArray, truth: FloatArray, high: FloatArray) -> BoolArray:
    """Return whether each truth is in its interval, up to rounding."""
    return np.asarray((low <= truth + 1e-9) & (truth <= high + 1e-9))
