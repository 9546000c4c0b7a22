"""Prompts and continuations as tokens."""

from typing import Any

from fewbench.errors import ModelError


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
