"""Which files there are, and what tells them without reading: first bytes, size and time."""

import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from fewbench.errors import ReaderError

HEAD = 4096


def list_files(sources: Iterable[Path]) -> list[Path]:
    """Return files, and those below folders, sorted within each; linked folders are entered too.

    A file that is there under several names is listed once: not under that of a link, unless
    the real name says nothing of the file, as in a cache that names files by their hash.
    """
    files: dict[Path, Path] = {}
    entered: set[Path] = set()
    for source in sources:
        for file in sorted(_below(source, entered)) if source.is_dir() else [source]:
            if not file.is_file():
                continue
            real = file.resolve()
            known = files.setdefault(real, file)
            is_real, was_real = file.absolute() == real, known.absolute() == real
            if is_real != was_real and is_real == (file.suffix == known.suffix):
                files[real] = file
    return list(files.values())


def _below(folder: Path, entered: set[Path]) -> Iterator[Path]:
    for name, folders, files in os.walk(folder, onerror=_refuse, followlinks=True):
        real = Path(name).resolve()
        if real in entered:  # a link to where we were already
            folders.clear()
            continue
        entered.add(real)
        yield from (Path(name) / file for file in files)


def _refuse(error: OSError) -> None:
    raise ReaderError(
        f"{error.filename}: cannot be looked into ({error.strerror})",
        hint="make it readable, or name the other folders",
    )


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
