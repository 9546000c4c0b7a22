"""One model, run again at a temperature: every verdict is wrong. Then two models that differ."""

from collections.abc import Iterator

import numpy as np

from .found import WRONG, Found, estimates_of, is_wrong
from .shell import fewbench, folder
from .worlds import Questions, last_of, sampled

RUNS, ITEMS, BUDGET = 32, 300, 100
NAMES = [f"step-{at}" for at in range(1, 6)]


def reruns(worlds: int) -> Iterator[Found]:
    """Yield verdicts between runs of one model, and between two models that differ."""
    for world in range(worlds):
        rng = np.random.default_rng([20, world])
        questions = Questions.draw(ITEMS, rng)
        runs = rng.permutation(RUNS)
        (model, other), many = last_of(runs[:2]), last_of(runs[8:])
        rows = {name: sampled(model, questions.at, rng) for name in NAMES}
        unlike = sampled(other, questions.at, rng)
        apart = model.chances.mean() - other.chances.mean()
        with folder():
            sources = {"no source models": questions.items()}
            if world % 4 == 0:  # the choice of a method takes seconds
                given = {one.name: sampled(one, questions.at, rng) for one in many}
                sources["24 source models"] = questions.table(given, "many")
            for case, given in sources.items():
                for name, scores in rows.items():
                    estimate = questions.estimate(given, scores, name, case, "-n", BUDGET)
                    yield from estimates_of(f"estimates, {case}", world, estimate, scores.mean())
                questions.estimate(given, unlike, "unlike", f"{case} too", "-n", BUDGET)
                yield from _verdicts(f"one model, {case}", world, case)
                said = fewbench("versus", f"{case}:step-1", f"{case} too:unlike", "--json").json
                yield Found(f"two models, {case}", WRONG, is_wrong(said["verdict"], apart), world)
            table = questions.table(rows | {"unlike": unlike}, "full")
            for case, pair, truth in (
                ("one model, all items", NAMES[:2], 0.0),
                ("two models, all items", (NAMES[0], "unlike"), apart),
            ):
                said = fewbench("versus", *pair, "--scores", table, "--json").json
                yield Found(f"{case}: versus", WRONG, is_wrong(said["verdict"], truth), world)
            only = questions.table(rows, "same")
            ranked = fewbench("rank", only, "--json").json["targets"]
            yield Found("one model, all items: rank", WRONG, _ranked(ranked), world)


def _verdicts(case: str, world: int, place: str) -> Iterator[Found]:
    for one, two in zip(NAMES[:-1:2], NAMES[1::2], strict=True):
        said = fewbench("versus", place, one, two, "--json").json
        yield Found(f"{case}: versus", WRONG, is_wrong(said["verdict"], 0), world)
        said = fewbench("gate", f"{place}:{one}", "--not-below", f"{place}:{two}", "--json").json
        yield Found(f"{case}: gate", WRONG, is_wrong(said["verdict"], 0), world)
    ranked = fewbench("rank", place, "--json").json["targets"]
    yield Found(f"{case}: rank", WRONG, _ranked(ranked), world)
    changes = fewbench("track", place, "--json").json["changes"]
    wrong = max(is_wrong(change["verdict"], 0) for change in changes)
    yield Found(f"{case}: track", WRONG, wrong, world)


def _ranked(targets: list[dict[str, int]]) -> float:
    """Return whether any of equal models is ranked."""
    return float(any(of["rank_low"] > 1 or of["rank_high"] < len(targets) for of in targets))
