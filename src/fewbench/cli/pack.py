"""fewbench select, pack: choose items, as a subset file or with all that estimates need."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from fewbench._files import written_whole
from fewbench._text import echo, say, say_note
from fewbench.cli.commands import Call, command
from fewbench.cli.help import Commands, ListedGroup
from fewbench.cli.options import say_shares
from fewbench.errors import PackError
from fewbench.evaluation import select_items
from fewbench.methods import Subset, find_method
from fewbench.packs import Pack, open_pack, refresh_pack
from fewbench.packs import pack as make_pack
from fewbench.runners import export_items
from fewbench.scores import Scores
from fewbench.scores.pack_files import SUFFIX


def _select(call: Call, *, harness: str = "ids", output: Path | None = None) -> None:
    """Print or write the items.

    Parameters
    ----------
    harness
        Output format: ids, lm-eval (for --samples) or inspect (for --sample-id).
    output
        JSON file for the chosen items (default: print the ids).
    """
    subset: Subset = call()
    say_shares([call.given["budget"]], call.read["scores"])
    provenance = subset.provenance
    assert provenance is not None
    whole = find_method(provenance.method).asks_once
    then = "estimate with the same method" if whole else f"the first of {provenance.budget} to run"
    give_subset(subset, call.read["scores"], output, harness, then)


def give_subset(
    subset: Subset, scores: Scores, output: Path | None, harness: str, then: str
) -> None:
    """Write a subset to a file or print its items, and print its notes."""
    for note in subset.notes:
        say_note(note)
    if output is None:
        echo(export_items(scores, subset.items, harness))
        return
    with written_whole(output) as temporary:
        temporary.write_text(subset.to_json() + "\n", encoding="utf-8")
    say(f"{output}: {len(subset.items):,} items of {scores.n_items:,}; {then}")


select = command(
    select_items,
    work="choosing items",
    report=False,
    writes=["output"],
    around=_select,
    examples="""
fewbench select scores.parquet --method greedy-ridge --budget 50 -o subset.json
fewbench select scores.parquet --method greedy-ridge --budget 50 --for lm-eval
Later:  fewbench start scores.parquet --subset subset.json -o run
""",
)


class _MakesByDefault(ListedGroup):
    """A group in which a first argument that is not a command is the scores file of `make`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            args = ["make", *args]
        return super().resolve_command(ctx, args)


pack = Commands(_MakesByDefault)


@pack.callback()
def _all() -> None:
    """Make a pack: a benchmark's few items in one file.

    A pack has the chosen items and everything needed to estimate full scores. Use a pack in place
    of SCORES in start and run. Options of fewbench pack SCORES: see fewbench pack make --help.

    \b
    fewbench pack scores.parquet -m greedy-ridge -n 100 -o mmlu-100.few
    fewbench pack show mmlu-100.few
    fewbench start mmlu-100.few -o run
    fewbench pack next-scores.parquet -n 100 --keep mmlu-100.few -o mmlu-100-next.few
    fewbench pack refresh run newer.few
    """


def _make(call: Call, *, output: Path) -> Pack:
    """Write the pack.

    Parameters
    ----------
    output
        Pack to write (.few).
    """
    if output.suffix != SUFFIX:
        raise PackError(
            f"{output}: a pack's name ends in {SUFFIX}", hint=f"use {output.with_suffix(SUFFIX)}"
        )
    packed: Pack = call(name=call.given["name"] or output.stem)
    packed.save(output, force=call.given["force"])
    say(f"wrote {output}")
    return replace(packed, source=output)


pack.command("make")(
    command(
        make_pack,
        work="packing",
        writes=["output"],
        around=_make,
        examples="""
fewbench pack scores.parquet -m greedy-ridge -n 100 -o mmlu-100.few
fewbench pack scores.parquet -n 50 --by task -o tasks.few --license MIT --anonymous
""",
    )
)
pack.command("show")(command(open_pack, examples="fewbench pack show mmlu-100.few"))
pack.command("refresh")(
    command(
        refresh_pack,
        work="estimating again",
        examples="fewbench pack refresh run mmlu-100-2027.few",
    )
)
