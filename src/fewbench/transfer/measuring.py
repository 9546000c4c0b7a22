"""Measuring: many requests at a time, tried again where they fail, within limits."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from fewbench.errors import ModelError
from fewbench.runners.models.model import Model, TryAgain
from fewbench.transfer.answers import Answers
from fewbench.transfer.design import Design
from fewbench.transfer.journal import Header, opened
from fewbench.transfer.limits import Limits, Patience, check_pace
from fewbench.transfer.session import Progress, Run, Session

Outcome = TypeVar("Outcome")
FIRST_TRIES = 4  # until a model that was never reached is taken not to be there


def measure(
    folder: Path,
    design: Design,
    model: Model,
    *,
    facts: Mapping[str, str] | None = None,
    prepared: Callable[[Mapping[str, str]], None] | None = None,
    concurrency: int = 16,
    patience: Patience | None = None,
    rate: float | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
    known: Answers | None = None,
) -> tuple[Answers, Run]:
    """Ask what a folder's answers to a design still lack, and keep every answer there.

    Parameters
    ----------
    folder : Path
        A measurement to go on with, or where to begin one.
    design : Design
    model : Model
        It is closed at the end.
    facts : mapping of str to str, optional
        What else must be the same for answers to be comparable.
    prepared : callable, optional
        Called with how the model is asked, when that is known and before anything is asked.
    concurrency : int
        Requests under way at a time.
    patience : Patience, optional
    rate : float, optional
        Most requests a minute.
    limits : Limits, optional
    progress : callable, optional
        Called with (done, all).
    known : Answers, optional
        The folder's answers to the design, if they were read already; they grow.

    Returns
    -------
    answers : Answers
        All there are, complete unless the run stopped at a limit.
    run : Run

    Raises
    ------
    ModelError
        If the model cannot be asked, or one request or everything has failed too often; answers
        that came are in the folder.
    TransferError
        If the folder holds another measurement or is damaged.
    """
    check_pace(concurrency, rate)
    patience, limits = patience or Patience(), limits or Limits()

    async def run() -> tuple[Answers, Run]:
        started = time.monotonic()
        try:
            found = await _prepared(model, patience, design.metric != "exact-match")
            found |= facts or {}
            if prepared is not None:
                prepared(found)
            header = Header.of(design, model.name, found)
            with opened(folder, header, design, known) as journal:
                session = Session(journal, model, patience, rate, limits, progress)
                session.did.notes = journal.notes
                await session.run(concurrency)
        finally:
            await model.close()
        session.did.seconds = time.monotonic() - started
        return journal.answers, session.did

    return _run(run())


def _run(work: Coroutine[None, None, Outcome]) -> Outcome:
    """Run to the end; in a thread of its own where a loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Outcome]]] = []

    async def noted() -> Outcome:
        task = asyncio.current_task()
        assert task is not None
        started.append((asyncio.get_running_loop(), task))
        return await work

    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(asyncio.run, noted())
        try:
            return running.result()
        except BaseException:
            if not running.done() and started:  # Ctrl-C is told to the first thread only
                loop, task = started[0]
                loop.call_soon_threadsafe(task.cancel)
            raise


async def _prepared(model: Model, patience: Patience, log_probabilities: bool) -> dict[str, str]:
    """Return what decides how the model is asked."""
    tries = min(patience.tries, FIRST_TRIES)
    for failed in range(1, tries + 1):
        try:
            return await model.prepare(log_probabilities)
        except TryAgain as error:
            if failed == tries:
                if error.status is not None:  # it is up, and says what is wrong
                    raise ModelError(
                        f"the server of {model.name} answers {error.reason}",
                        hint="see the server's log; the same command tries again",
                    ) from error
                raise ModelError(
                    f"{model.name} cannot be reached: {error.reason}",
                    hint="is the server up, and its address right?",
                ) from error
            await asyncio.sleep(max(error.after or 0.0, patience.wait(failed)))
    raise AssertionError
