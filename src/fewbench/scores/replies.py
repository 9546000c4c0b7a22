"""Replies that are not whole, or not of the model that was asked, and what to say of them.

A reply is `CUT` (at a token limit), `FILTERED` (by the provider) or `from_model(NAME)`; "" is none
of these.
"""

import json
from collections import defaultdict
from collections.abc import Mapping

from fewbench._names import counted
from fewbench.scores.table import Scores

REPLIES = "reply_kinds"
"""Column of a told table's items: JSON, model → kind of its reply. Empty if all are whole."""
CUT, FILTERED, FROM = "cut", "filtered", "from "
# As servers with OpenAI's interface and Inspect say why a reply ended.
KINDS = {
    "length": CUT,
    "max_tokens": CUT,
    "model_length": CUT,
    "content_filter": FILTERED,
}
WHY = {
    CUT: "{} cut at the token limit and {} not right: with more tokens, the model may score higher",
    FILTERED: "{} stopped by a content filter and {} not right",
}


def from_model(name: str) -> str:
    """Return the kind of a reply that another model wrote."""
    return FROM + name


def is_odd(kind: str, score: float) -> bool:
    """Whether a reply deserves a warning: a right answer (score 1) may as well be cut."""
    return kind.startswith(FROM) or (kind in WHY and score < 1.0)


def replies_of(scores: Scores, model: str) -> dict[str, str]:
    """Return the kinds of a model's replies by item, as its log has them."""
    if REPLIES not in scores.items:
        return {}
    found = {item: json.loads(text) for item, text in scores.items[REPLIES].items() if text}
    return {str(item): str(kinds[model]) for item, kinds in found.items() if model in kinds}


def describe_replies(replies: Mapping[str, str], answered: int) -> list[str]:
    """Return a warning for each kind, given the kinds of odd replies by item.

    Examples
    --------
    >>> describe_replies({"q1": "cut", "q7": "cut", "q2": "from gpt-x"}, 30)[0]
    "2 of 30 replies were cut at the token limit and are not right: ... (item 'q1' and others)"
    >>> describe_replies({"q2": "from gpt-x"}, 30)
    ["1 of 30 replies was written by the model 'gpt-x', not by the one asked for (item 'q2')"]
    """
    by_kind: dict[str, list[str]] = defaultdict(list)
    for item, kind in replies.items():
        by_kind[kind].append(item)
    found = []
    for kind, items in by_kind.items():
        n = len(items)
        what = WHY.get(kind) or (
            f"{{}} written by the model {kind.removeprefix(FROM)!r}, not by the one asked for"
        )
        said = what.format("was" if n == 1 else "were", "is" if n == 1 else "are")
        found.append(
            f"{n} of {counted(answered, 'reply', 'replies')} {said} (item {min(items)!r}"
            + (" and others)" if n > 1 else ")")
        )
    return found
