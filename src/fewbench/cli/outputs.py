"""Check output paths before the work, and write results; --force replaces files."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from fewbench._files import written_whole
from fewbench._names import as_cell
from fewbench._text import echo, say
from fewbench.errors import FewbenchError
from fewbench.show.page import Page, as_markdown, as_text

FORMATS = (".html", ".md", ".json", ".csv")
WRITES = f"File to write: {', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
Report = Annotated[Path | None, typer.Option(help=WRITES)]
Force = Annotated[bool, typer.Option("--force", help="Replace output files that exist.")]


def check_outputs(
    *outputs: Path | None,
    inputs: Iterable[Path | None] = (),
    force: bool = False,
    formats: Sequence[str] = (),
) -> None:
    """Check the files that a command will write.

    Parameters
    ----------
    *outputs : Path or None
        Files to write (None is skipped).
    inputs : iterable of Path or None
        Files and folders that the command reads. They are never replaced.
    force : bool
        Whether to replace other files.
    formats : sequence of str
        How the files' names may end (empty: any).

    Raises
    ------
    FewbenchError
        If a path is of no such format, a folder, an input, named twice, exists, or cannot be
        written.
    """
    sources = [path for path in inputs if path is not None]
    seen: set[str] = set()
    for output in outputs:
        if output is None:
            continue
        if output.is_dir():
            raise FewbenchError(f"{output} is a folder", hint="name a file to write")
        _check_place(output)
        for source in sources:
            if _is_part_of(output, source):
                raise FewbenchError(
                    f"{output} is part of the input {source}",
                    hint="name another file to write",
                    kind="conflict",
                )
        if formats and output.suffix not in formats:
            ends = f"{', '.join(formats[:-1])} or {formats[-1]}"
            raise FewbenchError(f"cannot write {output}", hint=f"name a file that ends in {ends}")
        real = os.path.realpath(output)
        if real in seen:
            raise FewbenchError(
                f"{output} is given for two results",
                hint="give two different files",
                kind="conflict",
            )
        seen.add(real)
        if not os.path.lexists(output):
            continue
        if not output.is_file() and output.exists():
            raise FewbenchError(f"{output} is not a regular file", hint="name a file to write")
        if not force:
            raise FewbenchError(
                f"{output} already exists",
                hint="add --force to replace it, or name another",
                kind="taken",
            )


def check_output_folder(folder: Path, inputs: Iterable[Path] = ()) -> None:
    """Check the folder that a command will write to, which need not exist.

    Raises FewbenchError if it is a file, an input, or not writable.
    """
    if folder.exists() and not folder.is_dir():
        raise FewbenchError(f"{folder} is a file", hint="name a folder with -o")
    _check_place(folder / "any")
    for path in inputs:
        if path.is_dir() and os.path.realpath(path) == os.path.realpath(folder):
            raise FewbenchError(f"{folder} is an input", hint="name another folder with -o")


def show(
    page: Page,
    found: Any,
    output: Path | None,
    as_json: bool,
    *details: str,
) -> None:
    """Print a result, and write it as its file's name says.

    Parameters
    ----------
    page : Page
        What `found` shows.
    output : Path or None
        Its ending is one of `FORMATS`.
    as_json : bool
        Whether JSON is printed in place of text.
    *details : str
        Details of the page to print.
    """
    echo(found.to_json() if as_json else as_text(page, *details))
    if output is not None:
        write(page, found, output)


def write(page: Page, found: Any, output: Path) -> None:
    """Write a result as its file's name says."""
    with written_whole(output) as temporary:
        if output.suffix == ".html":
            from fewbench.show.html import render

            temporary.write_text(render(page), encoding="utf-8")
        elif output.suffix == ".csv":
            found.to_frame().reset_index().map(as_cell).to_csv(temporary, index=False)
        else:
            text = as_markdown(page) if output.suffix == ".md" else found.to_json() + "\n"
            temporary.write_text(text, encoding="utf-8")
    say(f"wrote {output}")


def _check_place(path: Path) -> None:
    there = next(folder for folder in path.parents if folder.exists())
    if not there.is_dir():
        raise FewbenchError(
            f"{path}: {there} is a file, not a folder", hint="name a file in a folder"
        )
    if not os.access(there, os.W_OK | os.X_OK):
        raise FewbenchError(
            f"{path}: no permission to write in {there}", hint="name a file in another folder"
        )


def _is_part_of(path: Path, source: Path) -> bool:
    if source.is_dir():  # a new file there is fine
        folders = Path(os.path.realpath(path)).parents
        return path.exists() and Path(os.path.realpath(source)) in folders
    if path.exists() and source.exists():
        return path.samefile(source)
    return os.path.realpath(path) == os.path.realpath(source)
