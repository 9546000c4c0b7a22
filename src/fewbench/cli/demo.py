"""fewbench demo: estimate a new model on bundled data, and check the estimate."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import numpy as np

from fewbench._progress import progress_bar
from fewbench._text import echo
from fewbench.cli.documented import documented
from fewbench.cli.options import Workers
from fewbench.cli.outputs import Force, check_outputs
from fewbench.evaluation import Evaluation
from fewbench.scores import Scale, Scores, Unit
from fewbench.uncertainty.sampling import expected_random_error

if TYPE_CHECKING:
    from fewbench.datasets.digits import Newcomer
    from fewbench.study import Comparison

METHOD = "fewbench"
UNIT = Unit(Scale())
BUDGET = 50
FAMILIES = 1 / 20
"""Share of the models that are held out as whole families."""
OWN = Path("demo-output")  # here the demo replaces its report


@documented
def demo(*, output: Path = OWN, seed: int = 0, workers: Workers = 2, force: Force = False) -> None:
    """Estimate a new classifier from a few of 1,000 items.

    Also writes the files that the examples of the README use.

    \b
    fewbench demo

    Parameters
    ----------
    output
        Folder for the report and example files.
    seed
        Random seed of the new model and the selection.
    workers
        Number of processes for the comparison.
    """
    from fewbench.datasets import load_zoo, train_newcomer, write_example
    from fewbench.datasets.zoo import EXAMPLE
    from fewbench.show.html import write_report
    from fewbench.study import SplitSettings, compare

    page = output / "report.html"
    files = [output / name for name in EXAMPLE]
    check_outputs(page, *files, force=force or output == OWN)
    zoo = load_zoo()
    echo(
        f"Source models: {zoo.n_models} small classifiers of {zoo.models['family'].nunique()} "
        f"families on {zoo.n_items:,} images of handwritten\ndigits. Target model: a new "
        f"classifier, of a family that no source model belongs to.\n{METHOD} chooses which images "
        "it runs:\n\n"
        "                     half width of the 90% interval\n"
        f"images  estimate  {METHOD:>12}  random sampling"
    )
    newcomer = train_newcomer(seed)
    evaluation = Evaluation(zoo, METHOD, BUDGET, ["newcomer"], seed)
    estimate = None
    while evaluation.ask():
        _answer(evaluation, newcomer)
        estimate = evaluation.estimate(warn=False)["newcomer"]
        half = (estimate.interval.high - estimate.interval.low) / 2
        echo(
            f"{estimate.items_run:6}  {UNIT.score(estimate.score):>8}  {UNIT.points(half):>12}  "
            f"{UNIT.points(estimate.random.half_width):>15}"
        )
    assert estimate is not None
    truth = newcomer.full_score()
    is_inside = estimate.interval.low <= truth <= estimate.interval.high
    echo(
        f"\nThe estimate is {UNIT.score(estimate.score)} "
        f"(90% interval {UNIT.scores(estimate.interval)}). "
        f"All {zoo.n_items:,} images give {UNIT.score(truth)}:\nthe error of the estimate is "
        f"{UNIT.points(abs(estimate.score - truth))} (percentage points), and the interval "
        f"{'contains' if is_inside else 'misses'} the truth.\n\n"
        f"One model proves little. The same for many others, {BUDGET} images each:\n"
    )
    with progress_bar("comparing") as progress:
        outcome = compare(
            zoo,
            [METHOD],
            [BUDGET],
            [SplitSettings("random"), SplitSettings("group", targets=FAMILIES)],
            repeats=3,
            seed=seed,
            workers=workers,
            progress=progress,
            facts={"scores": "the bundled zoo", "command": "fewbench demo"},
        )
    echo(_saved(outcome, zoo, "random", "models like the source models"))
    echo(_saved(outcome, zoo, "group", "models of families that no source model belongs to"))
    write_report(outcome, page)
    write_example(output)
    echo(
        f"\nReport of this comparison: {page.resolve()}\n"
        "Next: the examples of the README, for which the files are written:\n\n"
        f"  cd {quote(str(output))}\n"
        f"  fewbench run command scores.parquet -n {BUDGET} -t step-1000 -o run -- python answer.py"
    )


def _saved(outcome: "Comparison", zoo: Scores, split: str, whose: str) -> str:
    """Return the error over many targets, and how many random items have the same."""
    cells = outcome.cells
    cell = cells[(cells.method == METHOD) & (cells.split == split)].iloc[0]
    rows = outcome.estimates
    truths = rows[(rows.method == METHOD) & (rows.split == split)].truth.to_numpy()

    def random_error(n: int) -> float:
        return float(np.mean([expected_random_error(truth, n, zoo.n_items) for truth in truths]))

    needed = next(n for n in range(1, zoo.n_items + 1) if random_error(n) <= cell.mae)
    text = (
        f"- {cell.n_targets * cell.n_repeats:.0f} {whose}: the mean error of {METHOD} "
        f"is {UNIT.points(cell.mae)}.\n  That of random sampling is "
        f"{UNIT.points(random_error(BUDGET))}. It needs {needed} images for an error of "
        f"{UNIT.points(cell.mae)}."
    )
    if not cell.ratio_to_random_high < 1:  # also without an interval
        ends = f"{cell.ratio_to_random_low:.2f} to {cell.ratio_to_random_high:.2f}"
        text += f"\n  The gain is not certain: the error is {cell.ratio_to_random:.2f} times "
        text += f"random sampling's,\n  90% interval {ends}."
    text += f"\n  The 90% intervals contain the truth for {100 * cell.coverage90:.0f}% of them."
    return text


def _answer(evaluation: Evaluation, newcomer: "Newcomer") -> None:
    """Run the new classifier on the requested items."""
    for target, items in evaluation.ask().items():
        right, options = newcomer.answer(items)
        evaluation.tell(
            target,
            dict(zip(items, right.tolist(), strict=True)),
            dict(zip(items, np.asarray(options), strict=True)),
        )
