"""Renamed, shuffled and damaged results: each gives the right number, or says something.

Every case has a twin without the fault. A case is silently wrong if a number is wrong and no
command prints a warning that it does not print for the twin. It is "said elsewhere" if the number
itself comes without a warning, and import, tell or audit had one.
"""

import csv
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from .found import ELSEWHERE, SILENT, Found, estimates_of
from .lm_eval_logs import LM_EVAL
from .shell import Said, fewbench, folder
from .worlds import Questions, last_of

ITEMS, BUDGET, MODELS = 200, 60, 6
VARIABLE = re.compile(r"'[^']*'|[\d.,]+|\b(?:run-\d+/step-\d+|\S+\.(?:csv|jsonl))")
NAMED = ("--model", "model", "--item", "item", "--score", "score")
Row = dict[str, object]
"""A row of a long table."""


def logs(worlds: int) -> Iterator[Found]:
    """Yield which faults of logs and tables give a wrong number without a word."""
    for world in range(worlds):
        rng = np.random.default_rng([60, world])
        questions = Questions.draw(ITEMS, rng)
        rows = questions.rows(last_of(rng.permutation(32)[:MODELS]))
        with folder():
            yield from _tables(world, questions, rows, rng)
            yield from _told(world, questions, rows, questions.items(), "")
            others = dict(list(rows.items())[1:])
            source = questions.table(others, "others")
            yield from _told(world, questions, rows, source, " beside five models")
        read = {}
        for case, write in LM_EVAL.items():
            with folder():
                write(questions, rows, rng)
                read[case] = _ranks(fewbench("import", "logs", "-o", "s.parquet"))
        for case in list(LM_EVAL)[1:]:
            said = {"twin": read["no fault"], "case": read[case]}
            yield from _judged(f"lm-eval: {case}", world, said, rows)


def _ranks(imported: Said) -> list[Said]:
    """Return what import and rank print for the table."""
    if imported.code:
        return [imported]
    return [imported, fewbench("audit", "s.parquet"), fewbench("rank", "s.parquet", "--json")]


def _judged(
    case: str, world: int, said: dict[str, list[Said]], truth: dict[str, np.ndarray]
) -> Iterator[Found]:
    """Yield whether scores are wrong without a warning, at all or beside them."""
    last = said["case"][-1]
    right = {name: scores.mean() for name, scores in truth.items()}
    printed = {} if last.code else {of["target"]: of["score"] for of in last.json["targets"]}
    is_right = printed.keys() == right.keys() and all(
        abs(score - right[name]) < 1e-6 for name, score in printed.items()
    )
    yield from _said_where(case, world, said, is_fine=is_right or last.code != 0)


def _said_where(
    case: str, world: int, said: dict[str, list[Said]], *, is_fine: bool
) -> Iterator[Found]:
    beside = {kind: of[-1:] for kind, of in said.items()}
    is_silent = not is_fine and not _new(said)
    is_elsewhere = not is_fine and not is_silent and not _new(beside)
    yield Found(case, SILENT, float(is_silent), world)
    yield Found(case, ELSEWHERE, float(is_elsewhere), world)


def _new(said: dict[str, list[Said]]) -> set[str]:
    """Return what the case says that its twin does not, but for names and numbers."""
    words = {
        kind: {VARIABLE.sub("#", text) for each in of for text in _remarks(each)}
        for kind, of in said.items()
    }
    return words["case"] - words["twin"]


def _remarks(said: Said) -> list[str]:
    """Return warnings, notes, errors, and an audit's findings."""
    findings = re.findall(r"^(?:problem|caution)\b.*", said.out, re.M | re.I)
    return [*said.warnings, *findings]


def _rows(questions: Questions, scores: dict[str, np.ndarray]) -> list[Row]:
    return [
        {"model": name, "item": item, "score": score}
        for name, row in scores.items()
        for item, score in zip(questions.ids, row.tolist(), strict=True)
    ]


def _first(rows: list[Row], change: Callable[[Row], Row | None]) -> list[Row]:
    """Change or drop the rows of the first model."""
    name = rows[0]["model"]
    changed = [change(row) if row["model"] == name else row for row in rows]
    return [row for row in changed if row is not None]


def _wrong_is(value: object) -> Callable[[Row], Row]:
    return lambda row: row | {"score": row["score"] if row["score"] else value}


TABLES: dict[str, Callable[[list[Row], np.random.Generator], list[Row]]] = {
    "rows in another order": lambda rows, rng: [rows[at] for at in rng.permutation(len(rows))],
    "failures only": lambda rows, _: [row for row in rows if not row["score"]],
    "one model's failures only": lambda rows, _: _first(
        rows, lambda row: None if row["score"] else row
    ),
    "one model's successes only": lambda rows, _: _first(
        rows, lambda row: row if row["score"] else None
    ),
    "null for a failure": lambda rows, _: list(map(_wrong_is(None), rows)),
    "one model's failures are null": lambda rows, _: _first(rows, _wrong_is(None)),
    "nan for a failure": lambda rows, _: list(map(_wrong_is("nan"), rows)),
    "one model in percent": lambda rows, _: _first(
        rows, lambda row: row | {"score": 100 * row["score"]}
    ),
    "all models in percent": lambda rows, _: [row | {"score": 100 * row["score"]} for row in rows],
    "one model's errors, not scores": lambda rows, _: _first(
        rows, lambda row: row | {"score": 1 - row["score"]}
    ),
    "one model's first 80 items": lambda rows, _: rows[:80] + rows[ITEMS:],
    "one model's first 120 items": lambda rows, _: rows[:120] + rows[ITEMS:],
    "one model under two names": lambda rows, _: [
        row | {"model": f"{row['model']} "} if at % 2 and at < ITEMS else row
        for at, row in enumerate(rows)
    ],
    "one model's ids with other letters": lambda rows, _: _first(
        rows, lambda row: row | {"item": str(row["item"]).upper()}
    ),
    "one model's rows twice": lambda rows, _: rows + rows[:ITEMS],
    "one model's second run in the same table": lambda rows, rng: (
        rows + [row | {"score": float(rng.random() < 0.5)} for row in rows[:ITEMS]]
    ),
    "words in place of scores": lambda rows, _: [
        row | {"score": "PASS" if row["score"] else "FAIL"} for row in rows
    ],
}
"""Damage to a long table."""


def _tables(
    world: int, questions: Questions, scores: dict[str, np.ndarray], rng: np.random.Generator
) -> Iterator[Found]:
    clean, form = _rows(questions, scores), ("csv", "jsonl")[world % 2]
    twin = _imported(clean, form)
    for case, damage in TABLES.items():
        said = {"twin": twin, "case": _imported(damage(clean, rng), form)}
        yield from _judged(f"table: {case}", world, said, scores)


def _imported(rows: list[Row], form: str) -> list[Said]:
    path = Path(f"table.{form}")
    with path.open("w", newline="") as file:
        if form == "jsonl":
            file.writelines(json.dumps(row) + "\n" for row in rows)
        else:
            table = csv.DictWriter(file, list(rows[0]))
            table.writeheader()
            table.writerows(rows)
    return _ranks(fewbench("import", path, *NAMED, "-o", "s.parquet", "--force"))


def _told(
    world: int, questions: Questions, rows: dict[str, np.ndarray], source: str, beside: str
) -> Iterator[Found]:
    """Yield faults of answers of the first model that are recorded by hand."""
    scores = next(iter(rows.values()))
    known = dict(zip(questions.ids, scores.tolist(), strict=True))
    start = ("start", source, "-n", BUDGET, "-t", "new", "-m", "random", "--seed", world)
    fewbench(*start, "-o", f"asked {source}")
    asked = fewbench("ask", f"asked {source}", "--json").json["new"]
    task_of = dict(zip(questions.ids, questions.tasks, strict=True))
    by_task = sorted(questions.ids, key=lambda item: task_of[item])
    answers: dict[str, dict[str, object]] = {
        "no fault": {item: known[item] for item in asked},
        "in another order": {item: known[item] for item in sorted(asked)},
        "all items": known,
        "the file's first 60 items": {item: known[item] for item in by_task[:BUDGET]},
        "the first half of what was asked, by id": {
            item: known[item] for item in sorted(asked)[: BUDGET // 2]
        },
        "successes only": {item: 1.0 for item in asked if known[item]},
        "failures only": {item: 0.0 for item in asked if not known[item]},
        "failures are empty": {item: known[item] or "" for item in asked},
        "failures are nan": {item: known[item] or "nan" for item in asked},
        "in percent": {item: 100 * known[item] for item in asked},
        "errors, not scores": {item: 1 - known[item] for item in asked},
        "true and false": {item: str(bool(known[item])) for item in asked},
        "ids that are row numbers": {str(at): known[item] for at, item in enumerate(asked)},
    }
    said: dict[str, list[Said]] = {}
    for case, lines in answers.items():
        place = f"{case} {source}"
        fewbench(*start, "-o", place)
        with open("answers.csv", "w", newline="") as file:
            csv.writer(file).writerows([("item", "score"), *lines.items()])
        told = fewbench("tell", place, "answers.csv", "--item", "item", "--score", "score")
        said[case] = [told, fewbench("estimate", place, "--json")]
        last, twin = said[case][-1], said["no fault"][-1].json["new"]
        if case == "no fault":
            yield from estimates_of(f"answers{beside}: as asked", world, twin, scores.mean())
            continue
        is_fine = told.code or last.code or last.json["new"]["score"] == twin["score"]
        both = {"twin": said["no fault"], "case": said[case]}
        yield from _said_where(f"answers{beside}: {case}", world, both, is_fine=bool(is_fine))
