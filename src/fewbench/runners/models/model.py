"""The protocol of language models, with results and errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Usage:
    """Tokens and requests that a call used; `model` answered, if another one than asked."""

    prompt: int = 0
    completion: int = 0
    requests: int = 1
    model: str = ""

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.requests + other.requests,
            self.model or other.model,
        )


@dataclass(frozen=True)
class Chosen:
    """Log-probabilities of the options as continuations of a prompt.

    An option that the model did not report has negative infinity. If all options have, the model
    chose none.
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
    """Text that the model wrote; `kind` says if it is cut (see `fewbench.scores.replies`)."""

    text: str
    usage: Usage
    kind: str = ""


class TryAgain(Exception):
    """A call failed, but another try may succeed: no connection, busy server, broken reply.

    `after` is the wait in seconds that the server asked for, `status` its HTTP error status.
    """

    def __init__(self, reason: str, after: float | None = None, status: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.after = after
        self.status = status


class NoReply(TryAgain):
    """Nothing came back: no connection, or not in time."""


class TooLong(Exception):
    """The prompt does not fit into the model's context."""


class Model(Protocol):
    """A language model.

    Each method makes one attempt (of one or more requests). It raises TryAgain if another attempt
    may succeed, TooLong if the prompt does not fit, and ModelError otherwise: no such model, no
    permission, or a server that cannot do it.
    """

    @property
    def name(self) -> str:
        """The model's name in the journal."""

    async def prepare(self, log_probabilities: bool = True) -> dict[str, str]:
        """Get ready, and return facts for the journal on how the model is asked.

        `log_probabilities` says whether `choose` or `read` will be called: a server that cannot
        give log-probabilities may still write.
        """

    async def choose(self, prompt: str, options: Sequence[str]) -> Chosen:
        """Return the log-probability of each option (" A", " B" …) after the prompt."""

    async def read(self, prompt: str, continuation: str) -> Read:
        """Return the log-probability of a continuation of the prompt."""

    async def write(self, prompt: str, stop: Sequence[str], most: int) -> Written:
        """Let the model continue the prompt without sampling, for at most `most` tokens."""

    async def close(self) -> None:
        """Release connections and memory."""
