"""The tiny model behind OpenAI's interface, on this machine, as obliging or unreliable as asked.

    python tests/runners/models/tiny_server.py --share 0.2 --seed 1

prints its address on the first line and serves until it is ended. `GET /counts` says what it was
asked and what it answered.
"""

import argparse
import json
import math
import threading
from collections import Counter, deque
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
from tiny_model import tiny_model

TROUBLES = ("500", "429", "hang", "drop", "malformed", "truncated", "bare")
NAME = "tiny"


@dataclass(frozen=True)
class Manners:
    """How the server behaves.

    Parameters
    ----------
    share : float
        Share of the requests that get one of `troubles`, drawn from a generator of `seed`.
    troubles : tuple of str
        "500", "429" (with Retry-After: 0), "hang" (for `hang` seconds, then the connection
        closes), "drop" (closes within the reply), "malformed" (no JSON), "truncated" (half of the
        reply's JSON), "bare" (the reply without its log-probabilities, or its text).
    delay : float
        Seconds before each answer.
    echo, zero, lists, logprobs : bool
        Whether it gives prompts back with their log-probabilities, takes max_tokens=0 and several
        prompts in a request, and gives log-probabilities at all.
    shape : {"legacy", "content"}
        Form of the log-probabilities: OpenAI's for completions, or for chat.
    listed : int
        Most tokens that it lists; a request for more is refused.
    bos : str
        A token put before each prompt, as some servers do; it shifts text_offset.
    context : int
        Most tokens of a prompt and its continuation.
    key : str
        The key that it asks for; none if empty.
    chat_only : bool
        Whether it refuses completions, in OpenAI's words.
    before : str
        What each reply in a chat begins with.
    """

    share: float = 0.0
    troubles: tuple[str, ...] = TROUBLES
    seed: int = 0
    hang: float = 30.0
    delay: float = 0.0
    echo: bool = True
    zero: bool = True
    lists: bool = True
    logprobs: bool = True
    shape: str = "legacy"
    listed: int = 20
    bos: str = ""
    context: int = 4096
    key: str = ""
    chat_only: bool = False
    before: str = ""


class Refused(Exception):
    """A request that the server answers with an error."""

    def __init__(self, status, message, code="invalid_request_error"):
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": code, "code": code}}


class TinyServer:
    """A running server, as a context manager.

    `asked` counts requests by prompt, `answered` those that got a whole reply. What is put into
    `coming` is done to the next requests: a trouble's name, "" for none, or a tuple of a status,
    a body and headers.
    """

    def __init__(self, port=0, **manners):
        self.manners = Manners(**manners)
        self.model = tiny_model()
        self.asked, self.answered, self.coming = Counter(), Counter(), deque()
        self.requests, self.bodies = Counter(), deque(maxlen=1000)
        self.open = self.most_open = 0
        self.lock, self.ending = threading.Lock(), threading.Event()
        self._rng = np.random.default_rng(self.manners.seed)
        self._http = _Http(("127.0.0.1", port), _Handler)
        self._http.tiny = self
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self):
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self.ending.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def trouble(self):
        with self.lock:
            if self.coming:
                return self.coming.popleft()
            drawn, which = self._rng.random(2)
            troubles = self.manners.troubles
            return troubles[int(which * len(troubles))] if drawn < self.manners.share else ""

    def count(self, counter, prompts):
        with self.lock:
            counter.update(prompts)

    def counts(self):
        with self.lock:
            return {
                "requests": dict(self.requests),
                "most_open": self.most_open,
                "asked": dict(self.asked),
                "answered": dict(self.answered),
            }

    def completions(self, body):
        prompts = body.get("prompt", "")
        prompts = prompts if isinstance(prompts, list) else [prompts]
        if len(prompts) > 1 and not self.manners.lists:
            raise Refused(400, "prompt must be a string")
        most = body.get("max_tokens", 16)
        echo = body.get("echo", False) and self.manners.echo
        if most < (0 if self.manners.zero and echo else 1):
            raise Refused(400, f"max_tokens must be at least 1, got {most}.")
        if (body.get("logprobs") or 0) > self.manners.listed:
            raise Refused(
                400,
                f"Requested sample logprobs of {body['logprobs']}, which is greater than max "
                f"allowed: {self.manners.listed}",
            )
        done = [self._complete(i, p, most, echo, body) for i, p in enumerate(prompts)]
        return {
            "object": "text_completion",
            "model": NAME,
            "choices": [choice for choice, *_ in done],
            "usage": _usage(sum(asked for _, asked, _ in done), sum(new for *_, new in done)),
        }

    def chat(self, body):
        prompt = body["messages"][-1]["content"]
        text, tokens, ids, _ = self._write(prompt, body.get("max_tokens", 64), _stops(body))
        content = self.manners.before + text.removeprefix(" ")
        for stop in _stops(body):
            content = content.partition(stop)[0]
        message = {"role": "assistant", "content": content}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {
            "object": "chat.completion",
            "model": NAME,
            "choices": [choice],
            "usage": _usage(len(tokens), len(ids)),
        }

    def _write(self, prompt, most, stops):
        tokens, new, rows = self.model.tokens(prompt), [], []
        if len(tokens) + most > self.manners.context:
            raise Refused(
                400,
                f"This model's maximum context length is {self.manners.context} tokens. However, "
                f"you requested {len(tokens) + most} tokens. Please reduce the length.",
            )
        text = ""
        while len(new) < most:
            rows.append(self.model.next([*tokens, *new]))
            new.append(self.model.vocabulary[int(rows[-1].argmax())])
            text = "".join(new)
            cut = min((text.find(stop) for stop in stops if stop in text), default=-1)
            if cut >= 0:
                return text[:cut], tokens, new, rows
        return text, tokens, new, rows

    def _complete(self, index, prompt, most, echo, body):
        text, tokens, new, rows = self._write(prompt, most, _stops(body))
        asked, written = len(tokens) + bool(self.manners.bos), new
        if echo:
            rows = [*self.model.walk(tokens), *rows]
            text, written = prompt + text, [*tokens, *new]
        logprobs = None
        if body.get("logprobs") is not None and self.manners.logprobs:
            first = [self.manners.bos] * bool(self.manners.bos and echo)
            rows = [None] * (len(first) + len(written) - len(rows)) + rows
            logprobs = self._logprobs([*first, *written], rows, body["logprobs"])
        choice = {"index": index, "text": text, "logprobs": logprobs, "finish_reason": "length"}
        return choice, asked, len(new)

    def _logprobs(self, tokens, rows, listed):
        place = {token: i for i, token in enumerate(self.model.vocabulary)}
        chosen, tops, offsets, offset = [], [], [], 0
        for token, row in zip(tokens, rows, strict=True):
            offsets.append(offset)
            offset += len(token)
            if row is None:
                chosen.append(None)
                tops.append(None)
                continue
            chosen.append(math.log(row[place.get(token, 0)]))
            best = np.argsort(-row, kind="stable")[:listed]
            tops.append({self.model.vocabulary[i]: math.log(row[i]) for i in best})
        if self.manners.shape == "legacy":
            keys = ("tokens", "token_logprobs", "top_logprobs", "text_offset")
            return dict(zip(keys, (tokens, chosen, tops, offsets), strict=True))
        return {
            "content": [
                {
                    "token": token,
                    "logprob": own,
                    "top_logprobs": [{"token": t, "logprob": v} for t, v in (top or {}).items()],
                }
                for token, own, top in zip(tokens, chosen, tops, strict=True)
            ]
        }


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def handle_error(self, request, client_address):
        """Say nothing of clients that went away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, *args):
        """Keep quiet."""

    def do_GET(self):
        tiny = self.server.tiny
        if self.path == "/v1/models":
            models = [{"id": NAME, "object": "model", "max_model_len": tiny.manners.context}]
            self._send(200, {"object": "list", "data": models})
        elif self.path == "/counts":
            self._send(200, tiny.counts())
        else:
            self._send(404, {"error": {"message": f"no {self.path}"}})

    def do_POST(self):
        tiny = self.server.tiny
        text = self.rfile.read(int(self.headers["Content-Length"]))
        with tiny.lock:
            tiny.open += 1
            tiny.most_open = max(tiny.most_open, tiny.open)
        try:
            self._answer(tiny, json.loads(text))
        finally:
            with tiny.lock:
                tiny.open -= 1

    def _answer(self, tiny, body):
        chat = self.path == "/v1/chat/completions"
        prompts = body["messages"][-1]["content"] if chat else body.get("prompt", "")
        prompts = prompts if isinstance(prompts, list) else [prompts]
        tiny.bodies.append(body)
        tiny.count(tiny.requests, [self.path])
        tiny.count(tiny.asked, prompts)
        tiny.ending.wait(tiny.manners.delay)
        trouble = tiny.trouble()
        if isinstance(trouble, tuple):
            self._send(*trouble)
            return
        if trouble in {"500", "429"}:
            headers = {"Retry-After": "0"} if trouble == "429" else {}
            self._send(int(trouble), {"error": {"message": "not now"}}, headers)
            return
        if trouble == "hang":
            tiny.ending.wait(tiny.manners.hang)
            self.close_connection = True
            return
        try:
            self._check(tiny, body)
            reply = tiny.chat(body) if chat else tiny.completions(body)
        except Refused as refused:
            self._send(refused.status, refused.body)
            return
        if trouble == "bare":
            for choice in reply["choices"]:
                choice.pop("logprobs", None)
                choice.pop("message", None)
        if not trouble:
            tiny.count(tiny.answered, prompts)
        self._send(200, reply, trouble=trouble)

    def _check(self, tiny, body):
        if self.path not in {"/v1/completions", "/v1/chat/completions"}:
            raise Refused(404, f"no {self.path}")
        said = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if tiny.manners.key and said != tiny.manners.key:
            raise Refused(401, f"Incorrect API key provided: {said}", "invalid_api_key")
        if body.get("model") != NAME:
            raise Refused(404, f"The model `{body.get('model')}` does not exist.", "NotFoundError")
        if tiny.manners.chat_only and "chat" not in self.path:
            words = "This is a chat model and not supported in the v1/completions endpoint."
            raise Refused(404, f"{words} Did you mean to use v1/chat/completions?")

    def _send(self, status, body, headers=None, trouble=""):
        content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        if trouble == "malformed":
            content = b"<html>upstream went away</html>"
        if trouble == "truncated":
            content = content[: len(content) // 2]
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if trouble == "drop":
            content = content[: len(content) // 2]
            self.close_connection = True
        self.wfile.write(content)


def _stops(body):
    stops = body.get("stop") or []
    return [stops] if isinstance(stops, str) else stops


def _usage(asked, new):
    return {"prompt_tokens": asked, "completion_tokens": new, "total_tokens": asked + new}


def main():
    parser = argparse.ArgumentParser(description="Serve the tiny model on this machine.")
    parser.add_argument("--port", type=int, default=0)
    for name, value in asdict(Manners()).items():
        flag = f"--{name}"
        if isinstance(value, bool):
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=value)
        elif isinstance(value, tuple):
            parser.add_argument(flag, nargs="*", choices=TROUBLES, default=value)
        else:
            parser.add_argument(flag, type=type(value), default=value)
    said = vars(parser.parse_args())
    with TinyServer(**said | {"troubles": tuple(said["troubles"])}) as server:
        print(server.url, flush=True)
        try:
            server.ending.wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
