"""Inspect: .eval and .json logs, read with Inspect's own reader."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from fewbench._memory import check_zip
from fewbench._names import counted, some
from fewbench.errors import MissingExtraError, ReaderError, first_line
from fewbench.readers.files import head
from fewbench.readers.harness import UNKNOWN, LogRun, LogUnit, Rows, Wants
from fewbench.readers.harnesses.inspect_logs.header import (
    MARK,
    groupings_of,
    notes_on_groups,
    positions_of,
    scorer_of,
    settings_of,
    task_settings_of,
    variant_of,
)
from fewbench.readers.harnesses.inspect_logs.samples import (
    CUT,
    answer_key,
    content_of,
    group_of,
    option_table,
    texts_of,
)
from fewbench.readers.harnesses.inspect_logs.scores import (
    ScoredSamples,
    describe_reduction,
    score_samples,
)
from fewbench.readers.values import content_id, field_value

# Parts of samples that may be large and are not needed.
UNREAD = frozenset({"messages", "events", "store", "attachments"})
CHOICES_SINCE = (0, 3, 200)  # summaries of older versions lack the choices
REMOVED, SHORTENED = "Key removed from summary (> 1k)", 1000
JSON_LOG = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:')


class InspectLogs:
    """Read logs of Inspect and of `lighteval eval`; needs `fewbench[inspect]`.

    An item is a sample, identified by its input, choices and right answers. Each scorer is a
    metric, SCORER.KEY if it returns several values; C, P, I and N count 1, 0.5, 0 and 0. Epochs are
    reduced by the task's reducer, or averaged if it has several. Samples with an error or without a
    score count as not run. Groups of samples that a metric is `grouped` by are tasks of their own,
    named TASK_GROUP. Runs with other task arguments or another solver are not re-runs. Whole
    samples are read only if the summaries truncate a text, for option probabilities, or to see how
    replies ended.
    """

    name = "inspect"
    files = "*.eval, or *.json logs"

    def find(self, files: Sequence[Path]) -> list[LogUnit]:
        """Return the logs among files."""
        return [LogUnit(path) for path in files if _is_log(path)]

    def read(self, unit: LogUnit, wants: Wants) -> list[LogRun]:
        """Return the one run of a log."""
        path = unit.path
        log = _read_log(path, wants)
        header = log.header
        try:
            reducers = header.eval.config.epochs_reducer
            scored = score_samples(log.samples, reducers, keeps_all=wants.trials)
        except ReaderError as error:
            raise ReaderError(f"{path}: {error.message}", hint=error.hint) from error
        if not scored.items:
            why = f"status {header.status!r}, {len(log.samples)} samples without one"
            if not log.samples and header.eval.config.log_samples is False:
                why = "run with --no-log-samples: run it again without that option"
            elif not log.samples:
                why = f"status {header.status!r}, no samples"
            raise ReaderError(
                f"{path}: no sample has a score ({why})",
                hint="delete the log, or skip it with --damaged skip",
            )
        total = header.eval.dataset.samples
        if total is not None and total < len({str(sample.id) for sample in log.samples}):
            total = None  # samples were generated during the run
        # Equal samples differ by their place in this order.
        ids = header.eval.dataset.sample_ids or []
        order = {str(own_id): at for at, own_id in enumerate(ids)}
        positions = positions_of(header) if total is not None else {}
        rows, group_keys = Rows(path, "sample"), [*groupings_of(header)]
        for item in sorted(
            scored.items, key=lambda item: order.get(str(item.sample.id), len(order))
        ):
            sample, own_id = item.sample, str(item.sample.id)
            if wants.key:
                fields = {"id": sample.id, "input": sample.input} | (sample.metadata or {})
                where = f"{path}, sample {item.place} (id {sample.id!r})"
                content = field_value(fields, wants.key, where)
            else:
                content = content_id(*content_of(sample))
            answer, choices = answer_key(sample)
            rows.append(
                content,
                item.trials,
                item.place,
                position=positions.get(own_id, UNKNOWN),
                own_id=own_id,
                answer=answer,
                choices=choices,
                options=option_table(sample) if item.epochs == 1 else None,
                reply=item.reply,
                part=group_of(sample, group_keys),
                costs=item.costs,
            )
        return [
            rows.run(
                header.eval.model,
                header.eval.task,
                stamp=_stamp(path, header.eval.created),
                variant=variant_of(header),
                total=total,
                version=str(header.eval.task_version),
                settings=settings_of(header),
                task_settings=task_settings_of(header),
                scorers={
                    metric: text
                    for metric in rows.values
                    if (text := scorer_of(header, metric)) is not None
                },
                harness_version=str(header.eval.packages.get("inspect_ai", "")),
                notes=_notes_on(header, scored, None if wants.trials else reducers),
            )
        ]


@dataclass(frozen=True)
class _Log:
    header: Any
    samples: Sequence[Any]


def _read_log(path: Path, wants: Wants) -> _Log:
    """Read a log: header and summaries if they suffice, else whole samples."""
    try:
        inspect_log = import_module("inspect_ai.log")
    except ImportError as error:
        raise MissingExtraError(
            "reading Inspect logs needs inspect-ai, which is not installed",
            hint="pip install 'fewbench[inspect]'",
        ) from error
    if path.suffix != ".json":
        check_zip(path)
    try:
        if path.suffix == ".json":
            log = inspect_log.read_eval_log(str(path))
            return _Log(log, log.samples or [])
        header = inspect_log.read_eval_log(str(path), header_only=True)
        summaries = inspect_log.read_eval_log_sample_summaries(str(path))
        if not (wants.replies or _needs_samples(header, summaries, wants.key)):
            return _Log(header, summaries)
        read = inspect_log.read_eval_log
        sparing = "exclude_fields" in signature(read).parameters  # not in 0.3.200
        whole = read(str(path), **({"exclude_fields": set(UNREAD)} if sparing else {}))
        return _Log(header, whole.samples or [])
    except Exception as error:  # of zip, zstd, JSON and pydantic, by version
        raise ReaderError(
            f"{path}: not a whole log of Inspect ({type(error).__name__}: {first_line(error)})",
            hint="copy it again; if a newer Inspect wrote it, update inspect-ai",
            kind="damaged",
        ) from error


def _needs_samples(header: Any, summaries: Sequence[Any], key: str | None) -> bool:
    asked = (header.plan.config, header.eval.model_generate_config)
    if any(setup and setup.logprobs for setup in asked) and any(case.choices for case in summaries):
        return True
    if _version(header) < CHOICES_SINCE:
        return True
    texts = [text for case in summaries for text in (*texts_of(case.input), *texts_of(case.target))]
    if any(text.endswith(CUT) for text in texts):
        return True
    return key not in (None, "id", "input") and any(
        value is None or value == REMOVED or (isinstance(value, str) and len(value) > SHORTENED)
        for value in (case.metadata.get(key) for case in summaries)
    )


def _version(header: Any) -> tuple[int, ...]:
    numbers = re.findall(r"\d+", str(header.eval.packages.get("inspect_ai", "")))
    return tuple(int(number) for number in numbers[:3])


def _notes_on(
    header: Any, scored: ScoredSamples, reducers: Sequence[str] | None
) -> tuple[str, ...]:
    notes = []
    if scored.copies:
        notes.append(f"{counted(scored.copies, 'sample')} repeated, with the same scores")
    if header.status != "success":
        error = getattr(header.error, "message", None)
        why = f": {str(error).strip().splitlines()[0]}" if error and str(error).strip() else ""
        notes.append(
            f"the run did not finish (status {header.status!r}{why}); its answers are used"
        )
    stopping = getattr(header.results, "early_stopping", None)
    if stopping is not None:
        notes.append(
            f"{stopping.manager!r} stopped the run after {len(scored.items)} items because of "
            "their scores, so their mean is not the task's"
        )
    if MARK in (header.eval.metadata or {}):
        notes.append("fewbench chose the items, so their mean is not the task's")
    epochs = {item.epochs for item in scored.items}
    if epochs - {1}:
        notes.append(
            describe_reduction(reducers, max(epochs))
            + (", fewer for some items" if len(epochs) > 1 else "")
        )
    for own_ids, why in (
        (scored.failed, "ended in an error"),
        (scored.unscored, "have no score"),
        *((own_ids, f"have no score of {metric!r}") for metric, own_ids in scored.lacking.items()),
    ):
        if own_ids:
            notes.append(f"samples that {why} count as not run ({len(own_ids)}): {some(own_ids)}")
    if scored.despite_errors:
        notes.append(f"{scored.despite_errors} samples ended in an error but have a score")
    notes += notes_on_groups(header)
    if getattr(header, "invalidated", False):
        notes.append("samples of this log are marked as invalid; they are used nevertheless")
    return tuple(notes)


def _is_log(path: Path) -> bool:
    if path.suffix == ".json":
        return JSON_LOG.match(head(path)) is not None
    return path.suffix == ".eval" and head(path)[:2] in (b"PK", b"")


def _stamp(path: Path, created: str) -> str:
    """Return the start time; a rescored log (`inspect score`) counts as newer."""
    again = re.search(r"-scored(?:-(\d+))?$", path.stem)
    return f"{created} scored {int(again[1] or 0):03}" if again else str(created)
