"""The page of a task selection."""

from __future__ import annotations

import re
from html import unescape

import pytest

from fewbench.show.html import render, write_page
from fewbench_papers.bento.page import tasks_page

PARTS = (
    "judgement", "stability", "difficulty", "clusters"
)  # fmt: skip


def made(n=12, k=3, clusters=3, name="task_{}"):
    """A selection with every part."""
    tasks = [name.format(t) for t in range(n)]
    kind = [t * clusters // n for t in range(n)]
    spots = [t * n // k for t in range(k)]
    chosen = [
        {"task": tasks[t], "questions": 100 + t, "gain": 5.0 / (at + 1), "cluster": kind[t],
         "stands_for": n // k, "stability": 0.75 / (at + 1)}
        for at, t in enumerate(spots)
    ]  # fmt: skip
    questions = sum(c["questions"] for c in chosen)
    return {
        "facts": {"method": "bento-sim", "k": k, "tasks": n, "questions": 110 * n,
                  "chosen questions": questions, "file": "ict.npz", "rows": "measured",
                  "model": "a-small-model", "metric": "accuracy", "seeds": 10, "models": 4},
        "warnings": ["Two tasks tie at step 2."],
        "chosen": chosen,
        "judgement": {
            "nrmse": 0.0712, "low": 0.0512, "high": 0.0913,
            "random_tasks": {"mean": 0.1384, "low": 0.07, "high": 0.2, "spread": 0.0771,
                             "percentile": 0.26},
            "random_questions": {"mean": 0.0428, "low": 0.03, "high": 0.06, "spread": 0.0163,
                                 "questions": questions},
            "estimator": "mean", "held_out": None, "ridge": None,
            "anchor_ratio": {"anchor": "a-small-model", "nrmse": 0.0523},
            "models": [{"model": f"model-{m}", "full": 0.3 + 0.1 * m, "chosen": 0.33 + 0.1 * m}
                       for m in range(4)],
        },
        "noise": None, "plan": None, "formula": None,
        "stability": {"bootstraps": 200, "shared": 0.36, "pairs": 0.27, "noise": None,
                      "tasks": [{"task": t, "share": at / n} for at, t in enumerate(tasks)]},
        "difficulty": {"chosen": 0.53, "all": 0.51, "percentile": 0.14},
        "clusters": [
            {"cluster": c, "tasks": [t for t, q in zip(tasks, kind, strict=True) if q == c],
             "chosen": [tasks[t] for t in spots if kind[t] == c]}
            for c in range(clusters)
        ],
    }  # fmt: skip


@pytest.fixture
def page(balanced, body):
    """The page as text and as what is read, whole and free of what is not for people."""

    def written(values):
        whole = render(tasks_page(values))
        assert len(whole) < 2_000_000
        text = body(whole)
        balanced(text)
        assert not re.search(r"\b(nan|inf)\b|\bNone\b", text)
        return text, re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", text)))

    return written


def sections(text):
    return dict(re.findall(r'<section id="(\w+)"[^>]*>(.*?)</section>', text, re.S))


def test_it_says_what_was_chosen_and_how_good_it_is(page):
    _, plain = page(made())
    assert "Tasks chosen from ict.npz" in plain
    assert (
        "These 3 tasks estimate full scores with an error of 7.1%; 3 random tasks: 13.8%, "
        "312 random questions: 4.3%"
    ) in plain
    assert "3 of 12 tasks, 312 of 1,320 questions (23.6%), chosen by bento-sim." in plain
    assert "these tasks7.1%5.1% to 9.1%" in plain
    assert "26% of random task sets are at least as good" in plain
    assert "corrected by a-small-model5.2%" in plain
    assert "a-small-model: 53.0% on these tasks, 51.0% on all" in plain
    assert "contain 36% of these tasks on average; two of them share 27%." in plain
    assert "Two tasks tie at step 2." in plain


def test_every_part_has_its_picture(page):
    body = sections(page(made())[0])
    assert list(body) == [
        "chosen", "judgement", "stability", "clusters", "run"
    ]  # fmt: skip
    pictures = {key: part.count('role="img"') for key, part in body.items()}
    assert pictures == {
        "chosen": 0, "judgement": 2, "stability": 1, "clusters": 0, "run": 0,
    }  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_any_part_may_be_missing(page, part):
    _, plain = page({**made(), part: None})
    assert "Chosen tasks" in plain


def test_with_nothing_known_it_says_what_to_give(page):
    values = made() | dict.fromkeys(PARTS)
    values["chosen"] = [
        c | {"gain": None, "cluster": None, "stands_for": None, "stability": None}
        for c in values["chosen"]
    ]
    text, plain = page(values)
    assert "No results to judge 3 chosen tasks" in plain
    assert "fewbench tasks judge SELECTION RESULTS" in plain
    assert list(sections(text)) == ["chosen", "run"]
    assert re.findall(r'<th scope="col"[^>]*>(.*?)</th>', text) == ["Task", "Questions"]


def test_results_without_questions_or_anchor(page):
    values = made()
    values["judgement"] |= {"random_questions": None, "anchor_ratio": None, "low": None,
                            "high": None}  # fmt: skip
    _, plain = page(values)
    assert "with an error of 7.1%; 3 random tasks: 13.8% " in plain
    assert "these tasks7.1%–" in plain
    assert "corrected by" not in plain


def test_names_are_escaped(page):
    bad = "<script>alert('{}')</script>&\""
    values = made(name=bad)
    values["judgement"]["models"][0]["model"] = bad
    values["warnings"] = [bad]
    values["facts"]["matrix"] = values["facts"]["file"] = bad
    text, plain = page(values)
    assert "<script" not in text
    assert "<script>alert('4')</script>" in plain


@pytest.mark.parametrize(("n", "k"), [(2, 1), (2, 2), (9, 3), (91, 5), (300, 50)])
def test_few_and_many_tasks(page, n, k):
    values = made(n, k, clusters=min(n, 14))
    _, plain = page(values)
    assert f"{k} of {n} tasks" in plain


@pytest.mark.browser
@pytest.mark.parametrize(("width", "n"), [(1280, 57), (390, 300)])
def test_it_is_whole(look, tmp_path, width, n):
    values = made(n, 12, 13, "a_suite_of_tasks/with_a_very_long_name_number_{}")
    values["facts"]["file"] = "matrix" * 9
    page = write_page(render(tasks_page(values)), tmp_path / "tasks.html")
    seen = look(page, width)
    assert seen["charts"] == 3
    assert seen["blank"] == 0
    assert seen["scroll"] <= width
    assert seen["problems"] == seen["over"] == []
