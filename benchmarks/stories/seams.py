"""Small worlds in which every two features meet, those of the laws, often enough for levels.

Sources, designs, answers, items, scores, baselines and targets of all kinds
(tests/laws/worlds.py). *Coverage*: intervals of estimates that hold the score on all items. *Wrong
verdicts*: of `versus`, a side taken between runs of one model, or against the sign of the
difference. *Width*: of intervals over those of as many random items. The pairs of features with the
worst means are printed, the worst first by how many standard errors a mean is from what it should
be.
"""

import itertools
import math
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import fewbench

from .found import COVERED, WRONG, Found, is_wrong

WIDTH = "width"
WANTED = {COVERED: (0.9, -1), WRONG: (0.05, 1), WIDTH: (1.0, 1)}
"""What a mean should be, and the sign of what is worse."""
FEWEST, WORST = 20, 12


def seams(worlds: int) -> Iterator[Found]:
    """Yield what is found in so many draws of each world; a case names the world's features."""
    laws = str(Path(__file__).parents[2] / "tests" / "laws")
    if laws not in sys.path:
        sys.path.append(laws)
    from worlds import WORLDS, World

    warnings.simplefilter("ignore")
    for draw, (at, same) in itertools.product(range(worlds), enumerate(WORLDS)):
        world, number = World(same.features, seed=1000 * (draw + 1) + at), draw * len(WORLDS) + at
        scale, case = world.scores.scale, str(same)
        for name, estimate in world.evaluation.estimate(warn=False).items():
            if estimate.items_run == estimate.items_total:
                continue
            truth = float(scale.from_unit(world.truth[name] @ world.scores.item_weights))
            low, high = estimate.interval.low - 1e-9, estimate.interval.high + 1e-9
            yield Found(case, COVERED, float(low <= truth <= high), number)
            half = (high - low) / 2
            yield Found(case, WIDTH, half / max(estimate.random.half_width, 1e-9), number)
        for a, b in world.pairs:
            how = world.side(a), world.side(b)
            pair = fewbench.versus(*how, scores=world.evaluation.scores, warn=False)
            yield Found(case, WRONG, is_wrong(pair.verdict, world.apart(a, b)), number)


def table(rows: Iterable[Found]) -> str:
    """Return the means of all worlds, and the worst pairs of features; a world counts once."""
    frame = pd.DataFrame(rows, columns=["case", "measure", "value", "world"])
    frame = frame.groupby(["measure", "case", "world"], as_index=False)["value"].mean()
    lines = ["| measure | features | mean | worlds |", "|---|---|---|---|"]
    for measure, (wanted, sign) in WANTED.items():
        values: dict[str, list[float]] = defaultdict(list)
        for row in frame[frame["measure"] == measure].itertuples():
            values["all"].append(row.value)
            for one, other in itertools.combinations(row.case.split(", "), 2):
                values[f"{one} · {other}"].append(row.value)
        far = {"all": math.inf}
        for pair, found in values.items():
            if len(found) >= FEWEST and pair != "all":
                error = max(np.std(found) / math.sqrt(len(found)), 0.5 / len(found))
                far[pair] = sign * (np.mean(found) - wanted) / error
        for pair in sorted(far, key=lambda pair: -far[pair])[: 1 + WORST]:
            found = values[pair]
            error = np.std(found) / math.sqrt(len(found))
            lines.append(
                f"| {measure} | {pair} | {np.mean(found):.3f} ± {error:.3f} | {len(found)} |"
            )
    return "\n".join(lines)
