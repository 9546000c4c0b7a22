"""Evaluate scripted models with the real Inspect, offline: source logs, scores, and a run.

    python scripts/inspect_zoo.py zoo

writes the full runs of 20 models to zoo/logs, imports them to zoo/scores.parquet, and runs two more
models on chosen samples only (zoo/run). The full scores of the two are printed for comparison. Same
files, same answers: who is right where depends on the names of models and questions.
"""

import importlib.util
import shutil
import sys
from pathlib import Path

import inspect_ai

import fewbench
from fewbench.runners.inspect.runner import run_inspect

QUIZ = Path(__file__).parents[1] / "tests" / "runners" / "inspect_quiz.py"
SOURCES = [f"scripted/source{at:02}-{at}" for at in range(20)]
TARGETS = ["scripted/weak-5", "scripted/strong-17"]


def evaluate(models: list[str], folder: Path) -> None:
    """Run all samples of all tasks."""
    inspect_ai.eval(
        [f"{QUIZ}@quiz", f"{QUIZ}@more"],
        model=models,
        max_tasks=4,
        log_dir=str(folder),
        log_realtime=False,
        display="none",
    )


def main(out: Path) -> None:
    """Write all files."""
    spec = importlib.util.spec_from_file_location("inspect_quiz", QUIZ)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))  # registers the model
    shutil.rmtree(out, ignore_errors=True)
    evaluate(SOURCES, out / "logs")
    scores = fewbench.import_results(out / "logs").scores
    path = fewbench.save_scores(scores, out / "scores.parquet")
    print(scores)
    arguments = [f"{QUIZ}@quiz", f"{QUIZ}@more", "--model", ",".join(TARGETS)]
    found = run_inspect(
        scores, "fewbench", 20, arguments, folder=out / "run", scores_path=path, quiet=True
    )
    print(found)
    evaluate(TARGETS, out / "full")
    full = fewbench.import_results(out / "full").scores
    for name, score in zip(full.model_ids, full.full_scores(), strict=True):
        one = found.estimates[name]
        print(f"{name}: full score {score:.3f}, estimate {one.score:.3f} from 20 items")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
