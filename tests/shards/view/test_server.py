import itertools
import re
import socket
from collections import Counter
from html import unescape
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from shards.manifest import read_manifest
from shards.view.server import PAGES
from tests.shards.datasets import take_down
from tests.shards.generations import grow
from tests.shards.view.conftest import Client, Show

HOSTS = ("example.org", "127.0.0.1.example.org", "", "[", "0.0.0.0", "a:b@c")


def test_only_who_has_the_key_and_names_this_machine_sees_anything(
    show: Show, hostile: Path
) -> None:
    client = show(hostile)
    first = client.server.url.partition(f":{client.port}")[2]
    response, body = client.ask(first)
    assert (response.status, client.server.key in body) == (200, False)
    cookie = response.headers["Set-Cookie"]
    assert cookie == f"{client.cookie}; HttpOnly; SameSite=Strict; Path=/"
    assert "Overview" in client.get("/")
    name = client.server.cookie
    cookies = [{"Cookie": given} for given in ("", "x=y", f"{name}=", f"{name}=guess", ";=,")]
    hosts = [{"Host": host, "Cookie": client.cookie} for host in HOSTS]
    own = ("/", "/viewer.css")
    for targets, headers in (
        ((*own, "/documents", "/?key=", "/?key=guess", f"{first}x"), cookies),
        ((*own, first), hosts),
    ):
        for target, given in itertools.product(targets, headers):
            response, body = client.ask(target, **given)
            assert response.status == 403
            assert response.headers["Set-Cookie"] is None
            assert "web" not in body


def answer_to(request_: bytes, client: Client) -> bytes:
    """What comes back for any bytes, in which KEY stands for the cookie of a browser."""
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


def test_every_answer_forbids_the_browser_to_run_load_or_keep_anything(
    show: Show, hostile: Path
) -> None:
    client = show(hostile)
    answers = [
        client.ask(target, method=method, Cookie=cookie)
        for target in ("/", "/document?n=0", "/nothing", "/viewer.css", "/document?n=x")
        for method in ("GET", "HEAD", "POST")
        for cookie in (client.cookie, "")
    ]
    for response, _ in answers:
        policy = response.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'; ")
        assert "frame-ancestors 'none'" in policy
        assert "base-uri 'none'; form-action 'self'" in policy
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["Referrer-Policy"] == "no-referrer"
        assert response.headers["Server"].strip() == "corpusmill"


PATHS = (
    "/../../../etc/passwd",
    "/..%2f..%2fmanifest.json",
    "/manifest.json",
    "/%2e%2e/%2e%2e/etc/passwd",
    "//etc/passwd",
    "/viewer.css/../../server.py",
    "/static/viewer.css",
    "/g0001-00/web/00000.bin",
    "/\\..\\x",
    "/document/../manifest.json",
)


@pytest.mark.parametrize("target", PATHS)
def test_no_path_of_a_request_is_one_of_a_file(target: str, show: Show, hostile: Path) -> None:
    client = show(hostile)
    response, body = client.ask(target, Cookie=client.cookie)
    assert response.status in (400, 404)
    assert "root:" not in body
    assert "corpusmill-dataset" not in body


@pytest.mark.parametrize(
    "shard", ["../../../etc/passwd", "/etc/passwd", "g0001-00/web/00001", "g0001-00/web/00000\0"]
)
def test_a_shard_is_one_that_the_manifest_names(shard: str, show: Show, hostile: Path) -> None:
    client = show(hostile)
    for page in ("documents", "document", "token", "random"):
        text = client.get(f"/{page}?shard={quote(shard)}&n=0&offset=0", status=400)
        assert "no such shard" in text


BAD = (
    "/documents?at=1e9",
    "/documents?at=%D9%A3",
    "/document?n=0&token=40",
    "/document?n=0&part=1",
    "/records?metric=gopher.words",
    "/token?shard=g0001-00/web/00000&offset=99999999999",
    "/similar?generation=g0001-00&order=" + "9" * 20,
)
"""What the golden pages of the viewer do not ask for."""


@pytest.mark.parametrize("target", BAD)
def test_what_cannot_be_asked_for_is_told_in_a_sentence(
    target: str, show: Show, hostile: Path
) -> None:
    client = show(hostile)
    text = client.get(target, status=400)
    assert re.search(r'<p class="warn">[A-Z“a-z][^<]{20,}\.</p>', text)
    client.get("/")


def test_every_link_leads_to_a_page(show: Show, tmp_path: Path) -> None:
    directory = tmp_path / "grown"
    for shards in (2, 1):
        grow(directory, shards=shards)
    first = read_manifest(directory).generations[0].name
    take_down(directory, f"{first}/wiki/00000:0")
    client = show(directory)
    seen, waiting, pages = set(), {"/"}, Counter()
    while waiting and len(seen) < 80:
        target = min(waiting, key=lambda each: (pages[page_of(each)], each))
        waiting.remove(target)
        seen.add(target)
        pages[page_of(target)] += 1
        links = {unescape(link) for link in re.findall('href="([^"#]*)', client.get(target))}
        waiting |= links - seen - {"/viewer.css"}
    assert pages.keys() == PAGES.keys() - {"step", "token"}


def page_of(target: str) -> str:
    return urlsplit(target).path[1:]


def test_a_fault_of_a_page_does_not_end_the_others(
    show: Show, hostile: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("somewhere")

    client = show(hostile)
    monkeypatch.setitem(PAGES, "random", fail)
    assert "This page has a fault (ZeroDivisionError)" in client.get("/random", status=500)
    assert "somewhere" in capsys.readouterr().err
    client.get("/")


@pytest.mark.parametrize("page", sorted(PAGES.keys() - {"next", "record", "step"}))
def test_no_text_becomes_an_element(page: str, show: Show, hostile: Path) -> None:
    client = show(hostile)
    target = f"/{page}?n=1&shard=g0001-00/web/00000&generation=g0001-00&order=0&offset=50"
    text = client.get(target)
    elements = {name.lower() for name in re.findall(r"<\s*([a-zA-Z!/][\w-]*)", text)}
    assert not elements & {"script", "img", "svg", "base", "style", "iframe", "i", "object", "!--"}
    assert not re.search(r"<[^>]*\son\w+=", text)
    links = re.findall(r'(?:href|src|action)="([^"]*)"', text)
    assert links
    assert all(re.match(r"/[\w.]*([?#][^:]*)?$", each) for each in links)
