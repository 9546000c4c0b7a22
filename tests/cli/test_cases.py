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
