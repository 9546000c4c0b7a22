"""One server and one of its models: requests over the `openai` package, and what refusals mean."""

import asyncio
import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from fewbench.errors import MissingExtraError, ModelError, first_line
from fewbench.runners.models.model import TooLong, TryAgain

PASSING = {408, 409, 425, 429}
# how vLLM, llama.cpp, SGLang, TGI and OpenAI say that a prompt does not fit
TOO_LONG = re.compile(
    r"context[ _](length|size|window)|maximum (model|context) length|max_model_len"
    r"|prompt (is|contains)[^.]* too (long|many)|longer than the (model|maximum)"
    r"|exceeds the maximum allowed length|must be <= \d+\. given|too many (input )?tokens",
    re.IGNORECASE,
)
MOST = 200  # characters of a server's words that are shown


class Refused(ModelError):
    """A refusal for good.

    `final` says that it is about the key or the model's name, so that no other way of asking helps;
    `missing` that it is about the name, in words that some servers use where a model takes chats
    only.
    """

    def __init__(self, message: str, *, hint: str, final: bool, missing: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.final, self.missing = final, missing


class ServerError(TryAgain):
    """An error within the server: it may pass, or be its way to say that it cannot do this."""


def refusal(status: int, text: str, headers: Mapping[str, str], where: str) -> Exception:
    """Return the exception that a reply with an error status stands for.

    Parameters
    ----------
    status : int
        HTTP status, 300 or above.
    text : str
        The reply's body.
    headers : mapping
        The reply's headers, with names in lower case.
    where : str
        Whom the message is about: the server's address and the model.
    """
    words, code = _words(text)
    said = f"{where} answers {status}" + (f": {words[:MOST]}" if words else "")
    if status == 413 or (400 <= status < 500 and status != 429 and TOO_LONG.search(words + code)):
        return TooLong(said)
    if code == "insufficient_quota":
        return Refused(said, hint="the account has no credit left", final=True)
    passing = f"{status}" + (f": {words[:MOST]}" if words else "")
    if status == 500:
        return ServerError(passing, _wait(headers), status)
    if status in PASSING or (status >= 500 and status not in {501, 505}):
        return TryAgain(passing, _wait(headers), status)
    missing = status == 404 and "model" in (words + code).lower()
    return Refused(said, hint=_hint(status), final=status in {401, 403} or missing, missing=missing)


def parse_reply(text: str) -> dict[str, Any]:
    """Return a reply's JSON object; raise TryAgain if it is none, or tells of an error."""
    try:
        reply = json.loads(text)
    except ValueError:
        raise TryAgain("the reply is not JSON, or was cut") from None
    if not isinstance(reply, dict):
        raise TryAgain("the reply is not a JSON object")
    if reply.get("error"):
        raise TryAgain(f"the reply tells of an error: {str(reply['error'])[:200]}")
    return reply


def _hint(status: int) -> str:
    if status == 401:
        return "give the server's key, or set OPENAI_API_KEY"
    if status == 403:
        return "the key does not permit this"
    if status in {404, 405}:
        return (
            "check the model's name and the address, which usually ends in /v1; a server of chat "
            "only cannot be asked for log-probabilities"
        )
    return "the server does not take the request; asking again is no use"


def _words(text: str) -> tuple[str, str]:
    """The message and the code in an error's body, in whichever form."""
    try:
        body = json.loads(text)
    except ValueError:
        return " ".join(re.sub(r"<[^>]*>", " ", text).split()), ""
    found = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(found, dict):
        return " ".join(str(found).split()), ""
    words = found.get("message") or found.get("detail") or found.get("error") or ""
    return " ".join(str(words).split()), str(found.get("code") or found.get("type") or "")


def _wait(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait; None if it does not say."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        said = headers.get(name)
        if said is None:
            continue
        try:
            seconds = float(said) / unit
        except ValueError:
            try:
                seconds = parsedate_to_datetime(said).timestamp() - time.time()
            except ValueError:
                continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return None


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
