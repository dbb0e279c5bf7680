"""Controls a headless Chromium by the DevTools protocol through two pipes."""

import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage",
    "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-extensions", "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
_SENT = "Network.requestWillBeSent"
_LIFE = "Page.lifecycleEvent"
_START = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); "
    "os.execv(sys.argv[3], sys.argv[3:])"
)
_PATIENCE = 120
"""The time limit for a response, in seconds, on a busy machine."""


class Browser:
    """A tab of a browser."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self._pending = b""
        self._numbers = itertools.count(1)
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        """The events that the browser has sent so far."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")
        self.ask("Page.setLifecycleEventsEnabled", enabled=True)

    def ask(self, method: str, **params: Any) -> Any:
        """Call a method of the protocol, and return the result."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            response = self._message()
            if response.get("id") == number:
                assert "error" not in response, (method, response["error"])
                return response["result"]
            self.events.append(response)

    def _message(self) -> dict[str, Any]:
        end = time.monotonic() + _PATIENCE
        while b"\0" not in self._pending:
            ready, _, _ = select.select([self._read], [], [], max(end - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            data = os.read(self._read, 1 << 20)
            assert data, "the browser has ended"
            self._pending += data
        message, _, self._pending = self._pending.partition(b"\0")
        response: dict[str, Any] = json.loads(message)
        return response

    def _next(self, since: int, method: str, **params: Any) -> dict[str, Any]:
        """Wait for an event with these parameters after the first `since` events, and return it."""
        while True:
            for event in self.events[since:]:
                found = event["params"]
                if event["method"] == method and params.items() <= found.items():
                    return found
            since = len(self.events)
            self.events.append(self._message())

    def go(self, url: str) -> None:
        """Open a URL, and wait until the browser has loaded the page."""
        since = len(self.events)
        response = self.ask("Page.navigate", url=url)
        assert not response.get("errorText"), response
        self._next(since, _LIFE, name="load", loaderId=response["loaderId"])

    def click(self, selector: str) -> None:
        """Click the first element that matches a selector, and wait for the next page."""
        since = len(self.events)
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")
        loader = self._next(since, _LIFE, name="init")["loaderId"]
        self._next(since, _LIFE, name="load", loaderId=loader)

    def wait_for(self, condition: str) -> None:
        """Wait until an expression is true in the page, even if a new page loads meanwhile."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            with suppress(AssertionError):  # fails between two pages
                if self.evaluate(condition):
                    return
            time.sleep(0.02)
        raise AssertionError(condition)

    def requests(self) -> list[str]:
        """Return the URLs of the requests in `events`."""
        sent = (each["params"] for each in self.events if each["method"] == _SENT)
        return [each["request"]["url"] for each in sent]

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        response = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in response, response
        return response["result"].get("value")

    def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set the size of the screen and the color scheme."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 500,
        )  # fmt: skip
        scheme = "dark" if dark else "light"
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", features=features)


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Start a browser that keeps its files in a folder, and end it after the block."""
    assert CHROMIUM
    to_read, to_write = os.pipe(), os.pipe()
    # These must not be 3 and 4, the browser's numbers for reading and writing.
    fds = tuple(fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (to_read[0], to_write[1]))
    os.close(to_read[0])
    os.close(to_write[1])
    command = [CHROMIUM, *_FLAGS, f"--user-data-dir={folder / 'profile'}"]
    process = subprocess.Popen(
        [sys.executable, "-c", _START, *map(str, fds), *command],
        pass_fds=fds,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(folder)},
    )
    for fd in fds:
        os.close(fd)
    try:
        tab = Browser(to_write[0], to_read[1])
        yield tab
        tab._session = None
        with suppress(AssertionError, OSError):
            tab.ask("Browser.close")
        process.wait(timeout=_PATIENCE)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(to_write[0])
        os.close(to_read[1])
