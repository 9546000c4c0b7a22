"""All models' answers to one task: items, rows used of each run, and options."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench._files import reserve
from fewbench._lazy import pandas as pd
from fewbench._names import counted
from fewbench._text import quoted
from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.errors import ReaderError
from fewbench.readers.harness import LogRun, key_text
from fewbench.readers.join.merge import Items, Merged, SameModel, Used, merge, name_items
from fewbench.readers.options import CHARACTERS, COMPARED, NO_ANSWER, compared, recomputed, softmax
from fewbench.scores import Scale
from fewbench.scores.conditions import PARTS, SCORING, join_hashes, join_settings
from fewbench.scores.repeats import (
    FIRST,
    MEAN,
    TRIALS,
    TRIALS_HINT,
    answers_needed,
    reduce_answers,
)

LIKELIHOODS = ("perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte")
"""Metrics whose rows hold log-likelihoods, in every harness that logs them."""
ALL_BITS = np.uint64(2**64 - 1)
KEY_HALVES = (np.uint64((2**32 - 1) << 32), np.uint64(2**32 - 1))


@dataclass(frozen=True)
class JoinedTask:
    """One task: its runs under the chosen filter, its items, and the rows used of each run.

    `derived` counts runs whose metric is computed from log-likelihoods. `trials` says what several
    answers to an item become, "" if the user did not say (see `fewbench.scores.repeats`).
    """

    name: str
    metric: str
    filter: str | None
    runs: list[LogRun]
    items: Items
    merged: Merged
    derived: int
    trials: str = ""

    def numbers(self, run: LogRun) -> FloatArray:
        """Return the metric of every row of a run."""
        return metric_of(run, self.metric)

    def scores(
        self, models: dict[str, int], scale: Scale
    ) -> tuple[FloatArray, tuple[IntArray, FloatArray] | None]:
        """Return the scores of this task's items, shape (models, items), and how they vary.

        Scores are on the scale. Where items were answered several times: the numbers of answers,
        and the variances (see `Repeats`).

        Raises
        ------
        ReaderError
            If answers to an item differ and nothing says what becomes of them.
        """
        n_items = len(self.items.ids)
        values, seen = np.full(len(models) * n_items, np.nan), 0
        cells = [models[used.run.model] * n_items + used.columns for used in self.merged.taken]
        for used, of_run in zip(self.merged.taken, cells, strict=True):
            values[of_run] = self.numbers(used.run)[used.rows]
            seen += len(of_run)
        shape = len(models), n_items
        is_single = seen == np.count_nonzero(~np.isnan(values))
        if is_single and (not self.trials or answers_needed(self.trials) is None):
            return values.reshape(shape), None
        trials = self.trials or (MEAN if self._was_repeated else "")
        every = np.concatenate(cells)
        answers = np.concatenate([self.numbers(used.run)[used.rows] for used in self.merged.taken])
        if not trials:
            self._check_copies(every, answers, values)
            return values.reshape(shape), None
        scores, counts, variances = reduce_answers(
            every, scale.to_unit(answers), values.size, trials
        )
        return scale.from_unit(scores).reshape(shape), (
            counts.reshape(shape),
            variances.reshape(shape),
        )

    @property
    def _was_repeated(self) -> bool:
        """Whether the harness itself ran items several times."""
        return any("trial" in run.columns for run in self.runs)

    def _check_copies(self, cells: IntArray, answers: FloatArray, values: FloatArray) -> None:
        """Raise ReaderError if rows of an item have different scores."""
        differ = np.flatnonzero(answers != values[cells])
        if not len(differ):
            return
        sizes = np.cumsum([0, *(len(used.rows) for used in self.merged.taken)])
        both = np.flatnonzero(cells == cells[differ[0]])[[0, -1]]
        where = []
        for at in both.tolist():
            run = int(np.searchsorted(sizes, at, side="right")) - 1
            used = self.merged.taken[run]
            place = used.run.columns["place"][used.rows[at - sizes[run]]]
            where.append(f"{answers[at]:g} ({used.run.place_word} {place})")
        item = self.items.ids[int(cells[differ[0]]) % len(self.items.ids)]
        raise ReaderError(
            f"{used.run.path}: item {item!r} has two answers, with {self.metric!r} "
            f"{where[0]} and {where[1]}",
            hint=f"keep one of them; or, {TRIALS_HINT}",
        )

    def copies(self, run: LogRun) -> str:
        """Return how many rows of a run repeat others, in words; "" if none, or all count."""
        if self.trials or "trial" in run.columns or run.n_rows == run.n_items:
            return ""
        return f"{counted(run.n_rows - run.n_items, 'row')} repeated, with the same scores"

    def parts(self) -> list[str]:
        """Return the group of the task that each item belongs to, "" for none."""
        parts = [""] * len(self.items.ids)
        for taken in self.merged.taken:
            if "part" in taken.run.columns:
                named = taken.run.columns["part"][taken.rows].tolist()
                for column, part in zip(taken.columns.tolist(), named, strict=True):
                    parts[column] = part
        return parts

    def prompts(self) -> list[str]:
        """Return the text of prompt hashes for each item."""

        def hash_text(hashed: int, run: LogRun) -> str:
            return f"{hashed:016x}@{run.prompt_form}" if run.prompt_form else f"{hashed:016x}"

        return self._hashes("prompt", hash_text, self._alike("prompt", with_form=True))

    def keys(self) -> list[str]:
        """Return the text of key hashes for each item, of the harness that the table names."""
        harness = self.runs[0].harness
        alike = [several for several in self._alike("key") if several[0].run.harness == harness]
        return self._hashes("key", lambda key, _: key_text(key), alike)

    def _hashes(
        self, name: str, text: Callable[[int, LogRun], str], alike: Iterable[list[Used]]
    ) -> list[str]:
        counts: list[Counter[str]] = [Counter() for _ in self.items.ids]
        for several in alike:
            taken = several[0]
            hashes = taken.run.columns[name][taken.rows]
            for column, hashed in zip(taken.columns.tolist(), hashes.tolist(), strict=True):
                if hashed:
                    counts[column][text(hashed, taken.run)] += len(several)
        return [join_hashes(text for text, _ in count.most_common()) for count in counts]

    def _alike(self, name: str, with_form: bool = False) -> Iterable[list[Used]]:
        groups: dict[object, list[Used]] = defaultdict(list)
        for taken in self.merged.taken:
            run = taken.run
            whole = len(taken.rows) == run.n_rows
            key = (run.layout, run.digests[name]) if whole else id(taken)
            groups[key, run.harness, run.prompt_form if with_form else ""].append(taken)
        return groups.values()

    def settings_of(self, run: LogRun) -> dict[str, str]:
        """Return the settings of a run, with how it computes the metric."""
        scorer = run.scorers.get(self.metric)
        passes = {TRIALS: self.trials} if self.trials not in ("", MEAN, FIRST) else {}
        return dict(run.task_settings) | ({f"{SCORING}metric": scorer} if scorer else {}) | passes

    def settings(self) -> str:
        """Return the settings of the runs that count, as text; scoring as for `keys`."""
        harness = self.runs[0].harness
        runs = (taken.run for taken in self.merged.taken if len(taken.rows))
        different = {
            tuple(
                pair
                for pair in sorted(self.settings_of(run).items())
                if run.harness == harness or not pair[0].startswith(SCORING)
            )
            for run in runs
        }
        return join_settings(map(dict, sorted(different)))

    def other_prompts(self, models: dict[str, int]) -> Counter[str]:
        """Count each model's items whose prompt is not the most frequent one."""
        return self._others(models, "prompt", list(self._alike("prompt")))

    def other_keys(self, models: dict[str, int]) -> dict[str, Counter[str]]:
        """Count each model's items whose right answer or options are not the most frequent ones."""
        harnesses: dict[str, list[list[Used]]] = defaultdict(list)
        for several in self._alike("key"):
            harnesses[several[0].run.harness].append(several)
        return {
            what: sum(
                (self._others(models, "key", used, half) for used in harnesses.values()), Counter()
            )
            for what, half in zip(PARTS, KEY_HALVES, strict=True)
        }

    def _others(
        self,
        models: dict[str, int],
        name: str,
        alike: list[list[Used]],
        half: np.uint64 = ALL_BITS,
    ) -> Counter[str]:
        members = [several for several in alike if len(several[0].rows)]
        if len(members) < 2:
            return Counter()
        seen = [several[0].run.columns[name][several[0].rows] & half for several in members]
        sizes = [len(prompts) for prompts in seen]
        group = np.repeat(np.arange(len(members)), sizes)
        prompt, column = np.concatenate(seen), np.concatenate([m[0].columns for m in members])
        has_prompt = prompt != 0
        weights = np.array([len(several) for several in members])
        differ = _unusual(column[has_prompt], prompt[has_prompt], group[has_prompt], weights)
        counts = np.bincount(group[has_prompt][differ], minlength=len(members))
        other: Counter[str] = Counter()
        for several, count in zip(members, counts.tolist(), strict=True):
            for taken in several if count else ():
                other[taken.run.model] += count
        return Counter({name: other[name] for name in models if name in other})


def _unusual(
    items: IntArray,
    prompts: NDArray[np.uint64],
    groups: IntArray,
    weights: IntArray,
) -> BoolArray:
    """Return the cells whose prompt differs from that of most models, shape (cells,).

    Cells belong to groups of models with equal prompts, in their order; `weights` counts the models
    of each group. In a tie, the first group has the usual prompt.
    """
    cells = pd.DataFrame({"item": items, "prompt": prompts, "votes": weights[groups]})
    votes = cells.groupby(["item", "prompt"], sort=False)["votes"].transform("sum")
    most = votes.groupby(items).transform("max")
    usual = cells[votes == most].drop_duplicates("item").set_index("item")["prompt"]
    return (cells["prompt"] != usual.reindex(items).to_numpy()).to_numpy(bool)


def join_task(
    name: str,
    metric: str,
    filtered: str | None,
    runs: Sequence[LogRun],
    scale: Scale,
    same_model: SameModel,
    key: str | None,
    trials: str = "",
) -> JoinedTask:
    """Join the runs of a task.

    Raises
    ------
    ReaderError
        If the metric is not a mean, a value is not one number, the scale contradicts the metric, or
        runs disagree.
    """
    for run in runs:
        check_mean(run, metric)
        higher = run.higher_is_better.get(metric)
        if higher is not None and higher == scale.lower_is_better:
            raise ReaderError(
                f"{run.path}: for metric {metric!r} of task {name!r} "
                f"{'higher' if higher else 'lower'} is better, but the scale says otherwise",
                hint="omit --lower-is-better, or import such tasks separately"
                if higher
                else "add --lower-is-better, and --range LOW,HIGH unless it is 0,1",
            )
        if metric not in run.metrics or metric in run.unfit:
            others = any(metric in other.metrics for other in runs)
            if others and metric not in run.metrics and not run.has_options:
                raise ReaderError(
                    f"{run.path}: no row has the metric {metric!r}, which other runs of task "
                    f"{name!r} have; it has {', '.join(run.metrics) or 'none'}",
                    hint="if both are one metric under two names, name both: --metric "
                    f"{quoted(f'{metric},' + next(iter(run.metrics), 'NAME'))}; or import such "
                    "runs separately",
                )
            metric_of(run, metric)  # raises, unless it can be computed
    items = name_items(name, runs, key)
    merged = merge(
        runs, items, lambda run: metric_of(run, metric), same_model, keeps_all=bool(trials)
    )
    derived = sum(metric not in run.metrics for run in runs)
    return JoinedTask(name, metric, filtered, list(runs), items, merged, derived, trials)


def is_mean(run: LogRun, metric: str) -> bool:
    """Whether a metric's rows have scores, of which the metric is the mean."""
    return metric not in run.aggregated and metric not in LIKELIHOODS


def check_mean(run: LogRun, metric: str) -> None:
    """Raise ReaderError if a metric is not the mean of its rows' values."""
    if is_mean(run, metric):
        return
    what = (
        f"aggregates them by {run.aggregated[metric]!r}"
        if metric in run.aggregated
        else ("computes it from their log-likelihoods")
    )
    others = [name for name in run.metrics if name in run.numeric and is_mean(run, name)]
    raise ReaderError(
        f"{run.path}: metric {metric!r} of task {run.task!r} is not the mean of its rows, which "
        f"have no scores: {run.harness or 'the harness'} {what}",
        hint=f"use --metric {quoted(others[0])}"
        if others
        else f"exclude the task: --skip-tasks {quoted(run.task)}",
    )


def metric_of(run: LogRun, metric: str) -> FloatArray:
    """Return a metric of every row, as logged or else computed from log-likelihoods."""
    if metric in run.metrics or metric not in COMPARED or not run.has_options:
        return run.numbers(metric)
    values = recomputed(run.columns, metric)
    lacking = np.flatnonzero(np.isnan(values))
    if len(lacking):
        place = int(run.columns["place"][lacking[0]])
        raise ReaderError(
            f"{run.path}, {run.place_word} {place}: metric {metric!r} is not logged, and cannot be "
            "computed: the right option or a log-likelihood is unknown",
            hint=f"use one of {', '.join(run.metrics)}",
        )
    return values


@dataclass
class Checked:
    """The options of all tasks.

    `lacking` is why there are no option probabilities; `n_options` has an array per task; `misfits`
    counts, per task and model, the scores that the log-likelihoods do not explain.
    """

    lacking: str | None = None
    n_options: list[IntArray] = field(default_factory=list)
    misfits: list[Counter[str]] = field(default_factory=list)


def check_options(tasks: Sequence[JoinedTask]) -> Checked:
    """Check whether all runs have consistent options."""
    checked = Checked()
    for task in tasks:
        if checked.lacking is None:
            checked.lacking = _check_task(task, checked)
    return checked


def write_probabilities(
    tasks: Sequence[JoinedTask], models: dict[str, int], checked: Checked, path: Path | None
) -> NDArray[np.float32]:
    """Return probabilities, shape (models, items, options), NaN where not run.

    With a path, they are written there as .npy, one model at a time.
    """
    sizes = [len(task.items.ids) for task in tasks]
    shape = (len(models), sum(sizes), max(int(n.max()) for n in checked.n_options))
    out: NDArray[np.float32]
    if path is None:
        out = np.empty(shape, np.float32)
    else:
        out = np.lib.format.open_memmap(path, "w+", np.float32, shape)
        reserve(path)
    by_model: dict[int, list[tuple[int, JoinedTask, Any]]] = {}
    for task, start in zip(tasks, np.cumsum([0, *sizes[:-1]]), strict=True):
        for taken in task.merged.taken:
            by_model.setdefault(models[taken.run.model], []).append((int(start), task, taken))
    for model in range(len(models)):
        row = np.full(shape[1:], np.nan, np.float32)
        for start, task, taken in by_model.get(model, []):
            table, counts = (taken.run.columns[name] for name in ("options", "counts"))
            chances = softmax(compared(table, task.metric), counts)[taken.rows]
            columns = start + taken.columns
            row[columns, : chances.shape[1]] = chances
            # Further options are padding, except in rows of NaN.
            row[columns, chances.shape[1] :] = 0 * chances[:, :1]
        out[model] = row
    return out


def _check_task(task: JoinedTask, checked: Checked) -> str | None:
    n_items = len(task.items.ids)
    n_options = np.zeros(n_items, np.intp)
    has_finite = np.zeros(n_items, bool)
    width = max(
        (run.columns["options"].shape[1] for run in task.runs if run.has_options), default=0
    )
    lengths = np.full((n_items, width), np.nan)
    right = np.full(n_items, NO_ANSWER)
    misfits: Counter[str] = Counter()
    for taken in task.merged.taken:
        run = taken.run
        if not run.has_options:
            return (
                f"task {task.name!r} is not multiple choice or has no log-likelihoods; to keep "
                "those of other tasks, exclude it with fewbench import --skip-tasks"
            )
        counts = run.columns["counts"][taken.rows]
        if ((n_options[taken.columns] > 0) & (n_options[taken.columns] != counts)).any():
            return f"models had different options in task {task.name!r}"
        n_options[taken.columns] = counts
        columns = {name: run.columns[name] for name in ("options", "counts", "right")}
        if _reordered(columns, taken, lengths, right):
            return f"models had their options in a different order in task {task.name!r}"
        chances = softmax(compared(columns["options"], task.metric), columns["counts"])
        has_finite[taken.columns] |= np.isfinite(chances[taken.rows, 0])
        if task.metric in COMPARED:
            expected, score = recomputed(columns, task.metric), task.numbers(run)
            differ = np.isfinite(expected) & np.isin(score, (0.0, 1.0)) & (expected != score)
            if count := int(differ[taken.rows].sum()):
                misfits[run.model] += count
    checked.n_options.append(n_options)
    checked.misfits.append(misfits)
    if not has_finite.all():
        return f"some items of task {task.name!r} have no finite log-likelihoods"
    return None


def _reordered(columns: dict[str, Any], taken: Used, lengths: FloatArray, right: IntArray) -> bool:
    texts = columns["options"][taken.rows, :, CHARACTERS]
    seen = lengths[taken.columns, : texts.shape[1]]
    differ = (np.isfinite(seen) & np.isfinite(texts) & (seen != texts)).any()
    lengths[taken.columns, : texts.shape[1]] = np.where(np.isfinite(seen), seen, texts)
    answers, before = columns["right"][taken.rows], right[taken.columns]
    differ |= ((answers >= 0) & (before >= 0) & (answers != before)).any()
    right[taken.columns] = np.where(before >= 0, before, answers)
    return bool(differ)
