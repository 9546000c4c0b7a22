"""What the tables of the papers are fetched and built from, large enough for every section."""

import io
import json
import pickle
from importlib.resources import files
from pathlib import Path

import joblib
import numpy as np
from published import parquet, text

PAPERS = Path(__file__).parents[3] / "benchmarks/papers"
FAMILIES = ("llama", "mistral", "qwen", "gemma", "phi-", "granite")
TEXTS = files("lm_eval") / "tasks/mmlu/flan_cot_fewshot/_cot_prompts.json"
TASKS = list(json.loads(TEXTS.read_text(encoding="utf-8")))
"""The 57 tasks of MMLU."""


def publish(site):
    """Fill a site with all that `reproduce.py --get` fetches."""
    parts = (leaderboard, tailoredbench, helm, mmlu_pro, bento, open_llm_2, disco, mmlu_logits)
    for part in parts:
        part(site, np.random.default_rng(0))


def margins(rng, n_models, n_items):
    """How far each model is above each item's difficulty."""
    ability, difficulty = rng.normal(0.3, 1, n_models), rng.normal(0, 1, n_items)
    return ability[:, None] - difficulty + rng.normal(0, 0.7, (n_models, n_items))


def leaderboard(site, rng):
    """The models that TailoredBench names ran Winogrande, 30 of them the other benchmarks."""
    site.hub.clear()  # of the few models that ran a few items
    named = (PAPERS / "models/winogrande.txt").read_text(encoding="utf-8").splitlines()
    benchmarks = {"winogrande|5": (len(named), 110, 2), "hellaswag|10": (30, 110, 4)}
    benchmarks["arc:challenge|25"] = (30, 110, 4)
    benchmarks |= {f"hendrycksTest-{task}|5": (30, 10, 4) for task in TASKS}
    for benchmark, (n_models, n_items, n_options) in benchmarks.items():
        for m, row in enumerate(margins(rng, n_models, n_items)):
            time = f"2023-{m % 12 + 1:02}-03T17-58-31.{m:06}"
            rows = []
            for n, margin in enumerate(row):
                gold = n % n_options
                logits = rng.normal(-1, 0.3, n_options)
                logits[gold] = margin
                right = float(logits.argmax() == gold)
                rows.append(
                    {"example": f"Question {n}", "full_prompt": f"Question {n}"}
                    | {"choices": [*"abcd"[:n_options]], "gold_index": [gold]}
                    | {"predictions": logits.tolist(), "gold": ["abcd"[gold]]}
                    | {"metrics": {"acc": right, "acc_norm": right}}
                )
            name = f"{time}/details_harness|{benchmark}_{time}.parquet"
            files_of = site.hub.setdefault(f"open-llm-leaderboard-old/details_lab__{named[m]}", {})
            files_of[name] = parquet(rows)


def tailoredbench(site, rng):
    """Scores of GSM8K, and options' probabilities of HellaSwag and ARC."""
    arrays = {}
    for name, n_items in (("gsm8k", 420), ("hellaswag", 170), ("arc_challenge", 170)):
        margin = margins(rng, 60, n_items)
        values, ending = (margin > 0).astype(float), "_acc_0"
        if name != "gsm8k":
            logits = np.concatenate([margin[..., None], rng.normal(size=(*margin.shape, 3))], 2)
            values = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
            arrays[f"{name}/gt_label"], ending = np.zeros(n_items, dtype=int), ""
        for role, part in (("source", values[::2]), ("target", values[1::2])):
            arrays[f"{name}/{role}_model_alldata{ending}"] = part
    site.github["marvelcell/TailoredBench"] = {
        f"BenchmarkDatasets/{name}.npy": dumped(lambda array, file: np.save(file, array), values)
        for name, values in arrays.items()
    }


def dumped(dump, values):
    file = io.BytesIO()
    dump(values, file)
    return file.getvalue()


def helm(site, rng):
    """The seven subjects of MATH, 24 models."""
    base = "lite/benchmark_output"
    subjects = (
        *("algebra", "counting_and_probability", "geometry", "intermediate_algebra"),
        *("number_theory", "prealgebra", "precalculus"),
    )
    runs = {}
    for subject in subjects:
        for m, row in enumerate(margins(rng, 24, 25)):
            run = f"math:subject={subject},level=1,use_chain_of_thought=True,model=org{m % 6}_m{m}"
            runs[run] = "v1.0.0"
            stats = [
                {"instance_id": f"id{n}", "train_trial_index": 0}
                | {
                    "stats": [
                        {"name": {"name": "math_equiv_chain_of_thought", "split": "test"}}
                        | {"mean": float(margin > 0)}
                    ]
                }
                for n, margin in enumerate(row)
            ]
            instances = [
                {"id": f"id{n}", "split": "test", "input": {"text": f"{subject} {n}"}}
                | {"references": [{"output": {"text": "yes"}, "tags": ["correct"]}]}
                for n in range(len(row))
            ]
            spec = {"name": run, "adapter_spec": {"model": f"org{m % 6}/m{m}"}}
            where = f"{base}/runs/v1.0.0/{run}"
            site.bucket[f"{where}/per_instance_stats.json"] = text(stats)
            site.bucket[f"{where}/instances.json"] = text(instances)
            site.bucket[f"{where}/run_spec.json"] = text(spec)
    site.bucket[f"{base}/releases/v1.20.0/runs_to_run_suites.json"] = text(runs)


def mmlu_pro(site, rng):
    """Fourteen tasks of eight questions, 24 models."""
    import zipfile

    published = {}
    for m, row in enumerate(margins(rng, 24, 112)):
        answers = [
            {"question_id": n, "category": f"task {n % 14}", "answer": "A"}
            | {"pred": "A" if margin > 0 else "B"}
            for n, margin in enumerate(row)
        ]
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(zipfile.ZipInfo("answers.json"), text(answers))
        published[f"eval_results/model_outputs_m{m}_5shots.zip"] = file.getvalue()
    site.github["TIGER-AI-Lab/MMLU-Pro"] = published


def bento(site, rng):
    """MMLU by ten seeds, nine models, five of them by question; 66 tasks of FLAN."""
    base, n = "benchmark-reduction", 12
    published = {f"{base}/length.out": "\n".join([f"{n}"] * len(TASKS)).encode()}
    easy = rng.uniform(0.3, 0.8, len(TASKS))
    near = rng.uniform(0, 0.2, (len(TASKS), len(TASKS)))
    for seed in range(10):
        values = np.clip(easy + near + rng.normal(0, 0.02, near.shape), 0, 1)
        published[f"{base}/log/csv/acc_{seed}.csv"] = table(TASKS, values)
    flan = [f"flan_{at}" for at in range(66)]
    published[f"{base}/log/csv/neg_loss_flan.csv"] = table(flan, -rng.random((66, 66)))
    released = ("gemma", "llama2_13b", "llama2_7b", "phi2", "phi3", "stablelm", "tinyllama")
    for m, name in enumerate((*released, "gpt2_large", "gpt2_medium")):
        scores = np.clip(easy + 0.03 * m + rng.normal(0, 0.05, len(TASKS)), 0, 1)
        lines = [f"ACC-{task}: {score:.4f}" for task, score in zip(TASKS, scores, strict=True)]
        published[f"{base}/log/benchmark/{name}.out"] = "\n".join([*lines, "ACC-all: 0.5"]).encode()
    for name in ("llama_13b_5", "llama_7b_5", "phi2", "gpt2-large", "gpt2-medium"):
        answers = {
            task: {"pred_answers": rng.choice([*"ABCD"], 5 * n, p=(0.5, 0.2, 0.2, 0.1)).tolist()}
            | {"gold_answers": ["A"] * 5 * n}
            for task in TASKS
        }
        published[f"{base}/log/benchmark/run_results_{name}.json"] = text(answers)
    site.github["tianyi-lab/BenTo"] = published


def table(columns, rows):
    lines = [",".join(columns), *(",".join(f"{value:.5f}" for value in row) for row in rows)]
    return "\n".join(lines).encode()


def open_llm_2(site, rng):
    """MATH and MuSR, 60 models of six families."""
    answers = (margins(rng, 60, 1650) > 0).astype(float)
    names = [f"lab/{FAMILIES[m % len(FAMILIES)]}{m}" for m in range(len(answers))]
    more = (margins(rng, 1, 756) > 0).astype(float)
    tables = {"openllm_math": answers[:, :894], "musr": np.vstack([more, answers[:, 894:]])}
    lists = {"openllm_math_models": names, "musr_models": ["lab/other", *names]}
    named = (PAPERS / "models/arc.txt").read_text(encoding="utf-8").splitlines()
    tables["arc_challenge"] = (margins(rng, len(named), 110) > 0).astype(float)
    lists["arc_challenge_models"] = [f"lab/{name}" for name in named]
    site.github["socialfoundations/benchmark-prediction"] = {
        f"data/scores/{name}.jbl": dumped(joblib.dump, values)
        for name, values in {**tables, **lists}.items()
    }


def disco(site, rng):
    """Estimates of eight targets and their errors, five runs of each method."""
    kinds = [f"high-disagreement{some}" for some in ("", "@2", "+nonstratified")]
    methods = ["random_naive", "random_Ridge_10"]
    methods += [f"{kind}_gpirt" for kind in ("random", "anchor", "anchor-irt")]
    methods += [
        f"{kind}_{regressor}"
        for kind in ("random", *kinds)
        for regressor in ("KNN", "RandomForestRegressor_100")
    ]
    published = {}
    for benchmark in ("mmlu_fields", "hellaswag", "winogrande", "arc"):
        full, ends = rng.uniform(0.3, 0.8, 8), "compare_with_irt70"
        ends = ends if benchmark == "mmlu_fields" else "best_64"
        said = {name: full[:, None] + rng.normal(0, 0.02, (8, 5)) for name in methods}
        off = {name: np.abs(one - full[:, None]) for name, one in said.items()}
        for kind, values in (("accs", said), ("results", off)):
            of = {
                at: {100: {name: {benchmark: one[at].tolist()} for name, one in values.items()}}
                for at in range(8)
            }
            name = f"{kind}_{benchmark}_split-noniid_iterations-5_disagreement_{ends}.pickle"
            published[f"results/{name}"] = pickle.dumps(of)
    site.github["arubique/disco-public"] = published


def mmlu_logits(site, rng):
    """24 checkpoints with three prompts, 18 questions of each task."""
    n = 18 * len(TASKS)
    right = [at % 4 for at in range(n)]
    published = {}
    for checkpoint, margin in enumerate(margins(rng, 24, n)):
        for prompt in ("base", "shared", "task"):
            logits = rng.normal(-1, 0.3, (n, 6))
            logits[np.arange(n), right] = margin + rng.normal(0, 0.3, n)
            rows = [
                {"id": at, "logits_options": row.astype(np.float32)}
                for at, row in enumerate(logits)
            ]
            name = f"outputs_base/Net-{checkpoint}b_mmlu_10k_{prompt}_icl1.pkl"
            published[name] = pickle.dumps(rows)
    site.github["smartyfh/LLM-Uncertainty-Bench"] = published
    questions = [
        {"id": at, "question": f"Which, {at}?", "answer": f"{'abcd'[right[at]]}{at}"}
        for at in range(n)
    ]
    site.github["alexandru-mihai-94/llm_uncertainty_estimation"] = {
        "llm-uncertainty-mwe/data/mmlu_10k_answers.json": text(questions)
    }
    lines = [f'"Which, {at}?",a{at},b{at},c{at},d{at},{"ABCD"[right[at]]}' for at in range(n)]
    site.github["chujiezheng/LLM-MCQ-Bias"] = {
        f"code/data_mmlu/test/{task}_test.csv": "\n".join(lines[at :: len(TASKS)]).encode()
        for at, task in enumerate(TASKS)
    }
