"""Which models are sources and which are targets.

A target must have answered nearly every item, because its full score must be known (see
`fewbench.methods.sources.is_known`). Models that lack more are always sources, except that the
splits by date and score may leave them out.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fewbench._lazy import pandas as pd
from fewbench._names import did_you_mean, some
from fewbench._seeds import child_seed
from fewbench._types import BoolArray, IntArray
from fewbench.algorithms import ties
from fewbench.algorithms.soundness.likeness import TWIN_CORRELATION, nearest_twin
from fewbench.errors import StudyError
from fewbench.methods.sources import NEARLY_COMPLETE, is_known
from fewbench.scores import Scores
from fewbench.scores.families import FAMILY, families_of

Kind = Literal["random", "every", "given", "chronological", "performance", "weakest", "group"]
KINDS: tuple[Kind, ...] = get_args(Kind)
EXTRAPOLATE = ("performance", "weakest")
"""Splits whose targets score above all sources, or below them."""


@dataclass(frozen=True, eq=False)
class Split:
    """Positions of source and target models, in table order, without overlap.

    `seed` is that of the methods, by default one of the repeat.
    """

    sources: IntArray
    targets: IntArray
    seed: int | None = None


@dataclass(frozen=True)
class SplitSettings:
    """How to split the models.

    Parameters
    ----------
    kind : str
        random: random targets (interpolation). every: every k-th model (DISCO's IID).
        given: by the models' column `role`. chronological: the newest models, by `date`.
        performance: the strongest models (extrapolation). weakest: the weakest models.
        group: whole groups, drawn at random.
    targets : float
        Share of the models that are targets.
    gap : float
        performance, weakest: share of models to leave out between sources and targets.
    group_by : str
        group: the models' column.
    resample : bool
        Draw sources and targets with replacement from the split's own, and keep those drawn
        (DISCO's bootstrapped chronological split), again for each repeat.
    sources : int, optional
        Keep only this many of the split's source models, drawn at random. The targets stay the
        same.
    most : int, optional
        Keep at most this many targets, drawn at random.
    """

    kind: Kind = "random"
    targets: float = 0.25
    gap: float = 0.0
    group_by: str = "family"
    resample: bool = False
    sources: int | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise StudyError(
                f"unknown split {self.kind!r}", hint=did_you_mean(self.kind, KINDS), kind="unknown"
            )
        if not 0.0 < self.targets < 1.0:
            raise StudyError(f"targets {self.targets} is not a share", hint="use 0.25, for example")
        if self.kind == "every" and self.targets > 0.5:
            raise StudyError(
                f"targets {self.targets} is too large for split every", hint="use at most 0.5"
            )
        if self.gap and self.kind not in EXTRAPOLATE:
            raise StudyError(
                f"split {self.kind} cannot have a gap", hint="use split performance or weakest"
            )
        if self.sources is not None and self.sources < 2:
            raise StudyError(
                f"sources {self.sources} is too low",
                hint="keep at least 2 source models",
                kind="range",
            )
        if not 0.0 <= self.gap < 1.0 - self.targets:
            raise StudyError(
                f"gap {self.gap} and targets {self.targets} leave no sources",
                hint="lower one of the two shares",
            )

    @property
    def is_drawn(self) -> bool:
        """Whether repeats have different splits."""
        drawn = self.resample or self.sources is not None or self.most is not None
        return drawn or self.kind in ("random", "group")

    @property
    def name(self) -> str:
        """The kind, after the number of source models if that is set."""
        return self.kind if self.sources is None else f"{self.sources}-source {self.kind}"

    def describe(self) -> str:
        """Return the settings in words."""
        words = self.kind if self.kind == "given" else f"{self.kind}, {self.targets:.0%} targets"
        if self.gap:
            words += f", gap {self.gap:.0%}"
        if self.kind == "group":
            words += f", by {self.group_by}"
        if self.sources is not None:
            words += f", {self.sources} sources"
        if self.most is not None:
            words += f", {self.most} of them a repeat"
        return words + (", resampled" if self.resample else "")


def whole_split(name: str) -> str:
    """Return the name of the split with all of its source models.

    >>> whole_split("10-source random"), whole_split("random")
    ('random', 'random')
    """
    return name.partition("-source ")[2] or name


def make_split(scores: Scores, settings: SplitSettings, seed: int, repeat: int) -> Split:
    """Split the models; repeats of a split without randomness are the same.

    Raises
    ------
    StudyError
        If the scores lack what the split needs, too few sources or no target is left.
    """
    rng = np.random.default_rng(child_seed(seed, 2, repeat))
    complete = is_known(scores)
    count = max(1, round(settings.targets * scores.n_models))
    if settings.kind == "given":
        sources, targets = _given(scores)
        missing = targets[~complete[targets]]
        if len(missing):
            raise StudyError(
                f"the full scores of targets {some(scores.models.index[missing])} are not known: "
                f"they lack more than {NEARLY_COMPLETE:.0%} of the items",
                hint="make them sources, or drop what is incomplete: fewbench audit "
                "--drop incomplete",
            )
    elif settings.kind == "random":
        targets = rng.permutation(np.flatnonzero(complete))[:count]
        sources = np.setdiff1d(np.arange(scores.n_models), targets)
    elif settings.kind == "every":
        step = max(2, round(1 / settings.targets))
        every = np.arange(step - 1, scores.n_models, step)
        targets = every[complete[every]]
        sources = np.setdiff1d(np.arange(scores.n_models), targets)
    elif settings.kind == "group":
        groups = _column(scores, settings.group_by)
        targets = _whole_groups(groups, complete, count, rng)
        sources = np.flatnonzero(~np.isin(groups, groups[targets]))
    else:
        levels = ties.levels(scores.full_scores())
        by: NDArray[Any] = -levels if settings.kind == "weakest" else levels
        if settings.kind == "chronological":
            by = _dates(scores)
        order = np.argsort(by, kind="stable")
        gap = round(settings.gap * scores.n_models)
        sources = order[: max(0, scores.n_models - count - gap)]
        last = order[scores.n_models - count :]
        targets = last[complete[last]]
    if settings.resample:
        sources = np.unique(rng.choice(sources, len(sources)))
        targets = np.unique(rng.choice(targets, len(targets)))
    if settings.sources is not None:
        if settings.sources > len(sources):
            raise StudyError(
                f"{settings.sources} source models are wanted, and the {settings.kind} split has "
                f"{len(sources)} in repeat {repeat}",
                hint=f"use {len(sources)} or fewer, or a smaller share of targets",
            )
        sources = drawn_sources(sources, settings.sources, seed, repeat)
    if settings.most is not None:
        kept = np.random.default_rng(child_seed(seed, 13, repeat)).permutation(targets)
        targets = kept[: settings.most]
    if len(sources) < 2 or not len(targets):
        raise StudyError(
            f"the split leaves {len(sources)} sources and {len(targets)} complete targets",
            hint="use a different share of targets, or a different split"
            if complete.any()
            else f"every model lacks more than {NEARLY_COMPLETE:.0%} of the items and cannot be a "
            "target: run what is missing",
        )
    return Split(np.sort(sources), np.sort(targets))


def drawn_sources(sources: IntArray, n: int, seed: int, repeat: int) -> IntArray:
    """Draw n of a split's sources, from a stream of its own: the targets are the same for all n."""
    kept = np.random.default_rng(child_seed(seed, 9, repeat)).permutation(sources)
    return np.sort(kept[:n])


def _given(scores: Scores) -> tuple[IntArray, IntArray]:
    role = _column(scores, "role")
    wrong = sorted({str(value) for value in role} - {"source", "target"})
    if wrong:
        raise StudyError(
            f"unknown roles {some(wrong)} in the column 'role'",
            hint="use source and target",
            kind="unknown",
        )
    return np.flatnonzero(role == "source"), np.flatnonzero(role == "target")


def _column(scores: Scores, name: str) -> NDArray[np.object_]:
    if name == FAMILY and any(families := families_of(scores)):
        if FAMILY not in scores.models:  # a model of no training run is a family of its own
            pairs = zip(families, scores.model_ids, strict=True)
            families = [family or model for family, model in pairs]
        return np.array(families, dtype=object)
    if name not in scores.models:
        make = " make it with fewbench audit SCORES --families -o FILE," if name == "family" else ""
        raise StudyError(
            f"the models have no column {name!r}",
            hint=f"their columns: {some(scores.models.columns, 9) or 'none'};{make} add the column "
            "when importing, or use a different split",
        )
    column = scores.models[name].to_numpy(dtype=object)
    return np.array(["" if pd.isna(value) else str(value) for value in column], dtype=object)


def _dates(scores: Scores) -> NDArray[np.datetime64]:
    dates = _column(scores, "date")
    without = [
        model for model, date in zip(scores.model_ids, dates, strict=True) if not str(date).strip()
    ]
    if without:
        raise StudyError(
            f"{len(without)} models have no date: {some(without)}",
            hint="add their dates, or use a different split",
        )
    parsed = pd.to_datetime(pd.Series(dates), format="ISO8601", errors="coerce", utc=True)
    if parsed.isna().any():
        at = int(np.flatnonzero(parsed.isna())[0])
        raise StudyError(
            f"{int(parsed.isna().sum())} dates cannot be read, the first of them {dates[at]!r} of "
            f"{scores.model_ids[at]!r}",
            hint="write dates as 2026-01-31",
        )
    return parsed.to_numpy("datetime64[ns]")


def _whole_groups(
    groups: NDArray[np.object_],
    complete: BoolArray,
    count: int,
    rng: np.random.Generator,
) -> IntArray:
    """Draw groups in random order, but none that would exceed `count` by half of its size.

    If all would, take the smallest group.
    """
    if any(not str(group).strip() for group in groups):
        raise StudyError("some models have no group", hint="name a group for each model")
    names = np.unique(groups.astype(str))
    if len(names) < 2:
        raise StudyError("all models are in one group", hint="use a different split")
    taken = np.zeros(len(groups), dtype=bool)
    for name in rng.permutation(names):
        members = groups.astype(str) == name
        if taken.sum() + members.sum() / 2 <= count:
            taken |= members
    if not taken.any():
        taken = groups.astype(str) == min(
            names, key=lambda name: (groups.astype(str) == name).sum()
        )
    return np.flatnonzero(taken & complete)


@dataclass(frozen=True)
class TwinCount:
    """Targets over all repeats, and those with (nearly) the answers of a source.

    `nearest` is the median over targets of the correlation of their answers with those of their
    nearest source.
    """

    targets: int
    twins: int
    identical: int
    examples: tuple[str, ...]
    nearest: float

    def warning(self, split: str) -> str | None:
        """Return a warning, or None if no target has a twin."""
        if not self.twins:
            return None
        advice = "" if split == "group" else "; compare with a split by group"
        return (
            f"{split} split: {self.twins} of {self.targets} targets "
            f"({self.twins / self.targets:.0%}) have a source with answers correlated at "
            f"{TWIN_CORRELATION:g} or more, {self.identical} of them with the same answers, e.g. "
            f"{some(self.examples, 2, quotes=False)}: errors for models without such a source will "
            "be larger"
            f"{advice}"
        )


def count_twins(scores: Scores, splits: list[Split]) -> TwinCount:
    """Count targets with (nearly) the answers of a source, over the splits."""
    targets = twins = identical = 0
    examples: dict[str, None] = {}
    correlations = []
    for split in splits:
        sources, targets_cells = (
            scores.filled_cells[split.sources],
            scores.filled_cells[split.targets],
        )
        r, which = nearest_twin(targets_cells, sources)
        correlations.append(r)
        near = np.flatnonzero(r >= TWIN_CORRELATION)
        targets += len(targets_cells)
        twins += len(near)
        identical += int((targets_cells == sources[which]).all(axis=1).sum())
        for at in near:
            target = scores.model_ids[split.targets[at]]
            examples.setdefault(f"{target} ~ {scores.model_ids[split.sources[which[at]]]}")
    nearest = float(np.median(np.concatenate(correlations)))
    return TwinCount(targets, twins, identical, tuple(examples), nearest)
