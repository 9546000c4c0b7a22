"""fewbench select: choose items and write a subset file."""

from pathlib import Path

from fewbench._files import written_whole
from fewbench.cli.commands import Call, command
from fewbench.cli.options import say_shares
from fewbench.cli.text import echo, say
from fewbench.evaluation import select_items
from fewbench.methods import Subset, find_method
from fewbench.runners import export_items
from fewbench.scores import Scores


def _select(call: Call, *, harness: str = "ids", output: Path | None = None) -> None:
    """Print or write the items.

    Parameters
    ----------
    harness
        Output format: ids, lm-eval or inspect (for their own options).
    output
        JSON file for the chosen items (default: print the ids).
    """
    subset: Subset = call()
    say_shares([call.given["budget"]], call.read["scores"])
    made = subset.provenance
    assert made is not None
    whole = find_method(made.method).asks_once
    then = "estimate with the same method" if whole else f"the first of {made.budget} to run"
    give_subset(subset, call.read["scores"], output, harness, then)


def give_subset(
    subset: Subset, scores: Scores, output: Path | None, harness: str, then: str
) -> None:
    """Write a subset to a file or print its items, and print its notes."""
    for note in subset.notes:
        say(f"note: {note}")
    if output is None:
        echo(export_items(scores, subset.items, harness))
        return
    with written_whole(output) as temporary:
        temporary.write_text(subset.to_json() + "\n", encoding="utf-8")
    say(f"{output}: {len(subset.items)} items of {scores.n_items}; {then}")


select = command(
    select_items,
    work="choosing items",
    report=None,
    writes=["output"],
    around=_select,
    examples="""
fewbench select scores.parquet --method greedy-ridge --budget 50 -o subset.json
fewbench select scores.parquet --method greedy-ridge --budget 50 --for lm-eval
Later:  fewbench start scores.parquet --subset subset.json -o run
""",
)
