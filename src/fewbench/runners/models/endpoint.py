"""Models behind any server with OpenAI's interface: vLLM, llama.cpp, SGLang, OpenAI itself."""

import asyncio
import math
import os
from collections.abc import Sequence
from typing import Any, Literal

from fewbench.errors import ModelError
from fewbench.runners.models.endpoint_scoring import (
    PROBE,
    Echo,
    Top,
    choices_of,
    find_echo,
    find_top,
    usage_of,
    what_is_told,
)
from fewbench.runners.models.endpoint_server import Connection
from fewbench.runners.models.model import Chosen, Read, TryAgain, Written

Scoring = Literal["auto", "top", "echo"]
MOST_STOPS = 4  # OpenAI takes no more


class Endpoint:
    r"""A model behind a server with OpenAI's interface, by the `openai` package.

    Log-probabilities come in two ways. "top" asks for one token and the most likely tokens there,
    and looks the options up among them: one short request a question, which servers can answer
    from a kept prefix, but only for options of one token, and an option that is not listed stays
    unknown (it is less likely than every listed one). "echo" asks for prompt and option to be
    given back with the log-probabilities of all their tokens: exact for any continuation, at one
    prompt an option. "auto" takes "top" where the server lists tokens, and "echo" for what "top"
    cannot do: continuations of more than one letter, and questions where no option was listed.

    Which ways a server has is found by `prepare`, with a few short requests, or by the first
    question. It follows from the server alone, so a resumed run asks as the first one did.

    Parameters
    ----------
    url : str
        The server's address, as http://localhost:8000/v1.
    model : str
        The model's name there.
    key : str, optional
        The server's key; else OPENAI_API_KEY from the environment; local servers need none.
    timeout : float
        Seconds until a request is given up.
    chat : bool
        Whether `write` asks in a chat, as one message of a user, or lets the model go on plainly.
    scoring : {"auto", "top", "echo"}
    tries : int
        Of a request that the server turns away, as with status 429, while `prepare` tries it out.
    rate : float, optional
        Most requests a minute then.

    Raises
    ------
    MissingExtraError
        If the `openai` package is not installed.
    ModelError
        If the address is none or the scoring unknown.

    Examples
    --------
    >>> endpoint = Endpoint("http://localhost:8000/v1", "my-model")  # doctest: +SKIP
    >>> asyncio.run(endpoint.choose("2 + 2 =\nA. 3\nB. 4\nAnswer:", [" A", " B"]))  # doctest: +SKIP
    Chosen(log_probabilities=(-2.1, -0.2), usage=Usage(prompt=14, completion=1, requests=1))
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str | None = None,
        timeout: float = 120.0,
        chat: bool = True,
        scoring: Scoring = "auto",
        tries: int = 8,
        rate: float | None = None,
    ) -> None:
        if scoring not in {"auto", "top", "echo"}:
            raise ModelError(f"unknown scoring {scoring!r}", hint="one of auto, top, echo")
        if timeout <= 0:
            raise ModelError(f"the timeout is {timeout} seconds", hint="give more than 0")
        self.chat = chat
        self.scoring = scoring
        key = key or os.environ.get("OPENAI_API_KEY")
        self._server = Connection(url, model, key=key, timeout=timeout)
        self._tries, self._rate = tries, rate
        self._lock = asyncio.Lock()
        self._facts: dict[str, str] | None = None
        self._top: Top | None = None
        self._echo: Echo | None = None
        self._why = {"top": "", "echo": ""}  # why the server has not that way, in its words

    def __repr__(self) -> str:
        return f"Endpoint({self._server.url!r}, {self.name!r}, scoring={self.scoring!r})"

    @property
    def name(self) -> str:
        """The model's name on the server."""
        return self._server.model

    async def prepare(self, log_probabilities: bool = True) -> dict[str, str]:
        """Find out how the server gives log-probabilities; what was found stays.

        Parameters
        ----------
        log_probabilities : bool
            Whether any will be asked for. If not, the server is asked for one token only, in the
            way of `write`, so that a wrong address or name is noticed.

        Returns
        -------
        dict
            Facts for the journal. "scoring": top+echo, top, echo or none; "listed": how many
            tokens the server is asked to list (both only if log-probabilities are); "root" and
            "max_model_len" of the model where the server tells.

        Raises
        ------
        ModelError
            If the server cannot be asked, or not in the way of scoring that was asked for.
        """
        async with self._lock:
            with self._server.trying_out(self._tries, self._rate):
                return await self._prepare(log_probabilities)

    async def _prepare(self, log_probabilities: bool) -> dict[str, str]:
        if not log_probabilities:
            await self.write(PROBE, [], 1)
            return await what_is_told(self._server)
        if self._facts is None:
            top, no_top = None, ""
            if self.scoring != "echo":
                top, no_top = await find_top(self._server)
            echo, no_echo = None, ""
            if self.scoring != "top":
                echo, no_echo = await find_echo(self._server)
            self._why = {"top": no_top, "echo": no_echo}
            ways = [name for name, way in (("top", top), ("echo", echo)) if way]
            if not ways:
                await self.write(PROBE, [], 1)  # a wrong address or name can do nothing
            if self.scoring not in {"auto", *ways}:
                raise self._cannot(self.scoring)
            served = await what_is_told(self._server)
            self._top, self._echo = top, echo
            listed = str(top.listed if top else 0)
            self._facts = {"scoring": "+".join(ways) or "none", "listed": listed} | served
        return dict(self._facts)

    async def choose(self, prompt: str, options: Sequence[str]) -> Chosen:
        """Return the log-probability of each option after the prompt, by one of the two ways."""
        await self.prepare()
        letters = all(len(option.strip()) == 1 for option in options)
        if self._top is None or not letters:
            if self._echo is None:
                raise self._cannot("echo" if self._top else "top")
            return await self._echo.choose(prompt, options)
        chosen = await self._top.choose(prompt, options)
        if self._echo and max(chosen.log_probabilities, default=0.0) == -math.inf:
            again = await self._echo.choose(prompt, options)
            return Chosen(again.log_probabilities, chosen.usage + again.usage)
        return chosen

    async def read(self, prompt: str, continuation: str) -> Read:
        """Return the log-probability of a continuation; only where the server echoes prompts."""
        await self.prepare()
        if self._echo is None:
            raise self._cannot("echo")
        ((value, tokens),), usage = await self._echo.read(prompt, [continuation])
        return Read(value, tokens, usage)

    async def write(self, prompt: str, stop: Sequence[str], most: int) -> Written:
        """Let the model go on for at most `most` tokens, up to the first of the texts in `stop`.

        A reply in a chat may begin with blank lines: they are passed over, and the server is not
        told where to stop.
        """
        body: dict[str, Any] = {"max_tokens": most, "temperature": 0, "seed": 0}
        if stop and not self.chat:
            body["stop"] = list(stop)[:MOST_STOPS]
        if self.chat:
            body["messages"] = [{"role": "user", "content": prompt}]
            reply = await self._server.post("/chat/completions", body)
        else:
            reply = await self._server.post("/completions", body | {"prompt": prompt})
        (choice,) = choices_of(reply, 1)
        said = choice.get("message") if self.chat else choice
        text = said.get("content" if self.chat else "text") if isinstance(said, dict) else None
        if text is None and isinstance(said, dict) and choice.get("finish_reason") == "length":
            text = ""  # a model that thinks first and came to no answer in `most` tokens
        if not isinstance(text, str):
            raise TryAgain("the reply has no text")
        text = text.lstrip() if self.chat else text
        for end in stop:
            text = text.partition(end)[0] if end else text
        return Written(text, usage_of(reply))

    async def close(self) -> None:
        """Close the connections."""
        await self._server.close()

    def _cannot(self, way: str) -> ModelError:
        said = f": it {self._why[way]}" if self._why[way] else ""
        if way == "top":
            return ModelError(
                f"{self._server} lists no most likely tokens with their log-probabilities{said}",
                hint="measure exact match, or use a server with log-probabilities, as vLLM",
            )
        return ModelError(
            f"{self._server} does not give a prompt back with its log-probabilities{said}",
            hint="measure accuracy by letters, or exact match, or use a server that does, as vLLM",
        )
