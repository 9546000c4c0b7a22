"""More items, or more tasks, for an evaluation that has answers.

Answers and the order of the old items stay. The same share of the new items is drawn as of the old
ones, in an order that the benchmark and the seed decide, so that all answers together are a sample
of all items. Items that a method chose are not a sample. In this case, as many items as an estimate
from a sample needs are drawn from all remaining items, old and new; unless no source model ran the
new items, and the method estimates the old ones beside a sample of the new ones.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._names import counted, some
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.assisted import FEWEST
from fewbench.algorithms.kriging.sample import ENOUGH
from fewbench.algorithms.sampling import NestedSample, permanent_order
from fewbench.errors import EvaluationError, MethodError
from fewbench.evaluation.changes import keep_change
from fewbench.evaluation.choosing import learned_from
from fewbench.evaluation.evaluation import Evaluation
from fewbench.evaluation.journal import Journal
from fewbench.evaluation.ledger import Ledger
from fewbench.evaluation.opening import BENCHMARK, SCORES
from fewbench.methods import StaticMethod, Subset
from fewbench.methods.adaptive.fewbench import Fewbench
from fewbench.methods.base import Session
from fewbench.methods.kriging import samples_unrun
from fewbench.methods.record import Drawing
from fewbench.scores import Benchmark, Scores
from fewbench.scores.benchmark import COHORT, WEIGHT
from fewbench.scores.joining import join_scores
from fewbench.scores.roles import as_sources, source_models
from fewbench.scores.table import NO_TASK


@dataclass(frozen=True)
class Extended:
    """What an extension did.

    Attributes
    ----------
    items : int
        Number of new items.
    asked : dict of str to int
        Number of additional items of each target.
    models : int
        Number of new source models.
    notes : tuple of str
    """

    items: int
    asked: dict[str, int]
    models: int = 0
    notes: tuple[str, ...] = ()


def extend(
    folder: str | os.PathLike[str],
    items: Scores | Benchmark,
    *,
    accept_differences: bool = False,
) -> Extended:
    """Take more items or source models into an evaluation; no item is run twice.

    Source models without answers to the new items keep them empty. All targets with answers get the
    same new items: `fewbench ask` lists them, and the command of `fewbench run` runs them.

    Parameters
    ----------
    folder : path
        Folder of the evaluation.
    items : Scores or Benchmark
        The new items; others of the evaluation may be among them. New models become source models.
    accept_differences : bool
        Take items in that both have, and that differ.

    Raises
    ------
    EvaluationError
        If there is nothing new, the evaluation is of a pack, or its method cannot take items in,
        or not estimate with these.
    ScoresError
        If items that both have differ. Nothing is written then.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from fewbench.testing import simulate
    >>> whole = simulate(1, 200, seed=1).benchmark
    >>> first = Benchmark(whole.items.iloc[:150])
    >>> with TemporaryDirectory() as place:
    ...     evaluation = Evaluation(first, "fewbench", 30)
    ...     evaluation.save(place)
    ...     left = evaluation.tell("target", dict.fromkeys(evaluation.ask()["target"], 1.0))
    ...     extend(place, whole)
    ...     len(Evaluation.open(place).ask()["target"])
    Extended(items=50, asked={'target': 10}, models=0, notes=())
    10
    """
    before = Journal(Path(folder)).header()
    evaluation = Evaluation.open(folder)
    journal = evaluation._ledger._journal
    assert journal is not None
    with journal.locked():  # others add nothing between the draw and its entries
        if journal.header() != before:
            raise EvaluationError(
                f"{folder}: changed while it was read", hint="run this again", kind="changed"
            )
        with evaluation._ledger.alone():
            pass  # takes up what they added
        table, notes = _together(evaluation, items, str(folder), accept=accept_differences)
        new = np.arange(evaluation.scores.n_items, table.n_items)
        chosen = _grown(evaluation) if len(new) else evaluation.subset
        drawn = _drawn(evaluation, chosen, table, new)
        record = evaluation.record
        asked = {
            name: len(places) for name, (places, _) in drawn.items() if len(record.asked(name))
        }
        subset = _with_items(chosen, table, [*drawn.values()])
        start = replace(evaluation._choosing.start, subset=subset).carried(table)
        try:
            learned_from(evaluation.method, start.subset, table)
        except MethodError as error:
            raise EvaluationError(
                f"{folder}: its method could not estimate with the new items: {error.message}",
                hint="add source models that ran the new items, too; or start an evaluation with "
                "the method fewbench or random, which draw such items",
                kind="unsupported",
            ) from error
        assert start.started is not None
        changed = start.started
        if subset is None:
            more = max(asked.values(), default=0)
            changed = changed.model_copy(update={"budget": changed.budget + more})
        name = SCORES if table.n_models else BENCHMARK
        evaluation._ledger.note_changes()
        path, subset = journal.folder / name, start.subset
        keep_change(journal, table, path, scores=name, provenance=changed, subset=subset)
        ledger = Ledger(table, evaluation.targets)
        ledger.carry(evaluation.entries, evaluation.targets)
        ledger.go_on_in(journal)
        for target in asked:
            ledger.record.add_round(target, drawn[target][0])
        ledger.note_rounds()
        for target, (_, drawing) in drawn.items():
            if evaluation.subset is None and drawing is not None:
                ledger.note_drawn(target, [drawing])
    n_models = table.n_models - evaluation.scores.n_models
    return Extended(len(new), asked, n_models, notes)


def _together(
    evaluation: Evaluation, items: Scores | Benchmark, folder: str, *, accept: bool
) -> tuple[Scores, tuple[str, ...]]:
    """Return the evaluation's table with the new items, its own first, each with its cohort."""
    own = evaluation.scores
    if own.origin is not None:
        raise EvaluationError(
            f"{folder}: started from a pack, whose items are fixed",
            hint="make a pack of the larger benchmark, and start an evaluation from it",
        )
    given, _ = source_models(as_sources(items).averaged(own.average))
    new = given.items.index.difference(own.items.index, sort=False)
    if not len(new) and given.models.index.isin(own.models.index).all():
        raise EvaluationError(
            f"{folder}: has all {given.n_items:,} items already",
            hint="name a file that has new items, or new source models",
        )
    if taken := [name for name in evaluation.targets if name in given.models.index]:
        raise EvaluationError(
            f"{folder}: {some(taken)} would be a target and a source model",
            hint="leave these models out of the scores",
        )
    cohorts = pd.Series(own.cohort_of, own.items.index)
    weights = _weights(own, given)
    plain = [
        table.changed(items=table.items.drop(columns=[COHORT, WEIGHT], errors="ignore"))
        for table in (own, given)
    ]
    if set(own.tasks) == {NO_TASK} != set(given.tasks) == {NO_TASK}:
        raise EvaluationError(
            f"{folder}: only one of the evaluation and the new items names tasks",
            hint="give a task to the items of both, or to neither",
        )
    joined, notes = join_scores(plain, [folder, "the new items"], accept_differences=accept)
    columns: dict[str, Any] = {
        COHORT: cohorts.reindex(joined.items.index).fillna(cohorts.max() + 1).astype(int)
    }
    if weights is not None:
        columns[WEIGHT] = weights.reindex(joined.items.index)
    return joined.changed(items=joined.items.assign(**columns)), notes


def _weights(own: Scores, given: Scores) -> "pd.Series[float] | None":
    """Return the weights of all items: as given where all are, else those of each part."""
    if WEIGHT not in own.items and WEIGHT not in given.items:
        return None
    if WEIGHT not in given.items:
        raise EvaluationError(
            "the items of the evaluation have weights, and the new ones none",
            hint=f"give the new items a column {WEIGHT}",
            kind="missing",
        )
    ours, theirs = (
        table.items[WEIGHT] if WEIGHT in table.items else pd.Series(1.0, table.items.index)
        for table in (own, given)
    )
    rest = (
        theirs if ours.index.isin(theirs.index).all() else theirs.drop(ours.index, errors="ignore")
    )
    weights: pd.Series[float] = pd.concat([ours.drop(rest.index, errors="ignore"), rest])
    return weights


def _drawn(
    evaluation: Evaluation, subset: Subset | None, table: Scores, new: IntArray
) -> dict[str, tuple[IntArray, Drawing | None]]:
    """Return each target's additional items, and how all its items are then drawn, if they are."""
    method, record = evaluation.method, evaluation.record
    is_beside = isinstance(method, Fewbench) and samples_unrun(table)
    order = permanent_order(table.task_of, evaluation.provenance.seed, table.cohort_of)
    by_target: dict[str, tuple[IntArray, Drawing | None]] = {}
    for target in record.targets:
        asked = record.asked(target)
        if isinstance(method, StaticMethod) and len(new):
            drawings = _of_subset(subset, evaluation.scores)
        elif not len(asked) or not len(new):
            continue
        else:
            _can_draw(evaluation)
            drawings = evaluation._choosing.session.drawn(target)
        chances = np.full(table.n_items, np.nan)
        before = drawings[0].before if drawings else asked
        missed = np.ones(evaluation.scores.n_items)
        is_drawn = missed == 0
        for drawing in drawings:  # an item that another phase drew had the mean chance
            is_now = np.isfinite(drawing.chances)
            mean = is_now.sum() / (len(missed) - len(drawing.before))
            missed *= 1 - np.where(is_now, drawing.chances, mean)
            is_drawn |= is_now
        chances[: len(missed)][is_drawn] = 1 - missed[is_drawn]  # in any of the phases
        n = int(is_drawn.sum())
        weights = table.item_weights
        old = np.setdiff1d(np.arange(len(missed)), before)
        pool = new
        share = (n or len(asked)) / weights[old if n else np.arange(len(missed))].sum()
        wanted = max(FEWEST, round(share * weights[new].sum()))
        if not n and not is_beside:  # a method chose them: the estimate needs a sample of all left
            pool = np.setdiff1d(np.arange(table.n_items), asked)
            wanted = max(wanted, math.ceil(ENOUGH / (1 - ENOUGH) * len(asked)))
        # Items that no source ran are a simple random sample, whatever they weigh.
        sizes = np.ones(table.n_items) if is_beside else weights
        sample = NestedSample(order[np.isin(order, pool)], sizes)
        places = sample.take(min(wanted, len(pool)))
        chances[places] = sample.chances(len(places))[places]
        by_target[target] = places, Drawing(before, chances) if n or not is_beside else None
    return by_target


def _grown(evaluation: Evaluation) -> Subset | None:
    """Return the subset of a static method, with further items of a simple random sample.

    EvaluationError if some targets ran more of them than others: the chances with which the items
    were drawn are those of all targets.
    """
    subset, record, scores = evaluation.subset, evaluation.record, evaluation.scores
    method = evaluation.method
    if subset is None or subset.weights is not None or not method.random_items:
        return subset
    chosen = scores.positions(subset.items)
    asked = [record.asked(name) for name in record.targets]
    samples = [np.union1d(items, chosen) for items in asked if len(items)] or [chosen]
    if any(not np.array_equal(items, samples[0]) for items in samples):
        raise EvaluationError(
            "its targets ran different numbers of further items of the random sample, so no share "
            "of the new items fits all of them",
            hint="ask for as many items of each target first, or start an evaluation of the larger "
            "benchmark",
            kind="unsupported",
        )
    more = np.setdiff1d(samples[0], chosen)
    if not len(more):
        return subset
    items = (*subset.items, *scores.item_ids[more].tolist())
    chances = (len(items) / scores.n_items,) * len(items)
    return subset.model_copy(update={"items": items, "chances": chances})


def _of_subset(subset: Subset | None, scores: Scores) -> tuple[Drawing, ...]:
    """Return how the items of a static method were drawn; EvaluationError if it chose them."""
    if subset is None or subset.chances is None or not subset.is_sample:
        raise EvaluationError(
            "the method chose all its items at the start, so it cannot take others in",
            hint="start an evaluation with the method fewbench, random or aipw, which can",
            kind="unsupported",
        )
    chances = np.full(scores.n_items, np.nan)
    chances[scores.positions(subset.items)] = np.array(subset.chances, dtype=float)
    return (Drawing(np.empty(0, dtype=np.intp), chances),)


def _can_draw(evaluation: Evaluation) -> None:
    """Raise EvaluationError if the method never draws items."""
    if type(evaluation._choosing.session).drawn is Session.drawn:
        raise EvaluationError(
            f"{evaluation.provenance.method} draws no items, so it cannot take others in",
            hint="start an evaluation with the method fewbench, random or aipw, which can",
        )


def _with_items(
    subset: Subset | None, table: Scores, drawn: Sequence[tuple[IntArray, Drawing | None]]
) -> Subset | None:
    """Return the subset of a static method with the new items, all by their chances."""
    if subset is None or not drawn:
        return subset
    places, drawing = drawn[0]
    assert drawing is not None
    items = (*subset.items, *table.item_ids[places].tolist())
    chances: FloatArray = drawing.chances[table.positions(items)]
    over = table.item_weights[table.positions(items)] / chances
    is_even = subset.weights is None and np.ptp(chances) < 1e-9
    return subset.model_copy(
        update={
            "items": items,
            "chances": tuple(chances.tolist()),
            "weights": None if is_even else tuple((over / over.sum()).tolist()),
        }
    )


def extension_note(extended: Extended) -> str:
    """Say what an extension did."""
    asked = some((f"{n:,} of {target}" for target, n in extended.asked.items()), quotes=False)
    more = f"; items to run: {asked}" if extended.asked else ""
    taken = [counted(extended.items, "new item")] if extended.items else []
    taken += [counted(extended.models, "source model")] if extended.models else []
    return f"{' and '.join(taken)} taken in, answers stay{more}"
