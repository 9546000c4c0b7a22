"""Endpoints against a real server on this machine, obliging and not."""

import asyncio
import json
import math
import urllib.request
from types import SimpleNamespace

import numpy as np
import pytest
from tiny_model import tiny_model
from tiny_server import TROUBLES, TinyServer

from fewbench.errors import MissingExtraError, ModelError
from fewbench.runners.models import Endpoint, TooLong, TryAgain
from fewbench.runners.models.endpoint_scoring import Token, continuation_value, option_values

pytest.importorskip("openai", reason="needs the extra endpoint")

PROMPT = (
    "The following are multiple choice questions (with answers) about animals.\n\n"
    "What is the young of dog?\nA. kennel\nB. puppy\nC. calf\nD. den\nAnswer: B\n\n"
    "What goes with cow?\nA. barn\nB. cub\nC. calf\nD. puppy\nAnswer:"
)
LETTERS = [" A", " B", " C", " D"]


def ask(url, call, **settings):
    """Run one coroutine function with an endpoint, and close it."""

    async def run():
        endpoint = Endpoint(url, settings.pop("model", "tiny"), **settings)
        try:
            return await call(endpoint)
        finally:
            await endpoint.close()

    return asyncio.run(run())


def own(prompt, continuation):
    """The model's own log-probabilities of the continuation's tokens."""
    model = tiny_model()
    tokens, first = model.tokens(prompt + continuation), len(model.tokens(prompt))
    rows = model.walk(tokens)[first - 1 :]
    pairs = zip(rows, tokens[first:], strict=True)
    return [math.log(row[model.ids[token]]) for row, token in pairs]


def choose(endpoint):
    return endpoint.choose(PROMPT, LETTERS)


def test_echo_gives_the_model_s_own_numbers():
    with TinyServer() as server:
        chosen = ask(server.url, choose, scoring="echo")
        read = ask(server.url, lambda e: e.read(PROMPT, " calf\n\nWhat"), scoring="echo")
    expected = [sum(own(PROMPT, option)) for option in LETTERS]
    assert chosen.log_probabilities == pytest.approx(expected)
    assert chosen.usage.requests == 1
    assert chosen.usage.prompt == 4 * (len(tiny_model().tokens(PROMPT)) + 1)
    assert read.log_probability == pytest.approx(sum(own(PROMPT, " calf\n\nWhat")))
    assert read.tokens == 4


def test_both_ways_agree_and_the_top_adds_both_forms_of_a_letter():
    with TinyServer() as server:
        echo = ask(server.url, choose, scoring="echo").log_probabilities
        top = ask(server.url, choose, scoring="top")
    assert int(np.argmax(echo)) == int(np.argmax(top.log_probabilities)) == 2
    assert all(math.isfinite(value) for value in top.log_probabilities)
    assert (np.array(top.log_probabilities) >= np.array(echo) - 1e-12).all()
    assert top.log_probabilities == pytest.approx(echo, abs=1e-3)
    assert (top.usage.requests, top.usage.completion) == (1, 1)


@pytest.mark.parametrize("manners", [{"shape": "content"}, {"bos": "<s>"}, {"zero": False}])
@pytest.mark.parametrize("scoring", ["top", "echo"])
def test_servers_differ_and_the_numbers_do_not(manners, scoring):
    with TinyServer() as server:
        expected = ask(server.url, choose, scoring=scoring).log_probabilities
    with TinyServer(**manners) as server:
        chosen = ask(server.url, choose, scoring=scoring)
    assert chosen.log_probabilities == pytest.approx(expected)


def test_a_server_of_one_prompt_a_request_is_asked_for_each_option():
    with TinyServer(lists=False) as server:
        chosen = ask(server.url, choose, scoring="echo")
    assert chosen.log_probabilities == pytest.approx([sum(own(PROMPT, o)) for o in LETTERS])
    assert chosen.usage.requests == 4


def test_a_token_across_the_boundary_counts_whole():
    with TinyServer() as server:
        spaced = ask(server.url, lambda e: e.read(PROMPT + " ", "calf"), scoring="echo")
    assert spaced.log_probability == pytest.approx(sum(own(PROMPT, " calf")))
    assert spaced.tokens == 1


@pytest.mark.parametrize(
    ("manners", "facts"),
    [
        ({}, ("top+echo", "20")),
        ({"listed": 5}, ("top+echo", "5")),
        ({"echo": False}, ("top", "20")),
        ({"listed": 1}, ("echo", "0")),
        ({"logprobs": False}, ("none", "0")),
    ],
)
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_what_a_server_can_do_is_found_even_where_it_fails_often(manners, facts, share):
    passing = {"share": share, "seed": 3, "troubles": ("500", "429", "drop", "malformed", "bare")}
    for _ in range(2):
        with TinyServer(**manners, **passing) as server:
            found = ask(server.url, lambda e: e.prepare())
        assert (found["scoring"], found["listed"]) == facts
        assert found["max_model_len"] == "4096"


@pytest.mark.parametrize("trouble", ["bare", "500", "malformed"])
def test_three_broken_replies_do_not_decide_what_a_server_can_do(trouble):
    with TinyServer() as server:
        server.coming.extend([trouble] * 3)
        assert ask(server.url, lambda e: e.prepare(), scoring="echo")["scoring"] == "echo"
        server.coming.extend(["", *[trouble] * 3])  # the first finds that it lists tokens
        assert ask(server.url, lambda e: e.prepare())["scoring"] == "top+echo"


def test_after_the_first_question_nothing_is_tried_out():
    async def often(endpoint):
        await asyncio.gather(*(choose(endpoint) for _ in range(5)))
        before = server.requests.total()
        await choose(endpoint)
        return server.requests.total() - before

    with TinyServer() as server:
        assert ask(server.url, often) == 1
        assert server.answered[PROMPT] == 6
        assert max(n for p, n in server.answered.items() if p != PROMPT) <= 3


def test_where_no_letter_is_listed_the_question_is_asked_by_echo():
    prompt = "What is the young of"
    with TinyServer(listed=5) as server:
        top = ask(server.url, lambda e: e.choose(prompt, LETTERS), scoring="top")
        auto = ask(server.url, lambda e: e.choose(prompt, LETTERS))
    assert top.log_probabilities == (-math.inf,) * 4
    assert auto.log_probabilities == pytest.approx([sum(own(prompt, o)) for o in LETTERS])
    assert auto.usage.requests == 2


def test_options_of_words_are_echoed():
    words = [" calf", " barn owl"]
    with TinyServer() as server:
        chosen = ask(server.url, lambda e: e.choose(PROMPT, words))
        with pytest.raises(ModelError, match="does not echo prompts"):
            ask(server.url, lambda e: e.choose(PROMPT, words), scoring="top")
    assert chosen.log_probabilities == pytest.approx([sum(own(PROMPT, w)) for w in words])


def test_servers_that_cannot_say_so():
    with TinyServer(echo=False) as server:
        with pytest.raises(ModelError, match=r"does not echo prompts.*letters"):
            ask(server.url, lambda e: e.read(PROMPT, " calf"))
        with pytest.raises(ModelError, match="does not echo prompts"):
            ask(server.url, choose, scoring="echo")
    with TinyServer(logprobs=False) as server:
        with pytest.raises(ModelError, match="does not list the most likely tokens"):
            ask(server.url, choose)
        written = ask(server.url, lambda e: e.write(PROMPT, ["\n"], 5))
        assert written.text == "C"


def test_writing_by_chat_and_plainly():
    prompt = "What is the young of cow?\nAnswer:"
    with TinyServer() as server:
        chat = ask(server.url, lambda e: e.write(prompt, ["\n", "x", "y", "z", "f"], 8))
        plain = ask(server.url, lambda e: e.write(prompt, ["\n\n"], 8), chat=False)
        bodies = list(server.bodies)
    assert chat.text == "cal"  # up to "f", which no request could hold: four stops is the most
    assert plain.text.strip() == "calf"
    assert plain.usage.prompt == len(tiny_model().tokens(prompt))
    assert 0 < plain.usage.completion <= 8
    assert bodies[0]["messages"] == [{"role": "user", "content": prompt}]
    assert all((b["temperature"], b["max_tokens"]) == (0, 8) for b in bodies)
    assert "stop" not in bodies[0]
    assert bodies[1]["stop"] == ["\n\n"]


@pytest.mark.parametrize(("before", "text"), [("\n\n", "calf"), (" \n", "calf"), ("", "calf")])
def test_blank_lines_before_a_reply_in_a_chat_are_passed_over(before, text):
    prompt = "What is the young of cow?\nAnswer:"
    with TinyServer(before=before) as server:
        written = ask(server.url, lambda e: e.write(prompt, ["\n\n"], 8))
    assert written.text.strip() == text


def test_a_server_of_chat_only():
    with TinyServer(chat_only=True) as server:
        facts = ask(server.url, lambda e: e.prepare(log_probabilities=False))
        assert set(server.requests) == {"/v1/chat/completions"}
        # asked for log-probabilities, it has none, and is said to be there
        assert ask(server.url, lambda e: e.prepare())["scoring"] == "none"
        with pytest.raises(ModelError, match=r"does not list the most likely tokens.*chat model"):
            ask(server.url, choose)
        with pytest.raises(ModelError, match=r"chat model.*chat-only server"):
            ask(server.url, choose, chat=False)
        with pytest.raises(ModelError, match="does not exist"):
            ask(server.url, lambda e: e.prepare(log_probabilities=False), model="large")
    assert facts == {"max_model_len": "4096"}


def test_log_probabilities_are_tried_out_when_they_are_asked_for_after_all():
    async def both(endpoint):
        await endpoint.prepare(log_probabilities=False)
        return await choose(endpoint)

    with TinyServer() as server:
        assert ask(server.url, both) == ask(server.url, choose)


REASONS = {
    "500": "500",
    "429": "429",
    "hang": "no reply within",
    "drop": "no connection, or it broke off",
    "malformed": "not JSON",
    "truncated": "not JSON",
    "bare": "no log-probabilities",
}


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("scoring", ["top", "echo"])
def test_what_may_pass_is_tried_again_and_then_comes_right(trouble, scoring):
    async def twice(endpoint):
        await endpoint.prepare()
        server.coming.append(trouble)
        with pytest.raises(TryAgain) as failed:
            await choose(endpoint)
        return failed.value, await choose(endpoint)

    with TinyServer(hang=1.0) as server:
        expected = ask(server.url, choose, scoring=scoring)
        failed, chosen = ask(server.url, twice, scoring=scoring, timeout=0.4)
    assert REASONS[trouble] in failed.reason
    assert failed.after == (0.0 if trouble == "429" else None)
    assert chosen == expected


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("chat", [True, False])
def test_writing_is_tried_again_too(trouble, chat):
    with TinyServer(hang=1.0) as server:
        server.coming.append(trouble)

        def call(endpoint):
            return endpoint.write(PROMPT, ["\n"], 3)

        if trouble == "bare" and not chat:
            assert ask(server.url, call, chat=False).text == " C"
            return
        with pytest.raises(TryAgain):
            ask(server.url, call, chat=chat, timeout=0.4)


def reply(status, body, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return (status, body if isinstance(body, str) else json.dumps(body), named)


def answer_to(refused, **settings):
    async def prepared(endpoint):
        await endpoint.prepare()
        server.coming.append(refused)
        return await choose(endpoint)

    with TinyServer() as server:
        return ask(server.url, prepared, **settings)


@pytest.mark.parametrize(
    ("headers", "after"),
    [
        ({"Retry_After": "7"}, 7.0),
        ({"Retry_After": "7", "retry_after_ms": "250"}, 0.25),
        ({"Retry_After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"Retry_After": "soon"}, None),
        ({"Retry_After": "nan"}, None),
        ({}, None),
    ],
)
def test_passing_refusals_and_how_long_to_wait(headers, after):
    async def refused(endpoint):
        await endpoint.prepare()
        for status in (408, 409, 425, 429, 500, 502, 503, 529):
            server.coming.append(reply(status, "<html>busy</html>", **headers))
            with pytest.raises(TryAgain, match=f"{status}: busy") as failed:
                await choose(endpoint)
            assert failed.value.after == after

    with TinyServer() as server:
        ask(server.url, refused)


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (401, {"error": {"message": "no such key"}}, "no such key.*OPENAI_API_KEY"),
        (403, {"detail": "not for you"}, "not for you.*permit"),
        (404, {"error": "model 'tiny' not found"}, "not found.*name and the address"),
        (400, {"message": "logprobs\n are   off"}, "400: logprobs are off .hint"),
        (429, {"error": {"message": "pay", "code": "insufficient_quota"}}, "add credit"),
        (501, "<h1>not   implemented</h1>", "501: not implemented"),
        (422, "x" * 5000, "x{200} "),
    ],
)
def test_refusals_for_good(status, body, words):
    with pytest.raises(ModelError, match=words) as failed:
        answer_to(reply(status, body))
    assert len(str(failed.value)) < 500


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("header", [{"Retry-After": "999999"}, {"Retry-After-Ms": "999999000"}])
def test_a_pause_of_days_is_said_and_not_waited_for(status, header):
    with pytest.raises(ModelError, match="asks for a pause of 16,667 minutes") as failed:
        answer_to(reply(status, {"error": {"message": "slow down"}}, **header))
    assert "run the same command again" in failed.value.hint
    with TinyServer() as server:
        server.coming.append((status, {}, header))
        with pytest.raises(ModelError, match="16,667 minutes"):
            ask(server.url, Endpoint.prepare, tries=2)


@pytest.mark.parametrize("scoring", ["auto", "top", "echo"])
def test_a_wrong_name_is_said_before_anything_is_asked(scoring):
    with TinyServer() as server, pytest.raises(ModelError, match="does not exist"):
        ask(server.url, lambda endpoint: endpoint.prepare(), model="large", scoring=scoring)


@pytest.mark.parametrize(
    "message",
    [
        # as OpenAI and vLLM, newer vLLM, llama.cpp, SGLang and TGI word it
        "This model's maximum context length is 4096 tokens. However, you requested 5001 tokens",
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        "the request exceeds the available context size (4096 tokens), try increasing it",
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",
    ],
)
def test_what_does_not_fit(message):
    with pytest.raises(TooLong, match="answers 400"):
        answer_to(reply(400, {"error": {"message": message, "code": 400}}))


@pytest.mark.parametrize("scoring", ["top", "echo"])
def test_a_prompt_beyond_the_context(scoring):
    with TinyServer(context=60) as server, pytest.raises(TooLong, match="context length is 60"):
        ask(server.url, lambda e: e.choose(PROMPT * 3, LETTERS), scoring=scoring)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("NaN", "nan"),
        ("0.2", "0.2"),
        ("null", "None"),
        ("-Infinity", "not finite"),
        ('"x"', "known form"),
        ("[1]", "known form"),
    ],
)
def test_impossible_log_probabilities_are_broken_replies(value, reason):
    tokens = tiny_model().tokens(PROMPT + " calf")
    filled = ["null", *["-1.0"] * (len(tokens) - 2), value]
    text = (
        f'{{"choices": [{{"index": 0, "text": "", "logprobs": {{"tokens": {json.dumps(tokens)}, '
        f'"token_logprobs": [{", ".join(filled)}], "top_logprobs": null}}}}]}}'
    )

    async def read(endpoint):
        await endpoint.prepare()
        server.coming.append(reply(200, text))
        return await endpoint.read(PROMPT, " calf")

    with TinyServer() as server, pytest.raises(TryAgain, match=reason):
        ask(server.url, read)


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"choices": []},
        {"choices": [{"index": 1, "logprobs": {"tokens": []}}]},
        {"choices": [{"index": 0, "logprobs": {"content": []}}]},
        {"choices": [{"index": 0, "logprobs": {"content": [{"token": 3}]}}]},
        {"choices": "none"},
        {"error": {"message": "upstream"}},
    ],
)
def test_replies_that_lack_what_was_asked_for(body):
    with pytest.raises(TryAgain):
        answer_to(reply(200, body))


def test_no_server_there():
    with TinyServer() as server:
        url = server.url
    with pytest.raises(TryAgain, match="no connection"):
        ask(url, lambda e: e.write(PROMPT, [], 1))
    with pytest.raises(TryAgain, match="no connection"):
        ask(url, lambda e: e.prepare())


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://a/v1", "http://", "http://a:x/v1"])
def test_what_is_no_address(url):
    with pytest.raises(ModelError, match="not the address"):
        Endpoint(url, "tiny")


def test_settings_are_checked():
    with pytest.raises(ModelError, match="name or password"):
        Endpoint("http://me:secret@a/v1", "tiny")
    with pytest.raises(ModelError, match="unknown scoring"):
        Endpoint("http://a/v1", "tiny", scoring="best")
    with pytest.raises(ModelError, match="timeout"):
        Endpoint("http://a/v1", "tiny", timeout=0)


def test_the_key_is_sent_and_never_shown(monkeypatch):
    with TinyServer(key="open-sesame") as server:
        assert ask(server.url, choose, key="open-sesame").usage.requests == 1
        monkeypatch.setenv("OPENAI_API_KEY", "open-sesame")
        assert ask(server.url, choose).usage.requests == 1
        for call in (choose, lambda e: e.write(PROMPT, [], 1), lambda e: e.prepare()):
            with pytest.raises(ModelError, match="401") as failed:
                ask(server.url, call, key="wrong-secret")
            assert "wrong-secret" not in repr(failed.value) + str(failed.value)
            assert failed.value.__cause__ is None or "secret" not in str(failed.value.__cause__)
    endpoint = Endpoint(server.url, "tiny", key="wrong-secret")
    assert "wrong-secret" not in repr(endpoint) + str(endpoint)
    asyncio.run(endpoint.close())


def test_another_model_s_name():
    with TinyServer() as server, pytest.raises(ModelError, match="`large` does not exist"):
        ask(server.url, lambda e: e.write(PROMPT, [], 1), model="large")


def test_a_missing_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openai", None)
    with pytest.raises(MissingExtraError, match=r"fewbench\[endpoint\]"):
        Endpoint("http://localhost:1/v1", "tiny")


@pytest.mark.parametrize(
    ("tokens", "continuation", "counted"),
    [
        (["<s>", "Answer", ":", " B"], " B", 1),
        (["Answer", ":", "B"], " B", 1),  # a server that drops leading spaces
        (["Answer", ":", "▁B"], " B", 1),
        (["Answer", ":", " ", "B"], " B", 2),  # the space is a token of its own
        (["Answer", ":\n", "B"], "B", 1),
        (["Answer", ": B", "B"], "BB", 2),  # across the boundary
        (["Is", " it", " it", "?"], " it?", 2),
        (["Größe", ":", " ", "\ufffd", "\ufffd", "\ufffd", "本", "\ufffd", "\ufffd"], " 日本é", 7),
        (["\ufffd", "\ufffd", ":", " \ufffd", "\ufffd", "!"], " é!", 3),
        # as llama-cpp-python shows the parts of a character: not at all
        ([" ", "x", " ", "", "", "", "", "", "", ":", "G", "r", "", "", "", "", "e"], "Größe", 7),
        (["日", ":", "", "", ""], "本", 3),
    ],
)
def test_the_continuation_is_found_in_any_tokens(tokens, continuation, counted):
    echoed = [Token(text, -1.0 if i else None, {}) for i, text in enumerate(tokens)]
    assert continuation_value(echoed, continuation) == (-counted, counted)


def test_tokens_that_spell_something_else():
    for tokens, continuation in [(["a", "b"], " c"), (["\ufffd", "\ufffd"], " c"), (["a"], " ")]:
        with pytest.raises(TryAgain, match="do not spell"):
            continuation_value([Token(text, -1.0, {}) for text in tokens], continuation)
    with pytest.raises(ModelError, match="first token"):
        continuation_value([Token("B", None, {})], "B")


def test_all_forms_of_a_letter_count_together():
    listed = {" A": -2.0, "A": -2.0, "ĠB": -1.0, "▁C": -3.0, " Apple": -0.5, "\n": -4.0}
    found = option_values(Token(" Apple", -0.5, listed), LETTERS)
    assert found == pytest.approx((-2.0 + math.log(2), -1.0, -3.0, -math.inf))


def test_a_proxy_is_not_asked_for_this_machine(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with TinyServer() as server:
        assert ask(server.url, choose).usage.requests == 1


def test_many_at_once():
    prompts = [PROMPT.replace("cow", word) for word in ("dog", "cat", "hen", "pig", "goat", "bear")]

    async def all_of(endpoint):
        return await asyncio.gather(*(endpoint.choose(p, LETTERS) for p in prompts * 5))

    with TinyServer(delay=0.02) as server:
        together = ask(server.url, all_of)
        apart = [ask(server.url, lambda e, p=p: e.choose(p, LETTERS)) for p in prompts]
        assert server.most_open > 1
        with urllib.request.urlopen(server.url.replace("/v1", "/counts")) as reply:
            assert json.load(reply)["answered"] == dict(server.answered)
    assert together == apart * 5


class TestTryingOut:
    """What is made of a server that turns requests away while it is tried out."""

    def test_its_words_are_shown_after_as_many_tries_as_were_given(self):
        with TinyServer() as server:
            server.coming.extend([(429, {"error": {"message": "slow down"}}, {})] * 2)
            with pytest.raises(ModelError, match=r"answers 429: slow down, 2 times.*--rate"):
                ask(server.url, Endpoint.prepare, tries=2)
            assert server.requests.total() == 2

    def test_it_waits_as_long_as_the_server_asks_for(self, monkeypatch):
        slept = noted_sleep(monkeypatch)
        with TinyServer() as server:
            server.coming.append((429, {}, {"Retry-After": "7"}))
            server.coming.append((503, {}, {"Retry-After": "5"}))
            facts = ask(server.url, Endpoint.prepare)
        assert facts["scoring"] == "top+echo"
        assert [seconds for seconds in slept if seconds >= 5] == [7.0, 5.0]

    def test_it_keeps_the_rate(self, monkeypatch):
        slept = noted_sleep(monkeypatch)
        with TinyServer() as server:
            ask(server.url, lambda e: e.prepare(log_probabilities=False), rate=2)
        assert max(slept) == pytest.approx(30, abs=1)


def noted_sleep(monkeypatch):
    """Let no time pass, and note for how long it would have."""
    slept, clock, sleep = [], [0.0], asyncio.sleep

    async def note(seconds, *rest):
        slept.append(seconds)
        clock[0] += seconds
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", note)
    own_clock = SimpleNamespace(monotonic=lambda: clock[0])
    monkeypatch.setattr("fewbench.runners.models.endpoint_server.time", own_clock)
    return slept
