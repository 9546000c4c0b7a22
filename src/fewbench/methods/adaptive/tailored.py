"""TailoredBench: items chosen for each target by the sources that answer as it does.

Yuan et al. 2025, "Beyond One-Size-Fits-All: Tailored Benchmarks for Efficient Evaluation".
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.clustering.distances import Count, Metric, item_distances, native_sources
from fewbench.algorithms.clustering.kmedoids import alternating_kmedoids, kmedoids
from fewbench.errors import MethodError
from fewbench.methods.base import Method, Prediction, Session
from fewbench.methods.confidence import Values, confidence, needs_for
from fewbench.methods.needs import Need
from fewbench.methods.written import check_number, check_words, write
from fewbench.scores import Scores

Search = Literal["swap", "alternate"]
Clip = Literal["none", "above", "both"]
Ties = Literal["one", "shared"]


@dataclass(frozen=True)
class Tailored(Method):
    """A probe set for all targets, then a set for each target from its native sources.

    The defaults are those of the paper's tables, except `candidates` on more than 2,000 items and
    ties between medoids; `AS_PRINTED` follows its equations. Of sources equally near a target, the
    first in the table is taken; of medoids equally near an item, a random one.

    - `probe`: Items of the probe set (the G-set), at most the budget.
    - `metric` ("manhattan", "euclidean", "cosine", "correlation"): Distance between items and
      between models.
    - `standardise`: First scale each column to mean 0 and variance 1: each source's scores for
      distances between items, each probe item's for distances between models.
    - `search` ("swap", "alternate"): Find medoids by swaps while the total distance falls, or by
      Eq. 6-7.
    - `natives` ("average", "dynamic", "own", "all"): How many native sources a target has (see
      `algorithms.clustering.distances`).
    - `inclusive`: Whether sources at exactly the mean distance count as near.
    - `company` ("targets", "sources"): Average the number of native sources over the session's
      targets, which then wait for each other, or over the sources, each treated as a target, so
      that targets are independent. A single target always uses the sources.
    - `anchored`: Keep the probe items as medoids. Otherwise they are run and count only as answers.
    - `calibrate`: Calibrate by the native sources' means (Eq. 8-9).
    - `clip` ("none", "above", "both"): Leave items' expected scores unclipped, clip them at 1, or
      to [0, 1].
    - `ties` ("one", "shared"): Whether an item equally near several medoids takes its score from
      one or from all.
    - `corrected`: Subtract from each item's expected score the mean error of the same estimate on
      the native sources: it is too low for targets stronger than most.
    - `restarts`: Random starts of the swap search; the cheapest clustering is kept.
    - `candidates`: Most items, drawn at random, that the swap search tries as medoids of a target.
    - `values` ("scores", "probabilities"): Compare items and models by scores, or by probabilities
      of the right option, as the paper does on ARC and HellaSwag. Either way the score is
      predicted: an item's is the native sources' mean score, scaled by the target's value on the
      medoid over theirs.
    """

    probe: int = 10
    metric: Metric = "manhattan"
    standardise: bool = True
    search: Search = "swap"
    natives: Count = "average"
    inclusive: bool = True
    company: Literal["targets", "sources"] = "targets"
    anchored: bool = True
    calibrate: bool = True
    clip: Clip = "above"
    ties: Ties = "one"
    corrected: bool = False
    restarts: int = 1
    candidates: int = 2000
    values: Values = "scores"
    beside: ClassVar = ("kmedoids-ridge",)  # static, and as good on many tables: to be seen

    @property
    def needs(self) -> tuple[Need, ...]:
        """Enough sources, and option probabilities if models are compared by them."""
        some = Need("distinct sources", 20, "few sources tell few items apart")
        return (some, *needs_for(self.values))

    @property
    def targets_apart(self) -> bool:
        """Whether a target's items and estimate are independent of the other targets."""
        return self.company == "sources" or self.natives in ("own", "all")

    def start(
        self, scores: Scores, budget: int, seed: int, targets: Sequence[str]
    ) -> "TailoredSession":
        """Choose the probe set.

        Raises MethodError if a setting is out of range or the scores lack option probabilities.
        """
        check_words(self)
        for name in ("probe", "candidates"):
            check_number(name, getattr(self, name), 1)
        check_number("restarts", self.restarts, 1, 1000)
        if self.search == "alternate" and self.restarts > 1:
            raise MethodError("restarts work only with the swap search", hint="use search=swap")
        return TailoredSession(self, scores, budget, seed, targets)

    def describe(self) -> str:
        """Return the method and its changed settings as the command line writes them."""
        return write("tailored", self)


AS_PRINTED = Tailored(standardise=False, search="alternate", inclusive=False, clip="none")


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
        known = scores.filled if self._confidence is None else self._confidence.sources
        self._columns = known.T
        self._new = max(0, budget - method.probe)
        self.probe = self._choose_probe(min(method.probe, budget))
        self._probed: set[str] = set()
        self._sets: dict[bytes, NativeSet] = {}
        self._found: dict[bytes, list[IntArray]] = {}

    def _choose_probe(self, k: int) -> IntArray:
        method, rng = self._method, np.random.default_rng([self._seed, 0])
        if k == len(self._columns):
            return np.arange(k)
        distances = item_distances(self._columns, method.metric, method.standardise)
        if method.search == "alternate":
            return np.sort(alternating_kmedoids(distances, k, rng))
        return kmedoids(distances, k, rng, restarts=method.restarts).medoids

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
            method, known = self._method, np.isfinite(answers).all(axis=0)
            found = [np.arange(self._scores.n_models)] * len(targets)
            if known.any():
                found = native_sources(
                    self._columns[self.probe[known]].T,
                    answers[:, known],
                    method.metric,
                    method.standardise,
                    count=method.natives,
                    inclusive=method.inclusive,
                )
            self._found[key] = found
        return dict(zip(targets, self._found[key], strict=True))

    def natives_of(self, target: str) -> IntArray | None:
        """Return a target's native sources; None while it waits for other targets' answers."""
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
            found = make_native_set(
                self._method,
                np.ascontiguousarray(self._columns[:, natives]),
                self.probe,
                self._new,
                np.random.default_rng([self._seed, 1, *natives.tolist()]),
            )
            if self._confidence is not None:
                found = replace(found, mean=self._scores.filled[natives].mean(axis=0))
            self._sets[key] = found
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
        method, natives = self._method, self.natives_of(target)
        if natives is None:
            natives = self.natives([target])[target]
        native_set = self.native_set(natives)
        columns = self._columns[:, natives]
        if np.isnan(answers[native_set.medoids]).any():
            medoids = self.record.answered(target)  # only some were answered
            to_medoids = item_distances(columns, method.metric, method.standardise, medoids)
            shares = _shares(to_medoids, method.ties)
            native_set = replace(native_set, new=medoids[:0], medoids=medoids, share=shares)
        how: dict[str, Any] = {"calibrate": method.calibrate, "clip": method.clip}
        own = self._values(target) if method.calibrate else answers
        expected = native_set.expected(own, **how)
        if not method.corrected:
            return expected
        truth = self._scores.filled[natives].T
        errs = native_set.expected(columns if method.calibrate else truth, **how) - truth
        return np.asarray(expected - errs.mean(axis=1))


@dataclass(frozen=True, eq=False)
class NativeSet:
    """The items chosen by a target's native sources, and how they predict all items.

    Anchored k-medoids (Section 3.4) and calibrated estimation (Section 3.5). `medoids`, shape
    (m,), are all medoids and `new` those outside the probe set, ascending. Rows of `share`, shape
    (items, m), are each medoid's part of an item's estimate and sum to 1. `mean`, shape (items,),
    is the native sources' mean score, and `level` the mean of the values that models are compared
    by, which may be scores or probabilities.
    """

    new: IntArray
    medoids: IntArray
    share: NDArray[np.float32]
    mean: FloatArray
    level: FloatArray

    def expected(
        self, answers: FloatArray, *, calibrate: bool = True, clip: Clip = "above"
    ) -> FloatArray:
        """Return the expected score of each item from answers on all items (Eq. 8-9).

        `answers` has shape (items,) or (items, models); only medoids are read. They are values as
        `level` has them, or scores without calibration. `calibrate` and `clip` are those of
        `Tailored`.
        """
        said = answers[self.medoids]
        if calibrate:
            level, mean = (
                (one + 0.5).reshape(-1, *[1] * (said.ndim - 1))
                for one in (self.level[self.medoids], self.mean)
            )
            found = (self.share @ ((said + 0.5) / level)) * mean - 0.5
        else:
            found = self.share @ said
        if clip == "none":
            return np.asarray(found)
        return np.clip(found, 0.0 if clip == "both" else None, 1.0)


def make_native_set(
    method: Tailored, columns: FloatArray, probe: IntArray, k: int, rng: np.random.Generator
) -> NativeSet:
    """Choose `k` items in addition to the probe items, and assign each item to its nearest medoid.

    `columns`, shape (items, native sources), are the native sources' scores; `probe` has the items
    that the target answered.
    """
    among = np.setdiff1d(np.arange(len(columns)), probe)
    anchors = probe if method.anchored or not k else np.empty(0, dtype=np.intp)
    to_tried = None
    if k == len(among):
        new = among
    elif not k:
        new = np.empty(0, dtype=np.intp)
    elif method.search == "alternate":
        distances = item_distances(columns, method.metric, method.standardise)
        if not len(anchors):
            distances = distances[np.ix_(among, among)]
            new = among[alternating_kmedoids(distances, k, rng)]
        else:
            new = alternating_kmedoids(distances, k, rng, anchors=anchors)
    else:
        if len(among) > max(method.candidates, k):
            among = np.sort(rng.choice(among, max(method.candidates, k), replace=False))
        tried = np.concatenate([among, anchors])
        to_tried = item_distances(columns, method.metric, method.standardise, tried)
        distances = to_tried[:, : len(among)]
        if len(anchors):  # which makes plain k-medoids of it
            near = to_tried[:, len(among) :].min(axis=1)
            distances = np.minimum(distances, near[:, None])
        new = among[kmedoids(distances, k, rng, restarts=method.restarts).medoids]
    # In random order, so that of medoids equally near none is preferred for its place in the table.
    medoids = rng.permutation(np.concatenate([anchors, new]))
    if to_tried is not None:  # what was worked out to choose the medoids serves once more
        place = np.empty(len(columns), dtype=np.intp)
        place[tried] = np.arange(len(tried))
        to_medoids = to_tried[:, place[medoids]]
    else:
        to_medoids = item_distances(columns, method.metric, method.standardise, medoids)
    shares, mean = _shares(to_medoids, method.ties), columns.mean(axis=1)
    return NativeSet(np.sort(new), medoids, shares, mean, mean)


def _shares(to_medoids: NDArray[np.float32], ties: Ties) -> NDArray[np.float32]:
    nearest = to_medoids == to_medoids.min(axis=1, keepdims=True)
    if ties == "one":
        nearest = np.equal.outer(nearest.argmax(axis=1), np.arange(to_medoids.shape[1]))
    return np.asarray(nearest / nearest.sum(axis=1, keepdims=True, dtype=np.float32))
