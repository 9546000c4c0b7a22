"""A training run: its checkpoints as sources, then later ones and other runs as targets."""

from collections.abc import Iterator

import numpy as np

from .found import WRONG, Found, estimates_of, is_wrong
from .models import Model
from .shell import fewbench, folder
from .worlds import Questions, last_of, others, run_of

RUNS, ITEMS, BUDGET = 32, 500, 100


def training(worlds: int) -> Iterator[Found]:
    """Yield what estimates of checkpoints and of other runs are worth, and changes of a run."""
    for world in range(worlds):
        rng = np.random.default_rng([10, world])
        questions = Questions.draw(ITEMS, rng)
        runs = rng.permutation(RUNS)
        own, other, many = run_of(int(runs[0])), last_of(runs[1:3]), last_of(runs[4:28])
        three = tuple(model for number in runs[4:7] for model in run_of(int(number)))
        new = last_of(runs[28:30])
        forest = others(rng.integers(40, size=1))
        with folder():
            given = questions.items()
            yield from _each("first models, no source models", world, questions, given, new)
            given = questions.table(questions.rows(own[:5]), "own")
            yield from _each(
                "later checkpoints, from earlier ones", world, questions, given, own[5:]
            )
            yield from _each("another run, from checkpoints of one", world, questions, given, other)
            given = questions.table(questions.rows(three), "three")
            yield from _each("another run, from checkpoints of three", world, questions, given, new)
            given = questions.table(questions.rows(many), "many")
            yield from _each("another run, from 24 runs", world, questions, given, new)
            yield from _each("another kind of model, from 24 runs", world, questions, given, forest)
            yield from _changes(world, questions, own)


def _each(
    case: str, world: int, questions: Questions, source: str, targets: tuple[Model, ...]
) -> Iterator[Found]:
    for target in targets:
        scores, name = target.right[questions.at], f"target-{target.name.replace('/', '-')}"
        place = f"run {case}"
        estimate = questions.estimate(source, scores, name, place, "-n", BUDGET, "--seed", world)
        yield from estimates_of(case, world, estimate, scores.mean())


def _changes(world: int, questions: Questions, run: tuple[Model, ...]) -> Iterator[Found]:
    """Yield wrong changes of a run whose checkpoints ran a part of the items."""
    for model in run:
        scores = model.right[questions.at]
        questions.estimate("items.csv", scores, f"step-{model.step}", "curve", "-n", BUDGET)
    truth = {f"step-{model.step}": model.right.mean() for model in run}
    changes = fewbench("track", "curve", "--json").json["changes"]
    wrong = [is_wrong(of["verdict"], truth[of["after"]] - truth[of["before"]]) for of in changes]
    yield Found("changes of a run", WRONG, max(wrong), world)
