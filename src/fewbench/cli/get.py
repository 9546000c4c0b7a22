"""fewbench get: fetch public per-item results by name."""

import json
from pathlib import Path

from fewbench._names import counted, sized, split_names
from fewbench._progress import at_work, progress_bar
from fewbench._text import as_note, echo, quoted, say, say_note, table
from fewbench.cli.commands import Call, command
from fewbench.cli.outputs import check_outputs
from fewbench.errors import PublicError
from fewbench.public import (
    PublicFiles,
    PublicResults,
    find_public_files,
    get_pack,
    public_sources,
)
from fewbench.public import get as fetch
from fewbench.public.get import source_file
from fewbench.show.page import as_text

PACK = "pack"
SHOWN = 5
LISTED = ("models", "items", "size", "license")
FETCHED = ("name", "output", "revision", "cache", "force")
FOUND = ("benchmark", "models", "split", "revision", "form", "metric", "filter", "cache")


def _get(call: Call, *, dry_run: bool = False, as_json: bool = False) -> None:
    """List the sources, or fetch results or a pack.

    Parameters
    ----------
    dry_run
        Show addresses and sizes; fetch only listings.
    as_json
        Print JSON instead of text.
    """
    options = {name: value for name, value in call.given.items() if value not in (None, False)}
    name = options["name"]
    if name == "list":
        if {*options} - {"name", "as_json"}:
            raise PublicError("get list has no options but --json", hint="omit the others")
        _list(as_json)
        return
    if options.get("form") == PACK or name.endswith(".few"):
        if {*options} - {*FETCHED, "form"}:
            raise PublicError("a pack is one file", hint="give -o, --revision, --cache, --force")
        with progress_bar("fetching (MB)") as progress:
            words = {option: options[option] for option in FETCHED if option in options}
            pack = get_pack(**words, progress=progress)
        echo(f"wrote {pack}. Next: fewbench pack show {quoted(pack)}")
        return
    if dry_run:
        with at_work(f"listing {name}"):
            words = {option: options[option] for option in FOUND if option in options}
            if "models" in words:
                words["models"] = _models(call, words["models"])
            files = find_public_files(name, **words)
        _show(files, as_json)
        return
    parts = [name.rpartition("/")[2], options.get("split"), options.get("benchmark")]
    named = Path("-".join(part for part in parts if part).replace("/", "-") + ".parquet")
    output = options.get("output", named)
    check_outputs(output, source_file(output), force=call.given["force"])
    results: PublicResults = call(output=output)
    say(f"{results.files!r}")
    for note in results.notes:
        say_note(note)
    _report(results, as_json)


def _report(results: PublicResults, as_json: bool) -> None:
    path = results.path
    with at_work("auditing"):
        audit = results.audit
    if as_json:
        values = {"written": str(path), **results.to_dict(), "audit": audit.to_dict()}
        echo(json.dumps(values, indent=2, ensure_ascii=False))
        return
    source = results.files.source
    echo(f"wrote {path}")
    echo(f"license: {source.license}; cite: {source.cite}\n")
    echo(as_text(audit.page(str(path))))


def _show(files: PublicFiles, as_json: bool) -> None:
    if as_json:
        echo(json.dumps(files.to_dict(), indent=2, ensure_ascii=False))
        return
    unknown = sum(file.size is None for file in files.found.files)
    size_known = sum(file.size or 0 for file in files.found.files)
    echo(f"{files!r}")
    echo(f"cite: {files.source.cite}")
    size = sized(size_known) + (f" and {counted(unknown, 'file')} of unknown size" * bool(unknown))
    echo(f"{size}; {sized(files.n_missing_bytes)} to fetch into {files.folder}")
    for note in files.notes:
        echo(as_note(note))
    for entry in files.found.files[:SHOWN]:
        echo(f"  {'unknown size' if entry.size is None else sized(entry.size):>12}  {entry.url}")
    if len(files.found.files) > SHOWN:
        echo(f"  and {len(files.found.files) - SHOWN:,} more; --json lists all")


def _list(as_json: bool) -> None:
    sources = public_sources()
    if as_json:
        rows = sources.reset_index().to_dict("records")
        echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    listed = [[str(name), *(str(row[key]) for key in LISTED)] for name, row in sources.iterrows()]
    echo(table(["name", *LISTED], listed, left=5))
    echo("\nbenchmarks and splits, how the items are run, how to cite:")
    for name, row in sources.iterrows():
        echo(f"\n{name}: {row['title']} ({row['url']})")
        for key in ("benchmarks", "splits"):
            if row[key]:
                echo(f"  --{key[:-1]} {row[key]}")
        if row["run_with"]:
            echo(f"  run: {row['run_with']}")
        echo(f"  real files read: {row['tried'] or 'none'}")
        echo(f"  cite: {row['cite']}")
    echo("\nNumbers and sizes are approximate. A name above, or NAME:BENCHMARK, stands in place of")
    echo("SCORES: fewbench run lm-eval mmlu-pro … Any other dataset repository needs fewbench get")
    echo("hub:ORG/DATASET first.")


def _models(_: Call, typed: str) -> int | list[str]:
    """Read a number of models, a file of names, or names; PublicError if there is no name."""
    if typed.isdecimal():
        return int(typed)
    path = Path(typed)
    is_file = path.is_file()
    names = path.read_text(encoding="utf-8").splitlines() if is_file else split_names(typed)
    if listed := [name.strip() for name in names if name.strip()]:
        return listed
    raise PublicError(f"{typed}: no names of models", hint="write one name a line")


get = command(
    fetch,
    work="fetching (MB)",
    report=False,
    read={"models": (str | None, _models, "A number, a file with a name per line, or names.")},
    around=_get,
    examples="""
Sources:          fewbench get list
Addresses, sizes: fewbench get livebench --dry-run
One benchmark:    fewbench get open-llm-leaderboard-v1 --benchmark gsm8k --models 300
Named models:     fewbench get open-llm-leaderboard-v1 --benchmark winogrande --models names.txt
Agents:           fewbench get swe-bench --split verified -o swe.parquet
Your repository:  fewbench get hub:ORG/DATASET --from lm-eval -o scores.parquet
A pack:           fewbench get hub:ORG/NAME --from pack -o mmlu-100.few
""",
)
