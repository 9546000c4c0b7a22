"""Putting one request to a model, and what its answer is worth."""

import math

from fewbench.runners.models.model import Model, TooLong, TryAgain, Usage
from fewbench.transfer.answers import TOO_LONG_SAID, Answer
from fewbench.transfer.design import Design, Request
from fewbench.transfer.task import LETTERS, Question

FEWEST, MOST = 16, 512  # tokens that may be written


async def ask(model: Model, design: Design, request: Request) -> Answer:
    """Ask once, and score the answer.

    - accuracy: 1 if the right option is the most likely one, 1 / n if it ties with n - 1 others,
      0 if it is not, or the model listed none of them.
    - loss: minus the mean loss per token of the right answer, that is its mean log-probability.
    - exact-match: 1 if what was written is the answer, or one of its other texts, but for case
      and spaces; otherwise 0.

    Raises
    ------
    TryAgain
        If asking again may help; also if a log-probability is not a number.
    ModelError
        If it does not.
    """
    prompt, question = design.prompt(request), design.question(request)
    try:
        if design.metric == "accuracy":
            chosen = await model.choose(prompt, design.template.continuations(question))
            value, said = chosen_score(chosen.log_probabilities, question)
            return Answer(value, said, chosen.usage)
        if design.metric == "loss":
            read = await model.read(prompt, design.template.continuation(question))
            if read.tokens < 1 or not -math.inf < read.log_probability <= 0:
                raise TryAgain(
                    f"a log-probability of {read.log_probability} over {read.tokens} tokens"
                )
            return Answer(read.log_probability / read.tokens, None, read.usage)
        between = design.template.between
        written = await model.write(prompt, [between] if between else [], longest(question))
    except TooLong:
        return Answer(None, TOO_LONG_SAID, Usage(requests=0))
    return Answer(match(written.text, question), written.text, written.usage)


def chosen_score(
    log_probabilities: tuple[float, ...], question: Question
) -> tuple[float, str | None]:
    """Return the score of a choice and the letters chosen.

    Examples
    --------
    >>> chosen_score((-1.0, -2.0), Question(id="1", text="?", options=("x", "y"), answer=0))
    (1.0, 'A')
    """
    options = len(question.options)
    if len(log_probabilities) != options or any(map(math.isnan, log_probabilities)):
        raise TryAgain(f"{len(log_probabilities)} log-probabilities of {options} options")
    most = max(log_probabilities)
    if most == -math.inf:
        return 0.0, None
    best = [at for at, value in enumerate(log_probabilities) if value == most]
    right = 1 / len(best) if question.answer in best else 0.0
    return right, ",".join(LETTERS[at] for at in best)


def match(text: str, question: Question) -> float:
    """Return 1 if a text is the answer to a question, but for case and spaces; otherwise 0.

    Examples
    --------
    >>> match("  new  york", Question(id="1", text="?", answer="New York", also=("NYC",)))
    1.0
    """
    return float(_plain(text) in map(_plain, (question.shown, *question.also)))


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def longest(question: Question) -> int:
    """Return how many tokens may be written: as many as the longest answer has characters."""
    return min(max(FEWEST, *(len(text) for text in (question.shown, *question.also))), MOST)
