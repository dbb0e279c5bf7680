import gzip
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.filters.blocklist import Block, Blocklist, load_blocklist
from shards.errors import UserError
from tests.pipelines.filters.batches import CHINESE, ENGLISH, batch

LIST = """\
# bad places
example.com
bad.org/shop  # the rest of it is good
WWW.Ads.Example.NET/Banner/
*.wild.example
http://user@scheme.example:8080/a%20b
bücher.example
192.0.2.7
[2001:db8::1]
query.example/?id=7
tld
"""


@pytest.fixture(scope="module")
def blocklist(tmp_path_factory: pytest.TempPathFactory) -> Blocklist:
    path = tmp_path_factory.mktemp("list") / "domains"
    path.write_text(LIST)
    return load_blocklist([str(path)])


@pytest.mark.parametrize(
    ("url", "blocked"),
    [
        ("http://example.com", True),
        ("https://www.example.com/any/page?x=1#y", True),
        ("https://a.b.EXAMPLE.com.:443/", True),
        ("//example.com/x", True),
        ("example.com", True),
        ("example.com:80/x", True),
        ("example.com:x@good.org/", False),
        ("http://user:word@example.com:80/", True),
        ("http://example.com@good.org/", False),
        ("http://notexample.com/", False),
        ("http://example.com.good.org/", False),
        ("http://good.org/?u=http://example.com/", False),
        ("http://good.org/example.com", False),
        ("http://com/", False),
        ("http://bad.org/", False),
        ("http://bad.org/shop", True),
        ("http://www.bad.org/shop/", True),
        ("http://bad.org/Shop/1?x=2", True),
        ("http://bad.org/shop?x=2", True),
        ("http://bad.org/shop#top", True),
        ("http://bad.org/shopping", False),
        ("http://bad.org/a/shop", False),
        ("http://sub.bad.org/shop", False),
        ("http://ads.example.net/banner/7", True),
        ("http://ads.example.net/", False),
        ("http://wild.example/", True),
        ("http://x.wild.example/", True),
        ("ftp://scheme.example/A%20B/c", True),
        ("http://scheme.example/a+b", False),
        ("http://www.bücher.example/", True),
        ("http://xn--bcher-kva.example/", True),
        ("http://192.0.2.7:81/x", True),
        ("http://10.192.0.2.7/", False),
        ("http://[2001:db8::1]:80/x", True),
        ("http://[2001:db8::2]/", False),
        ("http://query.example?id=7", True),
        ("http://query.example/?id=7", True),
        ("http://query.example/?id=8", False),
        ("http://any.tld/", True),
        ("", False),
        ("://", False),
        ("http://", False),
        ("http://\udcff/", False),
        (f"http://{'ü' * 80}.good.org/", False),
    ],
)
def test_what_is_blocked(blocklist: Blocklist, url: str, blocked: bool) -> None:
    assert blocklist.blocked(["http://good.org/", url]).tolist() == [False, blocked]


def test_no_urls(blocklist: Blocklist) -> None:
    assert blocklist.blocked([]).tolist() == []
    assert len(blocklist.entries) == 10


@given(st.text(), st.lists(st.text(alphabet="ab./?#:@%[]ü "), max_size=4))
def test_any_text_may_come_as_a_url(
    tmp_path_factory: pytest.TempPathFactory, text: str, others: list[str]
) -> None:
    path = tmp_path_factory.mktemp("list") / "domains"
    path.write_text("ab.example\n")
    blocked = load_blocklist([str(path)]).blocked([*others, text, "http://ab.example/"])
    assert blocked.tolist()[-1] is True
    assert len(blocked) == len(others) + 2


def test_entries_of_several_files_are_the_same_in_any_order(tmp_path: Path) -> None:
    lines = LIST.splitlines(keepends=True)
    (tmp_path / "a.txt").write_text("".join(lines[5:]) + "\r\n\r\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress("".join(lines[:7]).encode()))
    (tmp_path / "whole").write_text(LIST)
    whole = load_blocklist([str(tmp_path / "whole")])
    assert load_blocklist([str(tmp_path)]).fingerprint == whole.fingerprint
    other = load_blocklist([str(tmp_path / "a.txt")])
    assert other.fingerprint != whole.fingerprint
    assert not other.blocked(["http://bad.org/shop"])[0]


def test_a_line_in_another_encoding_is_an_entry_too(tmp_path: Path) -> None:
    (tmp_path / "domains").write_bytes("bad.org/café\n".encode("latin-1"))
    assert load_blocklist([str(tmp_path / "domains")]).blocked(["http://bad.org/caf%C3%A9"])[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("good.org\n0.0.0.0 example.com\n", r"'0\.0\.0\.0 example\.com' at byte 9 is no entry"),
        ("||example.com^\n", r"rules of ad blockers"),
        ("exam*ple.com\n", r"is no entry"),
        ("/path\n", r"is no entry"),
        ("# nothing\n\n", r"no entries\. Each line should hold a domain"),
    ],
)
def test_what_is_no_list_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "domains"
    path.write_text(content)
    with pytest.raises(UserError, match=message):
        load_blocklist([str(path)])


def test_blocked_addresses_are_dropped(tmp_path: Path) -> None:
    (tmp_path / "domains").write_text("bad.example\n")
    block = Block([str(tmp_path / "domains")])
    urls = pa.array(["https://www.bad.example/x", "https://good.example/"], pa.large_string())
    verdict = block(batch(CHINESE, ENGLISH).append_column("url", urls))
    assert verdict.reasons.to_pylist() == ["url-blocklist", None]
    with pytest.raises(UserError, match="--url-blocklist needs a corpus whose records have a url"):
        block(batch(CHINESE))
