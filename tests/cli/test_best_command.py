"""fewbench best: models of a program, one budget, one folder."""

import json
import sys

import pytest

from fewbench.cli.best import _of_lm_eval

PROGRAM = """
import json, random, sys
level = {"low": 0.2, "mid": 0.75, "high": 0.9}
for line in sys.stdin:
    asked = json.loads(line)
    name = sys.argv[1] if sys.argv[1:] else asked["target"]
    drawn = random.Random(asked["item"]).random() + random.Random(asked["item"] + name).random()
    answer = {"item": asked["item"], "score": int(drawn < 2 * level[name]), "cost": 0.25}
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture
def best(cli, tmp_path):
    (tmp_path / "answer.py").write_text(PROGRAM)
    (tmp_path / "items.csv").write_text("id\n" + "".join(f"q{at}\n" for at in range(300)))

    def run(*words, folder="run"):
        program = ("--", sys.executable, "answer.py")
        return cli("best", "items.csv", *words, "-o", folder, *program)

    return run


def test_the_best_of_a_program_s_models_and_another_go(best, ok, tmp_path):
    names = ("-t", "low", "-t", "mid", "-t", "high")
    said = best(*names, "-n", "20%", "--margin", 0.02, "--report", "best.html")
    assert said.code == 0, said.err
    assert said.out.startswith("high is the best of 3, or within 2 pp of it, on these items")
    assert "Dropped after" in said.out
    assert "best of 3 models" in (tmp_path / "best.html").read_text()
    found = json.loads(best(*names, "-n", "20%", "--margin", 0.02, "--json").out)
    assert found["ended"] == "settled"
    assert found["answers"] <= 180
    assert found["cost"] == 0.25 * found["answers"]
    ranked = json.loads(ok("rank", "run", "--json"))
    assert ranked["targets"][0]["target"] == "high"
    costly = json.loads(best(*names, "--cost", "12 $", "--json", folder="other").out)
    assert costly["ended"] in ("settled", "cost")
    assert costly["cost"] <= 12


def test_weights_of_items_count(best, ok, tmp_path):
    rows = "".join(f"q{at},{5 if at < 100 else 0}\n" for at in range(300))
    (tmp_path / "weights.csv").write_text("id,weight\n" + rows)
    said = best("-t", "low", "-t", "mid", "-n", "100%", "--weights", "weights.csv", "--json")
    found = {one["target"]: one["score"] for one in json.loads(said.out)["targets"]}
    ranked = json.loads(ok("rank", "run", "--fixed-items", "--json"))
    of_rank = {one["target"]: one["score"] for one in ranked["targets"]}
    plain = json.loads(best("-t", "low", "-t", "mid", "-n", "100%", "--json", folder="other").out)
    assert abs(found["mid"] - of_rank["mid"]) < 0.1  # drawn towards the other
    assert found != {one["target"]: one["score"] for one in plain["targets"]}


def test_targets_of_a_file_differ_in_their_arguments(best, tmp_path):
    (tmp_path / "models.txt").write_text("# prompts\na=low\n\nb='high'\n")
    said = best("--targets", "models.txt", "-t", "c=mid", "-n", 200, "--json")
    assert json.loads(said.out)["targets"][0]["target"] == "b"
    said = best("--targets", "models.txt", "-t", "a=mid", "-n", 200, folder="other")
    assert (said.code, "named twice" in said.err) == (2, True)


def test_arguments_of_lm_eval_name_the_model_of_a_target():
    common = ["--model", "hf", "--model_args", "dtype=float16", "--tasks", "gsm8k"]
    bare = _of_lm_eval(common, "org/a", [])
    assert bare[3] == "dtype=float16,pretrained=org/a"
    assert _of_lm_eval(common, "b", ["pretrained=x", "peft=y"])[3] == (
        "dtype=float16,pretrained=x,peft=y"
    )
    prompt = ["--system_instruction", "Think."]
    assert _of_lm_eval(["--model", "hf"], "c", prompt) == ["--model", "hf", *prompt]


def test_a_study_of_searches_on_a_table(cli, scores, tmp_path):
    words = ("compare", scores, "--best", 5, "--repeats", 3, "--workers", 1)
    said = cli(*words, "--sources", 8, "-o", "out.csv")
    assert said.code == 0, said.err
    assert "stops by itself" in said.out
    assert (tmp_path / "out.csv").read_text().startswith("search,share,right")
    assert "no effect with --best" in cli(*words, "-m", "random").err
    assert "no effect without --best" in cli("compare", scores, "--neighbors").err
