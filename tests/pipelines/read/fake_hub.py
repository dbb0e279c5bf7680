"""A Hugging Face hub on localhost, with the few replies that the hub's libraries need."""

import hashlib
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from werkzeug.exceptions import NotFound
from werkzeug.routing import Map, Rule
from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response

READ = "/api/<any(datasets, models):_>/<owner>/<repo>"
FILE = "<owner>/<repo>/resolve/<revision>/<path:path>"
ROUTES = Map(
    [
        Rule(READ, endpoint="info"),
        Rule(f"{READ}/revision/<revision>", endpoint="info"),
        Rule(f"{READ}/auth-check", endpoint="check_terms"),
        Rule(f"{READ}/tree/<revision>", endpoint="tree"),
        Rule(f"{READ}/tree/<revision>/<path:path>", endpoint="tree"),
        Rule(f"{READ}/paths-info/<revision>", endpoint="entries"),
        Rule(f"/{FILE}", endpoint="file"),
        Rule(f"/datasets/{FILE}", endpoint="file"),
    ]
)
AT = ("main", "v1", "refs/convert/parquet")
"""The revisions of the repository that the server has from the start."""


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
    """A reply whose status is not 200."""


@dataclass
class Hub:
    """The server's datasets, and the requests that it has received."""

    repositories: dict[str, dict[str, Repository]]
    """The repositories by dataset name, then by branch, tag or commit."""
    requests: list[str] = field(default_factory=list)

    def repository(self, name: str, revision: str | None) -> Repository:
        if name not in self.repositories:
            raise Refused(404, "RepoNotFound")
        if (revision or "main") not in self.repositories[name]:
            raise Refused(404, "RevisionNotFound")
        return self.repositories[name][revision or "main"]

    def create(self, name: str) -> None:
        self.repositories[name] = {}
        self.put(name, "main", {".gitattributes": b"*.bin filter=lfs"})

    def put(self, name: str, branch: str, files: Mapping[str, bytes]) -> Repository:
        made = Repository(files=files)
        self.repositories[name] |= {branch: made, made.commit: made}
        return made

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Reply to a request, as a WSGI application."""
        address = str(environ["REQUEST_URI"])
        self.requests.append(f"{environ['REQUEST_METHOD']} {address}")
        try:
            what, words = ROUTES.bind("hub").match(address.partition("?")[0])
            found = {word: unquote(value) for word, value in words.items()}
            name = f"{found.get('owner')}/{found.get('repo')}"
            call = Call(self, Request(environ), name, found.get("revision"), found.get("path", ""))
            answer = getattr(call, what)()
        except NotFound:
            answer = Response(status=404)
        except Refused as refused:
            status, code, *commit = refused.args
            headers = {"X-Error-Code": code, "X-Error-Message": code}
            headers |= {"X-Repo-Commit": commit[0]} if commit else {}
            answer = Response("{}", status, headers, content_type="application/json")
        if not isinstance(answer, Response):
            answer = Response(json.dumps(answer), content_type="application/json")
        return answer(environ, start_response)


@dataclass(frozen=True)
class Call:
    """A request and the reply to it."""

    hub: Hub
    request: Request
    name: str
    revision: str | None
    path: str

    @property
    def repository(self) -> Repository:
        return self.hub.repository(self.name, self.revision)

    def info(self) -> Any:
        return {
            "id": self.name,
            "sha": self.repository.commit,
            "gated": "manual" if self.repository.gated else False,
            "siblings": [{"rfilename": path} for path in self.repository.files],
        }

    def check_terms(self) -> Any:
        if self.repository.gated:
            raise Refused(403, "GatedRepo")
        return {}

    def tree(self) -> Any:
        repository, start = self.repository, len(self.path) + 1 if self.path else 0
        below = [p for p in repository.files if not start or p.startswith(f"{self.path}/")]
        if start and not below:
            raise Refused(404, "EntryNotFound")
        recursive = self.request.args.get("recursive", "").lower() == "true"
        ends = ([at for at in range(start, len(p)) if p[at] == "/"] for p in below)
        folders = {p[:at] for p, every in zip(below, ends, strict=True) for at in every}
        entries = [{"type": "directory", "path": p, "size": 0, "oid": "0" * 40} for p in folders]
        entries += map(repository.entry, below)
        return [
            entry
            for entry in sorted(entries, key=lambda entry: str(entry["path"]))
            if recursive or "/" not in str(entry["path"])[start:]
        ]

    def entries(self) -> Any:
        asked = self.request.form.getlist("paths") or self.request.get_json()["paths"]
        return [self.repository.entry(path) for path in asked if path in self.repository.files]

    def file(self) -> Any:
        repository = self.repository
        self.check_terms()
        if self.path not in repository.files:
            raise Refused(404, "EntryNotFound", repository.commit)
        content = repository.files[self.path]
        answer = Response(content, headers={"X-Repo-Commit": repository.commit})
        answer.set_etag(repository.entry(self.path)["oid"])
        return answer.make_conditional(self.request, True, len(content))


@contextmanager
def serve(datasets: Mapping[str, Repository]) -> Iterator[tuple[str, Hub]]:
    """Yield the address of a hub that serves some datasets, and the hub."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    hub = Hub({name: {at: one for at in (*AT, one.commit)} for name, one in datasets.items()})
    server = make_server("127.0.0.1", 0, hub, threaded=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}", hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answers(script: Path, endpoint: str, *specs: str, home: Path, **variables: str) -> list[Any]:
    """Return the output of a script that uses this hub and prints one line of JSON per spec.

    The hub's libraries read environment variables only once, so each environment needs a new
    process.
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
