"""Samples of an Inspect log: what identifies them, their scores and their options."""

import math
import re
import string
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fewbench.readers.options import NO_ANSWER, OptionTable
from fewbench.readers.values import content_id, field_value

LETTERS = string.ascii_uppercase
MEDIA = ("image", "audio", "video", "document", "data")
NOT_LOGGED = "<base64-data-removed>"
BEFORE = re.compile(r"answer\s*:\s*[*$({]*\s*$", re.IGNORECASE)
GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def content_of(path: Path, place: int, sample: Any, key: str | None) -> str:
    """Return the identity of a sample: a hash of its content, or the field `key`."""
    if key is None:
        return content_id(*_content(sample))
    fields = {"id": sample.id, "input": sample.input} | (sample.metadata or {})
    return field_value(fields, key, f"{path}, sample {place} (id {sample.id!r})")


def answer_indices(sample: Any) -> list[int]:
    """Return the right choices; [] if the target is not letters of choices."""
    choices = sample.choices or []
    targets = [sample.target] if isinstance(sample.target, str) else list(sample.target)
    letters = [one for target in targets for one in target.replace(",", " ").split()]
    if not all(len(one) == 1 and one in LETTERS[: len(choices)] for one in letters):
        return []
    return [LETTERS.index(one) for one in letters]


def _content(sample: Any) -> list[str]:
    choices = [str(choice).strip() for choice in sample.choices or []]
    right = [choices[at] for at in answer_indices(sample)]
    if not right:
        targets = [sample.target] if isinstance(sample.target, str) else list(sample.target)
        right = [target.strip() for target in targets]
    if isinstance(sample.input, str):
        return [sample.input.strip(), *choices, *right]
    texts, media = [], []
    for message in sample.input:
        parts = message.content
        for part in [parts] if isinstance(parts, str) else parts:
            text = part if isinstance(part, str) else getattr(part, "text", None)
            if text is not None:
                texts.append(text.strip())
            else:
                media += [str(getattr(part, name)) for name in MEDIA if hasattr(part, name)]
    if any(NOT_LOGGED in one for one in media):  # then only the id tells such samples apart
        media.append(str(sample.id))
    return ["\n".join(texts), *choices, *right, *media]


def option_table(sample: Any) -> OptionTable | None:
    """Return the log-probability of each option's letter at the answer, or None if unclear.

    The answer must be "ANSWER: X" with X a token of its own, and all letters among the logged
    likely tokens. Several answers and shuffled options give None.
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
    most = max(values)
    if most == -math.inf:
        return most
    return most + math.log(math.fsum(math.exp(value - most) for value in values))


@dataclass
class Answered:
    """A scored item: its first sample, the place of that sample (from 1), and its metrics."""

    sample: Any
    place: int
    scores: dict[str, Any]
    epochs: int = 1


@dataclass
class Scored:
    """The scored items of a log, and the ids of other samples by reason."""

    items: list[Answered] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    unscored: list[str] = field(default_factory=list)
    lacking: dict[str, list[str]] = field(default_factory=dict)
    despite_errors: int = 0


def score_samples(samples: Sequence[Any]) -> Scored:
    """Return the items that have all scores, averaged over epochs.

    An item without an answer, or without a score that most items have, counts as not run.
    """
    found = Scored()
    by_id: dict[str, list[tuple[int, Any, dict[str, Any]]]] = defaultdict(list)
    troubled: dict[str, bool] = {}
    for place, sample in enumerate(samples, start=1):
        own_id = str(sample.id)
        scores = flat(sample.scores or {})
        if scores:
            by_id[own_id].append((place, sample, scores))
            found.despite_errors += bool(sample.error)
        else:
            troubled[own_id] = troubled.get(own_id, False) or bool(sample.error)
    for own_id, failed in troubled.items():
        if own_id not in by_id:
            (found.failed if failed else found.unscored).append(own_id)
    counts: Counter[str] = Counter()
    for rows in by_id.values():
        counts.update({metric for _, _, scores in rows for metric in scores})
    usual = [metric for metric, n in counts.items() if 2 * n > len(by_id)]
    for own_id, rows in by_id.items():
        scores = _mean([scores for _, _, scores in rows])
        absent = [metric for metric in usual if metric not in scores]
        for metric in absent:
            found.lacking.setdefault(metric, []).append(own_id)
        if not absent:
            place, sample, _ = rows[0]
            found.items.append(Answered(sample, place, scores, len(rows)))
    return found


def flat(scores: dict[str, Any]) -> dict[str, Any]:
    """Return metric → value: a scorer's own name, or SCORER.KEY where it scores several things.

    Examples
    --------
    >>> class Score:
    ...     def __init__(self, value):
    ...         self.value = value
    >>> flat({"match": Score("C"), "parts": Score({"f1": 0.5, "em": "I"}), "both": Score([1, 0])})
    {'match': 1.0, 'parts.f1': 0.5, 'parts.em': 0.0, 'both': [1, 0]}
    """
    found: dict[str, Any] = {}
    for name, score in scores.items():
        value = score.value
        several = (
            {f"{name}.{key}": one for key, one in value.items()}
            if isinstance(value, dict)
            else {name: value}
        )
        for metric, one in several.items():
            number = as_score(one)
            # Inspect writes NaN for what a scorer left unscored.
            if number is not None and not (isinstance(number, float) and math.isnan(number)):
                found[metric] = number
    return found


def as_score(value: Any) -> Any:
    """Return a score as Inspect counts it: letters and words as numbers, what else it is as is.

    Examples
    --------
    >>> [as_score(value) for value in ("C", "P", "N", "yes", True, "0.25", 3, "B")]
    [1.0, 0.5, 0.0, 1.0, 1.0, 0.25, 3.0, 'B']
    """
    if isinstance(value, bool | int | float):
        return float(value)
    if not isinstance(value, str):
        return value
    if value in GRADES:
        return GRADES[value]
    if value.lower() in WORDS:
        return WORDS[value.lower()]
    try:
        return float(value)
    except ValueError:
        return value


def _mean(epochs: list[dict[str, Any]]) -> dict[str, Any]:
    if len(epochs) == 1:
        return epochs[0]
    found: dict[str, Any] = {}
    for metric in dict.fromkeys(name for one in epochs for name in one):
        values = [one[metric] for one in epochs if metric in one]
        other = [value for value in values if not isinstance(value, float)]
        found[metric] = other[0] if other else math.fsum(values) / len(values)
    return found
