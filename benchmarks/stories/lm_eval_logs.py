"""Logs of lm-eval, as its samples files are, with and without faults."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .worlds import Questions

STAMP = "2026-01-01T10-00-00.000001"
Rows = list[dict[str, Any]]
Damage = Callable[[Rows, np.random.Generator], Rows]


def _row(at: int, item: str, score: float) -> dict[str, Any]:
    doc = {"question": f"Which digit is {item}?", "choices": ["yes", "no"], "answer": 0}
    values = ["-0.5", "-1.5"] if score else ["-1.5", "-0.5"]
    prompt = f"Question: {doc['question']}\nAnswer:"
    texts = {
        "doc_hash": json.dumps(doc, indent=2, ensure_ascii=False), "prompt_hash": prompt,
        "target_hash": "0",
    }  # fmt: skip
    return {
        "doc_id": at,
        "doc": doc,
        "target": "0",
        "arguments": {
            f"gen_args_{n}": {"arg_0": prompt, "arg_1": f" {choice}"}
            for n, choice in enumerate(doc["choices"])
        },
        "resps": [[[value, "False"]] for value in values],
        "filtered_resps": [[value, "False"] for value in values],
        "filter": "none",
        "metrics": ["acc"],
        "acc": score,
    } | {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}


def _write(model: str, rows: Rows, total: int) -> None:
    place = Path("logs", model.replace("/", "__"))
    place.mkdir(parents=True)
    with (place / f"samples_digits_{STAMP}.jsonl").open("w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    scores = [row["acc"] for row in rows]
    results = {
        "results": {"digits": {"alias": "digits", "acc,none": float(np.mean(scores))}},
        "configs": {
            "digits": {
                "task": "digits", "output_type": "multiple_choice", "num_fewshot": 0,
                "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
            }
        },
        "versions": {"digits": 1.0}, "n-shot": {"digits": 0},
        "higher_is_better": {"digits": {"acc": True}},
        "n-samples": {"digits": {"original": total, "effective": len(rows)}},
        "config": {"model": "hf", "model_args": {"pretrained": model}}, "model_name": model,
        "model_source": "hf", "lm_eval_version": "0.4.9",
    }  # fmt: skip
    (place / f"results_{STAMP}.json").write_text(json.dumps(results))


def _damaged(damage: Damage) -> Callable[..., None]:
    """Return what writes the logs of all models, with the first model's rows damaged."""

    def write(
        questions: Questions, scores: dict[str, np.ndarray], rng: np.random.Generator
    ) -> None:
        for at, (model, row) in enumerate(scores.items()):
            rows = [
                _row(place, item, score)
                for place, (item, score) in enumerate(zip(questions.ids, row.tolist(), strict=True))
            ]
            _write(model, rows if at else damage(rows, rng), len(rows))

    return write


def _shuffled(rows: Rows, rng: np.random.Generator) -> Rows:
    order = rng.permutation(len(rows))
    return [rows[at] | {"doc_id": place} for place, at in enumerate(order)]


def _with_nan(rows: Rows, rng: np.random.Generator) -> Rows:
    """NaN log-likelihoods: lm-eval takes the first option for the answer, which is right here."""
    broken = rng.random(len(rows)) < 0.3
    nan = [["nan", "False"], ["nan", "False"]]
    more = {"resps": [[pair] for pair in nan], "filtered_resps": nan, "acc": 1.0}
    return [row | more if at else row for row, at in zip(rows, broken, strict=True)]


def _other_ids(rows: Rows, _: np.random.Generator) -> Rows:
    """The same texts in a document with an additional field, which changes the hash of the
    document."""
    return [
        row
        | {
            "doc": row["doc"] | {"id": f"x{row['doc_id']}"},
            "doc_hash": hashlib.sha256(f"x{row['doc_id']}".encode()).hexdigest(),
        }
        for row in rows
    ]


LM_EVAL: dict[str, Callable[..., None]] = {
    "no fault": _damaged(lambda rows, _: rows),
    "documents in another order": _damaged(_shuffled),
    "--limit 120": _damaged(lambda rows, _: rows[:120]),
    "log-likelihoods that are NaN": _damaged(_with_nan),
    "the same texts with other ids": _damaged(_other_ids),
    "a cut file": _damaged(lambda rows, _: rows[:-30]),
}
"""What writes the logs: first without a fault."""
