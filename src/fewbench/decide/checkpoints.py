"""The checkpoints of a run: which answered what, and all estimated again from the same sources.

Checkpoints that ran all items join the source models: a later checkpoint answers like them. The
others are estimated again from their recorded answers, so all estimates rest on the same sources.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._names import did_you_mean, some
from fewbench._types import FloatArray, IntArray
from fewbench.decide.operands import on_common_items
from fewbench.decide.step_names import read_steps, runs_of
from fewbench.errors import EvaluationError
from fewbench.evaluation import Evaluation, Stop
from fewbench.methods import Answers, Method, StaticMethod, Subset
from fewbench.methods.sources import NEARLY_COMPLETE
from fewbench.scores import Scores
from fewbench.scores.roles import source_models

METHOD = "fewbench-static"
"""Method that estimates checkpoints of a table, which ran items that no method chose."""
STEP, FAMILY = "step", "family"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A checkpoint's answers, scores in [0, 1].

    Attributes
    ----------
    name : str
    items, answers : ndarray, shape (answered,)
    evaluation : Evaluation or None
        None for a row of the source scores.
    options : ndarray, shape (answered, options), optional
        Option probabilities of a row.
    target : str
        Its name in the evaluation. If runs have folders of their own, `name` begins with it.
    """

    name: str
    items: IntArray
    answers: FloatArray
    evaluation: Evaluation | None = None
    options: FloatArray | None = None
    target: str = ""


@dataclass(frozen=True, eq=False)
class TrainingRun:
    """The checkpoints of one or more runs, by run and step, and the sources that all rest on.

    Attributes
    ----------
    name : str
    scores : Scores
        The source models and the checkpoints that ran all items.
    checkpoints : tuple of Checkpoint
    steps : ndarray, shape (checkpoints,)
    runs : tuple of str
        Which run each checkpoint is of, "" if all are of one.
    evaluations : dict of str to Evaluation
        Evaluation of each checkpoint that did not run all items.
    silent : tuple of str
        Checkpoints without answers, which are left out.
    notes : tuple of str
        Which items are left out, where checkpoints have different ones.
    """

    name: str
    scores: Scores
    checkpoints: tuple[Checkpoint, ...]
    steps: FloatArray
    runs: tuple[str, ...]
    evaluations: dict[str, Evaluation]
    silent: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_run(
    given: Scores | Sequence[Evaluation],
    run: str | None,
    steps: Mapping[str, float] | None,
    folder: Path | None = None,
) -> TrainingRun:
    """Collect the checkpoints of a run.

    Parameters
    ----------
    given : Scores or sequence of Evaluation
        Checkpoints are the models of the run in a table, and all targets of evaluations.
    run : str, optional
        Family of the checkpoints in the table, or the start of their names.
    steps : mapping of name to number, optional
        Steps that the names do not tell.
    folder : Path, optional
        Where measured errors are kept.

    Raises
    ------
    EvaluationError
        Without checkpoints, for names that do not tell the steps, or if the evaluations have no
        item in common.
    """
    evaluations: list[Evaluation] = []
    notes: tuple[str, ...] = ()
    if not isinstance(given, Scores):
        evaluations, _, notes = on_common_items(given)
    scores = given if isinstance(given, Scores) else _scores_of(evaluations)
    if scores.origin is not None:
        raise EvaluationError(
            "checkpoints cannot be added to the source models of a pack",
            hint="start the evaluations from the scores that the pack was made from",
        )
    rows = [] if run is None else models_of(scores, run)
    if run is not None and not len(rows) and not evaluations:
        families = dict.fromkeys(scores.models[FAMILY]) if FAMILY in scores.models else {}
        raise EvaluationError(
            f"no model of the scores belongs to the run {run!r}",
            hint=did_you_mean(
                run,
                [str(family) for family in families if family],
                "give a family, or the start of the checkpoints' names",
            ),
        )
    checkpoints = [_of_row(scores, row) for row in rows]
    places = _places(evaluations)
    for evaluation, place in zip(evaluations, places, strict=True):
        for target in evaluation.targets:
            answers, name = evaluation.record.answers(target), f"{place}{target}"
            checkpoints.append(
                Checkpoint(name, answers.items, answers.scores[0], evaluation, target=target)
            )
    names = [checkpoint.name for checkpoint in checkpoints]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise EvaluationError(
            f"two checkpoints are called {twice!r}", hint="give each checkpoint a different name"
        )
    silent = tuple(checkpoint.name for checkpoint in checkpoints if not len(checkpoint.items))
    checkpoints = [checkpoint for checkpoint in checkpoints if len(checkpoint.items)]
    if not checkpoints:
        raise EvaluationError("no checkpoint with answers", hint="record answers of a checkpoint")
    known_steps = _column(scores, rows) | dict(steps or {})
    told_steps = {name: step for name, step in known_steps.items() if name not in silent}
    every = read_steps([checkpoint.name for checkpoint in checkpoints], told_steps)
    runs = runs_of([checkpoint.name for checkpoint in checkpoints])
    order = sorted(range(len(checkpoints)), key=lambda at: (runs.index(runs[at]), every[at], at))
    checkpoints, every = [checkpoints[at] for at in order], every[order]
    run_of = {checkpoints[at].name: runs[place] for at, place in enumerate(order)}
    full = [
        checkpoint
        for checkpoint in checkpoints
        if len(checkpoint.items) >= (1 - NEARLY_COMPLETE) * scores.n_items
    ]
    sources = _joined(scores, rows, full, run, run_of)
    partial = [checkpoint for checkpoint in checkpoints if checkpoint not in full]
    name = run or _common_start([checkpoint.name for checkpoint in checkpoints])
    return TrainingRun(
        name, sources, tuple(checkpoints), every, tuple(run_of.values()),
        _again(sources, partial, folder), silent, notes,
    )  # fmt: skip


def _places(evaluations: Sequence[Evaluation]) -> list[str]:
    """Return what the names of each evaluation's checkpoints begin with: runs by their folders.

    Nothing where all are of one run, so that a folder has one checkpoint, or all of them.
    """
    targets = [target for evaluation in evaluations for target in evaluation.targets]
    n_runs = sum(len(evaluation.targets) > 1 for evaluation in evaluations)
    if len(set(targets)) == len(targets) and n_runs < 2:
        return [""] * len(evaluations)
    folders = [evaluation.folder for evaluation in evaluations]
    return ["" if folder is None else f"{folder.resolve().name}/" for folder in folders]


def models_of(scores: Scores, run: str) -> list[int]:
    """Return the positions of a run's models: of this family, or whose names start with it."""
    if FAMILY in scores.models:
        of_family = np.flatnonzero((scores.models[FAMILY] == run).to_numpy())
        if len(of_family):
            return [int(at) for at in of_family]
    return [
        at
        for at, name in enumerate(scores.model_ids)
        if name.startswith(run) and (name == run or not name[len(run)].isalpha())
    ]


def _scores_of(evaluations: Sequence[Evaluation]) -> Scores:
    if not evaluations:
        raise EvaluationError(
            "no checkpoints", hint="give evaluations of checkpoints, or scores and a run"
        )
    return max((each.scores for each in evaluations), key=lambda table: table.n_models)


def _of_row(scores: Scores, row: int) -> Checkpoint:
    values = scores.cells[row]
    items = np.flatnonzero(~np.isnan(values))
    options = None
    if scores.probabilities is not None:
        options = np.asarray(scores.probabilities.of_model(row), dtype=np.float64)[items]
    return Checkpoint(scores.model_ids[row], items, values[items], None, options)


def _column(scores: Scores, rows: Sequence[int]) -> dict[str, float]:
    """Return the steps that the models' table has."""
    if STEP not in scores.models or not rows:
        return {}
    stated = scores.models[STEP].iloc[list(rows)]
    stated = stated[stated.notna() & (stated.astype(str) != "")]
    numbers = pd.to_numeric(stated, errors="coerce")
    wrong = [str(value) for value in stated[numbers.isna()]]
    if wrong:
        raise EvaluationError(
            f"the models' column `step` holds {some(wrong)}", hint="write numbers there"
        )
    return {str(name): float(step) for name, step in numbers.items()}


def _common_start(names: Sequence[str]) -> str:
    shortest = min(names, key=len)
    n = next(
        (at for at, letter in enumerate(shortest) if any(name[at] != letter for name in names)),
        len(shortest),
    )
    return shortest[:n].rstrip("0123456789-_/ .=:") or "run"


def _joined(
    scores: Scores, rows: Sequence[int], full: Sequence[Checkpoint], run: str | None,
    runs: Mapping[str, str],
) -> Scores:  # fmt: skip
    """Return the sources without the run's partly evaluated models, and with its whole ones.

    A run is one family, so that its checkpoints are held out together when errors are measured.
    """
    new = [checkpoint for checkpoint in full if checkpoint.evaluation is not None]
    whole = {checkpoint.name for checkpoint in full}
    kept = [at for at in range(scores.n_models) if at not in set(rows)]
    kept += [at for at in rows if scores.model_ids[at] in whole]
    if not new and len(kept) == scores.n_models:
        return scores if run is None or not rows else _as_families(scores, whole, run, runs)
    if not kept and not new:
        raise EvaluationError(
            "there are no source models besides the run's checkpoints",
            hint="add results of other models, 20 or more",
        )
    sources = scores.take(models=np.array(sorted(kept), dtype=np.intp))
    if new:
        values = np.full((len(new), scores.n_items), np.nan)
        for row, added in enumerate(new):
            values[row, added.items] = added.answers
        models = pd.DataFrame(index=pd.Index([checkpoint.name for checkpoint in new], name="model"))
        models = pd.concat([sources.models, models])
        texts = {name: "" for name in models.columns if models[name].dtype == object}
        sources = replace(
            sources,
            values=np.vstack([np.asarray(sources.cells), values]),
            models=models.fillna(texts),
            probabilities=None,
        )
    return _as_families(sources, whole, run or "run", runs)


def _as_families(scores: Scores, names: set[str], run: str, runs: Mapping[str, str]) -> Scores:
    for each in dict.fromkeys(runs.values()):
        scores = _as_family(scores, {name for name in names if runs[name] == each}, each or run)
    return scores


def _as_family(scores: Scores, names: set[str], run: str) -> Scores:
    models = scores.models
    family = models[FAMILY] if FAMILY in models else pd.Series("", index=models.index)
    taken = set(family)
    label = run
    while label in taken and not set(models.index[family == label]) <= names:
        label += "'"
    of_run = models.index.isin(names)
    return scores.changed(models=models.assign(**{FAMILY: family.where(~of_run, label)}))


def _again(
    sources: Scores, partial: Sequence[Checkpoint], folder: Path | None
) -> dict[str, Evaluation]:
    """Return an evaluation of each checkpoint from these sources and its own answers.

    Checkpoints that are estimated alike share one.
    """
    alike: dict[tuple[object, ...], list[Checkpoint]] = {}
    evaluations: dict[str, Evaluation] = {}
    for checkpoint in partial:
        own = checkpoint.evaluation
        if own is not None and own.scores.fingerprint == sources.fingerprint:
            evaluations[checkpoint.name] = own
            continue
        key: tuple[object, ...] = ("table", *np.sort(checkpoint.items).tolist())
        if checkpoint.evaluation is not None:
            own_names = checkpoint.name != checkpoint.target
            provenance, subset = checkpoint.evaluation.provenance, checkpoint.evaluation.subset
            chosen = () if subset is None else subset.items
            key = (provenance.settings, provenance.budget, provenance.seed, *chosen)
            key += (id(checkpoint.evaluation),) * own_names  # targets of one name
        alike.setdefault(key, []).append(checkpoint)
    for group in alike.values():
        together = _together(sources, group)
        together.estimating.errors_folder = folder
        for checkpoint in group:
            if checkpoint.evaluation is not None:
                together.adopt(checkpoint.evaluation.entries, [checkpoint.target])
            else:
                options = None if checkpoint.options is None else checkpoint.options[None]
                together.record.add_round(checkpoint.name, checkpoint.items)
                together.record.tell(
                    checkpoint.name, Answers(checkpoint.items, checkpoint.answers[None], options)
                )
            evaluations[checkpoint.name] = together
    return evaluations


def _together(sources: Scores, group: Sequence[Checkpoint]) -> Evaluation:
    from fewbench.methods.catalogue import CATALOGUE

    names = [checkpoint.target or checkpoint.name for checkpoint in group]
    evaluation = group[0].evaluation
    sources = source_models(sources)[0]
    if evaluation is None:
        subset = Subset(items=tuple(sources.item_ids[np.sort(group[0].items)].tolist()))
        return Evaluation(sources, METHOD, len(subset.items), names, subset=subset)
    provenance, method = evaluation.provenance, evaluation.method
    chosen: str | Method = provenance.method if provenance.method in CATALOGUE else method
    fixed = evaluation.subset if isinstance(method, StaticMethod) else None
    if fixed is not None:
        # The items are those of the method, whose choice is repeated when errors are measured.
        changed = provenance.model_copy(
            update={"fingerprint": sources.fingerprint, "average": sources.average}
        )
        fixed = fixed.model_copy(update={"provenance": changed})
    limits = evaluation.stop
    stop = Stop(items=provenance.budget, half_width=limits.half_width, level=limits.level)
    return Evaluation(sources, chosen, targets=names, seed=provenance.seed, stop=stop, subset=fixed)
