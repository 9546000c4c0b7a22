"""The worked example of judged scores: what it prints, and the formula behind it."""

import re
from pathlib import Path

import numpy as np
import pytest

PAGE = (Path(__file__).parents[2] / "docs/how-to/judges.md").read_text(encoding="utf-8")


def test_the_corrected_score_is_that_of_prediction_powered_inference(capsys):
    (code,), (shown,) = (
        re.findall(rf"```{kind}\n(.*?)```", PAGE, re.S) for kind in ("python", "text")
    )
    names: dict = {}
    exec(compile(code, "judges.md", "exec"), names)
    assert capsys.readouterr().out == shown
    human, judge, bias = names["human"], names["judge"], names["bias"]
    labeled = list(names["labels"].items("human").query("score.notna()").index)
    assert len(labeled) == 200
    difference = (human - judge)[labeled]
    assert bias.difference == pytest.approx(difference.mean())
    # Its half width is that of a mean of n of N differences; here Student's and more, for 26 pairs.
    half = 1.645 * difference.std() * np.sqrt((1 - 200 / 1000) / 200)
    assert (bias.interval.high - bias.interval.low) / 2 == pytest.approx(half, rel=0.1)
    m = (1.645 / 0.02) ** 2 * (0.13 - 0.08**2)
    assert round(m / (1 + m / 1000)) == int(re.search(r"need (\d+) labels", PAGE)[1])
