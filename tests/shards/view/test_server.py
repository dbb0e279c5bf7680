import re
import socket
from pathlib import Path

import pytest

from shards.reader import Dataset
from shards.view.server import PAGES
from tests.shards.view.conftest import Client, Show


def answer_to(request_: bytes, client: Client) -> bytes:
    """Return the response to any bytes, in which KEY stands for the cookie of a browser."""
    with socket.create_connection(("127.0.0.1", client.port), timeout=60) as connection:
        connection.sendall(request_.replace(b"KEY", client.cookie.encode()))
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))


@pytest.mark.parametrize(
    "request_",
    [
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"\xff\xfe\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\nHost: localhost\r\nCookie: KEY\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused(
    request_: bytes, show: Show, hostile: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    client = show(hostile)
    answer = answer_to(request_, client)
    assert re.match(rb"HTTP/1.0 [45]|<!DOCTYPE html>\n<html><title>[45]", answer)
    assert b"web" not in answer
    assert "Traceback" not in answer.decode() + capfd.readouterr().err
    client.get("/")


def test_words_may_be_sent_without_percent_signs(show: Show, hostile: Path) -> None:
    request_ = "GET /documents?words=没有的词 HTTP/1.1\r\nHost: localhost\r\nCookie: KEY\r\n\r\n"
    assert 'value="没有的词"' in answer_to(request_.encode(), show(hostile)).decode()


def test_a_fault_of_a_page_does_not_end_the_others(
    show: Show, hostile: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("somewhere")

    client = show(hostile)
    monkeypatch.setitem(PAGES, "random", fail)
    assert "This page failed (ZeroDivisionError)" in client.get("/random", status=500)
    assert "somewhere" in capsys.readouterr().err
    client.get("/")


@pytest.mark.parametrize("page", sorted(PAGES.keys() - {"next", "record", "step"}))
def test_no_text_becomes_an_element(page: str, show: Show, hostile: Path) -> None:
    client = show(hostile)
    target = f"/{page}?n=1&shard=g0001-00/web/00000&generation=g0001-00&order=0&offset=50"
    text = client.get(target)
    elements = {name.lower() for name in re.findall(r"<\s*([a-zA-Z!/][\w-]*)", text)}
    assert not elements & {"script", "img", "svg", "base", "style", "iframe", "i", "object", "!--"}
    assert not re.search(r"<[^>]*\son\w+=", re.sub(r'"[^"]*"', "", text))
    links = re.findall(r'(?:href|src|action)="([^"]*)"', text)
    assert links
    assert all(re.match(r"/[\w.]*([?#][^:]*)?$", each) for each in links)


def test_names_do_nothing_in_a_notebook(hostile: Path) -> None:
    shown = Dataset.open(hostile)._repr_html_()
    assert "&lt;script&gt;" in shown
    assert not re.search("<script|<img|<svg", shown)
