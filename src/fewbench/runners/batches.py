"""What the batches of a run cost, which of its items failed, and how its model was run."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from fewbench._text import masked_arguments
from fewbench.errors import RunError
from fewbench.evaluation.entries import RunBatch
from fewbench.runners.model_facts import CODE, FILES, OF_PATH, WEIGHTS
from fewbench.runners.result import Spent

Batches = Sequence[RunBatch]
ARGUMENTS = ("model_args", "model arguments", "metadata", "server", "program")
"""Facts in which keys may stand: they are kept and compared without."""
MODEL = ("model", "model_args", "model arguments", "server", "program")
"""Facts that name the model: targets of one folder may differ in these."""


def spent_on(batches: Batches, targets: Sequence[str], together: Sequence[str]) -> Spent:
    """Return what was spent on targets, with the seconds of all that are run together."""
    of_targets = [batch for batch in batches if batch.target in targets]
    of_all = [batch for batch in batches if batch.target in together]
    return Spent(
        cost=sum(batch.cost for batch in of_targets),
        tokens=sum(batch.tokens for batch in of_targets),
        seconds=sum(batch.seconds for batch in of_all),
        own_seconds=sum(batch.own for batch in of_all),
    )


def failures_of(batches: Batches, target: str) -> dict[str, list[str]]:
    """Return the reasons of each item that failed, one for each time."""
    failures: dict[str, list[str]] = {}
    for batch in batches:
        if batch.target == target and batch.counts:
            for item, why in batch.failed.items():
                failures.setdefault(item, []).append(why)
            for item in batch.again:
                failures.pop(item, None)
    return failures


def n_outages(batches: Batches, target: str) -> int:
    """Return how many batches failed as a whole."""
    return sum(not batch.counts for batch in batches if batch.target == target)


def facts_of(batches: Batches, target: str) -> dict[str, str] | None:
    """Return how a target was run last, or None if unknown."""
    of_target = (batch.facts for batch in batches if batch.target == target)
    recorded = [facts for facts in of_target if facts is not None]
    return masked_facts(recorded[-1]) if recorded else None


def targets_with(batches: Batches, facts: Mapping[str, str]) -> list[str]:
    """Return the targets that were run in this way."""
    facts = masked_facts(facts)
    named = dict.fromkeys(batch.target for batch in batches if batch.facts is not None)
    return [name for name in named if facts_of(batches, name) == facts]


def check_facts(
    batches: Batches,
    target: str,
    facts: Mapping[str, str],
    *,
    is_new: bool,
    accept: bool,
    folder: Path | None = None,
) -> str | None:
    """Compare how a target is run with how it was run before.

    A target without answers (`is_new`) is compared with another one, whose model may differ. Return
    what has changed if that is accepted; else raise RunError. `facts` are masked, as those kept.
    """
    whose, before, now = target, facts_of(batches, target), facts
    hint = "use another target (-t NAME) for another model; if it is the same model, pass"
    if is_new:
        others = [batch for batch in batches if batch.facts is not None and batch.target != target]
        whose = others[-1].target if others else target
        before, now = _settings(facts_of(batches, whose) or facts), _settings(facts)
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
            text = f"{folder}: {whose} ran differently: {'; '.join(changes)}"
            if not accept:
                hint += " --accept-changes (in Python accept_changes=True)"
                raise RunError(text, hint=hint, kind="changed")
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


def masked_facts(facts: Mapping[str, str]) -> dict[str, str]:
    """Return facts as the journal keeps them: arguments without keys."""
    return {
        name: masked_arguments(value) if name in ARGUMENTS else value
        for name, value in facts.items()
    }
