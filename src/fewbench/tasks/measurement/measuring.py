"""Ask a model of lm-eval a measurement's questions in batches, and keep every answer."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import import_module
from inspect import signature
from itertools import chain, islice
from pathlib import Path
from typing import Any

from fewbench.errors import ModelError, RunError, first_line
from fewbench.tasks.measurement.answers import Answers
from fewbench.tasks.measurement.cost import Limits, estimated
from fewbench.tasks.measurement.design import Design, Request
from fewbench.tasks.measurement.journal import Header, Journal, opened
from fewbench.tasks.measurement.scoring import Answer, chosen_score, longest, match

Progress = Callable[[int, int], None]
BATCH = 64
FAILED, FIRST = 3, 2  # questions in a row that fail one by one: then it is the model
NEEDS_ECHO = (
    "accuracy and loss need log-probabilities of given text (for servers: completions with echo); "
    "use --metric exact-match for a model without them"
)
ONE_PROMPT = ("hf", "hf-auto", "huggingface")
"""Models of lm-eval that score all letters of a question in one pass; others ask one by one."""


@dataclass
class Run:
    """What one run did.

    Parameters
    ----------
    asked : int
        New answers.
    estimated : int
        Answers whose tokens are estimated, because the model has no tokenizer.
    seconds : float
    stopped : str, optional
        The limit that ended the run early, in words.
    notes : tuple of str
        Differences to earlier runs that do not affect the answers.
    """

    asked: int = 0
    estimated: int = 0
    seconds: float = 0.0
    stopped: str | None = None
    notes: tuple[str, ...] = ()


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
            )

    @cached_property
    def _most(self) -> int | None:
        """Most tokens of a prompt with its answer; None if unknown."""
        found = getattr(self._lm, "max_length", None) if self.counts_tokens else None
        return found if isinstance(found, int) else None

    def _tokens(self, text: str) -> int:
        return len(self._lm.tok_encode(text)) if self.counts_tokens else estimated(text)

    @cached_property
    def _length(self) -> Callable[[str], int]:
        return lru_cache(1024)(self._tokens)  # a tokenizer may be behind a server

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
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
        found = {request: fit for request in requests if (fit := self._fits(request))}
        answers = iter(ask(list(found.items())))
        return [next(answers) if one in found else Answer(None, "too long") for one in requests]

    def _fits(self, request: Request) -> "tuple[str, int, int] | None":
        """Return the prompt, its tokens and those that follow; None if they do not fit."""
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

    def _read(self, requests: "Asked") -> Iterator[Answer]:
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
            found = self._call("loglikelihood", [pair for pairs in texts for pair in pairs])
        except NotImplementedError as error:
            raise ModelError(
                f"the model gives no log-probabilities ({first_line(error)})", hint=NEEDS_ECHO
            ) from error
        values = [float(value) for value, _ in found]
        if len(values) > 1 and not any(values):  # as of a server that ignores `echo`
            raise ModelError("all log-probabilities are 0", hint=NEEDS_ECHO)
        rest = iter(values)
        for (request, (_, length, more)), pairs in zip(requests, texts, strict=True):
            question, own = design.question(request), tuple(islice(rest, len(pairs)))
            if design.metric == "loss":
                if more < 1 or not -float("inf") < own[0] <= 0:
                    raise ValueError(f"a log-probability of {own[0]} over {more} tokens")
                yield Answer(own[0] / more, None, length, more)
                continue
            score, said = chosen_score(own, question)
            times = 1 if self._one_prompt else len(own)
            yield Answer(score, said, times * length, times)

    def _write(self, requests: "Asked") -> Iterator[Answer]:
        """Yield answers that the model writes."""
        between, given = self._design.template.between, []
        for request, (prompt, *_) in requests:
            asked: Any = prompt
            if self._chat:
                asked = self._lm.apply_chat_template([{"role": "user", "content": prompt}])
            settings = {"until": [between] if between and not self._chat else []}
            most = longest(self._design.question(request))
            given.append((asked, settings | {"max_gen_toks": most, "do_sample": False}))
        written = self._call("generate_until", given)
        for (request, (_, length, _)), text in zip(requests, written, strict=True):
            said = text.lstrip() if self._chat else text  # replies may begin with a blank line
            said = said.partition(between)[0] if between else said
            score = match(said, self._design.question(request))
            yield Answer(score, said, length, max(1, self._tokens(said)))

    def _call(self, kind: str, arguments: Sequence[tuple[Any, Any]]) -> Sequence[Any]:
        instance = import_module("lm_eval.api.instance").Instance
        made = [
            instance(request_type=kind, doc={}, arguments=pair, idx=at)
            for at, pair in enumerate(arguments)
        ]
        call = getattr(self._lm, kind)
        quiet = {"disable_tqdm": True} if "disable_tqdm" in signature(call).parameters else {}
        found = call(made, **quiet) if made else []
        if len(found) != len(made):
            raise ValueError(f"{len(found)} answers to {len(made)} requests")
        return list(found)


Asked = Sequence[tuple[Request, tuple[str, int, int]]]


def measure(
    folder: Path,
    design: Design,
    lm: Any,
    name: str,
    *,
    facts: Mapping[str, str] | None = None,
    chat: bool = False,
    one_prompt: bool = False,
    batch: int = BATCH,
    limits: Limits | None = None,
    progress: Progress | None = None,
    known: Answers | None = None,
) -> tuple[Answers, Run]:
    """Ask a design's open questions, and keep every answer in a folder.

    Parameters
    ----------
    folder : Path
        A measurement to continue, or a new folder.
    design : Design
    lm : lm_eval.api.model.LM
        The model: any of lm-eval, also wrapped by its `CachingLM`.
    name : str
        The model's name, which must stay the same in a folder.
    facts : mapping of str to str, optional
        Further settings that must be the same for answers to be comparable.
    chat : bool
        Whether exact-match asks through the model's chat template.
    one_prompt : bool
        Whether the options of a question share one prompt, for counting tokens.
    batch : int
        Questions per call of the model. If the process is killed, those in flight are asked again.
    limits : Limits, optional
    progress : callable, optional
        Called with (done, all).
    known : Answers, optional
        The folder's answers to the design if they were read already; they grow.

    Returns
    -------
    answers : Answers
        All answers; complete unless the run stopped at a limit.
    run : Run

    Raises
    ------
    ModelError
        If the model cannot be asked, or questions failed. Answers stay in the folder.
    RunError
        If the model does not fit the metric.
    TransferError
        If the folder holds another measurement or is damaged.
    """
    if batch < 1:
        raise RunError(f"batch={batch} is too low", hint="give 1 or more")
    asker, limits, did = Asker(lm, design, chat, one_prompt), limits or Limits(), Run()
    started = time.monotonic()
    with opened(folder, Header.of(design, name, facts or {}), design, known) as journal:
        answers, did.notes = journal.answers, journal.notes
        pending, failures = iter(answers.pending()), Failures(journal)
        while chunk := list(islice(pending, batch)):
            did.stopped = limits.reached(answers.prompt, answers.completion)
            if did.stopped is not None:
                break
            for request, answer in _answered(asker, chunk, failures):
                journal.append(request, answer)
                did.asked += 1
            if progress is not None:
                progress(answers.n_done, len(design))
        failures.raise_first()
    did.estimated = 0 if asker.counts_tokens else did.asked
    did.seconds = time.monotonic() - started
    return answers, did


class Failures:
    """Questions that failed; ModelError once several failed in a row, or at the end."""

    def __init__(self, journal: Journal) -> None:
        self._journal, self._in_a_row = journal, 0
        self._all: list[tuple[Request, Exception]] = []

    def add(self, request: Request, error: Exception) -> None:
        """Note a question that failed by itself."""
        self._all.append((request, error))
        self._in_a_row += 1
        if self._in_a_row >= (FAILED if self._journal.answers.n_done else FIRST):
            self.raise_first()

    def passed(self) -> None:
        """Note a question that did not fail."""
        self._in_a_row = 0

    def raise_first(self) -> None:
        """Raise ModelError for the first failure if there is any."""
        if not self._all:
            return
        request, error = self._all[0]
        answers, design = self._journal.answers, self._journal.answers.design
        more = f", and {len(self._all) - 1} more failed" if len(self._all) > 1 else ""
        hint = f"{answers.n_done:,} of {len(design):,} answers are kept in {self._journal.folder}; "
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


def _answered(
    asker: Asker, requests: Sequence[Request], failures: Failures
) -> Iterator[tuple[Request, Answer]]:
    """Yield requests with answers; if the batch fails, ask one by one and note what fails."""
    try:
        found = asker.ask(requests)
    except ModelError:
        raise
    except Exception as error:  # of any model of lm-eval
        if len(requests) == 1:
            failures.add(requests[0], error)
            return
        yield from chain.from_iterable(_answered(asker, [one], failures) for one in requests)
        return
    failures.passed()
    yield from zip(requests, found, strict=True)
