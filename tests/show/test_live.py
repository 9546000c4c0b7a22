"""The live page: read-only, on this machine, for those who know the token."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
import threading
import time
from urllib.parse import urlsplit

import pytest

import fewbench
from fewbench.errors import FewbenchError
from fewbench.evaluation.view import LivePage, view
from fewbench.scores import save_scores
from fewbench.testing import simulate

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


def ask(url, method="GET", path=None, host=None):
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    headers = {} if host is None else {"Host": host}
    connection.request(method, parts.path if path is None else path, headers=headers)
    reply = connection.getresponse()
    content = reply.read()
    connection.close()
    return reply.status, content, reply


def test_only_get_with_token_and_own_name_is_answered():
    with LivePage() as page:
        url, port = page.url, urlsplit(page.url).port
        status, content, reply = ask(url)
        assert status == 200
        assert b"Waiting for the first answers" in content
        assert reply.getheader("Cache-Control") == "no-store"
        assert reply.getheader("X-Frame-Options") == "DENY"
        assert urlsplit(url).hostname == "127.0.0.1"
        own = urlsplit(url).path
        other = own[:-2] + ("y/" if own[-2] == "x" else "x/")
        for path in ("/", "/wrong/", "/wrong/state", other, own.rstrip("/")[:-1], "//"):
            assert ask(url, path=path)[0] == 403, path
        for path in ("../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "state/../x", "index.html"):
            assert ask(url, path=own + path)[0] == 404, path
        assert ask(url, path="/../../etc/passwd")[0] == 403
        for host in (f"evil.example:{port}", "evil.example", "127.0.0.1", f"127.0.0.1:{port + 1}"):
            assert ask(url, host=host)[0] == 403, host
        assert ask(url, host=f"localhost:{port}")[0] == 200
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"):
            assert ask(url, method)[0] == 405, method
        with pytest.raises(FewbenchError, check=lambda error: error.kind == "unreachable"):
            LivePage(port)
    with pytest.raises(OSError):
        ask(url)


def test_a_page_that_polls_gets_what_is_new():
    with LivePage() as page:
        state = urlsplit(page.url).path + "state"
        first = json.loads(ask(page.url, path=state)[1])
        assert set(first) == {"version", "body", "charts", "status"}
        now = f"{state}?after={first['version']}"
        assert ask(page.url, path=now)[0] == 204
        page.wait("3 of 9 items")
        fresh = json.loads(ask(page.url, path=now)[1])
        assert fresh["version"] == first["version"] + 1
        assert "3 of 9 items" in fresh["body"]
        for odd in ("x", "-1", "9" * 40, ""):
            assert ask(page.url, path=f"{state}?after={odd}")[0] == 200, odd


def test_an_update_brings_the_style_of_its_tabs():
    evaluation = fewbench.Evaluation(simulate(30, 60, 3, seed=2), "random", 10, ["new", "other"])
    for target, items in evaluation.ask().items():
        evaluation.tell(target, dict.fromkeys(items, 1.0))
    with LivePage() as page:
        assert "checked~.tab" not in body_of(page.url)
        page.show(evaluation.page())
        body = body_of(page.url)
    n_tabs = body.count('<div class="tab">') // body.count('<div class="tabs"')
    assert n_tabs == 2
    for tab in (1, 2):
        assert f"input:nth-of-type({tab}):checked~.tab:nth-of-type({tab}){{display:block}}" in body


@pytest.fixture
def run(tmp_path):
    scores = simulate(30, 60, 3, seed=2)
    save_scores(scores, tmp_path / "scores.parquet")
    evaluation = fewbench.Evaluation(scores, "random", 10, ["new"])
    evaluation.save(tmp_path / "run", tmp_path / "scores.parquet")
    return evaluation, tmp_path / "run"


def test_view_follows_a_folder_and_leaves_it_alone(run):
    evaluation, folder = run
    over, seen = threading.Event(), {}

    def serve():
        view(folder, on_ready=lambda url: seen.update(url=url), until=over.is_set)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        body = until(lambda: seen and body_of(seen["url"]), lambda b: "Waiting" in b)
        assert "new" not in body.split()
        before = files(folder)
        asked = evaluation.ask()["new"]
        evaluation.tell("new", dict(zip(asked[:6], [1.0, 0.0] * 3, strict=True)))
        written = files(folder)
        assert written != before
        body = until(lambda: body_of(seen["url"]), lambda b: "6 of 10 asked items answered" in b)
        assert "scores 50.0%" in " ".join(body.replace("</b>", "").split())
        assert "Estimate by answered items" not in body  # of one estimate there is no course
        assert files(folder) == written
        evaluation.tell("new", dict.fromkeys(asked[6:], 0.0))
        until(lambda: body_of(seen["url"]), lambda b: "finished, 10 items answered" in b)
        assert "Finished: no more answers are expected." in ask(seen["url"])[1].decode()
    finally:
        over.set()
        thread.join()
    with pytest.raises(FewbenchError):
        view(folder.parent, until=lambda: True)


def body_of(url):
    return json.loads(ask(url, path=urlsplit(url).path + "state")[1])["body"]


def until(find, holds, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (found := find()) and holds(found):
            return found
        time.sleep(0.1)
    raise AssertionError("it never came")


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.browser
def test_an_open_page_shows_what_is_new(run, tmp_path):
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    evaluation, _ = run
    asked = evaluation.ask()["new"]
    evaluation.tell("new", dict.fromkeys(asked, 1.0))
    fresh = evaluation.page()
    with LivePage() as page:
        seen, answer = [], page.answer
        page.answer = lambda *asked: seen.append(asked) or answer(*asked)
        opened = subprocess.Popen(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-background-networking", f"--user-data-dir={tmp_path / 'profile'}",
             "--virtual-time-budget=120000", "--dump-dom", page.url],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        until(lambda: seen, bool)
        page.show(fresh)
        shown = opened.communicate(timeout=100)[0]
    assert "Live: updates as answers come." in shown
    assert "scores 100.0%" in " ".join(shown.replace("</b>", "").split())
    assert len(re.findall(r'class="chart vega-embed[^>]*><svg', shown)) == 2
