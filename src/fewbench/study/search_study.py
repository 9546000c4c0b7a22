"""compare --best: how soon each way of searching finds the best of several models."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from fewbench._json import Frozen
from fewbench._lazy import pandas as pd
from fewbench._names import counted
from fewbench._progress import OnStep
from fewbench._seeds import child_seed
from fewbench._types import FloatArray
from fewbench.algorithms.best_of_many import normal
from fewbench.errors import StudyError
from fewbench.executors import Executor, Lost, open_pool
from fewbench.methods.sources import whole_sources
from fewbench.scores import Scale, Scores, Unit
from fewbench.scores.roles import as_scores
from fewbench.show.page import Page, Section, Shown, Table
from fewbench.study.searching import SEARCHES, Found, Search, best
from fewbench.uncertainty.sampling import check_level

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
INTERVAL = 0.9
EQUAL = 1e-9
WANTED = 0.95
"""Share of searches that are right, for the number of answers that a search needs."""
TARGETS, REPEATS = 20, 100


class SearchResult(Frozen):
    """What a search found at a share of the answers, mean over repeats.

    Attributes
    ----------
    search : str
    share : float
        Share of the answers of all models to all items.
    right, right_error : float
        Share of repeats that found the best model, and its standard error.
    regret, regret_error : float
        By how much the best model's score is higher than that of the model found, on the user's
        scale, and its standard error.
    """

    search: str
    share: float
    right: float
    right_error: float
    regret: float
    regret_error: float


class Stops(Frozen):
    """How `best` stops.

    Attributes
    ----------
    stopped : float
        Share of repeats that stopped within the largest share of the answers.
    right : float or None
        The share of these whose model is the best, or within the margin of it.
    share : float or None
        Share of the answers until then, mean.
    bias : float or None
        Score of the model found less its true score, on the user's scale, mean.
    covered : float or None
        Share of 90% intervals that contain the true score.
    """

    stopped: float
    right: float | None
    share: float | None
    bias: float | None
    covered: float | None


class SearchStudy(Shown, Frozen):
    """How soon each way of searching finds the best of several models of a table.

    Attributes
    ----------
    results : tuple of SearchResult
    stops : Stops
        How `best` stops by itself.
    targets, sources, items, repeats : int
    neighbors : bool
        Whether the models were next in rank.
    margin : float
    level : float
    scale : Scale
    warnings : tuple of str
    """

    results: tuple[SearchResult, ...]
    stops: Stops
    targets: int
    sources: int
    items: int
    repeats: int
    neighbors: bool
    margin: float
    level: float
    scale: Scale
    warnings: tuple[str, ...] = ()

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per search and share."""
        rows = [result.model_dump() for result in self.results]
        return pd.DataFrame(rows).set_index(["search", "share"])

    def needed(self, search: str) -> float | None:
        """Return the share of the answers at which a search is right in 95%, or None."""
        before: SearchResult | None = None
        for now in (result for result in self.results if result.search == search):
            if now.right >= WANTED:
                if before is None:
                    return now.share
                rise = (WANTED - before.right) / (now.right - before.right)
                return before.share + rise * (now.share - before.share)
            before = now
        return None

    def page(self) -> Page:
        """Return which search needs the fewest answers, and how right each is."""
        names = list(dict.fromkeys(result.search for result in self.results))
        needed = {name: share for name in names if (share := self.needed(name)) is not None}
        kind = "next in rank" if self.neighbors else "drawn at random"
        title = f"the best of {self.targets:,} models {kind}, {counted(self.repeats, 'repeat')}"
        if needed:
            shares = [f"{name} {share:.1%}" for name, share in sorted(needed.items(), key=_second)]
            answer = f"answers for {WANTED:.0%} right: {', '.join(shares)}"
        else:
            answer = f"no search is right in {WANTED:.0%} of the repeats"
        return Page("compare", title, answer, [self._of_stops()], self.warnings, [self._table()])

    def _of_stops(self) -> str:
        stops, unit = self.stops, Unit(self.scale)
        if stops.right is None or stops.share is None or stops.covered is None:
            return "best never stops by itself within these shares."
        return (
            f"It stops by itself in {stops.stopped:.0%} of the repeats, on average "
            f"after {stops.share:.1%} of the answers; it is then right in {stops.right:.0%}. The "
            f"score that it states is {unit.points(abs(stops.bias or 0.0))} too "
            f"{'high' if (stops.bias or 0.0) > 0 else 'low'} on average, and its {INTERVAL:.0%} "
            f"interval contains the true score in {stops.covered:.0%}."
        )

    def _table(self) -> Section:
        unit = Unit(self.scale)
        rows = [
            [
                *(result.search, f"{result.share:.0%}", f"{result.right:.0%}"),
                f"{100 * result.right_error:.0f}",
                *(unit.number(result.regret, 1), unit.number(result.regret_error, 1)),
            ]
            for result in self.results
        ]
        head = [("Search", False), ("Answers", True), ("Right", True), ("± (pp)", True)]
        head += [(unit.points_title("regret"), True), ("±", True)]
        notes = [
            "Answers: share of the answers of all models to all items.",
            "Regret: by how much the best model is better than the model found.",
            "±: standard errors.",
        ]
        return Section("searches", "Searches", notes, tables=[Table("Searches", head, rows)])


def _second(pair: tuple[str, float]) -> float:
    return pair[1]


def compare_best(
    scores: Scores,
    targets: int = TARGETS,
    repeats: int = REPEATS,
    seed: int = 0,
    *,
    sources: int = 0,
    neighbors: bool = False,
    margin: float = 0.0,
    level: float = 0.95,
    shares: Sequence[float] = SHARES,
    workers: int = 1,
    executor: Executor = None,
    progress: OnStep | None = None,
) -> SearchStudy:
    """Compare ways of finding the best of several models, on models with known full scores.

    In each repeat, models are drawn from the table, and every search looks for the best of them:
    best (`fewbench.best`), successive halving, UCB-E, the same number of random items for all, and
    any model at random.

    Parameters
    ----------
    scores : Scores
        All models.
    targets : int
        Number of models among which the best is looked for.
    repeats : int
        Number of random draws.
    seed : int
        Random seed.
    sources : int
        Number of other models that serve as source models of `best`.
    neighbors : bool
        Draw models that are next to each other in rank, which are harder to tell apart.
    margin : float
        As for `fewbench.best`, on the scale of the scores.
    level : float
        Probability at which `best` stops.
    shares : sequence of float
        Shares of the answers of all models to all items.
    workers, executor
        As for `fewbench.compare`.
    progress : callable, optional
        Called with the numbers of finished repeats and of all.

    Raises
    ------
    StudyError
        If the table has too few models, or a number is out of range.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> study = compare_best(simulate(30, 200, seed=1), 6, repeats=4)
    >>> sorted({result.search for result in study.results})
    ['best', 'halving', 'random', 'ucb-e', 'uniform']
    """
    check_level(level)
    scores, warnings = whole_sources(as_scores(scores), 2, "compare")
    if not 2 <= targets <= scores.n_models - sources or sources < 0:
        raise StudyError(
            f"{targets} targets and {sources} source models of {scores.n_models} models",
            hint="use 2 targets or more, and no more models than the table has",
        )
    if repeats < 1 or margin < 0 or not all(0 < share <= 1 for share in shares) or not shares:
        raise StudyError(
            "repeats, the margin or a share of the answers is out of range",
            hint="use 1 repeat or more, a margin of 0 or more, and shares above 0 and up to 1",
        )
    values = np.asarray(scores.filled_cells[:], dtype=np.float64)
    if np.ptp(scores.item_weights):  # whose mean is the weighted one
        values = values.mean() + scores.item_weights * scores.n_items * (values - values.mean())
    own = partial(best, margin=margin / scores.scale.span, level=level)
    shared = (values, {**SEARCHES, "best": own}, targets, sources, neighbors, tuple(sorted(shares)))
    parts = [child_seed(seed, 30, repeat) for repeat in range(repeats)]
    done: list[list[list[tuple[Found, float, float]]]] = [[] for _ in parts]
    with open_pool(executor, workers) as pool:
        for n_done, (at, result) in enumerate(pool.each(_repeat, shared, parts), start=1):
            if isinstance(result, Lost):
                raise StudyError(f"repeat {at} was lost: {result}", hint="run it again")
            done[at] = result
            if progress is not None:
                progress(n_done, len(parts))
    span = scores.scale.span
    return SearchStudy(
        results=tuple(
            _summary(name, share, [one[row][column] for one in done], span)
            for row, name in enumerate(SEARCHES)
            for column, share in enumerate(sorted(shares))
        ),
        stops=_stops([one[[*SEARCHES].index("best")][-1] for one in done], margin, span),
        targets=targets,
        sources=sources,
        items=scores.n_items,
        repeats=repeats,
        neighbors=neighbors,
        margin=margin,
        level=level,
        scale=scores.scale,
        warnings=tuple(warnings),
    )


def draw_models(
    values: FloatArray, targets: int, sources: int, rng: np.random.Generator, *, neighbors: bool
) -> tuple[FloatArray, FloatArray | None]:
    """Return the answers of targets, drawn at random or next in rank, and of source models."""
    if neighbors:
        order = np.argsort(-values.mean(axis=1), kind="stable")
        start = int(rng.integers(0, max(1, int(0.6 * len(values)) - targets)))
        chosen = rng.permutation(order[start : start + targets])
    else:
        chosen = rng.permutation(len(values))[:targets]
    if not sources:
        return values[chosen], None
    rest = np.setdiff1d(np.arange(len(values)), chosen)
    return values[chosen], values[rng.permutation(rest)[:sources]]


def _repeat(
    shared: tuple[FloatArray, dict[str, Search], int, int, bool, tuple[float, ...]], seed: int
) -> list[list[tuple[Found, float, float]]]:
    """Return what each search found at each share, with that model's score and the best score."""
    values, searches, targets, sources, neighbors, shares = shared
    answers, others = draw_models(
        values, targets, sources, np.random.default_rng(seed), neighbors=neighbors
    )
    true = answers.mean(axis=1)
    budgets = [max(targets, int(share * answers.size)) for share in shares]
    searches = searches | {"best": partial(searches["best"], sources=others)}
    return [
        [
            (found, float(true[found.best]), float(true.max()))
            for found in search(answers, np.random.default_rng([seed, at]), budgets)
        ]
        for at, search in enumerate(searches.values())
    ]


def _summary(
    name: str, share: float, found: Sequence[tuple[Found, float, float]], span: float
) -> SearchResult:
    regret = np.array([top - score for _, score, top in found])
    right = regret <= EQUAL
    errors = [float(values.std() / np.sqrt(len(values))) for values in (right, regret * span)]
    return SearchResult(
        search=name,
        share=share,
        right=float(right.mean()),
        right_error=errors[0],
        regret=float(regret.mean()) * span,
        regret_error=errors[1],
    )


def _stops(found: Sequence[tuple[Found, float, float]], margin: float, span: float) -> Stops:
    stopped = [each for each in found if each[0].stopped]
    if not stopped:
        return Stops(stopped=0.0, right=None, share=None, bias=None, covered=None)
    off = np.array([one.score - score for one, score, _ in stopped])
    half = normal(INTERVAL) * np.array([one.error for one, _, _ in stopped])
    return Stops(
        stopped=len(stopped) / len(found),
        right=float(np.mean([top - score <= margin / span + EQUAL for _, score, top in stopped])),
        share=float(np.mean([one.share for one, _, _ in stopped])),
        bias=float(off.mean()) * span,
        covered=float((np.abs(off) <= half + EQUAL).mean()),
    )
