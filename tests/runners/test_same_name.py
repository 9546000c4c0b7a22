"""Old answers are not those of another model that has the same name."""

import functools

import pytest
from networks import Network

import fewbench
from fewbench.errors import EstimateWarning, RunError
from fewbench.runners.command import CommandRunner
from fewbench.runners.driving import run_with
from fewbench.runners.model_facts import of_function, of_model, of_weights
from fewbench.testing import simulate

TABLE = simulate(21, 60, seed=1)
SOURCES = TABLE.take(models=range(20))
RIGHT = dict(zip(TABLE.item_ids, TABLE.values[20], strict=True))


def scored(item):
    return RIGHT[item]


def test_a_rerun_of_a_function_warns_and_another_function_is_refused(tmp_path):
    def run(score, **how):
        return fewbench.run(SOURCES, "random", 10, score=score, folder=tmp_path / "r", **how)

    assert not run(scored).reused
    with pytest.warns(EstimateWarning, match="10 answers"):
        again = run(scored)
    assert "warning: nothing was run: 10 answers" in str(again)
    assert "The run took" not in str(again)
    assert "nothing was run" in again.to_frame().loc["scored", "warnings"]
    with pytest.raises(RunError, match=r"scored .* other code"):
        run(lambda item: 0.0, targets=["scored"])
    accepted = run(lambda item: 0.0, targets=["scored"], accept_changes=True)
    assert "it has other code; accepted as the same" in accepted.notes[0]


def test_a_function_is_known_by_its_code_and_the_weights_that_it_uses(tmp_path):
    def of(network, name="a"):
        return lambda item: (RIGHT[item], network, name)[0]

    same, other, renamed = of(Network(0)), of(Network(1)), of(Network(0), "b")
    assert of_function(of(Network(0))) == of_function(same)
    assert of_function(other)["weights"] != of_function(same)["weights"]
    assert of_function(other)["code"] == of_function(same)["code"]
    assert of_function(renamed)["code"] != of_function(same)["code"]
    assert of_function(functools.partial(same, 1)) != of_function(functools.partial(same, 2))
    how = {"folder": tmp_path / "r", "targets": ["step"]}
    fewbench.run(SOURCES, "random", 10, score=same, **how)
    with pytest.raises(RunError, match=r"step .* other weights"):
        fewbench.run(SOURCES, "random", 10, score=other, **how)
    found = fewbench.run(SOURCES, "random", 10, score=other, folder=how["folder"], targets=["next"])
    assert found.targets["next"].items_run == 10


def test_what_a_function_changes_is_not_its_own():
    calls, n = [], 0

    def count(item):
        nonlocal n
        n += 1
        calls.append(item)
        return n

    before = of_function(count)
    count("q")
    assert of_function(count) == before


def test_a_model_s_folder_is_known_by_its_weights(tmp_path):
    folder = tmp_path / "last"
    folder.mkdir()
    (folder / "trainer_state.json").write_text("1")
    assert of_weights([str(folder), "org/name", ""]) == {}
    (folder / "model.safetensors").write_bytes(b"1")
    before = of_weights([str(folder)])
    (folder / "trainer_state.json").write_text("2")
    assert of_weights([str(folder)]) == before != {}
    (folder / "model.safetensors").write_bytes(b"2")
    assert of_weights([str(folder)]) != before
    assert of_model(Network(0)) == of_model(Network(0)) != of_model(Network(1))
    assert of_model(object()) == {}


def test_a_program_with_another_checkpoint_in_the_same_folder_is_refused(tmp_path):
    weights = tmp_path / "last" / "model.safetensors"
    weights.parent.mkdir()
    weights.write_bytes(b"1")
    program = (
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    item = json.loads(line)['item']\n"
        "    print(json.dumps({'item': item, 'score': 1}), flush=True)\n"
    )

    def run():
        runner = CommandRunner(["python3", "-S", "-c", program, f"--model={weights.parent}"])
        return run_with(runner, SOURCES, "random", 10, folder=tmp_path / "r", targets=["new"])

    run()
    assert run().reused
    weights.write_bytes(b"2")
    with pytest.raises(RunError, match=f"other weights of {weights.parent}"):
        run()
