"""The constant c of BenTo's similarity: the paper's ablation, and constants chosen by data."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fewbench.scores import Scores
from fewbench.study.metrics import nrmse
from fewbench_papers.bento import Similarity, TaskMatrix, TaskResults, Transferability, read_chooser
from fewbench_papers.bento.choosers import mismatch
from fewbench_papers.bento.held_out import HeldOutTasks
from fewbench_papers.bento.judgement import resampled_models
from papers.bento_data import KS, OTHERS, RELEASED, in_order, others, released, row, table_of
from papers.methods.bento import MatchedLe, sets_of
from papers.record import Context, Study, without_duplicates

MOST = 10  # tasks: the paper's k goes from 1 to 10 on MMLU
SIZES = range(1, MOST + 1)
DRAWS = 1000  # values of t, as in the paper
DEFAULT = 1.5
VALUES = sorted({DEFAULT, *np.round(np.geomspace(1.01, 50, 20), 2).tolist()})
BOOTSTRAPS = 50
TABLES = {  # of source scores with tasks, and numbers of tasks
    "llmub_mmlu.npz": (3, 5, 10),
    "mmlu_pro_32.npz": (2, 3, 5),
    "openllm2_math_musr.npz": (2, 3),
    "helm_math.npz": (2, 3),
}


def written(components: int, t: float) -> str:
    return f"bento-le(components={components},t={t})"


def order(matrix: TaskMatrix, components: int, t: float) -> np.ndarray:
    return read_chooser(written(components, t)).order(matrix, MOST, 0).tasks


def estimates(results: TaskResults, tasks: np.ndarray) -> np.ndarray:
    """Scores on the first k of the tasks, shape (numbers of tasks, models)."""
    return np.array([results.reduced(tasks[:k]) for k in SIZES])


def ablation(context: Context) -> str:
    """Section 5.2: 1,000 values of t, and what they change."""
    results, transfer, lists = released(context)
    matrix, rng = TaskMatrix.of_transfer(transfer), np.random.default_rng(0)
    drawn = np.maximum(rng.uniform(1, 50, DRAWS), 1.01)

    def errors(tasks) -> np.ndarray:
        return nrmse(estimates(results, np.asarray(tasks)), results.full)

    def line(name: str, orders: Sequence, standard: np.ndarray) -> str:
        found = np.array([errors(one) for one in orders])
        different = len({tuple(one) for one in orders})
        average = int((found.mean(axis=1) < standard.mean() - 1e-12).sum())
        best = int((found.min(axis=1) < standard.min() - 1e-12).sum())
        return f"| {name} | {different:,} | {average} | {best} |"

    published = errors(lists["bento_le"])
    rows = [
        "| paper, all 57 eigenvectors | – | 191 | 340 |",
        line(
            "all 57, as in the authors' program", [as_coded(transfer, t) for t in drawn], published
        ),
        line(
            "random lists of ten tasks",
            [rng.permutation(len(matrix.names))[:MOST] for _ in drawn],
            published,
        ),
    ]
    for components in (5, 10, 20, 40):
        orders = [order(matrix, components, t) for t in drawn]
        standard = errors(order(matrix, components, DEFAULT))
        rows.append(line(f"{components} (`{written(components, 1.5)}`)", orders, standard))
    return (
        f"c is t times the largest distance. {DRAWS:,} values of t from 1 to 50, on the released "
        "models. Like the paper, the table counts the values of t that are better than t = 1.5: by "
        "the mean NRMSE over 1 to 10 tasks, and by the least one. The first three rows are "
        "compared with the published list of BenTo-le. With all eigenvectors, t only changes how "
        "numbers are rounded: each value gives another list, and these are better about as often "
        "as random lists. With fewer eigenvectors, all values of t give a few lists.\n\n"
        + table_of(
            "eigenvectors", ["different lists", "better on average", "better at their best"], rows
        )
    )


def as_coded(transfer: Transferability, t: float) -> np.ndarray:
    """The authors' program: all eigenvectors, columns divided by their sums, single precision."""
    worth = np.maximum(cosines_of_all(transfer, t, np.float32), 0)
    covered, chosen = np.zeros(len(worth), np.float32), []
    for _ in range(MOST):
        gains = np.maximum(worth - covered[:, None], 0).sum(axis=0, dtype=np.float32)
        gains[chosen] = -1
        chosen.append(int(gains.argmax()))
        covered = np.maximum(covered, worth[:, chosen[-1]])
    return np.array(chosen)


def cosines_of_all(transfer: Transferability, t: float, kind: type) -> np.ndarray:
    """S' of all eigenvectors, which are of a kind of floating-point numbers."""
    from scipy.sparse.csgraph import laplacian

    s = Similarity("sum", t=t).sim(transfer.mean)
    vectors = np.linalg.eigh(laplacian(s, normed=True))[1].astype(kind)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit @ unit.T


def likeness_of_all(transfer: Transferability) -> str:
    """How alike two tasks are at most with all eigenvectors, as a power of ten from -12."""
    cosines = cosines_of_all(transfer, DEFAULT, np.float64)
    most = np.abs(cosines - np.eye(len(cosines))).max()
    return f"its other entries are at most {10.0 ** max(-12, np.ceil(np.log10(most))):.0e}"


@dataclass(frozen=True, eq=False)
class Settings:
    """Numbers of eigenvectors with values of t; for every number of tasks one is chosen."""

    transfer: Transferability
    settings: Sequence[tuple[int, float]]

    @cached_property
    def matrix(self) -> TaskMatrix:
        return TaskMatrix.of_transfer(self.transfer)

    @cached_property
    def orders(self) -> list[np.ndarray]:
        return [order(self.matrix, *one) for one in self.settings]

    @cached_property
    def mismatches(self) -> np.ndarray:
        """How much easier or harder the tasks are than all for the measured model."""
        return np.array([[abs(mismatch(self.matrix, o[:k])) for k in SIZES] for o in self.orders])

    @cached_property
    def stability(self) -> np.ndarray:
        """Share of tasks that two choices from seeds drawn anew have in common."""
        rng = np.random.default_rng(0)
        seeds = rng.integers(self.transfer.n_seeds, size=(BOOTSTRAPS, self.transfer.n_seeds))
        again = [TaskMatrix.of_transfer(self.transfer, drawn) for drawn in seeds]
        pairs = np.triu_indices(BOOTSTRAPS, 1)
        shared = np.empty((len(self.settings), MOST))
        for at, one in enumerate(self.settings):
            picked = np.zeros((MOST, BOOTSTRAPS, len(self.matrix.names)))
            for draw, other in enumerate(again):
                tasks = order(other, *one)
                for k in SIZES:
                    picked[k - 1, draw, tasks[:k]] = 1
            shared[at] = [(p @ p.T)[pairs].mean() / k for k, p in zip(SIZES, picked, strict=True)]
        return shared

    def rows(self, results: TaskResults) -> dict[str, np.ndarray]:
        """Estimates of the models, shape (numbers of tasks, models), by how a setting is chosen."""
        found = np.array([estimates(results, tasks) for tasks in self.orders])
        each = np.arange(MOST)
        others = np.empty(found.shape[1:])
        for part in parts(results):
            rest = np.setdiff1d(np.arange(len(results.models)), part)
            best = nrmse(found[:, :, rest], results.full[rest]).argmin(axis=0)
            others[:, part] = found[best, each][:, part]
        return {
            "by stability": found[self.stability.argmax(axis=0), each],
            "by difficulty": found[self.mismatches.argmin(axis=0), each],
            "by other models": others,
        }

    def spread(self, results: TaskResults) -> np.ndarray:
        """NRMSE of all settings, shape (settings, numbers of tasks)."""
        return nrmse(np.array([estimates(results, o) for o in self.orders]), results.full)


def parts(results: TaskResults) -> list[np.ndarray]:
    """Models that are held out together: families, in at most ten parts."""
    named = list(dict.fromkeys(results.group_of.values()))
    at = np.random.default_rng(0).permutation(len(named)) % 10
    part_of = np.array([at[named.index(results.group_of[model])] for model in results.models])
    return [np.flatnonzero(part_of == part) for part in np.unique(part_of)]


def chosen_by_data(context: Context) -> str:
    """Values of t, and numbers of eigenvectors, by what is known before the targets run."""
    own, transfer, _ = released(context)
    n = len(transfer.tasks)
    groups = {
        "eigenvectors, t = 1.5": (10, [(components, DEFAULT) for components in range(2, n)]),
        "t, 10 eigenvectors": (10, [(10, t) for t in VALUES]),
        "t, 5 eigenvectors": (5, [(5, t) for t in VALUES]),
    }
    found = {title: Settings(transfer, settings) for title, (_, settings) in groups.items()}
    sections = []
    for name, results in (
        ("Seven released models", own),
        ("102 other models", in_order(others(context), transfer)),
    ):
        weights = resampled_models(results, np.random.default_rng(0), DRAWS)
        rows = []
        for title, settings in found.items():
            default = estimates(results, order(settings.matrix, groups[title][0], DEFAULT))
            ways = {"the default": default} | settings.rows(results)
            for way, said in ways.items():
                difference = "" if said is default else apart(said, default, results, weights)
                rows.append(line(f"{title}: {way}", nrmse(said, results.full), difference))
            rows.append(line(f"{title}: mean of all", settings.spread(results).mean(axis=0)))
        matrix = settings.matrix
        matched = nrmse(with_match(results, matrix), results.full)
        rows.append(line("10 eigenvectors, as easy as all within 1 %", matched))
        rows.append(line(f"{n - 2} random lists: by difficulty", by_difficulty(results, matrix)))
        head = [*map(str, KS), "mean", "less the default"]
        sections.append(table_of(f"{name}: NRMSE, k =", head, rows))
    return (
        f"For each number of tasks, one of 2 to {n - 1} eigenvectors is chosen, or one of "
        f"{len(VALUES)} values of t from 1.01 to 50. *Stability*: most tasks in common between "
        f"{BOOTSTRAPS} choices from seeds drawn with replacement. *Difficulty*: the chosen tasks "
        "are as easy as all tasks for the measured model (Llama-2-13B, which is one of the seven). "
        "*Other models*: least NRMSE on them; the target's family is held out. *Mean* is over 1 to "
        "10 tasks. *The default* has t = 1.5 and 10 eigenvectors (5 in the rows that say so); the "
        "differences have 90 % intervals over models or families. Of as many random lists, the one "
        "chosen by difficulty is as good.\n\n" + "\n\n".join(sections)
    )


def with_match(results: TaskResults, matrix: TaskMatrix) -> np.ndarray:
    """Estimates where tasks are exchanged until they are as easy as all within 1 %."""
    sets = sets_of(MatchedLe(components=10), matrix, SIZES, 0)
    return np.array([results.reduced(sets[k]) for k in SIZES])


def line(name: str, errors: np.ndarray, difference: str = "") -> str:
    shown = row(name, [*(errors[k - 1] for k in KS), errors.mean()])
    return f"{shown} {difference} |"


def apart(said: np.ndarray, fixed: np.ndarray, results: TaskResults, weights: np.ndarray) -> str:
    """Difference of the mean NRMSE over numbers of tasks, with its interval."""
    full = results.full
    again = np.mean(
        [
            nrmse(one, full, weights) - nrmse(other, full, weights)
            for one, other in zip(said, fixed, strict=True)
        ],
        axis=0,
    )
    low, high = np.nanquantile(again, [0.05, 0.95])
    value = (nrmse(said, full) - nrmse(fixed, full)).mean()
    return f"{value:+.3f} ({low:+.3f} to {high:+.3f})"


def by_difficulty(results: TaskResults, matrix: TaskMatrix, repeats: int = 50) -> np.ndarray:
    """NRMSE of the random list with the least mismatch for the measured model."""
    rng, errors, lists = np.random.default_rng(0), [], len(matrix.names) - 2
    for _ in range(repeats):
        drawn = [rng.permutation(len(matrix.names))[:MOST] for _ in range(lists)]
        off = np.array([[abs(mismatch(matrix, one[:k])) for k in SIZES] for one in drawn])
        said = [
            results.reduced(drawn[at][:k]) for k, at in zip(SIZES, off.argmin(axis=0), strict=True)
        ]
        errors.append(nrmse(np.array(said), results.full))
    return np.mean(errors, axis=0)


def of_source_scores(context: Context) -> str:
    """t chosen by the sources' errors where tasks are compared by source scores."""
    rows = []
    for file, sizes in TABLES.items():
        scores = context.scores(file)
        found = by_sources(without_duplicates(scores), sizes)
        rows += [row(f"{file.removesuffix('.npz')} | {k}", errors) for k, errors in found.items()]
    return (
        "Tasks compared by source scores (`alike-tasks-le`): NRMSE of held-out models, ten parts "
        "by families. The last column takes the t with the least NRMSE on the source models.\n\n"
        + table_of("table", ["k", "t = 1.5", "mean of all t", "t chosen by the sources"], rows)
    )


def by_sources(scores: Scores, sizes: Sequence[int]) -> dict[int, list[float]]:
    results, matrix = TaskResults.of_scores(scores), TaskMatrix.of_scores(scores)
    held_out = HeldOutTasks(results, matrix, ridge=False)
    said = np.empty((len(VALUES), len(sizes), len(results.models)))
    chosen = np.empty(said.shape[1:])
    for part in held_out.parts:
        rest = np.setdiff1d(np.arange(len(results.models)), part)
        sources = matrix.of_models(rest)
        found = np.array(
            [
                [
                    results.reduced(tasks)
                    for tasks in sets_of(f"bento-le(t={t})", sources, sizes, 0).values()
                ]
                for t in VALUES
            ]
        )
        said[:, :, part] = found[:, :, part]
        best = nrmse(found[:, :, rest], results.full[rest]).argmin(axis=0)
        chosen[:, part] = found[best, np.arange(len(sizes))][:, part]
    every, own = nrmse(said, results.full), nrmse(chosen, results.full)
    return {
        k: [float(every[VALUES.index(DEFAULT), at]), float(every[:, at].mean()), float(own[at])]
        for at, k in enumerate(sizes)
    }


CONSTANT = (
    Study("The constant c", RELEASED, ablation),
    Study("A constant chosen by data", (*RELEASED, OTHERS), chosen_by_data),
    Study("A constant chosen by source scores", tuple(TABLES), of_source_scores),
)
