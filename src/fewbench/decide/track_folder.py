"""The folder of a tracked run: an evaluation for each checkpoint, each in a folder of its own.

Any evaluation in the folder counts, so `fewbench start … -o DIR/step-1000` and `fewbench run … -o
DIR/step-1000` add a checkpoint. Further ones are evaluated like the first.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from fewbench._files import folder_name
from fewbench._text import quoted
from fewbench.errors import EvaluationError
from fewbench.evaluation import Evaluation, Stop
from fewbench.evaluation.journal import HEADER, Journal
from fewbench.scores import Scores

WHOLE = "random"
"""Method of a checkpoint that runs all items: it learns nothing from the sources."""
ALL = "+all"
"""End of the name of such a checkpoint's folder: some of the items may have been run before."""


def is_tracked(folder: Path) -> bool:
    """Return whether a folder holds an evaluation, or folders of evaluations."""
    return (folder / HEADER).is_file() or any(folder.glob(f"*/{HEADER}"))


def open_folder(folder: Path, scores: Scores | None = None) -> list[Evaluation]:
    """Open the evaluations of a run's folder, or of one evaluation.

    If a checkpoint has two, the one with more answers. EvaluationError if there are none.
    """
    if (folder / HEADER).is_file():
        return [Evaluation.open(folder, scores)]
    evaluations: dict[str, Evaluation] = {}
    for evaluation in _open_all(folder, scores):
        assert evaluation.folder is not None
        checkpoint = evaluation.folder.name.removesuffix(ALL)
        other = evaluations.get(checkpoint)
        if other is None or _answered(evaluation) > _answered(other):
            evaluations[checkpoint] = evaluation
    return list(evaluations.values())


def add_checkpoint(
    folder: str | os.PathLike[str],
    name: str,
    *,
    scores: Scores | None = None,
    is_whole: bool = False,
) -> Evaluation:
    """Open the evaluation of a checkpoint, or start it with the settings of those in the folder.

    Parameters
    ----------
    folder : path
        Folder of at least one evaluation, or an evaluation that the checkpoint joins.
    name : str
    scores : Scores, optional
        The source models if their file was moved.
    is_whole : bool
        Whether the checkpoint runs all items. It then joins the source models, and takes the place
        of an evaluation of some items.

    Raises
    ------
    EvaluationError
        If the folder contains no evaluation, or the name is that of a source model.
    """
    root = Path(folder)
    if (root / HEADER).is_file():
        evaluation = _open_one(root, scores)
        if name not in evaluation.targets:
            evaluation.follow(name)
        return evaluation
    place = root / (folder_name(name) + (ALL if is_whole else ""))
    if (place / HEADER).is_file():
        evaluation = _open_one(place, scores)
        if name not in evaluation.targets:
            raise EvaluationError(
                f"{place} holds the checkpoint {evaluation.targets[0]!r}, not {name!r}",
                hint="choose a name that differs in more than its punctuation",
            )
        return evaluation
    # For every evaluation there: one of some items stays beside one of all.
    starts = [evaluation for evaluation in _open_all(root, scores) if not _is_whole(evaluation)]
    if not starts:
        raise EvaluationError(
            f"{root}: no checkpoint that runs some of the items",
            hint="start the first one with fewbench start",
        )
    first = starts[0]
    assert first.folder is not None
    if is_whole:
        evaluation = Evaluation(first.scores, WHOLE, first.scores.n_items, [name])
    else:
        provenance = first.provenance
        evaluation = Evaluation(
            first.scores, provenance.method, targets=[name], seed=provenance.seed,
            stop=Stop(items=provenance.budget), subset=first.subset,
        )  # fmt: skip
        evaluation.ask()
    evaluation.save(place, first.scores_path)
    return evaluation


def full_or_part(folder: Path) -> Path:
    """Return where a checkpoint of this folder ran all items, if it did, else the folder."""
    whole = folder.parent / (folder.name + ALL)
    return whole if (whole / HEADER).is_file() else folder


def checkpoint_beside(name: str, evaluations: Sequence[Evaluation]) -> Evaluation | None:
    """Return the evaluation of a checkpoint in the folder of a run that these are in, if any."""
    for evaluation in evaluations:
        if evaluation.folder is not None:
            place = full_or_part(evaluation.folder.parent / folder_name(name))
            if (place / HEADER).is_file():
                beside = _open_one(place, evaluation.scores)
                if name in beside.targets:
                    return beside
    return None


def _is_whole(evaluation: Evaluation) -> bool:
    return evaluation.provenance.budget == evaluation.scores.n_items


def _open_all(folder: Path, scores: Scores | None) -> list[Evaluation]:
    evaluations = [_open_one(path.parent, scores) for path in sorted(folder.glob(f"*/{HEADER}"))]
    if not evaluations:
        raise EvaluationError(
            f"{folder}: no checkpoints here",
            hint="start one with fewbench start SCORES -m aipw -n ITEMS -t NAME -o "
            f"{quoted(folder / 'NAME')}, or name a scores file and --run",
        )
    return evaluations


def _open_one(place: Path, scores: Scores | None) -> Evaluation:
    if scores is None:
        return Evaluation.open(place)
    average = Journal(place).header().provenance.average
    return Evaluation.open(place, scores.averaged(average))


def _answered(evaluation: Evaluation) -> int:
    return sum(len(evaluation.record.answered(name)) for name in evaluation.targets)
