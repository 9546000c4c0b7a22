"""Local sites in place of the real ones, each with a little of what it publishes."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def site(monkeypatch, tmp_path):
    """Serve every layout; nothing is fetched from anywhere else, and retries are quick."""
    from published import publish
    from sites import serving

    from fewbench.public import fetching, hosts

    with serving() as (site, address):
        site.address = address
        publish(site, address)
        for name, folder in (
            *(("github-api", "gh-api"), ("github-raw", "gh-raw"), ("gcs", "gcs")),
            *(("livecodebench", "lcb"), ("tau2", "tau2"), ("zenodo", "zenodo")),
        ):
            monkeypatch.setitem(hosts.HOSTS, name, f"{address}/{folder}")
        monkeypatch.setenv("HF_ENDPOINT", address)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        # The Hub's client asks a server of its own which programs it knows.
        monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_TELEMETRY", True)
        for name in ("GITHUB_TOKEN", "HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setattr(fetching, "BACKOFF", 0.001)
        quick = SimpleNamespace(sleep=lambda seconds: None)
        monkeypatch.setattr("huggingface_hub.utils._http.time", quick)
        monkeypatch.chdir(tmp_path)
        yield site
