"""Models in this process, by transformers and torch."""

import asyncio
import math
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fewbench.errors import MissingExtraError, ModelError
from fewbench.runners.models.local_batches import Batches, Job, Passes, load
from fewbench.runners.models.model import Chosen, Read, TooLong, Usage, Written

DTYPES = ("auto", "float32", "bfloat16", "float16")


class LocalModel:
    r"""A language model from a folder, or a name on the Hugging Face hub, run in this process.

    What is asked at the same time is computed in batches, sorted so that prompts that begin alike
    stand together. Options of one token each are scored by one pass over the prompt; others, and
    continuations, by the sum of their tokens' log-probabilities. Nothing depends on chance.

    Parameters
    ----------
    name : str or Path
        A folder with config.json, tokenizer and .safetensors weights, or a name on the hub.
    device : str
        "auto" takes the first GPU where there is one; else as torch names devices.
    dtype : {"auto", "float32", "bfloat16", "float16"}
        Type of the weights; "auto" as they were saved. In 16 bits values vary a little with the
        batch that a prompt falls into.
    batch : int
        Most prompts in a batch; fewer are taken where memory is short.
    chat : bool
        Whether `write` asks in a chat, by the tokenizer's template, or lets the model go on
        plainly.

    Raises
    ------
    MissingExtraError
        If torch or transformers is not installed.
    ModelError
        If the model cannot be loaded, or a setting is none.

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
            raise ModelError(f"unknown dtype {dtype!r}", hint=f"one of {', '.join(DTYPES)}")
        if batch < 1:
            raise ModelError(f"a batch of {batch} prompts", hint="give 1 or more")
        _check_installed()
        self._name = str(name)
        model, tokenizer = load(self._name, device, dtype)
        if chat and not tokenizer.chat_template:
            raise ModelError(f"the tokenizer of {name} has no template for chats")
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
        """The folder or name that was given."""
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
        """Let the model go on for at most `most` tokens, up to the first of the texts in `stop`.

        A reply in a chat may begin with blank lines: they are passed over, and do not end it.
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
        """End the thread, and let go of the model."""
        await self._batches.close()
        del self._batches, self._texts

    def _job(self, ids: tuple[int, ...], first: int) -> Job:
        wanted = tuple((place - 1, ids[place]) for place in range(first, len(ids)))
        return Job(self._fitting(ids), wanted)

    def _fitting(self, ids: tuple[int, ...], new: int = 0) -> tuple[int, ...]:
        most = self._texts.most
        if most is not None and len(ids) + new > most:
            wanted = f"{len(ids)} tokens" + (f" and {new} new ones" if new else "")
            raise TooLong(f"the prompt takes {wanted}, and the model has room for {most}")
        return ids


def _check_installed() -> None:
    if not (find_spec("torch") and find_spec("transformers")):
        raise MissingExtraError(
            "models in this process need the packages torch and transformers",
            hint="pip install 'fewbench[local]'",
        )


class Texts:
    """Tokenises texts for a model.

    A prompt and its continuation are tokenised together, as a model reads text and as a server
    does that echoes it: apart, " A" could become two tokens, or a space at the prompt's end a
    token of its own. The continuation's tokens are those that end after the prompt; one that
    begins in the prompt counts, whole.

    Parameters
    ----------
    tokenizer : transformers tokenizer
    most : int or None
        Tokens that the model takes; None if it does not say.
    """

    def __init__(self, tokenizer: Any, most: int | None) -> None:
        self.tokenizer = tokenizer
        self.most = most
        ids = (tokenizer.bos_token_id, tokenizer.eos_token_id)
        self._start: int | None = next((i for i in ids if i is not None), None)

    def prompt(self, text: str, *, special: bool = True) -> tuple[int, ...]:
        """Return the tokens of a text that goes on; `special` adds the tokenizer's own first."""
        encoded = self.tokenizer(
            text, add_special_tokens=special, return_special_tokens_mask=True, verbose=False
        )
        ids = list(encoded["input_ids"])
        return self._begun(tuple(ids[: len(ids) - _ending(encoded)]))

    def pair(self, prompt: str, continuation: str) -> tuple[tuple[int, ...], int]:
        """Return the tokens of both, and the position where the continuation's begin."""
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
            raise ModelError(f"the tokenizer makes no token of the continuation {continuation!r}")
        if first == 0:
            longer = self._begun(())
            return longer + ids, len(longer)
        return ids, first

    def _begun(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """The tokens, at least one: a model needs something to go on from."""
        if ids:
            return ids
        if self._start is None:
            raise ModelError(
                "the prompt is empty, and the model has no token to begin with",
                hint="put an instruction or exemplars before what is scored",
            )
        return (self._start,)


def _ending(encoded: Any) -> int:
    """How many special tokens the tokenizer put at the end: a text that goes on has none."""
    mask = list(encoded["special_tokens_mask"])
    count = 0
    while count < len(mask) and mask[-1 - count]:
        count += 1
    return count if count < len(mask) else 0
