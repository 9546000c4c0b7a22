"""Make a tiny language model for lm-eval's `--model hf`, without a network.

    python scripts/make_tiny_lm.py FOLDER

The model reads bytes, has two layers and random weights, and takes a second to make. It needs
transformers and torch.
"""

import argparse
from pathlib import Path


def make_tiny_lm(folder: Path, seed: int = 0) -> None:
    """Write a model and its tokenizer, as `from_pretrained` reads them."""
    import torch
    from transformers import ByT5Tokenizer, GPT2Config, GPT2LMHeadModel

    torch.manual_seed(seed)
    tokenizer = ByT5Tokenizer(extra_ids=0)
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=1024,
        n_embd=32,
        n_layer=2,
        n_head=2,
        bos_token_id=tokenizer.eos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    make_tiny_lm(arguments.folder, arguments.seed)


if __name__ == "__main__":
    main()
