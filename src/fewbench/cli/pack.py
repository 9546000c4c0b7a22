"""fewbench pack: a benchmark's few items, with all that estimates need, in one file."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from fewbench.cli.commands import Call, command
from fewbench.cli.help import Commands, ListedGroup
from fewbench.cli.text import say
from fewbench.errors import PackError
from fewbench.packs import Pack, open_pack, refresh_pack
from fewbench.packs import pack as make_pack
from fewbench.scores.pack_files import SUFFIX


class _MakesByDefault(ListedGroup):
    """A group in which a first argument that is no command is the scores file of `make`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            args = ["make", *args]
        return super().resolve_command(ctx, args)


pack = Commands(_MakesByDefault)


@pack.callback()
def _all() -> None:
    """Make a pack: a benchmark's few items in one file.

    A pack contains the chosen items and what estimates from them need of the source models.
    Use a pack in place of SCORES in start and run. Options of fewbench pack SCORES: see
    fewbench pack make --help.

    \b
    fewbench pack scores.parquet -m greedy-ridge -n 100 -o mmlu-100.few
    fewbench pack show mmlu-100.few
    fewbench start mmlu-100.few -o run
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
    made: Pack = call(name=call.given["name"] or output.stem)
    made.save(output, force=call.given["force"])
    say(f"wrote {output}")
    return replace(made, source=output)


pack.command("make")(
    command(
        make_pack,
        work="packing:",
        report="report",
        writes=["output"],
        around=_make,
        examples="""
fewbench pack scores.parquet -m greedy-ridge -n 100 -o mmlu-100.few
fewbench pack scores.parquet -n 50 --by task -o tasks.few --license MIT --anonymous
""",
    )
)
pack.command("show")(
    command(open_pack, report="report", examples="fewbench pack show mmlu-100.few")
)
pack.command("refresh")(
    command(
        refresh_pack,
        work="estimating again",
        examples="fewbench pack refresh run mmlu-100-2027.few",
    )
)
