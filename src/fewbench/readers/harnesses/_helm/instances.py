"""The instances of a run: what was asked, and which item that is."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from fewbench.errors import ReaderError
from fewbench.readers.harness import Unit
from fewbench.readers.harnesses._helm.files import RunFiles, at
from fewbench.readers.identity import content_id, field_value
from fewbench.readers.json_files import load_json
from fewbench.readers.numbers import describe

CALIBRATION = "calibration"


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
        fields = at(instance, "extra_data")
        fields = {"id": own_id} | (fields if isinstance(fields, dict) else {})
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
