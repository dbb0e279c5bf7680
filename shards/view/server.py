"""The server: checks and answers requests, and keeps browsers from executing texts.

Host      must name this machine: pages of other hosts that resolve to it are refused
key       in the printed address, then in a cookie: other users of this machine lack it
method    GET and HEAD only: requests cannot change anything
path      must be in a table: a request is never used as a file name
"""

import hmac
import secrets
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from shards.errors import UserError
from shards.view import html
from shards.view.documents import document, documents, random, search, token
from shards.view.html import LANGUAGES, Page, Redirect, address
from shards.view.overview import overview
from shards.view.query import BadQuery, Query
from shards.view.records import next_record, record, records, similar
from shards.view.step import step
from shards.view.viewer import ReloadingViewer, Viewer

HOST = "127.0.0.1"
_NAMES = frozenset({HOST, "localhost", "::1"})
"""Names of this machine; the port may differ, as with ssh -L."""

_KEY = "key"
_SWITCH = "show-in"
"""The parameter that sets the language of all later pages, which a cookie then stores."""

_AT_ONCE = 2
"""The number of pages made at the same time: each keeps a block of searched data in memory."""

_COOKIE = "corpusmill-language"
_WAIT_SECONDS = 60
_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""The headers that an answer has unless the answer itself sets them."""

PAGES: dict[str, Callable[[Viewer, Query], Page | Redirect]] = {
    "": overview,
    "document": document,
    "documents": documents,
    "next": next_record,
    "random": random,
    "record": record,
    "records": records,
    "search": search,
    "similar": similar,
    "step": step,
    "token": token,
}
"""The functions that make pages, by path."""


class Server(ThreadingHTTPServer):
    """Shows a dataset to clients that have its key."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, opening: ReloadingViewer, port: int) -> None:
        """Listen on a port of this machine; 0 stands for any free port.

        Raises:
            OSError: The port is taken.
        """
        self.opening = opening
        self.name = opening.viewer().dataset.shown_directory
        self.key = secrets.token_urlsafe(32)
        self.turns = threading.BoundedSemaphore(_AT_ONCE)
        super().__init__((HOST, port), _Handler)

    @property
    def cookie(self) -> str:
        """The name of the cookie, which has the port because all ports share cookies."""
        return f"corpusmill-{self.server_address[1]}"

    @property
    def url(self) -> str:
        """The address of the first page, with the key."""
        return f"http://{HOST}:{self.server_address[1]}/?{_KEY}={self.key}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore disconnects; print other errors."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = 60
    server_version = "corpusmill"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer a request."""
        self.path = _decoded(self.path)
        page, _, values = self.path.partition("?")
        if not _is_here(self.headers.get("Host", "")):
            self._refuse(403, "Open this page at the address that the command printed.")
        elif page == "/" and self._has_key(dict(parse_qsl(values)).get(_KEY, "")):
            cookie = f"{self.server.cookie}={self.server.key}; HttpOnly; SameSite=Strict; Path=/"
            self._send(200, html.render("entry", url="/"), **{"Set-Cookie": cookie})
        elif not self._has_key(self._cookie(self.server.cookie)):
            text = "Open the address that the command printed: it contains the key to this dataset."
            self._refuse(403, text)
        elif page == f"/{html.STYLE}":
            self._send(200, html.style(), **{"Content-Type": "text/css; charset=utf-8"})
        else:
            self._answer()

    do_HEAD = do_GET

    def _no_method(self) -> None:
        self._refuse(405, "Only GET and HEAD requests are allowed.", Allow="GET, HEAD")

    do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _no_method

    def _answer(self) -> None:
        if not self.server.turns.acquire(timeout=_WAIT_SECONDS):
            self._refuse(503, "The server is busy with other pages: try again.")
            return
        try:
            status, text, headers = _made(self.server.opening, self.path, self._language())
        finally:
            self.server.turns.release()
        self._send(status, text, **headers)

    def _language(self) -> str:
        """Return the language that was chosen, or else the language that the browser prefers."""
        preferred = self.headers.get("Accept-Language", "")[:2].lower()
        language = self._cookie(_COOKIE) or preferred
        return language if language in LANGUAGES else LANGUAGES[0]

    def _refuse(self, status: int, text: str, **more: str) -> None:
        """Answer with a sentence that contains nothing from the dataset."""
        self._send(status, html.render("refusal", status=status, text=text), **more)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a request that is not valid HTTP."""
        del explain
        self.close_connection = True
        self._refuse(int(code), message or "This is not a valid HTTP request.")

    def _send(self, status: int, content: str | bytes, **more: str) -> None:
        data = content.encode(errors="replace") if isinstance(content, str) else content
        self.send_response(status)
        length = {"Content-Length": str(len(data))}
        for name, value in {**_HEADERS, **length, **more}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _has_key(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(errors="replace"), self.server.key.encode())

    def _cookie(self, wanted: str) -> str:
        """Return the value of a cookie; "" if it was not sent.

        Other programs on this host set cookies too, which may be of any form.
        """
        for cookie in self.headers.get("Cookie", "").split(";"):
            name, _, value = cookie.partition("=")
            if name.strip() == wanted:
                return value.strip()
        return ""

    def log_message(self, format: str, *args: Any) -> None:  # as in http.server
        """Write nothing, because a request may contain private search terms."""


def _is_here(host: str) -> bool:
    """Return whether a Host header names this machine."""
    try:
        return urlsplit(f"//{host}").hostname in _NAMES
    except ValueError:
        return False


def _decoded(target: str) -> str:
    """Decode a target that http.server read as Latin-1, one character per byte."""
    return target.encode("latin-1", errors="replace").decode(errors="replace")


def _made(opening: ReloadingViewer, target: str, language: str) -> tuple[int, str, dict[str, str]]:
    """Return the status, the page and further headers that answer an address."""
    status, text, here = 404, "There is no such page.", Query("/")
    try:
        query = Query(target)
        if query.page in PAGES:
            here = query
            if chosen := query.choice(_SWITCH, LANGUAGES):
                return 303, "", _switched(query, chosen)
            made = PAGES[query.page](opening.viewer(), query)
            if isinstance(made, Redirect):
                return 303, "", {"Location": made.to}
            return 200, _rendered(made, here, language), {}
    except BadQuery as error:
        status, text = 400, str(error)
    except UserError as error:
        # A message about a damaged file; all other pages still work.
        status, text = 500, str(error)
    except Exception as error:  # noqa: BLE001  # an error in one page does not end the others
        sys.excepthook(type(error), error, error.__traceback__)
        status, name = 500, type(error).__name__
        text = f"This page failed ({name}); the terminal shows the error."
    message = opening.message("message", status=status, text=text)
    return status, _rendered(message, here, language), {}


def _rendered(page: Page, here: Query, language: str) -> str:
    """Render a page in a language, with a link to the same page in the other language."""
    other = next(each for each in LANGUAGES if each != language)
    switch = address(here.page, {**here.values, _SWITCH: other})
    return html.render(page.template, language=language, switch=switch, **page.values)


def _switched(query: Query, language: str) -> dict[str, str]:
    """Return the headers that redirect to the same page in another language."""
    values = {name: value for name, value in query.values.items() if name != _SWITCH}
    cookie = f"{_COOKIE}={language}; SameSite=Strict; Path=/"
    return {"Location": address(query.page, values), "Set-Cookie": cookie}
