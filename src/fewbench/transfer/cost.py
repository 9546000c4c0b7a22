"""What a measurement asks and costs, shown before anything is sent, and when to stop."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from fewbench.errors import TransferError
from fewbench.transfer.design import Design

BYTES = 4  # of one token, about, in UTF-8: letters of English, one or two characters of Chinese
PAPER_SEEDS = 10


def size(text: str) -> int:
    """Return how many bytes a text has in UTF-8."""
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
    """Prices per million tokens, of prompts and of what is written; nothing if not given."""

    prompt: float | None = None
    completion: float | None = None

    def __post_init__(self) -> None:
        for price in (self.prompt, self.completion):
            if price is not None and not 0 <= price < float("inf"):
                raise TransferError(f"a price of {price} per million tokens")

    @property
    def given(self) -> bool:
        """Whether any price is known."""
        return self.prompt is not None or self.completion is not None

    def of(self, prompt: float, completion: float) -> float | None:
        """Return what so many tokens cost; None without prices."""
        if not self.given:
            return None
        return ((self.prompt or 0) * prompt + (self.completion or 0) * completion) / 1e6


@dataclass(frozen=True)
class Cost:
    """What a design asks for.

    Parameters
    ----------
    prompts : int
        Questions asked.
    requests : int
        Calls of a server: more than prompts where each option is scored by itself.
    prompt_tokens, completion_tokens : int
        Estimates, bytes of UTF-8 / 4.
    shared_tokens : int
        Those of the prompt tokens that repeat the beginning of the previous prompt: a server that
        keeps prefixes does not read them again.
    passes : float
        Prompts as passes over the whole benchmark.
    benchmark : int
        Questions of the whole benchmark.
    money : float, optional
        By the prices per million tokens.
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
        """Tokens read and written."""
        return self.prompt_tokens + self.completion_tokens

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "tokens": self.tokens}


def cost_of(design: Design, prices: Prices | None = None, one_by_one: bool = False) -> Cost:
    """Return what a design costs.

    Parameters
    ----------
    design : Design
    prices : Prices, optional
    one_by_one : bool
        Whether each option of a multiple-choice question takes a request of its own.

    Examples
    --------
    >>> from fewbench.transfer.task import Question, Task
    >>> from fewbench.transfer.templates import TEMPLATES
    >>> def task(name):
    ...     asked = [Question(id=f"{n}", text=f"{name} {n}?", answer="yes") for n in range(8)]
    ...     return Task(name=name, subject=name, questions=asked)
    >>> design = Design((task("a"), task("b")), TEMPLATES["flan"], "loss", seeds=2, exemplars=2)
    >>> cost_of(design).prompts, cost_of(design).passes
    (32, 2.0)
    """
    contexts = np.array(
        [
            [size(design.template.context(task, design.exemplars_of(at, seed))) for seed in seeds]
            for seeds in [range(design.seeds)]
            for at, task in enumerate(design.tasks)
        ]
    )  # sources × seeds
    asked, repeats, written = _of_targets(design, one_by_one)
    prompt = completion = shared = prompts = requests = 0.0
    for seed in range(design.seeds):
        places = [(target, design.scored(target, seed)) for target in design.targets]
        lengths, times, answers = (
            np.concatenate([of[target][drawn] for target, drawn in places])
            for of in (asked, repeats, written)
        )
        sources = len(design.tasks)
        prompts += sources * len(lengths)
        requests += sources * times.sum()
        prompt += sources * (lengths * times).sum() + contexts[:, seed].sum() * times.sum()
        completion += sources * answers.sum()
        # all but the first request behind exemplars share them; an option's, the question too
        shared += contexts[:, seed].sum() * (times.sum() - 1)
        shared += sources * (lengths * (times - 1)).sum()
    benchmark = int(design.n_questions.sum())
    tokens, told = round(prompt / BYTES), round(completion)
    return Cost(
        prompts=int(prompts),
        requests=int(requests),
        prompt_tokens=tokens,
        completion_tokens=told,
        shared_tokens=round(shared / BYTES),
        passes=prompts / benchmark,
        benchmark=benchmark,
        money=(prices or Prices()).of(tokens, told),
    )


def _of_targets(design: Design, one_by_one: bool) -> Sequence[dict[int, Any]]:
    """Return, of each target's questions, bytes, requests and tokens written."""
    asked, repeats, written = {}, {}, {}
    for at in design.targets:
        questions = design.tasks[at].questions
        lengths = np.array([size(design.template.ask(question)) for question in questions])
        answers = np.array([size(question.shown) for question in questions])
        if design.metric == "loss":
            lengths = lengths + [size(design.template.continuation(each)) for each in questions]
        times = np.ones(len(questions))
        if design.metric == "accuracy" and one_by_one:
            times = np.array([len(question.options) for question in questions], dtype=float)
        asked[at], repeats[at] = lengths, times
        # a server says at least a token; what it writes is taken to be as long as the answer
        open_ = design.metric == "exact-match"
        written[at] = np.maximum(np.ceil(answers / BYTES), 1) if open_ else times
    return asked, repeats, written


def paper_cost(design: Design, prices: Prices | None = None, one_by_one: bool = False) -> Cost:
    """Return what the paper's design costs: all questions, 10 seeds, all columns there can be."""
    columns = tuple(design.names[at] for at in design.possible_targets)
    full = replace(design, seeds=PAPER_SEEDS, questions=None, columns=columns)
    return cost_of(full, prices, one_by_one)


def break_even(design: Design, keep: int) -> float:
    """Return how many models must be evaluated on `keep` tasks until the measurement is repaid.

    Prompts saved by each are taken as the mean over sets of so many tasks.

    Raises
    ------
    TransferError
        If nothing is saved.
    """
    if not 1 <= keep < len(design.tasks):
        raise TransferError(f"{keep} of {len(design.tasks)} tasks are kept: nothing is saved")
    saved = float(design.n_questions.sum()) * (1 - keep / len(design.tasks))
    return len(design) / saved


@dataclass(frozen=True)
class Limits:
    """Where to stop, over all the measurement's runs, by what the server says was used.

    Where it does not say, that is estimated. Failed tries are not counted: what they used is not
    known.

    Requests that are under way when a limit is reached are still counted, and kept.

    Parameters
    ----------
    tokens : int, optional
        Of prompts and of what was written.
    money : float, optional
        By the prices, which must then be given.
    prices : Prices
    """

    tokens: int | None = None
    money: float | None = None
    prices: Prices = field(default_factory=Prices)

    def __post_init__(self) -> None:
        if self.tokens is not None and self.tokens < 1:
            raise TransferError(f"a limit of {self.tokens} tokens", hint="--max-tokens 1 or more")
        if self.money is not None and not 0 < self.money < float("inf"):
            raise TransferError(f"a limit of money of {self.money}", hint="give more than 0")
        if self.money is not None and not self.prices.given:
            raise TransferError(
                "a limit of money without prices", hint="give --price-in and --price-out"
            )

    def reached(self, prompt: int, completion: int) -> str | None:
        """Return in words which limit so many tokens reach; None for none."""
        if self.tokens is not None and prompt + completion >= self.tokens:
            return f"the limit of {self.tokens:,} tokens is reached ({prompt + completion:,} used)"
        spent = self.prices.of(prompt, completion)
        if self.money is not None and spent is not None and spent >= self.money:
            return f"the limit of {self.money:,.2f} is reached ({spent:,.2f} spent)"
        return None


def overview(design: Design) -> list[dict[str, Any]]:
    """Return, of each task, how many questions are what.

    `questions` are all of the task, of which `aside` are set aside as exemplars and `left_out` not
    scored for they equal exemplars; `pool` is what exemplars are drawn from besides; `target` says
    whether the task is a column.

    Examples
    --------
    >>> from fewbench.transfer.task import Question, Task
    >>> from fewbench.transfer.templates import TEMPLATES
    >>> def task(name):
    ...     asked = [Question(id=f"{n}", text=f"{name} {n}?", answer="yes") for n in range(8)]
    ...     return Task(name=name, subject=name, questions=asked)
    >>> design = Design((task("a"), task("b")), TEMPLATES["flan"], "loss", seeds=2, exemplars=2)
    >>> overview(design)[0]
    {'name': 'a', 'questions': 8, 'pool': 0, 'aside': 4, 'left_out': 0, 'target': True}
    """
    return [
        {
            "name": task.name,
            "questions": len(task.questions),
            "pool": len(task.pool),
            "aside": design.aside[task.name],
            "left_out": len(design.left_out.get(task.name, ())),
            "target": at in design.targets,
        }
        for at, task in enumerate(design.tasks)
    ]


def example(design: Design) -> str:
    """Return the prompt of the first target's first question behind another task's exemplars."""
    target = design.targets[0]
    source = next(at for at in range(len(design.tasks)) if at != target)
    return design.prompt(design.request(design.first(0, source, target)))
