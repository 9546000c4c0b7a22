"""One word for one thing: the glossary's, in the documentation, in help, and in what is printed."""

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
