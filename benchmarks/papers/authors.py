"""Files of the papers' authors at GitHub, from which tables are built."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from re import Pattern

from fewbench.errors import PublicError
from fewbench.public.fetching import Fetcher, Remote, laid_out
from fewbench.public.get import default_cache
from fewbench.public.hosts import github_files


@dataclass(frozen=True)
class Repository:
    """A repository, and the paths of the wanted files; all are below the folder `under`."""

    name: str
    wanted: Pattern[str]
    under: str = ""


@dataclass(frozen=True)
class Built:
    """A table built from files of repositories by a function of their folders and its path."""

    repositories: tuple[Repository, ...]
    write: Callable[[Sequence[Path], Path], None]


class AuthorsFiles:
    """The listed files of repositories, each at its newest commit."""

    def __init__(self, built: Built) -> None:
        self._built = built
        self._listed: list[tuple[Repository, str, list[Remote]]] = []
        with Fetcher() as fetcher:
            for repository in built.repositories:
                listing = github_files(fetcher, repository.name, under=repository.under)
                remotes = [file for file in listing.files if repository.wanted.fullmatch(file.path)]
                if not remotes:
                    raise PublicError(
                        f"github.com/{repository.name} has no file {repository.wanted.pattern}"
                    )
                self._listed.append((repository, listing.commit, remotes))

    def __repr__(self) -> str:
        return "; ".join(
            f"github.com/{repository.name}: {len(remotes)} files, commit {commit[:12]}"
            for repository, commit, remotes in self._listed
        )

    def build(self, path: Path) -> None:
        """Download the files, and write the table."""
        folders = []
        with Fetcher() as fetcher:
            for repository, commit, remotes in self._listed:
                cache = default_cache() / repository.name.replace("/", "_") / commit
                fetcher.fetch(remotes, cache)
                folders.append(cache / repository.under)
        path.parent.mkdir(parents=True, exist_ok=True)
        with laid_out(folders[0]):
            self._built.write(folders, path)
