"""Choose items without an evaluation."""

from fewbench.evaluation.evaluation import Evaluation
from fewbench.methods import Method, Subset
from fewbench.scores import Scores


def select_items(scores: Scores, method: str | Method, budget: int, seed: int = 0) -> Subset:
    """Choose items to run; for adaptive methods, only the first batch.

    Parameters
    ----------
    scores : Scores
        The source models' scores.
    method : str or Method
        `auto` chooses one by a quick backtest on the sources; the notes say which and why.
    budget : int
        Number of items.
    seed : int
        Random seed.

    Raises
    ------
    MethodError
        If the method cannot run on these scores, or the budget does not fit.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> len(select_items(simulate(20, 60), "random", 5).items)
    5
    """
    evaluation = Evaluation(scores, method, budget, seed=seed)
    notes = () if evaluation.reason is None else (chosen_note(evaluation),)
    subset = evaluation.subset
    if subset is not None:
        return subset.model_copy(update={"notes": (*notes, *subset.notes)})
    (items,) = evaluation.ask().values()
    made = evaluation.provenance
    then = ""
    if len(items) < made.budget:
        then = f" of {made.budget}, and chooses the others after the answers"
    note = (
        f"{made.method} asks for these {len(items)} items{then}. Use fewbench start SCORES "
        f"--method '{made.method}' --budget {made.budget} --seed {made.seed} "
        f"--average {made.average} -o DIR, then ask and tell"
    )
    return Subset(items=tuple(items), notes=(*notes, note), provenance=made)


def chosen_note(evaluation: Evaluation) -> str:
    """Return which method `auto` chose, and why."""
    return f"method auto chose {evaluation.provenance.method}: {evaluation.reason}"
