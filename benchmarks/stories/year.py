"""A leaderboard's year: new models and new items each month; nobody runs old models again."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from .found import LOST, SILENT, Found, estimates_of
from .shell import fewbench, folder, import_table, run_model, write_table

MONTHS, FIRST, EACH, MODELS, BUDGET = 12, 240, 30, 4, 60


def year(worlds: int, months: int = MONTHS) -> Iterator[Found]:
    """Yield what estimates are worth while items are added that the older models did not run."""
    for world in range(worlds):
        rng = np.random.default_rng([95, world])
        n_items = FIRST + EACH * (months - 1)
        month_of = np.maximum(0, (np.arange(n_items) - FIRST) // EACH + 1)
        hard = rng.normal(0.0, 1.0, n_items) + 0.08 * month_of  # newer items are harder
        ids = [f"q{at:04d}" for at in range(n_items)]
        tasks = [f"task-{at % 3}" for at in range(n_items)]

        answers = partial(_answers, rng, hard)
        rows: dict[str, np.ndarray] = {}
        first = answers(0.3)
        ran = 0
        with folder():
            for month in range(months):
                known = np.flatnonzero(month_of <= month)
                of_ids, of_tasks = [ids[at] for at in known], [tasks[at] for at in known]
                old = {name: np.where(month_of <= int(name[1:3]), row, np.nan)[known]
                       for name, row in rows.items()}  # fmt: skip
                target = answers(float(rng.normal(0.1 * month, 0.8)))
                if month:
                    write_table("board.csv", old, of_ids, of_tasks)
                    source = import_table("board.csv")
                else:
                    source = "items.csv"
                with open("items.csv", "w") as file:
                    pairs = zip(of_ids, of_tasks, strict=True)
                    file.write("\n".join(["id,task", *map(",".join, pairs)]))
                if month:
                    taken = fewbench("extend", "run first", "items.csv")
                    assert not taken.code, taken.err
                for name, scores, place, given in (
                    (f"new-{month}", target, f"run {month}", source),
                    ("first", first, "run first", "items.csv"),
                ):
                    lines = {ids[at]: {"score": float(scores[at])} for at in known}
                    said = run_model(given, lines, name, place, "-n", BUDGET, "--seed", world)
                    estimate = said.json["targets"][name]["estimate"]
                    case = "the first month's run, extended each month"
                    if name != "first":
                        case = "a new model, the older models lack the newest items"
                    yield from estimates_of(case, world, estimate, scores[known].mean())
                    if name == "first":
                        yield Found(case, LOST, float(estimate["items_run"] < ran), world)
                        ran = estimate["items_run"]
                rows |= {f"m{month:02d}-{at}": answers(float(rng.normal(0.1 * month, 0.8)))
                         for at in range(MODELS)}  # fmt: skip
            yield from _of_pack(world, rows, month_of, months, ids, tasks)


def _answers(rng: np.random.Generator, hard: np.ndarray, skill: float) -> np.ndarray:
    return (rng.random(len(hard)) < 1 / (1 + np.exp(1.5 * (hard - skill)))) * 1.0


def _of_pack(
    world: int,
    rows: dict[str, np.ndarray],
    month_of: np.ndarray,
    months: int,
    ids: list[str],
    tasks: list[str],
) -> Iterator[Found]:
    """Yield whether a pack says that its errors are of the older items only."""
    known = np.flatnonzero(month_of < months)
    old = {name: np.where(month_of < months - 1, row, np.nan)[known] for name, row in rows.items()}
    write_table("board.csv", old, [ids[at] for at in known], [tasks[at] for at in known])
    made = import_table("board.csv")
    packed = fewbench("pack", made, "-n", "30", "--no-backtest", "-o", "board.few")
    assert not packed.code, packed.err
    said = fewbench("pack", "show", "board.few")
    case = "a pack of a table that lacks the newest items"
    yield Found(
        case, SILENT, float("no source model ran" not in " ".join(said.out.split()).lower()), world
    )
