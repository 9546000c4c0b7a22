"""BenTo's released data, built from the files of its authors' repository."""

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from papers.authors import Built, Repository

UNDER = "benchmark-reduction"
FLAN = "neg_loss_flan.csv"
REPOSITORY = Repository(
    "tianyi-lab/BenTo",
    re.compile(
        rf"{UNDER}/(length\.out|log/csv/(acc_\d+|neg_loss_flan)\.csv"
        r"|log/benchmark/(\w+\.out|run_results_[\w-]+\.json))"
    ),
    UNDER,
)
EXAMS = Repository(
    "chujiezheng/LLM-MCQ-Bias",
    re.compile(r"code/data_mmlu/test/.+_test\.csv"),
    "code/data_mmlu/test",
)
ASKED = {
    "llama2_13b": "llama_13b_5",
    "llama2_7b": "llama_7b_5",
    "phi2": "phi2",
    "gpt2_large": "gpt2-large",
    "gpt2_medium": "gpt2-medium",
}
"""Models whose answers to single questions are released, and how their files are named."""
DRAWS = 5
"""Draws of exemplars; the answers to a question follow each other."""
LETTERS = "ABCD"
ACCURACY = re.compile(r"^ACC-(\w+): ([\d.]+)$", re.MULTILINE)


def _numbered(path: Path) -> int:
    return int(path.stem.rpartition("_")[2])


def _matrix(folders: Sequence[Path], path: Path) -> None:
    """Accuracies by seed, source task (row) and target task (column)."""
    (folder,) = folders
    seeds = sorted((folder / "log/csv").glob("acc_*.csv"), key=_numbered)
    tables = [pd.read_csv(file) for file in seeds]
    sizes = [int(line) for line in (folder / "length.out").read_text().split()]
    np.savez_compressed(
        path,
        acc=np.stack([table.to_numpy(np.float64) for table in tables]),
        tasks=np.array(list(tables[0].columns)),
        n_questions=np.array(sizes),
        seeds=np.array([_numbered(file) for file in seeds]),
    )


def _models(folders: Sequence[Path], path: Path) -> None:
    """Accuracies of the released models by task."""
    (folder,) = folders
    rows = {}
    for file in sorted((folder / "log/benchmark").glob("*.out")):
        values = {task: float(value) for task, value in ACCURACY.findall(file.read_text())}
        values.pop("all", None)
        rows[file.stem] = values
    table = pd.DataFrame.from_dict(rows, orient="index")
    table.rename_axis("model").to_csv(path)


def _questions(folders: Sequence[Path], path: Path) -> None:
    """Answers of five models to each question, in five draws of exemplars."""
    (folder,) = folders
    answers = [
        json.loads((folder / f"log/benchmark/run_results_{name}.json").read_text())
        for name in ASKED.values()
    ]
    tasks = list(pd.read_csv(folder / "log/csv/acc_0.csv", nrows=0).columns)
    gold = [_codes(answers[0][task]["gold_answers"])[:, 0] for task in tasks]
    np.savez_compressed(
        path,
        pred=np.stack(
            [
                np.concatenate([_codes(one[task]["pred_answers"]) for task in tasks])
                for one in answers
            ]
        ),
        gold=np.concatenate(gold),
        task_index=np.repeat(np.arange(len(tasks)), [len(part) for part in gold]).astype(np.uint8),
        models=np.array(list(ASKED)),
    )


def _codes(letters: Sequence[str]) -> np.ndarray:
    """Return letters as 0 to 3, 4 for none of them, shape (questions, draws)."""
    codes = [LETTERS.find(letter) if letter in tuple(LETTERS) else 4 for letter in letters]
    return np.array(codes, dtype=np.uint8).reshape(-1, DRAWS)


def _flan(folders: Sequence[Path], path: Path) -> None:
    """The matrix of FLAN's tasks, as it is."""
    path.write_bytes((folders[0] / "log/csv" / FLAN).read_bytes())


def _texts(folders: Sequence[Path], path: Path) -> None:
    """The texts of MMLU's tasks: all questions with their options and right letters."""
    texts = {}
    for file in sorted(folders[0].glob("*_test.csv")):
        with file.open(encoding="utf-8", newline="") as lines:
            cells = [cell for row in csv.reader(lines) for cell in row]
        texts[file.stem.removesuffix("_test")] = "\n".join(cells)
    path.write_text(json.dumps(texts), encoding="utf-8")


BUILT = {
    f"bento/{name}": Built((REPOSITORY,), write)
    for name, write in {
        FLAN: _flan,
        "mmlu_ict.npz": _matrix,
        "mmlu_models.csv": _models,
        "mmlu_questions.npz": _questions,
    }.items()
} | {"bento/mmlu_texts.json": Built((EXAMS,), _texts)}
"""Files that the record reads."""
