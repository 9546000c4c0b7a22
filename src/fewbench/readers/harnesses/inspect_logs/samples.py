"""Samples of Inspect: what identifies one, its right answer, how its reply ended."""

import math
import re
import string
from collections.abc import Iterator, Sequence
from typing import Any

from fewbench.readers.options import NO_ANSWER, OptionTable
from fewbench.scores.replies import KINDS, by_limit, from_model

CUT = ("...\n(content truncated)", "(Image)", "(Audio)", "(Video)", "(Data)", "(Document)")
LETTERS = string.ascii_uppercase
MEDIA = ("image", "audio", "video", "document", "data")
NOT_LOGGED = "<base64-data-removed>"
BEFORE = re.compile(r"answer\s*:\s*[*$({]*\s*$", re.IGNORECASE)


def texts_of(said: Any) -> list[str]:
    """Return the texts of an input or a target, of all its messages."""
    parts = _parts_of(said)
    return [part if isinstance(part, str) else getattr(part, "text", "") for part in parts]


def _parts_of(said: Any) -> Iterator[Any]:
    """Yield the parts of an input or a target: texts, and objects with a text or a medium."""
    for message in [said] if isinstance(said, str) else said:
        content = message if isinstance(message, str) else message.content
        yield from [content] if isinstance(content, str) else content


def _answer_indices(sample: Any) -> list[int]:
    choices = sample.choices or []
    targets = [sample.target] if isinstance(sample.target, str) else list(sample.target)
    letters = [letter for target in targets for letter in target.replace(",", " ").split()]
    if not all(len(letter) == 1 and letter in LETTERS[: len(choices)] for letter in letters):
        return []
    return [LETTERS.index(letter) for letter in letters]


def content_of(sample: Any) -> list[str]:
    """Return the texts that identify a sample: input, choices, right answers, media."""
    choices, right = _key_texts(sample)
    texts, media = [], []
    for part in _parts_of(sample.input):
        text = part if isinstance(part, str) else getattr(part, "text", None)
        if text is not None:
            texts.append(text.strip())
        else:
            media += [str(getattr(part, name)) for name in MEDIA if hasattr(part, name)]
    if any(NOT_LOGGED in medium for medium in media):  # then only the id tells such samples apart
        media.append(str(sample.id))
    return ["\n".join(texts), *choices, *right, *media]


def answer_key(sample: Any) -> tuple[str | None, list[str]]:
    """Return the right answers of a sample as one text, None if truncated, and its choices."""
    choices, right = _key_texts(sample)
    is_cut = any(text.endswith(CUT) for text in texts_of(sample.target))
    return None if is_cut else "\x1f".join(right), choices


def group_of(sample: Any, keys: Sequence[str]) -> str:
    """Return the group that a sample's metadata name under the first of the keys, "" if none."""
    return str((sample.metadata or {}).get(keys[0], "")) if keys else ""


def _key_texts(sample: Any) -> tuple[list[str], list[str]]:
    choices = [str(choice).strip() for choice in sample.choices or []]
    right = [choices[at] for at in _answer_indices(sample)]
    if not right:
        targets = [sample.target] if isinstance(sample.target, str) else list(sample.target)
        right = [target.strip() for target in targets]
    return choices, right


def reply_kind(sample: Any) -> str:
    """Return how a sample ended: by a limit, a reply cut, filtered or of another model; or ""."""
    if limit := getattr(sample, "limit", None):  # in summaries only its name
        return by_limit(str(getattr(limit, "type", limit)))
    output = getattr(sample, "output", None)
    if output is None:
        return ""
    kind = KINDS.get(str(output.choices[0].stop_reason), "") if output.choices else ""
    fallback = getattr(output, "fallback", None)  # absent in older versions
    return kind or (from_model(fallback.fallback_model) if fallback is not None else "")


def option_table(sample: Any) -> OptionTable | None:
    """Return the log-probability of each option's letter at the answer, or None if unclear.

    The answer must be "ANSWER: X" with X a token of its own, and all letters among the logged
    likely tokens. Several answers and shuffled options give None.
    """
    choices = sample.choices or []
    output = getattr(sample, "output", None)
    if not 2 <= len(choices) <= len(LETTERS) or output is None or len(output.choices) != 1:
        return None
    if any("shuffled" in (score.explanation or "") for score in (sample.scores or {}).values()):
        return None
    logprobs = output.choices[0].logprobs
    tokens = logprobs.content if logprobs is not None else []
    letters = LETTERS[: len(choices)]
    for at in range(len(tokens) - 1, -1, -1):
        text = tokens[at].token.strip()
        if len(text) == 1 and text in letters:
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
    right = _answer_indices(sample)
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
