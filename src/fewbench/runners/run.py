"""One evaluation being run: which items to run next, what came of them, when to stop.

`Run` is the state of it, without any model: `next` gives a batch of items, `take` records what
became of them, and `result` says what was found. `fewbench.runners.driving` connects it with a
`Runner`, which runs the items. In the folder of the evaluation, `run.jsonl` keeps what batches
cost and which items failed, and `run.lock` keeps a second process out.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

from numpy.typing import ArrayLike

from fewbench._files import only_process
from fewbench._names import counted, some
from fewbench._text import plain
from fewbench.errors import FewbenchError, RunError
from fewbench.evaluation import Evaluation, Stop
from fewbench.evaluation.journal import HEADER, Journal
from fewbench.evaluation.opening import BENCHMARK, COST, FEWEST
from fewbench.evaluation.packed import check_settings, provenance_of
from fewbench.evaluation.select import chosen_note
from fewbench.methods import Method
from fewbench.methods.base import AUTO
from fewbench.runners.batches import Batch, Batches
from fewbench.runners.result import Progress, RunResult, Spent
from fewbench.scores import Benchmark, Scores, Sources, open_sources
from fewbench.scores.conditions import count_uncompared
from fewbench.scores.table import as_sources

LOCK = "run.lock"
OUTAGE = 10
"""So many items that fail in a row, without an answer, are a failure of the model itself."""


class Run:
    """An evaluation being run, whatever runs the model. Made by `Run.open`.

    Attributes
    ----------
    evaluation : Evaluation
    stopped : str, optional
        Why the run ended before its items did, in words.
    is_failed : bool
        Whether that was a failure of the model or its runner, and no limit.
    notes : list of str
        What the user should know of the run.

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
        *,
        folder: Path | None,
        batch: int | None,
        tries: int,
        level: float,
        accept_differences: bool,
        accept_fractions: bool,
        strict: bool,
    ) -> None:
        for name, value in (("batch", batch), ("tries", tries)):
            if value is not None and value < 1:
                raise RunError(f"{name}={value} is too low", hint="give 1 or more")
        self.evaluation, self.folder = evaluation, folder
        self.stopped: str | None = None
        self.is_failed = False
        self.notes: list[str] = []
        self._uncompared: dict[str, set[str]] = {}  # items by what is not compared of them
        self._batch, self._tries, self._level = batch, tries, level
        self._accept_differences = accept_differences
        self._accept = {"accept_fractions": accept_fractions, "strict": strict}
        self._batches = Batches(folder)
        self._out: dict[str, list[str]] = {name: [] for name in self.targets}
        self._silent: dict[str, dict[str, str]] = {name: {} for name in self.targets}
        self._held = ExitStack()
        self._own = 0.0  # fewbench's own seconds since the last line
        self._is_timed = False
        self._since = time.monotonic()  # of the last line

    @classmethod
    def open(
        cls,
        scores: Sources | Benchmark,
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
        facts: Mapping[str, str] | None = None,
        accept_differences: bool = False,
        accept_fractions: bool = False,
        accept_changes: bool = False,
        strict: bool = False,
    ) -> Self:
        """Start an evaluation, or resume the one in the folder.

        Parameters
        ----------
        scores : Scores or Benchmark
            Scores of the source models; a benchmark alone is run without.
        method : str or Method
            As for `Evaluation`; `auto` chooses one.
        stop : Stop or int, optional
            Limits of each target; `seconds` are of all targets together. A number is a number of
            items. A pack, and a run in the folder, have their own.
        folder : path, optional
            Kept on disk there, for one process at a time; without it, in memory.
        targets : sequence of str
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
        facts : mapping of str to str, optional
            How the model is run: what must be the same for answers to be of one model.
        accept_differences, accept_fractions, strict : bool
            As for `Evaluation.tell_table`.
        accept_changes : bool
            Resume although the facts have changed.

        Raises
        ------
        RunError
            If another process runs in the folder, its evaluation is another one, or the facts
            have changed.
        EvaluationError, MethodError
            If the evaluation cannot be started or opened.
        """
        scores = as_sources(scores)
        stop = limits_of(stop, scores, folder)
        if scores.origin is not None:
            made = provenance_of(scores.origin, scores.n_items)
            method, stop, seed = check_settings(made, method, stop, seed)
        assert stop is not None  # a pack's are in it
        place = None if folder is None else Path(folder)
        started = time.monotonic()
        with ExitStack() as held:
            if place is not None:
                busy = f"{place}: another fewbench run is at work in this folder"
                hint = "wait until it ends or stop it, or use another folder"
                try:
                    held.enter_context(only_process(place / LOCK, busy, hint))
                except FewbenchError as error:
                    raise RunError(error.message, hint=error.hint) from error
            if place is not None and (place / HEADER).exists():
                evaluation = _reopened(place, scores, method, stop, targets, seed)
            else:
                evaluation = Evaluation(
                    scores, method, targets=targets, seed=seed, stop=stop, is_run=True
                )
                if place is not None:
                    evaluation.save(place, scores_path)
            notes = [*evaluation.notes]
            if evaluation.reason is not None:
                notes.insert(0, chosen_note(evaluation))
            run = cls(
                evaluation,
                folder=place,
                batch=batch,
                tries=tries,
                level=stop.level if level is None else level,
                accept_differences=accept_differences,
                accept_fractions=accept_fractions,
                strict=strict,
            )
            run.notes += notes
            if facts is not None:
                record = evaluation.record
                is_new = not any(len(record.answered(name)) for name in evaluation.targets)
                changed = run._batches.check_facts(facts, accept=accept_changes or is_new)
                run.notes += [] if changed is None or is_new else [changed]
            run._since, run._own = started, time.monotonic() - started
            run._held = held.pop_all()
        return run

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let other processes use the folder."""
        self._held.close()

    @property
    def targets(self) -> tuple[str, ...]:
        """The target models."""
        return self.evaluation.targets

    @property
    def stop(self) -> Stop:
        """The limits."""
        return self.evaluation.stop

    def candidates(self) -> list[str]:
        """Return the items that may be run: those chosen, or all if the method adapts."""
        subset = self.evaluation.subset
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
        with self._timed():
            self._skip_failed(target)
            if self._is_over(target):
                return []
            items = self.evaluation.ask(targets=[target]).get(target, [])
            failures = self._batches.failures(target)
            items.sort(key=lambda item: len(failures.get(item, ())))
            self._out[target] = items[: self._most(target)]
        return list(self._out[target])

    def take(
        self,
        target: str,
        answers: Mapping[str, float] | Scores,
        failed: Mapping[str, str] | None = None,
        *,
        cost: float = 0.0,
        tokens: int = 0,
        probabilities: Mapping[str, ArrayLike] | None = None,
        replies: Mapping[str, str] | None = None,
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
        probabilities : mapping of item id to option probabilities, optional
        replies : mapping of item id to str, optional
            Replies that are not whole; see `Evaluation.tell`.

        Raises
        ------
        AnswersError
            As for `Evaluation.tell` and `Evaluation.tell_table`.
        """
        with self._timed():
            left = set(self._open(target))
            failed = {k: plain(" ".join(v.split())) for k, v in (failed or {}).items() if k in left}
            empty = answers.n_items == 0 if isinstance(answers, Scores) else not answers
            counts = self._count(target, failed, is_answered=not empty)
            # The cost first: it was spent, even if this process dies before the answers are kept.
            self._note(target, failed, counts, cost, tokens)
            if isinstance(answers, Scores):
                accepted = {"accept_differences": self._accept_differences, **self._accept}
                taken = self.evaluation.tell_table(answers, target, replies=replies, **accepted)
                self.notes += [note for note in taken.notes if note not in self.notes]
                for note, items in taken.uncompared.items():
                    self._uncompared.setdefault(note, set()).update(items)
            elif answers:
                self.evaluation.tell(
                    target, answers, probabilities, replies=replies, **self._accept
                )
            self._skip_failed(target)
            left = set(self._open(target)) - set(failed)
            self._out[target] = [item for item in self._out[target] if item in left]

    def halt(self, why: str, *, is_failure: bool = False) -> None:
        """End the run: nothing more is given out. `is_failure` marks an end by a mistake."""
        if self.stopped is None:
            self.stopped, self.is_failed = plain(why), is_failure

    def _open(self, target: str) -> list[str]:
        record = self.evaluation.record
        return [str(item) for item in self.evaluation.scores.item_ids[record.open(target)]]

    def _most(self, target: str) -> int | None:
        """Return how many items may be run at once, so that limits are not exceeded by much."""
        most, stop, record = self._batch, self.stop, self.evaluation.record
        of_all = sum(len(record.answered(name)) for name in self.targets)
        answered, spent = len(record.answered(target)), self._spent([target])
        has_costs = COST in self.evaluation.scores.items
        for limit, used, n in (
            (None if has_costs and not spent.cost else stop.cost, spent.cost, answered),
            (stop.tokens, spent.tokens, answered),
            (stop.seconds, spent.model_seconds if of_all else 0.0, of_all),
        ):
            if limit is not None:
                allowed = max(1, int((limit - used) * max(1, n) / used)) if used else FEWEST
                most = allowed if most is None else min(most, allowed)
        return most

    def _is_over(self, target: str) -> bool:
        """Whether a limit is reached that only a run can keep."""
        stop, spent = self.stop, self._spent([target])
        if stop.seconds is not None and self._spent().seconds >= stop.seconds:
            self.halt(f"the limit of {stop.seconds / 60:,.3g} minutes was reached")
        said = None
        if stop.cost is not None and spent.cost >= stop.cost:
            said = f"the cost limit of {stop.cost:,.4g} was reached"
        if stop.tokens is not None and spent.tokens >= stop.tokens:
            said = f"the limit of {stop.tokens:,} tokens was reached"
        if said is not None and (note := f"{target}: {said}") not in self.notes:
            self.notes.append(note)
        return self.stopped is not None or said is not None

    def _count(self, target: str, failed: Mapping[str, str], *, is_answered: bool) -> bool:
        """Return whether failures count against the items; stop if the model fails as a whole."""
        silent = self._silent[target]
        if is_answered or not failed:
            silent.clear()
            return True
        silent |= failed
        never = not len(self.evaluation.record.answered(target))
        rounds = 1 + self._batches.outages(target)
        if len(silent) >= OUTAGE or (never and rounds >= self._tries):
            why = next(iter(silent.values()))  # later ones may follow from it
            said = f"{target} failed on {counted(len(silent), 'item')} in a row, first: {why}"
            self.halt(said, is_failure=True)
        return not never and len(silent) < OUTAGE

    def _skip_failed(self, target: str) -> None:
        failures = self._batches.failures(target)
        if failures:
            given_up = {item for item, reasons in failures.items() if len(reasons) >= self._tries}
            if skipped := [item for item in self._open(target) if item in given_up]:
                self.evaluation.skip(target, skipped)

    # -- on disk -----------------------------------------------------------------------------

    def _note(
        self, target: str, failed: Mapping[str, str], counts: bool, cost: float, tokens: int
    ) -> None:
        now = time.monotonic()
        batch = Batch(
            target=target,
            failed=dict(failed),
            counts=counts,
            cost=cost,
            tokens=tokens,
            seconds=now - self._since,
            own=self._own,
        )
        self._batches.add(batch)
        self._since, self._own = now, 0.0

    def _spent(self, targets: Sequence[str] | None = None) -> Spent:
        """Return what was spent up to now."""
        spent = self._batches.spent(targets)
        return spent.model_copy(
            update={
                "seconds": spent.seconds + time.monotonic() - self._since,
                "own_seconds": spent.own_seconds + self._own,
            }
        )

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Count fewbench's own time."""
        if self._is_timed:
            yield
            return
        started, self._is_timed = time.monotonic(), True
        try:
            yield
        finally:
            self._own += time.monotonic() - started
            self._is_timed = False

    # -- what was found ----------------------------------------------------------------------

    def progress(self, target: str, *, interval: bool = True, score: bool = True) -> Progress:
        """Return how far a target is.

        An interval takes long on large tables, a score alone a moment, counts no time.
        """
        record = self.evaluation.record
        answered = len(record.answered(target))
        estimate, found = None, None
        with self._timed():
            if interval and answered:
                estimate = self.evaluation.estimate(self._level, [target], warn=False)[target]
                found = estimate.score
            elif score and answered:
                found = self.evaluation.predict(target)
        return Progress(
            scale=self.evaluation.scores.scale,
            target=target,
            answered=answered,
            of=self.evaluation.provenance.budget,
            total=self.evaluation.scores.n_items,
            score=found,
            estimate=estimate,
            spent=self._spent([target]),
        )

    def result(self) -> RunResult:
        """Return estimates of all targets with answers, failures, and what was spent and saved."""
        record = self.evaluation.record
        named = [name for name in self.targets if len(record.answered(name))]
        with self._timed():
            estimates = None
            if named:
                estimates = self.evaluation.estimate(self._level, named, warn=False)
        self._note_limits()
        self._note_narrow(named)
        ids = self.evaluation.scores.item_ids
        skipped = {name: ids[sorted(record.skipped(name))].tolist() for name in self.targets}
        failures = {name: self._batches.failures(name) for name in self.targets}
        failed = {
            name: {item: failures[name].get(item, ["skipped"])[-1] for item in items}
            for name, items in skipped.items()
        }
        return RunResult.of(
            self.evaluation,
            estimates,
            failed=failed,
            spent={name: self._spent([name]) for name in self.targets},
            stopped=self.stopped,
            is_failed=self.is_failed,
            notes=[*self.notes, *count_uncompared(self._uncompared)],
            folder=self.folder,
        )

    def _note_narrow(self, targets: Sequence[str]) -> None:
        """Note the targets whose interval became narrow enough before the items ended."""
        if self.stop.half_width is None or not targets:
            return
        most = self.evaluation.provenance.budget
        for name in targets:
            one = self.evaluation.estimate(self.stop.level, [name], warn=False)[name]
            if one.items_run < most and self.stop.is_narrow(one.interval, one.items_run):
                note = (
                    f"{name}: {one.items_run} of at most {most} items answered: the interval is "
                    "narrow enough"
                )
                self.notes += [note] if note not in self.notes else []

    def _note_limits(self) -> None:
        """Note a limit that could not be kept, as nothing reported what was used."""
        spent, items = self._spent(), self.evaluation.scores.items
        silent = [
            name
            for name, limit, used in (
                ("cost", self.stop.cost, spent.cost or COST in items),
                ("tokens", self.stop.tokens, spent.tokens),
            )
            if limit is not None and not used
        ]
        for name in silent:
            note = f"no {name} reported: the limit on {name} was not kept"
            if note not in self.notes:
                self.notes.append(note)


def saved_benchmark(folder: str | Path | None) -> Sources | None:
    """Return the items of the run without source models in a folder; None if none was started.

    RunError if the run there has source models.
    """
    if folder is None or not (Path(folder) / HEADER).exists():
        return None
    path = Path(folder) / BENCHMARK
    if not path.exists():
        raise RunError(
            f"{folder}: the evaluation there has scores of source models",
            hint="pass these scores to resume, or use another folder",
        )
    return open_sources(path)


def limits_of(
    stop: Stop | int | None, scores: Sources | Benchmark | None, folder: str | Path | None
) -> Stop | None:
    """Return when a run stops: as given, or as in its folder; None for the limit of a pack.

    Raises RunError without any.
    """
    if stop is not None:
        return Stop(items=stop) if isinstance(stop, int) else stop
    if folder is not None and (Path(folder) / HEADER).exists():
        return Journal(Path(folder)).header().stop
    if getattr(scores, "origin", None) is None:
        raise RunError(
            "no limit for the run",
            hint="pass a number of items, as in stop=100, or the half width of the interval, as in "
            "stop=Stop(half_width=0.03)",
        )
    return None


def _reopened(
    folder: Path,
    scores: Sources,
    method: str | Method,
    stop: Stop,
    targets: Sequence[str],
    seed: int,
) -> Evaluation:
    """Open the evaluation in a folder; RunError if it was started with other settings."""
    header = Journal(folder).header()
    made = header.provenance
    was_auto = header.reason is not None
    named = method if isinstance(method, str) else method.describe()
    differ = []
    if (named == AUTO) != was_auto or (named != AUTO and named != made.method):
        differ.append(f"method {AUTO if was_auto else made.method}, not {named}")
    before = header.stop or Stop(items=made.budget)
    if before != stop:
        differ.append(f"limits {before.describe()}; not {stop.describe()}")
    if header.targets != tuple(targets):
        differ.append(f"targets {some(header.targets)}, not {some(targets)}")
    if made.seed != seed:
        differ.append(f"seed {made.seed}, not {seed}")
    if differ:
        raise RunError(
            f"{folder}: the evaluation there has {' and '.join(differ)}",
            hint="use the same settings to resume, or another folder",
        )
    return Evaluation.open(folder, scores, None if isinstance(method, str) else method)
