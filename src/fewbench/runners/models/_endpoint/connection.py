"""One server and one of its models, asked over the `openai` package."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from fewbench.errors import MissingExtraError, ModelError, first_line
from fewbench.runners.models._endpoint.refusals import Refused, refusal
from fewbench.runners.models._endpoint.replies import parse_reply
from fewbench.runners.models.model import TryAgain

LOCAL = {"localhost", "127.0.0.1", "::1"}
NO_KEY = "none"  # the package wants one, and servers without keys take any
FIRST, LONGEST = 0.5, 30.0  # seconds before a second try while it is tried out, and at most
TURNED_AWAY = "ask more slowly with --rate, be more patient with --tries, or wait for the quota"
BUSY = "see the server's log; a server that is still loading needs time, or more --tries"
ABOUT = ("root", "max_model_len")  # what vLLM and SGLang tell of a model


class Connection:
    """A server's address and a model there; each request is made once.

    Parameters
    ----------
    url : str
        Address, as http://localhost:8000/v1.
    model : str
        The model's name on the server.
    key : str, optional
    timeout : float
        Seconds until a request is given up, all in all.

    Raises
    ------
    ModelError
        If the address is none.
    MissingExtraError
        If the `openai` package is not installed.
    """

    def __init__(self, url: str, model: str, *, key: str | None, timeout: float) -> None:
        self.url, host = _checked(url)
        self.model = model
        self._key = key
        self._timeout = timeout
        self._tries, self._pause = 1, 0.0  # while the server is tried out; see `trying_out`
        self._next = 0.0  # when the next request may be made then
        self._openai = _package()
        # a proxy of the environment is not for servers on this machine
        http = self._openai.DefaultAsyncHttpxClient(trust_env=False) if host in LOCAL else None
        self._client = self._openai.AsyncOpenAI(
            base_url=self.url,
            api_key=key or NO_KEY,
            timeout=timeout,
            max_retries=0,
            http_client=http,
        )

    def __str__(self) -> str:
        return f"{self.url} ({self.model})"

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Ask once, and return the reply's JSON object.

        Raises
        ------
        TryAgain, TooLong, ModelError
            As the protocol of models says.
        """
        made = self._client.chat.completions if "chat" in path else self._client.completions

        def call() -> Any:
            return made.with_raw_response.create(model=self.model, **body)

        return parse_reply(await self._patiently(call))

    async def about(self) -> dict[str, str]:
        """What the server tells of the model; nothing where it has no list of models.

        Raises
        ------
        TryAgain, ModelError
            As the protocol of models says.
        """
        entry = await self.listed() or {}
        return {name: str(entry[name]) for name in ABOUT if entry.get(name)}

    async def listed(self) -> dict[str, Any] | None:
        """The model's entry in the server's list of models; None without one.

        Raises
        ------
        TryAgain, ModelError
            As the protocol of models says.
        """
        try:
            reply = parse_reply(await self._text(self._client.models.with_raw_response.list))
        except Refused as error:
            if error.final:
                raise
            return None
        listed = reply.get("data")
        for entry in listed if isinstance(listed, list) else []:
            if isinstance(entry, dict) and entry.get("id") == self.model:
                return entry
        return None

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    @contextmanager
    def trying_out(self, tries: int, rate: float | None) -> Iterator[None]:
        """Ask patiently while a server is tried out, where nobody else keeps its pace.

        A request that is turned away, as 429 does, is made again after as long as the server asks
        for, up to `tries` times; at most `rate` requests are made a minute. A 500 is left to the
        caller, for it may be the server's way to say that it cannot do this.
        """
        self._tries, self._pause = tries, 0.0 if rate is None else 60.0 / rate
        try:
            yield
        finally:
            self._tries, self._pause = 1, 0.0

    async def _patiently(self, call: Callable[[], Any]) -> str:
        failed = 0
        while True:
            try:
                return await self._text(call)
            except TryAgain as error:
                failed += 1
                if self._tries == 1 or error.status in {None, 500}:
                    raise
                if failed >= self._tries:
                    raise ModelError(
                        f"{self} answers {error.reason}, {failed} times in a row",
                        hint=TURNED_AWAY if error.status == 429 else BUSY,
                    ) from error
                backoff = min(FIRST * 2 ** (failed - 1), LONGEST)
                await asyncio.sleep(max(error.after or 0.0, backoff))

    async def _text(self, call: Callable[[], Any]) -> str:
        while (wait := self._next - time.monotonic()) > 0:
            await asyncio.sleep(wait)
        self._next = time.monotonic() + self._pause
        try:
            async with asyncio.timeout(self._timeout):
                reply = await call()
            return str(reply.text)
        except (TimeoutError, self._openai.APITimeoutError):
            raise TryAgain(f"no reply within {self._timeout:g} seconds") from None
        except self._openai.APIStatusError as error:
            raise self._refusal(error.response) from None
        except self._openai.APIConnectionError as error:
            cause = first_line(error.__cause__ or error)
            raise TryAgain(f"no connection, or it broke off: {cause}") from None
        except UnicodeDecodeError:
            raise TryAgain("the reply is not text") from None

    def _refusal(self, response: Any) -> Exception:
        text = response.text
        if self._key:
            text = text.replace(self._key, "(the key)")
        return refusal(response.status_code, text, response.headers, str(self))


def _checked(url: str) -> tuple[str, str]:
    """The address without a slash at its end, and its host."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in {"http", "https"}:
        raise ModelError(
            f"{url!r} is no address of a server", hint="give one as http://localhost:8000/v1"
        )
    if parts.username or parts.password:
        raise ModelError(
            "the address of the server holds a name or password", hint="give the key apart"
        )
    return url.rstrip("/"), host


def _package() -> ModuleType:
    try:
        import openai
    except ImportError:
        raise MissingExtraError(
            "models behind a server need the package openai",
            hint="pip install 'fewbench[endpoint]'",
        ) from None
    return openai
