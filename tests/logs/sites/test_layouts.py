"""What is damaged, odd or missing stops no others; what a source holds is what is read."""

import io
import json
import tarfile
import zipfile

import numpy as np
import pandas as pd
import pytest
from published import ITEMS, MODELS, RIGHT, parquet, text

import fewbench
from fewbench.errors import PublicError
from fewbench.public import SOURCES
from fewbench.public.fetching import Misread
from fewbench.public.routes import Route, documents, helm_sample, lighteval_order, routed
from fewbench.public.source import from_rows
from fewbench.readers import import_results
from fewbench.scores.conditions import asked_elsewhere

pytest.importorskip("huggingface_hub")
MMLU_PRO = "eval_results/model_outputs_{}_5shots.zip"


def zipped(rows):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("answers.json", text(rows))
    return file.getvalue()


def answers(preds):
    return [
        {"question_id": n, "category": "computer science", "answer": "A", "pred": pred}
        for n, pred in enumerate(preds)
    ]


def test_one_odd_row_damaged_file_or_missing_file_stops_no_others(site):
    files = site.github["TIGER-AI-Lab/MMLU-Pro"]
    files[MMLU_PRO.format("odd")] = zipped(["math", *answers(["A", None, "B", "A"]), "total"])
    files[MMLU_PRO.format("torn")] = b"PK..."
    files[MMLU_PRO.format("strange")] = zipped([{"id": n, "right": True} for n in range(6)])
    files[MMLU_PRO.format("gone")] = zipped(answers("A"))
    listed = fewbench.find_public_files("mmlu-pro")
    del files[MMLU_PRO.format("gone")]
    results = listed.fetch().read()
    rows = results.to_frame()
    assert set(rows.index) == {"m1-7b_5shots", "m2-70b_5shots", "m3_5shots", "odd_5shots"}
    assert rows.loc["odd_5shots"].dropna().tolist() == [1, 0, 0, 1]
    notes = " ".join(results.notes)
    assert "model_outputs_odd_5shots.zip: 2 of 6 entries hold no result" in notes
    assert "1 of 7 files left out: " in notes
    assert "gone_5shots.zip: no such file" in notes
    assert "2 of 6 files left out: " in notes
    assert "torn_5shots.zip: not laid out as this source does (BadZipFile" in notes
    assert "strange_5shots.zip: not laid out as this source does" in notes


def test_failures_that_cannot_be_read_are_no_single_mistakes(site):
    """A file without its failures would have better scores, so it is left out."""
    rows = answers(["A"] * 8) + [{"question_id": n, "category": "law"} for n in (8, 9)]
    site.github["TIGER-AI-Lab/MMLU-Pro"][MMLU_PRO.format("odd")] = zipped(rows)
    results = fewbench.get("mmlu-pro")
    assert "odd_5shots" not in results.scores.model_ids
    assert "2 of 10 entries hold no result (entry 9: KeyError: 'answer'" in " ".join(results.notes)


def test_only_named_models_are_fetched(site):
    for name, asked in (
        ("mmlu-pro", {}),
        ("alpaca-eval", {}),
        ("swe-bench", {}),
        ("terminal-bench", {"benchmark": "1"}),
        ("terminal-bench", {"benchmark": "2"}),
        ("tau2-bench", {}),
    ):
        every = fewbench.get(name, **asked)
        wanted = every.scores.model_ids[:2]
        files = fewbench.find_public_files(name, models=wanted, **asked)
        of_others = [model for model in every.scores.model_ids if model not in wanted]
        assert not [path for path in files.to_frame()["path"] if of_others[0] in path], name
        part = files.fetch().read()
        assert part.scores.model_ids == wanted
        assert len(files.to_frame()) < len(every.files.to_frame())


def test_runs_of_terminal_bench_1_lie_in_three_ways(site):
    def run(*resolved):
        rows = [{"task_id": f"t{n % 2}", "is_resolved": one} for n, one in enumerate(resolved)]
        return text({"results": rows})

    core = "results/terminal-bench-core@0.1.1"
    site.github["laude-institute/terminal-bench-leaderboard"] = {
        f"{core}/20250811_agent-a_model-x/run1/results.json": run(True, False),
        f"{core}/20250811_agent-a_model-x/run1/t1/t1.1-of-1/results.json": text({"id": "trial"}),
        f"{core}/20250811_agent-a_model-x/run2/results.json": run(True, None),
        f"{core}/20250829_agent-c_model-y/2025-08-25__12-29-38__results.json": run(False, True),
        "results/terminal-bench-core:0.1.1/20250902_b_x/results.json": run(True, True, False, True),
        f"{core}/20250711_twice_x/results.json": run(True, True),
        f"{core}/20250811_twice_x/results.json": run(False, False),
    }
    results = fewbench.get("terminal-bench", benchmark="1")
    means = dict(zip(results.scores.model_ids, results.scores.full_scores(), strict=True))
    assert means == {
        "agent-a_model-x": 0.5,
        "agent-c_model-y": 0.5,
        "b_x": 0.75,
        "20250711_twice_x": 1.0,
        "20250811_twice_x": 0.0,
    }
    known = results.scores.models.loc["agent-a_model-x", ["date", "agent", "llm"]]
    assert known.tolist() == ["2025-08-11", "agent-a", "model-x"]
    assert "1 trial without a verdict" in " ".join(results.notes)


def test_what_a_source_says_of_an_item_may_differ_between_models(site):
    path = "lcb/performances_generation.json"
    data = json.loads(site.plain[path])
    data["performances"][-1]["date"] += 86_400_000
    site.plain[path] = text(data)
    results = fewbench.get("livecodebench")
    assert "1 item with several values in contest_date" in " ".join(results.notes)
    assert set(results.scores.items["contest_date"]) == {"2023-11-14"}


@pytest.mark.parametrize(
    ("column", "value", "problem"),
    [
        ("score", "pass", "a score that is not a number"),
        ("score", 3, "a score outside the range"),
        ("item", None, "without an item"),
    ],
)
def test_rows_of_a_table_that_cannot_be_used(column, value, problem):
    rows = pd.DataFrame(
        {"model": ["a", "b"] * 100, "item": np.repeat(np.arange(100), 2).astype(str)}
    ).assign(score=[0.0, 1.0] * 100, task="t")
    few = rows.astype(object)
    few.loc[[3, 7], column] = value
    reading = from_rows(few, what="file")
    assert reading.scores.is_run.sum() == 198
    assert f"2 of 200 rows {'' if 'without' in problem else 'with '}{problem}" in reading.notes[0]
    many = rows.astype(object)
    many.loc[:50, column] = value
    with pytest.raises(Misread, match=problem):
        from_rows(many, what="file")


def test_layouts_that_changed_are_told_from_layouts_misread(site, monkeypatch):
    files = site.github["TIGER-AI-Lab/MMLU-Pro"]
    for path in [path for path in files if path.endswith(".zip")]:
        files[path] = zipped([{"id": 1}])
    with pytest.raises(PublicError, check=lambda error: error.kind == "misread") as changed:
        fewbench.get("mmlu-pro")
    assert f"pass --revision {SOURCES['mmlu-pro'].tried_at}" in changed.value.hint
    tried = "c" * 40
    monkeypatch.setitem(vars(SOURCES["mmlu-pro"]), "tried_at", tried)
    with pytest.raises(PublicError) as misread:
        fewbench.get("mmlu-pro")
    assert "fewbench read other files of this commit: report" in misread.value.hint
    site.hub["livebench/model_judgment"]["data/leaderboard-00000-of-00001.parquet"] = parquet(
        {"question": ["q"]}
    )
    with pytest.raises(PublicError) as never:
        fewbench.get("livebench")
    assert "never read a real file of livebench" in never.value.hint


def test_an_archive_of_metabench_with_tables_of_subjects(site):
    def table(names):
        lines = [
            f"{model},{ITEMS.index(item) + 1},{int(score)}"
            for model, own in RIGHT.items()
            for item, score in own.items()
        ]
        return "\n".join([names, *lines]).encode()

    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, data in {
            "data/mmlu_anatomy.csv": table("source,item,correct"),
            "data/mmlu_law.csv": table("source,item,correct"),
            "data/mmlu_virology.csv": b"other",
            "data/mmlu_law_prompts.csv": b"item,prompt\n1,x",
            "data/gsm8k.csv": table("source,item,correct"),
            "data/gsm8k_preproc.csv": b"other",
        }.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    record = json.loads(site.plain["zenodo/api/records/12819251"])
    entry = record["files"][0] | {"key": "data.tar.gz", "size": len(file.getvalue())}
    entry["checksum"] = ""
    site.plain["zenodo/files/gsm8k.csv"] = file.getvalue()
    site.plain["zenodo/api/records/12819251"] = text({"files": [entry]})
    results = fewbench.get("metabench", benchmark="mmlu")
    assert results.scores.tasks == ["mmlu_anatomy", "mmlu_law"]
    notes = " ".join(results.notes)
    assert "1 of 3 tables left out: data/mmlu_virology.csv" in notes
    assert "in no confirmed order: do not run items by their row" in notes
    assert "doc_id" not in results.scores.items
    numbered = fewbench.get("metabench", benchmark="gsm8k").scores.items
    assert numbered.index[0] == "gsm8k/588"
    assert numbered["doc_id"].tolist() == lighteval_order(1319)[:6]


def test_registry_and_conditions_of_measurement_db(site):
    files = site.hub["aims-foundations/measurement-db"]
    rows = pd.read_parquet(io.BytesIO(files["toy/responses.parquet"]))
    again = rows[rows["subject_id"] == "s0"].assign(test_condition="no tools", response=0.0)
    files["toy/responses.parquet"] = parquet(pd.concat([rows, again]))
    files["_registry/subjects.parquet"] = files.pop("toy/subjects.parquet")
    files["toy/benchmarks.parquet"] = parquet([{"benchmark_id": "toy", "response_type": "binary"}])
    files["toy/items.parquet"] = parquet(
        {"item_id": ITEMS, "raw_item_id": [f"raw-{item}" for item in ITEMS], "content": ITEMS}
    )
    results = fewbench.get("measurement-db", benchmark="toy")
    rows = results.to_frame()
    assert set(rows.index) == {*MODELS, f"{MODELS[0]} (no tools)"}
    assert rows.loc[f"{MODELS[0]} (no tools)"].sum() == 0
    assert rows.loc[MODELS[0]].sum() == sum(RIGHT[MODELS[0]].values())
    assert results.scores.items["raw_item_id"].tolist() == [f"raw-{item}" for item in ITEMS]
    assert "1 named condition" in " ".join(results.notes)


def test_costs_of_swe_bench_are_kept(site):
    files = site.github["SWE-bench/experiments"]
    (path,) = [path for path in files if path.endswith("per_instance_details.json")]
    details = json.loads(files[path])
    for n, instance in enumerate(details):
        details[instance] |= {"cost": n / 10, "api_calls": 3}
    files[path] = text(details)
    results = fewbench.get("swe-bench")
    assert results.scores.items["cost"].tolist() == [0, 0.1, 0.2, 0.3, 0.4, 0.5]
    assert set(results.scores.items["api_calls"]) == {3.0}
    assert "the mean of an answer, by the logs of 1 model" in " ".join(results.notes)


def test_items_are_named_as_the_readers_of_their_harnesses_name_them(site, tmp_path):
    def written(name, content):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        return path

    def one(files, ending):
        return next(files[path] for path in sorted(files) if path.endswith(ending))

    runs = site.github["laude-institute/terminal-bench-leaderboard"]
    jobs = site.hub["harborframework/terminal-bench-2-leaderboard"]
    job = next(path for path in sorted(jobs) if path.count("/") == 5 and "result.json" in path)
    with zipfile.ZipFile(io.BytesIO(one(site.github["TIGER-AI-Lab/MMLU-Pro"], ".zip"))) as archive:
        answers = archive.read("answers.json")
    details = one(site.github["SWE-bench/experiments"], "per_instance_details.json")
    for name, benchmark, path in (
        ("terminal-bench", "1", written("one/results.json", one(runs, "results.json"))),
        ("terminal-bench", "2", written("two/result.json", jobs[job])),
        ("tau2-bench", None, written("tau2.json", one(site.plain, "4trials.json"))),
        ("mmlu-pro", None, written("law_result.json", answers)),
        ("swe-bench", None, written("sub/per_instance_details.json", details)),
    ):
        scores = import_results(path, form=name).scores
        public = fewbench.get(name, benchmark=benchmark).scores
        assert sorted(scores.item_ids) == sorted(public.item_ids)
        assert scores.tasks == public.tasks


def test_instances_are_needed_to_read_swe_bench(site):
    listed = fewbench.find_public_files("swe-bench")
    del site.hub["SWE-bench/SWE-bench_Verified"]["data/test-00000-of-00001.parquet"]
    with pytest.raises(PublicError, check=lambda error: error.kind == "missing"):
        listed.fetch()


# -- how items are run -----------------------------------------------------------------------


def test_every_source_says_how_its_items_are_run():
    assert all(source.run_with for source in SOURCES.values())
    listed = fewbench.public_sources()
    assert "mmlu_pro_CATEGORY" in listed.loc["mmlu-pro", "run_with"]
    assert not listed.loc["livebench", "tried"]
    for source in SOURCES.values():
        assert {route.benchmark for route in source.routes} <= {"", *source.benchmarks}
        assert bool(source.tried) >= bool(source.tried_at)


def test_a_fetched_table_says_how_it_is_run(site):
    items = fewbench.get("mmlu-pro").scores.items
    assert items.index[0] == "mmlu_pro_law/0"
    assert items[["task", "key_field", "metric", "filter"]].iloc[0].tolist() == [
        *("mmlu_pro_law", "question_id"),
        *("exact_match", "custom-extract"),
    ]
    items = fewbench.get("tau2-bench").scores.items
    assert items[["task", "sample_id"]].iloc[0].tolist() == ["tau2_airline", ITEMS[0]]
    items = fewbench.get("tailoredbench").scores.items
    assert items["doc_id"].tolist() == lighteval_order(1319)[:6]
    assert items.index[0] == f"gsm8k/{items['doc_id'].iloc[0]}"
    other = fewbench.get("tailoredbench", benchmark="arc_challenge")
    assert "doc_id" not in other.scores.items
    assert "in no confirmed order" in " ".join(other.notes)
    # Other harnesses' positions are rows of their logs, not documents.
    logs = fewbench.get("open-llm-leaderboard-v1", benchmark="arc").scores.items
    assert "doc_id" not in logs
    assert "row" in logs


def test_logs_of_lighteval_in_a_confirmed_order_get_the_names_of_lm_eval():
    table = fewbench.from_arrays(
        np.eye(4)[:2], models=["a", "b"], items=[f"h{n}" for n in range(4)]
    )
    items = table.items.assign(task="gsm8k", harness="lighteval", doc_id=range(4), metric="acc")
    (route,) = [one for one in SOURCES["open-llm-leaderboard-v1"].routes if one.task == "gsm8k"]
    scores, _ = routed(table.changed(items=items), route)
    order = lighteval_order(1319)[:4]
    assert scores.item_ids.tolist() == [f"gsm8k/{document}" for document in order]
    first = scores.items.iloc[0]
    assert first[["harness", "route", "key_field", "metric", "filter"]].tolist() == [
        *("lighteval", "lm-eval", "doc_id", "exact_match", "strict-match")
    ]
    (doubt,) = asked_elsewhere(scores, "lm-eval")
    assert "the source models ran in lighteval, not in lm-eval" in doubt


def test_rows_of_logs_become_documents_only_in_a_confirmed_order():
    sample = helm_sample(1319)
    assert len(sample) == len(set(sample)) == 1000
    assert documents("helm", 1319, [7473 + at for at in sample]) == sample
    assert documents("helm", 1319, list(range(1000))) is None
    table = fewbench.from_arrays(
        np.eye(1001)[:2], models=["a", "b"], items=[f"i{n}" for n in range(1001)]
    )
    places = [7473 + at for at in sample] + [5]
    tasks = ["gsm"] * 1000 + ["med_qa"]
    route = Route("lite", "helm", "gsm", order="helm", size=1319)
    items = table.items.assign(task=tasks, harness="helm", doc_id=places)
    scores, (note,) = routed(table.changed(items=items), route)
    assert scores.items["doc_id"].tolist()[:1000] == sample
    assert pd.isna(scores.items["doc_id"].iloc[-1])
    assert "helm's order" in note
    items = items.assign(doc_id=range(1001))
    scores, (note,) = routed(table.changed(items=items), route)
    assert "doc_id" not in scores.items
    assert "do not fit helm's order" in note
