"""fewbench methods: the catalogue."""

import json
from dataclasses import fields

from fewbench.cli.options import Json
from fewbench.cli.text import table
from fewbench.methods import ADAPTIVE, CATALOGUE
from fewbench.methods.parts import STAGES
from fewbench.methods.selection.within_tasks import TaskSettings
from fewbench.methods.written import choices, settings_of


def methods(as_json: Json = False) -> None:
    """List every method with its parts and whose it is, and the parts to combine.

    \b
    fewbench methods
    fewbench methods --json
    """
    if as_json:
        rows = [
            {"name": name, "parts": entry.method.describe()}
            | {"summary": entry.summary, "citation": entry.citation}
            for name, entry in CATALOGUE.items()
        ]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return
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
