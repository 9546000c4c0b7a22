"""Chosen items in the words of a harness."""

import ast
import json
import re
from dataclasses import replace
from fnmatch import fnmatch

import pytest

from fewbench.errors import FewbenchError, ScoresError
from fewbench.runners import EXPORTS, export_items
from fewbench.scores import from_arrays

TASKS = ["law", "law", "art", "art", "law"]
PLAIN = from_arrays([[1, 0, 1, 1, 0]], models=["m"], items=list("abcde"), tasks=TASKS)


def with_column(**columns):
    return replace(PLAIN, items=PLAIN.items.assign(**columns))


def test_ids_one_a_line_in_the_order_given():
    assert export_items(PLAIN, ["d", "a", "c"], "ids") == "d\na\nc"


def test_inspect():
    assert export_items(PLAIN, ["d", "a"], "inspect") == "art:d,law:a"
    named = with_column(sample_id=["s1", "s2", "s3", "s4", "s5"])
    assert export_items(named, ["a", "b"], "inspect") == "law:s1,law:s2"
    assert export_items(named, ["d", "a"], "inspect") == "art:s4,law:s1"
    grouped = {"group": "degree", "harness": "inspect"}  # by the user: no name of Inspect's
    assert export_items(with_column(**grouped), ["d", "a"], "inspect") == "art:d,law:a"
    without = from_arrays([[1, 0]], models=["m"], items=["x", "y"])  # whose task has no name
    assert export_items(without, ["x", "y"], "inspect") == "x,y"


@pytest.mark.parametrize("own", ["s,1", "s*", "s?", "s[1]", "s1 "])
def test_ids_that_inspect_s_command_line_takes_otherwise(own):
    named = with_column(sample_id=[own, "s2", "s3", "s4", "s5"])
    assert export_items(named, ["b"], "inspect") == "law:s2"
    with pytest.raises(FewbenchError, match="1 of 2 ids") as error:
        export_items(named, ["a", "b"], "inspect")
    assert f"law:{own}" in error.value.message
    called = re.search(r"sample_id=(\[.*\])\)", error.value.hint)[1]
    patterns = [one.removeprefix("law:") for one in ast.literal_eval(called)]
    assert [fnmatch(one, at) for one, at in zip([own, "s2"], patterns, strict=True)] == [True] * 2
    assert not fnmatch("s1", patterns[0])


@pytest.mark.parametrize(("harness", "other"), [("inspect", "lm-eval"), ("lm-eval", "inspect")])
def test_places_in_another_harness_are_not_given(harness, other):
    known = {"sample_id": list("vwxyz"), "doc_id": range(5)}
    assert export_items(with_column(**known, harness=[harness] * 5), ["a"], harness)
    with pytest.raises(FewbenchError, match=f"positions and ids of '{other}', not of {harness}"):
        export_items(with_column(**known, harness=[other] * 5), ["a"], harness)


def test_lm_eval_positions_are_sorted_and_by_task():
    placed = with_column(doc_id=[9, 3, 0, 7, 1])
    found = export_items(placed, ["a", "d", "e", "c", "b"], "lm-eval")
    assert json.loads(found) == {"art": [0, 7], "law": [1, 3, 9]}
    assert list(json.loads(found)) == ["art", "law"]
    assert json.loads(export_items(placed, ["d"], "lm-eval")) == {"art": [7]}


def test_lm_eval_positions_are_whole_numbers_even_beside_gaps():
    placed = with_column(doc_id=[9.0, 3.0, None, 7.0, 1.0])
    assert export_items(placed, ["b", "a"], "lm-eval") == '{"law": [3, 9]}'


def test_lm_eval_without_positions():
    with pytest.raises(FewbenchError, match="doc_id") as error:
        export_items(PLAIN, ["a"], "lm-eval")
    assert error.value.hint
    with pytest.raises(FewbenchError, match=r"1 items.*'c'"):
        export_items(with_column(doc_id=[9, 3, None, 7, 1]), ["a", "c"], "lm-eval")


def test_unknown_harness_and_item():
    with pytest.raises(FewbenchError, match="'x'") as error:
        export_items(PLAIN, ["a"], "x")
    assert all(name in error.value.hint for name in EXPORTS)
    with pytest.raises(ScoresError, match="'z'"):
        export_items(PLAIN, ["a", "z"], "ids")
