"""Decisions about models: how often they are wrong, whether intervals hold, what they cost.

    python benchmarks/two_questions.py [FOLDER_OF_TABLES] [--parts reruns shapes …] [--repeats 30]

Verdicts answer for the models: on questions like these, and if they run again (docs/decide.md).
Everything runs through `versus`, `gate`, `rank` and `track`, at 90%. Parts:

- `reruns`: five runs of one model, on a simulated benchmark of 300 items with 0, 5 or 40 source
  models. Any verdict is wrong. For `gate`, runs that fail or pass against another run.
- `shapes`: two runs of one model that answered all items, over shapes of benchmarks: near copies,
  nearly all right, few items, fractional scores, macro averages, unequal weights. A verdict is
  wrong; an interval covers if it holds 0. Then two models whose true difference is known.
- `thresholds`: `gate --at-least` at the true score. Both verdicts are wrong.
- `tasks`: verdicts on tasks, on reruns; any wrong one of a benchmark's counts.
- `partial`: two runs of one model that answered 30% of the items, or one 30% and the other all, as
  a target or as a source model; right and wrong answers, fractions, near copies, nearly all right.
- `looks`: a verdict at any look, after 10, 20, 40, … and all items.
- `fixed`: with `fixed_items`, intervals are those of the items alone.

With a folder of tables (see docs/results.md; default ../shared/data):

- `halves`: half of the items are the benchmark, the other half new questions. An interval covers if
  it holds the other half's difference, given that half's own error.
- `power`: right verdicts on pairs of models, beside those of a paired t test on as many random
  items.
- `agents`: five runs each of 13 agents (terminal_bench_runs): verdicts between runs of one agent.

Shares are printed with two standard errors; a cell is marked if it is above .107 by more.
"""

import argparse
import itertools
import math
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit, stdtrit

import fewbench
from fewbench import Evaluation
from fewbench.decide.joint_estimate import contrast
from fewbench.decide.operands import operand
from fewbench.readers.npz import read_npz
from fewbench.scores import Scores
from fewbench.uncertainty.held_out import looks_of

LEVEL, BOUND = 0.9, 0.107
ITEMS, TASKS, RUNS = 300, 4, 5
TABLES = (
    "helm_math",
    "helm_gsm",
    "helm_med_qa",
    "gsm8k_150",
    "openllm2_math_musr",
    "alpaca_eval_58",
)
Rows = Iterator[tuple[tuple[object, ...], str, float]]
"""A cell, what was counted, and its value."""


def table_of(answers: np.ndarray, tasks: np.ndarray | None = None, **options: object) -> Scores:
    """Return scores of models m0, m1, …."""
    n_models, n_items = answers.shape
    tasks = np.zeros(n_items, dtype=int) if tasks is None else tasks
    items = pd.DataFrame({"task": [f"t{task}" for task in tasks]})
    items.index = pd.Index([f"q{at}" for at in range(n_items)], name="item")
    if not n_models:
        return fewbench.Benchmark(items)
    table = fewbench.from_arrays(
        answers, models=[f"m{at}" for at in range(n_models)], items=list(items.index),
        tasks=items["task"].tolist(),
    )  # fmt: skip
    return replace(table, **options) if options else table


class World:
    """A simulated benchmark: item response curves, and source models that answered its items."""

    def __init__(self, n_sources: int, seed: int, n_items: int = ITEMS, kind: str = "") -> None:
        rng = np.random.default_rng([seed, n_sources])
        self.kind = kind
        self.difficulty = rng.normal(0, 1.5, n_items)
        self.slope = rng.lognormal(0, 0.3, n_items) * (20 if kind == "near copies" else 1)
        self.tasks = np.arange(n_items) % TASKS
        chances = self.chances(np.array([self.ability(rng) for _ in range(n_sources)])[:, None])
        self.scores = table_of(self.answers(chances, rng), self.tasks)

    def ability(self, rng: np.random.Generator) -> float:
        """Draw a model."""
        return float(rng.normal(4 if self.kind == "ceiling" else 0, 1))

    def answers(self, chances: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw a run of each model."""
        if self.kind == "fractions":
            return rng.beta(3 * chances + 0.01, 3 * (1 - chances) + 0.01)
        return (rng.random(chances.shape) < chances) * 1.0

    def chances(self, ability: float | np.ndarray) -> np.ndarray:
        """Return a model's chance of a right answer by item."""
        return expit(self.slope * (ability - self.difficulty))


def played(scores: object, rows: dict[str, np.ndarray], n: int, seed: int) -> Evaluation:
    """Run targets on the same n items."""
    names = list(rows)
    evaluation = Evaluation(scores, "fewbench", n, [names[0]], seed)
    items = evaluation.scores.item_ids.tolist()
    for name in names:
        if name != names[0]:
            evaluation.follow(name)
        answers = dict(zip(items, rows[name], strict=True))
        while asked := evaluation.ask(targets=[name]).get(name):
            evaluation.tell(name, {item: answers[item] for item in asked})
    return evaluation


def is_verdict(verdict: str) -> float:
    """Return whether a verdict takes sides."""
    return float(verdict in ("better", "worse", "pass", "fail"))


def reruns(repeats: int) -> Rows:
    """Yield verdicts on runs of one model."""
    for n_sources, share in itertools.product((0, 5, 40), (0.1, 0.3, 0.7, 1.0)):
        n, world = round(share * ITEMS), World(n_sources, 0)
        for seed in range(repeats):
            rng = np.random.default_rng([seed, n_sources, n])
            chances = world.chances(rng.normal(0, 1))
            names = [f"step-{at}" for at in range(1, RUNS + 1)]
            rows = {name: (rng.random(ITEMS) < chances) * 1.0 for name in names}
            evaluation = played(world.scores, rows, n, seed)
            cell = (n_sources, share)
            for pair in itertools.combinations(names, 2):
                sides = [operand((evaluation, name), evaluation.scores) for name in pair]
                for fixed in (False, True):
                    low, high = contrast(*sides, fixed_items=fixed).interval(LEVEL)
                    yield cell, f"versus{' --fixed-items' * fixed}", float(low > 0 or high < 0)
            for pair in itertools.pairwise(names):
                first, other = ((evaluation, name) for name in pair)
                gate = fewbench.gate(first, not_below=other)
                yield cell, "gate", is_verdict(gate.verdict)
            ranks = fewbench.rank(evaluation).targets
            apart = any(of.rank_low > 1 or of.rank_high < RUNS for of in ranks)
            yield cell, "rank", float(apart)
            if n_sources and seed % 4:  # estimates all again, from the sources
                continue
            changes = fewbench.track(evaluation).changes
            yield cell, "track", float(any(is_verdict(change.verdict) for change in changes))


def shaped(
    shape: str, n_items: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, Callable[[np.ndarray], np.ndarray], dict[str, object]]:
    """Return chances of two models, their tasks, and how answers are drawn, for a shape.

    The mean chances of the two differ by what the shape says, over all such questions.
    """
    draw = lambda chances: (rng.random(chances.shape) < chances) * 1.0  # noqa: E731
    options: dict[str, object] = {}
    tasks = np.zeros(n_items, dtype=int)
    a = rng.beta(0.3, 0.3, n_items)
    if shape == "sure":
        a = rng.beta(0.05, 0.05, n_items)
    elif shape == "even":
        a = rng.beta(2, 2, n_items)
    elif shape == "near copies":
        a = np.where(rng.random(n_items) < 0.03, 0.5, rng.random(n_items) < 0.6)
    elif shape == "ceiling":
        a = rng.beta(3, 0.1, n_items)
    elif shape == "fractional":
        draw = lambda chances: rng.beta(3 * chances + 0.01, 3 * (1 - chances) + 0.01)  # noqa: E731
    elif shape == "pass@1 of 4":
        draw = lambda chances: rng.binomial(4, chances) / 4  # noqa: E731
    elif shape in ("macro, equal tasks", "macro, unequal tasks"):
        n_tasks = 5
        shares = [1, 2, 4, 8, 16] if "unequal" in shape else [1] * n_tasks
        edges = np.round(np.cumsum(shares) / np.sum(shares) * n_items).astype(int)
        tasks = np.searchsorted(edges, np.arange(n_items), side="right")
        level = np.array([0.2, 0.4, 0.5, 0.6, 0.9])[tasks]
        a = rng.beta(level, 1 - level)
        options["average"] = "macro"
    return a, tasks, draw, options


SHAPES = (
    "mixed", "sure", "even", "near copies", "ceiling", "fractional", "pass@1 of 4",
    "macro, equal tasks", "macro, unequal tasks", "unequal weights",
)  # fmt: skip


def shapes(repeats: int) -> Rows:
    """Yield verdicts on two runs, and on two models of a known difference, that ran all items."""
    for shape, n_items in itertools.product(SHAPES, (50, 150, 437, 1319)):
        rng = np.random.default_rng([SHAPES.index(shape), n_items])
        rows, truths = [], [0.0, true_difference(shape)]
        for _ in range(10 * repeats):
            a, tasks, draw, options = shaped(shape, n_items, rng)
            b = np.where(rng.random(n_items) < 0.3, 0.5 * a + 0.2, a)
            rows += [draw(chances) for chances in (a, a, a, b)]
        table = table_of(np.array(rows), tasks, **options)
        if shape == "unequal weights":
            weights = rng.lognormal(0, 0.7, n_items)
            table = replace(table, items=table.items.assign(weight=weights))
        for at in range(0, len(rows), 2):
            sides = [operand(name, table) for name in table.model_ids[at : at + 2]]
            low, high = contrast(*sides).interval(LEVEL)
            is_rerun, truth = at % 4 == 0, truths[at % 4 // 2]
            what = "reruns" if is_rerun else "models"
            yield (shape, n_items), f"{what}: covers", float(low <= truth <= high)
            if is_rerun:
                yield (shape, n_items), "reruns: verdicts", float(low > 0 or high < 0)


def true_difference(shape: str) -> float:
    """Return the difference of the second kind of pair over all questions like these."""
    if shape not in KNOWN:
        rng = np.random.default_rng(0)
        a, tasks, *_ = shaped(shape, 400_000, rng)
        apart = 0.3 * (a - 0.5 * a - 0.2)
        if shape == "fractional":  # E of the answers is not exactly the chance
            apart = 0.3 * ((3 * a + 0.01) - (3 * (0.5 * a + 0.2) + 0.01)) / 3.02
        by_task = np.bincount(tasks, apart) / np.bincount(tasks)
        KNOWN[shape] = float(by_task.mean() if shape.startswith("macro") else apart.mean())
    return KNOWN[shape]


KNOWN: dict[str, float] = {}


def thresholds(repeats: int) -> Rows:
    """Yield verdicts of a gate at the true score."""
    shapes = ("mixed", "even", "ceiling", "fractional", "macro, unequal tasks")
    for shape, n_items, share in itertools.product(shapes, (50, 437), (0.3, 1.0)):
        truth = true_score(shape)
        for seed in range(3 * repeats):
            rng = np.random.default_rng([seed, n_items, round(10 * share)])
            a, tasks, draw, options = shaped(shape, n_items, rng)
            table = table_of(draw(a)[None], tasks, **options)
            benchmark = table.take(models=[]).benchmark
            evaluation = played(benchmark, {"a": table.values[0]}, round(share * n_items), seed)
            found = fewbench.gate(evaluation, at_least=truth)
            for verdict in ("pass", "fail"):
                yield (shape, n_items, share), verdict, float(found.verdict == verdict)


def true_score(shape: str) -> float:
    """Return the score over all questions like these."""
    a, tasks, draw, _ = shaped(shape, 400_000, np.random.default_rng(0))
    by_task = np.bincount(tasks, draw(a)) / np.bincount(tasks)
    return float(by_task.mean() if shape.startswith("macro") else draw(a).mean())


def tasks(repeats: int) -> Rows:
    """Yield whether any task differs between two runs of one model."""
    for n_sources, share in itertools.product((0, 5, 40), (0.3, 0.7, 1.0)):
        n = round(share * ITEMS)
        world = World(n_sources, 1)
        for seed in range(2 * repeats):
            rng = np.random.default_rng([seed, n_sources, n, 1])
            chances = world.chances(rng.normal(0, 1))
            rows = {name: (rng.random(ITEMS) < chances) * 1.0 for name in "ab"}
            evaluation = played(world.scores, rows, n, seed)
            found = fewbench.versus((evaluation, "a"), (evaluation, "b"), next_items=0, warn=False)
            wrong = any(is_verdict(task.verdict) for task in found.tasks)
            yield (n_sources, share), "any task", float(wrong)
            ends = [task.interval for task in found.tasks if task.interval is not None]
            holds = np.mean([end.low <= 0 <= end.high for end in ends]) if ends else 1.0
            yield (n_sources, share), "intervals hold", float(holds)


def partial(repeats: int) -> Rows:
    """Yield verdicts on two runs of one model, of which at least one is partial."""
    kinds = ("right and wrong", "fractions", "near copies", "ceiling")
    n = round(0.3 * ITEMS)
    for kind, n_sources in itertools.product(kinds, (0, 40)):
        world = World(n_sources, 3, kind=kind)
        for seed in range(4 * repeats):
            rng = np.random.default_rng([seed, n_sources, kinds.index(kind), 3])
            chances = world.chances(world.ability(rng))
            rows = {name: world.answers(chances, rng) for name in "ab"}
            both = played(world.scores, rows, n, seed)
            pairs = {"both partial": ((both, "a"), (both, "b"))}
            whole = played(world.scores, {"b": rows["b"]}, ITEMS, seed)
            pairs["a whole target"] = ((both, "a"), (whole, "b"))
            if n_sources:
                values = np.vstack([world.scores.filled_cells, rows["b"]])
                table = table_of(values, world.tasks)
                beside = played(table, {"a": rows["a"]}, n, seed)
                pairs["a source model"] = ((beside, "a"), table.model_ids[-1])
            for how, pair in pairs.items():
                found = fewbench.versus(*pair, next_items=0, warn=False)
                yield (kind, n_sources), how, is_verdict(found.verdict)


def looks(repeats: int) -> Rows:
    """Yield whether any of several looks told two runs of one model apart."""
    for n_sources, n_items in itertools.product((0, 40), (160, 300)):
        world = World(n_sources, 2, n_items)
        for seed in range(2 * repeats):
            rng = np.random.default_rng([seed, n_sources, n_items, 2])
            chances = world.chances(rng.normal(0, 1))
            rows = {name: (rng.random(n_items) < chances) * 1.0 for name in "ab"}
            evaluation = Evaluation(world.scores, "fewbench", n_items, list(rows), seed)
            wrong = False
            for n in looks_of(n_items):
                for name, row in rows.items():
                    while left := n - len(evaluation.record.answered(name)):
                        asked = evaluation.ask(targets=[name])[name][:left]
                        places = evaluation.scores.positions(asked)
                        evaluation.tell(name, dict(zip(asked, row[places], strict=True)))
                sides = [operand((evaluation, name), evaluation.scores) for name in rows]
                low, high = contrast(*sides, level=LEVEL, sequential=True).interval(LEVEL)
                wrong |= low > 0 or high < 0
            yield (n_sources, n_items), "any look", float(wrong)


def fixed(repeats: int) -> Rows:
    """Yield whether differences on exactly these items have the interval of the items alone."""
    for n_sources, share in itertools.product((0, 5, 40), (0.3, 1.0)):
        world = World(n_sources, 0)
        for seed in range(max(3, repeats // 5)):
            rng = np.random.default_rng([seed, n_sources])
            chances = [world.chances(rng.normal(0, 1)) for _ in "ab"]
            rows = {n: (rng.random(ITEMS) < p) * 1.0 for n, p in zip("ab", chances, strict=True)}
            evaluation = played(world.scores, rows, round(share * ITEMS), seed)
            sides = [operand((evaluation, name), evaluation.scores) for name in "ab"]
            asked, whole = contrast(*sides, fixed_items=True), contrast(*sides)
            alone = replace(whole, questions=None)
            same = asked.interval(LEVEL) == alone.interval(LEVEL)
            yield (n_sources, share), "equal", float(same and asked.p_value == alone.p_value)


def drawn(table: Scores, rng: np.random.Generator, most: int = 60) -> Scores:
    """Return some of the models, without missing cells."""
    models = np.sort(rng.permutation(table.n_models)[:most])
    part = table.take(models=models).complete()
    return replace(part, models=part.models.drop(columns="role", errors="ignore"))


def halves(repeats: int, folder: Path) -> Rows:
    """Yield whether intervals from half of the items hold the difference on the other half."""
    for name in TABLES:
        table = read_npz(folder / f"{name}.npz").scores
        for seed in range(repeats):
            rng = np.random.default_rng([seed, 3])
            part = drawn(table, rng)
            order = rng.permutation(part.n_items)
            first, other = np.sort(order[: len(order) // 2]), order[len(order) // 2 :]
            here, there = part.take(items=first), np.asarray(part.filled_cells)[:, other]
            near = np.argsort(part.full_scores(), kind="stable")
            for at in rng.permutation(len(near) - 3)[:20]:
                i, j = near[at], near[at + int(rng.integers(1, 4))]
                sides = [operand(here.model_ids[k], here) for k in (i, j)]
                new = there[i] - there[j]
                error = stdtrit(len(new) - 1, 0.5 + LEVEL / 2) * new.std(ddof=1) / len(new) ** 0.5
                for is_fixed in (False, True):
                    made = contrast(*sides, fixed_items=is_fixed)
                    low, high = made.interval(LEVEL)
                    off, half = abs(made.difference - new.mean()), (high - low) / 2
                    covers = float(off <= math.hypot(half, error))
                    who = "fixed items" if is_fixed else "models"
                    yield (name,), f"{who}: covers", covers
                    wrong = (low > 0 and new.mean() < -error) or (high < 0 and new.mean() > error)
                    yield (name,), f"{who}: surely wrong", float(wrong)


def power(repeats: int, folder: Path) -> Rows:
    """Yield right verdicts on pairs of models, and those of a paired t test on random items."""
    for name, n in itertools.product(TABLES[1:4], (20, 40, 80, 160)):
        table = read_npz(folder / f"{name}.npz").scores
        for seed in range(max(2, repeats // 10)):
            rng = np.random.default_rng([seed, 4])
            part = drawn(table, rng, 80)
            order = rng.permutation(part.n_models)
            targets, rest = part.take(models=order[:12]), part.take(models=np.sort(order[12:]))
            full = targets.full_scores()
            baseline = int(np.argsort(full)[6])
            known = part.take(models=np.sort([*order[12:], order[baseline]]))
            yield from of_pairs(name, n, targets, rest, known, baseline, seed, rng)


def of_pairs(
    name: str, n: int, targets: Scores, rest: Scores, known: Scores, baseline: int, seed: int,
    rng: np.random.Generator,
) -> Rows:  # fmt: skip
    """Yield the rows of one draw of models."""
    full, names, values = targets.full_scores(), targets.model_ids, np.asarray(targets.filled_cells)
    rows = dict(zip(names, values, strict=True))
    others = {key: row for key, row in rows.items() if key != names[baseline]}
    both, alone = played(rest, rows, n, seed), played(known, others, n, seed)
    for i in range(len(names)):
        apart = full[i] - full[baseline]
        if i == baseline or not 0.005 <= abs(apart) <= 0.1:
            continue
        made = {
            "neither known": contrast(
                *(operand((both, names[k]), both.scores) for k in (i, baseline))
            ),
            "baseline known": contrast(
                operand((alone, names[i]), alone.scores), operand(names[baseline], alone.scores)
            ),
        }
        sample = rng.permutation(values.shape[1])[:n]
        plain = (values[i] - values[baseline])[sample]
        half = stdtrit(n - 1, 0.5 + LEVEL / 2) * max(plain.std(ddof=1), 0.05) / n**0.5
        for how, of in made.items():
            low, high = of.interval(LEVEL)
            yield (how, n), "right", float(low > 0 if apart > 0 else high < 0)
            yield (how, n), "wrong", float(high < 0 if apart > 0 else low > 0)
            yield (how, n), "t right", float(np.sign(apart) * plain.mean() > half)
            yield (how, n), "width over t's", (high - low) / 2 / half


def agents(_: int, folder: Path) -> Rows:
    """Yield verdicts between runs of one agent."""
    table = read_npz(folder / "terminal_bench_runs.npz").scores
    systems = table.models["family"]
    for system in dict.fromkeys(systems):
        runs = [name for name in table.model_ids if systems[name] == system]
        for a, b in itertools.combinations(runs, 2):
            for is_fixed in (False, True):
                found = fewbench.versus(a, b, scores=table, fixed_items=is_fixed, warn=False)
                who = f"versus{' --fixed-items' * is_fixed}"
                yield ("runs of one agent",), who, is_verdict(found.verdict)


SIMULATED = {
    "reruns": reruns, "shapes": shapes, "thresholds": thresholds, "tasks": tasks,
    "partial": partial, "looks": looks, "fixed": fixed,
}  # fmt: skip
REAL = {"halves": halves, "power": power, "agents": agents}
NULL = (
    "versus", "gate", "rank", "track", "reruns: verdicts", "any task", "any look", "both partial",
    "a whole target", "a source model",
)  # fmt: skip
"""Shares that are to be at most a tenth."""


def summed(rows: Rows) -> str:
    """Return a table: a line for each cell, a column for each share with two standard errors."""
    values: dict[tuple[object, ...], dict[str, list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for cell, what, value in rows:
        values[cell][what].append(value)
    columns = list(dict.fromkeys(what for by_name in values.values() for what in by_name))
    lines = []
    for cell, by_name in values.items():
        line = [" ".join(map(str, cell)), str(max(map(len, by_name.values())))]
        for what in columns:
            of = np.array(by_name.get(what, [np.nan]))
            error = 2 * of.std() / len(of) ** 0.5
            mark = " !" if what in NULL and of.mean() > BOUND + error else ""
            line.append(f"{of.mean():.3f} ± {error:.3f}{mark}")
        lines.append(line)
    return pd.DataFrame(lines, columns=["cell", "n", *columns]).to_markdown(index=False)


def main() -> None:
    """Print a table for each part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("../shared/data"))
    parser.add_argument(
        "--parts", nargs="+", choices=[*SIMULATED, *REAL], default=[*SIMULATED, *REAL]
    )
    parser.add_argument("--repeats", type=int, default=30)
    given = parser.parse_args()
    warnings.simplefilter("ignore", fewbench.EstimateWarning)
    for part in given.parts:
        started = time.process_time()
        if part in REAL and not given.folder.is_dir():
            print(f"## {part}\n\nSkipped: there is no folder {given.folder} of tables.\n")
            continue
        rows = (
            SIMULATED[part](given.repeats)
            if part in SIMULATED
            else REAL[part](given.repeats, given.folder)
        )
        print(f"## {part}\n\n{summed(rows)}\n\n{time.process_time() - started:.0f} s\n", flush=True)


if __name__ == "__main__":
    main()
