"""Logs as lm-eval writes them, made up row by row, and a readable file of each other kind."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fewbench.readers import Columns

collect_ignore = ["fixtures"]  # files as harnesses write them, some of them Python
STAMP = "2026-01-01T10-00-00.000001"
LATER = "2026-01-02T10-00-00.000001"


def _sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


class Logs:
    """Writes samples and results files below a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @staticmethod
    def choice(doc_id, doc, likelihoods=(-1.0, -2.0), right=0, options=None, **changes):
        """A multiple-choice row; acc, acc_norm and acc_bytes follow from the log-likelihoods."""
        options = options or [f"option {i}" for i in range(len(likelihoods))]
        row = {
            "doc_id": doc_id,
            "doc": {"question": doc, "choices": options},
            "target": str(right),
            "arguments": {
                f"gen_args_{i}": {"arg_0": f"Question: {doc}\nAnswer:", "arg_1": f" {option}"}
                for i, option in enumerate(options)
            },
            "resps": [[[str(value), "False"]] for value in likelihoods],
            "filtered_resps": [[str(value), "False"] for value in likelihoods],
            "filter": "none",
            "metrics": ["acc"],
            "doc_hash": _sha(doc),
            "prompt_hash": _sha(f"prompt of {doc}"),
            "target_hash": _sha(str(right)),
            "acc": float(np.argmax(likelihoods) == right),
        }
        return Logs.changed(row, changes)

    @staticmethod
    def free(doc_id, doc, score=1.0, **changes):
        """A row of a task with free answers."""
        row = {
            "doc_id": doc_id,
            "doc": {"question": doc},
            "target": "9",
            "arguments": {"gen_args_0": {"arg_0": doc, "arg_1": {"until": ["\n"]}}},
            "resps": [["#### 9"]],
            "filtered_resps": ["9"],
            "filter": "none",
            "metrics": ["exact_match"],
            "doc_hash": _sha(doc),
            "prompt_hash": _sha(f"prompt of {doc}"),
            "target_hash": _sha("9"),
            "exact_match": score,
        }
        return Logs.changed(row, changes)

    @staticmethod
    def changed(row, changes):
        """Set fields; `None` removes one; `scores` replaces the metrics."""
        for metric in row["metrics"] if "scores" in changes else []:
            del row[metric]
        scores = changes.pop("scores", None)
        if scores is not None:
            row |= {"metrics": list(scores)} | scores
        return {key: value for key, value in (row | changes).items() if value is not None}

    def write(
        self,
        model,
        task,
        rows,
        *,
        stamp=STAMP,
        folder="out",
        original=None,
        effective=None,
        results=True,
        higher=True,
        **more,
    ):
        """Write a run; `results` may be False (no file). Returns the model's folder."""
        path = self.root / folder / model.replace("/", "__")
        path.mkdir(parents=True, exist_ok=True)
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (path / f"samples_{task}_{stamp}.jsonl").write_text(lines)
        if results:
            size = len({(row.get("doc_id"), row.get("doc_hash")) for row in rows})
            metrics = rows[0].get("metrics", []) if rows else []
            data = {
                "model_name": model,
                "config": {"model": "hf", "model_args": {"pretrained": model}},
                "n-samples": {task: {"original": original or size, "effective": effective or size}},
                "higher_is_better": {task: dict.fromkeys(metrics, higher)},
                "configs": {task: {"target_delimiter": " "}},
            } | more
            (path / f"results_{stamp}.json").write_text(json.dumps(data))
        return path


@pytest.fixture
def logs(tmp_path):
    return Logs(tmp_path)


def write(table, path):
    """Write a table by the ending of its name."""
    if path.suffix in (".csv", ".tsv"):
        table.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    elif path.suffix == ".parquet":
        table.to_parquet(path, index=False)
    else:
        path.write_text(table.to_json(orient="records", lines=True))
    return path


def whole(folder, ending):
    """A readable file of a kind."""
    path = folder / f"bad{ending}"
    if ending == ".npz":
        np.savez(path, scores=np.eye(2), models=["a", "b"], items=["q", "r"])
        return path, {}
    table = pd.DataFrame({"m": ["a", "a", "b"], "i": ["q", "r", "q"], "s": [1, 0, 0.5]})
    write(table, path)
    return path, {"columns": Columns("m", "i", "s")}
