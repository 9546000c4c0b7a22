"""Fetch a pack that somebody published in a dataset repository."""

import shutil
from pathlib import Path

from fewbench._files import written_whole
from fewbench._names import some
from fewbench._progress import OnStep
from fewbench.errors import PublicError
from fewbench.public.fetching import Fetcher
from fewbench.public.get import default_cache
from fewbench.public.hosts import Hub
from fewbench.public.source import HUB
from fewbench.scores import open_saved

SUFFIX = ".few"


def get_pack(
    name: str,
    output: str | Path | None = None,
    *,
    revision: str | None = None,
    cache: str | Path | None = None,
    force: bool = False,
    progress: OnStep | None = None,
) -> Path:
    """Fetch a pack and check it; return the path of the file.

    Parameters
    ----------
    name : str
        `hub:ORG/NAME`, a dataset repository with one pack, or `hub:ORG/NAME/FILE.few`.
    output : path, optional
        File to write (default: the pack's own name, in this folder).
    revision, cache, force, progress
        As for `get`.

    Raises
    ------
    PublicError
        If the repository or the pack is not there, or the file exists.
    PackError
        If the file is not a whole pack of a schema that is read here.
    """
    org, _, rest = name.removeprefix(HUB).partition("/")
    dataset, _, file = rest.partition("/")
    if not (name.startswith(HUB) and org and dataset) or name.endswith("/"):
        hint = f"as in {HUB}ORG/NAME/FILE{SUFFIX}"
        raise PublicError(f"{name!r} is not a dataset repository", hint=hint)
    repo = f"{org}/{dataset}"
    with Fetcher(progress) as fetcher:
        listing = Hub(fetcher).files(repo, revision)
        packs = [pack for pack in listing.files if pack.path.endswith(SUFFIX)]
        matching = [pack for pack in packs if not file or pack.path == file]
        if len(matching) != 1:
            there = some([pack.path for pack in packs]) if packs else "none"
            hint = f"name one, as in {HUB}{repo}/FILE{SUFFIX}"
            raise PublicError(
                f"{HUB}{repo}: no single pack named; packs there: {there}",
                hint=hint if packs else "for source results, leave out --from pack",
            )
        target = Path(Path(matching[0].path).name if output is None else output)
        if target.exists() and not force:
            raise PublicError(f"{target} exists", hint="use --force (force=True) to replace it")
        base = default_cache() if cache is None else Path(cache)
        folder = base / "packs" / repo / listing.commit
        fetcher.fetch(matching, folder)
    fetched = folder / matching[0].path
    open_saved(fetched)  # damaged ones are refused here
    with written_whole(target) as temporary:
        shutil.copyfile(fetched, temporary)
    return target
