"""Ask a model of lm-eval a measurement's questions, and score what it answers."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from importlib import import_module
from inspect import signature
from itertools import chain, islice
from typing import Any

from fewbench.errors import ModelError, RunError, first_line
from fewbench.runners.questions import LETTERS, Question
from fewbench_papers.bento.measurement.answers import MeasuredAnswer
from fewbench_papers.bento.measurement.cost import estimated
from fewbench_papers.bento.measurement.design import Design, Request
from fewbench_papers.bento.measurement.journal import AnswerFile

FEWEST, MOST = 16, 512  # tokens that the model may write
FAILED, FIRST = 3, 2  # questions in a row that fail one by one: then it is the model
NEEDS_ECHO = (
    "accuracy and loss need log-probabilities of given text (for servers: completions with echo); "
    "use --metric exact-match for a model without them"
)


class Asker:
    """Asks a model of lm-eval the questions of a design.

    Parameters
    ----------
    lm : lm_eval.api.model.LM
    design : Design
    chat : bool
        Whether exact-match asks through the model's chat template.
    one_prompt : bool
        Whether the options of a question share one prompt, for counting tokens.

    Raises
    ------
    RunError
        If the metric is loss and the model has no tokenizer.
    """

    def __init__(self, lm: Any, design: Design, chat: bool = False, one_prompt: bool = False):
        self._lm, self._design, self._chat, self._one_prompt = lm, design, chat, one_prompt
        has_tokens = callable(getattr(lm, "tok_encode", None))
        self.counts_tokens = has_tokens and lm.tokenizer is not None
        if design.metric == "loss" and not self.counts_tokens:
            raise RunError(
                "loss is a mean over tokens, and the model has no tokenizer",
                hint="use --metric accuracy or exact-match, or name a tokenizer in --model_args",
                kind="unsupported",
            )

    @cached_property
    def _most(self) -> int | None:
        """Most tokens of a prompt with its answer, or None if unknown."""
        most = getattr(self._lm, "max_length", None) if self.counts_tokens else None
        return most if isinstance(most, int) else None

    def _tokens(self, text: str) -> int:
        return len(self._lm.tok_encode(text)) if self.counts_tokens else estimated(text)

    @cached_property
    def _length(self) -> Callable[[str], int]:
        return lru_cache(1024)(self._tokens)  # a tokenizer may be behind a server

    def ask(self, requests: Sequence[Request]) -> list[MeasuredAnswer]:
        """Return the scored answers to requests.

        - accuracy: 1 if the right option is the most likely one, 1 / n if it ties with n - 1
          others, otherwise 0.
        - loss: the mean log-probability per token of the right answer.
        - exact-match: 1 if the written text is an accepted answer, up to case and spaces.

        Raises
        ------
        ModelError
            If the model gives no log-probabilities of given text, and the metric needs them.
        """
        ask = self._write if self._design.metric == "exact-match" else self._read
        prompts = {request: fit for request in requests if (fit := self._fits(request))}
        answers = iter(ask(list(prompts.items())))
        too_long = MeasuredAnswer(None, "too long")
        return [next(answers) if request in prompts else too_long for request in requests]

    def _fits(self, request: Request) -> "tuple[str, int, int] | None":
        """Return the prompt, its tokens and those that follow, or None if they do not fit."""
        design, question = self._design, self._design.question(request)
        prompt = design.prompt(request)
        length = self._tokens(prompt)
        if design.metric == "exact-match":
            more = longest(question)
        elif design.metric == "loss":
            more = self._tokens(prompt + design.template.continuation(question)) - length
        else:
            more = max(map(self._length, design.template.continuations(question)))
        if self._most is not None and length + more > self._most:
            return None
        return prompt, length, more

    def _read(self, requests: "Asked") -> Iterator[MeasuredAnswer]:
        """Yield answers by log-probabilities of given texts."""
        design = self._design
        texts = []
        for request, (prompt, *_) in requests:
            question = design.question(request)
            if design.metric == "loss":
                ends = [design.template.continuation(question)]
            else:
                ends = design.template.continuations(question)
            texts.append([(prompt, end) for end in ends])
        try:
            replies = self._call("loglikelihood", [pair for pairs in texts for pair in pairs])
        except NotImplementedError as error:
            raise ModelError(
                f"the model gives no log-probabilities ({first_line(error)})", hint=NEEDS_ECHO
            ) from error
        values = [float(value) for value, _ in replies]
        if len(values) > 1 and not any(values):  # as of a server that ignores `echo`
            raise ModelError("all log-probabilities are 0", hint=NEEDS_ECHO)
        rest = iter(values)
        for (request, (_, length, more)), pairs in zip(requests, texts, strict=True):
            question, logs = design.question(request), tuple(islice(rest, len(pairs)))
            if design.metric == "loss":
                if more < 1 or not -float("inf") < logs[0] <= 0:
                    raise ValueError(f"a log-probability of {logs[0]} over {more} tokens")
                yield MeasuredAnswer(logs[0] / more, None, length, more)
                continue
            score, letters = chosen_score(logs, question)
            times = 1 if self._one_prompt else len(logs)
            yield MeasuredAnswer(score, letters, times * length, times)

    def _write(self, requests: "Asked") -> Iterator[MeasuredAnswer]:
        """Yield answers that the model writes."""
        between, arguments = self._design.template.between, []
        for request, (prompt, *_) in requests:
            asked: Any = prompt
            if self._chat:
                asked = self._lm.apply_chat_template([{"role": "user", "content": prompt}])
            settings = {"until": [between] if between and not self._chat else []}
            most = longest(self._design.question(request))
            arguments.append((asked, settings | {"max_gen_toks": most, "do_sample": False}))
        written = self._call("generate_until", arguments)
        for (request, (_, length, _)), text in zip(requests, written, strict=True):
            reply = text.lstrip() if self._chat else text  # replies may begin with a blank line
            reply = reply.partition(between)[0] if between else reply
            score = match(reply, self._design.question(request))
            yield MeasuredAnswer(score, reply, length, max(1, self._tokens(reply)))

    def _call(self, kind: str, arguments: Sequence[tuple[Any, Any]]) -> Sequence[Any]:
        instance = import_module("lm_eval.api.instance").Instance
        instances = [
            instance(request_type=kind, doc={}, arguments=pair, idx=at)
            for at, pair in enumerate(arguments)
        ]
        call = getattr(self._lm, kind)
        quiet = {"disable_tqdm": True} if "disable_tqdm" in signature(call).parameters else {}
        replies = call(instances, **quiet) if instances else []
        if len(replies) != len(instances):
            raise ValueError(f"{len(replies)} answers to {len(instances)} requests")
        return list(replies)


Asked = Sequence[tuple[Request, tuple[str, int, int]]]


class Failures:
    """Questions that failed; ModelError once several failed in a row, or at the end."""

    def __init__(self, file: AnswerFile) -> None:
        self._file, self._in_a_row = file, 0
        self._all: list[tuple[Request, Exception]] = []

    def add(self, request: Request, error: Exception) -> None:
        """Note a question that failed by itself."""
        self._all.append((request, error))
        self._in_a_row += 1
        if self._in_a_row >= (FAILED if self._file.answers.n_done else FIRST):
            self.raise_first()

    def passed(self) -> None:
        """Note a question that did not fail."""
        self._in_a_row = 0

    def raise_first(self) -> None:
        """Raise ModelError for the first failure if there is any."""
        if not self._all:
            return
        request, error = self._all[0]
        answers, design = self._file.answers, self._file.answers.design
        more = f", and {len(self._all) - 1} more failed" if len(self._all) > 1 else ""
        hint = f"{answers.n_done:,} of {len(design):,} answers are kept in {self._file.folder}; "
        hint += "run the same command to continue"
        if answers.n_done:
            hint += ", or pass --partial to get their matrix"
        elif design.metric != "exact-match":
            hint += f". {NEEDS_ECHO[0].upper()}{NEEDS_ECHO[1:]}"
        raise ModelError(
            f"{design.names[request.source]} → {design.names[request.target]}, question "
            f"{design.question(request).id!r} failed: {type(error).__name__}: {first_line(error)}"
            f"{more}",
            hint=hint,
        ) from error


def answered(
    asker: Asker, requests: Sequence[Request], failures: Failures
) -> Iterator[tuple[Request, MeasuredAnswer]]:
    """Yield requests with answers; if the batch fails, ask one by one and note what fails."""
    try:
        answers = asker.ask(requests)
    except ModelError:
        raise
    except Exception as error:  # of any model of lm-eval
        if len(requests) == 1:
            failures.add(requests[0], error)
            return
        yield from chain.from_iterable(answered(asker, [request], failures) for request in requests)
        return
    failures.passed()
    yield from zip(requests, answers, strict=True)


def chosen_score(values: tuple[float, ...], question: Question) -> tuple[float, str | None]:
    """Return the score of the options' log-probabilities, and the letters of the most likely."""
    options = len(question.options)
    if len(values) != options or any(map(math.isnan, values)):
        raise ValueError(f"{len(values)} log-probabilities for {options} options, or NaN")
    most = max(values)
    if most == -math.inf:
        return 0.0, None
    best = [at for at, value in enumerate(values) if value == most]
    right = 1 / len(best) if question.answer in best else 0.0
    return right, ",".join(LETTERS[at] for at in best)


def match(text: str, question: Question) -> float:
    """Return 1 if a text is an accepted answer, without regard to case and spaces; otherwise 0."""
    return float(_plain(text) in map(_plain, (question.shown, *question.also)))


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def longest(question: Question) -> int:
    """Return how many tokens the model may write: the characters of the longest answer."""
    return min(max(FEWEST, *(len(text) for text in (question.shown, *question.also))), MOST)
