"""Replies that are cut, filtered or another model's: counted beside the estimate, or refused."""

import json

import pytest
from replying import Replying, serving

from fewbench.scores import save_scores

pytest.importorskip("openai", reason="models behind a server need the package openai")

RIGHT = {"message": {"content": "A"}, "finish_reason": "stop"}
REPLIES = {
    "right, and cut": {"message": {"content": "A, as"}, "finish_reason": "length"},
    "wrong, and whole": {"message": {"content": "B"}, "finish_reason": "stop"},
    "cut": {"message": {"content": "Let me think"}, "finish_reason": "length"},
    "thinking": {"message": {"content": None}, "finish_reason": "length"},
    "filtered": {"message": {"content": None}, "finish_reason": "content_filter"},
    "other": RIGHT | {"model": "small"},
    "dated": RIGHT | {"model": "m-2026-01-31"},
}


class Server(Replying):
    """Answers the question N by the reply N of `coming`, then by right ones."""

    coming: tuple = ()

    def reply(self, asked):
        text = asked["messages"][-1]["content"]
        found = [REPLIES[name] for at, name in enumerate(self.coming) if f"number {at}?" in text]
        choice = {"index": 0, **(found[0] if found else RIGHT)}
        return {"model": choice.pop("model", asked["model"]), "choices": [choice]}


@pytest.fixture
def run(cli, scores, table, asked, tmp_path):
    """Run the endpoint on 8 items, of which the first get the given replies."""
    cli("start", scores, "-m", "random", "-n", 8, "-o", "chosen")
    chosen = asked("chosen")["target"]
    lines = [
        {"id": item, "question": f"Which has the number {at}?", "options": ["this", "that"]}
        | {"answer": "A"}
        for at, item in enumerate([*chosen, *(set(table.item_ids) - set(chosen))])
    ]
    textless = table.changed(items=table.items.drop(columns="text"))
    plain = save_scores(textless, tmp_path / "plain.parquet")
    (tmp_path / "items.jsonl").write_text("\n".join(map(json.dumps, lines)))

    def call(coming, *words):
        given = ("-m", "random", "-n", 8, "-o", "run", "--metric", "letter", "--model", "m")
        with serving(type("Handler", (Server,), {"coming": tuple(coming)})) as url:
            return cli("run", "endpoint", plain, "items.jsonl", *given, "--url", url, *words)

    return call


SAID = {
    ("cut", "thinking", "cut"): "3 of 8 replies were cut at the token limit and are not right",
    ("filtered",): "1 of 8 replies was stopped by a content filter and is not right",
    ("other", "other"): "2 of 8 replies were written by the model 'small', not by the one asked",
    ("right, and cut", "wrong, and whole", "dated"): None,
}


@pytest.mark.parametrize("coming", SAID)
def test_replies_are_counted_beside_the_estimate(run, ok, cli, coming, tmp_path):
    said = SAID[coming]
    found = run(coming)
    assert found.code == 0, found.err
    shown = [found.out, (tmp_path / "run" / "result.json").read_text()]
    shown += [run((), "--json").out, ok("estimate", "run"), ok("estimate", "run", "--json")]
    versus = cli("versus", "run", "model-03", "--json")
    shown.append(versus.out + versus.err)
    for text in shown:
        flat = " ".join(text.split())
        assert (" replies " in flat) == (said is not None)
        assert said is None or said in flat
    (tmp_path / "run").rename(tmp_path / "before")
    refused = run(coming, "--strict")
    assert refused.code == (0 if said is None else 2)
    if said is not None:
        assert said in refused.err
        assert "leave out --strict" in refused.err
        assert run((), "--strict").code == 2  # logged, and not asked again
        assert run((), "--strict", "--max-written", 99, "--accept-changes").code == 0
