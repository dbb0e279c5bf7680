"""A Hugging Face hub on localhost: the few answers that its libraries need to list, read and push.

Who pushes has the token hf_OWNER.
"""

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

API = re.compile(
    r"/api/(?:datasets|models)/(?P<name>[^/]+/[^/]+?)"
    r"(?:/(?P<what>revision|tree|paths-info|auth-check)(?:/(?P<revision>[^/]+)(?:/(?P<path>.+))?)?)?"
)
WRITE = re.compile(
    r"/api/datasets/(?P<name>[^/]+/[^/]+)/(?P<what>preupload|commit|branch)/(?P<revision>[^/]+)"
)
BATCH = re.compile(r"/datasets/(?P<name>[^/]+/[^/]+)\.git/info/lfs/objects/batch")
LARGE = (".arrow", ".bin", ".parquet")
"""What the hub keeps beside git."""
FILE = re.compile(r"(?:/datasets)?/(?P<name>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)")


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A dataset or a model at one commit."""

    files: Mapping[str, bytes]
    gated: bool = False

    @property
    def commit(self) -> str:
        return hashlib.sha1(repr(sorted(self.files.items())).encode()).hexdigest()

    def entry(self, path: str) -> dict[str, Any]:
        content = self.files[path]
        return {
            "type": "file",
            "path": path,
            "size": len(content),
            "oid": hashlib.sha1(content).hexdigest(),
        }


class Refused(Exception):
    """An answer other than 200."""


@dataclass
class Hub:
    """What the server answers from, what it was asked, and what it was given."""

    datasets: Mapping[str, Repository]
    requests: list[str] = field(default_factory=list)
    pushed: dict[str, dict[str, Repository]] = field(default_factory=dict)
    """By name, then by branch or commit."""
    objects: dict[str, bytes] = field(default_factory=dict)
    """Large files by SHA-256."""
    uploads: list[str] = field(default_factory=list)
    """The SHA-256 of each large file that came, as often as it came."""
    room: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(10**6))
    """How many large files are taken in; the others wait."""

    def repository(self, name: str, revision: str | None) -> Repository:
        if name in self.pushed:
            if (revision or "main") not in self.pushed[name]:
                raise Refused(404, "RevisionNotFound")
            return self.pushed[name][revision or "main"]
        found = self.datasets.get(name)
        if found is None:
            raise Refused(404, "RepoNotFound")
        if revision not in (None, "main", "v1", "refs/convert/parquet", found.commit):
            raise Refused(404, "RevisionNotFound")
        return found

    def info(self, name: str, repository: Repository) -> dict[str, Any]:
        return {
            "id": name,
            "sha": repository.commit,
            "private": False,
            "gated": "manual" if repository.gated else False,
            "disabled": False,
            "tags": [],
            "downloads": 0,
            "likes": 0,
            "siblings": [{"rfilename": path} for path in repository.files],
        }

    def tree(self, repository: Repository, folder: str, *, recursive: bool) -> list[Any]:
        below = [p for p in repository.files if not folder or p.startswith(f"{folder}/")]
        if folder and not below:
            raise Refused(404, "EntryNotFound")
        start = len(folder) + 1 if folder else 0
        folders = {p[: p.index("/", start)] for p in below if "/" in p[start:]}
        if recursive:
            folders = {p[:at] for p in below for at in range(start, len(p)) if p[at] == "/"}
        files = below if recursive else [p for p in below if "/" not in p[start:]]
        entries = [{"type": "directory", "path": p, "size": 0, "oid": "0" * 40} for p in folders]
        return sorted(
            [*entries, *map(repository.entry, files)], key=lambda entry: str(entry["path"])
        )

    def create(self, name: str) -> None:
        if name in self.pushed or name in self.datasets:
            raise Refused(409, "RepoExists")
        self.pushed[name] = {}
        self.put(name, "main", {".gitattributes": b"*.bin filter=lfs"})

    def put(self, name: str, branch: str, files: Mapping[str, bytes]) -> Repository:
        made = Repository(files=files)
        self.pushed[name] |= {branch: made, made.commit: made}
        return made

    def modes(self, repository: Repository, files: list[Any]) -> list[Any]:
        """How each file is to come, and what is there of its name."""
        answers = []
        for path in (file["path"] for file in files):
            mode = "lfs" if path.endswith(LARGE) else "regular"
            oid = repository.files.get(path)
            if oid is not None and mode == "lfs":
                there = hashlib.sha256(oid).hexdigest()
            else:
                there = oid and hashlib.sha1(b"blob %d\0%b" % (len(oid), oid)).hexdigest()
            answers.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": there})
        return answers

    def commit(self, name: str, branch: str, lines: list[Any]) -> Repository:
        files = dict(self.repository(name, branch).files)
        for key, value in ((line["key"], line["value"]) for line in lines):
            match key:
                case "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                case "lfsFile":
                    files[value["path"]] = self.objects[value["oid"]]
                case "deletedFile":
                    del files[value["path"]]
        return self.put(name, branch, files)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answer()

    do_HEAD = do_POST = do_PUT = do_GET

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        url = urlsplit(self.path)
        self.hub.requests.append(f"{self.command} {self.path}")
        try:
            if match := API.fullmatch(url.path):
                answer = self._api(match, query=parse_qs(url.query), body=body)
                self._send(200, json.dumps(answer).encode())
            elif self.command in ("POST", "PUT"):
                self._send(200, json.dumps(self._take(url.path, body)).encode())
            elif match := FILE.fullmatch(url.path):
                self._file(match)
            else:
                raise Refused(404, "EntryNotFound")
        except Refused as refused:
            status, code, *commit = refused.args
            headers = {"X-Error-Code": code, "X-Error-Message": code}
            headers |= {"X-Repo-Commit": commit[0]} if commit else {}
            self._send(status, json.dumps({"url": self._made(body)}).encode(), headers)

    def _api(self, match: re.Match[str], *, query: Mapping[str, Any], body: bytes) -> Any:
        revision = unquote(match["revision"]) if match["revision"] else None
        repository = self.hub.repository(match["name"], revision)
        path = unquote(match["path"] or "")
        if match["what"] == "auth-check" and repository.gated:
            raise Refused(403, "GatedRepo")
        if match["what"] == "tree":
            recursive = query.get("recursive") == ["true"] or query.get("recursive") == ["True"]
            return self.hub.tree(repository, path, recursive=recursive)
        if match["what"] == "paths-info":
            asked = parse_qs(body.decode()).get("paths") or json.loads(body)["paths"]
            return [repository.entry(path) for path in asked if path in repository.files]
        return self.hub.info(match["name"], repository)

    def _take(self, path: str, body: bytes) -> Any:
        """Answer what writes; nothing but large files come without a token."""
        if path.startswith("/large/"):
            self.hub.room.acquire()
            oid = hashlib.sha256(body).hexdigest()
            if not path.endswith(oid):  # its sender was killed
                raise Refused(400, "BadDigest")
            self.hub.objects[oid] = body
            self.hub.uploads.append(oid)
            return {}
        if path == "/api/validate-yaml":
            return {"errors": [], "warnings": []}
        if path == "/api/repos/create":
            url = self._made(body)
            name = url.partition("/datasets/")[2]
            self._check_token(name)
            self.hub.create(name)
            return {"url": url}
        if match := BATCH.fullmatch(path):
            self._check_token(match["name"])
            return {"transfer": "basic", "objects": [*map(self._room, json.loads(body)["objects"])]}
        match = WRITE.fullmatch(path)
        if match is None:
            raise Refused(404, "EntryNotFound")
        self._check_token(match["name"])
        return self._write(match["name"], match["what"], unquote(match["revision"]), body)

    def _write(self, name: str, what: str, branch: str, body: bytes) -> Any:
        if what == "branch":
            if branch in self.hub.pushed[name]:
                raise Refused(409, "BranchExists")
            self.hub.put(name, branch, self.hub.repository(name, None).files)
            return {}
        if what == "preupload":
            repository = self.hub.repository(name, branch)
            return {"files": self.hub.modes(repository, json.loads(body)["files"])}
        made = self.hub.commit(name, branch, [json.loads(line) for line in body.splitlines()])
        return {
            "commitOid": made.commit,
            "commitUrl": f"{self._address}/{name}/commit/{made.commit}",
        }

    def _made(self, body: bytes) -> str:
        """The address of a repository that is to be made; who is told that it is there wants it."""
        asked = json.loads(body) if self.path == "/api/repos/create" else {}
        return f"{self._address}/datasets/{asked.get('organization')}/{asked.get('name')}"

    @property
    def _address(self) -> str:
        return f"http://{self.headers['Host']}"

    def _room(self, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        """Where a large file is put; nowhere if it is there."""
        if asked["oid"] in self.hub.objects:
            return asked
        return {**asked, "actions": {"upload": {"href": f"{self._address}/large/{asked['oid']}"}}}

    def _check_token(self, name: str) -> None:
        token = self.headers.get("Authorization", "")
        if not token:
            raise Refused(401, "Unauthorized")
        if token != f"Bearer hf_{name.partition('/')[0]}":
            raise Refused(403, "Forbidden")

    def _file(self, match: re.Match[str]) -> None:
        repository = self.hub.repository(match["name"], unquote(match["revision"]))
        path = unquote(match["path"])
        if repository.gated:
            raise Refused(403, "GatedRepo")
        if path not in repository.files:
            raise Refused(404, "EntryNotFound", repository.commit)
        content, status = repository.files[path], 200
        headers = {
            "X-Repo-Commit": repository.commit,
            "ETag": f'"{repository.entry(path)["oid"]}"',
            "Accept-Ranges": "bytes",
        }
        if asked := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            start = int(asked[1])
            end = min(int(asked[2] or len(content)), len(content) - 1)
            headers["Content-Range"] = f"bytes {start}-{end}/{len(content)}"
            content, status = content[start : end + 1], 206
        self._send(status, content, headers)

    def _send(self, status: int, content: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        with suppress(ConnectionError):  # who asked may have been killed
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)


@contextmanager
def serve(datasets: Mapping[str, Repository]) -> Iterator[tuple[str, Hub]]:
    """Yield the address of a hub with some datasets, and what it is asked."""
    hub = Hub(datasets)
    handler = type("HubHandler", (Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answers(script: Path, endpoint: str, *specs: str, home: Path, **variables: str) -> list[Any]:
    """Return what a script prints of each spec, each a line of JSON, with this hub as its own.

    The hub's libraries read their environment once, so each environment is a process.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HF_") and not name.lower().endswith("_proxy")
    }
    settings = {
        "HF_HOME": str(home),
        "HF_ENDPOINT": endpoint,
        "HF_UPDATE_DOWNLOAD_COUNTS": "0",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, str(script), *specs],
        env={**inherited, **settings, **variables},
        cwd=home,
        stdout=subprocess.PIPE,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]
