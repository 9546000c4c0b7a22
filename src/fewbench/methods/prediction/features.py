"""What a regression sees of a model: its answers, its signature, or its score on the subset.

Reductions map these features to fewer dimensions by PCA or UMAP, fitted on sources only.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from fewbench._types import FloatArray
from fewbench.algorithms import ties
from fewbench.errors import AnswersError
from fewbench.methods.base import Answers
from fewbench.methods.confidence import Confidence, Values, confidence, needs_for
from fewbench.methods.needs import Need
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number, check_words
from fewbench.scores import Scores


class FittedFeatures(Protocol):
    """Turns targets' answers on a subset into features."""

    @property
    def sources(self) -> FloatArray:
        """The sources' features, shape (sources, features)."""

    def of_targets(self, answers: Answers) -> FloatArray:
        """Return the targets' features, shape (targets, features)."""


class Features(Protocol):
    """The features of a model's answers on a subset."""

    def fit(self, scores: Scores, subset: Subset) -> FittedFeatures:
        """Learn from the sources what the features need."""


@dataclass(frozen=True, eq=False)
class Weighted:
    """Weighted sums of the scores on the chosen items.

    `sources` has shape (sources, features), `weights` (n, features). None stands for the scores
    themselves.
    """

    sources: FloatArray
    weights: FloatArray | None = None

    def of_targets(self, answers: Answers) -> FloatArray:
        """Return the targets' features, shape (targets, features)."""
        return answers.scores if self.weights is None else answers.scores @ self.weights


@dataclass(frozen=True)
class AnswerFeatures:
    """The answers to the chosen items: one feature per item.

    - `values` ("scores", "probabilities"): The score, or the probability of the right option.
    """

    values: Values = "scores"
    packs_answers: ClassVar[bool] = True

    @property
    def needs(self) -> tuple[Need, ...]:
        """Enough sources, and option probabilities if they are the features."""
        some = Need("independent sources", 20, "few sources to learn many numbers from")
        return (some, *needs_for(self.values, of_targets=True))

    def fit(self, scores: Scores, subset: Subset) -> Weighted | Confidence:
        """Take the sources' values on the items."""
        check_words(self)
        at = scores.positions(subset.items)
        if self.values == "probabilities":
            return confidence(scores).on(at)
        return Weighted(scores.columns(at, filled=True))


@dataclass(frozen=True)
class SubsetScore:
    """The mean score on the chosen items, with the subset's weights: one feature."""

    packs_answers: ClassVar[bool] = True
    needs: ClassVar = (Need("independent sources", 5, "few sources to draw a line through"),)

    def fit(self, scores: Scores, subset: Subset) -> Weighted:
        """Take the weights and the sources' scores on the subset."""
        weights = subset.weights_over(scores)
        weights = (weights / weights.sum())[:, None]
        answers = scores.columns(scores.positions(subset.items), filled=True)
        return Weighted(answers @ weights, weights)


@dataclass(frozen=True)
class TaskMeans:
    """The mean score on each task's chosen items: one feature for each task with any.

    Items have the subset's weights, else their weights in the task's score.
    """

    packs_answers: ClassVar[bool] = True
    needs: ClassVar = (
        Need("tasks", 2, "with one task this is the score on the chosen items"),
        Need("independent sources", 10, "few sources to weigh tasks by"),
    )

    def fit(self, scores: Scores, subset: Subset) -> Weighted:
        """Take the weights and the sources' means."""
        at = scores.positions(subset.items)
        tasks = scores.task_of[at]
        member = np.equal.outer(tasks, np.unique(tasks)) * subset.weights_over(scores)[:, None]
        total = member.sum(axis=0)
        weights = np.asarray(member[:, total > 0] / total[total > 0])
        return Weighted(scores.columns(at, filled=True) @ weights, weights)


@dataclass(frozen=True)
class Signature:
    """DISCO's model signature: the option probabilities on the chosen items, concatenated.

    Without option probabilities, the answers themselves. A missing cell is filled by the mean of
    the sources that have it.
    """

    packs_answers: ClassVar[bool] = True
    needs: ClassVar = (
        Need("independent sources", 40, "few sources to compare signatures with"),
        Need("probabilities", 1, "the signature is right and wrong alone", of_targets=True),
    )

    def fit(self, scores: Scores, subset: Subset) -> "Weighted | FittedSignature":
        """Take the sources' signatures."""
        at = scores.positions(subset.items)
        if scores.probabilities is None:
            return Weighted(scores.columns(at, filled=True))
        options = scores.probabilities.of_items(at)
        means = _mean_options(options)
        options = np.where(np.isnan(options), means, options)
        return FittedSignature(options.reshape(len(options), -1), means)


@dataclass(frozen=True, eq=False)
class FittedSignature:
    """Signatures of option probabilities, `sources`, shape (sources, n × options).

    `means`, shape (n, options), replace missing probabilities.
    """

    sources: FloatArray
    means: FloatArray

    def of_targets(self, answers: Answers) -> FloatArray:
        """Return the targets' signatures; AnswersError if they lack option probabilities."""
        if answers.probabilities is None:
            raise AnswersError(
                "the method compares option probabilities, and the answers have none",
                hint="pass the option probabilities too, or use a method that needs none, such as "
                "greedy-ridge",
            )
        options = answers.probabilities  # NaN of a source in the place of a target
        options = np.where(np.isnan(options), self.means, options)
        return options.reshape(len(answers.scores), -1)


def _mean_options(options: FloatArray) -> FloatArray:
    """Return the mean over the models that were run, shape (n, options); 0 where none was."""
    run = ~np.isnan(options)
    total = np.where(run, options, 0.0).sum(axis=0)
    return np.asarray(total / np.maximum(run.sum(axis=0), 1))


Transform = Callable[[FloatArray], FloatArray]


class Reduction(Protocol):
    """Learns a map to fewer dimensions."""

    def fit(self, x: FloatArray, seed: int) -> Transform:
        """Return the map learned from x, shape (sources, features)."""


@dataclass(frozen=True)
class NoReduction:
    """All features as they are."""

    def fit(self, x: FloatArray, seed: int) -> Transform:
        """Return the identity."""
        return lambda rows: rows


@dataclass(frozen=True)
class PCA:
    """Principal components (DISCO's default: 256).

    - `components`: At most; limited to sources - 1 and to the rank of the features.
    """

    components: int = 256

    def fit(self, x: FloatArray, seed: int) -> Transform:
        """Return the projection on the leading components of x."""
        check_number("components", self.components, 1)
        mean = x.mean(axis=0)
        _, s, axes = np.linalg.svd(x - mean, full_matrices=False)
        real = s > s.max(initial=0.0) * ties.CLOSE
        kept = axes[real][: min(self.components, max(len(x) - 1, 1))]
        # The sign of a component is arbitrary: its largest entry is made positive.
        lead = kept[np.arange(len(kept)), ties.argmax(np.abs(kept), axis=1)]
        kept = kept * np.sign(lead)[:, None]
        return lambda rows: np.asarray((rows - mean) @ kept.T)
