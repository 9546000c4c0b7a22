"""Batches of prompts in one thread, and a model's passes over them."""

import asyncio
import inspect
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from fewbench.errors import ModelError, first_line
from fewbench.runners.models.model import TooLong

WAIT = 0.003  # seconds for others to join a batch; a pass of a model takes longer


@dataclass(frozen=True)
class Job:
    """Something to be computed: log-probabilities, or a text where none are wanted.

    Parameters
    ----------
    ids : tuple of int
        The tokens that the model reads.
    wanted : tuple of (int, int)
        Where a token's log-probability is asked for: the position that it comes after, its id.
    stops : tuple of str
        Texts that end what is written.
    most : int
        Tokens to write at most.
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
    """Runs jobs in batches, one after another, in a thread of its own.

    Parameters
    ----------
    run : callable
        Computes the results of jobs that can share a batch.
    most : int
        Jobs in a batch.
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
        """End after the batch that is being computed; what waits is cancelled."""
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
        """Take the next batch: jobs that can share it, and begin alike."""
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

    Prompts of a batch are padded on the left, where the attention mask hides the padding, and
    positions are counted from each prompt's first token; so a prompt's values do not depend on
    the others' lengths, up to rounding (about 1e-6 in float32, 1e-2 in 16-bit types).
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model = model
        self.tokenizer = tokenizer
        pads = (tokenizer.pad_token_id, tokenizer.eos_token_id, 0)
        self._pad = next(i for i in pads if i is not None)
        self._takes = set(inspect.signature(model.forward).parameters)

    def run(self, jobs: Sequence[Job]) -> list[Any]:
        """Return the results of jobs that share a batch; in halves if memory is short."""
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
        """Log-probabilities of the wanted tokens of each job."""
        ids, mask = self._padded(torch, jobs)
        asked: dict[str, Any] = {"input_ids": ids, "attention_mask": mask}
        # logits only from the first wanted place on: those of all places may not fit into memory
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
            # counted from the end, where all prompts of the batch stand together
            kept = row[[place - len(job.ids) for place in places]].float()
            values = torch.log_softmax(kept, dim=-1)
            at = torch.tensor([places.index(place) for place, _ in job.wanted])
            tokens = torch.tensor([token for _, token in job.wanted])
            found.append(values.cpu()[at, tokens].tolist())
        return found

    def _written(self, torch: Any, jobs: Sequence[Job]) -> list[tuple[str, int]]:
        """What the model writes after each prompt, and the number of its tokens."""
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
        """Tokens and attention mask (jobs, longest), padded on the left."""
        longest = max(len(job.ids) for job in jobs)
        ids = torch.full((len(jobs), longest), self._pad, dtype=torch.long)
        mask = torch.zeros((len(jobs), longest), dtype=torch.long)
        for row, job in enumerate(jobs):
            ids[row, longest - len(job.ids) :] = torch.tensor(job.ids)
            mask[row, longest - len(job.ids) :] = 1
        return ids.to(self.model.device), mask.to(self.model.device)


def load(name: str, device: str, dtype: str) -> tuple[Any, Any]:
    """Return the model and its tokenizer, from a folder or a name on the hub.

    Raises
    ------
    ModelError
        If there is no such model, or it cannot be read without running code of its authors.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
        # weights as safetensors only: the older files can run code when they are read
        model = AutoModelForCausalLM.from_pretrained(name, dtype=dtype, use_safetensors=True)
        model = model.to(device).eval()
    except (OSError, ValueError, RuntimeError, KeyError, ImportError, AttributeError) as error:
        raise ModelError(
            f"the model {name} cannot be loaded: {first_line(error)}",
            hint="give a folder with config.json, the tokenizer's files and .safetensors weights",
        ) from error
    # what a model's authors suggest (temperature, penalties) is not the plain likeliest text
    ends = getattr(model.generation_config, "eos_token_id", None)
    model.generation_config = GenerationConfig(eos_token_id=ends)
    return model, tokenizer
