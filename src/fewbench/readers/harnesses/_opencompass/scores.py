"""Which items are right, by the details of any evaluator of OpenCompass."""

from pathlib import Path
from typing import Any

from fewbench._names import some
from fewbench.errors import ReaderError
from fewbench.readers.harnesses._opencompass.items import AGAIN, Item, only
from fewbench.readers.numbers import as_number

METRIC = "correct"
RIGHT = ("correct", "is_correct", "cascade_correct")  # in this order, as OpenCompass looks


def scores_of(
    path: Path, items: list[Item], results: dict[str, Any]
) -> tuple[list[Any], list[str]]:
    """Return each item's scores, None where it has none, and notes on them."""
    if not results:
        if not all(
            item.labels and {"prediction", "gold"} <= item.prediction.keys() for item in items
        ):
            raise ReaderError(f"{path}: predictions that were not evaluated", hint=AGAIN.format(""))
        found = [{METRIC: str(item.prediction["prediction"]) == item.gold} for item in items]
        return found, ["not evaluated by OpenCompass; right is the option of least perplexity"]
    named = next((name for name in RIGHT if any(name in item.detail for item in items)), None)
    if named is not None:
        values = [item.detail.get(named) for item in items]
        most = max((len(value) for value in values if isinstance(value, list)), default=1)
        notes = [f"each item was run {most} times and has the mean"] if most > 1 else []
        means = [_mean(value) for value in values]
        return [None if value is None else {METRIC: value} for value in means], notes
    if all({"predictions", "references"} <= item.detail.keys() for item in items):
        return _compared(path, items, results)
    metrics = [
        name
        for name in items[0].detail
        if all(as_number(only(item.detail.get(name))) is not None for item in items)
    ]
    if not metrics:
        raise ReaderError(
            f"{path}: the details do not say which items are right",
            hint=f"an item has {some(items[0].detail, most=12)}",
        )
    return [{name: only(item.detail[name]) for name in metrics} for item in items], []


def _mean(value: Any) -> Any:
    """Return the mean over repeats; what is not numbers stays what it is."""
    numbers = [as_number(one) for one in value] if isinstance(value, list) else []
    known = [number for number in numbers if number is not None]
    if not known or len(known) < len(numbers):
        return only(value)
    return sum(known) / len(known)


def _compared(
    path: Path, items: list[Item], results: dict[str, Any]
) -> tuple[list[Any], list[str]]:
    """Compare answers and references, if that gives the accuracy that the file states."""
    right = [str(item.detail["predictions"]) == str(item.detail["references"]) for item in items]
    stated = as_number(results.get("accuracy"))
    if stated is None or not abs(100 * sum(right) / len(right) - stated) < 0.006:
        raise ReaderError(
            f"{path}: the details do not say which items are right, and comparing the answers "
            f"with the references gives {100 * sum(right) / len(right):.2f}, not the accuracy "
            f"{stated if stated is not None else 'that the file should have'}",
            hint="use an evaluator that gives details, such as AccwithDetailsEvaluator",
        )
    return [{METRIC: one} for one in right], [
        "the details do not say which items are right; right is an answer that is the reference, "
        "which gives the accuracy that the file states"
    ]
