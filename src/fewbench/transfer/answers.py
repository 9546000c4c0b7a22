"""The answers of a measurement: one request sent and scored, and all answers by their place."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from json import JSONDecoder

import numpy as np
from numpy.typing import NDArray

from fewbench._types import FloatArray
from fewbench.errors import TransferError
from fewbench.runners.models.model import Model, TooLong, TryAgain, Usage
from fewbench.transfer.design import Design, Request
from fewbench.transfer.task import LETTERS, Question

_decode = JSONDecoder().raw_decode
OPEN, ANSWERED, NOT_LISTED, TOO_LONG, EMPTY = range(5)
TOO_LONG_SAID = "too long"
FEWEST, MOST = 16, 512  # tokens that may be written


@dataclass(frozen=True)
class Answer:
    """What came of one request.

    Parameters
    ----------
    value : float or None
        The score in the metric; None where the prompt did not fit into the model's context.
    said : str or None
        The letter chosen, the text written; None where the model listed no option, or a loss was
        measured.
    usage : Usage
    """

    value: float | None
    said: str | None
    usage: Usage


class Answers:
    """Answers to a design's requests.

    Parameters
    ----------
    design : Design

    Attributes
    ----------
    values : ndarray of float, shape (requests,)
        Scores; NaN where there is none.
    states : ndarray of int, shape (requests,)
        OPEN, ANSWERED, NOT_LISTED (a choice that named no option, scored 0), EMPTY (nothing was
        written, scored 0) or TOO_LONG.
    prompt, completion : int
        Tokens that were charged, also for answers that the design does not ask for any more.
    size : int
        Bytes of the file that they were read from.
    """

    def __init__(self, design: Design) -> None:
        self.design = design
        self.values: FloatArray = np.full(len(design), np.nan)
        self.states: NDArray[np.int8] = np.zeros(len(design), dtype=np.int8)
        self.prompt = 0
        self.completion = 0
        self.size = 0

    @property
    def n_done(self) -> int:
        """Requests that need not be asked."""
        return int(np.count_nonzero(self.states))

    @property
    def complete(self) -> bool:
        """Whether nothing is left to ask."""
        return self.n_done == len(self.states)

    def pending(self) -> Iterable[Request]:
        """Yield what is still to be asked, in order."""
        return map(self.design.request, np.flatnonzero(self.states == OPEN).tolist())

    def count(self, state: int) -> int:
        """Return how many requests are in a state."""
        return int(np.count_nonzero(self.states == state))

    def keep(self, place: int, value: float | None, said: str | None) -> None:
        """Note the answer to the request at a place; the first one counts."""
        if self.states[place] != OPEN:
            return
        state, metric = ANSWERED, self.design.metric
        if value is None:
            state, value = TOO_LONG, np.nan
        elif metric == "accuracy" and said is None:
            state = NOT_LISTED
        elif metric == "exact-match" and not (said or "").strip():
            state = EMPTY
        self.states[place], self.values[place] = state, value

    def add(self, request: Request, answer: Answer) -> None:
        """Note an answer that has come."""
        self.keep(request.place, answer.value, answer.said)
        self.prompt += answer.usage.prompt
        self.completion += answer.usage.completion


def read_answers(design: Design, lines: Iterable[str], where: str) -> Answers:
    """Return the answers to a design from a journal's whole lines.

    Answers that the design does not ask for (a smaller cap, fewer seeds) are passed over, but
    their tokens count. A line that repeats an earlier one's request is passed over wholly: files
    that were put together hold it twice, and nothing was asked twice.

    Parameters
    ----------
    design : Design
    lines : iterable of str
    where : str
        The file, for messages.

    Raises
    ------
    TransferError
        If a line is damaged, has a score that the metric cannot have, or is of no task or
        question of the design.
    """
    answers = Answers(design)
    keep, places = answers.keep, _Places(design)
    known = {
        task.name: {question.id: at for at, question in enumerate(task.questions)}
        for task in design.tasks
    }  # positions of each task's questions by id
    states, others = answers.states, set()  # of other requests than the design's
    least, most = (-1e300, 0.0) if design.metric == "loss" else (0.0, 1.0)
    prompt = completion = 0
    for number, line in enumerate(lines, start=1):
        try:
            told, end = _decode(line)
            if line[end:] not in ("\n", "\r\n"):
                raise ValueError("more than one record")
            seed, source, target = told["seed"], told["source"], told["target"]
            value, said = told["value"], told["said"]
            question = known[target][told["question"]]
            known[source]
            taken, written = told["prompt"], told["completion"]
            if type(seed) is not int or seed < 0 or not (taken >= 0 and written >= 0):
                raise ValueError("not a seed, or not numbers of tokens")
            if value is not None and (type(value) is bool or not least <= value <= most):
                raise ValueError("not a score")
            if not (said is None or type(said) is str):
                raise ValueError("not a text")
        except (ValueError, KeyError, TypeError) as error:
            why = f" ({error})" if str(error).startswith("not ") else ""
            raise TransferError(
                f"{where}: line {number} is damaged{why}",
                hint="restore the file from a backup, or run fewbench repair on the folder: the "
                "question is asked again",
            ) from error
        place = places.of(seed, source, target, question)
        if place is not None:
            if states[place] != OPEN:
                continue
            keep(place, value, said)
        else:
            key = (seed, source, target, question)
            if key in others:
                continue
            others.add(key)
        prompt += taken
        completion += written
    answers.prompt, answers.completion = prompt, completion
    return answers


class _Places:
    """Places of requests by what they ask; None for what the design does not ask."""

    def __init__(self, design: Design) -> None:
        self._design = design
        self._sources = {name: at for at, name in enumerate(design.names)}
        self._asked: dict[tuple[int, str], tuple[int, int, list[int]] | None] = {}

    def of(self, seed: int, source: str, target: str, question: int) -> int | None:
        key = (seed, target)
        try:
            found = self._asked[key]
        except KeyError:
            found = self._asked[key] = self._look_up(*key)
        if found is None:
            return None
        start, width, ranks = found
        rank = ranks[question]
        return None if rank < 0 else start + self._sources[source] * width + rank

    def _look_up(self, seed: int, name: str) -> tuple[int, int, list[int]] | None:
        """Return the place behind the first source, the step between sources, and ranks."""
        design = self._design
        target = self._sources[name]
        if seed >= design.seeds or target not in design.targets:
            return None
        start = design.first(seed, 0, target)
        width = design.first(seed, 1, target) - start
        drawn = design.scored(target, seed)
        ranks = np.full(len(design.tasks[target].questions), -1)
        ranks[drawn] = np.arange(len(drawn))
        return start, width, ranks.tolist()


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
