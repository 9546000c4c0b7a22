"""Ask a model one question, and score its answer."""

import math
import re
from dataclasses import dataclass
from typing import Literal

from fewbench.runners.models.model import Model, TooLong, TryAgain, Usage
from fewbench.runners.questions import LETTERS, Question, Template

Metric = Literal["accuracy", "loss", "exact-match", "letter"]
FEWEST, MOST = 16, 512  # tokens that the model may write


@dataclass(frozen=True)
class Answer:
    """A scored answer.

    Parameters
    ----------
    value : float or None
        The score in the metric; None if the prompt did not fit into the model's context.
    said : str or None
        The chosen letter or the written text; None if the model listed no option, or for a loss.
    usage : Usage
    log_probabilities : tuple of float, optional
        Of the options, for accuracy.
    kind : str
        Whether the reply is cut, filtered or another model's; see `fewbench.scores.replies`.
    """

    value: float | None
    said: str | None
    usage: Usage
    log_probabilities: tuple[float, ...] | None = None
    kind: str = ""


async def ask_question(
    model: Model,
    prompt: str,
    question: Question,
    template: Template,
    metric: Metric,
    *,
    pattern: re.Pattern[str] | None = None,
    most: int | None = None,
) -> Answer:
    """Ask once, and score the answer.

    - accuracy: 1 if the right option is the most likely one, 1 / n if it ties with n - 1 others,
      otherwise 0, also if the model listed no option.
    - loss: the mean log-probability per token of the right answer.
    - exact-match: 1 if the written text is an accepted answer, without regard to case and spaces.
    - letter: 1 if the written text names the letter of the right option.

    Parameters
    ----------
    model : Model
    prompt : str
    question : Question
    template : Template
        For the form of answers, and for what ends a written text.
    metric : {"accuracy", "loss", "exact-match", "letter"}
    pattern : compiled regular expression, optional
        For written texts: the answer is its last match, or the first group of that.
    most : int, optional
        Most tokens to write (default: by the length of the longest accepted answer).

    Raises
    ------
    TryAgain
        If asking again may help, also if a log-probability is not a number.
    ModelError
        If asking again does not help.
    """
    try:
        if metric == "accuracy":
            chosen = await model.choose(prompt, template.continuations(question))
            value, said = chosen_score(chosen.log_probabilities, question)
            return Answer(value, said, chosen.usage, chosen.log_probabilities)
        if metric == "loss":
            read = await model.read(prompt, template.continuation(question))
            if read.tokens < 1 or not -math.inf < read.log_probability <= 0:
                raise TryAgain(
                    f"a log-probability of {read.log_probability} over {read.tokens} tokens"
                )
            return Answer(read.log_probability / read.tokens, None, read.usage)
        stop = [template.between] if template.between and most is None else []
        written = await model.write(prompt, stop, most or longest(question))
    except TooLong:
        return Answer(None, "too long", Usage(requests=0))
    text = written.text if pattern is None else extracted(written.text, pattern)
    right = letter_of(text, question) == question.shown if metric == "letter" else None
    value = match(text, question) if right is None else float(right)
    return Answer(value, written.text, written.usage, kind=written.kind)


def extracted(text: str, pattern: re.Pattern[str]) -> str:
    r"""Return the last match of a pattern, or the first group of that; empty without a match.

    Examples
    --------
    >>> extracted("3 + 4 = 7. The answer is 7", re.compile(r"answer is (\d+)"))
    '7'
    """
    found = list(pattern.finditer(text))
    if not found:
        return ""
    return (found[-1][1] or "") if pattern.groups else found[-1][0]


def letter_of(text: str, question: Question) -> str | None:
    """Return the letter of the option that a text names, None if it names none or several.

    A letter at the beginning counts, then the last one after "answer", then the only one.

    Examples
    --------
    >>> which = Question(id="1", text="2 + 2 =", options=("3", "4"), answer=1)
    >>> [letter_of(text, which) for text in ("B. 4", "I think the answer is (B).", "A or B", "C")]
    ['B', 'B', None, None]
    """
    letters = LETTERS[: len(question.options)]
    first = re.match(rf"\s*[(\[*\"]*([{letters}])(?![\w'’]| (?:or|and) )", text)
    if first:
        return first[1]
    named = re.findall(rf"(?i:answer)[^\n]{{0,20}}?\b([{letters}])\b(?!')", text)
    if named:
        return str(named[-1])
    found = set(re.findall(rf"\b([{letters}])\b(?!')", text))
    return found.pop() if len(found) == 1 else None


def chosen_score(values: tuple[float, ...], question: Question) -> tuple[float, str | None]:
    """Return the score of the options' log-probabilities, and the letters of the most likely."""
    options = len(question.options)
    if len(values) != options or any(map(math.isnan, values)):
        raise TryAgain(f"{len(values)} log-probabilities for {options} options")
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
