"""What a file's first bytes say that a reader would stumble over, or take for something else."""

import codecs
from pathlib import Path

from fewbench.errors import FewbenchError

LFS = b"version https://git-lfs.github.com/spec/"
SMALL = 1024  # bytes; pointers are smaller
HEADER = 1 << 16
UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
SEPARATORS = {",": "','", ";": "';'", "\t": "tabs", "|": "'|'"}


def is_lfs_pointer(path: Path) -> bool:
    """Whether a file is a pointer to another one that Git LFS has not fetched yet."""
    try:
        if path.stat().st_size >= SMALL:
            return False
        return path.read_bytes().startswith(LFS)
    except OSError:
        return False


def refuse_pointer(path: Path, error: type[FewbenchError]) -> None:
    """Raise `error` if a file is a pointer of Git LFS."""
    if is_lfs_pointer(path):
        raise error(
            f"{path}: a Git LFS pointer, not the file itself",
            hint="run git lfs pull in its repository",
            kind="format",
        )


def text_encoding(path: Path) -> str:
    """Return the encoding that a text file's first bytes state: UTF-16, or UTF-8 by default."""
    with path.open("rb") as file:
        return "utf-16" if file.read(2) in UTF16 else "utf-8-sig"


def why_not_utf8(path: Path) -> tuple[str, str] | None:
    """Return why a file cannot be read as UTF-8, with a hint, or None if it can."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line = 1
    with path.open("rb") as file:
        start = file.read(2)
        if start in UTF16:
            return (
                "UTF-16 text, not UTF-8",
                f"convert it: iconv -f UTF-16 -t UTF-8 {path.name} > NEW",
            )
        file.seek(0)
        while block := file.read(1 << 20):
            try:
                decoder.decode(block)
            except UnicodeDecodeError as error:
                at = line + error.object[: error.start].count(b"\n")
                byte = error.object[error.start]
                return (
                    f"not UTF-8 text: byte 0x{byte:02x} at line {at}, "
                    f"{bytes([byte]).decode('cp1252', 'replace')!r} in Windows-1252 (Latin-1)",
                    "convert it from the encoding that it was written in, as with iconv -f "
                    f"WINDOWS-1252 -t UTF-8 {path.name} > NEW",
                )
            line += block.count(b"\n")
    return None


def other_separator(path: Path, separator: str) -> tuple[str, str] | None:
    """Return what seems to separate a table's columns, and a hint if it is not `separator`."""
    with path.open("rb") as file:
        start = file.read(HEADER)
    header = start.decode(text_encoding(path), "replace").partition("\n")[0]
    counts = {other: header.count(other) for other in SEPARATORS if other != separator}
    likely = max(counts, key=lambda other: counts[other])
    if separator in header or not counts[likely]:
        return None
    hint = {",": "name the file .csv", "\t": "name the file .tsv"}.get(likely)
    return (
        f"columns look separated by {SEPARATORS[likely]}, not by {SEPARATORS[separator]}",
        hint
        or "save it with commas between columns and a point in decimal numbers, as with pandas: "
        f"read_csv({path.name!r}, sep={likely!r}, decimal=',').to_csv('NEW.csv', index=False)",
    )
