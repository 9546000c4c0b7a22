"""Names that differ only in a step, epoch or seed are one family; sizes and versions are not."""

from pathlib import Path

import numpy as np
import pytest

from fewbench.readers import import_results
from fewbench.scores import from_arrays
from fewbench.scores.families import families, families_of, models_in_words, runs_note

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


@pytest.mark.parametrize(
    ("names", "family"),
    [
        (["A/step-200", "A/step-4k"], "A"),
        (["pythia-160m-step1000", "pythia-160m-step143000", "pythia-160m"], "pythia-160m"),
        (["ORG/m (revision=step1000)", "ORG/m (revision=step2000)"], "ORG/m"),
        (["out/checkpoint-500", "out/checkpoint-1000", "out/checkpoint-final"], "out"),
        (["OLMo-7B step1000-tokens4B", "OLMo-7B step2000-tokens8B"], "OLMo-7B"),
        (["m_global_step10", "m_global_step20"], "m"),
        (["sft-epoch=1.5", "sft-Epoch-2"], "sft"),
        (["base-seed0", "base-seed-1", "base_random_seed_2"], "base"),
        (["base-seed1-step10", "base-seed2-step20"], "base"),
        (["step-1000", "step-2000"], "run"),
        (["agent#1", "agent#run2"], "agent"),
    ],
)
def test_models_of_one_training_run(names, family):
    assert families([*names, "other"]) == [family] * len(names) + [""]


@pytest.mark.parametrize(
    "names",
    [
        ["llama-7b", "llama-70b"],
        ["vicuna-7b-v1.1", "vicuna-7b-v1.3"],
        ["Qwen2-7B", "Qwen2.5-7B", "Qwen2-7B-Instruct"],
        ["gpt-4-0613", "gpt-4-1106", "gpt-4-0125"],
        ["step-3.5-flash", "step-3.6-flash"],
        ["doubao-seed-1-6", "doubao-seed-1-8"],
        ["Seed1.5-VL", "Seed1.6-VL"],
        ["A/step-100", "B/step-100"],
        ["model-1", "model-2"],
        ["llama-final", "llama-best"],
        ["misstep-1", "misstep-2"],
    ],
)
def test_sizes_versions_dates_and_numbers_are_no_steps(names):
    assert families(names) == [""] * len(names)


def test_a_stated_family_counts_and_takes_in_its_run():
    names = ["A/step-1", "A/step-2", "A/step-3", "b"]
    assert families(names, ["", "", "", " mine "]) == ["A", "A", "A", "mine"]
    assert families(names, ["mine", "", "", ""]) == ["mine", "mine", "mine", ""]
    assert families(names, ["x", "y", "", ""]) == ["x", "y", "A", ""]


def test_a_table_says_how_many_runs_its_models_are_of():
    def table(names, **more):
        return from_arrays(np.eye(len(names)), models=names, **more)

    runs = ["A/step-1", "A/step-2", "B/step-1", "B/step-2"]
    assert models_in_words(table(runs)) == "4 models of 2 training runs"
    assert models_in_words(table([*runs, "c"])) == "5 models of 3 families"
    assert models_in_words(table(runs, families=["x", "x", "y", "z"])) == "4 models of 3 families"
    assert models_in_words(table(["a", "b"])) == "2 models"
    assert "A (2 models), B (2 models)" in runs_note(table(runs))[0]
    assert runs_note(table(["a", "b"])) == []
    assert runs_note(table(runs, families=["x", "x", "y", "z"])) == []


@pytest.mark.skipif(not DATA.exists(), reason="the real tables are not beside the checkout")
@pytest.mark.parametrize("name", ["openllm2_math_musr", "alpaca_eval_58", "training_runs"])
def test_real_names(name):
    """Of 548 names, 43 checkpoints and 38 that appear twice (`NAME#2`)."""
    scores = import_results(DATA / f"{name}.npz").scores
    named = families_of(scores)
    if name == "training_runs":
        expected = [model.partition("/")[0] for model in scores.model_ids]
    else:
        twice = {model.removesuffix("#2") for model in scores.model_ids if model.endswith("#2")}
        expected = [
            model.removesuffix("#2") if model.removesuffix("#2") in twice else ""
            for model in scores.model_ids
        ]
    assert named == expected
