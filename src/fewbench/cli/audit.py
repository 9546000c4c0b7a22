"""fewbench audit."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fewbench._names import counted
from fewbench._text import say
from fewbench.checks import Audit, with_families
from fewbench.checks import audit as run_audit
from fewbench.checks import drop as drop_found
from fewbench.cli.commands import Call, command
from fewbench.cli.options import load
from fewbench.errors import FewbenchError
from fewbench.scores import save_scores
from fewbench.scores.benchmark import retired_note


def _audit(
    call: Call,
    *,
    drop: Sequence[str] | None = None,
    families: bool = False,
    output: Path | None = None,
) -> Audit:
    """Write a corrected copy as well.

    Parameters
    ----------
    drop
        With `output`: kinds of models or items to leave out.
    families
        With `output`: give similar models the same family.
    output
        Scores file to write (.parquet), with `drop`, --drop-items or `families`.
    """
    retired = call.given["drop_items"]
    if (output is None and (drop or families)) or (output and not (drop or families or retired)):
        raise FewbenchError(
            "--output and one of --drop, --drop-items and --families belong together",
            hint="pass both, as in --drop duplicates -o FILE",
        )
    checked: Audit = call()
    if output is None:
        return checked
    left, notes = call.read["scores"], list[str]()
    if retired is not None:
        notes += retired_note(load(call.given["scores"]).n_items, left.n_items)
    if drop is not None:
        left, left_out = drop_found(left, checked, drop)
        notes += left_out
    if families:
        left, named = with_families(left, run_audit(left) if drop else checked)
        notes.append(named)
    checked = run_audit(left)  # of what is left: the changes need no advice
    written = save_scores(left, output)
    size = f"{counted(left.n_models, 'model')} × {counted(left.n_items, 'item')}"
    say(f"wrote {written}: {size}")
    return replace(checked, changed={"said": notes, "written": str(written)})


audit = command(
    run_audit,
    work="auditing",
    details=True,
    writes=["output"],
    around=_audit,
    page=lambda checked, options: checked.page(
        checked.changed["written"] if checked.changed else str(options["scores"])
    ),
    examples="""
fewbench audit scores.parquet
fewbench audit scores.parquet --report audit.html
fewbench audit scores.parquet --json
fewbench audit scores.parquet --drop duplicates,wrong-way -o clean.parquet
fewbench audit scores.parquet --drop-items retired.txt -o next.parquet
fewbench audit scores.parquet --families -o named.parquet

\b
Kinds to leave out:
duplicates       models with the same answers as another model
near-duplicates  all but one of each group of models with almost the same answers
constant         items with the same score from every model
wrong-way        items on which better models do worse
incomplete       models that lack more than 5% of the items, and items that another model lacks
""",
)
