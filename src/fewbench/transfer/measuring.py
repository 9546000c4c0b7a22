"""Measuring: many requests at a time, tried again where they fail, within limits."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from fewbench.errors import ModelError, TransferError
from fewbench.runners.models.model import Model, TryAgain
from fewbench.transfer.answers import Answer, Answers
from fewbench.transfer.asking import ask
from fewbench.transfer.design import Design, Request
from fewbench.transfer.journal import Header, Journal, opened
from fewbench.transfer.limits import Limits, Patience

Progress = Callable[[int, int], None]
Outcome = TypeVar("Outcome")
FIRST_TRIES = 4  # until a model that was never reached is taken not to be there
GRACE = 10.0  # seconds for what is under way when the run ends with an error


@dataclass
class Run:
    """What one run did.

    Parameters
    ----------
    asked : int
        Answers that came.
    retries : int
        Failed tries that were made again.
    requests : int
        Calls of the server that were answered.
    seconds : float
    stopped : str, optional
        The limit that was reached, in words.
    """

    asked: int = 0
    retries: int = 0
    requests: int = 0
    seconds: float = 0.0
    stopped: str | None = None


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
    if concurrency < 1:
        raise TransferError(f"{concurrency} requests at a time", hint="use 1 or more")
    if rate is not None and not 0 < rate < float("inf"):
        raise TransferError(f"a rate of {rate} requests a minute", hint="use more than 0")
    patience, limits = patience or Patience(), limits or Limits()

    async def run() -> tuple[Answers, Run]:
        started = time.monotonic()
        try:
            found = {**await _prepared(model, patience), **(facts or {})}
            if prepared is not None:
                prepared(found)
            header = Header.of(design, model.name, found)
            with opened(folder, header, design) as journal:
                session = _Session(journal, model, patience, rate, limits, progress)
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
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


async def _prepared(model: Model, patience: Patience) -> dict[str, str]:
    """Return what decides how the model is asked."""
    tries = min(patience.tries, FIRST_TRIES)
    for failed in range(1, tries + 1):
        try:
            return await model.prepare()
        except TryAgain as error:
            if failed == tries:
                raise ModelError(
                    f"{model.name} cannot be reached: {error.reason}",
                    hint="is the server up, and its address right?",
                ) from error
            await asyncio.sleep(max(error.after or 0.0, patience.wait(failed)))
    raise AssertionError


class _Session:
    """The state of a run that all workers share; only one of them runs at a time."""

    def __init__(
        self,
        journal: Journal,
        model: Model,
        patience: Patience,
        rate: float | None,
        limits: Limits,
        progress: Progress | None,
    ) -> None:
        self.did = Run()
        self._journal, self._model, self._patience = journal, model, patience
        self._limits, self._progress = limits, progress
        self._pause = 0.0 if rate is None else 60.0 / rate
        self._next = 0.0  # when the next request may be made
        self._failing = 0  # tries that failed since the last answer, of any request
        self._heard = 0.0  # when that answer came
        self._done = journal.answers.n_done
        self._over = asyncio.Event()

    async def run(self, concurrency: int) -> None:
        """Work through what is pending with so many workers."""
        self._heard = time.monotonic()
        pending = iter(self._journal.answers.pending())
        workers = [asyncio.create_task(self._work(pending)) for _ in range(concurrency)]
        try:
            finished, others = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            if others:  # an error ended the run; what is under way may still be answered
                self._over.set()
                await asyncio.wait(others, timeout=GRACE)
            for worker in finished:
                worker.result()
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self, pending: Iterator[Request]) -> None:
        answers = self._journal.answers
        while not self._over.is_set():
            if (reached := self._limits.reached(answers.prompt, answers.completion)) is not None:
                self.did.stopped = reached
                self._over.set()
                return
            request = next(pending, None)
            if request is None:
                return
            answer = await self._answer(request)
            if answer is None:
                return
            self._journal.append(request, answer)
            self.did.asked += 1
            self.did.requests += answer.usage.requests
            self._done += 1
            if self._progress is not None:
                self._progress(self._done, len(answers.states))

    async def _answer(self, request: Request) -> Answer | None:
        """Return the answer to a request; None if the run ended while it was failing."""
        failed = 0
        while True:
            await self._turn()
            if self._over.is_set():
                return None
            try:
                answer = await ask(self._model, self._journal.answers.design, request)
            except TryAgain as error:
                failed += 1
                self._failing += 1
                self._give_up(request, failed, error)
                self.did.retries += 1
                if error.after is not None:  # said to one, meant for all
                    self._next = max(self._next, time.monotonic() + error.after)
                await self._sleep(self._patience.wait(failed))
                continue
            self._failing, self._heard = 0, time.monotonic()
            # a choice may have taken several requests: they count for the rate too
            self._next += self._pause * max(0, answer.usage.requests - 1)
            return answer

    async def _turn(self) -> None:
        """Wait until the server and the rate allow a request."""
        while (wait := self._next - time.monotonic()) > 0 and not self._over.is_set():
            if self._pause:
                self._next += self._pause
                await self._sleep(wait)
                return
            await self._sleep(wait)
        if self._pause:
            self._next = time.monotonic() + self._pause

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but not longer than the run goes on."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), seconds)

    def _give_up(self, request: Request, failed: int, error: TryAgain) -> None:
        """Raise ModelError if a request, or everything, has failed too often."""
        silent = time.monotonic() - self._heard
        design = self._journal.answers.design
        if failed >= self._patience.tries:
            what = (
                f"{design.names[request.source]} → {design.names[request.target]}, question "
                f"{design.question(request).id!r}, failed {failed} times in a row"
            )
        elif self._failing > 1 and silent > self._patience.silence:
            what = f"nothing was answered in {silent:,.0f} seconds ({self._failing} failures)"
        else:
            return
        raise ModelError(
            f"{what}; the last time: {error.reason}",
            hint=f"{self._done:,} of {len(design):,} answers are kept in {self._journal.folder}; "
            "the same command goes on from there",
        ) from error
