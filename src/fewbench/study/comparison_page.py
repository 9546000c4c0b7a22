"""What a comparison shows: the errors of methods, by items and by task, and every target."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from fewbench._lazy import pandas as pd
from fewbench._names import counted, fixed
from fewbench.scores import Unit
from fewbench.show.charts import comparison as figures
from fewbench.show.page import Page, Section, Table, page_of
from fewbench.study.comparison import Comparison
from fewbench.study.metrics import INTERVALS, METRICS, OF_TASKS, find_metric
from fewbench.study.splits import whole_split

MOST_MODELS = 400
"""Most rows of the table of all targets."""
Row = Mapping[Any, Any]


@page_of.register
def comparison_page(found: Comparison) -> Page:
    """Return the finding, a table for each split and number of items, and charts."""
    cells = found.cells
    facts = {name.lower(): text for name, text in found.facts.items()}
    named = ("dataset", "benchmark", "dataset name", "name", "scores")
    dataset = next((facts[name] for name in named if name in facts), "a benchmark")
    title = f"Estimating {dataset} from a few items"
    warnings = [*found.warnings, *_failed(found)]
    commands = [facts["command"]] if "command" in facts else []
    run_facts = {name: text for name, text in found.facts.items() if name.lower() != "command"}
    run = Section("run", "What was run", facts=run_facts, commands=commands, detail=True)
    if cells.empty:
        return Page("compare", title, "No results: nothing was run", (), warnings, [run])
    names = [str(split) for split in dict.fromkeys(cells["split"])]
    # Fewer source models are shown by the learning curve, and among all numbers.
    splits = [name for name in names if whole_split(name) == name] or names
    unit = found.unit
    answers = [_answer(cells, split, f" on the {split} split", unit) for split in splits]
    if len(splits) == 1:
        answers = [_answer(cells, splits[0], "", unit)]
    sections = [
        *_numbers(cells[cells["split"].isin(splits)], unit),
        *_asked(found),
        *_sources(found),
        *_charts(cells, splits, unit),
        *_models(found, splits),
        *_tasks(found, splits),
        *_every(cells, unit),
        run,
    ]
    looks = figures.looks_of(cells)
    order = figures.order_of(cells, splits[0])
    methods = [looks[name] for name in dict.fromkeys([*order, *looks])]
    return Page("compare", title, answers[0], answers[1:], warnings, sections, methods=methods)


def _failed(comparison: Comparison) -> Iterator[str]:
    """Yield a sentence for each failed method and reason."""
    for (method, reason), rows in comparison.failures.groupby(["method", "reason"], sort=False):
        first = rows.iloc[0]
        where = f"{first['budget']} items, {first['split']} split, repeat {first['repeat']}"
        more = f" and {len(rows) - 1} more cells" if len(rows) > 1 else ""
        yield f"failed: {method} at {where}{more}: {reason}"


def _number(row: Row, name: str) -> float:
    value = row.get(name)
    return math.nan if value is None or pd.isna(value) else float(value)


def _percent(value: float) -> str:
    return f"{fixed(100 * value, 0)}%" if math.isfinite(value) else "–"


# ---- the finding ---------------------------------------------------------------------------


def _answer(cells: "pd.DataFrame", split: str, on: str, unit: Unit) -> str:
    """Return the finding for a split, in a sentence."""
    budget, reference = figures.focus_of(cells), figures.REFERENCE
    rows = cells[(cells["split"] == split) & (cells["budget"] == budget)].to_dict("records")
    where = f"At {budget:,} {'item' if budget == 1 else 'items'}{on}"

    def error(row: Row) -> float:
        """Return the error by which a method is judged: of the reference the expected one."""
        exact = _number(row, "expected_random_mae") if row["method"] == reference else math.nan
        return exact if math.isfinite(exact) else _number(row, "mae")

    finite = sorted((row for row in rows if math.isfinite(error(row))), key=error)
    if not finite:
        return f"{where}, no method has an error to report."
    off = {str(row["method"]): unit.points(error(row)) for row in finite}
    named = {name: name for name in off}
    if reference in named:
        named[reference] = "random sampling"
    level = {str(row["method"]) for row in finite if _number(row, "tied_with_best") == 1}
    best = next(iter(off))
    average = f"is off by {off[best]} on average"
    if len(off) == 1:
        return f"{where}, {named[best]} {average}."
    expectation = f"is expected to be off by {off[reference]}" if reference in off else ""
    beside = f"; {named[reference]} {expectation}" if expectation and best != reference else ""
    if all(math.isnan(_number(row, "tied_with_best")) for row in finite):
        text = f"{where}, {named[best]} has the lowest error, {off[best]} on average"
        return f"{text}{beside}. Too few repeats to test whether this is chance."
    if best == reference:
        return f"{where}, no method beats {named[best]}, which {expectation}."
    if reference in level:
        return (
            f"{where}, no method is clearly better than {named[reference]}, which {expectation}; "
            f"the lowest of the others is {best} with {off[best]}."
        )
    others = [name for name in off if name in level - {best}]
    same = ""
    if others:
        listed = " and ".join(others) if len(others) < 3 else f"{len(others)} others"
        same = f" (not significantly different from {listed})"
    return f"{where}, {best} {average}{same}{beside}."


# ---- the numbers ---------------------------------------------------------------------------


def _numbers(cells: "pd.DataFrame", unit: Unit) -> list[Section]:
    """Return a table for each split and number of items."""
    coverage = next((str(c) for c in cells if re.fullmatch(r"coverage\d+", str(c))), None)
    head = [("Method", False), (unit.points_title("Error"), True)]
    head += [("vs random [90%]", True), ("vs ridge", True)]
    head += [("tau", True), ("rho", True)]
    if coverage:
        head += [
            (f"In {coverage.removeprefix('coverage')}% interval", True),
            (unit.points_title("Half width"), True),
        ]
    head += [("Seconds", True)]
    groups = list(cells.groupby(["split", "budget"], sort=False))
    notes = ["tau, rho: Kendall's and Spearman's correlation of estimates with full scores."]
    if "mae_se" in cells and cells["mae_se"].notna().any():
        notes.append(
            "± one standard error. vs random: the error divided by the expected error of random "
            "sampling; the row random has the items that were drawn. vs ridge: the error divided "
            "by that of random-ridge."
        )
    if "tied_with_best" in cells and cells["tied_with_best"].notna().any():
        notes.append(
            "* the best method, and methods without a significant difference to it. This test is "
            "of all methods together, so it is stricter than the interval of one method."
        )
    sections: list[Section] = []
    for (split, budget), rows in groups:
        ordered = rows.to_dict("records")
        at = f"{split} split, {budget} items"
        counts = [int(_number(ordered[0], name)) for name in ("n_sources", "n_targets")]
        text = "{}, {} source models and {} targets per repeat".format(at, *counts)
        if "n_repeats" in rows:
            text += f", {counted(rows['n_repeats'].max(), 'repeat')}"
        if math.isfinite(expected := _number(ordered[0], "expected_random_mae")):
            text += f"; expected error of random sampling: {unit.points(expected)}"
        table = Table(at, head, [_row(row, coverage, unit) for row in ordered])
        last = len(sections) + 1 == len(groups)
        shown = notes if last else []
        sections.append(Section("numbers", "The numbers", shown, text, tables=[table], tab=at))
    return sections


def _row(row: Row, coverage: str | None, unit: Unit) -> list[str]:
    if _number(row, "n_repeats") == 0:
        return [str(row["method"]), "failed", *["–"] * (7 if coverage else 5)]
    error, level = _with_error(row, unit), _number(row, "tied_with_best")
    if not math.isnan(level):
        error += " *" if level else "  "
    ratio = fixed(_number(row, "ratio_to_random"), 2)
    ends = [_number(row, f"ratio_to_random_{end}") for end in ("low", "high")]
    if math.isfinite(ends[0]):
        ratio += f" [{fixed(ends[0], 2)}, {fixed(ends[1], 2)}]"
    line = [str(row["method"]), error, ratio, fixed(_number(row, "ratio_to_random_ridge"), 2)]
    line += [fixed(_number(row, name), 3) for name in ("kendall_tau", "spearman")]
    if coverage:
        width = coverage.replace("coverage", "half_width")
        line += [_percent(_number(row, coverage)), unit.number(_number(row, width))]
    return [*line, fixed(_number(row, "seconds_fit") + _number(row, "seconds_predict"), 2)]


def _with_error(row: Row, unit: Unit) -> str:
    se = _number(row, "mae_se")
    error = unit.number(_number(row, "mae"), 1)
    return error + (f" ± {unit.number(se, 1)}" if math.isfinite(se) else "")


def _sources(comparison: Comparison) -> Iterator[Section]:
    """Yield the errors by number of source models, for each split with several."""
    cells, unit = comparison.cells, comparison.unit
    for (name, count), rows in cells.groupby(
        [cells["split"].map(whole_split), "budget"], sort=False
    ):
        split, budget = str(name), int(str(count))
        sizes = sorted(rows["n_sources"].unique())
        if len(sizes) < 2:
            continue
        at = f"{split} split, {budget} items"
        once = rows.drop_duplicates(["method", "n_sources"])  # a part may be all sources
        each = once.set_index(["method", "n_sources"]).to_dict("index")
        methods = [str(method) for method in dict.fromkeys(rows["method"])]
        lines = [
            [method, *(_with_error(each[method, size], unit) for size in sizes)]
            for method in methods
        ]
        learned = [method for method in methods if method != figures.REFERENCE]
        head = [(unit.points_title("Error"), False), *((f"{n:,}", True) for n in sizes)]
        chart = partial(figures.error_by_sources, cells, split, unit)
        yield Section(
            "sources",
            "Number of source models",
            ["The same targets, estimated from random parts of the source models."],
            at,
            tables=[Table(at, head, lines)],
            lines=[
                f"{method}: {comparison.learning_curve(method, budget, split).says}"
                for method in learned
                if each[method, sizes[-1]]["n_repeats"]
            ],
            charts=[("", chart)] if budget == figures.focus_of(cells) else [],
            tab=at,
        )


def _asked(comparison: "Comparison") -> Iterator[Section]:
    """Yield the metrics that were asked for."""
    if not comparison.metrics:
        return
    names = [name for name in comparison.metrics if name in comparison.cells]
    notes = [f"{_title(name)}: {find_metric(name).meaning}" for name in names]
    if lacking := [name for name in comparison.metrics if name not in names]:
        notes.append(f"Not measured here: {', '.join(lacking)}.")
    table = _metric_table(comparison.cells, names, comparison.unit, "Metrics")
    yield Section("asked", "Metrics", notes, tables=[table] if names else [])


def _title(name: str) -> str:
    """Return the title of a metric, which tells whether it is averaged over tasks."""
    title = find_metric(name).title
    return f"{title} of tasks" if name.startswith(OF_TASKS) and name not in METRICS else title


def _every(cells: "pd.DataFrame", unit: Unit) -> Iterator[Section]:
    """Yield every metric of every method, and what the metrics mean."""
    names = [name for name in map(str, cells) if name in METRICS or INTERVALS.fullmatch(name)]
    names = [name for name in names if cells[name].notna().any()]
    every = _metric_table(cells, names, unit, "Every number", "Every number")
    means = {find_metric(name).title: find_metric(name).meaning for name in names}
    title = "What the metrics mean"
    yield Section("metrics", title, tables=[every], facts=means, detail=True)


def _metric_table(
    cells: "pd.DataFrame", names: Sequence[str], unit: Unit, title: str, tab: str = ""
) -> Table:
    """Return a row per method, split and budget, with a column per metric."""
    metrics = {name: find_metric(name) for name in names}
    head = [("Method", False), ("Split", False), ("Items", True)]
    titled: dict[str, Callable[[str], str]]
    titled = {"score": unit.points_title, "s": "{} (s)".format}
    head += [(titled.get(metric.unit, str)(_title(name)), True) for name, metric in metrics.items()]
    forms: dict[str, Callable[[float], str]]
    forms = {"score": partial(unit.number, more_digits=1), "share": _percent}
    rows = []
    for row in cells.to_dict("records"):
        line = [str(row["method"]), str(row["split"]), f"{row['budget']:,}"]
        for key, metric in metrics.items():
            show = forms.get(metric.unit, fixed)
            value, se = (_number(row, name) for name in (key, f"{key}_se"))
            error = f" ± {show(se)}" if math.isfinite(se) and metric.unit != "s" else ""
            line.append(show(value) + error)
        rows.append(line)
    return Table(title, head, rows, "a method or split", tab)


# ---- charts, models and tasks --------------------------------------------------------------


def _charts(cells: "pd.DataFrame", splits: Sequence[str], unit: Unit) -> Iterator[Section]:
    def drawn(make: Callable[[str], Any]) -> list[tuple[str, Callable[[], Any]]]:
        return [(f"{split} split", partial(make, split)) for split in splits]

    by_items = drawn(partial(figures.error_by_items, cells, unit=unit))
    numbers = [f"{n:,}" for n in sorted(cells["budget"].unique())]
    bars = [f"The bars of a method are for {', '.join(numbers)} items, from the top."]
    bars = bars if len(numbers) > 1 else []
    notes = ["Lower is better."]
    if "mae_se" in cells and cells["mae_se"].notna().any():
        band = "Choose a method to see its band" if bars else "The bar"
        notes.append(f"{band}: one standard error to either side, as in the table.")
    if cells["mae"].notna().any():
        yield Section("error", "Error by number of items", notes, charts=by_items, detail=True)
    if "ratio_to_random" in cells and cells["ratio_to_random"].notna().any():
        notes = [
            "The error divided by the expected error of the same number of random items, for the "
            "same targets, with 90% intervals by resampling repeats and models. An interval that "
            "reaches 1 does not show that the method beats random sampling.",
            *bars,
        ]
        ratios = drawn(partial(figures.ratio_to_random, cells))
        title = "Compared with random sampling"
        yield Section("ratio", title, notes, charts=ratios, detail=True)
    for level in sorted(int(str(c)[8:]) for c in cells if re.fullmatch(r"coverage\d+", str(c))):
        if cells[f"coverage{level}"].notna().any():
            notes = [
                "The share of targets whose true score lies in the method's interval. To the left "
                "of the line the intervals are too narrow. The bar is a 90% interval.",
                *bars,
            ]
            charts = drawn(partial(figures.coverage, cells, level=level))
            title = f"Coverage of {level}% intervals"
            yield Section(f"coverage-{level}", title, notes, charts=charts, detail=True)


def _models(comparison: Comparison, splits: Sequence[str]) -> Iterator[Section]:
    """Yield true and estimated scores and ranks of a run: the first repeat, the middle budget."""
    if comparison.estimates.empty:
        return
    n = figures.focus_of(comparison.cells)
    at = f"At {n:,} items, the first repeat: what one run looks like."
    for split in splits:
        run = figures.one_run(comparison.estimates, comparison.cells, split, comparison.unit)
        if run.empty:
            continue
        tab = f"{split} split" if len(splits) > 1 else ""
        notes = [
            "One dot per target: its true score across, its estimate up. On the diagonal the "
            "estimate is exact.",
            *["Strong vertical lines are intervals that miss the true score."]
            * bool(run["low"].notna().any()),
            at,
        ]
        drawn = run, comparison.cells, split
        scores = [(f"{split} split", partial(figures.true_and_estimated, *drawn, comparison.unit))]
        ranks = [(f"{split} split", partial(figures.true_and_estimated_ranks, *drawn))]
        table = _targets(comparison, split)
        title = "Estimated and true scores"
        yield Section("scores", title, notes, charts=scores, tables=[table], detail=True, tab=tab)
        notes = ["The same targets by rank, the first at the top right.", at]
        title = "Estimated and true ranking"
        yield Section("ranks", title, notes, charts=ranks, detail=True, tab=tab)


def _targets(comparison: Comparison, split: str) -> Table:
    """Return the true score of each target, and each method's estimate; ✗ marks a miss."""
    unit = comparison.unit
    run = figures.one_run(comparison.estimates, comparison.cells, split, unit, MOST_MODELS)
    methods = [
        name for name in figures.order_of(comparison.cells, split) if name in set(run["method"])
    ]
    cells: dict[str, dict[str, str]] = {}
    truth: dict[str, float] = {}
    for row in run.to_dict("records"):
        name, low, high = str(row["target"]), *(_number(row, key) for key in ("low", "high"))
        truth[name] = float(row["truth"])
        missed = " ✗" if truth[name] < low or truth[name] > high else ""
        cells.setdefault(name, {})[str(row["method"])] = unit.number(row["estimate"]) + missed
    sign = 1 if comparison.scale.lower_is_better else -1
    rows = [
        [name, unit.number(truth[name]), *(cells[name].get(method, "–") for method in methods)]
        for name in sorted(truth, key=lambda name: (sign * truth[name], name))
    ]
    head = [
        ("Model", False),
        (unit.score_title("true"), True),
        *((method, True) for method in methods),
    ]
    return Table("Every model", head, rows, "a model", "Every model; ✗ marks intervals that miss")


def _tasks(comparison: Comparison, splits: Sequence[str]) -> Iterator[Section]:
    """Yield the error of every method on every task, the hardest tasks first."""
    frame = comparison.task_errors
    if frame.empty or frame["task"].nunique() < 2:
        return
    budget, unit = figures.focus_of(comparison.cells), comparison.unit
    for split in splits:
        here = frame[(frame["split"] == split) & (frame["budget"] == budget)]
        errors = here.pivot_table("mae", "task", "method", dropna=False)
        errors = errors.loc[errors.mean(axis=1).sort_values(ascending=False, kind="stable").index]
        methods = [name for name in figures.order_of(comparison.cells, split) if name in errors]
        sizes = here.groupby("task")["n_items"].first()
        rows = [
            [
                str(task),
                f"{int(sizes[str(task)]):,}",
                *(unit.number(values[name]) for name in methods),
            ]
            for task, values in errors.to_dict("index").items()
        ]
        head = [("Task", False), ("Items", True), *((method, True) for method in methods)]
        notes = [
            f"{unit.points_title('Mean absolute error')} of each task's estimated score, over "
            f"targets, at {budget:,} items. The tasks that are hardest to estimate come first."
        ]
        table = Table("Error by task", head, rows, "a task")
        tab = f"{split} split" if len(splits) > 1 else ""
        yield Section("tasks", "Error by task", notes, tables=[table], detail=True, tab=tab)
