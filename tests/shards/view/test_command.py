import os
import re
import signal
import socket
import stat
import subprocess
import sys
import webbrowser
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request, url2pathname, urlopen

import pytest

from shards.__main__ import main
from shards.view import command
from shards.view.server import Server
from tests.ports import free_port

HEARING = (
    "import signal, sys; from shards.__main__ import main; "
    "signal.signal(signal.SIGINT, signal.default_int_handler); sys.exit(main())"
)
"""The command, even where a shell started the tests deaf to Ctrl-C."""


def ended(_server: Server) -> None:
    raise KeyboardInterrupt


@pytest.mark.slow
def test_it_says_where_it_is_and_ctrl_c_ends_it_with_a_line(pristine: Path) -> None:
    words = [sys.executable, "-c", HEARING, "view", str(pristine), "--port", "0"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True)
    assert process.stdout
    url = process.stdout.readline().split()[-1]
    assert "Ctrl-C" in process.stdout.readline()
    assert urlsplit(url).hostname == "127.0.0.1"
    with urlopen(url) as entry:
        cookie = entry.headers["Set-Cookie"].partition(";")[0]
    page = Request(url.partition("?")[0], headers={"Cookie": cookie})
    with urlopen(page) as answer:
        assert b"wudao" in answer.read()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "\nshards view: ended\n")


def test_a_port_that_is_taken(
    pristine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Server, "serve_forever", ended)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["view", str(pristine), "--port", str(port)]) == 2
        assert re.search(f"--port {port}: 127.0.0.1 cannot be .*in use", capsys.readouterr().err)
        monkeypatch.setattr(command, "PORT", port)
        assert main(["view", str(pristine)]) == 0
        assert f"127.0.0.1:{port}/" not in capsys.readouterr().out


def test_the_browser_is_given_a_file_that_others_cannot_read(
    pristine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = []

    def open_(url: str) -> bool:
        path = Path(url2pathname(urlsplit(url).path))
        opened.append((url, path, stat.S_IMODE(path.stat().st_mode), path.read_text()))
        return True

    monkeypatch.setattr(webbrowser, "open", open_)
    monkeypatch.setattr(Server, "serve_forever", ended)
    port = free_port()
    assert main(["view", str(pristine), "--port", str(port), "--open"]) == 0
    printed = capsys.readouterr().out.split()[2]
    ((url, path, mode, content),) = opened
    assert "key" not in url
    assert mode == 0o600
    assert f'content="0;url={printed}"' in content
    assert not os.path.exists(path)  # noqa: PTH110  # also of a broken link
