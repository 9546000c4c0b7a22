"""One run of a measurement: what its workers share, and when a run is given up."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from fewbench._names import counted
from fewbench.errors import ModelError
from fewbench.runners.models.model import Model, TryAgain, Usage
from fewbench.transfer.answers import Answer
from fewbench.transfer.asking import ask
from fewbench.transfer.cost import estimated
from fewbench.transfer.design import Request
from fewbench.transfer.journal import Journal
from fewbench.transfer.limits import Limits, Patience

Progress = Callable[[int, int], None]
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
                answer = replace(answer, usage=self._estimated(request, answer))
            # a choice may have taken several requests: they count for the rate too
            self._next += self._pause * max(0, answer.usage.requests - 1)
            return answer

    def _estimated(self, request: Request, answer: Answer) -> Usage:
        """Return what an answer used where the server does not say; limits would not hold else."""
        self.did.estimated += 1
        prompt = estimated(self._journal.answers.design.prompt(request))
        written = max(1, estimated(answer.said or ""))
        return replace(answer.usage, prompt=prompt, completion=written)

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
