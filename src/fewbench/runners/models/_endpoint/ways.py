"""The two ways to log-probabilities, and finding out which of them a server has."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fewbench.runners.models._endpoint.connection import Connection
from fewbench.runners.models._endpoint.refusals import Refused
from fewbench.runners.models._endpoint.replies import (
    choices_of,
    continuation_value,
    option_values,
    spelled,
    tokens_of,
    usage_of,
)
from fewbench.runners.models.model import Chosen, TryAgain, Usage

PROBE = "One, two, three,"  # what a server is asked to learn how it gives log-probabilities
PROBE_END = " six"
LISTED = (20, 5)  # how many tokens a server is asked to list: vLLM's and OpenAI's most
SURE = 4  # replies without what was asked for until a server is taken not to give it
TRIES = 5  # of a request that fails while a server is tried out
PAUSE = 0.1  # seconds after the first failure, doubled after each


@dataclass(frozen=True)
class Top:
    """One new token, and the most likely tokens in its place."""

    server: Connection
    listed: int

    async def choose(self, prompt: str, options: Sequence[str]) -> Chosen:
        """Return the options' log-probabilities as single tokens; -inf where not listed."""
        reply = await self.ask(prompt)
        (choice,) = choices_of(reply, 1)
        tokens = tokens_of(choice)
        if not tokens or not tokens[0].top:
            raise TryAgain("the reply lists no tokens")
        return Chosen(option_values(tokens[0], options), usage_of(reply))

    async def ask(self, prompt: str) -> dict[str, Any]:
        """Return the reply to one request."""
        body = {"prompt": prompt, "max_tokens": 1, "temperature": 0, "logprobs": self.listed}
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
    """Prompts given back with the log-probabilities of their tokens."""

    server: Connection
    lists: bool  # whether a request may hold several prompts
    fewest: int  # new tokens that must be asked for: 0, or 1, which is ignored

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
            for choice, text in zip(choices_of(reply, len(group)), group, strict=True):
                values.append(self._value(choice, text, text[len(prompt) :]))
        return values, usage

    async def ask(self, texts: Sequence[str]) -> dict[str, Any]:
        """Return the reply to one request."""
        body = {"max_tokens": self.fewest, "temperature": 0, "logprobs": 1, "echo": True}
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
            self._value(choice, texts[-1], PROBE_END)
        except TryAgain:
            return False
        return True

    def _value(self, choice: dict[str, Any], text: str, continuation: str) -> tuple[float, int]:
        tokens = tokens_of(choice)
        if self.fewest and (spelled(tokens[:-1], text) or not spelled(tokens, text)):
            tokens = tokens[:-1]  # unless the model ended at once, and wrote none
        return continuation_value(tokens, continuation)


async def find_top(server: Connection) -> Top | None:
    """Return how the server lists tokens, or None if it does not."""
    for listed in LISTED:
        top = Top(server, listed)
        if await _surely(top.works):
            return top
    return None


async def find_echo(server: Connection) -> Echo | None:
    """Return how the server echoes prompts, or None if it does not."""
    for lists, fewest in ((True, 0), (True, 1), (False, 0), (False, 1)):
        echo = Echo(server, lists, fewest)
        if await _surely(echo.works):
            return echo
    return None


class _No(Exception):
    """The server refuses to be asked in this way."""


def _no(error: Refused) -> Exception:
    """A refusal while trying out means no, unless it is one of the key or the model's name."""
    return error if error.final else _No()


async def _surely(works: Callable[[], Awaitable[bool]]) -> bool:
    """Whether it works: yes at the first yes, no at a refusal or after `SURE` replies without.

    One reply may be a broken one, so it does not decide; a run that is resumed must come to the
    same answer.
    """
    failed = without = 0
    while without < SURE:
        try:
            if await works():
                return True
            without += 1
        except _No:
            return False
        except TryAgain:
            failed += 1
            if failed == TRIES:
                raise
            await asyncio.sleep(PAUSE * 2 ** (failed - 1))
    return False
