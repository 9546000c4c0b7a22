"""Pages in a browser: drawn whole at both widths, without requests, and they answer to clicks."""

from __future__ import annotations

import numpy as np
import pytest

from fewbench.checks import audit
from fewbench.evaluation import Evaluation
from fewbench.show.html import write_report
from fewbench.testing import simulate

pytestmark = pytest.mark.browser
LONG = (
    "random",
    "stratified-by-task random items, post-stratified",
    "logistic-matrix-factorisation-rank-8-with-family-prior",
    "gaussian process over item embeddings",
    "k-medoids items",
    *(f"disagreement-maximising items, variant {i}" for i in range(9)),
)


def is_whole(seen, width, charts):
    assert seen["width"] == width
    assert seen["charts"] >= charts
    assert seen["blank"] == 0
    for kind in ("problems", "wide", "small", "over"):
        assert seen[kind] == [], kind
    assert seen["scroll"] <= width


@pytest.mark.parametrize(("methods", "width"), [(14, 1280), (14, 390), (3, 390)])
def test_a_comparison_is_whole(make_comparison, look, tmp_path, methods, width):
    made = make_comparison(methods=LONG[:methods], targets=30, repeats=3)
    if methods == 14:
        made = make_comparison(
            LONG, (1, 10, 20, 50, 200, 1000), ("random", "leave-family-out"),
            targets=12, tasks=57, repeats=3, target_name="organisation-{family}/long-name-{i}b",
        )  # fmt: skip
    page = write_report(made, tmp_path / "report.html")
    assert page.stat().st_size < 2_000_000
    is_whole(look(page, width), width, 3 + 2 * methods)


def test_an_estimate_is_whole(evaluated, look, tmp_path):
    page = write_report(evaluated, tmp_path / "estimate.html")
    is_whole(look(page, 390), 390, 5)


def test_an_audit_with_a_wide_map_is_whole(look, tmp_path):
    scores = simulate(20, 600, 57, seed=5, missing=0.05)
    page = write_report(audit(scores), tmp_path / "audit.html")
    is_whole(look(page, 390), 390, 2)


@pytest.fixture
def evaluated():
    scores = simulate(60, 200, 6, seed=2)
    names = ["a-checkpoint-with-quite-a-long-name-of-its-own/step-10000", "step-20000"]
    evaluation = Evaluation(scores.take(models=np.arange(50)), "greedy-ridge", 40, names)
    for row, (name, items) in enumerate(evaluation.ask().items(), 50):
        known = scores.values[row, scores.positions(items)]
        evaluation.tell(name, dict(zip(items, known.tolist(), strict=True)))
    return evaluation


def test_tables_sort_and_filter(evaluated, look, tmp_path):
    page = write_report(evaluated, tmp_path / "estimate.html")
    seen = look(page, 1280, """
        const table = document.getElementById('tasks-1-1');
        const column = () => [...table.tBodies[0].rows]
          .map(r => parseFloat(r.cells[1].textContent));
        const head = table.querySelectorAll('th button')[1];
        head.click(); const up = column();
        head.click(); const down = column();
        const input = document.querySelector('input[data-table=items-1-1]');
        input.value = 'task-3'; input.dispatchEvent(new Event('input'));
        const rows = [...document.querySelectorAll('#items-1-1 tbody tr')];
        return {up, down, all: rows.length,
                shown: rows.filter(r => !r.hidden).map(r => r.cells[4].textContent),
                sorted: head.closest('th').getAttribute('aria-sort')};
    """)["result"]  # fmt: skip
    assert seen["up"] == sorted(seen["up"])
    assert seen["down"] == seen["up"][::-1]
    assert len(set(seen["up"])) > 1
    assert seen["sorted"] == "descending"
    assert seen["all"] == 40
    assert 0 < len(seen["shown"]) < 40
    assert set(seen["shown"]) == {"task-3"}


def test_a_method_is_isolated_and_switched_off_everywhere(make_comparison, look, tmp_path):
    made = make_comparison(targets=12, repeats=3)
    page = write_report(made, tmp_path / "report.html")
    seen = look(page, 1280, """
        const names = chart => [...chart.querySelectorAll('.role-mark.mark-text text')]
          .filter(t => t.getAttribute('opacity') !== '0').map(t => t.textContent);
        const chart = document.querySelector('#error .chart');
        const panels = () => [...document.querySelectorAll('#scores figure')]
          .filter(f => f.offsetParent).length;
        const rows = () => [...document.querySelectorAll('#numbers tr[data-method]')]
          .filter(r => r.offsetParent).length;
        const chip = name => document.querySelector(`.chip[data-name="${name}"]`);
        const before = {names: names(chart), panels: panels(), rows: rows()};
        chip('disagreement items').querySelector('button').click();
        const only = await soon(() => ({names: names(chart), panels: panels(), rows: rows()}));
        document.getElementById('all-methods').click();
        chip('disagreement items').querySelector('input').click();
        const off = await soon(() => ({names: names(chart), panels: panels(), rows: rows()}));
        return {before, only, off};
    """)["result"]  # fmt: skip
    before, only, off = seen["before"], seen["only"], seen["off"]
    assert "disagreement items" in before["names"]
    assert (before["panels"], before["rows"]) == (6, 6)
    assert only["names"] == ["disagreement items"]
    assert only["panels"] == 1
    assert "disagreement items" not in off["names"]
    assert len(off["names"]) == len(before["names"]) - 1
    assert (off["panels"], off["rows"]) == (5, 5)
