"""A page on the local machine that follows an evaluation: read-only, for one reader.

The server listens on the loopback address alone, answers only to a random token in the address,
takes nothing but GET, and refuses other host names, so that no web page can read it by tricks with
DNS. It serves two addresses, the page and its state, and no files.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from fewbench._names import counted
from fewbench.errors import FewbenchError
from fewbench.evaluation import Evaluation
from fewbench.evaluation.journal import ANSWERS, HEADER, Journal
from fewbench.scores import Scores
from fewbench.show.html import body_of, charts_of, render
from fewbench.show.page import Page

HOST = "127.0.0.1"
LARGEST = 100_000_000  # bytes of a file that is copied to be looked at
EVERY = 1.0  # seconds between looks at a folder
LIVE = "Live: updates as answers come."
OVER = "Finished: no more answers are expected."


class LivePage:
    """One page, served until it is closed.

    Parameters
    ----------
    port : int
        0 takes any free one.

    Raises
    ------
    FewbenchError
        If the port is not free.

    Examples
    --------
    >>> with LivePage() as page:
    ...     page.url.startswith("http://127.0.0.1:")
    True
    """

    def __init__(self, port: int = 0) -> None:
        self._token = secrets.token_urlsafe(24)
        self._lock = threading.Lock()
        self._page, self._state, self._version = "", b"", 0
        try:
            self._server = ThreadingHTTPServer((HOST, port), _handler(self))
        except OSError as error:
            raise FewbenchError(
                f"cannot serve on port {port}: {error.strerror}",
                hint="give another --port",
                kind="unreachable",
            ) from error
        self._server.daemon_threads = True
        self.wait("Waiting for the first answers.")
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address of the page, token included."""
        return f"http://{HOST}:{self._server.server_port}/{self._token}/"

    def wait(self, state: str) -> None:
        """Show a page without an estimate."""
        self.show(Page("estimate", "fewbench", state))

    def show(self, page: Page, status: str = LIVE) -> None:
        """Show a page, and whether it is going to change."""
        version = self._version + 1
        text = render(page, version, status)  # takes long
        state = {"version": version, "body": body_of(text), "status": status}
        with self._lock:
            self._version, self._page = version, text
            self._state = json.dumps(state | {"charts": charts_of(text)}).encode()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def answer(self, path: str, host: str | None) -> tuple[HTTPStatus, str, bytes]:
        """Return status, type and content for a request."""
        allowed = {f"{name}:{self._server.server_port}" for name in (HOST, "localhost")}
        parts = urlsplit(path)
        token, _, rest = parts.path.removeprefix("/").partition("/")
        if host not in allowed or not secrets.compare_digest(
            token.encode("utf-8", "replace"), self._token.encode()
        ):
            return HTTPStatus.FORBIDDEN, "text/plain", b"forbidden"
        with self._lock:
            if rest == "":
                return HTTPStatus.OK, "text/html; charset=utf-8", self._page.encode()
            if rest != "state":
                return HTTPStatus.NOT_FOUND, "text/plain", b"not found"
            asked = parse_qs(parts.query).get("after", ["0"])[0]
            if re.fullmatch(r"\d{1,12}", asked) and int(asked) >= self._version:
                return HTTPStatus.NO_CONTENT, "text/plain", b""
            return HTTPStatus.OK, "application/json", self._state


def _handler(page: LivePage) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """GET of the page and its state; all else is refused."""

        server_version, sys_version, timeout = "fewbench", "", 10

        def do_GET(self) -> None:
            self._send(*page.answer(self.path, self.headers.get("Host")))

        def _refuse(self) -> None:
            self._send(HTTPStatus.METHOD_NOT_ALLOWED, "text/plain", b"only GET")

        do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _refuse

        def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
            self.send_response(status)
            for name, value in (
                ("Content-Type", kind), ("Content-Length", str(len(content))),
                ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"),
                ("Referrer-Policy", "no-referrer"), ("X-Frame-Options", "DENY"),
            ):  # fmt: skip
                self.send_header(name, value)
            if status is HTTPStatus.METHOD_NOT_ALLOWED:
                self.send_header("Allow", "GET")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Requests are nobody's business."""

    return Handler


def view(
    folder: str | Path,
    scores: Scores | str | Path | None = None,
    *,
    level: float = 0.9,
    port: int = 0,
    on_ready: Callable[[str], None] | None = None,
    until: Callable[[], bool] = lambda: False,
) -> None:
    """Serve the page of an evaluation's estimates until interrupted; the folder is only read.

    Parameters
    ----------
    folder : path
        Folder of an evaluation or a run, at work or not.
    scores : Scores, path or str, optional
        The scores it was started with, or where they are now (default: read from their file).
    level : float
        Level of the intervals.
    port : int
        Port on the local machine; 0 takes any free one.
    on_ready : callable, optional
        Called with the address (default: prints it).
    until : callable, optional
        Asked every second whether to end.

    Raises
    ------
    EvaluationError, FewbenchError
        If the folder contains no evaluation, or the port is not free.
    """
    place = Path(folder)
    Journal(place).header()  # a folder without an evaluation is refused before anything is served
    history: dict[str, list[dict[str, Any]]] = {}
    with LivePage(port) as page, tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        for path in place.iterdir():
            if path.is_file() and path.stat().st_size < LARGEST and path.suffix != ".lock":
                shutil.copyfile(path, copy / path.name)
        evaluation = Evaluation.open(copy, scores)
        (print if on_ready is None else on_ready)(page.url)
        seen: object = None
        while not until():
            now = _stamp(place)
            if now != seen:
                seen = now
                try:
                    evaluation = _look(place, copy, evaluation, page, history, level)
                except FewbenchError as error:  # such as half a line, while another writes it
                    page.wait(f"{error.message}. The page looks again when the folder changes.")
            time.sleep(EVERY)


def _stamp(folder: Path) -> object:
    try:
        status = (folder / ANSWERS).stat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_size


def _look(
    folder: Path,
    copy: Path,
    before: Evaluation,
    page: LivePage,
    history: dict[str, list[dict[str, Any]]],
    level: float,
) -> Evaluation:
    """Show what a folder holds now, from a copy: estimating may write to where it reads.

    The new estimates join `history`, the earlier ones by target.
    """
    for name in (HEADER, ANSWERS):
        if (folder / name).exists():
            shutil.copyfile(folder / name, copy / name)
    evaluation = Evaluation.open(copy, before.scores)
    counts = evaluation.to_frame()
    names = [name for name in evaluation.targets if counts.loc[name, "answered"]]
    if not names:
        page.wait("Waiting for the first answers.")
        return evaluation
    estimates = evaluation.estimate(level, names, warn=False)
    for estimate in estimates.values():
        points = history.setdefault(estimate.target, [])
        if points and points[-1]["step"] == estimate.items_run:
            points.pop()
        ends = estimate.interval.model_dump()
        points.append({"step": estimate.items_run, "score": estimate.score, **ends})
    answered, asked = int(counts["answered"].sum()), int(counts["asked"].sum())
    is_over = len(evaluation.finished()) == len(evaluation.targets)
    state = f"{answered:,} of {max(asked, answered):,} asked items answered"
    if is_over:
        state = f"finished, {counted(answered, 'item')} answered"
    latest = estimates.page(evaluation, source=folder.name, folder=str(folder), history=history)
    page.show(replace(latest, command=f"estimate · {state}"), OVER if is_over else LIVE)
    return evaluation
