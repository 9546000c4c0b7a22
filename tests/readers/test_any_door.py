"""The same answers through every door: the logs of each harness, and a long table.

The logs were written by the harnesses themselves (scripts/fixtures), which played the answers of
toy.json; the table is written here. A new harness gets a line in `DOORS`.
"""

import shutil
from dataclasses import replace

import pandas as pd
import pytest

from fewbench.readers import Columns, import_results
from fewbench.readers.harnesses import HARNESSES

from .toy import FIXTURES, MODELS, TOY, capitals, sums

ITEMS = {task: [item["question"] for item in items] for task, items in TOY["tasks"].items()}
ITEMS["toy_capitals"][7] += "#2"  # the same document as the second
PLACES = {task: [str(at) for at in range(len(items))] for task, items in ITEMS.items()}
RIGHT = [capitals(model) + sums(model) for model in MODELS]
LAST, FIRST = 17, 10
"""Sums that model a answered otherwise: in a second run, and among several answers."""
IN_HELM = {
    "toy_capitals:method=multiple_choice_separate_original": [f"id{at}" for at in range(2, 12)],
    "toy_sums": [f"id{at}" for at in range(8)],
}

# Files, how they are read, the field that identifies an item, and its values by task; whether the
# content identifies items too, so that documents that are alike are one item twice; and which item
# model a answered otherwise.
DOORS = {
    "lm-eval": (
        "lm_eval/0.4.13/out",
        {"metric": "acc,exact_match", "filter": "none,flexible-extract", "same_model": "newest"},
        ("question", ITEMS, True, LAST),
    ),
    "inspect": ("inspect/full", {"metric": "choice,match"}, ("input", ITEMS, True, None)),
    "helm": (
        "helm/runs.zip/benchmark_output/runs/v1",
        {"metric": "exact_match"},
        ("id", IN_HELM, True, None),
    ),
    "opencompass": (
        "opencompass/logs.zip/v0.5.4/main",
        {"only_tasks": "toy_capitals,toy_sums"},
        ("", PLACES, True, FIRST),
    ),
    "lighteval": (
        "lighteval/logs.zip/0.13.0",
        {"metric": "acc,em"},
        ("id", {f"{task}|0": places for task, places in PLACES.items()}, True, None),
    ),
    "lmms-eval": (
        "lmms_eval/0.7.3/out",
        {"metric": "exact_match", "filter": "flexible-extract", "same_model": "newest"}
        | {"only_tasks": "toy_capitals,toy_sums"},
        ("doc_id", PLACES, False, LAST),
    ),
    "vlmevalkit": (
        "vlmevalkit/xlsx",
        {"only_tasks": "toy_capitals,toy_sums_GQA"},
        (
            "index",
            {"toy_capitals": PLACES["toy_capitals"], "toy_sums_GQA": PLACES["toy_sums"]},
            False,
            None,
        ),
    ),
    "every-eval-ever": (
        "every_eval_ever/lm_eval",
        {"metric": "acc,exact_match", "filter": "none,flexible-extract"},
        ("sample_id", PLACES, True, LAST),
    ),
}
ELSEWHERE = {
    *("swe-bench", "terminal-bench", "tau2-bench", "mmlu-pro", "livecodebench"),
    *("evalplus", "evalscope", "promptfoo"),
}
"""They run benchmarks of their own, or hold no answers; their tests write small files."""


def opened(name, folder):
    """The files of a door, taken out of their archive if they are in one."""
    archive, ending, inside = name.partition(".zip/")
    if ending:
        shutil.unpack_archive(FIXTURES / f"{archive}.zip", folder)
    return folder / inside if ending else FIXTURES / name


def test_every_harness_has_a_door():
    assert {*DOORS, *ELSEWHERE} == set(HARNESSES)


@pytest.mark.parametrize("harness", DOORS)
def test_models_items_and_scores_are_those_that_the_harness_played(harness, tmp_path):
    if harness == "inspect":
        pytest.importorskip("inspect_ai")
    name, options, (key, places, joins_alike, otherwise) = DOORS[harness]
    path = opened(name, tmp_path)
    scores = import_results(path, form=harness, **options).scores
    assert [model[-7:] for model in scores.model_ids] == ["model-a", "model-b"]
    assert scores.items["task"].tolist() == [task for task, own in places.items() for _ in own]
    expected = [row.copy() for row in RIGHT]
    if otherwise is not None:
        expected[0][otherwise] = 1 - expected[0][otherwise]
    assert scores.values.tolist() == expected
    second, eighth = scores.item_ids[[1, 7]]
    assert (eighth == f"{second}#2") == joins_alike
    if key:
        named = import_results(path, form=harness, key=key, **options).scores
        assert list(named.item_ids) == [
            f"{task}/{at}" for task, own in places.items() for at in own
        ]
        assert named.values.tolist() == expected
    else:
        assert scores.items["doc_id"].tolist() == [int(at) for own in places.values() for at in own]


def test_a_table_is_the_same_as_logs(tmp_path):
    rows = [
        (model, f"{task}/{item}", task, score)
        for model, right in zip(MODELS, RIGHT, strict=True)
        for (task, item), score in zip(
            ((task, item) for task, items in ITEMS.items() for item in items), right, strict=True
        )
    ]
    table = tmp_path / "answers.csv"
    pd.DataFrame(rows, columns=["model", "item", "task", "score"]).to_csv(table, index=False)
    of_table = import_results(table, columns=Columns("model", "item", "score", task="task")).scores
    assert of_table.values.tolist() == RIGHT
    pytest.importorskip("inspect_ai")
    name, options, _ = DOORS["inspect"]
    of_logs = import_results(FIXTURES / name, key="input", **options).scores
    bare = replace(of_logs, items=of_logs.items[["task"]], probabilities=None)
    assert bare.equals(of_table)  # but for where the harness keeps an item


def test_where_the_items_are_in_each_harness_is_kept():
    name, options, _ = DOORS["lm-eval"]
    assert import_results(FIXTURES / name, **options).scores.items["doc_id"].tolist() == [
        *range(10),
        *range(8),
    ]
    pytest.importorskip("inspect_ai")
    name, options, _ = DOORS["inspect"]
    own = [item["id"] for task in TOY["tasks"].values() for item in task]
    assert import_results(FIXTURES / name, **options).scores.items["sample_id"].tolist() == own
