"""Scores of Inspect's samples: as numbers, reduced over epochs."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from fewbench.errors import ReaderError
from fewbench.readers.harnesses.inspect_logs.samples import reply_kind
from fewbench.readers.values import as_number

GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


@dataclass
class ScoredSample:
    """A sample with its scores over all epochs; `place` is its row in the log.

    `trials` are the scores of each epoch if `scores` are their mean, else these alone. `costs` are
    those of an epoch, on average.
    """

    sample: Any
    place: int
    scores: dict[str, Any]
    epochs: int = 1
    reply: str = ""
    trials: list[dict[str, Any]] = field(default_factory=list)
    costs: dict[str, float] = field(default_factory=dict)


@dataclass
class ScoredSamples:
    """The samples of a log with all scores, and the ids of the others."""

    items: list[ScoredSample] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    unscored: list[str] = field(default_factory=list)
    lacking: dict[str, list[str]] = field(default_factory=dict)
    despite_errors: int = 0
    copies: int = 0


def score_samples(
    samples: Sequence[Any], reducers: Sequence[str] | None, *, keeps_all: bool = False
) -> ScoredSamples:
    """Return the items that have all scores, reduced over epochs.

    With `keeps_all`, they are averaged, whatever the task reduces them to. An item without an
    answer, or without a score that most items have, counts as not run.
    ReaderError if two samples of one id and epoch have different scores.
    """
    scored = ScoredSamples()
    answered: dict[tuple[str, int], dict[str, Any]] = {}
    by_id: dict[str, list[tuple[int, Any, dict[str, Any]]]] = defaultdict(list)
    troubled: dict[str, bool] = {}
    for place, sample in enumerate(samples, start=1):
        own_id = str(sample.id)
        scores = scores_of(sample.scores or {})
        if scores and (before := answered.setdefault((own_id, sample.epoch), scores)) is not scores:
            if before != scores:
                raise ReaderError(
                    f"sample {own_id!r} (epoch {sample.epoch}) has two answers with different "
                    f"scores: {before} and {scores}",
                    hint="keep one of them",
                )
            scored.copies += 1
        elif scores:
            by_id[own_id].append((place, sample, scores))
            scored.despite_errors += bool(sample.error)
        else:
            troubled[own_id] = troubled.get(own_id, False) or bool(sample.error)
    for own_id, failed in troubled.items():
        if own_id not in by_id:
            (scored.failed if failed else scored.unscored).append(own_id)
    counts: Counter[str] = Counter()
    for rows in by_id.values():
        counts.update({metric for _, _, scores in rows for metric in scores})
    reducer = None if keeps_all else reducer_of(reducers)
    usual = [metric for metric, n in counts.items() if 2 * n > len(by_id)]
    for own_id, rows in by_id.items():
        trials = [scores for _, _, scores in rows]
        if reducer is None:
            scores = _mean(trials)
        else:
            scores = reduce_epochs([sample.scores for _, sample, _ in rows], reducer)
        absent = [metric for metric in usual if metric not in scores]
        for metric in absent:
            scored.lacking.setdefault(metric, []).append(own_id)
        if not absent:
            place, sample, _ = rows[0]
            reply = next(filter(None, (reply_kind(epoch) for _, epoch, _ in rows)), "")
            trials = trials if reducer is None else [scores]
            costs = costs_of([epoch for _, epoch, _ in rows])
            scored.items.append(
                ScoredSample(sample, place, scores, len(rows), reply, trials, costs)
            )
    return scored


def costs_of(epochs: Sequence[Any]) -> dict[str, float]:
    """Return tokens and dollars of a sample, of all models in it: means of its epochs.

    What Inspect does not log for every epoch is left out.
    """
    costs = {}
    for name, counted in (("tokens", "total_tokens"), ("cost", "total_cost")):
        used = [list((getattr(epoch, "model_usage", None) or {}).values()) for epoch in epochs]
        totals = [[getattr(usage, counted, None) for usage in of_epoch] for of_epoch in used]
        if all(of_epoch and None not in of_epoch for of_epoch in totals):
            every = (value for of_epoch in totals for value in of_epoch if value is not None)
            costs[name] = math.fsum(every) / len(totals)
    return costs


def reduce_epochs(epochs: Sequence[Mapping[str, Any]], reducer: Any = None) -> dict[str, Any]:
    """Return metric → value of a sample, from the scores (scorer → score) of each of its epochs.

    Means, unless there is another reducer (see `reducer_of`).
    """
    if reducer is None:
        return _mean([scores_of(scores) for scores in epochs])
    scorers = dict.fromkeys(name for scores in epochs for name in scores)
    return scores_of(
        {name: reducer([epoch[name] for epoch in epochs if name in epoch]) for name in scorers}
    )


def own_reducer(reducers: Sequence[str] | None) -> str:
    """Return the name of the only reducer, "" if there are several or it is the mean."""
    return reducers[0] if reducers and len(reducers) == 1 and reducers[0] != "mean" else ""


def reducer_of(reducers: Sequence[str] | None) -> Any:
    """Return Inspect's reducer of a name, if it is the only one and not the mean.

    None also for a task's own reducer, which is known only where the task is loaded.
    """
    name = own_reducer(reducers)
    if not name:
        return None
    try:
        functions = import_module("inspect_ai").Epochs(1, [name]).reducer
    except Exception:  # of the registry, by version
        return None
    return functions[0]


def describe_reduction(reducers: Sequence[str] | None, epochs: int) -> str:
    """Say how the scores of several epochs become one.

    Examples
    --------
    >>> describe_reduction(["at_least_2", "mean"], 3)
    "scores are means over 3 epochs; Inspect's own score takes at_least_2, mean"
    """
    if reducer_of(reducers) is not None:
        return f"scores are {own_reducer(reducers)} of {epochs} epochs"
    listed = reducers or ["mean"]
    note = "" if listed == ["mean"] else f"; Inspect's own score takes {', '.join(listed)}"
    return f"scores are means over {epochs} epochs{note}"


def scores_of(scores: Mapping[str, Any]) -> dict[str, Any]:
    """Return metric → value: a scorer's own name, or SCORER.KEY where it scores several things.

    Examples
    --------
    >>> class Score:
    ...     def __init__(self, value):
    ...         self.value = value
    >>> scores_of({"match": Score("C"), "parts": Score({"f1": 0.5, "em": "I"}), "b": Score([1])})
    {'match': 1.0, 'parts.f1': 0.5, 'parts.em': 0.0, 'b': [1]}
    """
    numbers: dict[str, Any] = {}
    for name, score in scores.items():
        value = score.value
        several = (
            {f"{name}.{key}": part for key, part in value.items()}
            if isinstance(value, dict)
            else {name: value}
        )
        for metric, raw in several.items():
            number = _as_score(raw)
            # Inspect writes NaN for what a scorer left unscored.
            if number is not None and not (isinstance(number, float) and math.isnan(number)):
                numbers[metric] = number
    return numbers


def _as_score(value: Any) -> Any:
    """Return a score as Inspect counts it: letters and words as numbers, what else it is as is.

    Examples
    --------
    >>> [_as_score(value) for value in ("C", "P", "N", "yes", True, "0.25", 3, "B")]
    [1.0, 0.5, 0.0, 1.0, 1.0, 0.25, 3.0, 'B']
    """
    if isinstance(value, bool | int | float):
        number = as_number(value)  # not of 10**400
        return value if number is None else number
    if not isinstance(value, str):
        return value
    if value in GRADES:
        return GRADES[value]
    if value.lower() in WORDS:
        return WORDS[value.lower()]
    try:
        return float(value)
    except ValueError:
        return value


def _mean(epochs: list[dict[str, Any]]) -> dict[str, Any]:
    if len(epochs) == 1:
        return epochs[0]
    means: dict[str, Any] = {}
    for metric in dict.fromkeys(name for epoch in epochs for name in epoch):
        values = [epoch[metric] for epoch in epochs if metric in epoch]
        other = [value for value in values if not isinstance(value, float)]
        means[metric] = other[0] if other else math.fsum(values) / len(values)
    return means
