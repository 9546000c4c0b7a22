"""Best: run several models in rounds until it is clear which is the best."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fewbench._names import counted
from fewbench._seeds import child_seed
from fewbench._threads import one_thread
from fewbench._types import FloatArray
from fewbench._warned import issue
from fewbench.algorithms.best_of_many import (
    EQUAL,
    FIRST,
    LEAST_FIRST,
    Prospect,
    SourceAxes,
    believe,
    chances_top,
    first_items,
    normal,
)
from fewbench.decide.best_result import BestResult, Candidate, Ending
from fewbench.errors import EvaluationError, MethodError, RunError
from fewbench.evaluation import Evaluation, Stop
from fewbench.evaluation.entries import AnswerSet
from fewbench.evaluation.interval import Interval
from fewbench.evaluation.journal import has_evaluation
from fewbench.evaluation.opening import COST, costs_of
from fewbench.methods.selection.random import random_order
from fewbench.methods.written import check_number
from fewbench.scores import Benchmark, Scores
from fewbench.scores.roles import as_sources
from fewbench.uncertainty.sampling import check_level

if TYPE_CHECKING:
    from fewbench.runners.driving import Runner
    from fewbench.runners.function import ScoreFunction
    from fewbench.runners.result import RunResult
    from fewbench.runners.run import Run

METHOD = "random"
"""All models run the items in the order of a simple random sample."""
INTERVAL = 0.9
FEWEST_SOURCES = 8
"""Source models that tell more than they mislead."""
DROPPED = 0.01
"""Probability of being among the best below which a model counts as dropped."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """What is looked for, and what it may take.

    Attributes
    ----------
    targets : tuple of str
    answers : int, optional
        Most answers of all targets together.
    cost : float, optional
        Most to spend on all targets together.
    unit : str
        Unit of the cost.
    margin : float
        On the scale of the scores.
    top : int
    level : float
    in_general : bool
    batch : int, optional
    seed : int
    """

    targets: tuple[str, ...]
    answers: int | None = None
    cost: float | None = None
    unit: str = ""
    margin: float = 0.0
    top: int = 1
    level: float = 0.95
    in_general: bool = False
    batch: int | None = None
    seed: int = 0

    def check(self) -> None:
        """Raise EvaluationError or MethodError for what is not possible."""
        n = len(self.targets)
        if len(set(self.targets)) < n or n < 2:
            raise EvaluationError(
                f"{counted(n, 'target')}, and the best is looked for among two or more with "
                "different names",
                hint="name each of them, as in -t A -t B",
                kind="too-few",
            )
        if not 1 <= self.top < n:
            raise EvaluationError(
                f"top = {self.top} is not possible with {counted(n, 'target')}",
                hint=f"use a number from 1 and below {n}",
            )
        check_level(self.level)
        check_number("margin", self.margin, 0)
        if self.answers is None and self.cost is None:
            raise RunError(
                "no limit for the run",
                hint="give a number of answers of all targets together (-n, in Python budget=), or "
                "a cost",
            )
        if self.answers is not None and self.answers < LEAST_FIRST * n:
            raise MethodError(
                f"{counted(self.answers, 'answer')} for {n} targets",
                hint=f"each runs {LEAST_FIRST} items or more: give {LEAST_FIRST * n:,} or more",
            )

    def first(self, n_items: int) -> int:
        """Return how many items each target runs first."""
        of_batch = 0 if self.batch is None else self.batch
        n, budget = len(self.targets), np.inf if self.answers is None else self.answers
        return max(first_items(budget, n, n_items), int(min(of_batch, n_items, budget / n / 4)))


@dataclass(eq=False)
class BestPlanner:
    """Plans the rounds of a run: which targets run on, and when it is settled."""

    search: Search
    evaluation: Evaluation | None = None
    _axes: SourceAxes | None = field(default=None, init=False)
    _look: Prospect | None = field(default=None, init=False)

    def __call__(self, evaluation: Evaluation) -> dict[str, list[str]]:
        """Return the further items of each target: empty once settled, or at a limit."""
        search, scores = self.search, evaluation.scores
        if scores.cohort_of.any():
            raise EvaluationError(
                "the benchmark was extended since the run began, so the items so far are not a "
                "random sample of all",
                hint="use another folder (-o, in Python folder=), with all items from the start",
                kind="changed",
            )
        look = self.look(evaluation)
        left, costs = self._left(evaluation)
        if look.is_settled or not look.room.any() or left <= 0:
            return {}
        rng = np.random.default_rng(child_seed(search.seed, 21, int(look.run.sum())))
        more = look.round(
            search.first(scores.n_items), left, rng,
            top=search.top, batch=search.batch or 0, costs=costs,
        )  # fmt: skip
        order = random_order(scores.n_items, evaluation.provenance.seed)
        planned = {}
        for name, count in zip(search.targets, more.tolist(), strict=True):
            if count:
                items = order[~evaluation.record.is_asked(name, order)][:count]
                planned[name] = [str(item) for item in scores.item_ids[items]]
        return planned

    @property
    def limits_cost(self) -> bool:
        """Whether there is a limit on the cost of all targets together."""
        return self.search.cost is not None

    def look(self, evaluation: Evaluation) -> Prospect:
        """Return what is known now."""
        search, record, scores = self.search, evaluation.record, evaluation.scores
        run = np.array([len(record.asked(name)) for name in search.targets])
        latest = self._look
        if latest is not None and self.evaluation is evaluation and (latest.run == run).all():
            return latest
        for name in search.targets:
            if not len(record.answered(name)):
                raise EvaluationError(
                    f"{name!r} has no answers", hint="see why its items failed, or leave it out"
                )
        if self._axes is None and scores.n_models:
            whole = scores.whole
            if whole.n_models >= FEWEST_SOURCES:
                self._axes = SourceAxes.fit(np.asarray(whole.filled_cells[:], dtype=np.float64))
        skipped = np.array([len(record.skipped(name)) for name in search.targets])
        with one_thread():
            beliefs = believe(
                np.array([record.scores(name) for name in search.targets]),
                self._axes,
                None if scores.counts_equally else scores.item_weights,
                lost=skipped / run,
                in_general=search.in_general,
            )
            rng = np.random.default_rng(child_seed(search.seed, 20, int(run.sum())))
            self._look = Prospect.of(
                beliefs, run, scores.n_items, rng,
                top=search.top, margin=search.margin / scores.scale.span, level=search.level,
            )  # fmt: skip
        self.evaluation = evaluation
        return self._look

    def _left(self, evaluation: Evaluation) -> tuple[float, FloatArray | None]:
        """Return what the limits leave, in answers or in cost, and what an answer of each costs."""
        search, names = self.search, self.search.targets
        answers = sum(len(evaluation.record.asked(name)) for name in names)
        left = np.inf if search.answers is None else float(search.answers - answers)
        if search.cost is None:
            return left, None
        spent = costs_by_target(evaluation, names)
        if spent is None:
            raise RunError(
                "the limit on cost cannot be kept: no cost is reported",
                hint="limit the number of answers (-n, in Python budget=), or add a column cost to "
                "the items",
                kind="missing",
            )
        each = np.array([
            max(spent[name], 1e-12) / max(len(evaluation.record.answered(name)), 1)
            for name in names
        ])  # fmt: skip
        return min(search.cost - sum(spent.values()), left * float(each.max())), each


def costs_by_target(evaluation: Evaluation, names: Sequence[str]) -> dict[str, float] | None:
    """Return what each target cost so far, or None if no cost is known."""
    costs = {name: evaluation.cost(name) for name in names}
    known = {name: cost.spent for name, cost in costs.items() if cost is not None}
    return known if len(known) == len(costs) else None


def run_best(
    run: "Callable[..., RunResult]",
    scores: Scores | None,
    search: Search,
    *,
    folder: str | Path | None = None,
    on_progress: "Callable[[str], None] | None" = None,
    **settings: Any,
) -> BestResult:
    """Run targets until it is settled which are the best, and return what was found.

    Parameters
    ----------
    run : callable
        Runs the targets: takes scores, method, stop and what else `run_with` takes.
    scores : Scores, optional
        Scores of source models or items alone (default: the runner's own items).
    search : Search
    folder : path, optional
    on_progress : callable, optional
        Called with how far the search is, in words.
    **settings
        Further arguments of `run`.
    """
    search.check()
    stop = None
    if not has_evaluation(folder):
        stop = Stop(items=search.first(FIRST if scores is None else scores.n_items))
    if scores is not None and search.cost is not None and COST in scores.items and stop is not None:
        least = float(costs_of(scores).mean()) * (stop.items or 0) * len(search.targets)
        if least > search.cost:
            raise RunError(
                f"the first {stop.items} items of {len(search.targets)} targets cost about "
                f"{least:,.4g}, more than {search.cost:,.4g}",
                hint="give a larger limit on cost, or fewer targets",
            )
    planner = BestPlanner(search)

    def tell(run: "Run", target: str) -> None:
        if on_progress is not None:
            on_progress(_progress(run.evaluation, planner, target))

    ran = run(
        scores,
        METHOD,
        stop,
        folder=folder,
        targets=list(search.targets),
        planner=planner,
        seed=search.seed,
        batch=search.batch,
        on_progress=tell,
        **settings,
    )
    evaluation = planner.evaluation
    if evaluation is None and folder is not None:  # it was stopped before a round ended
        evaluation = Evaluation.open(folder, scores)
    if evaluation is None or not _has_answers(evaluation, search.targets):
        raise RunError(
            f"the run ended before each target ran its first items: {ran.stopped}",
            hint="rerun it to resume" if folder else "give a folder, in which it resumes",
        )
    result = _result(evaluation, planner, ran)
    issue(result.warnings)
    return result


def _has_answers(evaluation: Evaluation, names: Sequence[str]) -> bool:
    return all(len(evaluation.record.answered(name)) for name in names)


def _failures(ran: "RunResult") -> list[str]:
    """Say which items failed, and why the run ended early."""
    texts = [
        f"{name}: {counted(len(target.failed), 'item')} failed and count as open "
        f"({next(iter(target.failed.values()))}). If a model fails where it would be wrong, it "
        "looks better than it is"
        for name, target in ran.targets.items()
        if target.failed
    ]
    return texts + [f"the run ended early: {ran.stopped}"] * (ran.stopped is not None)


def _progress(evaluation: Evaluation, planner: BestPlanner, target: str) -> str:
    """Return how far the search is, in a line."""
    names, limit = planner.search.targets, planner.search.answers
    n = sum(len(evaluation.record.answered(name)) for name in names)
    text = f"{n:,} answers" if limit is None else f"{n:,} of at most {limit:,} answers"
    if (look := planner._look) is not None:
        leader = names[int(look.beliefs.scores.argmax())]
        text += f" · {leader} leads, P {look.chance:.2f}"
    return f"{text} · running {target}"


def _result(evaluation: Evaluation, planner: BestPlanner, ran: "RunResult") -> BestResult:
    """Return what was found."""
    search, scores = planner.search, evaluation.scores
    names, scale, record = search.targets, scores.scale, evaluation.record
    look = planner.look(evaluation)
    expected, errors = look.beliefs.scores, look.beliefs.errors
    in_top = chances_top(look.drawn, search.top)
    half = normal(INTERVAL) * errors
    order = sorted(range(len(names)), key=lambda at: (-round(float(expected[at]), 9), names[at]))
    costs = costs_by_target(evaluation, names)
    last = _last_answers(evaluation, names)
    candidates = tuple(
        Candidate(
            target=names[at],
            score=float(scale.from_unit(float(np.clip(expected[at], 0, 1)))),
            interval=Interval.between(
                scale.from_unit(np.clip([expected[at] - half[at], expected[at] + half[at]], 0, 1))
            ),
            chance_top=float(in_top[at]),
            items_run=len(record.answered(names[at])),
            dropped_after=(last[names[at]] if in_top[at] < DROPPED and look.room[at] > 0 else None),
            cost=None if costs is None else costs[names[at]],
        )
        for at in order
    )
    behind = np.abs(look.drawn - look.drawn[:, [order[search.top - 1]]]).max(axis=0)
    margin = search.margin / scale.span
    ranges = look.drawn.max(axis=1) - look.drawn.min(axis=1)
    is_settled = look.is_settled
    ended: Ending = "answers"
    if is_settled:
        ended = "settled"
    elif ran.stopped is not None:
        ended = "stopped"
    elif not look.room.any():
        ended = "all items"
    elif search.cost is not None and (search.answers or np.inf) > look.run.sum():
        ended = "cost"
    return BestResult(
        targets=candidates,
        top=search.top,
        tied=tuple(names[at] for at in order[search.top :] if behind[at] <= EQUAL),
        margin=search.margin,
        chance=look.chance,
        chance_alike=float((ranges <= margin + EQUAL).mean()),
        level=search.level,
        is_settled=is_settled,
        ended=ended,
        in_general=search.in_general,
        answers=sum(candidate.items_run for candidate in candidates),
        answers_total=len(names) * scores.n_items,
        items_total=scores.n_items,
        interval_level=INTERVAL,
        scale=scale,
        cost=None if costs is None else sum(costs.values()),
        unit=search.unit,
        stopped=ran.stopped,
        is_failed=ran.is_failed,
        warnings=tuple(_failures(ran)),
        notes=ran.notes,
    )


def _last_answers(evaluation: Evaluation, names: Sequence[str]) -> dict[str, int]:
    """Return after how many answers of all targets each one gave its last."""
    n, last = 0, dict.fromkeys(names, 0)
    for entry in evaluation.entries:
        if isinstance(entry, AnswerSet) and entry.target in last:
            n += len(entry.items)
            last[entry.target] = n
    return last


def best(
    scores: Scores | Benchmark,
    models: "Mapping[str, ScoreFunction] | Runner",
    budget: int | str | None = None,
    *,
    names: Sequence[str] | None = None,
    cost: float | None = None,
    margin: float = 0.0,
    top: int = 1,
    level: float = 0.95,
    in_general: bool = False,
    batch: int | None = None,
    folder: str | Path | None = None,
    scores_path: str | Path | None = None,
    batched: bool = False,
    concurrency: int = 1,
    seed: int = 0,
    tries: int = 3,
    accept_fractions: bool = False,
    accept_changes: bool = False,
    on_progress: "Callable[[str], None] | None" = None,
) -> BestResult:
    """Run several models until it is clear which is the best, on few answers in total.

    All models run the same items in one random order, some further than others. After each round
    the models that may still be the best run on, and the run ends once it is settled.

    Parameters
    ----------
    scores : Scores or Benchmark
        Scores of source models, or the items alone.
    models : mapping of name to callable, or Runner
        Functions that take an item id and return its score, on the scale of the sources; see
        `fewbench.run`. Or a runner of any kind that runs all of `names`.
    budget : int or str, optional
        Most answers of all models together, or a share such as 10% of all answers. This or `cost`
        is needed.
    names : sequence of str, optional
        The models, if a runner is given.
    cost : float, optional
        Most to spend on all models together, by the items' column `cost` or as the runner reports.
    margin : float
        The run also ends once no other model is better by more than this, on the scale of the
        scores.
    top : int
        Number of best models to find.
    level : float
        Probability at which it is settled.
    in_general : bool
        Find the model that is the best on questions like these and if it runs again, and not on
        exactly these items.
    batch : int, optional
        Least number of further items that a model gets at a time, where starting one takes long.
    folder : path, optional
        Keep every answer there. Repeat the call to resume after a stop or a crash, or with a larger
        budget to go on.
    scores_path : path, optional
        File of the scores, recorded in the folder.
    batched, concurrency, tries, accept_fractions, accept_changes
        As for `fewbench.run`.
    seed : int
        Random seed.
    on_progress : callable, optional
        Called with how far the search is, in words, in place of the progress line on stderr.

    Raises
    ------
    EvaluationError, MethodError
        With fewer than two models, or a budget or a `top` out of range.
    RunError
        Without a limit, with one that cannot be kept, from the runner, or if the folder contains
        another run.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> table = simulate(6, 300, seed=1)
    >>> models = {name: dict(zip(table.item_ids, row)).get
    ...           for name, row in zip(table.model_ids, table.values)}
    >>> found = best(table.benchmark, models, budget=900, margin=0.02)
    >>> two_best = [table.model_ids[at] for at in table.full_scores().argsort()[-2:]]
    >>> found.is_settled, found.winners[0] in two_best
    (True, True)
    """
    from fewbench.runners.driving import run_with
    from fewbench.runners.function import FunctionRunner

    runner: Runner
    if isinstance(models, Mapping):
        names = names or tuple(models)
        runner = FunctionRunner(models, batched=batched, concurrency=concurrency)
    else:
        runner = models
    table = as_sources(scores)
    search = Search(
        targets=tuple(names or ()),
        answers=total_of(budget, len(names or ()), table),
        cost=cost,
        margin=margin,
        top=top,
        level=level,
        in_general=in_general,
        batch=batch,
        seed=seed,
    )
    from fewbench._progress import status_line

    shown = (
        status_line(f"running {runner.name}") if on_progress is None else nullcontext(on_progress)
    )
    with shown as update:
        return run_best(
            partial(run_with, runner),
            table,
            search,
            folder=folder,
            on_progress=update,
            scores_path=scores_path,
            tries=tries,
            accept_fractions=accept_fractions,
            accept_changes=accept_changes,
        )


def total_of(budget: int | str | None, n_targets: int, scores: Scores | None) -> int | None:
    """Return a number of answers of all targets together, given it or a share such as 10%.

    Raises MethodError if the text is neither, or if the items are not known.
    """
    if not isinstance(budget, str):
        return budget
    text = budget.strip()
    try:
        share = float(text.removesuffix("%")) / 100 if text.endswith("%") else None
        if share is None:
            return int(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise MethodError(
            f"the budget {text!r} is not a number of answers",
            hint="write a number, or a share of all answers as in 10%",
        )
    if scores is None:
        raise MethodError(
            f"budget {text}: the items are not known before the run", hint="give a number"
        )
    return round(share * n_targets * scores.n_items)
