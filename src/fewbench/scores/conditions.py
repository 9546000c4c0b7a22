"""The prompts and settings under which items were answered, as two columns of the items.

- `prompt_hashes`: hashes of the prompts, separated by spaces. `@` and the hash of the chat template
  follow where the prompt contains one, as such prompts differ between models; `@?` follows where
  the harness does not log this. The last is `…` if there are more.
- `task_settings`: JSON, setting → values in the runs of the task. Empty if unknown.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from fewbench._names import counted, some
from fewbench.scores.table import PROMPTS, SETTINGS, Scores

UNKNOWN_FORM = "?"  # it is unknown whether a prompt contains a chat template
MORE = "…"
MOST = 8  # prompts of an item, or values of a setting, that are kept
SHOTS, SAMPLER, GENERATION = "few-shot examples", "few-shot sampler", "generation: "
Settings = Mapping[str, list[str]]


@dataclass(frozen=True)
class Comparison:
    """Differences between the conditions of answers and of source models.

    `differences` mean that other questions were asked. `notes` are legitimate or unknown
    differences.
    """

    differences: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def join_prompts(hashes: Iterable[str]) -> str:
    """Return hashes of prompts, most frequent first, as one text of the first `MOST`.

    Examples
    --------
    >>> join_prompts(["9f00", "ab12@3c"])
    '9f00 ab12@3c'
    """
    listed = list(hashes)
    return " ".join(listed[:MOST] + [MORE] * (len(listed) > MOST))


def join_settings(runs: Iterable[Mapping[str, str]]) -> str:
    """Return the settings of a task's runs as one text; "" if none is known.

    A missing argument, such as "generation: temperature", counts as "not set"; another missing
    setting as unknown.

    Examples
    --------
    >>> join_settings([{"few-shot examples": "0"}, {"few-shot examples": "2"}, {}])
    '{"few-shot examples": ["0", "2"]}'
    """
    known = [run for run in runs if run]
    found: dict[str, list[str]] = {}
    for name in sorted({name for run in known for name in run}):
        values = [run.get(name, _absent(name)) for run in known]
        kept = list(dict.fromkeys(value for value in values if value))
        found[name] = [*kept[:MOST], *([MORE] if len(kept) > MOST else [])]
    return json.dumps(found, ensure_ascii=False) if found else ""


def _absent(name: str) -> str:
    return "not set" if ": " in name else ""


def compare_conditions(sources: Scores, told: Scores, items: Iterable[str]) -> Comparison:
    """Compare prompts and settings of answers with those of the source models, on some items.

    What either does not record is not compared, and a note says so.
    """
    taken = list(items)
    if not taken:
        return Comparison()
    for whose, table in (("the sources", sources), ("the answers", told)):
        if not {PROMPTS, SETTINGS} & set(table.items.columns):
            return Comparison(notes=(_unrecorded(whose),))
    tasks = told.items["task"].loc[taken].astype(str).tolist()  # the user may rename the sources'
    theirs, ours = (_by_task(table, taken, tasks) for table in (sources, told))
    differences = list(_other_settings(theirs, ours))
    notes = []
    silent = [task for task in ours if not (theirs[task] and ours[task])]
    if silent:
        who = "the sources" if not all(theirs[task] for task in silent) else "the answers"
        notes.append(f"{_unrecorded(who, 'settings')} ({some(silent)})")
    recorded = {PROMPTS} & {*sources.items.columns, *told.items.columns}  # not by Inspect
    prompts = _compare_prompts(sources, told, taken, tasks) if recorded else {}
    for task, found in prompts.items():
        if found.other:
            first, new, old = found.first
            said = (
                f"{len(found.other)} of {counted(found.compared, 'item')} of task {task!r} "
                f"{'have' if found.compared > 1 else 'has'} another prompt than in the sources, "
                f"such as {first!r}: prompt_hash {new} in the answers, {old} in the sources"
            )
            if _draws_examples(theirs[task], ours[task]) and not _covers(sources, told, first):
                notes.append(
                    f"{said}; expected, as lm-eval's default few-shot sampler draws other "
                    "examples if only chosen items are run (--samples)"
                )
            else:
                differences.append(said)
        if found.doubtful:
            notes.append(
                f"{counted(found.doubtful, 'item')} of task {task!r} have another prompt than in "
                "the sources; the harness does not log whether the chat template is the reason"
            )
    unlike = sum(found.templated for found in prompts.values())
    if unlike:
        notes.append(
            f"prompts of {counted(unlike, 'item')} contain the models' own chat templates and are "
            "not compared with the sources"
        )
    uncompared = sum(found.unknown for found in prompts.values())
    if uncompared and uncompared < len(taken):
        notes.append(
            f"prompts of {counted(uncompared, 'item')} are unknown, or too many in the sources, "
            "and are not compared"
        )
    elif uncompared and not silent:
        notes.append(
            "prompts are not compared: the sources or the answers do not record them, or the "
            "sources have too many"
        )
    return Comparison(tuple(differences), tuple(notes))


def _unrecorded(who: str, what: str = "prompts and settings") -> str:
    return f"{who} do not record their {what}, so these are not compared"


def _by_task(scores: Scores, items: list[str], tasks: list[str]) -> dict[str, Settings]:
    known = SETTINGS in scores.items
    column = scores.items[SETTINGS].loc[items] if known else [""] * len(items)
    pairs = dict(zip(tasks, column, strict=True))
    return {task: _parsed(str(text)) for task, text in pairs.items()}


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Settings:
    try:
        found = json.loads(text) if text else {}
    except ValueError:  # a column of that name in a user's own table
        return {}
    return found if isinstance(found, dict) else {}


def _other_settings(theirs: Mapping[str, Settings], ours: Mapping[str, Settings]) -> list[str]:
    tasks: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for task, mine in ours.items():
        known = theirs[task]
        if not (mine and known):
            continue
        for name in sorted({*mine, *known}):
            absent = [_absent(name)] if _absent(name) else []
            new, old = mine.get(name, absent), known.get(name, absent)
            if new and old and MORE not in old and not set(new) <= set(old):
                tasks[name, " and ".join(new), " or ".join(old)].append(task)
    return [
        f"{name.removeprefix(GENERATION)} of task {some(names)}: {new} in the answers, {old} in "
        "the sources"
        for (name, new, old), names in tasks.items()
    ]


@dataclass
class _Prompts:
    """Counts of items by result; `first` is the first differing item with both hashes."""

    other: list[str]
    first: tuple[str, str, str] = ("", "", "")
    compared: int = 0
    doubtful: int = 0
    templated: int = 0
    unknown: int = 0


def _compare_prompts(
    sources: Scores, told: Scores, items: list[str], tasks: list[str]
) -> dict[str, _Prompts]:
    found: dict[str, _Prompts] = {}
    for item, task, old, new in zip(
        items, tasks, _prompts_of(sources, items), _prompts_of(told, items), strict=True
    ):
        one = found.setdefault(task, _Prompts([]))
        forms = {_form(hashed) for hashed in old}
        comparable = [hashed for hashed in new if _form(hashed) in forms]
        strange = [hashed for hashed in comparable if hashed not in old]
        if not new or not old or (strange and MORE in old):
            one.unknown += 1
        elif not comparable:
            one.templated += 1
        elif strange and all(_form(hashed) == UNKNOWN_FORM for hashed in strange):
            one.doubtful += 1
        else:
            one.compared += 1
            if strange:
                one.other.append(item)
                if len(one.other) == 1:
                    one.first = item, strange[0], " or ".join(old)
    return found


def _prompts_of(scores: Scores, items: list[str]) -> list[list[str]]:
    if PROMPTS not in scores.items:
        return [[] for _ in items]
    column = scores.items[PROMPTS].loc[items]
    return [text.split() if isinstance(text, str) else [] for text in column]


def _form(hashed: str) -> str:
    return hashed.partition("@")[2]


def _draws_examples(theirs: Settings, ours: Settings) -> bool:
    """Whether prompts depend on the items run: lm-eval's default few-shot sampler."""
    return all(
        one.get(SAMPLER) == ["default"] and one.get(SHOTS, ["0"]) != ["0"] for one in (theirs, ours)
    )


def _covers(sources: Scores, told: Scores, item: str) -> bool:
    """Whether all items of an item's task were run."""
    known = sources.items.index[sources.items["task"] == sources.items["task"].loc[item]]
    return bool(known.isin(told.items.index).all())
