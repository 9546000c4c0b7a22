"""BenTo's baseline BM25, and its combination with a choice of items (Table 5)."""

import json
from collections.abc import Sequence

import numpy as np

from fewbench.study.metrics import nrmse
from fewbench_papers.bento import TaskMatrix, read_chooser
from fewbench_papers.bento.judgement import judge
from fewbench_papers.bento.matrix import of_texts
from papers.bento_data import (
    KS,
    OTHERS,
    QUESTIONS,
    RELEASED,
    in_order,
    others,
    released,
    row,
    table_of,
)
from papers.record import Context, Study

TEXTS = "bento/mmlu_texts.json"
AS_PUBLISHED = "BM25-sim, z-scores"
METHODS = {
    "BM25-sim, Eq. 2-3": "bento-sim",
    "BM25-sim, columns divided by their sums": "bento-sim(scaling=sum)",
    AS_PUBLISHED: "bento-sim(scaling=z-score)",
    "BM25-le, K = 5": "bento-le(components=5)",
    "BM25-le, K = 10": "bento-le(components=10)",
}
PRINTED = {"bm25_sim": "published list bm25-sim", "bm25_le": "published list bm25-le"}
SHARES = (0.05, 0.02, 0.007)  # of all questions, as in Table 5
DRAWS = 200


def texts_of_tasks(context: Context) -> dict[str, str]:
    """Return the texts of MMLU's tasks."""
    texts: dict[str, str] = json.loads((context.folder / TEXTS).read_text(encoding="utf-8"))
    return texts


def by_texts(context: Context) -> str:
    """Tasks compared by the texts of their questions."""
    own, transfer, lists = released(context)
    texts = texts_of_tasks(context)
    matrix = of_texts(texts, transfer.tasks, transfer.n_questions)
    sets = {
        name: {k: read_chooser(method).order(matrix, k, 0).tasks for k in KS}
        for name, method in METHODS.items()
    }
    sets |= {name: {k: np.array(lists[key][:k]) for k in KS} for key, name in PRINTED.items()}
    tables = []
    for title, results in (
        ("Seven released models", own),
        ("102 other models", in_order(others(context), transfer)),
    ):
        rows = []
        for name, chosen in sets.items():
            found = [judge(results, chosen[k]) for k in KS]
            rows.append(row(name, [one.nrmse for one in found]))
            shares = " | ".join(f"{one.random_tasks.percentile:.0%}" for one in found)
            rows.append(f"| random task sets as good or better | {shares} |")
        tables.append(table_of(f"{title}: NRMSE, k =", [str(k) for k in KS], rows))
    found, printed = sets[AS_PUBLISHED][KS[-1]].tolist(), lists["bm25_sim"]
    same = sum(task == other for task, other in zip(found, printed, strict=True))
    return (
        "BM25 between the texts of MMLU's 57 tasks takes the place of transferability. The texts "
        "are all questions with their options and right letters, as in the authors' program; its "
        f"matrix is not released. {AS_PUBLISHED}: {same} of the {len(printed)} published tasks, in "
        "order.\n\n" + "\n\n".join(tables)
    )


def tasks_and_items(context: Context) -> str:
    """Table 5: a share of each task's items, and then of a few tasks only."""
    _, transfer, _ = released(context)
    with np.load(context.folder / QUESTIONS) as file:
        right = (file["pred"] == file["gold"][:, None]).astype(np.float64)
        task_of = file["task_index"].astype(np.intp)
    table = others(context)
    at = {task: place for place, task in enumerate(transfer.tasks)}
    of_table = np.array([at[table.tasks[task]] for task in table.task_of])
    rows = [
        *rows_of("Five released models", right, task_of, transfer),
        *rows_of("102 other models", table.filled[:, :, None], of_table, transfer),
    ]
    return (
        "NRMSE of random questions of all tasks, and of BenTo-sim's first tasks with "
        f"{SHARES[0]:.0%} of their questions: as many tasks as reach that share of all questions. "
        f"Mean ± standard error over {DRAWS} draws. The paper reports that BenTo at 2 % is better "
        "than random questions at 5 %, and at 0.7 % as good as those at 2 %.\n\n"
        + table_of("share of all questions", [f"{share:.1%}" for share in SHARES], rows)
    )


def rows_of(title: str, right: np.ndarray, task_of: np.ndarray, transfer) -> list[str]:
    """Rows for answers of shape (models, questions, repetitions of the prompt)."""
    sizes, full = np.bincount(task_of), right.mean(axis=(1, 2))
    order = read_chooser("bento-sim").order(TaskMatrix.of_transfer(transfer), len(sizes), 0).tasks
    held = np.cumsum(sizes[order]) / len(task_of)
    numbers = [int(np.searchsorted(held, share / SHARES[0])) + 1 for share in SHARES[1:]]
    questions_of = [np.flatnonzero(task_of == task) for task in range(len(sizes))]
    rng = np.random.default_rng(0)

    def cell(tasks: Sequence[np.ndarray], share: float) -> str:
        """Mean error over draws of questions of these tasks, one draw for each set."""
        found = []
        for draw, some in enumerate(tasks):
            taken = [max(1, round(share * sizes[task])) for task in some]
            drawn = [
                rng.permutation(questions_of[task])[:n] for task, n in zip(some, taken, strict=True)
            ]
            said = right[:, np.concatenate(drawn), draw % right.shape[2]].mean(axis=1)
            found.append(float(nrmse(said, full)))
        return f"{np.mean(found):.3f} ± {np.std(found) / np.sqrt(len(found)):.3f}"

    every = [np.arange(len(sizes))] * DRAWS
    each = [cell(every, share) for share in SHARES]
    chosen = [cell([order[:k]] * DRAWS, SHARES[0]) for k in numbers]
    by_chance = [cell([rng.permutation(len(sizes))[:k] for _ in every], SHARES[0]) for k in numbers]
    return [
        f"| {title}: questions of all tasks | {' | '.join(each)} |",
        f"| {title}: of BenTo-sim's tasks | – | {' | '.join(chosen)} |",
        f"| {title}: of random tasks | – | {' | '.join(by_chance)} |",
        f"| {title}: number of tasks | {len(sizes)} | {' | '.join(map(str, numbers))} |",
    ]


BASELINES = (
    Study("BM25 between the tasks' texts", (*RELEASED, OTHERS, TEXTS), by_texts),
    Study("Few questions of few tasks", (*RELEASED, QUESTIONS, OTHERS), tasks_and_items),
)
