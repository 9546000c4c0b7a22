from __future__ import annotations

import pytest

from fewbench.report import write_report

pytestmark = pytest.mark.browser
LONG = (
    "random",
    "stratified-by-task random items, post-stratified",
    "logistic-matrix-factorisation-rank-8-with-family-prior",
    "gaussian process over item embeddings",
    "k-medoids items",
    *(f"disagreement-maximising items, variant {i}" for i in range(7)),
)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("kind", ["usual", "stress"])
def test_nothing_is_cut_off(make_comparison, measure, tmp_path, width, kind):
    made = make_comparison(targets=30, repeats=2)
    if kind == "stress":
        made = make_comparison(
            LONG, (1, 10, 20, 50, 200, 1000), ("random", "leave-family-out", "newest models"),
            targets=12, tasks=57, repeats=2, target_name="organisation-{family}/long-name-{i}b",
        )  # fmt: skip
    seen = measure(write_report(made, tmp_path / "report.html"), width)
    assert seen["width"] == width
    assert seen["texts"] > 100
    assert seen["scroll"] <= width
    assert seen["outside"] == []
    assert seen["small"] == []
    assert seen["over"] == []
