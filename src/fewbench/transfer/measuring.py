"""Send a measurement's requests: in parallel, with retries and limits, and score the answers."""

import asyncio
import math
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
from fewbench.runners.models.model import Model, TooLong, TryAgain, Usage
from fewbench.transfer.answers import Answer, Answers
from fewbench.transfer.cost import Limits, estimated
from fewbench.transfer.design import Design, Request
from fewbench.transfer.journal import Header, Journal, opened
from fewbench.transfer.prompts import LETTERS, Question

Progress = Callable[[int, int], None]
Outcome = TypeVar("Outcome")
GRACE = 10.0  # seconds for pending requests when the run ends with an error
FIRST_TRIES = 4  # to reach a model for the first time
FEWEST, MOST = 16, 512  # tokens that the model may write


@dataclass(frozen=True)
class Patience:
    """When to retry a failed request, and when to end the run.

    Parameters
    ----------
    tries : int
        Tries of one request in a row. The request then waits until all others are done, and gets
        as many tries again.
    first, longest : float
        Seconds before the second try, doubled for each further try, and their maximum. Up to half
        of the wait is taken away at random. If the server says how long to wait, that counts.
    silence : float
        Seconds without any answer after which the run ends, in addition to a wait that the server
        asked for.
    """

    tries: int = 8
    first: float = 0.5
    longest: float = 30.0
    silence: float = 300.0

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise TransferError(f"tries={self.tries} is too low", hint="give 1 or more")

    def wait(self, failed: int) -> float:
        """Return the seconds to wait after a number of failures."""
        longest = min(self.first * 2.0 ** min(failed - 1, 30), self.longest)
        return longest * random.uniform(0.5, 1.0)


def check_pace(concurrency: int, rate: float | None) -> None:
    """Raise TransferError if `concurrency` or `rate` (requests per minute) is too low."""
    if concurrency < 1:
        raise TransferError(f"concurrency={concurrency} is too low", hint="give 1 or more")
    if rate is not None and not 0 < rate < float("inf"):
        raise TransferError(f"rate={rate} is not possible", hint="give more than 0")


@dataclass
class Run:
    """What one run did.

    Parameters
    ----------
    asked : int
        New answers.
    retries : int
        Failed tries that were repeated.
    requests : int
        Answered calls of the server.
    estimated : int
        Answers for which the server reported no tokens, so that their tokens are estimated.
    seconds : float
    stopped : str, optional
        The limit that ended the run early, in words.
    notes : tuple of str
        Differences to earlier runs that do not affect the answers.
    """

    asked: int = 0
    retries: int = 0
    requests: int = 0
    estimated: int = 0
    seconds: float = 0.0
    stopped: str | None = None
    notes: tuple[str, ...] = ()


class Session:
    """The state of a run that all workers share; one of them runs at a time."""

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
        self._asked_wait = 0.0  # the longest wait that the server asked for since
        self._put_off: deque[Request] = deque()  # failed too often; asked again after all else
        self._last_chance: set[Request] = set()
        self._done = journal.answers.n_done
        self._over = asyncio.Event()
        self._late: int | None = None  # answers since a limit was reached

    async def run(self, concurrency: int) -> None:
        """Send all open requests with a number of workers."""
        self._heard = time.monotonic()
        pending = iter(self._journal.answers.pending())
        workers = [asyncio.create_task(self._work(pending)) for _ in range(concurrency)]
        try:
            finished, others = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            if others:  # an error ended the run; pending requests may still be answered
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
        """Return the limit that was reached, with all tokens used in the end, in words."""
        answers = self._journal.answers
        if self._late is None or answers.complete:
            return None
        reached = self._limits.reached(answers.prompt, answers.completion)
        late = f", including {counted(self._late, 'request')} already sent" if self._late else ""
        return f"{reached}{late}"

    async def _answer(self, request: Request) -> Answer | None:
        """Return the answer to a request; None if it is put off or the run has ended."""
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
                if error.after is not None:  # holds for all requests
                    self._next = max(self._next, time.monotonic() + error.after)
                    self._asked_wait = max(self._asked_wait, error.after)
                await self._sleep(self._patience.wait(failed))
                if failed >= self._patience.tries:
                    self._put_off.append(request)
                    return None
                continue
            self._failing, self._heard, self._asked_wait = 0, time.monotonic(), 0.0
            if not answer.usage.prompt and answer.value is not None:
                answer = self._estimated(request, answer)
            # a choice may have taken several requests: they count for the rate too
            self._next += self._pause * max(0, answer.usage.requests - 1)
            return answer

    def _estimated(self, request: Request, answer: Answer) -> Answer:
        """Estimate the tokens that the server does not count, for the limits."""
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
        """Sleep until the time or the run is over."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), seconds)

    def _give_up(self, request: Request, failed: int, error: TryAgain) -> None:
        """Raise ModelError if a request, or everything, has failed too often.

        A single request ends the run only if nothing was answered yet or nothing else is left to
        ask, so that one bad prompt does not keep the others from being asked.
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
        elif self._failing > 1 and silent > self._patience.silence + self._asked_wait:
            what = f"nothing was answered in {silent:,.0f} seconds ({self._failing:,} failures)"
        else:
            return
        raise ModelError(
            f"{what}; last error: {error.reason}",
            hint=f"{self._done:,} of {len(design):,} answers are kept in {self._journal.folder}; "
            "run the same command to continue"
            + (", or pass --partial to get their matrix" if self._done else ""),
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
    """Send a design's open requests, and keep every answer in a folder.

    Parameters
    ----------
    folder : Path
        A measurement to continue, or a new folder.
    design : Design
    model : Model
        Closed at the end.
    facts : mapping of str to str, optional
        Further settings that must be the same for answers to be comparable.
    prepared : callable, optional
        Called before the first request with a mapping that says how the model is asked.
    concurrency : int
        Requests in flight.
    patience : Patience, optional
    rate : float, optional
        Most requests per minute.
    limits : Limits, optional
    progress : callable, optional
        Called with (done, all).
    known : Answers, optional
        The folder's answers to the design, if they were read already; they grow.

    Returns
    -------
    answers : Answers
        All answers; complete unless the run stopped at a limit.
    run : Run

    Raises
    ------
    ModelError
        If the model cannot be asked, or requests failed too often. Answers stay in the folder.
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
    """Run to the end, in a thread if an event loop runs already, as in a notebook."""
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
            if not running.done() and started:  # only the main thread gets Ctrl-C
                loop, task = started[0]
                loop.call_soon_threadsafe(task.cancel)
            raise


async def _prepared(model: Model, patience: Patience, log_probabilities: bool) -> dict[str, str]:
    """Return facts on how the model is asked."""
    tries = min(patience.tries, FIRST_TRIES)
    for failed in range(1, tries + 1):
        try:
            return await model.prepare(log_probabilities)
        except TryAgain as error:
            if failed == tries:
                if error.status is not None:  # the server is up
                    raise ModelError(
                        f"the server of {model.name} answers {error.reason}",
                        hint="see the server's log, then run the same command again",
                    ) from error
                raise ModelError(
                    f"{model.name} cannot be reached: {error.reason}",
                    hint="check that the server is up and its address is right",
                ) from error
            await asyncio.sleep(max(error.after or 0.0, patience.wait(failed)))
    raise AssertionError


async def ask(model: Model, design: Design, request: Request) -> Answer:
    """Ask once, and score the answer.

    - accuracy: 1 if the right option is the most likely one, 1 / n if it ties with n - 1 others,
      otherwise 0, also if the model listed no option.
    - loss: the mean log-probability per token of the right answer.
    - exact-match: 1 if the written text is an accepted answer, without regard to case and spaces.

    Raises
    ------
    TryAgain
        If asking again may help, also if a log-probability is not a number.
    ModelError
        If asking again does not help.
    """
    prompt, question = design.prompt(request), design.question(request)
    try:
        if design.metric == "accuracy":
            chosen = await model.choose(prompt, design.template.continuations(question))
            value, said = chosen_score(chosen.log_probabilities, question)
            return Answer(value, said, chosen.usage)
        if design.metric == "loss":
            read = await model.read(prompt, design.template.continuation(question))
            if read.tokens < 1 or not -math.inf < read.log_probability <= 0:
                raise TryAgain(
                    f"a log-probability of {read.log_probability} over {read.tokens} tokens"
                )
            return Answer(read.log_probability / read.tokens, None, read.usage)
        between = design.template.between
        written = await model.write(prompt, [between] if between else [], longest(question))
    except TooLong:
        return Answer(None, "too long", Usage(requests=0))
    return Answer(match(written.text, question), written.text, written.usage)


def chosen_score(values: tuple[float, ...], question: Question) -> tuple[float, str | None]:
    """Return the score of the options' log-probabilities, and the letters of the most likely."""
    options = len(question.options)
    if len(values) != options or any(map(math.isnan, values)):
        raise TryAgain(f"{len(values)} log-probabilities for {options} options")
    most = max(values)
    if most == -math.inf:
        return 0.0, None
    best = [at for at, value in enumerate(values) if value == most]
    right = 1 / len(best) if question.answer in best else 0.0
    return right, ",".join(LETTERS[at] for at in best)


def match(text: str, question: Question) -> float:
    """Return 1 if a text is an accepted answer, without regard to case and spaces; otherwise 0."""
    return float(_plain(text) in map(_plain, (question.shown, *question.also)))


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def longest(question: Question) -> int:
    """Return how many tokens the model may write: the characters of the longest answer."""
    return min(max(FEWEST, *(len(text) for text in (question.shown, *question.also))), MOST)
