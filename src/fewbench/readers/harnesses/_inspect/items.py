"""What identifies an item of Inspect: what the sample says, never its place."""

import string
from pathlib import Path
from typing import Any

from fewbench.readers.identity import content_id, field_value

LETTERS = string.ascii_uppercase
MEDIA = ("image", "audio", "video", "document", "data")
NOT_LOGGED = "<base64-data-removed>"


def content_of(path: Path, place: int, sample: Any, key: str | None) -> str:
    """Return the identity of an item: its content, or what the user's key names.

    Raises
    ------
    ReaderError
        If the sample lacks the key.
    """
    if key is None:
        return content_id(*_content(sample))
    fields = {"id": sample.id, "input": sample.input} | (sample.metadata or {})
    return field_value(fields, key, f"{path}, sample {place} (id {sample.id!r})")


def answer_indices(sample: Any) -> list[int]:
    """Return which choices are right; [] if the target does not name them by letters."""
    choices = sample.choices or []
    targets = [sample.target] if isinstance(sample.target, str) else list(sample.target)
    letters = [one for target in targets for one in target.replace(",", " ").split()]
    if not all(len(one) == 1 and one in LETTERS[: len(choices)] for one in letters):
        return []
    return [LETTERS.index(one) for one in letters]


def _content(sample: Any) -> list[str]:
    """Return question, choices and right answers as texts; pictures and the like last."""
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
