"""fewbench audit: what is wrong or peculiar in a table of past results."""

import json
import shutil
import textwrap
from pathlib import Path
from typing import Annotated

import typer

from fewbench._names import some
from fewbench.audit import DROPS, Audit, Finding, drop, with_families
from fewbench.audit import audit as run_audit
from fewbench.cli.options import AverageOption, Json, ScoresPath, load, say, split_names
from fewbench.errors import FewbenchError
from fewbench.scores import save_scores

WIDEST = 100
INDENT = 9  # as wide as "problem  "


def audit(
    scores_path: ScoresPath,
    as_json: Json = False,
    report: Annotated[Path | None, typer.Option(help="Write an HTML page.")] = None,
    dropped: Annotated[
        str | None,
        typer.Option("--drop", help=f"With -o: leave out, of {', '.join(DROPS)}."),
    ] = None,
    families: Annotated[
        bool, typer.Option("--families", help="With -o: name groups of like models as families.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the scores so changed, as .parquet."),
    ] = None,
    average: AverageOption = None,
) -> None:
    """Look a table of past results over: what is wrong or peculiar, and what to do about it.

    Nothing is changed unless asked for, with --drop or --families, and then in a new file.

    \b
    fewbench audit scores.parquet
    fewbench audit scores.parquet --report audit.html
    fewbench audit scores.parquet --json
    fewbench audit scores.parquet --drop duplicates,wrong-way -o clean.parquet
    fewbench audit scores.parquet --families -o named.parquet

    \b
    What can be left out:
    duplicates  all but one of the models of one name, or with identical rows
    near-twins  all but one of each group that answers nearly alike
    constant    items with the same score from every model
    wrong-way   items on which better models do worse
    """
    if (output is None) != (dropped is None and not families):
        raise FewbenchError(
            "--output says where to write scores without what --drop names, or with --families",
            hint="give -o FILE and at least one of the two, as in --drop duplicates -o FILE",
        )
    if report is not None and report.is_dir():  # said now, not after the work
        raise FewbenchError(f"{report}: a folder", hint="name a file to write")
    scores = load(scores_path, average)
    found = run_audit(scores)
    if output is not None:
        changed = scores
        said: list[str] = []
        if dropped is not None:
            changed, left_out = drop(changed, found, split_names(dropped))
            said += left_out
        if families:
            changed, named = with_families(changed, run_audit(changed) if dropped else found)
            said.append(named)
        written = save_scores(changed, output)
        for line in said:
            say(line)
        say(f"wrote {written}: {changed.n_models} models × {changed.n_items} items")
    if report is not None:
        from fewbench.report import write_audit

        write_audit(found, report, source=scores_path.name)
        say(f"wrote {report}")
    if as_json:
        print(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    else:
        print(describe(found, min(shutil.get_terminal_size((WIDEST, 24)).columns, WIDEST)))


def describe(found: Audit, width: int = WIDEST) -> str:
    """Return the findings for a terminal, most serious first, and what methods fit."""
    blocks = [*(_wrapped(line, width, 2) for line in _headline(found)), ""]
    blocks += [_finding(finding, width) for finding in found.findings]
    return "\n".join([*blocks, "", *_methods(found, width)])


def _methods(found: Audit, width: int) -> list[str]:
    """Return the methods, those with the same verdict together."""
    verdicts: dict[str, list[str]] = {}
    for fit in found.methods:
        said = f"{fit.verdict}: {'; '.join(fit.because)}" if fit.because else fit.verdict
        verdicts.setdefault(said, []).append(fit.method)
    lines = ["Methods on these scores"]
    for said, names in verdicts.items():
        lines.append(_wrapped(f"  {', '.join(names)}", width, 2))
        lines.append(_wrapped(f"    → {said}", width, 6))
    return lines


def _headline(found: Audit) -> list[str]:
    shape = found.table
    missing = f"{shape['missing']:.1%} of cells missing" if shape["missing"] else "none missing"
    kind = "right or wrong" if shape["binary"] else "scores between the ends of the range"
    options = "with" if shape["probabilities"] else "without"
    counts = {s: sum(f.severity == s for f in found.findings) for s in ("problem", "caution")}
    return [
        f"{shape['models']:,} models × {shape['items']:,} items, {shape['tasks']} "
        f"task{'s' if shape['tasks'] != 1 else ''}, {kind}, {missing}, {options} option "
        "probabilities",
        f"{counts['problem']} problem{'s' if counts['problem'] != 1 else ''}, "
        f"{counts['caution']} caution{'s' if counts['caution'] != 1 else ''}",
    ]


def _finding(finding: Finding, width: int) -> str:
    what = finding.what
    if finding.groups:
        named = ["{" + some(group, 2) + "}" for group in finding.groups[:2]]
        more = len(finding.groups) - len(named)
        what += f": {', '.join(named)}" + (f" and {more} more" if more else "")
    elif finding.ids:
        what += f": {some(finding.ids)}"
    lines = [_wrapped(f"{finding.severity:<{INDENT}}{what}", width, INDENT)]
    if finding.advice:
        lines.append(_wrapped(f"{'':{INDENT}}→ {finding.advice}", width, INDENT + 2))
    return "\n".join(lines)


def _wrapped(line: str, width: int, indent: int) -> str:
    return textwrap.fill(
        line,
        max(width, indent + 20),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
        replace_whitespace=False,
        expand_tabs=False,
    )
