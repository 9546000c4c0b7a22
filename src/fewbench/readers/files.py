"""What tells a file without reading it whole: its first bytes, its size and time."""

from functools import lru_cache
from pathlib import Path

HEAD = 4096


def head(path: Path) -> bytes:
    """Return a file's first 4 KB; b"" if it cannot be read."""
    return _head(path, state_of(path))


def state_of(path: Path) -> tuple[int, int] | None:
    """Return size and time of a file, which tell whether it changed; None if it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


@lru_cache(maxsize=4096)
def _head(path: Path, state: tuple[int, int] | None) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD)
    except OSError:
        return b""
