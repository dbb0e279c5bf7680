"""Starts the viewer on a dataset, requests pages of every kind, and prints their text.

python -m tests.golden.viewer_pages dropped|whole|early|damaged DATASET [FLAG …]

Guarantee: Nobody without the key sees anything in the viewer.
"""

import hashlib
import http.client
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlencode, urlsplit

from shards import Dataset
from tests.golden.page_text import lines_of, links_of

_SHORT, _LONG = 24, 200
"""Lines longer than the first number of characters are printed only once, those longer than the
second are shortened."""

_FULL = ("20", "50")
"""The numbers of hits that a full page of a search has."""

_HEAD = ("Date", "Content-Length", "Set-Cookie", "Location")


class ViewerClient:
    """Requests pages of a viewer, with the key that it printed."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._host, self._port = address.hostname, address.port
        self.key = address.query.partition("=")[2]
        self.cookie = ""
        self.heads: set[str] = set()
        """The headers of all responses."""
        self.links: dict[str, str] = {}
        """A link of each form, by the form."""
        self._printed: set[str] = set()

    def request(
        self, path: str, *, method: str = "GET", **headers: str
    ) -> tuple[http.client.HTTPResponse, str]:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=60)
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in {"Cookie": self.cookie, **headers}.items():
            connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        heads = [": ".join(head) for head in response.getheaders() if head[0] not in _HEAD]
        self.heads.add(" | ".join(sorted(heads)))
        return response, text

    def show(self, path: str) -> str:
        """Print a page after following redirections."""
        response, text = self.request_complete(path)
        print(f"== {path} {response.status}")
        if to := response.getheader("Location"):
            print(f"   -> {to}")
            return self.show(to.partition("#")[0])
        for line in lines_of(text):
            print(f"   {self._shorten(line)}")
        links = [link for _, link in links_of(text) if link.startswith("/")]
        self.links |= {re.sub("=[^&#]*", "", link): link for link in links}
        return text

    def request_complete(self, path: str) -> tuple[http.client.HTTPResponse, str]:
        """Request a page, and repeat the request if a search timed out before the page was full."""
        for _ in range(8):
            response, text = self.request(path)
            ended = re.search(r"of [\d,]+ \w+: ([\d,]+) found", text)
            if not ended or ended[1] in _FULL:
                break
        return response, text

    def _shorten(self, line: str) -> str:
        """Return a line with identities masked, or the line's hash if it is long or not new."""
        plain = re.sub(r"(?<=\w-)[0-9a-f]{8}(?!\w)|(?<=identity )[0-9a-f]{16}", "XXXXXXXX", line)
        digest = hashlib.sha256(plain.encode()).hexdigest()
        if plain in self._printed:
            return f"~{digest[:6]}"
        if len(plain) > _SHORT:
            self._printed.add(plain)
        if len(plain) > _LONG:
            return f"{plain[: _LONG // 2]} … {len(plain)} characters, {digest[:16]}"
        return plain

    def enter(self) -> None:
        """Log in with the key, and print the response to it."""
        response, text = self.request(f"/?key={self.key}")
        cookie = response.getheader("Set-Cookie", "")
        self.cookie = cookie.partition(";")[0]
        print("entry", response.status, cookie.partition(";")[2], *lines_of(text))


def refusals(client: ViewerClient) -> None:
    """Print the responses to requests that are refused, and to similar, accepted requests."""
    name, _, value = client.cookie.partition("=")
    cases = (
        ("/", {"Cookie": ""}),
        ("/?key=other", {"Cookie": ""}),
        ("/documents?key=" + client.key, {"Cookie": ""}),
        ("/", {"Cookie": f"{name}=other"}),
        ("/", {"Cookie": f"{name}x={value}"}),
        ("/", {"Cookie": f"a=b; {name} = {value} ; c"}),
        ("/", {"Host": "example.org"}),
        ("/", {"Host": "127.0.0.1"}),
        ("/", {"Host": "localhost:1"}),
        ("/", {"Host": "[::1]:9"}),
        ("/", {"Host": "127.0.0.2"}),
        ("/", {"Host": "[::1"}),
        ("/", {"Host": "127.0.0.1.example.org"}),
        ("/", {"Host": "0.0.0.0"}),
        ("/../../../etc/passwd", {}),
        ("/..%2f..%2fmanifest.json", {}),
        ("/manifest.json", {}),
        ("//etc/passwd", {}),
        ("/viewer.css/../../server.py", {}),
        ("/", {"Host": ""}),
        ("//[", {}),
        ("/viewer.css", {}),
        ("/viewer.css", {"Cookie": ""}),
    )
    for path, headers in cases:
        response, text = client.request(path, **headers)
        shown = {key: each for key, each in headers.items() if key == "Host"}
        kind = response.getheader("Content-Type")
        said = lines_of(text) if response.status != 200 else len(text) if ".css" in path else ""
        print("asked", path.replace(client.key, "KEY"), shown, response.status, kind, said)
    for method in ("HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        response, text = client.request("/documents", method=method)
        length = int(response.getheader("Content-Length", "-1")) > 0
        print("asked", method, response.status, response.getheader("Allow"), length, lines_of(text))


def dropped(client: ViewerClient, data: Dataset) -> None:
    """Show dropped and quarantined records, and a histogram of each kind, before any removal."""
    for verdict in ("dropped", "quarantined"):
        text = client.show(f"/records?verdict={verdict}")
        for label, link in links_of(text):
            if link.startswith("/record?") and label != "one by one":
                client.show(link)
    for metric in ("bytes", "score", "gopher.words"):
        client.show(f"/records?metric={metric}&language=en")
    del data


def whole(client: ViewerClient, data: Dataset) -> None:
    """Show all pages of a dataset."""
    refusals(client)
    client.show("/")
    for path in _overall(data):
        client.show(path)
    links = _documents(client)
    _records(client, data)
    for path in links:
        client.show(path)
    for path in _wrong(data):
        client.show(path)
    for form, link in sorted(client.links.items()):
        print("led to", form, client.request_complete(link)[0].status)


def _overall(data: Dataset) -> Iterator[str]:
    for values in (
        {},
        {"at": "20"},
        {"at": "30", "source": "web"},
        {"source": "asked"},
        {"split": "validation"},
        {"shard": data.manifest.shards("web")[1].path},
        {"words": "ABOUT"},
        {"words": "the end"},
        {"words": "汉字"},
        {"words": "Signs: 😀"},
        {"words": "nowhere at all"},
        {"name": "page-7"},
        {"name": "https://a.org/5?q=1&r=2"},
        {"name": "b.jsonl:0"},
        {"language": "zh", "source": "web"},
        {"language": "en", "column": "id", "value": "page-1", "match": "prefix"},
        {"column": "title", "value": "a", "match": "contains", "split": "validation"},
        {"column": "id", "value": "signs"},
        {"name": "page-1", "language": "zh"},
    ):
        yield f"/documents?{urlencode(values)}"
    for seed in range(2):
        yield f"/random?{urlencode({'seed': seed, 'source': 'web'})}"
    first = data.manifest.shards("web")[0]
    for offset in (0, 700, first.tokens - 1, first.tokens):
        yield f"/token?{urlencode({'shard': first.path, 'offset': offset})}"
    for step in (0, 7, 8, 11):
        yield f"/step?n={step}"
    yield "/step?n=8&at=64"
    for text in ("page-7", "the end", "b.jsonl:0", "nowhere at all"):
        yield f"/search?{urlencode({'q': text, 'source': 'web'})}"
    yield "/records?show-in=zh&verdict=dropped"


def _documents(client: ViewerClient) -> list[str]:
    """Show documents, found by name, and return the links to similar documents."""
    links: list[str] = []
    for name in ("near-5", "near-6", "page-3", "signs", "long", "page-8", "page-2"):
        _, text = client.request_complete(f"/documents?{urlencode({'name': name})}")
        (to,) = [link for label, link in links_of(text) if link.startswith("/document?")][:1] or [
            ""
        ]
        if not to:
            print("== no document", name)
            continue
        text = client.show(to.partition("#")[0])
        likes = dict(links_of(text))
        links += [likes[label] for label in likes if label.startswith(("Similar", "Dropped dup"))]
        if name == "long":
            for more in ("token=2047", "token=2048", "part=1", "part=2", "token=9999999"):
                client.show(f"{to.partition('#')[0]}&{more}")
        if name in ("signs", "near-5"):
            for token in range(0, 30, 7):
                client.show(f"{to.partition('#')[0]}&token={token}")
    client.show("/document?source=asked&n=0&token=3")
    client.show("/document?source=asked&n=0&token=60")
    for number in (0, 1, 2):
        client.show(f"/document?split=validation&n={number}")
    links += [f"{path}&least=0.9" for path in links[:2] if "similar" in path]
    return [path for path in links if path]


def _records(client: ViewerClient, data: Dataset) -> None:
    generation = data.manifest.generations[1].name
    for values in (
        {},
        {"at": "50"},
        {"at": "70"},
        {"source": "asked"},
        {"generation": generation},
        {"verdict": "dropped"},
        {"verdict": "quarantined"},
        {"reason": "near-duplicate"},
        {"group": "none"},
        {"language": "zh", "source": "web"},
        {"metric": "bytes", "least": "400", "most": "600"},
        {"metric": "tokens", "least": "150", "source": "web", "at": "3"},
        {"metric": "score", "most": "0.9"},
        {"metric": "gopher.words", "least": "100", "most": "120.5"},
    ):
        text = client.show(f"/records?{urlencode(values)}")
        if values.keys() & {"verdict", "reason"}:
            for label, link in links_of(text):
                if link.startswith("/record?") and label != "one by one":
                    client.show(link)
    for values in (
        {"verdict": "dropped", "at": "20"},
        {"reason": "language", "at": "0"},
        {"reason": "language", "at": "60"},
        {"source": "asked"},
    ):
        client.show(f"/next?{urlencode(values)}")


def _wrong(data: Dataset) -> Iterator[str]:
    total = sum(shard.documents for shard in data.manifest.shards("web"))
    yield from (
        "/nothing",
        "/document/",
        f"/documents?source=web&at={total}",
        f"/documents?source=web&at={total - 1}",
        f"/document?source=web&n={total}",
        f"/document?source=web&n={total - 1}",
        "/documents?source=other",
        "/documents?split=test",
        "/documents?column=id",
        "/documents?value=x",
        "/documents?match=like&column=id&value=x",
        "/documents?shard=other",
        "/documents?shard=../../../etc/passwd",
        "/documents?at=1e9",
        "/documents?at=%D9%A3",
        "/document?n=0&token=99999",
        "/document?n=0&part=1",
        f"/token?shard={data.manifest.shards('web')[0].path}&offset=99999999999",
        f"/documents?words={'x' * 500}",
        f"/documents?words={'x' * 501}",
        "/documents?words=a%00b",
        "/documents?words=%ff",
        "/documents?name=x&at=10000",
        "/document?n=-1",
        "/document?n=1,0",
        "/document?n=" + "0" * 18,
        "/document?n=" + "0" * 19,
        "/token",
        "/token?shard=other&offset=1",
        "/records?least=3",
        "/records?metric=bytes&least=nan",
        "/records?metric=bytes&least=1e3",
        "/records?metric=other",
        "/records?verdict=lost",
        "/records?generation=g0009",
        "/records?at=100000",
        "/record?row=99",
        "/record?row=9999",
        "/similar?order=1",
        "/similar?order=18446744073709551615",
        "/similar?order=18446744073709551616",
        "/similar?order=x&generation=y",
        "/step?n=12",
        "/step?n=x",
        "/random?seed=x",
        f"/records?reason={'x' * (8192 - len('/records?reason='))}",
        f"/records?reason={'x' * (8193 - len('/records?reason='))}",
        "/records?" + "&".join(f"a{at}=1" for at in range(32)),
        "/records?" + "&".join(f"a{at}=1" for at in range(33)),
    )


def early(client: ViewerClient, data: Dataset) -> None:
    """Show some pages for an earlier version of a dataset that no run belongs to."""
    client.show("/")
    for path in (
        "/documents?name=page-9",
        "/documents?words=the end",
        "/step?n=0",
        "/records?at=40",
    ):
        client.show(path.replace(" ", "+"))
    del data


def damaged(client: ViewerClient, data: Dataset) -> None:
    """Show some pages for a dataset whose files are damaged."""
    for path in ("/", "/documents?source=web", "/documents?source=asked", "/records", "/document"):
        client.show(path)
    del data


def main() -> None:
    kind, name, *flags = sys.argv[1:]
    words = [sys.executable, "-m", "shards", "view", name, "--port", "0", *flags]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as viewer:
        try:
            assert viewer.stdout
            said = viewer.stdout.readline()
            url = re.search(r"http:\S+", said)[0]
            print(said.replace(urlsplit(url).query, "key=KEY").rstrip())
            print(viewer.stdout.readline().rstrip())
            client = ViewerClient(url)
            client.enter()
            {"dropped": dropped, "whole": whole, "early": early, "damaged": damaged}[kind](
                client, Dataset.open(name)
            )
            print("all answers have", *sorted(client.heads), sep="\n   ")
        finally:
            viewer.send_signal(signal.SIGINT)
            print("ended", viewer.wait(30), repr(viewer.stdout.read()))


if __name__ == "__main__":
    main()
