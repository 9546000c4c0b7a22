"""Fetch files over HTTP: resumable, checksummed, cached, and polite to the host.

A file is downloaded to NAME.part and renamed when its size and checksum are right, so a file with
its own name is always whole. A stopped download continues from NAME.part where the host allows it.
"""

import hashlib
import re
import shutil
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from fewbench._files import naming, only_process
from fewbench._json import loads
from fewbench._names import counted
from fewbench._version import __version__
from fewbench.errors import FewbenchError, MissingExtraError, PublicError, first_line

AGENT = f"fewbench/{__version__}"
CONNECTIONS = 4  # at the same time
TRIES = 6
BACKOFF = 1.0  # seconds before the second try; doubles with every try
LONGEST = 300.0  # seconds that a host may ask us to wait
RETRIED = {408, 425, 429, 500, 502, 503, 504}
CHUNK = 1 << 16
LARGEST_LISTING = 200 * 2**20
LARGEST_UNPACKED = 2 * 2**30
PART = ".part"
NEXT = "run the command again: finished files are kept and the others continue"
MOVED = (
    "the source has moved or removed the file; check its page, or pass another --revision if it "
    "has several"
)
GATED = (
    "log in with `hf auth login` or set HF_TOKEN, accept the terms on the dataset's page in a "
    "browser, and run the command again"
)

T = TypeVar("T")
S = TypeVar("S")
Progress = Callable[[int, int], None]


class Later(Exception):
    """A request that failed and may work later; `seconds` is what the host asks us to wait."""

    def __init__(self, reason: str, seconds: float | None = None, tries: int = TRIES) -> None:
        super().__init__(reason)
        self.seconds = seconds
        self.tries = tries


class Unreachable(PublicError):
    """A host that does not answer, or not now: unlike a missing file, a reason to stop."""


@dataclass(frozen=True)
class Remote:
    """A file at a host.

    Parameters
    ----------
    url : str
    path : str
        Where the file goes, below the cache folder of its source.
    size : int, optional
        Bytes, if the host's listing says so.
    digest : str
        `sha256:HEX`, `md5:HEX` or `git:HEX` (SHA-1 of a Git blob); "" if unknown. A file without a
        digest is never continued, as it may have changed since.
    headers : dict
        Headers of the request, such as a login.
    packed : bool
        Whether the host stores the file compressed, so that size and digest are of those bytes.
    """

    url: str
    path: str
    size: int | None = None
    digest: str = ""
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    packed: bool = False

    def __post_init__(self) -> None:
        place = PurePosixPath(self.path)
        if place.is_absolute() or not place.parts or ".." in place.parts or "\0" in self.path:
            raise PublicError(f"{self.url}: the listing names the file {self.path!r}", hint=MOVED)
        if self.size is not None and not (type(self.size) is int and self.size >= 0):
            raise PublicError(f"{self.url}: the listing says the size {self.size!r}", hint=MOVED)
        try:
            scheme = urlsplit(self.url).scheme
        except ValueError:
            scheme = ""
        if scheme not in ("http", "https"):
            raise PublicError(f"the listing has the address {self.url!r}", hint=MOVED)


def http() -> Any:
    """Return the HTTP library; MissingExtraError if it is not installed."""
    try:
        import httpx2
    except ImportError as error:
        raise MissingExtraError(
            "fetching public results needs huggingface_hub", hint="pip install 'fewbench[hub]'"
        ) from error
    return httpx2


@lru_cache(maxsize=1)
def _certificates() -> Any:
    """Return the system's certificates, which take long to read."""
    return http().create_ssl_context()


class Fetcher:
    """Requests to public hosts with retries and few connections; use it in a `with` block.

    Parameters
    ----------
    progress : callable, optional
        Called with (done, all) megabytes while files are fetched.
    """

    def __init__(self, progress: Progress | None = None) -> None:
        self._library = http()
        self._client = self._library.Client(
            headers={"User-Agent": AGENT},
            timeout=self._library.Timeout(30.0, connect=15.0),
            follow_redirects=True,
            verify=_certificates(),
        )
        self.progress = progress
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._not_before: dict[str, float] = {}  # by host, on the clock of time.monotonic
        self._done = 0
        self._total = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stopped.set()
        self._client.close()

    # -- requests ----------------------------------------------------------------------------

    def retried(self, attempt: Callable[[], T], what: str) -> T:
        """Call `attempt` until it stops raising `Later`; PublicError after the last try."""
        host = urlsplit(what).netloc
        for number in range(1, TRIES + 1):
            self._sleep(self._not_before.get(host, 0.0) - time.monotonic())
            try:
                return attempt()
            except self._library.TransportError as error:
                refused = isinstance(error, self._library.ConnectError)
                later = Later(f"the connection failed ({first_line(error)})", None, 3 * refused)
            except (self._library.RequestError, self._library.InvalidURL) as error:
                said = f"{what}: cannot be fetched ({first_line(error)})"
                raise PublicError(said, hint=MOVED) from error
            except Later as error:
                later = error
            asked = later.seconds or 0.0
            if asked > LONGEST:
                minutes = f"{asked / 60:,.0f} minutes"
                said = f"{what}: {later}; the host asks for a pause of {minutes}"
                raise Unreachable(said, hint=NEXT) from later
            if number >= (later.tries or TRIES):
                said = f"{what}: {later}, {counted(number, 'try', 'tries')}"
                raise Unreachable(said, hint=NEXT) from later
            if later.seconds is not None:  # the pause is for all requests to this host
                self._not_before[host] = time.monotonic() + later.seconds
            self._sleep(asked or BACKOFF * 2 ** (number - 1))
        raise AssertionError("unreachable")

    def _sleep(self, seconds: float) -> None:
        if self._stopped.wait(max(seconds, 0.0)):
            raise Unreachable("stopped", hint=NEXT)

    def get(self, url: str, headers: dict[str, str] | None = None) -> bytes:
        """Return a small document, such as a listing.

        Raises
        ------
        PublicError
            If the host refuses it, does not answer, or answers with too much.
        """

        def attempt() -> bytes:
            with self._client.stream("GET", url, headers=headers or {}) as response:
                check(response, url)
                said = bytearray()
                for block in response.iter_bytes():
                    said += block
                    if len(said) > LARGEST_LISTING:
                        raise PublicError(f"{url}: larger than any listing", hint=MOVED)
                return bytes(said)

        return self.retried(attempt, url)

    def json(self, url: str, headers: dict[str, str] | None = None) -> Any:
        """Return a JSON document; raises as `get`, and PublicError if it is not JSON."""
        said = self.get(url, headers)
        try:
            return loads(said)
        except ValueError as error:
            raise PublicError(f"{url}: not JSON ({first_line(error)})", hint=MOVED) from error

    def each(self, work: Callable[[S], T], what: Sequence[S]) -> list[T]:
        """Return `work` of each, a few at a time; the first error stops the others."""
        pool = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="fewbench-get")
        try:
            futures = [pool.submit(work, one) for one in what]
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

    # -- files -------------------------------------------------------------------------------

    def fetch(self, remotes: Sequence[Remote], folder: Path) -> None:
        """Download files into a folder, unless they are there.

        Raises
        ------
        PublicError
            If a file cannot be fetched, is not what the listing promises, or the disk is too small.
        """
        folder.mkdir(parents=True, exist_ok=True)
        busy = f"{folder}: another fewbench get is downloading into this folder"
        with only_process(folder / ".lock", busy):
            left = [one for one in remotes if not is_there(one, folder)]
            sizes = {one.path: one.size or 0 for one in remotes}
            self._total = sum(sizes.values())
            self._done = self._total - sum(one.size or 0 for one in left)
            needed = sum((one.size or 0) - partial(one, folder) for one in left)
            free = shutil.disk_usage(folder).free
            if needed > free:
                raise PublicError(
                    f"{folder}: the files need {needed / 1e9:,.1f} GB, {free / 1e9:,.1f} GB are "
                    "free",
                    hint="pass --cache FOLDER on another disk, or fewer --models",
                )
            self._report(0)
            self.each(lambda one: self._fetch(one, folder), left)

    def _report(self, more: int) -> None:
        with self._lock:
            self._done += more
            done, total = self._done, max(self._done, self._total)
        if self.progress is not None:
            self.progress(done // 10**6, -(-total // 10**6))

    def _fetch(self, remote: Remote, folder: Path) -> None:
        target = folder / remote.path
        part = target.with_name(target.name + PART)
        target.parent.mkdir(parents=True, exist_ok=True)
        self._report(partial(remote, folder))

        def attempt() -> str:
            if not remote.digest or remote.packed:
                self._drop(part)  # nothing says that the rest would belong to it
            encoding = self._download(remote, part)
            if said := _differs(remote, part):
                self._drop(part)
                raise Later(said, tries=2)
            return encoding

        with naming(part):
            if self.retried(attempt, remote.url) == "gzip":
                _unpack(remote, part)
            part.replace(target)

    def _drop(self, part: Path) -> None:
        if part.exists():
            self._report(-part.stat().st_size)
            part.unlink()

    def _download(self, remote: Remote, part: Path) -> str:
        start = part.stat().st_size if part.exists() else 0
        if start and start == remote.size:
            return ""
        headers = {**remote.headers, "Accept-Encoding": "gzip" if remote.packed else "identity"}
        if start:
            headers["Range"] = f"bytes={start}-"
        with self._client.stream("GET", remote.url, headers=headers) as response:
            if response.status_code == 416:  # the part is longer than the file
                self._drop(part)
                raise Later("the file has changed", tries=2)
            check(response, remote.url)
            goes_on = start and response.headers.get("Content-Range", "").startswith(
                f"bytes {start}-"
            )
            if start and not goes_on:
                self._report(-start)
            with part.open("ab" if goes_on else "wb") as file:
                for block in response.iter_raw():
                    file.write(block)
                    self._report(len(block))
                    if self._stopped.is_set():
                        raise Unreachable("stopped", hint=NEXT)
            encoding = str(response.headers.get("Content-Encoding", "")).lower()
        size = part.stat().st_size
        if remote.size is not None and size < remote.size:
            raise Later(f"{size:,} of {remote.size:,} bytes came")
        return encoding


def check(response: Any, url: str) -> None:
    """Raise `Later` or PublicError for an answer that is not the document."""
    status = response.status_code
    if status < 400:
        return
    headers = response.headers
    spent = headers.get("X-RateLimit-Remaining") == "0" and status in (403, 429)
    if status in RETRIED or spent:
        later = Later(f"HTTP {status}", pause(headers, spent))
        if spent and (later.seconds or 0) > LONGEST:
            raise Unreachable(
                f"{url}: the host's limit of requests is reached",
                hint="set GITHUB_TOKEN to a personal access token, or wait for an hour",
            )
        raise later
    if headers.get("X-Error-Code") == "GatedRepo":
        raise PublicError(f"{url}: the dataset's terms are not accepted", hint=GATED)
    if status in (401, 403):
        raise PublicError(f"{url}: access is refused (HTTP {status})", hint=GATED)
    if status in (404, 410):
        raise PublicError(f"{url}: no such file (HTTP {status})", hint=MOVED)
    raise PublicError(f"{url}: HTTP {status}", hint=MOVED)


def pause(headers: Any, spent: bool = False) -> float | None:
    """Return the seconds that a host asks us to wait: by Retry-After, as the Hub or GitHub says it.

    Examples
    --------
    >>> pause({"Retry-After": "7"}), pause({"Retry-After": "soon"})
    (7.0, None)
    >>> pause({"RateLimit": '"api";r=0;t=55'})
    55.0
    """
    said = headers.get("Retry-After")
    left = re.search(r"r=0;\s*t=(\d+)", headers.get("RateLimit", ""))
    try:
        if said is None and left:
            return float(left[1])
        if said is not None and said.strip().isdecimal():
            return float(said)
        if said is not None:
            return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
        if spent:
            return max(0.0, float(headers.get("X-RateLimit-Reset")) - time.time())
    except (TypeError, ValueError, OverflowError):
        pass
    return None


def is_there(remote: Remote, folder: Path) -> bool:
    """Whether a file was fetched before; files get their name only when they are whole."""
    target = folder / remote.path
    if not target.is_file():
        return False
    return remote.packed or remote.size is None or target.stat().st_size == remote.size


def partial(remote: Remote, folder: Path) -> int:
    """Return how many bytes of a file are there to go on from."""
    part = folder / (remote.path + PART)
    return part.stat().st_size if part.is_file() else 0


def _differs(remote: Remote, part: Path) -> str:
    size = part.stat().st_size
    if remote.size is not None and size != remote.size:
        return f"the file has {size:,} bytes, the listing promises {remote.size:,}"
    kind, _, digest = remote.digest.partition(":")
    if not digest:
        return ""
    # Git identifies a blob by the SHA-1 of its length and content.
    found = hashlib.new("sha1" if kind == "git" else kind, usedforsecurity=False)
    if kind == "git":
        found.update(f"blob {size}\0".encode())
    with part.open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return "" if found.hexdigest() == digest else "the file has another checksum than promised"


def _unpack(remote: Remote, part: Path) -> None:
    """Replace a compressed file by its content."""
    whole = part.with_name(part.name + ".whole")
    decoder = zlib.decompressobj(31)
    try:
        with part.open("rb") as packed, whole.open("wb") as plain:
            while block := packed.read(CHUNK):
                plain.write(decoder.decompress(block))
                if plain.tell() > LARGEST_UNPACKED:
                    raise PublicError(f"{remote.url}: unpacks to more than 2 GB", hint=MOVED)
        if not decoder.eof:
            raise zlib.error("truncated")
        whole.replace(part)
    except zlib.error as error:
        part.unlink(missing_ok=True)
        raise PublicError(f"{remote.url}: not whole gzip ({error})", hint=NEXT) from error
    finally:
        whole.unlink(missing_ok=True)


@contextmanager
def laid_out(path: Path | str) -> Iterator[None]:
    """Name a file whose content is not laid out as its source promises."""
    try:
        yield
    except (FewbenchError, MemoryError):
        raise
    except Exception as error:  # whatever JSON or YAML of another form makes a reader trip over
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the disk
        said = f"{type(error).__name__}: {first_line(error)}"
        raise PublicError(
            f"{path}: not laid out as this source does ({said})",
            hint="the source may have changed; delete the file to fetch it again, or pass an older "
            "--revision",
        ) from error


def sampled(names: Iterable[str], most: int | None) -> list[str]:
    """Return a fixed random sample of names, in order; a larger one contains a smaller one.

    Examples
    --------
    >>> sampled(["a", "b", "c", "d"], 2), sampled(["a", "b", "c", "d"], 3)
    (['c', 'd'], ['b', 'c', 'd'])
    """
    every = sorted(set(names))
    if most is None or most >= len(every):
        return every
    return sorted(sorted(every, key=lambda one: hashlib.sha256(one.encode()).digest())[:most])
