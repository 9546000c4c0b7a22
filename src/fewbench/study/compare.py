"""compare: backtest methods × budgets × splits × repeats on models with known full scores."""

import os
import platform
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version

import numpy as np

from fewbench._names import counted, fixed, some, split_names
from fewbench._progress import OnStep
from fewbench._version import __version__
from fewbench.errors import ClusterError, MissingExtraError, StudyError
from fewbench.evaluation.auto import RANDOM, Auto
from fewbench.evaluation.opening import check_budget, count_items
from fewbench.executors import Executor, Lost, Pool, open_pool
from fewbench.methods import CATALOGUE, Method, find_method
from fewbench.methods.base import AUTO
from fewbench.methods.catalogue import STRONGER
from fewbench.methods.needs import obstacle
from fewbench.methods.sources import missing_note, whole_sources
from fewbench.scores import Scores
from fewbench.scores.roles import as_scores
from fewbench.scores.table import credit_facts
from fewbench.study.cache import Cache
from fewbench.study.cell import Cell, CellResult, Failure, try_cell
from fewbench.study.comparison import REFERENCES, Comparison
from fewbench.study.inference import FEWEST_TARGETS
from fewbench.study.metrics import find_metric
from fewbench.study.splits import Split, SplitSettings, count_twins, make_split
from fewbench.study.summary import summarise
from fewbench.uncertainty.sampling import check_level

LEAST = 3
"""Models: two sources and a target."""
BUDGETS = (20, 50, 100)


def compare(
    scores: Scores,
    methods: str | Method | Sequence[str | Method] = ("fewbench", "greedy-ridge"),
    budgets: int | str | Sequence[int | str] | None = None,
    split: SplitSettings | str | Sequence[SplitSettings | str] | None = None,
    repeats: int = 10,
    seed: int = 0,
    *,
    sources: int | Sequence[int] | None = None,
    level: float | None = 0.9,
    metrics: str | Sequence[str] = (),
    workers: int = 1,
    executor: Executor = None,
    cache: str | os.PathLike[str] | None = None,
    progress: OnStep | None = None,
    facts: dict[str, str] | None = None,
) -> Comparison:
    """Compare methods on models with known full scores.

    random and random-ridge (ridge regression on random items) are always included. With tailored,
    kmedoids-ridge is included as well: it is as good on many tables. If a method fails on a split,
    the result shows why, and all other results are kept.

    Parameters
    ----------
    scores : Scores
        All models. Each split divides them into source models and targets.
    methods : str or Method, or several
        Names of methods, or parts joined by +. auto chooses a method in each repeat from the source
        models alone.
    budgets : int or str, or several, optional
        Numbers of items (default: 20, 50 and 100, if fewer than all). Or shares of each task's
        items, such as 10%: at least 20 of each task, or all of a smaller one.
    split : SplitSettings or the name of a split, or several
        How to split the models (default: random).
    repeats : int
        Number of random splits and seeds to average over.
    seed : int
        Random seed. Results do not depend on the number of workers.
    sources : int or several, optional
        Also estimate the same targets from only this many source models of each split, drawn at
        random, to show whether more source models would help.
    level : float or None
        Level of the intervals whose coverage is measured. Without a level, no coverage is.
    metrics : str or sequence of str
        Further metrics to show, such as rmse and rank_mae, or their means over tasks, task_mae and
        task_rank_mae.
    workers : int
        Number of processes.
    executor : Executor, optional
        Where to run, in place of processes of this machine: `dask-local`, `ray-local` (with
        `workers` processes), `dask://HOST:PORT`, `ray://HOST:PORT`, a Dask client, or an executor
        of concurrent.futures.
    cache : path, optional
        File or folder of finished cells, from which a stopped study continues (see
        `study.cache.Cache`). Your own methods always run again, because their name does not show
        changes of their code.
    progress : callable, optional
        Called with the numbers of finished cells and of all.
    facts : dict of str, optional
        Further facts to record.

    Raises
    ------
    MethodError, StudyError
        If a method is unknown, or a budget or split does not fit the scores.
    MissingExtraError
        If a method needs a package that is not installed.
    ClusterError
        If the cluster cannot be reached or is lost. Finished cells are in the cache.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> outcome = compare(simulate(n_models=24, n_items=60), ["random-linear"], [10], repeats=2)
    >>> outcome.cells["method"].tolist()
    ['random-linear', 'random', 'random-ridge']
    """
    if level is not None:
        check_level(level)
    scores, warnings = whole_sources(as_scores(scores), LEAST, "compare")
    metrics = split_names(metrics) if isinstance(metrics, str) else metrics
    for metric in metrics:
        find_metric(metric)
    if isinstance(methods, str):
        methods = split_names(methods)
    methods = methods if isinstance(methods, Sequence) else [methods]
    if budgets is None:
        n_items = scores.n_items
        budgets = [n for n in BUDGETS if n < n_items] or [-(-n_items // 2)]
    listed = [budgets] if isinstance(budgets, str | float | int | np.number) else list(budgets)
    counts = [count_items(budget, scores) for budget in listed]
    kinds = [split] if isinstance(split, str | SplitSettings) else split or ["random"]
    settings = [
        SplitSettings(kind) if isinstance(kind, str) else kind  # type: ignore[arg-type]
        for kind in kinds
    ]
    sizes = [] if sources is None else np.atleast_1d(sources).tolist()
    settings = [
        replace(kind, sources=n) for kind in settings for n in (kind.sources, *sorted(sizes))
    ]
    named = _named(methods)
    by_name = {*REFERENCES, *(method.strip() for method in methods if isinstance(method, str))}
    _check(scores, counts, repeats, seed, workers, settings)
    warnings += missing_note(scores)
    cells, nearest = list[Cell](), list[str]()
    for options in settings:
        kind = options.name
        splits = [make_split(scores, options, seed, repeat) for repeat in range(repeats)]
        distinct = splits if options.is_drawn else splits[:1]
        if options.sources not in sizes:  # the same targets as with all sources
            twins = count_twins(scores, distinct)
            warning = twins.warning(kind)
            warnings += [warning] if warning else []
            nearest.append(f"{kind} {fixed(twins.nearest)}")
            warnings += _few_targets(kind, distinct)
            warnings += _beyond(scores, kind, distinct)
        cells += [
            Cell(name, method, budget, kind, splits[repeat], repeat, seed, level, name in by_name)
            for budget in counts
            for name, method in named.items()
            for repeat in range(repeats)
        ]
    store = Cache(cache)
    with open_pool(executor, workers) as pool:
        results = run_cells(scores, cells, pool, store, progress)
    done = [
        (cell, result)
        for cell, result in zip(cells, results, strict=True)
        if isinstance(result, CellResult)
    ]
    warnings += _fewer(done) + _notes(done)
    outcome = summarise(
        scores,
        cells,
        results,
        _facts(scores, settings, repeats, seed)
        | {"nearest source": f"correlation of answers, median over targets: {', '.join(nearest)}"}
        | (facts or {}),
        warnings,
        seed,
        metrics,
    )
    return replace(outcome, metrics=tuple(metrics))


def _named(methods: Sequence[str | Method]) -> dict[str, Method]:
    named = {name: find_method(name) for name in REFERENCES}
    for method in methods:
        if isinstance(method, str):
            auto = method.strip() == AUTO
            named[method.strip()] = Auto() if auto else find_method(method)
        elif not isinstance(method, Method):
            raise StudyError(
                f"{type(method).__name__} is not a method",
                hint="give a name, or StaticMethod(selector, predictor)",
            )
        else:
            if method.describe() in (AUTO, *CATALOGUE):
                raise StudyError(
                    f"your method has the name {method.describe()!r} of a catalogue method",
                    hint="return a different name from describe()",
                )
            named[method.describe()] = method
    for method in list(named.values()):
        for name in method.beside:
            named.setdefault(name, find_method(name))
    for name, method in named.items():
        if (error := obstacle(method)) is not None:
            raise MissingExtraError(f"{name}: {error.message}", hint=error.hint)
    return named


def _check(
    scores: Scores,
    budgets: Sequence[int],
    repeats: int,
    seed: int,
    workers: int,
    settings: list[SplitSettings],
) -> None:
    if not budgets:
        raise StudyError("no budget is given", hint="give numbers of items, as --budgets 20,50")
    for budget in budgets:
        check_budget(budget, scores.n_items)
    if len(set(budgets)) < len(budgets):
        raise StudyError(f"a budget is given twice: {list(budgets)}", hint="give each one once")
    if repeats < 1 or workers < 1 or seed < 0:
        raise StudyError(
            f"repeats {repeats}, workers {workers}, seed {seed} is too low",
            hint="use 1 or more repeats and workers, and a seed of 0 or more",
            kind="range",
        )
    kinds = [setting.name for setting in settings]
    if len(set(kinds)) < len(kinds):
        raise StudyError(
            f"a split or number of sources is given twice: {some(kinds, 9)}",
            hint="give each one once",
        )


def _few_targets(kind: str, splits: list[Split]) -> list[str]:
    """Warn if repeats have few targets."""
    count = round(float(np.mean([len(split.targets) for split in splits])))
    if count >= FEWEST_TARGETS:
        return []
    return [
        f"{kind} split: only {counted(count, 'target')} per repeat (fewer than {FEWEST_TARGETS}): "
        "differences between methods are unreliable; use more models, or more repeats"
    ]


def _beyond(scores: Scores, kind: str, splits: list[Split]) -> list[str]:
    """Warn if many targets score above every source, or below."""
    full = scores.full_scores()
    shares = {
        "above": np.mean([(full[s.targets] > full[s.sources].max()).mean() for s in splits]),
        "below": np.mean([(full[s.targets] < full[s.sources].min()).mean() for s in splits]),
    }
    return [
        f"{kind} split: {share:.0%} of the targets score {end} every source: most methods that "
        "learn from the sources miss by more than their intervals there; "
        f"{', '.join(STRONGER)} and random sampling miss least"
        for end, share in shares.items()
        if share >= 0.5
    ]


def _fewer(done: list[tuple[Cell, CellResult]]) -> list[str]:
    """Warn of methods that ran fewer items than the budget, and than random sampling."""
    run: dict[str, dict[int, list[float]]] = {}
    for cell, result in done:
        of_method = run.setdefault(cell.name, {})
        of_method.setdefault(cell.budget, []).append(result.metrics["items_run"])
    warnings = []
    for name, budgets in run.items():
        means = {budget: float(np.mean(counts)) for budget, counts in budgets.items()}
        # Random sampling runs its budget, but for items that targets lack.
        of_random = {
            budget: float(np.mean(run.get(RANDOM, {}).get(budget, [budget]))) for budget in means
        }
        saved = [f"{mean:.1f} of {n}" for n, mean in means.items() if mean < of_random[n] - 0.5]
        if saved:
            warnings.append(
                f"{name} runs fewer items than its budget (mean {', '.join(saved)}), and the other "
                "methods run all: compare its errors with theirs at smaller budgets"
            )
    return warnings


def _notes(done: list[tuple[Cell, CellResult]]) -> list[str]:
    """Return the first note of each method on its predictions."""
    notes: dict[str, str] = {}
    for cell, result in done:
        for note in result.notes:
            notes.setdefault(cell.name, f"{cell.name} at {cell.budget} items: {note}")
    return list(notes.values())


def run_cells(
    scores: Scores, cells: list[Cell], pool: Pool, cache: Cache, progress: OnStep | None
) -> list[CellResult | Failure]:
    """Run cells, or take them from the cache; their results are in the order given.

    Raises ClusterError if the cluster is lost; finished cells are then in the cache.
    """
    keys = [cell.key(scores.fingerprint) for cell in cells]
    cached = cache.find(key for key, cell in zip(keys, cells, strict=True) if cell.cached)
    done: dict[str, CellResult | Failure] = dict(cached)
    todo = {key: cell for key, cell in zip(keys, cells, strict=True) if key not in done}
    # Cells with the same sources run together: methods cache what they learned of them.
    todo = dict(sorted(todo.items(), key=lambda entry: (entry[1].split_name, entry[1].repeat)))
    if progress is not None:
        progress(len(done), len(set(keys)))
    if not todo:
        return [done[key] for key in keys]
    calls = list(todo.items())
    try:
        # A fresh table takes along nothing of what was computed from it.
        shared = scores.changed() if pool.has_workers else scores
        for position, result in pool.each(_run_keyed, shared, calls):
            key, cell = calls[position]
            outcome = Failure(key, result.reason) if isinstance(result, Lost) else result
            done[key] = outcome
            if isinstance(outcome, CellResult) and cell.cached:
                cache.put(outcome)
            if progress is not None:
                progress(len(done), len(set(keys)))
    except ClusterError as error:
        if not set(done) & set(todo):
            raise
        raise ClusterError(
            f"{error.message}; {len(done)} of {len(set(keys))} results are finished",
            hint=f"{error.hint}; with a cache, the next call continues from the finished results",
        ) from error
    return [done[key] for key in keys]


def _run_keyed(scores: Scores, keyed: tuple[str, Cell]) -> CellResult | Failure:
    return try_cell(scores, keyed[1], keyed[0])


def _facts(
    scores: Scores, settings: list[SplitSettings], repeats: int, seed: int
) -> dict[str, str]:
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    return {
        "models": str(scores.n_models),
        "items": str(scores.n_items),
        "tasks": str(len(scores.tasks)),
        "full score": f"{scores.average} average",
        "splits": "; ".join(setting.describe() for setting in settings),
        "repeats": str(repeats),
        "seed": str(seed),
        "fingerprint": scores.fingerprint,
        "versions": f"fewbench {__version__}, Python {platform.python_version()}, {libraries}",
    } | credit_facts(scores)
