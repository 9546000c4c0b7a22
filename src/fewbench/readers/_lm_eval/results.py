"""The results_*.json of a run: the model's name, how many documents, which way is better."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fewbench.errors import ReaderError

NAMES = ("peft", "delta", "pretrained", "model", "path", "engine")  # lm-eval looks in this order


@dataclass(frozen=True)
class Results:
    """One results file, read once for all sample files of its run."""

    path: Path
    data: dict[str, Any]

    def part(self, *keys: str) -> dict[str, Any]:
        """Return a nested object, {} if it lacks; ReaderError if it is something else."""
        found: Any = self.data
        for key in keys:
            found = found.get(key)
            if found is None:
                return {}
            if not isinstance(found, dict):
                raise ReaderError(f"{self.path}: {key!r} is not an object")
        return dict(found)

    @property
    def model(self) -> str | None:
        """The model's name, or None if the run has none."""
        name = self.data.get("model_name")
        if isinstance(name, str) and name.strip():
            return name
        arguments = self.arguments
        return next((arguments[key] for key in NAMES if arguments.get(key)), None)

    @property
    def arguments(self) -> dict[str, str]:
        """The model's arguments; older versions log them as 'key=value,key=value'."""
        raw = self.part("config").get("model_args")
        if isinstance(raw, str):
            pairs = (pair.partition("=") for pair in raw.split(","))
            return {key.strip(): value for key, _, value in pairs}
        return {str(k): str(v) for k, v in raw.items()} if isinstance(raw, dict) else {}

    def sizes(self, task: str) -> tuple[int | None, int | None]:
        """Return how many documents a task has and how many of them were run, where stated."""
        counts = self.part("n-samples", task)
        return _count(counts.get("original")), _count(counts.get("effective"))

    def higher_is_better(self, task: str, metric: str) -> bool | None:
        """Whether a larger value is better; None if the file does not say."""
        value = self.part("higher_is_better", task).get(metric)
        return value if isinstance(value, bool) else None

    def delimiter(self, task: str) -> str:
        """Return what lm-eval put between the prompt and an option."""
        config = self.part("configs", task)
        prefix = config.get("gen_prefix")
        if self.data.get("chat_template") and not (prefix and prefix == str(prefix).rstrip()):
            return ""
        return str(config.get("target_delimiter", " "))


def read_results(path: Path) -> Results:
    """Read a results file; ReaderError if it is torn or not an object."""
    try:
        data = json.loads(path.read_bytes().decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ReaderError(
            f"{path}: not whole JSON ({error})", hint="copy it again, or delete it"
        ) from error
    if not isinstance(data, dict):
        raise ReaderError(f"{path}: not a JSON object, so not the results of lm-eval")
    return Results(path, data)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
