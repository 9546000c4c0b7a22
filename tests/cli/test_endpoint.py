"""fewbench run endpoint: the questions of a file, asked through Inspect behind a local server."""

import csv
import json
import time
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec

import pytest
from replying import Replying, serving

from fewbench.public import load_scores
from fewbench.runners.endpoint import question_tasks, run_endpoint
from fewbench.scores import save_scores

needed = [name for name in ("inspect_ai", "openai") if find_spec(name) is None]
pytestmark = [
    pytest.mark.skipif(bool(needed), reason=f"models behind a server need {needed}"),
    # Of tenacity, as Inspect uses it.
    pytest.mark.filterwarnings("ignore:The 'initial' parameter:DeprecationWarning"),
]

MODEL = "openai-api/local/m"
RIGHT = {"message": {"content": "ANSWER: A"}, "finish_reason": "stop"}
REPLIES = {
    "right, and cut": {"message": {"content": "ANSWER: A"}, "finish_reason": "length"},
    "wrong, and whole": {"message": {"content": "ANSWER: B"}, "finish_reason": "stop"},
    "cut": {"message": {"content": "Let me think"}, "finish_reason": "length"},
    "thinking": {"message": {"content": None}, "finish_reason": "length"},
    "filtered": {"message": {"content": None}, "finish_reason": "content_filter"},
}


class Server(Replying):
    """Answers the question N by the reply N of `coming`, then by right ones; keeps the prompts."""

    coming: tuple = ()
    asked: list

    def reply(self, asked):
        text = asked["messages"][-1]["content"]
        self.asked.append(text)
        found = [REPLIES[name] for at, name in enumerate(self.coming) if f"number {at}?" in text]
        choice = {"index": 0, **(found[0] if found else self.right(text))}
        choice["message"] = {"role": "assistant", **choice["message"]}
        usage = {"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55}
        head = {"id": "1", "object": "chat.completion", "created": 0, "model": asked["model"]}
        return head | {"choices": [choice], "usage": usage}

    def right(self, text):
        return RIGHT


@pytest.fixture(autouse=True)
def _settings(monkeypatch):
    monkeypatch.setenv("LOCAL_API_KEY", "none")
    monkeypatch.setenv("INSPECT_DISPLAY", "none")  # Inspect sets its display once a process


def lines_of(ids, **changed):
    return [
        {"id": item, "question": f"Which has the number {at}?", "options": ["this", "that"]}
        | {"answer": "A"}
        | changed
        for at, item in enumerate(ids)
    ]


def written(path, lines):
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


@pytest.fixture
def plain(table, tmp_path):
    """The scores without texts."""
    textless = table.changed(items=table.items.drop(columns="text"))
    return save_scores(textless, tmp_path / "plain.parquet")


@pytest.fixture
def run(cli, plain, table, asked, tmp_path):
    """Run the endpoint on 8 items, of which the first get the given replies."""
    cli("start", plain, "-m", "random", "-n", 8, "-o", "chosen")
    chosen = asked("chosen")["target"]
    written(tmp_path / "items.jsonl", lines_of([*chosen, *(set(table.item_ids) - set(chosen))]))

    def call(coming, *words, **more):
        given = ("-m", "random", "-n", 8, "-o", "run", "--model", MODEL)
        parts = {"coming": tuple(coming), "asked": [], **more}
        with serving(type("Handler", (Server,), parts)) as url:
            said = cli("run", "endpoint", plain, "items.jsonl", *given, "--url", url, *words)
        return said, parts["asked"]

    return call


SAID = {
    ("cut", "thinking", "cut"): "3 of 8 replies were cut at the token limit and are not right",
    ("filtered",): "1 of 8 replies was stopped by a content filter and is not right",
    ("right, and cut", "wrong, and whole"): None,
}


@pytest.mark.parametrize("coming", SAID)
def test_replies_are_counted_beside_the_estimate(run, ok, cli, coming, tmp_path):
    said = SAID[coming]
    found, _ = run(coming)
    assert found.code == 0, found.err
    shown = [found.out, (tmp_path / "run" / "result.json").read_text()]
    shown += [
        run((), "--json", "--accept-changes")[0].out,
        ok("estimate", "run"),
        ok("estimate", "run", "--json"),
    ]
    for text in shown:
        flat = " ".join(text.split())
        assert (" replies " in flat) == (said is not None)
        assert said is None or said in flat
    (tmp_path / "run").rename(tmp_path / "before")
    refused, _ = run(coming, "--strict")
    assert refused.code == (0 if said is None else 2)
    if said is not None:
        assert " replies " in refused.err or "1 of 1 reply" in refused.err
        assert "leave out --strict" in refused.err


def test_what_is_asked_and_what_it_took(run, plain, tmp_path):
    found, asked = run(("wrong, and whole",), "--", "--max-tokens", "9")
    assert found.code == 0, found.err
    flat = " ".join(found.out.split())
    assert "Estimated from 8 of 40 items (20.0%), 7 of 8 right" in flat
    assert f"{MODEL} 8 32 440 2,200 1,760" in flat  # tokens, in full, saved
    assert len(asked) == 8
    assert "Which has the number 0?\n\nA) this\nB) that" in "".join(asked)
    again, asked = run(())
    assert (again.code, asked) == (2, [])
    assert "server is http://127.0.0.1:" in again.err
    again, asked = run((), "--accept-changes")
    assert (again.code, asked) == (0, [])


@pytest.mark.parametrize(
    ("words", "reply", "n_right"),
    [
        ((), "The Fox!", 8),  # exact: up to case, punctuation and articles
        ((), "It is the fox", 0),
        (("--scorer", "match"), "It is the fox", 8),
        (("--scorer", "pattern", "--pattern", r"is the (\w+)"), "It is the FOX, not the dog", 8),
    ],
)
def test_open_questions_are_asked_as_they_stand(cli, plain, table, tmp_path, words, reply, n_right):
    form = "csv" if reply == "The Fox!" else "jsonl"
    lines = lines_of(table.item_ids, options=None, answer="wolf", also=["fox"])
    if form == "csv":
        with (tmp_path / "items.csv").open("w", newline="") as file:
            rows = csv.DictWriter(file, list(lines[0]))
            rows.writeheader()
            rows.writerows([one | {"options": "", "also": '["fox"]'} for one in lines])
    written(tmp_path / "items.jsonl", lines)
    right = {"message": {"content": reply}, "finish_reason": "stop"}
    parts = {"asked": [], "right": lambda self, text: right}
    given = ("-m", "random", "-n", 8, "-o", "run", "--model", MODEL)
    with serving(type("Handler", (Server,), parts)) as url:
        said = cli("run", "endpoint", plain, f"items.{form}", *given, "--url", url, *words)
    assert said.code == 0, said.err
    assert f", {n_right} of 8 right" in said.out
    assert set(parts["asked"]) <= {one["question"] for one in lines}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "all 12 replies are empty: check how the model is called"),
        ("It is the fox", "all 12 replies are the same: 'It is the fox'"),
    ],
)
def test_replies_that_are_all_wrong_are_shown(cli, ok, tmp_path, content, said):
    lines = lines_of([f"q{at}" for at in range(12)], options=None, answer="wolf")
    written(tmp_path / "items.jsonl", lines)
    reply = {"message": {"content": content}, "finish_reason": "stop"}
    parts = {"asked": [], "right": lambda self, text: reply}
    with serving(type("Handler", (Server,), parts)) as url:
        given = ("items.jsonl", "-n", 12, "-o", "run", "--model", MODEL, "--url", url)
        found = cli("run", "endpoint", *given)
    for text in (found.out, ok("estimate", "run")):
        flat = " ".join(text.split())
        assert "all 12 answers are wrong: check how replies are read and scored; the reply" in flat
        assert f"' is {content or ''!r}" in flat
        assert said in flat


class Broken(Replying):
    """Replies with an error, or not at all."""

    kind = ""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        data = json.dumps({"error": {"message": "GPU 3 is on fire"}}).encode()
        data = b"<html>Welcome</html>" if self.kind == "page" else data
        self.send_response(429 if self.kind == "pause" else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Retry-After", "86400")
        self.send_header("Content-Length", str(len(data) + 999 * (self.kind == "drip")))
        self.end_headers()
        with suppress(OSError):  # of a client that waits no longer
            self.wfile.write(data)
            while self.kind == "drip":
                time.sleep(0.05)
                self.wfile.write(b" ")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("error", "the server sent no reply: GPU 3 is on fire"),
        ("page", "the server's reply is not JSON: check the path of --url"),
        ("pause", "Error code: 429 - GPU 3 is on fire"),
        ("drip", "attempt_timeout '1' exceeded"),
    ],
)
def test_a_broken_server_ends_the_run_with_its_words(cli, tmp_path, kind, said):
    written(tmp_path / "items.jsonl", lines_of([f"q{at}" for at in range(20)]))
    given = ("items.jsonl", "-n", 20, "-o", "run", "--model", MODEL, "--tries", 1)
    limits = ("--", "--max-retries", 0, "--attempt-timeout", 1 if kind == "drip" else 60)
    with serving(type("Handler", (Broken,), {"kind": kind})) as url:
        found = cli("run", "endpoint", *given, "--url", url, *limits)
    flat = " ".join(found.out.split())
    assert found.code == 1, found.err
    assert said in flat
    assert "Future" not in flat
    assert "failed and skipped" not in flat


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1: no server there: Connection refused"),
        ("ftp://127.0.0.1/v1", "'ftp://127.0.0.1/v1' is not the address of a server"),
        ("localhost:8000", "is not the address of a server"),
        ("http://127.0.0.1:port/v1", "is not the address of a server"),
    ],
)
def test_an_address_without_a_server_is_refused_before_any_request(cli, tmp_path, url, said):
    written(tmp_path / "items.jsonl", lines_of(["q0", "q1"]))
    given = ("items.jsonl", "-n", 2, "-o", "run", "--model", MODEL, "--url", url)
    found = cli("run", "endpoint", *given)
    assert (found.code, said in found.err) == (2, True), found.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("own", [(), ("--timeout=9", "--max-retries", "0")])
def test_requests_have_limits_and_those_of_the_user_count(tmp_path, monkeypatch, own):
    asked = []
    monkeypatch.setattr("fewbench.runners.endpoint.run_inspect", lambda *a, **_: asked.append(a[3]))
    path = written(tmp_path / "items.jsonl", lines_of(["q0", "q1"]))
    run_endpoint(path, [MODEL], None, stop=2, arguments=own, folder=tmp_path / "run")
    (words,) = asked
    assert "--attempt-timeout" in words
    assert words.count("--max-retries") == 1
    assert ("--timeout" in words) == (not own)


def test_one_task_may_have_options_and_another_none(table, tmp_path):
    tasks = table.items["task"]
    lines = [
        one if tasks[one["id"]] == "task-0" else one | {"options": None}
        for one in lines_of(table.item_ids)
    ]
    textless = table.changed(items=table.items.drop(columns="text"))
    made, metrics = question_tasks(written(tmp_path / "mixed.jsonl", lines), textless)
    assert metrics == {"task-0": "choice", "task-1": "exact", "task-2": "exact"}
    assert [one.name for one in made] == list(metrics)
    assert [one.choices for one in made[1].dataset] == [None] * len(made[1].dataset)


@pytest.fixture
def url():
    """The address of a server that is never asked."""
    parts = {"asked": []}
    with serving(type("Handler", (Server,), parts)) as url:
        yield url
    assert not parts["asked"]


def test_questions_that_are_not_those_of_the_scores_are_refused(
    cli, scores, plain, table, tmp_path, url
):
    whole, of = lines_of(table.item_ids), table.items["task"]

    def first(**changed):
        return [whole[0] | changed, *whole[1:]]

    cases = {
        "the scores have no item 'q0', and several tasks": first(id="q0"),
        "the item 'item-0' appears twice": [*whole, whole[0]],
        "and 1 without ('item-0')": first(options=None),
        "unknown field 'choices'": first(choices=["a"]),
        "the answer 'C' is none of the 2 options": first(answer="C"),
        "no question of task 'task-0'": [one for one in whole if of[one["id"]] != "task-0"],
        "1 item of 5 not found in task 'task-0': 'item-0'": whole[1:],
    }
    given = ("-m", "random", "-n", 8, "-o", "run", "--model", MODEL, "--url", url)
    for said, case in cases.items():
        written(tmp_path / "items.jsonl", case)
        found = cli("run", "endpoint", plain, "items.jsonl", *given)
        assert (found.code, said in found.err) == (2, True), found.err
    written(tmp_path / "items.jsonl", whole)
    found = cli("run", "endpoint", scores, "items.jsonl", *given)
    assert found.kind == "changed"
    for words, said in (
        (("--scorer", "exact"), "scorer exact, but"),
        (("--scorer", "pattern"), "needs a pattern"),
        (("--pattern", "x"), "no other scorer takes one"),
        (("--scorer", "pattern", "--pattern", "("), "is not a regular expression"),
        (("--model", "m"), "'m' is not the name of a model in Inspect"),
        (("-t", "a", "-t", "b"), "2 target names for 1 models"),
        (("--", "task.py"), "the questions are in the file"),
        (("--", "--limit", "3"), "fewbench chooses the samples"),
    ):
        found = cli("run", "endpoint", plain, "items.jsonl", *given, *words)
        assert (found.code, said in found.err) == (2, True), found.err


def test_items_of_another_harness_are_matched_by_id(table, tmp_path):
    path = written(tmp_path / "items.jsonl", lines_of(table.item_ids))
    items = table.items.drop(columns="text").assign(harness="lm-eval")
    scores = replace(table, items=items)
    from fewbench.runners.inspect.samples import match_samples

    (task, *_), _ = question_tasks(path, scores)
    found, (_, warning) = match_samples(scores, ["task-0"], task.dataset)
    assert "the source models ran in lm-eval, not in inspect" in warning
    assert list(found) == [one.id for one in task.dataset]


def test_the_questions_alone_are_the_benchmark(cli, ok, tmp_path):
    lines = lines_of([f"q{at}" for at in range(30)], task="b")
    lines += lines_of([f"q{at}" for at in range(25, 40)], task="a")  # five ids are in both
    written(tmp_path / "items.jsonl", lines)

    def run():
        parts = {"asked": []}
        with serving(type("Handler", (Server,), parts)) as url:
            given = ("items.jsonl", "-n", 12, "-o", "run", "--model", MODEL, "--url", url)
            return cli("run", "endpoint", *given, "--accept-changes"), parts["asked"]

    said, asked = run()
    assert said.code == 0, said.err
    assert "Estimated from 12 of 45 items" in said.out
    assert "compared with" not in said.err
    assert len(asked) == 12
    made = load_scores(tmp_path / "run" / "benchmark.parquet")
    assert made.tasks == ["b", "a"]
    assert {"q0", "b/q25", "a/q25", "q39"} <= set(made.item_ids)
    assert made.items["answer"].tolist() == ["A"] * 45
    said, asked = run()
    assert (said.code, asked) == (0, [])
    written(tmp_path / "items.jsonl", [lines[0] | {"answer": "B"}, *lines[1:]])
    said, asked = run()
    assert said.code == 0
    assert "1 item changed since the evaluation was started: 'q0'" in said.err
    written(tmp_path / "items.jsonl", [])
    said, _ = run()
    assert (said.code, "no questions" in said.err) == (2, True)
