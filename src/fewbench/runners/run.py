"""One evaluation being run: which items to run next, what came of them, when to stop.

`Run` is the state of it, without any model: `next` gives a batch of items, `take` records what
became of them, and `result` says what was found. `fewbench.runners.driving` connects it with a
`Runner`, which runs the items. The evaluation's journal keeps what batches cost and which items
failed; in its folder, `run.lock` keeps a second process out.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from fewbench._names import counted, some
from fewbench._text import masked, plain
from fewbench._types import ArrayLike
from fewbench.errors import AnswersError, RunError
from fewbench.evaluation import Evaluation, Stop
from fewbench.evaluation.entries import RunBatch
from fewbench.evaluation.opening import COST
from fewbench.methods import Method
from fewbench.runners.batches import (
    check_facts,
    facts_of,
    failures_of,
    masked_facts,
    n_outages,
    names_model,
)
from fewbench.runners.joining import leaving_note, open_or_start
from fewbench.runners.meter import Meter
from fewbench.runners.result import Progress, RunResult
from fewbench.runners.run_folder import locked
from fewbench.scores import Average, Benchmark, Scores
from fewbench.scores.conditions import count_uncompared
from fewbench.scores.costs import amount
from fewbench.scores.roles import as_sources

Retry = Literal["limits"]
Planner = Callable[[Evaluation], Mapping[str, Sequence[str]]]
"""Gives targets further items once nothing is left to run; an empty mapping ends the run."""
OUTAGE = 10
"""So many items that fail in a row, without an answer, are a failure of the model itself."""
LONG = 100  # characters of a reply that are kept
LAST = 5
"""The same at the end of a run, where no more items are left to fail."""


class Run:
    """An evaluation being run, whatever runs the model. Made by `Run.open`.

    Attributes
    ----------
    evaluation : Evaluation
    targets : tuple of str
        The targets that are run; the evaluation may have others.
    stopped : str, optional
        Why the run ended before its items did, in words.
    is_failed : bool
        Whether that was a failure of the model or its runner, and not a limit.
    notes : list of str
        Notes for the user on the run.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> with Run.open(simulate(20, 60, seed=1), "random", Stop(items=8), batch=5) as run:
    ...     while items := run.next("target"):
    ...         run.take("target", dict.fromkeys(items, 1.0))
    ...     run.result().estimates["target"].score
    1.0
    """

    def __init__(
        self,
        evaluation: Evaluation,
        targets: Sequence[str],
        *,
        folder: Path | None,
        batch: int | None,
        tries: int,
        level: float,
        accept_differences: bool,
        accept: Mapping[str, bool],
        planner: Planner | None = None,
    ) -> None:
        for name, value in (("batch", batch), ("tries", tries)):
            if value is not None and value < 1:
                raise RunError(f"{name} {value} is too low", hint="give 1 or more", kind="range")
        self.evaluation, self.targets, self.folder = evaluation, tuple(targets), folder
        self.stopped: str | None = None
        self.is_failed = False
        self.notes: list[str] = []
        self._uncompared: dict[str, set[str]] = {}  # items by what is not compared of them
        self._meter = Meter(evaluation, targets, batch)
        self._tries, self._level = tries, level
        self._accept_differences, self._accept = accept_differences, accept
        self._limited: dict[str, str] = {}
        self._out: dict[str, list[str]] = {name: [] for name in self.targets}
        self._repeat = dict.fromkeys(self.targets, 1)  # which answers these items are to have
        self._silent: dict[str, dict[str, str]] = {name: {} for name in self.targets}
        self._again: dict[str, list[tuple[str, int]]] = {name: [] for name in self.targets}
        """Answers, as item and repeat, whose items run again; the new answers replace them."""
        self._replaced: set[str] = set()  # targets of which some were replaced
        self._in_doubt: dict[str, set[str]] = {name: set() for name in self.targets}
        self._planner = planner
        self._held = ExitStack()
        self._n_before = self._n_answers()  # by target

    @classmethod
    def open(
        cls,
        scores: Scores | Benchmark,
        method: str | Method,
        stop: Stop | int | None,
        folder: str | Path | None = None,
        targets: Sequence[str] = ("target",),
        seed: int = 0,
        *,
        scores_path: str | Path | None = None,
        batch: int | None = None,
        tries: int = 3,
        level: float | None = None,
        facts: Mapping[str, Mapping[str, str]] | None = None,
        items_of: str | Path | None = None,
        accept_differences: bool = False,
        accept_fractions: bool = False,
        accept_changes: bool = False,
        strict: bool = False,
        retry_skipped: bool = False,
        retry: Retry | None = None,
        average: Average | None = None,
        repeats: int = 1,
        epochs: int = 1,
        planner: Planner | None = None,
    ) -> Self:
        """Start an evaluation, or resume the one in the folder.

        A target that is new to the folder joins it: it first runs the items of the folder's most
        complete target.

        Parameters
        ----------
        scores : Scores or Benchmark
            Scores of the source models; a benchmark alone is run without.
        method : str or Method
            As for `Evaluation`; `auto` chooses one.
        stop : Stop or int, optional
            Limits of each target; `seconds` are of all targets together. A number is a number of
            items. A pack, and a run in the folder, have their own; the run continues with a new
            limit on cost, tokens or time.
        folder : path, optional
            Kept on disk there, for one process at a time; without it, in memory.
        targets : sequence of str
            The targets to run; others in the folder stay as they are.
        seed : int
            Random seed.
        scores_path : path, optional
            File of the scores, recorded in the folder.
        batch : int, optional
            Most items per batch (default: all that the method asks at a time).
        tries : int
            How often an item may fail until it is skipped.
        level : float, optional
            Level of reported intervals (default: the level of `stop`).
        facts : mapping of target to mapping of str to str, optional
            How each model is run: what must be the same for answers to be of one model. Other
            targets may have another model, not other settings.
        items_of : path, optional
            FOLDER or FOLDER:TARGET of a run whose items the targets run first. `auto` is then the
            method of that run.
        accept_differences, accept_fractions, strict : bool
            As for `Evaluation.tell_table`.
        accept_changes : bool
            Resume although the facts have changed.
        retry_skipped : bool
            Ask again for the items that were skipped.
        retry : {"limits"}, optional
            Run the items again whose answers a limit of the harness ended. New answers replace
            these.
        average : {"micro", "macro"}, optional
            Full score: mean over items, or over task scores (default: that of the scores).
        repeats : int
            How many times to run each item: a new round begins once all items ran. A run in the
            folder goes on to a larger number.
        epochs : int
            How many answers the runner gives to an item at a time.
        planner : callable, optional
            Given the evaluation, returns the further items of each target. Called whenever nothing
            is left to run.

        Raises
        ------
        RunError
            If another process runs in the folder, its evaluation is another one, or the facts
            have changed.
        EvaluationError, MethodError
            If the evaluation cannot be started or opened.
        """
        scores = as_sources(scores)
        scores = scores.averaged(average or scores.average)
        for name, value in (("repeats", repeats), ("epochs", epochs)):
            if value < 1:
                raise RunError(f"{name} {value} is too low", hint="give 1 or more", kind="range")
        place = None if folder is None else Path(folder)
        started = time.monotonic()
        with ExitStack() as locks:
            if place is not None:
                locks.enter_context(locked(place))
            evaluation, notes = open_or_start(
                place, scores, method, stop, targets, seed, items_of,
                is_run=True, repeats=repeats, epochs=epochs,
            )  # fmt: skip
            if place is not None and evaluation.folder is None:
                evaluation.save(place, scores_path)
            run = cls(
                evaluation,
                targets,
                folder=place,
                batch=batch,
                tries=tries,
                level=evaluation.stop.level if level is None else level,
                accept_differences=accept_differences,
                accept={"accept_fractions": accept_fractions, "strict": strict},
                planner=planner,
            )
            run.notes += notes
            answered = [
                name for name in evaluation.targets if len(evaluation.record.answered(name))
            ]
            # How a model ran that gave no answer matters to nobody.
            batches = [batch for batch in evaluation.batches if batch.target in answered]
            for name, of_target in (facts or {}).items():
                is_new, now = name not in answered, masked_facts(of_target)
                changed = check_facts(
                    batches, name, now, is_new=is_new, accept=accept_changes, folder=place
                )
                if facts_of(evaluation.batches, name) != now:
                    evaluation.note_run(RunBatch(target=name, facts=now))
                run.notes += [] if changed is None else [changed]
            record = evaluation.record
            for name in run.targets if retry == "limits" else ():
                run._again[name] = evaluation.limited(name)
                run._retry(name, [item for item, _ in run._again[name]])
            for name in run.targets if retry_skipped else ():
                run._retry(name, evaluation.scores.item_ids[sorted(record.given_up(name))])
            run._meter.count_from(started)
            run._held = locks.pop_all()
        return run

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let other processes use the folder."""
        self._held.close()

    @property
    def stop(self) -> Stop:
        """The limits."""
        return self.evaluation.stop

    def candidates(self) -> list[str]:
        """Return the items that may be run: those chosen, or all if more are chosen later."""
        subset = None if self.is_planned else self.evaluation.subset
        ids = self.evaluation.scores.item_ids if subset is None else subset.items
        return [str(item) for item in ids]

    # -- next and take -----------------------------------------------------------------------

    def next(self, target: str) -> list[str]:
        """Return the items to run next; empty if there are none for now, or no more.

        The same items until they are taken. Items that failed before come last. After a limit is
        reached, nothing is given out and `stopped` says which limit it was.
        """
        if self.stopped is not None:
            return []
        if self._out[target]:
            return list(self._out[target])
        with self._meter.timed():
            self._skip_failed(target)
            if self._is_over(target):
                return []
            if self._again[target]:
                return self._next_again(target)
            items = self.evaluation.ask(targets=[target]).get(target, [])
            if not items and self._plan():
                items = self.evaluation.ask(targets=[target]).get(target, [])
            self._repeat[target] = self.evaluation.next_repeat(target)
            if (note := leaving_note(self.evaluation, target)) is not None:
                self.note([note])
            if not items and len(self._silent[target]) >= LAST:
                self._give_up(target)
            failures = self._failures(target)
            items.sort(key=lambda item: len(failures.get(item, ())))
            if self.evaluation.is_limited(target):
                limit = amount(self.stop.cost or 0.0, self.stop.unit)
                self._limited[target] = f"the cost limit of {limit} was reached"
            self._out[target] = items[: self._meter.most(target, len(items))]
        return list(self._out[target])

    @property
    def is_planned(self) -> bool:
        """Whether targets without items may get some once the others have answered theirs."""
        return self._planner is not None and self.stopped is None

    def _plan(self) -> bool:
        """Ask for the items that are planned, if nothing is left to run; return whether any is."""
        is_idle = not any(self._out[name] or self._open(name) for name in self.targets)
        if self._planner is None or not is_idle:
            return False
        if more := self._planner(self.evaluation):
            self.evaluation.ask_more(more)
        else:
            self._planner = None
        return bool(more)

    def _next_again(self, target: str) -> list[str]:
        """Give out answered items that run again, unless the limit on cost is used up."""
        if min(self.allowance(target)) <= 0:
            self._limited[target] = "the limit was reached before all items ran again"
            return []
        self._repeat[target] = min(repeat for _, repeat in self._again[target])
        items = self._to_replace(target)
        self._out[target] = items[: self._meter.most(target, len(items))]
        return list(self._out[target])

    def _to_replace(self, target: str) -> list[str]:
        return [item for item, repeat in self._again[target] if repeat == self._repeat[target]]

    def runs_again(self, target: str, item: str) -> bool:
        """Whether an item that is answered runs again; the new answer replaces the old one."""
        return item in self._to_replace(target)

    def take(
        self,
        target: str,
        answers: Mapping[str, float] | Scores,
        failed: Mapping[str, str] | None = None,
        *,
        cost: float = 0.0,
        tokens: int = 0,
        reported: Iterable[str] = (),
        probabilities: Mapping[str, ArrayLike] | None = None,
        replies: Mapping[str, str] | None = None,
        texts: Mapping[str, str] | None = None,
    ) -> None:
        """Record what became of items. All of it is on disk when this returns.

        Taking the same answers again changes nothing but the cost.

        Parameters
        ----------
        target : str
        answers : mapping of item id to score, or Scores
            Scores on the scale of the sources; or a table read from logs, whose prompts and
            settings are compared with those of the sources.
        failed : mapping of item id to reason, optional
            Items without an answer. They are tried again later, and skipped in the end.
        cost, tokens : float, int
            What the batch cost.
        reported : iterable of str
            Which of these the model reports, also if they are 0.
        probabilities : mapping of item id to option probabilities, optional
        replies : mapping of item id to str, optional
            Replies that are not whole; see `Evaluation.tell`.
        texts : mapping of item id to str, optional
            The replies themselves; their beginnings are kept.

        Raises
        ------
        AnswersError
            As for `Evaluation.tell` and `Evaluation.tell_table`; the other answers are recorded.
        """
        with self._meter.timed():
            repeat, again = self._repeat[target], set(self._to_replace(target))
            left, correct = set(self._open(target)) | again, not again.isdisjoint(items_of(answers))
            failed = {k: _line(v) for k, v in (failed or {}).items() if k in left}
            counts = self._count(target, failed, is_answered=not left.isdisjoint(items_of(answers)))
            # The cost first: it was spent, even if this process dies before the answers are kept.
            self._meter.note(target, failed, counts, cost, tokens, reported)
            texts = {item: _beginning(text) for item, text in (texts or {}).items()}
            if isinstance(answers, Scores):
                accepted = {"accept_differences": self._accept_differences, **self._accept}
                taken = self.evaluation.tell_table(
                    answers,
                    target,
                    replies=replies,
                    texts=texts,
                    repeat=repeat,
                    correct=correct,
                    **accepted,
                )
                self.note(taken.notes)
                for note, items in taken.uncompared.items():
                    self._uncompared.setdefault(note, set()).update(items)
            else:
                more = {"replies": replies, "texts": texts, "repeat": repeat, "correct": correct}
                self._tell(target, answers, probabilities, {**more, **self._accept})
            self._skip_failed(target)
            self._replaced |= {target} if correct else set()
            replaced = {(item, repeat) for item in items_of(answers)}
            self._again[target] = [pair for pair in self._again[target] if pair not in replaced]
            left = set(self._open(target)) - set(failed)
            if self.evaluation.next_repeat(target) > repeat:  # a new round has begun
                left = set()
            left |= set(self._to_replace(target)) - set(failed)
            self._out[target] = [item for item in self._out[target] if item in left]

    def _tell(
        self,
        target: str,
        answers: Mapping[str, float],
        probabilities: Mapping[str, ArrayLike] | None,
        settings: Mapping[str, Any],
    ) -> None:
        """Record answers; of some with a wrong one, the others, before its error is raised."""
        try:
            if answers:
                self.evaluation.tell(target, answers, probabilities, **settings)
        except AnswersError:
            if len(answers) == 1:
                raise
            wrong: AnswersError | None = None
            for item, score in answers.items():
                try:
                    self._tell(target, {item: score}, probabilities, settings)
                except AnswersError as error:
                    wrong = wrong or error
            assert wrong is not None
            raise wrong from None

    def repeat(self, target: str) -> int:
        """Return which answers the items that `next` gave out are to have: 1 for the first ones."""
        return self._repeat[target]

    def check_limits(self, reports: Collection[str], hint: str) -> None:
        """Raise RunError for a limit on what is not known of the items and will not be reported."""
        of_all = getattr(self._planner, "limits_cost", False)  # of all targets together
        is_silent = of_all and COST not in self.evaluation.scores.items
        for name in {*self._meter.silent_limits(), *(["cost"] if is_silent else [])}:
            if name not in reports:
                text = f"the limit on {name} cannot be kept: no {name} is reported"
                raise RunError(text, hint=hint, kind="missing")

    def limit_batches(self, at_once: int, each: int) -> None:
        """Run few items at a time, of `each` so many answers, if what they use is known afterwards.

        A note says by how much a limit may be passed.
        """
        limits = [
            name
            for name, limit in (("cost", self.stop.cost), ("tokens", self.stop.tokens))
            if limit is not None and not (name == "cost" and COST in self.evaluation.scores.items)
        ]
        if limits:
            self._meter.at_once = max(1, at_once // each)
            most = counted(self._meter.at_once * each, "sample")
            self.note([f"{' and '.join(limits)} of samples are known once they have ended: the "
                       f"limit may be passed by the {most} that run at a time"])  # fmt: skip

    def allowance(self, target: str) -> tuple[float, float]:
        """Return what the limits still allow a target to spend: cost, and tokens."""
        return self._meter.left(target)

    def note(self, notes: Iterable[str]) -> bool:
        """Keep notes for the user, each once; return whether one is new."""
        new = [note for note in dict.fromkeys(map(plain, notes)) if note not in self.notes]
        self.notes += new
        return bool(new)

    def is_amid_batch(self, target: str) -> bool:
        """Whether items that `next` gave out are not taken yet."""
        return bool(self._out[target])

    def halt(self, why: str, *, is_failure: bool = False) -> None:
        """End the run: nothing more is given out. `is_failure` marks an end by a mistake."""
        if self.stopped is None:
            self.stopped, self.is_failed = plain(why), is_failure

    def _open(self, target: str) -> list[str]:
        return self.evaluation.due(target)

    def _is_over(self, target: str) -> bool:
        """Whether a limit is reached that applies to the run as a whole."""
        if (ended := self._meter.end_of_all(target)) is not None:
            self.halt(ended[0], is_failure=ended[1])
        if (why := self._meter.end_of(target)) is not None:
            self._limited[target] = why
        return self.stopped is not None or target in self._limited

    def _count(self, target: str, failed: Mapping[str, str], *, is_answered: bool) -> bool:
        """Return whether failures count against the items; stop if the model fails as a whole."""
        silent, before = self._silent[target], self._failures(target)
        if is_answered:
            silent.clear()
            self._in_doubt[target].clear()
        if is_answered or not failed:
            return True
        self._in_doubt[target] |= failed.keys()
        # An item that failed when the model answered others does not count against the model.
        silent |= {item: why for item, why in failed.items() if item not in before}
        never = not len(self.evaluation.record.answered(target))
        rounds = 1 + n_outages(self.evaluation.batches, target)
        if len(silent) >= OUTAGE or (never and rounds >= self._tries):
            self._give_up(target)
        return not never and len(silent) < OUTAGE

    def _give_up(self, target: str) -> None:
        """End the run, as the model fails as a whole; ask again what failed since an answer."""
        silent = self._silent[target]
        why = next(iter(silent.values()))  # later ones may follow from it
        problem = f"{target} failed on {counted(len(silent), 'item')} in a row, first: {why}"
        self.halt(problem, is_failure=True)
        self._retry(target, self._in_doubt[target])

    def _retry(self, target: str, items: Iterable[str]) -> None:
        """Forget that items failed, and ask again for those that were skipped."""
        again = tuple(items)
        if again:
            self.evaluation.note_run(RunBatch(target=target, again=again))
            self.evaluation.unskip(target, again)

    def _skip_failed(self, target: str) -> None:
        failures = self._failures(target)
        if failures:
            given_up = {item for item, reasons in failures.items() if len(reasons) >= self._tries}
            left = [pair for pair in self._again[target] if pair[0] not in given_up]
            self._again[target] = left  # the earlier answers of the others stay
            if skipped := [item for item in self._open(target) if item in given_up]:
                self.evaluation.skip(target, skipped)

    def _failures(self, target: str) -> dict[str, list[str]]:
        return failures_of(self.evaluation.batches, target)

    # -- what was found ----------------------------------------------------------------------

    def progress(self, target: str, *, interval: bool = True, score: bool = True) -> Progress:
        """Return how far a target is.

        An interval takes long on large tables, a score alone a moment, counts no time.
        """
        record = self.evaluation.record
        answered, times = self._meter.n_runs(target), self.stop.repeats
        estimate, value = None, None
        with self._meter.timed():
            if interval and answered:
                estimate = self.evaluation.estimate(self._level, [target], warn=False)[target]
                value = estimate.score
            elif score and answered:
                value = self.evaluation.predict(target)
        return Progress(
            scale=self.evaluation.scores.scale,
            target=target,
            answered=answered,
            budget=times * max(self.evaluation.provenance.budget, len(record.asked(target))),
            total=times * self.evaluation.scores.n_items,
            score=value,
            estimate=estimate,
            spent=self._meter.spent([target]),
            cost=self.evaluation.cost(target),
        )

    def result(self) -> RunResult:
        """Return estimates of all targets with answers, failures, and what was spent and saved."""
        record = self.evaluation.record
        named = [name for name in self.targets if len(record.answered(name))]
        with self._meter.timed():
            estimates = None
            if named:
                estimates = self.evaluation.estimate(self._level, named, warn=False)
        self._note_limits()
        self._note_narrow(named)
        ids = self.evaluation.scores.item_ids
        for name in self.targets:
            if again := record.given_up(name) - record.skipped(name):
                items = f"{counted(len(again), 'item')} failed when run again"
                self.note([f"{name}: {items}, and {'has' if len(again) == 1 else 'have'} fewer"
                           " answers than the others"])  # fmt: skip
        reused = self._reused()
        skipped = {name: ids[sorted(record.skipped(name))].tolist() for name in self.targets}
        failures = {name: self._failures(name) for name in self.targets}
        failed = {
            name: {item: failures[name].get(item, ["skipped"])[-1] for item in items}
            for name, items in skipped.items()
        }
        return RunResult.from_evaluation(
            self.evaluation,
            estimates,
            failed=failed,
            spent={name: self._meter.spent([name]) for name in self.targets},
            limited=self._limited,
            stopped=self.stopped,
            is_failed=self.is_failed,
            notes=[*self.notes, *count_uncompared(self._uncompared)],
            reused=reused,
            is_resumed=any(self._n_before.values()),
            folder=self.folder,
        )

    def _n_answers(self) -> dict[str, int]:
        return {name: self._meter.n_runs(name) for name in self.targets}

    def _reused(self) -> list[str]:
        """Return which answers came from an earlier run, where they may be another model's."""
        now, reused = self._n_answers(), []
        same = [name for name, n in self._n_before.items() if n and n == now[name]]
        idle = [name for name in same if name not in self._replaced]
        if idle and self.stopped is None:
            of_all = "" if len(idle) == len(self.targets) else f" for {some(idle)}"
            answers = counted(sum(now[name] for name in idle), "answer")
            reused.append(
                f"nothing was run{of_all}: {answers} came from an earlier run; to start over, pass "
                "--fresh (in Python use another folder)"
            )
        for name, n in self._n_before.items():
            if not 0 < n < now[name]:
                continue
            facts = facts_of(self.evaluation.batches, name) or {}
            goes_on = f"{name} goes on from {counted(n, 'earlier answer')}"
            if not names_model(facts):
                reused.append(f"{goes_on}: if this is another model, name it in targets")
            elif "program" in facts:  # is known; the weights that it reads may not be
                now_runs = "if the program now runs another model, give it a different name (-t)"
                self.note([f"{goes_on}: {now_runs}"])
        return reused

    def _note_narrow(self, targets: Sequence[str]) -> None:
        """Note the targets whose interval became narrow enough before the items ended."""
        if self.stop.half_width is None or not targets:
            return
        most = self.evaluation.provenance.budget
        for name in targets:
            answered = len(self.evaluation.record.answered(name))
            if answered < most and self.evaluation.is_narrow(name):
                note = (
                    f"{name}: {answered} of at most {most} items answered: the interval is narrow "
                    "enough"
                )
                self.note([note])

    def _note_limits(self) -> None:
        """Note a limit that could not be kept, as nothing reported what was used."""
        for name in () if self.is_failed else self._meter.silent_limits():
            self.note([f"no {name} reported: the limit on {name} was not kept"])


def _line(text: str) -> str:
    """Return what a program, a server or a library said in a line, without keys."""
    return plain(masked(" ".join(text.split())))


def _beginning(text: str) -> str:
    """Return a reply in a line; a long reply as its beginning and its length."""
    line = _line(text)
    return line if len(line) <= LONG else f"{line[:LONG]}… ({len(line):,} characters)"


def items_of(answers: Mapping[str, float] | Scores) -> set[str]:
    """Return the items that have an answer."""
    if isinstance(answers, Scores):
        return set(answers.item_ids[~np.isnan(answers.values).all(axis=0)])
    return set(answers)
