from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from fewbench.scores import Scale
from fewbench.show.html import body_of
from fewbench.show.page import Shown
from fewbench.study.comparison import Comparison
from fewbench.study.comparison_page import comparison_page

METRICS = (
    "mae", "rmse", "max_error", "kendall_tau", "spearman", "pearson", "pairwise_accuracy",
    "rank_mae", "task_mae", "ratio_to_random", "ratio_to_random_ridge", "coverage90",
    "half_width90", "seconds_fit", "seconds_predict",
)  # fmt: skip
METHODS = (
    "random",
    "random items, ridge",
    "k-medoids items, weighted mean",
    "ridge on k-medoids items",
    "item response theory, 2PL",
    "disagreement items",
)


FAILURE = ["method", "budget", "split", "repeat", "reason"]


@dataclass(repr=False)
class Made(Shown):
    cells: pd.DataFrame
    estimates: pd.DataFrame
    task_errors: pd.DataFrame
    facts: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    metrics: tuple[str, ...] = ()
    failures: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=FAILURE))

    scale: Scale = field(default_factory=Scale)
    unit = Comparison.unit  # a property

    def page(self):
        return comparison_page(self)


def _cells(estimates: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    rows = []
    for (method, budget, split), part in estimates.groupby(
        ["method", "budget", "split"], sort=False
    ):
        runs = []
        for _, run in part.groupby("repeat"):
            miss = (run["estimate"] - run["truth"]).abs()
            held = (run["low"] <= run["truth"]) & (run["truth"] <= run["high"])
            # With no ties Kendall's tau is the mean of the signs' products.
            scores = (run["truth"].to_numpy(), run["estimate"].to_numpy())
            signs = [np.sign(np.subtract.outer(v, v)) for v in scores]
            n = len(run)
            tau = float((signs[0] * signs[1]).sum() / max(n * (n - 1), 1))
            runs.append(
                {
                    "mae": miss.mean(), "rmse": (miss**2).mean() ** 0.5, "max_error": miss.max(),
                    "kendall_tau": tau, "spearman": min(1, tau * 1.15),
                    "pearson": min(1, tau * 1.2), "pairwise_accuracy": (1 + tau) / 2,
                    "rank_mae": (1 - tau) * n / 5, "task_mae": 2.2 * miss.mean(),
                    "coverage90": held.mean(),
                    "half_width90": (run["high"] - run["low"]).mean() / 2,
                    "seconds_fit": rng.uniform(0.001, 2), "seconds_predict": rng.uniform(0, 0.01),
                }
            )  # fmt: skip
        frame = pd.DataFrame(runs)
        row = {"method": method, "budget": budget, "split": split, "n_sources": 90, "n_targets": n}
        for metric in frame:
            row[metric] = frame[metric].mean()
            row[f"{metric}_sd"] = frame[metric].std() if len(frame) > 1 else np.nan
            se = frame[metric].sem() if len(frame) > 1 else np.nan
            row[f"{metric}_se"] = se
            row[f"{metric}_low"], row[f"{metric}_high"] = row[metric] - se, row[metric] + se
        rows.append(row)
    cells = pd.DataFrame(rows)
    for base, name in ((0, "ratio_to_random"), (1, "ratio_to_random_ridge")):
        methods = list(dict.fromkeys(cells["method"]))
        if base >= len(methods):
            continue
        ground = cells[cells["method"] == methods[base]].set_index(["budget", "split"])["mae"]
        keys = pd.MultiIndex.from_frame(cells[["budget", "split"]])
        cells[name] = cells["mae"].to_numpy() / ground.reindex(keys).to_numpy()
    same = cells["method"] == cells["method"].iloc[0]
    for side, sign in (("low", -1), ("high", 1)):
        ends = cells["ratio_to_random"] * (1 + sign * rng.uniform(0.06, 0.2, len(cells)))
        cells[f"ratio_to_random_{side}"] = ends.where(~same)
    least = cells.groupby(["budget", "split"])["mae"].transform("min")
    level = (cells["mae"] <= 1.1 * least).astype("boolean")
    cells["tied_with_best"] = level if estimates["repeat"].nunique() > 2 else pd.NA
    return cells


def make(
    methods: tuple[str, ...] = METHODS,
    budgets: tuple[int, ...] = (20, 50, 100),
    splits: tuple[str, ...] = ("random", "family"),
    targets: int = 75,
    tasks: int = 8,
    repeats: int = 5,
    seed: int = 0,
    target_name: str = "lab{family}/model-{i}",
) -> Made:
    rng = np.random.default_rng(seed)
    good = np.concatenate([[1.0, 0.62], rng.uniform(0.38, 1.05, max(len(methods) - 2, 0))])
    if len(methods) > 3:
        good[2:4] = 0.72, 0.41
    parts = []
    for split_number, split in enumerate(splits):
        truth = np.clip(rng.beta(4, 3, targets), 0.05, 0.98)
        for m, method in enumerate(methods):
            for budget in budgets:
                sd = 0.36 / budget**0.5 * good[m] ** (0.6 if split_number else 1) + 0.004
                for repeat in range(repeats):
                    estimate = truth + rng.normal(rng.normal(0, sd / 6), sd, targets)
                    half = sd * rng.uniform(0.9, 1.3, targets) * (1.75 if m % 3 else 1.3)
                    parts.append(
                        pd.DataFrame(
                            {
                                "method": method, "budget": budget, "split": split,
                                "repeat": repeat,
                                "target": [
                                    target_name.format(family=i % 9, i=i) for i in range(targets)
                                ],
                                "family": [f"lab{i % 9}" for i in range(targets)],
                                "truth": truth, "estimate": estimate,
                                "low": estimate - half, "high": estimate + half,
                            }
                        )
                    )  # fmt: skip
    estimates = pd.concat(parts, ignore_index=True)
    hard = rng.uniform(0.6, 2.2, tasks)
    task_errors = pd.DataFrame(
        [
            {
                "method": method, "budget": budget, "split": split, "task": f"task {t} of all",
                "mae": 0.5 / budget**0.5 * good[m] * hard[t] * rng.uniform(0.8, 1.2),
                "n_items": int(120 + 37 * t),
            }
            for m, method in enumerate(methods) for budget in budgets
            for split in splits for t in range(tasks)
        ],
        columns=["method", "budget", "split", "task", "mae", "n_items"],
    )  # fmt: skip
    facts = {
        "Dataset": "Arithmetic-8",
        "Models": f"{targets + 120} ({targets} targets, 120 sources)",
        "Items": "4,812 in 8 tasks",
        "Split": "random: models drawn at random; family: whole families held out",
        "Repeats": str(repeats),
        "Seed": "0",
        "Versions": "fewbench 0.1.0, numpy 2.4.6, scipy 1.17.1",
        "Fingerprint": "sha256:9f2c5d1b8e7a4c3f6d0b9a8e7c6d5f4e3b2a1908f7e6d5c4b3a29180f7e6d5c4",
        "Command": "fewbench compare scores.parquet --budgets 20,50,100 --repeats 5 --seed 0",
    }
    warnings = [
        "3 targets have a near-duplicate among the sources (agreement above 98%): lab1/model-10 "
        "and lab1/model-11b; lab3/model-12 and lab3/model-12-chat; lab7/model-7 and model-7-v2.",
    ]
    return Made(_cells(estimates, rng), estimates, task_errors, facts, warnings)


@pytest.fixture
def make_comparison() -> Callable[..., Made]:
    return make


CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

VOID = {"meta", "input", "br", "link", "img", "hr", "use", "wbr"}


class _Balance(HTMLParser):
    """Fails when an element is left open or closed twice."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open
        assert self.open.pop() == tag


# Sent from inside the frame to the page around it, which is what gets dumped: a frame can be
# as narrow as a phone, a window cannot.
LOOK = """
<script>
const problems = [];
addEventListener('error', e => problems.push(e.message));
addEventListener('unhandledrejection', e => problems.push(String(e.reason)));
addEventListener('securitypolicyviolation', e => problems.push('blocked: ' + e.blockedURI));
const soon = f => new Promise(done => setTimeout(() => done(f()), 250));
async function look() {
  document.querySelectorAll('details').forEach(d => d.open = true);
  const result = await (async () => { ACTIONS })();
  const small = [], over = [], wide = [];
  for (const svg of document.querySelectorAll('.chart svg, .maps svg, .ring svg')) {
    if (!svg.clientWidth) continue;
    const chart = svg.closest('.chart');
    if (chart && svg.getBoundingClientRect().width > chart.clientWidth + 1)
      wide.push(chart.dataset.chart);
    const texts = [...svg.querySelectorAll('text')].filter(t => t.textContent &&
      !t.closest('[opacity="0"]') && getComputedStyle(t).opacity !== '0');
    const boxes = texts.map(t => [t.textContent, t.getBoundingClientRect()]);
    for (const t of texts)
      if (parseFloat(getComputedStyle(t).fontSize) < 10.9) small.push(t.textContent);
    boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
      const w = Math.min(p.right, q.right) - Math.max(p.left, q.left);
      const h = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
      // Line boxes are taller than letters, so lines that only brush are fine.
      if (w > 1 && h > 5) over.push(a + ' | ' + b);
    }));
  }
  const charts = [...document.querySelectorAll('.chart')];
  parent.postMessage(JSON.stringify({
    scroll: document.documentElement.scrollWidth, width: innerWidth, problems, small, over, wide,
    charts: charts.length, blank: charts.filter(c => !c.querySelector('svg')).length, result,
  }), '*');
}
const ready = setInterval(() => {
  if (document.documentElement.dataset.drawn !== 'yes') return;
  clearInterval(ready); look();
}, 50);
</script>
"""


def _look(page, folder, width, actions):
    copy, host = folder / "copy.html", folder / "host.html"
    text = page.read_text("utf-8")
    at = text.rindex("</body>")
    copy.write_text(text[:at] + LOOK.replace("ACTIONS", actions) + text[at:], "utf-8")
    host.write_text(
        "<body><pre id='out'></pre><script>onmessage = e => {"
        "document.getElementById('out').textContent = e.data}</script>"
        f"<iframe src='copy.html' width='{width}' height='900'></iframe></body>"
    )
    run = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
         "--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=60000",
         "--window-size=1400,1000", "--dump-dom", host.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    found = re.search(r"<pre id=\"out\">(.+?)</pre>", run.stdout, re.DOTALL)
    assert found, run.stdout[:400]
    return json.loads(unescape(found[1]))


@pytest.fixture
def balanced() -> Callable[[str], None]:
    """A check that every element of a page is closed."""

    def check(text):
        balance = _Balance()
        balance.feed(text)
        assert not balance.open

    return check


@pytest.fixture
def body() -> Callable[[str], str]:
    """The part of a page that people see, without style and scripts."""
    return body_of


@pytest.fixture
def look(tmp_path) -> Callable[..., dict]:
    """What a browser shows of a page at a width after some actions, or a skip without one."""
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    return lambda page, width, actions="": _look(page, tmp_path, width, actions)
