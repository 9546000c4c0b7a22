"""A leaderboard that grows by better models, and gets dirty."""

from collections.abc import Iterator

import numpy as np

from .found import COVERED, SILENT, WRONG, Found, estimates_of
from .models import Model
from .shell import LONG, fewbench, folder, import_table, write_table
from .worlds import Questions, last_of, others

MONTHS, EACH, ITEMS, BUDGET = 6, 6, 400, 60


def board(worlds: int) -> Iterator[Found]:
    """Yield estimates of each month's new models, and the order of the last month's table."""
    for world in range(worlds):
        rng = np.random.default_rng([30, world])
        questions = Questions.draw(ITEMS, rng)
        models = list(last_of(rng.permutation(32)[:18]) + others(rng.permutation(40)[:18]))
        luck = rng.normal(0, 0.05, len(models))
        order = np.argsort([model.right.mean() for model in models] + luck, kind="stable")
        ordered = [models[at] for at in order]
        rows: dict[str, np.ndarray] = {}
        with folder():
            for month in range(MONTHS):
                new = ordered[month * EACH : (month + 1) * EACH]
                if month:
                    yield from _new_models(month, world, questions, rows, new[::3])
                rows |= {model.name: model.right[questions.at] for model in new}
                _soil(rows, month, rng)
            write_table("board.csv", rows, questions.ids, questions.tasks)
            yield from _last(world, questions, ordered, rows)


def _new_models(
    month: int, world: int, questions: Questions, rows: dict[str, np.ndarray], new: list[Model]
) -> Iterator[Found]:
    source = questions.table(rows, f"month-{month}")
    case = f"new models, {'few' if month < 4 else '20 or more'} source models"
    for model in new:
        scores = model.right[questions.at]
        words = ("-n", BUDGET, "--seed", world)
        estimate = questions.estimate(source, scores, f"new {model.name}", f"run {month}", *words)
        yield from estimates_of(case, world, estimate, scores.mean())


def _soil(rows: dict[str, np.ndarray], month: int, rng: np.random.Generator) -> None:
    """Copy a model, rename one, lose cells of one, and drop one."""
    names = list(rows)
    if month == 1:
        rows[f"{names[0]}#2"] = rows[names[0]]
    if month == 2:
        rows["our-best"] = rows[names[-1]]
    if month == 3:
        lost = rng.random(len(rows[names[2]])) < 0.03
        rows[names[2]] = np.where(lost, np.nan, rows[names[2]])
    if month == 4:
        del rows[names[1]]


def _last(
    world: int, questions: Questions, models: list[Model], rows: dict[str, np.ndarray]
) -> Iterator[Found]:
    """Yield whether copies are named, a wrong range is refused, and the order is right."""
    source = import_table("board.csv")
    found = fewbench("audit", source, "--json").json["findings"]
    named = {name for finding in found if finding["of"] == "models" for name in finding["ids"]}
    copies = (next(name for name in rows if name.endswith("#2")), "our-best")
    for copy in copies:
        yield Found("a copy of a model under another name", SILENT, float(copy not in named), world)
    percent = dict(rows)
    percent[next(iter(rows))] = 100 * percent[next(iter(rows))]
    write_table("percent.csv", percent, questions.ids, questions.tasks)
    said = fewbench("import", "percent.csv", *LONG, "-o", "percent.parquet")
    yield Found("one model in percent", SILENT, float(not said.code), world)
    cleaned = fewbench("audit", source, "--drop", "duplicates", "-o", "clean.parquet")
    assert not cleaned.code, cleaned.err
    truth = {model.name: model.right.mean() for model in models}
    ranked = fewbench("rank", "clean.parquet", "--json").json["targets"]
    known = [of for of in ranked if of["target"] in truth]
    wrong = False
    for one in known:
        for two in known:
            if one["rank"] < two["rank"] and two["target"] not in one["tied_with"]:
                wrong |= truth[one["target"]] < truth[two["target"]]
    yield Found("the last table: any pair in the wrong order", WRONG, float(wrong), world)
    best = max(known, key=lambda of: truth[of["target"]])
    case = "the last table: the best may be the best"
    yield Found(case, COVERED, float(best["may_be_best"]), world)
