"""fewbench methods: the catalogue."""

import inspect
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

from fewbench._text import echo, table, wrapped
from fewbench.cli import completion
from fewbench.cli.documented import documented
from fewbench.cli.options import Json, load
from fewbench.errors import MethodError
from fewbench.methods import CATALOGUE, Need, StaticMethod, find_method
from fewbench.methods.base import AUTO
from fewbench.methods.catalogue import (
    ADAPTIVE,
    ADVICE,
    AUTO_SAYS,
    WITH_FILE,
    Entry,
    published_as,
    suggested,
)
from fewbench.methods.needs import needs_of, obstacle
from fewbench.methods.parts import STAGES, parts_of, ways_of
from fewbench.methods.written import choices, settings_of
from fewbench.scores import Scores


@documented
def methods(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", autocompletion=completion.methods)
    ] = None,
    *,
    scores_path: Annotated[Path | None, typer.Option("--scores")] = None,
    parts: bool = False,
    every: Annotated[bool, typer.Option("--all")] = False,
    as_json: Json = False,
) -> None:
    """List methods: which to use, and what each does.

    \b
    fewbench methods
    fewbench methods --all
    fewbench methods greedy-ridge
    fewbench methods DISCO
    fewbench methods --scores scores.parquet
    fewbench methods --parts

    Parameters
    ----------
    name
        Show one method in detail, or the methods of a paper or an author.
    scores_path
        List methods that cannot run on these scores.
    parts
        List the parts that can be combined.
    every
        List all methods, with variants.
    """
    scores = None if scores_path is None else load(scores_path)
    if name == AUTO:
        find_method(name)  # says what it is
    entries = {**CATALOGUE, **WITH_FILE}
    names = tuple(entries) if name is None else (name,) if name in entries else published_as(name)
    if not names:
        lists = "fewbench methods lists methods, fewbench methods --parts parts"
        raise MethodError(
            f"unknown method {name!r}", hint=suggested(str(name), lists), kind="unknown"
        )
    cannot = {key: _obstacle(key, scores) for key in names}
    if as_json:
        rows: list[dict[str, object]] = [
            {
                "name": key,
                "parts": _written(key),
                "summary": entries[key].summary,
                "citation": entries[key].citation,
                "cannot": cannot[key],
                "use_for": _uses(key),
            }
            for key in names
        ]
        echo(json.dumps(rows, indent=2, ensure_ascii=False))
    elif parts:
        _print_parts()
    elif name is None:
        _print_list(entries, cannot, [n for n in entries if every or entries[n].is_main])
    elif len(names) == 1:
        _print_one(names[0], entries[names[0]], cannot[names[0]])
    else:
        _print_several(name, {key: entries[key] for key in names})


def _obstacle(name: str, scores: Scores | None) -> str | None:
    """Return why a method cannot run, if it cannot."""
    if name in WITH_FILE:
        return None
    error = obstacle(CATALOGUE[name].method, scores)
    return None if error is None else str(error)


def _written(name: str) -> str:
    """Return the parts of a method as the command line writes them."""
    return WITH_FILE[name].parts if name in WITH_FILE else CATALOGUE[name].method.describe()


def _print_several(name: str, entries: Mapping[str, Entry]) -> None:
    echo(f"{name}: {len(entries)} methods\n")
    rows = [[_typed(key), entry.summary, entry.citation] for key, entry in entries.items()]
    echo(table(["method", "what it does", "source"], rows, left=3))
    echo("\nDetails: fewbench methods NAME.")


def _typed(name: str) -> str:
    """Return what --method takes for a method."""
    return WITH_FILE[name].parts if name in WITH_FILE else name


def _uses(name: str) -> list[str]:
    return [advice.when for advice in ADVICE if name in advice.methods]


def _print_list(
    entries: Mapping[str, Entry], cannot: Mapping[str, str | None], shown: Collection[str]
) -> None:
    echo("Recommended:\n")
    for advice in ADVICE:
        echo(wrapped(f"{advice.when}: {', '.join(advice.methods)}", 2))
        echo("  " + wrapped(advice.reason, 2))
    echo(
        "\n" + wrapped(f"Without --method, fewbench run, start and select use {AUTO}: {AUTO_SAYS}.")
    )
    reasons: dict[str, list[str]] = {}
    for name, reason in cannot.items():
        if reason is not None and name in shown:
            reasons.setdefault(reason, []).append(name)
    if reasons:
        echo("\nThese cannot run here:\n")
        listed = [[", ".join(names), reason] for reason, names in reasons.items()]
        echo(table(["methods", "reason"], listed, left=2))
    echo("\nMethods:\n")
    rows = [[_typed(name), entries[name].summary] for name in shown]
    echo(table(["method", "what it does"], rows, left=2))
    if len(shown) < len(entries):
        echo(f"\nAll {len(entries)}, with variants of these: fewbench methods --all.")
    echo("\nDetails: fewbench methods NAME. Parts to combine: fewbench methods --parts.")


def _print_one(name: str, entry: Entry, cannot: str | None) -> None:
    echo(f"{name}: {entry.summary}\n")
    echo(f"source   {entry.citation}")
    echo(f"parts    {_written(name)}")
    if entry.file:
        setting = re.search(r"\w+=FILE", entry.parts)
        echo("asks     once")
        echo(f"needs    required: {entry.file}, as {setting[0] if setting else 'FILE'}")
        _print_parts_of([(name, STAGES["tasks"][name])])
        return
    method = entry.method
    echo(f"asks     {'once' if method.asks_once else 'again after answers'}")
    for use in _uses(name):
        echo(f"use      {use}")
    for need in needs_of(method):
        echo(f"needs    {_need(need)}")
    for extra in method.extras:
        echo(f"extra    {extra.package} ({extra.hint})")
    if cannot is not None:
        echo(f"cannot   {cannot}")
    whole = (method.selector, method.predictor) if isinstance(method, StaticMethod) else (method,)
    _print_parts_of([(called or name, part) for called, part in parts_of(*whole)])


def _print_parts_of(listed: list[tuple[str, object]]) -> None:
    for name, part in listed:
        echo(f"\n{name}\n")
        echo("\n".join(f"  {line}".rstrip() for line in (inspect.getdoc(part) or "").splitlines()))


def _need(need: Need) -> str:
    kind = "required" if need.required else "better with"
    amount = need.what if need.least == 1 else f"{need.least} {need.what}"
    return f"{kind}: {amount} (otherwise {need.without})"


def _print_parts() -> None:
    echo("selector + features + reduction + regressor, or selector + predictor. Put tasks before")
    echo("the selector to choose tasks first; tasks + predictor runs all items of these tasks.\n")
    rows = [
        [stage if at == 0 else "", name, settings_of(part)]
        for stage, parts in STAGES.items()
        for at, (name, part) in enumerate(parts.items())
    ]
    echo(table(["part", "name", "settings and defaults"], rows, left=3))
    if (ways := ways_of("tasks")) is not None:
        echo(f"\nParts that choose tasks also take: {settings_of(ways.settings)}")
    echo("\nMethods that ask again, with their settings:\n")
    listed = []
    for name, method in ADAPTIVE.items():
        for at, setting in enumerate(fields(method)):
            listed.append([name if at == 0 else "", setting.name, *choices(setting)])
    echo(table(["method", "setting", "default", "choices"], listed, left=4))
    echo("\nExamples: --method 'jsd(models=50)+pca(components=64)+ridge(alpha=1)'")
    echo("          --method 'tailored(probe=5,company=sources)'")
