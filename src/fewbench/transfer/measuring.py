"""Send a measurement's requests: many at a time, retried on failure, within limits."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from fewbench._names import counted
from fewbench.errors import ModelError, TransferError
from fewbench.runners.models.model import Model, TryAgain
from fewbench.transfer.answers import Answer, Answers, ask
from fewbench.transfer.cost import Limits, estimated
from fewbench.transfer.design import Design, Request
from fewbench.transfer.journal import Header, Journal, opened

Progress = Callable[[int, int], None]
GRACE = 10.0  # seconds for what is under way when the run ends with an error
Outcome = TypeVar("Outcome")
FIRST_TRIES = 4  # until a model that was never reached is taken not to be there


@dataclass(frozen=True)
class Patience:
    """When a failed request is tried again, and when all is given up.

    Parameters
    ----------
    tries : int
        Of one request, one after the other; it is then put off until all else is asked, and
        given as many again.
    first, longest : float
        Seconds before the second try, doubled with each further one, and at most; chance takes up
        to half of it away, so that not all requests come back at once. A server that says how
        long to wait is obeyed.
    silence : float
        Seconds in which everything failed, after which nothing is tried any more; a wait that the
        server asked for comes on top.
    """

    tries: int = 8
    first: float = 0.5
    longest: float = 30.0
    silence: float = 300.0

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise TransferError(f"{self.tries} tries of a request", hint="--tries 1 or more")

    def wait(self, failed: int) -> float:
        """Return seconds to wait after so many failures."""
        longest = min(self.first * 2.0 ** min(failed - 1, 30), self.longest)
        return longest * random.uniform(0.5, 1.0)


def check_pace(concurrency: int, rate: float | None) -> None:
    """Raise TransferError if nothing could be asked at such a pace."""
    if concurrency < 1:
        raise TransferError(
            f"{concurrency} requests at a time", hint="--concurrency takes 1 or more"
        )
    if rate is not None and not 0 < rate < float("inf"):
        raise TransferError(f"a rate of {rate} requests a minute", hint="--rate takes more than 0")


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
    estimated : int
        Answers without a word of the server on tokens; what they used is estimated.
    seconds : float
    stopped : str, optional
        The limit that was reached before all was asked, in words.
    notes : tuple of str
        What differs from the runs before, and does not matter.
    """

    asked: int = 0
    retries: int = 0
    requests: int = 0
    estimated: int = 0
    seconds: float = 0.0
    stopped: str | None = None
    notes: tuple[str, ...] = ()


class Session:
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
        self._told = 0.0  # the longest wait that the server asked for since
        self._put_off: deque[Request] = deque()  # failed too often; asked again after all else
        self._last_chance: set[Request] = set()
        self._done = journal.answers.n_done
        self._over = asyncio.Event()
        self._late: int | None = None  # answers since a limit was reached

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
            self.did.stopped = self._stopped()
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self, pending: Iterator[Request]) -> None:
        answers = self._journal.answers
        while not self._over.is_set():
            request = next(pending, None)
            if request is None and self._put_off:
                request = self._put_off.popleft()
                self._last_chance.add(request)
            if request is None:
                return
            if self._limits.reached(answers.prompt, answers.completion) is not None:
                self._late = self._late or 0
                self._over.set()
                return
            answer = await self._answer(request)
            if answer is None:
                continue
            self._journal.append(request, answer)
            self.did.asked += 1
            if self._late is not None:
                self._late += 1
            self.did.requests += answer.usage.requests
            self._done += 1
            if self._progress is not None:
                self._progress(self._done, len(answers.states))

    def _stopped(self) -> str | None:
        """Return in words which limit was reached, with all that was used in the end."""
        answers = self._journal.answers
        if self._late is None or answers.complete:
            return None
        reached = self._limits.reached(answers.prompt, answers.completion)
        late = self._late
        return f"{reached}" + (
            f", with {counted(late, 'answer')} that {'was' if late == 1 else 'were'} under way"
            if late
            else ""
        )

    async def _answer(self, request: Request) -> Answer | None:
        """Return the answer to a request; None if it is put off, or the run ended meanwhile."""
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
                    self._told = max(self._told, error.after)
                await self._sleep(self._patience.wait(failed))
                if failed >= self._patience.tries:
                    self._put_off.append(request)
                    return None
                continue
            self._failing, self._heard, self._told = 0, time.monotonic(), 0.0
            if not answer.usage.prompt and answer.value is not None:
                answer = self._estimated(request, answer)
            # a choice may have taken several requests: they count for the rate too
            self._next += self._pause * max(0, answer.usage.requests - 1)
            return answer

    def _estimated(self, request: Request, answer: Answer) -> Answer:
        """Estimate tokens where the server does not count them; limits would not hold else."""
        self.did.estimated += 1
        prompt = estimated(self._journal.answers.design.prompt(request))
        written = max(1, estimated(answer.said or ""))
        return replace(answer, usage=replace(answer.usage, prompt=prompt, completion=written))

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
        """Raise ModelError if a request, or everything, has failed too often.

        One request's failures end the run only if nothing was answered yet, or nothing else is
        left to ask: neither bad luck nor one bad prompt keeps the others from being asked.
        """
        silent = time.monotonic() - self._heard
        design = self._journal.answers.design
        if failed >= self._patience.tries and (request in self._last_chance or not self._done):
            what = (
                f"{design.names[request.source]} → {design.names[request.target]}, question "
                f"{design.question(request).id!r}, failed {counted(failed, 'time')} in a row"
            )
            if request in self._last_chance:
                what += ", for the second time"
        elif self._failing > 1 and silent > self._patience.silence + self._told:
            what = f"nothing was answered in {silent:,.0f} seconds ({self._failing:,} failures)"
        else:
            return
        raise ModelError(
            f"{what}; the last time: {error.reason}",
            hint=f"{self._done:,} of {len(design):,} answers are kept in {self._journal.folder}; "
            "the same command goes on from there"
            + (", and --partial writes their matrix" if self._done else ""),
        ) from error


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
