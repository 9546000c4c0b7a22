"""Requests to a server by the `openai` package, and the meaning of its refusals."""

import asyncio
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from fewbench._json import loads
from fewbench._text import keep_secrets, masked
from fewbench.errors import MissingExtraError, ModelError, first_line
from fewbench.runners.models.model import NoReply, TooLong, TryAgain

PASSING = {408, 409, 425, 429}
# messages of vLLM, llama.cpp, SGLang, TGI and OpenAI for a prompt that does not fit
TOO_LONG = re.compile(
    r"context[ _](length|size|window)|maximum (model|context) length|max_model_len"
    r"|prompt (is|contains)[^.]* too (long|many)|longer than the (model|maximum)"
    r"|exceeds the maximum allowed length|must be <= \d+\. given|too many (input )?tokens",
    re.IGNORECASE,
)
OTHER = "other model"
"""Key under which a reply holds the name of the model that wrote it, if another one was asked."""
LONGEST_WAIT = 300.0  # seconds that a server may ask us to wait
MOST = 200  # characters of a server's message to show


class Refused(ModelError):
    """A permanent refusal.

    `final`: about the key or the model's name, so another kind of request does not help. `missing`:
    about the name, which some servers also report for a model that only takes chats.
    """

    def __init__(self, message: str, *, hint: str, final: bool, missing: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.final, self.missing = final, missing


class ServerError(TryAgain):
    """An error inside the server: temporary, or a sign that it cannot do this."""


def refusal(status: int, text: str, headers: Mapping[str, str], where: str) -> Exception:
    """Return the exception for an error reply of `where`, the server and model in messages.

    `status` is the HTTP status, 300 or above; `headers` have lower-case names.
    """
    words, code = _words(text)
    passing = f"{status}" + (f": {words[:MOST]}" if words else "")
    said = f"{where} answers {passing}"
    if status == 413 or (400 <= status < 500 and status != 429 and TOO_LONG.search(words + code)):
        return TooLong(said)
    if code == "insufficient_quota":
        return Refused(said, hint="add credit to the account", final=True)
    if status in PASSING or (status >= 500 and status not in {501, 505}):
        wait = _wait(headers)
        if wait is not None and wait > LONGEST_WAIT:
            said += f" and asks for a pause of {wait / 60:,.0f} minutes"
            return Refused(said, hint="run the same command again then, to go on", final=True)
        return (ServerError if status == 500 else TryAgain)(passing, wait, status)
    missing = status == 404 and "model" in (words + code).lower()
    return Refused(said, hint=_hint(status), final=status in {401, 403} or missing, missing=missing)


def parse_reply(text: str) -> dict[str, Any]:
    """Return a reply's JSON object; raise TryAgain if it is none or reports an error."""
    try:
        reply = loads(text)
    except ValueError:
        raise TryAgain("the reply is not JSON, or was cut") from None
    if not isinstance(reply, dict):
        raise TryAgain("the reply is not a JSON object")
    if reply.get("error"):
        raise TryAgain(f"the reply reports an error: {str(reply['error'])[:MOST]}")
    return reply


def _hint(status: int) -> str:
    if status == 401:
        return "set OPENAI_API_KEY to the server's key"
    if status == 403:
        return "use a key that permits this"
    if status in {404, 405}:
        return (
            "check the model's name and the address, which usually ends in /v1; a chat-only server "
            "gives no log-probabilities"
        )
    return "the server does not accept this request; trying again does not help"


def _words(text: str) -> tuple[str, str]:
    """The message and the code in an error's body."""
    try:
        body = loads(text)
    except ValueError:
        return " ".join(re.sub(r"<[^>]*>", " ", text).split()), ""
    found = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(found, dict):
        return " ".join(str(found).split()), ""
    words = found.get("message") or found.get("detail") or found.get("error") or ""
    return " ".join(str(words).split()), str(found.get("code") or found.get("type") or "")


def _wait(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait; None if it does not."""
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
NO_KEY = "none"  # the package needs a key; servers without keys accept any
FIRST, LONGEST = 0.5, 30.0  # seconds before a second try in `trying_out`, and at most
TURNED_AWAY = "lower --rate, raise --retries, or wait for the quota"
BUSY = "see the server's log; if it is still loading, wait or raise --retries"
ABOUT = ("root", "max_model_len")  # reported by vLLM and SGLang


class Connection:
    """A model on a server; each request is made once.

    Raises
    ------
    ModelError
        If the address is not valid.
    MissingExtraError
        If the `openai` package is not installed.
    """

    def __init__(self, url: str, model: str, *, key: str | None, timeout: float) -> None:
        self.url, host = _checked(url)
        self.model = model
        keep_secrets({"api_key": key})
        self._timeout = timeout
        self._tries, self._pause = 1, 0.0  # see `trying_out`
        self._next = 0.0  # time of the next request
        self._openai = _package()
        # a proxy from the environment is not for local servers
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
        """Send one request and return the reply's JSON object; raise as `Model` does."""
        made = self._client.chat.completions if "chat" in path else self._client.completions

        def call() -> Any:
            return made.with_raw_response.create(model=self.model, **body)

        reply = parse_reply(await self._patiently(call))
        return reply | {OTHER: _other_model(self.model, reply.get("model"))}

    async def about(self) -> dict[str, str]:
        """Return what the server reports on the model; nothing without a list of models."""
        entry = await self.listed() or {}
        return {name: str(entry[name]) for name in ABOUT if entry.get(name)}

    async def listed(self) -> dict[str, Any] | None:
        """Return the model's entry in the server's list of models; None without one."""
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
        """Retry rejected requests (such as 429) until the block ends, and keep to the rate.

        A rejected request is repeated after the wait that the server asks for, up to `tries`
        times. A 500 is left to the caller: the server may mean that it cannot do this.
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
            return masked(str(reply.text))
        except (TimeoutError, self._openai.APITimeoutError):
            raise NoReply(f"no reply within {self._timeout:g} seconds") from None
        except self._openai.APIStatusError as error:
            text = masked(error.response.text)
            headers = error.response.headers
            raise refusal(error.response.status_code, text, headers, str(self)) from None
        except self._openai.APIConnectionError as error:
            cause = first_line(error.__cause__ or error)
            raise NoReply(f"no connection, or it broke off: {cause}") from None
        except UnicodeDecodeError:
            raise TryAgain("the reply is not text") from None


def _other_model(asked: str, said: object) -> str:
    """Return the model that a reply names, if it is not the one asked for, or a dated version.

    >>> _other_model("gpt-4o", "gpt-4o-2024-08-06"), _other_model("gpt-4o", "gpt-4o-mini")
    ('', 'gpt-4o-mini')
    """
    if not isinstance(said, str) or re.fullmatch(rf"{re.escape(asked)}(-[\d-]+)?", said):
        return ""
    return said


def _checked(url: str) -> tuple[str, str]:
    """Return the address without a slash at its end, and its host."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in {"http", "https"}:
        raise ModelError(
            f"{url!r} is not the address of a server", hint="use the form http://localhost:8000/v1"
        )
    if parts.username or parts.password:
        raise ModelError(
            "the server's address contains a name or password", hint="set OPENAI_API_KEY instead"
        )
    return url.rstrip("/"), host


def _package() -> ModuleType:
    try:
        import openai
    except ImportError:
        raise MissingExtraError(
            "models behind a server need the package openai, which is not installed",
            hint="pip install 'fewbench[endpoint]'",
        ) from None
    return openai
