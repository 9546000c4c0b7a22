"""fewbench methods: the catalogue."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

from fewbench.cli.options import Json, load
from fewbench.cli.text import table
from fewbench.methods import ADAPTIVE, ADVICE, CATALOGUE, obstacle
from fewbench.methods.parts import STAGES
from fewbench.methods.selection.within_tasks import TaskSettings
from fewbench.methods.written import choices, settings_of


def methods(
    scores_path: Annotated[
        Path | None,
        typer.Argument(metavar="[SCORES]", help="Also say which methods cannot run on these."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List which methods to use, which cannot run here, all methods, and the parts to combine.

    \b
    fewbench methods
    fewbench methods scores.parquet
    fewbench methods --json
    """
    scores = None if scores_path is None else load(scores_path)
    stopped = {name: obstacle(entry.method, scores) for name, entry in CATALOGUE.items()}
    cannot = {name: None if error is None else str(error) for name, error in stopped.items()}
    if as_json:
        rows = [
            {"name": name, "parts": entry.method.describe()}
            | {"summary": entry.summary, "citation": entry.citation, "cannot": cannot[name]}
            | {"use_for": [one.when for one in ADVICE if name in one.methods]}
            for name, entry in CATALOGUE.items()
        ]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    print("Use these:\n")
    print(
        table(
            ["where", "methods", "because"],
            [[one.when, ", ".join(one.methods), one.reason] for one in ADVICE],
            left=3,
        )
    )
    reasons: dict[str, list[str]] = {}
    for name, reason in cannot.items():
        if reason is not None:
            reasons.setdefault(reason, []).append(name)
    if reasons:
        print("\nThese cannot run here:\n")
        said = [[", ".join(names), reason] for reason, names in reasons.items()]
        print(table(["methods", "because"], said, left=2))
    print("\nAll methods:\n")
    print(
        table(
            ["method", "what it does", "source"],
            [[name, entry.summary, entry.citation] for name, entry in CATALOGUE.items()],
            left=3,
        )
    )
    print("\nAs parts, which can be combined and set otherwise:\n")
    print(
        table(
            ["method", "parts"],
            [[name, entry.method.describe()] for name, entry in CATALOGUE.items()],
            left=2,
        )
    )
    print("\nselector + features + reduction + regressor, or selector + predictor, with or without")
    print("tasks before the selector; or tasks and a predictor (all items of these tasks):\n")
    print(
        table(
            ["part", "name", "settings, with their defaults"],
            [
                [stage if at == 0 else "", name, settings_of(part)]
                for stage, parts in STAGES.items()
                for at, (name, part) in enumerate(parts.items())
            ],
            left=3,
        )
    )
    print(f"\nThose that choose tasks also take: {settings_of(TaskSettings)}")
    print("\nMethods that choose as answers come in, with their settings:\n")
    listed = []
    for name, method in ADAPTIVE.items():
        for at, setting in enumerate(fields(method)):
            listed.append([name if at == 0 else "", setting.name, *choices(setting)])
    print(table(["method", "setting", "default", "choices"], listed, left=4))
    print("\nfor example: --method 'jsd(models=50)+pca(components=64)+ridge(alpha=1)'")
    print("         or: --method 'tailored(metric=cosine,restarts=5)'")
