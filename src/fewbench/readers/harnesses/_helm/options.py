"""What a model said of each option of an instance, where HELM's files tell it."""

import math
from typing import Any

import numpy as np

from fewbench.readers.harnesses._helm.answers import Answer
from fewbench.readers.harnesses._helm.files import at
from fewbench.readers.harnesses._helm.instances import correct
from fewbench.readers.numbers import as_number
from fewbench.readers.options import NO_ANSWER, OptionTable

SEPARATE, CALIBRATED = "multiple_choice_separate_original", "multiple_choice_separate_calibrated"
JOINT = "multiple_choice_joint"
METHODS = (SEPARATE, CALIBRATED, JOINT)


def option_table(method: str, requests: list[dict[str, Any]], answer: Answer) -> OptionTable | None:
    """Return the options of an instance, None unless the files tell them for certain.

    Where HELM asked for every option in a request of its own, the worth of an option is what HELM
    compares: its log-likelihood per token, or, calibrated, its gain over the option alone. It is
    taken only if it leads to the choice and the confidence that HELM wrote. Where the model chose
    a letter, the letters' log-likelihoods are there up to HELM 0.4, as far as they were among the
    most likely.
    """
    if not requests or len(answer.trials) != 1 or method not in METHODS:
        return None
    instance = requests[0].get("instance")
    worths = _of_letters(requests) if method == JOINT else _of_requests(method, requests)
    if worths is None or (method != JOINT and not _explains(worths, answer)):
        return None
    right = correct(instance)
    return OptionTable(worths, right[0] if len(right) == 1 else NO_ANSWER)


def _of_requests(method: str, requests: list[dict[str, Any]]) -> list[float] | None:
    likelihoods: dict[tuple[Any, Any], tuple[float, int]] = {}
    for made in requests:
        found = _likelihood(made)
        if found is None:
            return None
        likelihoods[made.get("reference_index"), made.get("request_mode")] = found
    count = len(at(requests[0], "instance", "references") or [])
    worths = []
    for option in range(count):
        original = likelihoods.get((option, "original"))
        alone = likelihoods.get((option, "calibration"))
        if original is None or (method == CALIBRATED and alone is None):
            return None
        if method == CALIBRATED and alone is not None:
            worths.append(original[0] - alone[0])
        else:
            worths.append(original[0] / original[1])
    return worths or None


def _likelihood(made: dict[str, Any]) -> tuple[float, int] | None:
    """Return log-likelihood and number of the last tokens, if they spell the option."""
    index = made.get("reference_index")
    if not isinstance(index, int):
        return None
    option = at(made, "instance", "references", index, "output", "text")
    tokens = at(made, "result", "completions", 0, "tokens")
    if not isinstance(option, str) or not isinstance(tokens, list):
        return None
    spelt = ""
    values: list[float] = []
    for token in reversed(tokens):
        value, text = as_number(at(token, "logprob")), at(token, "text")
        if value is None or not isinstance(text, str):
            return None
        spelt, values = text + spelt, [value, *values]
        if len(spelt) > len(option):
            break
    return (sum(values), len(values)) if spelt == f" {option}" else None


def _of_letters(requests: list[dict[str, Any]]) -> list[float] | None:
    """Return the log-likelihood of each letter, if all are told and the best was the answer."""
    letters = at(requests[0], "output_mapping")
    listed = at(requests[0], "result", "completions", 0, "tokens", 0, "top_logprobs")
    text = at(requests[0], "result", "completions", 0, "text")
    if not isinstance(letters, dict) or not isinstance(listed, dict) or len(requests) != 1:
        return None
    worths = []
    for letter in letters:
        values = [as_number(value) for token, value in listed.items() if token.strip() == letter]
        known = [value for value in values if value is not None]
        if not known:
            return None
        worths.append(float(np.logaddexp.reduce(known)))
    best = list(letters)[int(np.argmax(worths))] if worths else None
    return worths if best is not None and str(text).strip() == best else None


def _explains(worths: list[float], answer: Answer) -> bool:
    """Whether these are the quantities from which HELM computed its choice and confidence."""
    chosen, confidence = answer.agreed("predicted_index"), answer.agreed("max_prob")
    if chosen is None or confidence is None or not all(map(math.isfinite, worths)):
        return False
    weights = np.exp(np.array(worths) - max(worths))
    return int(np.argmax(worths)) == chosen and bool(
        math.isclose(float(weights.max() / weights.sum()), confidence, rel_tol=1e-6)
    )
