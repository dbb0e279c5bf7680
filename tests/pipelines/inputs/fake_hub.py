"""A Hugging Face hub on localhost: the few answers that its libraries need to list and read."""

import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

API = re.compile(
    r"/api/(?:datasets|models)/(?P<name>[^/]+/[^/]+?)"
    r"(?:/(?P<what>revision|tree|paths-info|auth-check)(?:/(?P<revision>[^/]+)(?:/(?P<path>.+))?)?)?"
)
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
    """What the server answers from, and what it was asked."""

    datasets: Mapping[str, Repository]
    requests: list[str] = field(default_factory=list)

    def repository(self, name: str, revision: str | None) -> Repository:
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


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answer()

    do_HEAD = do_POST = do_GET

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        url = urlsplit(self.path)
        self.hub.requests.append(f"{self.command} {self.path}")
        try:
            if match := API.fullmatch(url.path):
                answer = self._api(match, query=parse_qs(url.query), body=body)
                self._send(200, json.dumps(answer).encode())
            elif match := FILE.fullmatch(url.path):
                self._file(match)
            else:
                raise Refused(404, "EntryNotFound")
        except Refused as refused:
            status, code, *commit = refused.args
            headers = {"X-Error-Code": code, "X-Error-Message": code}
            self._send(status, b"{}", headers | {"X-Repo-Commit": commit[0]} if commit else headers)

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
