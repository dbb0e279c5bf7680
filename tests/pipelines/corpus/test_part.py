import argparse

import pytest

from pipelines.corpus.part import is_share, parse_part


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("1/1", ("1/1",)),
        ("2/4,3/4", ("2/4", "3/4")),
        (" 2/4, 2/4", ("2/4",)),
        ("1/2,3/4", ("1/2", "3/4")),
        ("merge", ("merge",)),
    ],
)
def test_shares_are_read(text: str, part: tuple[str, ...]) -> None:
    assert parse_part(text) == part
    assert is_share(part) == (text != "merge")


@pytest.mark.parametrize("text", ["", "0/4", "5/4", "1", "a/b", "1/4,merge", "1/1001", "-1/4"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"no share of at most 1000 \(2/4 is"):
        parse_part(text)
