"""lighteval: details_TASK_TIME.parquet, also of the first Open LLM Leaderboard."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from fewbench._names import some
from fewbench.errors import ReaderError
from fewbench.readers.harness import Unit, Wants
from fewbench.readers.harnesses._lighteval.details import Detail, read_details
from fewbench.readers.harnesses._lighteval.files import home_of, model_of, named, results_of
from fewbench.readers.harnesses._lighteval.results import Results
from fewbench.readers.identity import content_id, field_value
from fewbench.readers.numbers import as_number
from fewbench.readers.options import NO_ANSWER, OptionTable, recomputed
from fewbench.readers.run import Rows, Run


class Lighteval:
    """Details of lighteval, 0.1 to 0.13, and of the Open LLM Leaderboard until June 2024.

    An item is a document, known by its question, options and right answers as lighteval had them
    after its prompt function (so with words like "Question:" around them). Since 0.11 the file
    says each document's position in the task's split; before, rows are in an order that lighteval
    shuffles, always alike, and the position is not known. A task is named as lighteval names it,
    with the number of examples at the end. Newer runs replace older ones of the same model folder.
    """

    name = "lighteval"
    files = "details_TASK_TIME.parquet"

    def find(self, files: Sequence[Path]) -> list[Unit]:
        """Return the files of details, each with the results of its run beside."""
        runs: dict[tuple[Path, str], Path | None] = {}
        units = []
        for path in files:
            if (told := named(path)) is not None:
                run = path.parent, told.stamp
                if run not in runs:
                    runs[run] = results_of(path)
                results = runs[run]
                units.append(Unit(path, (results,) if results else ()))
        return units

    def read(self, unit: Unit, wants: Wants) -> list[Run]:
        """Return the one run of a file of details."""
        path = unit.path
        told = named(path)
        if told is None:
            raise ReaderError(
                f"{path}: not named as lighteval names its files",
                hint="it should be details_TASK_TIME.parquet, as lighteval wrote it",
            )
        results = Results.read(unit.beside[0]) if unit.beside else Results(path, {})
        details = list(read_details(path))
        rows = Rows(path, "row")
        texts = _texts([detail for _, detail in details])
        notes: list[str] = []
        lacking = []
        for place, detail in details:
            if not detail.scores:
                lacking.append(place)
                continue
            rows.append(
                _content(path, place, detail, wants.key),
                detail.scores,
                place,
                position=detail.position,
                prompt=detail.prompt,
                options=_options(detail, texts),
            )
        if lacking and len(rows):
            notes.append(f"{len(lacking)} rows have no score and count as not run: {some(lacking)}")
        total, ran = results.sizes(told.task, len(details))
        return [
            rows.run(
                results.model or model_of(path),
                told.task,
                stamp=told.stamp,
                group=str(home_of(path)),
                total=total,
                ran=ran,
                version=results.version(told.task),
                settings=results.settings(),
                higher_is_better=results.higher_is_better(told.task),
                notes=tuple(notes),
            )
        ]


def _content(path: Path, place: int, detail: Detail, key: str | None) -> str:
    if key is None:
        return content_id(*detail.content)
    return field_value(detail.fields, key, f"{path}, row {place}")


def _options(detail: Detail, texts: str) -> OptionTable | None:
    if len(detail.likelihoods) < 2:
        return None
    right = detail.gold_index[0] if len(detail.gold_index) == 1 else NO_ANSWER
    named_texts = [one.lstrip(" ") if texts == "stripped" else one for one in detail.choices]
    return OptionTable(detail.likelihoods, right, named_texts, detail.unconditional)


def _texts(details: Sequence[Detail]) -> str:
    """Say whether `acc_norm` counts the space that options begin with, as its scores tell.

    lighteval has it both ways, and the file does not say which; "whole" if both explain as many.
    """
    known = [
        (detail, score)
        for detail in details
        if len(detail.likelihoods) > 1
        and (score := as_number(detail.scores.get("acc_norm"))) is not None
    ]
    if not known:
        return "whole"
    scores = np.array([score for _, score in known])
    explained = {}
    for texts in ("whole", "stripped"):
        tables = [_options(detail, texts) for detail, _ in known]
        columns = OptionTable.columns([replace(one) for one in tables if one is not None])
        explained[texts] = int((recomputed(columns, "acc_norm") == scores).sum())
    return max(explained, key=lambda texts: explained[texts])
