"""What OpenCompass says of each item: details of the evaluation, and predictions."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fewbench._names import some
from fewbench.errors import ReaderError
from fewbench.readers.identity import field_value
from fewbench.readers.json_files import load_json
from fewbench.readers.numbers import as_number
from fewbench.readers.options import NO_ANSWER, OptionTable
from fewbench.readers.run import UNKNOWN

NUMBERED = re.compile(r".*_(\d{1,9})")
AGAIN = (
    "run `opencompass CONFIG --mode eval --reuse STAMP --dump-eval-details`{}, or leave it out "
    "with --damaged skip"
)


class Item(NamedTuple):
    """What the details and the predictions say of one item."""

    detail: dict[str, Any]
    prediction: dict[str, Any]

    @property
    def labels(self) -> dict[str, dict[str, Any]]:
        """What is said of each option, {} if the task is not by perplexity."""
        told = self.detail.get("origin_prediction")
        return {
            name.removeprefix("label: "): value
            for name, value in (told if isinstance(told, dict) else self.prediction).items()
            if isinstance(value, dict) and ("PPL" in value or "Loglikelihood" in value)
        }

    @property
    def gold(self) -> str:
        for name in ("references", "refr", "answer"):
            if name in self.detail:
                return str(only(self.detail[name]))
        return str(only(self.prediction.get("gold")))

    @property
    def prompts(self) -> list[str]:
        """What the model saw: a prompt, or one for each option; [] if neither file says it."""
        options = [_text(value.get("prompt")) for value in self.labels.values()]
        if options and all(options):
            return options
        shown = self.detail.get("prompt") or self.prediction.get("origin_prompt")
        return [text] if (text := _text(shown)) else []

    @property
    def options(self) -> OptionTable | None:
        labels = self.labels
        values = [_likelihood(value) for value in labels.values()]
        known = [value for value in values if value is not None]
        if len(known) < max(2, len(values)):
            return None
        names = list(labels)
        return OptionTable(known, names.index(self.gold) if self.gold in names else NO_ANSWER)

    @property
    def position(self) -> int:
        """The position that details of 0.4.1 and newer tell; it is that in the whole task."""
        named = NUMBERED.fullmatch(str(self.detail.get("example_abbr", "")))
        return int(named[1]) if named else UNKNOWN

    def field(self, key: str, where: str) -> str:
        told = self.prediction | self.detail
        return field_value({name: only(value) for name, value in told.items()}, key, where)


def only(value: Any) -> Any:
    """Return what a list of one holds: from 0.4.1 on a value stands in a list of repeats."""
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value


def _text(prompt: Any) -> str:
    """Return the text of a prompt: a text, messages, or a list of repeats of either."""
    if isinstance(prompt, str):
        return prompt.strip()
    if not isinstance(prompt, list) or not prompt:
        return ""
    said = [one.get("prompt", one.get("content")) for one in prompt if isinstance(one, dict)]
    if said:
        return "\n".join(part for part in said if isinstance(part, str)).strip()
    return _text(prompt[0])


def _likelihood(told: dict[str, Any]) -> float | None:
    if "Loglikelihood" in told:
        return as_number(told["Loglikelihood"])
    loss = as_number(
        told["PPL"]
    )  # the mean negative log-likelihood of a token, in spite of its name
    return None if loss is None else -loss


def read_results(path: Path) -> dict[str, Any]:
    data = load_json(path)
    if not isinstance(data, dict):
        raise ReaderError(f"{path}: not an object, as OpenCompass writes its results")
    if "error" in data and "details" not in data:
        raise ReaderError(
            f"{path}: the evaluation failed ({str(data['error'])[:200]})", hint="run it again"
        )
    if not data.get("details"):
        scores = [name for name, value in data.items() if as_number(value) is not None]
        raise ReaderError(
            f"{path}: no details of the single items, only {some(scores) if scores else 'nothing'}",
            hint=AGAIN.format(" after deleting it"),
        )
    return data


def _entries(path: Path, found: Any) -> list[dict[str, Any]]:
    """Return what stands under "0", "1", …, or in a list."""
    if isinstance(found, dict):
        numbers = [key for key in found if key != "type"]
        if sorted(numbers) != sorted(map(str, range(len(numbers)))):
            raise ReaderError(
                f"{path}: not numbered from 0 without a gap, but {some(numbers)}",
                hint="the file is of an evaluator of its own form, or was cut by hand",
            )
        found = [found[str(number)] for number in range(len(numbers))]
    if not isinstance(found, list):
        raise ReaderError(f"{path}: the details are neither a list nor an object")
    for number, entry in enumerate(found):
        if not isinstance(entry, dict):
            raise ReaderError(f"{path}, entry {number + 1}: not an object")
    return found


def read_predictions(paths: Sequence[Path]) -> list[dict[str, Any]]:
    return [entry for path in paths for entry in _entries(path, load_json(path))]


def pair_up(path: Path, results: dict[str, Any], predictions: list[dict[str, Any]]) -> list[Item]:
    details = _entries(path, results["details"])
    if not predictions:
        return [Item(detail, {}) for detail in details]
    # With n runs of a dataset the predictions hold it n times, one after the other.
    if not details or len(predictions) % len(details):
        raise ReaderError(
            f"{path}: {len(details)} items, and the predictions of the same name have "
            f"{len(predictions)}",
            hint="one of them is of another run: delete it, or evaluate again",
        )
    return [Item(*pair) for pair in zip(details, predictions, strict=False)]
