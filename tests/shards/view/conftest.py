"""Two datasets to view: one that pipelines built, and one with hostile texts."""

import itertools
import json
import random
import re
import threading
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from pipelines import api, wudao
from shards.view.server import Server
from shards.view.viewer import ReloadingViewer
from tests.golden.viewer_pages import ViewerClient
from tests.shards.datasets import put_odd

HOSTILE = (
    "<script>document.title='owned'</script>",
    "</title></main><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\"><img src='/stolen'>",
    "\"><svg onload=document.title='owned'>",
    "' onmouseover='document.title=`owned`' x='",
    "<meta http-equiv=refresh content='0;url=/stolen'><base href='http://example.org/'>",
    "<style>@import '/stolen'; body { display: none }</style><link rel=stylesheet href=/stolen>",
    "&lt;script&gt; &#60;script&#62; <!-- --> ]]> <![CDATA[ javascript:document.title='owned'",
    "bidi \u202eesrever\u202c, \u2066isolate\u2069, zero\u200bwidth, bell \x07, "
    "escape \x1b[31m, NUL \0",
    "天地玄黄，宇宙洪荒。\nمرحبا 👩‍🔬 combining e\u0301",
    "x" * (1 << 20),
)
"""Texts that try to do harm or are hard to show; the last one is a line of a megabyte."""


def _words(seed: int, count: int = 120) -> list[str]:
    source = random.Random(seed)
    return [
        source.choice(["river", "stone", "bread", "lamp", "winter", "garden", "letter", "copper"])
        + " the of b"
        + str(source.randrange(1000))
        for _ in range(count)
    ]


LONG = " ".join(_words(1))
NEAR = " ".join([*_words(1)[:-2], "another", "end"])


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset whose texts, columns, names and account try to do harm."""
    directory = tmp_path_factory.mktemp("hostile") / "data set & <b>"
    names = itertools.cycle((*HOSTILE[:8], "<i>", "<script>", "javascript:document.title='owned'"))
    put_odd(directory, HOSTILE, lambda: next(names))
    return directory


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset that pipelines built, with duplicates, versions, rejects, and dropped texts."""
    folder = tmp_path_factory.mktemp("built")
    texts = [" ".join(_words(seed)) for seed in range(2, 40)]
    texts += [
        LONG,
        NEAR,
        texts[0],
        "too short",
        "<script>document.title='owned'</script> " + LONG[:99],
    ]
    records = [json.dumps({"text": text, "id": f"n{i}"}) for i, text in enumerate(texts)]
    (folder / "in").mkdir()
    (folder / "in" / "a.jsonl").write_text("\n".join([*records, '{"text": <script>\x1b}', ""]))
    api.build(
        "text",
        input=f"notes={folder / 'in'}",
        output=folder / "dataset",
        tokenizer=wudao.CORPUS.sample_tokenizer,
        dedup="minhash",
        quality="gopher",
        keep_dropped=True,
        languages="all",
        language_threshold=0,
        min_chars=20,
        validation=0.05,
        max_reject_rate=0.5,
    )
    return folder / "dataset"


class Client:
    """Requests pages from a server, as a browser that has the key would."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.port: int = server.server_address[1]
        self.cookie = f"{server.cookie}={server.key}"
        self.ask = ViewerClient(server.url).request
        """Requests a page with only the headers that the caller gives."""

    def get(self, target: str, *, status: int = 200) -> str:
        """Return a page after following any redirection."""
        response, body = self.ask(target, Cookie=self.cookie)
        if response.status == 303:
            return self.get(response.headers["Location"].partition("#")[0], status=status)
        assert response.status == status, body
        return body


Show = Callable[..., Client]


def all_pages(client: Client, target: str) -> str:
    """Return all pages of a search as one text, one page after the other."""
    pages = [client.get(target)]
    while more := re.findall('<a href="([^"]*)" accesskey="n" rel="next">continue', pages[-1]):
        pages.append(client.get(unescape(more[0])))
    return "".join(pages)


@pytest.fixture
def show() -> Iterator[Show]:
    """A function that starts a server for a dataset; the servers end after the test."""
    servers = []

    def start(directory: Path | str, **settings: Any) -> Client:
        server = Server(ReloadingViewer(str(directory), **settings), 0)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        servers.append((server, thread))
        return Client(server)

    yield start
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()
