"""The page of an estimate: what a trainer sends round."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pytest

import fewbench
from fewbench.errors import FewbenchError
from fewbench.scores import Scale, from_arrays
from fewbench.show.html import write_report
from fewbench.testing import simulate

ODD = "<script>alert('x')</script>&"


def evaluated(scores, method="greedy-ridge", items=30, name="new", row=-1):
    sources = scores.take(models=np.arange(scores.n_models - 1))
    evaluation = fewbench.Evaluation(sources, method, items, [name])
    while asked := evaluation.ask():
        known = scores.values[row, scores.positions(asked[name])]
        told = scores.scale.from_unit(known).tolist()
        evaluation.tell(name, dict(zip(asked[name], told, strict=True)))
    return evaluation


@pytest.fixture(scope="module")
def done():
    scores = simulate(40, 150, 5, seed=4)
    groups = scores.items["task"].map({"task-0": "group", "task-1": "group"}).fillna("")
    return evaluated(scores.changed(items=scores.items.assign(group=groups)), "random-ridge")


def plain(text):
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_it_says_all_that_the_estimate_says(done, body, balanced, tmp_path):
    path = write_report(done, tmp_path / "estimate.html", source="my.parquet")
    text = body(path.read_text("utf-8"))
    balanced(text)
    one, said = done.estimate()["new"], plain(text)
    assert "nan" not in said.lower().split()
    assert "None" not in said
    assert f"new scores {one.score:.1%}" in said
    assert f"(90% interval {one.interval.low:.1%} to {one.interval.high:.1%})" in said
    half, error = 100 * one.random.half_width, 100 * one.random.expected_error
    assert f"random sampling ± {half:.1f} pp {error:.1f} pp" in said
    assert one.answered in said
    assert f"Estimated from {one.items_run} of {one.items_total} items" in said
    assert f"rank {one.rank} of {one.ranked_among}" in said
    assert one.interval_basis in said
    for warning in one.warnings:
        assert warning in said
    for task, score in one.tasks.items():
        ends = one.task_intervals[task]
        ends = "–" if ends is None else f"{ends.low:.1%} to {ends.high:.1%}"
        of_sources = done.scores.task_scores()[:, list(done.scores.tasks).index(task)]
        row = f"{task} {score:.1%} {ends} {one.task_items[task]} {one.task_ranks[task]}"
        assert f"{row} {np.median(of_sources):.1%}" in said
    of_sources = done.scores.task_scores() @ done.scores.groups[0].weights
    of_group, ends = one.groups["group"], one.groups["group"].interval
    row = f"group {of_group.score:.1%} {ends.low:.1%} to {ends.high:.1%} {of_group.items_run}"
    assert f"{row} {of_group.rank} {np.median(of_sources):.1%} task-0 " in said
    table = re.search(r'<table[^>]*id="sources-1".*?</table>', text, re.S)[0]
    assert table.count("<tr>") == 1 + one.ranked_among
    assert "this model" in table
    items = re.search(r'<table[^>]*id="items-1".*?</table>', text, re.S)[0]
    assert items.count("<tr>") == 1 + one.items_run
    off = re.findall(r'>([+−]?[\d.]+)</td><td data-label="Task">', items)
    off = [float(found.replace("−", "-")) for found in off]
    assert len(off) == one.items_run
    assert off == sorted(off, key=abs, reverse=True)
    assert min(off) < 0 < max(off)
    assert path.stat().st_size < 600_000


def test_of_chosen_items_it_says_how_wide_random_sampling_is_not_what_it_would_give(tmp_path):
    evaluation = evaluated(simulate(40, 150, 5, seed=4))
    one = evaluation.estimate()["new"]
    said = plain(write_report(evaluation, tmp_path / "estimate.html").read_text("utf-8"))
    assert f", {one.answered};" in said
    assert f"random sampling ± {100 * one.random.half_width:.1f} pp" in said
    assert "would give" not in said
    assert "Dashed" not in said


def test_the_same_answers_give_the_same_bytes_and_no_request_is_allowed(done, tmp_path):
    pages = [write_report(done, tmp_path / f"{i}.html").read_text("utf-8") for i in range(2)]
    assert pages[0] == pages[1]
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', pages[0])[1]
    assert "default-src 'none'" in unescape(policy)
    assert "connect-src 'none'" in unescape(policy)


def test_names_are_escaped_and_other_scales_kept(body, balanced, tmp_path):
    values = 100 * (np.random.default_rng(0).random((20, 60)) < 0.6)
    table = from_arrays(
        values, models=[f"{ODD}{i}" for i in range(20)], items=[f"{ODD}{i}" for i in range(60)],
        tasks=[f"{ODD}{i % 3}" for i in range(60)], scale=Scale(0, 100, lower_is_better=True),
    )  # fmt: skip
    whole = write_report(evaluated(table, name=ODD), tmp_path / "p", source=ODD).read_text("utf-8")
    text = body(whole)
    balanced(text)
    assert "<script" not in text
    assert "alert(" in text
    # three scripts of our own: the charts' data, the bundle, and the page's own
    assert len(re.findall(r"<script", whole)) == 3
    assert re.search(r"scores \d\d\.\d ", plain(text))


def test_of_all_items_the_score_is_exact():
    table = simulate(21, 30, seed=1)
    said = str(evaluated(table, "random", items=30).estimate())
    assert f"new scores {table.full_scores()[-1]:.1%} (all items ran)." in said
    assert "Interval: none needed on exactly these items: all of them ran" in said


def test_without_sources_or_with_several_targets(done, body, tmp_path):
    one = done.estimate()["new"]
    alone = body(write_report(one, tmp_path / "a.html").read_text("utf-8"))
    assert "Against the source models" not in alone
    assert f"{one.score:.1%}" in alone
    other = one.model_copy(update={"target": "other", "score": one.score + 0.1, "rank": None})
    both = plain(
        body(
            write_report(fewbench.Estimates(new=one, other=other), tmp_path / "b").read_text(
                "utf-8"
            )
        )
    )
    assert "other is first of 2 targets" in both
    text = str(fewbench.Estimates(new=one, other=other))
    half = (one.interval.high - one.interval.low) / 2
    assert re.search(
        rf"^new .*± {100 * half:.1f} pp +± {100 * one.random.half_width:.1f} pp", text, re.M
    )
    drawn = one.provenance.model_copy(update={"method": "fewbench"})
    unranked = fewbench.Estimates(
        {
            name: each.model_copy(update={"rank": None, "provenance": drawn})
            for name, each in {"a": one, "b": other}.items()
        }
    )
    assert "Half width  Expected error" in str(unranked)
    assert not re.search("Rank|Random sampling", str(unranked))
    with pytest.raises(FewbenchError, match="no page for a int"):
        write_report(3, tmp_path / "c.html")
    assert not (tmp_path / "c.html").exists()
