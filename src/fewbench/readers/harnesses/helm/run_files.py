"""The files of one HELM run, and whose run of what it is."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fewbench.errors import ReaderError
from fewbench.readers.files import at, load_json, load_object, object_at
from fewbench.readers.harness import Unit
from fewbench.readers.values import setting
from fewbench.scores.conditions import GENERATION, SHOTS

STATISTICS, SHOWN, STATE = "per_instance_stats", "display_predictions", "scenario_state"
# Of these a run's scores can be read; the first that a folder has is taken.
SOURCES = (STATISTICS, SHOWN, STATE)
WRITTEN = (*SOURCES, "run_spec", "instances", "scenario", "stats", "display_requests")
# Parts of a run's name that differ between models of one task: HELM adds `stop` and
# `global_prefix` itself to the runs of some models, and perturbed instances are not taken.
OF_THE_MODEL = ("model", "model_deployment", "stop", "global_prefix", "data_augmentation")
# What the adapter says of how a scenario is asked, as all harnesses call it.
SETTINGS = {
    "max_train_instances": SHOTS,
    "method": "method",
    "instructions": "instructions",
    "temperature": f"{GENERATION}temperature",
    "max_tokens": f"{GENERATION}max_tokens",
    "num_outputs": f"{GENERATION}num_outputs",
}
OBJECT = "an object as HELM writes it"
EMPTY = (b"", b"[", b"{")


@dataclass(frozen=True)
class RunFiles:
    """What a run's files say of it as a whole.

    Parameters
    ----------
    folder : Path
        HELM's folder of the run, which it names after the run.
    spec : dict
        run_spec.json, empty if it is not there.
    state : dict or None
        scenario_state.json: every request and what the model answered.
    ran : dict
        Split → how many instances HELM says it ran, from stats.json; empty if it is not there.
    """

    folder: Path
    spec: dict[str, Any]
    state: dict[str, Any] | None
    ran: dict[str | None, int]

    @classmethod
    def of(cls, unit: Unit) -> "RunFiles":
        """Read a run's files, but for the scores."""
        there = {path.stem: path for path in (unit.path, *unit.beside)}
        return cls(
            unit.path.absolute().parent,
            load_object(there["run_spec"], OBJECT) if "run_spec" in there else {},
            load_object(there[STATE], OBJECT) if STATE in there else None,
            _counts(load_json(there["stats"])) if "stats" in there else {},
        )

    @property
    def adapter(self) -> dict[str, Any]:
        """How instances became requests; {} if no file says it."""
        return object_at(self.spec, "adapter_spec") or object_at(self.state, "adapter_spec")

    @property
    def name(self) -> str:
        """HELM's name of the run."""
        name = self.spec.get("name")
        return name if isinstance(name, str) and name else self.folder.name

    def model(self) -> str:
        """Return the model's name; ReaderError if no file says it."""
        for key in ("model", "model_deployment"):
            if isinstance(named := self.adapter.get(key), str) and named:
                return named
        named = dict(_arguments(self.name)).get("model")
        if named:
            return named
        raise ReaderError(
            f"{self.folder}: nothing says which model this run is of",
            hint="put HELM's run_spec.json of the run beside its other files",
        )

    def settings(self) -> tuple[tuple[str, str], ...]:
        """Return how the model was reached, if the files say it."""
        deployed = self.adapter.get("model_deployment")
        return (("model_deployment", deployed),) if isinstance(deployed, str) and deployed else ()

    def task_settings(self) -> tuple[tuple[str, str], ...]:
        """Return how the scenario was asked, as far as it changes answers."""
        known = [name for name in SETTINGS if name in self.adapter]
        return tuple(sorted((SETTINGS[name], setting(self.adapter[name])) for name in known))

    def requests(self) -> list[dict[str, Any]]:
        """Return the requests of scenario_state.json."""
        if self.state is None:
            return []
        listed = self.state.get("request_states")
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            raise ReaderError(
                f"{self.folder / STATE}.json: 'request_states' is not a list of objects"
            )
        return listed

    def group(self, stamp: str) -> str:
        """Return the folder within which a newer run replaces an older one.

        The same run in another suite is a re-run where both say when they were; else, and for
        runs of other names, disagreement is for the user to settle.
        """
        runs = self.folder.parent.parent
        return str(runs / self.folder.name if stamp and runs.name == "runs" else self.folder)


def stamp_of(requests: Sequence[dict[str, Any]]) -> str:
    """Return the time of the newest answer, "" if none has one."""
    times = [at(one, "result", "request_datetime") for one in requests]
    known = [time for time in times if isinstance(time, int | float) and time > 0]
    if not known:
        return ""
    return datetime.fromtimestamp(max(known), UTC).strftime("%Y-%m-%dT%H-%M-%S")


def task_of(name: str) -> str:
    """Return a run's name without the model and what HELM adds for some models.

    Examples
    --------
    >>> task_of("mmlu:subject=anatomy,method=multiple_choice_joint,model=openai_gpt2")
    'mmlu:subject=anatomy,method=multiple_choice_joint'
    >>> task_of("gsm:model=openai_gpt2,stop=none")
    'gsm'
    """
    scenario = name.partition(":")[0]
    kept = [f"{key}={text}" for key, text in _arguments(name) if key not in OF_THE_MODEL]
    return f"{scenario}:{','.join(kept)}" if kept else scenario


def _arguments(name: str) -> list[tuple[str, str]]:
    """Return the arguments in a run's name; a comma may also stand within one."""
    _, _, listed = name.partition(":")
    pieces = re.split(r",(?=\w+=)", listed) if listed else []
    return [(key, text) for key, _, text in (piece.partition("=") for piece in pieces)]


def _counts(stats: Any) -> dict[str | None, int]:
    found: dict[str | None, int] = {}
    for one in stats if isinstance(stats, list) else []:
        count, split = at(one, "mean"), at(one, "name", "split")
        if at(one, "name", "name") != "num_instances" or not isinstance(count, int | float):
            continue
        if at(one, "name", "perturbation") is None:
            found[split if isinstance(split, str) else None] = round(count)
    return found
