"""What is known about real tables is found in them, with nothing tuned to find it."""

import re

import pytest

from fewbench.checks import audit
from fewbench.checks.duplicates import kinship

pytestmark = pytest.mark.slow


def pairs(groups):
    return {frozenset((a, b)) for group in groups for a in group for b in group if a != b}


def test_openllm_duplicates(real):
    table = real("openllm2_math_musr")
    found = audit(table)
    twice = found.of_kind("same-name")
    assert len(twice.groups) == 19
    assert all(name.endswith("#2") for name in twice.spare)
    assert {frozenset(g) for g in found.of_kind("identical").groups} == {
        frozenset(("mistral-community/Mistral-7B-v0.2", "mistralai/Mistral-7B-v0.3")),
        frozenset(("mistral-community/mixtral-8x22B-v0.3", "mistralai/Mixtral-8x22B-v0.1")),
    }
    together = pairs(found.alike)
    for one, other in (
        ("mlabonne/Daredevil-8B", "mlabonne/NeuralDaredevil-8B-abliterated"),
        ("argilla/notux-8x7b-v1", "mistralai/Mixtral-8x7B-Instruct-v0.1"),
        ("meta-llama/Meta-Llama-3-8B", "meta-llama/Llama-3.1-8B"),
        ("gpt2", "openai-community/gpt2"),
    ):
        assert frozenset((one, other)) in together
    assert 90 < kinship(table).distinct < 180
    assert len(found.of_kind("constant").ids) == 129


def test_prompts_of_a_checkpoint_are_near_duplicates(real):
    """102 pairs of prompts of one checkpoint and template; pairs of unlike base models are wrong.

    Models that say one option whatever the question are alike without being kin, and are named
    by findings of their own.
    """
    table = real("llmub_mmlu")
    found = audit(table)
    near = pairs(found.of_kind("near-duplicates").groups)
    names = [name for group in found.of_kind("near-duplicates").groups for name in group]
    assert len(names) > 90

    def run(name):
        return name.rpartition("|")[0]

    def base(name):
        return re.sub(r"-(chat|instruct|hf|base).*", "", name.split("|")[0], flags=re.IGNORECASE)

    prompts = sum(len({run(name) for name in pair}) == 1 for pair in near)
    assert prompts >= 80
    odd = {*found.of_kind("one-option").ids, *found.of_kind("unlike-all").ids}
    sound = [pair for pair in near if not pair & odd]
    assert len(sound) > 90
    assert all(len({base(name) for name in pair}) == 1 for pair in sound)
    assert 25 <= kinship(table).distinct <= 45  # 25 checkpoints, 34 with their templates
    assert found.table["independent"] == 25  # its families


def test_gaps_and_options_of_mmlu_pro(real):
    table = real("mmlu_pro_32")
    found = audit(table)
    assert "DeepSeek-Coder-V2 lacks most: 14% of the items" in found.of_kind("missing").what
    what = found.of_kind("missing-not-at-random").what
    assert "DeepSeek-Coder-V2 lacks 85% of it" in what
    assert "harder for the others" in what
    assert found.of_kind("unequal-options") is not None
    assert found.of_kind("same-name") is None
    assert found.of_kind("near-duplicates") is None
    assert kinship(table).distinct > 28
