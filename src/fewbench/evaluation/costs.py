"""What a target cost so far, what each further item is expected to cost, and all items together.

Costs are those that the runner reports, or the logs of answers state; without any, those of the
items' column `cost`. A further item is expected to cost what the column says, in proportion to the
reported costs, or the mean of the items that ran. Each answer to an item costs: of an item that is
run three times, or in three epochs, three times what the column says.

A limit on cost ends a run at the first item that it does not allow. That item is not replaced by a
cheaper one, so that the items that ran stay a sample: whatever their order, they would have been
followed by the same item, so each of them is equally likely to be the first one drawn, and their
mean is unbiased (Pathak 1976, "Unbiased estimation in fixed cost sequential sampling schemes", The
Annals of Statistics 4(5)). Where costs are known only after an item ran, the last item counts too,
and the mean is off by about cov(score, cost) / (mean cost · n).
"""

from contextlib import suppress

import numpy as np

from fewbench._json import Frozen
from fewbench._types import FloatArray
from fewbench.errors import ScoresError
from fewbench.evaluation.opening import COST, costs_of
from fewbench.scores import Scores
from fewbench.scores.costs import amount


class Cost(Frozen):
    """What running a target cost.

    Attributes
    ----------
    spent, full : float
        So far, and about what all items cost together.
    limit : float, optional
        The most that may be spent.
    is_limit : bool
        Whether the limit ended the run: it does not allow the next item.
    unit : str
        As given with the limit, such as $.
    is_fixed : bool
        Whether the items were chosen for this limit, so that a larger one allows no others.

    Examples
    --------
    >>> str(Cost(spent=72.5, full=590, limit=75, is_limit=True, unit="$"))
    'Cost: $72.50; the limit of $75.00 ended the run. All items would cost about $590.00. \
Rerun with a larger --cost to go on.'
    """

    spent: float
    full: float
    limit: float | None = None
    is_limit: bool = False
    unit: str = ""
    is_fixed: bool = False

    def __str__(self) -> str:
        return self.sentences()

    def sentences(self, whose: str = "") -> str:
        """Return it in words; `whose` follows the word cost, as in " of step-1000"."""
        limit = ""
        if self.limit is not None:
            limit = f" of at most {amount(self.limit, self.unit)}"
        if self.is_limit and self.limit is not None:
            limit = f"; the limit of {amount(self.limit, self.unit)} ended the run"
        full = f"All items would cost about {amount(self.full, self.unit)}."
        more = ""
        if self.is_limit and self.is_fixed:
            more = " Its items were chosen for this limit: for more, use another folder."
        elif self.is_limit:
            more = " Rerun with a larger --cost to go on."
        return f"Cost{whose}: {amount(self.spent, self.unit)}{limit}. {full}{more}"


def expected_costs(
    scores: Scores, calls: FloatArray, reported: float
) -> tuple[float, FloatArray] | None:
    """Return what was spent, and what an answer to each item is expected to cost, shape (items,).

    None if no cost is known. `calls`, shape (items,), are the numbers of answers so far.
    """
    each = None
    if COST in scores.items:
        with suppress(ScoresError):  # a column of something else
            each = costs_of(scores)
    if not reported:
        return None if each is None else (float(each @ calls), each)
    if each is None or not each @ calls > 0:
        each = np.ones(scores.n_items)
    return reported, each * (reported / (float(each @ calls) or 1.0))
