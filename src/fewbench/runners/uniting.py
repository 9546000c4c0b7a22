"""Two runs become one: targets of other folders of one benchmark join a folder."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from fewbench._names import some
from fewbench._text import quoted
from fewbench.errors import RunError
from fewbench.evaluation import Evaluation
from fewbench.evaluation.entries import FollowedRun, part_of
from fewbench.evaluation.journal import Journal, logs_of
from fewbench.runners.run_folder import locked


def unite_runs(
    folder: str | os.PathLike[str], others: Sequence[str | os.PathLike[str]]
) -> dict[str, int]:
    """Take targets of other runs of the same benchmark into a folder, with their logs.

    Targets that both have, with the same answers, stay as they are. The other folders stay too.

    Parameters
    ----------
    folder : path
        The folder that grows.
    others : sequence of paths
        Folders of runs of the same items, with the same method.

    Returns
    -------
    dict of str to int
        Number of answers of each target that joined.

    Raises
    ------
    RunError
        If a folder has different items or a different method, or different answers of a target. In
        this case, nothing is written.
    """
    place = Path(folder)
    with locked(place):
        mine = Evaluation.open(place)
        joined: dict[str, int] = {}
        lines = []
        is_other = False
        for other in map(Path, others):
            theirs = Evaluation.open(other)
            _check(mine, theirs, place, other)  # chances by other sources stay as they were
            is_other |= theirs.scores.fingerprint != mine.scores.fingerprint
            known = {*mine.targets, *joined}
            twice = [name for name in theirs.targets if name in known]
            if differ := [name for name in twice if _answers(theirs, name) != _answers(mine, name)]:
                raise RunError(
                    f"{other}: {some(differ)} has other answers than in {place}",
                    hint="name the target differently in one of them, or remove it there: fewbench "
                    f"repair {quoted(other)} --remove {quoted(differ[0])}",
                )
            new = [name for name in theirs.targets if name not in known]
            lines += [(other, name, list(part_of(theirs.entries, mine.scores.item_ids, [name])))
                      for name in new]  # fmt: skip
            joined |= {name: len(_answers(theirs, name)) for name in new}
        journal = Journal(place)
        header = journal.header()
        first = [name for _, name, of_target in lines
                 if not any(isinstance(entry, FollowedRun) for entry in of_target)]  # fmt: skip
        update = {"targets": (*header.targets, *first), "changes": header.changes + is_other}
        journal.write(header.model_copy(update=update))
        for other, name, of_target in lines:
            for entry in of_target:
                journal.append(entry)
            if (logs := logs_of(other, name)).is_dir():
                shutil.copytree(logs, logs_of(place, name))
    return joined


def _check(mine: Evaluation, theirs: Evaluation, place: Path, other: Path) -> None:
    """Raise RunError unless two runs are of the same items, scored and chosen alike."""
    ours, its = mine.provenance, theirs.provenance
    same_items = mine.scores.item_ids.tolist() == theirs.scores.item_ids.tolist()
    differ = [] if same_items else ["other items"]
    differ += [f"method {its.settings}, not {ours.settings}"] * (its.settings != ours.settings)
    differ += [f"seed {its.seed}, not {ours.seed}"] * (its.seed != ours.seed)
    chosen = [subset and sorted(subset.items) for subset in (mine.subset, theirs.subset)]
    differ += ["other chosen items"] * (not differ and chosen[0] != chosen[1])
    if differ:
        raise RunError(
            f"{other}: not a run like {place}: {'; '.join(differ)}",
            hint="extend one of them to the items of the other (fewbench extend); or make both "
            "source models of one table (fewbench add)",
            kind="changed",
        )


def _answers(evaluation: Evaluation, target: str) -> dict[str, float]:
    if target not in evaluation.targets:
        return {}
    answers = evaluation.record.answers(target)
    items = evaluation.scores.item_ids[answers.items].tolist()
    return dict(zip(items, answers.scores[0].tolist(), strict=True))
