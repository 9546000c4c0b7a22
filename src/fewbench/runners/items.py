"""The items that an endpoint is asked: read from a file, and compared with those of the scores.

Each line of the file is an item: `id`, a `question` (with `options`) or a whole `prompt`, and the
`answer`; docs/run.md has the table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, StrictFloat, StrictInt, StrictStr

from fewbench._names import counted, some
from fewbench._types import FloatArray
from fewbench.errors import ReaderError, RunError
from fewbench.runners.question_lines import Line, Text, parse_line, question_of, read_objects
from fewbench.runners.questions import Question, Template, made
from fewbench.runners.scoring import Metric
from fewbench.scores import Scores
from fewbench.scores.conditions import compare_conditions
from fewbench.scores.table import KEYS, PROMPTS, SETTINGS

TEXT = "text"
"""Column of the sources' items with the text of each, which must occur in the prompt."""


class ItemLine(BaseModel):
    """A line of the file of items."""

    model_config = ConfigDict(extra="forbid")

    id: StrictInt | Text
    answer: StrictInt | StrictFloat | StrictStr
    question: Text | None = None
    prompt: Text | None = None
    options: list[StrictStr] | dict[str, StrictStr] | None = None
    also: list[StrictStr] = []
    task: Text | None = None
    subject: Text | None = None
    instruction: StrictStr | None = None


@dataclass(frozen=True)
class _Topic:
    subject: str
    instruction: str | None


@dataclass(frozen=True)
class Item:
    """A question, and the whole prompt that asks it."""

    question: Question
    prompt: str

    @property
    def prompt_hash(self) -> str:
        """SHA-256 of the prompt, as in lm-eval's logs."""
        return sha256(self.prompt.encode("utf-8", "surrogatepass")).hexdigest()


def read_items(path: Path, template: Template) -> dict[str, tuple[str | None, Item]]:
    """Return the items of a file by id, each with its task.

    Raises
    ------
    ReaderError
        If the file cannot be read, or a line has a mistake.

    Examples
    --------
    >>> import tempfile
    >>> from fewbench.runners.questions import TEMPLATES
    >>> path = Path(tempfile.mkdtemp()) / "items.jsonl"
    >>> line = '{"id": "q1", "question": "2 + 2 =", "options": ["3", "4"], "answer": "B"}'
    >>> _ = path.write_text(line)
    >>> task, item = read_items(path, TEMPLATES["mmlu"])["q1"]
    >>> item.question.shown
    'B'
    """
    found: dict[str, tuple[str | None, Item]] = {}
    for number, data in read_objects(path):
        where = f"{path}, line {number}"
        line = parse_line(data, where, ItemLine)
        if (line.question is None) == (line.prompt is None):
            raise ReaderError(
                f"{where}: give either a question or a prompt",
                hint="a question is put into the template; a prompt is sent as it is",
            )
        text = line.question or line.prompt or ""
        asked = made(
            Line, where, question=text, options=line.options, answer=line.answer, also=line.also
        )
        question = question_of(asked, str(line.id), where)
        prompt = text
        if line.prompt is None:
            task = line.task or "all"
            topic = _Topic(line.subject or " ".join(task.replace("_", " ").split()), None)
            if line.instruction is not None:
                topic = replace(topic, instruction=line.instruction)
            prompt = template.context(topic, ()) + template.ask(question)
        key = str(line.id) if line.task is None else f"{line.task}\0{line.id}"
        if key in found:
            raise ReaderError(
                f"{where}: the item {str(line.id)!r} appears twice", hint="give each item once"
            )
        found[key] = line.task, Item(question, prompt)
    if not found:
        raise ReaderError(f"{path}: holds no items", hint="write one object per line")
    return found


def match_items(
    path: Path,
    scores: Scores,
    template: Template,
    metric: Metric,
    *,
    accept_differences: bool = False,
) -> tuple[dict[str, Item], list[str]]:
    """Read a file and find in it every item of the scores.

    Returns
    -------
    items : dict of str to Item
        By the ids of the scores: those of the file, or `task/id`.
    notes : list of str
        Items that are not used, and what could not be compared.

    Raises
    ------
    ReaderError
        If the file cannot be read.
    RunError
        If items of the scores are missing, do not fit the metric, or are other questions.
    """
    found = read_items(path, template)
    tasks = scores.items["task"].astype(str).to_dict()
    items: dict[str, Item] = {}
    unknown = []
    for task, item in found.values():
        own = item.question.id
        names = [own] if task is None else [own, f"{task}/{own}"]
        known = [one for one in names if one in tasks and task in (None, tasks[one])]
        if known and known[0] in items:
            raise ReaderError(
                f"{path}: the item {known[0]!r} appears twice", hint="give each item once"
            )
        if known:
            items[known[0]] = item
        else:
            unknown.append(names[-1])
    missing = [item for item in scores.item_ids.tolist() if item not in items]
    if missing:
        such = f"; its other ids are such as {some(unknown)}" if unknown else ""
        raise RunError(
            f"{path}: {counted(len(missing), 'item')} of {scores.n_items:,} are missing: "
            f"{some(missing)}{such}",
            hint="write every item of the scores, with the id that it has there, or import scores "
            "of these items only",
        )
    _check_metric(path, items, metric)
    if not accept_differences:
        _check_texts(path, scores, items)
    notes = []
    if unknown:
        notes.append(
            f"{path}: {counted(len(unknown), 'item')} not used: not in the scores ({some(unknown)})"
        )
    if PROMPTS in scores.items:
        every = answers_table(scores, items, scores.item_ids.tolist(), np.zeros(scores.n_items))
        compared = compare_conditions(scores, every, every.item_ids.tolist())
        if compared.differences and not accept_differences:
            raise RunError(
                f"{path}: prompts differ from the source models': {compared.differences[0]}",
                hint="give the prompts of the source models as the field prompt, or pass "
                "--accept-differences to ask in another way; estimates then carry a warning",
            )
        notes += compared.notes
    return items, notes


def answers_table(
    scores: Scores, items: Mapping[str, Item], ids: Sequence[str], values: FloatArray
) -> Scores:
    """Return a model's answers with the hashes of its prompts; `values` are in [0, 1]."""
    part = scores.take(models=np.array([0]), items=scores.positions(ids))
    hashes = [items[item].prompt_hash for item in ids]
    own = part.items.drop(columns=[KEYS, SETTINGS], errors="ignore")
    columns = own.assign(**{PROMPTS: hashes})
    return replace(part, values=values[None], items=columns, probabilities=None)


def _check_metric(path: Path, items: Mapping[str, Item], metric: Metric) -> None:
    is_choice = metric in ("accuracy", "letter")
    wrong = [key for key, item in items.items() if bool(item.question.options) != is_choice]
    if not wrong:
        return
    have, use = ("no options", "exact-match") if is_choice else ("options", "accuracy or letter")
    raise RunError(
        f"{path}: metric {metric}, but {counted(len(wrong), 'item')} with {have}: {some(wrong)}",
        hint=f"use --metric {use}",
    )


def _check_texts(path: Path, scores: Scores, items: Mapping[str, Item]) -> None:
    if TEXT not in scores.items:
        return
    texts = scores.items[TEXT]
    other = [
        key
        for key, item in items.items()
        if isinstance(texts[key], str) and not _is_same(texts[key], item)
    ]
    if other:
        raise RunError(
            f"{path}: {counted(len(other), 'item')} of {len(items):,} with another text than in "
            f"the scores: {some(other)}",
            hint="give the questions that the source models answered, or pass --accept-differences "
            "if the texts differ in form only",
        )


def _is_same(text: str, item: Item) -> bool:
    """Whether one text contains the other, without regard to spaces and case."""
    theirs, question, prompt = (
        "".join(one.split()).casefold() for one in (text, item.question.text, item.prompt)
    )
    return theirs in prompt or question in theirs
