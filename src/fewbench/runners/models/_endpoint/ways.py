"""The two ways to log-probabilities, and finding out which of them a server has."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fewbench.runners.models._endpoint.connection import Connection
from fewbench.runners.models._endpoint.refusals import Refused, ServerError
from fewbench.runners.models._endpoint.replies import (
    CUT,
    choices_of,
    continuation_value,
    option_values,
    says_nothing_new,
    spelled,
    tokens_of,
    usage_of,
)
from fewbench.runners.models.model import Chosen, TryAgain, Usage

PROBE = "One, two, three,"  # what a server is asked to learn how it gives log-probabilities
PROBE_END = " six"
LISTS = (  # how many tokens a server is asked to list, and whether as in chats
    (20, False),  # the most of vLLM
    (5, False),  # the most of OpenAI
    (10, True),  # the most of mlx-lm, which takes a number in a field of its own only
)
SURE = 4  # replies without what was asked for until a server is taken not to give it
TRIES = 5  # of a request that fails while a server is tried out
TRIES_OF_ABOUT = 8  # of asking for the list of models, which some servers fail to make
PAUSE, LONGEST = 0.1, 0.8  # seconds after the first failure, doubled after each, and their most


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
    """Prompts given back with the log-probabilities of their tokens.

    One new token is asked for and passed over, since to some servers (llama-cpp-python's) none
    means as many as there is room for.
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
        """Return (log-probability, tokens) of each continuation, and what it took."""
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
        """Whether the server gives a probe back with its log-probabilities."""
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
    """Return what the server tells of the model; nothing where its list stays broken."""
    for failed in range(TRIES_OF_ABOUT):
        try:
            return await server.about()
        except TryAgain as error:
            await _pause(failed + 1, error)
    return {}


class _No(Exception):
    """The server refuses to be asked in this way."""


def _no(error: Refused) -> Exception:
    """A refusal while trying out means no, unless it is one of the key or the model's name.

    One of the name means no too if the server lists the model: it is for chats only.
    """
    return error if error.final else _No(str(error.args[0]))


async def _why_not(server: Connection, works: Callable[[], Awaitable[bool]]) -> str | None:
    """Return None if it works, else what the server does instead, as far as it says.

    It does at the first yes. It does not at a refusal, after `SURE` replies without, or if the
    server comes to an error each time and not without log-probabilities. One reply may be a broken
    one, so it does not decide; a run that is resumed must come to the same answer.
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
    """Whether the server goes on with a text if nothing else is asked for."""
    body = {"prompt": PROBE, "max_tokens": 1, "temperature": 0}
    for failed in range(TRIES):
        try:
            choices_of(await server.post("/completions", body), 1)
        except Refused:
            return False
        except TryAgain as error:
            await _pause(failed + 1, error)
        else:
            return True
    return False


async def _lists(server: Connection) -> bool:
    """Whether the model is in the server's list, so that it is there, whatever else is said."""
    for failed in range(TRIES_OF_ABOUT):
        try:
            return await server.listed() is not None
        except Refused:
            return False
        except TryAgain as error:
            await _pause(failed + 1, error)
    return False


async def _pause(failed: int, error: TryAgain) -> None:
    """Wait as long as the server asks for, or a moment."""
    await asyncio.sleep(max(error.after or 0.0, min(PAUSE * 2 ** (failed - 1), LONGEST)))
