"""What batches of a run cost, and which items failed: the lines of `run.jsonl`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fewbench._journal import Lines
from fewbench._text import masked
from fewbench.errors import EvaluationError, RunError
from fewbench.runners.result import Spent

BATCHES = "run.jsonl"


class Batch(BaseModel):
    """What a batch cost, and which of its items failed: a line of `run.jsonl`.

    `counts` is False where the model failed as a whole, which is no fault of the items. A line
    with `facts` says how the model was run from there on.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: str = ""
    facts: dict[str, str] | None = None
    failed: dict[str, str] = {}
    counts: bool = True
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

    def spent(self, targets: Sequence[str] | None = None) -> Spent:
        """Return what was spent on some targets; the seconds are always those of all."""
        mine = [one for one in self._all if targets is None or one.target in targets]
        return Spent(
            cost=sum(one.cost for one in mine),
            tokens=sum(one.tokens for one in mine),
            seconds=sum(one.seconds for one in self._all),
            own_seconds=sum(one.own for one in self._all),
        )

    def failures(self, target: str) -> dict[str, list[str]]:
        """Return the reasons of each item that failed, one for each time."""
        found: dict[str, list[str]] = {}
        for one in self._all:
            if one.target == target and one.counts:
                for item, why in one.failed.items():
                    found.setdefault(item, []).append(why)
        return found

    def outages(self, target: str) -> int:
        """Return how many batches failed as a whole."""
        return sum(not one.counts for one in self._all if one.target == target)

    def check_facts(self, facts: Mapping[str, str], *, accept: bool) -> str | None:
        """Compare how the model is run with how it was run before, and keep it.

        Return what has changed if that is accepted; else raise RunError.
        """
        facts = {name: masked(value) for name, value in facts.items()}  # as they are in the file
        known = [one.facts for one in self._all if one.facts is not None]
        before = known[-1] if known else {}
        if known and before == facts:
            return None
        differ = [
            f"{name} {before.get(name, 'not set')}, not {facts.get(name, 'not set')}"
            for name in {**before, **facts}
            if before.get(name) != facts.get(name)
        ]
        said = f"{self._folder}: the answers there come from {'; '.join(differ)}"
        if known and not accept:
            raise RunError(
                said,
                hint="use another folder for another model; if it is the same model, pass "
                "--accept-changes (in Python accept_changes=True)",
            )
        self.add(Batch(facts=facts))
        return f"{said}; accepted as the same model" if known else None
