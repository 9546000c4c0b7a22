from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest

from fewbench.report import write_report

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine"),
]
LONG = (
    "random",
    "stratified-by-task random items, post-stratified",
    "logistic-matrix-factorisation-rank-8-with-family-prior",
    "gaussian process over item embeddings",
    "k-medoids items",
    *(f"disagreement-maximising items, variant {i}" for i in range(7)),
)
# Sent from inside the frame to the page around it, which is what gets dumped: a frame can be
# as narrow as a phone, a window cannot.
MEASURE = """
<style>.tab{display:block!important}</style>
<script>
addEventListener('load', () => {
  document.querySelectorAll('details').forEach(d => d.open = true);
  const outside = [], small = [], over = [];
  document.querySelectorAll('svg').forEach(svg => {
    const box = svg.viewBox.baseVal, scale = svg.getBoundingClientRect().width / box.width;
    const texts = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBBox(), t]);
    texts.forEach(([words, b, t]) => {
      if (b.x < -1 || b.y < -1 || b.x + b.width > box.width + 1 || b.y + b.height > box.height + 1)
        outside.push(words);
      if (scale * parseFloat(getComputedStyle(t).fontSize) < 10.95) small.push(words);
    });
    texts.forEach(([a, p], i) => texts.slice(i + 1).forEach(([b, q]) => {
      const w = Math.min(p.x + p.width, q.x + q.width) - Math.max(p.x, q.x);
      const h = Math.min(p.y + p.height, q.y + q.height) - Math.max(p.y, q.y);
      // Line boxes are taller than letters, so lines that only brush are fine.
      if (w > 1 && h > 4) over.push(a + ' | ' + b);
    }));
  });
  const root = document.documentElement;
  parent.postMessage(JSON.stringify({
    scroll: root.scrollWidth, width: innerWidth, outside, small, over,
    texts: document.querySelectorAll('svg text').length,
  }), '*');
});
</script>
"""


def _measure(page, folder, width):
    copy, host = folder / "copy.html", folder / "host.html"
    text = page.read_text("utf-8")
    copy.write_text(text.replace("</body>", MEASURE + "</body>"), "utf-8")
    host.write_text(
        "<body><pre id='out'></pre><script>onmessage = e => {"
        "document.getElementById('out').textContent = e.data}</script>"
        f"<iframe src='copy.html' width='{width}' height='900'></iframe></body>"
    )
    run = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
         "--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=4000",
         "--window-size=1400,1000", "--dump-dom", host.as_uri()],
        capture_output=True, text=True, timeout=90, check=True,
    )  # fmt: skip
    found = re.search(r"<pre id=\"out\">(.*?)</pre>", run.stdout, re.DOTALL)
    assert found, run.stdout[:400]
    return json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("kind", ["usual", "stress"])
def test_nothing_is_cut_off(make_comparison, tmp_path, width, kind):
    made = make_comparison(targets=30, repeats=2)
    if kind == "stress":
        made = make_comparison(
            LONG, (1, 10, 20, 50, 200, 1000), ("random", "leave-family-out", "newest models"),
            targets=12, tasks=57, repeats=2, target_name="organisation-{family}/long-name-{i}b",
        )  # fmt: skip
    seen = _measure(write_report(made, tmp_path / "report.html"), tmp_path, width)
    assert seen["width"] == width
    assert seen["texts"] > 100
    assert seen["scroll"] <= width
    assert seen["outside"] == []
    assert seen["small"] == []
    assert seen["over"] == []
