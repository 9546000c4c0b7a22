"""Confidence: the probability that a model gives to the right option of each item.

Vivek et al. 2023, arXiv 2309.08638, call it so. It tells apart models that answer alike, and items
that the same models get right. Methods whose setting `values` is "probabilities" compare by it and
still predict full scores.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fewbench._memory import check_fits
from fewbench._names import counted
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.option_probabilities import probabilities_of, right_options
from fewbench.errors import AnswersError, MethodError
from fewbench.methods.needs import Need
from fewbench.methods.record import Answers
from fewbench.scores import Scores

Values = Literal["scores", "probabilities"]
"""What models and items are compared by: scores, or probabilities of the right options."""
PROBABILITIES = Need("probabilities", 1, "the scores have no option probabilities", required=True)


def needs_for(values: Values, *, of_targets: bool = False) -> tuple[Need, ...]:
    """Return what a part with this setting needs of the sources, and of the targets' answers.

    >>> [need.what for need in needs_for("probabilities")], needs_for("scores")
    (['probabilities'], ())
    """
    return (replace(PROBABILITIES, of_targets=of_targets),) if values == "probabilities" else ()


@dataclass(frozen=True, eq=False)
class Confidence:
    """Confidence of the sources, and how to read it off a target's answers.

    - `sources`, shape (sources, items of choice): In [0, 1]; cells that were not run are filled.
    - `right`, shape (items,): The right option of each item of the benchmark.
    """

    sources: FloatArray
    right: IntArray

    def on(self, items: IntArray) -> "Confidence":
        """Return the same with the sources' confidence on some items only."""
        return replace(self, sources=self.sources[:, items])

    def of_targets(self, answers: Answers) -> FloatArray:
        """Return targets' confidence, shape (targets, n); a missing one counts as the score.

        Raises AnswersError unless the answers have option probabilities.
        """
        if answers.probabilities is None:
            raise AnswersError(
                "the method compares option probabilities, and not all answers have them",
                hint="pass the option probabilities of every item, or use values=scores",
                kind="missing",
            )
        at = np.arange(len(answers.items))
        chances = answers.probabilities[:, at, self.right[answers.items]]
        return np.where(np.isnan(chances), answers.scores, np.clip(chances, 0.0, 1.0))


def confidence(scores: Scores) -> Confidence:
    """Return the sources' confidence on all items.

    The sources decide which option is right (`fewbench.algorithms.option_probabilities`); a source
    with a score and no probabilities counts by its score. Raises MethodError if the scores have no
    probabilities.

    >>> from fewbench.scores import from_arrays
    >>> p = [[[0.7, 0.3], [0.4, 0.6]], [[0.1, 0.9], [0.8, 0.2]]]
    >>> scores = from_arrays([[1, 0], [0, 1]], models=["a", "b"], probabilities=p)
    >>> found = confidence(scores)
    >>> found.right.tolist(), found.sources.tolist()
    ([0, 0], [[0.7, 0.4], [0.1, 0.8]])
    """
    if scores.probabilities is None:
        raise MethodError(
            "the scores have no option probabilities", hint="use the scores instead", kind="missing"
        )
    n_options = scores.items["n_options"].to_numpy(np.intp)
    check_fits(
        24.0 * scores.n_models * scores.n_items,
        f"probabilities of right options of {counted(scores.n_models, 'model')} on "
        f"{counted(scores.n_items, 'item')}",
    )
    believed = np.empty((scores.n_models, scores.n_items))
    right = np.empty(scores.n_items, dtype=np.intp)
    for items, options in scores.probabilities.by_items():
        values = scores.cells[:, items]
        right[items] = right_options(options, values, n_options[items])
        chances = probabilities_of(options, right[items])
        chances = np.where(np.isnan(chances), values, chances)
        believed[:, items] = np.where(np.isnan(values), np.nan, np.clip(chances, 0.0, 1.0))
    return Confidence(replace(scores, values=believed, probabilities=None).filled, right)
