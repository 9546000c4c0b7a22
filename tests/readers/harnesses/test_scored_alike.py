"""One of two models of a real log is scored by another key, or in another way: refused by name."""

import json
import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from fewbench.errors import ReaderError
from fewbench.readers import import_results
from fewbench.readers.harnesses import HARNESSES

FIXTURES = Path(__file__).parents[1] / "fixtures"
KEY, OPTIONS = "have another right answer", "have other options"


def archive(name, part):
    def lay_out(folder):
        shutil.unpack_archive(FIXTURES / name, folder)
        return folder / part

    return lay_out


def tree(name):
    def lay_out(folder):
        return Path(shutil.copytree(FIXTURES / name, folder / "logs"))

    return lay_out


def two_sheets(folder):
    """Sheets of VLMEvalKit of one model, under two names."""
    for model in ("toy-model-a", "toy-model-b"):
        own = folder / model
        shutil.copytree(FIXTURES / "vlmevalkit" / "tsv" / "toy-model-a", own)
        for path in list(own.iterdir()):
            if path.name == "status.json":
                path.write_text(path.read_text().replace("toy-model-a", model))
            path.rename(own / path.name.replace("toy-model-a", model))
    return folder


def two_works(folder):
    """Each of two models in a work folder of OpenCompass of its own."""
    shutil.unpack_archive(FIXTURES / "opencompass" / "logs.zip", folder / "logs")
    work = min((folder / "logs" / "v0.5.4" / "main").iterdir())
    for model, other in (("a", "b"), ("b", "a")):
        own = shutil.copytree(work, folder / model / work.name)
        for part in ("results", "predictions"):
            shutil.rmtree(Path(own, part, f"toy__model-{other}"))
    shutil.rmtree(folder / "logs")
    return folder


def two_inspect_logs(folder):
    """A JSON log of Inspect of one model, under two names."""
    (log,) = (FIXTURES / "inspect" / "subset").glob("*.json")
    for model in ("toy-model-a", "toy-model-b"):
        found = json.loads(log.read_text())
        found["eval"] |= {"model": model, "eval_id": model}
        (folder / f"{model}.json").write_text(json.dumps(found))
    return folder


def texts(pattern, old, new):
    """Replace a text in all files of a pattern, which must hold it."""

    def change(folder):
        paths = sorted(folder.glob(pattern))
        assert any(old in path.read_text() for path in paths)
        for path in paths:
            path.write_text(path.read_text().replace(old, new))

    return change


def inspect_log(how):
    def change(folder):
        path = folder / "toy-model-b.json"
        log = json.loads(path.read_text())
        how(log)
        path.write_text(json.dumps(log))

    return change


def other_targets(log):
    for sample in log["samples"]:
        sample["target"] = "ABCD"["ABCD".index(sample["target"]) - 1]


def other_golds(folder):
    """Change the right answers of lighteval's capitals."""
    (path,) = folder.glob("details/toy/model-b/*/details_toy_capitals*.parquet")
    table = pq.read_table(path)
    rows = table.to_pylist()
    for row in rows:
        row["doc"]["gold_index"] = (row["doc"]["gold_index"] + 1) % 4
    pq.write_table(type(table).from_pylist(rows, schema=table.schema), path)


HELM = "toy_sums:model=toy_model-b"
CAPITALS = "toy_capitals:method=multiple_choice_separate_original,model=toy_model-b"
LMMS = "toy__model-b/*_samples_toy_sums.jsonl"
EEE = "toy_capitals/toy/model-b/*_samples.jsonl"
CASES = {
    "inspect": (
        two_inspect_logs,
        {"key": "id"},
        [
            (inspect_log(other_targets), KEY),
            (inspect_log(lambda log: log["samples"][0]["choices"].reverse()), OPTIONS),
            (
                inspect_log(lambda log: log["eval"]["scorers"][0].update(options={"x": 2})),
                r"metric of task .* \(choice: .*; choice\(x=2\): 'toy-model-b'\)",
            ),
            (
                inspect_log(lambda log: log["eval"]["config"].update(epochs=3)),
                r"epochs of task .* \(1: .*; 3 \(mean\): 'toy-model-b'\)",
            ),
        ],
    ),
    "helm": (
        archive("helm/runs.zip", "benchmark_output/runs/v1"),
        {"key": "id", "metric": "exact_match"},
        [
            (texts(f"{HELM}/scenario_state.json", '"text": "3"', '"text": "4"'), KEY),
            (texts(f"{CAPITALS}/scenario_state.json", '"text": "Oslo"', '"text": "Rom"'), OPTIONS),
            (
                texts(f"{HELM}/run_spec.json", '"args": {}', '"args": {"grader": "x"}'),
                r"metric arguments of task 'toy_sums' .*grader=x",
            ),
            (
                texts(f"{HELM}/run_spec.json", '"num_train_trials": 1', '"num_train_trials": 3'),
                "trials of",
            ),
        ],
    ),
    "opencompass": (
        two_works,
        {"only_tasks": "toy_sums"},
        [
            (texts("b/*/predictions/*/toy_sums.json", '"3"\n', '"4"\n'), KEY),
            (texts("b/*/configs/*.py", "icl_evaluator.EMEvaluator", "x.Other"), "evaluator of"),
        ],
    ),
    "lighteval": (
        archive("lighteval/logs.zip", "0.13.0"),
        {"metric": "acc,em", "key": "id"},
        [
            (other_golds, KEY),
            (
                texts("results/toy/model-b/*.json", "strip_strings=True", "strip_strings=False"),
                r"metric of task 'toy_sums\|0' differs between models \(ExactMatches",
            ),
        ],
    ),
    "lmms-eval": (
        tree("lmms_eval/0.7.3/out"),
        {
            "metric": "exact_match",
            "filter": "strict-match",
            "key": "doc_id",
            "only_tasks": "toy_sums",
        }
        | {"same_model": "newest"},
        [
            (texts(LMMS, '"target": "3"', '"target": "4"'), KEY),
            (texts("toy__model-b/*_results.json", "#### (", "### ("), "filter of task 'toy_sums'"),
        ],
    ),
    "vlmevalkit": (
        two_sheets,
        {"key": "index", "only_tasks": "toy_capitals"},
        [
            (texts("toy-model-b/*_capitals_exact*.tsv", '"Oslo"', '"Bonn"'), OPTIONS),
            (texts("toy-model-b/*_capitals_exact*.tsv", '"A"\t"south', '"B"\t"south'), KEY),
        ],
    ),
    "every-eval-ever": (
        tree("every_eval_ever/lm_eval"),
        {"metric": "acc", "only_tasks": "toy_capitals"},
        [
            (texts(EEE, '"target_hash": "5f', '"target_hash": "6f'), KEY),
            (texts(EEE, '"Oslo"', '"Rome"'), OPTIONS),
        ],
    ),
}


ELSEWHERE = {
    *("lm-eval", "swe-bench", "terminal-bench", "tau2-bench", "mmlu-pro", "livecodebench"),
    *("evalplus", "evalscope", "promptfoo"),
}
"""Compared by lm-eval's own tests; the others' results have no settings of scoring, and their items
are identified by a target, or have an id of their benchmark."""


def test_every_harness_is_compared():
    assert {*CASES, *ELSEWHERE} == set(HARNESSES)


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        pytest.param(name, change, why, id=f"{name}-{at}")
        for name, (_, _, changes) in CASES.items()
        for at, (change, why) in enumerate(changes)
    ],
)
def test_a_model_that_was_scored_in_another_way(tmp_path, name, change, why):
    if name == "inspect":
        pytest.importorskip("inspect_ai")
    lay_out, how, _ = CASES[name]
    folder = lay_out(tmp_path)
    alike = import_results(folder, form=name, **how)
    assert not [note for note in alike.notes if "differs between" in note or re.search(why, note)]
    assert (alike.scores.items["key_hashes"] != "").all()
    change(folder)
    with pytest.raises(ReaderError, match=f"models were not scored alike: .*{why}"):
        import_results(folder, form=name, **how)
    taken = import_results(folder, form=name, **how, accept_differences=True)
    assert taken.scores.n_models == alike.scores.n_models
    assert any(re.search(why, note) for note in taken.notes)
