"""Rank: the order of several targets, and how sure it is."""

import itertools
from collections.abc import Sequence

import numpy as np
from pydantic import Field

from fewbench._json import Frozen
from fewbench._lazy import pandas as pd
from fewbench._names import counted, probability, some
from fewbench._types import BoolArray, FloatArray
from fewbench._warned import in_cell, issue
from fewbench.decide.allocation import allocate, chances_of_top
from fewbench.decide.history import Dated, history_of, history_section
from fewbench.decide.multiple import adjusted_p_values
from fewbench.decide.next_items import ask_items
from fewbench.decide.next_items import next_items as choose_next
from fewbench.decide.operands import (
    ONE_LOOK,
    Given,
    Operand,
    Pairing,
    check_next,
    contrast,
    operand,
    pairing,
    scores_of,
    warnings_of,
)
from fewbench.decide.words import AS_MODELS, on_these
from fewbench.errors import EvaluationError
from fewbench.evaluation.evaluation import Evaluation
from fewbench.scores import Average, Scale, Scores, Unit
from fewbench.scores.benchmark import average_notes
from fewbench.show.charts import deciding
from fewbench.show.page import Page, Section, Shown, Table
from fewbench.uncertainty.bounds import EXACT
from fewbench.uncertainty.sampling import check_level


class Ranked(Frozen):
    """One target's place.

    Attributes
    ----------
    target : str
    score : float
        Full score on these items, estimated if it did not run all; on the user's scale.
    rank : int
        1 is best.
    rank_low, rank_high : int
        Best and worst rank; the level applies to the ranges of all targets jointly.
    chance_best, chance_top : float
        Probability of rank 1, and of being among the best `top`.
    tied_with : tuple of str
        Targets that may be as good, worse or better.
    items_run : int
    """

    target: str
    score: float
    rank: int
    rank_low: int
    rank_high: int
    chance_best: float
    chance_top: float
    tied_with: tuple[str, ...]
    items_run: int


class Ranking(Shown, Frozen):
    """Targets from the best to the worst.

    Attributes
    ----------
    targets : tuple of Ranked
        In order of their estimated scores.
    scale : Scale
        The scale of the scores.
    average : str
        What a full score is: the mean over items (micro) or over task scores (macro).
    level : float
    top : int
        How many best targets are wanted.
    fixed_items : bool
        Whether ranges and probabilities are about exactly these items, of these runs. If not, they
        are about the models, on questions like these and if they run again.
    is_settled : bool
        Whether it is sure, at this level, which targets are the best `top`.
    is_decidable : bool
        Whether all items could settle it, if the differences stay.
    next_targets : tuple of str
        The targets to run more items of to settle the best `top`: the least sure one among them
        that more items can tell apart from its closest challenger, and this challenger.
    next_items : dict of str to tuple of str
        The items that each target runs next to settle the best `top`, the most informative first.
        Given if `next_items` says how many. Targets that need none are left out.
    pairing : Pairing or None
        How to run targets on the same items if some share few.
    is_limited : bool
        Whether a limit on cost leaves no further items of a target that settles it.
    history : tuple of Dated
        The targets that have a date, the oldest first, with the change from one to the next.
    warnings : tuple of str
    """

    targets: tuple[Ranked, ...]
    scale: Scale
    average: Average
    level: float
    top: int
    fixed_items: bool = False
    is_settled: bool
    is_decidable: bool = True
    items_total: int
    next_targets: tuple[str, ...]
    next_items: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    pairing: Pairing | None = None
    is_limited: bool = False
    history: tuple[Dated, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per target, the best first."""
        rows = [
            target.model_dump() | {"tied_with": ", ".join(target.tied_with)}
            for target in self.targets
        ]
        return pd.DataFrame(rows).set_index("target").assign(warnings=in_cell(self.warnings))

    def page(self) -> Page:
        """Return who ranks first, the ranks of all with their ranges, and what to run next."""
        unit = Unit(self.scale)
        head = [("Model", False), ("Rank", True), ("Range", True), ("Score", True)]
        head += [("P(best)", True), (f"P(top {self.top})", True), ("Items run", True)]
        head.append(("Not clearly different from", False))
        rows = [
            [
                *(target.target, str(target.rank), f"{target.rank_low} to {target.rank_high}"),
                *(
                    unit.score(target.score),
                    probability(target.chance_best),
                    probability(target.chance_top),
                ),
                *(f"{target.items_run:,}", some(target.tied_with, quotes=False)),
            ]
            for target in self.targets
        ]
        if self.top == 1:  # both columns say the same
            head, rows = head[:5] + head[6:], [row[:5] + row[6:] for row in rows]
        leading = [target.target for target in self.targets if target.rank <= self.top]
        best = ", ".join(leading)
        if len(leading) == 1:
            estimated = "an estimated " if self.targets[0].items_run < self.items_total else ""
            seen = f"{best} scores best, with {estimated}{unit.score(self.targets[0].score)}"
        else:
            seen = f"{best} score best"
        which = "model is" if self.top == 1 else f"{self.top} models are"
        settled = "decided" if self.is_settled else "undecided"
        about = f"As models, {AS_MODELS}" if not self.fixed_items else "On exactly these items"
        lesser = [
            f"{about}: which {which} the best of {len(rows)} is {settled} at {self.level:.0%}."
        ]
        if not self.is_settled and not self.is_decidable:
            lesser.append(
                f"Even all {counted(self.items_total, 'item')} would not decide it; more such "
                "questions, and repeated runs of the items, would."
            )
        lesser += average_notes(self.average)
        among = "the best" if self.top == 1 else f"among the best {self.top}"
        ranks = Section(
            "ranks",
            "Ranks",
            [f"The level of {self.level:.0%} applies to all rank ranges jointly."],
            charts=[(f"Models that may be {among} are colored", lambda: deciding.ranks(self))],
            tables=[Table("Ranks", head, rows, "a model")],
        )
        items = {f"{name}, {counted(len(chosen), 'item')}": ", ".join(chosen)
                 for name, chosen in self.next_items.items()}  # fmt: skip
        targets = " and ".join(self.next_targets)
        how = "repeat the command with --next-items NUMBER --ask, and with --sequential from now on"
        if self.is_limited:
            how = (
                "rerun the command of fewbench run with a larger --cost, and repeat this command "
                "with --sequential"
            )
        more = [f"run more items of {targets}: {how}"] * bool(targets)
        return Page(
            "rank",
            f"{len(rows)} models",
            f"{on_these(self.items_total)}, {seen}",
            lesser,
            self.warnings,
            [
                ranks,
                *([history_section(self.history, unit, self.level)] if self.history else []),
                *([Section("next", "Next items", facts=items)] if items else []),
            ],
            [*([self.pairing.command] if self.pairing else []), *more],
            first=self.pairing.note if self.pairing else "",
        )


def rank(
    *evaluations: Evaluation | tuple[Evaluation, str],
    models: Sequence[str] = (),
    top: int = 1,
    level: float = 0.9,
    sequential: bool = False,
    fixed_items: bool = False,
    next_items: int | None = None,
    ask: bool = False,
) -> Ranking:
    """Rank several models, with the probability of each rank.

    Ranges and probabilities are of the models, on questions like these and if they run again, or
    with `fixed_items` of exactly these items.

    The result is the order, each target's range of ranks, and which targets need more items. Its
    page also shows the history: scores and changes in the order of the runs' dates. Two
    targets differ if the interval of their difference excludes 0, as in fewbench versus. With more
    than two targets, p values are adjusted by Holm's rule for the number of pairs.

    Parameters
    ----------
    *evaluations : Evaluation or (Evaluation, str)
        Evaluations, all of whose targets with answers are ranked, or single targets.
    models : sequence of str
        Source models to rank as well, which ran all items.
    top : int
        Number of best targets that you want to find.
    level : float
        Level of the rank ranges, all together.
    sequential : bool
        Allow for checks after 10, 20, 40, … answers up to the budget, until the best `top` are
        settled: the ranges are valid for all of these checks together.
    fixed_items : bool
        Rank the scores on exactly these items, of these runs, and not the models.
    next_items : int, optional
        Number of further items to distribute over the targets so that they settle the best `top`.
    ask : bool
        With `next_items`: ask for these items. fewbench ask DIR then lists them.

    Raises
    ------
    EvaluationError
        With fewer than two targets, two of one name, or a `top` out of range.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> evaluation = Evaluation(simulate(30, 200, seed=1), "random", 40, ["a", "b"])
    >>> for name, score in (("a", 0.0), ("b", 1.0)):
    ...     asked = evaluation.ask()[name]
    ...     left = evaluation.tell(name, dict.fromkeys(asked, score))
    >>> found = rank(evaluation)
    >>> [one.target for one in found.targets], found.is_settled
    (['b', 'a'], True)
    """
    check_level(level)
    check_next(next_items, ask=ask)
    whole = [given for given in evaluations if isinstance(given, Evaluation)]
    targets: list[Given] = []
    for given in evaluations:
        if isinstance(given, Evaluation):
            answered = [name for name in given.targets if len(given.record.answered(name))]
            targets += [(given, name) for name in answered]
        elif isinstance(given, tuple):
            targets.append(given)
        else:
            raise EvaluationError(
                f"rank takes evaluations, not {type(given).__name__}",
                hint="name source models to rank with them: rank(evaluation, models=[...])",
            )
    if not evaluations or len(targets) + len(models) < 2:
        raise EvaluationError(
            f"{counted(len(targets) + len(models), 'target')} with answers, and ranking needs two",
            hint="record answers of more targets, or name source models to rank with them",
        )
    scores = scores_of(*evaluations)
    sides = [operand(target, scores, evaluations) for target in (*targets, *models)]
    names = [side.name for side in sides]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise EvaluationError(
            f"{twice!r} is ranked twice",
            hint="name single targets (DIR:TARGET), each name once",
        )
    if not 1 <= top < len(sides):
        raise EvaluationError(
            f"top = {top} is not possible with {len(sides)} targets",
            hint=f"use 1 to {len(sides) - 1}",
        )
    history = history_of(sides, scores, level, fixed_items=fixed_items)
    sides.sort(key=lambda side: (-round(float(side.estimates[0]), EXACT), side.name))
    pairs = {
        (i, j): contrast(
            sides[i], sides[j], level=level, sequential=sequential, fixed_items=fixed_items
        )
        for i, j in itertools.combinations(range(len(sides)), 2)
    }
    errors = np.zeros((len(sides), len(sides)))
    surely = np.zeros((len(sides), len(sides)), dtype=bool)
    adjusted = adjusted_p_values(np.array([pair.p_value for pair in pairs.values()]))
    for ((i, j), pair), p_value in zip(pairs.items(), adjusted, strict=True):
        errors[i, j] = errors[j, i] = pair.standard_error
        surely[i, j] = p_value <= 1 - level + 1e-12 and pair.difference > 0
    units = np.array([float(side.estimates[0]) for side in sides])
    best, among_top = (chances_of_top(units, errors, places) for places in (1, top))
    ranks = 1 + (np.round(units, EXACT)[:, None] < np.round(units, EXACT)).sum(axis=1)
    ranked = tuple(
        Ranked(
            target=side.name,
            score=float(scores.scale.from_unit(units[at])),
            rank=int(ranks[at]),
            rank_low=1 + int(surely[:, at].sum()),
            rank_high=len(sides) - int(surely[at].sum()),
            chance_best=float(best[at]),
            chance_top=float(among_top[at]),
            tied_with=tuple(
                sides[other].name
                for other in range(len(sides))
                if other != at and not surely[at, other] and not surely[other, at]
            ),
            items_run=len(side.items),
        )
        for at, side in enumerate(sides)
    )
    is_settled = bool(surely[:top, top:].all())
    of_items, lasting = np.zeros((2, len(sides), len(sides)))
    decidable = np.zeros((len(sides), len(sides)), dtype=bool)
    among_left = 1 - (1 - level) / max(int((adjusted > 1 - level).sum()), 1)
    for (i, j), pair in pairs.items():
        of_items[i, j], lasting[i, j] = of_items[j, i], lasting[j, i] = pair.standard_errors
        at_end = 0.0 if pair.questions is None else pair.questions.half(among_left)
        decidable[i, j] = not pair.is_known and (not at_end or at_end < pair.difference)
    is_decidable = is_settled or bool((surely | decidable)[:top, top:].all())
    next_targets = _next(sides, errors, decidable, top) if is_decidable and not is_settled else ()
    warnings = [*warnings_of(sides)]
    silent = [name for evaluation in whole for name in evaluation.targets if name not in names]
    if silent:
        warnings.append(f"{some(silent)}: no answers yet, so not ranked")
    if ask and not sequential:
        warnings.append(ONE_LOOK)
    issue(warnings)
    more = {}
    if next_items is not None and not is_settled:
        more = _next_items(sides, (of_items, lasting, decidable), top, next_items, scores)
    for side in sides if ask else ():
        ask_items([side], more.get(side.name, ()))
    return Ranking(
        targets=ranked,
        scale=scores.scale,
        average=scores.average,
        level=level,
        top=top,
        fixed_items=fixed_items,
        is_settled=is_settled,
        is_decidable=is_decidable,
        items_total=scores.n_items,
        next_targets=next_targets,
        next_items=more,
        pairing=pairing(sides),
        is_limited=any(side.is_limited for side in sides if side.name in next_targets),
        history=history,
        warnings=tuple(warnings),
    )


def _next(
    sides: list[Operand], errors: FloatArray, decidable: BoolArray, top: int
) -> tuple[str, ...]:
    """Return the pair across the boundary that is least sure, of those that items can decide.

    Without models that ran all items.
    """
    units = np.array([float(side.estimates[0]) for side in sides])
    best: tuple[float, int, int] | None = None
    for i in range(top):
        for j in range(top, len(sides)):
            error = float(errors[i, j])
            if error > 0 and decidable[i, j]:
                pair = float(units[i] - units[j]) / error, i, j
                best = pair if best is None else min(best, pair)
    if best is None:
        return ()
    return tuple(sides[at].name for at in best[1:] if not sides[at].is_known)


def _next_items(
    sides: list[Operand],
    errors: tuple[FloatArray, FloatArray, BoolArray],
    top: int,
    total: int,
    scores: Scores,
) -> dict[str, tuple[str, ...]]:
    """Return the items that each target runs next; targets run the same ones where they can.

    `errors` are those of differences that items not run leave, those that are left when all items
    ran, and the pairs that all items would decide.
    """
    of_items, lasting, decidable = errors
    counts = allocate(
        np.array([float(side.estimates[0]) for side in sides]),
        of_items,
        np.array([len(side.items) for side in sides]),
        np.array([side.is_known for side in sides]),
        *(top, total, scores.n_items),
        lasting,
        decidable,
    )
    chosen = [at for at in range(len(sides)) if counts[at]]
    if not chosen:
        return {}
    common = choose_next([sides[at] for at in chosen], int(counts.max()), scores)
    by_name = {}
    for at in chosen:
        items = common[: counts[at]]
        if len(items) < counts[at]:  # the others ran the rest
            of_side = choose_next([sides[at]], int(counts[at]), scores)
            more = of_side[~np.isin(of_side, items)][: counts[at] - len(items)]
            items = np.concatenate([items, more])
        by_name[sides[at].name] = tuple(scores.item_ids[items].tolist())
    return by_name
