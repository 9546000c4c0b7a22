"""What a plan is asked for: a goal on the scale of the scores."""

from fewbench._names import some
from fewbench.errors import StudyError
from fewbench.evaluation.opening import check_budget
from fewbench.scores import Scores


def read_goal(
    scores: Scores, error: float | None, half_width: float | None, budget: int | None,
    difference: float | None, span: float,
) -> tuple[str, float]:  # fmt: skip
    """Return the name and the value of the one goal that is given."""
    given = {"error": error, "half_width": half_width, "budget": budget, "difference": difference}
    named = {name: value for name, value in given.items() if value is not None}
    if len(named) != 1:
        raise StudyError(
            f"{some(named, 4)} given" if named else "nothing to plan for",
            hint="give exactly one of error, half_width (--half-width), budget and difference",
        )
    ((goal, wanted),) = named.items()
    if goal == "budget":
        if isinstance(wanted, float) and not wanted.is_integer():
            raise StudyError(f"the budget is {wanted} items", hint="give a whole number")
        check_budget(int(wanted), scores.n_items)
        if int(wanted) == scores.n_items:
            raise StudyError(
                f"a budget of all {scores.n_items} items needs no plan",
                hint="give a smaller budget",
            )
    elif not 0 < wanted < span:
        raise StudyError(
            f"{goal} is {wanted:g}, and the scores range over {span:g}",
            hint=f"give a number between 0 and {span:g}, on the scale of the scores",
        )
    return goal, float(wanted)
