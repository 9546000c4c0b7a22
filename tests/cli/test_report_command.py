"""Pages from the command line: --report of estimate and run, view."""

import json
import re
import sys
from html import unescape

import numpy as np

from fewbench.scores import save_scores
from fewbench.show.html import body_of
from fewbench.testing import simulate


def plain(text):
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_commands_write_it_with_what_the_run_cost(ok, cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scores = simulate(30, 60, 3, seed=2)
    save_scores(scores.take(models=np.arange(29)), "scores.parquet")
    answers = dict(zip(scores.item_ids.tolist(), scores.values[29].tolist(), strict=True))
    tmp_path.joinpath("key.json").write_text(json.dumps(answers))
    tmp_path.joinpath("answer.py").write_text(
        "import json, sys\nkey = json.load(open('key.json'))\nfor line in sys.stdin:\n"
        "    item = json.loads(line)['item']\n"
        "    told = {'item': item, 'score': key[item], 'cost': 0.5}\n"
        "    print(json.dumps(told), flush=True)\n"
    )
    told = cli(
        "run", "command", "scores.parquet", "-m", "random", "-n", "12", "-o", "run",
        "--report", "run.html", "--", sys.executable, "answer.py",
    )  # fmt: skip
    assert told.code == 0, told.err
    ok("estimate", "run", "--report", "estimate.html")
    for name in ("run.html", "estimate.html"):
        said = plain(body_of(tmp_path.joinpath(name).read_text("utf-8")))
        assert "12 48 6 30 24" in said  # items run and saved, cost, in full, saved
        assert "fewbench estimate run" in said
    assert cli("view", "nowhere").kind == "missing"
    again = cli("estimate", "run", "--report", "estimate.html")
    assert again.code != 0
    assert "already exists" in again.err
    ok("estimate", "run", "--report", "estimate.html", "--force")
