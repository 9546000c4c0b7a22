"""Lists of files at the Hugging Face Hub, GitHub, Google Cloud Storage and Zenodo."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from fewbench._names import did_you_mean
from fewbench.errors import PublicError
from fewbench.public.fetching import MOVED, Fetcher, Remote, laid_out

# Tests put local servers in their place; the Hub's is HF_ENDPOINT.
HOSTS = {
    "github-api": "https://api.github.com",
    "github-raw": "https://raw.githubusercontent.com",
    "gcs": "https://storage.googleapis.com",
    "livecodebench": "https://livecodebench.github.io",
    "tau2": "https://sierra-tau-bench-public.s3.us-west-2.amazonaws.com",
    "zenodo": "https://zenodo.org",
}
T = TypeVar("T")
COMMIT = re.compile("[0-9a-f]{40}")


@dataclass(frozen=True)
class Listing:
    """Files and folders at a host.

    Parameters
    ----------
    commit : str
        Commit or record that the files are of; "" for a bucket.
    files : list of Remote
    folders : list of str
    created : dict
        Path → time of upload, where the host says it.
    """

    commit: str
    files: list[Remote]
    folders: list[str] = field(default_factory=list)
    created: dict[str, str] = field(default_factory=dict)


def commit_of(said: object) -> str:
    """Return a host's commit hash, for URLs and folders; PublicError if it is not one.

    Examples
    --------
    >>> commit_of("c" * 40) == "c" * 40
    True
    >>> commit_of("../x")
    Traceback (most recent call last):
    fewbench.errors.PublicError: the listing says the commit '../x' ...
    """
    if not (isinstance(said, str) and COMMIT.fullmatch(said)):
        raise PublicError(f"the listing says the commit {said!r:.80}", hint=MOVED)
    return said


class Hub:
    """Dataset repositories of the Hugging Face Hub, with its own login and settings.

    `HF_TOKEN`, `HF_ENDPOINT`, `HF_HUB_OFFLINE` and `hf auth login` work as everywhere.
    """

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._api = fetcher.hub

    def datasets(self, author: str, search: str | None = None) -> list[str]:
        """Return the ids of an organization's dataset repositories."""
        infos = self._ask(author, lambda: [*self._api.list_datasets(author=author, search=search)])
        return [str(info.id) for info in infos]

    def files(self, repo: str, revision: str | None = None) -> Listing:
        """Return all files of a repository; PublicError if its terms are not accepted."""

        def listed() -> Listing:
            info = self._api.dataset_info(repo, revision=revision, files_metadata=True)
            if info.gated:
                self._api.auth_check(repo, repo_type="dataset")
            commit = commit_of(info.sha)
            files = [self._remote(repo, commit, sib, sib.rfilename) for sib in info.siblings or []]
            return Listing(commit, files)

        return self._ask(repo, listed)

    def commit(self, repo: str, revision: str | None = None) -> str:
        """Return the commit that a revision names."""
        info = self._ask(
            repo, lambda: self._api.dataset_info(repo, revision=revision, expand=["sha"])
        )
        return commit_of(info.sha)

    def folder(self, repo: str, commit: str, path: str) -> Listing:
        """Return the files and the folders in one folder of a large repository."""

        def listed() -> Listing:
            nodes = list(self._api.list_repo_tree(repo, path, revision=commit, repo_type="dataset"))
            files = [entry for entry in nodes if hasattr(entry, "size")]
            return Listing(
                commit,
                [self._remote(repo, commit, file, file.path) for file in files],
                [str(entry.path) for entry in nodes if not hasattr(entry, "size")],
            )

        return self._ask(repo, listed)

    def paths(self, repo: str, commit: str, paths: list[str]) -> list[Remote]:
        """Return the named files of a large repository, without those that do not exist."""

        def listed(some: list[str]) -> list[Remote]:
            infos = self._api.get_paths_info(repo, some, revision=commit, repo_type="dataset")
            return [self._remote(repo, commit, info, info.path) for info in infos]

        batches = [paths[start : start + 500] for start in range(0, len(paths), 500)]
        remotes = [self._ask(repo, lambda some=some: listed(some)) for some in batches]  # type: ignore[misc]
        return [remote for batch in remotes for remote in batch]

    def _remote(self, repo: str, commit: str, file: Any, path: str) -> Remote:
        return Remote(
            f"{self._api.endpoint}/datasets/{repo}/resolve/{commit}/{quote(path)}",
            path,
            int(file.size),
            f"sha256:{file.lfs.sha256}" if file.lfs else "",
            is_at_hub=True,
        )

    def _ask(self, repo: str, call: Callable[[], T]) -> T:
        return self._fetcher.ask_hub(call, f"{self._api.endpoint}/datasets/{repo}")


def github_files(
    fetcher: Fetcher, repo: str, revision: str | None = None, under: str = ""
) -> Listing:
    """Return the files of a GitHub repository below a folder; paths are of the repository."""
    api = f"{HOSTS['github-api']}/repos/{repo}"
    token = os.environ.get("GITHUB_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with laid_out(api):
        commit = commit_of(
            fetcher.json(f"{api}/commits/{quote(revision or 'HEAD')}", headers)["sha"]
        )
        tree = commit
        for name in under.split("/") if under else []:
            listed = fetcher.json(f"{api}/git/trees/{tree}", headers)["tree"]
            folders = {entry["path"]: entry["sha"] for entry in listed if entry["type"] == "tree"}
            if name not in folders:
                hint = did_you_mean(name, folders, MOVED)
                raise PublicError(f"github.com/{repo}: no folder {under}", hint=hint)
            tree = commit_of(folders[name])
        listing = fetcher.json(f"{api}/git/trees/{tree}?recursive=1", headers)
        if listing.get("truncated"):
            raise PublicError(f"github.com/{repo}: too many files in {under or 'it'} to list")
        raw = f"{HOSTS['github-raw']}/{repo}/{commit}"
        sizes = {
            f"{under}/{entry['path']}" if under else str(entry["path"]): int(entry["size"])
            for entry in listing["tree"]
            if entry["type"] == "blob"
        }
    return Listing(
        commit, [Remote(f"{raw}/{quote(path)}", path, size) for path, size in sizes.items()]
    )


def bucket_files(fetcher: Fetcher, bucket: str, prefix: str, *, deep: bool = True) -> Listing:
    """Return the objects of a Google Cloud Storage bucket below a prefix; they are compressed.

    Without `deep`, only those right below, and folders.
    """
    base = f"{HOSTS['gcs']}/storage/v1/b/{bucket}/o"
    asked = {"prefix": prefix, "fields": "items(name,size,timeCreated),prefixes,nextPageToken"}
    if not deep:
        asked["delimiter"] = "/"
    listing = Listing("", [])
    seen: set[str] = set()
    with laid_out(base):
        while True:
            page = fetcher.json(f"{base}?{urlencode(asked)}")
            listing.folders.extend(page.get("prefixes", []))
            for entry in page.get("items", []):
                name = str(entry["name"])
                url = f"{HOSTS['gcs']}/{bucket}/{quote(name)}"
                listing.created[name] = str(entry.get("timeCreated") or "")
                listing.files.append(Remote(url, name, int(entry["size"])))
            token = page.get("nextPageToken")
            if not token:
                return listing
            if token in seen:
                raise PublicError(f"{base}: the listing does not end", hint=MOVED)
            seen.add(token)
            asked["pageToken"] = token


def zenodo_files(fetcher: Fetcher, record: str) -> Listing:
    """Return the files of a Zenodo record, which never change."""
    url = f"{HOSTS['zenodo']}/api/records/{record}"
    with laid_out(url):
        files = [
            Remote(str(row["links"]["self"]), str(row["key"]), int(row["size"]), row["checksum"])
            for row in fetcher.json(url)["files"]
        ]
    return Listing(f"record {record}", files)


def list_files(fetcher: Fetcher, place: str, revision: str | None, under: str = "") -> Listing:
    """Return the files of `hub:ORG/NAME`, `github:OWNER/NAME` or `zenodo:RECORD`.

    With `under`, only those in a folder; of a repository at the Hub, not those in its folders.
    """
    host, _, name = place.partition(":")
    if host == "github":
        return github_files(fetcher, name, revision, under)
    if host == "zenodo":
        return zenodo_files(fetcher, name)
    hub = Hub(fetcher)
    return (
        hub.folder(name, hub.commit(name, revision), under) if under else hub.files(name, revision)
    )
