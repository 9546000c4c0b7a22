"""TailoredBench: items chosen for each target by the sources that answer as it does.

Yuan et al. 2025, "Beyond One-Size-Fits-All: Tailored Benchmarks for Efficient Evaluation".
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fewbench.methods.base import Method, Prediction, Session
from fewbench.methods.confidence import Values, confidence, needs_for
from fewbench.methods.needs import Need
from fewbench.methods.written import check_number, check_words, write
from fewbench.scores import Scores
from fewbench.support import FloatArray, IntArray
from fewbench_papers.algorithms.clustering.distances import (
    average_count,
    item_distances,
    nearest_sources,
    standardised_distances,
)
from fewbench_papers.algorithms.clustering.kmedoids import alternating_kmedoids, kmedoids

CANDIDATES = 2000
"""Most items, drawn at random, that the swap search tries as medoids of a target."""


@dataclass(frozen=True)
class Tailored(Method):
    """A probe set for all targets, then a set for each target from its native sources.

    The defaults are those of the authors' program, which made the paper's tables, except at most
    2,000 candidates for medoids, and ties between medoids. If sources are equally near a target,
    the first in the table is taken; if medoids are equally near an item, a random one.

    - `probe`: Items of the probe set (the G-set), at most the budget.
    - `company` ("targets", "sources"): Average the number of native sources over the session's
      targets, which then wait for each other, or over the sources, each treated as a target, so
      that targets are independent. A single target always uses the sources.
    - `values` ("scores", "probabilities"): Compare items and models by scores, or by probabilities
      of the right option, as the paper does on ARC and HellaSwag. Either way the score is
      predicted: an item's is the native sources' mean score, scaled by the target's value on the
      medoid over theirs.
    - `printed`: Follow the paper's equations instead of the program: scores are not standardized
      before distances, sources at exactly the mean distance are not near, medoids are found by
      Eq. 6-7 instead of swaps, and expected scores may exceed 1.
    """

    probe: int = 10
    company: Literal["targets", "sources"] = "targets"
    values: Values = "scores"
    printed: bool = False
    beside: ClassVar = ("kmedoids-ridge",)  # static, and as good on many tables: to be seen

    @property
    def needs(self) -> tuple[Need, ...]:
        """Enough sources, and option probabilities if models are compared by them."""
        some = Need("independent sources", 20, "few sources distinguish few items")
        return (some, *needs_for(self.values, of_targets=True))

    @property
    def targets_apart(self) -> bool:
        """Whether a target's items and estimate are independent of the other targets."""
        return self.company == "sources"

    def start(
        self, scores: Scores, budget: int, seed: int, targets: Sequence[str]
    ) -> "TailoredSession":
        """Choose the probe set.

        Raises MethodError if a setting is out of range or the scores lack option probabilities.
        """
        check_words(self)
        check_number("probe", self.probe, 1)
        return TailoredSession(self, scores, budget, seed, targets)

    def describe(self) -> str:
        """Return the method and its changed settings as the command line writes them."""
        return write("tailored", self)

    def distances(self, columns: FloatArray, among: IntArray | None = None) -> NDArray[np.float32]:
        """Distances between items, or between models by their answers to the probe set."""
        return item_distances(columns, standardise=not self.printed, among=among)

    def choose_probe(self, columns: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
        """Choose the `k` items of the probe set."""
        if self.printed:
            return np.sort(alternating_kmedoids(self.distances(columns), k, rng))
        return kmedoids(standardised_distances(columns), k, rng).medoids

    def search(
        self,
        distances: NDArray[np.float32],
        k: int,
        rng: np.random.Generator,
        near: NDArray[np.float32],
    ) -> IntArray:
        """Choose `k` medoids by swaps, beside others at the distances `near`."""
        return kmedoids(distances, k, rng, near=near).medoids

    def choose_natives(self, distances: NDArray[np.float32], n_sources: int) -> list[IntArray]:
        """Return each target's native sources (Eq. 3-5), of distances between all models."""
        count = average_count(distances, n_sources, inclusive=not self.printed)
        return nearest_sources(distances, n_sources, [count] * (len(distances) - n_sources))

    def anchors(self, probe: IntArray) -> IntArray:
        """Return the probe items that stay medoids."""
        return probe

    def shares(self, to_medoids: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return each medoid's part of each item's estimate: all of the nearest one's."""
        nearest = to_medoids.argmin(axis=1)
        return np.asarray(np.equal.outer(nearest, np.arange(to_medoids.shape[1])), np.float32)


class TailoredSession(Session):
    """Asks the probe set, then each target's own items.

    `probe` has the positions of the probe items, ascending.
    """

    def __init__(
        self, method: Tailored, scores: Scores, budget: int, seed: int, targets: Sequence[str]
    ) -> None:
        super().__init__(targets, scores.n_items)
        self._method, self._scores, self._seed = method, scores, seed
        self._confidence = confidence(scores) if method.values == "probabilities" else None
        values = scores.filled if self._confidence is None else self._confidence.sources
        self._columns = values.T
        self._new = max(0, budget - method.probe)
        self.probe = self._choose_probe(min(method.probe, budget))
        self._probed: set[str] = set()
        self._sets: dict[bytes, NativeSet] = {}
        self._found: dict[bytes, list[IntArray]] = {}

    def _choose_probe(self, k: int) -> IntArray:
        if k == len(self._columns):
            return np.arange(k)
        rng = np.random.default_rng([self._seed, 0])
        return self._method.choose_probe(self._columns, k, rng)

    def _values(self, target: str) -> FloatArray:
        """Return what a target is compared by, shape (items,), NaN where it gave no answer.

        Raises AnswersError if that is option probabilities and an answer came without.
        """
        if self._confidence is None:
            return self.record.scores(target)
        answers = self.record.answers(target)
        values = np.full(self._scores.n_items, np.nan)
        if len(answers.items):
            values[answers.items] = self._confidence.of_targets(answers)[0]
        return values

    def natives(self, targets: Sequence[str]) -> dict[str, IntArray]:
        """Return the positions of the native sources of targets, judged together.

        They follow from the probe items that all these targets answered; without any, all sources.
        """
        answers = np.stack([self._values(target)[self.probe] for target in targets])
        key = answers.tobytes()
        if key not in self._found:
            is_answered = np.isfinite(answers).all(axis=0)
            natives = [np.arange(self._scores.n_models)] * len(targets)
            if is_answered.any():
                sources = self._columns[self.probe[is_answered]].T
                distances = self._method.distances(
                    np.concatenate([sources, answers[:, is_answered]])
                )
                natives = self._method.choose_natives(distances, len(sources))
            self._found[key] = natives
        return dict(zip(targets, self._found[key], strict=True))

    def natives_of(self, target: str) -> IntArray | None:
        """Return a target's native sources, or None while it waits for other targets' answers."""
        group = [target] if self._method.targets_apart else list(self.record.targets)
        if not all(self._is_probed(name) for name in group):
            return None
        # A target that could answer none of the probe items has no say in what is near.
        judged = [name for name in group if np.isfinite(self.record.scores(name)[self.probe]).any()]
        return self.natives(judged if target in judged else [target])[target]

    def _is_probed(self, target: str) -> bool:
        """Return whether no probe item is open; that lasts."""
        if target not in self._probed:
            rounds = self.record.rounds(target)
            if rounds and not np.isin(rounds[0], self.record.open(target)).any():
                self._probed.add(target)
        return target in self._probed

    def native_set(self, natives: IntArray) -> "NativeSet":
        """Return the items chosen for targets with these native sources."""
        key = natives.tobytes()
        if key not in self._sets:
            native_set = make_native_set(
                self._method,
                np.ascontiguousarray(self._columns[:, natives]),
                self.probe,
                self._new,
                np.random.default_rng([self._seed, 1, *natives.tolist()]),
            )
            if self._confidence is not None:
                native_set = replace(native_set, mean=self._scores.filled[natives].mean(axis=0))
            self._sets[key] = native_set
        return self._sets[key]

    def choose(self, targets: Sequence[str]) -> dict[str, IntArray]:
        """Return the probe set or the target's own items; nothing yet for a target that waits."""
        chosen = {}
        for target in targets:
            done = len(self.record.rounds(target))
            if not done:
                chosen[target] = self.probe
            elif done == 1 and self._new:
                natives = self.natives_of(target)
                chosen[target] = self.probe[:0] if natives is None else self.native_set(natives).new
        return chosen

    def predict(self, targets: Sequence[str], *, tasks: bool = True) -> Prediction:
        """Predict from answers and the expected scores of other items (Eq. 10)."""
        scores = self._scores
        items = np.empty((len(targets), scores.n_items))
        for row, target in enumerate(targets):
            answers = self.record.scores(target)
            items[row] = np.where(np.isnan(answers), self._expected(target, answers), answers)
        of_tasks = scores.task_means(items) if tasks else None
        return Prediction(items @ scores.item_weights, of_tasks, np.clip(items, 0.0, 1.0))

    def _expected(self, target: str, answers: FloatArray) -> FloatArray:
        natives = self.natives_of(target)
        if natives is None:
            natives = self.natives([target])[target]
        native_set = self.native_set(natives)
        if np.isnan(answers[native_set.medoids]).any():  # only some were answered
            medoids = self.record.answered(target)
            if np.isin(medoids, native_set.medoids).all():
                order = np.argsort(native_set.medoids)
                places = order[np.searchsorted(native_set.medoids, medoids, sorter=order)]
                to_medoids = native_set.to_medoids[:, places]
            else:  # items that the user chose
                to_medoids = self._method.distances(self._columns[:, natives], medoids)
            shares = self._method.shares(to_medoids)
            native_set = replace(native_set, new=medoids[:0], medoids=medoids, share=shares)
        return self.expected(target, native_set, natives)

    def expected(self, target: str, native_set: "NativeSet", natives: IntArray) -> FloatArray:
        """Return the expected score of each item."""
        expected = native_set.expected(self._values(target))
        return expected if self._method.printed else np.minimum(expected, 1.0)


@dataclass(frozen=True, eq=False)
class NativeSet:
    """The items chosen by a target's native sources, and how they predict all items.

    Anchored k-medoids (Section 3.4) and calibrated estimation (Section 3.5). `medoids`, shape
    (m,), are all medoids and `new` those outside the probe set, ascending. Rows of `share`, shape
    (items, m), are each medoid's part of an item's estimate and sum to 1; `to_medoids` are the
    distances that they follow from, of the same shape. `mean`, shape (items,),
    is the native sources' mean score, and `level` the mean of the values that models are compared
    by, which may be scores or probabilities.
    """

    new: IntArray
    medoids: IntArray
    share: NDArray[np.float32]
    to_medoids: NDArray[np.float32]
    mean: FloatArray
    level: FloatArray

    def expected(self, values: FloatArray) -> FloatArray:
        """Return the expected score of each item from values on all items (Eq. 8-9).

        Only medoids are read, of shape (items,). Values are scores or probabilities, as `level`.
        """
        # Scores are shifted by 1/2 before the ratio (Eq. 8-9): a medoid that no native source
        # solves would divide by 0, and a wrong answer would set all items of its cluster to 0.
        ratios = (values[self.medoids] + 0.5) / (self.level[self.medoids] + 0.5)
        return np.asarray((self.share @ ratios) * (self.mean + 0.5) - 0.5)


def make_native_set(
    method: Tailored, columns: FloatArray, probe: IntArray, k: int, rng: np.random.Generator
) -> NativeSet:
    """Choose `k` items in addition to the probe items, and assign each item to its nearest medoid.

    `columns`, shape (items, native sources), are the native sources' scores; `probe` has the items
    that the target answered.
    """
    among = np.setdiff1d(np.arange(len(columns)), probe)
    anchors = method.anchors(probe) if k else probe
    to_tried = None
    if k == len(among):
        new = among
    elif not k:
        new = np.empty(0, dtype=np.intp)
    elif method.printed:
        new = alternating_kmedoids(method.distances(columns), k, rng, anchors=anchors)
    else:
        if len(among) > max(CANDIDATES, k):
            among = np.sort(rng.choice(among, max(CANDIDATES, k), replace=False))
        tried = np.concatenate([among, anchors])
        to_tried = method.distances(columns, tried)
        near = to_tried[:, len(among) :].min(axis=1, initial=np.inf)
        new = among[method.search(to_tried[:, : len(among)], k, rng, near)]
    # In random order, so that of medoids equally near none is preferred for its place in the table.
    medoids = rng.permutation(np.concatenate([anchors, new]))
    if to_tried is not None:  # what was worked out to choose the medoids serves once more
        place = np.empty(len(columns), dtype=np.intp)
        place[tried] = np.arange(len(tried))
        to_medoids = to_tried[:, place[medoids]]
    else:
        to_medoids = method.distances(columns, medoids)
    mean = columns.mean(axis=1)
    return NativeSet(np.sort(new), medoids, method.shares(to_medoids), to_medoids, mean, mean)
