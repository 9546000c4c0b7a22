"""Send a measurement's requests: in parallel, with retries and limits, and score the answers."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from fewbench._names import counted
from fewbench.errors import ModelError
from fewbench.runners.asking import (
    Asking,
    Limits,
    Patience,
    check_pace,
    estimated,
    prepare_model,
)
from fewbench.runners.event_loop import EventLoop
from fewbench.runners.models.model import Model, TryAgain
from fewbench.runners.scoring import Answer, ask_question
from fewbench.transfer.answers import Answers
from fewbench.transfer.design import Design, Request
from fewbench.transfer.journal import Header, Journal, opened

Progress = Callable[[int, int], None]


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


class Session(Asking[Request, Answer]):
    """One run of a measurement."""

    def __init__(
        self,
        journal: Journal,
        model: Model,
        patience: Patience,
        rate: float | None,
        limits: Limits,
        progress: Progress | None,
    ) -> None:
        super().__init__(patience, rate)
        self.did = Run()
        self._journal, self._model = journal, model
        self._limits, self._progress = limits, progress
        self._last_chance: set[Request] = set()
        self._done = journal.answers.n_done
        self._late: int | None = None  # answers since a limit was reached

    async def measure(self, concurrency: int) -> None:
        """Send all open requests with a number of workers."""
        await self.run(iter(self._journal.answers.pending()), concurrency)
        self.did.retries, self.did.stopped = self.retries, self._stopped()

    async def send(self, request: Request) -> Answer:
        """Ask once."""
        answer = await ask(self._model, self._journal.answers.design, request)
        if not answer.usage.prompt and answer.value is not None:
            answer = self._estimated(request, answer)
        return answer

    def took(self, request: Request, reply: Answer) -> None:
        """Write an answer to the journal."""
        self._journal.append(request, reply)
        self.did.asked += 1
        if self._late is not None:
            self._late += 1
        self.did.requests += reply.usage.requests
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, len(self._journal.answers.states))

    def calls_of(self, reply: Answer) -> int:
        """Return how many calls of the server an answer took."""
        return reply.usage.requests

    def is_limit_reached(self) -> bool:
        """Whether the tokens or the money are used up."""
        answers = self._journal.answers
        if self._limits.reached(answers.prompt, answers.completion) is None:
            return False
        self._late = self._late or 0
        return True

    def take_up(self, request: Request) -> None:
        """Note that this is the request's last chance."""
        self._last_chance.add(request)

    def _stopped(self) -> str | None:
        """Return the limit that was reached, with all tokens used in the end, in words."""
        answers = self._journal.answers
        if self._late is None or answers.complete:
            return None
        reached = self._limits.reached(answers.prompt, answers.completion)
        late = f", including {counted(self._late, 'request')} already sent" if self._late else ""
        return f"{reached}{late}"

    def _estimated(self, request: Request, answer: Answer) -> Answer:
        """Estimate the tokens that the server does not count, for the limits."""
        self.did.estimated += 1
        prompt = estimated(self._journal.answers.design.prompt(request))
        written = max(1, estimated(answer.said or ""))
        return replace(answer, usage=replace(answer.usage, prompt=prompt, completion=written))

    def fail(self, request: Request, failed: int, error: TryAgain) -> None:
        """Raise ModelError if a request, or everything, has failed too often.

        A single request ends the run only if nothing was answered yet or nothing else is left to
        ask, so that one bad prompt does not keep the others from being asked.
        """
        design = self._journal.answers.design
        if failed >= self._patience.tries and (request in self._last_chance or not self._done):
            what = (
                f"{design.names[request.source]} → {design.names[request.target]}, question "
                f"{design.question(request).id!r}, failed {counted(failed, 'time')} in a row"
            )
            if request in self._last_chance:
                what += ", for the second time"
        elif (silence := self.silence()) is not None:
            what = silence
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
            found = await prepare_model(model, patience, design.metric != "exact-match")
            found |= facts or {}
            if prepared is not None:
                prepared(found)
            header = Header.of(design, model.name, found)
            with opened(folder, header, design, known) as journal:
                session = Session(journal, model, patience, rate, limits, progress)
                session.did.notes = journal.notes
                await session.measure(concurrency)
        finally:
            await model.close()
        session.did.seconds = time.monotonic() - started
        return journal.answers, session.did

    with EventLoop() as loop:
        return loop.run(run())


async def ask(model: Model, design: Design, request: Request) -> Answer:
    """Ask once, and score the answer (see `fewbench.runners.scoring.ask`)."""
    return await ask_question(
        model, design.prompt(request), design.question(request), design.template, design.metric
    )
