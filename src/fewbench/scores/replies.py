"""Replies that are incomplete, or not from the requested model, and the warnings about them.

A reply is `CUT` (at a token limit), `FILTERED` (by the provider), `from_model(NAME)`, or ended by a
limit of its sample, such as "time limit"; "" is none of these.
"""

import json
from collections import defaultdict
from collections.abc import Mapping

from fewbench._names import counted
from fewbench.scores.table import Scores

REPLIES = "reply_kinds"
"""Column of a told table's items: JSON, model → kind of its reply. Empty if all are whole."""
ALIKE = 10
"""So many answers that are all wrong, or replies that are all the same, are worth a look."""
CUT, FILTERED, FROM, LIMIT = "cut", "filtered", "from ", " limit"
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


def by_limit(name: str) -> str:
    """Return the kind of a reply whose sample a limit ended, such as time, token or message."""
    return name + LIMIT


def is_limited(kind: str) -> bool:
    """Whether a limit ended a reply: with a larger one, it may be another."""
    return kind == CUT or kind.endswith(LIMIT)


def is_odd(kind: str, score: float) -> bool:
    """Whether a reply deserves a warning: a right answer (score 1) may as well be cut."""
    return kind.startswith(FROM) or ((kind in WHY or is_limited(kind)) and score < 1.0)


def replies_of(scores: Scores, model: str) -> dict[str, str]:
    """Return the kinds of a model's replies by item, as its log has them."""
    if REPLIES not in scores.items:
        return {}
    by_item = {item: json.loads(text) for item, text in scores.items[REPLIES].items() if text}
    return {str(item): str(kinds[model]) for item, kinds in by_item.items() if model in kinds}


def describe_alike(scores: Mapping[str, float], texts: Mapping[str, str]) -> list[str]:
    """Return a warning if all answers are wrong or right, or all replies are the same.

    Parameters
    ----------
    scores : mapping of item to float
        In [0, 1]. Right answers are common, so twice as many are needed as for wrong ones.
    texts : mapping of item to str
        Replies, as far as they are known.

    Examples
    --------
    >>> describe_alike({f"q{at}": 0.0 for at in range(200)}, {"q0": "The answer is B"})
    ["all 200 answers are wrong: check how replies are read and scored; the reply to item 'q0' is
    'The answer is B'"]
    >>> describe_alike({}, dict.fromkeys(map(str, range(10)), ""))
    ['all 10 replies are empty: check how the model is called']
    """
    notes, n, kinds = [], len(scores), set(scores.values())
    if (kinds == {0.0} and n >= ALIKE) or (kinds == {1.0} and n >= 2 * ALIKE):
        what = "right" if kinds == {1.0} else "wrong"
        note = f"all {n:,} answers are {what}: check how replies are read and scored"
        for item, text in list(texts.items())[:1]:
            note += f"; the reply to item {item!r} is {text!r}"
        notes.append(note)
    if len(texts) >= ALIKE and len(set(texts.values())) == 1:
        text = next(iter(texts.values()))
        what = f"the same: {text!r}" if text else "empty: check how the model is called"
        notes.append(f"all {len(texts):,} replies are {what}")
    return notes


def describe_replies(replies: Mapping[str, str], answered: int) -> list[str]:
    """Return a warning for each kind, given the kinds of odd replies by item.

    Examples
    --------
    >>> describe_replies({"q1": "cut", "q7": "cut", "q2": "from gpt-x"}, 30)[0]
    "2 of 30 replies were cut at the token limit and are not right: ... (item 'q1' and others)"
    >>> describe_replies({"q2": "from gpt-x"}, 30)
    ["1 of 30 replies was written by the model 'gpt-x', not by the one asked for (item 'q2')"]
    >>> describe_replies({"q2": "time limit"}, 30)
    ["1 of 30 samples ended by a time limit and counts as wrong; --retry limits (in Python
    retry='limits') runs it again (item 'q2')"]
    """
    by_kind: dict[str, list[str]] = defaultdict(list)
    for item, kind in replies.items():
        by_kind[kind].append(item)
    notes = []
    for kind, items in by_kind.items():
        n = len(items)
        what = WHY.get(kind) or (
            f"{{}} written by the model {kind.removeprefix(FROM)!r}, not by the one asked for"
        )
        phrase = what.format("was" if n == 1 else "were", "is" if n == 1 else "are")
        of_all = counted(answered, "reply", "replies")
        if kind.endswith(LIMIT):
            of_all, count, them = counted(answered, "sample"), "count", "them"
            if n == 1:
                count, them = "counts", "it"
            phrase = (
                f"ended by a {kind} and {count} as wrong; --retry limits (in Python "
                f"retry='limits') runs {them} again"
            )
        more = " and others" if n > 1 else ""
        notes.append(f"{n} of {of_all} {phrase} (item {min(items)!r}{more})")
    return notes
