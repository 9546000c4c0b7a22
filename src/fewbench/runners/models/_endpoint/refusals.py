"""What a server's refusals mean: try again, too long, or no use."""

import json
import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from fewbench.errors import ModelError
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
