"""promptfoo: the JSON that `promptfoo eval -o results.json` writes (versions 2 and 3)."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fewbench.errors import ReaderError
from fewbench.readers.files import at, head, load_object, object_at
from fewbench.readers.harness import LogRun, LogUnit, Rows, Wants
from fewbench.readers.values import content_id, field_value
from fewbench.support import counted

START = re.compile(
    rb'\s*\{\s*("evalId"\s*:\s*("[^"]*"|null)\s*,\s*)?"results"\s*:\s*\{\s*"version"\s*:\s*\d'
)
FAILED = 2  # failureReason: the provider or an assertion raised an error


class Promptfoo:
    """Read results of promptfoo: a model is a provider, an item a test.

    Metrics are `pass`, `score` and named scores. A test is identified by its variables and
    assertions; the same test again (`--repeat`) is a further answer to it. Tests that ended in an
    error count as not run. With several prompts, a model is a provider with one of them.
    """

    name = "promptfoo"
    files = "the .json that promptfoo eval -o writes"

    def find(self, files: Sequence[Path]) -> list[LogUnit]:
        """Return the files that begin as promptfoo's do."""
        named = [path for path in files if path.suffix == ".json"]
        return [LogUnit(path) for path in named if START.match(head(path))]

    def read(self, unit: LogUnit, wants: Wants) -> list[LogRun]:
        """Return a run for each provider and prompt."""
        path = unit.path
        data = load_object(path, "results of promptfoo")
        results = at(data, "results", "results")
        if not isinstance(results, list):
            raise ReaderError(f"{path}: no list of results", hint="write it with promptfoo eval -o")
        several = len({_prompt(result) for result in results}) > 1
        runs: dict[str, Rows] = {}
        met, errors = Counter[tuple[str, str]](), Counter[str]()
        for place, result in enumerate(results, start=1):
            provider = object_at(result, "provider")
            model = str(provider.get("label") or provider.get("id") or at(result, "provider") or "")
            model += f" ({_prompt(result)})" if several else ""
            rows = runs.setdefault(model, Rows(path, "result"))
            is_error = _is_error(result)
            errors[model] += is_error
            test = _json([object_at(result, "vars"), at(result, "testCase", "assert")])
            content = content_id(test)
            if wants.key:
                content = field_value(object_at(result, "vars"), wants.key, f"{path}, {place}")
            rows.append(
                content,
                dict.fromkeys(("pass", "score"), wants.broken("not-run"))
                if is_error
                else {"pass": result.get("success"), "score": result.get("score")}
                | object_at(result, "namedScores"),
                place,
                trial=met[model, content],
                prompt=str(at(result, "prompt", "raw") or ""),
                answer=_json(at(result, "testCase", "assert")),
                costs={
                    "cost": at(result, "cost"),
                    "tokens": at(result, "response", "tokenUsage", "total"),
                },
            )
            met[model, content] += 1
        stamp = str(at(data, "results", "timestamp") or "")
        return [
            rows.run(
                model,
                str(at(data, "config", "description") or "promptfoo"),
                stamp=stamp,
                higher_is_better={"pass": True, "score": True},
                notes=(_broken(errors[model], wants),) if errors[model] else (),
            )
            for model, rows in runs.items()
        ]


def _is_error(result: Any) -> bool:
    """Whether a test ended in an error; before version 3, one without a grade did."""
    failed = at(result, "failureReason")
    return failed == FAILED if failed is not None else bool(
        at(result, "error") and at(result, "gradingResult") is None
    )  # fmt: skip


def _broken(n_errors: int, wants: Wants) -> str:
    tests = counted(n_errors, "test")
    count_as = "wrong" if wants.errors == "wrong" else "not run"
    return f"{tests} that ended in an error {'counts' if n_errors == 1 else 'count'} as {count_as}"


def _prompt(result: Any) -> str:
    return str(at(result, "prompt", "label") or at(result, "prompt", "raw") or "")


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
