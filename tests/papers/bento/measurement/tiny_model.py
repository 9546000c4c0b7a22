"""A very small language model: a hash of all that was before decides which letter comes next."""

import json
import re
from hashlib import sha256

import numpy as np

TOKEN = re.compile(r" ?[A-Za-z]+|\s|.")
LETTERS = "ABCD"


class TinyModel:
    """One of four letters is likely to come next, and line breaks after it."""

    def __init__(self):
        self.answers = [f" {letter}" for letter in LETTERS]
        self.vocabulary = ["\n", *self.answers, *map(chr, range(32, 127))]
        self.ids = {token: at for at, token in enumerate(self.vocabulary)}

    def tokens(self, text):
        """Cut text into tokens, which join to the text again; unknown words into characters."""
        found = TOKEN.findall(text)
        return [part for token in found for part in ([token] if token in self.ids else token)]

    def next(self, tokens):
        """Probability of each token of the vocabulary after `tokens`."""
        row = np.ones(len(self.vocabulary))
        if tokens[-1] in [*self.answers, "\n"]:
            row[0] += 1000
        else:
            drawn = sha256("".join(tokens).encode()).digest()
            row[1:5] += np.frombuffer(drawn[:8], dtype=np.uint16) / 100
        return row / row.sum()

    def walk(self, tokens, start=1):
        """The distributions at positions start, start + 1 … of tokens, each from those before."""
        return [self.next(tokens[:at]) for at in range(start, len(tokens))]


def tiny_tasks(folder):
    """Write four tasks with four options, one JSONL file each."""
    for name in ("colour", "home", "place", "young"):
        rows = [
            {
                "question": f"What is the {name} of {at}?",
                "options": [f"{name} {at + more}" for more in range(4)],
                "answer": LETTERS[at // 2 % 4],
                "split": "train" if at % 2 else "test",
            }
            for at in range(24)
        ]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text)
