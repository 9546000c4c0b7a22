"""Public per-item results by name: list, fetch, read."""

from fewbench.public.catalogue import SOURCES, find_source, public_sources
from fewbench.public.get import PublicFiles, PublicResults, find_public_files, get
from fewbench.public.packs import get_pack
from fewbench.public.source import Source

__all__ = [
    "SOURCES",
    "PublicFiles",
    "PublicResults",
    "Source",
    "find_public_files",
    "find_source",
    "get",
    "get_pack",
    "public_sources",
]
