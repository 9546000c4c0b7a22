from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from fewbench.show.html import write_report
from fewbench.study import compare
from fewbench.testing import simulate


@pytest.fixture
def page(make_comparison, balanced, body, tmp_path):
    def written(comparison=None, **options):
        made = comparison or make_comparison(**{"repeats": 2, "targets": 12, **options})
        text = body(write_report(made, tmp_path / "report.html").read_text("utf-8"))
        balanced(text)
        assert "nan" not in re.sub(r"<title>.*?</title>", "", text).lower().split()
        assert "NaN" not in text
        return text

    return written


SMALL = {"methods": ("random", "random items, ridge"), "budgets": (50,), "splits": ("random",)}


def test_it_says_what_was_found(page, make_comparison):
    made = make_comparison(repeats=3, targets=12)
    text = page(made)
    for method in set(made.cells["method"]):
        assert text.count(f">{method}</t") > 2
    for words in [*made.facts.values(), *made.warnings, "random split", "family split"]:
        assert words in text
    plain = re.sub(r"<[^>]+>", "", text).replace("\u00a0", " ")
    assert re.search(r"At 50 items on the random split, .+ is off by \d\.\d pp on average", plain)
    assert re.search(r"random sampling is expected to be off by \d\.\d pp\.", plain)


def test_names_are_escaped(page, make_comparison):
    bad = "<script>alert('x')</script> & \"co\""
    named = {"methods": ("random", bad), "target_name": bad + "{i}{family}"}
    made = make_comparison(**SMALL | named, targets=8, repeats=2)
    made.facts = {bad: bad}
    made.warnings = [bad]
    made.task_errors["task"] = bad + made.task_errors["task"]
    made.cells["split"] = made.cells["split"] + bad
    made.estimates["split"] = made.estimates["split"] + bad
    made.task_errors["split"] = made.task_errors["split"] + bad
    text = page(made)
    assert "<script" not in text
    assert "alert(" in text


@pytest.mark.parametrize(
    "options",
    [
        {"methods": ("random",), "budgets": (50,), "splits": ("random",), "tasks": 1},
        {"methods": ("mine alone",), "budgets": (1,), "splits": ("s",), "targets": 5, "tasks": 0},
        {"methods": tuple(f"method {i}" for i in range(14)), "budgets": (5, 10), "tasks": 30},
        SMALL | {"repeats": 1},
    ],
)
def test_small_and_large_inputs(page, options):
    text = page(**options)
    assert ("Error by task" in text) == (options.get("tasks", 8) > 1)


def test_gaps_are_dashes(page, make_comparison):
    made = make_comparison(**SMALL, repeats=2, targets=9)
    numbers = made.cells.columns.difference(["method", "budget", "split", "n_sources", "n_targets"])
    made.cells.loc[made.cells["method"] == "random items, ridge", numbers] = np.nan
    made.estimates[["low", "high"]] = np.nan
    made.estimates["family"] = None
    made.warnings = []
    made.facts = {}
    text = page(made)
    assert "–" in text
    assert "Before you trust" not in text
    made.cells[numbers] = np.nan
    assert "no method has an error to report" in page(made)


def test_missing_metrics_and_an_empty_comparison(page, make_comparison):
    made = make_comparison(**SMALL, repeats=2, targets=9)
    made.cells = made.cells[["method", "budget", "split", "n_sources", "n_targets", "mae"]]
    text = page(made)
    assert "±" not in text
    assert "Compared with random sampling" not in text
    for frame in ("cells", "estimates", "task_errors"):
        setattr(made, frame, getattr(made, frame).iloc[:0])
    assert "nothing was run" in page(made)
    for frame in ("cells", "estimates", "task_errors"):
        setattr(made, frame, pd.DataFrame())
    assert "nothing was run" in page(made)


def test_the_same_comparison_gives_the_same_bytes(make_comparison, tmp_path):
    first, second = (
        write_report(make_comparison(**SMALL, repeats=2, targets=9), tmp_path / f"{i}.html")
        for i in range(2)
    )
    assert first.read_bytes() == second.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0.html", "1.html"]


def test_a_failed_write_leaves_the_old_page(make_comparison, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError))
    with pytest.raises(OSError):
        write_report(make_comparison(**SMALL, repeats=1, targets=6), path)
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]


def _cells(**errors):
    """Error, and whether it is level with the best, None if that was not judged."""
    rows = [
        {
            "method": m,
            "budget": 50,
            "split": "s",
            "n_sources": 20,
            "n_targets": 9,
            "mae": e,
            "tied_with_best": level,
        }
        for m, (e, level) in errors.items()
    ]
    table = pd.DataFrame(rows)
    table["tied_with_best"] = table["tied_with_best"].astype("boolean")
    return table


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        (
            {"random": (0.046, False), "a": (0.019, True), "b": (0.03, False)},
            "At 50 items, a is off by 1.9 pp on average; random sampling is expected to be off by "
            "4.6 pp.",
        ),
        (
            {"random": (0.046, False), "a": (0.019, True), "b": (0.02, True)},
            "At 50 items, a is off by 1.9 pp on average (not significantly different from b); "
            "random sampling is expected to be off by 4.6 pp.",
        ),
        (
            {"random": (0.046, True), "a": (0.03, True)},
            "At 50 items, no method is clearly better than random sampling, which is expected to "
            "be off by 4.6 pp; the lowest of the others is a with 3.0 pp.",
        ),
        (
            {"random": (0.046, True), "a": (0.06, False)},
            "At 50 items, no method beats random sampling, which is expected to be off by 4.6 pp.",
        ),
        ({"a": (0.06, True)}, "At 50 items, a is off by 6.0 pp on average."),
        (
            {"random": (0.046, None), "a": (0.019, None)},
            "At 50 items, a has the lowest error, 1.9 pp on average; random sampling is "
            "expected to be off by 4.6 pp. Too few repeats to test whether this is chance.",
        ),
    ],
)
def test_the_answer_repeats_the_comparisons_own_judgement(page, make_comparison, errors, said):
    made = make_comparison(**SMALL, repeats=1, targets=5)
    made.cells = _cells(**errors)
    text = page(made)
    plain = re.sub(r"<[^>]+>", "", text).replace("\u00a0", " ")
    assert said in plain
    level = [m for m, (_, is_level) in errors.items() if is_level]
    assert text.count(" *</td>") == len(level)


def test_headline_badges_and_ratios_never_contradict_each_other(page):
    """Random sampling is not "among the lowest" only beside a ratio that is clearly below 1."""
    table = simulate(60, 100, seed=1)
    outcome = compare(table, ["kmedoids-ridge", "random-linear"], [10, 20], repeats=4, level=None)
    text = page(outcome)
    for (_, _), rows in outcome.cells.groupby(["budget", "split"]):
        cells = rows.set_index("method")
        best = cells.loc[cells["tied_with_best"].astype(bool), "ratio_to_random_high"].min()
        assert cells.loc["random", "tied_with_best"] or best < 1
    strong = int(outcome.cells["tied_with_best"].sum())
    assert text.count(" *</td>") == strong


def test_failures_are_listed_with_their_reason(page, make_comparison):
    made = make_comparison(**SMALL, repeats=3, targets=6)
    made.failures = pd.DataFrame(
        [{"method": "random", "budget": 20, "split": "random", "repeat": r, "reason": "no luck"}
         for r in (1, 2)]
    )  # fmt: skip
    assert "random at 20 items, random split, repeat 1 and 1 more cells: no luck" in page(made)
