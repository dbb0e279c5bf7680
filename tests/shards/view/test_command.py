import os
import re
import socket
import stat
import webbrowser
from contextlib import suppress
from pathlib import Path
from socketserver import BaseServer
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from shards.__main__ import main
from shards.view.command import PORT
from tests.ports import free_port


def ended(_server: BaseServer) -> None:
    raise KeyboardInterrupt


def test_a_port_that_is_taken(
    pristine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(BaseServer, "serve_forever", ended)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["view", str(pristine), "--port", str(port)]) == 2
        assert re.search(
            f"--port {port}: the viewer cannot listen on .*in use", capsys.readouterr().err
        )
    with socket.socket() as taken:
        with suppress(OSError):  # if a different process has the port
            taken.bind(("127.0.0.1", PORT))
        assert main(["view", str(pristine)]) == 0
        assert f"127.0.0.1:{PORT}/" not in capsys.readouterr().out


def test_the_browser_is_given_a_file_that_others_cannot_read(
    pristine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = []

    def open_(url: str) -> bool:
        path = Path(url2pathname(urlsplit(url).path))
        opened.append((url, path, stat.S_IMODE(path.stat().st_mode), path.read_text()))
        return True

    monkeypatch.setattr(webbrowser, "open", open_)
    monkeypatch.setattr(BaseServer, "serve_forever", ended)
    port = free_port()
    assert main(["view", str(pristine), "--port", str(port), "--open"]) == 0
    printed = capsys.readouterr().out.split()[2]
    ((url, path, mode, content),) = opened
    assert "key" not in url
    assert mode == 0o600
    assert f'content="0;url={printed}"' in content
    assert not os.path.exists(path)  # noqa: PTH110  # also of a broken link
