"""Measure how tasks transfer: ask what is open, keep every answer, and make the matrix."""

import os
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from fewbench.errors import RunError, TransferError
from fewbench.support import OnStep
from fewbench_papers.bento.measurement.answers import (
    MeasuredAnswers,
    check_not_smaller,
    transferability,
)
from fewbench_papers.bento.measurement.asking import Asker, Failures, answered
from fewbench_papers.bento.measurement.cost import Limits, Prices
from fewbench_papers.bento.measurement.design import Design
from fewbench_papers.bento.measurement.journal import (
    AnswerFile,
    Hashes,
    open_measured,
    read_measured,
)
from fewbench_papers.bento.measurement.model import HarnessModel
from fewbench_papers.bento.measurement.result import Measurement, MeasurementRun
from fewbench_papers.bento.transferability import MATRIX

BATCH = 64


def expected_cost(
    design: Design,
    model: HarnessModel,
    prices: Prices | None = None,
    output: str | os.PathLike[str] | None = None,
) -> Measurement:
    """Return a measurement without requests, for its cost; `output` is a folder to continue.

    TransferError if the folder holds another measurement or a larger one, or is damaged.
    """
    answers, folder = MeasuredAnswers(design), None
    if output is not None:
        folder = Path(output)
        check_not_smaller(folder / MATRIX, design)
        answers = read_measured(folder, Hashes(design, model.facts(design.metric)), design)
    return Measurement(folder, model, answers, prices or Prices())


def measure(
    design: Design,
    model: HarnessModel,
    output: str | os.PathLike[str],
    limits: Limits | None = None,
    *,
    batch: int = BATCH,
    partial: bool = False,
    force: bool = False,
    on_start: Callable[[Measurement], None] | None = None,
    progress: OnStep | None = None,
) -> Measurement:
    """Measure a model's accuracy on each task with examples of every task in the prompt.

    Any model of lm-eval works. Every answer is saved: rerun the command to resume, or to add seeds,
    questions or columns.

    Parameters
    ----------
    design : Design
    model : HarnessModel
    output : path
        Folder for the measurement.
    limits : Limits, optional
    batch : int
        Questions per call of the model. If the process is killed, those in flight are sent again.
    partial : bool
        Send no requests: write the matrix from the answers so far.
    force : bool
        Replace a matrix of more seeds, targets or questions.
    on_start : callable, optional
        Called with the measurement, which has the expected cost, before the model is loaded.
    progress : callable, optional
        Called with the numbers of answers and of requests.

    Raises
    ------
    ModelError
        If the model cannot be reached, or questions failed. Answers stay in the folder.
    RunError
        If the model does not fit the metric.
    TransferError
        If the folder holds another measurement or a larger one, or is damaged.
    """
    if batch < 1:
        raise RunError(f"batch {batch} is too low", hint="give 1 or more", kind="range")
    folder, limits, run = Path(output), limits or Limits(), None
    if not force:
        check_not_smaller(folder / MATRIX, design)
    with open_measured(folder, design, model.facts(design.metric)) as file:
        answers = file.answers
        if partial and not answers.n_done:
            raise TransferError(
                f"{folder}: contains no answers",
                hint="measure first, without --partial",
                kind="unanswered",
            )
        if on_start is not None:
            on_start(Measurement(folder, model, answers, limits.prices))
        if not (partial or answers.complete):
            run = _ask(file, model, limits, batch, progress)
    matrix = None
    if partial or answers.complete:
        measurement = Measurement(folder, model, answers, limits.prices, run, partial)
        matrix = transferability(answers, measurement.about)
        matrix.save(folder / MATRIX)
    return Measurement(folder, model, answers, limits.prices, run, partial, matrix)


def _ask(
    file: AnswerFile,
    model: HarnessModel,
    limits: Limits,
    batch: int,
    progress: OnStep | None,
) -> MeasurementRun:
    """Ask what is open until all is answered or a limit is reached."""
    answers, asked, stopped = file.answers, 0, None
    asker = Asker(model.load(), answers.design, model.asks_as_chat, not model.one_by_one)
    started = time.monotonic()
    pending, failures = iter(answers.pending()), Failures(file)
    while requests := list(islice(pending, batch)):
        stopped = limits.reached(answers.prompt, answers.completion)
        if stopped is not None:
            break
        for request, answer in answered(asker, requests, failures):
            file.append(request, answer)
            asked += 1
        if progress is not None:
            progress(answers.n_done, len(answers.design))
    failures.raise_first()
    estimated = 0 if asker.counts_tokens else asked
    return MeasurementRun(asked, estimated, time.monotonic() - started, stopped)
