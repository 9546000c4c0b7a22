"""Two ways to log-probabilities from a server, and tests for which of them it has."""

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from fewbench._names import counted
from fewbench.errors import ModelError
from fewbench.runners.models.endpoint_server import OTHER, Connection, Refused, ServerError
from fewbench.runners.models.model import Chosen, TryAgain, Usage

Result = TypeVar("Result")
ROUNDING = 1e-3  # how far above 0 rounding may put a log-probability
SPACES = ("▁", "Ġ")  # what tokenizers write for a leading space
CUT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True)
class Token:
    """A token of a reply, its log-probability, and the most likely tokens in its place."""

    text: str
    log_probability: float | None
    top: dict[str, float]


def choices_of(reply: dict[str, Any], n: int) -> list[dict[str, Any]]:
    """Return the `n` completions of a reply in the order of their prompts."""
    choices = reply.get("choices")
    if not isinstance(choices, list) or not all(isinstance(c, dict) for c in choices):
        raise TryAgain("the reply has no completions")
    by_index = {choice.get("index", 0): choice for choice in choices}
    if len(choices) != n:
        raise TryAgain(f"the reply has {counted(len(choices), 'completion')} instead of {n}")
    if set(by_index) != set(range(n)):
        numbers = ", ".join(str(choice.get("index")) for choice in choices)
        raise TryAgain(f"the reply numbers its completions {numbers:.40}, not from 0 to {n - 1}")
    return [by_index[i] for i in range(n)]


def usage_of(reply: dict[str, Any]) -> Usage:
    """Return the tokens that a reply reports, 0 if it reports none, and another model's name."""
    said = reply.get("usage")
    said = said if isinstance(said, dict) else {}
    counts = [said.get(key) for key in ("prompt_tokens", "completion_tokens")]
    prompt, completion = (c if isinstance(c, int) and c >= 0 else 0 for c in counts)
    return Usage(prompt=prompt, completion=completion, model=str(reply.get(OTHER) or ""))


def says_nothing_new(reply: dict[str, Any]) -> bool:
    """Whether a reply reports that no token was written, because the model ended at once."""
    said = reply.get("usage")
    return isinstance(said, dict) and said.get("completion_tokens") == 0


def tokens_of(choice: dict[str, Any]) -> list[Token]:
    """Return the tokens of a completion.

    The older form has lists tokens, token_logprobs and top_logprobs. The newer form, which
    llama.cpp uses for completions too, has a list `content` with one object per token.
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
    """Return the log-probability of each option as the next token.

    Forms with and without a leading space are added; an option in neither form has -inf.

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

    The continuation's tokens are found from the end by their text, because text_offset is shifted
    on some servers and missing on others. Spaces are ignored, because some servers drop leading
    spaces. A token that begins in the prompt and ends in the continuation counts entirely.
    Characters that are split into several tokens appear as U+FFFD, or as nothing with
    llama-cpp-python: they match any characters, and if the prompt's last character was split, its
    tokens count too.

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
            "the server gives no log-probability for the first token of a text, which is scored",
            hint="put an instruction or exemplars before it",
        )
    checked = [_checked(value) for value in values]
    if not all(map(math.isfinite, checked)):
        raise TryAgain("a log-probability in the reply is not finite")
    return math.fsum(checked), len(checked)


def spelled(tokens: Sequence[Token], text: str) -> bool:
    """Whether the last tokens spell a text, ignoring spaces."""
    return _solid("".join(token.text for token in tokens)).endswith(_solid(text))


def _first_of_cut(tokens: Sequence[Token], wanted: str) -> int:
    """Position from which the tokens spell `wanted`; U+FFFD stands for any characters."""
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
    """Log-probability by text of the listed tokens; equal texts are added."""
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


PROBE = "One, two, three,"  # prompt to test what a server can do
PROBE_END = " six"
LISTS = (  # (tokens to list, whether to ask as in chats)
    (20, False),  # the most of vLLM
    (5, False),  # the most of OpenAI
    (10, True),  # the most of mlx-lm, which takes a number in a field of its own only
)
SURE = 4  # replies without log-probabilities until a server counts as not giving them
TRIES = 5  # of a failing request during these tests
TRIES_OF_ABOUT = 8  # of the list of models, which fails on some servers
PAUSE, LONGEST = 0.1, 0.8  # seconds after the first failure, doubled each time, and at most


@dataclass(frozen=True)
class Top:
    """One new token, and the most likely tokens in its place."""

    server: Connection
    listed: int
    as_in_chats: bool = False

    async def choose(self, prompt: str, options: Sequence[str]) -> Chosen:
        """Return the options' log-probabilities as single tokens; -inf where not listed."""
        reply = await self.ask(prompt)
        (choice,) = choices_of(reply, 1)
        if choice.get("logprobs") is None and CUT in str(choice.get("text")):
            # llama.cpp's server lists nothing where the token is a part of a character
            return Chosen((-math.inf,) * len(options), usage_of(reply))
        tokens = tokens_of(choice)
        if not tokens or not tokens[0].top:
            raise TryAgain("the reply lists no tokens")
        return Chosen(option_values(tokens[0], options), usage_of(reply))

    async def ask(self, prompt: str) -> dict[str, Any]:
        """Return the reply to one request."""
        body = {"prompt": prompt, "max_tokens": 1, "temperature": 0, "logprobs": self.listed}
        if self.as_in_chats:
            # outside the body that the package describes for plain completions
            body |= {"logprobs": True, "extra_body": {"top_logprobs": self.listed}}
        return await self.server.post("/completions", body)

    async def works(self) -> bool:
        """Whether the server's reply to a probe lists tokens."""
        try:
            reply = await self.ask(PROBE)
        except Refused as error:
            raise _no(error) from error
        try:
            (choice,) = choices_of(reply, 1)
            tokens = tokens_of(choice)
        except TryAgain:
            return False
        return bool(tokens) and len(tokens[0].top) > 1


@dataclass(frozen=True)
class Echo:
    """Prompts echoed with the log-probabilities of their tokens.

    One new token is requested and ignored: llama-cpp-python takes 0 for no limit.
    """

    server: Connection
    lists: bool  # whether a request may hold several prompts

    async def choose(self, prompt: str, options: Sequence[str]) -> Chosen:
        """Return the options' log-probabilities, each summed over its tokens."""
        found, usage = await self.read(prompt, options)
        return Chosen(tuple(value for value, _ in found), usage)

    async def read(
        self, prompt: str, continuations: Sequence[str]
    ) -> tuple[list[tuple[float, int]], Usage]:
        """Return (log-probability, tokens) of each continuation, and the usage."""
        texts = [prompt + continuation for continuation in continuations]
        usage, values = Usage(requests=0), []
        for group in [texts] if self.lists else [[text] for text in texts]:
            reply = await self.ask(group)
            usage += usage_of(reply)
            ended = says_nothing_new(reply)
            for choice, text in zip(choices_of(reply, len(group)), group, strict=True):
                values.append(_value(choice, text, text[len(prompt) :], ended))
        return values, usage

    async def ask(self, texts: Sequence[str]) -> dict[str, Any]:
        """Return the reply to one request."""
        body = {"max_tokens": 1, "temperature": 0, "logprobs": 1, "echo": True}
        prompt = list(texts) if self.lists else texts[0]
        return await self.server.post("/completions", body | {"prompt": prompt})

    async def works(self) -> bool:
        """Whether the server echoes a probe with log-probabilities."""
        texts = [PROBE, PROBE + PROBE_END] if self.lists else [PROBE + PROBE_END]
        try:
            reply = await self.ask(texts)
        except Refused as error:
            raise _no(error) from error
        try:
            *_, choice = choices_of(reply, len(texts))
            tokens = tokens_of(choice)
            if not (spelled(tokens, texts[-1]) or spelled(tokens[:-1], texts[-1])):
                return False
            _value(choice, texts[-1], PROBE_END, says_nothing_new(reply))
        except TryAgain:
            return False
        return True


def _value(choice: dict[str, Any], text: str, continuation: str, ended: bool) -> tuple[float, int]:
    tokens = tokens_of(choice)
    if spelled(tokens[:-1], text) or not (ended or spelled(tokens, text)):
        tokens = tokens[:-1]  # unless the model ended at once, and wrote none
    return continuation_value(tokens, continuation)


async def find_top(server: Connection) -> tuple[Top | None, str]:
    """Return how the server lists tokens, or None and why it does not."""
    why = ""
    for listed, as_in_chats in LISTS:
        top = Top(server, listed, as_in_chats)
        no = await _why_not(server, top.works)
        if no is None:
            return top, ""
        why = why or no
    return None, why


async def find_echo(server: Connection) -> tuple[Echo | None, str]:
    """Return how the server echoes prompts, or None and why it does not."""
    why = ""
    for lists in (True, False):
        echo = Echo(server, lists)
        no = await _why_not(server, echo.works)
        if no is None:
            return echo, ""
        why = no  # of one prompt, which more servers take
    return None, why


async def what_is_told(server: Connection) -> dict[str, str]:
    """Return what the server reports on the model; nothing if its list keeps failing."""
    return await _retried(server.about, TRIES_OF_ABOUT) or {}


class _No(Exception):
    """The server refuses to be asked in this way."""


def _no(error: Refused) -> Exception:
    """A refusal means no, unless it is about the key or the model's name."""
    return error if error.final else _No(str(error.args[0]))


async def _why_not(server: Connection, works: Callable[[], Awaitable[bool]]) -> str | None:
    """Return None if it works, else the server's reason or an empty text.

    It works after one success. It does not after a refusal, after `SURE` replies without
    log-probabilities, or if every try is a server error although plain requests succeed. A refusal
    of the model's name counts if the server lists the model, which is then for chats only. One
    reply may be broken and decides nothing: a resumed run must come to the same result.
    """
    failed = errors = without = 0
    while without < SURE:
        try:
            if await works():
                return None
            without += 1
        except _No as error:
            return str(error).removeprefix(f"{server} ")
        except Refused as error:
            if not (error.missing and await _lists(server)):
                raise
            return str(error.message).removeprefix(f"{server} ")
        except TryAgain as error:
            failed += 1
            errors += isinstance(error, ServerError)
            if failed < TRIES:
                await _pause(failed, error)
            elif errors == failed and await _answers(server):
                return f"answers {error.reason}"
            else:
                raise
    return ""


async def _answers(server: Connection) -> bool:
    """Whether the server completes a text without log-probabilities."""

    async def once() -> bool:
        body = {"prompt": PROBE, "max_tokens": 1, "temperature": 0}
        choices_of(await server.post("/completions", body), 1)
        return True

    try:
        return bool(await _retried(once, TRIES))
    except Refused:
        return False


async def _lists(server: Connection) -> bool:
    """Whether the model is in the server's list of models."""
    try:
        return await _retried(server.listed, TRIES_OF_ABOUT) is not None
    except Refused:
        return False


async def _retried(call: Callable[[], Awaitable[Result]], tries: int) -> Result | None:
    """Return the result of a call; None if every try fails."""
    for failed in range(1, tries + 1):
        try:
            return await call()
        except TryAgain as error:
            await _pause(failed, error)
    return None


async def _pause(failed: int, error: TryAgain) -> None:
    """Wait as long as the server asks for, or a moment."""
    await asyncio.sleep(max(error.after or 0.0, min(PAUSE * 2 ** (failed - 1), LONGEST)))
