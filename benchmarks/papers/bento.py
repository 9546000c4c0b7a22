"""BenTo (Zhao et al. 2024): chosen tasks on its released models, and on other models."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fewbench._seeds import child_seed
from fewbench.methods import StaticMethod
from fewbench.methods.prediction.mean import Mean
from fewbench.study import SplitSettings, compare
from fewbench.study.inference import (
    TwoWay,
    expected_random_mae,
    model_groups,
    tied_with_best,
    two_way,
)
from fewbench.study.metrics import nrmse, pearson
from fewbench.study.splits import make_split
from fewbench_papers.bento import (
    Similarity,
    TaskChooser,
    TaskMatrix,
    TaskResults,
    Transferability,
    judge,
    read_chooser,
)
from fewbench_papers.bento.choosers import FittedTasks, RandomTasks, RidgeTasks, mismatch
from fewbench_papers.bento.facility_location import coverage
from fewbench_papers.bento.held_out import CostlyTasks, HeldOutTasks, ridge_on_means
from fewbench_papers.bento.judgement import (
    anchor_ratio,
    question_estimates,
    resampled_models,
    task_estimates,
)
from fewbench_papers.bento.matrix import SOURCE_SCORES, of_texts
from fewbench_papers.bento.ratio import AnchorRatio
from papers.bento_baselines import BASELINES, TEXTS, texts_of_tasks
from papers.bento_baselines import METHODS as BY_TEXTS
from papers.bento_constant import CONSTANT, likeness_of_all
from papers.bento_data import (
    FLAN,
    KS,
    MATRIX,
    OTHERS,
    QUESTIONS,
    RELEASED,
    in_order,
    others,
    released,
    row,
    table_of,
)
from papers.bento_lists import LISTS
from papers.methods import METHODS as OTHER_METHODS
from papers.methods.bento import (
    BentoByDistance,
    ExactSim,
    ForwardTasks,
    MatchedLe,
    MatchedSim,
    MedoidTasks,
    among_tasks,
    chooser_of,
    sets_of,
)
from papers.record import Context, Paper, Study

METHODS = {
    "BenTo-sim, Eq. 2-3": "bento-sim",
    "BenTo-sim, columns divided by their sums (published)": "bento-sim(scaling=sum)",
    "BenTo-sim, exact choice": ExactSim(),
    "BenTo-sim, cosine": BentoByDistance(distance="cosine"),
    "BenTo-sim, Chebyshev": BentoByDistance(distance="chebyshev"),
    "BenTo-le, the program's Laplacian and coverage, K = 5": "bento-le(components=5)",
    "BenTo-le, the program's Laplacian and coverage, K = 10": "bento-le(components=10)",
    "BenTo-le as printed (Eq. 4-5), K = 5": "bento-le(components=5,printed=true)",
    "BenTo-le as printed (Eq. 4-5), K = 10": "bento-le(components=10,printed=true)",
    "k-medoids on A": MedoidTasks(),
    "k-medoids on S": MedoidTasks("sim"),
    "k-medoids on S'": MedoidTasks("le", 10),
    "BenTo-sim, as easy as all within 1 % (ours)": MatchedSim(),
    "BenTo-le, K = 10, as easy as all within 1 % (ours)": MatchedLe(components=10),
}
PRINTED = {  # Table 2, nine models
    "BenTo-le": (0.051, 0.098, 0.029, 0.045, 0.168, 0.113),
    "BenTo-sim": (0.123, 0.061, 0.177, 0.101, 0.039, 0.026),
}
BUDGETS = (100, 200, 400, 800)
REPEATS = 10
WORTH, COSTS = 1000, (0, 100)  # a budget in questions, and what a task costs besides


def of_released(context: Context) -> str:
    printed = [row(f"printed, nine models: {name}", list(PRINTED[name])) for name in PRINTED]
    results, transfer, lists = released(context)
    return of_models(results, transfer, lists, printed)


def of_others(context: Context) -> str:
    _, transfer, lists = released(context)
    return of_models(in_order(others(context), transfer), transfer, lists)


def of_models(results: TaskResults, transfer, published, printed: Sequence[str] = ()) -> str:
    matrix = TaskMatrix.of_transfer(transfer)
    full = results.full
    rows, sim = [*printed], None
    for name, method in METHODS.items():
        sets = {k: chooser_of(method).order(matrix, k, 0).tasks for k in KS}
        rows.append(row(name, [float(nrmse(results.reduced(sets[k]), full)) for k in KS]))
        if sim is None:
            sim = sets
            rows.append(row(f"{name}: standard deviation over models", over_models(results, sim)))
    for name in ("bento_le", "bm25_sim", "bm25_le", "gpt4"):
        order = np.array(published[name])
        values = [float(nrmse(results.reduced(order[:k]), full)) for k in KS]
        rows.append(row(f"published list {name.replace('_', '-')}", values))
    ratios = [float(nrmse(anchor_ratio(results, sim[k], matrix.ease), full)) for k in KS]
    rows.append(row("BenTo-sim times the ratio of the measured model (ours)", ratios))
    rows.append(row("fitted to the other models, forward", fitted(results, ForwardTasks())))
    rows.append(row("fitted to the other models, with exchanges", fitted(results, FittedTasks())))
    rows.append(row("chosen for ridge on other families, ridge (ours)", by_ridge(results)))
    drawn = [nrmse(task_estimates(results, k, child_seed(0, k), 5000), full) for k in KS]
    rows.append(row("random tasks, mean", [float(errors.mean()) for errors in drawn]))
    rows.append(row("random tasks, standard deviation", [float(errors.std()) for errors in drawn]))
    questions = [int(results.sizes[sim[k]].sum()) for k in KS]
    asked = [nrmse(question_estimates(results, n, child_seed(1, n), 500), full) for n in questions]
    rows.append(
        row("random questions, as many as BenTo-sim's tasks hold", [float(e.mean()) for e in asked])
    )
    rows.append("| how many these are | " + " | ".join(map(str, questions)) + " |")
    found = [judge(results, sim[k]) for k in KS]
    better = " | ".join(f"{one.random_tasks.percentile:.0%}" for one in found)
    rows.append(f"| random task sets as good as BenTo-sim or better | {better} |")
    return (
        "BenTo-le has two of the authors' program's three deviations from the printed equations: "
        "the diagonal of S is left out of the Laplacian (Eq. 4), and negative cosines count as 0 "
        "in the coverage (Eq. 5). The third is the number of eigenvectors. The program takes all "
        f"{len(transfer.tasks)}; then S' is the identity ({likeness_of_all(transfer)}), every "
        "choice is as good, and rounding made the published list.\n\n"
        + table_of("NRMSE, k =", [str(k) for k in KS], rows)
    )


def sim_or_le(context: Context) -> str:
    """Where BenTo-sim or BenTo-le has the lower error, counted over models."""
    le = {name: method for name, method in METHODS.items() if name.startswith("BenTo-le")}
    rows, clear = [], Counter()
    for title, results, matrix in both_tables(context):
        for name, method in le.items():
            if "as easy" in name:
                continue
            sets = sets_of(method, matrix, KS, 0)
            gaps = less_errors(results, matrix, {k: results.reduced(sets[k]) for k in KS})
            rows.append(f"| {name}, {title} models | {' | '.join(map(str, gaps))} |")
            for k, gap in zip(KS, gaps, strict=True):
                better = "le" if gap.low > 0 else "sim" if gap.high < 0 else "neither"
                clear["up to 3" if k <= 3 else "5 or more", better] += 1
    counts = "; ".join(
        f"{size} tasks: "
        + ", ".join(f"{clear[size, better]} for {better}" for better in ("le", "sim", "neither"))
        for size in ("up to 3", "5 or more")
    )
    return (
        "NRMSE of BenTo-sim (Eq. 2-3) less that of BenTo-le, with 90 % intervals over models "
        "(families as one); above 0, BenTo-le is better. The paper finds BenTo-le better for few "
        f"tasks and BenTo-sim for many. Cells by their intervals, {counts}.\n\n"
        + table_of("k =", [str(k) for k in KS], rows)
    )


OTHERS_OF_SIM = (
    *("BenTo-sim, cosine", "BenTo-sim, Chebyshev"),
    *("k-medoids on A", "k-medoids on S", "k-medoids on S'"),
)


def sim_and_others(context: Context) -> str:
    """Where other choices of tasks have another error than BenTo-sim, counted over models."""
    rows = []
    for title, results, matrix in both_tables(context):
        sets = {name: sets_of(METHODS[name], matrix, KS, 0) for name in OTHERS_OF_SIM}
        estimates = {name: {k: results.reduced(sets[name][k]) for k in KS} for name in sets}
        estimates["random tasks, mean"] = {
            k: task_estimates(results, k, child_seed(0, k), 5000) for k in KS
        }
        for name, of_sizes in estimates.items():
            gaps = less_errors(results, matrix, of_sizes)
            rows.append(f"| {name}, {title} models | {' | '.join(map(str, gaps))} |")
    return (
        "NRMSE of BenTo-sim (Eq. 2-3) less that of another choice, with 90 % intervals over models "
        "(families as one); below 0, BenTo-sim is better.\n\n"
        + table_of("k =", [str(k) for k in KS], rows)
    )


def sim_and_texts(context: Context) -> str:
    """Where the errors of BM25 and of BenTo-sim differ, counted over models."""
    rows, texts = [], texts_of_tasks(context)
    for title, results, matrix in both_tables(context):
        by_text = of_texts(texts, matrix.names, matrix.sizes)
        for name, method in BY_TEXTS.items():
            sets = sets_of(method, by_text, KS, 0)
            gaps = less_errors(results, matrix, {k: results.reduced(sets[k]) for k in KS})
            rows.append(f"| {name}, {title} models | {' | '.join(map(str, gaps))} |")
    return (
        "NRMSE of BenTo-sim (Eq. 2-3) less that of BM25, with 90 % intervals over models (families "
        "as one); below 0, BenTo-sim is better.\n\n" + table_of("k =", [str(k) for k in KS], rows)
    )


SIZES = range(1, 11)
DRAWS = 1000


def best_sizes(context: Context) -> str:
    """Table 4 and Figure 4: the least error over the numbers of tasks."""
    ours = "bento-sim"
    chosen = {"BenTo-sim, Eq. 2-3": ours} | {name: METHODS[name] for name in OTHERS_OF_SIM}
    chosen |= {name: METHODS[name] for name in METHODS if name.startswith("BenTo-le, the program")}
    cells: dict[str, list[str]] = {name: [] for name in (*chosen, "random tasks, mean")}
    for _, results, matrix in both_tables(context):
        weights = resampled_models(results, np.random.default_rng(0), DRAWS)
        least = {}
        for name, method in chosen.items():
            sets = sets_of(method, matrix, SIZES, 0)
            said = np.array([results.reduced(sets[k]) for k in SIZES])
            errors = nrmse(said, results.full)
            least[name] = nrmse(said, results.full, weights).min(axis=0)
            gap = np.quantile(least["BenTo-sim, Eq. 2-3"] - least[name], [0.05, 0.95])
            at = int(errors.argmin())
            cells[name] += [
                f"{errors[at]:.3f} (k = {SIZES[at]})",
                "–" if method == ours else "{:+.3f} to {:+.3f}".format(*gap),
            ]
        rng = np.random.default_rng(1)
        orders = [rng.permutation(len(matrix.names))[: SIZES[-1]] for _ in range(DRAWS)]
        drawn = np.array([[results.reduced(order[:k]) for k in SIZES] for order in orders])
        cells["random tasks, mean"] += [f"{nrmse(drawn, results.full).min(axis=1).mean():.3f}", "–"]
    return (
        "The least NRMSE over 1 to 10 tasks, as the paper compares similarities and clusterings: "
        "the number of tasks is chosen by the models that measure it. *Less*: BenTo-sim's least "
        "less the other's, 90 % intervals over models; below 0, BenTo-sim is better.\n\n"
        + table_of(
            "",
            ["seven released models", "less", "102 other models", "less"],
            [f"| {name} | {' | '.join(values)} |" for name, values in cells.items()],
        )
    )


def both_tables(context: Context) -> list[tuple[str, TaskResults, TaskMatrix]]:
    """Return the released and the other models, each with the matrix of transferability."""
    own, transfer, _ = released(context)
    matrix = TaskMatrix.of_transfer(transfer)
    return [
        ("seven", own, matrix),
        ("102 other", in_order(others(context), transfer), matrix),
    ]


class Gap(NamedTuple):
    """A difference of two errors, with its 90 % interval over models."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:+.3f} ({self.low:+.3f} to {self.high:+.3f})"


def less_errors(
    results: TaskResults, matrix: TaskMatrix, estimates: Mapping[int, np.ndarray]
) -> list[Gap]:
    """Return NRMSE of BenTo-sim less that of other estimates, for each number of tasks.

    Estimates have the shape (models,), or (draws, models) for the mean error over draws.
    """
    weights = resampled_models(results, np.random.default_rng(0), 1000)
    sim, gaps = sets_of("bento-sim", matrix, KS, 0), []
    for k in KS:
        ours = results.reduced(sim[k])
        value, drawn = (
            nrmse(ours, results.full, w)
            - np.atleast_2d(nrmse(estimates[k], results.full, w)).mean(axis=0)
            for w in (np.ones((1, len(results.models))), weights)
        )
        gaps.append(Gap(float(value[0]), *np.nanquantile(drawn, [0.05, 0.95]).tolist()))
    return gaps


FLAN_PRINTED = (21, 34, 32, 37, 57, 11, 39, 5, 62, 2, 54, 13)  # in the authors' program


def of_flan(context: Context) -> str:
    """The choice of BenTo-sim on FLAN's 66 tasks, beside the list in the authors' program."""
    transfer = Transferability.load(context.folder / FLAN, "loss").transformed("exp")
    matrix = TaskMatrix.of_transfer(transfer)
    rows = [f"| the authors' list | {', '.join(map(str, FLAN_PRINTED))} | |"]
    for method in ("bento-sim(scaling=z-score,tie=last)", "bento-sim(scaling=z-score)"):
        order = read_chooser(method).order(matrix, len(FLAN_PRINTED), 0).tasks.tolist()
        same = sum(task == printed for task, printed in zip(order, FLAN_PRINTED, strict=True))
        rows.append(f"| `{method}` | {', '.join(map(str, order))} | {same} of {len(order)} |")
    return (
        "The authors' repository has the transferability of FLAN's 66 tasks (negative losses) and "
        "a list of 12 tasks, as positions from 0, but no model's results by task. As in the "
        "program, losses become exp(-loss) and columns are divided by their standard deviation.\n\n"
        + table_of("choice", ["tasks", "equal, in order"], rows)
    )


def over_models(results: TaskResults, sets) -> list[float]:
    """Standard deviation of NRMSE where models are drawn with replacement (Appendix C)."""
    weights = resampled_models(results, np.random.default_rng(0), 1000)
    said = [results.reduced(sets[k]) for k in KS]
    return [float(nrmse(one, results.full, weights).std()) for one in said]


def by_ridge(results: TaskResults) -> list[float]:
    """Every model is estimated by ridge from tasks that the others chose, families held out."""
    group = np.array([results.group_of[model] for model in results.models])
    _, group_of = np.unique(group, return_inverse=True)
    families = tuple(f"{at}" for at in group_of)
    rows = np.ascontiguousarray(results.scores.T)
    matrix = TaskMatrix(rows, results.tasks, results.sizes, None, SOURCE_SCORES, families=families)
    parts = HeldOutTasks(results, matrix, ridge=True)
    sets = parts.orders(RidgeTasks(), KS)
    return [float(nrmse(parts.estimates(sets[k]), results.full)) for k in KS]


def fitted(results: TaskResults, chooser: TaskChooser) -> list[float]:
    """Every model is estimated from tasks that the others chose; many models in ten parts."""
    n = len(results.models)
    parts = np.arange(n) if n <= 10 else np.random.default_rng(0).permutation(n) % 10
    errors = {k: np.empty(n) for k in KS}
    for part in np.unique(parts):
        rows = np.ascontiguousarray(results.scores[parts != part].T)
        matrix = TaskMatrix(rows, results.tasks, results.sizes, None, SOURCE_SCORES)
        for k in KS:
            chosen = chooser.order(matrix, k, 0).tasks
            errors[k][parts == part] = (results.reduced(chosen) - results.full)[parts == part]
    size = np.sqrt((results.full**2).mean())
    return [float(np.sqrt((errors[k] ** 2).mean()) / size) for k in KS]


def what_foretells(results: TaskResults, transfer, k: int = 3, sets: int = 2000) -> str:
    """How coverage and difficulty of random task sets go with their error."""
    from scipy.stats import rankdata

    matrix = TaskMatrix.of_transfer(transfer)
    s = Similarity().sim(matrix.rows)
    rng = np.random.default_rng(0)
    chosen = [rng.permutation(len(matrix.names))[:k] for _ in range(sets)]
    error = np.array([float(nrmse(results.reduced(x), results.full)) for x in chosen])
    easy = np.array([abs(mismatch(matrix, x)) for x in chosen])
    covers = np.array([coverage(s, x) for x in chosen])
    ratio = np.array(
        [float(nrmse(anchor_ratio(results, x, matrix.ease), results.full)) for x in chosen]
    )

    def spearman(values) -> float:
        return pearson(rankdata(values), rankdata(error))

    return (
        f"Over {sets:,} random sets of {k} tasks on the released "
        "models, Spearman's correlation with NRMSE:\n"
        f"{spearman(easy):.2f} of how much easier or harder the set is than all tasks, for the "
        f"measured model alone; {spearman(covers):.2f} of coverage.\nMultiplied by the measured "
        f"model's ratio, their mean NRMSE falls from {error.mean():.3f} to {ratio.mean():.3f}."
    )


def stability(transfer) -> str:
    """Tasks that choices from two halves of the seeds share."""
    rng = np.random.default_rng(0)
    rows = []
    written = ("bento-sim", "bento-sim(scaling=sum)", "bento-le(components=5)")
    methods = [*((name, name) for name in written), ("km-raw", MedoidTasks())]
    for name, method in methods:
        shared = {k: [] for k in KS}
        for _ in range(30):
            seeds = rng.permutation(transfer.n_seeds)
            halves = np.array_split(seeds, 2)
            matrices = [TaskMatrix.of_transfer(transfer, half) for half in halves]
            sets = [sets_of(method, matrix, KS, 0) for matrix in matrices]
            for k in KS:
                shared[k].append(len(set(sets[0][k]) & set(sets[1][k])) / k)
        cells = " | ".join(f"{np.mean(shared[k]):.0%}" for k in KS)
        rows.append(f"| `{name}` | {cells} |")
    head = [str(k) for k in KS]
    over_seeds = transfer.values.std(axis=0)
    return (
        f"An entry of the matrix has a standard deviation of {over_seeds.mean():.4f} over the ten "
        f"seeds, and the standard deviation of that is {over_seeds.std():.4f} (paper: 0.017 and "
        "0.0065). Tasks in common between choices from two halves of the seeds, mean of 30 "
        "halvings:\n\n" + table_of("k =", head, rows)
    )


def cheaper(transfer, questions: Path) -> str:
    """Distances between tasks from cheaper measurements against those from the whole one."""
    from scipy.stats import rankdata

    whole = Similarity().distances(transfer.mean)
    upper = np.triu_indices(len(whole), 1)
    rng = np.random.default_rng(0)
    sizes, cost = transfer.n_questions, float(transfer.n_questions.sum())

    def like(values) -> float:
        other = Similarity().distances(values)
        return pearson(rankdata(whole[upper]), rankdata(other[upper]))

    rows = []
    for n in (3, 5):
        found = [like(transfer.mean_over(rng.permutation(10)[:n])) for _ in range(10)]
        rows.append(f"| {n} seeds | {n / 10:.0%} | {np.mean(found):.2f} |")
    for n in (10, 20, 30):
        columns = np.argsort(sizes, kind="stable")[:n]
        part = sizes[columns].sum() / cost
        rows.append(
            f"| the {n} tasks with fewest questions as targets | {part:.0%} | "
            f"{like(transfer.mean[:, columns]):.2f} |"
        )
    right = share_right(questions)
    for most in (20, 50, 100, None):
        part = np.minimum(sizes, most or sizes).sum() / cost
        found = like(asked_again(transfer, right, most, rng))
        what = f"at most {most} questions of a target and seed" if most else "all questions again"
        rows.append(f"| {what}, simulated | {part:.0%} | {found:.2f} |")
    return (
        "Rank correlation of the distances E between tasks with those "
        "from the whole measurement. Answers to single questions were not published with the "
        "matrix. For the simulated rows each is right by chance: with the mean of the matrix, and "
        "easier or harder as the same model found the question behind its own task's exemplars, in "
        "five draws; all sources get the same questions. Chance then stands in these "
        "distances twice, so that the last row is what can be reached.\n\n"
        + table_of("design", ["cost", "correlation"], rows)
    )


def share_right(path: Path) -> list[np.ndarray]:
    """For each task, how often the measured model is right on each question, over five draws."""
    with np.load(path) as file:
        model = file["models"].tolist().index("llama2_13b")
        right = (file["pred"][model] == file["gold"][:, None]).mean(axis=1)
        return [right[file["task_index"] == task] for task in range(file["task_index"].max() + 1)]


def asked_again(transfer, right: list[np.ndarray], most: int | None, rng) -> np.ndarray:
    """A simulated matrix from fewer questions, the same ones for all sources."""
    made = np.empty_like(transfer.mean)
    for target, base in enumerate(right):
        # What a source adds moves the questions that are open, not those always right or wrong.
        open_ = base * (1 - base)
        shift = (transfer.mean[:, target] - base.mean())[:, None] * open_ / max(open_.mean(), 1e-9)
        answers = []
        for _ in range(transfer.n_seeds):
            asked = rng.permutation(len(base))[:most]
            chance = np.clip(base + shift, 0, 1)[:, asked]
            answers.append(rng.random(chance.shape) < chance)
        made[:, target] = np.concatenate(answers, axis=1).mean(axis=1)
    return made


def through_compare(context: Context) -> str:
    """Whole tasks, tasks and items, items alone, at the same number of questions."""
    scores, matrix = others(context), context.folder / MATRIX
    methods = {
        "random items": "random",
        "random items of each task": "random-stratified",
        "random tasks": "random-tasks",
        "BenTo-sim's tasks": f"bento-sim(matrix={matrix})+mean",
        "BenTo-sim, one item in five of its tasks": (
            f"bento-sim(matrix={matrix},share=0.2)+random+mean"
        ),
        "BenTo-sim, matched, ratio (ours)": StaticMethod(
            among_tasks(MatchedSim(), str(matrix)), AnchorRatio()
        ),
        "BenTo-sim, one item in five, ratio (ours)": (
            f"bento-sim(matrix={matrix},share=0.2)+random+anchor-ratio"
        ),
        "tasks like all by past scores (no matrix)": OTHER_METHODS["alike-tasks"],
        "tasks fitted to past scores": "fitted-tasks",
        "tasks fitted to past scores, ridge on their means": "tasks-fit+task-means+ridge",
        "tasks chosen for ridge, ridge on their means": "ridge-tasks",
        "random items of each task, ridge on the means": "task-means-ridge",
    }
    settings = SplitSettings("random")
    outcome = compare(
        scores,
        list(methods.values()),
        BUDGETS,
        settings,
        repeats=REPEATS,
        level=None,
        workers=context.workers,
        cache=context.cache,
    )
    targets = [make_split(scores, settings, 0, repeat).targets for repeat in range(REPEATS)]
    resampled, cells = resamples(scores, targets), outcome.estimates
    columns = []
    for budget in BUDGETS:
        errors = {}
        for name, method in methods.items():
            shown_as = method if isinstance(method, str) else method.describe()
            own = cells[(cells["method"] == shown_as) & (cells["budget"] == budget)]
            errors[name] = [
                np.abs(one["estimate"] - one["truth"]).to_numpy()
                for _, one in own.groupby("repeat", sort=True)
            ]
        columns.append(shown(resampled, errors))
    expected = [
        np.mean([expected_random_mae(scores, budget, part).mean() for part in targets])
        for budget in BUDGETS
    ]
    rows = ["| expected of random items | " + " | ".join(f"{100 * e:.2f}" for e in expected) + " |"]
    rows += [f"| {name} | " + " | ".join(c[name] for c in columns) + " |" for name in methods]
    return (
        "Mean absolute error in "
        "percentage points, 102 models, random split (a quarter are targets, of checkpoints that "
        f"the sources have too), {REPEATS} repeats. {BOLD}\n\n"
        + table_of("questions", [str(budget) for budget in BUDGETS], rows)
    )


BOLD = (
    "Bold: not clearly above the lowest, where repeats and models are resampled and all pairs are "
    "compared at once (`fewbench.study.inference.tied_with_best`)."
)


def resamples(scores, targets: list[np.ndarray]) -> TwoWay:
    """Resample repeats and models, those of one family together."""
    names = [[scores.model_ids[at] for at in part] for part in targets]
    return two_way(names, model_groups(scores))


def shown(resampled: TwoWay, errors: dict[str, list[np.ndarray]]) -> dict[str, str]:
    """Mean errors in percentage points, bold where they are level with the best."""
    parts = {name: resampled.parts(one) for name, one in errors.items()}
    best = tied_with_best(resampled, parts)
    means = {name: f"{100 * resampled.mean(one)[0]:.2f}" for name, one in parts.items()}
    return {name: f"**{mean}**" if name in best.level else mean for name, mean in means.items()}


def cost_of_tasks(scores) -> str:
    """Tasks that cost something besides their questions; families held out."""
    settings = SplitSettings("group")
    splits = [make_split(scores, settings, 0, repeat) for repeat in range(REPEATS)]
    ways = {
        "tasks chosen for ridge, ridge on their means": (RidgeTasks(), ridge_on_means()),
        "tasks fitted to past scores (forward), ridge on their means": (
            ForwardTasks(),
            ridge_on_means(),
        ),
        "random tasks, ridge on their means": (RandomTasks(), ridge_on_means()),
        "random tasks, mean": (RandomTasks(), Mean()),
    }
    asked = "random questions, mean"
    resampled = resamples(scores, [split.targets for split in splits])
    columns, numbers = [], []
    for cost in COSTS:
        errors, tasks = {}, {}
        for name, way in ways.items():
            found = [by_plan(scores, split, cost, way, at) for at, split in enumerate(splits)]
            errors[name] = [one[0] for one in found]
            tasks[name] = f"{np.mean([one[1] for one in found]):.1f}"
        rng = np.random.default_rng(0)
        drawn = [random_questions_paid(scores, split.targets, cost, rng) for split in splits]
        errors[asked], tasks[asked] = [one[0] for one in drawn], f"{drawn[0][1]:.1f}"
        columns.append(shown(resampled, errors))
        numbers.append(tasks)
    header = [f"{what} at {cost} a task" for cost in COSTS for what in ("error", "tasks")]
    rows = [
        f"| {name} | "
        + " | ".join(f"{c[name]} | {n[name]}" for c, n in zip(columns, numbers, strict=True))
        + " |"
        for name in [*ways, asked]
    ]
    return (
        "Mean absolute error in percentage points where "
        f"{WORTH:,} questions' worth may be spent, and each task costs as much as 0 or 100 "
        "questions before its first one. 102 models; whole families are targets (a quarter), "
        f"{REPEATS} repeats. The number of tasks is chosen on the sources, cross-validated by "
        "families; the mean of the repeats is shown. Random questions pay for a task when its "
        f"first one is drawn. {BOLD}\n\n" + table_of("way", header, rows)
    )


def by_plan(scores, split, cost: float, way: tuple, seed: int) -> tuple[np.ndarray, int]:
    """Errors on the targets, and how many tasks the sources say."""
    chooser, predictor = way
    costly = CostlyTasks(WORTH, cost, chooser, predictor)
    sources = scores.take(models=split.sources)
    k = costly.plan(sources, seed).k
    order = chooser.order(TaskMatrix.of_scores(sources), k, seed).tasks
    said = costly.estimate(sources, scores.filled[split.targets], order, seed)
    return np.abs(said - scores.full_scores()[split.targets]), k


def random_questions_paid(scores, targets, cost: float, rng) -> tuple[np.ndarray, float]:
    """Expected errors of the mean of random questions, and how many tasks they are from."""
    values, full = scores.filled[targets], scores.full_scores()[targets]
    errors, numbers = [], []
    for _ in range(300):
        order = rng.permutation(scores.n_items)
        tasks = scores.task_of[order]
        first = np.zeros(len(order), dtype=bool)
        first[np.unique(tasks, return_index=True)[1]] = True
        n = int(np.searchsorted(np.cumsum(1 + cost * first), WORTH + 1e-9, side="right"))
        errors.append(np.abs(values[:, order[:n]].mean(axis=1) - full))
        numbers.append(first[:n].sum())
    return np.mean(errors, axis=0), float(np.mean(numbers))


SECTIONS = (
    Study("BenTo's seven released models", RELEASED, of_released),
    Study("102 other models", (*RELEASED, OTHERS), of_others),
    Study("BenTo-sim or BenTo-le", (*RELEASED, OTHERS), sim_or_le),
    Study("BenTo-sim and other choices, over models", (*RELEASED, OTHERS), sim_and_others),
    Study("BenTo-sim and BM25, over models", (*RELEASED, OTHERS, TEXTS), sim_and_texts),
    Study("The best number of tasks (Table 4, Figure 4)", (*RELEASED, OTHERS), best_sizes),
    *LISTS,
    Study("FLAN", (FLAN,), of_flan),
    *CONSTANT,
    *BASELINES,
    Study("What foretells the error", RELEASED, lambda at: what_foretells(*released(at)[:2])),
    Study("How much hangs on the seeds", RELEASED, lambda at: stability(released(at)[1])),
    Study(
        "Cheaper measurements",
        (*RELEASED, QUESTIONS),
        lambda at: cheaper(released(at)[1], at.folder / QUESTIONS),
    ),
    Study(
        "The same number of questions, with and without tasks",
        (MATRIX, OTHERS),
        through_compare,
    ),
    Study("A cost for each task", (OTHERS,), lambda at: cost_of_tasks(others(at))),
)
PAPER = Paper(
    "bento",
    "BenTo: chosen tasks on its released models, and on other models",
    SECTIONS,
    "The released models are without the two of GPT-2 in the same file, which the authors'\n"
    "program leaves out. The other models are `llmub_mmlu.npz`.",
)
