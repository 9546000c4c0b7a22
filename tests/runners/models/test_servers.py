"""What real servers reply, in their own words: recorded, and told to an endpoint."""

import asyncio
import json
import math
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from fewbench.errors import ModelError
from fewbench.runners.models import Endpoint

pytest.importorskip("openai", reason="needs the extra endpoint")

LETTERS = [" A", " B"]


class Server:
    """Replies to each request what a function of its path and body returns: a status, a reply."""

    def __init__(self, reply):
        self.bodies = bodies = []

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args):
                """Keep quiet."""

            def do_GET(self):
                self._send(reply(self.path, None))

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                bodies.append(body)
                self._send(reply(self.path, body))

            def _send(self, said):
                status, content = said
                content = (content if isinstance(content, str) else json.dumps(content)).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self):
        self._thread = Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr("fewbench.runners.models.endpoint_scoring.PAUSE", 0.001)


def ask(url, call, **settings):
    async def run():
        endpoint = Endpoint(url, "tiny", **settings)
        try:
            return await call(endpoint)
        finally:
            await endpoint.close()

    return asyncio.run(run())


def completion(text, logprobs=None, written=1):
    choice = {"index": 0, "text": text, "logprobs": logprobs, "finish_reason": "length"}
    usage = {"prompt_tokens": 5, "completion_tokens": written, "total_tokens": 5 + written}
    return 200, {"object": "text_completion", "choices": [choice], "usage": usage}


def mlx_lm(path, body):
    """mlx-lm 0.32: takes true only, and lists most likely tokens in no order."""
    if body is None:
        return 200, {"object": "list", "data": [{"id": "tiny", "object": "model"}]}
    if not isinstance(body.get("logprobs", False), bool):
        return 400, {"error": "logprobs must be of type bool"}
    if body.get("top_logprobs", -1) > 10:
        return 400, {"error": "top_logprobs must be at most 10"}
    listed = [
        {"id": 472, "token": "own", "logprob": -3.4146728515625},
        {"id": 34, "token": "\u0120B", "logprob": -0.08130264282226562},
        {"id": 33, "token": "\u0120A", "logprob": -3.8575782775878906},
    ]
    return completion(" B", {"content": [listed[0] | {"top_logprobs": listed}]})


def test_a_server_that_takes_the_number_of_listed_tokens_in_a_field_of_its_own():
    with Server(mlx_lm) as server:
        facts = ask(server.url, lambda e: e.prepare())
        chosen = ask(server.url, lambda e: e.choose("Answer:", LETTERS))
        with pytest.raises(ModelError, match="it answers 400: logprobs must be of type bool"):
            ask(server.url, lambda e: e.read("Answer:", " B"))
    assert facts == {"scoring": "top", "listed": "10"}
    assert chosen.log_probabilities == (-3.8575782775878906, -0.08130264282226562)


def llama_cpp_python(path, body):
    """llama-cpp-python 0.3: one prompt a request; asked for no new tokens, it writes on and on."""
    if body is None:
        return 200, {"object": "list", "data": [{"id": "tiny", "object": "model"}]}
    if not isinstance(body["prompt"], str):
        return 500, {"error": {"message": "", "type": "internal_server_error", "code": None}}
    assert body["max_tokens"] == 1
    parts = {" Ö": [" ", "", ""], " six": [" s", "ix"]}
    end = next((e for e in parts if body["prompt"].endswith(e)), "")
    start = body["prompt"].removesuffix(end)
    tokens = [*([start, *parts.get(end, [])] if body.get("echo") else []), "h"]
    values = [None, *[-1.0] * (len(tokens) - 1)] if body.get("echo") else [-0.5]
    tops = [None if v is None else {"h": -0.5, " A": -2.5} for v in values]
    logprobs = {"tokens": tokens, "token_logprobs": values, "top_logprobs": tops}
    return completion("h", logprobs)


def test_an_error_for_several_prompts_is_not_one_for_single_ones():
    with Server(llama_cpp_python) as server:
        assert ask(server.url, lambda e: e.prepare()) == {"scoring": "top+echo", "listed": "20"}
        read = ask(server.url, lambda e: e.read("Answer:", " Ö"))
    assert (read.log_probability, read.tokens) == (-3.0, 3)


def without_logits(path, body):
    """llama-cpp-python 0.3 as it starts without --logits_all."""
    if body is not None and body.get("logprobs") is not None:
        words = "logprobs is not supported for models created with logits_all=False"
        return 500, {"error": {"message": words, "type": "internal_server_error"}}
    return (200, {"data": []}) if body is None else completion(" B")


def test_an_error_for_log_probabilities_alone_means_that_there_are_none():
    with Server(without_logits) as server:
        assert ask(server.url, lambda e: e.prepare(), chat=False)["scoring"] == "none"
        assert ask(server.url, lambda e: e.write("Answer:", [], 1), chat=False).text == " B"
        with pytest.raises(ModelError, match=r"it answers 500: .*logits_all=False"):
            ask(server.url, lambda e: e.choose("Answer:", LETTERS), chat=False)


def transformers_serve(path, body):
    """transformers 5 without a folder of downloaded models: its list fails, always."""
    if body is None:
        return 500, "Internal Server Error"
    if body["model"] != "tiny":
        words = f"Server is pinned to 'tiny'; requested '{body['model']}'."
        return 400, {"detail": words}
    if not isinstance(body["prompt"], str):
        return 400, {"detail": "prompt must be a string."}
    return completion("shor")


def test_a_broken_list_of_models_stops_nothing():
    with Server(transformers_serve) as server:
        facts = ask(server.url, lambda e: e.prepare(), chat=False)
    assert facts == {"scoring": "none", "listed": "0"}


def test_a_wrong_name_or_address_is_not_taken_for_a_server_without_log_probabilities():
    def not_found(path, body):
        return 404, {"detail": "Not Found"}

    def pinned(path, body):
        return transformers_serve(path, body and body | {"model": "other"})

    for reply, words in ((not_found, "404: Not Found.*/v1"), (pinned, "400: Server is pinned")):
        with Server(reply) as server, pytest.raises(ModelError, match=words):
            ask(server.url, lambda e: e.prepare(), chat=False)


def test_a_model_that_ends_at_once_has_no_token_dropped():
    def ends(path, body):
        status, said = llama_cpp_python(path, body)
        if body and body.get("echo") and body["prompt"] == "Answer: Ö":
            for column in said["choices"][0]["logprobs"].values():
                column.pop()
            said["usage"]["completion_tokens"] = 0
        return status, said

    with Server(ends) as server:
        read = ask(server.url, lambda e: e.read("Answer:", " Ö"))
    assert (read.log_probability, read.tokens) == (-3.0, 3)


def test_a_part_of_a_character_in_a_letter_s_place_is_none_of_the_letters():
    # llama.cpp's server 0.5: no log-probabilities where the one token is not a whole character
    def llama_server(path, body):
        if body is None or body.get("echo"):
            return (200, {"data": []}) if body is None else completion("h")
        if body["prompt"] == "Answer:":
            return completion("\ufffd")
        entry = {"id": 1, "token": " B", "bytes": [32, 66], "logprob": -0.25}
        other = {"id": 2, "token": " A", "bytes": [32, 65], "logprob": -2.5}
        return completion(" B", {"content": [entry | {"top_logprobs": [entry, other]}]})

    with Server(llama_server) as server:
        assert ask(server.url, lambda e: e.prepare())["scoring"] == "top"
        chosen = ask(server.url, lambda e: e.choose("Answer:", LETTERS))
        whole = ask(server.url, lambda e: e.choose("Question:", LETTERS))
    assert chosen.log_probabilities == (-math.inf, -math.inf)
    assert whole.log_probabilities == (-2.5, -0.25)
