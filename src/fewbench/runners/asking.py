"""Send requests to a model: in parallel, with retries, at a rate, within limits of tokens and cost.

Measurements of transfer and runs at an endpoint are asked this way.
"""

import asyncio
import random
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from fewbench.errors import ModelError, RunError
from fewbench.runners.models.model import Model, NoReply, TryAgain

Request = TypeVar("Request")
Reply = TypeVar("Reply")
GRACE = 10.0  # seconds for pending requests when the run ends with an error
FIRST_TRIES = 4  # to reach a model for the first time
BYTES = 4  # UTF-8 bytes per token, about: four letters of English, one or two of Chinese


def size(text: str) -> int:
    """Return the number of bytes of a text in UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))


def estimated(text: str) -> int:
    """Return about how many tokens a text has.

    Examples
    --------
    >>> estimated("How many moons has Mars?")
    6
    """
    return round(size(text) / BYTES)


@dataclass(frozen=True)
class Prices:
    """Prices per million tokens, of prompts and of written text; None for not given.

    Examples
    --------
    >>> Prices(prompt=1.0, completion=4.0).of(prompt=2_000_000, completion=500_000)
    4.0
    """

    prompt: float | None = None
    completion: float | None = None

    def __post_init__(self) -> None:
        for price in (self.prompt, self.completion):
            if price is not None and not 0 <= price < float("inf"):
                raise RunError(f"a price of {price} per million tokens", hint="give 0 or more")

    @property
    def given(self) -> bool:
        """Whether any price is given."""
        return self.prompt is not None or self.completion is not None

    def of(self, prompt: float, completion: float) -> float | None:
        """Return the cost of numbers of tokens; None without prices."""
        if not self.given:
            return None
        return ((self.prompt or 0) * prompt + (self.completion or 0) * completion) / 1e6


@dataclass(frozen=True)
class Limits:
    """Where to stop, over all runs in a folder, by the tokens that the server reports.

    Tokens that the server does not report are estimated; failed tries are not counted. Requests in
    flight when a limit is reached are still counted and kept.

    Parameters
    ----------
    tokens : int, optional
        Prompt and completion tokens.
    money : float, optional
        Cost by the prices, which are then required.
    prices : Prices
    """

    tokens: int | None = None
    money: float | None = None
    prices: Prices = field(default_factory=Prices)

    def __post_init__(self) -> None:
        if self.tokens is not None and self.tokens < 1:
            raise RunError(
                f"a limit of {self.tokens} tokens is too low", hint="give --max-tokens 1 or more"
            )
        if self.money is not None and not 0 < self.money < float("inf"):
            raise RunError(f"a cost limit of {self.money}", hint="give more than 0")
        if self.money is not None and not self.prices.given:
            raise RunError("a cost limit needs prices", hint="give --price-in and --price-out")

    def reached(self, prompt: int, completion: int) -> str | None:
        """Return the limit that numbers of tokens reach, in words; None for none."""
        if self.tokens is not None and prompt + completion >= self.tokens:
            return f"the limit of {self.tokens:,} tokens is reached ({prompt + completion:,} used)"
        spent = self.prices.of(prompt, completion)
        if self.money is not None and spent is not None and spent >= self.money:
            return f"the limit of {self.money:,.2f} is reached ({spent:,.2f} spent)"
        return None


@dataclass(frozen=True)
class Patience:
    """When to retry a failed request, and when to end the run.

    Parameters
    ----------
    tries : int
        Tries of one request in a row. The request then waits until all others are done, and gets
        as many tries again.
    first, longest : float
        Seconds before the second try, doubled for each further try, and their maximum. Up to half
        of the wait is taken away at random. If the server says how long to wait, that counts.
    silence : float
        Seconds without any answer after which the run ends, in addition to a wait that the server
        asked for.
    """

    tries: int = 8
    first: float = 0.5
    longest: float = 30.0
    silence: float = 300.0

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise RunError(f"tries={self.tries} is too low", hint="give 1 or more")

    def wait(self, failed: int) -> float:
        """Return the seconds to wait after a number of failures."""
        longest = min(self.first * 2.0 ** min(failed - 1, 30), self.longest)
        return longest * random.uniform(0.5, 1.0)


def check_pace(concurrency: int, rate: float | None) -> None:
    """Raise RunError if `concurrency` or `rate` (requests per minute) is too low."""
    if concurrency < 1:
        raise RunError(f"concurrency={concurrency} is too low", hint="give 1 or more")
    if rate is not None and not 0 < rate < float("inf"):
        raise RunError(f"rate={rate} is not possible", hint="give more than 0")


class Asking(ABC, Generic[Request, Reply]):
    """Requests that are sent concurrently; all workers share its state, one runs at a time.

    Parameters
    ----------
    patience : Patience
    rate : float, optional
        Most requests per minute, over all calls of `run`.
    """

    def __init__(self, patience: Patience, rate: float | None) -> None:
        self.retries = 0
        self._patience = patience
        self._pause = 0.0 if rate is None else 60.0 / rate
        self._next = 0.0  # when the next request may be made
        self._failing = 0  # tries that failed since the last answer, of any request
        self._heard = 0.0  # when that answer came
        self._asked_wait = 0.0  # the longest wait that the server asked for since
        self._put_off: deque[Request] = deque()  # failed too often; asked again after all else
        self._over = asyncio.Event()

    @abstractmethod
    async def send(self, request: Request) -> Reply:
        """Ask once; TryAgain if another try may succeed."""

    @abstractmethod
    def took(self, request: Request, reply: Reply) -> None:
        """Keep a reply."""

    @abstractmethod
    def calls_of(self, reply: Reply) -> int:
        """Return how many calls of the server a reply took."""

    @abstractmethod
    def is_limit_reached(self) -> bool:
        """Whether to send no more requests."""

    @abstractmethod
    def fail(self, request: Request, failed: int, error: TryAgain) -> None:
        """Note a failed try; ModelError if that ends the run."""

    def give_up(self, request: Request, error: TryAgain) -> None:
        """Put off a request that failed too often, until all others are done."""
        self._put_off.append(request)

    def take_up(self, request: Request) -> None:
        """Note that a request that was put off is sent again."""

    async def run(self, pending: Iterator[Request], concurrency: int) -> None:
        """Send requests with a number of workers."""
        self._over.clear()
        self._heard = time.monotonic()
        workers = [asyncio.create_task(self._work(pending)) for _ in range(concurrency)]
        try:
            finished, others = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            if others:  # an error ended the run; pending requests may still be answered
                self._over.set()
                await asyncio.wait(others, timeout=GRACE)
            for worker in finished:
                worker.result()
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self, pending: Iterator[Request]) -> None:
        while not self._over.is_set():
            request = next(pending, None)
            if request is None and self._put_off:
                request = self._put_off.popleft()
                self.take_up(request)
            if request is None:
                return
            if self.is_limit_reached():
                self._over.set()
                return
            reply = await self._reply(request)
            if reply is not None:
                self.took(request, reply)

    async def _reply(self, request: Request) -> Reply | None:
        """Return the reply to a request; None if it is given up or the run has ended."""
        failed = 0
        while True:
            await self._turn()
            if self._over.is_set():
                return None
            try:
                reply = await self.send(request)
            except TryAgain as error:
                failed += 1
                self._failing += 1
                self.fail(request, failed, error)
                self.retries += 1
                if error.after is not None:  # holds for all requests
                    self._next = max(self._next, time.monotonic() + error.after)
                    self._asked_wait = max(self._asked_wait, error.after)
                await self._sleep(self._patience.wait(failed))
                if failed >= self._patience.tries:
                    self.give_up(request, error)
                    return None
                continue
            self._failing, self._heard, self._asked_wait = 0, time.monotonic(), 0.0
            # a choice may have taken several requests: they count for the rate too
            self._next += self._pause * max(0, self.calls_of(reply) - 1)
            return reply

    async def _turn(self) -> None:
        """Wait until the server and the rate allow a request."""
        while (wait := self._next - time.monotonic()) > 0 and not self._over.is_set():
            if self._pause:
                self._next += self._pause
                await self._sleep(wait)
                return
            await self._sleep(wait)
        if self._pause:
            self._next = time.monotonic() + self._pause

    async def _sleep(self, seconds: float) -> None:
        """Sleep until the time or the run is over."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), seconds)

    def silence(self) -> str | None:
        """Return in words that nothing was answered for too long; None otherwise."""
        silent = time.monotonic() - self._heard
        if self._failing > 1 and silent > self._patience.silence + self._asked_wait:
            return f"nothing was answered in {silent:,.0f} seconds ({self._failing:,} failures)"
        return None


async def prepare_model(
    model: Model, patience: Patience, log_probabilities: bool
) -> dict[str, str]:
    """Return facts on how the model is asked."""
    tries = min(patience.tries, FIRST_TRIES)
    for failed in range(1, tries + 1):
        try:
            return await model.prepare(log_probabilities)
        except TryAgain as error:
            if failed == tries:
                if error.status is not None:  # the server is up
                    raise ModelError(
                        f"the server of {model.name} answers {error.reason}",
                        hint="see the server's log, then run the same command again",
                    ) from error
                if not isinstance(error, NoReply):
                    raise ModelError(
                        f"{model.name} was reached, but {error.reason}",
                        hint="check that the address is that of an OpenAI-compatible API, which "
                        "usually ends in /v1, and see the server's log",
                    ) from error
                raise ModelError(
                    f"{model.name} cannot be reached: {error.reason}",
                    hint="check that the server is up and its address is right",
                ) from error
            await asyncio.sleep(max(error.after or 0.0, patience.wait(failed)))
    raise AssertionError
