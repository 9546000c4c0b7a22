"""fewbench audit: check a results table."""

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from fewbench._names import counted, some
from fewbench._text import WIDEST, wrapped
from fewbench.audit import DROPS, Audit, Finding, drop, with_families
from fewbench.audit import audit as run_audit
from fewbench.cli.options import AverageOption, Json, ScoresPath, load, split_names
from fewbench.cli.outputs import Force, check_outputs
from fewbench.cli.progress import at_work
from fewbench.cli.text import echo, say
from fewbench.errors import FewbenchError
from fewbench.scores import save_scores

UNBROKEN = "\0"  # a space without a line break
INDENT = 9  # as wide as "problem  "
# Facts without advice: one line here, in full in --json and --report.
QUIET = {"saturated": "nearly saturated items", "dates": "dates"}


def audit(
    scores_path: ScoresPath,
    as_json: Json = False,
    report: Annotated[Path | None, typer.Option(help="HTML report to write.")] = None,
    dropped: Annotated[
        str | None,
        typer.Option(
            "--drop", help=f"With -o: comma-separated kinds to leave out: {', '.join(DROPS)}."
        ),
    ] = None,
    families: Annotated[
        bool, typer.Option("--families", help="With -o: give similar models the same family.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Scores file to write (.parquet)."),
    ] = None,
    average: AverageOption = None,
    force: Force = False,
) -> None:
    """Check a results table for problems and suggest fixes.

    Nothing is changed, except in a new file with --drop or --families.

    \b
    fewbench audit scores.parquet
    fewbench audit scores.parquet --report audit.html
    fewbench audit scores.parquet --json
    fewbench audit scores.parquet --drop duplicates,wrong-way -o clean.parquet
    fewbench audit scores.parquet --families -o named.parquet

    \b
    Kinds to leave out:
    duplicates  models with the same answers as another model
    near-twins  all but one model of each group that answers almost alike
    constant    items with the same score from every model
    wrong-way   items on which better models do worse
    """
    if (output is None) != (dropped is None and not families):
        raise FewbenchError(
            "--output needs --drop or --families, and they need --output",
            hint="pass both, as in --drop duplicates -o FILE",
        )
    check_outputs(report, output, inputs=[scores_path], force=force)
    scores = load(scores_path, average)
    with at_work("auditing"):
        found = run_audit(scores)
    changed: dict[str, Any] | None = None
    if output is not None:
        left, said = scores, list[str]()
        if dropped is not None:
            left, left_out = drop(left, found, split_names(dropped))
            said += left_out
        if families:
            left, named = with_families(left, run_audit(left) if dropped else found)
            said.append(named)
        written = save_scores(left, output)
        for line in said:
            say(line)
        say(f"wrote {written}: {left.n_models} models × {left.n_items} items")
        changed = {"said": said, "written": str(written)}
    if report is not None:
        from fewbench.report import write_audit

        write_audit(found, report, source=scores_path.name, changed=changed)
        say(f"wrote {report}")
    if as_json:
        read = {**found.to_dict(), "changed": changed}
        echo(json.dumps(read, indent=2, ensure_ascii=False))
    else:
        width = min(shutil.get_terminal_size((WIDEST, 24)).columns, WIDEST)
        if changed is not None:
            echo(f"{scores_path}, without the changes in {changed['written']}:\n")
        echo(describe(found, width, str(scores_path)))


def describe(found: Audit, width: int = WIDEST, path: str = "SCORES") -> str:
    """Return the findings as text, most serious first, and the methods to use."""
    blocks = [*(_line(line, width, 2) for line in _headline(found)), ""]
    quiet = [f for f in found.findings if f.kind in QUIET and f.severity == "fact"]
    blocks += [_finding(finding, width, path) for finding in found.findings if finding not in quiet]
    if quiet:
        words = " and ".join(QUIET[finding.kind] for finding in quiet)
        blocks.append(_line(f"{'fact':<{INDENT}}on {words}: see --json or --report", width, INDENT))
    return "\n".join([*blocks, "", *_methods(found, width, path)])


def _methods(found: Audit, width: int, path: str) -> list[str]:
    lines = ["Use these methods"]
    for one in found.use:
        lines.append(_line(f"  {one.when}: {', '.join(one.methods)}", width, 2))
        lines.append(_line(f"    → {one.reason}", width, 6))
    first = dict.fromkeys(one.methods[0] for one in found.use if one.methods)
    n_items = found.table["items"]
    budgets = [str(n) for n in (20, 50) if n < n_items] or [str(-(-n_items // 2))]
    command = f"fewbench compare {shlex.quote(path)} -m {','.join(first)} -n {','.join(budgets)}"
    check = f"Check them on these scores: {command.replace(' ', UNBROKEN)} shows each method's "
    check += "error and that of random sampling. Use only methods with a lower error."
    lines.append(_line(f"  {check}", width, 2))
    reasons: dict[str, list[str]] = {}
    for fit in found.methods:
        if fit.verdict == "cannot":
            reasons.setdefault("; ".join(fit.because), []).append(fit.method)
    lines += ["These methods cannot run here"] if reasons else []
    for reason, names in reasons.items():
        lines.append(_line(f"  {', '.join(names)}", width, 2))
        lines.append(_line(f"    → {reason}", width, 6))
    lack = sum(fit.verdict == "works, but" for fit in found.methods)
    rest = f"{counted(len(found.methods) - sum(map(len, reasons.values())), 'method')} can run"
    rest += f", {lack} of them with a limitation: see --json or --report" if lack else ""
    return [*lines, _line(rest, width, 2)]


def _headline(found: Audit) -> list[str]:
    shape = found.table
    missing = f"{shape['missing']:.1%} of cells missing" if shape["missing"] else "none missing"
    kind = "right or wrong" if shape["binary"] else "continuous scores"
    options = "with" if shape["probabilities"] else "without"
    counts = {s: sum(f.severity == s for f in found.findings) for s in ("problem", "caution")}
    return [
        f"{shape['models']:,} models × {shape['items']:,} items, "
        f"{counted(shape['tasks'], 'task')}, {kind}, {missing}, {options} option probabilities",
        ", ".join(counted(number, severity) for severity, number in counts.items()),
    ]


def _finding(finding: Finding, width: int, path: str) -> str:
    what = finding.what
    if finding.groups:
        named = ["{" + some(group, 2) + "}" for group in finding.groups[:2]]
        more = len(finding.groups) - len(named)
        what += f": {', '.join(named)}" + (f" and {more} more" if more else "")
    elif finding.ids:
        what += f": {some(finding.ids)}"
    lines = [_line(f"{finding.severity:<{INDENT}}{what}", width, INDENT)]
    if finding.advice:
        lines.append(_line(f"{'':{INDENT}}→ {_pasted(finding.advice, path)}", width, INDENT + 2))
    return "\n".join(lines)


def _pasted(advice: str, path: str) -> str:
    return re.sub(
        r"fewbench audit SCORES[^()]*",
        lambda found: found[0].replace("SCORES", shlex.quote(path)).replace(" ", UNBROKEN),
        advice,
    )


def _line(line: str, width: int, indent: int) -> str:
    return wrapped(line, indent, width).replace(UNBROKEN, " ")
