"""A method made of two functions: one chooses items, the other predicts full scores."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fewbench._types import ArrayLike, FloatArray, IntArray
from fewbench.errors import MethodError
from fewbench.methods.base import Answers, Prediction
from fewbench.methods.prediction.completed import task_lines
from fewbench.methods.static import StaticMethod
from fewbench.methods.subset import Subset
from fewbench.scores import Scores

Choose = Callable[[Scores, int, int], ArrayLike]
Predict = Callable[[Scores, IntArray, FloatArray], ArrayLike]


@dataclass(frozen=True)
class _Chooser:
    """Items that a function chooses."""

    choose: Choose

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        items = np.asarray(self.choose(scores, budget, seed))
        is_choice = items.shape == (budget,) and items.dtype.kind in "iu"
        if not is_choice or len(set(items) & {*range(scores.n_items)}) < budget:
            raise MethodError(
                f"{self.choose.__name__} gave {items}",
                hint=f"return the positions of {budget} different items, from 0 to "
                f"{scores.n_items - 1}",
            )
        return Subset(items=tuple(scores.item_ids[items]))


@dataclass(frozen=True)
class _Learner:
    """Scores that a function predicts."""

    predict: Predict

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "_Fitted":
        return _Fitted(self.predict, scores)


@dataclass(frozen=True, eq=False)
class _Fitted:
    function: Predict
    scores: Scores

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        full = np.asarray(self.function(self.scores, answers.items, answers.scores), dtype=float)
        if full.shape != (len(answers.scores),) or not ((full >= 0) & (full <= 1)).all():
            raise MethodError(
                f"{self.function.__name__} gave {full}",
                hint="return one number from 0 to 1 for each row of the answers",
            )
        unknown = np.full((len(full), len(self.scores.tasks)), np.nan)
        return Prediction(full, task_lines(self.scores).fill(unknown, full) if tasks else None)


@dataclass(frozen=True)
class FunctionMethod(StaticMethod):
    """A static method whose items are chosen and whose scores are predicted by functions."""

    name: str
    summary: str

    def describe(self) -> str:
        """Return the name."""
        return self.name


def function_method(name: str, choose: Choose, predict: Predict) -> FunctionMethod:
    """Make a method from two functions, for `compare`, `Evaluation` and packages of your own.

    Parameters
    ----------
    name : str
        What `describe` says, and the name under which a package registers the method. What it
        does, in lists, is the first line of the functions' docstrings.
    choose : callable
        Called with the source models' scores, the budget and a seed; returns the positions of as
        many items.
    predict : callable
        Called with the source models' scores, the positions of the answered items, and the
        targets' answers, shape (targets, answered items); returns a full score for each target,
        from 0 to 1. Task scores follow from the full scores, as they do for the source models.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> method = function_method(
    ...     "varied",
    ...     lambda scores, budget, seed: np.argsort(-scores.filled.var(axis=0))[:budget],
    ...     lambda scores, items, answers: answers.mean(axis=1),
    ... )
    >>> method.start(simulate(20, 50), 5, 0, ["new"]).ask()["new"].shape
    (5,)
    """
    texts = [(inspect.getdoc(each) or "").split("\n")[0].rstrip(".") for each in (choose, predict)]
    summary = "; ".join(filter(None, texts))
    return FunctionMethod(_Chooser(choose), _Learner(predict), name, summary)
