"""Drive a run: next, answer, take, until it ends.

A `Runner` is a way of running a model: lm-eval, Inspect, a program, an endpoint, a function. `run`
checks it, opens the evaluation, drives it, and closes the runner, whatever happens.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fewbench._types import ArrayLike
from fewbench.errors import RunError
from fewbench.evaluation import Stop
from fewbench.methods import Method
from fewbench.runners.joining import LeadingRun, check_limits, unnamed_target, with_later_items
from fewbench.runners.result import RunResult
from fewbench.runners.run import Run, items_of
from fewbench.runners.run_folder import undone_if_refused
from fewbench.scores import Benchmark, Scores
from fewbench.scores.roles import as_sources

NO_ANSWER = "no answer and no reason given"
INTERRUPTED = "interrupted"
FLOATS = (float, np.floating)
SOON = 1.0
"""Seconds after which the answers of a batch that is not at its end are recorded."""

OnProgress = Callable[[Run, str], None]


@dataclass(eq=False)
class Answered:
    """What became of a batch of items.

    - `answers`: item id to score, on the scale of the sources; or a table read from logs.
    - `failed`: item id to reason. They are tried again in later batches, then skipped.
    - `cost`, `tokens`: what the batch cost.
    - `reported`: which of these two the model reports, also if they are 0.
    - `probabilities`: item id to option probabilities, where the runner has them.
    - `replies`: item id to kind of reply, where it is not whole (see `Evaluation.tell`).
    - `texts`: item id to reply, where the runner has replies.
    - `stopped`: why the run must end after this batch, in words. Items without an answer then do
      not count as failed.
    - `last_failed`: as `failed`, of the items that failed after the last answer. If these are many,
      the model has failed as a whole, and no item is skipped.
    - `taken`: items that the run took already, and that are no longer among these.
    - `notes`: what the user is to know, shown at once.
    - `is_over`: whether a limit is used up, so that the runner is to leave the rest of the batch.
    - `on_answers`: called with this whenever answers are added.
    """

    answers: dict[str, float] | Scores = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    cost: float = 0.0
    tokens: int = 0
    probabilities: Mapping[str, ArrayLike] | None = None
    replies: Mapping[str, str] | None = None
    texts: Mapping[str, str] | None = None
    stopped: str | None = None
    last_failed: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    reported: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    is_over: bool = False
    on_answers: "Callable[[Answered], None] | None" = None

    def add(self, answers: Mapping[str, float], failed: Mapping[str, str]) -> None:
        """Add what became of items; what failed before or with an answer is the items' failure.

        An item whose score is NaN has failed: the answers to the other items are kept.
        """
        assert isinstance(self.answers, dict)
        nan = {item for item, x in answers.items() if isinstance(x, FLOATS) and np.isnan(x)}
        self.answers |= {item: score for item, score in answers.items() if item not in nan}
        self.last_failed |= {**failed, **dict.fromkeys(nan, "its score is NaN")}
        if len(answers) > len(nan):
            self.failed |= self.last_failed
            self.last_failed = {}
        if self.on_answers is not None:
            self.on_answers(self)

    def count(self, cost: float | None, tokens: int | None) -> None:
        """Add what an answer cost. None stands for what the model does not report."""
        spent = {"cost": cost, "tokens": tokens}
        self.reported |= {name for name, value in spent.items() if value is not None}
        self.cost += cost or 0.0
        self.tokens += tokens or 0

    def note(self, text: str) -> None:
        """Tell the user something."""
        self.notes.append(text)
        if self.on_answers is not None:
            self.on_answers(self)

    @property
    def more(self) -> dict[str, Any]:
        """What `Run.take` takes besides answers and failures."""
        names = ("cost", "tokens", "reported", "probabilities", "replies", "texts")
        return {name: getattr(self, name) for name in names}

    @property
    def ended(self) -> set[str]:
        """The items that were answered or failed."""
        return items_of(self.answers) | self.failed.keys() | self.last_failed.keys() | self.taken


class Runner(ABC):
    """A way of running a model on chosen items; only `answer` has no default.

    Attributes
    ----------
    name : str
        Its name in messages.
    facts : mapping of str to str
        How the model is run, known after `prepare`. A target resumes only with the same facts, and
        with those of `model_facts`.
    model_name : str, optional
        Names a target that the user does not name.
    reports : collection of str
        What it may report of an answer: "cost", "tokens". A limit on anything else is refused.
    batch : int, optional
        Most items per batch where the user gives none: a batch in flight can be lost in a crash.
    on_answers : callable, optional
        Set before `answer`. A runner that can tell of answers within a batch calls it with them.
    repeat : int
        Set before `answer`: 1 for first answers to items, 2 when they are run once more, ….
    """

    name: str
    facts: Mapping[str, str] = {}
    model_name: str | None = None
    reports: Collection[str] = ()
    batch: int | None = None
    on_answers: Callable[[Answered], None] | None = None
    repeat: int = 1

    def benchmark(self) -> Benchmark | None:
        """Return the items that would run, with their weights, if the runner has its own items."""
        return None

    def model_facts(self, target: str) -> Mapping[str, str]:
        """Return what can be seen of a target's weights or code, if it has them as objects."""
        return {}

    def prepare(self, scores: Scores, targets: Sequence[str]) -> list[str]:
        """Check all that can be checked before anything is spent; return notes for the user.

        Called again if the run has items that these scores lack. Raises RunError if the items
        cannot be run.
        """
        return []

    def check_items(self, items: Sequence[str]) -> list[str]:
        """Check the items that may be run, once the run is open; return notes for the user.

        Not called if nothing is left to run. Raises RunError if one of them cannot be run as the
        source models were.
        """
        return []

    @abstractmethod
    def answer(self, target: str, items: Sequence[str]) -> Answered:
        """Run a target on items. Items that are neither answered nor failed count as failed."""

    def release(self) -> None:  # noqa: B027
        """Free the memory of the model while others run; `answer` loads it again."""

    def finish(self, result: RunResult) -> Sequence[str]:
        """Write what the harness itself writes at the end; return notes for the user."""
        return ()

    def close(self) -> None:  # noqa: B027
        """Release all that the runner holds. Called once, also after an error."""


def drive(
    run: Run,
    runner: Runner,
    on_progress: OnProgress | None = None,
    on_end: Callable[[], None] | None = None,
) -> RunResult:
    """Run items until the run ends, and return what was found.

    Ctrl-C ends it after the items that are recorded; the result shows this.

    Parameters
    ----------
    run : Run
    runner : Runner
        Prepared by `Runner.prepare`.
    on_progress : callable, optional
        Called with (run, target) after each batch, and each second within one whose answers are
        taken as they come (`Run.is_amid_batch`).
    on_end : callable, optional
        Called before the final estimates, which may take long on large tables.

    Raises
    ------
    RunError, ModelError
        From the runner. Answers recorded so far stay in the folder.
    AnswersError
        If answers do not fit the sources.
    """
    try:
        while _one_round(run, runner, on_progress):
            pass
    except KeyboardInterrupt:
        run.halt(INTERRUPTED)
    if on_end is not None:
        on_end()
    result = run.result()
    notes = runner.finish(result)
    return result.model_copy(update={"notes": (*result.notes, *notes)}) if notes else result


class _Taking:
    """Takes answers within a batch, each second, so that a crash loses no more; and shows them."""

    def __init__(self, run: Run, target: str, on_progress: OnProgress | None) -> None:
        self._run, self._target, self._on_progress = run, target, on_progress
        self._since = time.monotonic()
        self._left = run.allowance(target)  # cost and tokens

    def __call__(self, reply: Answered) -> None:
        assert isinstance(reply.answers, dict)
        cost, tokens = self._left
        reply.is_over = reply.cost >= cost or reply.tokens >= tokens
        is_due = bool(reply.answers) and time.monotonic() - self._since >= SOON
        if is_due:
            failed, more = reply.failed, reply.more
            reply.taken |= reply.answers.keys() | failed.keys()
            self._left = cost - reply.cost, tokens - reply.tokens
            # First: of a Ctrl-C in take, only the answers may be taken twice.
            reply.failed, reply.cost, reply.tokens = {}, 0.0, 0
            self._run.take(self._target, reply.answers, failed, **more)
            reply.answers = {}
            self._since = time.monotonic()
        is_told = self._run.note(reply.notes)
        if (is_due or is_told) and self._on_progress is not None:
            self._on_progress(self._run, self._target)


def _one_round(run: Run, runner: Runner, on_progress: OnProgress | None) -> bool:
    """Run a batch of each target; return whether there was any."""
    went_on = False
    for target in run.targets:
        items = run.next(target)
        if not items:
            continue
        went_on = True
        runner.on_answers = _Taking(run, target, on_progress)
        runner.repeat = run.repeat(target)
        answered = runner.answer(target, items)
        failed = dict(answered.failed)
        if answered.stopped is None and not answered.is_over:
            failed |= dict.fromkeys(set(items) - answered.ended, NO_ANSWER)
        run.note(answered.notes)
        run.take(target, answered.answers, failed, **answered.more)
        if answered.last_failed:
            run.take(target, {}, answered.last_failed)
        if answered.stopped is not None:
            run.halt(answered.stopped, is_failure=answered.stopped != INTERRUPTED)
        if on_progress is not None:
            on_progress(run, target)
    return went_on


def run_with(
    runner: Runner,
    scores: Scores | Benchmark | None,
    method: str | Method = "auto",
    stop: Stop | int | None = None,
    *,
    folder: str | Path | None = None,
    targets: Sequence[str] | None = None,
    on_notes: Callable[[list[str]], None] | None = None,
    on_progress: OnProgress | None = None,
    on_end: Callable[[], None] | None = None,
    **settings: Any,
) -> RunResult:
    """Prepare a runner, open the run, drive it, and close both.

    Parameters
    ----------
    runner : Runner
    scores : Scores, Benchmark, or None
        As for `Run.open`. None means the runner's own items (`Runner.benchmark`), or else those of
        the run that is followed.
    method, stop, folder
        As for `Run.open`; a number as `stop` is a number of items.
    targets : sequence of str, optional
        As for `Run.open` (default: the name of the runner's model).
    on_notes : callable, optional
        Called with the notes of `Runner.prepare` and of the method, before anything is run.
    on_progress, on_end : callable, optional
        As for `drive`.
    **settings
        Further arguments of `Run.open`.
    """
    try:
        leader = settings.get("items_of")
        check_limits(stop, scores, folder, leader)
        if scores is not None:
            scores = with_later_items(folder, as_sources(scores))
        else:
            scores = runner.benchmark()
        if scores is None and leader is not None:
            scores, settings["scores_path"] = LeadingRun.read(leader).scores()
        if scores is None:
            raise RunError(
                f"{runner.name} cannot list the benchmark's items",
                hint="give scores of source models, or a file of items",
            )
        scores = as_sources(scores)
        names = list(targets or [unnamed_target(folder, runner.facts, runner.model_name)])
        notes = runner.prepare(scores, names)
        every = {name: {**runner.facts, **runner.model_facts(name)} for name in names}
        settings["facts"] = {name: of_target for name, of_target in every.items() if of_target}
        if settings.get("batch") is None:
            settings["batch"] = runner.batch
        place = None if folder is None else Path(folder)
        has_begun = False
        with (
            undone_if_refused(place, lambda: has_begun),
            Run.open(scores, method, stop, folder, names, **settings) as run,
        ):
            run.notes += notes
            whole = run.evaluation.scores  # a folder has the items of all files that it was given
            if not whole.items.index.isin(scores.items.index).all():
                run.note(runner.prepare(whole, names))
            run.check_limits(
                runner.reports,
                "limit the number of items (-n, in Python budget=), or add a column cost to them",
            )
            if any(run.next(name) for name in run.targets):
                run.notes += runner.check_items(run.candidates())
            if on_notes is not None:
                on_notes(run.notes)
            has_begun = True
            return drive(run, runner, on_progress, on_end)
    finally:
        runner.close()
