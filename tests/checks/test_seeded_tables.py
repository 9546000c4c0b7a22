"""Fifty faults of ten kinds, seeded into real tables: which of them does the audit see?"""

import numpy as np
import pytest

from fewbench.checks import audit
from fewbench.scores import from_arrays

pytestmark = pytest.mark.slow

TABLES = ("openllm2_math_musr", "helm_math", "helm_gsm", "glue_sst2", "gsm8k_150")
CLEAN = (
    *("gsm8k_150", "helm_commonsense", "helm_gsm", "helm_math", "helm_med_qa"),
    *("glue_rte", "glue_sst2", "alpaca_eval_58", "mmlu_pro_32"),
)
MOST_MODELS = 100
MISSED = {
    ("all_best", "helm_math"),  # similar models have nearly all of the task right
    ("shuffled", "glue_sst2"),  # a quarter of the models has as little regard to difficulty
    ("wrong_keys", "openllm2_math_musr"),  # items of MuSR hardly tell models apart, with any key
    ("wrong_keys", "glue_sst2"),  # three of the five are listed
}
"""Faults that the audit does not find, with the reason."""


class Table:
    """Scores, models, items and tasks that a fault changes; `model` is one in the middle."""

    def __init__(self, scores, rng):
        full = scores.full_scores()
        keep = np.sort(rng.permutation(scores.n_models)[:MOST_MODELS])
        scores = scores.take(keep)
        self.rng = rng
        self.values = np.array(scores.values)
        self.models, self.items = scores.model_ids, scores.item_ids.tolist()
        self.tasks = scores.items["task"].tolist()
        order = np.argsort(full[keep])
        self.model = int(order[rng.integers(len(order) // 2, 9 * len(order) // 10)])
        means = np.nanmedian(self.values, axis=0)
        sizes = {t: np.flatnonzero(np.array(self.tasks) == t) for t in set(self.tasks)}
        self.task = max(sorted(sizes), key=lambda t: means[sizes[t]].mean())
        self.of_task = sizes[self.task]

    @property
    def name(self):
        return self.models[self.model]

    def append(self, row, name):
        self.values = np.vstack([self.values, row])
        self.models = [*self.models, name]

    def audit(self):
        return audit(
            from_arrays(self.values, models=self.models, items=self.items, tasks=self.tasks)
        )


def copied(t):
    t.append(t.values[t.model], "another/name")
    return "identical", {t.name, "another/name"}


def spelled_otherwise(t):
    t.models[t.model] = "lab/Some-Model-1.5"
    row = np.where(t.rng.random(len(t.items)) < 0.1, 1 - t.values[t.model], t.values[t.model])
    t.append(row, "lab/some_model-1-5")
    return "same-name-differs", {t.name, "lab/some_model-1-5"}


def not_run_but_zero(t):
    n = len(t.of_task)  # of the only task, a part
    lost = t.of_task if n < len(t.items) else t.of_task[n // 2 :]
    t.values[t.model, lost] = 0
    return "one-sided-part", {t.name}


def all_best(t):
    n = len(t.of_task)
    t.values[t.model, t.of_task if n < len(t.items) else t.of_task[: n // 2]] = 1
    return "one-sided-part", {t.name}


def cut(t):
    t.values[t.model, t.of_task[-len(t.of_task) // 3 :]] = 0
    return "one-sided-part", {t.name}


def shuffled(t):
    t.values[t.model] = t.rng.permutation(t.values[t.model])
    return "unlike-all", {t.name}


def turned(t):
    t.values[t.model] = 1 - t.values[t.model]
    return "unlike-all", {t.name}


def wrong_keys(t):
    means = np.nanmean(t.values, axis=0)
    at = t.rng.permutation(np.flatnonzero((means > 0.3) & (means < 0.8)))[:5]
    t.values[:, at] = 1 - t.values[:, at]
    return ("wrong-way", "suspect-keys"), {t.items[i] for i in at}


def in_halves(t):
    row, first = t.values[t.model].copy(), t.rng.random(len(t.items)) < 0.5
    t.values[t.model, ~first] = np.nan
    row[first] = np.nan
    t.append(row, "part-b")
    return "halves", {t.name, "part-b"}


def other_ids(t):
    others = np.flatnonzero(t.rng.random(len(t.models)) < 0.3)
    rest = np.setdiff1d(np.arange(len(t.models)), others)
    n = len(t.items)
    values = np.full((len(t.models), 2 * n), np.nan)
    values[rest, :n], values[others, n:] = t.values[rest], t.values[others]
    t.values, t.items = values, [*t.items, *(f"{item}?" for item in t.items)]
    t.tasks = [*t.tasks, *t.tasks]
    return "no-common-items", {*t.models}


FAULTS = (
    *(copied, spelled_otherwise, not_run_but_zero, all_best, cut),
    *(shuffled, turned, wrong_keys, in_halves, other_ids),
)


def is_found(found, kinds, ids):
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    named = {name for kind in kinds if (f := found.of_kind(kind)) for name in f.ids}
    return ids <= named


def test_46_of_50_faults_are_found(real):
    missed = set()
    for fault in FAULTS:
        for seed, name in enumerate(TABLES):
            table = Table(real(name), np.random.default_rng(seed))
            kinds, ids = fault(table)
            if not is_found(table.audit(), kinds, ids):
                missed.add((fault.__name__, name))
    assert missed == MISSED


def test_clean_tables_bring_few_alarms(real):
    for name in CLEAN:
        severities = [finding.severity for finding in audit(real(name)).findings]
        assert severities.count("problem") <= 1, name
        assert severities.count("caution") <= 3, name
