"""The name of a public source stands where a scores file does, from an empty cache to a result."""

import json
import runpy
from importlib.util import find_spec
from pathlib import Path

import pytest
from published import ITEMS, MODELS, RIGHT

import fewbench
from fewbench.cli import main
from fewbench.errors import FewbenchError, MissingFileError, PublicError
from fewbench.public import SOURCES, located, public_results
from fewbench.scores import save_scores
from fewbench.testing import simulate

pytest.importorskip("huggingface_hub")
needs_lm_eval = pytest.mark.skipif(not find_spec("lm_eval"), reason="needs the extra lm-eval")
needs_inspect = pytest.mark.skipif(not find_spec("inspect_ai"), reason="needs the extra inspect")


@pytest.fixture
def cli(site, monkeypatch, capfd):
    """Run a command; return its exit code, output and messages."""

    def run(*words):
        monkeypatch.setattr("sys.argv", ["fewbench", *map(str, words)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capfd.readouterr()
        return ended.value.code or 0, printed.out, printed.err

    return run


def test_a_name_is_fetched_once_and_kept(site, capfd):
    first = fewbench.load_scores("mmlu-pro")
    printed = capfd.readouterr().err
    page = f"{site.address}/gh-raw/TIGER-AI-Lab/MMLU-Pro"
    assert "mmlu-pro: fetching 3 files, " in printed
    assert f" kB, commit cccccccccccc, from {page} into " in printed
    assert "answers without a choice (null) are wrong here" in printed
    asked = len(site.requests)
    again = fewbench.load_scores("mmlu-pro")
    assert (len(site.requests), capfd.readouterr().err) == (asked, "")
    assert again.equals(first)
    assert again.credits == (
        "mmlu-pro, commit cccccccccccc; license: Apache-2.0; cite: Wang et al. 2024, MMLU-Pro, "
        "NeurIPS",
    )
    kept = located("mmlu-pro")
    assert kept.parent.name == "c" * 40
    said = json.loads(kept.with_suffix(".source.json").read_text())
    assert [said["commit"], said["license"]] == ["c" * 40, "Apache-2.0"]


def test_a_benchmark_or_split_follows_a_colon(site):
    assert fewbench.load_scores("metabench:gsm8k").tasks == ["gsm8k"]
    assert fewbench.load_scores("swe-bench:verified").n_items == 6
    with pytest.raises(PublicError, match=r"no --benchmark named.*metabench:gsm8k"):
        fewbench.load_scores("metabench")
    with pytest.raises(PublicError, match="'gsm8'"):
        fewbench.load_scores("metabench:gsm8")


def test_a_file_or_folder_of_that_name_comes_first(site, tmp_path):
    (tmp_path / "mmlu-pro").mkdir()
    with pytest.raises(FewbenchError, match="no result files"):
        fewbench.load_scores("mmlu-pro")
    assert not site.requests
    table = save_scores(simulate(5, 8), tmp_path / "s.parquet")
    table.rename(tmp_path / "terminal-bench")
    assert located("terminal-bench") == Path("terminal-bench")
    with pytest.raises(MissingFileError, match=r"no such public source.*did you mean livebench"):
        fewbench.load_scores("live-bench")


def test_results_carry_the_credit_once(cli, tmp_path):
    few = ("--workers", 1, "--no-cache")
    credit = "livebench, commit cccccccccccc; license: not stated; cite: White et al. 2025"
    for words, place in (
        (("audit", "livebench"), lambda values: values["table"]["credits"][0]),
        (
            ("plan", "livebench", "--half-width", 0.3, *few),
            lambda values: values["facts"]["source results"],
        ),
        (
            ("compare", "livebench", "-m", "random", "-n", 3, "--repeats", 1, *few),
            lambda values: values["facts"]["source results"],
        ),
    ):
        code, out, err = cli(*words, "--json")
        assert code == 0, err
        assert place(json.loads(out)).startswith(credit), words
        assert err.count(f"source results: {credit}") == 1, words
    assert cli("rank", "livebench", "--json")[0] == 0


def test_terminal_bench_from_its_name_to_an_estimate(cli, site, monkeypatch):
    code, out, err = cli("start", "terminal-bench", "-n", 4, "-o", "run")
    assert code == 0, err
    assert "terminal-bench: fetching 3 files, " in err
    assert err.count("license: Apache-2.0 (2)") == 1
    asked = cli("ask", "run")[1].split()
    right = {f"terminal-bench-2/{item}": RIGHT[MODELS[2]][item] for item in ITEMS}
    assert set(asked) <= set(right)
    rows = "".join(f"{item},{right[item]}\n" for item in asked)
    Path("answers.csv").write_text(f"id,score\n{rows}")
    assert cli("tell", "run", "answers.csv", "--accept-fractions")[0] == 0
    while asked := cli("ask", "run")[1].split():
        rows += "".join(f"{item},{right[item]}\n" for item in asked)
        Path("answers.csv").write_text(f"id,score\n{rows}")
        assert cli("tell", "run", "answers.csv")[0] == 0
    code, out, _ = cli("estimate", "run", "--json")
    (estimate,) = json.loads(out).values()
    assert estimate["items_run"] == 4
    assert estimate["provenance"]["credit"].startswith("terminal-bench, commit cccccccccccc")
    header = json.loads(Path("run/evaluation.json").read_text())
    assert header["scores"] == str(located("terminal-bench").resolve())
    assert header["provenance"]["credit"] == estimate["provenance"]["credit"]
    opened = fewbench.Evaluation.open("run", "terminal-bench")
    assert opened.estimate(warn=False)["target"].score == pytest.approx(estimate["score"])
    # Without a network, and without the table: what to do is said.
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert cli("estimate", "run")[0] == 0
    located("terminal-bench").unlink()
    code, _, err = cli("estimate", "run")
    assert (code, "no scores at" in err, "--scores" in err) == (2, True, True)
    code, _, err = cli("start", "terminal-bench", "-n", 4, "-o", "other")
    assert (code, "connection failed" in err, "check the network" in err) == (2, True, True)


def test_a_repository_at_the_hub_is_a_name_too(site):
    assert fewbench.load_scores("hub:me/scores").n_models == 5
    assert fewbench.load_scores("hub:me/logs:toy__model-a-details").n_models == 1
    asked = len(site.requests)
    assert fewbench.load_scores("hub:me/scores").n_models == 5
    assert len(site.requests) == asked
    for name, what in (
        ("hub:me/table", "get it first: fewbench get hub:me/table …"),
        ("hub:me/packs/one.few", "get it first: fewbench get hub:me/packs/one.few --from pack"),
        ("hub:me", "as in hub:ORG/DATASET"),
    ):
        with pytest.raises(FewbenchError) as found:
            located(name)
        assert what in found.value.hint
    with pytest.raises(FewbenchError, match="no such dataset repository"):
        located("hub:me/logs-toy__model-a-details")  # not the table of hub:me/logs:toy…


def test_which_results_are_public():
    (note,) = public_results("lm-eval", ["gsm8k"])
    assert note == (
        "results of 150 models on these tasks are public: fewbench run lm-eval tailoredbench …"
    )
    assert public_results("inspect", ["swe_bench"])[0].endswith("fewbench run inspect swe-bench …")
    for tasks in ([], ["gsm8k", "mine"], ["arc_challenge"]):
        assert public_results("lm-eval", tasks) == []
    for source in SOURCES.values():
        for route in source.routes:
            assert route.runs(route.task.format(task="x"))


@needs_lm_eval
def test_mmlu_pro_from_its_name_to_a_result_of_lm_eval(cli, tmp_path):
    """In a local task with the columns of the real one; other questions are refused unasked."""
    options = (
        "output_type: generate_until\ntest_split: test\ndoc_to_text: '{{question}}'\n"
        "doc_to_target: answer\ngeneration_kwargs: {until: ['.']}\n"
        "metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]\n"
        "filter_list: [{name: custom-extract, filter: [{function: take_first}]}]\n"
    )
    data = tmp_path / "law.jsonl"

    def ask(question):
        rows = [{"question_id": n, "question": f"Is {n} {question}?"} for n in range(6)]
        data.write_text("".join(json.dumps(row | {"answer": "A"}) + "\n" for row in rows))
        files = f"{{data_files: {{test: {data}}}, cache_dir: {tmp_path / question}}}"
        (tmp_path / "tasks").mkdir(exist_ok=True)
        (tmp_path / "tasks" / "law.yaml").write_text(
            f"task: mmlu_pro_law\ndataset_path: json\ndataset_kwargs: {files}\n{options}"
        )

    words = ("run", "lm-eval", "mmlu-pro", "-n", 4, "-o", "run", "-m", "random")
    model = ("--", "--model", "dummy", "--include_path", tmp_path / "tasks")
    ask("wrong")
    code, _, err = cli(*words, *model)
    assert (code, "4 of 4 documents differ from the source models'" in err) == (2, True), err
    assert not Path("run").exists()
    ask("right")
    code, out, err = cli(*words, "--json", *model)
    assert code == 0, err
    assert err.count("cite: Wang et al. 2024") == 1
    (target,) = json.loads(out)["targets"].values()
    assert target["items_run"] == 4
    warnings = " ".join(target["estimate"]["warnings"])
    assert "the scores do not record the source models' prompts" in warnings
    assert target["estimate"]["provenance"]["credit"].startswith("mmlu-pro, commit cccccccccccc")
    code, _, err = cli(*words[:2], "-n", 4, "-o", "alone", *model, "--tasks", "mmlu_pro_law")
    assert code == 0, err
    assert "results of 48 models on these tasks are public: fewbench run lm-eval mmlu-pro" in err


STAND_IN = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelAPI, ModelOutput, ModelUsage, modelapi
from inspect_ai.scorer import Score, accuracy, match, scorer

@modelapi(name="fixer")
class Fixer(ModelAPI):
    async def generate(self, input, tools, tool_choice, config):
        output = ModelOutput.from_content(self.model_name, "fixed")
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

@scorer(metrics=[accuracy()])
def swe_bench_scorer():
    async def score(state, target):
        return Score(value=float(state.output.completion == "fixed"))
    return score

@task
def swe_bench(is_matched=False):
    samples = [Sample(id=f"org__repo-q{n}", input="Fix it.", target="-") for n in range(6)]
    return Task(samples, scorer=match() if is_matched else swe_bench_scorer())

@task
def mmlu_pro(asks="right"):
    samples = [Sample(id=n, input=f"Is {n} {asks}?", target="fixed") for n in range(6)]
    return Task(samples, scorer=match())
"""


@needs_inspect
@pytest.mark.filterwarnings("ignore:The 'initial' parameter:DeprecationWarning")
def test_swe_bench_from_its_name_to_a_result_of_inspect(cli, site, monkeypatch):
    """In a stand-in task of that name; a wrong scorer is named before a sample runs."""
    words = ("run", "inspect", "swe-bench", "-n", 4, "-m", "random", "--json", "-o", "run", "--")
    if not find_spec("inspect_evals"):
        assert "pip install inspect-evals" in cli(*words, "--model", "fixer/one")[2]
    monkeypatch.setattr("fewbench.runners.inspect.runner.PACKAGE", "")
    Path("stand_in.py").write_text(STAND_IN)
    runpy.run_path("stand_in.py")  # Inspect looks for the model before it reads the task's file
    task = ("stand_in.py", "--model", "fixer/one")
    code, _, err = cli(*words, *task, "-T", "is_matched=true")
    assert code == 2
    assert "no 'swe_bench_scorer'; its scorers give 'match'" in err
    code, out, err = cli(*words, *task[1:])
    assert code == 0, err
    (target,) = json.loads(out)["targets"].values()
    assert (target["items_run"], target["estimate"]["score"]) == (4, 1.0)
    assert target["estimate"]["provenance"]["credit"].startswith("swe-bench, commit cccccccccccc")
    warning = "the source models ran in swe-bench, not in inspect"
    assert warning in " ".join(target["estimate"]["warnings"])
    assert warning in cli("estimate", "run")[1]
    # Many tasks of a table are one task of Inspect; other questions are refused.
    words = (*words[:2], "mmlu-pro", *words[3:8], "-o", "pro", "--", "--model", "fixer/one")
    code, _, err = cli(*words, "-T", "asks=wrong")
    assert (code, "6 of 6 samples have a different text" in err) == (2, True), err
    code, out, err = cli(*words)
    assert code == 0, err
    (target,) = json.loads(out)["targets"].values()
    assert (target["items_run"], target["estimate"]["score"]) == (4, 1.0)
