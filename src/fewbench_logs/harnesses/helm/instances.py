"""Instances of a HELM run: questions, scores and options."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from fewbench.errors import ReaderError
from fewbench.readers.files import at, load_json, object_at
from fewbench.readers.options import NO_ANSWER, OptionTable
from fewbench.readers.values import as_number, content_id, describe, field_value

SHOWN = "display_predictions"
# Statistics of a request that do not say how good the answer is.
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


@dataclass
class Instances:
    """The instances without perturbation and their requests, by HELM's id.

    `where` is their file, "" if there is none; `failed` counts requests with an error, which HELM
    scores as empty answers; `wordless` instances are not text alone.
    """

    where: str = ""
    known: dict[str, dict[str, Any]] = field(default_factory=dict)
    requests: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    failed: int = 0
    wordless: set[str] = field(default_factory=set)

    @classmethod
    def of_requests(cls, path: Path, requests: list[dict[str, Any]]) -> Self:
        """Return the instances of scenario_state.json."""
        instances = cls(str(path))
        for place, request in enumerate(requests, start=1):
            instance = request.get("instance")
            if at(instance, "perturbation") is not None:
                continue
            own_id = _id_of(instance, f"{path}, request {place}")
            instances.known.setdefault(own_id, instance or {})
            instances.requests.setdefault(own_id, []).append(request)
            instances.failed += at(request, "result", "success") is False
        return instances

    @classmethod
    def listed(cls, path: Path) -> Self:
        """Return the instances of instances.json."""
        instances = cls(str(path))
        for place, instance in enumerate(_load_list(path), start=1):
            if at(instance, "perturbation") is None:
                instances.known[_id_of(instance, f"{path}, entry {place}")] = instance
        return instances

    def split(self, own_id: str) -> str | None:
        """Return the split of an instance, or None if unknown."""
        split = self.known.get(own_id, {}).get("split")
        return split if isinstance(split, str) else None

    def size(self, split: str | None) -> int:
        """Return the number of instances of a split."""
        return Counter(map(self.split, self.known))[split]

    def content(self, own_id: str, key: str | None) -> str:
        """Return the identity of an instance; ReaderError if it lacks the field `key`."""
        if key == "id" or (key is None and not self.where):
            return own_id
        instance = self.known.get(own_id)
        if instance is None and self.where:
            raise ReaderError(
                f"{self.where}: no instance {own_id!r}, which has scores",
                hint="the files belong to different runs; copy them again",
            )
        if key is None:
            content = instance_content(instance or {})
            if not content:
                self.wordless.add(own_id)
            return content or own_id
        fields = {"id": own_id} | object_at(instance, "extra_data")
        return field_value(fields, key, f"{self.where or own_id}, instance {own_id!r}")

    def key(self, own_id: str) -> tuple[str | None, list[str]]:
        """Return the correct references of an instance as one text, and all references.

        None if unknown; no references if every one is correct: then they are not options.
        """
        texts, right = _references(self.known.get(own_id, {}))
        if not texts:
            return None, []
        return "\x1f".join(right), [] if len(right) == len(texts) else texts

    def prompt(self, own_id: str) -> str:
        """Return the prompts of all trials and options; "" if unknown."""
        requests = self.requests.get(own_id, [])
        seen = [at(request, "request", "prompt") for request in requests]
        return "\x1f".join(text for text in seen if isinstance(text, str))


def _load_list(path: Path) -> list[Any]:
    data = load_json(path)
    if not isinstance(data, list):
        raise ReaderError(f"{path}: {describe(data)}, not a list as HELM writes it")
    return data


def instance_content(instance: dict[str, Any]) -> str:
    """Return a hash of an instance's texts, "" if it is not text alone.

    Examples
    --------
    >>> right = {"output": {"text": "4"}, "tags": ["correct"]}
    >>> instance_content({"input": {"text": "2 + 2 ="}, "references": [right]})
    '918839800a423f73'
    """
    question, media = at(instance, "input", "text"), at(instance, "input", "multimedia_content")
    texts, right = _references(instance)
    if not isinstance(question, str) or not question.strip() or media is not None or texts is None:
        return ""
    # If every reference is correct, references are answers, not options.
    options = [] if len(right) == len(texts) else texts
    return content_id(question.strip(), *options, *right)


def _references(instance: dict[str, Any]) -> tuple[list[str] | None, list[str]]:
    """Return the references of an instance, None if they are not texts, and the correct ones."""
    listed = instance.get("references", [])
    outputs = [at(ref, "output", "text") for ref in listed] if isinstance(listed, list) else [None]
    if not all(isinstance(text, str) for text in outputs):
        return None, []
    texts = [str(text).strip() for text in outputs]
    return texts, [texts[i] for i in _correct(instance)]


def _correct(instance: dict[str, Any] | None) -> list[int]:
    references = at(instance, "references")
    if not isinstance(references, list):
        return []
    tags = [at(reference, "tags") for reference in references]
    return [i for i, labels in enumerate(tags) if isinstance(labels, list) and "correct" in labels]


def _id_of(instance: Any, where: str) -> str:
    own_id = at(instance, "id")
    if not isinstance(own_id, str) or not own_id:
        raise ReaderError(f"{where}: the instance has no id")
    return own_id


@dataclass
class Answer:
    """The statistics of one instance, by trial and name."""

    place: int
    split: str | None
    trials: dict[int, dict[str, Any]] = field(default_factory=dict)

    def scores(self, names: list[str]) -> list[dict[str, Any]]:
        """Return the statistics of each trial; one that any trial has is absent in none."""
        there = [name for name in names if any(name in trial for trial in self.trials.values())]
        return [{name: trial.get(name) for name in there} for trial in self.trials.values()]

    def agreed(self, name: str) -> float | None:
        """Return a statistic, or None if there are several trials."""
        values = [as_number(trial.get(name)) for trial in self.trials.values()]
        return values[0] if len(values) == 1 else None


@dataclass
class InstanceAnswers:
    """The statistics of all instances, and the number of rows of each perturbation."""

    by_id: dict[str, Answer] = field(default_factory=dict)
    perturbed: Counter[str] = field(default_factory=Counter)

    @property
    def names(self) -> list[str]:
        """The statistics that are scores; all statistics if none is."""
        every = dict.fromkeys(
            name
            for answer in self.by_id.values()
            for trial in answer.trials.values()
            for name in trial
        )
        return [name for name in every if name not in BOOKKEEPING] or list(every)


def read_answers(path: Path) -> InstanceAnswers:
    """Read the statistics of the instances without perturbation.

    HELM writes an entry for each metric class, instance, perturbation and trial.

    Raises
    ------
    ReaderError
        If the file is damaged or an entry is not what HELM writes.
    """
    answers = InstanceAnswers()
    for place, entry in enumerate(_load_list(path), start=1):
        where = f"{path}, entry {place}"
        if not isinstance(entry, dict):
            raise ReaderError(f"{where}: {describe(entry)}, not an object as HELM writes it")
        if entry.get("perturbation") is not None:
            answers.perturbed[str(at(entry, "perturbation", "name"))] += 1
            continue
        own_id, trial = entry.get("instance_id"), entry.get("train_trial_index", 0)
        if not isinstance(own_id, str) or not own_id:
            raise ReaderError(f"{where}: 'instance_id' is {own_id!r:.40}, not a name")
        if isinstance(trial, bool) or not isinstance(trial, int):
            raise ReaderError(f"{where}: 'train_trial_index' is {trial!r:.40}, not a number")
        stats = entry.get("stats")
        pairs: Iterable[tuple[str, Any, str | None]] = _statistics(stats, where)
        if path.stem == SHOWN:
            if not isinstance(stats, dict):
                raise ReaderError(f"{where}: 'stats' is {describe(stats)}, not an object")
            pairs = ((name, value, None) for name, value in stats.items())
        answer = answers.by_id.setdefault(own_id, Answer(place, None))
        values = answer.trials.setdefault(trial, {})
        for name, value, split in pairs:
            if name in values and values[name] != value and name not in BOOKKEEPING:
                value = [values[name], value]  # two metrics of one name
            values[name] = value
            answer.split = answer.split or split
    return answers


def _statistics(listed: Any, where: str) -> Iterator[tuple[str, Any, str | None]]:
    if not isinstance(listed, list):
        raise ReaderError(f"{where}: 'stats' is {describe(listed)}, not a list of statistics")
    for statistic in listed:
        name, split = at(statistic, "name", "name"), at(statistic, "name", "split")
        if not isinstance(name, str):
            raise ReaderError(f"{where}: a statistic has no name")
        if at(statistic, "name", "perturbation") is None:
            yield name, statistic.get("mean"), split if isinstance(split, str) else None


def option_table(method: str, requests: list[dict[str, Any]], answer: Answer) -> OptionTable | None:
    """Return the options of an instance, None if the files do not determine them.

    With one request per option, an option's value is what HELM compares: its log-likelihood per
    token or, if calibrated, its gain over the option alone. It must lead to the choice and the
    confidence that HELM wrote. If the model chose a letter, HELM up to 0.4 logs the letters'
    log-likelihoods where they are among the most likely tokens.
    """
    if not requests or len(answer.trials) != 1:
        return None
    if method == JOINT:
        worths = _of_letters(requests)
    elif method in (SEPARATE, CALIBRATED):
        worths = _of_requests(method, requests)
        worths = worths if worths and _explains(worths, answer) else None
    else:
        return None
    if worths is None:
        return None
    right = _correct(requests[0].get("instance"))
    return OptionTable(worths, right[0] if len(right) == 1 else NO_ANSWER)


def _of_requests(method: str, requests: list[dict[str, Any]]) -> list[float] | None:
    likelihoods: dict[tuple[Any, Any], tuple[float, int]] = {}
    for request in requests:
        likelihood = _likelihood(request)
        if likelihood is None:
            return None
        likelihoods[request.get("reference_index"), request.get("request_mode")] = likelihood
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


def _likelihood(request: dict[str, Any]) -> tuple[float, int] | None:
    index = request.get("reference_index")
    if not isinstance(index, int):
        return None
    option = at(request, "instance", "references", index, "output", "text")
    tokens = at(request, "result", "completions", 0, "tokens")
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
    letters = at(requests[0], "output_mapping")
    listed = at(requests[0], "result", "completions", 0, "tokens", 0, "top_logprobs")
    text = at(requests[0], "result", "completions", 0, "text")
    if not isinstance(letters, dict) or not isinstance(listed, dict) or len(requests) != 1:
        return None
    worths = []
    for letter in letters:
        values = [as_number(value) for token, value in listed.items() if token.strip() == letter]
        numbers = [value for value in values if value is not None]
        if not numbers:
            return None
        worths.append(float(np.logaddexp.reduce(numbers)))
    best = list(letters)[int(np.argmax(worths))] if worths else None
    return worths if best is not None and str(text).strip() == best else None


def _explains(worths: list[float], answer: Answer) -> bool:
    chosen, confidence = answer.agreed("predicted_index"), answer.agreed("max_prob")
    if chosen is None or confidence is None or not all(map(math.isfinite, worths)):
        return False
    weights = np.exp(np.array(worths) - max(worths))
    return int(np.argmax(worths)) == chosen and bool(
        math.isclose(float(weights.max() / weights.sum()), confidence, rel_tol=1e-6)
    )
