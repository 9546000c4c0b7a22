"""Instances of a HELM run: what was asked, what was answered, and the options."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fewbench.errors import ReaderError
from fewbench.readers.files import at, load_json, object_at
from fewbench.readers.harness import Unit
from fewbench.readers.harnesses.helm.run_files import SHOWN, RunFiles
from fewbench.readers.options import NO_ANSWER, OptionTable
from fewbench.readers.values import as_number, content_id, describe, field_value, mean_of

CALIBRATION = "calibration"
# What HELM measures of every request besides how good the answer is.
BOOKKEEPING = (
    *("num_references", "num_train_trials", "num_train_instances", "num_instances"),
    *("num_prompt_tokens", "num_completion_tokens", "num_output_tokens", "num_bytes"),
    *("num_perplexity_tokens", "training_co2_cost", "training_energy_cost", "batch_size"),
    *("inference_runtime", "inference_denoised_runtime", "inference_idealized_runtime"),
    *("finish_reason_length", "finish_reason_stop", "finish_reason_endoftext"),
    *("finish_reason_unknown", "prompt_truncated", "max_prob", "logprob", "predicted_index"),
)
SEPARATE, CALIBRATED = "multiple_choice_separate_original", "multiple_choice_separate_calibrated"
JOINT = "multiple_choice_joint"
METHODS = (SEPARATE, CALIBRATED, JOINT)


@dataclass
class Instances:
    """The instances that were not perturbed, and the requests made for each, by HELM's id.

    Parameters
    ----------
    where : str
        The file that tells them, "" if there is none.
    failed : int
        Requests that had an error, which HELM scores as empty answers.
    wordless : set of str
        Ids of instances that are known by the id alone, as text does not say all of them.
    """

    where: str = ""
    known: dict[str, dict[str, Any]] = field(default_factory=dict)
    requests: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    failed: int = 0
    wordless: set[str] = field(default_factory=set)

    def split(self, own_id: str) -> str | None:
        """Return the split of an instance, None if no file says it."""
        found = self.known.get(own_id, {}).get("split")
        return found if isinstance(found, str) else None

    def size(self, split: str | None) -> int:
        """Return how many instances of a split there are."""
        return Counter(map(self.split, self.known))[split]

    def content(self, own_id: str, key: str | None) -> str:
        """Return what identifies an instance; ReaderError if it lacks the field that is named."""
        if key == "id" or (key is None and not self.where):
            return own_id
        instance = self.known.get(own_id)
        if instance is None and self.where:
            raise ReaderError(
                f"{self.where}: no instance {own_id!r}, of which there are scores",
                hint="the files are of different runs; copy them again",
            )
        if key is None:
            said = instance_content(instance or {})
            if not said:
                self.wordless.add(own_id)
            return said or own_id
        fields = {"id": own_id} | object_at(instance, "extra_data")
        return field_value(fields, key, f"{self.where or own_id}, instance {own_id!r}")

    def prompt(self, own_id: str) -> str:
        """Return what the model saw, of all trials and options; "" if not known."""
        made = self.requests.get(own_id, [])
        seen = [at(one, "request", "prompt") for one in made]
        return "\x1f".join(text for text in seen if isinstance(text, str))


def read_instances(unit: Unit, files: RunFiles) -> Instances:
    """Find a run's instances in scenario_state.json, else in instances.json."""
    there = {path.stem: path for path in (unit.path, *unit.beside)}
    if files.state is not None:
        found = Instances(str(there["scenario_state"]))
        for place, made in enumerate(files.requests(), start=1):
            instance = made.get("instance")
            if at(instance, "perturbation") is not None:
                continue
            own_id = _id_of(instance, f"{found.where}, request {place}")
            found.known.setdefault(own_id, instance or {})
            found.requests.setdefault(own_id, []).append(made)
            found.failed += at(made, "result", "success") is False
        return found
    if "instances" not in there:
        return Instances()
    found = Instances(str(there["instances"]))
    listed = load_json(there["instances"])
    if not isinstance(listed, list):
        raise ReaderError(f"{found.where}: {describe(listed)}, not a list as HELM writes it")
    for place, instance in enumerate(listed, start=1):
        if at(instance, "perturbation") is None:
            found.known[_id_of(instance, f"{found.where}, entry {place}")] = instance
    return found


def instance_content(instance: dict[str, Any]) -> str:
    """Return the identity of an instance by what it says, "" if its text does not say all.

    Examples
    --------
    >>> right = {"output": {"text": "4"}, "tags": ["correct"]}
    >>> instance_content({"input": {"text": "2 + 2 ="}, "references": [right]})
    '918839800a423f73'
    """
    question, media = at(instance, "input", "text"), at(instance, "input", "multimedia_content")
    references = instance.get("references", [])
    if not isinstance(question, str) or not question.strip() or media is not None:
        return ""
    if not isinstance(references, list):
        return ""
    said = [at(one, "output", "text") for one in references]
    if not all(isinstance(text, str) for text in said):
        return ""
    right = [said[i].strip() for i in correct(instance)]
    # Where every reference is right they are answers, not options.
    options = [] if len(right) == len(said) else [text.strip() for text in said]
    return content_id(question.strip(), *options, *right)


def correct(instance: dict[str, Any] | None) -> list[int]:
    """Return which references of an instance are right."""
    references = at(instance, "references")
    if not isinstance(references, list):
        return []
    tags = [at(one, "tags") for one in references]
    return [i for i, one in enumerate(tags) if isinstance(one, list) and "correct" in one]


def _id_of(instance: Any, where: str) -> str:
    own_id = at(instance, "id")
    if not isinstance(own_id, str) or not own_id:
        raise ReaderError(f"{where}: the instance has no id")
    return own_id


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
            if any(name in trial for trial in self.trials.values()):
                found[name] = mean_of(values)
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


def option_table(method: str, requests: list[dict[str, Any]], answer: Answer) -> OptionTable | None:
    """Return the options of an instance, None unless the files tell them for certain.

    Where HELM asked for every option in a request of its own, the worth of an option is what HELM
    compares: its log-likelihood per token, or, calibrated, its gain over the option alone. It is
    taken only if it leads to the choice and the confidence that HELM wrote. Where the model chose
    a letter, the letters' log-likelihoods are there up to HELM 0.4, as far as they were among the
    most likely.
    """
    if not requests or len(answer.trials) != 1 or method not in METHODS:
        return None
    instance = requests[0].get("instance")
    worths = _of_letters(requests) if method == JOINT else _of_requests(method, requests)
    if worths is None or (method != JOINT and not _explains(worths, answer)):
        return None
    right = correct(instance)
    return OptionTable(worths, right[0] if len(right) == 1 else NO_ANSWER)


def _of_requests(method: str, requests: list[dict[str, Any]]) -> list[float] | None:
    likelihoods: dict[tuple[Any, Any], tuple[float, int]] = {}
    for made in requests:
        found = _likelihood(made)
        if found is None:
            return None
        likelihoods[made.get("reference_index"), made.get("request_mode")] = found
    count = len(at(requests[0], "instance", "references") or [])
    worths = []
    for option in range(count):
        original = likelihoods.get((option, "original"))
        alone = likelihoods.get((option, "calibration"))
        if original is None or (method == CALIBRATED and alone is None):
            return None
        if method == CALIBRATED and alone is not None:
            worths.append(original[0] - alone[0])
        else:
            worths.append(original[0] / original[1])
    return worths or None


def _likelihood(made: dict[str, Any]) -> tuple[float, int] | None:
    """Return log-likelihood and number of the last tokens, if they spell the option."""
    index = made.get("reference_index")
    if not isinstance(index, int):
        return None
    option = at(made, "instance", "references", index, "output", "text")
    tokens = at(made, "result", "completions", 0, "tokens")
    if not isinstance(option, str) or not isinstance(tokens, list):
        return None
    spelt = ""
    values: list[float] = []
    for token in reversed(tokens):
        value, text = as_number(at(token, "logprob")), at(token, "text")
        if value is None or not isinstance(text, str):
            return None
        spelt, values = text + spelt, [value, *values]
        if len(spelt) > len(option):
            break
    return (sum(values), len(values)) if spelt == f" {option}" else None


def _of_letters(requests: list[dict[str, Any]]) -> list[float] | None:
    """Return the log-likelihood of each letter, if all are told and the best was the answer."""
    letters = at(requests[0], "output_mapping")
    listed = at(requests[0], "result", "completions", 0, "tokens", 0, "top_logprobs")
    text = at(requests[0], "result", "completions", 0, "text")
    if not isinstance(letters, dict) or not isinstance(listed, dict) or len(requests) != 1:
        return None
    worths = []
    for letter in letters:
        values = [as_number(value) for token, value in listed.items() if token.strip() == letter]
        known = [value for value in values if value is not None]
        if not known:
            return None
        worths.append(float(np.logaddexp.reduce(known)))
    best = list(letters)[int(np.argmax(worths))] if worths else None
    return worths if best is not None and str(text).strip() == best else None


def _explains(worths: list[float], answer: Answer) -> bool:
    """Whether these are the quantities from which HELM computed its choice and confidence."""
    chosen, confidence = answer.agreed("predicted_index"), answer.agreed("max_prob")
    if chosen is None or confidence is None or not all(map(math.isfinite, worths)):
        return False
    weights = np.exp(np.array(worths) - max(worths))
    return int(np.argmax(worths)) == chosen and bool(
        math.isclose(float(weights.max() / weights.sum()), confidence, rel_tol=1e-6)
    )
