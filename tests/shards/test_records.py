from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from shards.records import from_json, to_json


@dataclass(frozen=True, kw_only=True)
class Part:
    name: str
    sizes: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Whole:
    parts: Mapping[str, Part]
    free: Mapping[str, Any]
    share: float


WHOLE = Whole(parts={"a": Part(name="x", sizes=(1, 2))}, free={"k": [1, {"z": None}]}, share=0.5)
PLAIN = {
    "parts": {"a": {"name": "x", "sizes": [1, 2]}},
    "free": {"k": [1, {"z": None}]},
    "share": 0.5,
}


def test_round_trip() -> None:
    assert to_json(WHOLE) == PLAIN
    assert from_json(Whole, PLAIN, where="file") == WHOLE


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"share": "much"}, r"^file\.share is 'much', not of type float$"),
        ({"share": True}, r"file\.share is True"),
        ({"parts": []}, r"file\.parts is \[\], not of type dict"),
        ({"parts": {"a": {"name": "x"}}}, r"file\.parts\.a\.sizes is missing"),
        ({"parts": {"a": {"name": "x", "sizes": [1, "2"]}}}, r"file\.parts\.a\.sizes\[1\] is '2'"),
        ({"parts": {"a": {"name": "x", "sizes": 1}}}, r"not of type list"),
        ({"new": 1}, r"file\.new is not known"),
    ],
)
def test_says_where_it_is_wrong(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_json(Whole, {**PLAIN, **change}, where="file")
