"""Scores from a path or a name, and public per-item results: list, fetch, read."""

from fewbench.public.catalogue import SOURCES, public_results, public_sources
from fewbench.public.get import PublicFiles, PublicResults, find_public_files, get
from fewbench.public.kept import is_source, located
from fewbench.public.loading import load_scores, open_scores
from fewbench.public.packs import get_pack

__all__ = [
    "SOURCES",
    "PublicFiles",
    "PublicResults",
    "find_public_files",
    "get",
    "get_pack",
    "is_source",
    "load_scores",
    "located",
    "open_scores",
    "public_results",
    "public_sources",
]
