"""Every hint of an import that fails is tried on the input that caused it."""

import json
import re
import shlex

import pytest

ROWS = [{"id": f"q{n}", "model": "a", "correct": n % 2 == 0} for n in range(4)]
NESTED = [{"question": f"q{n}", "x": {"correct": True}, "y": {"correct": n > 1}} for n in range(4)]
PREDICTED = [{"input": f"q{n}", "prediction": str(n > 1), "target": "True"} for n in range(4)]
BY_ID = {row["id"]: {"correct": row["correct"], "text": "x"} for row in ROWS}
CSV = "item,model,setting,score\n"
TWICE = CSV + "".join(f"q{n},m,{s},{(n + k) % 2}\n" for n in range(4) for k, s in enumerate("xy"))
PLACEHOLDER = re.compile(r"\b(COLUMN|TEXT|FILE|LOW|HIGH|NAME|FIELD|K|SCORES)\b")


def lines(rows):
    return "\n".join(map(json.dumps, rows))


CASES = {
    "columns not named": ({"a.jsonl": lines(ROWS)}, ""),
    "column of models not named": ({"a.jsonl": lines(ROWS)}, "--item id --score correct"),
    "two systems in two files": (
        {"cot.jsonl": lines(ROWS), "direct.jsonl": lines([r | {"correct": True} for r in ROWS])},
        "--item id --score correct --model model",
    ),
    "two systems in one file": ({"a.csv": TWICE}, "--item item --score score --model model"),
    "rows by id": ({"a.json": json.dumps(BY_ID)}, ""),
    "a model each in an object": ({"a.jsonl": lines(NESTED)}, "--item question --score x"),
    "predictions": ({"a.json": json.dumps({"o": PREDICTED})}, "--item input --score prediction"),
    "answers as texts": (
        {"a.csv": "id,said,answer\nq1,A,A\nq2,B,C\n"},
        "--item id --score said",
    ),
    "answers in lists": (
        {"a.jsonl": lines([{"id": f"q{n}", "ok": [1, 0]} for n in range(3)])},
        "--item id --score ok",
    ),
    "texts of missing answers": (
        {"a.csv": "id,ok\nq1,PASS\nq2,FAIL\nq3,n/a\n"},
        "--item id --score ok",
    ),
    "percentages": ({"a.csv": "id,ok\nq1,100\nq2,50\n"}, "--item id --score ok"),
    "no item": ({"a.csv": "id,ok\nq1,1\nq2,0\n"}, "--score ok"),
    "columns of attributes": (
        {"a.csv": "model,size,q1,q2\na,big,1,0\nb,small,0,1\n"},
        "--model model",
    ),
    "several metrics": (
        {"e_eval_results.json": json.dumps({"date": "d", "eval": {"HumanEval/0": [
            {"base_status": "pass", "plus_status": "fail"}]}})},
        "",
    ),
}  # fmt: skip


def options_of(hint):
    """The options of each way that a hint names, without those whose value is left to the user."""
    for way in re.split(r"; | or |, (?=--)", re.sub(r"\(in Python[^)]*\)", "", hint)):
        found = re.findall(r"--[a-z-]+(?: (?:'[^']*'|[^-\s(][^\s;()]*))?", way)
        if found and not PLACEHOLDER.search(" ".join(found)):
            yield [word for option in found for word in shlex.split(option)]


def merged(words, more):
    """Options with others in place of those of the same names."""
    kept, named = [], {word for word in more if word.startswith("--")}
    pairs = zip(words[::2], words[1::2], strict=True)
    for name, value in pairs:
        kept += [] if name in named else [name, value]
    return [*kept, *more]


@pytest.mark.parametrize("case", CASES)
def test_a_hint_works_or_leads_one_step_on(cli, tmp_path, case):
    files, options = CASES[case]
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    words = ["import", *files, "-o", "s.parquet", "--force"]
    failed = cli(*words, *options.split())
    assert failed.code, failed.out
    message, _, hint = failed.err.partition("(hint: ")
    tried = list(options_of(hint))
    assert tried or PLACEHOLDER.search(hint), hint
    for more in tried:
        again = cli(*words, *merged(options.split(), more))
        assert not again.code or again.err.partition("(hint: ")[0] != message, (more, again.err)
    if tried:
        assert any(not cli(*words, *merged(options.split(), more)).code for more in tried), tried
