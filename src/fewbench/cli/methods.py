"""fewbench methods: the catalogue."""

import inspect
import json
from collections.abc import Collection
from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

from fewbench._names import did_you_mean
from fewbench._text import echo, table, wrapped
from fewbench.cli import completion
from fewbench.cli.documented import documented
from fewbench.cli.options import Json, load
from fewbench.errors import MethodError
from fewbench.methods import CATALOGUE, Need, StaticMethod, find_method
from fewbench.methods.base import AUTO
from fewbench.methods.catalogue import ADAPTIVE, ADVICE, AUTO_SAYS
from fewbench.methods.needs import needs_of, obstacle
from fewbench.methods.parts import STAGES, parts_of
from fewbench.methods.selection.within_tasks import TaskSettings
from fewbench.methods.written import choices, settings_of

FIRST = (
    "fewbench", "fewbench-static", "greedy-ridge", "aipw", "random", "tailored", "collaborative",
    "disco-pds-rf", "anchor-points", "gp-irt-anchor", "metabench", "fluid",
)  # fmt: skip
"""The methods to choose from, and one of each paper; the others are variants."""


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
    fewbench methods --scores scores.parquet
    fewbench methods --parts

    Parameters
    ----------
    name
        Show one method in detail.
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
    if name is not None and name not in CATALOGUE:
        raise MethodError(
            f"unknown method {name!r}",
            hint=did_you_mean(
                name, CATALOGUE, "fewbench methods lists methods, fewbench methods --parts parts"
            ),
        )
    wanted = CATALOGUE if name is None else {name: CATALOGUE[name]}
    stopped = {one: obstacle(entry.method, scores) for one, entry in wanted.items()}
    cannot = {one: None if error is None else str(error) for one, error in stopped.items()}
    if as_json:
        rows = [
            {"name": one, "parts": entry.method.describe()}
            | {"summary": entry.summary, "citation": entry.citation, "cannot": cannot[one]}
            | {"use_for": _uses(one)}
            for one, entry in wanted.items()
        ]
        echo(json.dumps(rows, indent=2, ensure_ascii=False))
    elif parts:
        _print_parts()
    elif name is not None:
        _print_one(name, cannot[name])
    else:
        _print_list(cannot, CATALOGUE if every else FIRST)


def _uses(name: str) -> list[str]:
    return [one.when for one in ADVICE if name in one.methods]


def _print_list(cannot: dict[str, str | None], shown: Collection[str]) -> None:
    echo("Recommended:\n")
    for one in ADVICE:
        echo(wrapped(f"{one.when}: {', '.join(one.methods)}", 2))
        echo("  " + wrapped(one.reason, 2))
    echo("\n" + wrapped(f"Without --method, fewbench start and select use {AUTO}: {AUTO_SAYS}."))
    reasons: dict[str, list[str]] = {}
    for name, reason in cannot.items():
        if reason is not None and name in shown:
            reasons.setdefault(reason, []).append(name)
    if reasons:
        echo("\nThese cannot run here:\n")
        said = [[", ".join(names), reason] for reason, names in reasons.items()]
        echo(table(["methods", "reason"], said, left=2))
    echo("\nMethods:\n")
    rows = [[name, CATALOGUE[name].summary] for name in shown]
    echo(table(["method", "what it does"], rows, left=2))
    if len(shown) < len(CATALOGUE):
        echo(f"\nAll {len(CATALOGUE)}, with variants of these: fewbench methods --all.")
    echo("\nDetails: fewbench methods NAME. Parts to combine: fewbench methods --parts.")


def _print_one(name: str, cannot: str | None) -> None:
    entry = CATALOGUE[name]
    method = entry.method
    echo(f"{name}: {entry.summary}\n")
    echo(f"source   {entry.citation}")
    echo(f"parts    {method.describe()}")
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
    for called, part in parts_of(*whole):
        echo(f"\n{called or name}\n")
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
    echo(f"\nParts that choose tasks also take: {settings_of(TaskSettings)}")
    echo("\nMethods that ask again, with their settings:\n")
    listed = []
    for name, method in ADAPTIVE.items():
        for at, setting in enumerate(fields(method)):
            listed.append([name if at == 0 else "", setting.name, *choices(setting)])
    echo(table(["method", "setting", "default", "choices"], listed, left=4))
    echo("\nExamples: --method 'jsd(models=50)+pca(components=64)+ridge(alpha=1)'")
    echo("          --method 'tailored(probe=5,company=sources)'")
