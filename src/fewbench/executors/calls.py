"""What every executor has in common: what calls share, and how a worker makes a call."""

import hashlib
import io
import platform
import socket
import tempfile
import threading
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from fewbench._version import __version__
from fewbench.errors import ClusterError, first_line

MOST_DEATHS = 3
"""Workers that a call may end before it is given up."""
CONNECT_SECONDS = 5.0
LOOK = 1.0  # seconds after which a cluster without a result is looked at
T = TypeVar("T")


@dataclass(frozen=True)
class Lost:
    """What comes of a call that is given up, because its worker ended each time."""

    reason: str


class Pool(ABC):
    """Runs independent calls.

    Attributes
    ----------
    has_workers : bool
        Whether calls run outside this process.
    is_remote : bool
        Whether workers may be on other machines.
    name : str
        The cluster's name in messages.
    room : int
        Most calls that are open at a time.
    ended : tuple
        Errors of a call whose worker ended.
    """

    has_workers = True
    is_remote = False
    name = "processes"
    room = 2000
    ended: tuple[type[BaseException], ...] = ()

    def each(
        self, function: Callable[[Any, Any], T], shared: Any, items: Sequence[Any]
    ) -> Iterator[tuple[int, T | Lost]]:
        """Call `function(shared, item)` for each item, and yield results as they come.

        Calls that may have ended a worker run again, each of them alone: which one it was is not
        known.

        Parameters
        ----------
        function : callable
            Its errors are raised here.
        shared : object
            Sent once to each worker, which must not change it.
        items : sequence

        Yields
        ------
        (int, object)
            Position of the item, and what the call returned; `Lost` if it was given up.

        Raises
        ------
        ClusterError
            If the cluster is lost, or its workers cannot make the calls, or a call cannot be
            pickled.
        """
        todo, suspects, deaths = deque(range(len(items))), deque[int](), Counter[int]()
        running: dict[Future[Any], int] = {}
        if not items:
            return
        with self.sharing(shared) as parcel:
            try:
                while todo or suspects or running:
                    source, most = (suspects, 1) if suspects else (todo, self.room)
                    while source and len(running) < most:
                        position = source.popleft()
                        packed = packed_call(function, items[position])
                        running[self.submit(parcel, packed)] = position
                    done, _ = wait(running, LOOK, FIRST_COMPLETED)
                    self.look(bool(done))
                    for future in done:
                        position, error = running.pop(future), future.exception()
                        if error is None:
                            yield position, future.result()
                            continue
                        if not isinstance(error, self.ended):
                            raise self.fault(error) from error
                        deaths[position] += 1
                        if deaths[position] < MOST_DEATHS:
                            suspects.append(position)
                        else:
                            yield (
                                position,
                                Lost(
                                    f"its worker ended each of the {MOST_DEATHS} times that it ran "
                                    f"({self.reason(error)})"
                                ),
                            )
            finally:
                for future in running:
                    self.cancel(future)

    @contextmanager
    def sharing(self, shared: Any) -> Iterator[Any]:
        """Send what calls share, in a file of this machine, and yield what `submit` takes of it."""
        with tempfile.TemporaryDirectory(prefix="fewbench-") as folder:
            yield Parcel.in_file(shared, folder)

    @abstractmethod
    def submit(self, parcel: Any, packed: bytes) -> "Future[Any]":
        """Start a call (see `call`)."""

    def look(self, done: bool) -> None:  # noqa: B027
        """Raise ClusterError if nothing was `done` for long because the cluster is lost."""

    def fault(self, error: BaseException) -> BaseException:
        """Return a call's error as it is raised here: that of a lacking library in our words."""
        if not isinstance(error, ModuleNotFoundError):
            return error
        return ClusterError(
            f"{self.name}: a worker cannot import {error.name}",
            hint="install the same fewbench and extras on all workers",
        )

    def reason(self, error: BaseException) -> str:
        """Return why a worker ended."""
        return type(error).__name__

    def cancel(self, future: "Future[Any]") -> None:
        """Give up a call that is open."""
        future.cancel()

    def in_order(
        self, function: Callable[[Any, Any], T], shared: Any, items: Sequence[Any]
    ) -> Iterator[T | Lost]:
        """Yield the results of `each` in the order of the items."""
        early: dict[int, T | Lost] = {}
        wanted = 0
        for position, result in self.each(function, shared, items):
            early[position] = result
            while wanted in early:
                yield early.pop(wanted)
                wanted += 1
        if wanted < len(items):
            raise ClusterError(f"{len(items) - wanted} results are missing", hint="start again")

    def close(self) -> None:  # noqa: B027
        """End what this pool started."""


@dataclass(frozen=True)
class Parcel:
    """What all calls share, as it travels: the name of a file that workers reach, or bytes.

    `made_by` is `versions()` of the process that made it: with other code or libraries, a worker
    would return other numbers.
    """

    token: str
    content: Any
    made_by: dict[str, str] | None = None

    @classmethod
    def in_file(cls, shared: Any, folder: str) -> "Parcel":
        """Write what is shared to a file, from which the processes of a machine map arrays."""
        import joblib

        path = Path(folder) / "shared"
        joblib.dump(shared, path)
        return cls(uuid4().hex, str(path))

    @classmethod
    def in_bytes(cls, shared: Any) -> "Parcel":
        """Compress what is shared: scores of 0 and 1 to about a twentieth."""
        import joblib
        import pyarrow as pa

        raw = io.BytesIO()
        joblib.dump(shared, raw)
        packed = pa.compress(raw.getbuffer(), "zstd", asbytes=True)
        return cls(uuid4().hex, pa.py_buffer(packed), versions())  # which Dask does not copy

    def open(self) -> Any:
        """Return what is shared."""
        import joblib
        import pyarrow as pa

        if self.made_by is not None and (why := differences(versions(), self.made_by)):
            raise _here(why, "install the same versions on all workers; others may change numbers")
        try:
            if isinstance(self.content, str):
                return joblib.load(self.content, mmap_mode="r")
            parts = pa.CompressedInputStream(pa.BufferReader(self.content), "zstd")
            return joblib.load(io.BufferedReader(parts, 1 << 20))
        except FileNotFoundError as error:
            hint = "keep the scores on a disk that workers reach under the same path"
            raise _here(f"no file {error.filename}", hint) from error


def _here(what: str, hint: str) -> ClusterError:
    return ClusterError(f"worker on {socket.gethostname()}: {what}", hint=hint)


_ONE_AT_A_TIME = threading.Lock()
_HELD: dict[str, Any] = {}


def packed_call(function: Callable[[Any, Any], Any], item: Any) -> bytes:
    """Return a call as it travels, with the code of what the user's script defines.

    A worker that cannot unpack it then reports this; a library's own packing would end the worker.
    """
    from joblib.externals.loky.backend.reduction import dumps

    try:
        return bytes(dumps((function, item)))
    except Exception as error:  # objects raise errors of all kinds
        raise ClusterError(
            f"a call cannot be sent to workers ({type(error).__name__}: {first_line(error)})",
            hint="run in this process (one worker, no cluster), or take out what cannot be pickled",
        ) from error


def call(parcel: Parcel, packed: bytes) -> Any:
    """Make a call in a worker, which keeps what was shared last.

    Calls in threads of one process wait for one another: limits on the threads of numerical
    libraries hold for the whole process.
    """
    import joblib

    try:
        function, item = joblib.load(io.BytesIO(packed))
    except (ImportError, AttributeError) as error:
        raise _here(
            first_line(error),
            "install the same packages on all workers; a method of your own is found there "
            "only in an installed package or in the script that you started",
        ) from error
    with _ONE_AT_A_TIME:
        if parcel.token not in _HELD:
            _HELD.clear()  # before the next takes memory
            _HELD[parcel.token] = parcel.open()
        return function(_HELD[parcel.token], item)


@cache
def versions() -> dict[str, str]:
    """Return the versions of what numbers depend on, fewbench's code included."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    by_package = {"fewbench": __version__, "fewbench's code": digest.hexdigest()[:12]}
    by_package["Python"] = ".".join(platform.python_version_tuple()[:2])
    for name in ("numpy", "scipy", "scikit-learn", "pandas"):
        try:
            by_package[name] = version(name)
        except PackageNotFoundError:
            by_package[name] = "absent"
    return by_package


def differences(found: Any, made_by: dict[str, str] | None = None) -> str:
    """Return how another process's `versions()`, or the error in place of them, differ."""
    if isinstance(found, BaseException):
        return first_line(found)
    pairs = [(name, found.get(name), ours) for name, ours in (made_by or versions()).items()]
    return ", ".join(f"{name} {that}, not {ours}" for name, that, ours in pairs if that != ours)


def check_address(place: str, scheme: str, start: str, *, speaks_first: bool = False) -> None:
    """Raise ClusterError if nothing listens at HOST:PORT; `start` says how to start a cluster.

    `speaks_first` waits for the first byte: clients may wait forever for a server of the wrong
    kind.
    """
    host, _, port = place.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise ClusterError(
            f"{scheme}://{place} is not an address", hint=f"write {scheme}://HOST:PORT (a number)"
        )
    try:
        with socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS) as there:
            if speaks_first:
                there.recv(1)
    except OSError as error:
        raise ClusterError(
            f"{scheme}://{place}: nothing answers there ({error.strerror or first_line(error)})",
            hint=f"check the address; start a cluster with {start}",
        ) from error


def lost_cluster(name: str, error: BaseException) -> ClusterError:
    """Return the error for a cluster that was lost while calls ran."""
    return ClusterError(
        f"{name}: the connection was lost ({type(error).__name__}: {first_line(error)[:200]})",
        hint="start the cluster again, and run the same command again",
        kind="unreachable",
    )
