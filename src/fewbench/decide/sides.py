"""What is compared: a target of an evaluation, a model of the sources, or a fixed score."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fewbench._names import counted, did_you_mean, some
from fewbench._types import FloatArray, IntArray
from fewbench.decide.held_out import spreads_of
from fewbench.errors import EvaluationError
from fewbench.evaluation.beyond import place
from fewbench.evaluation.bounds import bound_score, fit_tasks, known_bounds
from fewbench.evaluation.calibration import NEARLY_COMPLETE
from fewbench.evaluation.evaluation import Evaluation
from fewbench.scores import Scores

Given = Evaluation | tuple[Evaluation, str] | str
"""An evaluation of one target, an evaluation and one of its targets, or the name of a model."""


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two that are compared; scores in [0, 1], 1 being best.

    Attributes
    ----------
    name : str
    estimates, spreads : ndarray, shape (1 + tasks,)
        Full score and task scores, and the units of their errors: 0 if they are known.
    items, answers : ndarray, shape (answered,)
        Positions of the items with an answer, and the scores there.
    least, most : float
        What the answers leave possible.
    evaluation : Evaluation or None
        None if the score is known: a model of the sources.
    notes : tuple of str
    """

    name: str
    estimates: FloatArray
    spreads: FloatArray
    items: IntArray
    answers: FloatArray
    least: float
    most: float
    evaluation: Evaluation | None = None
    notes: tuple[str, ...] = ()

    @cached_property
    def placed(self) -> tuple[float, float]:
        """Probability to be beyond the sources, and distance (see `evaluation.beyond`)."""
        if self.evaluation is None or not len(self.items):
            return 0.0, 0.0
        at = place(self.evaluation.scores, [self.items], [self.answers])
        return float(at.chance[0]), float(at.distance[0])

    @property
    def is_known(self) -> bool:
        """Whether the full score is known, so that it has no error."""
        return self.evaluation is None or self.most - self.least < 1e-12


def labels(one: Side, other: Side) -> tuple[str, str]:
    """Return names that tell two sides apart: targets of one name by their folders."""
    if one.name != other.name:
        return one.name, other.name
    found = []
    for side in (one, other):
        folder = None if side.evaluation is None else side.evaluation.folder
        found.append(f"{folder.name}:{side.name}" if folder else side.name)
    if found[0] == found[1]:
        found = [f"{label} ({letter})" for label, letter in zip(found, "AB", strict=True)]
    return found[0], found[1]


def scores_of(*given: Given, scores: Scores | None = None) -> Scores:
    """Return the source scores that all sides share; EvaluationError if they have not the same."""
    found = [one[0] if isinstance(one, tuple) else one for one in given]
    tables = [one.scores for one in found if isinstance(one, Evaluation)]
    tables += [] if scores is None else [scores]
    if not tables:
        raise EvaluationError(
            "two names, but no evaluation and no scores to find them in",
            hint="pass scores (--scores), or an evaluation folder in place of a name",
        )
    first = tables[0]
    for other in tables[1:]:
        if (other.fingerprint, other.average) != (first.fingerprint, first.average):
            raise EvaluationError(
                "the evaluations rest on different source scores, so their estimates do not "
                "compare",
                hint="start both from the same scores file, with the same --average",
            )
    return first


def side(given: Given, scores: Scores, others: tuple[Given, ...] = ()) -> Side:
    """Return a side from what a user gives.

    Parameters
    ----------
    given : Given
    scores : Scores
        The sources.
    others : tuple of Given
        Evaluations that a name may be a target of.

    Raises
    ------
    EvaluationError
        If a name is not known, a target has no answers, or a model of the sources lacks answers.
    """
    if isinstance(given, Evaluation):
        if len(given.targets) > 1:
            raise EvaluationError(
                f"the evaluation has {len(given.targets)} targets: {some(given.targets)}",
                hint="name one: DIR:TARGET, in Python (evaluation, target)",
            )
        return _estimated(given, given.targets[0], scores)
    if isinstance(given, tuple):
        return _estimated(*given, scores)
    found = [one[0] if isinstance(one, tuple) else one for one in others]
    evaluations = [one for one in found if isinstance(one, Evaluation)]
    for evaluation in evaluations:
        if given in evaluation.targets:
            return _estimated(evaluation, given, scores)
    if given in scores.models.index:
        return _known(given, scores)
    targets = [name for evaluation in evaluations for name in evaluation.targets]
    known = [*dict.fromkeys(targets), *scores.model_ids]
    raise EvaluationError(
        f"{given!r} is neither a target nor a source model",
        hint=did_you_mean(given, known, f"names look like {some(known)}"),
    )


def _estimated(evaluation: Evaluation, target: str, scores: Scores) -> Side:
    prediction = evaluation.prediction(target)
    answers = evaluation.record.answers(target)
    items, own = answers.items, answers.scores[0]
    score = bound_score(float(prediction.scores[0]), scores, items, own)
    if prediction.tasks is None:
        raise EvaluationError(f"{evaluation.provenance.method} predicted no task scores")
    tasks = fit_tasks(prediction.tasks[0], score, scores, items, own)
    estimates = np.array([score, *tasks])
    spread = None if prediction.spread is None else float(prediction.spread[0])
    least, most = known_bounds(scores.item_weights, items, own)
    notes = prediction.notes
    n_open = len(evaluation.record.open(target))
    if n_open:
        notes = (*notes, f"{target}: {counted(n_open, 'asked item')} not answered yet")
    return Side(
        *(target, estimates, spreads_of(estimates, items, scores, spread), items, own),
        *(least, most, evaluation, notes),
    )


def _known(name: str, scores: Scores) -> Side:
    row = int(scores.model_positions([name])[0])
    values = scores.cells[row]
    missing = float(np.isnan(values).mean())
    if missing > NEARLY_COMPLETE:
        raise EvaluationError(
            f"source model {name!r} lacks {missing:.0%} of its answers, so its full score is not "
            "known",
            hint="compare with a model that ran all items, or evaluate it with fewbench start",
        )
    notes: tuple[str, ...] = ()
    if missing:
        notes = (f"{name}: {missing:.1%} of its answers are missing and were filled in",)
    estimates = np.array([scores.full_scores()[row], *scores.task_scores()[row]])
    items = np.flatnonzero(~np.isnan(values))
    full = float(estimates[0])
    return Side(
        *(name, estimates, np.zeros(len(estimates)), items, values[items], full, full, None, notes)
    )


def fixed(score: float, scores: Scores) -> Side:
    """Return a side that is a fixed score in [0, 1], for the full score only."""
    estimates = np.full(1 + len(scores.tasks), score)
    nothing = np.empty(0, dtype=np.intp)
    zeros = np.zeros(len(estimates))
    return Side(f"{score:g}", estimates, zeros, nothing, np.empty(0), score, score)
