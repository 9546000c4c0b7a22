"""Fetch files of the Hub and other hosts: cached, resumed, and a few at a time.

A file has its own name only when it is whole. What is there is not fetched again.
"""

import hashlib
import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Self, TypeVar

from fewbench._files import naming, only_process
from fewbench._json import loads
from fewbench._memory import check_unpacked, most_unpacked
from fewbench._names import did_you_mean
from fewbench._progress import OnStep
from fewbench._version import __version__
from fewbench.errors import FewbenchError, MissingExtraError, PublicError, first_line

CONNECTIONS = 4  # at the same time
TRIES = 5
TRIES_OF_FILE = 3
BACKOFF = 1.0  # seconds before the second try; doubles with every try
LONGEST = 300  # seconds that a host may ask us to wait
TIMEOUT = (15.0, 30.0)  # seconds to connect and to wait for an answer
RETRIED = (408, 425, 429, 500, 502, 503, 504)
LIBRARY: dict[str, Any] = {"library_name": "fewbench", "library_version": __version__}
BLOCK = 1 << 23  # bytes of a request to the Hub
MOST_JSON = 0.1  # of what a file may unpack to: listings are short
NEXT = "run the command again: what was fetched is kept"
MOVED = (
    "the source has moved or removed the file; check its page, or pass another --revision if it "
    "has several"
)
GATED = (
    "log in with `hf auth login` or set HF_TOKEN, accept the terms on the dataset's page in a "
    "browser, and run the command again"
)

PRIVATE = "check the name; for a private one, log in with `hf auth login`"

T = TypeVar("T")
S = TypeVar("S")


class Misread(PublicError):
    """Content is not laid out as the source's reader expects."""


class Unreachable(PublicError):
    """A host that does not answer, or not now: unlike a missing file, a reason to stop."""

    seconds = 0.0  # that the host asks us to wait
    tries = TRIES


@dataclass(frozen=True)
class Remote:
    """A file at a host.

    Parameters
    ----------
    url : str
    path : str
        Where the file goes, below the cache folder of its source.
    size : int, optional
        Bytes, if the host lists them.
    digest : str
        `sha256:HEX` or `md5:HEX`; "" if unknown.
    is_at_hub : bool
        Whether huggingface_hub fetches the file, with its login.
    is_needed : bool
        Whether the other files mean nothing without this one.
    """

    url: str
    path: str
    size: int | None = None
    digest: str = ""
    is_at_hub: bool = False
    is_needed: bool = False

    def __post_init__(self) -> None:
        place = PurePosixPath(self.path)
        if place.is_absolute() or not place.parts or ".." in place.parts or "\0" in self.path:
            raise PublicError(f"{self.url}: the listing names the file {self.path!r}", hint=MOVED)
        if self.size is not None and not (type(self.size) is int and self.size >= 0):
            raise PublicError(f"{self.url}: the listing says the size {self.size!r}", hint=MOVED)
        if not self.url.startswith(("http://", "https://")):
            raise PublicError(f"the listing has the address {self.url!r}", hint=MOVED)


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Raise PublicError, with what to do, in place of what huggingface_hub and requests raise."""
    import httpx2
    import requests
    from huggingface_hub import errors

    kinds: tuple[tuple[Any, str, str], ...] = (
        (errors.GatedRepoError, "the dataset's terms are not accepted", GATED),
        (errors.RepositoryNotFoundError, "no such dataset repository, or it is private", PRIVATE),
        (errors.OfflineModeIsEnabled, "HF_HUB_OFFLINE is set", "unset it to fetch results"),
        (errors.HFValidationError, "not a dataset repository", "as in hub:ORG/DATASET"),
    )
    cut = requests.exceptions.ChunkedEncodingError
    down = (requests.ConnectionError, requests.Timeout, cut, httpx2.TransportError)
    try:
        yield
    except Exception as error:
        for kind, what, hint in kinds:
            if isinstance(error, kind):
                raise PublicError(f"{where}: {what}", hint=hint) from error
        if not isinstance(error, requests.RequestException | httpx2.HTTPError | httpx2.InvalidURL):
            raise
        if (response := getattr(error, "response", None)) is not None:
            raise refusal(where, response) from error
        if isinstance(error, down):
            reason = first_line(getattr(error.args[0] if error.args else "", "reason", error))
            message = f"{where}: the connection failed ({reason.partition('): ')[2] or reason})"
            failed = Unreachable(message, hint=f"check the network; then {NEXT}")
            failed.tries = 3 if isinstance(error, httpx2.ConnectError) else TRIES
            raise failed from error
        message = f"{where}: cannot be fetched ({first_line(error)})"
        raise PublicError(message, hint=MOVED) from error


def refusal(where: str, response: Any) -> PublicError:
    """Return the error of an HTTP status, from 400."""
    status, headers = response.status_code, response.headers
    if status in (403, 429) and headers.get("X-RateLimit-Remaining") == "0":
        hint = "set GITHUB_TOKEN to a personal access token, or wait for an hour"
        return Unreachable(f"{where}: the host's limit of requests is reached", hint=hint)
    if status in RETRIED or (status == 403 and "Retry-After" in headers):
        seconds = _pause(headers)
        asks = f"; it asks for a pause of {seconds / 60:,.0f} minutes" if seconds > LONGEST else ""
        busy = Unreachable(f"{where}: the host is busy (HTTP {status}){asks}", hint=NEXT)
        busy.seconds = seconds
        return busy
    if status in (401, 403):
        return PublicError(f"{where}: access is refused (HTTP {status})", hint=GATED)
    if status in (404, 410):
        return PublicError(
            f"{where}: no such file or revision (HTTP {status})", hint=MOVED, kind="missing"
        )
    return PublicError(f"{where}: HTTP {status}", hint=MOVED)


def _pause(headers: Any) -> float:
    from huggingface_hub import utils

    limit = utils.parse_ratelimit_headers(headers)  # type: ignore[attr-defined]
    if limit is not None and not limit.remaining:
        return float(limit.reset_in_seconds)
    seconds = str(headers.get("Retry-After", ""))
    return float(seconds) if seconds.isdecimal() else 0.0


class Fetcher:
    """Requests to public hosts, a few at a time; use it in a `with` block.

    Parameters
    ----------
    progress : callable, optional
        Called with (done, all) megabytes while files are fetched.

    Raises
    ------
    MissingExtraError
        If huggingface_hub or requests is not installed.
    """

    def __init__(self, progress: OnStep | None = None) -> None:
        try:
            import huggingface_hub
            import requests
        except ImportError as error:
            raise MissingExtraError(
                "fetching public results needs huggingface_hub and requests",
                hint="pip install 'fewbench[hub]'",
            ) from error
        from urllib3.util import Retry

        for logger in ("urllib3.connectionpool", "huggingface_hub"):
            logging.getLogger(logger).setLevel("ERROR")  # what fails in the end is reported once
        self.hub = huggingface_hub.HfApi(endpoint=os.environ.get("HF_ENDPOINT"), **LIBRARY)
        retries = Retry(
            *(TRIES, 2),
            status_forcelist=RETRIED,
            backoff_factor=BACKOFF,
            retry_after_max=LONGEST,
            raise_on_status=False,
        )
        self._session = requests.Session()
        self._session.headers["User-Agent"] = f"fewbench/{__version__}"
        for scheme in ("http://", "https://"):
            adapter = requests.adapters.HTTPAdapter(CONNECTIONS, CONNECTIONS, retries)
            self._session.mount(scheme, adapter)
        self.progress = progress
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._done = 0
        self._total = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stopped.set()
        self._session.close()

    def ask_hub(self, call: Callable[[], T], where: str) -> T:
        """Return what a call of the Hub returns; PublicError if it fails, or after the last try."""
        for number in range(TRIES):
            try:
                with explained(where):
                    return call()
            except Unreachable as error:
                pause = error.seconds or BACKOFF * 2**number
                if number + 1 >= error.tries or pause > LONGEST or self._stopped.wait(pause):
                    raise
            except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
                what = f"{where}: not an answer of the Hub ({first_line(error)})"
                raise PublicError(what, hint=MOVED) from error
        raise AssertionError("unreachable")

    def json(self, url: str, headers: dict[str, str] | None = None) -> Any:
        """Return a JSON document, such as a listing.

        Raises
        ------
        PublicError
            If the host refuses it or does not answer, or it is not JSON.
        """
        most = int(most_unpacked(0) * MOST_JSON)
        with self._reply(url, headers) as response, explained(url):
            content = _within(response.iter_content(1 << 16), most, url)
        try:
            return loads(content)
        except ValueError as error:
            raise PublicError(f"{url}: not JSON ({first_line(error)})", hint=MOVED) from error

    def read_hub(self, remote: Remote, start: int = 0, end: int | None = None) -> bytes:
        """Return a range of bytes of a file at the Hub, by default all; raises as `fetch`."""
        import huggingface_hub

        utils: Any = huggingface_hub.utils
        end = (remote.size or 0) if end is None else end
        asked = {"Range": f"bytes={start}-{max(end, 1) - 1}", "Accept-Encoding": "identity"}
        headers = utils.build_hf_headers(**LIBRARY, headers=asked)
        timeout = huggingface_hub.constants.HF_HUB_DOWNLOAD_TIMEOUT

        def get() -> bytes:
            given = {"headers": headers, "timeout": timeout}
            with utils.get_session().stream("GET", remote.url, **given) as response:
                utils.hf_raise_for_status(response)
                return _within(response.iter_raw(), end - start, remote.url)

        return self.ask_hub(get, remote.url)

    def each(self, work: Callable[[S], T], what: Sequence[S]) -> list[T]:
        """Return `work` of each, a few at a time; the first error stops the others."""
        pool = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="fewbench-get")
        try:
            futures = [pool.submit(work, part) for part in what]
            finished, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in futures:
                if future in finished and (error := future.exception()) is not None:
                    raise error
            return [future.result() for future in futures]
        except BaseException:  # Ctrl-C too: running downloads end after their next block
            self._stopped.set()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def fetch(self, remotes: Sequence[Remote], folder: Path) -> dict[str, PublicError]:
        """Download files into a folder, unless they are there.

        Returns why files are missing, by path: they do not exist, or are not what the listing
        promises. The others are fetched.

        Raises
        ------
        PublicError
            If a host does not answer, or a needed file or all files are missing.
        """
        missing: dict[str, PublicError] = {}

        def fetch_one(remote: Remote) -> None:
            try:
                self._fetch(remote, folder)
            except Unreachable:
                raise
            except PublicError as error:
                if remote.is_needed or len(remotes) == 1:
                    raise
                missing[remote.path] = error

        folder.mkdir(parents=True, exist_ok=True)
        busy = f"{folder}: another fewbench get is downloading into this folder"
        with only_process(folder / ".lock", busy):
            left = [remote for remote in remotes if not is_there(remote, folder)]
            self._total = sum(remote.size or 0 for remote in remotes)
            self._done = self._total - sum(remote.size or 0 for remote in left)
            self._report(0)
            self.each(fetch_one, left)
        if missing and len(missing) == len(remotes):
            raise next(iter(missing.values()))
        return missing

    def _report(self, more: int) -> None:
        with self._lock:
            self._done += more
            done, total = self._done, max(self._done, self._total)
        if self.progress is not None:
            self.progress(done // 10**6, -(-total // 10**6))
        if self._stopped.is_set():
            raise Unreachable("stopped", hint=NEXT)

    def _fetch(self, remote: Remote, folder: Path) -> None:
        """Download a file; of the Hub, go on where an earlier run of the same file stopped."""
        target = folder / remote.path
        target.parent.mkdir(parents=True, exist_ok=True)
        version = hashlib.sha256(f"{remote.url}{remote.digest}".encode()).hexdigest()[:12]
        part = target.with_name(f"{target.name}.{version}.part")
        with naming(target), explained(remote.url):
            try:
                self._fill(part, remote)
            except BaseException:
                if part.is_file() and not part.stat().st_size:  # the file is not there, say
                    part.unlink()
                raise
        with part.open("rb") as file:
            kind, _, digest = remote.digest.partition(":")
            is_same = not digest or hashlib.file_digest(file, kind).hexdigest() == digest
        if not is_same or (remote.is_at_hub and part.stat().st_size != remote.size):
            part.unlink()
            what = "the file has a different size or checksum than its source lists"
            raise PublicError(f"{remote.url}: {what}", hint=NEXT)
        part.replace(target)

    def _fill(self, part: Path, remote: Remote) -> None:
        for left in reversed(range(TRIES_OF_FILE)):
            try:
                with part.open("ab" if remote.is_at_hub else "wb") as file:
                    self._report(file.tell())
                    for block in self._blocks(remote, file.tell()):
                        file.write(block)
                        self._report(len(block))
                break
            except OSError as error:  # of requests: the connection was cut amid the file
                if not left or error.errno is not None:
                    raise

    def _blocks(self, remote: Remote, start: int) -> Iterator[bytes]:
        """Yield what is left of a file from a byte on; of hosts but the Hub, all of it."""
        if remote.is_at_hub:
            while start < (remote.size or 0):
                block = self.read_hub(remote, start, min(start + BLOCK, remote.size or 0))
                if not block:
                    return
                yield block
                start += len(block)
            return
        with self._reply(remote.url) as response:  # some hosts pack replies
            for block in response.iter_content(1 << 16):
                start += len(block)
                check_unpacked(start, remote.url, start if remote.size is None else remote.size)
                yield block

    def _reply(self, url: str, headers: dict[str, str] | None = None) -> Any:
        with explained(url):
            response = self._session.get(url, headers=headers, stream=True, timeout=TIMEOUT)
            response.raise_for_status()
            return response


def _within(blocks: Iterable[bytes], most: int, where: str) -> bytes:
    """Return the blocks of a reply as one; PublicError once they are more than `most` bytes."""
    content = bytearray()
    for block in blocks:
        content += block
        if len(content) > most:
            raise PublicError(
                f"{where}: the host sends more than the {most:,} bytes that were expected",
                hint=MOVED,
                kind="limit",
            )
    return bytes(content)


def is_there(remote: Remote, folder: Path) -> bool:
    """Whether a file was fetched before."""
    return (folder / remote.path).is_file()


@contextmanager
def laid_out(path: Path | str) -> Iterator[None]:
    """Name a file whose content is not laid out as its source promises."""
    try:
        yield
    except (FewbenchError, MemoryError):
        raise
    except Exception as error:  # malformed JSON or YAML can raise any of these
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the disk
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise Misread(
            f"{path}: not laid out as this source does ({reason})",
            hint="the source may have changed; delete the file to fetch it again, or pass an older "
            "--revision",
        ) from error


def sampled(names: Iterable[str], wanted: int | Sequence[str] | None) -> list[str]:
    """Return a fixed random sample of names, or those that are wanted, in order.

    A larger sample contains a smaller one. A wanted name may leave out what is before the last
    `/` or `__`, so that MODEL is ORG/MODEL and ORG__MODEL; case does not count.

    Raises PublicError if none of the wanted names is there.

    Examples
    --------
    >>> sampled(["a", "b", "c", "d"], 2), sampled(["a", "b", "c", "d"], 3)
    (['c', 'd'], ['b', 'c', 'd'])
    >>> sampled(["details_lab__m3", "details_lab__m30"], ["M3"])
    ['details_lab__m3']
    """
    every = sorted(set(names))
    if wanted is None:
        return every
    if isinstance(wanted, int):
        if wanted >= len(every):
            return every
        by_hash = sorted(every, key=lambda name: hashlib.sha256(name.encode()).digest())
        return sorted(by_hash[:wanted])
    matches = {name for meant in named_among(every, wanted).values() for name in meant}
    if every and not matches:
        raise PublicError(
            f"none of the {len(wanted)} models named is there, such as {wanted[0]!r}",
            hint=did_you_mean(wanted[0], every, "write MODEL or ORG/MODEL, as the source does"),
        )
    return sorted(matches)


def named_among(names: Sequence[str], wanted: Sequence[str]) -> dict[str, list[str]]:
    """Return the names that each wanted name means (see `sampled`), none if it is not there."""
    by_end: dict[str, list[str]] = {}
    for name in names:
        parts = name.lower().replace("__", "/").split("/")
        ends = {"/".join(parts[at:]) for at in range(len(parts))}
        ends |= {end.removeprefix("details_") for end in ends}
        for end in ends:
            by_end.setdefault(end, []).append(name)
    return {asked: by_end.get(asked.lower().replace("__", "/"), []) for asked in wanted}
