"""LiveCodeBench: SCENARIO_N_TEMPERATURE_eval_all.json in the output folder of a model."""

import re
from collections.abc import Sequence
from pathlib import Path

from fewbench.errors import ReaderError
from fewbench.readers.files import head, load_json
from fewbench.readers.harness import LogRun, LogUnit, Rows, Wants
from fewbench.readers.values import describe

ENDING = "_eval_all.json"
OTHER = "livecodebench"
"""Task of problems whose platform is not stated."""
SCENARIO = re.compile(r"(?:Scenario\.)?([a-z]+)_\d")
USUAL = "codegeneration"


class LiveCodeBench:
    """Read graded problems of LiveCodeBench: a task for each platform, several codes a problem.

    The codes of a problem are answers to one item; each test whose output is predicted is an item.
    Tasks of scenarios other than the generation of code are named PLATFORM_SCENARIO. The model is
    the folder, as LiveCodeBench names it.
    """

    name = "livecodebench"
    files = f"*{ENDING} in output/MODEL/"

    def find(self, files: Sequence[Path]) -> list[LogUnit]:
        """Return the files named so that hold a list."""
        named = [path for path in files if path.name.endswith(ENDING)]
        return [LogUnit(path) for path in named if head(path).lstrip()[:1] == b"["]

    def read(self, unit: LogUnit, wants: Wants) -> list[LogRun]:
        """Return a run for each platform."""
        path = unit.path
        if wants.key not in (None, "question_id"):
            raise ReaderError(f"{path}: problems have no {wants.key!r}", hint="omit --key")
        tasks: dict[str, Rows] = {}
        named = SCENARIO.match(path.name)
        ending = f"_{named[1]}" if named and named[1] != USUAL else ""
        for place, problem in enumerate(load_json(path), start=1):
            graded = problem.get("graded_list")
            if not isinstance(graded, list) or not graded:
                raise ReaderError(
                    f"{path}, problem {place}: graded_list is {describe(graded)}, not a list of "
                    "verdicts"
                )
            question = str(problem["question_id"])
            question += f"/{problem['test_id']}" if "test_id" in problem else ""
            task = task_of(problem.get("platform")) + ending
            rows = tasks.setdefault(task, Rows(path, "problem"))
            scores = [{"pass": float(bool(verdict))} for verdict in graded]
            rows.append(question, scores, place, own_id=question)
        return [
            rows.run(path.absolute().parent.name, task, higher_is_better={"pass": True})
            for task, rows in tasks.items()
        ]


def task_of(platform: object) -> str:
    """Return the task of a problem of a platform."""
    return str(platform or OTHER)
