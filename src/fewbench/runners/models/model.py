"""The protocol of language models, and what they return."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Usage:
    """Tokens that a call was charged with, and the requests that it took."""

    prompt: int = 0
    completion: int = 0
    requests: int = 1

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.requests + other.requests,
        )


@dataclass(frozen=True)
class Chosen:
    """Log-probabilities of the options as continuations of a prompt.

    An option that the model did not report (a server lists only the most likely tokens) has
    negative infinity; with all at negative infinity the model chose none.
    """

    log_probabilities: tuple[float, ...]
    usage: Usage


@dataclass(frozen=True)
class Read:
    """Log-probability of a continuation, summed over its tokens."""

    log_probability: float
    tokens: int
    usage: Usage


@dataclass(frozen=True)
class Written:
    """What the model wrote."""

    text: str
    usage: Usage


class TryAgain(Exception):
    """A call failed in a way that may pass: no connection, too many requests, a broken reply.

    Parameters
    ----------
    reason : str
        What happened, in a few words.
    after : float, optional
        Seconds to wait that the server asked for.
    status : int, optional
        The HTTP status of the server's answer, where it answered with an error.
    """

    def __init__(self, reason: str, after: float | None = None, status: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.after = after
        self.status = status


class TooLong(Exception):
    """The prompt does not fit into the model's context; another prompt may."""


class Model(Protocol):
    """A language model that can be asked.

    Each method makes one attempt (of one or more requests) and raises TryAgain where another may
    succeed, TooLong where the prompt does not fit, and ModelError where asking again is no use: no
    such model, no permission, a server that cannot do what is asked.
    """

    @property
    def name(self) -> str:
        """The model's name, as the journal keeps it."""

    async def prepare(self, log_probabilities: bool = True) -> dict[str, str]:
        """Make ready, and return facts that decide what is asked and how, for the journal.

        Whether log-probabilities will be asked for, by `choose` and `read`, is said beforehand: a
        server that cannot give them may still write.
        """

    async def choose(self, prompt: str, options: Sequence[str]) -> Chosen:
        """Return the log-probability of each option (" A", " B" …) after the prompt."""

    async def read(self, prompt: str, continuation: str) -> Read:
        """Return the log-probability of a continuation of the prompt."""

    async def write(self, prompt: str, stop: Sequence[str], most: int) -> Written:
        """Let the model go on from the prompt, without chance, for at most `most` tokens."""

    async def close(self) -> None:
        """Give back connections and memory."""
