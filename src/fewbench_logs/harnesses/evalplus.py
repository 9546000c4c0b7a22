"""EvalPlus: eval_results.json of HumanEval+ and MBPP+, and of BigCodeBench, its descendant."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fewbench.errors import ReaderError
from fewbench.readers.files import at, head, load_object, object_at
from fewbench.readers.harness import LogRun, LogUnit, Rows, Wants
from fewbench.readers.values import describe

NAME = re.compile(r"(?:^|(?P<model>.*?)[._])eval_results\.json")
START = re.compile(rb'\s*\{\s*"(date|hash|eval)"\s*:')
PASSED = ("pass", "success")  # newer and older versions
PLAIN = "samples"
"""Name of the file of answers in EvalPlus's own examples, which does not name the model."""


class EvalPlus:
    """Read results of EvalPlus: `base` says whether the base tests passed, `plus` also the others.

    Several samples of a problem are answers to one item. The model is named by the file, as
    EvalPlus names it, or by the folder.
    """

    name = "evalplus"
    files = "*eval_results.json"

    def find(self, files: Sequence[Path]) -> list[LogUnit]:
        """Return the files named so that begin as EvalPlus's do."""
        named = [path for path in files if NAME.fullmatch(path.name)]
        return [LogUnit(path) for path in named if START.match(head(path))]

    def read(self, unit: LogUnit, wants: Wants) -> list[LogRun]:
        """Return a run for each dataset, which ids begin with: HumanEval/0."""
        path = unit.path
        if wants.key not in (None, "task_id"):
            raise ReaderError(f"{path}: problems have no {wants.key!r}", hint="omit --key")
        data = load_object(path, "results of EvalPlus")
        tasks: dict[str, Rows] = {}
        for place, (problem, results) in enumerate(object_at(data, "eval").items(), start=1):
            dataset, _, number = problem.partition("/")
            rows = tasks.setdefault(dataset, Rows(path, "problem"))
            samples = _samples(results)
            if not samples:
                raise ReaderError(f"{path}: problem {problem!r} has {describe(results)}")
            rows.append(number or problem, samples, place, own_id=problem)
        named = NAME.fullmatch(path.name)
        model = named["model"] if named and named["model"] not in (None, PLAIN) else ""
        return [
            rows.run(
                model or path.absolute().parent.name,
                dataset,
                stamp=str(data.get("date") or ""),
                total=rows.n_items,
                higher_is_better=dict.fromkeys(rows.values, True),
            )
            for dataset, rows in tasks.items()
        ]


def _samples(results: Any) -> list[dict[str, float]]:
    """Return the scores of each sample of a problem: a list of objects, or lists by test suite."""
    if isinstance(results, dict):  # before 2023-08: {"base": [[status, details], …], "plus": …}
        suites = [results[name] for name in ("base", "plus") if results.get(name)]
        samples = [
            [at(suite, number, 0) for suite in suites] for number in range(len(suites[0]))
        ] if suites else []  # fmt: skip
    else:
        keys = [("base_status", "plus_status"), ("status",)]
        samples = [
            [sample.get(name) for name in names if sample.get(name) is not None]
            for sample in (results if isinstance(results, list) else [])
            for names in keys
            if names[0] in sample
        ]
    return [
        {"base": float(statuses[0] in PASSED)}
        | ({"plus": float(all(one in PASSED for one in statuses))} if len(statuses) > 1 else {})
        for statuses in samples
    ]
