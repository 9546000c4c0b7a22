"""HELM: runs/SUITE/RUN/per_instance_stats.json and the other files of the run."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fewbench.errors import ReaderError
from fewbench.readers.files import at, head, load_json, load_object, object_at
from fewbench.readers.harness import UNKNOWN, LogRun, LogUnit, Rows, Wants
from fewbench.readers.values import called, setting, shortened
from fewbench.scores.conditions import GENERATION, SCORING, SHOTS
from fewbench.support import counted, some
from fewbench_logs.harnesses.helm.instances import (
    CALIBRATED,
    SEPARATE,
    SHOWN,
    InstanceAnswers,
    Instances,
    option_table,
    read_answers,
)

STATE = "scenario_state"
# Files with a run's scores; the first one in a folder is used.
SOURCES = ("per_instance_stats", SHOWN, STATE)
WRITTEN = (*SOURCES, "run_spec", "instances", "scenario", "stats", "display_requests")
# Parts of a run's name that differ between models of one task. HELM adds `stop` and
# `global_prefix` to the runs of some models; perturbed instances are not read.
OF_THE_MODEL = ("model", "model_deployment", "stop", "global_prefix", "data_augmentation")
SETTINGS = {
    "max_train_instances": SHOTS,
    "method": "method",
    "instructions": "instructions",
    "temperature": f"{GENERATION}temperature",
    "max_tokens": f"{GENERATION}max_tokens",
    "num_outputs": f"{GENERATION}num_outputs",
    "num_train_trials": f"{SCORING}trials",
}
# Arguments of metrics that do not change a statistic.
ARRANGED = ("names", "device")
OBJECT = "an object as HELM writes it"
GIVEN_ID = re.compile(r"id(\d{1,9})")


class Helm:
    """Read runs of HELM 0.2 to 0.5, from their statistics or their display files.

    An item is an instance, identified by its text, its references and the correct references, from
    scenario_state.json or instances.json; without these files by HELM's id. Perturbed instances
    are skipped. Several trials of an instance are averaged. HELM's splits (`test`, `valid`) become
    filters. Times, token counts and other bookkeeping are metrics only if a run has no others. The
    task is the run's name without the model.
    """

    name = "helm"
    files = "per_instance_stats.json in the folder of every run"
    remedy = "add per_instance_stats.json, which helm-run writes to the folder of each run"

    def is_totals(self, path: Path) -> bool:
        """Whether a file is of a run without the statistics of its instances."""
        has_items = path.with_name("per_instance_stats.json").exists()
        return path.name in ("stats.json", "run_spec.json") and not has_items

    def find(self, files: Sequence[Path]) -> list[LogUnit]:
        """Return the runs, each as its statistics and its other files."""
        units: dict[Path, LogUnit] = {}
        for path in files:
            named = path.suffix == ".json" and path.stem in SOURCES
            if not named or head(path).lstrip()[:1] not in (b"", b"[", b"{"):
                continue
            written = [path.with_name(f"{stem}.json") for stem in WRITTEN]
            there = [file for file in written if file.is_file()]
            source = there[0] if there else path
            units.setdefault(source, LogUnit(source, tuple(there[1:])))
        return list(units.values())

    def read(self, unit: LogUnit, wants: Wants) -> list[LogRun]:
        """Return a run for each split of a HELM run."""
        if unit.path.stem == STATE:
            raise ReaderError(
                f"{unit.path}: answers without scores",
                hint="add per_instance_stats.json, which HELM writes to the same folder at the end "
                "of a run",
            )
        files = _RunFiles.from_unit(unit)
        answers = read_answers(unit.path)
        if not answers.by_id:
            raise ReaderError(
                f"{unit.path}: no instance was scored"
                + (", except perturbed ones" if answers.perturbed else ""),
                hint="skip the file with --damaged skip",
            )
        there = {path.stem: path for path in (unit.path, *unit.beside)}
        if files.state is not None:
            instances = Instances.of_requests(there[STATE], files.requests)
        elif "instances" in there:
            instances = Instances.listed(there["instances"])
        else:
            instances = Instances()
        parts, untold = _rows(unit.path, files, answers, instances, wants)
        is_whole = files.is_whole(len(answers.by_id.keys() | instances.known.keys()))
        notes = _notes(files, answers, instances, is_whole, untold, wants)
        return [
            rows.run(
                files.model,
                task_of(files.name),
                filter=split or "none",
                stamp=files.stamp,
                group=files.group,
                total=(instances.size(split) or rows.n_items) if is_whole else None,
                ran=files.ran.get(split),
                settings=files.settings,
                task_settings=files.task_settings,
                notes=notes,
            )
            for split, rows in parts.items()
        ]


@dataclass(frozen=True)
class _RunFiles:
    """The files of a run; `ran` is the number of instances of each split."""

    folder: Path
    spec: dict[str, Any]
    state: dict[str, Any] | None
    ran: dict[str | None, int]

    @classmethod
    def from_unit(cls, unit: LogUnit) -> "_RunFiles":
        there = {path.stem: path for path in (unit.path, *unit.beside)}
        return cls(
            unit.path.absolute().parent,
            load_object(there["run_spec"], OBJECT) if "run_spec" in there else {},
            load_object(there[STATE], OBJECT) if STATE in there else None,
            _counts(load_json(there["stats"])) if "stats" in there else {},
        )

    @property
    def adapter(self) -> dict[str, Any]:
        return object_at(self.spec, "adapter_spec") or object_at(self.state, "adapter_spec")

    @property
    def name(self) -> str:
        name = self.spec.get("name")
        return name if isinstance(name, str) and name else self.folder.name

    @property
    def model(self) -> str:
        for key in ("model", "model_deployment"):
            if isinstance(named := self.adapter.get(key), str) and named:
                return named
        if named := dict(_arguments(self.name)).get("model"):
            return named
        raise ReaderError(
            f"{self.folder}: no file names the model of this run",
            hint="add HELM's run_spec.json of the run to the folder",
        )

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        deployed = self.adapter.get("model_deployment")
        return (("model_deployment", deployed),) if isinstance(deployed, str) and deployed else ()

    @property
    def task_settings(self) -> tuple[tuple[str, str], ...]:
        names = [name for name in SETTINGS if name in self.adapter]
        settings = {SETTINGS[name]: setting(self.adapter[name]) for name in names}
        specs = self.spec.get("metric_specs")
        if isinstance(specs, list):
            # Not the names of classes and statistics, which other versions of HELM rearrange.
            every = [object_at(spec, "args").items() for spec in specs]
            kept = [{key: value for key, value in pairs if key not in ARRANGED} for pairs in every]
            listed = sorted(called("", arguments) for arguments in kept if arguments)
            settings[f"{SCORING}metric arguments"] = shortened(" ".join(listed) or "none")
        return tuple(sorted(settings.items()))

    @property
    def requests(self) -> list[dict[str, Any]]:
        listed = [] if self.state is None else self.state.get("request_states")
        if not isinstance(listed, list) or not all(isinstance(request, dict) for request in listed):
            raise ReaderError(
                f"{self.folder / STATE}.json: 'request_states' is not a list of objects"
            )
        return listed

    @property
    def stamp(self) -> str:
        """The time of the newest answer."""
        times = [at(request, "result", "request_datetime") for request in self.requests]
        valid = [time for time in times if isinstance(time, int | float) and time > 0]
        if not valid:
            return ""
        return datetime.fromtimestamp(max(valid), UTC).strftime("%Y-%m-%dT%H-%M-%S")

    @property
    def group(self) -> str:
        """The folder of re-runs: across suites only where runs have a time."""
        runs = self.folder.parent.parent
        return str(runs / self.folder.name if self.stamp and runs.name == "runs" else self.folder)

    def is_whole(self, size: int) -> bool:
        """Whether a run of `size` instances covers the scenario."""
        if not self.adapter:
            return False
        most = self.adapter.get("max_eval_instances")
        return most is None or (isinstance(most, int) and size < most)


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
    _, _, listed = name.partition(":")
    pieces = re.split(r",(?=\w+=)", listed) if listed else []  # an argument may hold commas
    return [(key, text) for key, _, text in (piece.partition("=") for piece in pieces)]


def _counts(stats: Any) -> dict[str | None, int]:
    counts: dict[str | None, int] = {}
    for stat in stats if isinstance(stats, list) else []:
        count, split = at(stat, "mean"), at(stat, "name", "split")
        if at(stat, "name", "name") != "num_instances" or not isinstance(count, int | float):
            continue
        if at(stat, "name", "perturbation") is None:
            counts[split if isinstance(split, str) else None] = round(count)
    return counts


def _rows(
    path: Path, files: _RunFiles, answers: InstanceAnswers, instances: Instances, wants: Wants
) -> tuple[dict[str | None, Rows], int]:
    """Return the rows of each split, and the number of instances without options."""
    method = str(files.adapter.get("method"))
    names = answers.names
    parts: dict[str | None, Rows] = {}
    untold = 0
    for own_id, answer in answers.by_id.items():
        rows = parts.setdefault(answer.split or instances.split(own_id), Rows(path, "entry"))
        options = option_table(method, instances.requests.get(own_id, []), answer)
        untold += options is None
        right, choices = instances.key(own_id)
        rows.append(
            instances.content(own_id, wants.key),
            answer.scores(names),
            answer.place,
            answer=right,
            choices=choices,
            # HELM's own ids are positions among all instances of the scenario.
            position=int(match[1]) if (match := GIVEN_ID.fullmatch(own_id)) else UNKNOWN,
            own_id=own_id,
            prompt=instances.prompt(own_id),
            options=options,
        )
    return parts, untold


def _notes(
    files: _RunFiles,
    answers: InstanceAnswers,
    instances: Instances,
    is_whole: bool,
    untold: int,
    wants: Wants,
) -> tuple[str, ...]:
    notes = []
    if not instances.where and wants.key is None:
        notes.append(
            "no scenario_state.json or instances.json in the folder, so items are identified by "
            "HELM's id; pass --key id to join them with runs that have these files"
        )
    if not files.adapter:
        notes.append("no run_spec.json in the folder; model and task are read from its name")
    elif not is_whole:
        notes.append(
            f"run with at most {files.adapter.get('max_eval_instances')} instances, so the run may "
            "be partial"
        )
    if answers.perturbed:
        count = sum(answers.perturbed.values())
        notes.append(f"{count} rows of perturbed instances ({some(answers.perturbed)}) skipped")
    repeated = sum(len(answer.trials) > 1 for answer in answers.by_id.values())
    if repeated:
        notes.append(f"{repeated} instances were run in several trials, which are averaged")
    unscored = [own_id for own_id in instances.known if own_id not in answers.by_id]
    if unscored:
        notes.append(
            f"{counted(len(unscored), 'instance')} left out, without a score: {some(unscored)}"
        )
    if instances.wordless:
        notes.append(
            f"{counted(len(instances.wordless), 'instance')} with more than text (pictures, "
            "sound), identified by HELM's id"
        )
    if instances.failed:
        notes.append(f"{instances.failed} requests failed; HELM scored them as empty answers")
    if untold and files.state and files.adapter.get("method") in (SEPARATE, CALIBRATED):
        notes.append(
            f"option probabilities of {untold} instances are dropped: their log-likelihoods do not "
            "explain HELM's choice"
        )
    return tuple(notes)
