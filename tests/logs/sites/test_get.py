"""Every layout is fetched from an imitation of its site, with the failures that sites have."""

import gzip
import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from published import ITEMS, MODELS, RIGHT, parquet, plain

import fewbench
from fewbench.cli import main
from fewbench.errors import FewbenchError, PublicError
from fewbench.public import SOURCES, fetching, source
from fewbench.study import make_split
from fewbench.testing import simulate
from fewbench_logs.sites import agents, logs

pytest.importorskip("huggingface_hub")

# Arguments, (models, items), and attributes of one model.
LAYOUTS = {
    "livebench": ({}, (3, 6), ("org/m2-70b", {"date": "2023-11-15", "size": 70.0})),
    "livecodebench": ({}, (3, 6), ("m3", {"date": "2020-09-13"})),
    "openeval": ({"benchmark": "ifeval"}, (3, 6), None),
    "measurement-db": ({"benchmark": "toy"}, (3, 6), ("lab/m3", {"date": "2024-03-01"})),
    "mmlu-pro": ({}, (3, 6), ("m1-7b_5shots", {"size": 7.0})),
    "alpaca-eval": ({}, (3, 6), None),
    "metabench": ({"benchmark": "gsm8k"}, (3, 6), None),
    "tailoredbench": ({}, (3, 6), ("target-001", {"role": "target"})),
    "swe-bench": (
        {"split": "verified"},
        (3, 6),
        ("20240102_m2-70b", {"date": "2024-01-02", "agent": "crew", "family": "m2-70b"}),
    ),
    "terminal-bench": (
        {},
        (3, 6),
        ("agent__m3", {"date": "2026-01-02", "agent": "agent", "llm": "m3"}),
    ),
    "tau2-bench": ({}, (3, 6), ("m3", {"date": "2025-01-01", "family": "org"})),
    "helm": ({"benchmark": "lite"}, (3, 6), ("lab/m3", {"date": "2024-05-06", "family": "lab"})),
    "open-llm-leaderboard-v1": ({"benchmark": "arc"}, (2, 10), ("toy/model-a", {})),
    "open-llm-leaderboard-v2": (
        {"benchmark": "musr"},
        (2, 10),
        ("toy/model-a", {"family": "toy/base", "size": 7.2, "date": "2024-06-09"}),
    ),
    "every-eval-ever": ({"benchmark": "toy", "filter": "strict-match"}, (2, 8), None),
    "hub:me/logs": ({"form": "lm-eval"}, (2, 10), None),
    "hub:me/scores": ({}, (5, 8), None),
}


def test_every_source_is_tried():
    assert set(SOURCES) <= set(LAYOUTS)
    for name, known in (("open-llm-leaderboard-v1", logs.V1), ("open-llm-leaderboard-v2", logs.V2)):
        assert SOURCES[name].benchmarks == tuple(known)
    assert set(SOURCES["swe-bench"].splits) == set(agents.INSTANCES)


def downloads(site):
    return [one for one in site.requests if "/api" not in one and "storage/v1" not in one]


def interrupted(done, total):
    """A progress that the user interrupts once something has come."""
    if done or total:
        raise KeyboardInterrupt


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout(site, name, tmp_path):
    asked, shape, attributes = LAYOUTS[name]
    path = tmp_path / "s.parquet"
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            fewbench.get(name, path, **asked, progress=interrupted)
        assert not path.exists()
    results = fewbench.get(name, path, **asked)
    scores = results.scores
    assert scores.values.shape == results.to_frame().shape == shape
    assert fewbench.load_scores(path).equals(scores)
    if name == "tailoredbench":  # its models have no names
        assert scores.values.tolist() == [list(own.values()) for own in RIGHT.values()]
    elif shape == (3, 6):
        expected = {plain(model): sorted(RIGHT[model].values()) for model in MODELS}
        found = {
            next(one for one in expected if one in model): sorted(row)
            for model, row in zip(scores.model_ids, scores.values.tolist(), strict=True)
        }
        if name == "livebench":  # one answer has a second turn
            assert found.pop("m1-7b") != expected.pop("m1-7b")
        if name == "terminal-bench":  # one task has a second trial, which failed
            first = scores.values[:, scores.positions([f"terminal-bench-2/{ITEMS[0]}"])[0]]
            assert first.tolist() == [RIGHT[model][ITEMS[0]] / 2 for model in MODELS]
        else:
            assert found == expected
    if attributes is not None:
        model, known = attributes
        row = scores.models.loc[model]
        assert {one: row[one] for one in known} == known
    if "date" in scores.models and scores.n_models > 2:
        assert all(scores.models["date"].str.fullmatch(r"\d{4}-\d\d-\d\d"))
    assert "models ×" in repr(results)
    assert "<table" in results._repr_html_()
    said = json.loads(path.with_suffix(".source.json").read_text())
    assert said["source"] == name
    assert said["files"]
    assert all(one["url"].startswith("http") for one in said["files"])
    assert said["n_models"] == shape[0]
    # What was fetched is not fetched again.
    before = [one for one in site.requests if said["files"][0]["path"] in one]
    again = fewbench.get(name, **asked)
    assert again.scores.equals(scores)
    assert [one for one in site.requests if said["files"][0]["path"] in one] == before


@pytest.mark.parametrize("benchmark", ["arc_challenge", "hellaswag"])
def test_the_authors_probabilities_are_scored_by_the_right_option(site, benchmark):
    scores = fewbench.get("tailoredbench", benchmark=benchmark).scores
    assert scores.values.tolist() == [list(own.values()) for own in RIGHT.values()]
    assert scores.models["role"].tolist() == ["source", "source", "target"]
    options = 3 + np.arange(6) % 2 if benchmark == "arc_challenge" else np.full(6, 4)
    assert scores.items["n_options"].tolist() == options.tolist()
    (first, *_) = scores.probabilities.by_model()
    np.testing.assert_allclose(first.sum(axis=1), 1, atol=1e-3)


def test_other_objects_than_arrays_are_refused_unread(site):
    file = io.BytesIO()
    np.save(file, np.array([[print, print]], dtype=object), allow_pickle=True)
    folder = "BenchmarkDatasets/arc_challenge"
    site.github["marvelcell/TailoredBench"][f"{folder}/source_model_alldata.npy"] = file.getvalue()
    with pytest.raises(PublicError, check=lambda error: error.kind == "misread"):
        fewbench.get("tailoredbench", benchmark="arc_challenge")


NAMED = {
    "livebench": ({}, ["M3", "org/m1-7b", "gone"], ["org/m1-7b", "lab/m3"]),
    "alpaca-eval": ({}, ["m3", "m1-7b"], ["m1-7b", "m3"]),
    "helm": ({"benchmark": "lite"}, ["m3", "org/m1-7b"], ["org/m1-7b", "lab/m3"]),
    "open-llm-leaderboard-v1": ({"benchmark": "arc"}, ["model-a", "toy/model-b"], None),
}


@pytest.mark.parametrize("name", NAMED)
def test_models_may_be_named(site, name, monkeypatch, capsys):
    """In a list or a file; only their files are fetched where the listing names models."""
    words, wanted, expected = NAMED[name]
    results = fewbench.get(name, models=wanted, **words)
    expected = expected or ["toy/model-a", "toy/model-b"]
    assert sorted(results.scores.model_ids) == sorted(expected)
    missing = [note for note in results.notes if "not there" in note]
    assert bool(missing) == ("gone" in wanted)
    if name == "helm":
        assert not any("m2-70b" in one.url for one in results.files.found.files)
    Path("names.txt").write_text("\n".join(wanted))
    options = [f"--{key}={value}" for key, value in words.items()]
    typed = ["get", name, *options, "--models", "names.txt", "--json", "-o", "n.parquet"]
    monkeypatch.setattr("sys.argv", ["fewbench", *typed])
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code, capsys.readouterr().err
    assert json.loads(capsys.readouterr().out)["models"] == wanted
    with pytest.raises(PublicError, match="2 models"):
        fewbench.get(name, models=["nobody", "no-one"], **words)


HUB = "/datasets/livebench/model_judgment/resolve/" + "c" * 40
LIVE = f"{HUB}/data/leaderboard-00000-of-00001.parquet"


@pytest.mark.parametrize(
    ("faults", "requests"),
    [
        ([429, 503], 3),
        ([{"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 500, 502], 4),
        (["truncated", "truncated"], 7),
        (["moved"], 5),
    ],
)
def test_failures_that_pass(site, faults, requests, monkeypatch):
    size = len(site.hub["livebench/model_judgment"][LIVE[len(HUB) + 1 :]])
    if requests > 4:  # in several blocks
        monkeypatch.setattr(fetching, "BLOCK", size // 5 + 1)
    site.faults[LIVE] = list(faults)
    assert fewbench.get("livebench").scores.n_models == 3
    assert len(site.paths(LIVE)) == requests + ("moved" in faults)
    if "truncated" in faults:  # a download goes on with the block where it stopped
        assert site.sent[LIVE] == pytest.approx(1.2 * size, rel=0.01)


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ([503] * 6, "HTTP 503"),
        (["truncated"] * 9, "bytes came|connection failed"),
        (["wrong"] * 6, "a different size or checksum"),
        ([404], "no such file"),
        ([401], "access is refused"),
        ([418], "HTTP 418"),
        ([{"Retry-After": "9999"}], "asks for a pause of 167 minutes"),
    ],
)
def test_failures_that_stay(site, faults, said, tmp_path):
    if "truncated" in faults:
        site.hub["livebench/model_judgment"][LIVE[len(HUB) + 1 :]] = b"x" * 100_000
    site.faults[LIVE] = list(faults)
    with pytest.raises(PublicError, match=said) as found:
        fewbench.get("livebench", tmp_path / "s.parquet")
    assert found.value.hint
    assert not (tmp_path / "s.parquet").exists()
    assert not list((tmp_path / "cache").rglob("*.parquet"))
    assert all(part.stat().st_size for part in (tmp_path / "cache").rglob("*.part"))


def test_listings_that_fail(site):
    live = "/api/datasets/livebench/model_judgment"
    swe = "/gh-api/repos/SWE-bench/experiments/commits/HEAD"
    site.faults[live] = [429, 503]
    site.faults[swe] = [503, 429]
    assert fewbench.find_public_files("livebench").n_bytes > 0
    assert fewbench.find_public_files("swe-bench").n_bytes > 0
    spent = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "99999999999"}
    site.faults[swe] = [spent] * 6
    with pytest.raises(PublicError, check=lambda error: error.kind == "unreachable"):
        fewbench.get("swe-bench")
    # One model that is not there is left out and named; a host that fails is not.
    asked = LAYOUTS["open-llm-leaderboard-v1"][0]
    site.faults["/api/datasets/open-llm-leaderboard-old/details_toy__model-a"] = [503] * 6
    with pytest.raises(PublicError, match="HTTP 503"):
        fewbench.get("open-llm-leaderboard-v1", **asked)
    notes = " ".join(fewbench.get("open-llm-leaderboard-v1", **asked).notes)
    assert "1 of 3 models left out: open-llm-leaderboard-old/details_toy__empty" in notes


def test_addresses_and_promises_that_are_wrong(site):
    record = "zenodo/api/records/12819251"
    known = json.loads(site.plain[record])
    for url in ("http://[::", "nowhere://x/y", f"{site.address}/loop", f"{site.address}/gone"):
        known["files"][0]["links"]["self"] = url
        site.plain[record] = json.dumps(known).encode()
        with pytest.raises(PublicError):
            fewbench.get("metabench", benchmark="gsm8k")


def test_failures_of_plain_hosts(site, monkeypatch, tmp_path):
    path = "/lcb/performances_generation.json"
    for faults, said in (
        (["truncated"] * 4, "failed"),
        ([503] * 6, "HTTP 503"),
        ([404], "no such file"),
        ([401], "refused"),
    ):
        site.faults[path] = list(faults)
        with pytest.raises(PublicError, match=said):
            fewbench.get("livecodebench")
        assert all(part.stat().st_size for part in tmp_path.rglob("*.part"))
    site.faults[path] = ["truncated", 503, "truncated"]
    assert fewbench.get("livecodebench").scores.n_models == 3
    name = "gsm8k.csv"
    site.plain[f"zenodo/files/{name}"] = b"x" * len(site.plain[f"zenodo/files/{name}"])
    with pytest.raises(PublicError, match="a different size or checksum"):
        fewbench.get("metabench", benchmark="gsm8k")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setitem(fewbench.public.hosts.HOSTS, "zenodo", "http://127.0.0.1:9")
    for asked in ({"name": "livebench"}, {"name": "metabench", "benchmark": "gsm8k"}):
        with pytest.raises(PublicError, match="connection failed") as found:
            fewbench.get(**asked)
        assert "check the network" in found.value.hint


def test_gated_repositories(site):
    site.gated |= {"livebench/model_judgment", "open-llm-leaderboard/toy__model-a-details"}
    with pytest.raises(PublicError, match="terms are not accepted") as found:
        fewbench.get("livebench")
    assert "hf auth login" in found.value.hint
    files = fewbench.find_public_files("open-llm-leaderboard-v2", benchmark="musr")
    assert "2 of 3 models left out" in files.notes[0]
    site.gated.add("open-llm-leaderboard/toy__model-b-details")
    del site.hub["open-llm-leaderboard/contents"]
    with pytest.raises(PublicError, match="no such dataset repository"):
        fewbench.get("open-llm-leaderboard-v2", benchmark="musr")


def test_connections_are_few_and_samples_are_nested(site):
    site.pause = 0.01
    few = fewbench.find_public_files("alpaca-eval", models=2)
    fewbench.get("alpaca-eval", models=2)
    assert site.busiest <= fetching.CONNECTIONS
    every = fewbench.find_public_files("alpaca-eval")
    assert set(few.to_frame()["path"]) < set(every.to_frame()["path"])
    assert fewbench.get("livecodebench", models=2).scores.n_models == 2
    assert fewbench.get("hub:me/scores", models=3).scores.n_models == 3
    assert "MB" not in repr(few)


BROKEN = {
    "empty": lambda data: b"",
    "torn": lambda data: data[: len(data) // 2],
    "null": lambda data: b"null",
    "list": lambda data: b'[{"a": [1, null]}, 3]',
    "page": lambda data: b"<!doctype html><title>Sign in</title>",
}


INDEXES = ("manifest", "runs_to_run", "submission.json", "api/")


@pytest.mark.parametrize("kind", BROKEN)
def test_malformed_downloads(site, kind):
    """All files of a source are broken alike, as the listing promises, but for its indexes."""
    for published in (*site.hub.values(), *site.github.values(), site.bucket, site.plain):
        for path, data in published.items():
            if not any(one in path for one in INDEXES):
                published[path] = BROKEN[kind](data)
    for name, (asked, _, _) in LAYOUTS.items():
        with pytest.raises(FewbenchError) as found:
            fewbench.get(name, **asked)
        assert "Traceback" not in str(found.value), name
        assert len(str(found.value)) > 20


@pytest.mark.parametrize("kind", ["null", "list", "page", "torn"])
def test_malformed_listings(site, kind):
    answer = site.answer

    def broken(path, query, body):
        status, headers, data = answer(path, query, body)
        listing = any(one in path for one in ("api", "storage/v1", "manifest", "runs_to_run"))
        return status, headers, BROKEN[kind](data) if listing else data

    site.answer = broken
    for name, (asked, _, _) in LAYOUTS.items():
        if name != "livecodebench":  # has no listing
            with pytest.raises(FewbenchError):
                fewbench.get(name, **asked)


HOSTILE = {
    "commit that leaves the cache": ("sha", "../../../outside"),
    "commit that is a page": ("sha", "c" * 39 + "\n"),
    "no commit": ("sha", None),
    "size in words": ("size", "big"),
    "size below 0": ("size", -1),
    "zero byte in a name": ("rfilename", "a\0b.parquet"),
    "name that leaves the cache": ("rfilename", "../../b.parquet"),
    "name that is a number": ("rfilename", 7),
    "deep": (None, None),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_a_hostile_site_says(site, tmp_path, kind):
    """Names, commits and sizes in listings are checked before they become paths and numbers."""
    field, value = HOSTILE[kind]
    answer = site.answer

    def changed(said):
        if isinstance(said, list):
            return [changed(one) for one in said]
        if not isinstance(said, dict):
            return said
        same = {field, "path"} if field == "rfilename" else {field}
        return {key: value if key in same else changed(one) for key, one in said.items()}

    def hostile(path, query, body):
        status, headers, data = answer(path, query, body)
        if "api/" not in path:  # downloads, from wherever the listing says
            files = {name: held for repo in site.hub.values() for name, held in repo.items()}
            found = [held for name, held in files.items() if path.endswith(f"/{name}")]
            return (200, {}, found[0]) if found else (status, headers, data)
        if field is None:
            return status, headers, b"[" * 100_000
        return status, headers, json.dumps(changed(json.loads(data))).encode()

    site.answer = hostile
    for name in ("livebench", "hub:me/scores", "openeval", "measurement-db", "terminal-bench"):
        with pytest.raises(PublicError) as found:
            fewbench.get(name, "s.parquet", **LAYOUTS[name][0])
        assert len(str(found.value)) < 500
    with pytest.raises(PublicError):
        fewbench.get_pack("hub:me/packs")
    for name in ("swe-bench", "mmlu-pro") if field != "rfilename" else ():
        with pytest.raises(PublicError):
            fewbench.get(name, **LAYOUTS[name][0])
    below = [one.relative_to(tmp_path).parts[0] for one in tmp_path.rglob("*") if one.is_file()]
    assert set(below) <= {"cache"}


def test_replies_are_read_no_further_than_expected(site, monkeypatch):
    """A host that ignores Range, or packs a listing of 20 MB into 20 kB, fills no memory."""
    answer = site.answer

    def ignoring(path, query, body):
        status, headers, data = answer(path, query, body)
        if path.endswith(".parquet"):  # the site sends all of what is encoded
            headers, data = {**headers, "Content-Encoding": "identity"}, data + bytes(2**25)
        return status, headers, data

    def packing(path, query, body):
        status, headers, data = answer(path, query, body)
        if path.startswith("/gh-api"):
            headers = {**headers, "Content-Encoding": "gzip"}
            data = gzip.compress(b" " * 2 * 10**7 + data)
        return status, headers, data

    monkeypatch.setattr(fetching, "MOST_JSON", 0.001)
    for one, name in ((ignoring, "livebench"), (packing, "swe-bench")):
        site.answer = one
        with pytest.raises(PublicError, check=lambda error: error.kind == "limit"):
            fewbench.get(name, **LAYOUTS[name][0])
    assert sum(site.sent.values()) < 2**24


def test_numbers_that_would_be_wrong(site):
    """What a source promises of its scores, items and instances is checked before it is used."""
    hub = site.hub
    path = "lcb/performances_generation.json"
    site.plain[path] = site.plain[path].replace(b"100.0", b"1.0")
    hub["Open-Eval-Commons/OpenEval"]["item/train-1.parquet"] = parquet(
        {"item_id": ["ifeval_q0_m1-7b"]}
    )
    kind = {"benchmark_id": ["toy"], "response_type": ["continuous"], "granularity": ["item"]}
    hub["aims-foundations/measurement-db"]["toy/benchmarks.parquet"] = parquet(kind)
    hub["SWE-bench/SWE-bench_Verified"]["data/test-1.parquet"] = b"more instances"
    alpaca = site.github["tatsu-lab/alpaca_eval"]
    for path in [one for one in alpaca if "annotations" in one]:
        alpaca[path] = alpaca[path].replace(b"2.0", b"20.0")
    for name, said in (
        ("livecodebench", "not from 0 to 100"),
        ("openeval", "fits 2 items"),
        ("measurement-db", "continuous"),
        ("swe-bench", "2 files data/test"),
        ("alpaca-eval", "outside the range"),
    ):
        with pytest.raises(FewbenchError, match=said):
            fewbench.get(name, **LAYOUTS[name][0])


def test_a_repository_that_holds_other_things(site):
    for asked, said in (
        ({"name": "hub:me/logs", "form": "helm"}, "no logs of helm"),
        ({"name": "hub:me/logs", "split": "nowhere"}, "no result files below nowhere"),
        ({"name": "hub:me/table"}, "no columns named"),
        ({"name": "hub:me/none"}, "no such dataset repository"),
    ):
        with pytest.raises(PublicError, match=said) as found:
            fewbench.get(**asked)
        assert found.value.hint
    part = fewbench.get("hub:me/logs", split="toy__model-a-details")
    assert part.scores.model_ids == ["toy/model-a"]


def test_a_published_pack(site, tmp_path):
    made_pack = fewbench.pack(simulate(12, 40), "random", 5, backtest=False)
    made = tmp_path / "made.few"
    made_pack.save(made)
    packs = site.hub["me/packs"] = {"README.md": b"x", "small.few": made.read_bytes()}
    path = fewbench.get_pack("hub:me/packs")
    assert path.name == "small.few"
    assert fewbench.open_pack(path).names == made_pack.names
    packs["damaged.few"] = made.read_bytes()[:-50]
    for name, said in (
        ("hub:me/packs", "no single pack named"),
        ("hub:me/packs/other.few", "no single pack named"),
        ("hub:me/packs/damaged.few", "."),
        ("hub:me/packs/small.few", "exists"),
        ("hub:me/scores", "packs there: none"),
        ("me/packs", "is not a dataset repository"),
        ("hub:me", "is not a dataset repository"),
    ):
        with pytest.raises(FewbenchError, match=said):
            fewbench.get_pack(name)
    assert not Path("damaged.few").exists()


def test_what_cannot_be_asked():
    for name, asked, said in (
        ("lvebench", {}, "did you mean livebench"),
        ("hub:nothing", {}, "hub:ORG/DATASET"),
        ("helm", {}, "no --benchmark named"),
        ("helm", {"benchmark": "lit"}, "did you mean lite"),
        ("swe-bench", {"split": "verify"}, "did you mean verified"),
        ("livecodebench", {"split": "x"}, "has no splits"),
        ("livecodebench", {"revision": "x"}, "has no revisions"),
        ("livebench", {"form": "lm-eval"}, "omit --from"),
        ("hub:a/b", {"form": "lm_eval"}, "did you mean lm-eval"),
        ("livebench", {"models": 1}, "too few"),
        ("livebench", {"output": "s.csv"}, "saved as Parquet"),
    ):
        with pytest.raises(PublicError, match=said):
            fewbench.get(name, **asked)


def test_paths_of_a_listing_stay_in_the_folder():
    for path in ("../x", "/etc/x", "a/../../x", ""):
        with pytest.raises(PublicError):
            fetching.Remote("http://x", path)
    for version in ("..", ".", "", "a/b", "a\0", "../x"):  # of a release; the user may name it, too
        with pytest.raises(PublicError):
            source.Index([], version)


def test_the_scores_split_by_date_and_family(site):
    scores = fewbench.get("swe-bench").scores
    assert list(scores.items["repository"]) == ["org/repo"] * 6
    newest = make_split(scores, fewbench.SplitSettings("chronological", targets=0.3), 0, 0)
    assert [scores.model_ids[at] for at in newest.targets] == ["20240103_m3"]
    family = make_split(scores, fewbench.SplitSettings("group", targets=0.3), 0, 0)
    assert len(family.targets) == 1
    assert scores.models.loc["20240103_m3", "family"] == "20240103_m3"  # no metadata


def test_killed_three_times_and_continued(site, tmp_path):
    """By the system, and by Ctrl-C: what came is kept, and the end is that of one run."""
    values = np.random.default_rng(0).random((60, 2500))
    table = fewbench.from_arrays(values, models=[f"m{at}" for at in range(60)])
    path = fewbench.save_scores(table, tmp_path / "big.parquet")
    size = path.stat().st_size
    assert size > 10**6
    site.hub["me/big"] = {"big.parquet": path.read_bytes()}
    url = f"/datasets/me/big/resolve/{'c' * 40}/big.parquet"
    program = "from fewbench.public import fetching; fetching.BLOCK = 1 << 14; "
    program += "from fewbench.cli import main; main()"
    command = [sys.executable, "-c", program, "get", "hub:me/big", "-o", "s.parquet"]
    for end in (signal.SIGKILL, signal.SIGINT, signal.SIGKILL):
        enough, deadline = site.sent[url] + size / 6, time.monotonic() + 120
        site.most[url] = enough
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            while site.sent[url] < enough:
                assert time.monotonic() < deadline
                assert process.poll() is None, process.stderr.read()
                time.sleep(0.005)
            process.send_signal(end)
            while process.poll() is None:  # a download ends after its next block
                assert time.monotonic() < deadline
                site.most[url] += 1 << 14
                time.sleep(0.1)
            said = process.stderr.read()
        assert not (tmp_path / "s.parquet").exists()
        if end == signal.SIGINT:
            assert process.returncode == 130
            assert "no file is damaged" in said
            assert "Traceback" not in said
    del site.most[url]
    found = fewbench.get("hub:me/big").scores
    assert found.changed(models=table.models).equals(table)
    assert size <= site.sent[url] < 1.6 * size  # nothing that was kept is fetched again


def test_the_command(site, monkeypatch, capsys):
    def run(*words):
        monkeypatch.setattr("sys.argv", ["fewbench", "get", *words])
        with pytest.raises(SystemExit) as exit_:
            main()
        said = capsys.readouterr()
        return exit_.value.code or 0, said.out, said.err

    code, out, _ = run("list")
    assert code == 0
    assert all(name in out for name in SOURCES)
    assert {one["name"] for one in json.loads(run("list", "--json")[1])} == set(SOURCES)
    assert run("list", "--force")[0] == 2
    code, out, _ = run("livebench", "--dry-run")
    assert code == 0
    said = json.loads(run("livebench", "--dry-run", "--json")[1])
    assert said["bytes"] == said["files"][0]["bytes"] > 1000
    size = f"{said['bytes'] / 1000:.3g} kB"
    assert f"1 file, {size}" in out
    assert f"{size} to fetch into" in out
    assert f"{size}  {site.address}/datasets/livebench/model_judgment/resolve/" in out
    assert not site.paths("/resolve/")  # nothing but listings
    code, out, err = run("livebench", "--benchmark", "coding")
    assert code == 0
    assert "wrote livebench-coding.parquet" in out
    assert "license: not stated; cite: White" in out
    assert "Use these methods" in out  # the audit
    assert "note: questions rotate" in err
    code, _, err = run("livebench", "--benchmark", "coding")
    assert code == 2
    assert "already exists" in err
    code, out, _ = run("livebench", "--benchmark", "coding", "--force", "--json")
    assert json.loads(out)["written"] == "livebench-coding.parquet"
    assert json.loads(out)["audit"]["table"]["models"] == 3
    code, _, err = run("livebench", "--benchmark", "math", "-o", "m.parquet")
    assert code == 2
    assert "coding, language" in err
    assert "Traceback" not in err


def test_without_the_extra(monkeypatch):
    for module, name in (("huggingface_hub", "livebench"), ("requests", "livecodebench")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(fewbench.FewbenchError, match="huggingface_hub") as found:
            fewbench.get(name)
        assert "fewbench[hub]" in found.value.hint
