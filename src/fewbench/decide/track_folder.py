"""The folder of a tracked run: one evaluation per checkpoint, each in a folder of its own.

`track.json` says how checkpoints are evaluated. `steps.jsonl` grows by a line for each step that
was given by hand. Any evaluation that is in the folder counts, so `fewbench run … -o DIR/step-1000`
adds a checkpoint, too.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from fewbench._files import written_whole
from fewbench._journal import Lines
from fewbench._json import parse_json
from fewbench.decide.checkpoints import METHOD
from fewbench.decide.steps import read_steps
from fewbench.errors import EvaluationError
from fewbench.evaluation import Evaluation, Stop
from fewbench.evaluation.journal import HEADER as EVALUATION
from fewbench.evaluation.journal import Journal
from fewbench.methods import Provenance, Subset
from fewbench.scores import Scores, open_scores

HEADER, STEPS = "track.json", "steps.jsonl"
WHOLE = "random"
"""Method of a checkpoint that runs all items: it learns nothing from the sources."""
ALL = "+all"
"""End of the name of such a checkpoint's folder: some of the items may have been run before."""


class TrackHeader(BaseModel):
    """How the checkpoints of a folder are evaluated."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    run: str | None
    scores: str | None
    provenance: Provenance
    subset: Subset | None
    reason: str | None = None


class _Step(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    checkpoint: str
    step: float


@dataclass(frozen=True, eq=False)
class Opened:
    """The evaluations of a folder, the steps given by hand, and the run's name."""

    evaluations: list[Evaluation]
    steps: Mapping[str, float] = field(default_factory=dict)
    run: str | None = None


def start_track(
    scores: Scores,
    folder: str | os.PathLike[str],
    *,
    budget: int,
    run: str | None = None,
    method: str = METHOD,
    seed: int = 0,
    scores_path: str | os.PathLike[str] | None = None,
) -> TrackHeader:
    """Start the folder of a run: how each checkpoint will be evaluated.

    Parameters
    ----------
    scores : Scores
        The source models. They may include checkpoints of the run.
    folder : path
        Created if missing.
    budget : int
        Items per checkpoint.
    run : str, optional
        Checkpoints among the source models: their family, or how their names start.
    method : str
        By default one that gives all checkpoints the same items, which shows changes best.
    seed : int
    scores_path : path, optional
        File of the scores, for later calls.

    Raises
    ------
    EvaluationError, MethodError
        If the folder holds something already, or the method or budget does not fit.
    """
    root = Path(folder)
    if is_tracked(root):
        raise EvaluationError(
            f"{root}: already holds a run or an evaluation",
            hint="add a checkpoint with --add, or choose another folder",
        )
    first = Evaluation(scores, method, budget, ["checkpoint"], seed)
    header = TrackHeader(
        run=run,
        scores=None if scores_path is None else str(Path(scores_path).resolve()),
        provenance=first.provenance,
        subset=first.subset,
        reason=first.reason,
    )
    with written_whole(root / HEADER) as temporary:
        temporary.write_text(header.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return header


def read_header(folder: Path) -> TrackHeader:
    """Return how checkpoints are evaluated; EvaluationError if the folder does not say."""
    path = folder / HEADER
    if not path.is_file():
        raise EvaluationError(
            f"{folder}: no run is followed here",
            hint="start with fewbench track SCORES -n ITEMS -o DIR",
        )
    return parse_json(TrackHeader, path.read_bytes(), str(path), EvaluationError)


def is_tracked(folder: Path) -> bool:
    """Return whether a folder holds a run, an evaluation, or folders of evaluations."""
    return (
        (folder / HEADER).is_file()
        or (folder / EVALUATION).is_file()
        or any(folder.glob(f"*/{EVALUATION}"))
    )


def add_checkpoint(
    folder: str | os.PathLike[str],
    name: str,
    *,
    step: float | None = None,
    scores: Scores | None = None,
    is_whole: bool = False,
) -> Evaluation:
    """Open the evaluation of a checkpoint, or start it.

    Parameters
    ----------
    folder : path
        Of `start_track`.
    name : str
    step : float, optional
        If the name does not tell it.
    scores : Scores, optional
        The source models, if their file was moved.
    is_whole : bool
        Whether the checkpoint runs all items. It then joins the source models, and takes the place
        of an evaluation of some items.

    Raises
    ------
    EvaluationError
        If the folder is not that of a run, or the name is that of a source model.
    """
    root = Path(folder)
    header = read_header(root)
    place = root / (_folder_name(name) + (ALL if is_whole else ""))
    if step is not None:
        read_steps([name], {name: step})  # a wrong one is named before it is kept
    if scores is None:
        scores = _scores_of(header, root)
    evaluation = _started(place, name, header, scores, is_whole)
    if step is not None:  # last: a step of a checkpoint that is not there would be an error
        line = _Step(checkpoint=name, step=step).model_dump_json()
        Lines(root / STEPS).append(line.encode())
    return evaluation


def _started(
    place: Path, name: str, header: TrackHeader, scores: Scores, is_whole: bool
) -> Evaluation:
    if (place / EVALUATION).is_file():
        evaluation = _opened(place, scores)
        if name not in evaluation.targets:
            raise EvaluationError(
                f"{place} holds the checkpoint {evaluation.targets[0]!r}, not {name!r}",
                hint="choose a name that differs in more than its punctuation",
            )
        return evaluation
    made = header.provenance
    if is_whole:
        evaluation = Evaluation(scores, WHOLE, scores.n_items, [name])
    else:
        stop = Stop(items=made.budget)
        evaluation = Evaluation(
            scores, made.method, targets=[name], seed=made.seed, stop=stop, subset=header.subset
        )
        evaluation.ask()
    evaluation.save(place, header.scores)
    return evaluation


def open_folder(folder: Path, scores: Scores | None = None) -> Opened:
    """Open the evaluations of a run's folder, or of one evaluation."""
    if (folder / EVALUATION).is_file():
        return Opened([Evaluation.open(folder, scores)])
    if not is_tracked(folder):
        raise EvaluationError(
            f"{folder}: no checkpoints here",
            hint="name the folder of fewbench track -o or of an evaluation, or a scores file",
        )
    header = read_header(folder) if (folder / HEADER).is_file() else None
    if scores is None and header is not None:
        scores = _scores_of(header, folder)
    places = sorted(path.parent for path in folder.glob(f"*/{EVALUATION}"))
    opened = {place.name: _opened(place, scores) for place in places}
    for name in [name for name in opened if f"{name}{ALL}" in opened]:  # the one with more answers
        part, whole = (_answered(opened[one]) for one in (name, f"{name}{ALL}"))
        del opened[name if whole >= part else f"{name}{ALL}"]
    evaluations = list(opened.values())
    steps = {}
    for number, line in Lines(folder / STEPS).read():
        found = parse_json(_Step, line, f"{folder / STEPS}: line {number}", EvaluationError)
        steps[found.checkpoint] = found.step
    return Opened(evaluations, steps, None if header is None else header.run)


def _opened(place: Path, scores: Scores | None) -> Evaluation:
    if scores is None:
        return Evaluation.open(place)
    average = Journal(place).header().provenance.average
    return Evaluation.open(place, scores.averaged(average))


def _answered(evaluation: Evaluation) -> int:
    return sum(len(evaluation.record.answered(name)) for name in evaluation.targets)


def _scores_of(header: TrackHeader, folder: Path) -> Scores:
    if header.scores is None or not Path(header.scores).exists():
        raise EvaluationError(
            f"{folder}: no scores at {header.scores}"
            if header.scores
            else f"{folder}: does not record where its scores are",
            hint="pass their path with --scores (in Python, scores=)",
        )
    return open_scores(header.scores).averaged(header.provenance.average)


def _folder_name(name: str) -> str:
    """Return a checkpoint's name as a folder's; other characters become underscores.

    >>> _folder_name("org/run@step-1000")
    'org_run_step-1000'
    """
    kept = "".join(letter if letter.isalnum() or letter in "-_.=" else "_" for letter in name)
    if not kept.strip("._"):
        raise EvaluationError(f"a checkpoint named {name!r}", hint="use letters and digits")
    return kept.lstrip(".")
