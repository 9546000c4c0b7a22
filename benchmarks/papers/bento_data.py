"""BenTo's released data, 102 other models, and how their tables are written."""

from fewbench.scores import Scores
from fewbench_papers.bento import TaskResults, Transferability
from fewbench_papers.bento.task_tables import read_task_table
from papers.record import Context

KS = (1, 2, 3, 5, 8, 10)
OF_ALL = ("gpt2_large", "gpt2_medium")  # the authors' script leaves them out
MATRIX, QUESTIONS, OTHERS = "bento/mmlu_ict.npz", "bento/mmlu_questions.npz", "llmub_mmlu.npz"
FLAN = "bento/neg_loss_flan.csv"
RELEASED = (MATRIX, "bento/mmlu_models.csv")
PUBLISHED = {
    "gpt4": [7, 9, 31, 3, 14, 37, 48, 15, 2, 53],
    "bm25_le": [50, 43, 7, 47, 3, 12, 17, 15, 55, 44],
    "bm25_sim": [53, 48, 21, 54, 29, 50, 43, 31, 12, 30],
    "bento_le": [24, 0, 45, 10, 3, 2, 8, 48, 4, 50],
    "bento_sim": [51, 9, 25, 35, 20, 22, 27, 30, 33, 24],
}
"""Choices on MMLU in the authors' program, as positions from 0, in order."""


def released(context: Context) -> tuple[TaskResults, Transferability, dict[str, list[int]]]:
    """BenTo's released models, its matrix and its published lists."""
    folder = context.folder / "bento"
    transfer = Transferability.load(folder / "mmlu_ict.npz")
    table, _ = read_task_table(folder / "mmlu_models.csv", list(transfer.tasks))
    table = table.drop(index=list(OF_ALL), errors="ignore")
    results = TaskResults(
        table.to_numpy(), tuple(table.index), transfer.tasks, transfer.n_questions
    )
    return results, transfer, PUBLISHED


def others(context: Context) -> Scores:
    """102 other models."""
    return context.scores(OTHERS)


def in_order(scores: Scores, transfer: Transferability) -> TaskResults:
    """Results with the tasks in the matrix's order."""
    plain = TaskResults.of_scores(scores)
    at = plain.positions(transfer.tasks)
    return TaskResults(
        plain.scores[:, at], plain.models, transfer.tasks, plain.sizes[at], questions=scores
    )


def row(name: str, values: list[float]) -> str:
    return f"| {name} | " + " | ".join(f"{value:.3f}".lstrip("0") for value in values) + " |"


def table_of(title: str, header: list[str], rows: list[str]) -> str:
    head = f"| {title} | " + " | ".join(header) + " |\n|---|" + "---|" * len(header)
    return "\n".join([head, *rows])
