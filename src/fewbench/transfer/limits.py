"""When failed requests are tried again, and when a run ends before all is asked."""

import random
from dataclasses import dataclass, field

from fewbench.errors import TransferError
from fewbench.transfer.cost import Prices


@dataclass(frozen=True)
class Patience:
    """When a failed request is tried again, and when all is given up.

    Parameters
    ----------
    tries : int
        Of one request, one after the other; it is then put off until all else is asked, and
        given as many again.
    first, longest : float
        Seconds before the second try, doubled with each further one, and at most; chance takes up
        to half of it away, so that not all requests come back at once. A server that says how
        long to wait is obeyed.
    silence : float
        Seconds in which everything failed, after which nothing is tried any more; a wait that the
        server asked for comes on top.
    """

    tries: int = 8
    first: float = 0.5
    longest: float = 30.0
    silence: float = 300.0

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise TransferError(f"{self.tries} tries of a request", hint="--tries 1 or more")

    def wait(self, failed: int) -> float:
        """Return seconds to wait after so many failures."""
        longest = min(self.first * 2.0 ** min(failed - 1, 30), self.longest)
        return longest * random.uniform(0.5, 1.0)


def check_pace(concurrency: int, rate: float | None) -> None:
    """Raise TransferError if nothing could be asked at such a pace."""
    if concurrency < 1:
        raise TransferError(
            f"{concurrency} requests at a time", hint="--concurrency takes 1 or more"
        )
    if rate is not None and not 0 < rate < float("inf"):
        raise TransferError(f"a rate of {rate} requests a minute", hint="--rate takes more than 0")


@dataclass(frozen=True)
class Limits:
    """Where to stop, over all the measurement's runs, by what the server says was used.

    Where it does not say, that is estimated. Failed tries are not counted: what they used is not
    known.

    Requests that are under way when a limit is reached are still counted, and kept.

    Parameters
    ----------
    tokens : int, optional
        Of prompts and of what was written.
    money : float, optional
        By the prices, which must then be given.
    prices : Prices
    """

    tokens: int | None = None
    money: float | None = None
    prices: Prices = field(default_factory=Prices)

    def __post_init__(self) -> None:
        if self.tokens is not None and self.tokens < 1:
            raise TransferError(f"a limit of {self.tokens} tokens", hint="--max-tokens 1 or more")
        if self.money is not None and not 0 < self.money < float("inf"):
            raise TransferError(f"a limit of money of {self.money}", hint="give more than 0")
        if self.money is not None and not self.prices.given:
            raise TransferError(
                "a limit of money without prices", hint="give --price-in and --price-out"
            )

    def reached(self, prompt: int, completion: int) -> str | None:
        """Return in words which limit so many tokens reach; None for none."""
        if self.tokens is not None and prompt + completion >= self.tokens:
            return f"the limit of {self.tokens:,} tokens is reached ({prompt + completion:,} used)"
        spent = self.prices.of(prompt, completion)
        if self.money is not None and spent is not None and spent >= self.money:
            return f"the limit of {self.money:,.2f} is reached ({spent:,.2f} spent)"
        return None
