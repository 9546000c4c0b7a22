"""Tasks and a scripted model of Inspect, offline. Who is right where depends on names alone.

ASKED: file to which the model writes each question. SLOW: seconds an answer takes. FAIL: questions
at which the service is down, separated by commas. DIE: the same, for all questions. NUMERIC: the
scorer compares numbers. ENDS: why a reply ends. OTHER: the model that answers in its place.
GROUPED: the metadata by which the scores of exams are grouped, separated by commas. LONG: replies
to odd questions take 1,000 tokens more.
"""

import asyncio
import hashlib
import math
import os
import re
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    GenerateConfig,
    Logprob,
    Logprobs,
    ModelAPI,
    ModelFallback,
    ModelOutput,
    ModelUsage,
    TopLogprob,
    modelapi,
)
from inspect_ai.scorer import Score, accuracy, choice, grouped, match, scorer
from inspect_ai.solver import generate, multiple_choice, system_message


def chance(*words):
    return int(hashlib.sha256("|".join(words).encode()).hexdigest()[:8], 16) / 2**32


@modelapi(name="scripted")
class Scripted(ModelAPI):
    """Model NAME-SKILL, with a skill from 0 to 20; if unsteady, each time it answers anew."""

    def __init__(self, model_name, base_url=None, api_key=None, config=None, **args):
        super().__init__(model_name, base_url, api_key, [], config or GenerateConfig())
        self.unsteady, self.times = bool(args.get("unsteady")), {}

    async def generate(self, input, tools, tool_choice, config):
        question = re.search(r"Is \d+ so\?|What else\?", input[-1].text)[0]
        if path := os.environ.get("ASKED"):
            with Path(path).open("a") as file:
                file.write(f"{question}\n")
        await asyncio.sleep(float(os.environ.get("SLOW", "0")))
        if question in os.environ.get("FAIL", "").split(",") or "DIE" in os.environ:
            raise RuntimeError("the service is down")
        skill = float(self.model_name.rpartition("-")[2]) / 5 - 2
        time = self.times[question] = self.times.get(question, 0) + 1
        drawn = chance(self.model_name, question, str(time) if self.unsteady else "")
        likely = 1 / (1 + math.exp(2 - 4 * chance("difficulty", question) - skill))
        right = drawn < likely
        if config.logprobs:
            return letters_output(self.model_name, math.log(likely), math.log(1 - likely))
        output = ModelOutput.from_content(self.model_name, "yes" if right else "no")
        output.choices[0].stop_reason = os.environ.get("ENDS", "stop")
        if other := os.environ.get("OTHER"):
            output.fallback = ModelFallback(model=self.model_name, fallback_model=other)
        more = 1000 if "LONG" in os.environ and re.search(r"[13579] so", question) else 0
        output.usage = ModelUsage(input_tokens=10, output_tokens=1 + more, total_tokens=11 + more)
        return output


def letters_output(model, *chances):
    """Return the more likely one of two letters, with the log-probabilities of both."""
    top = [TopLogprob(token=one, logprob=chance) for one, chance in zip("AB", chances, strict=True)]
    best = max(top, key=lambda one: one.logprob)
    tokens = [
        Logprob(token="ANSWER: ", logprob=0.0),
        Logprob(token=best.token, logprob=best.logprob, top_logprobs=top),
    ]
    output = ModelOutput.from_content(model, f"ANSWER: {best.token}")
    output.choices[0].logprobs = Logprobs(content=tokens)
    output.usage = ModelUsage(input_tokens=10, output_tokens=1, total_tokens=11)
    return output


def questions(first, n, *, renamed=False, changed=""):
    """Samples; `renamed`: other ids, in another order; `changed`: one asks something else."""
    samples = [
        Sample(
            id=f"new-{at}" if renamed else f"q{at}",
            input="What else?" if f"q{at}" == changed else f"Is {at} so?",
            target="yes",
        )
        for at in range(first, first + n)
    ]
    return MemoryDataset(samples[::-1] if renamed else samples)


@scorer(metrics={"right": [accuracy()], "brief": [accuracy()]})
def parts():
    """Two values: partly right counts one half, and a missing answer nothing."""

    async def score(state, target):
        said = state.output.completion
        return Score(value={"right": "P" if said == "no" else "C", "brief": len(said) < 3})

    return score


@scorer(metrics=[accuracy()])
def fixed(value):
    async def score(state, target):
        return Score(value=value)

    return score


@task
def points(value=87.0):
    return Task(dataset=questions(0, 30), solver=generate(), scorer=fixed(float(value)))


@task
def quiz(n=30, renamed=False, changed="", scored="match", epochs=None):
    numeric = "NUMERIC" in os.environ
    how = {"match": lambda: match(numeric=numeric), "parts": parts}[scored]
    return Task(
        dataset=questions(0, n, renamed=renamed, changed=changed),
        solver=generate(),
        scorer=how(),
        epochs=epochs,
    )


@task
def polite():
    return Task(dataset=questions(0, 30), solver=[system_message("Please.")], scorer=match())


@task
def more():
    return Task(dataset=questions(100, 20), solver=generate(), scorer=match())


def lessons(first, n):
    """Samples in groups; their ids do not say what they ask."""
    return [
        Sample(
            id=f"q{at}",
            input=f"Is {first + at} so?",
            target="yes",
            metadata={"subject": ("law", "art", "more")[at % 7 % 3], "level": at % 2},
        )
        for at in range(n)
    ]


@task
def exam():
    keys = os.environ.get("GROUPED", "subject").split(",")
    metrics = [accuracy(), *(grouped(accuracy(), key) for key in keys if key)]
    return Task(dataset=lessons(0, 24), solver=generate(), scorer=match(), metrics=metrics)


@task
def exam_more():
    """A task that is named as a group of the other one is."""
    return Task(dataset=lessons(100, 12), solver=generate(), scorer=match())


@task
def letters():
    samples = [
        Sample(id=f"q{at}", input=f"Is {at} so?", choices=["yes", "no"], target="A")
        for at in range(12)
    ]
    config = GenerateConfig(logprobs=True, top_logprobs=2)
    return Task(dataset=samples, solver=multiple_choice(), scorer=choice(), config=config)
