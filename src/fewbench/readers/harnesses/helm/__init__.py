"""HELM: runs/SUITE/RUN/per_instance_stats.json, with what else HELM writes of a run beside it."""

import re
from collections.abc import Sequence
from pathlib import Path

from fewbench._names import some
from fewbench.errors import ReaderError
from fewbench.readers.files import head
from fewbench.readers.harness import UNKNOWN, Rows, Run, Unit, Wants
from fewbench.readers.harnesses.helm.instances import (
    CALIBRATED,
    SEPARATE,
    Answers,
    Instances,
    option_table,
    read_answers,
    read_instances,
)
from fewbench.readers.harnesses.helm.run_files import (
    EMPTY,
    SOURCES,
    STATE,
    WRITTEN,
    RunFiles,
    stamp_of,
    task_of,
)

GIVEN_ID = re.compile(r"id(\d{1,9})")


class Helm:
    """What HELM writes of a run, 0.2 to 0.5: statistics, or what it makes of them for its pages.

    An item is an instance, known by its text, its references and which of them are right, from
    scenario_state.json or instances.json; without either by HELM's id of it. Perturbed instances
    are not taken, and several trials of an instance are averaged. HELM's splits stand as filters
    (`test`, `valid`), as HELM never mixes them. Of the statistics, those that are not of how good
    an answer is (times, tokens, HELM's own probabilities) are not offered as metrics where there
    are others. The task is the run's name without the model.
    """

    name = "helm"
    files = "per_instance_stats.json in the folder of every run"

    def find(self, files: Sequence[Path]) -> list[Unit]:
        """Return the runs, each by its statistics and with its other files beside."""
        units: dict[Path, Unit] = {}
        for path in files:
            if (
                path.suffix != ".json"
                or path.stem not in SOURCES
                or head(path).lstrip()[:1] not in EMPTY
            ):
                continue
            written = [path.with_name(f"{stem}.json") for stem in WRITTEN]
            there = [one for one in written if one.is_file()]
            source = there[0] if there else path
            units.setdefault(source, Unit(source, tuple(one for one in there if one != source)))
        return list(units.values())

    def read(self, unit: Unit, wants: Wants) -> list[Run]:
        """Return a run for each split of a run of HELM."""
        if unit.path.stem == STATE:
            raise ReaderError(
                f"{unit.path}: answers without scores",
                hint="HELM writes per_instance_stats.json in the same folder once it has scored "
                "them; run it to the end, or copy that file too",
            )
        files = RunFiles.of(unit)
        answers = read_answers(unit.path)
        if not answers.by_id:
            raise ReaderError(
                f"{unit.path}: no instance was scored"
                + (" but perturbed ones" if answers.perturbed else ""),
                hint="leave it out with --damaged skip",
            )
        instances = read_instances(unit, files)
        parts, untold = _rows(unit.path, files, answers, instances, wants)
        notes = _notes(files, answers, instances, untold, wants)
        stamp = stamp_of(files.requests())
        size = _eval_size(answers, instances)
        return [
            rows.run(
                files.model(),
                task_of(files.name),
                filter=split or "none",
                stamp=stamp,
                group=files.group(stamp),
                total=(instances.size(split) or len(rows)) if _is_whole(files, size) else None,
                ran=files.ran.get(split),
                settings=files.settings(),
                task_settings=files.task_settings(),
                notes=notes,
            )
            for split, rows in parts.items()
        ]


def _rows(
    path: Path, files: RunFiles, answers: Answers, instances: Instances, wants: Wants
) -> tuple[dict[str | None, Rows], int]:
    """Return the rows of each split, and of how many instances the options could not be told."""
    method = str(files.adapter.get("method"))
    names = answers.names
    parts: dict[str | None, Rows] = {}
    untold = 0
    for own_id, answer in answers.by_id.items():
        split = answer.split or instances.split(own_id)
        rows = parts.setdefault(split, Rows(path, "entry"))
        options = option_table(method, instances.requests.get(own_id, []), answer)
        untold += options is None
        rows.append(
            instances.content(own_id, wants.key),
            answer.scores(names),
            answer.place,
            # HELM's own ids are places among all instances of the scenario.
            position=int(given[1]) if (given := GIVEN_ID.fullmatch(own_id)) else UNKNOWN,
            own_id=own_id,
            prompt=instances.prompt(own_id),
            options=options,
        )
    return parts, untold


def _eval_size(answers: Answers, instances: Instances) -> int:
    return len(answers.by_id.keys() | instances.known.keys())


def _is_whole(files: RunFiles, size: int) -> bool:
    """Whether all instances of the scenario were run, as far as the files can tell."""
    if not files.adapter:
        return False
    most = files.adapter.get("max_eval_instances")
    return most is None or (isinstance(most, int) and size < most)


def _notes(
    files: RunFiles, answers: Answers, instances: Instances, untold: int, wants: Wants
) -> tuple[str, ...]:
    size = _eval_size(answers, instances)
    notes = []
    if not instances.where and wants.key is None:
        notes.append(
            "no scenario_state.json or instances.json beside, so items are known by HELM's id "
            "alone; to join them with runs that have one, read all with --key id"
        )
    if not files.adapter:
        notes.append("without run_spec.json beside; model and task are read from the folder's name")
    elif not _is_whole(files, size):
        notes.append(
            f"run with at most {files.adapter.get('max_eval_instances')} instances, so it may be "
            "of a part of the scenario"
        )
    if answers.perturbed:
        count = sum(answers.perturbed.values())
        notes.append(f"{count} rows of perturbed instances ({some(answers.perturbed)}) not taken")
    if answers.n_repeated:
        notes.append(f"{answers.n_repeated} instances were run in several trials and are averaged")
    unscored = [own_id for own_id in instances.known if own_id not in answers.by_id]
    if unscored:
        notes.append(f"{len(unscored)} instances have no scores and are left out: {some(unscored)}")
    if instances.wordless:
        notes.append(
            f"{len(instances.wordless)} instances are not text alone (pictures, sound) and known "
            "by HELM's id"
        )
    if instances.failed:
        notes.append(f"{instances.failed} requests failed; HELM scored them as empty answers")
    if untold and files.state and files.adapter.get("method") in (SEPARATE, CALIBRATED):
        notes.append(
            f"the log-likelihoods of the options of {untold} instances do not explain HELM's "
            "choice and are not kept"
        )
    return tuple(notes)
