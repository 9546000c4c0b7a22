"""The tiny model behind OpenAI's interface, on this machine, as obliging or unreliable as asked.

    python tests/tasks/measurement/tiny_server.py --share 0.2 --seed 1

prints its address on the first line and serves until it is ended. `GET /counts` says how often it
was asked each prompt. `/tokenize` and `/detokenize` are vLLM's, for lm-eval's remote tokenizer.
"""

import argparse
import json
import math
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
from tiny_model import TinyModel

TROUBLES = ("500", "429", "drop", "malformed", "bare")
UNKNOWN = 1_000_000  # and the code of a letter that the vocabulary lacks
LAST = 16  # tokens of a prompt whose log-probabilities are computed


class TinyServer(ThreadingHTTPServer):
    """The server.

    Parameters
    ----------
    share : float
        Share of the requests that get one of `TROUBLES`, drawn from a generator of `seed`.
    echo, chat_only : bool
        Whether it gives prompts back with their log-probabilities; whether it refuses completions.
    before : str
        What each reply in a chat begins with.
    """

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, share=0.0, seed=0, echo=True, chat_only=False, before=""):
        super().__init__(("127.0.0.1", 0), Handler)
        self.share, self.echo, self.chat_only, self.before = share, echo, chat_only, before
        self.model, self.asked = TinyModel(), Counter()
        self._rng, self._lock = np.random.default_rng(seed), threading.Lock()

    def handle_error(self, request, client_address):
        """Say nothing of clients that went away."""

    def trouble(self, prompt):
        with self._lock:
            self.asked[prompt] += 1
            drawn, which = self._rng.random(2)
        return TROUBLES[int(which * len(TROUBLES))] if drawn < self.share else ""

    def encode(self, text):
        ids = self.model.ids
        return [ids.get(token, UNKNOWN + ord(token[0])) for token in self.model.tokens(text)]

    def decode(self, tokens):
        known = self.model.vocabulary
        return "".join(chr(one - UNKNOWN) if one >= UNKNOWN else known[one] for one in tokens)

    def completion(self, body, prompt):
        text, tokens, new, rows = self._write(prompt, body)
        if not (body.get("echo") and self.echo):
            return {"index": 0, "text": text, "logprobs": None}
        start = max(1, len(tokens) - LAST)
        rows = [*[None] * start, *self.model.walk(tokens, start), *rows]
        values = [
            None if row is None else math.log(row[self.model.ids.get(token, 0)])
            for token, row in zip([*tokens, *new], rows, strict=True)
        ]
        tops = [None if value is None else {"!": -0.5} for value in values]
        logprobs = {"token_logprobs": values, "top_logprobs": tops}
        return {"index": 0, "text": prompt + text, "logprobs": logprobs}

    def chat(self, body, prompt):
        content = self.before + self._write(prompt, body)[0].removeprefix(" ")
        message = {"role": "assistant", "content": content}
        return {"index": 0, "message": message, "finish_reason": "stop"}

    def _write(self, prompt, body):
        tokens, new, rows, text = self.model.tokens(prompt), [], [], ""
        while len(new) < body.get("max_tokens", 16):
            rows.append(self.model.next([*tokens, *new]))
            new.append(self.model.vocabulary[int(rows[-1].argmax())])
            text = "".join(new)
            if cut := [stop for stop in body.get("stop") or [] if stop in text]:
                return text.partition(cut[0])[0], tokens, new, rows
        return text, tokens, new, rows


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, *args):
        """Keep quiet."""

    def do_GET(self):
        if self.path == "/counts":
            self.send(200, dict(self.server.asked))
        elif self.path == "/tokenizer_info":
            self.send(200, {"eos_token": "\n", "bos_token": None, "pad_token": "\n"})
        else:
            self.send(404, {})

    def do_POST(self):
        tiny = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize":
            return self.send(200, {"tokens": tiny.encode(body["prompt"])})
        if self.path == "/detokenize":
            return self.send(200, {"prompt": tiny.decode(body["tokens"])})
        chat = self.path == "/v1/chat/completions"
        if tiny.chat_only and not chat:
            return self.send(404, {"error": "This is a chat model: use v1/chat/completions"})
        prompt = body["messages"][-1]["content"] if chat else body["prompt"]
        if isinstance(prompt, list):
            prompt = prompt[0] if isinstance(prompt[0], list) else prompt
            prompt = tiny.decode(prompt) if isinstance(prompt[0], int) else prompt[0]
        trouble = tiny.trouble(prompt)
        if trouble in {"500", "429"}:
            return self.send(int(trouble), {"error": "not now"})
        choice = (tiny.chat if chat else tiny.completion)(body, prompt)
        if trouble == "bare":
            choice = {"index": 0}
        return self.send(200, {"choices": [choice]}, trouble)

    def send(self, status, body, trouble=""):
        content = b"<html>" if trouble == "malformed" else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if trouble == "drop":
            content = content[: len(content) // 2]
            self.close_connection = True
        self.wfile.write(content)


def main():
    parser = argparse.ArgumentParser(description="Serve the tiny model on this machine.")
    parser.add_argument("--share", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--echo", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--chat_only", action="store_true")
    parser.add_argument("--before", default="")
    server = TinyServer(**vars(parser.parse_args()))
    print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
    server.serve_forever(0.02)


if __name__ == "__main__":
    main()
