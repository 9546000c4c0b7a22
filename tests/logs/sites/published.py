"""A little of what every source publishes, in its own layout, with made-up models and items."""

import hashlib
import io
import json
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from fewbench.scores import save_scores
from fewbench.testing import simulate

FIXTURES = Path(__file__).parents[2] / "readers" / "fixtures"
MODELS = ["org/m1-7b", "org/m2-70b", "lab/m3"]
ITEMS = [f"q{n}" for n in range(6)]
RIGHT = {  # model → item → score
    model: {item: float((n * (m + 2)) % 5 < 2 + m) for n, item in enumerate(ITEMS)}
    for m, model in enumerate(MODELS)
}


def parquet(rows):
    file = io.BytesIO()
    pd.DataFrame(rows).to_parquet(file)
    return file.getvalue()


def plain(model):
    return model.rpartition("/")[2]


def text(data):
    return json.dumps(data).encode()


def cells():
    return [(model, item, score) for model, own in RIGHT.items() for item, score in own.items()]


def publish(site, address):
    """Fill a site with every layout."""
    for part in (
        *(livebench, livecodebench, openeval, measurement, mmlu_pro, alpaca),
        *(swe_bench, terminal_bench, helm, open_llm_v1, open_llm_v2, every_eval_ever, repositories),
        tailoredbench,
    ):
        part(site)
    tau2(site)
    metabench(site, address)


def livebench(site):
    rows = [
        {"question_id": item, "task": f"t{n % 2}", "model": model, "score": RIGHT[model][item]}
        | {"turn": 1, "tstamp": 1.7e9 + m * 86400, "category": "language" if n < 3 else "coding"}
        for m, model in enumerate(MODELS)
        for n, item in enumerate(ITEMS)
    ]
    rows.append({**rows[0], "score": 1 - rows[0]["score"], "tstamp": 1.6e9})  # judged again later
    rows.append({**rows[1], "turn": 2, "score": 0.5})
    site.hub["livebench/model_judgment"] = {
        "README.md": b"x",
        "data/leaderboard-00000-of-00001.parquet": parquet(rows),
    }


def livecodebench(site):
    rows = [
        {"question_id": item, "model": plain(model), "pass@1": 100 * score, "date": 1.7e12}
        | {"difficulty": "easy", "platform": "leetcode"}
        for model, item, score in cells()
    ]
    models = [{"model_repr": plain(one), "release_date": 1.6e12} for one in MODELS]
    data = text({"performances": rows, "models": models})
    site.plain["lcb/performances_generation.json"] = data


def openeval(site):
    rows = [
        {"response_id": f"ifeval_{item}_{plain(model)}_v_{run}"}
        | {"scores": {"metric": [{"name": "strict"}], "value": [score]}}
        for model, item, score in cells()
        for run in (1, 2)
    ]
    items = [{"item_id": f"ifeval_{item}"} for item in ITEMS] + [{"item_id": "other_1"}]
    site.hub["Open-Eval-Commons/OpenEval"] = {
        "bench/train-0.parquet": b"unread",
        "item/train-0.parquet": parquet(items),
        "response/train-0.parquet": parquet(rows),
    }


def measurement(site):
    rows = [
        {"subject_id": f"s{MODELS.index(model)}", "item_id": item, "benchmark_id": "toy"}
        | {"trial": trial, "response": score}
        for model, item, score in cells()
        for trial in (1, 2)
    ]
    subjects = [
        {"subject_id": f"s{m}", "display_name": model, "release_date": f"2024-0{m + 1}-01"}
        for m, model in enumerate(MODELS)
    ]
    kind = {"benchmark_id": "toy", "response_type": "binary", "granularity": "item"}
    site.hub["aims-foundations/measurement-db"] = {
        "toy/responses.parquet": parquet(rows),
        "toy/subjects.parquet": parquet(subjects),
        "toy/benchmarks.parquet": parquet([kind]),
        "toy/traces.parquet": b"unread",
    }


def mmlu_pro(site):
    files = {"README.md": b"x"}
    for model, own in RIGHT.items():
        rows = [
            {"question_id": n, "category": "law", "answer": "A", "pred": "A" if score else None}
            | {"question": f"Is {n} right?", "options": ["yes", "no"]}
            for n, score in enumerate(own.values())
        ]
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(zipfile.ZipInfo("answers.json"), text(rows))
        files[f"eval_results/model_outputs_{plain(model)}_5shots.zip"] = file.getvalue()
    site.github["TIGER-AI-Lab/MMLU-Pro"] = files


def alpaca(site):
    files = {}
    for model, own in RIGHT.items():
        rows = [
            {"instruction": item, "dataset": "koala", "preference": 1 + score}
            for item, score in own.items()
        ]
        where = f"results/{plain(model)}"
        files[f"{where}/weighted_alpaca_eval_gpt4_turbo/annotations.json"] = text(rows)
        files[f"{where}/model_outputs.json"] = b"[]"
    site.github["tatsu-lab/alpaca_eval"] = files


def tailoredbench(site):
    """GSM8K has scores, HellaSwag options' probabilities, ARC items of three and four options."""
    rows = np.array([list(own.values()) for own in RIGHT.values()])
    options = np.where(rows[..., None] > 0, [0.1, 0.7, 0.1, 0.1], [0.4, 0.3, 0.2, 0.1])
    uneven = np.empty(rows.shape, dtype=object)
    for at in np.ndindex(*rows.shape):
        uneven[at] = options[at] if at[1] % 2 else np.array([*options[at][:2], 0.2])
        uneven[at] = uneven[at] / uneven[at].sum()
    files = {}
    for name, whole in (("gsm8k", rows), ("hellaswag", options), ("arc_challenge", uneven)):
        ending = "_acc_0" if name == "gsm8k" else ""
        arrays = {"gt_label": np.ones(len(ITEMS), dtype=int)} if not ending else {}
        for role, part in (("source", whole[:2]), ("target", whole[2:])):
            arrays[f"{role}_model_alldata{ending}"] = part
        for array, values in arrays.items():
            file = io.BytesIO()
            np.save(file, values, allow_pickle=True)
            files[f"BenchmarkDatasets/{name}/{array}.npy"] = file.getvalue()
    site.github["marvelcell/TailoredBench"] = files


def swe_bench(site):
    files = {}
    ids = [f"org__repo-{item}" for item in ITEMS]
    for m, model in enumerate(MODELS):
        home = f"evaluation/verified/2024010{m + 1}_{plain(model)}"
        resolved = [one for one, item in zip(ids, ITEMS, strict=True) if RIGHT[model][item]]
        if m < 2:
            lists = {"no_generation": [], "no_logs": ids[:1], "resolved": resolved}
            files[f"{home}/results/results.json"] = text(lists)
            said = f"info:\n  name: System {m}\ntags:\n  model: [https://x.org/{model}]\n"
            said += "  agent: crew\n  system:\n    attempts: '1'\n"
            files[f"{home}/metadata.yaml"] = said.encode()
        else:
            details = {one: {"resolved": one in resolved} for one in ids}
            files[f"{home}/per_instance_details.json"] = text(details)
    files["evaluation/lite/20240101_other/results/results.json"] = b"{}"
    files["evaluation/verified/20240109_empty/README.md"] = b"x"
    site.github["SWE-bench/experiments"] = files
    site.hub["SWE-bench/SWE-bench_Verified"] = {
        "data/test-00000-of-00001.parquet": parquet({"instance_id": ids, "repo": "org/repo"})
    }


def terminal_bench(site):
    files = {}
    for model, own in RIGHT.items():
        job = f"submissions/terminal-bench/2.0/agent__{plain(model)}/2026-01-0{len(files) % 7 + 1}"
        rewards = {"1.0": [], "0.0": []}
        for item, score in own.items():
            rewards[f"{score}"].append(f"{item}__Ab")
            files[f"{job}/{item}__Ab/result.json"] = b"unread"
        files[f"{job}/{ITEMS[0]}__Cd/result.json"] = b"unread"  # an error: no reward
        evals = {"k": {"reward_stats": {"reward": rewards}}}
        data = {"started_at": "2026-01-02T03:04:05", "stats": {"evals": evals}}
        files[f"{job}/result.json"] = text(data)
        files[f"{job}/config.json"] = b"{}"
    site.hub["harborframework/terminal-bench-2-leaderboard"] = files
    site.github["laude-institute/terminal-bench-leaderboard"] = {
        f"results/core@0.1/2025080{run}_agent_{plain(model)}/run{run}/results.json": text(
            {
                "results": [
                    {"task_id": one, "is_resolved": bool(s) or None} for one, s in own.items()
                ]
            }
        )
        for model, own in RIGHT.items()
        for run in (1, 2)
    }


def tau2(site):
    base = "web/leaderboard/public/submissions"
    files = {f"{base}/manifest.json": text({"submissions": [plain(one) for one in MODELS] + ["x"]})}
    for model, own in RIGHT.items():
        name = f"{plain(model)}_airline_4trials.json"
        said = {"model_name": model, "model_organization": "org", "submission_date": "2025-01-01"}
        said |= {"trajectory_files": {"airline": name}, "submission_type": "standard"}
        files[f"{base}/{plain(model)}/submission.json"] = text(said)
        trials = [
            {"task_id": item, "trial": trial, "reward_info": {"reward": score}}
            for item, score in own.items()
            for trial in range(2)
        ]
        where = f"tau2/submissions/{plain(model)}/trajectories/{name}"
        info = {"num_trials": 2, "environment_info": {"domain_name": "airline"}}
        info |= {"agent_info": {"llm": model}, "user_info": {"llm": "user"}}
        site.plain[where] = text({"info": info, "simulations": trials})
    site.github["sierra-research/tau2-bench"] = files


def metabench(site, address):
    lines = [f"{plain(model)},{ITEMS.index(item) + 1},{int(s)}" for model, item, s in cells()]
    data = "\n".join(["source,item,correct", *lines]).encode()
    url = f"{address}/zenodo/files/gsm8k.csv"
    one = {"key": "gsm8k.csv", "size": len(data), "links": {"self": url}}
    one["checksum"] = f"md5:{hashlib.md5(data).hexdigest()}"
    site.plain["zenodo/files/gsm8k.csv"] = data
    site.plain["zenodo/api/records/12819251"] = text({"files": [one]})


def helm(site):
    base = "lite/benchmark_output"
    runs = {}
    for model, own in RIGHT.items():
        run = f"med_qa:model={model.replace('/', '_')}"
        runs[run] = "v1.0.0"
        stats = [
            {"instance_id": f"id{n}", "train_trial_index": 0}
            | {"stats": [{"name": {"name": "exact_match", "split": "test"}, "mean": score}]}
            for n, score in enumerate(own.values())
        ]
        instances = [
            {"id": f"id{n}", "split": "test", "input": {"text": item}}
            | {"references": [{"output": {"text": "yes"}, "tags": ["correct"]}]}
            for n, item in enumerate(own)
        ]
        spec = {"name": run, "adapter_spec": {"model": model, "max_eval_instances": 1000}}
        where = f"{base}/runs/v1.0.0/{run}"
        site.bucket[f"{where}/per_instance_stats.json"] = text(stats)
        site.bucket[f"{where}/instances.json"] = text(instances)
        site.bucket[f"{where}/run_spec.json"] = text(spec)
        site.bucket[f"{where}/scenario_state.json"] = b"large"
    runs["med_qa:model=org_lost"] = "v1.0.0"
    for version in ("v1.9.0", "v1.13.0"):
        site.bucket[f"{base}/releases/{version}/runs_to_run_suites.json"] = text(runs)


def open_llm_v1(site):
    with zipfile.ZipFile(FIXTURES / "open_llm_leaderboard_v1" / "logs.zip") as archive:
        for name in archive.namelist():
            repo, _, path = name.partition("/")
            if "toy:capitals" in path:
                path = path.replace("toy:capitals", "arc:challenge")
            own = site.hub.setdefault(f"open-llm-leaderboard-old/{repo}", {})
            own[path] = archive.read(name)
            if "arc:challenge" in path:
                own["2020-01-01T00-00-00.0/" + "details_harness|arc:challenge|25_old.parquet"] = b""
    site.hub["open-llm-leaderboard-old/details_toy__empty"] = {"README.md": b"x"}


def open_llm_v2(site):
    folder = FIXTURES / "open_llm_leaderboard_v2"
    for model in ("toy__model-a", "toy__model-b"):
        files = sorted((folder / f"{model}-details" / model).iterdir())
        site.hub[f"open-llm-leaderboard/{model}-details"] = {
            f"{model}/{one.name.replace('toy_capitals', 'musr_capitals')}": one.read_bytes()
            for one in files
        }
    rows = [
        {"fullname": name, "Average ⬆️": 1.5, "Submission Date": "2024-06-09", "Merged": False}
        | {"Base Model": "toy/base", "#Params (B)": 7.2}
        for name in ("toy/model-a", "toy/model-b", "toy/lost")
    ]
    site.hub["open-llm-leaderboard/contents"] = {"data/train-0.parquet": parquet(rows)}


def every_eval_ever(site):
    files, entries = {}, []
    for one in sorted((FIXTURES / "every_eval_ever" / "lm_eval").rglob("*_samples.jsonl")):
        if "toy_sums" not in str(one):
            continue
        own = one.name.removesuffix("_samples.jsonl")
        files[f"flat/objects/{own}_samples.jsonl"] = one.read_bytes()
        files[f"flat/objects/{own}.json"] = one.with_name(f"{own}.json").read_bytes()
        entries.append(
            {"object_path": f"flat/objects/{own}.json", "instance_level_available": True}
            | {"instance_level_path": f"flat/objects/{own}_samples.jsonl", "benchmark": "toy"}
        )
    entries.append({**entries[0], "superseded_by": "x", "benchmark": "gone"})
    files["flat/entries.jsonl"] = b"\n".join(text(one) for one in entries)
    files["flat/latest_manifest.json"] = text({"entries_path": "flat/entries.jsonl"})
    site.hub["evaleval/EEE_datastore"] = files


def repositories(site):
    folder = FIXTURES / "open_llm_leaderboard_v2"
    site.hub["me/logs"] = {
        str(one.relative_to(folder)): one.read_bytes()
        for one in sorted(folder.rglob("*"))
        if one.is_file() and one.suffix in (".json", ".jsonl") and "ifeval" not in one.name
    } | {"config.json": b"{}", "README.md": b"x"}
    with TemporaryDirectory() as folder:
        saved = save_scores(simulate(5, 8, seed=1), Path(folder) / "saved.parquet").read_bytes()
    site.hub["me/table"] = {"table.parquet": parquet({"model": ["a"], "q": ["1"], "x": [1]})}
    site.hub["me/scores"] = {"scores.parquet": saved}
