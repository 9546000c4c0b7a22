"""Real files of the sources, where they are at hand: what is read is what was published."""

import importlib.util
import json
import tarfile
import threading
from pathlib import Path

import pytest

import fewbench
from fewbench.errors import PublicError
from fewbench.public import SOURCES

pytest.importorskip("huggingface_hub")
SHARED = Path(__file__).resolve().parents[3].parent / "shared"
SITE = SHARED / "tools" / "real_site.py"
if not SITE.exists():
    pytest.skip("needs real files in ../shared, which is not there", allow_module_level=True)


@pytest.fixture(scope="module")
def address():
    """Address of a local site with the files at hand."""
    spec = importlib.util.spec_from_file_location("real_site", SITE)
    real_site = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(real_site)
    server = real_site.serve(0, sorted(real_site.HERE.glob("*.tar.xz")), at_hand=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def site(address, monkeypatch, tmp_path):
    places = {"github-api": "api", "github-raw": "raw", "livecodebench": "lcb", "tau2": "tau2"}
    for name, folder in places.items():
        monkeypatch.setitem(fewbench.public.hosts.HOSTS, name, f"{address}/{folder}")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def published(archive, ending):
    """Yield the path and content of the files of an archive whose path ends like this."""
    with tarfile.open(next((SHARED / "data" / "public").glob(f"{archive}*"))) as tar:
        for member in tar:
            if member.name.endswith(ending):
                yield member.name, json.load(tar.extractfile(member))


def test_answers_of_mmlu_pro(capfd):
    results = fewbench.get("mmlu-pro")
    rows = results.to_frame()
    coder, llama = rows.loc["DeepSeek-Coder-V2_5shots"], rows.loc["Llama-2-7b-hf_5shots"]
    assert (coder.count(), llama.count()) == (10_351, 12_032)
    assert coder.mean() == pytest.approx(0.6363, abs=1e-4)
    assert llama.mean() == pytest.approx(0.1834, abs=1e-4)
    notes = " ".join(results.notes)
    assert "43 of 10,394 entries hold no result" in notes
    assert "Llama-2-7b-hf_5shots (2,061); the published accuracies count them as random" in notes
    items = results.scores.items
    assert set(items["key_field"]) == {"question_id"}
    assert "mmlu_pro_computer_science" in results.scores.tasks
    assert items.index[0].startswith(f"{items['task'].iloc[0]}/")
    assert "Downloading" not in capfd.readouterr().err


def test_runs_of_terminal_bench_1():
    results = fewbench.get("terminal-bench", benchmark="1")
    shares = {}
    for name, run in published("laude", "results.json"):
        folder = name.split("/")[3]
        right = [bool(row["is_resolved"]) for row in run["results"]]
        assert sum(right) / len(right) == pytest.approx(run["accuracy"])
        shares.setdefault(folder, []).append(run["accuracy"])
    assert len(shares) == 13
    means = dict(zip(results.scores.model_ids, results.scores.full_scores(), strict=True))
    for folder, accuracies in shares.items():
        system = folder.partition("_")[2] or folder
        assert means.pop(system) == pytest.approx(sum(accuracies) / len(accuracies), abs=1e-6)
    assert not means
    assert results.scores.models.loc["droid_gpt-5", "date"] == "2025-09-24"
    assert "trials without a verdict (null), which count as failed" in " ".join(results.notes)


def test_problems_of_livecodebench_with_two_dates():
    results = fewbench.get("livecodebench")
    assert results.scores.n_items == 349
    assert "5 items with several values in contest_date" in " ".join(results.notes)


def test_preferences_of_alpaca_eval():
    rows = fewbench.get("alpaca-eval").to_frame()
    for name, answers in published("tatsu", "annotations.json"):
        preferences = [row["preference"] for row in answers]
        mean = sum(preferences) / len(preferences) - 1
        assert rows.loc[name.split("/")[2]].mean() == pytest.approx(mean)


def test_submissions_of_tau2_bench():
    files = fewbench.find_public_files("tau2-bench")
    assert "20 of 29 submissions left out" in files.notes[0]
    assert "20 of these ran banking_knowledge: --split banking_knowledge" in files.notes[1]
    assert len(fewbench.find_public_files("tau2-bench", split="banking_knowledge").to_frame()) == 28
    with pytest.raises(
        PublicError, check=lambda error: error.kind == "missing"
    ):  # trajectories are on another host
        files.fetch()


def test_real_files_are_those_that_the_catalogue_names():
    for archive in (SHARED / "data" / "public").glob("*.tar.xz"):
        with tarfile.open(archive) as tar:
            tree = json.load(tar.extractfile("tree.json"))
        (source,) = [one for one in SOURCES.values() if tree["commit"] == one.tried_at] or [
            SOURCES["livecodebench"]
        ]
        assert source.tried
