"""What a run's statistics say: each instance's scores, of all trials."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fewbench.errors import ReaderError
from fewbench.readers.harnesses._helm.files import SHOWN, at
from fewbench.readers.json_files import load_json
from fewbench.readers.numbers import as_number, describe

# What HELM measures of every request besides how good the answer is.
BOOKKEEPING = (
    *("num_references", "num_train_trials", "num_train_instances", "num_instances"),
    *("num_prompt_tokens", "num_completion_tokens", "num_output_tokens", "num_bytes"),
    *("num_perplexity_tokens", "training_co2_cost", "training_energy_cost", "batch_size"),
    *("inference_runtime", "inference_denoised_runtime", "inference_idealized_runtime"),
    *("finish_reason_length", "finish_reason_stop", "finish_reason_endoftext"),
    *("finish_reason_unknown", "prompt_truncated", "max_prob", "logprob", "predicted_index"),
)


@dataclass
class Answer:
    """One instance's statistics: name → the value in each trial."""

    place: int
    split: str | None
    trials: dict[int, dict[str, Any]] = field(default_factory=dict)

    def scores(self, names: list[str]) -> dict[str, Any]:
        """Return the mean of each statistic over trials; as it stands where it has none."""
        found: dict[str, Any] = {}
        for name in names:
            values = [trial.get(name) for trial in self.trials.values()]
            numbers = [number for value in values if (number := as_number(value)) is not None]
            if len(numbers) == len(values):
                found[name] = sum(numbers) / len(numbers)
            elif any(name in trial for trial in self.trials.values()):
                found[name] = next(value for value in values if as_number(value) is None)
        return found

    def agreed(self, name: str) -> float | None:
        """Return a statistic of an instance with one trial."""
        values = [as_number(trial.get(name)) for trial in self.trials.values()]
        return values[0] if len(values) == 1 else None


@dataclass
class Answers:
    """All instances' statistics, and how many rows were of perturbed instances, by perturbation."""

    by_id: dict[str, Answer] = field(default_factory=dict)
    perturbed: Counter[str] = field(default_factory=Counter)

    @property
    def names(self) -> list[str]:
        """The statistics that are scores; all of them if there are no others."""
        every = dict.fromkeys(
            name
            for answer in self.by_id.values()
            for trial in answer.trials.values()
            for name in trial
        )
        return [name for name in every if name not in BOOKKEEPING] or list(every)

    @property
    def n_repeated(self) -> int:
        """How many instances were run in several trials."""
        return sum(len(answer.trials) > 1 for answer in self.by_id.values())


def read_answers(path: Path) -> Answers:
    """Read the statistics of every instance that was not perturbed.

    HELM writes an entry for each metric class, instance, perturbation and trial.

    Raises
    ------
    ReaderError
        If the file is torn, or an entry is not what HELM writes.
    """
    data = load_json(path)
    if not isinstance(data, list):
        raise ReaderError(f"{path}: {describe(data)}, not a list as HELM writes it")
    found = Answers()
    for place, entry in enumerate(data, start=1):
        where = f"{path}, entry {place}"
        if not isinstance(entry, dict):
            raise ReaderError(f"{where}: {describe(entry)}, not an object as HELM writes it")
        if entry.get("perturbation") is not None:
            found.perturbed[str(at(entry, "perturbation", "name"))] += 1
            continue
        own_id, trial = entry.get("instance_id"), entry.get("train_trial_index", 0)
        if not isinstance(own_id, str) or not own_id:
            raise ReaderError(f"{where}: 'instance_id' is {own_id!r:.40}, not a name")
        if isinstance(trial, bool) or not isinstance(trial, int):
            raise ReaderError(f"{where}: 'train_trial_index' is {trial!r:.40}, not a number")
        is_shown = path.stem == SHOWN
        pairs = _shown(entry, where) if is_shown else _statistics(entry, where)
        answer = found.by_id.setdefault(own_id, Answer(place, None))
        values = answer.trials.setdefault(trial, {})
        for name, value, split in pairs:
            if name in values and values[name] != value and name not in BOOKKEEPING:
                value = [values[name], value]  # two metrics of one name: no one number
            values[name] = value
            answer.split = answer.split or split
    return found


def _statistics(entry: dict[str, Any], where: str) -> Iterator[tuple[str, Any, str | None]]:
    listed = entry.get("stats")
    if not isinstance(listed, list):
        raise ReaderError(f"{where}: 'stats' is {describe(listed)}, not a list of statistics")
    for one in listed:
        name, split = at(one, "name", "name"), at(one, "name", "split")
        if not isinstance(name, str):
            raise ReaderError(f"{where}: a statistic has no name")
        if at(one, "name", "perturbation") is None:
            yield name, one.get("mean"), split if isinstance(split, str) else None


def _shown(entry: dict[str, Any], where: str) -> Iterator[tuple[str, Any, str | None]]:
    listed = entry.get("stats")
    if not isinstance(listed, dict):
        raise ReaderError(f"{where}: 'stats' is {describe(listed)}, not an object")
    for name, value in listed.items():
        yield name, value, None
