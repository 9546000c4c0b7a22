"""Lists of files at the Hugging Face Hub, GitHub, Google Cloud Storage and Zenodo."""

import base64
import binascii
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from fewbench._names import did_you_mean
from fewbench._version import __version__
from fewbench.errors import MissingExtraError, PublicError, first_line
from fewbench.public.fetching import (
    GATED,
    MOVED,
    RETRIED,
    Fetcher,
    Later,
    Remote,
    laid_out,
    pause,
)

# Tests put local servers in their place.
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
    """Files of a repository at one commit, and whether its terms must be accepted."""

    commit: str
    files: list[Remote]
    is_gated: bool = False


def commit_of(said: object) -> str:
    """Return a commit as a host says it, which names URLs and folders; PublicError if it is none.

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
    """Dataset repositories of the Hugging Face Hub, by its own client, login and settings.

    `HF_TOKEN`, `HF_ENDPOINT`, `HF_HUB_OFFLINE` and `hf auth login` work as everywhere.
    """

    def __init__(self, fetcher: Fetcher) -> None:
        try:
            import huggingface_hub
        except ImportError as error:
            raise MissingExtraError(
                "fetching from the Hugging Face Hub needs huggingface_hub",
                hint="pip install 'fewbench[hub]'",
            ) from error
        self._library = huggingface_hub
        self._fetcher = fetcher
        self._api = huggingface_hub.HfApi(
            endpoint=os.environ.get("HF_ENDPOINT"),
            library_name="fewbench",
            library_version=__version__,
        )
        self._headers = huggingface_hub.utils.build_hf_headers(  # type: ignore[attr-defined]
            library_name="fewbench", library_version=__version__
        )

    def datasets(self, author: str, search: str | None = None) -> list[str]:
        """Return the ids of an organization's dataset repositories."""
        found = self._call(
            author, lambda: list(self._api.list_datasets(author=author, search=search))
        )
        return [str(one.id) for one in found]

    def files(self, repo: str, revision: str | None = None) -> Listing:
        """Return all files of a repository."""
        info = self._call(
            repo, lambda: self._api.dataset_info(repo, revision=revision, files_metadata=True)
        )
        commit = commit_of(info.sha)
        files = [self._remote(repo, commit, one, one.rfilename) for one in info.siblings or []]
        return Listing(commit, files, bool(info.gated))

    def commit(self, repo: str, revision: str | None = None) -> str:
        """Return the commit that a revision names."""
        info = self._call(
            repo, lambda: self._api.dataset_info(repo, revision=revision, expand=["sha"])
        )
        return commit_of(info.sha)

    def folder(self, repo: str, commit: str, path: str) -> tuple[list[Remote], list[str]]:
        """Return the files and the folders in one folder of a large repository."""
        found = self._call(
            repo,
            lambda: list(
                self._api.list_repo_tree(repo, path, revision=commit, repo_type="dataset")
            ),
        )
        folders = [str(one.path) for one in found if not hasattr(one, "size")]
        files = [self._remote(repo, commit, one, one.path) for one in found if hasattr(one, "size")]
        return files, folders

    def paths(self, repo: str, commit: str, paths: list[str]) -> list[Remote]:
        """Return the named files of a large repository, without those that do not exist."""
        found: list[Any] = []
        for start in range(0, len(paths), 500):
            some = paths[start : start + 500]
            found += self._call(
                repo,
                lambda some=some: self._api.get_paths_info(  # type: ignore[misc]
                    repo, some, revision=commit, repo_type="dataset"
                ),
            )
        return [self._remote(repo, commit, one, one.path) for one in found if hasattr(one, "size")]

    def may_read(self, repo: str) -> bool:
        """Whether the terms of a gated repository are accepted."""
        try:
            self._call(repo, lambda: self._api.auth_check(repo, repo_type="dataset"))
        except PublicError as error:
            if error.hint == GATED:
                return False
            raise
        return True

    def _remote(self, repo: str, commit: str, one: Any, path: str) -> Remote:
        with laid_out(f"{self._api.endpoint}/api/datasets/{repo}"):
            lfs = one.lfs
            return Remote(
                f"{self._api.endpoint}/datasets/{repo}/resolve/{commit}/{quote(path)}",
                path,
                one.size,
                f"sha256:{lfs.sha256}" if lfs else f"git:{one.blob_id}" if one.blob_id else "",
                self._headers,
            )

    def _call(self, repo: str, call: Callable[[], T]) -> T:
        from huggingface_hub import errors

        where = f"{self._api.endpoint}/datasets/{repo}"

        def attempt() -> T:
            try:
                return call()
            except errors.GatedRepoError as error:
                raise PublicError(
                    f"{where}: the dataset's terms are not accepted", hint=GATED
                ) from error
            except errors.RepositoryNotFoundError as error:
                raise PublicError(
                    f"{where}: no such dataset repository, or it is private",
                    hint="check the name; for a private one, log in with `hf auth login`",
                ) from error
            except (errors.RevisionNotFoundError, errors.EntryNotFoundError) as error:
                raise PublicError(f"{where}: no such file or revision", hint=MOVED) from error
            except errors.OfflineModeIsEnabled as error:
                raise PublicError(
                    f"{where}: HF_HUB_OFFLINE is set", hint="unset it to fetch results"
                ) from error
            except errors.HFValidationError as error:
                raise PublicError(
                    f"{repo!r} is not the name of a dataset repository",
                    hint="as in hub:ORG/DATASET",
                ) from error
            except errors.HfHubHTTPError as error:
                status = error.response.status_code
                if status not in RETRIED:
                    raise PublicError(f"{where}: HTTP {status}", hint=MOVED) from error
                raise Later(f"HTTP {status}", pause(error.response.headers)) from error
            except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
                raise PublicError(
                    f"{where}: not an answer of the Hub ({first_line(error)})", hint=MOVED
                ) from error

        return self._fetcher.retried(attempt, where)


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
            folders = {one["path"]: one["sha"] for one in listed if one["type"] == "tree"}
            if name not in folders:
                hint = did_you_mean(name, folders, MOVED)
                raise PublicError(f"github.com/{repo}: no folder {under}", hint=hint)
            tree = commit_of(folders[name])
        listing = fetcher.json(f"{api}/git/trees/{tree}?recursive=1", headers)
        if listing.get("truncated"):
            raise PublicError(f"github.com/{repo}: too many files in {under or 'it'} to list")
        files = []
        for one in listing["tree"]:
            if one["type"] == "blob":
                path = f"{under}/{one['path']}" if under else str(one["path"])
                url = f"{HOSTS['github-raw']}/{repo}/{commit}/{quote(path)}"
                digest = f"git:{one['sha']}" if one.get("sha") else ""
                files.append(Remote(url, path, int(one["size"]), digest))
    return Listing(commit, files)


@dataclass(frozen=True)
class Bucket:
    """Objects of a Google Cloud Storage bucket below a prefix, and the folders there."""

    files: list[Remote]
    folders: list[str]
    created: dict[str, str]


def bucket_files(fetcher: Fetcher, bucket: str, prefix: str, *, deep: bool = True) -> Bucket:
    """Return the objects below a prefix; without `deep` only those right below, and folders."""
    base = f"{HOSTS['gcs']}/storage/v1/b/{bucket}/o"
    asked = {"prefix": prefix, "fields": "items(name,size,md5Hash,timeCreated),prefixes,"}
    asked["fields"] += "nextPageToken"
    if not deep:
        asked["delimiter"] = "/"
    files: list[Remote] = []
    folders: list[str] = []
    created: dict[str, str] = {}
    seen: set[str] = set()
    with laid_out(base):
        while True:
            page = fetcher.json(f"{base}?{urlencode(asked)}")
            folders += page.get("prefixes", [])
            for one in page.get("items", []):
                name = str(one["name"])
                url = f"{HOSTS['gcs']}/{bucket}/{quote(name)}"
                digest = _md5(one.get("md5Hash"))
                created[name] = str(one.get("timeCreated") or "")
                files.append(Remote(url, name, int(one["size"]), digest, packed=True))
            token = page.get("nextPageToken")
            if not token:
                return Bucket(files, folders, created)
            if token in seen:
                raise PublicError(f"{base}: the listing does not end", hint=MOVED)
            seen.add(token)
            asked["pageToken"] = token


def _md5(said: object) -> str:
    try:
        raw = base64.b64decode(str(said or ""), validate=True)
    except (binascii.Error, ValueError):
        return ""
    return f"md5:{raw.hex()}" if len(raw) == 16 else ""


def zenodo_files(fetcher: Fetcher, record: str) -> Listing:
    """Return the files of a Zenodo record, which never change."""
    url = f"{HOSTS['zenodo']}/api/records/{record}"
    with laid_out(url):
        files = [
            Remote(str(one["links"]["self"]), str(one["key"]), int(one["size"]), one["checksum"])
            for one in fetcher.json(url)["files"]
        ]
    return Listing(f"record {record}", files)
