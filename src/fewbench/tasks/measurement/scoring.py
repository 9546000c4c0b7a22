"""Score what a model answers to a question."""

import math
from dataclasses import dataclass

from fewbench.runners.questions import LETTERS, Question

FEWEST, MOST = 16, 512  # tokens that the model may write


@dataclass(frozen=True)
class Answer:
    """A scored answer.

    Parameters
    ----------
    value : float or None
        The score in the metric; None if the prompt did not fit into the model's context.
    said : str or None
        The chosen letter or the written text; None if no option is likely at all, or for a loss.
    prompt, completion : int
        Tokens read and written, estimated if the model has no tokenizer.
    """

    value: float | None
    said: str | None
    prompt: int = 0
    completion: int = 0


def chosen_score(values: tuple[float, ...], question: Question) -> tuple[float, str | None]:
    """Return the score of the options' log-probabilities, and the letters of the most likely."""
    options = len(question.options)
    if len(values) != options or any(map(math.isnan, values)):
        raise ValueError(f"{len(values)} log-probabilities for {options} options, or NaN")
    most = max(values)
    if most == -math.inf:
        return 0.0, None
    best = [at for at, value in enumerate(values) if value == most]
    right = 1 / len(best) if question.answer in best else 0.0
    return right, ",".join(LETTERS[at] for at in best)


def match(text: str, question: Question) -> float:
    """Return 1 if a text is an accepted answer, without regard to case and spaces; otherwise 0."""
    return float(_plain(text) in map(_plain, (question.shown, *question.also)))


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def longest(question: Question) -> int:
    """Return how many tokens the model may write: the characters of the longest answer."""
    return min(max(FEWEST, *(len(text) for text in (question.shown, *question.also))), MOST)
