"""`python -m shards view`: starts the server and prints its address."""

import os
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shards.commands.command import Command
from shards.commands.flags import count, local_path, option
from shards.commands.output import print_line, print_message
from shards.dataset_commands import dataset_word
from shards.errors import UserError
from shards.sampling.plan import SamplingPlan
from shards.sampling.trace import Tracer

if TYPE_CHECKING:
    from shards.view.server import Server
    from shards.view.viewer import ReloadingViewer

PORT = 8642


@dataclass(frozen=True, kw_only=True)
class View(Command):
    """Search and browse the documents of a dataset in a browser."""

    dataset: str = dataset_word()
    port: int | None = option(
        None,
        f"Port on 127.0.0.1; 0: any free port. Default: {PORT}, else any free port.",
        type=count,
        metavar="N",
    )
    run_file: Path | None = option(None, flag="--run", type=local_path, metavar="RUN")
    """Training run (its folder or its run.json): show which documents its steps train on."""
    open: bool = option(False)
    """Open the page in the browser."""

    def run(self) -> None:
        """Show the dataset until Ctrl-C.

        Raises:
            UserError: There is no such dataset, or the port is taken.
            ModuleNotFoundError: jinja2 is missing.
        """
        # Imported here because help and completion do not need templates.
        from shards.view.viewer import ReloadingViewer  # noqa: PLC0415

        tracer = None if self.run_file is None else Tracer(SamplingPlan.load(self.run_file))
        server = _listening(ReloadingViewer(self.dataset, tracer=tracer), self.port)
        print_line(f"{server.name} at {server.url}")
        print_line(
            "Keep this address private: it contains the key. Press Ctrl-C to stop.", flush=True
        )
        with server, _opened(server.url) if self.open else nullcontext():
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                print_message("shards view: ended", start="\n")


def _listening(opening: "ReloadingViewer", port: int | None) -> "Server":
    """Return the server on a port; if None, on the usual port or on any free port.

    Raises:
        UserError: The port is taken, or the number is not a valid port.
    """
    from shards.view.server import HOST, Server  # noqa: PLC0415

    for each in (PORT, 0) if port is None else (port,):
        try:
            return Server(opening, each)
        except (OSError, OverflowError) as error:
            failure = error
    raise UserError(
        f"--port {port}: the viewer cannot listen on {HOST} there ({failure}): give another port, "
        "or 0 for any free port."
    )


@contextmanager
def _opened(url: str) -> Iterator[None]:
    """Open an address in the browser through a file that only this user can read.

    The address is not passed on a command line, because all users of the machine can see those.
    """
    from shards.view.html import render  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="shards-view-") as folder:
        path = Path(folder, "open.html")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(render("entry", url=url))
        if not webbrowser.open(path.as_uri()):
            print_message(
                "shards view: no browser was found; open the address above", stream=sys.stderr
            )
        yield
