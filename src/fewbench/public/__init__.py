"""Public per-item results by name: list, fetch, read."""

from fewbench.public.catalogue import SOURCES, public_sources
from fewbench.public.get import PublicFiles, PublicResults, find_public_files, get
from fewbench.public.packs import get_pack

__all__ = [
    "SOURCES",
    "PublicFiles",
    "PublicResults",
    "find_public_files",
    "get",
    "get_pack",
    "public_sources",
]
