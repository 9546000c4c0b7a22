"""Labels that come later: what models predicted is known of all items, what is right of a few."""

import numpy as np
import pandas as pd
import pytest

import fewbench
from fewbench.errors import FewbenchError
from fewbench.evaluation import Evaluation
from fewbench.readers import read_items
from fewbench.readers.predictions import labeled

N, BUDGET = 3000, 150


def simulated(seed=1):
    """Return items with predictions and proxies, and the labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(4, size=N)
    items = pd.DataFrame({"id": [f"img-{n}" for n in range(N)]})
    sure = rng.random(N)
    for name, skill in (("new", 0.9), ("old", 0.6)):
        is_right = rng.random(N) < skill * sure + (1 - sure) * 0.3
        predicted = np.where(is_right, labels, (labels + 1) % 4)
        items[f"prediction:{name}"] = [f"class {n}" for n in predicted]
    items["proxy:confidence"] = 100 * sure  # in any unit
    return items, pd.Series([f"class {n}" for n in labels], items["id"], name="label")


def test_from_predictions_to_a_verdict(ok):
    items, labels = simulated()
    items.to_csv("items.csv", index=False)
    ok("start", "items.csv", "-n", BUDGET, "-t", "new", "-t", "old", "-o", "run")
    asked = ok("ask", "run").split()
    assert len(asked) == BUDGET
    done, later = asked[:-10], asked[-10:]
    sheet = labels[asked].where(~labels[asked].index.isin(later), "")  # not labeled yet
    sheet.to_csv("labels.csv")
    ok("tell", "run", "labels.csv")
    evaluation = Evaluation.open("run")
    assert {len(evaluation.record.answered(name)) for name in ("new", "old")} == {len(done)}
    labels[asked].rename("y").to_csv("all.csv")
    ok("tell", "run", "all.csv", "--label", "y")
    evaluation = Evaluation.open("run")
    assert evaluation.provenance.method == "aipw"
    for name in ("new", "old"):
        truth = (items.set_index("id")[f"prediction:{name}"] == labels).mean()
        estimate = evaluation.estimate()[name]
        assert estimate.interval.low <= truth <= estimate.interval.high
        half = (estimate.interval.high - estimate.interval.low) / 2
        assert half < 0.95 * estimate.random.half_width
    assert fewbench.versus((evaluation, "new"), (evaluation, "old")).verdict == "better"


def test_intervals_with_proxies_hold():
    covered, halves, of_random = [], [], []
    for seed in range(30):
        items, labels = simulated(seed)
        is_right = (items["prediction:new"] == labels.to_numpy()).to_numpy(float)
        table = items.set_index("id").assign(task="all")
        benchmark = fewbench.Benchmark(table)
        evaluation = Evaluation(benchmark, "auto", BUDGET, ["new"], seed=seed)
        asked = evaluation.ask()["new"]
        evaluation.tell(
            "new", dict(zip(asked, is_right[table.index.get_indexer(asked)], strict=True))
        )
        estimate = evaluation.estimate()["new"]
        covered.append(estimate.interval.low <= is_right.mean() <= estimate.interval.high)
        halves.append((estimate.interval.high - estimate.interval.low) / 2)
        of_random.append(estimate.random.half_width)
    assert np.mean(covered) >= 0.8
    assert np.mean(halves) < 0.95 * np.mean(of_random)


def told(items, labels):
    evaluation = Evaluation(read_items(items), "auto", 20, ["old"])
    return labeled(labels, "label", None, evaluation.scores, ["new", "old"])


@pytest.mark.parametrize(
    "change",
    [
        lambda items, labels: (items, pd.concat([labels[:1], labels])),
        lambda items, labels: (items, labels.rename(index={"img-0": "img-x"})),
        lambda items, labels: (items.drop(columns="prediction:old"), labels),
        lambda items, labels: (items.assign(**{"prediction:old": ""}), labels),
        lambda items, labels: (items.assign(**{"proxy:confidence": "high"}), labels),
    ],
    ids=["twice", "unknown", "no column", "no prediction", "no number"],
)
def test_what_is_refused(change, tmp_path):
    items, labels = change(*simulated())
    items.to_csv(tmp_path / "items.csv", index=False)
    labels[:20].rename_axis("id").to_csv(tmp_path / "labels.csv")
    with pytest.raises(FewbenchError):
        told(tmp_path / "items.csv", tmp_path / "labels.csv")
