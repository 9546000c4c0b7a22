"""MMLU-Pro: the lists of answers that its own programs write, by model or by category."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any

from fewbench.errors import ReaderError
from fewbench.readers.files import head, load_json
from fewbench.readers.harness import LogRun, LogUnit, Rows, Wants
from fewbench.readers.values import describe
from fewbench.support import counted

OF_MODEL, OF_CATEGORY = "model_outputs_", "_result"
QUESTION = "question_id"


class MMLUPro:
    """Read answers to MMLU-Pro: a task for each category, as lm-eval names it.

    An answer that could not be extracted (null) is wrong. MMLU-Pro's own accuracies count it as a
    random guess. The model is in the name of the file, or is that of its folder.
    """

    name = "mmlu-pro"
    files = "CATEGORY_result.json in a folder for each model, or model_outputs_MODEL_5shots.json"

    def find(self, files: Sequence[Path]) -> list[LogUnit]:
        """Return the files named so that hold a list of answers."""
        return [LogUnit(path) for path in files if _is_named(path) and _has_answers(head(path))]

    def read(self, unit: LogUnit, wants: Wants) -> list[LogRun]:
        """Return a run for each category of a file."""
        path = unit.path
        if wants.key not in (None, QUESTION):
            raise ReaderError(f"{path}: --key can only be {QUESTION}")
        answers = load_json(path)
        tasks = defaultdict[str, Rows](lambda: Rows(path, "answer"))
        unread, stray = defaultdict[str, int](int), 0
        for place, row in enumerate(answers, start=1):
            if not isinstance(row, dict) or not {QUESTION, "category", "answer", "pred"} <= {*row}:
                if not wants.salvage:
                    raise ReaderError(
                        f"{path}, answer {place}: {describe(row)}, without a question, an answer "
                        "or a pred",
                        hint="correct the file, or leave such answers out with --damaged rows",
                    )
                stray += 1
                continue
            task, question = task_of(row), str(row[QUESTION])
            unread[task] += row["pred"] is None
            score = {"exact_match": float(is_right(row))}
            rows = tasks[task]
            rows.append(question, score, place, own_id=question, answer=str(row["answer"]),
                        choices=row.get("options") or ())  # fmt: skip
        return [
            rows.run(
                model_of(path) or path.absolute().parent.name,
                task,
                higher_is_better={"exact_match": True},
                notes=tuple(_notes(unread[task], stray)),
            )
            for task, rows in tasks.items()
        ]


def model_of(path: PurePath) -> str:
    """Return the model that the name of a file states, "" if it states none.

    Examples
    --------
    >>> model_of(Path("model_outputs_Llama-2-7b_5shots.json")), model_of(Path("law_result.json"))
    ('Llama-2-7b_5shots', '')
    """
    return path.stem.removeprefix(OF_MODEL) if path.stem.startswith(OF_MODEL) else ""


def task_of(row: dict[str, Any]) -> str:
    """Return lm-eval's name of the category of a question."""
    return f"mmlu_pro_{str(row['category']).replace(' ', '_')}"


def is_right(row: dict[str, Any]) -> bool:
    """Whether the letter that was extracted is the right one."""
    right = row["answer"]
    return row["pred"] is not None and bool(row["pred"] == right)


def _notes(unread: int, stray: int) -> Iterator[str]:
    if unread:
        yield (
            f"answers without a choice (null) are wrong here ({unread:,}); MMLU-Pro's own "
            "accuracies count them as random guesses and are higher"
        )
    if stray:
        yield f"{counted(stray, 'entry', 'entries')} of the list left out that hold no answer"


def _is_named(path: Path) -> bool:
    is_named = path.stem.startswith(OF_MODEL) or path.stem.endswith(OF_CATEGORY)
    return path.suffix == ".json" and is_named


def _has_answers(start: bytes) -> bool:
    return start.lstrip()[:1] == b"[" and f'"{QUESTION}"'.encode() in start
