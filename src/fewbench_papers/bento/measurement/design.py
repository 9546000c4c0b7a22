"""What a measurement of transferability asks, and in which order.

Every draw depends on the seed and on names (of the task and its questions), never on positions or
numbers of tasks, so that later additions do not change earlier draws.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Literal, NamedTuple

import numpy as np

from fewbench.errors import TransferError
from fewbench.runners.questions import Question
from fewbench.support import IntArray, child_seed, counted, some
from fewbench_papers.bento.measurement.prompts import MeasuredTask
from fewbench_papers.bento.measurement.templates import TEMPLATES, Template

Metric = Literal["accuracy", "loss", "exact-match"]
METRICS: tuple[Metric, ...] = ("accuracy", "loss", "exact-match")
CONTEXTS = 64  # cached; requests in flight share a few
ASKED = 1 << 15  # cached questions


def shuffled(questions: Sequence[Question], seed: int, *names: str | int) -> IntArray:
    """Return positions of the questions in an order that depends on their ids and the names."""
    by_id = np.array(sorted(range(len(questions)), key=lambda at: questions[at].id), dtype=np.intp)
    keys = [
        name if isinstance(name, int) else int.from_bytes(sha256(name.encode()).digest()[:4], "big")
        for name in names
    ]
    return by_id[np.random.default_rng(child_seed(seed, *keys)).permutation(len(questions))]


class Exemplars:
    """The questions of a task that may be shown, and those that each seed shows.

    They are the task's pool. Without a pool, some questions are set aside once for all seeds: as
    many as `sets` draws of `number` exemplars need, but at most half of the questions.
    TransferError if there are too few questions.
    """

    def __init__(self, task: MeasuredTask, number: int, sets: int, seed: int) -> None:
        self._task, self._number, self._seed = task, number, seed
        self.aside: frozenset[int] = frozenset()
        if task.pool:
            self.shown = task.pool
            if len(self.shown) < number:
                raise TransferError(
                    f"the pool of task {task.name!r} has {counted(len(self.shown), 'question')}, "
                    f"too few for {counted(number, 'exemplar')}",
                    hint=f"pass --exemplars {len(self.shown)}, or enlarge the pool",
                )
            return
        questions = task.questions
        if len(questions) < 2 * number:
            raise TransferError(
                f"task {task.name!r} has {counted(len(questions), 'question')} and no pool of "
                f"exemplars; setting {number} aside needs {2 * number} questions",
                hint=(f"pass --exemplars {most}, " if (most := len(questions) // 2) else "")
                + "give the task a pool, or leave the task out",
            )
        most = min(sets, len(questions) // 2 // number)
        places = shuffled(questions, seed, "aside", task.name)[: most * number]
        self.aside = frozenset(places.tolist())
        self.shown = tuple(questions[at] for at in places)

    def drawn(self, seed: int) -> tuple[Question, ...]:
        """Return the exemplars of one seed, all different."""
        number = self._number
        if self.aside and (seed + 1) * number <= len(self.shown):
            return self.shown[seed * number : (seed + 1) * number]
        order = shuffled(self.shown, self._seed, "exemplars", self._task.name, seed)
        return tuple(self.shown[at] for at in order[:number])


class Request(NamedTuple):
    """One question of a target after exemplars of a source, all by position.

    `place` is the position in the order of requests, `source` and `target` are positions among the
    tasks, `question` is the position in the target.
    """

    place: int
    seed: int
    source: int
    target: int
    question: int


@dataclass(frozen=True)
class Design:
    """What a measurement of transferability asks.

    Exemplars come from a task's pool. Without a pool, questions are set aside as exemplars and
    never scored. A question with the text and options of a possible exemplar of any task is not
    scored either. All sources get the same questions of a target with the same seed; a different
    seed draws other questions. More questions, seeds or columns do not change earlier draws.

    Parameters
    ----------
    tasks : tuple of MeasuredTask
        At least two tasks; each is a source.
    template : Template
        Prompt template: mmlu (the default) or flan.
    metric : {"accuracy", "loss", "exact-match"}
        Score of an answer.
    seeds : int
        Number of random draws of examples and questions (the paper's M).
    exemplars : int
        Number of examples in the prompt (the paper's L).
    questions : int or None
        Most questions per target task and seed (default: 50), or all.
    columns : tuple of str, int or None
        Target tasks: names, a number of the tasks with the shortest questions, or all (the
        default).
    seed : int
        Random seed.
    sets : int
        Draws that share no exemplar if questions are set aside and the task is large enough.

    Raises
    ------
    TransferError
        If the tasks are too few or too small, or do not fit the metric.

    Examples
    --------
    >>> from fewbench_papers.bento.measurement.templates import TEMPLATES
    >>> def task(name):
    ...     asked = [Question(id=f"{n}", text=f"{name} {n}?", answer="yes") for n in range(8)]
    ...     return MeasuredTask(name=name, subject=name, questions=asked)
    >>> design = Design((task("a"), task("b")), TEMPLATES["flan"], "loss", seeds=2, exemplars=2)
    >>> len(design), design.request(0).seed, design.request(15).seed
    (32, 0, 0)
    """

    tasks: tuple[MeasuredTask, ...]
    template: Template = TEMPLATES["mmlu"]
    metric: Metric = "accuracy"
    seeds: int = 10
    exemplars: int = 5
    questions: int | None = 50
    columns: tuple[str, ...] | int | None = None
    seed: int = 0
    sets: int = 10

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise TransferError(
                f"unknown metric {self.metric!r}",
                hint=f"use one of {', '.join(METRICS)}",
                kind="unknown",
            )
        for name, least, hint in (
            ("seeds", 1, "1 or more"),
            ("exemplars", 1, "1 or more"),
            ("questions", 1, "1 or more, or all"),
            ("seed", 0, "0 or more"),
        ):
            number = getattr(self, name)
            if number is not None and number < least:
                raise TransferError(
                    f"{name} {number} is too low", hint=f"give {hint}", kind="range"
                )
        if twice := {name for name in self.names if self.names.count(name) > 1}:
            raise TransferError(f"two tasks have the name {some(sorted(twice))}")
        if len(self.tasks) < 2:
            raise TransferError(
                "transferability needs at least two tasks", hint="add a task", kind="too-few"
            )
        if self.metric == "accuracy":
            open_ = [self.names[at] for at in self.targets if not self.tasks[at].has_options]
            if open_:
                raise TransferError(
                    f"accuracy needs options; tasks without options: {some(open_)}",
                    hint="use --metric loss or exact-match",
                )
        for at in self.targets:
            if not len(self._scored[at]):
                task = self.tasks[at]
                raise TransferError(
                    f"task {task.name!r}: each of its {counted(len(task.questions), 'question')} "
                    "may be an exemplar of some task, so none is left to score",
                    hint="remove them from the pools, or leave the task out of the columns",
                )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all tasks."""
        return tuple(task.name for task in self.tasks)

    @cached_property
    def n_questions(self) -> IntArray:
        """Questions of each task, including those that are set aside."""
        return np.array([len(task.questions) for task in self.tasks], dtype=np.intp)

    @cached_property
    def targets(self) -> tuple[int, ...]:
        """Positions of the targets, in the order of the tasks."""
        everyone = range(len(self.tasks))
        if self.columns is None:
            return tuple(everyone)
        if isinstance(self.columns, int):
            if not 1 <= self.columns <= len(self.tasks):
                raise TransferError(
                    f"columns {self.columns} does not fit {len(self.tasks)} tasks",
                    hint=f"use 1 to {len(self.tasks)}",
                )
            shortest = sorted(everyone, key=lambda at: (self._length(at), self.names[at]))
            return tuple(sorted(shortest[: self.columns]))
        if unknown := [name for name in self.columns if name not in self.names]:
            raise TransferError(
                f"columns names unknown tasks: {some(unknown)}",
                hint=f"the tasks are {some(self.names)}",
            )
        if not self.columns:
            raise TransferError("columns names no task", hint="leave it out for all tasks")
        return tuple(at for at in everyone if self.names[at] in self.columns)

    def _length(self, at: int) -> float:
        questions = self.tasks[at].questions
        return sum(len(self.template.ask(question)) for question in questions) / len(questions)

    @cached_property
    def _exemplars(self) -> tuple[Exemplars, ...]:
        return tuple(Exemplars(t, self.exemplars, self.sets, self.seed) for t in self.tasks)

    @cached_property
    def _scored(self) -> tuple[IntArray, ...]:
        """Positions of the questions of each task that may be scored."""
        shown = {question.content for each in self._exemplars for question in each.shown}
        return tuple(
            np.array(
                [at for at, question in enumerate(task.questions) if question.content not in shown],
                dtype=np.intp,
            )
            for task in self.tasks
        )

    @cached_property
    def left_out(self) -> dict[str, tuple[str, ...]]:
        """Ids of questions that are not scored because they equal a possible exemplar."""
        left_out = {}
        for task, each, scored in zip(self.tasks, self._exemplars, self._scored, strict=True):
            out = set(range(len(task.questions))) - each.aside - set(scored.tolist())
            if out:
                left_out[task.name] = tuple(task.questions[at].id for at in sorted(out))
        return left_out

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the draws for readers of the result."""
        both = list(zip(self.names, self._exemplars, strict=True))
        notes = [
            f"{name}: not scored because they equal exemplars: {some(ids)}"
            for name, ids in self.left_out.items()
        ]
        same = [name for name, each in both if len(each.shown) == self.exemplars]
        if same and self.seeds > 1:
            notes.append(
                "no more questions to draw exemplars from than exemplars, so seeds differ only in "
                f"their order: {some(same)}"
            )
        few = [
            name
            for name, each in both
            if each.aside and self.exemplars < len(each.shown) < self.seeds * self.exemplars
        ]
        if few:
            notes.append(
                f"too few questions set aside for {counted(self.seeds, 'seed')}, so some seeds "
                f"share exemplars: {some(few)}"
            )
        if numbers := [number for number in self.aside.values() if number]:
            notes.append(
                f"{counted(sum(numbers), 'question')} of {counted(len(numbers), 'task')} without a "
                f"pool {'is' if sum(numbers) == 1 else 'are'} set aside as exemplars"
            )
        return tuple(notes)

    @property
    def aside(self) -> dict[str, int]:
        """Number of questions of each task that are set aside as exemplars."""
        both = zip(self.names, self._exemplars, strict=True)
        return {name: len(each.aside) for name, each in both}

    def exemplars_of(self, source: int, seed: int) -> tuple[Question, ...]:
        """Return the exemplars of a source, by its position, with a seed."""
        return self._exemplars[source].drawn(seed)

    def scored(self, target: int, seed: int) -> IntArray:
        """Return positions of a target's questions with a seed, in the order asked."""
        return self._drawn[seed][target]

    @cached_property
    def _drawn(self) -> tuple[dict[int, IntArray], ...]:
        return tuple(
            {at: self._draw(at, seed) for at in self.targets} for seed in range(self.seeds)
        )

    def _draw(self, target: int, seed: int) -> IntArray:
        task = self.tasks[target]
        order = shuffled(task.questions, self.seed, "questions", task.name, seed)
        return order[np.isin(order, self._scored[target])][: self.questions]

    @cached_property
    def _ends(self) -> tuple[IntArray, ...]:
        """For each seed, where each target's questions end in a source's row."""
        return tuple(np.cumsum([len(drawn[at]) for at in self.targets]) for drawn in self._drawn)

    @cached_property
    def _starts(self) -> IntArray:
        """The first place of each seed, and the number of requests."""
        widths = [int(ends[-1]) * len(self.tasks) for ends in self._ends]
        return np.concatenate([[0], np.cumsum(widths)]).astype(np.intp)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def request(self, place: int) -> Request:
        """Return the request at a place: by seed, then source, then target, then question.

        Requests with the same seed and source are consecutive because their prompts begin alike.
        """
        seed = int(np.searchsorted(self._starts, place, side="right")) - 1
        ends = self._ends[seed]
        source, column = divmod(place - int(self._starts[seed]), int(ends[-1]))
        nth = int(np.searchsorted(ends, column, side="right"))
        target = self.targets[nth]
        start = int(ends[nth - 1]) if nth else 0
        question = int(self._drawn[seed][target][column - start])
        return Request(place, seed, source, target, question)

    def requests(self) -> Iterator[Request]:
        """Yield all requests in order."""
        return map(self.request, range(len(self)))

    def first(self, seed: int, source: int, target: int) -> int:
        """Return the place of a target's first question after a source's exemplars."""
        ends = self._ends[seed]
        nth = self.targets.index(target)
        start = int(ends[nth - 1]) if nth else 0
        return int(self._starts[seed]) + source * int(ends[-1]) + start

    def question(self, request: Request) -> Question:
        """Return the question of the request."""
        return self.tasks[request.target].questions[request.question]

    @cached_property
    def context(self) -> Callable[[int, int], str]:
        """The beginning that all prompts of a source and seed share."""
        return lru_cache(CONTEXTS)(
            lambda source, seed: self.template.context(
                self.tasks[source], self.exemplars_of(source, seed)
            )
        )

    def prompt(self, request: Request) -> str:
        """Return the prompt of a request."""
        asked = self._asked(request.target, request.question)
        return self.context(request.source, request.seed) + asked

    @cached_property
    def _asked(self) -> Callable[[int, int], str]:
        return lru_cache(ASKED)(
            lambda target, question: self.template.ask(self.tasks[target].questions[question])
        )
