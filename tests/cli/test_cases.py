"""Small inputs that people published, which gave a silently wrong number."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from fewbench import Evaluation, load_scores

CASES = Path(__file__).resolve().parents[2].parent / "shared" / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="needs the cases beside the checkout")


@pytest.mark.skipif(not find_spec("inspect_ai"), reason="logs of Inspect are read with inspect-ai")
def test_samples_of_one_text_are_joined_by_their_ids(ok):
    logs = CASES / "inspect_same_text_samples" / "logs"
    ok("import", logs, "-o", "s.parquet")
    scores = load_scores("s.parquet")
    a, b, c = scores.values
    assert a.tolist() == b.tolist() == [1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    ran = np.flatnonzero(~np.isnan(c)).tolist()
    assert scores.items["sample_id"].iloc[ran].tolist() == ["s3", "s7"]
    ok("start", "s.parquet", "-m", "random", "-n", 12, "-t", "new", "-o", "run")
    ok("tell", "run", logs / "c.eval", "-t", "new")
    answers = Evaluation.open("run", scores).record.answers("new")
    assert sorted(answers.items) == ran


def test_a_log_likelihood_is_not_a_perplexity(cli, ok):
    logs = CASES / "lmeval_perplexity" / "logs"
    for more in (("--range=-20,0",), ("--range=-20,0", "--lower-is-better")):
        said = cli("import", logs, "--metric", "perplexity", *more, "-o", "s.parquet")
        assert said.code == 2
        assert "metric 'perplexity' of task 'toy_capitals' is not the mean of its rows" in said.err
        assert "use --metric acc" in said.err
    ok("import", logs, "-o", "s.parquet")
    assert set(load_scores("s.parquet").items["metric"]) == {"acc"}
