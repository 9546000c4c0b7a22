"""A local server that imitates the Hub, GitHub, a bucket, and plain hosts, with their failures."""

import base64
import gzip
import hashlib
import json
import math
import threading
import time
from collections import Counter, defaultdict
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "c" * 40


def blob(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Site:
    """What is published (path → bytes), faults to come (path → list), and requests that came."""

    def __init__(self):
        self.hub = {}  # repository → path → content
        self.github = {}
        self.trees = {}  # SHA-1 → folder
        self.bucket = {}
        self.plain = {}  # path → content
        self.gated = set()
        self.faults = defaultdict(list)
        self.requests = []
        self.sent = Counter()  # bytes by path
        self.busy = self.busiest = 0
        self.pause = 0.0
        self.most = {}  # path → bytes after which nothing more comes for now
        self.lock = threading.Lock()

    def paths(self, of="resolve"):
        return [path for path in self.requests if of in path]

    def answer(self, path, query, body):
        """Return status, headers and content."""
        parts = path.strip("/").split("/")
        if path == "/api/datasets":
            author = query["author"][0]
            search = query.get("search", [""])[0]
            own = [one for one in self.hub if one.startswith(f"{author}/") and search in one]
            return ok([{"id": one} for one in own])
        if parts[:2] == ["api", "datasets"]:
            return self.hub_api("/".join(parts[2:4]), parts[4:], query, body)
        if parts[0] == "datasets":
            repo, name = "/".join(parts[1:3]), "/".join(parts[5:])
            if repo in self.gated:
                return 403, {"X-Error-Code": "GatedRepo"}, b"{}"
            found = self.hub.get(repo, {}).get(name)
            return (404, {"X-Error-Code": "EntryNotFound"}, b"") if found is None else ok(found)
        if parts[0] == "gh-api":
            return self.github_api("/".join(parts[2:4]), parts[4:], query)
        if parts[0] == "gh-raw":
            return of(self.github.get("/".join(parts[1:3]), {}), "/".join(parts[4:]))
        if parts[:2] == ["gcs", "storage"]:
            return self.listing(query)
        if parts[0] == "gcs":
            status, headers, content = of(self.bucket, "/".join(parts[2:]))
            return status, {**headers, "Content-Encoding": "gzip"}, gzip.compress(content, mtime=0)
        if path == "/loop":
            return 302, {"Location": "/loop"}, b""
        return of(self.plain, path.strip("/"))

    def hub_api(self, repo, rest, query, body):
        if repo not in self.hub:
            return 404, {"X-Error-Code": "RepoNotFound"}, b"{}"
        files = self.hub[repo]
        if not rest or rest[0] == "revision":
            listed = [{"rfilename": one, **entry(data)} for one, data in files.items()]
            gated = "auto" if repo in self.gated else False
            said = {"id": repo, "sha": COMMIT, "gated": gated, "private": False, "tags": []}
            return ok({**said, "siblings": listed})
        if rest[0] == "auth-check":
            refused = repo in self.gated
            return (403, {"X-Error-Code": "GatedRepo"}, b"{}") if refused else ok({})
        if rest[0] == "paths-info":
            asked = parse_qs(body.decode())["paths"]
            return ok([item(one, files[one]) for one in asked if one in files])
        under = "".join(f"{one}/" for one in rest[2:])
        inside = sorted({one[len(under) :].split("/")[0] for one in files if one.startswith(under)})
        if not inside:
            return 404, {"X-Error-Code": "EntryNotFound"}, b"{}"
        return ok(
            [
                item(under + one, files[under + one])
                if under + one in files
                else {"type": "directory", "path": under + one, "size": 0, "oid": blob(b"")}
                for one in inside
            ]
        )

    def github_api(self, repo, rest, query):
        files = self.github.get(repo)
        if files is None:
            return 404, {}, b"{}"
        if rest[0] == "commits":
            return ok({"sha": COMMIT})
        tree = self.trees.get(rest[2], "")
        under = {one[len(tree) :]: data for one, data in files.items() if one.startswith(tree)}
        if "recursive" in query:
            listed = [
                {"path": one, "type": "blob", "size": len(data), "sha": blob(data)}
                for one, data in under.items()
            ]
            return ok({"tree": listed, "truncated": False})
        folders = {one.split("/")[0] for one in under if "/" in one}
        listed = [
            {"path": one, "type": "tree", "sha": blob(f"{tree}{one}/".encode())} for one in folders
        ]
        self.trees |= {one["sha"]: f"{tree}{one['path']}/" for one in listed}
        return ok({"tree": listed, "truncated": False})

    def listing(self, query):
        prefix, size = query["prefix"][0], 7
        names = sorted(one for one in self.bucket if one.startswith(prefix))
        if "delimiter" in query:
            inside = {prefix + one[len(prefix) :].split("/")[0] + "/" for one in names}
            return ok({"prefixes": sorted(inside)})
        start = int(query.get("pageToken", ["0"])[0])
        items = []
        for name in names[start : start + size]:
            data = gzip.compress(self.bucket[name], mtime=0)
            md5 = base64.b64encode(hashlib.md5(data).digest()).decode()
            known = {"name": name, "size": str(len(data)), "md5Hash": md5}
            items.append({**known, "timeCreated": "2024-05-06T07:08:09.000Z"})
        more = {"nextPageToken": str(start + size)} if len(names) > start + size else {}
        return ok({"items": items, **more})


def ok(content):
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return 200, {}, data


def of(files, path):
    return ok(files[path]) if path in files else (404, {}, b"")


def entry(data):
    """What the Hub says of a file; large ones are in LFS, known by SHA-256."""
    said = {"size": len(data), "blobId": blob(data)}
    if len(data) > 1000:
        sha = hashlib.sha256(data).hexdigest()
        said["lfs"] = {"oid": sha, "sha256": sha, "size": len(data), "pointerSize": 130}
    return said


def item(path, data):
    known = entry(data)
    return {"type": "file", "path": path, "oid": known.pop("blobId"), **known}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # which would wait 40 ms before every body

    def log_message(self, *said):
        pass

    def do_POST(self):
        self.do_GET()

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        site = self.server.site
        split = urlsplit(self.path)
        path, query = unquote(split.path), parse_qs(split.query)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with site.lock:
            site.requests.append(path)
            site.busy += 1
            site.busiest = max(site.busiest, site.busy)
            fault = site.faults[path].pop(0) if site.faults[path] else None
        try:
            agent = self.headers["User-Agent"]
            assert agent.startswith("fewbench/"), (agent, path)
            time.sleep(site.pause)
            self.reply(site, path, fault, *site.answer(path, query, body))
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            with site.lock:
                site.busy -= 1

    def reply(self, site, path, fault, status, headers, content):
        if isinstance(fault, int):
            status, headers, content = fault, {"Retry-After": "0"}, b"later"
        elif isinstance(fault, dict):
            status, headers, content = 429, fault, b"later"
        elif fault == "moved":
            status, headers, content = 302, {"Location": f"/moved{path}"}, b""
            site.plain[f"moved{path}"] = site.answer(path, {}, b"")[2]
        elif fault == "wrong":
            content = b"x" * len(content)
        whole = len(content)
        asked = self.headers.get("Range")
        if asked and status == 200 and "Content-Encoding" not in headers:
            start, _, end = asked.removeprefix("bytes=").partition("-")
            status, content = 206, content[int(start) : int(end or whole) + 1]
            last = int(start) + len(content) - 1
            headers = {**headers, "Content-Range": f"bytes {start}-{last}/{whole}"}
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if fault == "truncated":
            content = content[: len(content) // 2]
            self.close_connection = True
        for at in range(0, len(content), 1 << 14):
            while site.sent[path] >= site.most.get(path, math.inf):
                time.sleep(0.005)
            site.sent[path] += self.wfile.write(content[at : at + (1 << 14)])
            time.sleep(site.pause)


class Server(ThreadingHTTPServer):
    def handle_error(self, *said):  # of clients that hang up
        pass


@contextmanager
def serving():
    """Give a site and its address."""
    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.site = Site()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.site, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
