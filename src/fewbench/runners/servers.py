"""Servers with OpenAI's interface: checked before a run, and their own words when they fail."""

import ast
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from fewbench._text import masked_arguments
from fewbench.errors import RunError, first_line

PATIENCE = 10.0  # seconds to connect
PORTS = {"http": 80, "https": 443}
RAISED = re.compile(r"(\w+)\((.+)\)", re.DOTALL)  # an error as Inspect logs it: its repr
CAUSE = re.compile(r"^[\w.]+: (.+)$", re.MULTILINE)  # in a traceback: what an exception says


def check_address(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a server; RunError if the address has none."""
    try:
        parts = urlsplit(url)
        scheme, host = parts.scheme, parts.hostname or ""
        port = parts.port or PORTS[scheme]
        if not host:
            raise ValueError("it names no host")
    except (KeyError, ValueError) as error:
        raise RunError(
            f"{masked_arguments(url)!r} is not the address of a server",
            hint="give it as http://localhost:8000/v1",
        ) from error
    return scheme, host, port


def check_server(url: str) -> None:
    """Raise RunError if nothing accepts a connection there; behind a proxy nothing is checked."""
    scheme, host, port = check_address(url)
    if scheme in getproxies() and not proxy_bypass(host):
        return
    try:
        socket.create_connection((host, port), timeout=PATIENCE).close()
    except OSError as error:
        raise RunError(
            f"{masked_arguments(url)}: no server there: {error.strerror or error}",
            hint="start the server, or correct --url",
        ) from error


@contextmanager
def refusing_empty_replies() -> Iterator[None]:
    """Have Inspect fail with the server's words where a reply has an error in place of choices."""
    provider: Any = import_module("inspect_ai.model._providers.openai_compatible")
    plain = provider.OpenAICompatibleAPI.on_response

    def check(self: Any, response: dict[str, Any]) -> None:
        if not response.get("choices"):
            error = response.get("error") or "no choices and no error in the response"
            words = error.get("message") or error if isinstance(error, dict) else error
            raise RuntimeError(f"the server sent no reply: {words}")
        plain(self, response)

    provider.OpenAICompatibleAPI.on_response = check
    try:
        yield
    finally:
        provider.OpenAICompatibleAPI.on_response = plain


def in_words(message: str) -> str:
    r"""Return the first line of what an error says, masked.

    >>> in_words("RuntimeError('no sandbox\\nTraceback …')"), in_words("no reply")
    ('RuntimeError: no sandbox (the log has all of it)', 'no reply')
    """
    raised = RAISED.fullmatch(message.strip())
    with suppress(ValueError, SyntaxError):
        said = ast.literal_eval(raised[2]) if raised else None
        if raised and isinstance(said, str) and said.strip():
            more = " (the log has all of it)" if len(said.strip().splitlines()) > 1 else ""
            return f"{raised[1]}: {first_line(said)}{more}"
    return first_line(message)


def failure_of(sample: Any) -> str:
    """Return why a sample of Inspect failed, in the words of the server if it replied."""
    if not sample.error:
        return "the scorer gave no score"
    message = in_words(sample.error.message or "")
    if message.startswith("JSONDecodeError"):
        return f"the server's reply is not JSON: check the path of --url, as in /v1 ({message})"
    errors = [event for event in sample.events or [] if event.event == "model" and event.error]
    if not message.startswith("RetryError") or not errors:
        return message
    last = errors[-1]
    words = first_line(last.error)
    if words == "Connection error.":  # of the package openai: its cause has the details
        words += "".join(f" {cause}" for cause in CAUSE.findall(last.traceback or "")[:1])
    return words
