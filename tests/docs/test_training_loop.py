"""The recipes for training loops and trackers, run where their libraries are installed."""

import functools
import importlib.util
import re
from pathlib import Path

import pytest

from fewbench.evaluation import Evaluation

ROOT = Path(__file__).parents[2]
LIBRARIES = {"torch", "transformers", "accelerate", "lm_eval"}
TRACKERS = {"wandb": "wandb", "mlflow": "mlflow", "torch.utils.tensorboard": "tensorboardX"}


def blocks_of(page):
    text = (ROOT / "docs/how-to" / page).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.S)


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("loop", ["trainer", "plain"])
@pytest.mark.skipif(
    not all(map(importlib.util.find_spec, LIBRARIES)), reason=f"needs {sorted(LIBRARIES)}"
)
@pytest.mark.filterwarnings("default")
def test_a_model_is_evaluated_while_it_trains_and_trains_as_without(loop, tmp_path, monkeypatch):
    import torch
    from lm_eval.tasks import TaskManager
    from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

    alone = functools.partialmethod(TaskManager.__init__, include_defaults=False)
    monkeypatch.setattr(TaskManager, "__init__", alone)  # lm-eval's own take seconds to list
    monkeypatch.chdir(tmp_path)
    script("make_tiny_lm").make_tiny_lm(tmp_path / "tiny")
    script("make_runs").write_tasks(tmp_path, 6)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "tiny")
    there = f'"--include_path", {str(tmp_path / "tasks")!r}, "--tasks", "made_words,made_order"'
    first, own = (
        block.replace('"--tasks", "gsm8k"', there).replace("100,", "4,").replace("500", "2")
        for block in blocks_of("training-loop.md")
    )
    batch = tokenizer("one two three", return_tensors="pt")
    row = {name: value[0] for name, value in batch.items()} | {"labels": batch["input_ids"][0]}

    def train(is_evaluated):
        model = AutoModelForCausalLM.from_pretrained(tmp_path / "tiny")
        names: dict = {}
        exec(compile(first, "training-loop.md", "exec"), names)
        torch.manual_seed(3)
        if loop == "trainer":
            how = TrainingArguments(
                "out",
                max_steps=4,
                report_to=[],
                save_strategy="no",
                use_cpu=True,
                disable_tqdm=True,
            )
            callbacks = [names["EvaluateOften"]()] if is_evaluated else []
            Trainer(
                model, how, train_dataset=[row] * 8, processing_class=tokenizer, callbacks=callbacks
            ).train()
        else:
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            batches = [{name: value[None] for name, value in row.items()}] * 4
            names |= {"optimizer": optimizer, "batches": batches, "tokenizer": tokenizer}
            names |= {"model": model.train()}
            code = own if is_evaluated else own.replace("% 2 == 0", "< 0")
            exec(compile(code, "training-loop.md", "exec"), names)
        return torch.cat([weights.detach().flatten() for weights in model.parameters()])

    assert torch.equal(train(True), train(False))
    evaluation = Evaluation.open(tmp_path / "follow")
    assert evaluation.targets == ("step-2", "step-4")
    assert [len(evaluation.record.answered(name)) for name in evaluation.targets] == [4, 4]


@pytest.mark.parametrize("name", TRACKERS)
@pytest.mark.filterwarnings("default")
def test_trackers_take_what_is_measured(name, tmp_path, monkeypatch):
    library = TRACKERS[name]
    pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path}/mlruns")
    ids = [f"q{n}" for n in range(100)]
    Path("items.csv").write_text("\n".join(["id", *ids]) + "\n")
    names = {"run_my_model": lambda item: float(int(item[1:]) % 3 != 0)}
    first, *others = blocks_of("trackers.md")
    (block,) = [block for block in others if name in block]
    exec(compile(first, "trackers.md", "exec"), names)
    exec(compile(block.replace(name, library), "trackers.md", "exec"), names)
    written = {
        path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*") if path.is_file()
    }
    assert written & {"wandb", "mlruns", "logs"}
