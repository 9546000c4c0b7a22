"""Prompts, answer keys and settings of items, as three columns of the items.

- `prompt_hashes`: hashes of the prompts, separated by spaces. `@` and the hash of the chat template
  follow where the prompt contains one, as such prompts differ between models; `@?` follows where
  the harness does not log this. The last is `…` if there are more.
- `key_hashes`: hashes of the right answer and of the options, `ANSWER/OPTIONS`, each empty where
  unknown; several are separated by spaces, as for prompts. Harnesses write answers in different
  forms, so only hashes of one harness are comparable.
- `task_settings`: JSON, setting → values in the runs of the task. Empty if unknown. Names that
  begin with `SCORING` say how answers are scored.

A difference means a different question or different scoring. What is unknown does not differ.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._names import counted, some
from fewbench.scores.benchmark import ItemTable
from fewbench.scores.repeats import TRIALS
from fewbench.scores.table import HARNESS_VERSION, KEYS, PROMPTS, SETTINGS, Scores

COLUMNS = (PROMPTS, KEYS, SETTINGS, HARNESS_VERSION, "harness")
"""Columns of a table of answers with the prompts and scoring of its items."""

UNKNOWN_FORM = "?"  # it is unknown whether a prompt contains a chat template
MORE = "…"
MOST = 8  # prompts of an item, or values of a setting, that are kept
SHOTS, SAMPLER, GENERATION = "few-shot examples", "few-shot sampler", "generation: "
TEMPLATE = "prompt template"  # compared where the prompts themselves cannot be
OWN = ("chat template", "examples as turns")
"""Settings that go with a model."""
AGENT = ("solver", "task argument: ")
"""Beginnings of the names of settings that make an agent of Inspect another one."""
SCORING = "scoring "
PARTS = ("another right answer", "other options")  # how the parts of a key differ
NAMES = ("the sources", "the answers")
TARGETS = ("the beginning of this run", "these answers")
NO_CODE = re.compile("<(function|class|bound method|functools)")  # Python objects in a log
Settings = Mapping[str, list[str]]


@dataclass(frozen=True)
class Compared:
    """Differences between the conditions of answers and of source models.

    `differences` mean that the questions differ. `doubts` say why they may be others; nothing is
    refused, and estimates repeat them. `notes` are legitimate or unknown differences. `uncompared`
    are items of which something was not compared, by a note with {} for their number; see
    `count_uncompared`.
    """

    differences: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    uncompared: Mapping[str, Sequence[str]] = field(default_factory=dict)


def count_uncompared(uncompared: Mapping[str, Collection[str]]) -> list[str]:
    """Return the notes of `Compared.uncompared`.

    >>> count_uncompared({"prompts of {} are not compared": ["q1", "q2"]})
    ['prompts of 2 items are not compared']
    """
    return [note.replace("{}", counted(len(items), "item")) for note, items in uncompared.items()]


def join_hashes(hashes: Iterable[str]) -> str:
    """Return hashes of prompts or keys, most frequent first, as one text of the first `MOST`.

    Examples
    --------
    >>> join_hashes(["9f00", "ab12@3c"])
    '9f00 ab12@3c'
    """
    return " ".join(_first(hashes))


def _first(values: Iterable[str]) -> list[str]:
    """Return the first values, each once; `MORE` stands for others."""
    listed = dict.fromkeys(values)
    kept = [value for value in listed if value and value != MORE]
    return kept[:MOST] + [MORE] * (len(kept) > MOST or MORE in listed)


def join_settings(runs: Iterable[Mapping[str, str]]) -> str:
    """Return the settings of a task's runs as one text; "" if none is known.

    A missing argument, such as "generation: temperature", counts as "not set"; another missing
    setting as unknown.

    Examples
    --------
    >>> join_settings([{"few-shot examples": "0"}, {"few-shot examples": "2"}, {}])
    '{"few-shot examples": ["0", "2"]}'
    """
    return _settings_text({name: [run[name]] for name in run} for run in runs)


def _settings_text(settings: Iterable[Settings]) -> str:
    values = values_of_settings(("", of_runs) for of_runs in settings)
    by_name = {name: _first(by_value) for name, by_value in values.items()}
    return json.dumps(by_name, ensure_ascii=False) if by_name else ""


def values_of_settings(
    settings: Iterable[tuple[str, Settings]],
) -> dict[str, dict[str, dict[str, None]]]:
    """Return who had which value of each setting: setting → value → names, each once, in order.

    Who states no settings is left out; see `join_settings` for a setting that somebody lacks.

    Examples
    --------
    >>> asked = {"few-shot examples": ["0"]}
    >>> values_of_settings([("a", asked), ("b", {"task argument: size": ["9"]})])
    {'few-shot examples': {'0': {'a': None}},
     'task argument: size': {'not set': {'a': None}, '9': {'b': None}}}
    """
    stated = [(name, of_name) for name, of_name in settings if of_name]
    values: dict[str, dict[str, dict[str, None]]] = {
        setting: {} for setting in sorted({setting for _, of_name in stated for setting in of_name})
    }
    for setting, by_value in values.items():
        for name, of_name in stated:
            for value in of_name.get(setting, _absent(setting)):
                by_value.setdefault(value, {})[name] = None
    return values


def _absent(name: str) -> list[str]:
    if name == TRIALS:
        return ["one answer"]
    return ["not set"] if ": " in name else []


def recorded_conditions(
    told: Scores, items: Iterable[str]
) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return the prompts and scoring of items: column → value → places in `items`."""
    by_column: dict[str, dict[str, tuple[int, ...]]] = {}
    for name in {*COLUMNS} & {*told.items.columns}:
        places: dict[str, list[int]] = defaultdict(list)
        for at, text in enumerate(told.items[name].loc[list(items)]):
            if isinstance(text, str) and text:
                places[text].append(at)
        if places:
            by_column[name] = {text: tuple(where) for text, where in sorted(places.items())}
    return dict(sorted(by_column.items()))


def with_conditions(sources: Scores, told: ItemTable) -> Scores:
    """Return the sources' table with the prompts and scoring of further answers to its items.

    Conditions in a different harness are left out, because their texts differ.
    """
    tasks = sources.items["task"].astype(str)
    ours = tasks.loc[told.items.index].tolist()
    foreign = _of_other_harnesses(sources, told, list(told.items.index), ours)
    new = told.items[~np.isin(ours, sorted(foreign))]
    columns = {}
    for name in (PROMPTS, KEYS, SETTINGS, HARNESS_VERSION):
        if name not in new or not new[name].any():
            continue
        nothing = pd.Series("", index=tasks.index, dtype=object)
        column = sources.items.get(name, nothing).fillna("").astype(object)
        if name in (PROMPTS, KEYS):
            hashes = column.loc[new.index].astype(str)
            pairs = zip(hashes, new[name].astype(str), strict=True)
            column.loc[new.index] = [join_hashes(" ".join(texts).split()) for texts in pairs]
        else:
            for task, texts in new[name].groupby(tasks.loc[new.index]):
                mine = tasks == task
                every = map(str, [*column[mine].unique(), *texts.unique()])
                column[mine] = (
                    _settings_text(map(_parsed, every)) if name == SETTINGS else versions_in(every)
                )
        columns[name] = column
    return sources.changed(items=sources.items.assign(**columns)) if columns else sources


def versions_in(texts: Iterable[str]) -> str:
    """Return the versions of a harness in texts that list some each, each version once."""
    return ", ".join(sorted({version for text in texts for version in text.split(", ")} - {""}))


def compare_conditions(
    sources: ItemTable,
    told: ItemTable,
    items: Iterable[str],
    names: tuple[str, str] = NAMES,
    *,
    only_scoring: bool = False,
    other_agents: bool = False,
) -> Compared:
    """Compare prompts and scoring of answers with those of the source models, on some items.

    What either does not record is not compared, with a note. `names` are those of the two in
    messages. With `only_scoring`, right answers and scoring are compared alone. With
    `other_agents`, and where the source models have several agents, another one is a note.
    """
    taken = list(items)
    if not taken:
        return Compared()
    for whose, table in zip(names, (sources, told), strict=True):
        if not is_recorded(table):
            return Compared(notes=(_unrecorded(whose),))
    tasks = told.items["task"].loc[taken].astype(str).tolist()  # the user may rename the sources'
    theirs, ours = (
        {
            task: {
                name: values
                for name, values in _parsed(text).items()
                if name.startswith(SCORING) or not only_scoring
            }
            for task, text in _texts_by_task(table, SETTINGS, taken, tasks).items()
        }
        for table in (sources, told)
    )
    foreign = _of_other_harnesses(sources, told, taken, tasks)
    differences, notes = [], []
    silent = [task for task in ours if not (theirs[task] and ours[task])]
    if silent:
        who = names[0] if not all(theirs[task] for task in silent) else names[1]
        notes.append(f"{_unrecorded(who, 'settings')} ({some(silent)})")
    recorded = PROMPTS in sources.items or PROMPTS in told.items  # not by Inspect
    prompts = {}
    if recorded and not only_scoring:
        prompts = _compare_prompts(sources, told, taken, tasks, foreign)
    unlike_prompts = {task for task, check in prompts.items() if check.is_open}
    for task, check in prompts.items():
        if check.other:
            line = _said(task, check.other, check.compared, "other prompts", names, "prompt_hash")
            if _draws_examples(theirs[task], ours[task]) and not _covers(
                sources, told, check.other[0][0]
            ):
                unlike_prompts.add(task)
                notes.append(
                    f"{line}; expected, as lm-eval's default few-shot sampler draws other "
                    "examples if only chosen items are run (--samples)"
                )
            else:
                differences.append(line)
        if check.doubtful:
            notes.append(
                f"{counted(check.doubtful, 'item')} of task {task!r} have other prompts than "
                f"in {names[0]}; the harness does not log whether the chat template is the reason"
            )
    unlike = [item for check in prompts.values() for item in check.templated]
    unknown = [item for check in prompts.values() for item in check.unknown]
    others, unscored = _other_settings(
        theirs, ours, unlike_prompts, foreign, names, other_agents=other_agents
    )
    keys, keyless = _compare_keys(sources, told, taken, tasks, foreign, names)
    uncompared = {
        "prompts of {} contain the models' own chat templates and are not compared with "
        f"{names[0]}": unlike,
        f"prompts of {{}} are not compared, as {names[0]} or {names[1]} do not record them or have "
        "too many: make sure that they are the same": unknown,
        f"right answers of {{}} are not compared: {names[0]} or {names[1]} do not record them, or "
        "come from a different harness": keyless,
    }
    return Compared(
        (*others, *differences, *keys),
        asked_elsewhere(sources, told.items["harness"].iloc[0]) if foreign else (),
        (*notes, *unscored),
        {note: items for note, items in uncompared.items() if items},
    )


def compare_targets(first: ItemTable, told: ItemTable, items: Iterable[str]) -> Compared:
    """Compare the answers of a target with those that began a run without source models.

    Targets may run in different ways, such as two versions of an agent: that is a note. Their
    scoring must be the same.
    """
    asked = list(items)
    whole = compare_conditions(first, told, asked, TARGETS)
    scored = compare_conditions(first, told, asked, TARGETS, only_scoring=True)
    others = [text for text in whole.differences if text not in scored.differences]
    said = f"the targets of this folder run in different ways: {'; '.join(others)}"
    return replace(scored, doubts=(), notes=(said,) if others else (), uncompared={})


def is_recorded(table: ItemTable) -> bool:
    """Whether a table records any prompts or scoring of its items."""
    return bool({PROMPTS, KEYS, SETTINGS} & {*table.items.columns})


def asked_elsewhere(sources: Scores | ItemTable, harness: str) -> tuple[str, ...]:
    """Return why prompts of items that run in a harness may differ from the source models'.

    Nothing if the sources are logs of this harness. Estimates repeat the sentence.
    """
    named = sources.items["harness"].astype(str) if "harness" in sources.items else ()
    others = sorted({*named} - {harness, ""})
    if others:
        return (
            f"the source models ran in {' and '.join(others)}, not in {harness}: other prompts, "
            "settings and scorers give other scores, so the estimate may be off",
        )
    if is_recorded(sources):
        return ()
    return (
        "the scores do not record the source models' prompts and settings: if prompts, settings "
        "or scorers differ, the estimate may be off",
    )


def passes_of(texts: Iterable[str]) -> str:
    """Return pass@K, if settings of tasks say that scores are that; else "".

    >>> passes_of(['{"scoring trials": ["pass@3"]}', ""]), passes_of([""])
    ('pass@3', '')
    """
    found = (value for text in texts for value in _parsed(text).get(TRIALS, []))
    return next(iter(found), "")


def disagreements(scores: ItemTable, *, but_agents: bool = False) -> tuple[str, ...]:
    """Return how the models of a table were scored, and asked, in different ways.

    Chat templates are the models' own and no difference; with `but_agents`, so are agents.
    """
    own = (TEMPLATE, *OWN, *(AGENT if but_agents else ()))
    scored = _unequal_items(scores, KEYS, "right answers or options", _has_several_keys)
    asked = _unequal_items(scores, PROMPTS, "prompts", _has_several_prompts)
    if SETTINGS in scores.items:
        by_task = scores.items.drop_duplicates("task").set_index("task")[SETTINGS]
        for task, text in by_task.items():
            for name, values in _parsed(str(text)).items():
                if len(values) > 1 and not name.startswith(own):
                    ways = scored if name.startswith(SCORING) else asked
                    ways.append(f"{shown(name)} of task {str(task)!r} ({'; '.join(values)})")
    return tuple(
        f"the source models were {how} in different ways: {some(ways, quotes=False)}"
        for how, ways in (("scored", scored), ("asked", asked))
        if ways
    )


def _unequal_items(
    scores: ItemTable, column: str, what: str, has_several: Callable[[list[str]], bool]
) -> list[str]:
    """Say of how many items of each task a column has several values."""
    if column not in scores.items:
        return []
    texts = scores.items[column].astype(str)
    several = texts[texts.str.contains(" ")].map(lambda text: has_several(text.split()))
    every = scores.items["task"].astype(str)
    tasks = every.loc[several.index[several.to_numpy(bool)]]
    drawn = _tasks_with_drawn_examples(scores) if column == PROMPTS else set[str]()
    return [
        f"{counted(n, 'item')} of task {task!r} with several {what}"
        for task, n in tasks.value_counts().items()
        if task not in drawn or n == (every == task).sum()
    ]


def _has_several_keys(keys: list[str]) -> bool:
    return any(len(set(part) - {""}) > 1 for part in _parts_of(keys))


def _has_several_prompts(prompts: list[str]) -> bool:
    """Whether prompts differ that have the same chat template, or none."""
    forms = Counter(_form(prompt) for prompt in dict.fromkeys(prompts) if prompt != MORE)
    return any(n > 1 and form != UNKNOWN_FORM for form, n in forms.items())


def _tasks_with_drawn_examples(scores: ItemTable) -> set[str]:
    """Return the tasks in which runs of a part get other examples, as lm-eval draws them."""
    if SETTINGS not in scores.items:
        return set()
    by_task = scores.items.drop_duplicates("task").set_index("task")[SETTINGS].astype(str)
    settings = {str(task): _parsed(text) for task, text in by_task.items()}
    return {task for task, of_task in settings.items() if _draws_examples(of_task, of_task)}


def shown(setting: str) -> str:
    """Return the name of a setting for the user.

    Examples
    --------
    >>> shown("generation: temperature"), shown("scoring filter")
    ('temperature', 'filter')
    """
    return setting.removeprefix(GENERATION).removeprefix(SCORING)


def _unrecorded(who: str, what: str = "prompts and settings") -> str:
    return f"{who} do not record their {what}, so these are not compared"


def _texts_by_task(
    scores: ItemTable, name: str, items: list[str], tasks: list[str]
) -> dict[str, str]:
    column = scores.items[name].loc[items] if name in scores.items else [""] * len(items)
    return {task: str(text) for task, text in dict(zip(tasks, column, strict=True)).items()}


def _of_other_harnesses(
    sources: ItemTable, answered: ItemTable, items: list[str], tasks: list[str]
) -> set[str]:
    """Return the tasks that ran in a different harness, whose keys and scorers are other texts."""
    theirs, ours = (_texts_by_task(table, "harness", items, tasks) for table in (sources, answered))
    return {task for task, name in ours.items() if name and theirs[task] not in ("", name)}


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Settings:
    try:
        settings = json.loads(text) if text else {}
    except ValueError:  # a column of that name in a user's own table
        return {}
    return settings if isinstance(settings, dict) else {}


def _other_settings(
    theirs: Mapping[str, Settings],
    ours: Mapping[str, Settings],
    unlike_prompts: Container[str],
    foreign: Container[str],
    names: tuple[str, str],
    *,
    other_agents: bool,
) -> tuple[list[str], list[str]]:
    """Return differences, and notes on other agents and on how scoring could not be compared."""
    agents: dict[tuple[str, str], list[str]] = defaultdict(list)
    tasks: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    lacking: dict[tuple[str, str], list[str]] = defaultdict(list)  # by task and who
    unlogged: dict[str, list[str]] = defaultdict(list)
    for task, mine in ours.items():
        source = theirs[task]
        if not (mine and source):
            continue
        for name in sorted({*mine, *source}):
            new, old = (side.get(name, _absent(name)) for side in (mine, source))
            if name == TEMPLATE and task not in unlike_prompts:
                continue
            if task in foreign:
                continue
            differ = new and old and MORE not in old and not set(new) <= set(old)
            if differ and name.startswith(AGENT) and (other_agents or len(old) > 1):
                agents[shown(name), " and ".join(new)].append(task)
            elif differ:
                tasks[name, " and ".join(new), " or ".join(old)].append(task)
            elif name.startswith(SCORING) and bool(new) != bool(old):
                lacking[task, names[0] if new else names[1]].append(shown(name))
            elif name.startswith(SCORING) and any(NO_CODE.search(value) for value in new):
                unlogged[shown(name)].append(task)
    where: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (task, who), unknown in lacking.items():
        where[who, ", ".join(unknown)].append(task)
    return [
        f"{shown(name)} of task {some(listed)}: {new} in {names[1]}, {old} in {names[0]}"
        for (name, new, old), listed in tasks.items()
    ], [
        *(
            f"another agent than in {names[0]}: {name} of task {some(listed)} is {new}"
            for (name, new), listed in agents.items()
        ),
        *(
            f"not compared: {unknown} of task {some(listed)}, which {who} do not record"
            for (who, unknown), listed in where.items()
        ),
        *(
            f"{name} of task {some(listed)} is compared by name: its code is not logged"
            for name, listed in unlogged.items()
        ),
    ]


Differing = list[tuple[str, str, str]]
"""Items, each with the hash in the answers and those in the sources."""


def _said(
    task: str,
    other: Differing,
    compared: int,
    what: str,
    names: tuple[str, str],
    label: str = "hash",
) -> str:
    first, new, old = other[0]
    return (
        f"{len(other)} of {counted(compared, 'item')} of task {task!r} "
        f"{'have' if compared > 1 else 'has'} {what} than in {names[0]}, "
        f"such as {first!r}: {label} {new} in {names[1]}, {old} in {names[0]}"
    )


def _compare_keys(
    sources: ItemTable,
    answered: ItemTable,
    items: list[str],
    tasks: list[str],
    foreign: Container[str],
    names: tuple[str, str],
) -> tuple[list[str], list[str]]:
    """Return differences of right answers and options, and the items not compared."""
    if not {KEYS} & {*sources.items.columns, *answered.items.columns}:
        return [], []
    compared: Counter[tuple[str, int]] = Counter()
    other: dict[tuple[str, int], Differing] = defaultdict(list)
    unknown = list[str]()
    columns = (_hashes_of(table, KEYS, items) for table in (sources, answered))
    for item, task, old, new in zip(items, tasks, *columns, strict=True):
        if task in foreign:
            unknown.append(item)
            continue
        parts = [
            [list(dict.fromkeys(filter(None, part))) for part in _parts_of(hashes)]
            for hashes in (old, new)
        ]
        is_known = False
        for at, (was, now) in enumerate(zip(*parts, strict=True)):
            if not (was and now) or MORE in old:
                continue
            is_known = True
            compared[task, at] += 1
            if strange := [hashed for hashed in now if hashed not in was]:
                other[task, at].append((item, strange[0], " or ".join(was)))
        if not is_known:
            unknown.append(item)
    return [
        _said(task, differing, compared[task, at], PARTS[at], names)
        for (task, at), differing in other.items()
    ], unknown


def _parts_of(keys: list[str]) -> tuple[list[str], list[str]]:
    pairs = [key.partition("/") for key in keys]
    return [answer for answer, _, _ in pairs], [options for _, _, options in pairs]


@dataclass
class _Prompts:
    """Items, or their counts, by result."""

    other: Differing = field(default_factory=list)
    compared: int = 0
    doubtful: int = 0
    templated: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """Whether prompts of some items differ as chat templates do, or may do."""
        return bool(self.doubtful or self.templated)


def _compare_prompts(
    sources: ItemTable,
    answered: ItemTable,
    items: list[str],
    tasks: list[str],
    foreign: Container[str],
) -> dict[str, _Prompts]:
    prompts: dict[str, _Prompts] = {}
    for item, task, old, new in zip(
        items,
        tasks,
        _hashes_of(sources, PROMPTS, items),
        _hashes_of(answered, PROMPTS, items),
        strict=True,
    ):
        if task in foreign:
            continue
        of_task = prompts.setdefault(task, _Prompts())
        forms = {_form(hashed) for hashed in old}
        comparable = [hashed for hashed in new if _form(hashed) in forms]
        strange = [hashed for hashed in comparable if hashed not in old]
        if not new or not old or (strange and MORE in old):
            of_task.unknown.append(item)
        elif not comparable:
            of_task.templated.append(item)
        elif strange and all(_form(hashed) == UNKNOWN_FORM for hashed in strange):
            of_task.doubtful += 1
        else:
            of_task.compared += 1
            if strange:
                of_task.other.append((item, strange[0], " or ".join(old)))
    return prompts


def _hashes_of(scores: ItemTable, name: str, items: list[str]) -> list[list[str]]:
    if name not in scores.items:
        return [[] for _ in items]
    column = scores.items[name].loc[items]
    return [text.split() if isinstance(text, str) else [] for text in column]


def _form(hashed: str) -> str:
    return hashed.partition("@")[2]


def _draws_examples(theirs: Settings, ours: Settings) -> bool:
    """Whether prompts depend on the items run: lm-eval's default few-shot sampler."""
    return all(
        run.get(SAMPLER) == ["default"] and run.get(SHOTS, ["0"]) != ["0"] for run in (theirs, ours)
    )


def _covers(sources: ItemTable, answered: ItemTable, item: str) -> bool:
    """Whether all items of an item's task were run."""
    in_task = sources.items.index[sources.items["task"] == sources.items["task"].loc[item]]
    return bool(in_task.isin(answered.items.index).all())
