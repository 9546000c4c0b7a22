"""Inspect: .eval and .json logs, read with Inspect's own reader."""

import re
from collections.abc import Sequence
from pathlib import Path

from fewbench.errors import ReaderError
from fewbench.readers.files import head
from fewbench.readers.harness import Unit, Wants
from fewbench.readers.harnesses._inspect.files import Log, read_log
from fewbench.readers.harnesses._inspect.header import (
    notes_on,
    order_of,
    positions_of,
    settings_of,
    task_settings_of,
    variant_of,
)
from fewbench.readers.harnesses._inspect.items import content_of
from fewbench.readers.harnesses._inspect.options import option_table
from fewbench.readers.harnesses._inspect.scores import score_samples
from fewbench.readers.run import UNKNOWN, Rows, Run

JSON_LOG = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:')


class InspectLogs:
    """Logs of Inspect, also those of `lighteval eval`; needs `fewbench[inspect]`.

    An item is a sample, known by its input, choices and right answers, as ids can be mere
    positions. Every scorer is a metric of its name, SCORER.KEY where it scores several things
    under names: C, P, I and N count 1, .5, 0 and 0. Epochs are averaged. Samples that ended in an
    error or lack a score count as not run. Runs of the same task with other task arguments or
    another solver are not taken for re-runs. Cheap logs are read by header and summaries, without
    transcripts; whole samples only where these cut a text, or to find option probabilities.
    """

    name = "inspect"
    files = "*.eval, or *.json logs"

    def find(self, files: Sequence[Path]) -> list[Unit]:
        """Return the logs among files."""
        return [Unit(path) for path in files if _is_log(path)]

    def read(self, unit: Unit, wants: Wants) -> list[Run]:
        """Return the one run of a log."""
        path = unit.path
        log = read_log(path, wants.key)
        header = log.header
        scored = score_samples(log.samples)
        if not scored.items:
            raise ReaderError(
                f"{path}: no sample has a score ({_why_empty(log)})",
                hint="delete it, or leave it out with --damaged skip",
            )
        total = header.eval.dataset.samples
        if total is not None and total < len({str(sample.id) for sample in log.samples}):
            total = None  # a source of samples that goes on while it runs does not know its size
        order = order_of(header)
        positions = positions_of(header) if total is not None else {}
        rows = Rows(path, "sample")
        for item in sorted(
            scored.items, key=lambda item: order.get(str(item.sample.id), len(order))
        ):
            own_id = str(item.sample.id)
            rows.append(
                content_of(path, item.place, item.sample, wants.key),
                item.scores,
                item.place,
                position=positions.get(own_id, UNKNOWN),
                own_id=own_id,
                options=option_table(item.sample) if item.epochs == 1 else None,
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
                harness_version=str(header.eval.packages.get("inspect_ai", "")),
                notes=notes_on(header, scored),
            )
        ]


def _is_log(path: Path) -> bool:
    if path.suffix == ".json":
        return JSON_LOG.match(head(path)) is not None
    return path.suffix == ".eval" and head(path)[:2] in (b"PK", b"")


def _stamp(path: Path, created: str) -> str:
    """Return when a run began; scored again (`inspect score`), it counts as newer."""
    again = re.search(r"-scored(?:-(\d+))?$", path.stem)
    return f"{created} scored {int(again[1] or 0):03}" if again else str(created)


def _why_empty(log: Log) -> str:
    if not log.samples:
        if log.header.eval.config.log_samples is False:
            return "run with --no-log-samples: run it again without that option"
        return f"status {log.header.status!r}, no samples"
    return f"status {log.header.status!r}, {len(log.samples)} samples without one"
