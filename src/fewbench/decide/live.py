"""Run two models on items chosen for their difference, until it is clear which is better."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fewbench._names import counted
from fewbench._warned import issue
from fewbench.decide.multiple import Adjust
from fewbench.decide.versus import versus
from fewbench.decide.versus_result import Versus
from fewbench.errors import EvaluationError
from fewbench.evaluation import Stop
from fewbench.evaluation.evaluation import Evaluation
from fewbench.evaluation.journal import HEADER
from fewbench.scores import Scores
from fewbench.uncertainty.held_out import looks_of

if TYPE_CHECKING:
    from fewbench.runners.driving import OnProgress, Runner
    from fewbench.runners.function import ScoreFunction
    from fewbench.runners.result import RunResult
    from fewbench.runners.run import Run

DECIDED = "the difference is decided"


def difference_method(n_targets: int) -> str:
    """Return the method whose items are chosen for the differences of this number of targets.

    One target is compared with known scores: items for its own score are those for the difference.

    >>> difference_method(2), difference_method(1)
    ('fewbench(together=2)', 'fewbench')
    """
    return "fewbench" if n_targets == 1 else f"fewbench(together={n_targets})"


def run_versus(
    scores: Scores,
    models: "Mapping[str, ScoreFunction] | Runner",
    budget: int = 160,
    *,
    names: tuple[str, str] | None = None,
    folder: str | Path | None = None,
    scores_path: str | Path | None = None,
    level: float = 0.9,
    margin: float | None = None,
    adjust: Adjust = "holm",
    fixed_items: bool = False,
    seed: int = 0,
    on_progress: "OnProgress | None" = None,
) -> Versus:
    """Run two models on the same items and stop as soon as the difference is decided.

    Checks after 10, 20, 40, … items of each, up to the budget; the level applies to all checks
    together.

    Parameters
    ----------
    scores : Scores
        Scores of the source models.
    models : mapping of name to callable, or Runner
        Two functions: each takes an item id and returns its score, on the scale of the sources. Or
        a runner of any kind that runs both.
    budget : int
        Most items of each.
    names : tuple of str, optional
        The models A and B, if a runner is given (default: the names of the functions).
    folder : path, optional
        Keep every answer there. Repeat the call to resume after a stop or a crash.
    scores_path : path, optional
        File of the scores, recorded in the folder.
    level, margin, adjust, fixed_items
        As for `versus`. With a margin, a verdict of equivalence also ends the run.
    seed : int
        Random seed.
    on_progress : callable, optional
        Called with (run, target) as a run goes on.

    Raises
    ------
    EvaluationError
        Unless there are two models, or if none could be run.
    RunError
        From the runner, or if the folder contains another run.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> table = simulate(42, 120, seed=1)
    >>> sources, new = table.take(models=range(40)), table.take(models=[40, 41])
    >>> rows = {name: dict(zip(new.item_ids, row)) for name, row in zip("ab", new.values)}
    >>> found = run_versus(sources, {name: rows[name].get for name in "ab"}, 20)
    >>> found.items_a == found.items_b == found.items_common
    True
    """
    from fewbench.runners.driving import run_with
    from fewbench.runners.function import FunctionRunner

    runner: Runner
    if isinstance(models, Mapping):
        names = names or tuple(models)  # type: ignore[assignment]
        runner = FunctionRunner(models)
    else:
        runner = models
    if names is None or len(set(names)) != 2:
        raise EvaluationError(
            "two models are needed", hint="give two functions, or names=(A, B)", kind="too-few"
        )
    a, b = names
    ended: list[Evaluation] = []
    seen = 0

    def compared(evaluation: Evaluation) -> Versus:
        return versus(
            (evaluation, a), b, level=level, margin=margin, adjust=adjust, sequential=True,
            fixed_items=fixed_items, warn=False,
        )  # fmt: skip

    def look(run: "Run", target: str) -> None:
        nonlocal seen
        if on_progress is not None:
            on_progress(run, target)
        if run.is_amid_batch(target):
            return
        evaluation = run.evaluation
        ended[:] = [evaluation]
        reached = _reached(evaluation, (a, b), budget)
        if reached <= seen:
            return
        seen = reached
        if is_decided(compared(evaluation)):
            run.halt(DECIDED)

    kept = _kept(folder, scores, (a, b), budget, seed)
    if kept is not None:
        seen = _reached(kept, (a, b), budget)
        if seen and is_decided(result := compared(kept)):
            issue(result.warnings)
            return result  # as when it ended: more answers are not needed
    ran = run_with(
        runner,
        scores,
        difference_method(2),
        Stop(items=budget),
        folder=folder,
        targets=(a, b),
        on_progress=look,
        scores_path=scores_path,
        seed=seed,
    )
    if not ended:
        if folder is None:
            raise EvaluationError(
                "no item was run successfully", hint="see the reasons that the runner gave"
            )
        ended.append(Evaluation.open(folder, scores))  # all was run before
    result = compared(ended[0])
    result = result.model_copy(update={"warnings": (*result.warnings, *_failures(ran))})
    issue(result.warnings)
    return result


def _failures(ran: "RunResult") -> list[str]:
    """Say which items failed, and why the run ended early."""
    texts = [
        f"{name}: {counted(len(target.failed), 'item')} failed and left out "
        f"({next(iter(target.failed.values()))}). If a model fails where it would be wrong, "
        "the difference is wrong as well"
        for name, target in ran.targets.items()
        if target.failed
    ]
    if ran.stopped not in (None, DECIDED):
        texts.append(f"the run ended early: {ran.stopped}")
    return texts


def _reached(evaluation: Evaluation, names: tuple[str, str], budget: int) -> int:
    """Return how many looks both have the answers for."""
    answered = min(len(evaluation.record.answered(name)) for name in names)
    return sum(n <= answered for n in looks_of(budget))


def _kept(
    folder: str | Path | None, scores: Scores, names: tuple[str, str], budget: int, seed: int
) -> Evaluation | None:
    """Return the evaluation of the same call that a folder holds; another one is refused later."""
    if folder is None or not (Path(folder) / HEADER).is_file():
        return None
    evaluation = Evaluation.open(folder, scores)
    provenance = evaluation.provenance
    same = (set(evaluation.targets), provenance.budget, provenance.seed) == (
        set(names),
        budget,
        seed,
    )
    return evaluation if same and provenance.method == difference_method(2) else None


def is_decided(found: Versus) -> bool:
    """Return whether more items would not change the verdict."""
    return found.verdict in ("better", "worse", "equivalent")
