"""Option probabilities from the word probabilities of a multiple-choice answer."""

import math
import re
from typing import Any

from fewbench.readers.harnesses._inspect.items import LETTERS, answer_indices
from fewbench.readers.options import NO_ANSWER, OptionTable

BEFORE = re.compile(r"answer\s*:\s*[*$({]*\s*$", re.IGNORECASE)


def option_table(sample: Any) -> OptionTable | None:
    """Return the log-probability of each option's letter where the answer was given.

    Taken only where it is sure what is meant: a single answer "ANSWER: X", of which X is a token
    by itself, with the probabilities of all letters there. None otherwise, such as for several
    answers, options shuffled by the solver, or letters that are not among the likeliest tokens.
    """
    choices = sample.choices or []
    output = getattr(sample, "output", None)
    if not 2 <= len(choices) <= len(LETTERS) or output is None or len(output.choices) != 1:
        return None
    if any("shuffled" in (one.explanation or "") for one in (sample.scores or {}).values()):
        return None
    logprobs = output.choices[0].logprobs
    tokens = logprobs.content if logprobs is not None else []
    letters = LETTERS[: len(choices)]
    for at in range(len(tokens) - 1, -1, -1):
        said = tokens[at].token.strip()
        if len(said) == 1 and said in letters:
            break
    else:
        return None
    if not BEFORE.search("".join(token.token for token in tokens[:at])):
        return None
    likely: dict[str, list[float]] = {letter: [] for letter in letters}
    for other in tokens[at].top_logprobs or []:
        if other.token.strip() in likely:  # " A" and "A" are the same answer
            likely[other.token.strip()].append(other.logprob)
    if not all(likely.values()):
        return None
    right = answer_indices(sample)
    return OptionTable(
        [_sum(values) for values in likely.values()],
        right[0] if len(right) == 1 else NO_ANSWER,
        [str(choice) for choice in choices],
    )


def _sum(values: list[float]) -> float:
    """Return the log of the sum of probabilities, given as logs."""
    most = max(values)
    if most == -math.inf:
        return most
    return most + math.log(math.fsum(math.exp(value - most) for value in values))
