"""What batches of a run cost, and which items failed: the lines of `run.jsonl`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field, ValidationError

from fewbench._journal import Lines
from fewbench._json import Frozen
from fewbench._text import masked
from fewbench.errors import EvaluationError, RunError
from fewbench.evaluation.costs import BATCHES
from fewbench.runners.model_facts import CODE, FILES, OF_PATH, WEIGHTS
from fewbench.runners.result import Spent

MODEL = ("model", "model_args", "model arguments", "server", "program")
"""Facts that name the model: targets of one folder may differ in these."""


class Batch(Frozen):
    """What a batch cost, and which of its items failed: a line of `run.jsonl`.

    `counts` is False where the model failed as a whole, which does not count against the items.
    Earlier failures of the items in `again` do not count either. A line with `facts` says how the
    model was run from there on.
    """

    target: str = ""
    facts: dict[str, str] | None = None
    failed: dict[str, str] = Field(default_factory=dict)
    counts: bool = True
    again: tuple[str, ...] = ()
    cost: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    tokens: int = Field(default=0, ge=0)
    seconds: float = 0.0
    own: float = 0.0


class Batches:
    """All batches of a run, kept in its folder if it has one.

    Raises
    ------
    EvaluationError
        If a line of the file is damaged.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._lines = None if folder is None else Lines(folder.absolute() / BATCHES)
        self._all: list[Batch] = []
        for number, line in self._lines.read() if self._lines is not None else ():
            try:
                self._all.append(Batch.model_validate_json(line))
            except ValidationError as error:
                raise EvaluationError(
                    f"{folder}/{BATCHES}: line {number} is damaged",
                    hint=f"restore {BATCHES} from a backup, or delete the line: what that batch "
                    "cost, and which of its items failed, is then forgotten",
                ) from error

    def add(self, batch: Batch) -> None:
        """Add a batch, and wait until it is on the disk."""
        if self._lines is not None:
            self._lines.append(batch.model_dump_json(exclude_defaults=True).encode())
        self._all.append(batch)

    def forget(self, target: str) -> None:
        """Remove what the batches of a target cost, and how it was run."""
        self._all = [batch for batch in self._all if batch.target != target]
        if self._lines is not None:
            self._lines.rewrite(
                lambda line: None if Batch.model_validate_json(line).target == target else line
            )

    def spent(self, targets: Sequence[str], together: Sequence[str]) -> Spent:
        """Return what was spent on targets, with the seconds of all that are run together."""
        mine = [batch for batch in self._all if batch.target in targets]
        of_all = [batch for batch in self._all if batch.target in together]
        return Spent(
            cost=sum(batch.cost for batch in mine),
            tokens=sum(batch.tokens for batch in mine),
            seconds=sum(batch.seconds for batch in of_all),
            own_seconds=sum(batch.own for batch in of_all),
        )

    def failures(self, target: str) -> dict[str, list[str]]:
        """Return the reasons of each item that failed, one for each time."""
        failures: dict[str, list[str]] = {}
        for batch in self._all:
            if batch.target == target and batch.counts:
                for item, why in batch.failed.items():
                    failures.setdefault(item, []).append(why)
                for item in batch.again:
                    failures.pop(item, None)
        return failures

    def outages(self, target: str) -> int:
        """Return how many batches failed as a whole."""
        return sum(not batch.counts for batch in self._all if batch.target == target)

    def facts(self, target: str) -> dict[str, str] | None:
        """Return how a target was run last, or None if unknown."""
        recorded = [
            batch.facts for batch in self._all if batch.facts is not None and batch.target == target
        ]
        return recorded[-1] if recorded else None

    def targets_with(self, facts: Mapping[str, str]) -> list[str]:
        """Return the targets that were run in this way."""
        facts = _masked(facts)
        named = dict.fromkeys(batch.target for batch in self._all if batch.facts is not None)
        return [name for name in named if self.facts(name) == facts]

    def check_facts(
        self, target: str, facts: Mapping[str, str], *, is_new: bool, accept: bool
    ) -> str | None:
        """Compare how a target is run with how it was run before, and keep it.

        A target without answers (`is_new`) is compared with another one, whose model may differ.
        Return what has changed if that is accepted; else raise RunError.
        """
        facts, whose = _masked(facts), target
        before, now = self.facts(target), facts
        hint = "use another target (-t NAME) for another model; if it is the same model, pass"
        if is_new:
            others = [
                batch for batch in self._all if batch.facts is not None and batch.target != target
            ]
            whose = others[-1].target if others else target
            before, now = _settings(self.facts(whose) or facts), _settings(facts)
            hint = "use the same settings, or another folder; to compare them nevertheless, pass"
        text = None
        if before is not None and before != now:
            differ = [name for name in {**before, **now} if before.get(name) != now.get(name)]
            if "program" in differ:  # its files differ with it
                differ = [name for name in differ if not name.startswith(FILES)]
            changes = []
            for name in differ:
                unset = "not there" if name.startswith(FILES) else "not set"
                if not _is_seen(name):
                    was = before.get(name, unset)
                    changes.append(f"{name} is {now.get(name, unset)}, was {was}")
                elif name in before and name in now:  # else it was not looked at
                    changes.append(f"it has other {name}")
            if changes:
                text = f"{self._folder}: {whose} ran differently: {'; '.join(changes)}"
                if not accept:
                    hint += " --accept-changes (in Python accept_changes=True)"
                    raise RunError(text, hint=hint)
        if self.facts(target) != facts:
            self.add(Batch(target=target, facts=facts))
        return None if text is None else f"{text}; accepted as the same"


def _settings(facts: Mapping[str, str]) -> dict[str, str]:
    """Return the facts that do not name the model."""
    return {name: facts[name] for name in facts if not _is_of_model(name)}


def names_model(facts: Mapping[str, str]) -> bool:
    """Whether facts tell a model from others; a function's code may ask any of them."""
    return any(_is_of_model(name) and name != CODE for name in facts)


def _is_of_model(name: str) -> bool:
    return name in MODEL or name.startswith(FILES) or _is_seen(name)


def _is_seen(name: str) -> bool:
    """Whether a fact is known only where a model's weights or a function's code can be seen."""
    return name in (WEIGHTS, CODE) or name.startswith(OF_PATH)


def _masked(facts: Mapping[str, str]) -> dict[str, str]:
    """Return facts as they are in the file."""
    return {name: masked(value) for name, value in facts.items()}
