"""Items that no source model ran: a random sample of them, beside what a method asks of the others.

Nothing learned from the sources says how a target does on items that none of them ran. So the
method works on the others, and of these as large a share runs, in the order that samples take them.
The full score is the weighted mean of both parts.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.sampling import permanent_order
from fewbench.methods.base import OfRan, Prediction, Session
from fewbench.methods.record import Drawing
from fewbench.scores import Scores

NOTHING = np.empty(0, dtype=np.intp)
PRIOR = 1.0
"""So many more answers count, with the score that the target has on the other items."""


Begin = Callable[[Scores, int, int, Sequence[str]], Session]


class WithUnrun(Session):
    """A method on the items that some source ran, and a random sample of the others.

    Parameters
    ----------
    begin : callable
        Starts the method on some items; arguments as the next ones.
    scores, budget, seed, targets
        As for the method.
    together : int
        How many targets, in their order, the method has run the same items.
    """

    def __init__(
        self, begin: Begin, scores: Scores, budget: int, seed: int, targets: Sequence[str],
        together: int = 1,
    ) -> None:  # fmt: skip
        super().__init__(targets, scores.n_items)
        self._scores, self._budget, self._together = scores, budget, together
        self._ran, unrun = np.flatnonzero(~scores.unrun), np.flatnonzero(scores.unrun)
        order = permanent_order(scores.task_of, seed, scores.cohort_of)
        self._order = order[np.isin(order, unrun)]
        self._inner = begin(scores.ran, budget_of_ran(scores, budget), seed, targets)

    def _method(self, targets: Sequence[str]) -> Session:
        """The method, with what these targets' groups told of the items that some source ran."""
        names, size = self.record.targets, self._together
        groups = {names.index(name) // size for name in targets}
        known = [name for at, name in enumerate(names) if at // size in groups]
        self._inner.record = self.record.part(self._ran, known)
        return self._inner

    def choose(self, targets: Sequence[str]) -> dict[str, IntArray]:
        """Return each target's next round of the method, and as large a share of the others."""
        method, chosen = self._method(targets), dict[str, IntArray]()
        of_method = method.choose(targets)
        for name in targets:
            new, asked = of_method.get(name), self.record.asked(name)
            left = self._budget - len(asked)
            if left <= 0:  # an extension, or the user, asked for more of the others
                continue
            if new is not None and not len(new):
                chosen[name] = NOTHING  # it waits
                continue
            items = NOTHING if new is None else self._ran[new][:left]
            n_ran, left = len(method.record.asked(name)) + len(items), left - len(items)
            n = min(unrun_beside(self._scores, n_ran) - (len(asked) + len(items) - n_ran), left)
            others = self._order[~np.isin(self._order, asked)][: max(n, 0)]
            if len(items) + len(others):  # a limit may end a run within a round
                between = (np.arange(len(others)) + 0.5) / max(len(others), 1) * len(items)
                chosen[name] = np.insert(items, between.astype(np.intp), others)
        return chosen

    def next_led(self, target: str) -> IntArray:
        """Return the next round of the run that a target follows, as the method does."""
        led = super().next_led(target)
        if not np.isin(led, self._ran).any() or len(self._method([target]).next_led(target)):
            return led
        return NOTHING

    def drawn(self, target: str) -> tuple[Drawing, ...]:
        """Return how the method's items were drawn, phase by phase, and of the others as many.

        So the answers remain a sample when sources have run these, too.
        """
        asked, drawings = self.record.asked(target), []
        phases = self._method([target]).drawn(target)
        is_unrun = self._scores.unrun[asked]
        starts = [
            int(np.argmin(np.append(np.isin(asked, self._ran[phase.before]) | is_unrun, False)))
            for phase in phases
        ]
        before = NOTHING
        for phase, end in zip(phases, [*starts, len(asked)][1:], strict=True):
            since = np.setdiff1d(asked[:end][is_unrun[:end]], before)
            chances = np.full(self._scores.n_items, np.nan)
            chances[self._ran] = phase.chances
            chances[since] = len(since) / max(len(self._order) - len(before), 1)
            drawings.append(Drawing(np.concatenate([self._ran[phase.before], before]), chances))
            before = np.concatenate([before, since])
        return tuple(drawings)

    def predict(self, targets: Sequence[str], *, tasks: bool = True) -> Prediction:
        """Predict both parts, and their weighted mean."""
        scores, of_ran = self._scores, self._method(targets).predict(targets, tasks=tasks)
        at_task = [1 + scores.tasks.index(task) for task in scores.ran.tasks] if tasks else []
        wanted = [scores.item_weights, *(scores.task_weights.T if tasks else ())]
        known = np.full((len(targets), len(wanted)), np.nan)  # of tasks that no source ran
        known[:, 0] = of_ran.scores
        if of_ran.tasks is not None:
            known[:, at_task] = of_ran.tasks
        found = np.empty_like(known)
        for row, name in enumerate(targets):
            full = known[row, 0]
            found[row, 0] = of_all = self._mean(name, wanted[0], full)
            # A task's items differ from the others that some source ran as those of all tasks do.
            likely = np.clip(np.nan_to_num(known[row], nan=full) + of_all - full, 0.0, 1.0)
            for at, weights in enumerate(wanted[1:], start=1):
                found[row, at] = self._mean(name, weights, float(likely[at]))
        shares = np.array([weights[scores.unrun].sum() for weights in wanted])
        every = (1 - shares) * np.nan_to_num(known) + shares * found
        return replace(
            of_ran,
            scores=every[:, 0],
            tasks=every[:, 1:] if tasks else None,
            items=None,
            spread=None,
            task_spread=None,
            freedom=None,
            samples=(),
            is_plain=False,
            ran=OfRan(of_ran, scores.ran, self._ran),
        )

    def _mean(self, target: str, weights: FloatArray, prior: float) -> float:
        """Return a target's weighted mean score on the items that no source ran."""
        answers = self.record.scores(target)[self._order]
        weights = weights[self._order]
        has = np.isfinite(answers) & (weights > 0)
        if not weights.any() or not has.any():
            return prior
        n, answered = int(has.sum()), float(weights[has] @ answers[has])
        seen = float(weights[has].sum())
        left = (n * answered / seen + PRIOR * prior) / (n + PRIOR)
        return float((answered + (weights.sum() - seen) * left) / weights.sum())


def unrun_beside(scores: Scores, n_ran: int) -> int:
    """Return how many items that no source ran run beside so many others: as large a share."""
    ratio = scores.unrun_share / (1 - scores.unrun_share)
    return min(int(np.ceil(ratio * n_ran - 1e-9)), int(scores.unrun.sum()))


def budget_of_ran(scores: Scores, budget: int) -> int:
    """Return how many of a budget's items are some that a source ran."""
    n = budget
    while n > 1 and n + unrun_beside(scores, n) > budget:
        n -= 1
    return min(n, scores.ran.n_items)
