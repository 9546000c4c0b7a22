"""The commands of published systems, as they are listed."""

from fewbench.cli.app import Listed

BENTO = "fewbench_papers.bento.commands"
PREPARE = "Prepare"
COMMANDS = {
    "tasks": Listed(f"{BENTO}.tasks:tasks", "Choose a few tasks to run instead of all.", PREPARE),
    "transfer": Listed(
        f"{BENTO}.transfer:transfer",
        "Measure how tasks transfer to each other (BenTo).",
        PREPARE,
    ),
}
