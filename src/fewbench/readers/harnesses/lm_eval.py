"""lm-evaluation-harness: samples_TASK_TIME.jsonl with results_TIME.json, of every version."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from fewbench.errors import ReaderError
from fewbench.readers.harness import Unit, Wants
from fewbench.readers.harnesses._lm_eval.choices import option_table
from fewbench.readers.harnesses._lm_eval.documents import OPEN, Documents
from fewbench.readers.harnesses._lm_eval.files import find_samples
from fewbench.readers.harnesses._lm_eval.origin import Origin, identify
from fewbench.readers.harnesses._lm_eval.rows import (
    SampleRows,
    content_of,
    filter_of,
    metrics_of,
    prompt_of,
)
from fewbench.readers.options import OptionTable, recomputed
from fewbench.readers.run import MIXED_UP, Rows, Run
from fewbench.readers.settings import setting
from fewbench.scores.conditions import UNKNOWN_FORM

NO_RESULTS = (
    "without its run's results file beside; taken for model {!r} by the name of the file, the "
    "folder or the folder's other runs, and whether higher is better is not checked"
)
NO_TASK = "not named samples_TASK_TIME, so its name is taken for the task"
WRONG_SCORES = (
    "scores that the log-likelihoods contradict: lm-eval 0.4.5 to 0.4.8 mixes up the requests of "
    "tasks with acc_mutual_info, so run it again with another version"
)
UNNAMED_FILTER = "written before lm-eval 0.4.7 and does not name its filter"


class LmEval:
    """What lm-eval writes with `--log_samples --output_path`, 0.4.0 to 0.4.13.

    An item is a document, known by lm-eval's own hash of it (computed here for versions before
    0.4.3, which log the document only), so that runs of a subset, in any order, join with whole
    runs. Also reads the details of the Open LLM Leaderboard v2, which lm-eval wrote.
    """

    name = "lm-eval"
    files = "samples_TASK_TIME.jsonl, written with --log_samples --output_path"

    def find(self, files: Sequence[Path]) -> list[Unit]:
        """Return the sample files, each with its run's results."""
        return find_samples(files)

    def read(self, unit: Unit, wants: Wants) -> list[Run]:
        """Return a run for each filter of a samples file."""
        origin = identify(unit)
        results, task = origin.results, origin.task
        delimiter = results.delimiter(task) if results else " "
        rows = SampleRows(unit.path, wants.salvage)
        parts: dict[_Part, Rows] = {}
        met: Counter[tuple[str | None, int, str]] = Counter()
        documents = Documents()
        for place, row in rows:
            if not rows.is_table:  # which has every field in every document
                documents.add(row, place)
            where = f"{unit.path}, {rows.place_word} {place}"
            named = filter_of(row, where)
            if parts and (named is None) != (next(iter(parts))[0] is None):
                raise ReaderError(f"{where}: some rows name their filter and some do not")
            document = named, row["doc_id"], "" if named is None else row["doc_hash"]
            time = met[document]
            if named is not None and time:
                raise _repeated(named, row["doc_id"], where)
            met[document] += 1
            if time >= max(len(origin.filters), 1):
                raise _unnamed(row["doc_id"], where)
            part = parts.setdefault((named, time), Rows(unit.path, rows.place_word))
            metrics = metrics_of(row, where)
            part.append(
                content_of(row, wants.key, where),
                {name: row[name] for name in metrics},
                place,
                position=row["doc_id"],
                prompt=prompt_of(row),
                options=None if part.options is None else option_table(row, metrics, delimiter),
            )
        if not parts:
            raise ReaderError(f"{unit.path}: empty, no document was logged", hint="delete it")
        torn = (*rows.lines.notes, *documents.check(unit.path, rows.place_word))
        if task == unit.path.stem:
            torn = (*torn, NO_TASK)
        return [_run(filled, _name(part, origin), origin, torn) for part, filled in parts.items()]


_Part = tuple[str | None, int]  # the filter, or None and the how-manieth row of a document


def _run(rows: Rows, named: str | None, origin: Origin, notes: tuple[str, ...]) -> Run:
    results, task = origin.results, origin.task
    total, ran = results.sizes(task, len(rows)) if results else (None, None)
    if not _has_true_ids(rows.positions, total):
        rows.positions = [MIXED_UP] * len(rows)
    if total == len(rows):  # a whole run has the prompts of its own documents
        notes = tuple(note for note in notes if note != OPEN)
    if results is None:
        notes = (*notes, NO_RESULTS.format(origin.model))
    if named is None:
        notes = (*notes, UNNAMED_FILTER)
    if wrong := _wrong_scores(rows):
        notes = (*notes, f"{WRONG_SCORES} ({wrong} here)")
    return rows.run(
        origin.model,
        task,
        filter=named,
        stamp=origin.stamp,
        total=total,
        ran=ran,
        version=results.version(task) if results else "",
        suite=results.suite(task) if results else "",
        # Of two runs that do not say whose they are, the later need not be a re-run.
        variant=results.variant(task) if results else f"run={origin.stamp}" if origin.stamp else "",
        settings=tuple((key, setting(value)) for key, value in sorted(results.arguments.items()))
        if results
        else (),
        task_settings=tuple(sorted(results.task_settings(task).items())) if results else (),
        prompt_form=results.prompt_form if results else UNKNOWN_FORM,
        harness_version=results.harness_version if results else "",
        higher_is_better=results.directions(task) if results else {},
        notes=notes,
    )


def _wrong_scores(rows: Rows) -> int:
    """Count scores of a task with acc_mutual_info that its log-likelihoods contradict."""
    if "acc_mutual_info" not in rows.values or not rows.options or "acc" not in rows.values:
        return 0
    expected = recomputed(OptionTable.columns(rows.options), "acc")
    return int((np.isfinite(expected) & (expected != rows.values["acc"])).sum())


def _has_true_ids(doc_ids: list[int], total: int | None) -> bool:
    """Whether doc_ids can be believed: `--samples` out of order makes lm-eval mix them up."""
    whole = total == len(doc_ids) == len(set(doc_ids))
    return whole or all(a < b for a, b in pairwise(doc_ids))


def _name(part: _Part, origin: Origin) -> str | None:
    named, time = part
    return origin.filters[time] if named is None and origin.filters else named


def _unnamed(doc_id: int, where: str) -> ReaderError:
    return ReaderError(
        f"{where}: document {doc_id} has a second row; before 0.4.7 lm-eval wrote one for "
        "each filter, and no results file beside names the filters",
        hint="put the run's results file beside it, or run it again with lm-eval 0.4.7 or newer",
    )


def _repeated(named: str, doc_id: int, where: str) -> ReaderError:
    return ReaderError(
        f"{where}: document {doc_id} is logged a second time for filter {named!r}",
        hint="the file was joined from two; keep one of them",
    )
