"""Packs: a benchmark's few items, with all that an estimate from them needs, in one file."""

from fewbench.packs.contents import Pack, open_pack
from fewbench.packs.making import pack
from fewbench.packs.refresh import refresh_pack

__all__ = ["Pack", "open_pack", "pack", "refresh_pack"]
