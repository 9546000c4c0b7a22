"""What a pack keeps of the source models for a method.

A predictor that learns from the sources' answers on the chosen items, their full and task scores,
and what `Scores.remember` keeps, declares `packs_answers`. For any other method a pack keeps the
answers to all items. Methods that need option probabilities or texts cannot be packed.
"""

from typing import Literal

from fewbench.errors import PackError
from fewbench.methods.base import Method
from fewbench.methods.needs import needs_of
from fewbench.methods.static import StaticMethod
from fewbench.scores import Scores

Keeps = Literal["answers", "table"]


def packed_as(method: Method, scores: Scores) -> Keeps:
    """Return what a pack keeps: answers to the chosen items, or to all ("table").

    Raises PackError if the method cannot be packed.

    >>> from fewbench.methods import find_method
    >>> from fewbench.testing import simulate
    >>> [packed_as(find_method(name), simulate(20, 60)) for name in ("greedy-ridge", "fewbench")]
    ['answers', 'table']
    """
    is_static = isinstance(method, StaticMethod)
    learner = method.predictor if isinstance(method, StaticMethod) else method
    needed = {need.what for need in needs_of(learner)}
    if "probabilities" in needed and scores.probabilities is not None:
        raise PackError(
            f"{method.describe()} learns from option probabilities, and packs contain none",
            hint="use greedy-ridge, or scores without option probabilities",
            kind="unsupported",
        )
    if needed & {"text", "task text"}:
        raise PackError(
            f"{method.describe()} learns from the items' texts, and packs contain none",
            hint="use greedy-ridge or fewbench",
        )
    if method.plain_sampling and scores.counts_equally and not scores.is_binary:
        return "table"  # its interval depends on how scores vary from item to item
    return "answers" if is_static and getattr(learner, "packs_answers", False) else "table"
