"""What decisions say: what was seen on these items, and what holds for the models."""

from collections.abc import Sequence

from fewbench._names import counted, rough
from fewbench.scores import Unit
from fewbench.uncertainty.questions import AS_MODELS

__all__ = ["AS_MODELS", "beyond", "looks", "more_items", "needed", "on_these", "seen"]


def on_these(n_items: int, *, fixed_items: bool = False) -> str:
    """Return which items a score is of; with `fixed_items`, that nothing else is meant.

    >>> on_these(1319)
    'On these 1,319 items'
    """
    return f"On {'exactly ' if fixed_items else ''}these {counted(n_items, 'item')}"


def seen(a: str, b: str, difference: float, unit: Unit, *, is_estimated: bool) -> str:
    """Return how two models score, without what holds beyond these items.

    >>> from fewbench.scores import Scale
    >>> seen("A", "B", 0.017, Unit(Scale()), is_estimated=True)
    'A scores an estimated 1.7 pp higher than B'
    """
    points = unit.points(abs(difference))
    if points == unit.points(0.0):
        verb = "score an estimated" if is_estimated else "score"
        return f"{a} and {b} {verb} {unit.points(0.0)} apart"
    estimated = "an estimated " if is_estimated else ""
    return f"{a} scores {estimated}{points} {'higher' if difference > 0 else 'lower'} than {b}"


def beyond(items: int, questions: int | None, *, all_ran: bool) -> str:
    """Return that no number of these items decides, and what would.

    >>> beyond(80, None, all_ran=True)
    'Even all 80 items do not decide this: it is too close for questions like these.'
    """
    would = "do not" if all_ran else "would not"
    text = f"Even all {counted(items, 'item')} {would} decide this"
    if questions is None:
        return f"{text}: it is too close for questions like these."
    return (
        f"{text}. About {rough(questions)} such questions would, if the difference stays, and "
        "repeated runs of the items help."
    )


def more_items(items: int, *, limited: bool, sequential: bool) -> str:
    """Say how to ask for more items of an evaluation, or how to afford them.

    `sequential` if the command was given --sequential already.
    """
    on = "" if sequential else "with --sequential from now on"
    if limited:
        text = "rerun the command of fewbench run with a larger --cost: it keeps all answers. Then "
        return f"{text}repeat this command {on}".rstrip()
    comma = ", and " if on else ""
    text = f"repeat the command with --next-items {max(items, 1)} --ask"
    return f"{text}{comma}{on}: it asks for as many more items, and keeps all answers"


def looks(checked_at: Sequence[int], n: int) -> str:
    """Say after which answers one may check a verdict that rests on n answers."""
    text = f"{', '.join(map(str, checked_at))} answers"
    # See `look_factor`: 12% in place of 10%.
    more = (
        ", and after every doubling beyond, which makes wrong verdicts about a fifth more frequent"
    )
    return f"{text}{more}" if n > checked_at[-1] else text


def needed(items: int, n_items: int, *, is_paired: bool) -> str:
    """Say how many items decide; `is_paired` if two targets run the same ones."""
    if items >= n_items:
        return f"only all {n_items:,} items decide it"
    same = " (the same for both)" if is_paired else ""
    return f"about {items:,} of {n_items:,} items in total{same} decide it"
