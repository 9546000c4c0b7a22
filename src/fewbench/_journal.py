"""A file of lines that only grows, and survives crashes.

Evaluations, transfer measurements and the cache of studies are kept this way. A line counts once
it is written whole. A crash can tear the last line only; the torn line was never acknowledged, so
it is skipped when the file is read and cut off before the next line is written.

A line is a JSON object. Its last member is a checksum of all before it, so that an altered line is
found damaged and does not pass for an answer. Lines of older versions have no checksum.

One writer at a time: other objects, threads and processes wait while one of them holds the file.
"""

import errno
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import compress
from pathlib import Path
from typing import IO

from fewbench._files import naming, written_whole
from fewbench.errors import EvaluationError

BLOCK = 1 << 16
NAME = b',"crc32":'
CHECKSUM = NAME + b'"%08x"}'
LENGTH = len(CHECKSUM % 0)
TRIES = 20  # to open a file that others rewrite


class Lines:
    """An append-only file of lines.

    Parameters
    ----------
    path : Path
    sync_every : float
        Wait for the disk at most so often, in seconds; by default after every line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lines = Lines(Path(folder) / "log.jsonl")
    ...     lines.append(b'{"a": 1}')
    ...     [(number, checked(line)) for number, line in lines.read()]
    [(1, b'{"a": 1}')]
    """

    def __init__(self, path: Path, sync_every: float = 0.0) -> None:
        self.path = path
        self._sync_every, self._synced = sync_every, time.monotonic()
        self._holder: tuple[int, int] | None = None  # process and thread
        # Number of lines read by `unread` or added here, where they end, and how.
        self._known = 0, 0, b""

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other threads and processes from adding lines until the block ends."""
        # A thread that shares this object, and a process that was forked, do not hold its lock.
        holder = os.getpid(), threading.get_ident()
        if self._holder == holder:
            yield
            return
        with self._opened() as file:
            self._holder = holder
            try:
                yield
            finally:
                self._holder = None
                _lock(file, "LOCK_UN")  # a process forked since has the file open, too

    def _opened(self) -> IO[bytes]:
        """Open the file, and wait for its lock."""
        for left in reversed(range(TRIES)):
            file: IO[bytes]
            try:
                file = self.path.open("ab")
            except OSError:  # a folder that can only be read
                if not self.path.exists():
                    raise
                file = self.path.open("rb")
            _lock(file, "LOCK_EX")
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), self.path.stat()):
                    break
            if left:
                file.close()  # it was rewritten while this waited
        return file

    def append(self, line: bytes) -> None:
        """Add one line; OSError if it cannot be written whole, and then nothing is added."""
        line = _with_checksum(line) + b"\n"
        with naming(self.path), self.locked(), self.path.open("ab", buffering=0) as file:
            whole = _whole(self.path)
            try:
                file.truncate(whole)
                if os.write(file.fileno(), line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                if not self._sync_every or time.monotonic() - self._synced > self._sync_every:
                    os.fsync(file.fileno())
                    self._synced = time.monotonic()
            except BaseException:
                file.truncate(whole)
                raise
            n_known, end, _ = self._known
            if end == whole:  # else there are others to read before it
                self._known = n_known + 1, end + len(line), line[-LENGTH:]

    def cut(self) -> None:
        """Cut off a torn end, as the next line would."""
        if self.path.exists():
            with naming(self.path), self.locked(), self.path.open("ab", buffering=0) as file:
                file.truncate(_whole(self.path))

    def sync(self) -> None:
        """Wait until all lines are on the disk."""
        if self.path.exists():
            with naming(self.path), self.path.open("ab") as file:
                os.fsync(file.fileno())
        self._synced = time.monotonic()

    def read(self) -> Iterator[tuple[int, bytes]]:
        """Yield each whole line with its number, from 1; `checked` takes its checksum off."""
        # Millions of lines need not be in memory at once.
        with suppress(FileNotFoundError, NotADirectoryError), self.path.open("rb") as file:
            lines = enumerate(file, start=1)
            yield from ((at, line.removesuffix(b"\n")) for at, line in lines if _is_whole(line))

    def unread(self) -> Iterator[tuple[int, bytes]]:
        """Yield each whole line, with its number, that was neither read by this nor added here.

        EvaluationError if the others are not there any more.
        """
        n_known, end, how = self._known
        with suppress(FileNotFoundError, NotADirectoryError), self.path.open("rb") as file:
            file.seek(end - len(how))
            if file.read(len(how)) != how:
                raise EvaluationError(
                    f"{self.path}: was rewritten while it was in use, as by fewbench repair",
                    hint="open the evaluation again",
                )
            for line in file:
                if _is_whole(line):
                    n_known, end = n_known + 1, end + len(line)
                    self._known = n_known, end, line[-LENGTH:]
                    yield n_known, line.removesuffix(b"\n")

    def rewrite(self, change: Callable[[bytes], bytes | None]) -> None:
        """Replace each whole line by what `change` makes of it, None for nothing.

        ValueError if a line is damaged.
        """
        if self.path.exists():
            with self.locked():
                lines = [change(checked(line)) for _, line in self.read()]
                with written_whole(self.path) as temporary:
                    kept = [_with_checksum(line) + b"\n" for line in lines if line is not None]
                    temporary.write_bytes(b"".join(kept))

    def repair(self, is_sound: Callable[[bytes], bool]) -> list[int]:
        """Drop damaged lines and a torn end; return the numbers of the lines that were dropped.

        The file as it was is kept under the same name with `.damaged` added.
        """
        with self.locked():
            content = self.path.read_bytes()
            *lines, torn = content.split(b"\n")
            is_kept = [*map(is_sound, lines), not torn]
            dropped = [number for number, kept in enumerate(is_kept, start=1) if not kept]
            if dropped:
                kept = self.path.with_name(f"{self.path.name}.damaged")
                with written_whole(kept) as temporary:
                    temporary.write_bytes(content)
                with written_whole(self.path) as temporary:
                    sound = (line + b"\n" for line in compress(lines, is_kept))
                    temporary.write_bytes(b"".join(sound))
        return dropped


def _with_checksum(line: bytes) -> bytes:
    return line[:-1] + CHECKSUM % zlib.crc32(line[:-1])


def checked(line: bytes) -> bytes:
    """Return a line without its checksum; ValueError if it was altered since it was written."""
    rest, checksum = line[:-LENGTH], line[-LENGTH:]
    if not checksum.startswith(NAME):
        return line  # of an older version
    if checksum != CHECKSUM % zlib.crc32(rest):
        raise ValueError("altered since it was written")
    return rest + b"}"


def _is_whole(line: bytes) -> bool:
    # A torn line has no byte after its checksum: there was the end of a line, which was altered.
    return line.endswith(b"\n") or line[-LENGTH - 1 :].startswith(NAME)


def _lock(file: IO[bytes], how: str) -> None:
    with suppress(ImportError, OSError):  # not every system or disk has such locks
        import fcntl

        fcntl.flock(file, getattr(fcntl, how))


def _whole(path: Path) -> int:
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - BLOCK)
            file.seek(start)
            newline = file.read(end - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            end = start
    return 0
