"""What the models of toy.json answered, which each harness played (scripts/fixtures)."""

import json
import re
from pathlib import Path

FIXTURES = Path(__file__).parent / "fixtures"
TOY = json.loads((FIXTURES / "lm_eval" / "toy.json").read_text("utf-8"))
A, B = MODELS = list(TOY["answers"])
CAPITALS, SUMS = TOY["tasks"].values()
STRICT, FLEXIBLE = "strict-match", "flexible-extract"


def capitals(model):
    """Whether each capital is right."""
    answers = TOY["answers"][model]["toy_capitals"]
    return [float(x == item["gold"]) for x, item in zip(answers, CAPITALS, strict=True)]


def sums(model, filter=FLEXIBLE):
    """Whether each sum is right; every other answer is marked as the strict filter wants it."""
    answers = TOY["answers"][model]["toy_sums"]
    right = [float(x == item["answer"]) for x, item in zip(answers, SUMS, strict=True)]
    return [x if filter == FLEXIBLE or at % 2 == 0 else 0.0 for at, x in enumerate(right)]


def expected(model, task):
    return {"toy_capitals": capitals, "toy_sums": sums}[task](model)


def noted(found, pattern):
    """Whether a note fits: of a reading or a run, or of notes themselves."""
    return any(re.search(pattern, note) for note in getattr(found, "notes", found))
