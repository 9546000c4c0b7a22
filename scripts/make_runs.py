"""Make real runs of harnesses: made-up models answer made-up questions, without a network.

    python scripts/make_runs.py lm-eval FOLDER --models 24 --items 60

writes FOLDER/tasks (for --include_path), FOLDER/data, and the logs of every model in FOLDER/logs.
lm-eval itself runs the models, so that the logs are its own. The same seed gives the same answers.

Questions and who answers them right are the same for every harness: `questions`, `is_right`.
"""

import argparse
import hashlib
import json
import math
import os
import random
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")

TASKS = ("made_sums", "made_order", "made_words")
"""Sums are answered in free text; the others are multiple choice, with examples in the prompt."""
WORDS = (
    *("amber", "basil", "cedar", "delta", "ember", "fjord", "grove", "heron", "islet", "jolly"),
    *("kayak", "lemon", "maple", "north", "olive", "pearl", "quilt", "river", "stone", "tulip"),
)
N_EXAMPLES = 12  # to draw the examples of a prompt from

CHOICE = """\
task: {task}
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}/{task}.jsonl
    dev: {data}/{task}_dev.jsonl
  cache_dir: {cache}
output_type: multiple_choice
test_split: test
fewshot_split: dev
num_fewshot: 2
fewshot_config:
  sampler: {sampler}
doc_to_text: "Question: {{{{question}}}}\\nAnswer:"
doc_to_choice: choices
doc_to_target: gold
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
  - metric: acc_norm
    aggregation: mean
    higher_is_better: true
metadata:
  version: 1.0
"""
SUMS = """\
task: made_sums
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}/made_sums.jsonl
  cache_dir: {cache}
output_type: generate_until
test_split: test
num_fewshot: 0
doc_to_text: "Question: {{{{question}}}}\\nAnswer:"
doc_to_target: answer
generation_kwargs:
  until: ["\\n\\n"]
  do_sample: false
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
filter_list:
  - name: strict-match
    filter:
      - function: regex
        regex_pattern: "#### (-?[0-9]+)"
      - function: take_first
  - name: flexible-extract
    filter:
      - function: regex
        group_select: -1
        regex_pattern: "(-?[0-9]+)"
      - function: take_first
metadata:
  version: 1.0
"""
GROUP = """\
group: made_choice
task: [made_order, made_words]
aggregate_metric_list:
  - metric: acc
    weight_by_size: true
metadata:
  version: 1.0
"""


def questions(n_items: int, seed: int = 0) -> dict[str, list[dict]]:
    """Return the documents of every task; the tasks have about n, n/2 and n/4 items."""
    rng = random.Random(f"questions {seed}")
    sums = []
    for i in range(n_items):
        a, b = rng.randrange(10, 1000), rng.randrange(10, 1000)
        sums.append({"id": f"sum-{i}", "question": f"What is {a} + {b}?", "answer": str(a + b)})
    orders = []
    for i in range(max(2, n_items // 2) + N_EXAMPLES):
        choices = [str(one) for one in rng.sample(range(1000), 4)]
        gold = choices.index(max(choices, key=int))
        text = f"Which of {', '.join(choices)} is the largest number?"
        orders.append({"id": f"order-{i}", "question": text, "choices": choices, "gold": gold})
    words = []
    for i in range(max(2, n_items // 4) + N_EXAMPLES):
        choices = rng.sample(WORDS, 3)
        gold = choices.index(min(choices))
        text = f"Which of {', '.join(choices)} comes first in a dictionary? ({i})"
        words.append({"id": f"word-{i}", "question": text, "choices": choices, "gold": gold})
    return {"made_sums": sums, "made_order": orders, "made_words": words}


def split(documents: list[dict], task: str) -> tuple[list[dict], list[dict]]:
    """Return the documents to run, and those for examples."""
    return (
        (documents, [])
        if task == "made_sums"
        else (documents[:-N_EXAMPLES], documents[-N_EXAMPLES:])
    )


def uniform(*parts: object) -> float:
    """Return a number in [0, 1) that depends on the parts alone."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def is_right(model: str, item: str, seed: int = 0) -> bool:
    """Whether a made-up model is right: models differ in skill, items in difficulty."""
    skill = 4 * uniform("skill", model, seed) - 1.5
    difficulty = 4 * uniform("difficulty", item, seed) - 2
    return uniform("answer", model, item, seed) < 1 / (1 + math.exp(2 * (difficulty - skill)))


def models(n: int) -> list[str]:
    """Return the names of made-up models."""
    return [f"made/model-{i:02d}" for i in range(n)]


# -- lm-eval ---------------------------------------------------------------------------------


def write_tasks(folder: Path, n_items: int, seed: int = 0) -> Path:
    """Write tasks of lm-eval and their data below a folder; return the folder of the tasks."""
    tasks, data = (folder / "tasks").resolve(), (folder / "data").resolve()
    for one in (tasks, data):
        one.mkdir(parents=True, exist_ok=True)
    for task, documents in questions(n_items, seed).items():
        for name, part in zip((task, f"{task}_dev"), split(documents, task), strict=True):
            if part:
                write_documents(data / f"{name}.jsonl", part)
    cache = (folder / "cache").resolve()
    for task, sampler in (("made_order", "default"), ("made_words", "first_n")):
        text = CHOICE.format(task=task, data=data, cache=cache, sampler=sampler)
        (tasks / f"{task}.yaml").write_text(text, encoding="utf-8")
    (tasks / "made_sums.yaml").write_text(SUMS.format(data=data, cache=cache), encoding="utf-8")
    (tasks / "_made_choice.yaml").write_text(GROUP, encoding="utf-8")
    return tasks


def write_documents(path: Path, documents: list[dict]) -> None:
    """Write a file of documents."""
    lines = [json.dumps(one, ensure_ascii=False) + "\n" for one in documents]
    path.write_text("".join(lines), encoding="utf-8")


def scripted(model: str, seed: int = 0):
    """Return a model of lm-eval that answers by `is_right`, and lists its requests."""
    from lm_eval.api.model import LM

    class Scripted(LM):
        def __init__(self) -> None:
            super().__init__()
            self.asked: list[tuple[str, str, str]] = []  # task, document, prompt

        def _is_right(self, request) -> bool:
            self.asked.append((request.task_name, request.doc["id"], request.args[0]))
            return is_right(model, request.doc["id"], seed)

        def loglikelihood(self, requests, disable_tqdm=False):
            said = []
            for request in requests:
                doc = request.doc
                right = self._is_right(request)
                chosen = doc["gold"] if right else (doc["gold"] + 1) % len(doc["choices"])
                value = -1.0 if request.idx == chosen else -2.0
                said.append((value - uniform(model, doc["id"], request.idx) / 2, False))
            return said

        def generate_until(self, requests, disable_tqdm=False):
            return [
                f"#### {int(one.doc['answer']) + (0 if self._is_right(one) else 7)}"
                for one in requests
            ]

        def loglikelihood_rolling(self, requests, disable_tqdm=False):
            return [0.0 for _ in requests]

    return Scripted()


def run_lm_eval(
    folder: Path,
    names: list[str],
    n_items: int,
    seed: int = 0,
    tasks: tuple[str, ...] = ("made_sums", "made_choice"),
) -> Path:
    """Run made-up models in full with lm-eval; return the folder of their logs."""
    from lm_eval import simple_evaluate
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    manager = TaskManager(
        include_path=str(write_tasks(folder, n_items, seed)), include_defaults=False
    )
    logs = folder / "logs"
    for name in names:
        tracker = EvaluationTracker(output_path=str(logs))
        results = simple_evaluate(
            model=scripted(name, seed),
            model_args=f"pretrained={name}",
            tasks=list(tasks),
            task_manager=manager,
            evaluation_tracker=tracker,
            bootstrap_iters=0,
        )
        save_logs(tracker, results)
    return logs


def save_logs(tracker: Any, results: dict[str, Any]) -> None:
    """Write what a run found by an EvaluationTracker, as lm-eval itself does."""
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    for task in results["configs"]:
        tracker.save_results_samples(task_name=task, samples=samples[task])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("harness", choices=["lm-eval"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", type=int, default=24)
    parser.add_argument("--items", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    os.environ.setdefault("TQDM_DISABLE", "1")
    made = run_lm_eval(given.folder, models(given.models), given.items, given.seed)
    print(f"logs of {given.models} models: {made}")


if __name__ == "__main__":
    main()
