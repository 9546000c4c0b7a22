"""DISCO (Rubinstein et al. 2025): its tables."""

from papers.record import MAE, SPEARMAN, Paper, Row, Section, Table

BENCHMARKS = {"mmlu": "MMLU", "hellaswag": "HellaSwag", "winogrande": "Winogrande", "arc": "ARC"}
TABLE_1 = {
    "random": ("", (3.45, 2.85, 3.60, 2.61), (0.916, 0.839, 0.827, 0.898)),
    "gp-irt-random": ("", (2.79, 1.96, 1.64, 2.22), (0.922, 0.819, 0.928, 0.921)),
    "gp-irt-anchor": ("Anchor-IRT", (3.25, 2.19, 2.24, 4.55), (0.922, 0.830, 0.850, 0.708)),
    "medoids(metric=correlation)+gp-irt": (
        "Anchor-corr",
        (2.08, 1.27, 1.95, 2.18),
        (0.927, 0.937, 0.918, 0.948),
    ),
    "random-signature-knn": ("", (1.82, 1.49, 1.58, 2.30), (0.912, 0.899, 0.920, 0.905)),
    "random-signature-rf": ("", (1.81, 1.36, 1.29, 1.72), (0.933, 0.938, 0.926, 0.938)),
    "disco-pds-knn": ("", (1.31, 1.32, 1.19, 1.96), (0.972, 0.956, 0.951, 0.937)),
    "disco-pds-rf": ("", (1.07, 1.01, 1.00, 1.47), (0.987, 0.984, 0.967, 0.971)),
    "disco-jsd-knn": ("", (1.14, 1.50, 1.26, 2.11), (0.975, 0.944, 0.955, 0.939)),
    "disco-jsd-rf": ("", (1.30, 0.86, 1.09, 1.75), (0.987, 0.972, 0.973, 0.938)),
    "random-ridge": ("not in the paper", (), ()),
}
"""Method: its label, and error and correlation on each benchmark. metabench has other budgets."""


def table_1(at: int, file: str) -> Table:
    """Return the paper's Table 1 on one benchmark."""
    rows = [
        Row(method, label, {MAE: (error[at],), SPEARMAN: (rank[at],)} if error else {})
        for method, (label, error, rank) in TABLE_1.items()
    ]
    return Table(
        f"DISCO's Table 1: {BENCHMARKS[file]}",
        "A sample of 424 models of the Open LLM Leaderboard; the newest tenth by date of the run "
        "are the targets, 5 seeds. The paper has 424 other models, and its rows for DISCO are the "
        "best of 8 variants on the targets.",
        f"{file}.parquet",
        (100,),
        "--split chronological --targets 0.1",
        5,
        (MAE, SPEARMAN),
        tuple(rows),
    )


SECTIONS: tuple[Section, ...] = tuple(table_1(at, file) for at, file in enumerate(BENCHMARKS))
PAPER = Paper("disco", "DISCO: printed figures and those of fewbench", SECTIONS)
