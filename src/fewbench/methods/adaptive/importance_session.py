"""Stage 1 of two-stage collaborative filtering: items asked for in rounds, by importance."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.methods.adaptive.past_tasks import Mixture, Past, PastTask
from fewbench.methods.base import Prediction, Session
from fewbench.scores import Scores

ONE_TASK = (
    "this method is made for benchmarks of many tasks; on a single one plain random sampling is "
    "often closer: compare with random and greedy-ridge"
)


class ItemCompletion(Protocol):
    """Predicts what a target would score on the items that it was not run on."""

    def complete(self, chosen: list[IntArray], answers: FloatArray) -> FloatArray:
        """Return the expected score of every item, shape (items,), answers where there are any.

        What comes out below 0 or above 1 counts so in the means.

        Parameters
        ----------
        chosen : list of ndarray of int, one a task
            The items run, as positions within their task, in the order they were asked.
        answers : ndarray, shape (items,)
            The target's scores there; NaN elsewhere.
        """


class ImportanceSession(Session):
    """Asks every target in rounds, independently of the others.

    The first round is the probe set, the items most important to all sources. Each later one asks
    for those most important to all sources and to the ones that answered a task as the target did.

    Parameters
    ----------
    scores : Scores
    past : Past
        The same by task.
    rounds : ndarray of int, shape (rounds, tasks)
        How many items to ask.
    mixture : Mixture
    n_similar : int
        How many sources are similar.
    completion : ItemCompletion
    targets : sequence of str
    """

    def __init__(
        self,
        scores: Scores,
        past: Past,
        rounds: IntArray,
        mixture: Mixture,
        n_similar: int,
        completion: ItemCompletion,
        targets: Sequence[str],
    ) -> None:
        super().__init__(targets, scores.n_items)
        self._scores, self._past, self._tasks, self._rounds = scores, past, past.tasks, rounds
        self._mixture, self._n_similar = mixture, n_similar
        self._completion = completion
        self._place = np.empty(scores.n_items, dtype=np.intp)  # of each item within its task
        for task in past.tasks:
            self._place[task.items] = np.arange(len(task.items))

    def choose(self, targets: Sequence[str]) -> dict[str, IntArray]:
        """Return the next round's items of every target that has one, task by task."""
        chosen = {}
        for target in targets:
            done = len(self.record.rounds(target))
            if done < len(self._rounds):
                asked = self._by_task(self.record.asked(target))
                answered = self._by_task(self.record.answered(target))
                scores = self.record.scores(target)
                new = [
                    part.items[self._choose(part, asked[task], answered[task], n, scores)]
                    for task, (part, n) in enumerate(
                        zip(self._tasks, self._rounds[done].tolist(), strict=True)
                    )
                ]
                chosen[target] = np.concatenate(new)
        return chosen

    def predict(self, targets: Sequence[str], *, tasks: bool = True) -> Prediction:
        """Predict every item of every target; scores are their means."""
        items = np.array(
            [
                self._completion.complete(
                    self._by_task(self.record.answered(target)), self.record.scores(target)
                )
                for target in targets
            ]
        )
        of_tasks = None
        if tasks:
            of_tasks = np.clip(self._scores.task_means(items), 0.0, 1.0)
        full = np.clip(items @ self._scores.item_weights, 0.0, 1.0)
        notes = (ONE_TASK,) if len(self._tasks) == 1 else ()
        return Prediction(full, of_tasks, np.clip(items, 0.0, 1.0), notes=notes)

    def _by_task(self, items: IntArray) -> list[IntArray]:
        """Return items task by task, as positions within the task, in the same order."""
        task_of = self._scores.task_of[items]
        return [self._place[items[task_of == task]] for task in range(len(self._tasks))]

    def _choose(
        self, task: PastTask, asked: IntArray, answered: IntArray, n: int, scores: FloatArray
    ) -> IntArray:
        if not n:
            return asked[:0]
        importance = task.importance
        if len(answered):
            similar = self._past.similar(task.items[answered], scores, self._n_similar)
            importance = self._mixture.of(task.values, similar, task.importance)
        return task.most_important(importance, asked, n)
