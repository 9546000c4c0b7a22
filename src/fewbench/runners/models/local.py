"""Models in this process, by transformers and torch, asked in batches."""

import asyncio
import inspect
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fewbench.errors import MissingExtraError, ModelError, first_line
from fewbench.runners.models.model import Chosen, Read, TooLong, Usage, Written

WAIT = 0.003  # seconds for others to join a batch; a pass of a model takes longer
DTYPES = ("auto", "float32", "bfloat16", "float16")


class LocalModel:
    r"""A language model in this process, from a folder or the Hugging Face hub.

    Simultaneous requests are computed in batches, sorted so that prompts that begin alike are
    together. Options of one token each are scored by one pass over the prompt; other options and
    continuations by the sum of their tokens' log-probabilities. Nothing is random.

    Parameters
    ----------
    name : str or Path
        A folder with config.json, tokenizer and .safetensors weights, or a name on the hub.
    device : str
        A device of torch; "auto" uses the first GPU if there is one.
    dtype : {"auto", "float32", "bfloat16", "float16"}
        Type of the weights; "auto" keeps the saved type. With 16 bits, values vary slightly with
        the batch.
    batch : int
        Most prompts per batch; fewer if memory is short.
    chat : bool
        Whether `write` uses the tokenizer's chat template or plain text.

    Raises
    ------
    MissingExtraError
        If torch or transformers is not installed.
    ModelError
        If the model cannot be loaded, or a setting is not valid.

    Examples
    --------
    >>> model = LocalModel("models/my-model")  # doctest: +SKIP
    >>> asyncio.run(model.choose("2 + 2 =\nA. 3\nB. 4\nAnswer:", [" A", " B"]))  # doctest: +SKIP
    Chosen(log_probabilities=(-2.1, -0.2), usage=Usage(prompt=14, completion=0, requests=1))
    """

    def __init__(
        self,
        name: str | Path,
        *,
        device: str = "auto",
        dtype: str = "auto",
        batch: int = 16,
        chat: bool = False,
    ) -> None:
        if dtype not in DTYPES:
            raise ModelError(f"unknown dtype {dtype!r}", hint=f"use one of {', '.join(DTYPES)}")
        if batch < 1:
            raise ModelError(f"a batch of {batch} prompts", hint="give 1 or more")
        _check_installed()
        self._name = str(name)
        model, tokenizer = load(self._name, device, dtype)
        if chat and not tokenizer.chat_template:
            raise ModelError(f"the tokenizer of {name} has no chat template", hint="leave out chat")
        self._chat = chat
        most = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        self._texts = Texts(tokenizer, most)
        self._facts = {
            "scoring": "logits",
            "dtype": str(model.dtype).removeprefix("torch."),
            "served": type(model).__name__,
        }
        self._batches = Batches(Passes(model, tokenizer).run, batch)

    @property
    def name(self) -> str:
        """The given folder or name."""
        return self._name

    async def prepare(self, log_probabilities: bool = True) -> dict[str, str]:
        """Return how the model is run: "scoring" (logits), "dtype", "served" (its class)."""
        return dict(self._facts)

    async def choose(self, prompt: str, options: Sequence[str]) -> Chosen:
        """Return the log-probability of each option after the prompt."""
        pairs = [self._texts.pair(prompt, option) for option in options]
        ids, first = pairs[0]
        if all(len(own) == start + 1 and own[:start] == ids[:first] for own, start in pairs):
            wanted = tuple((first - 1, own[-1]) for own, _ in pairs)
            jobs = [Job(self._fitting(ids[:first]), wanted)]
            values = await self._batches.ask(jobs[0])
        else:
            jobs = [self._job(*pair) for pair in pairs]
            found = await asyncio.gather(*(self._batches.ask(job) for job in jobs))
            values = [math.fsum(each) for each in found]
        return Chosen(tuple(values), Usage(prompt=sum(len(job.ids) for job in jobs)))

    async def read(self, prompt: str, continuation: str) -> Read:
        """Return the log-probability of a continuation of the prompt."""
        job = self._job(*self._texts.pair(prompt, continuation))
        values = await self._batches.ask(job)
        return Read(math.fsum(values), len(values), Usage(prompt=len(job.ids)))

    async def write(self, prompt: str, stop: Sequence[str], most: int) -> Written:
        """Let the model write at most `most` tokens, up to the first of the texts in `stop`.

        A chat reply may begin with blank lines. They are skipped and do not end the reply.
        """
        if self._chat:
            message = [{"role": "user", "content": prompt}]
            prompt = self._texts.tokenizer.apply_chat_template(
                message, tokenize=False, add_generation_prompt=True
            )
        ids = self._fitting(self._texts.prompt(prompt, special=not self._chat), most)
        stops = tuple(end for end in stop if end)
        asked = () if self._chat else stops
        text, new = await self._batches.ask(Job(ids, stops=asked, most=most))
        text = text.lstrip() if self._chat else text
        for end in stops:
            text = text.partition(end)[0]
        return Written(text, Usage(prompt=len(ids), completion=new))

    async def close(self) -> None:
        """End the thread and release the model."""
        await self._batches.close()
        del self._batches, self._texts

    def _job(self, ids: tuple[int, ...], first: int) -> "Job":
        wanted = tuple((place - 1, ids[place]) for place in range(first, len(ids)))
        return Job(self._fitting(ids), wanted)

    def _fitting(self, ids: tuple[int, ...], new: int = 0) -> tuple[int, ...]:
        most = self._texts.most
        if most is not None and len(ids) + new > most:
            wanted = f"{len(ids)} tokens" + (f" and {new} new ones" if new else "")
            raise TooLong(f"the prompt takes {wanted}, but the model has room for {most}")
        return ids


def _check_installed() -> None:
    if not (find_spec("torch") and find_spec("transformers")):
        raise MissingExtraError(
            "models in this process need torch and transformers, which are not installed",
            hint="pip install 'fewbench[local]'",
        )


class Texts:
    """Tokenizes texts for a model that takes `most` tokens (None if unknown).

    A prompt and its continuation are tokenized together, as a model reads text: separately, " A"
    could become two tokens, or a space at the prompt's end its own token. The continuation's
    tokens are those that end after the prompt, including one that begins in the prompt.
    """

    def __init__(self, tokenizer: Any, most: int | None) -> None:
        self.tokenizer = tokenizer
        self.most = most
        ids = (tokenizer.bos_token_id, tokenizer.eos_token_id)
        self._start: int | None = next((i for i in ids if i is not None), None)

    def prompt(self, text: str, *, special: bool = True) -> tuple[int, ...]:
        """Return the tokens of an unfinished text; `special` adds the tokenizer's first tokens."""
        encoded = self.tokenizer(
            text, add_special_tokens=special, return_special_tokens_mask=True, verbose=False
        )
        ids = list(encoded["input_ids"])
        return self._begun(tuple(ids[: len(ids) - _ending(encoded)]))

    def pair(self, prompt: str, continuation: str) -> tuple[tuple[int, ...], int]:
        """Return the tokens of both, and the position of the continuation's first token."""
        encoded = self.tokenizer(
            prompt + continuation,
            return_special_tokens_mask=True,
            return_offsets_mapping=self.tokenizer.is_fast,
            verbose=False,
        )
        ids = tuple(encoded["input_ids"][: len(encoded["input_ids"]) - _ending(encoded)])
        if self.tokenizer.is_fast:
            ends = [end for _, end in encoded["offset_mapping"][: len(ids)]]
            first = next((i for i, end in enumerate(ends) if end > len(prompt)), len(ids))
        else:
            alone = self.prompt(prompt)
            same = (a == b for a, b in zip(ids, alone, strict=False))
            first = next(
                (i for i, equal in enumerate(same) if not equal), min(map(len, (ids, alone)))
            )
        if first >= len(ids):
            raise ModelError(f"the continuation {continuation!r} has no tokens")
        if first == 0:
            longer = self._begun(())
            return longer + ids, len(longer)
        return ids, first

    def _begun(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """Return the tokens, at least one: a model needs something to continue."""
        if ids:
            return ids
        if self._start is None:
            raise ModelError(
                "the prompt is empty, and the model has no start token",
                hint="add an instruction or exemplars",
            )
        return (self._start,)


def _ending(encoded: Any) -> int:
    """Return how many special tokens the tokenizer put at the end, to remove them."""
    mask = list(encoded["special_tokens_mask"])
    count = 0
    while count < len(mask) and mask[-1 - count]:
        count += 1
    return count if count < len(mask) else 0


@dataclass(frozen=True)
class Job:
    """A request: log-probabilities, or a text if none are wanted.

    Parameters
    ----------
    ids : tuple of int
        The tokens that the model reads.
    wanted : tuple of (int, int)
        Tokens whose log-probability is wanted: the position before the token, and its id.
    stops : tuple of str
        Texts that end the written text.
    most : int
        Most tokens to write.
    """

    ids: tuple[int, ...]
    wanted: tuple[tuple[int, int], ...] = ()
    stops: tuple[str, ...] = ()
    most: int = 0

    def like(self, other: "Job") -> bool:
        """Whether both can share a batch."""
        mine = (bool(self.wanted), self.stops, self.most)
        return mine == (bool(other.wanted), other.stops, other.most)


class Batches:
    """Runs jobs in batches of at most `most`, one after another, in a thread.

    `run` computes the results of jobs that can share a batch.
    """

    def __init__(self, run: Callable[[Sequence[Job]], Sequence[Any]], most: int) -> None:
        self._run = run
        self._most = most
        self._waiting: list[tuple[Job, asyncio.Future[Any]]] = []
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="fewbench-model")

    async def ask(self, job: Job) -> Any:
        """Return a job's result, or raise what its batch raised."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting.append((job, future))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._drain())
        return await future

    async def close(self) -> None:
        """End after the current batch; cancel waiting jobs."""
        for _, future in self._waiting:
            future.cancel()
        self._waiting.clear()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        self._thread.shutdown()

    async def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(WAIT)
            batch = self._next()
            if not batch:
                return
            jobs = [job for job, _ in batch]
            try:
                results = await loop.run_in_executor(self._thread, self._run, jobs)
            except Exception as error:
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                continue
            for (_, future), result in zip(batch, results, strict=True):
                if not future.done():
                    future.set_result(result)

    def _next(self) -> list[tuple[Job, asyncio.Future[Any]]]:
        """Take the next batch: jobs that can share it and begin alike."""
        self._waiting = [pair for pair in self._waiting if not pair[1].done()]
        if not self._waiting:
            return []
        first = self._waiting[0][0]
        alike = [pair for pair in self._waiting if pair[0].like(first)]
        alike.sort(key=lambda pair: pair[0].ids)
        batch = alike[: self._most]
        taken = {id(future) for _, future in batch}
        self._waiting = [pair for pair in self._waiting if id(pair[1]) not in taken]
        return batch


class Passes:
    """A loaded model.

    Prompts of a batch are padded on the left, hidden by the attention mask, with positions counted
    from each prompt's first token. So values do not depend on the other prompts, up to rounding
    (about 1e-6 in float32, 1e-2 with 16 bits).
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model = model
        self.tokenizer = tokenizer
        pads = (tokenizer.pad_token_id, tokenizer.eos_token_id, 0)
        self._pad = next(i for i in pads if i is not None)
        self._takes = set(inspect.signature(model.forward).parameters)

    def run(self, jobs: Sequence[Job]) -> list[Any]:
        """Return the results of a batch of jobs; in halves if memory is short."""
        import torch

        try:
            with torch.inference_mode():
                if jobs[0].wanted:
                    return self._scored(torch, jobs)
                return self._written(torch, jobs)
        except torch.OutOfMemoryError:
            pass
        except RuntimeError as error:
            raise ModelError(f"the model failed: {first_line(error)}") from error
        if len(jobs) == 1:
            raise TooLong(f"no memory for a prompt of {len(jobs[0].ids)} tokens")
        torch.cuda.empty_cache()
        half = len(jobs) // 2
        return self.run(jobs[:half]) + self.run(jobs[half:])

    def _scored(self, torch: Any, jobs: Sequence[Job]) -> list[list[float]]:
        """Return log-probabilities of the wanted tokens of each job."""
        ids, mask = self._padded(torch, jobs)
        asked: dict[str, Any] = {"input_ids": ids, "attention_mask": mask}
        # logits only from the first wanted place on, to save memory
        tail = max(len(job.ids) - min(place for place, _ in job.wanted) for job in jobs)
        if "position_ids" in self._takes:
            asked["position_ids"] = (mask.cumsum(dim=1) - 1).clamp(min=0)
        if "logits_to_keep" in self._takes:
            asked["logits_to_keep"] = tail
        if "use_cache" in self._takes:
            asked["use_cache"] = False
        logits = self.model(**asked).logits
        found = []
        for row, job in zip(logits, jobs, strict=True):
            places = sorted({place for place, _ in job.wanted})
            # counted from the end, where the prompts are aligned
            kept = row[[place - len(job.ids) for place in places]].float()
            values = torch.log_softmax(kept, dim=-1)
            at = torch.tensor([places.index(place) for place, _ in job.wanted])
            tokens = torch.tensor([token for _, token in job.wanted])
            found.append(values.cpu()[at, tokens].tolist())
        return found

    def _written(self, torch: Any, jobs: Sequence[Job]) -> list[tuple[str, int]]:
        """Return the text written after each prompt, and its number of tokens."""
        ids, mask = self._padded(torch, jobs)
        length = ids.shape[1]

        def stopped(so_far: Any, scores: Any, **_: Any) -> Any:
            texts = [self._text(row[length:]) for row in so_far]
            done = [any(stop in text for stop in jobs[0].stops) for text in texts]
            return torch.tensor(done, device=so_far.device)

        written = self.model.generate(
            input_ids=ids,
            attention_mask=mask,
            max_new_tokens=jobs[0].most,
            do_sample=False,
            num_beams=1,
            pad_token_id=self._pad,
            stopping_criteria=[stopped],
        )
        new = [row[length:] for row in written]
        return [(self._text(row), int((row != self._pad).sum())) for row in new]

    def _text(self, ids: Any) -> str:
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))

    def _padded(self, torch: Any, jobs: Sequence[Job]) -> tuple[Any, Any]:
        """Return tokens and attention mask (jobs, longest), padded on the left."""
        longest = max(len(job.ids) for job in jobs)
        ids = torch.full((len(jobs), longest), self._pad, dtype=torch.long)
        mask = torch.zeros((len(jobs), longest), dtype=torch.long)
        for row, job in enumerate(jobs):
            ids[row, longest - len(job.ids) :] = torch.tensor(job.ids)
            mask[row, longest - len(job.ids) :] = 1
        return ids.to(self.model.device), mask.to(self.model.device)


def load(name: str, device: str, dtype: str) -> tuple[Any, Any]:
    """Return a model and its tokenizer; ModelError if it cannot be read without running code."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
        # only safetensors: older files can run code when they are read
        model = AutoModelForCausalLM.from_pretrained(name, dtype=dtype, use_safetensors=True)
        model = model.to(device).eval()
    except (OSError, ValueError, RuntimeError, KeyError, ImportError, AttributeError) as error:
        raise ModelError(
            f"the model {name} cannot be loaded: {first_line(error)}",
            hint="use a folder with config.json, the tokenizer's files and .safetensors weights",
        ) from error
    # temperature and penalties of the model's authors would change the most likely text
    ends = getattr(model.generation_config, "eos_token_id", None)
    model.generation_config = GenerationConfig(eos_token_id=ends)
    return model, tokenizer
