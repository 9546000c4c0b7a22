"""Tables of public sources by name: fetched when a name is first used, and kept by commit."""

import os
from pathlib import Path

from fewbench._names import counted, did_you_mean, sized
from fewbench._progress import at_work, progress_bar
from fewbench._text import quoted, say, say_note
from fewbench.errors import FewbenchError, MissingFileError, PublicError
from fewbench.public.catalogue import SOURCES, find_source
from fewbench.public.get import PublicFiles, PublicResults, default_cache, find_public_files
from fewbench.public.source import HUB, Ask, Source
from fewbench.scores.files import WRITTEN_BY
from fewbench.scores.pack_files import SUFFIX, pack_file


def is_source(place: str | os.PathLike[str]) -> bool:
    """Whether a user names a public source or a part of one, and not a file or folder.

    Examples
    --------
    >>> is_source("metabench:gsm8k"), is_source("hub:org/logs"), is_source("gsm8k")
    (True, True, False)
    """
    name = _parts(os.fspath(place))[0]
    return not Path(place).exists() and (name in SOURCES or name.startswith(HUB))


def located(place: str | os.PathLike[str]) -> Path:
    """Return the path of what a user names: a file or folder, or a public source.

    A file or folder of that name comes first. A source is NAME of `fewbench get list`, or
    NAME:BENCHMARK (NAME:SPLIT where a source has no benchmarks), or a dataset repository with logs,
    hub:ORG/DATASET or hub:ORG/DATASET:FOLDER. Its table is fetched when it is
    first used, which prints what is fetched, from where, and how large it is. Later uses need no
    network: the table stays in your cache directory.

    Raises
    ------
    MissingFileError
        If there is no such file, folder or source.
    PublicError
        If the source has no such benchmark, or cannot be fetched.
    """
    text = os.fspath(place)
    if pack_file(place)[0].exists():
        return Path(place)
    if not is_source(place):
        raise MissingFileError(
            f"{text}: no such file or folder, and no such public source",
            hint=did_you_mean(
                text, SOURCES, f"{WRITTEN_BY}; fewbench get list names public sources"
            ),
        )
    name, part = _parts(text)
    if name.startswith(HUB) and name.endswith(SUFFIX):
        raise PublicError(
            f"{text}: a pack at the Hub",
            hint=f"get it first: fewbench get {quoted(text)} --from pack",
        )
    ask = _ask(find_source(name), part or None)
    table = f"{text.replace(':', '--').replace('/', '--')}.parquet"  # the Hub has no -- in names
    tables = default_cache() / "tables"
    if kept := sorted(tables.glob(f"*/{table}"), key=os.path.getmtime):
        return kept[-1]
    with at_work(f"listing {text}"):
        files = find_public_files(name, benchmark=ask.benchmark, split=ask.split)
    size = f"size: {files.source.size}"  # about, where the listing does not state it
    if files.n_bytes is not None:
        size = sized(files.n_missing_bytes)
    say(
        f"{text}: fetching {counted(len(files.found.files), 'file')}, {size}, {files.version}, "
        f"from {files.origin} into {files.folder}"
    )
    with progress_bar("fetching (MB)") as progress:
        results = _read_fetched(files.fetch(progress), name)
    for note in results.notes:
        say_note(note)
    output = tables / files.folder.name / table
    output.parent.mkdir(parents=True, exist_ok=True)
    results.save(output, force=True)
    say(f"{text}: kept in {output}, which later uses read; delete it to fetch the newest")
    return output


def _parts(text: str) -> tuple[str, str]:
    """Return the name of a source and what follows its colon, "" if nothing does.

    >>> _parts("swe-bench:lite"), _parts("hub:org/logs:may"), _parts("hub:org/logs")
    (('swe-bench', 'lite'), ('hub:org/logs', 'may'), ('hub:org/logs', ''))
    """
    is_at_hub = text.startswith(HUB)
    name, _, part = text.removeprefix(HUB if is_at_hub else "").partition(":")
    return (HUB if is_at_hub else "") + name, part


def _read_fetched(files: PublicFiles, name: str) -> PublicResults:
    """Read what was fetched; of logs at the Hub, say where their options are typed."""
    try:
        return files.read()
    except FewbenchError as error:
        if name.startswith(HUB):
            why = f" ({error.hint})" if error.hint else ""
            error.hint = f"get it first: fewbench get {quoted(name)} … -o scores.parquet{why}"
        raise


def _ask(source: Source, part: str | None) -> Ask:
    """Return what a name asks of a source; PublicError if the source has no such part."""
    parts = source.benchmarks or source.splits
    try:
        return source.check(Ask(benchmark=part) if source.benchmarks else Ask(split=part))
    except PublicError as error:
        if not parts:
            hint = f"write {source.name}"
        elif parts == ("*",):
            hint = f"write {source.name}:NAME; its page lists the names ({source.url})"
        else:
            hint = did_you_mean(part or "", [f"{source.name}:{name}" for name in parts])
        raise PublicError(error.message, hint=hint) from error
