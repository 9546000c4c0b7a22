"""Small tasks of made-up questions, and a model in this process that answers them."""

import asyncio
from dataclasses import dataclass, field
from hashlib import sha256

import pytest

from fewbench.runners.models.model import Chosen, Read, TooLong, TryAgain, Usage, Written
from fewbench.runners.questions import TEMPLATES, Question
from fewbench.transfer.design import Design
from fewbench.transfer.measuring import measure
from fewbench.transfer.prompts import Task


def made_task(name, questions=12, pool=0, options=("red", "green", "blue"), text="{name} {at}?"):
    """A task with numbered questions; a pool of so many more."""

    def made(at, mark=""):
        return Question(
            id=f"{mark}{at}",
            text=text.format(name=name, at=f"{mark}{at}"),
            options=options,
            answer=at % len(options) if options else f"word {at}",
        )

    return Task(
        name=name,
        subject=name,
        questions=tuple(made(at) for at in range(questions)),
        pool=tuple(made(at, "p") for at in range(pool)),
    )


def made_design(names="abc", **settings):
    tasks = settings.pop("tasks", None) or [made_task(name) for name in names]
    given = {"seeds": 2, "exemplars": 2, "questions": 4, "sets": 2} | settings
    return Design(tuple(tasks), given.pop("template", TEMPLATES["mmlu"]), **given)


@dataclass
class FakeModel:
    """Answers by a hash of the prompt; what is put into `coming` happens to the next calls."""

    name: str = "fake"
    coming: list = field(default_factory=list)
    always: object = None
    delay: float = 0.0
    facts: dict = field(default_factory=lambda: {"scoring": "top"})
    most: int = 10**9
    tie: bool = False
    asked: list = field(default_factory=list)
    answered: list = field(default_factory=list)
    open: int = 0
    most_open: int = 0
    closed: bool = False

    async def prepare(self, log_probabilities=True):
        return dict(self.facts)

    async def _trouble(self, prompt):
        self.asked.append(prompt)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            await asyncio.sleep(self.delay)
        finally:
            self.open -= 1
        if len(prompt) > self.most:
            raise TooLong("too long")
        trouble = self.coming.pop(0) if self.coming else self.always
        if trouble is not None:
            raise trouble
        self.answered.append(prompt)
        return sha256(prompt.encode()).digest()

    async def choose(self, prompt, options):
        drawn = await self._trouble(prompt)
        values = [-0.1] * len(options) if self.tie else [-(b + 1) / 8 for b in drawn]
        return Chosen(tuple(values[: len(options)]), Usage(len(prompt) // 4, 1))

    async def read(self, prompt, continuation):
        drawn = await self._trouble(prompt)
        return Read(-drawn[0] / 8, 2, Usage(len(prompt) // 4, 0))

    async def write(self, prompt, stop, most):
        drawn = await self._trouble(prompt)
        return Written(f" WORD  {drawn[0] % 12}", Usage(len(prompt) // 4, 3))

    async def close(self):
        self.closed = True


@pytest.fixture
def task():
    return made_task


@pytest.fixture
def design():
    return made_design


@pytest.fixture
def fake():
    return FakeModel


@pytest.fixture
def again():
    return TryAgain


@pytest.fixture
def measured(tmp_path):
    """Measure a design with a model in a folder; return the answers and the run."""

    def run(design, model, folder="ict", **settings):
        return measure(tmp_path / folder, design, model, **settings)

    return run
