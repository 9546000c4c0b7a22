"""The bundled scores, and files made of them to try commands on."""

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from fewbench._lazy import pandas as pd
from fewbench.readers.npz import read_npz
from fewbench.scores import Scores, save_scores

EXAMPLE = ("items.csv", "agents.parquet", "scores.parquet", "results.csv", "answer.py")
"""Files of `write_example`."""
TARGETS = {"step-1000": "forest/11", "step-2000": "forest/14", "new-agent": "boosting/14"}
AGENTS, TASKS_OF_AGENTS, PRICE = 15, 120, 5.0
PROGRAM = '''\
"""Stands in for a model: reads items as JSON lines, prints recorded scores as JSON lines."""

import csv
import json
import sys

with open("results.csv") as file:
    recorded = {row["id"]: row for row in csv.DictReader(file)}
for line in sys.stdin:
    asked = json.loads(line)
    score = recorded[asked["item"]][asked["target"]]
    print(json.dumps({"item": asked["item"], "score": float(score)}), flush=True)
'''


def load_zoo() -> Scores:
    """Load the bundled scores: 280 classifiers of 20 families × 1000 items of 5 tasks.

    Examples
    --------
    >>> zoo = load_zoo()
    >>> zoo.n_models, zoo.n_items, zoo.tasks
    (280, 1000, ['clean', 'noisy', 'rotated', 'shifted', 'occluded'])
    """
    return read_npz(zoo_file()).scores


def zoo_file() -> Path:
    """Return the file of the bundled scores."""
    return Path(str(files("fewbench.datasets") / "zoo.npz"))


def write_example(folder: Path) -> None:
    """Write `EXAMPLE` to a folder: real answers of classifiers, as those of models and agents.

    - `items.csv`: the 1,000 items of the bundled benchmark
    - `scores.parquet`: 60 source models of 20 families on all of them
    - `agents.parquet`: 15 source models on 120 of them, at 5 dollars an item
    - `answer.py`: answers as the targets `step-1000`, `step-2000`, `new-agent`, from `results.csv`
    """
    zoo = load_zoo()
    row = {name: at for at, name in enumerate(zoo.model_ids)}
    families = list(dict.fromkeys(zoo.models["family"]))
    sources = zoo.take(models=[row[f"{name}/{n}"] for name in families for n in ("04", "08", "13")])
    held_out = {name.split("/")[0] for name in TARGETS.values()}
    others = [name for name in families if name not in held_out]
    apart = zoo.n_items // TASKS_OF_AGENTS
    agents = zoo.take(
        models=[row[f"{name}/10"] for name in others[:AGENTS]],
        items=range(0, apart * TASKS_OF_AGENTS, apart),
    )
    answers = pd.DataFrame(
        {name: zoo.values[row[model]] for name, model in TARGETS.items()}, zoo.items.index
    )
    folder.mkdir(parents=True, exist_ok=True)
    zoo.items[["task"]].to_csv(folder / "items.csv", index_label="id")
    save_scores(sources, folder / "scores.parquet")
    save_scores(replace(agents, items=agents.items.assign(cost=PRICE)), folder / "agents.parquet")
    answers.to_csv(folder / "results.csv", index_label="id", float_format="%g")
    (folder / "answer.py").write_text(PROGRAM)
