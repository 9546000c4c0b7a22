"""A training run that lives on, in lm-eval: a task is added, other scores are asked for, a second
machine runs checkpoints, and another team's models become source models.
"""

import functools
import math
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, redirect_stderr
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from .found import LOST, WRONG, Found, estimates_of, is_wrong
from .shell import fewbench, folder

STEPS, BUDGET, SIZES = 40, 60, (220, 160, 120)
OLD, NEW = ("first", "second"), "third"
TASK = """\
task: {task}
dataset_path: json
dataset_kwargs:
  data_files: {{test: {data}}}
  cache_dir: {cache}
output_type: multiple_choice
test_split: test
num_fewshot: 0
doc_to_text: "{{{{question}}}}"
doc_to_choice: choices
doc_to_target: gold
metric_list:
  - {{metric: acc, aggregation: mean, higher_is_better: true}}
  - {{metric: acc_norm, aggregation: mean, higher_is_better: true}}
metadata: {{version: 1.0}}
"""


class Documents:
    """Made-up questions of three tasks, and how every model rates their options.

    Parameters
    ----------
    world : int
    """

    def __init__(self, world: int) -> None:
        rng = np.random.default_rng([90, world])
        self.world, self.documents = world, dict[str, list[dict[str, Any]]]()
        for at, task in enumerate((*OLD, NEW)):
            self.documents[task] = [
                {
                    "question": f"{task} {n}?",
                    "choices": ["x" * int(rng.integers(3, 9)) + f"{n}{o}" for o in range(3)],
                    "gold": int(rng.integers(3)),
                    "hard": float(rng.normal(0.6 * at, 1.0)),
                    "n": n,
                }
                for n in range(SIZES[at])
            ]

    def write(self, place: Path) -> None:
        """Write lm-eval's tasks."""
        from json import dumps

        for task, documents in self.documents.items():
            data = place / f"{task}.jsonl"
            data.write_text("".join(dumps(document) + "\n" for document in documents))
            text = TASK.format(task=task, data=data.resolve(), cache=(place / "cache").resolve())
            (place / f"{task}.yaml").write_text(text)

    def rated(self, model: str, skill: float, task: str, document: dict[str, Any]) -> np.ndarray:
        """Return the log-likelihoods of a question's options."""
        key = [self.world, sum(map(ord, model)), sum(map(ord, task)), document["n"]]
        rng = np.random.default_rng(key)
        right = rng.random() < 1 / (1 + math.exp(1.7 * (document["hard"] - skill)))
        chosen = document["gold"] if right else (document["gold"] + 1) % 3
        return -6.0 - 2 * rng.random(3) + 2.5 * (np.arange(3) == chosen)

    def right(self, model: str, skill: float, tasks: tuple[str, ...], metric: str) -> np.ndarray:
        """Return whether a model is right, by task: an array for each of them."""
        scores = []
        for task in tasks:
            of_task = []
            for document in self.documents[task]:
                value = self.rated(model, skill, task, document)
                if metric == "acc_norm":
                    value = value / [len(choice) for choice in document["choices"]]
                of_task.append(float(value.argmax() == document["gold"]))
            scores.append(np.array(of_task))
        return scores

    def model(self, name: str, skill: float) -> Any:
        """Return a model for lm-eval that lists the requests it received."""
        from lm_eval.api.model import LM

        rated = self.rated

        class Scripted(LM):
            def __init__(self) -> None:
                super().__init__()
                self.asked: list[tuple[str, int]] = []

            def loglikelihood(self, requests: Any, disable_tqdm: bool = False) -> Any:
                self.asked += [(r.task_name, r.doc["n"]) for r in requests if r.idx == 0]
                return [
                    (float(rated(name, skill, r.task_name, r.doc)[r.idx]), False) for r in requests
                ]

            def generate_until(self, requests: Any, disable_tqdm: bool = False) -> Any:
                return ["" for _ in requests]

            loglikelihood_rolling = generate_until

        return Scripted()


def living(worlds: int, steps: int = STEPS) -> Iterator[Found]:
    """Yield what the estimates of a run are worth, whatever becomes of its benchmark."""
    for world in range(worlds):
        with ExitStack() as stack:
            stack.enter_context(folder())
            stack.enter_context(redirect_stderr(stack.enter_context(Path(os.devnull).open("w"))))
            stack.enter_context(_own_tasks_alone())
            yield from _told(world, steps)


def _told(world: int, steps: int) -> Iterator[Found]:
    documents, models = Documents(world), dict[str, Any]()
    place = Path("tasks")
    place.mkdir()
    documents.write(place)
    added, norm, macro, second, team = (round(steps * share) for share in _SHARES)
    skills = {f"step-{at}": -1.0 + 2.2 * (at / steps) ** 0.5 for at in range(1, steps + 1)}
    tasks = OLD

    def run(name: str, where: str = "run", scores: Any = None) -> Any:
        from fewbench.runners.lm_eval.runner import run_lm_eval

        model = models.setdefault(name, documents.model(name, skills[name]))
        arguments = ["--include_path", str(place)]
        if scores is None:
            arguments += ["--tasks", ",".join(tasks)]
        return run_lm_eval(
            scores, "auto", BUDGET, arguments, models={name: model}, folder=where, seed=world
        ).estimates[name]

    def truth(name: str, metric: str = "acc", average: str = "micro") -> float:
        by_task = documents.right(name, skills[name], tasks, metric)
        scores = [np.mean(of) for of in by_task]
        return float(np.mean(scores) if average == "macro" else np.mean(np.concatenate(by_task)))

    def asked(case: str, *words: str, **how: str) -> Iterator[Found]:
        said = fewbench("estimate", "run", "--json", *words).json
        for name, estimate in said.items():
            yield from estimates_of(case, world, estimate, truth(name, **how))

    table = None
    for at, name in enumerate(skills, start=1):
        if at == added:
            tasks = (*OLD, NEW)
        where = "run" if at < second else "machine-2/run"
        if at == second:
            shutil.copytree("run", where)
        if at == team:
            joined = fewbench("add", "machine-2/run", "-o", "run")
            assert not joined.code, joined.err
            table = _team(documents, tasks)
        where = "run" if at >= team else where
        estimate = run(name, where, table if at == team else None)
        case = "first tasks" if at < added else "a task more"
        case = "source models of another team" if at >= team else case
        yield from estimates_of(case, world, estimate.model_dump(), truth(name))
        if at == added:
            for earlier in list(skills)[: at - 1]:
                again = run(earlier)
                yield from estimates_of(
                    "earlier checkpoints, a task more", world, again.model_dump(), truth(earlier)
                )
        if at == norm:
            yield from asked("acc_norm of all", "--metric", "acc_norm", metric="acc_norm")
        if at == macro:
            yield from asked("macro of all", "--average", "macro", average="macro")
    yield from asked("all at the end")
    changes = fewbench("track", "run", "--json").json["changes"]
    wrong = [is_wrong(of["verdict"], truth(of["after"]) - truth(of["before"])) for of in changes]
    yield Found("changes of the run", WRONG, max(wrong), world)
    twice = [len(model.asked) - len(set(model.asked)) for model in models.values()]
    ran = sum(len(model.asked) for model in models.values())
    yield Found("answers", LOST, sum(twice) / ran, world)


_SHARES = (0.25, 0.5, 0.625, 0.75, 0.875)
"""When the task is added, acc_norm and macro are asked for, machine and sources join."""


def _team(documents: Documents, tasks: tuple[str, ...]) -> Any:
    """Return another team's scores: 24 models that ran all items, by the ids of the run."""
    from fewbench.evaluation import Evaluation
    from fewbench.scores import from_arrays

    items = Evaluation.open("run").scores.items
    rng = np.random.default_rng([91, documents.world])
    rows = []
    for at in range(24):
        by_task = documents.right(f"team-{at}", float(rng.normal(0.4, 0.8)), tasks, "acc")
        of = {(task, n): score for task, scores in zip(tasks, by_task, strict=True)
              for n, score in enumerate(scores)}  # fmt: skip
        rows.append([of[str(task), int(n)] for task, n in zip(items["task"], items["doc_id"],
                                                              strict=True)])  # fmt: skip
    made = from_arrays(np.array(rows), models=[f"team-{at}" for at in range(24)],
                       items=list(items.index), tasks=list(items["task"]))  # fmt: skip
    return made.changed(items=items.drop(columns="cohort", errors="ignore"))


def _own_tasks_alone() -> Any:
    """lm-eval's own tasks take seconds to list."""
    from lm_eval.tasks import TaskManager

    alone: Callable[..., None] = functools.partialmethod(
        TaskManager.__init__, include_defaults=False
    )
    return patch.object(TaskManager, "__init__", alone)
