"""One word for one thing, the glossary's, and plain English in texts, help and messages."""

import re
from collections import Counter
from pathlib import Path

import pytest

import fewbench
from fewbench.cli.app import COMMANDS, load_command
from fewbench.testing import simulate

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CHANGELOG.md"]
OTHER_WORDS = {
    r"confidence intervals?|prediction intervals?": "interval",
    r"margin of error|(?<![-\w])half-widths?": "half width",
    r"(?:past|previous|old) models?": "source model",
    r"test models?|candidate models?|new candidates?": "target model",
    r"put aside|set aside|left aside": "held out",
    r"(?:plain|simple) random sampling": "random sampling",
    r"sub-?samples?": "sample",
    r"item budgets?|sample sizes?": "budget",
    r"answer sheets?|responses": "answers",
    r"expected mistakes?|expected errors of estimation": "expected error",
}
"""Words for what the glossary names otherwise."""


def other_words(text: str) -> list[tuple[str, str]]:
    text = re.sub(r"`[^`\n]*`", "", re.sub(r"```.*?```", "", text, flags=re.S))  # names of code
    return [
        (found[0], word)
        for pattern, word in OTHER_WORDS.items()
        for found in re.finditer(rf"\b(?:{pattern})\b", " ".join(text.split()), re.IGNORECASE)
    ]


def test_each_term_is_defined_once():
    terms = re.findall(r"^(\S[^\n]*)\n:   ", GLOSSARY, re.M)
    assert [term for term, n in Counter(map(str.lower, terms)).items() if n > 1] == []
    assert {word.lower() for word in OTHER_WORDS.values()} - {"answers", "held out", "sample"} <= {
        term.lower() for term in terms
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_use_the_terms(page):
    assert other_words(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_uses_the_terms(name):
    command = load_command(name)
    for part in (command, *getattr(command, "commands", {}).values()):
        texts = [part.help or "", *(getattr(option, "help", "") or "" for option in part.params)]
        assert [found for text in texts for found in other_words(text)] == []


def test_outputs_use_the_terms_and_half_widths():
    table = simulate(24, 80, 3, seed=1)
    evaluation = fewbench.Evaluation(table, "random-ridge", 20, ["a", "b"])
    for target, items in evaluation.ask().items():
        evaluation.tell(target, dict.fromkeys(items, float(target == "a")))
    shown = [
        fewbench.audit(table), evaluation.estimate(), fewbench.rank(evaluation),
        fewbench.versus((evaluation, "a"), (evaluation, "b")),
        fewbench.gate((evaluation, "a"), at_least=0.5),
        fewbench.plan(table, budget=20, methods="random-ridge", expect="like", repeats=3),
        fewbench.plan(table.benchmark, half_width=0.1),
        fewbench.compare(table, "random-ridge", 20, repeats=3),
    ]  # fmt: skip
    for result in shown:
        text = str(result)
        assert other_words(text) == [], type(result).__name__
        assert not re.search(r"(?<!half )(?<!full )\bwidth", text, re.I), type(result).__name__


DIFFERENT = (
    "answer|average|budget|cost|distance|error|field|form|format|function|half|harness|hash|kind|"
    "level|list|metric|method|name|number|order|processor|program|prompt|range|release|revision|"
    "scale|score|seed|setting|size|sort|split|sum|task|temperature|text|type|unit|value|"
    "version|way|width"
)
TRANSLATED = {
    "Of … (at the beginning of a sentence)": r"\bOf (?!course\b)",
    "…; None if …": r"; (?:None|none|NaN|nan)\b(?! stays)",
    "another X (for: a different X)": rf"\banother (?:{DIFFERENT})s?\b",
    "is no X (for: is not an X)": r"(?<!here )\b(?:is|are|was|were|be) no\b"
    r"(?! longer| more\b| less\b| better\b| worse\b| faster\b)",
    "are asked (items, models)": r"\b(?:is|are|was|were|be|been) (?:not )?asked\b(?! for\b)",
    "says, is said (things)": r"\bsa(?:ys?|id) (?:nothing|little|much|more|less|so|of|no|elsewhere)"
    r"\b|\b(?:is|are|was|were) (?:said|told)\b",
    "knows (things)": r"(?<!you )(?<!they )(?<!to )\bknows?\b (?!how|what to)",
}
"""What reads as translated: each pattern has a plain form, as in its name."""
AS_IT_WAS = {
    "benchmarks/field.py": 2,
    "benchmarks/papers/bento.py": 1,
    "benchmarks/papers/bento_constant.py": 3,
    "benchmarks/papers/disco.py": 1,
    "benchmarks/papers/record.py": 1,
    "benchmarks/stories/board.py": 1,
    "benchmarks/stories/found.py": 2,
    "benchmarks/stories/lm_eval_logs.py": 1,
    "benchmarks/stories/logs.py": 4,
    "benchmarks/stories/restarts.py": 1,
    "benchmarks/stories/training.py": 1,
    "benchmarks/training_runs.py": 1,
}
"""Places that stay, most of them in the texts of committed records: lower freely, never raise."""


def translated(path: Path) -> list[str]:
    """Return the places of a file that read as translated, with their neighbors."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        text = re.sub(r"```.*?```", "", text, flags=re.S)
    text = re.sub(r'"\s*\n\s*f?"', "", text)  # a message of several parts
    text = " ".join(re.sub(r"\n[ \t]*#:?", " ", text).split())  # a comment of several lines
    return [
        f"{name}: …{text[max(0, found.start() - 40) : found.end() + 40]}…"
        for name, pattern in TRANSLATED.items()
        for found in re.finditer(pattern, text)
    ]


def test_no_file_reads_more_as_translated():
    tops = ("src", "benchmarks", "scripts")
    programs = [path for top in tops for path in sorted((ROOT / top).rglob("*.py"))]
    grown = {}
    for path in [*PAGES, ROOT / "CONTRIBUTING.md", *programs]:
        name = path.relative_to(ROOT).as_posix()
        found = translated(path)
        if len(found) > AS_IT_WAS.get(name, 0):
            grown[name] = found
    assert grown == {}
    assert sum(AS_IT_WAS.values()) <= 40
