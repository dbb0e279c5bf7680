import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.filters.blocklist import Blocklist, load_blocklist

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
        ("https://a.b.EXAMPLE.com.:443/", True),
        ("example.com:80/x", True),
        ("example.com:x@good.org/", False),
        ("http://example.com@good.org/", False),
        ("http://good.org/?u=http://example.com/", False),
        ("http://com/", False),
        ("http://bad.org/Shop/1?x=2", True),
        ("http://bad.org/a/shop", False),
        ("http://ads.example.net/banner/7", True),
        ("ftp://scheme.example/A%20B/c", True),
        ("http://scheme.example/a+b", False),
        ("http://[2001:db8::1]:80/x", True),
        ("http://[2001:db8::2]/", False),
        ("http://any.tld/", True),
        ("://", False),
        ("http://\udcff/", False),
        (f"http://{'ü' * 80}.good.org/", False),
    ],
)
def test_what_is_blocked(blocklist: Blocklist, url: str, blocked: bool) -> None:
    assert blocklist.blocked(["http://good.org/", url]).tolist() == [False, blocked]


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
