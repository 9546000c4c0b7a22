"""Verdicts on programs that are alike: how often they are wrong, and whether intervals hold.

    python benchmarks/alike.py FOLDER [--repeats 20] [--seconds 600]

FOLDER holds the tables named below (see docs/results.md). A repeat draws 500 items and 40 source
models of a table (or 5 of them, or none), and two programs. Each is compared with an equal program,
with one that is right on 3% more of the items, with one that is right on 3% more and wrong on 2%
more, and with another model of the table that agrees with it on 90% of the items or more
("sibling"). Models that agree as closely with one of these two are not source models. All run the
same share of the items, in one folder (later ones follow the first), in folders of their own, or
there with other seeds.

A verdict is wrong if the full scores do not differ in that direction. `rank` and `track` judge
several pairs at once: one wrong verdict among them counts. An interval covers if it contains the
true difference; a range of ranks, if it contains a rank that the true scores allow. Intervals are
at 90%: with other seeds, 5% of the verdicts may be wrong in each direction, and equal programs have
two.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import fewbench
from fewbench import Evaluation
from fewbench.readers.npz import read_npz
from fewbench.scores import Scores

TABLES = ("openllm2_math_musr", "helm_commonsense", "gsm8k_150")
PATHS = {"no sources": 0, "5 sources": 5, "40 sources": 40}
SHARES = (0.1, 0.3, 0.5, 0.7)
FOLDERS = ("one", "several", "other seeds")
ITEMS, SOURCES, PROGRAMS, ALIKE = 500, 40, 2, 0.9
STEPS = ("step-1", "step-2", "step-3", "step-4", "step-5")
PAIRS = ("equal", "+3%", "+3% -2%", "sibling")
"""The other programs beside the first one."""


def programs(
    answers: np.ndarray, sibling: np.ndarray, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Return the answers of programs that are alike."""
    wrong, right = (rng.permutation(np.flatnonzero(answers == at)) for at in (0, 1))
    few = round(0.03 * len(answers))
    better, other = answers.copy(), answers.copy()
    better[wrong[:few]] = 1
    other[wrong[few : 2 * few]] = 1
    other[right[: round(0.02 * len(answers))]] = 0
    return dict(zip(STEPS, (answers, answers, better, other, sibling), strict=True))


def play(evaluation: Evaluation, name: str, answers: np.ndarray) -> None:
    """Answer a target's items."""
    places = {item: at for at, item in enumerate(evaluation.scores.item_ids)}
    while asked := evaluation.ask(targets=[name]).get(name):
        evaluation.tell(name, {item: answers[places[item]] for item in asked})


def evaluated(
    sources: Scores, rows: dict[str, np.ndarray], n: int, seed: int, folders: str
) -> list[Evaluation]:
    """Run all programs on n items each."""
    if folders == "one":
        evaluation = Evaluation(sources, "fewbench", n, [STEPS[0]], seed)
        for at, name in enumerate(STEPS):
            if at:
                evaluation.follow(name)
            play(evaluation, name, rows[name])
        return [evaluation] * len(STEPS)
    made = []
    for at, name in enumerate(STEPS):
        own = seed + 1000 * at if folders == "other seeds" else seed
        made.append(Evaluation(sources, "fewbench", n, [name], own))
        play(made[-1], name, rows[name])
    return made


def judged(made: list[Evaluation], rows: dict[str, np.ndarray]) -> Iterator[dict[str, object]]:
    """Yield what every command says: whether it is wrong, and the share that it covers."""
    truth = np.array([rows[name].mean() for name in STEPS])
    first = (made[0], STEPS[0])
    for evaluation, name, full in zip(made, STEPS, truth, strict=True):
        ends = evaluation.estimate(targets=[name])[name].interval
        covered = ends.low - 1e-9 <= full <= ends.high + 1e-9
        yield {"command": "estimate", "programs": "all", "wrong": False, "covered": covered}
    for at, pair in enumerate(PAIRS, start=1):
        other, apart = (made[at], STEPS[at]), round(truth[at] - truth[0], 9)
        compared = fewbench.versus(other, first, next_items=0, fixed_items=True)
        wrong = {"better": apart <= 0, "worse": apart >= 0}.get(compared.verdict, False)
        ends = compared.interval
        yield {
            "command": "versus", "programs": pair, "wrong": wrong,
            "covered": ends.low - 1e-9 <= apart <= ends.high + 1e-9,
            "half width": (ends.high - ends.low) / 2, "common": compared.items_common,
        }  # fmt: skip
        for one, two, lead in ((other, first, apart), (first, other, -apart)):
            gate = fewbench.gate(one, not_below=two, fixed_items=True)
            ends = gate.checks[0].interval
            yield {
                "command": "gate", "programs": "all",
                "wrong": gate.verdict == ("pass" if lead < 0 else "fail"),
                "covered": ends.low - 1e-9 <= lead <= ends.high + 1e-9,
            }  # fmt: skip
    unique = list(dict.fromkeys(made))
    ranked = {one.target: one for one in fewbench.rank(*unique, fixed_items=True).targets}
    wrong, covered = False, []
    for at, name in enumerate(STEPS):
        least = 1 + int((truth > truth[at] + 1e-9).sum())
        most = int((truth > truth[at] - 1e-9).sum())
        place = ranked[name]
        covered.append(place.rank_low <= most and place.rank_high >= least)
        wrong |= not covered[-1]
    yield {"command": "rank", "programs": "all", "wrong": wrong, "covered": np.mean(covered)}
    scores = dict(zip(STEPS, truth, strict=True))
    curve = fewbench.track(unique, fixed_items=True)
    wrong, covered = False, []
    for change in curve.changes:
        apart = round(scores[change.after] - scores[change.before], 9)
        wrong |= {"better": apart <= 0, "worse": apart >= 0}.get(change.verdict, False)
        covered.append(change.interval.low - 1e-9 <= apart <= change.interval.high + 1e-9)
    yield {"command": "track", "programs": "all", "wrong": wrong, "covered": np.mean(covered)}


def siblings(values: np.ndarray, rng: np.random.Generator) -> tuple[int, int, np.ndarray]:
    """Return a model, one that is alike but not equal, and the models that are like neither."""
    agree = values @ values.T + (1 - values) @ (1 - values).T
    agree /= values.shape[1]
    one, other = rng.permutation(np.argwhere((agree >= ALIKE) & (agree < 1)))[0]
    return one, other, np.flatnonzero((agree[[one, other]] < ALIKE).all(axis=0))


def repeat(table: Scores, number: int) -> Iterator[dict[str, object]]:
    """Yield the rows of one draw of items, models and programs."""
    rng = np.random.default_rng(number)
    drawn = table.take(items=np.sort(rng.permutation(table.n_items)[:ITEMS]))
    for _ in range(PROGRAMS):
        one, other, rest = siblings(drawn.values, rng)
        rows = programs(drawn.values[one], drawn.values[other], rng)
        models = rng.permutation(rest)[:SOURCES]
        for path, n_sources in PATHS.items():
            sources = drawn.take(models=models[:n_sources]) if n_sources else drawn.benchmark
            for share in SHARES:
                for folders in FOLDERS[: 2 if path == "40 sources" else None]:
                    made = evaluated(sources, rows, round(share * ITEMS), number, folders)
                    for row in judged(made, rows):
                        yield {"path": path, "n/N": share, "folders": folders, **row}


def table_of(rows: pd.DataFrame) -> str:
    """Return the shares of wrong verdicts and of intervals that cover, by cell."""
    means = rows.groupby(["path", "folders", "command", "programs", "n/N"], sort=False).agg(
        wrong=("wrong", "mean"), covered=("covered", "mean")
    )
    cells = means.apply(lambda row: f"{row.wrong:.3f} / {row.covered:.3f}", axis=1).unstack("n/N")
    return cells.reset_index().to_markdown(index=False)


def main() -> None:
    """Repeat until the time is over, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=np.inf, help="stop after so long")
    parser.add_argument("--out", type=Path, help="file for all rows (CSV)")
    given = parser.parse_args()
    warnings.simplefilter("ignore", fewbench.EstimateWarning)
    tables = {name: read_npz(given.folder / f"{name}.npz").scores for name in TABLES}
    rows, started = [], time.process_time()
    for number in range(given.repeats):
        for name, table in tables.items():
            if time.process_time() - started < given.seconds:
                rows += [{"table": name, **row} for row in repeat(table, number)]
    frame = pd.DataFrame(rows)
    if given.out is not None:
        frame.to_csv(given.out, index=False)
    print(table_of(frame))


if __name__ == "__main__":
    main()
