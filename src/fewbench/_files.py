"""Files that appear whole or not at all, and work that only one process does at a time."""

import errno
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from fewbench.errors import EvaluationError, FewbenchError

UNNAMED = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name `path` in an error of the system while it is written, such as that of a full disk.

    Errors of writing carry no name, and libraries put words of their own in their place.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in UNNAMED:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error


def cache_folder() -> Path:
    """Return the folder of what can be made or fetched again: fewbench in your cache directory."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fewbench"


def folder_name(name: str, gap: str = "_") -> str:
    """Return a name as a folder's: what is neither letter, digit nor one of ``._=-`` is a gap.

    EvaluationError if nothing is left.

    Examples
    --------
    >>> folder_name("org/run@step-1000"), folder_name("org/../x", gap="__")
    ('org_run_step-1000', 'org__..__x')
    """
    kept = re.sub(r"[^\w.=-]+", gap, name)
    if not kept.strip("._"):
        raise EvaluationError(
            f"{name!r} cannot name a folder", hint="use letters and digits", kind="name"
        )
    return kept.lstrip(".")


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a temporary name beside `path`; rename it to `path` when the block ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with naming(path):
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())  # before the name says that it is there
            mask = os.umask(0)
            os.umask(mask)
            temporary.chmod(0o666 & ~mask)  # mkstemp makes private files; results are for sharing
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def reserve(path: Path) -> None:
    """Have the system set aside the disk space of a file that was made with holes.

    A full disk is an error then, with the file's name, and not the end of the process when a hole
    is written through a memory map.
    """
    if hasattr(os, "posix_fallocate"):
        with naming(path), path.open("rb+") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)


@contextmanager
def only_process(
    lock: Path, busy: str, hint: str = "wait for it, or write to another file",
    error: type[FewbenchError] = FewbenchError,
) -> Iterator[None]:  # fmt: skip
    """Hold a lock until the block ends, or the process; `error` (busy) if another holds it.

    The file says which process holds it, and the error repeats that. Where the system has no such
    locks, nothing is held. The folder is made. After an error in the block, a file and folders that
    are new and empty are removed.
    """
    missing = [folder for folder in (lock, *lock.parents) if not folder.exists()]
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a+", encoding="utf-8") as file:
        _hold(file, busy, hint, error)
        try:
            yield
        except BaseException:
            with suppress(OSError):
                for path in missing:
                    path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
            raise


def _hold(file: TextIO, busy: str, hint: str, error: type[FewbenchError]) -> None:
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        file.seek(0)
        holder = file.read().strip()
        raise error(f"{busy} ({holder})" if holder else busy, hint=hint) from problem
    file.truncate(0)
    file.write(f"process {os.getpid()} on {os.uname().nodename}\n")
    file.flush()
