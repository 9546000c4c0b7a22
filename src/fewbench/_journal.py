"""A file of lines that only grows, and survives crashes.

Evaluations, transfer measurements and the cache of studies are kept this way. A line counts once
it is written whole. A crash can tear the last line only; the torn line was never acknowledged, so
it is skipped when the file is read and cut off before the next line is written.
"""

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from fewbench._files import naming, written_whole

BLOCK = 1 << 16


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
    ...     list(lines.read())
    [(1, b'{"a": 1}')]
    """

    def __init__(self, path: Path, sync_every: float = 0.0) -> None:
        self.path = path
        self._sync_every, self._synced = sync_every, time.monotonic()
        self._is_held = False
        self._known = 0, 0  # number of lines read by `unread` or added here, and their end

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from adding lines until the block ends."""
        if self._is_held:
            yield
            return
        lines: IO[bytes]
        try:
            lines = self.path.open("ab")
        except OSError:  # a folder that can only be read
            if not self.path.exists():
                raise
            lines = self.path.open("rb")
        with lines as file:
            _lock(file.fileno())
            self._is_held = True
            try:
                yield
            finally:
                self._is_held = False

    def append(self, line: bytes) -> None:
        """Add one line; OSError if it cannot be written whole, and then nothing is added."""
        with naming(self.path), self.path.open("ab", buffering=0) as file:
            if not self._is_held:
                _lock(file.fileno())  # another process may add a line too
            whole = _whole(self.path)
            try:
                file.truncate(whole)
                if os.write(file.fileno(), line + b"\n") <= len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                if not self._sync_every or time.monotonic() - self._synced > self._sync_every:
                    os.fsync(file.fileno())
                    self._synced = time.monotonic()
            except BaseException:
                file.truncate(whole)
                raise
        self._known = self._known[0] + 1, whole + len(line) + 1

    def cut(self) -> None:
        """Cut off a torn end, as the next line would."""
        if self.path.exists():
            with naming(self.path), self.path.open("ab", buffering=0) as file:
                _lock(file.fileno())
                file.truncate(_whole(self.path))

    def sync(self) -> None:
        """Wait until all lines are on the disk."""
        if self.path.exists():
            with naming(self.path), self.path.open("ab") as file:
                os.fsync(file.fileno())
        self._synced = time.monotonic()

    def read(self) -> Iterator[tuple[int, bytes]]:
        """Yield each whole line with its number, from 1."""
        # Millions of lines need not be in memory at once.
        with suppress(FileNotFoundError, NotADirectoryError), self.path.open("rb") as file:
            lines = enumerate(file, start=1)
            yield from ((at, line[:-1]) for at, line in lines if line.endswith(b"\n"))

    def unread(self) -> Iterator[tuple[int, bytes]]:
        """Yield each whole line, with its number, that was neither read by this nor added here."""
        n_known, end = self._known
        with suppress(FileNotFoundError, NotADirectoryError), self.path.open("rb") as file:
            file.seek(max(0, end - 1))
            if end and file.read(1) != b"\n":  # the file was rewritten
                end = file.seek(0) + sum(len(file.readline()) for _ in range(n_known))
            for line in file:
                if line.endswith(b"\n"):
                    n_known, end = self._known = n_known + 1, end + len(line)
                    yield n_known, line[:-1]

    def rewrite(self, change: Callable[[bytes], bytes | None]) -> None:
        """Replace each whole line by what `change` makes of it, None for nothing."""
        if self.path.exists():
            with self.locked():
                lines = [change(line) for _, line in self.read()]
                with written_whole(self.path) as temporary:
                    kept = [line + b"\n" for line in lines if line is not None]
                    temporary.write_bytes(b"".join(kept))

    def repair(self, is_sound: Callable[[bytes], bool]) -> int:
        """Drop damaged lines and a torn end; return how many lines were dropped.

        The file as it was is kept under the same name with `.damaged` added.
        """
        content = self.path.read_bytes()
        *lines, torn = content.split(b"\n")
        sound = [line for line in lines if is_sound(line)]
        dropped = len(lines) - len(sound) + bool(torn)
        if dropped:
            kept = self.path.with_name(f"{self.path.name}.damaged")
            with written_whole(kept) as temporary:
                temporary.write_bytes(content)
            with written_whole(self.path) as temporary:
                temporary.write_bytes(b"".join(line + b"\n" for line in sound))
        return dropped


def _lock(handle: int) -> None:
    with suppress(ImportError, OSError):  # not every system or disk has such locks
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX)


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
