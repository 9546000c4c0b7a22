"""What a measurement asks and costs, for the overview before the first request."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from fewbench.errors import RunError
from fewbench.scores.costs import break_even
from fewbench_papers.bento.measurement.design import Design

BYTES = 4  # UTF-8 bytes per token, about: four letters of English, one or two of Chinese


def size(text: str) -> int:
    """Return the number of bytes of a text in UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))


def estimated(text: str) -> int:
    """Return about how many tokens a text has.

    Examples
    --------
    >>> estimated("How many moons has Mars?")
    6
    """
    return round(size(text) / BYTES)


@dataclass(frozen=True)
class Prices:
    """Prices per million tokens, of prompts and of written text (None: not given).

    Parameters
    ----------
    prompt : float, optional
        Price of a million prompt tokens.
    completion : float, optional
        Price of a million completion tokens.

    Examples
    --------
    >>> Prices(prompt=1.0, completion=4.0).cost(prompt=2_000_000, completion=500_000)
    4.0
    """

    prompt: float | None = None
    completion: float | None = None

    def __post_init__(self) -> None:
        for price in (self.prompt, self.completion):
            if price is not None and not 0 <= price < float("inf"):
                raise RunError(f"the price is {price} per million tokens", hint="give 0 or more")

    @property
    def given(self) -> bool:
        """Whether any price is given."""
        return self.prompt is not None or self.completion is not None

    def cost(self, prompt: float, completion: float) -> float | None:
        """Return the cost of numbers of tokens, or None without prices."""
        if not self.given:
            return None
        return ((self.prompt or 0) * prompt + (self.completion or 0) * completion) / 1e6


@dataclass(frozen=True)
class Limits:
    """Where to stop, over all runs in a folder. The last batch may exceed a limit.

    Parameters
    ----------
    tokens : int, optional
        Stop when this many tokens are used, over all runs.
    money : float, optional
        Stop when this much is spent, over all runs; needs prices.
    prices : Prices
    """

    tokens: int | None = None
    money: float | None = None
    prices: Prices = field(default_factory=Prices)

    def __post_init__(self) -> None:
        if self.tokens is not None and self.tokens < 1:
            raise RunError(
                f"a limit of {self.tokens} tokens is too low",
                hint="give --max-tokens 1 or more",
                kind="range",
            )
        if self.money is not None and not 0 < self.money < float("inf"):
            raise RunError(f"the cost limit is {self.money}", hint="give more than 0")
        if self.money is not None and not self.prices.given:
            raise RunError(
                "a cost limit needs prices", hint="give --price-in and --price-out", kind="missing"
            )

    def reached(self, prompt: int, completion: int) -> str | None:
        """Return the limit that numbers of tokens reach, in words, or None."""
        if self.tokens is not None and prompt + completion >= self.tokens:
            return f"the limit of {self.tokens:,} tokens is reached ({prompt + completion:,} used)"
        spent = self.prices.cost(prompt, completion)
        if self.money is not None and spent is not None and spent >= self.money:
            return f"the limit of {self.money:,.2f} is reached ({spent:,.2f} spent)"
        return None


@dataclass(frozen=True)
class Costs:
    """What a design asks for.

    Parameters
    ----------
    prompts : int
        Questions to ask.
    requests : int
        Calls of a server: more than prompts if each option is scored by itself.
    prompt_tokens, completion_tokens : int
        Estimates: bytes of UTF-8 / 4.
    shared_tokens : int
        Prompt tokens that repeat the beginning of the previous prompt. A server with a prefix
        cache does not read them again.
    passes : float
        Prompts as passes over the whole benchmark.
    benchmark : int
        Questions of the whole benchmark.
    money : float, optional
        Cost by the prices per million tokens.
    """

    prompts: int
    requests: int
    prompt_tokens: int
    completion_tokens: int
    shared_tokens: int
    passes: float
    benchmark: int
    money: float | None = None

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "tokens": self.tokens}


def cost_of(design: Design, prices: Prices | None = None, one_by_one: bool = False) -> Costs:
    """Return what a design costs.

    Parameters
    ----------
    design : Design
    prices : Prices, optional
    one_by_one : bool
        Whether each option of a multiple-choice question takes its own request.

    Examples
    --------
    >>> from fewbench.runners.questions import Question
    >>> from fewbench_papers.bento.measurement.prompts import MeasuredTask
    >>> from fewbench_papers.bento.measurement.templates import TEMPLATES
    >>> def task(name):
    ...     asked = [Question(id=f"{n}", text=f"{name} {n}?", answer="yes") for n in range(8)]
    ...     return MeasuredTask(name=name, subject=name, questions=asked)
    >>> design = Design((task("a"), task("b")), TEMPLATES["flan"], "loss", seeds=2, exemplars=2)
    >>> cost_of(design).prompts, cost_of(design).passes
    (32, 2.0)
    """
    contexts = np.array(
        [
            [
                size(design.template.context(task, design.exemplars_of(at, seed)))
                for seed in range(design.seeds)
            ]
            for at, task in enumerate(design.tasks)
        ]
    )  # sources × seeds
    asked, repeats, written = _of_targets(design, one_by_one)
    prompt = completion = shared = prompts = requests = 0.0
    for seed in range(design.seeds):
        places = [(target, design.scored(target, seed)) for target in design.targets]
        lengths, times, answers = (
            np.concatenate([numbers[target][drawn] for target, drawn in places])
            for numbers in (asked, repeats, written)
        )
        sources = len(design.tasks)
        prompts += sources * len(lengths)
        requests += sources * times.sum()
        prompt += sources * (lengths * times).sum() + contexts[:, seed].sum() * times.sum()
        completion += sources * answers.sum()
        # all requests but the first share the exemplars; further options share the question too
        shared += contexts[:, seed].sum() * (times.sum() - 1)
        shared += sources * (lengths * (times - 1)).sum()
    benchmark = int(design.n_questions.sum())
    tokens, new = round(prompt / BYTES), round(completion)
    return Costs(
        prompts=int(prompts),
        requests=int(requests),
        prompt_tokens=tokens,
        completion_tokens=new,
        shared_tokens=round(shared / BYTES),
        passes=prompts / benchmark,
        benchmark=benchmark,
        money=(prices or Prices()).cost(tokens, new),
    )


def _of_targets(design: Design, one_by_one: bool) -> Sequence[dict[int, Any]]:
    """Return bytes, requests and written tokens of each target's questions."""
    asked, repeats, written = {}, {}, {}
    for at in design.targets:
        questions = design.tasks[at].questions
        lengths = np.array([size(design.template.ask(question)) for question in questions])
        if design.metric == "loss":
            lengths = lengths + [size(design.template.continuation(each)) for each in questions]
        times = np.ones(len(questions))
        if design.metric == "accuracy" and one_by_one:
            times = np.array([len(question.options) for question in questions], dtype=float)
        asked[at] = lengths
        repeats[at] = written[at] = times  # a server writes at least one token
        if design.metric == "exact-match":  # and about as much as the answer is long
            answers = np.array([size(question.shown) for question in questions])
            written[at] = np.maximum(np.ceil(answers / BYTES), 1)
    return asked, repeats, written


def repaid_after(design: Design, keep: int) -> int:
    """Return how many models must be evaluated on `keep` tasks to repay the measurement.

    The prompts that each model saves are the mean over sets of `keep` tasks, of fewer than all.
    """
    whole = float(design.n_questions.sum())
    models = break_even(len(design), instead=whole, cost=whole * keep / len(design.tasks))
    assert models is not None  # fewer tasks ask less
    return models


@dataclass(frozen=True)
class TaskUse:
    """How a task's questions are used.

    `aside` of the `questions` are set aside as exemplars; `left_out` of them equal an exemplar and
    are not scored; `pool` counts further exemplars. A `target` is a column.
    """

    name: str
    questions: int
    pool: int
    aside: int
    left_out: int
    target: bool


def overview(design: Design) -> list[TaskUse]:
    """Return how each task's questions are used."""
    return [
        TaskUse(
            task.name,
            len(task.questions),
            len(task.pool),
            design.aside[task.name],
            len(design.left_out.get(task.name, ())),
            at in design.targets,
        )
        for at, task in enumerate(design.tasks)
    ]


def example(design: Design) -> str:
    """Return the prompt for the first target's first question with exemplars of a different
    task.
    """
    target = design.targets[0]
    source = next(at for at in range(len(design.tasks)) if at != target)
    return design.prompt(design.request(design.first(0, source, target)))
