"""Log-probabilities out of the replies of servers with OpenAI's interface."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fewbench.errors import ModelError
from fewbench.runners.models.model import TryAgain, Usage

ROUNDING = 1e-3  # how far above 0 rounding may put a log-probability
SPACES = ("▁", "Ġ")  # what tokenizers write for a leading space
CUT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True)
class Token:
    """A token of a reply, its log-probability, and those of the most likely tokens there."""

    text: str
    log_probability: float | None
    top: dict[str, float]


def parse_reply(text: str) -> dict[str, Any]:
    """Return a reply's JSON object; raise TryAgain if it is none, or tells of an error."""
    try:
        reply = json.loads(text)
    except ValueError:
        raise TryAgain("the reply is not JSON, or was cut") from None
    if not isinstance(reply, dict):
        raise TryAgain("the reply is not a JSON object")
    if reply.get("error"):
        raise TryAgain(f"the reply tells of an error: {str(reply['error'])[:200]}")
    return reply


def choices_of(reply: dict[str, Any], n: int) -> list[dict[str, Any]]:
    """Return the `n` completions of a reply in the order of their prompts."""
    choices = reply.get("choices")
    if not isinstance(choices, list) or not all(isinstance(c, dict) for c in choices):
        raise TryAgain("the reply has no completions")
    by_index = {choice.get("index", 0): choice for choice in choices}
    if len(choices) != n or set(by_index) != set(range(n)):
        raise TryAgain(f"the reply has {len(choices)} completions where {n} were asked for")
    return [by_index[i] for i in range(n)]


def usage_of(reply: dict[str, Any]) -> Usage:
    """Return the tokens that a reply says it took; 0 where it does not say."""
    said = reply.get("usage")
    said = said if isinstance(said, dict) else {}
    counts = [said.get(key) for key in ("prompt_tokens", "completion_tokens")]
    prompt, completion = (c if isinstance(c, int) and c >= 0 else 0 for c in counts)
    return Usage(prompt=prompt, completion=completion)


def says_nothing_new(reply: dict[str, Any]) -> bool:
    """Whether a reply says that no token was written, as where the model ends at once."""
    said = reply.get("usage")
    return isinstance(said, dict) and said.get("completion_tokens") == 0


def tokens_of(choice: dict[str, Any]) -> list[Token]:
    """Return the tokens of a completion, from either form of log-probabilities.

    The older form holds the lists tokens, token_logprobs and top_logprobs; the newer, which
    llama.cpp uses for completions too, a list `content` of one object a token.
    """
    found = choice.get("logprobs")
    try:
        if isinstance(found, dict) and isinstance(found.get("content"), list):
            return [_token(t["token"], t["logprob"], _listed(t)) for t in found["content"]]
        if isinstance(found, dict) and isinstance(found.get("tokens"), list):
            tops = found.get("top_logprobs") or [None] * len(found["tokens"])
            columns = (found["tokens"], found["token_logprobs"], tops)
            return [_token(*row) for row in zip(*columns, strict=True)]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise TryAgain("the reply's log-probabilities are not in a known form") from None
    raise TryAgain("the reply has no log-probabilities")


def option_values(token: Token, options: Sequence[str]) -> tuple[float, ...]:
    """Return the log-probability of each option as the one token that comes next.

    The forms with and without a leading space count together; an option in neither form has
    negative infinity.

    Examples
    --------
    >>> option_values(Token(" A", -0.5, {" A": -0.5, "B": -1.0}), [" A", " B", " C"])
    (-0.5, -1.0, -inf)
    """
    listed = dict(token.top)
    if token.log_probability is not None:
        listed.setdefault(token.text, token.log_probability)
    values: dict[str, float] = {}
    for text, value in listed.items():
        bare = text
        for mark in SPACES:
            bare = bare.removeprefix(mark)
        values[bare.strip()] = _added(values.get(bare.strip(), -math.inf), _checked(value))
    return tuple(values.get(option.strip(), -math.inf) for option in options)


def continuation_value(tokens: Sequence[Token], continuation: str) -> tuple[float, int]:
    r"""Return the log-probability of the continuation at the end of echoed tokens, and its tokens.

    The continuation's tokens are found from the end, by their text: text_offset is shifted on
    servers that put a token before each prompt, and missing on others. Spaces are passed over in
    the comparison, as some servers drop a token's leading space. A token that begins in the prompt
    and ends in the continuation counts, whole. Characters that were cut into several tokens are
    shown as U+FFFD, or as nothing by llama-cpp-python: they match any others, and where the
    prompt's last character was cut too, its tokens count.

    Examples
    --------
    >>> tokens = [Token("Answer", None, {}), Token(":", -0.1, {}), Token(" B", -0.7, {})]
    >>> continuation_value(tokens, " B")
    (-0.7, 1)
    """
    wanted = _solid(continuation)
    first, text = len(tokens), ""
    while first > 0 and len(_solid(text)) < len(wanted):
        first -= 1
        text = tokens[first].text + text
    while first > 0 and len(text) < len(continuation) and not tokens[first - 1].text.strip():
        first -= 1
        text = tokens[first].text + text
    if not _solid(text).endswith(wanted) and any(CUT in (t.text or CUT) for t in tokens[first:]):
        first = _first_of_cut(tokens, wanted)
    elif not wanted or not _solid(text).endswith(wanted):
        raise TryAgain("the reply's last tokens do not spell the continuation")
    values = [token.log_probability for token in tokens[first:]]
    if first == 0 and values[0] is None:
        raise ModelError(
            "the server gives no log-probability of a text's first token, which is scored here",
            hint="put an instruction or exemplars before what is scored",
        )
    checked = [_checked(value) for value in values]
    if not all(map(math.isfinite, checked)):
        raise TryAgain("a log-probability in the reply is not finite")
    return math.fsum(checked), len(checked)


def spelled(tokens: Sequence[Token], text: str) -> bool:
    """Whether the last of the tokens spell a text, spaces aside."""
    return _solid("".join(token.text for token in tokens)).endswith(_solid(text))


def _first_of_cut(tokens: Sequence[Token], wanted: str) -> int:
    """Position from which the tokens spell `wanted`, where U+FFFD stands for other characters."""
    found, text = -1, ""
    for first in reversed(range(len(tokens))):
        text = _solid(tokens[first].text or CUT) + text
        parts = (
            rf"[^\x00-\x7f]{{1,{len(part)}}}" if part.startswith(CUT) else re.escape(part)
            for part in re.findall(rf"{CUT}+|[^{CUT}]+", text)
        )
        if re.fullmatch("".join(parts), wanted):
            found = first
        elif found >= 0 or len(text.replace(CUT, "")) > len(wanted):
            break
    if found < 0:
        raise TryAgain("the reply's last tokens do not spell the continuation")
    return found


def _token(text: Any, value: Any, top: Any) -> Token:
    if not isinstance(text, str):
        raise TypeError(text)
    own = None if value is None else float(value)
    return Token(text, own, {t: float(v) for t, v in (top or {}).items() if v is not None})


def _listed(entry: dict[str, Any]) -> dict[str, float]:
    """The listed tokens of one place; two with the same text count together."""
    listed: dict[str, float] = {}
    for other in entry.get("top_logprobs") or []:
        before = listed.get(other["token"], -math.inf)
        listed[other["token"]] = _added(before, float(other["logprob"]))
    return listed


def _added(a: float, b: float) -> float:
    """The logarithm of the sum of two probabilities."""
    high, low = max(a, b), min(a, b)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


def _checked(value: float | None) -> float:
    if value is None or math.isnan(value) or value > ROUNDING:
        raise TryAgain(f"a log-probability in the reply is {value}")
    return min(value, 0.0)


def _solid(text: str) -> str:
    for mark in SPACES:
        text = text.replace(mark, " ")
    return "".join(text.split())
