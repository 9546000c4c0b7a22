"""What is printed and written: keys are masked and names are not, nothing steers a terminal, any
locale will do.
"""

import io
import json
import os
import re
import subprocess
import sys

import pytest
from replying import Replying, serving

import fewbench
from fewbench._text import keep_secrets, masked, masked_arguments
from fewbench.errors import EvaluationError
from fewbench.evaluation.entries import RunBatch
from fewbench.runners.batches import check_facts, masked_facts
from fewbench.testing import simulate

KEY = "sk-0123456789abcdef"
ESCAPES = "\x1b[31m\x07\x9b2J\u202e"
STEERING = set("\x1b\x07\x9b\u202e\r\x08")
FAILS = """
import json, os, sys
for line in sys.stdin:
    item, said = json.loads(line)["item"], os.environ.get("MY_API_KEY") or SAID
    print(json.dumps({"item": item} | ({"error": said} if item[-1] in "05" else {"score": 1})),
          flush=True)
"""


def run(cli, scores, *words, program=FAILS):
    given = ("--tries", 1, "-o", "run", "-m", "random", "-n", 40, *words)
    return cli("run", "command", scores, *given, "--", sys.executable, "-S", "-c", program)


def texts_below(folder):
    return {one.name: one.read_text("utf-8") for one in folder.rglob("*.json*")}


def test_escapes_of_programs_and_names_do_not_reach_the_terminal(cli, scores, tmp_path):
    target = f"new{ESCAPES}"
    program = FAILS.replace("SAID", repr(f"no{ESCAPES}"))
    said = run(cli, scores, "-t", target, "--report", "page.html", program=program)
    assert said.code == 0, said.err
    assert "new\\u001b[31m\\u0007\\u009b2J\\u202e scores 100.0% " in said.out
    shown = [said.out, said.err]
    for words in (("estimate", "run"), ("estimate", "run", "--json"), ("ask", "run")):
        again = cli(*words)
        shown += [again.out, again.err]
    shown += [text for name, text in texts_below(tmp_path / "run").items() if name == "result.json"]
    assert not STEERING & set("".join(shown[:-1]))
    assert not set("\x1b\x07") & set(shown[-1])
    assert target in json.loads(cli("estimate", "run", "--json").out)  # JSON gives it back
    missing = cli("estimate", f"nowhere{ESCAPES}")
    assert missing.code == 2
    assert not STEERING & set(missing.err)


def test_reasons_are_plain_in_python_too(monkeypatch):
    monkeypatch.setenv("MY_API_KEY", KEY)

    def fail(item):
        raise ValueError(f"{ESCAPES}{KEY}")

    found = repr(fewbench.run(simulate(20, 40, seed=2), "random", 12, fail))
    assert not STEERING & set(found)
    assert KEY not in found
    assert "first: ValueError: \\u001b[31m" in found


def test_keys_that_programs_repeat_are_masked(cli, scores, monkeypatch, tmp_path):
    monkeypatch.setenv("MY_API_KEY", KEY)
    words = ("--report", "page.html")
    said = run(cli, scores, *words)
    again = run(cli, scores, *words, "--force", "--json")
    assert (said.code, again.code) == (0, 0), again.err
    texts = [said.out, said.err, again.out, again.err, *texts_below(tmp_path / "run").values()]
    texts.append((tmp_path / "page.html").read_text())
    assert "8 items failed" in said.out
    assert "(the key)" in " ".join(said.out.split())
    assert not [text for text in texts if KEY in text]


def test_a_key_among_the_facts_does_not_keep_a_run_from_going_on(monkeypatch):
    monkeypatch.setenv("MY_API_KEY", KEY)
    facts = masked_facts({"program": f"./answer --key {KEY}"})
    kept = [RunBatch(target="new", facts=facts)]
    assert KEY not in repr(kept)
    for is_new in (True, False):
        assert check_facts(kept, "new", facts, is_new=is_new, accept=False) is None


COUNTS = """
import json, sys
for line in sys.stdin:
    item = json.loads(line)["item"]
    print(item, file=open("asked", "a"))
    print(json.dumps({"item": item, "score": 1}), flush=True)
"""


def test_names_are_never_masked(cli, monkeypatch, tmp_path):
    """Not even where a key, such as that of a server of one's own, is a part of them."""
    for name in ("lm-studio", "benchmark", "fewbench"):
        monkeypatch.setenv(f"{name.replace('-', '_').upper()}_API_KEY", name)
    ids = [f"benchmark-{at}" for at in range(30)]
    (tmp_path / "items.csv").write_text("\n".join(["id", *ids]))
    (tmp_path / "asks.py").write_text(COUNTS)
    target = "openai-api/lm-studio/qwen"
    words = ("run", "command", "items.csv", "-n", 12, "-t", target, "-o", "fewbench-run", "--")
    program = (sys.executable, "asks.py", "--model", "lm-studio/qwen", "--api-key", "hunter2")
    for _ in range(2):
        said = cli(*words, *program)
        assert said.code == 0, said.err
        assert "fewbench estimate fewbench-run" in said.err
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == len(set(asked)) == 12
    assert set(asked) <= set(ids)
    assert [*json.loads(cli("estimate", "fewbench-run", "--json").out)] == [target]
    kept = (tmp_path / "fewbench-run" / "answers.jsonl").read_text()
    assert "hunter2" not in kept
    monkeypatch.delenv("LM_STUDIO_API_KEY")  # the argument was masked: said, and not paid again
    changed = cli(*words, *program)
    assert (changed.code, len((tmp_path / "asked").read_text().splitlines())) == (2, 12)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("--api-key k1 --max-tokens 5 --key-field id", "--api-key (the key) --max-tokens 5"),
        ("--token=k1 --eos-token </s>", "--token=(the key) --eos-token </s>"),
        ("pretrained=x,api_key=k1,pad_token=y", "pretrained=x,api_key=(the key),pad_token=y"),
        ("{'api_key': 'k1', 'auth_token': 'k2'}", "{'api_key': '(the key)', 'auth_token': '("),
        ("http://me:k1@here/v1?api_key=k2&n=3", "http://me:(the key)@here/v1?api_key=(the key)&n"),
        ("-H 'Authorization: Bearer k1'", "-H 'Authorization: Bearer (the key)'"),
        ("OPENAI_API_KEY=k1 AWS_SECRET_ACCESS_KEY=k2 AWS_ACCESS_KEY_ID=id", "AWS_ACCESS_KEY_ID=id"),
        ("OPENAI_API_KEY=$KEY ask", "OPENAI_API_KEY=$KEY ask"),
    ],
)
def test_keys_among_arguments(given, kept):
    shown = masked_arguments(given)
    assert kept in shown
    assert not {"k1", "k2"} & set(re.findall(r"\w+", shown))
    assert masked_arguments(shown) == shown


READ = (
    *("ANTHROPIC_AUTH_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "AWS_SECRET_ACCESS_KEY"),
    *("AWS_SESSION_TOKEN", "AZURE_ACCOUNT_KEY", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_SAS_TOKEN"),
    *("AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_SAS_TOKEN", "AZUREAI_OPENAI_API_KEY"),
    *("CLOUDFLARE_API_TOKEN", "GITHUB_TOKEN", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"),
    *("OPENAI_API_KEY", "RESTIC_PASSWORD"),
)
"""What Inspect, its providers, lm-eval and the Hub read."""


def test_variables_that_hold_keys(monkeypatch):
    for name in READ:
        monkeypatch.setenv(name, f"value-of-{name}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "value-of-no-secret")
    monkeypatch.setenv("VLLM_BASE_URL", "http://me:short@here")
    repeated = " ".join(os.environ[name] for name in READ)
    assert set(masked(repeated).replace("(the key)", "").split()) == set()
    assert masked("value-of-no-secret me:short@here") == "value-of-no-secret me:(the key)@here"


class Repeats(Replying):
    """A server that repeats the key in replies of status 200."""

    def reply(self, asked):
        key = self.headers["Authorization"].removeprefix("Bearer ")
        message = {"role": "assistant", "content": f"A, by {key}"}
        head = {"id": key, "object": "chat.completion", "created": 0, "model": key}
        choice = {"index": 0, "message": message, "finish_reason": "length"}
        return head | {"choices": [choice]}


@pytest.mark.filterwarnings("ignore:The 'initial' parameter:DeprecationWarning")  # of tenacity
def test_keys_that_servers_repeat_are_masked(cli, scores, table, monkeypatch, tmp_path):
    pytest.importorskip("inspect_ai")
    pytest.importorskip("openai", reason="models behind a server need the package openai")
    monkeypatch.setenv("LOCAL_API_KEY", KEY)
    lines = [
        {"id": item, "question": text, "answer": "A"} for item, text in table.items["text"].items()
    ]
    (tmp_path / "items.jsonl").write_text("\n".join(map(json.dumps, lines)))
    command = ("run", "endpoint", scores, "items.jsonl", "-m", "random", "-n", 6, "-o", "run")
    given = ("--model", "openai-api/local/m", "--json", "--", "-M", f"api_key={KEY}")
    with serving(Repeats) as url:
        said = cli(*command, "--url", url, *given)
    assert said.code == 0, said.err
    assert "(the key)" in (tmp_path / "run" / "answers.jsonl").read_text()
    own = [one.read_text("utf-8") for one in (tmp_path / "run").glob("*.json*")]
    assert not [text for text in (said.out, said.err, *own, *logged(tmp_path)) if KEY in text]


class Refuses(Repeats):
    """A server that refuses the key, and repeats it."""

    status = 401

    def reply(self, asked):
        key = self.headers["Authorization"].removeprefix("Bearer ")
        return {"error": {"message": f"Incorrect API key provided: {key}", "code": 401}}


def logged(place):
    """Return what Inspect's logs hold."""
    from inspect_ai.log import read_eval_log

    logs = [*(place / "run" / "logs").glob("*.eval")]
    assert logs
    return [read_eval_log(str(path)).model_dump_json() for path in logs]


@pytest.mark.filterwarnings("ignore:The 'initial' parameter:DeprecationWarning")  # of tenacity
def test_errors_in_logs_and_on_the_terminal_are_masked_and_samples_are_not(tmp_path):
    pytest.importorskip("inspect_ai")
    pytest.importorskip("openai", reason="models behind a server need the package openai")
    lines = [{"id": f"number-{at}", "question": f"What is number {at}?"} for at in range(12)]
    text = "\n".join(json.dumps(line | {"answer": "1"}) for line in lines)
    (tmp_path / "items.jsonl").write_text(text)
    keys = {"LOCAL_API_KEY": KEY, "OTHER_API_KEY": "number-1", "A_API_KEY": "What is number"}
    with serving(Refuses) as url:
        words = f"run endpoint items.jsonl -n 12 -o run --model openai-api/local/m --url {url}"
        said = command_line(words, tmp_path, **keys)
    assert said.returncode == 1, said.stderr
    assert "WARNING" in said.stdout + said.stderr  # Inspect's own messages
    (log,) = logged(tmp_path)
    assert not [text for text in (said.stdout, said.stderr, log) if KEY in text]
    assert "Incorrect API key provided: (the key)" in log
    samples = json.loads(log)["samples"]
    assert {sample["id"] for sample in samples} <= {line["id"] for line in lines}
    assert all(
        sample["input"] == f"What is {sample['id'].replace('-', ' ')}?" for sample in samples
    )


def test_arguments_that_are_keys_stand_in_no_log_and_in_no_table(tmp_path):
    pytest.importorskip("inspect_ai")
    from inspect_ai import Task, eval, task
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import match

    from fewbench.readers.harnesses.inspect_logs.header import task_settings_of, variant_of
    from fewbench.runners.inspect.masking import masking_inspect

    keep_secrets(f"-T api_key={KEY}")

    @task
    def asks(api_key="", n=1):
        assert api_key == KEY
        return Task([Sample(input="api_key=", target="1") for _ in range(n)], scorer=match())

    place = str(tmp_path / "run" / "logs")
    with masking_inspect():
        asked = asks(api_key=KEY, n=2)
        (log,) = eval(asked, model="mockllm/model", display="none", log_dir=place)
    (text,) = logged(tmp_path)
    assert KEY not in text
    assert '"api_key":"(the key)"' in text
    settings = dict(task_settings_of(log))
    assert settings["task argument: n"] == "2"
    assert KEY not in f"{settings} {variant_of(log)}"


@pytest.mark.parametrize("name", [".", "..", "_", "\0/"])
def test_names_that_would_be_other_folders(name):
    pytest.importorskip("lm_eval")
    from fewbench.runners.lm_eval.runner import LmEvalRunner

    runner = LmEvalRunner(models={name: object()}, folder="logs")
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "name"):
        runner.prepare(simulate(5, 9), [name])
    same = LmEvalRunner(models={"a/b": object(), "a:b": object()}, folder="logs")
    with pytest.raises(Exception, match="would share a folder"):
        same.prepare(simulate(5, 9), ["a/b", "a:b"])


def command_line(words, place=".", **environment):
    command = f"{sys.executable} -m fewbench {words}"
    given = {"cwd": place, "env": {**os.environ, **environment}}
    return subprocess.run(command, shell=True, capture_output=True, text=True, **given)


def test_a_closed_output_is_an_error_before_the_work(scores, tmp_path):
    said = command_line(f"start {scores} -m random -n 5 -o run >&-")
    assert said.returncode == 2
    assert said.stderr.startswith("fewbench: error: the standard output is closed (hint: ")
    assert said.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()
    without = command_line("estimate nowhere 2>&-")
    assert (without.returncode, without.stdout) == (2, "")


PLAIN = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_paths_that_the_locale_cannot_say(scores, tmp_path):
    folder = tmp_path / "résumé"
    folder.mkdir()
    for place, words, kind in (
        (tmp_path, f"start {scores} -m random -n 5 -o {folder}", PLAIN),
        (folder, f"start {scores} -m random -n 5 -o run", PLAIN),
        (tmp_path, "start $(printf 'r\\351sum\\351').parquet -m random -n 5 -o run", {}),
    ):
        said = command_line(words, place, **kind)
        assert said.returncode == 2, said.stderr
        assert "not text in this locale" in said.stderr
        assert "LC_ALL=C.UTF-8" in said.stderr
        assert said.stderr.count("\n") == 1
    assert not list(folder.iterdir())


def test_output_that_the_locale_cannot_say(cli, scores, monkeypatch):
    run(cli, scores, "-t", "modèle–α", program=FAILS.replace("SAID", "None"))
    plain, latin = (
        io.TextIOWrapper(io.BytesIO(), encoding=name, write_through=True)
        for name in ("ascii", "latin-1")
    )
    for stream in (plain, latin):
        monkeypatch.setattr("sys.stdout", stream)
        assert cli("estimate", "run").code == 0
    assert "modèle–α".encode() in plain.buffer.getvalue()
    assert b"mod\xe8le\\u2013\\u03b1" in latin.buffer.getvalue()
