"""Run questions of a file at an endpoint with OpenAI's interface: multiple choice or exact match.

Responses are logged one by one, so that a batch that was cut short is not paid twice.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from fewbench._journal import Lines
from fewbench._names import counted, some
from fewbench._types import FloatArray
from fewbench.errors import ModelError, RunError
from fewbench.evaluation import Stop
from fewbench.runners.asking import Asking, Patience, Prices, check_pace, estimated, prepare_model
from fewbench.runners.driving import INTERRUPTED, Answered
from fewbench.runners.event_loop import EventLoop
from fewbench.runners.items import Item, answers_table, match_items
from fewbench.runners.models.model import Model, TryAgain
from fewbench.runners.questions import Template
from fewbench.runners.result import RunResult
from fewbench.runners.scoring import Answer, Metric, ask_question, longest
from fewbench.scores import Scores
from fewbench.scores.replies import from_model
from fewbench.scores.table import PROMPTS

RESPONSES = "responses.jsonl"


class Response(BaseModel):
    """An answer of a model: a line of `responses.jsonl`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: str
    item: str
    asked: str
    value: float
    said: str | None
    prompt_tokens: int
    completion_tokens: int
    log_probabilities: tuple[float | None, ...] | None = None
    kind: str = ""


@dataclass(frozen=True)
class Expected:
    """What a run is expected to use: estimates, from bytes of UTF-8 / 4."""

    items: int
    prompt_tokens: int
    completion_tokens: int
    money: float | None

    def describe(self) -> str:
        """Return it in words."""
        price = "" if self.money is None else f", price about {self.money:,.3g}"
        tokens = self.prompt_tokens + self.completion_tokens
        return f"{counted(self.items, 'item')}, about {tokens:,} tokens{price}"


class EndpointRunner:
    """Asks models behind an endpoint the questions of a file.

    Parameters
    ----------
    items : path
        JSON lines, one item each.
    models : mapping of target to Model
        Such as `fewbench.runners.models.Endpoint`.
    template : Template
        Makes prompts of questions.
    metric : {"accuracy", "letter", "exact-match"}
        How answers are scored, see `fewbench.runners.scoring.ask_question`.
    pattern : str, optional
        Regular expression that finds the answer in a written text.
    most : int, optional
        Most tokens that a model may write.
    prices : Prices
    concurrency : int
        Requests in flight.
    rate : float, optional
        Most requests per minute and model.
    patience : Patience
    log : path, optional
        Folder of the run, for `responses.jsonl`.
    accept_differences : bool
        Ask even if the prompts are not those of the source models.
    """

    name = "endpoint"

    def __init__(
        self,
        items: str | Path,
        models: Mapping[str, Model],
        template: Template,
        metric: Metric = "accuracy",
        *,
        pattern: str | None = None,
        most: int | None = None,
        prices: Prices | None = None,
        concurrency: int = 16,
        rate: float | None = None,
        patience: Patience | None = None,
        log: str | Path | None = None,
        accept_differences: bool = False,
    ) -> None:
        check_pace(concurrency, rate)
        if most is not None and most < 1:
            raise RunError(f"most={most} tokens is too low", hint="give 1 or more")
        self._path, self._models, self._template = Path(items), models, template
        self._metric, self._pattern, self._most = metric, _compiled(pattern, metric), most
        self._prices, self._concurrency = prices or Prices(), concurrency
        self.batch = 4 * concurrency
        self._patience, self._rate = patience or Patience(), rate
        self._accept = accept_differences
        self.facts = {f"model of {target}": model.name for target, model in models.items()}
        self.facts |= {
            "metric": metric,
            "pattern": pattern or "",
            "most tokens": str(most or ""),
            "template": sha256(template.model_dump_json().encode()).hexdigest()[:8],
        }
        self._loop = EventLoop()
        self._items: dict[str, Item] = {}
        self._scores: Scores | None = None
        self._asking: dict[str, _Batch] = {}
        self._lines = None if log is None else Lines(Path(log).absolute() / RESPONSES, sync_every=1)
        self._known: dict[tuple[str, str], Response] | None = None
        self._has_answered = False

    # -- before the first request --------------------------------------------------------------

    def read(self, scores: Scores) -> list[str]:
        """Read the items and compare them with those of the scores; return notes.

        Raises
        ------
        ReaderError
            If the file cannot be read.
        RunError
            If items of the scores are missing, do not fit the metric, or are other questions.
        """
        if self._scores is scores:
            return []
        self._items, notes = match_items(
            self._path, scores, self._template, self._metric, accept_differences=self._accept
        )
        self._scores = scores
        return notes

    def expected(self, scores: Scores, items: int, one_by_one: bool = False) -> Expected:
        """Return what a number of items costs, about; `one_by_one` if each option is a request."""
        self.read(scores)
        asked = list(self._items.values())
        times = [len(one.question.options) if one_by_one else 1 for one in asked]
        read = [n * estimated(one.prompt) for n, one in zip(times, asked, strict=True)]
        writes = self._metric not in ("accuracy", "loss")
        written = [
            n * ((self._most or longest(one.question)) if writes else 1)
            for n, one in zip(times, asked, strict=True)
        ]
        share = items / len(asked)
        prompt, completion = round(sum(read) * share), round(sum(written) * share)
        return Expected(items, prompt, completion, self._prices.of(prompt, completion))

    def overview(self, scores: Scores, stop: Stop, one_by_one: bool = False) -> str:
        """Return what the run and the full evaluation cost, about, and one prompt."""
        most = min(stop.items or scores.n_items, scores.n_items)
        run, full = (self.expected(scores, n, one_by_one) for n in (most, scores.n_items))
        limits = "" if stop.items is not None else f" (at most; limits: {stop.describe()})"
        targets = f" for each of {len(self._models)} models" if len(self._models) > 1 else ""
        item = next(iter(self._items.values()))
        return (
            f"to run{targets}: {run.describe()}{limits}\n"
            f"full evaluation: {full.describe()}\n"
            "tokens: estimated as bytes / 4, and at most those that may be written\n\n"
            f"first prompt:\n{item.prompt}"
        )

    # -- the run -------------------------------------------------------------------------------

    def prepare(self, scores: Scores, targets: Sequence[str]) -> list[str]:
        """Read the items, and find out how each model can be asked."""
        notes = self.read(scores)
        if lacking := [name for name in targets if name not in self._models]:
            raise RunError(f"no model for {some(lacking)}", hint="name one with --model")
        for name in targets:
            log_probabilities = self._metric == "accuracy"
            work = prepare_model(self._models[name], self._patience, log_probabilities)
            facts = self._loop.run(work)
            if log_probabilities and facts.get("scoring") == "echo":
                notes.append(
                    f"{name}: the server cannot list likely tokens, so each option needs a prompt"
                )
        return notes

    def answer(self, target: str, items: Sequence[str]) -> Answered:
        """Ask a model; what was answered before the last crash is not asked again."""
        known = self._logged()
        left = [item for item in items if self._logged_of(known, target, item) is None]
        batch = self._asking.get(target)
        if batch is None:
            batch = self._asking[target] = _Batch(self, target)
        batch.failed = {}
        stopped = None
        try:
            self._loop.run(batch.run(iter(left), min(self._concurrency, max(1, len(left)))))
        except KeyboardInterrupt:
            stopped = INTERRUPTED
        except ModelError as error:
            if not (self._has_answered or known):
                raise
            stopped = str(error)
        finally:
            if self._lines is not None:
                self._lines.sync()
        responses = [self._logged_of(known, target, item) for item in items]
        return self._answered([one for one in responses if one], batch.failed, stopped)

    def _answered(
        self, responses: Sequence[Response], failed: Mapping[str, str], stopped: str | None
    ) -> Answered:
        assert self._scores is not None
        prompt = sum(one.prompt_tokens for one in responses)
        completion = sum(one.completion_tokens for one in responses)
        ids = [one.item for one in responses]
        values = np.array([one.value for one in responses], dtype=float)
        answers: Mapping[str, float] | Scores
        answers = dict(zip(ids, self._scores.scale.from_unit(values).tolist(), strict=True))
        probabilities = None
        if PROMPTS in self._scores.items and ids:
            answers = answers_table(self._scores, self._items, ids, values)
        elif self._scores.probabilities is not None and self._metric == "accuracy":
            probabilities = {one.item: _softmax(one.log_probabilities) for one in responses}
        return Answered(
            answers,
            failed,
            cost=self._prices.of(prompt, completion) or 0.0,
            tokens=prompt + completion,
            probabilities=probabilities,
            replies={one.item: one.kind for one in responses if one.kind},
            stopped=stopped,
        )

    def _logged(self) -> dict[tuple[str, str], Response]:
        """Return the responses of this run and of earlier ones in the folder."""
        if self._known is None:
            self._known = {}
            for number, line in self._lines.read() if self._lines is not None else ():
                try:
                    one = Response.model_validate_json(line)
                except ValidationError as error:
                    raise RunError(
                        f"{RESPONSES}: line {number} is damaged",
                        hint="delete the line: its item is asked again if it was not recorded",
                    ) from error
                self._known[one.target, one.item] = one
        return self._known

    def _logged_of(
        self, known: Mapping[tuple[str, str], Response], target: str, item: str
    ) -> Response | None:
        found = known.get((target, item))
        return found if found is not None and found.asked == self._asked(item) else None

    def _asked(self, item: str) -> str:
        """Return a hash of how an item is asked."""
        text = f"{self.facts}\0{self._items[item].prompt}"
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    async def ask(self, target: str, item: str) -> Answer:
        """Ask one item once."""
        one = self._items[item]
        answer = await ask_question(
            self._models[target],
            one.prompt,
            one.question,
            self._template,
            self._metric,
            pattern=self._pattern,
            most=self._most,
        )
        if not answer.usage.prompt and answer.value is not None:  # the server does not count
            written = max(1, estimated(answer.said or ""))
            usage = replace(answer.usage, prompt=estimated(one.prompt), completion=written)
            answer = replace(answer, usage=usage)
        return answer

    def keep(self, target: str, item: str, answer: Answer) -> None:
        """Log a response."""
        assert answer.value is not None
        one, values = self._items[item], answer.log_probabilities
        right = answer.value
        if self._metric == "accuracy" and answer.said is not None:
            # of options that are equally likely the first counts, as in lm-eval
            right = float(answer.said.split(",")[0] == one.question.shown)
        found = Response(
            target=target,
            item=item,
            asked=self._asked(item),
            value=right,
            said=answer.said,
            prompt_tokens=answer.usage.prompt,
            completion_tokens=answer.usage.completion,
            log_probabilities=None
            if values is None
            else tuple(value if math.isfinite(value) else None for value in values),
            kind=answer.kind or (from_model(answer.usage.model) if answer.usage.model else ""),
        )
        if self._lines is not None:
            self._lines.append(found.model_dump_json().encode())
        self._logged()[target, item] = found
        self._has_answered = True

    def finish(self, result: RunResult) -> None:
        """Write nothing: the responses are logged."""

    def close(self) -> None:
        """Close the connections."""
        for model in self._models.values():
            self._loop.run(model.close())
        self._loop.close()


class _Batch(Asking[str, Answer]):
    """The items of one target, over all of its batches."""

    def __init__(self, runner: EndpointRunner, target: str) -> None:
        super().__init__(runner._patience, runner._rate)
        self._runner, self._target = runner, target
        self.failed: dict[str, str] = {}

    async def send(self, request: str) -> Answer:
        return await self._runner.ask(self._target, request)

    def took(self, request: str, reply: Answer) -> None:
        if reply.value is None:
            self.failed[request] = "the prompt does not fit into the model's context"
        else:
            self._runner.keep(self._target, request, reply)

    def calls_of(self, reply: Answer) -> int:
        return reply.usage.requests

    def is_limit_reached(self) -> bool:
        return False

    def fail(self, request: str, failed: int, error: TryAgain) -> None:
        if (silence := self.silence()) is not None:
            raise ModelError(
                f"{silence}; last error: {error.reason}",
                hint="check the server, and run the same command to go on",
            ) from error

    def give_up(self, request: str, error: TryAgain) -> None:
        self.failed[request] = error.reason


def _compiled(pattern: str | None, metric: Metric) -> re.Pattern[str] | None:
    if pattern is None:
        return None
    if metric == "accuracy":
        raise RunError(
            "a pattern is for written answers, not for metric accuracy",
            hint="use --metric letter or exact-match",
        )
    try:
        return re.compile(pattern)
    except re.error as error:
        raise RunError(f"the pattern {pattern!r} is no regular expression: {error}") from error


def _softmax(values: Sequence[float | None] | None) -> FloatArray:
    """Return probabilities of options; NaN if none of them is known."""
    logs = np.array([-np.inf if value is None else value for value in values or ()])
    if not np.isfinite(logs).any():
        return np.full(len(logs), np.nan)
    shares = np.exp(logs - logs.max())
    return np.asarray(shares / shares.sum())
