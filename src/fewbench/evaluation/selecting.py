"""Choose items before any target runs, by an evaluation of which only the first items are taken."""

from fewbench._text import quoted
from fewbench.evaluation.evaluation import Evaluation
from fewbench.methods import Method, Subset
from fewbench.methods.base import AUTO
from fewbench.scores import Scores


def select_items(
    scores: Scores, method: str | Method = AUTO, *, budget: int | str, seed: int = 0
) -> Subset:
    """Choose items to run.

    For adaptive methods, only the first batch.

    Parameters
    ----------
    scores : Scores
        Scores of the source models.
    method : str or Method
        Method name (see fewbench methods), or parts joined by +. With auto, a quick backtest on
        the source models chooses the method.
    budget : int or str
        Number of items to run, or a share of each task's items, such as 10%: at least 20 of each
        task, or all of a smaller one.
    seed : int
        Random seed.

    Raises
    ------
    MethodError
        If the method cannot run on these scores, or the budget does not fit.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> len(select_items(simulate(20, 60), "random", budget=5).items)
    5
    """
    evaluation = Evaluation(scores, method, budget, seed=seed)
    notes = evaluation.notes
    subset = evaluation.subset
    if subset is not None:
        return subset.model_copy(update={"notes": (*notes, *subset.notes)})
    (items,) = evaluation.ask().values()
    provenance = evaluation.provenance
    then = ""
    if len(items) < provenance.budget:
        then = f" of {provenance.budget:,}, and chooses the others after the answers"
    note = (
        f"{provenance.method} asks for these {len(items):,} items{then}. Use fewbench start SCORES "
        f"--method {quoted(provenance.method)} --budget {provenance.budget} "
        f"--seed {provenance.seed} --average {provenance.average} -o DIR, then ask and tell"
    )
    return Subset(items=tuple(items), notes=(*notes, note), provenance=provenance)
