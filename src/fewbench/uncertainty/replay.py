"""Playing an evaluation with targets whose answers are known already."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np

from fewbench._names import some
from fewbench._threads import one_thread
from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.errors import FewbenchError, MethodError
from fewbench.methods.base import Answers, Method, Session
from fewbench.methods.kept_fits import KeptFits
from fewbench.methods.sources import learned_from
from fewbench.scores import Scores
from fewbench.uncertainty.intervals import Scored

MOST_PARTS = 8
"""Parts of a table whose fits are kept, the latest."""


@dataclass(frozen=True, eq=False)
class Replay:
    """A method's predictions for targets.

    Attributes
    ----------
    scored : list of Scored
        Each target's estimates.
    outside : ndarray of bool, shape (targets,), optional
        Whether a target is unlike all sources, for methods that judge it.
    notes : tuple of str
        The method's notes on its predictions.
    seconds_fit, seconds_predict : float
        Seconds to choose the items, and to fit the predictor and predict.
    """

    scored: list[Scored]
    outside: BoolArray | None
    notes: tuple[str, ...]
    seconds_fit: float
    seconds_predict: float

    @property
    def scores(self) -> FloatArray:
        """Predicted full scores, shape (targets,)."""
        return np.array([score.estimates[0] for score in self.scored])

    @property
    def tasks(self) -> FloatArray:
        """Predicted task scores, shape (targets, tasks), or (targets, 0) if there are none."""
        return np.array([score.estimates[1:] for score in self.scored])

    @property
    def items(self) -> list[IntArray]:
        """Positions of each target's items, in the order asked."""
        return [score.answers.items for score in self.scored]


def replay(
    method: Method,
    sources: Scores,
    targets: Scores,
    budget: int,
    seed: int,
    *,
    tasks: bool = False,
    limit: int | None = None,
) -> Replay:
    """Run a method on targets by looking up their answers.

    Parameters
    ----------
    sources, targets : Scores
        Same items in the same order. The method sees only the answers that it asks for; items that
        a target lacks are skipped, as in a run.
    limit : int, optional
        Most answers per target, to predict from a part of them.
    """
    return replays(method, sources, targets, budget, seed, [limit], tasks=tasks)[0]


def replays(
    method: Method,
    sources: Scores,
    targets: Scores,
    budget: int,
    seed: int,
    limits: Sequence[int | None],
    *,
    tasks: bool = False,
) -> list[Replay]:
    """Run a method once and predict at each of these numbers of answers, increasing, None last."""
    with one_thread():
        started = time.perf_counter()
        session = method.start(sources, budget, seed, targets.model_ids)
        if targets.has_missing:
            for name, ran in zip(targets.model_ids, targets.is_run, strict=True):
                session.record.skip(name, np.flatnonzero(~ran).tolist())
        replayed, options = [], None
        if targets.probabilities is not None:  # read once: they may be in a file
            options = np.stack(list(targets.probabilities.by_model()))
        for limit in limits:
            _answer(session, targets, options, targets.n_items if limit is None else limit)
            chosen = time.perf_counter()
            replayed.append(_said(session, sources, tasks, started, chosen))
        return replayed


@dataclass(frozen=True, eq=False)
class LearnedPart:
    """Some models of a table as sources, what was fitted to them and what was run.

    Held-out errors and studies that divide a table alike fit and run once.
    """

    scores: Scores
    fits: KeptFits = field(default_factory=KeptFits)
    _replays: dict[tuple[str, bytes], list[Replay]] = field(default_factory=dict)

    def replay(
        self, method: Method, table: Scores, targets: IntArray, budget: int, seed: int,
        ladder: Sequence[int] = (),
    ) -> Replay:  # fmt: skip
        """Run a method on models of the table, or predict from a run of a larger budget.

        `ladder` are budgets, increasing, at all of which one run of the method predicts.
        """
        if len(ladder) > 1:
            *lower, most = ladder
            try:
                came = self.replays(method, table, targets, most, seed, [*lower, None])
                return came[list(ladder).index(budget)]
            except FewbenchError:  # at one of the budgets: each runs by itself
                pass
        return self.replays(method, table, targets, budget, seed, [None])[0]

    def replays(
        self, method: Method, table: Scores, targets: IntArray, budget: int, seed: int,
        limits: Sequence[int | None],
    ) -> list[Replay]:  # fmt: skip
        """Return what `replays` does, with tasks, made once."""
        key = repr((method.describe(), budget, seed, limits)), targets.tobytes()
        if key not in self._replays:
            how = (method, self.scores, table.take(models=targets), budget, seed, limits)
            with self.fits.in_use():
                self._replays[key] = replays(*how, tasks=True)
        return self._replays[key]


_PARTS: WeakKeyDictionary[Scores, dict[bytes, LearnedPart]] = WeakKeyDictionary()


def shared_part(table: Scores, sources: IntArray) -> LearnedPart:
    """Return a part of a table as sources, with what was kept of it lately."""
    parts = _PARTS.setdefault(table, {})
    key = sources.tobytes()
    part = parts.pop(key) if key in parts else LearnedPart(learned_from(table, sources))
    parts[key] = part  # the latest is last
    for oldest in list(parts)[:-MOST_PARTS]:
        del parts[oldest]
    return part


def _answer(session: Session, targets: Scores, options: FloatArray | None, limit: int) -> None:
    """Answer what a session asks, up to a number of answers per target.

    `options`, shape (targets, items, options), are the options' probabilities.
    """
    record = session.record
    rows = {name: row for row, name in enumerate(targets.model_ids)}
    left = {name: limit - len(record.answered(name)) for name in rows}
    while asked := {n: items for n, items in session.ask().items() if len(items) and left[n] > 0}:
        for name, wanted in asked.items():
            items, row = wanted[: left[name]], rows[name]
            own = None if options is None else options[[row]][:, items].astype(np.float64)
            session.tell(name, Answers(items, targets.cells[[row]][:, items], own))
            left[name] -= len(items)


def _said(session: Session, sources: Scores, tasks: bool, started: float, chosen: float) -> Replay:
    names = session.record.targets
    answered = [session.record.answers(name) for name in names]
    silent = [name for name, answers in zip(names, answered, strict=True) if not len(answers.items)]
    if silent:
        raise MethodError(
            f"{some(silent)}: the models ran none of the chosen items",
            hint="use more items, or drop models or items: fewbench audit --drop incomplete",
        )
    prediction = session.predict(names, tasks=tasks)
    done = time.perf_counter()
    scored = [Scored.from_row(prediction, *row, sources) for row in enumerate(answered)]
    return Replay(scored, prediction.outside, prediction.notes, chosen - started, done - chosen)
