"""Make packs: choose the items, measure the method's errors, and keep what estimates need."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench._lazy import pandas as pd
from fewbench._names import counted, did_you_mean
from fewbench._threads import one_thread
from fewbench._version import __version__
from fewbench.errors import MethodError, PackError
from fewbench.evaluation import Evaluation
from fewbench.evaluation.answers import whole_tasks
from fewbench.evaluation.estimating import unrun_note
from fewbench.evaluation.opening import count_items
from fewbench.evaluation.packed import subset_of
from fewbench.executors import Executor, Pool, open_pool
from fewbench.methods import Method, Subset, find_method
from fewbench.methods.base import AUTO
from fewbench.methods.needs import item_texts
from fewbench.methods.packing import Keeps, packed_as
from fewbench.methods.sources import (
    are_alike,
    missing_note,
    models_per_group,
    reliability,
    whole_sources,
)
from fewbench.packs.contents import Pack, open_pack
from fewbench.scores import Scores
from fewbench.scores.families import FAMILY, families_of
from fewbench.scores.groups import EQUAL, GROUP
from fewbench.scores.pack_files import (
    SCHEMA,
    Cell,
    PackRecord,
    Part,
    PartRecord,
    encode_scores,
    scores_of,
)
from fewbench.scores.roles import as_sources, source_models
from fewbench.scores.table import CREDIT, HARNESS_VERSION, KEY_FIELD, KEYS, PROMPTS, SETTINGS, UNRUN
from fewbench.study.cache import Cache
from fewbench.study.compare import run_cells
from fewbench.study.plan import backtests_by_relation, models_to_backtest
from fewbench.uncertainty.held_out import HeldOut, looks_of, measure
from fewbench.uncertainty.sampling import sampling_effect

KEPT_COLUMNS = (
    *("task", GROUP, EQUAL, "harness", "doc_id", "sample_id", "metric", "filter"),
    *(PROMPTS, KEYS, SETTINGS, HARNESS_VERSION, KEY_FIELD, "content_hash"),
)
"""Columns of the items that say which items they are; others are kept if they are numbers."""
MOST_BYTES = 8 * 2**20
"""Most bytes that a benchmark's answers may take before compression."""
SAME = 1e-9
LEAST = 2
"""Models that a pack is made of."""

OnStep = Callable[[str], None]


def pack(
    scores: Scores,
    method: str | Method = "fewbench-static",
    budget: int | str = 100,
    *,
    name: str | None = None,
    license: str | None = None,
    cite: str | None = None,
    anonymous: bool = False,
    by: str | None = None,
    keep: str | os.PathLike[str] | None = None,
    seed: int = 0,
    backtest: bool = True,
    repeats: int = 3,
    workers: int = 1,
    executor: Executor = None,
    on_step: OnStep | None = None,
) -> Pack:
    """Make a pack of a few items of a benchmark.

    A pack has the chosen items and everything needed to estimate full scores. Every model runs the
    same items, unless you name an adaptive method: the pack then has no fixed items.

    Parameters
    ----------
    scores : Scores
        Scores of the source models.
    method : str or Method
        Method name (see fewbench methods), or parts joined by +. With auto, a quick backtest on the
        source models chooses the method, often an adaptive one.
    budget : int or str
        Number of items of each benchmark, or a share of each task's items, such as 10%: at least
        20 of each task, or all of a smaller one. With `by`, at most half of the benchmark's items.
    name : str, optional
        Name of the pack (default: the name of the file).
    license : str, optional
        License of the source models' results.
    cite : str, optional
        How to cite the results.
    anonymous : bool
        Leave out names, families and dates of the source models.
    by : str, optional
        Make one benchmark for each value of this column of the items: task, group, …
    keep : path, optional
        Earlier pack (.few), such as that of last month. Its items stay, but for those that the
        scores no longer have; the method chooses the others.
    seed : int
        Random seed.
    backtest : bool
        Measure the method on held-out source models: like the others, of a new family, and stronger
        than the others.
    repeats : int
        Number of repeats of the backtest, 3 or more.
    workers : int
        Number of processes for the backtest and the method's errors.
    executor : Executor, optional
        Where to run in place of processes of this machine, as of `compare`.
    on_step : callable, optional
        Called with what is being done, in words.

    Raises
    ------
    PackError
        If the method cannot be packed, or the pack would be too large.
    MethodError, ScoresError
        If the method cannot run on these scores.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> pack(simulate(30, 80, seed=1), "greedy-ridge", 10, backtest=False)
    Pack: 10 of 80 items in place of all. Pack benchmark, made ...
    """
    scores = as_sources(scores)
    if scores.origin is not None:
        raise PackError("the scores are those of a pack", hint="use the scores it was made from")
    if repeats < 3 or workers < 1:
        raise PackError(
            f"repeats {repeats}, workers {workers} is too low",
            hint="repeats must be 3 or more, workers 1 or more",
            kind="range",
        )
    name = name or "benchmark"
    earlier = None if keep is None else _chosen_in(keep)
    tables = {name: scores} if by is None else _divided(scores, by)
    step = on_step or (lambda text: None)
    parts = []
    with open_pool(executor, workers) as pool:
        for at, (key, table) in enumerate(tables.items()):
            report = step if by is None else _prefixed(step, f"{key} ({at + 1} of {len(tables)}): ")
            n = count_items(budget, table)
            n = n if by is None else min(n, max(1, table.n_items // 2))
            maker = _Maker(table, key, method, n, seed, anonymous, report, pool, earlier)
            rows, notes = maker.backtest(repeats) if backtest else ([], [])
            parts.append(maker.part(rows, notes))
    record = PackRecord(
        schema_version=SCHEMA,
        name=name,
        license=license,
        cite=cite,
        is_anonymous=anonymous,
        created=datetime.now(UTC).date().isoformat(),
        version=__version__,
        parts=[part.record for part in parts],
    )
    return Pack(record, tuple(parts), Path(f"{name}.few"))


def _prefixed(step: OnStep, head: str) -> OnStep:
    return lambda text: step(head + text)


def _chosen_in(path: str | os.PathLike[str]) -> Subset:
    """Return the chosen items of an earlier pack, of all its benchmarks."""
    origins = [scores_of(Path(path), part).origin for part in open_pack(path).parts]
    subsets = [None if origin is None else subset_of(origin) for origin in origins]
    chosen = [subset for subset in subsets if subset is not None]
    if len(chosen) < len(subsets) or any(s.is_sample or s.weights is not None for s in chosen):
        raise PackError(
            f"{path}: its items are weighed, a random sample, or chosen as answers arrive, so they "
            "cannot be kept with others",
            hint="leave out --keep: with the same --seed, most items of a random sample stay",
        )
    return Subset(
        items=tuple(item for subset in chosen for item in subset.items),
        chances=tuple(
            chance for subset in chosen for chance in subset.chances or (None,) * len(subset.items)
        ),
    )


def _with_kept(chosen: Evaluation, earlier: Subset, seed: int) -> tuple[Evaluation, int]:
    """Return the evaluation with the items of an earlier pack that the scores have, and how many.

    The method chooses as many others as its budget leaves. These stand for themselves: only items
    that are drawn stand for items that do not run, with the chance of their draw.
    """
    scores, made = chosen.scores, chosen.provenance
    there = [at for at, item in enumerate(earlier.items) if item in scores.items.index]
    subset = chosen.subset
    if subset is None or subset.is_sample or subset.weights is not None:
        raise PackError(
            f"{made.method} weighs its items, draws them, or chooses them as answers arrive, so it "
            "keeps no earlier ones",
            hint="use fewbench-static or greedy-ridge",
        )
    if len(there) > made.budget:
        raise PackError(
            f"{counted(len(there), 'item')} of the earlier pack stay, and the budget is "
            f"{made.budget:,}",
            hint=f"use -n {len(there)} or more",
        )
    kept = {earlier.items[at]: earlier.chances[at] if earlier.chances else None for at in there}
    others = [item for item in subset.items if item not in kept][: made.budget - len(kept)]
    given = Subset(items=(*kept, *others), chances=(*kept.values(), *[None] * len(others)))
    if not any(given.chances or ()):
        given = Subset(items=given.items)
    return Evaluation(scores, made.method, len(given.items), seed=seed, subset=given), len(kept)


def _divided(scores: Scores, by: str) -> dict[str, Scores]:
    """Return the scores of each value of a column, without models that ran none of its items."""
    if by not in scores.items:
        raise PackError(
            f"the items have no column {by!r}",
            hint=did_you_mean(by, [str(name) for name in scores.items.columns]),
        )
    column = scores.items[by]
    tables = {}
    for value in pd.unique(column.dropna()):
        at = np.flatnonzero((column == value).to_numpy())
        ran = np.flatnonzero(~np.isnan(scores.cells[:, at]).all(axis=1))
        tables[str(value)] = scores.take(ran, at)
    return tables


class _Maker:
    """Makes one benchmark of a pack."""

    def __init__(
        self, scores: Scores, name: str, method: str | Method, items: int, seed: int,
        anonymous: bool, step: OnStep, pool: Pool, earlier: Subset | None = None,
    ) -> None:  # fmt: skip
        self.pool = pool
        self.name, self.seed, self.anonymous, self.step = name, seed, anonymous, step
        sources, set_aside = source_models(scores)
        scores, self.notes = whole_sources(sources, LEAST, "a pack")
        self.notes += [*set_aside, *missing_note(scores)]
        if scores.unrun_share:
            unrun = scores.items.assign(**{UNRUN: scores.unrun.astype(int)})
            scores = scores.changed(items=unrun)
            self.notes.append(unrun_note(scores))
        step("choosing items")
        chosen = Evaluation(scores, method, items, seed=seed)
        if earlier is not None:
            chosen, n_kept = _with_kept(chosen, earlier, seed)
            self.notes.append(
                f"{n_kept:,} of {counted(chosen.provenance.budget, 'item')} are of an earlier pack "
                f"of {len(earlier.items):,}; the errors by kind of target are of items that are "
                "all chosen anew"
            )
        self.made = chosen.provenance
        self.notes += chosen.notes
        try:
            find_method(self.made.method)
        except MethodError as error:
            raise PackError(
                f"{self.made.method} is not in the catalogue, so a pack cannot name it",
                hint="use a method of fewbench methods, or parts joined by +",
            ) from error
        self.method = chosen.method
        self.subset = chosen.subset
        if self.subset is None:
            self.notes.append(
                f"{self.made.method} chooses items as answers arrive: each model runs items of its "
                "own, and two models share only a part of them. For one item set, use "
                "fewbench-static"
            )
        self.keeps: Keeps = packed_as(self.method, scores)
        self.scores = scores.changed()  # which has learned nothing yet
        if scores.probabilities is not None:
            self.notes.append("option probabilities of the source models are left out")
        at = self._kept_items()
        self.answers = encode_scores(self.scores, at)
        if sum(array.nbytes for array in self.answers.values()) > MOST_BYTES:
            raise PackError(
                f"{self.made.method} needs the source models' answers to all "
                f"{scores.n_items:,} items, which are too many for a pack",
                hint="use a method that needs the chosen items alone, such as greedy-ridge",
            )

    def _kept_items(self) -> NDArray[Any] | None:
        if self.keeps == "table" or self.subset is None:
            return None
        return np.sort(self.scores.positions(self.subset.items))

    def part(self, rows: list[dict[str, Cell]], notes: Sequence[str]) -> Part:
        """Return the finished benchmark; PackError if it does not estimate as the scores do."""
        errors = {} if self._held is None else self._held.arrays()
        expected = _trial(self.scores, self.made.method, self.made.budget, self.seed, self.subset)
        arrays = dict(self.answers)
        learned = self._learned()
        arrays |= {f"learned/{name}": array for name, array in learned.items()}
        arrays |= {f"errors/{name}": array for name, array in errors.items()}
        scale = self.scores.scale
        subset = self.subset
        record = PartRecord(
            name=self.name,
            keeps=self.keeps,
            provenance=self.made.model_dump(mode="json"),
            subset=None if subset is None else subset.model_dump(mode="json"),
            scale=[scale.low, scale.high, scale.lower_is_better],
            average=self.scores.average,
            is_binary=self.scores.is_binary,
            items=_item_columns(self.scores, self._kept_items()),
            models=_model_columns(self.scores, self.anonymous),
            notes=[*self.notes, *notes],
            backtest=rows,
        )
        part = Part(record, arrays)
        again = _trial(scores_of(Path(self.name), part))
        if not abs(again - expected) <= SAME:
            raise PackError(
                f"a pack with {self.made.method} would estimate {again} in place of {expected}",
                hint="use a different method, and report this",
            )
        return part

    def _learned(self) -> Mapping[str, NDArray[Any]]:
        """Learn from the whole table what estimates need, and return it by name."""
        scores = self.scores
        reliability(scores)
        models_per_group(scores)
        are_alike(scores)
        sampling_effect(scores, self.made.budget)
        if not scores.is_binary:
            scores.remember("whole tasks", lambda: whole_tasks(scores))
        return scores.learned

    @cached_property
    def _held(self) -> HeldOut | None:
        """The method's errors on held-out source models, at all looks.

        Items of an earlier pack were chosen with all source models, so they suit the held-out ones,
        too: the errors are those of items that the method chooses without them.
        """
        n, method = self.made.budget, find_method(self.made.method)
        if method.plain_sampling and self.scores.counts_equally:
            return None  # its interval needs no errors
        self.step("measuring the method's errors on held-out source models")
        with one_thread():
            how = (method, self.scores, n, self.made.seed, looks_of(n))
            return measure(*how, pool=self.pool)

    def backtest(self, repeats: int) -> tuple[list[dict[str, Cell]], list[str]]:
        """Return the method's errors by relation of targets and sources, and notes."""
        table, notes = models_to_backtest(self.scores, self.seed)
        if table.n_models < 4:
            return [], ["too few source models for a backtest"]
        backtests, remarks = backtests_by_relation(table, None, range(repeats), self.seed, 0.9)
        name, n = self.made.method, self.made.budget
        span = self.scores.scale.span
        rows: list[dict[str, Cell]] = []
        for relation, replay in backtests.items():
            self.step(f"backtest on targets: {relation}")
            # With the errors that estimates from the pack rest on.
            cells = replay.cells([name], [n], intervals=True, held={(name, n): self._held})
            replay.take(cells, run_cells(table, cells, self.pool, Cache(None), None))
            for row in replay.rows():
                half, coverage = replay.width(name, n)
                numbers = {
                    key: float(row[key]) * span
                    for key in ("error", "error_low", "error_high", "random_error")
                }
                numbers |= {"half_width": half * span, "coverage": coverage}
                rows.append(
                    {
                        "target": relation,
                        **{key: x if np.isfinite(x) else None for key, x in numbers.items()},
                        "level": replay.level,
                        "repeats": repeats,
                        "targets": float(np.mean([len(split.targets) for split in replay.splits])),
                        "sources": float(np.mean([len(split.sources) for split in replay.splits])),
                    }
                )
            remarks += [f"no backtest: {why}" for why in replay.failures.values()]
        return rows, [*notes, *remarks]


def _trial(
    scores: Scores,
    method: str = AUTO,
    items: int | None = None,
    seed: int = 0,
    subset: Subset | None = None,
) -> float:
    """Return the estimate of a target that is right on every second of its items."""
    evaluation = Evaluation(scores, method, items, [_TRIAL], seed, subset=subset)
    while asked := evaluation.ask():
        answers = {item: float(scores.scale.from_unit(_is_right(item))) for item in asked[_TRIAL]}
        evaluation.tell(_TRIAL, answers, accept_fractions=True)
    return evaluation.predict(_TRIAL)


_TRIAL = "trial of the pack"


def _is_right(item: str) -> float:
    return float(hashlib.sha256(item.encode()).digest()[0] % 2 == 0)


def _item_columns(scores: Scores, kept: NDArray[Any] | None) -> dict[str, list[Cell]]:
    """Return the columns that a pack keeps; of items that are not chosen, no hashes."""
    items = scores.items
    columns: dict[str, list[Cell]] = {"item": [str(item) for item in scores.item_ids]}
    if "text" in items and "content_hash" not in items:
        texts = item_texts(scores)
        items = items.assign(
            content_hash=[hashlib.sha256(text.encode()).hexdigest()[:16] for text in texts]
        )
    for name in items.columns:
        is_number = pd.api.types.is_numeric_dtype(items[name])
        if name == "n_options" or not (name in KEPT_COLUMNS or is_number):
            continue
        cells = [_cell(value) for value in items[name]]
        if kept is not None and name in (PROMPTS, KEYS):
            chosen = set(kept.tolist())
            cells = [cell if at in chosen else "" for at, cell in enumerate(cells)]
        columns[str(name)] = cells
    return columns


def _cell(value: Any) -> Cell:
    if value is None or value is pd.NA or value != value:
        return None
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (bool, int, float)) else str(value)


def _model_columns(scores: Scores, anonymous: bool) -> dict[str, list[Cell]]:
    """Return names, families and dates of the sources; anonymous, numbers of their families."""
    table = scores.models
    if not anonymous:
        kept = [name for name in ("date", "family", "role", CREDIT) if name in table]
        columns = {name: [_cell(value) for value in table[name]] for name in kept}
        return {"model": [str(model) for model in table.index], **columns}
    digits = len(str(len(table)))
    hidden: dict[str, list[Cell]] = {
        "model": [f"model-{at + 1:0{digits}}" for at in range(len(table))]
    }
    if CREDIT in table:
        hidden[CREDIT] = [_cell(value) for value in table[CREDIT]]
    families = families_of(scores)
    if any(families):
        codes, _ = pd.factorize(np.array(families, dtype=object))
        hidden[FAMILY] = [
            f"family-{code + 1}" if family else None
            for family, code in zip(families, codes.tolist(), strict=True)
        ]
    return hidden
