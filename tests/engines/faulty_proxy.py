"""A proxy for the S3 server that logs requests, and fails as real storage and networks do."""

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

BUSY, BROKEN, SILENT = "busy", "broken", "silent"
CUT_ANSWER, CUT_UPLOAD = "cut answer", "cut upload"
FAULTS = (BUSY, BROKEN, CUT_ANSWER, CUT_UPLOAD, SILENT)
LOST, SLOW, OTHER_ETAG = "lost answer", "slow answer", "other etag"
"""Faults: a request that succeeds but gets no response, a slow response, and a response with the
etag of a different object."""


@dataclass(frozen=True)
class Request:
    """A request that the proxy has received."""

    method: str
    path: str
    copies: bool
    """Whether the request copies an object, as a rename would."""
    condition: str
    """The value of the header If-None-Match."""
    range: str = ""
    """The value of the header Range."""


@dataclass
class Proxy:
    """A proxy that records its requests; `fault(request, number)` is a request's fault, or ""."""

    address: str
    upstream: str
    """The address of the server."""
    fault: Callable[[Request, int], str] = lambda *_: ""
    requests: list[Request] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def pick_fault(self, request: Request) -> str:
        with self.lock:
            self.requests.append(request)
            fault = self.fault(request, len(self.requests))
            if fault:
                self.faults.append(fault)
            return fault

    def seen(self, *methods: str) -> list[Request]:
        return [request for request in self.requests if request.method in methods]


class Handler(BaseHTTPRequestHandler):
    """Forwards a request to the server, or lets it fail."""

    protocol_version = "HTTP/1.1"
    server: "_Server"

    def handle_request(self) -> None:
        size = int(self.headers.get("Content-Length", 0))
        fault = self.server.proxy.pick_fault(
            Request(
                self.command,
                self.path,
                "x-amz-copy-source" in self.headers,
                self.headers.get("If-None-Match", ""),
                self.headers.get("Range", ""),
            )
        )
        if fault == CUT_UPLOAD and size:
            self.rfile.read(size // 2)
            self.close_connection = True
            return
        data = self.rfile.read(size)
        if fault == SILENT:
            self.server.stopped.wait(4)
            self.close_connection = True
        elif fault in (BUSY, BROKEN):
            self._answer(503 if fault == BUSY else 500, [], _ERROR)
        else:
            self._forward(data, fault)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_request

    def _forward(self, data: bytes, fault: str) -> None:
        upstream = http.client.HTTPConnection(self.server.host, timeout=60)
        upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in ("expect", "connection"):
                upstream.putheader(name, value)
        upstream.endheaders(data or None)
        answer = upstream.getresponse()
        content = answer.read()
        upstream.close()
        headers = answer.getheaders()
        if fault == LOST:
            self.close_connection = True
            return
        if fault == OTHER_ETAG:
            headers = [(name, '"0123"' if name.lower() == "etag" else v) for name, v in headers]
        self._answer(answer.status, headers, content, fault)

    def _answer(
        self, status: int, headers: list[tuple[str, str]], content: bytes, fault: str = ""
    ) -> None:
        sizes = [value for name, value in headers if name.lower() == "content-length"]
        size = sizes[0] if self.command == "HEAD" and sizes else str(len(content))
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        self.send_header("Content-Length", size)
        self.end_headers()
        cut = fault == CUT_ANSWER
        if self.command != "HEAD":
            whole = content[: len(content) // 2] if cut else content
            step = max(1, len(whole) // 8 if fault == SLOW else len(whole))
            for start in range(0, len(whole), step):
                self.wfile.write(whole[start : start + step])
                self.server.stopped.wait(0.02 if fault == SLOW else 0)
        self.close_connection = self.close_connection or cut

    def log_message(self, *_: object) -> None:
        """Suppress the log of the base class."""


_ERROR = b"<Error><Code>SlowDown</Code><Message>Wait.</Message></Error>"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, host: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.host = host
        self.proxy = Proxy(f"http://127.0.0.1:{self.server_port}", f"http://{host}")
        self.stopped = threading.Event()


@contextmanager
def proxied(server: str) -> Iterator[Proxy]:
    """Yield a proxy for the server at the address `server`."""
    with _Server(urlsplit(server).netloc) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        try:
            yield served.proxy
        finally:
            served.stopped.set()
            served.shutdown()
