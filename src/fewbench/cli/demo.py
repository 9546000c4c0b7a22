"""fewbench demo: estimate a new model on bundled data, and check the estimate."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from fewbench.cli.outputs import Force, check_outputs
from fewbench.cli.progress import progress_bar
from fewbench.cli.text import echo
from fewbench.evaluation import Evaluation, Stop

if TYPE_CHECKING:
    from fewbench.datasets.digits import Newcomer

METHOD = "fewbench"
BUDGET = 100
HALF_WIDTH = 0.1
BUDGETS = [50]
OWN = Path("demo-output")  # here the demo replaces its report


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the report.")] = OWN,
    seed: Annotated[int, typer.Option(help="Random seed of the new model and the selection.")] = 0,
    workers: Annotated[int, typer.Option(help="Number of processes for the comparison.")] = 2,
    force: Force = False,
) -> None:
    """Estimate a new classifier from a few of 1,000 items.

    \b
    fewbench demo
    """
    from fewbench.datasets import load_zoo, train_newcomer, zoo_file
    from fewbench.report import write_report
    from fewbench.study import SplitSettings, compare

    page = output / "report.html"
    check_outputs(page, force=force or output == OWN)
    zoo = load_zoo()
    echo(
        f"Source models: {zoo.n_models} small classifiers of {zoo.models['family'].nunique()} "
        f"families on {zoo.n_items} images of handwritten digits, {len(zoo.tasks)} tasks.\n"
        f"Target model: a new classifier. {METHOD} runs it on few images at a time, until the "
        f"interval is at\nmost ±{HALF_WIDTH:g} or {BUDGET} images are run:\n"
    )
    newcomer = train_newcomer(seed)
    stop = Stop(items=BUDGET, half_width=HALF_WIDTH)
    evaluation = Evaluation(zoo, METHOD, targets=["newcomer"], seed=seed, stop=stop)
    said = None
    while evaluation.ask():
        _answer(evaluation, newcomer)
        said = evaluation.estimate()["newcomer"]
        low, high = said.interval.low, said.interval.high
        echo(f"{said.items_run:4} images  {said.score:.3f}  ±{(high - low) / 2:.3f}")
    assert said is not None
    sample = Evaluation(zoo, "random", said.items_run, ["newcomer"], seed)
    _answer(sample, newcomer)
    found = {METHOD: said, "random": sample.estimate()["newcomer"]}
    truth = newcomer.full_score()
    echo(f"\n{said}")
    echo(f"\n{'truth':<18}{truth:.3f}   (all {zoo.n_items} images)")
    for method, one in found.items():
        inside = "inside" if one.interval.low <= truth <= one.interval.high else "outside"
        echo(
            f"{method:<18}{one.score:.3f}   error {100 * abs(one.score - truth):.1f} points, truth "
            f"{inside} {one.interval.low:.3f} .. {one.interval.high:.3f}"
        )
    echo(
        "\nOne model proves little: either method may be closer by chance. The demo repeats this "
        "with source\nmodels as targets: drawn at random, and as whole held-out families (about a "
        "minute):\n"
    )
    with progress_bar("comparing") as progress:
        outcome = compare(
            zoo,
            [METHOD, "anchor-points"],
            BUDGETS,
            [SplitSettings("random"), SplitSettings("group", targets=1 / 20)],
            repeats=3,
            level=None,
            seed=seed,
            workers=workers,
            progress=progress,
            facts={"scores": "the bundled zoo", "command": "fewbench demo"},
        )
    echo(str(outcome))
    write_report(outcome, page)
    echo(
        "\nA pack holds the chosen items and what estimates need of the source models, in one "
        "file. Make one\nof these source models, and start from it:\n\n"
        f"  fewbench pack {zoo_file()} -m greedy-ridge -n 50 -o zoo-50.few\n"
        "  fewbench start zoo-50.few -o run"
    )
    echo(f"\nReport: {page.resolve()}")


def _answer(evaluation: Evaluation, newcomer: "Newcomer") -> None:
    """Run the new classifier on what is asked."""
    for target, items in evaluation.ask().items():
        right, options = newcomer.answer(items)
        evaluation.tell(
            target,
            dict(zip(items, right.tolist(), strict=True)),
            dict(zip(items, np.asarray(options), strict=True)),
        )
