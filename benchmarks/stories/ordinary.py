"""Ordinary runs with nothing wrong: how often each warning comes."""

import re
from collections.abc import Iterator

import numpy as np

from .found import ALARM, Found, estimates_of
from .models import Model
from .shell import LONG, Said, fewbench, folder, run_model, write_table
from .worlds import Questions, last_of, others, sampled

FACTS = (
    "method auto chose",
    "independent source model",  # how many there are
    "is new here: it runs the items of",
    "all items count as one task",
)
"""Warnings that every such run has, rightly."""
VARIABLE = re.compile(r"'[^']*'|[+-]?\d[\d.,]*%?|run-#/step-#|(?:forest|neighbors)-\w+")


def ordinary(worlds: int) -> Iterator[Found]:
    """Yield the warnings of runs in which nothing is wrong."""
    said: list[tuple[int, set[str]]] = []
    for world in range(worlds):
        rng = np.random.default_rng([80, world])
        questions = Questions.draw(int(rng.choice([100, 250, 500])), rng)
        n_sources = int(rng.choice([0, 3, 8, 15])) if world % 16 else 24
        at_temperature = bool(rng.integers(2))
        models = last_of(rng.permutation(32)[: (n_sources + 1) // 2 + 2])
        models += others(rng.permutation(40)[: n_sources // 2])
        order = rng.permutation(len(models))
        with folder():
            texts, found = _one(world, questions, [models[at] for at in order], at_temperature, rng)
            said.append((world, texts))
            yield from found
    for world, texts in said:
        yield Found("any warning", ALARM, float(bool(texts)), world)
    for kind in sorted(set().union(*(texts for _, texts in said))):
        for world, texts in said:
            yield Found(f"“{kind}”", ALARM, float(kind in texts), world)


def _one(
    world: int, questions: Questions, models: list[Model], at_temperature: bool,
    rng: np.random.Generator,
) -> tuple[set[str], list[Found]]:  # fmt: skip
    """Return the warnings on a table, two new models and their comparison, and their estimates."""
    rows = {
        model.name: sampled(model, questions.at, rng)
        if at_temperature
        else model.right[questions.at]
        for model in models
    }
    (first, second), sources = list(rows)[:2], list(rows)[2:]
    names, source = [f"new {first}", f"new {second}"], questions.items()
    commands: list[Said] = []
    if sources:
        of_sources = {name: rows[name] for name in sources}
        write_table("table.csv", of_sources, questions.ids, questions.tasks)
        source = "table.parquet"
        commands = [
            fewbench("import", "table.csv", *LONG, "-o", source),
            fewbench("audit", source),
            fewbench("rank", source, "--json"),
        ]
    found: list[Found] = []
    for name, scores in zip(names, (rows[first], rows[second]), strict=True):
        lines = questions.lines(scores)
        words = ("-n", min(60, len(questions.ids) // 2), "--seed", world)
        commands.append(run_model(source, lines, name, "run", *words))
        estimate = commands[-1].json["targets"][name]["estimate"]
        case = f"{'20 or more' if len(sources) >= 20 else 'fewer'} source models"
        found += estimates_of(case, world, estimate, scores.mean())
    commands += [
        fewbench("estimate", "run", "--json"),
        fewbench("versus", "run", *names, "--json"),
        fewbench("gate", f"run:{names[0]}", "--at-least", "0.5", "--json"),
        fewbench("rank", "run", "--json"),
        fewbench("add", "run", "-o", "more.parquet"),
    ]
    texts = {text for said in commands for text in [*said.warnings, *_problems(said)]}
    texts = {text for text in texts if not any(fact in text for fact in FACTS)}
    return {VARIABLE.sub("#", text)[:100].strip() for text in texts}, found


def _problems(said: Said) -> list[str]:
    """Return what an audit calls a problem."""
    return re.findall(r"^problem\b.*", said.out, re.M | re.I)
