"""Verify: whether a submission's answers hold when some of its items run again."""

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np

from fewbench._json import Frozen
from fewbench._lazy import pandas as pd
from fewbench._names import counted, fixed, some
from fewbench._seeds import child_seed
from fewbench._types import FloatArray
from fewbench._warned import in_cell, issue
from fewbench.decide.operands import Given, Operand, operands
from fewbench.errors import AnswersError, EvaluationError
from fewbench.evaluation.interval import Interval
from fewbench.scores import Scale, Scores, Unit
from fewbench.show.page import Page, Section, Shown, Table
from fewbench.uncertainty.bounds import EXACT
from fewbench.uncertainty.sampling import check_level, exact_interval, hypergeometric

Verdict = Literal["inflated", "not proven", "open"]
FALSE_SHARES = (0.05, 0.1, 0.2, 0.3)
"""Shares of false answers whose chances to be noticed are shown."""
NEIGHBORS = 20
"""Source models of the nearest scores, to which a submission's answers are compared."""


class Rerun(Frozen):
    """An item that ran again with a different score.

    Attributes
    ----------
    item, task : str
    submitted, rerun : float
        Scores on the scale of the benchmark.
    """

    item: str
    task: str
    submitted: float
    rerun: float


class Chance(Frozen):
    """How likely false answers are noticed.

    Attributes
    ----------
    false_share : float
        Share of the submitted answers that are better than those of the model.
    seen : float
        Probability that at least one of them is among the items that run again.
    proven : float
        Probability that as many are as prove it, if no answer of the rerun is better.
    """

    false_share: float
    seen: float
    proven: float


class Verification(Shown, Frozen):
    """Which items run again, and what their answers prove.

    Attributes
    ----------
    target : str
    items : tuple of str
        The drawn items, in the order of the draw: each prefix is a random sample, too.
    items_submitted : int
        Number of items that the submission has answers to.
    items_rerun : int
        Number of drawn items that ran again.
    seed : int
    level : float
    noise : float or None
        Share of the answers that may change between two runs of the model, as given.
    verdict : str
        inflated if the submission's answers are surely better than those of the rerun, not proven
        if not, open before the rerun.
    p_value : float or None
        Probability of at least as many differences if the submission is honest.
    higher, lower : Interval or None
        Share of all submitted answers that are better, or worse, than a rerun's.
    n_higher, n_lower : int
    different : tuple of Rerun
        The items with a different score.
    chances : tuple of Chance
        What the draw notices.
    fit : float or None
        Share of the source models of the nearest scores whose answers follow the difficulty of the
        items less than the submitted ones do. None with fewer than 20 source models.
    scale : Scale
    warnings : tuple of str
    """

    target: str
    items: tuple[str, ...]
    items_submitted: int
    items_rerun: int = 0
    seed: int
    level: float
    noise: float | None = None
    verdict: Verdict = "open"
    p_value: float | None = None
    higher: Interval | None = None
    lower: Interval | None = None
    n_higher: int = 0
    n_lower: int = 0
    different: tuple[Rerun, ...] = ()
    chances: tuple[Chance, ...]
    fit: float | None = None
    scale: Scale
    warnings: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 if the submission is inflated, else 0."""
        return int(self.verdict == "inflated")

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per item with a different score."""
        columns = ["item", "task", "submitted", "rerun"]
        rows = [row.model_dump() for row in self.different]
        frame = pd.DataFrame(rows, columns=columns).set_index("item")
        return frame.assign(warnings=in_cell(self.warnings))

    def page(self) -> Page:
        """Return what the rerun proves, the items that differ, and what it would notice."""
        unit, sure = Unit(self.scale), f"{self.level:.0%}"
        sections, lesser, further = list[Section](), list[str](), list[str]()
        drawn, ran = counted(len(self.items), "item"), counted(self.items_rerun, "item")
        submitted = counted(self.items_submitted, "submitted answer")
        if self.higher is None or self.lower is None or self.p_value is None:
            answer = f"Run {drawn} of {self.target} again"
            further = [
                "run them with the model yourself, then repeat the command with your ANSWERS after "
                "the submission"
            ]
        else:
            found = (
                f"{self.n_higher} of {ran} have a better score in the submission, {self.n_lower} a "
                "worse one"
            )
            answer = f"{self.target}: nothing is proven; {found}"
            if self.verdict == "inflated":
                answer = f"{self.target} is inflated: {found}"
            honest = "both runs are of one model"
            if self.noise is not None:
                honest += f" whose answers change in at most {self.noise:.0%} of the items"
            if self.p_value < 1:
                lesser.append(
                    f"If {honest}, so many differences or more have a probability of at most "
                    f"{_rounded_up(self.p_value)}; {1 - self.level:.2g} or less is a proof."
                )
            lesser.append(
                f"At {sure}, {_share(self.higher)} of the {submitted} are better than a rerun's, "
                f"and {_share(self.lower)} worse."
            )
            rows = [
                [row.item, row.task, unit.score(row.submitted), unit.score(row.rerun)]
                for row in self.different
            ]
            head = [("Item", False), ("Task", False), ("Submitted", True), ("Rerun", True)]
            table = Table("Items that differ", head, rows, "an item")
            sections += [Section("different", "Items that differ", tables=[table])] if rows else []
        if self.fit == 0:
            lesser.append(
                f"A hint, and no proof: the answers follow the difficulty of the items less than "
                f"those of all {NEIGHBORS} source models of the nearest scores. About 1 in "
                f"{NEIGHBORS + 1} honest models does."
            )
        note = (
            f"Probabilities, if so many of the {submitted} are better than the model's, and no "
            "answer of the rerun is better: each that is makes a proof rarer."
        )
        rows = [[f"{c.false_share:.0%}", f"{c.seen:.0%}", f"{c.proven:.0%}"] for c in self.chances]
        head = [("False answers", True), ("At least one is seen", True), ("Proven", True)]
        sections.append(
            Section(
                "chances",
                "What the draw notices",
                [note],
                tables=[Table("What the draw notices", head, rows)],
                facts={"Seed": str(self.seed)},
            )
        )
        return Page("verify", self.target, answer, lesser, self.warnings, sections, further)


def verify(
    submission: Given,
    rerun: Mapping[str, float] | None = None,
    *,
    seed: int,
    budget: int = 20,
    level: float = 0.99,
    noise: float | None = None,
    scores: Scores | None = None,
) -> Verification:
    """Check a submission by running some of its items again.

    Draws random items of a submission. Run the model on them yourself, and call again with your
    answers. If both runs are of one model, its answers change for the better as often as for the
    worse: the probability of so many better answers in the submission is that of as many heads of a
    coin. That is exact for any model, however much its answers vary.

    It compares answers. It does not show whether a model has seen the items before.

    Parameters
    ----------
    submission : Evaluation, (Evaluation, str) or str
        Evaluation with the submitted answers, or, with `scores`, the name of a model of this table.
    rerun : mapping of str to float, optional
        Your scores by item id, on the scale of the benchmark (default: none yet).
    seed : int
        Random seed that the submitter does not know. Publish it with the result.
    budget : int
        Number of items that run again. With the same seed, a larger number begins with the same
        items.
    level : float
        Level of the verdict: an honest submission is called inflated with a probability of at most
        1 - level.
    noise : float, optional
        Largest share of the answers that change between two runs, such as 0 for a model without
        randomness: fewer differences then prove it.
    scores : Scores, optional
        Table with the submitted answers, or the source scores of the evaluation.

    Raises
    ------
    EvaluationError
        If the submission has no answers, or fewer than the wanted items.
    AnswersError
        If none of the drawn items ran again.

    References
    ----------
    McNemar, "Note on the sampling error of the difference between correlated proportions or
    percentages", Psychometrika 1947; the sign test where scores are not right or wrong.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> table = simulate(4, 200, seed=1)
    >>> drawn = verify("model-01", seed=8231, scores=table).items
    >>> len(drawn), verify("model-01", seed=8231, budget=5, scores=table).items == drawn[:5]
    (20, True)
    >>> honest = dict(zip(table.item_ids, table.values[1], strict=True))
    >>> verify("model-01", honest, seed=8231, scores=table).verdict
    'not proven'
    >>> wrong = dict.fromkeys(table.item_ids, 0.0)
    >>> found = verify("model-01", wrong, seed=8231, scores=table)
    >>> found.verdict, found.n_higher, found.n_lower
    ('inflated', 8, 0)
    """
    check_level(level)
    if noise is not None and not 0 <= noise < 1:
        raise EvaluationError(
            f"a noise of {noise:g} is not a share of the answers", hint="use 0 to 1, such as 0.02"
        )
    (side,), table, notes = operands(submission, scores=scores)
    n, ids = len(side.items), table.item_ids
    if not 0 < budget <= n:
        raise EvaluationError(
            f"{budget:,} items are to run again, and {side.name!r} has {counted(n, 'answer')}",
            hint=f"use 1 to {n:,}" if n else "record the submission first: fewbench tell",
        )
    order = np.argsort(ids[side.items].astype(str), kind="stable")  # whatever the table's order
    drawn = order[np.random.default_rng(child_seed(seed, 68)).permutation(n)[:budget]]
    places = side.items[drawn]
    verification = Verification(
        target=side.name,
        items=tuple(ids[places].tolist()),
        items_submitted=n,
        seed=seed,
        level=level,
        noise=noise,
        chances=tuple(_chance(share, n, budget, level, noise) for share in FALSE_SHARES),
        fit=_fit(side, table),
        scale=table.scale,
        warnings=notes,
    )
    if rerun is None:
        issue(notes)
        return verification
    submitted = side.answers.scores[0][drawn]
    found = np.array([rerun.get(ids[at], np.nan) for at in places], dtype=np.float64)
    ran = np.flatnonzero(~np.isnan(found))
    if not len(ran):
        raise AnswersError(
            f"none of the {counted(budget, 'item')} drawn from {side.name!r} ran again",
            hint="run them: fewbench verify with the same --seed prints their ids",
        )
    warnings = list(notes)
    if lacking := [item for at, item in enumerate(verification.items) if at not in set(ran)]:
        warnings.append(
            f"{counted(len(lacking), 'drawn item')} without an answer of yours: {some(lacking)}. "
            "The verdict counts on the others; it holds if their answers are not the reason"
        )
    issue(warnings)
    differences = np.round(submitted[ran] - table.scale.to_unit(found[ran]), EXACT)
    better, worse = int((differences > 0).sum()), int((differences < 0).sum())
    p_value = _tail(better, better + worse, 0.5)
    if noise is not None:
        p_value = min(1.0, 2 * min(p_value, _tail(better + worse, len(ran), noise)))
    higher, lower = (exact_interval(count, len(ran), n, level) for count in (better, worse))
    is_inflated = better > worse and p_value <= 1 - level + 1e-12
    of_scale = table.scale.from_unit
    rows = [
        Rerun(
            item=str(ids[places[at]]),
            task=table.tasks[table.task_of[places[at]]],
            submitted=float(of_scale(submitted[at])),
            rerun=float(found[at]),
        )
        for at in ran[np.flatnonzero(differences)]
    ]
    update = {
        "items_rerun": len(ran),
        "verdict": "inflated" if is_inflated else "not proven",
        "p_value": p_value,
        "higher": Interval.between(higher),
        "lower": Interval.between(lower),
        "n_higher": better,
        "n_lower": worse,
        "different": tuple(rows),
        "warnings": tuple(warnings),
    }
    return verification.model_copy(update=update)


def _tail(count: int, n: int, share: float) -> float:
    """Return the probability of `count` or more of n, each with this probability.

    >>> _tail(7, 7, 0.5), _tail(0, 0, 0.5), _tail(1, 20, 0.0)
    (0.0078125, 1.0, 0.0)
    """
    terms = (math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(count, n + 1))
    return min(1.0, math.fsum(terms))


def _chance(share: float, n: int, items: int, level: float, noise: float | None) -> Chance:
    """Return how likely a share of false answers is noticed if no other answer changes."""
    false = np.array(round(share * n))
    counts = np.arange(min(items, int(false)) + 1)
    chances: FloatArray = hypergeometric(counts, n, false, items)
    p_values = np.array([_tail(count, count, 0.5) for count in counts.tolist()])
    if noise is not None:
        of_noise = np.array([_tail(count, items, noise) for count in counts.tolist()])
        p_values = 2 * np.minimum(p_values, of_noise)
    is_proof = (counts > 0) & (p_values <= 1 - level + 1e-12)
    return Chance(
        false_share=share,
        seen=float(chances[1:].sum()),
        proven=float(chances[is_proof].sum()),
    )


def _fit(side: Operand, table: Scores) -> float | None:
    """Return the share of similar source models that follow the items' difficulty less."""
    rows = [at for at, name in enumerate(table.model_ids) if name != side.name]
    cells = table.cells[rows][:, side.items] if rows else np.empty((0, len(side.items)))
    cells = cells[~np.isnan(cells).any(axis=1)]
    if len(cells) < NEIGHBORS or len(side.items) < NEIGHBORS:
        return None
    own = side.answers.scores[0]
    near = np.argsort(np.abs(cells.mean(axis=1) - own.mean()), kind="stable")[:NEIGHBORS]
    easy = cells.sum(axis=0)
    follows = [_correlation(cells[at], easy - cells[at]) for at in near]
    return float(np.mean(np.array(follows) < _correlation(own, easy)))


def _correlation(answers: FloatArray, easy: FloatArray) -> float:
    if np.ptp(answers) < 1e-9 or np.ptp(easy) < 1e-9:
        return 0.0
    return round(float(np.corrcoef(answers, easy)[0, 1]), EXACT)


def _share(ends: Interval) -> str:
    """Return the ends of a share, or its end alone if it begins at 0."""
    if ends.low <= 0:
        return f"at most {ends.high:.0%}"
    return f"{ends.low:.0%} to {ends.high:.0%}"


def _rounded_up(p: float) -> str:
    """Return a probability that is not printed lower than it is.

    >>> _rounded_up(0.0078125), _rounded_up(1.0), _rounded_up(2e-9)
    ('0.0079', '1', '0.0001')
    """
    return "1" if p >= 1 else fixed(max(math.ceil(p * 1e4) / 1e4, 1e-4), 4)
