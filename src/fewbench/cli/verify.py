"""fewbench verify."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fewbench._text import echo, say
from fewbench.cli.answers import read_answers
from fewbench.cli.commands import Call, command
from fewbench.decide import Verification
from fewbench.decide import verify as check_submission
from fewbench.decide.operands import operands
from fewbench.runners import export_items


def _verify(
    call: Call,
    answers: Path | None = None,
    *,
    item: str | None = None,
    score: str | None = None,
    missing: Sequence[str] = (),
    right: Sequence[str] = (),
    wrong: Sequence[str] = (),
    harness: str = "ids",
) -> Verification | None:
    """Print the items to run again, or compare the answers to them.

    Parameters
    ----------
    answers
        Your answers to the drawn items: a table or harness logs (default: print the items).
    item
        Table of answers: column with the item id.
    score
        Table of answers: column with the score.
    missing
        Table of answers: texts for items that were not run, as in 'n/a,-'.
    right
        Table of answers: texts for the best score, such as PASS.
    wrong
        Table of answers: texts for the worst score, such as FAIL.
    harness
        Format of the printed items: ids, lm-eval (for --samples) or inspect (for --sample-id).
    """
    words = call.arguments()
    (side,), scores, _ = operands(words["submission"], scores=words.get("scores"))
    if answers is None:
        drawn: Verification = call()
        echo(export_items(scores, drawn.items, harness))
        say(str(drawn))
        return None
    how: dict[str, Any] = {"missing": missing or (), "right": right or (), "wrong": wrong or ()}
    table = read_answers(answers, scores, [side.name], item=item, score=score, **how).scores
    values = scores.scale.from_unit(table.cells[0])
    result: Verification = call(rerun=dict(zip(table.item_ids, values.tolist(), strict=True)))
    return result


verify = command(
    check_submission,
    work="comparing answers",
    around=_verify,
    arguments=["answers"],
    hidden=["rerun"],
    about="The exit code is 1 for an inflated submission, 2 for an error, else 0.",
    examples="""
fewbench verify submission -n 20 --seed 8231 > items.txt   items to run again
fewbench verify submission again.csv -n 20 --seed 8231     your answers to them
fewbench verify model-a again.csv --seed 8231 --scores scores.parquet
""",
)
