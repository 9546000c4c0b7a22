"""Models behind a server with OpenAI's interface: vLLM, llama.cpp, SGLang or OpenAI."""

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
from fewbench.scores.replies import KINDS

Scoring = Literal["auto", "top", "echo"]
MOST_STOPS = 4  # OpenAI takes no more


class Endpoint:
    r"""A model behind a server with OpenAI's interface, by the `openai` package.

    There are two ways to log-probabilities. "top" asks for one token and the most likely tokens
    there, and looks up the options: one short request per question, which a prefix cache speeds
    up. It works only for options of one token; an option that is not listed stays unknown (it is
    less likely than all listed tokens). "echo" asks for the log-probabilities of prompt and
    option: exact for any continuation, with one prompt per option. "auto" uses "top" if the server
    lists tokens, and "echo" for longer continuations and if no option was listed.

    `prepare` or the first question finds out what the server can do, with a few short requests.
    The result depends on the server alone, so a resumed run asks in the same way.

    Parameters
    ----------
    url : str
        The server's address, as http://localhost:8000/v1.
    model : str
        The model's name on the server.
    key : str, optional
        The server's key (default: OPENAI_API_KEY); local servers need none.
    timeout : float
        Seconds until a request is given up.
    chat : bool
        Whether `write` sends the prompt as a chat message or as plain text.
    scoring : {"auto", "top", "echo"}
    tries : int
        Tries of a request in `prepare` that the server rejects, as with status 429.
    rate : float, optional
        Most requests per minute in `prepare`.

    Raises
    ------
    MissingExtraError
        If the `openai` package is not installed.
    ModelError
        If the address or the scoring is not valid.

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
            raise ModelError(f"unknown scoring {scoring!r}", hint="use auto, top or echo")
        if timeout <= 0:
            raise ModelError(f"a timeout of {timeout} seconds", hint="give more than 0")
        self.chat = chat
        self.scoring = scoring
        key = key or os.environ.get("OPENAI_API_KEY")
        self._server = Connection(url, model, key=key, timeout=timeout)
        self._tries, self._rate = tries, rate
        self._lock = asyncio.Lock()
        self._facts: dict[str, str] | None = None
        self._top: Top | None = None
        self._echo: Echo | None = None
        self._why = {"top": "", "echo": ""}  # why the server lacks that way, in its words

    def __repr__(self) -> str:
        return f"Endpoint({self._server.url!r}, {self.name!r}, scoring={self.scoring!r})"

    @property
    def name(self) -> str:
        """The model's name on the server."""
        return self._server.model

    async def prepare(self, log_probabilities: bool = True) -> dict[str, str]:
        """Find out once how the server gives log-probabilities.

        Without `log_probabilities`, only one token is written, to detect a wrong address or name.

        Returns
        -------
        dict
            Facts for the journal. "scoring": top+echo, top, echo or none; "listed": how many
            tokens the server is asked to list (both only with log-probabilities); "root" and
            "max_model_len" of the model if the server reports them.

        Raises
        ------
        ModelError
            If the server cannot be asked, or not with the given scoring.
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
                await self.write(PROBE, [], 1)  # detects a wrong address or name
            if self.scoring not in {"auto", *ways}:
                raise self._cannot(self.scoring)
            served = await what_is_told(self._server)
            self._top, self._echo = top, echo
            listed = str(top.listed if top else 0)
            self._facts = {"scoring": "+".join(ways) or "none", "listed": listed} | served
        return dict(self._facts)

    async def choose(self, prompt: str, options: Sequence[str]) -> Chosen:
        """Return the log-probability of each option after the prompt."""
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
        """Return the log-probability of a continuation; the server must echo prompts."""
        await self.prepare()
        if self._echo is None:
            raise self._cannot("echo")
        ((value, tokens),), usage = await self._echo.read(prompt, [continuation])
        return Read(value, tokens, usage)

    async def write(self, prompt: str, stop: Sequence[str], most: int) -> Written:
        """Let the model write at most `most` tokens, up to the first of the texts in `stop`.

        A chat reply may begin with blank lines. They are skipped, so the server does not get the
        stop texts.
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
        kind = KINDS.get(str(choice.get("finish_reason")), "")
        if text is None and isinstance(said, dict) and kind:
            text = ""  # the model was still thinking, or all was filtered
        if not isinstance(text, str):
            raise TryAgain("the reply has no text")
        text = text.lstrip() if self.chat else text
        for end in filter(None, stop):
            text, found, _ = text.partition(end)
            kind = "" if found else kind
        return Written(text, usage_of(reply), kind)

    async def close(self) -> None:
        """Close the connections."""
        await self._server.close()

    def _cannot(self, way: str) -> ModelError:
        said = f": it {self._why[way]}" if self._why[way] else ""
        if way == "top":
            return ModelError(
                f"{self._server} does not list the most likely tokens{said}",
                hint="use --metric exact-match, or a server with log-probabilities, as vLLM",
            )
        return ModelError(
            f"{self._server} does not echo prompts with log-probabilities{said}",
            hint="measure accuracy by letters, or exact match, or use another server, as vLLM",
        )
