"""fewbench transfer measure: costs told first, mistakes named, and what it leaves behind."""

import json
from pathlib import Path

import pytest

from fewbench_papers.bento import Transferability

LETTERS = "ABC"


def write_task(path, name, number=12, options=True):
    rows = []
    for at in range(number):
        answer = LETTERS[at % 3] if options else f"word {at}"
        row = {"question": f"{name} {at}?", "answer": answer}
        rows.append(json.dumps(row | ({"options": ["x", "y", "z"]} if options else {})))
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(rows) + "\n")


@pytest.fixture
def tasks(tmp_path):
    for name in ("plants", "rivers", "sums"):
        write_task(tmp_path / "tasks" / f"{name}.jsonl", name)
    return "tasks"


class Model:
    """In this process, in place of a model of lm-eval; counts the questions that it is asked."""

    tokenizer = "letters"

    def __init__(self):
        self.asked, self.broken = 0, None

    def tok_encode(self, text):
        return list(text)

    def loglikelihood(self, requests):
        if self.broken and self.asked + len(requests) / 3 > self.broken:
            raise OSError("no connection")
        self.asked += len(requests) // 3
        return [(-1.0 - (at % 3 != len(one.args[0]) % 3), False) for at, one in enumerate(requests)]


@pytest.fixture
def model(monkeypatch):
    pytest.importorskip("lm_eval")
    made = Model()
    monkeypatch.setattr("fewbench_papers.bento.measurement.model.HarnessModel.load", lambda _: made)
    return made


FEW = ("--model", "m", "--seeds", 2, "--exemplars", 2, "--questions", 4)
SERVED = (*FEW, "-o", "ict")
ALL = 2 * 3 * 3 * 4


def measure(run, tasks, *words):
    return run("transfer", "measure", tasks, *words)


def test_a_dry_run_needs_no_server_and_no_folder(ok, tasks):
    out = measure(ok, tasks, *FEW, "--dry-run")
    assert "3 sources × 3 targets, accuracy" in out
    assert "up to 4 questions per target and seed" in out
    assert ["Prompts:", "72"] in [line.split() for line in out.splitlines()]
    assert "bytes / 4" in out
    assert "Price" not in out
    assert not Path("ict").exists()
    assert max(map(len, out.splitlines())) <= 100


def test_a_dry_run_shows_the_tasks_notes_and_a_prompt(ok, tasks):
    write_task(Path("tasks/plants.jsonl"), "plants", 9)
    out = measure(ok, tasks, *FEW, "--dry-run", "--columns", "sums", "--seeds", 3)
    rows = [line.split() for line in out.splitlines()]
    assert ["plants", "9", "0", "4", "0", "no"] in rows
    assert ["sums", "12", "0", "6", "0", "yes"] in rows
    assert "some seeds share exemplars: 'plants'" in out
    assert "questions of 3 tasks without a pool are set aside" in out
    assert "questions (with answers) about plants." in out
    assert out.count("Answer:") == 3


def test_a_dry_run_as_json(ok, tasks):
    words = (*FEW, "--dry-run", "--json", "--price-in", 2, "--price-out", 4)
    said = json.loads(measure(ok, tasks, *words))
    cost = said["cost"]
    assert cost["prompts"] == ALL
    assert cost["passes"] == 2.0
    assert cost["requests"] == 3 * ALL
    assert cost["money"] == (2 * cost["prompt_tokens"] + 4 * cost["completion_tokens"]) / 1e6
    assert said["answers"] == 0
    assert [task["name"] for task in said["of_tasks"]] == ["plants", "rivers", "sums"]
    assert said["of_tasks"][0]["aside"] == 6
    assert any("set aside" in note for note in said["notes"])
    assert said["example"].endswith("Answer:")


def test_measuring_tells_the_cost_first_and_leaves_a_matrix(cli, tasks, model):
    said = measure(cli, tasks, *SERVED)
    assert said.code == 0
    assert "Full passes" in said.err
    assert "Full passes" not in said.out
    assert "72 of 72" in said.out
    assert "Strongest source" in said.out
    assert "Next: fewbench tasks select ict -k 2" in said.out
    assert model.asked == ALL
    matrix = Transferability.load("ict")
    assert matrix.values.shape == (2, 3, 3)
    assert matrix.tasks == ("plants", "rivers", "sums")
    assert matrix.about["model"] == "m"
    assert matrix.about["lm-eval model"] == "m"
    assert f"{matrix.values.mean():.3f}" in said.out
    assert "complete; no requests sent" in measure(cli, tasks, *SERVED).err
    assert model.asked == ALL


def test_a_smaller_request_does_not_replace_a_fuller_matrix(cli, tasks, model):
    measure(cli, tasks, *SERVED)
    before = Path("ict/matrix.npz").read_bytes()
    for words in (
        ("--seeds", 1),
        ("--columns", 1),
        ("--questions", 3),
        ("--seeds", 1, "--dry-run"),
    ):
        said = measure(cli, tasks, *SERVED, *words)
        assert said.code == 2
        assert "this run would measure: 2 seeds, 3 targets, up to 4 questions" in said.err
        assert "another folder with -o" in said.err
    assert Path("ict/matrix.npz").read_bytes() == before
    assert measure(cli, tasks, *SERVED, "--seeds", 1, "--force").code == 0
    assert Transferability.load("ict").n_seeds == 1
    assert model.asked == ALL


def test_a_part_of_the_answers_makes_a_matrix_where_it_is_asked_for(cli, tasks, model):
    # one prompt that always fails must not keep the others from being used
    part = (*FEW, "-o", "ict", "--partial")
    assert measure(cli, tasks, *part).kind == "unanswered"
    model.broken = 71
    said = measure(cli, tasks, *SERVED, "--batch", 3)
    assert said.code == 2
    assert "pass --partial to get their matrix" in said.err
    said = measure(cli, tasks, *part)
    assert said.code == 0
    assert "71 of 72" in said.out
    assert "note: 1 answer of 72 missing" in said.out
    assert "from the answers so far" in said.out
    assert "Next" not in said.out
    matrix = Transferability.load("ict")
    assert matrix.about["answers"] == "71 of 72"
    assert matrix.values.shape == (2, 3, 3)
    model.broken = None
    assert json.loads(measure(cli, tasks, *SERVED, "--json").out)["complete"]
    assert Transferability.load("ict").about["answers"] == "72 of 72"


@pytest.mark.parametrize(
    ("names", "folder"),
    [(["tasks"], "tasks"), (["tasks/sums.jsonl", "tasks/rivers.jsonl"], "./tasks")],
)
def test_a_folder_of_tasks_is_not_written_into(cli, tasks, model, names, folder):
    before = sorted(Path(tasks).iterdir())
    said = cli("transfer", "measure", *names, *SERVED, "-o", folder)
    assert said.code == 2
    assert said.kind == "taken"
    assert sorted(Path(tasks).iterdir()) == before
    assert model.asked == 0
    assert measure(cli, tasks, *SERVED, "-o", "tasks/ict").code == 0


def test_the_command_is_the_function(ok, tasks, model):
    """From Python as from the command line: the same numbers, and a page of the same words."""
    from fewbench_papers.bento.measurement import Design, HarnessModel, expected_cost, read_tasks
    from fewbench_papers.bento.measurement import measure as measured

    said = json.loads(measure(ok, tasks, *SERVED, "--json"))
    design = Design(tuple(read_tasks([tasks])), seeds=2, exemplars=2, questions=4)
    lm = HarnessModel(model="m")
    assert expected_cost(design, lm, output="ict").answers.n_done == ALL
    seen = []
    found = measured(design, lm, "again", on_start=lambda start: seen.append(start.to_dict()))
    assert json.loads(found.to_json())["mean"] == said["mean"]
    assert seen[0]["cost"]["prompts"] == ALL
    assert seen[0]["answers"] == 0
    assert "72 of 72 answers" in str(found)
    assert found.to_frame().shape == (6, 3)
    assert [task["questions"] for task in seen[0]["of_tasks"] if task["name"] == "sums"] == [12]


def test_files_that_are_not_read_are_named(cli, tasks, model):
    Path("tasks/.hidden.jsonl").write_text("junk")
    Path("tasks/more.json").write_text("[]")
    said = measure(cli, tasks, *SERVED)
    assert said.code == 0
    assert "'more.json'" in said.err


def test_a_limit_stops_it_with_a_code_and_a_way_on(cli, tasks, model):
    said = measure(cli, tasks, *SERVED, "--batch", 1, "--price-in", 1000, "--max-cost", 5)
    assert said.code == 1
    answers = len(Path("ict/answers.jsonl").read_text().splitlines())
    assert f"{answers} of 72" in said.out
    assert "the limit of 5.00 is reached (5." in said.out
    assert "higher limit to continue" in " ".join(said.out.split())
    assert not Path("ict/matrix.npz").exists()
    said = measure(cli, tasks, *SERVED, "--max-tokens", 9000, "--json", "--batch", 1)
    assert said.code == 1
    read = json.loads(said.out)
    assert not read["complete"]
    assert answers < read["answers"] < ALL
    assert "9,000 tokens" in read["run"]["stopped"]


def test_arguments_that_change_answers_are_kept(cli, tasks, model):
    args = "pretrained=org/small,dtype=float16,batch_size=8,device=cpu,max_length=900"
    assert measure(cli, tasks, *SERVED, "--model", "hf", "--model_args", args).code == 0
    about = Transferability.load("ict").about
    assert (about["model"], about["lm-eval model"]) == ("org/small", "hf")
    args_of = {key: value for key, value in about.items() if key.startswith("model_args ")}
    assert args_of == {"model_args dtype": "float16", "model_args max_length": "900"}
    for before, now, said in (
        ("batch_size=8,device=cpu", "batch_size=1,device=cuda", None),
        ("max_length=900", "max_length=800", None),
        ("float16", "float32", "contains another measurement"),
        ("small", "large", "contains another measurement"),
    ):
        given = ("--model", "hf", "--model_args", args.replace(before, now))
        found = measure(cli, tasks, *SERVED, *given)
        assert found.code == (0 if said is None else 2)
        assert (said or "") in found.err
    found = measure(cli, tasks, *SERVED, "--model", "vllm", "--model_args", args)
    assert found.kind == "changed"
    assert model.asked == ALL


def test_models_that_lm_eval_cannot_make(cli, tasks):
    pytest.importorskip("lm_eval")
    said = measure(cli, tasks, *SERVED, "--model", "no-such")
    assert said.code == 2
    assert "'no-such'" in said.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (FEW, "no output folder"),
        ((*SERVED, "--metric", "f1"), "'f1' is not one of"),
        ((*SERVED, "--template", "x"), "no template 'x'"),
        ((*SERVED, "--questions", "few"), "--questions is few"),
        ((*SERVED, "--questions", "0"), "--questions is 0 (hint: use 1 or more, or all)"),
        ((*SERVED, "--questions", "-5"), "--questions is -5 (hint: use 1 or more, or all)"),
        ((*FEW, "--dry-run", "--max-tokens", "0"), "a limit of 0 tokens"),
        ((*FEW, "--dry-run", "--metric", "f1"), "'f1' is not one of"),
        ((*SERVED, "--exemplars", "9"), "needs 18 questions"),
        ((*SERVED, "--batch", "0"), "batch 0 is too low"),
        ((*SERVED, "--price-in", "-1"), "the price is -1.0 per million tokens"),
        ((*SERVED, "--seed", "-1"), "seed -1"),
        ((*SERVED, "-o", "tasks/sums.jsonl"), "sums.jsonl is a file"),
    ],
)
def test_mistakes_are_one_line(cli, tasks, model, words, said):
    heard = measure(cli, tasks, *words)
    assert heard.code == 2
    assert said in heard.err
    assert len(heard.err.strip().splitlines()[-1:]) == 1
    assert "Traceback" not in heard.err
    assert model.asked == 0


def test_tasks_that_are_not_there(cli, model):
    heard = measure(cli, "nowhere", *SERVED)
    assert heard.code == 2
    assert "nowhere" in heard.err


def test_open_answers_need_another_metric(cli, tasks, model):
    write_task(Path("tasks/open.jsonl"), "open", options=False)
    assert "'open'" in measure(cli, tasks, *SERVED).err
