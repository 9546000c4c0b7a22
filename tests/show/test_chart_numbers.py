"""Numbers in charts and frames are those of the result, of that model, method or task."""

import sys
from importlib import import_module
from inspect import getmembers, isfunction
from numbers import Real

import numpy as np
import pytest

import fewbench
from fewbench import Scale, Track
from fewbench.decide.rank_result import Foremost
from fewbench.decide.track_result import Change, Point
from fewbench.evaluation.interval import Interval
from fewbench.show.charts.theme import unchecked
from fewbench.testing import simulate

MODULES = [
    import_module(f"fewbench.show.charts.{name}")
    for name in ("auditing", "comparison", "deciding", "estimating", "planning")
]
SCORES = simulate(40, 120, 4, seed=1)
PLACES = {"at", "line", "key"}
"""Where a label or a line stands."""
FACTORS = (1, 100, -1, -100)  # shares are drawn in percent, and a difference may be turned round


def evaluated():
    evaluation = fewbench.Evaluation(SCORES.take(models=range(36)), "random", 20, ["a", "b", "c"])
    for row, (name, items) in enumerate(evaluation.ask().items(), 36):
        answers = SCORES.values[row, SCORES.positions(items)].tolist()
        evaluation.tell(name, dict(zip(items, answers, strict=True)))
    return evaluation


def tracked():
    points = [
        Point(
            checkpoint=f"step-{s}", step=1000 * s, score=0.1 * s, is_known=False, items_run=20,
            interval=Interval(low=0.1 * s - 0.05, high=0.1 * s + 0.07), chance_best=s / 3,
        )
        for s in (1, 2)
    ]  # fmt: skip
    change = Change(
        before="step-1", after="step-2", difference=0.1, p_value=0.03, p_adjusted=0.03,
        interval=Interval(low=0.01, high=0.2), verdict="better",
    )  # fmt: skip
    return Track(
        run="run", scale=Scale(), average="micro", level=0.9, points=points, changes=[change],
        best="step-2", items_total=100, sources=40, warnings=[],
        chosen=Foremost(target="step-2", score=0.2, interval=Interval(low=0.15, high=0.27)),
    )  # fmt: skip


def parts_of(value, name=""):
    """The values within a dictionary or list, each with its name."""
    if isinstance(value, dict):
        return [(part, key) for key, part in value.items()]
    return [(part, name) for part in value] if isinstance(value, list) else []


def flat(value, name=""):
    """All values within a value, each with the end of an interval that it is, or ""."""
    if isinstance(value, dict | list):
        return [pair for part in parts_of(value, name) for pair in flat(*part)]
    return [(next((end for end in ("low", "high") if name.endswith(end)), ""), value)]


def records(value):
    """Yield each dictionary within a result with all that is in it."""
    if isinstance(value, dict):
        yield flat(value)
    for part, _ in parts_of(value):
        yield from records(part)


def of_comparison(compared):
    """The columns of `cells` that each chart shows, and scores and ranks within a run."""
    cells, names = compared.cells, ["method", "budget"]
    ends = {"low": (cells["mae"] - cells["mae_se"]).clip(lower=0)}
    cells = cells.assign(**ends, high=cells["mae"] + cells["mae_se"])
    here = cells[cells["split"] == "random"]
    runs = compared.estimates.query("repeat == 0 and budget == 10 and split == 'random'")
    ranks = runs.groupby("method")[["truth", "estimate"]].rank(ascending=False, method="first")
    shown = {
        "error": here[[*names, "mae", "low", "high"]],
        "sources": cells[["method", "n_sources", "mae", "low", "high"]],
        "ratio": here[[*names, *columns("ratio_to_random")]],
        "coverage-90": here[[*names, *columns("coverage90")]],
        "scores": runs[["method", "target", "truth", "estimate", "low", "high"]],
        "ranks": runs[["method", "target"]].join(ranks),
    }
    return {section: frame.to_dict("records") for section, frame in shown.items()}


def columns(name):
    return [name, f"{name}_low", f"{name}_high"]


def of_targets(evaluation):
    """Each target's tasks among those of the source models."""
    ends = np.quantile(evaluation.scores.task_scores(), [0.1, 0.5, 0.9], axis=0).T
    rows = [
        {"task": task, "score": estimate.tasks[task], "items": estimate.task_items[task]}
        | dict(zip(("low", "median", "high"), ends[at].tolist(), strict=True))
        for estimate in evaluation.estimate().values()
        for at, task in enumerate(evaluation.scores.tasks)
    ]
    return {"tasks": rows, "course": HISTORY}


def of_gate(gate):
    rows = [(c.rule, c.bound, {"value": c.value} | dict(c.interval)) for c in gate.checks]
    return {
        "checks": [
            {"rule": rule} | {key: end - bound for key, end in ends.items()}
            for rule, bound, ends in rows
        ]
    }


def drawn(page, code):
    """Yield the section of each chart of a page, and the rows of data in it; add what drew it."""

    def data(spec):
        if isinstance(spec, dict) and "values" in spec.get("data", {}):
            yield from (row for row in spec["data"]["values"] if isinstance(row, dict))
        for part, _ in parts_of(spec):
            yield from data(part)

    for section in page.sections:
        for _, make in section.charts:
            sys.setprofile(lambda frame, event, _: event == "call" and code.add(frame.f_code))
            try:
                chart = unchecked(make)
            finally:
                sys.setprofile(None)
            spec = chart.to_dict()  # which is checked as a whole
            sets = spec.get("datasets", {}).values()
            yield section.id, [*data(spec), *(row for rows in sets for row in rows)]


HISTORY = [{"step": n, "score": 0.1 + n / 100, "low": 0.1, "high": 0.4 + n / 100} for n in (5, 9)]
MADE = {
    "estimates": lambda of: of.estimate(),
    "versus": lambda of: fewbench.versus((of, "a"), (of, "b")),
    "rank": lambda of: fewbench.rank(of, models=SCORES.model_ids[:3], history=True),
    "gate": lambda of: fewbench.gate((of, "a"), at_least=0.45, not_below=(of, "b")),
    "track": lambda of: tracked(),
    "plan": lambda of: fewbench.plan(SCORES, budget=20, methods="greedy-ridge", repeats=3),
    "plan without sources": lambda of: fewbench.plan(fewbench.Benchmark(SCORES.items), budget=20),
    "pack": lambda of: fewbench.pack(SCORES, "greedy-ridge", 10, name="x"),
    "compare": lambda of: fewbench.compare(
        SCORES, ["random", "random-ridge"], [10, 20], sources=[20], repeats=3
    ),
    "audit": lambda of: fewbench.audit(SCORES),
}
SPECIAL = {
    "compare": of_comparison,
    "gate": of_gate,
    "audit": lambda audit: {"items": [audit.to_dict()["numbers"]]},
}
"""Records of results whose charts show more than their JSON."""


@pytest.fixture(scope="module")
def charts():
    """Each chart's rows with the records that may be in them, and the code that drew them."""
    evaluation, code = evaluated(), set()
    results = {name: make(evaluation) for name, make in MADE.items()}
    special = {name: SPECIAL[name](results[name]) for name in SPECIAL}
    special |= {"targets": of_targets(evaluation)}
    values = {name: result.to_dict() for name, result in results.items()}
    values |= {"targets": values["estimates"]}
    pages = {name: result.page() for name, result in results.items()}
    pages |= {"targets": evaluation.page(history=dict.fromkeys("abc", HISTORY))}
    found = []
    for name, page in pages.items():
        for section, rows in drawn(page, code):
            of = special.get(name, {}).get(section) or values[name]
            found.append((name, section, rows, of))
    return found, code, results


def test_every_chart_is_drawn_here(charts):
    makers = [f for module in MODULES for _, f in getmembers(module, isfunction)]
    makers = [f for f in makers if f.__annotations__["return"] in ("Any", "Any | None")]
    assert {f.__name__ for f in makers if f.__code__ not in charts[1]} == set()


COUNTED = {("audit", "models"), ("audit", "items"), ("targets", "sources")}
"""Charts that count models or items."""


def test_each_row_of_a_chart_is_of_one_record(charts):
    for name, section, rows, of in charts[0]:
        assert rows, (name, section)
        kept = list(records(of))
        words = {x for record in kept for _, x in record if isinstance(x, str)}
        for row in rows if (name, section) not in COUNTED else ():
            is_label = len(row) == 1 or (name == "compare" and "key" in row and "low" not in row)
            assert is_label or any(holds(record, row, words) for record in kept), (
                name,
                section,
                row,
            )
            if row.get("low") is not None and row.get("value") is not None:
                assert row["low"] <= row["value"] <= row["high"], (name, section, row)


def holds(record, row, words):
    """Whether a record has a row's names and, as they are printed, its numbers."""
    numbers = [(end, x * f) for end, x in record if isinstance(x, Real) for f in FACTORS]
    names = {x for _, x in record if isinstance(x, str)}
    for key, value in row.items():
        if isinstance(value, str) and value in words - names:
            return False
        if isinstance(value, Real) and key not in PLACES:
            of_end = [x for end, x in numbers if end == (key if key in ("low", "high") else "")]
            if not any(abs(x - value) <= 6e-4 * max(abs(value), 0.01) for x in of_end):
                return False
    return True


def test_models_and_items_are_counted_where_they_are(charts):
    full = 100 * SCORES.full_scores()
    for name, section, rows, of in charts[0]:
        if (name, section) == ("audit", "items"):
            judged = [at for at, r in enumerate(of[0]["item_r"]) if r is not None]
            means = 100 * np.array(of[0]["item_mean"])[judged]
            r = np.array(of[0]["item_r"], dtype=float)[judged]
            assert sum(row.get("items", "item" in row) for row in rows) == len(judged)
            for row in (row for row in rows if "mean" in row):  # of a grid of 72 × 48 places
                near = (abs(means - row["mean"]) < 0.7) & (abs(r - row["r"]) < np.ptp(r) / 90)
                assert near.sum() >= row.get("items", 1), row
        elif (name, section) in COUNTED:
            scores = full if name == "audit" else full[:36]
            bars = [row for row in rows if "models" in row]
            assert sum(row["models"] for row in bars) == len(scores)
            for row in bars:
                low, high = (row[key] for key in row if key in ("low", "high", "score", "to"))
                inside = (scores >= low - 1e-3) & (scores <= high + 1e-3)
                assert inside.sum() == row["models"], (name, row)


def test_a_frame_has_the_numbers_of_the_result(charts):
    """Columns that are fields of a record have its values, and values are within their range."""
    for name, result in charts[2].items():
        of = list(dictionaries(result.to_dict()))
        for key, row in [] if name in ("compare", "audit") else result.to_frame().iterrows():
            mine = [x for x in of if key in x.values()] if key != "all" else of[:1]
            shared = [{column for column in row.index if column in x} for x in mine]
            assert max(map(len, shared)) >= min(4, len(row) - 1), (name, key)
            assert any(
                all(same(row[column], x[column]) for column in columns)
                for x, columns in zip(mine, shared, strict=True)
                if len(columns) == max(map(len, shared))
            ), (name, key)
        for x in of:
            for middle, low, high in RANGES:
                if None not in (x.get(middle), x.get(low), x.get(high)):
                    assert x[low] - 1e-9 <= x[middle] <= x[high] + 1e-9, (name, x)


def test_a_target_s_frame_has_the_numbers_of_its_tasks(charts):
    estimate = charts[2]["estimates"]["a"]
    for task, row in estimate.to_frame().drop(index="all").iterrows():
        interval = estimate.task_intervals[task]
        assert (row["low"], row["high"]) == (interval.low, interval.high)
        assert (row["score"], row["items_run"]) == (estimate.tasks[task], estimate.task_items[task])
        assert row["rank"] == estimate.task_ranks[task]


def test_results_tell_the_same_of_a_target(charts):
    """Its score, interval, level and numbers of items, wherever they are told."""
    results = charts[2]
    a, b = (results["estimates"][name] for name in "ab")
    versus, (check, against) = results["versus"], results["gate"].checks
    (ranked,) = (row for row in results["rank"].targets if row.target == "a")
    assert versus.score_a == check.value == ranked.score == pytest.approx(a.score)
    assert versus.score_b == pytest.approx(b.score)
    assert versus.difference == against.value == pytest.approx(a.score - b.score)
    assert versus.items_a == versus.items_b == results["gate"].items_run == ranked.items_run == 20
    assert versus.items_common == 20  # targets of one evaluation run the same items
    for result in (a, versus, results["gate"], results["plan"]):
        assert (result.level, getattr(result, "items_total", 120)) == (0.9, 120)
    assert check.level == against.level == pytest.approx(0.95)  # of two checks


RANGES = [(of, "low", "high") for of in ("score", "value", "difference")]
RANGES.append(("rank", "rank_low", "rank_high"))


def dictionaries(value):
    """Yield each dictionary within a result, with its interval's ends beside its other values."""
    if isinstance(value, dict):
        yield value | (value.get("interval") or {})
    for part, _ in parts_of(value):
        yield from dictionaries(part)


def same(shown, value):
    if isinstance(value, list):
        return shown == ", ".join(map(str, value)) or not value
    return shown == value or value is None or abs(shown - value) < 1e-9
