"""Families: models that are not independent of each other, by a column or by their names.

Checkpoints of a training run, and runs of one recipe with other seeds, share what they learned.
Methods learn from each of them, but all of them count as one model.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fewbench._names import counted, some

if TYPE_CHECKING:
    from fewbench.scores.table import Scores

FAMILY = "family"
"""Column of the models with their families."""
UNNAMED = "run"
"""Name of a training run whose checkpoints have no other name than their steps."""
UNITS = {
    "step": "step",
    "steps": "step",
    "iter": "iteration",
    "iteration": "iteration",
    "tokens": "token",
    "tok": "token",
    "checkpoint": "checkpoint",
    "ckpt": "checkpoint",
    "chkpt": "checkpoint",
    "epoch": "epoch",
    "ep": "epoch",
}
"""Words before a number that says how far a model was trained, and its unit."""
TIMES = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
_WORDS = "|".join(sorted(UNITS, key=len, reverse=True))
# A word and its number, as in step-1000, global_step1000, iter_0003000, ckpt-5B, epoch=2.5.
_TRAINED = re.compile(
    rf"(?<![a-z])({_WORDS})[-_ .:=]{{0,2}}(\d+(?:\.\d+)?)([kmbt](?![a-z]))?(?![a-z\d]|[_,]\d)",
    re.IGNORECASE,
)
# A whole number: Seed1.5 and seed-1-6 are versions.
_SEED = re.compile(r"(?<![a-z])seed[-_ .:=]{0,2}\d+(?![a-z\d]|[-_.,]\d)", re.IGNORECASE)
_AGAIN = re.compile(r"#(?:[a-z]+)?\d+$", re.IGNORECASE)
"""A number that tells runs of one model apart, as in name#2."""
_END = re.compile(rf"[-_ /.](?:(?:{_WORDS})[-_ ]?)?(?:final|last|best)$", re.IGNORECASE)
_BETWEEN = "-_ /.:=@|()"
_BEFORE = rf"(?:(?<![a-z])(?:global|revision|random|training|train)[{_BETWEEN}]*)?[{_BETWEEN}]*"
"""What comes before a step or a seed and does not identify the model."""


def trained_for(name: str) -> dict[str, set[float]]:
    """Return how far a model was trained, by its name: the numbers of each unit.

    Examples
    --------
    >>> trained_for("run/step-2k-epoch1")
    {'step': {2000.0}, 'epoch': {1.0}}
    """
    numbers: dict[str, set[float]] = {}
    for word, number, times in _TRAINED.findall(name):
        unit = UNITS[word.lower()]
        numbers.setdefault(unit, set()).add(float(number) * TIMES[times.lower()])
    return numbers


def training_run(name: str) -> tuple[str, bool]:
    """Return a model's name without its steps, epochs and seeds, and whether it has any.

    Model sizes, versions and dates stay: models of other sizes are other models. So does a decimal
    number after a word other than epoch, unless k, M, B or T follows: it is a version.

    Examples
    --------
    >>> training_run("pythia-160m-step1000"), training_run("A/epoch-2-seed-7")
    (('pythia-160m', True), ('A', True))
    >>> training_run("Llama-3.1-8B-Instruct"), training_run("step-3.5-flash")
    (('Llama-3.1-8B-Instruct', False), ('step-3.5-flash', False))
    """

    def without(match: re.Match[str]) -> str:
        word, number, times = match.groups()
        is_version = "." in number and not times and UNITS[word.lower()] != "epoch"
        return match[0] if is_version else "\0"

    marked = _AGAIN.sub("\0", _SEED.sub("\0", _TRAINED.sub(without, name.strip())))
    if "\0" not in marked:
        return _END.sub("", name.strip()), False
    parts = [part.strip(_BETWEEN) for part in re.split(_BEFORE + "\0", marked, flags=re.IGNORECASE)]
    return "-".join(filter(None, parts)) or UNNAMED, True


def seed_run(name: str) -> str:
    """Return the training run of a checkpoint: its name without step, where a seed stays.

    Examples
    --------
    >>> seed_run("A/seed-1/step-1000"), seed_run("step-1000"), seed_run("A")
    ('A/seed-1', 'run', 'A')
    """
    parts = re.split(_BEFORE + "\0", _TRAINED.sub("\0", name.strip()), flags=re.IGNORECASE)
    return "-".join(filter(None, (part.strip(_BETWEEN) for part in parts))) or UNNAMED


def families(names: Sequence[str], stated: Sequence[str] | None = None) -> list[str]:
    """Return the family of each model: the stated one, or its training run by the names.

    Models whose names differ only in a step, an epoch or a seed are of one training run (see
    `training_run`). A model without a stated family is of that of its training run.

    Parameters
    ----------
    names : sequence of str
    stated : sequence of str, optional
        Families that are known, "" where none is.

    Returns
    -------
    list of str
        "" for a model of no family.

    Examples
    --------
    >>> families(["A/step-1000", "A/step-2000", "A", "B/step-1000", "gpt-3.5"])
    ['A', 'A', 'A', '', '']
    >>> families(["A/step-1000", "A/step-2000"], ["A-long", ""])
    ['A-long', 'A-long']
    """
    known = [""] * len(names) if stated is None else [family.strip() for family in stated]
    runs = [training_run(name) for name in names]
    keys = [run.casefold() for run, _ in runs]
    is_run = {key for key, (_, has_step) in zip(keys, runs, strict=True) if has_step}
    sizes, labels = Counter(keys), dict[str, str]()
    for key in is_run:
        if sizes[key] > 1:
            of_run = dict.fromkeys(
                family for family, other in zip(known, keys, strict=True) if other == key and family
            )
            labels[key] = next(iter(of_run)) if len(of_run) == 1 else runs[keys.index(key)][0]
    return [family or labels.get(key, "") for family, key in zip(known, keys, strict=True)]


def families_of(scores: "Scores") -> list[str]:
    """Return the family of each model of a table, "" for a model of none (see `families`)."""
    return families(scores.model_ids, stated_families(scores))


def stated_families(scores: "Scores") -> list[str]:
    """Return the families that the models' table states, "" where it states none."""
    if FAMILY not in scores.models:
        return [""] * scores.n_models
    return [str(family).strip() for family in scores.models[FAMILY].fillna("")]


def models_in_words(scores: "Scores", groups: int | None = None) -> str:
    """Return how many models there are, and of how many families if these are fewer.

    Parameters
    ----------
    scores : Scores
    groups : int, optional
        Number of families, a model of none counted as one (default: by `families_of`).

    Examples
    --------
    >>> from fewbench import from_arrays
    >>> models_in_words(from_arrays([[1, 0], [1, 1]], models=["A/step-1000", "A/step-2000"]))
    '2 models of 1 training run'
    >>> models_in_words(from_arrays([[1, 0], [1, 1]], models=["a", "b"], families=["x", "x"]))
    '2 models of 1 family'
    """
    named = families_of(scores)
    if groups is None:
        groups = len({*named} - {""}) + named.count("")
    models = counted(scores.n_models, "model")
    if groups == scores.n_models:
        return models
    is_trained = all(named) and any(map(trained_for, scores.model_ids))
    if is_trained and len({*named}) == groups and not any(stated_families(scores)):
        return f"{models} of {counted(groups, 'training run')}"
    return f"{models} of {counted(groups, 'family', 'families')}"


def runs_note(scores: "Scores") -> list[str]:
    """Return which models are of one family by their names, if any are and none is stated.

    Examples
    --------
    >>> from fewbench import from_arrays
    >>> runs_note(from_arrays([[1, 0], [1, 1]], models=["A/step-1000", "A/step-2000"]))[0]
    '2 models count as 1 source model, as their names differ only in a step, epoch, seed or ...'
    """
    sizes = Counter(family for family in families_of(scores) if family)
    if not sizes or any(stated_families(scores)):
        return []
    runs = some((f"{run} ({counted(n, 'model')})" for run, n in sizes.items()), quotes=False)
    return [
        f"{counted(sizes.total(), 'model')} count as {counted(len(sizes), 'source model')}, as "
        f"their names differ only in a step, epoch, seed or repeat: {runs}. To change it, name "
        "their families"
    ]
