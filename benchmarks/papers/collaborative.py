"""Two-stage collaborative filtering: tables on leaderboards, and what the paper prints."""

from papers.record import HALVES, MAE, Paper, Row, Table

SECTIONS = (
    Table(
        "Two-stage collaborative filtering on MATH-hard and MuSR",
        "Open LLM Leaderboard, 8 tasks, 1,650 items, 425 models without duplicates, three quarters "
        "of them sources, 10 random divisions; a tenth to a half of the items, at least 20 of each "
        "task. The paper has other tables of scores and reports, on its leaderboard at a tenth, "
        "task errors of 2.88 pp for the method and 2.53 pp for low-rank completion. *Difference* "
        "is to `collaborative`, paired over the divisions.",
        "openllm2_math_musr.npz",
        (165, 330, 495, 660, 825),
        "--split random",
        10,
        ("task_mae", "task_rank_mae", MAE),
        (
            Row("collaborative"),
            Row("collaborative-no-transport", "the ablation"),
            Row("collaborative-low-rank", "low-rank completion as stage 2"),
            Row("random-low-rank", "the same of random items"),
            Row("random-stratified", "random sampling in each task"),
            Row("clustering"),
            Row("gp-irt-anchor", "tinyBenchmarks"),
            Row("random-ridge", "ridge on random items"),
            Row("sorted+threshold"),
        ),
        against="collaborative",
        distinct=True,
    ),
    Table(
        "Two-stage collaborative filtering on a single task",
        "GSM8K again, 10 random halves: not what the method is made for.",
        "gsm8k_150.npz",
        (30, 132, 396),
        HALVES,
        10,
        (MAE,),
        (
            Row("collaborative"),
            Row("collaborative-low-rank"),
            Row("random-low-rank"),
            Row("kmedoids-ridge"),
            Row("random"),
        ),
    ),
    Table(
        "Two-stage collaborative filtering on MMLU, by date",
        "A sample of 424 models of the Open LLM Leaderboard, 57 tasks; the newest quarter by date "
        "of the run are the targets. The paper has 395 other models and prints figures without "
        "numbers.",
        "mmlu.parquet",
        (1404,),
        "--split chronological",
        3,
        ("task_mae", "task_weighted_mae", "task_rank_mae", MAE),
        (
            Row("collaborative"),
            Row("collaborative-low-rank", "low-rank completion as stage 2"),
            Row("random-stratified", "random sampling in each task"),
            Row("clustering"),
            Row("gp-irt-anchor", "tinyBenchmarks"),
            Row("random-ridge", "ridge on random items"),
            Row("sorted+threshold", "Sort & Search"),
        ),
        against="collaborative",
    ),
    Table(
        "Transport where tasks are alike: HELM MATH",
        "The seven tasks of HELM MATH, 83 models, 10 random divisions.",
        "helm_math.npz",
        (140,),
        "--split random",
        10,
        ("task_mae",),
        (Row("collaborative"), Row("collaborative-no-transport", "the ablation")),
        against="collaborative",
    ),
)
PAPER = Paper(
    "collaborative",
    "Two-stage collaborative filtering: printed figures and those of fewbench",
    SECTIONS,
)
