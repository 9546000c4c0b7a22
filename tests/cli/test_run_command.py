"""fewbench run: programs and endpoints through the command line."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

PROGRAM = """
import json, sys
for line in sys.stdin:
    item = json.loads(line)["item"]
    answer = {"score": len(item) % 2, "cost": 0.25} if item != "item-7" else {"error": "no picture"}
    print(json.dumps({"item": item} | answer), flush=True)
"""
START = ("--", sys.executable, "-S", "-c")


def run(cli, scores, *words, program=PROGRAM):
    return cli("run", "command", scores, "-m", "random", *words, *START, program)


def test_a_program_with_progress_result_and_another_go(cli, scores, ok, monkeypatch, tmp_path):
    monkeypatch.setattr("fewbench.cli.progress.MINUTE", 0.0001)
    said = run(cli, scores, "-n", 40, "-o", "run", "--batch", 10, "--tries", 2)
    assert said.code == 0, said.err
    assert "target: 39 of 40 items run, method random" in said.out
    assert "cost 9.75; the full evaluation would cost about 10" in said.out
    assert "1 item failed and skipped: 'item-7'; 'item-7': no picture" in said.out
    assert "result: run/result.json" in said.err
    assert "running command: target: " in said.err
    assert " of 40 items" in said.err
    kept = json.loads((tmp_path / "run" / "result.json").read_text())
    assert kept["targets"]["target"]["items_run"] == 39
    again = run(cli, scores, "-n", 40, "-o", "run", "--json", "--tries", 2)
    found = json.loads(again.out)
    assert found["targets"] == kept["targets"]  # nothing is asked again
    assert json.loads(ok("estimate", "run", "--json"))["target"]["items_run"] == 39


def test_another_program_in_the_same_folder_is_refused(cli, scores):
    few = ("-n", 3, "-o", "run", "--tokens", 99)
    assert "no tokens reported" in run(cli, scores, *few).err
    said = run(cli, scores, *few, program=PROGRAM + "#")
    assert said.code == 2
    assert "the answers there come from program" in said.err
    assert run(cli, scores, *few, "--accept-changes", program=PROGRAM + "#").code == 0


def test_what_ends_a_run_early_is_in_its_exit_code(cli, scores):
    said = run(cli, scores, "-n", 9, "-o", "run", program="import os; os._exit(3)")
    assert said.code == 1
    assert "ended with exit code 3, twice in a row" in said.out
    said = run(cli, scores, "-n", 20, "-o", "b", program="import sys; print('hi'); input()")
    assert said.code == 2
    assert "printed 'hi', which is no answer" in said.err
    interrupted = "import json, os, signal, sys\nfor line in sys.stdin:\n"
    interrupted += " item = json.loads(line)['item']\n"
    interrupted += " print(json.dumps({'item': item, 'score': 1}), flush=True)\n"
    interrupted += " if item == 'item-3': os.kill(os.getppid(), signal.SIGINT)\n"
    said = run(cli, scores, "-n", 40, "-o", "c", program=interrupted)
    assert said.code == 130
    assert "stopped early: interrupted" in said.out
    assert "The same command goes on from here." in said.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no limit given"),
        (("--level", 2, "-n", 9), "level"),
        (("--minutes", 0), "the limit seconds is not possible"),
        (("-n", 9, "--half-width", 0.6), "every interval is narrower"),
        (("-n", 9, "-m", "no-such"), "no-such"),
    ],
)
def test_limits_and_methods_that_are_not_possible(cli, scores, words, said):
    given = run(cli, scores, "-o", "run", *words)
    assert given.code == 2
    assert said in given.err


class Chat(BaseHTTPRequestHandler):
    """A server that writes A to everything, and counts what it is asked."""

    asked = 0

    def do_POST(self):
        type(self).asked += 1
        self.rfile.read(int(self.headers["Content-Length"]))
        choice = {"index": 0, "message": {"role": "assistant", "content": "The answer is A."}}
        usage = {"prompt_tokens": 50, "completion_tokens": 5}
        self._reply({"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage})

    def do_GET(self):
        self._reply({"object": "list", "data": [{"id": "m", "object": "model"}]})

    def _reply(self, body):
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def test_an_endpoint_tells_its_cost_first(cli, scores, table, tmp_path):
    pytest.importorskip("openai", reason="models behind a server need the package openai")
    texts = table.items["text"]
    lines = [
        {"id": item, "question": text, "options": ["yes", "no"], "answer": at % 2}
        for at, (item, text) in enumerate(texts.items())
    ]
    (tmp_path / "items.jsonl").write_text("\n".join(map(json.dumps, lines)))
    command = ("run", "endpoint", scores, "items.jsonl", "--model", "m", "-m", "random")
    priced = ("--metric", "letter", "--price-in", 1000, "--price-out", 0, "-n", 10)
    said = cli(*command, *priced, "--dry-run")
    assert "to run: 10 items, about" in said.out
    assert "full evaluation: 40 items, about" in said.out
    assert texts.iloc[0] in said.out
    costs = json.loads(cli(*command, *priced, "--dry-run", "--json").out)
    assert costs["full"]["money"] == pytest.approx(4 * costs["run"]["money"], rel=0.2)
    for words, wrong in (
        ((*priced, "-o", "run"), "no server"),
        ((*priced,), "no output folder"),
        (("--cost", 1, "-n", 3, "--dry-run"), "a cost limit needs prices"),
        (("-n", 3, "--dry-run", "-t", "a", "-t", "b"), "2 targets, but 1 models"),
    ):
        said = cli(*command, *words)
        assert (said.code, wrong in said.err) == (2, True), said
    server = ThreadingHTTPServer(("127.0.0.1", 0), Chat)
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        said = cli(*command, *priced, "--url", url, "-o", "run")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert said.code == 0, said.err
    assert "to run: 10 items" in said.err
    assert "m: 10 of 40 items run" in said.out
    assert "m: 550 tokens" in said.out
    assert "cost 0.5;" in said.out
    assert Chat.asked == 11  # with one to see that the server is there
