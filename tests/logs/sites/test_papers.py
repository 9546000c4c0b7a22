"""benchmarks/reproduce.py --get: tables of papers from public results, on local sites."""

import json
import pickle
import re
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from published import parquet

import fewbench
from fewbench.public import hosts

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
N_MODELS, N_ITEMS = 16, 120


@pytest.fixture
def reproduce(monkeypatch, site, capsys):
    """Run the script; return the lines that it prints."""
    if not (BENCHMARKS / "papers").is_dir():
        pytest.skip("the benchmarks are not beside the tests")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import reproduce

    def run(*words, code=0):
        monkeypatch.setattr("sys.argv", ["reproduce.py", "tables", *words, "-o", "out"])
        with pytest.raises(SystemExit) as ended:
            reproduce.main()
        assert ended.value.code == code
        return capsys.readouterr().out.splitlines()

    return run


def publish_winogrande(site):
    """Details of models of growing ability, as the leaderboard keeps them."""
    rng = np.random.default_rng(0)
    difficulty = rng.normal(size=N_ITEMS)
    for m in range(N_MODELS):
        margin = rng.normal(m / 8 - difficulty, 1.0)
        rows = [
            {"example": f"Question {n}", "full_prompt": f"Question {n}", "choices": ["a", "b"]}
            | {"gold_index": [n % 2], "predictions": [float(x), 0.0][:: 1 if n % 2 == 0 else -1]}
            | {"gold": ["ab"[n % 2]], "metrics": {"acc": float(x > 0), "acc_norm": float(x > 0)}}
            for n, x in enumerate(margin)
        ]
        time = f"2023-{m % 12 + 1:02}-03T17-58-31.{m:06}"
        name = f"{time}/details_harness|winogrande|5_{time}.parquet"
        site.hub[f"open-llm-leaderboard-old/details_lab__m{m}"] = {name: parquet(rows)}


@pytest.mark.slow
def test_a_paper_s_table_is_fetched_run_and_resumed(site, reproduce):
    publish_winogrande(site)
    words = ("--paper", "disco", "--workers", "1")
    listed = reproduce(*words, "--dry-run")
    assert not site.paths("/resolve/")  # nothing but listings
    assert any(
        line.startswith("winogrande.parquet: open-llm-leaderboard-v1: 16") for line in listed
    )
    assert not Path("tables").exists()
    words += ("--get", "--only", "DISCO's Table 1: ", "--cache", "cells")
    lines = reproduce(*words)
    assert any(line.startswith("disco: DISCO's Table 1: Winogrande (") for line in lines)
    # What could not be fetched or run is said in a line each, and stops nothing.
    unrun = [line for line in lines if ": not run: " in line]
    assert all(".parquet (not fetched: " in line for line in unrun[:2])
    assert [line.split(": ")[3] for line in unrun] == ["MMLU", "HellaSwag", "ARC"]
    scores = fewbench.load_scores("tables/winogrande.parquet")
    assert scores.values.shape == (N_MODELS, N_ITEMS)
    assert scores.probabilities is not None
    assert "date" in scores.models
    page = Path("out/disco.md").read_text(encoding="utf-8")
    assert "| `disco-pds-rf` | paper | 1.00 |\n|  | fewbench | " in page
    assert "fewbench compare FOLDER/winogrande.parquet -m random,gp-irt-random," in page
    before = site.paths("/resolve/")
    again = reproduce(*words)
    outcomes = [line.partition(" (")[0] for line in again if ".parquet:" not in line]
    assert outcomes == [line.partition(" (")[0] for line in lines[-4:]]
    assert site.paths("/resolve/") == before  # fetched once
    assert Path("out/disco.md").read_text(encoding="utf-8") == page


def test_the_authors_table_takes_the_place_of_the_one_at_hand(site, reproduce):
    lines = reproduce("--paper", "tailoredbench", "--get", "--only", "at 30 items", code=1)
    assert lines[0].startswith("gsm8k_150.npz: tailoredbench: 2 files")
    roles = fewbench.load_scores("tables/gsm8k_150.parquet").models["role"]
    assert roles.tolist() == ["source", "source", "target"]
    assert all("not run" in line and "items" in line for line in lines[3:])  # of 6 items


@pytest.mark.parametrize("words", [("--get",), ("--get", "--dry-run")])
def test_without_a_network_each_site_is_asked_once(reproduce, monkeypatch, words):
    """A line for each section, with what is missing and how to get it; the exit code is 1."""
    import requests

    asked, head = [], requests.head
    monkeypatch.setattr("requests.head", lambda url, **more: asked.append(url) or head(url, **more))
    for name in ("github-api", "gcs"):
        monkeypatch.setitem(hosts.HOSTS, name, "http://127.0.0.1:9")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9/")
    lines = reproduce(*words, code=1)
    assert sorted(asked) == ["http://127.0.0.1:9", "http://127.0.0.1:9/"]
    assert not Path("tables").exists()
    if "--dry-run" not in words:
        from papers import PAPERS

        assert len(lines) == sum(len(paper.sections) for paper in PAPERS.values())
        assert [line.split(" (")[0] for line in lines if ": not run: " not in line] == [
            "disco: DISCO's costs, computed",
            "bento: The printed scores",
        ]
        assert "check the network and run the command again" in lines[0]


def publish_bento(site):
    """Fifteen tasks of FLAN; three of MMLU, with two seeds and two questions each."""
    rng = np.random.default_rng(1)
    base = "benchmark-reduction"
    tasks = ["law", "art", "sums"]
    files = {f"{base}/length.out": b"2\n2\n2\n", f"{base}/log/csv/notes.txt": b"unread"}
    flan = [",".join(f"flan_{at}" for at in range(15))]
    flan += [",".join(map(str, -rng.random(15))) for _ in range(15)]
    files[f"{base}/log/csv/neg_loss_flan.csv"] = "\n".join(flan).encode()
    for seed in (0, 10, 2):
        rows = [",".join(f"{seed + 10 * source + at}" for at in range(3)) for source in range(3)]
        files[f"{base}/log/csv/acc_{seed}.csv"] = "\n".join([",".join(tasks), *rows]).encode()
    said = "Testing law ...\n" + "".join(f"ACC-{task}: 0.{at}5\n" for at, task in enumerate(tasks))
    files[f"{base}/log/benchmark/phi2.out"] = f"{said}ACC-all: 0.9\n".encode()
    answers = {
        task: {"pred_answers": list("ABCDEDDDDD"), "gold_answers": ["A"] * 5 + ["D"] * 5}
        for task in tasks
    }
    for name in ("llama_13b_5", "llama_7b_5", "phi2", "gpt2-large", "gpt2-medium"):
        files[f"{base}/log/benchmark/run_results_{name}.json"] = json.dumps(answers).encode()
    site.github["tianyi-lab/BenTo"] = files


def test_bento_s_data_are_built_from_the_authors_files(site, reproduce):
    publish_bento(site)
    lines = reproduce("--paper", "bento", "--get", "--only", "FLAN")
    assert lines[-1].startswith("bento: FLAN (")
    assert "of 12 |" in Path("out/bento.md").read_text(encoding="utf-8")
    reproduce("--paper", "bento", "--get", "--only", "Cheaper", code=1)  # too few tasks
    with np.load("tables/bento/mmlu_ict.npz") as file:
        assert file["seeds"].tolist() == [0, 2, 10]
        assert file["acc"][2, 1].tolist() == [20, 21, 22]  # source tasks are rows
        assert file["n_questions"].tolist() == [2, 2, 2]
    models = pd.read_csv("tables/bento/mmlu_models.csv", index_col="model")
    assert models.loc["phi2"].tolist() == [0.05, 0.15, 0.25]
    assert list(models) == ["law", "art", "sums"]
    with np.load("tables/bento/mmlu_questions.npz") as file:
        assert file["pred"].shape == (5, 6, 5)
        assert file["pred"][0, 0].tolist() == [0, 1, 2, 3, 4]
        assert file["gold"].tolist() == [0, 3] * 3
        assert file["task_index"].tolist() == [0, 0, 1, 1, 2, 2]


def test_disco_s_full_scores_follow_from_estimates_and_errors(reproduce, tmp_path):
    """Two targets, two methods and one of another number of runs; the files' layout is DISCO's."""
    from papers.pickled_files import _disco

    full = {0: 0.5, 1: 0.75}
    runs = {"random_naive": [0.4, 0.6, 0.5, 0.7, 0.55], "random_KNN": [0.8, 0.7, 0.6, 0.5, 0.9]}
    for kind in ("accs", "results"):
        for benchmark in ("mmlu_fields", "hellaswag", "winogrande", "arc"):
            of = {
                at: {
                    100: {
                        name: {benchmark: [x if kind == "accs" else abs(x - score) for x in values]}
                        for name, values in runs.items()
                    }
                    | {"mean_train_score": {benchmark: 0.5}}
                }
                for at, score in full.items()
            }
            file = f"{kind}_{benchmark}_split-noniid_iterations-5_disagreement_best_1.pickle"
            (tmp_path / file).write_bytes(pickle.dumps(of))
    _disco([tmp_path], tmp_path / "found.npz")
    with np.load(tmp_path / "found.npz") as found:
        assert found["arc_methods"].tolist() == list(runs)
        assert found["arc_full"] == pytest.approx([0.5, 0.75])
        assert found["arc_estimates"].tolist() == [[values] * 2 for values in runs.values()]


def publish_pickles(site, tmp_path):
    """Two benchmarks of three models; MMLU of a checkpoint with three prompts, twelve questions.

    As the authors' files are: MuSR has a model more, MMLU a question in two tasks and another with
    two right letters, and a line break that the file of the answers has not.
    """
    rng = np.random.default_rng(2)

    def dumped(value):
        joblib.dump(value, tmp_path / "value.jbl")
        return (tmp_path / "value.jbl").read_bytes()

    answers = rng.integers(0, 2, (3, 1650))
    base = "data/scores"
    site.github["socialfoundations/benchmark-prediction"] = {
        f"{base}/openllm_math.jbl": dumped(answers[:, :894]),
        f"{base}/openllm_math_models.jbl": dumped(["a/x", "b/y", "a/x"]),
        f"{base}/musr.jbl": dumped(np.insert(answers[:, 894:].astype(float), 1, 1.0, axis=0)),
        f"{base}/musr_models.jbl": dumped(["a/x", "c/z", "b/y", "a/x"]),
        f"{base}/arc_challenge.jbl": dumped(np.array([[0.0, 1], [1, 1], [0, 1], [1, 0]])),
        f"{base}/arc_challenge_models.jbl": dumped(["a/x", "b/y", "a/x", "c/z"]),
        f"{base}/rte.jbl": b"unread",
    }
    logits = rng.normal(size=(3, 12, 6))
    site.github["smartyfh/LLM-Uncertainty-Bench"] = {
        f"outputs_{template}/Net-7b_{exam}_{prompt}_icl1.pkl": pickle.dumps(
            [{"id": at, "logits_options": row.astype(np.float32)} for at, row in enumerate(table)]
        )
        for template, prompt, table in zip(
            ("base", "base", "chat_v1"), ("base", "task", "base"), logits, strict=True
        )
        for exam in ("mmlu_10k", "halu_dialogue")
    }
    questions = [{"id": at, "question": f"Which, {at}?", "answer": f"c{at}"} for at in range(12)]
    questions[11]["answer"] = "nowhere"
    questions[10] = {"id": 10, "question": "Which, 10?  In short", "answer": "c 10"}
    site.github["alexandru-mihai-94/llm_uncertainty_estimation"] = {
        "llm-uncertainty-mwe/data/mmlu_10k_answers.json": json.dumps(questions).encode()
    }
    lines = [f'"Which, {at}?",a{at},b{at},c{at},d{at},C' for at in range(12)]
    lines[10] = '"Which, 10?\n In short",a10,b10,"c\n10",d10,C'
    site.github["chujiezheng/LLM-MCQ-Bias"] = {
        "code/data_mmlu/test/law_test.csv": "\n".join(lines[:6]).encode(),
        "code/data_mmlu/dev/art_dev.csv": "\n".join(lines[6:]).encode(),
        "code/data_mmlu/test/zoo_test.csv": f'{lines[4]}\n"Which, 6?",c6,,,,A'.encode(),
    }
    return answers, logits, questions


def test_tables_are_built_from_the_authors_pickles(site, reproduce, tmp_path, monkeypatch):
    answers, logits, questions = publish_pickles(site, tmp_path)
    from papers import pickled_files
    from papers.public import Tables

    monkeypatch.setattr(pickled_files, "ARC_NAMES", tmp_path / "arc.txt")
    (tmp_path / "arc.txt").write_text("z\nx\n")
    tables = Tables(Path("tables"))
    files = ["openllm2_math_musr.npz", "llmub_mmlu.npz", "mmlu_text.parquet"]
    files += ["arc_153.npz", "bento/mmlu_texts.json"]
    assert (len(list(tables.fetch(files))), tables.reasons) == (5, {})
    arc = fewbench.load_scores("tables/arc_153.npz")
    assert (list(arc.model_ids), arc.values.tolist()) == (["z", "x"], [[1, 0], [0, 1]])
    texts = json.loads(Path("tables/bento/mmlu_texts.json").read_text())
    assert list(texts) == ["law", "zoo"]  # of the test questions, in all their cells
    assert texts["zoo"].split("\n")[:6] == ["Which, 4?", "a4", "b4", "c4", "d4", "C"]
    lines = reproduce("--paper", "collaborative", "--only", "Figure 7")
    title = "collaborative: Distance of texts and distance of scores (Figure 7)"
    assert [line.startswith(f"{title} (") for line in lines] == [True]
    scores = fewbench.load_scores("tables/openllm2_math_musr.npz")
    np.testing.assert_array_equal(scores.values, answers)
    assert list(scores.model_ids) == ["a/x", "b/y", "a/x#2"]
    assert [*scores.item_ids[[0, 132, 1649]]] == [
        *("math_geometry_hard-0", "math_intermediate_algebra_hard-0", "musr_team_allocation-249")
    ]
    asked = [0, 2, 4, 8, 10]  # not examples of the prompts, and with one right letter
    mmlu = fewbench.load_scores("tables/llmub_mmlu.npz")
    assert list(mmlu.model_ids) == ["Net-7b|base|base", "Net-7b|base|task", "Net-7b|chat_v1|base"]
    assert list(mmlu.item_ids) == [f"mmlu10k-{at}" for at in asked]
    assert [mmlu.tasks[at] for at in mmlu.task_of] == ["law", "law", "zoo", "art", "art"]
    np.testing.assert_array_equal(mmlu.values, logits[:, asked].argmax(axis=2) == 2)
    powers = np.exp(logits[:, asked])
    chances = np.stack(list(mmlu.probabilities.by_model()))
    np.testing.assert_allclose(chances, powers / powers.sum(axis=2, keepdims=True), atol=1e-3)
    text = fewbench.load_scores("tables/mmlu_text.parquet")
    assert text.items["text"].tolist() == [questions[at]["question"] for at in asked]


class Harmful:
    def __reduce__(self):
        return Path.touch, (Path("run"),)


@pytest.mark.parametrize("value", [Harmful(), np.array([Harmful()], dtype=object)])
@pytest.mark.parametrize("dump", [pickle.dump, joblib.dump])
def test_nothing_in_a_pickle_is_executed(reproduce, tmp_path, value, dump):
    from papers.pickled_files import numbers

    with (tmp_path / "harmful.jbl").open("wb") as file:
        dump(value, file)
    with pytest.raises(fewbench.errors.PublicError, match="it is not read"):
        numbers(tmp_path / "harmful.jbl")
    assert not Path("run").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tailoredbench", "disco", "collaborative", "bento"])
def test_every_section_runs_from_an_imitation_of_the_sites(name, site, reproduce, monkeypatch):
    """As `make reproduce` runs them, with one repeat in place of up to thirty."""
    pytest.importorskip("lm_eval")
    import papers_sites

    from papers import PAPERS, bento, bento_constant, disco, tailoredbench
    from papers.record import Derived, Study

    papers_sites.publish(site)
    for module, constant, value in (
        *((bento, "REPEATS", 1), (bento_constant, "DRAWS", 20), (bento_constant, "BOOTSTRAPS", 2)),
        *((disco, "REPEATS", 1), (tailoredbench, "SEEDS", 1)),
    ):
        monkeypatch.setattr(module, constant, value)
    fetched, sections = set(), []
    for section in PAPERS[name].sections:  # the first of each file; the others run on tiny tables
        if set(section.data) <= fetched:
            continue
        fetched |= {*section.data}
        kept = section if isinstance(section, Study | Derived) else replace(section, repeats=1)
        sections.append(kept)
    sections = tuple(sections)
    monkeypatch.setitem(PAPERS, name, replace(PAPERS[name], sections=sections))
    lines = reproduce("--get", "--paper", name, "--workers", "1", "--cache", "cells")
    unrun = [line for line in lines if ": not run: " in line]
    assert all("UMAP needs umap-learn" in line or "OpenVLMRecords" in line for line in unrun), unrun
    timed = (re.fullmatch(r"(.+) \([\d,]+ s, processors [\d,]+ s\)", line) for line in lines)
    ran = [line[1] for line in timed if line]
    others = [one.title for one in sections if not one.title.endswith(("UMAP", "POPE"))]
    assert [title for title in ran if not title.endswith("UMAP")] == [
        f"{name}: {title}" for title in others
    ]
    assert "failed" not in Path(f"out/{name}.md").read_text(encoding="utf-8")
