"""Small tasks of made-up questions, and a model in this process that answers them."""

import sys
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pytest

from fewbench.runners.questions import Question
from fewbench_papers.bento.measurement.design import Design
from fewbench_papers.bento.measurement.journal import Hashes, read_measured
from fewbench_papers.bento.measurement.measuring import measure
from fewbench_papers.bento.measurement.model import HarnessModel
from fewbench_papers.bento.measurement.prompts import MeasuredTask
from fewbench_papers.bento.measurement.result import MeasurementRun
from fewbench_papers.bento.measurement.templates import TEMPLATES

sys.path.insert(0, str(Path(__file__).parent))  # the tiny model and its server, by name


def made_task(name, questions=12, pool=0, options=("red", "green", "blue"), text="{name} {at}?"):
    """A task with numbered questions; a pool of so many more."""

    def made(at, mark=""):
        return Question(
            id=f"{mark}{at}",
            text=text.format(name=name, at=f"{mark}{at}"),
            options=options,
            answer=at % len(options) if options else f"word {at}",
        )

    return MeasuredTask(
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
class FakeLM:
    """A model of lm-eval that answers by a hash of the prompt; a token is a letter.

    What is put into `coming` happens to the next calls; `bad` prompts always fail.
    """

    coming: list = field(default_factory=list)
    always: object = None
    bad: set = field(default_factory=set)
    max_length: int = 10**9
    tokenizer: object = "letters"
    asked: list = field(default_factory=list)
    calls: list = field(default_factory=list)

    def tok_encode(self, text):
        return list(text)

    def _drawn(self, requests):
        trouble = self.coming.pop(0) if self.coming else self.always
        self.calls.append(len(requests))
        prompts = [one.args[0] for one in requests]
        if trouble is None and self.bad & set(prompts):
            trouble = RuntimeError("this one breaks it")
        if trouble is not None:
            raise trouble
        self.asked += dict.fromkeys(prompts)
        return [sha256(prompt.encode()).digest() for prompt in prompts]

    def loglikelihood(self, requests):
        drawn = self._drawn(requests)
        places = [max(0, "ABC".find(one.args[1].strip())) for one in requests]
        return [(-(b[at] + 1) / 8, False) for b, at in zip(drawn, places, strict=True)]

    def generate_until(self, requests):
        return [f" WORD  {drawn[0] % 12}\n\nMore." for drawn in self._drawn(requests)]


@dataclass(frozen=True, kw_only=True)
class InThisProcess(HarnessModel):
    lm: object = None

    def load(self):
        return self.lm


def kept(folder, design, facts=None):
    """The answers of a folder to a design."""
    facts = InThisProcess(model="fake").facts(design.metric) if facts is None else facts
    return read_measured(folder, Hashes(design, facts), design)


@pytest.fixture
def task():
    return made_task


@pytest.fixture
def design():
    return made_design


@pytest.fixture(name="kept")
def kept_answers():
    return kept


@pytest.fixture
def fake():
    return FakeLM


@pytest.fixture
def measured(tmp_path):
    """Measure a design with a model in a folder; return the answers and the run."""
    pytest.importorskip("lm_eval")

    def run(design, lm, folder="ict", kind="fake", args="", **settings):
        model = InThisProcess(model=kind, model_args=args, lm=lm)
        found = measure(design, model, tmp_path / folder, settings.pop("limits", None), **settings)
        return found.answers, found.run or MeasurementRun(0, 0, 0.0, None)

    return run
