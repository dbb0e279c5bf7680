from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from shards.records import sealed, unsealed


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


def test_a_sealed_record_is_known_to_be_unchanged() -> None:
    seal = sealed(WHOLE)
    assert seal == {**PLAIN, "seal": seal["seal"]}
    assert unsealed(Whole, seal, where="file") == WHOLE


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({**sealed(WHOLE), "share": 0.25}, r"^file was changed after it was written$"),
        (PLAIN, r"^file was changed after it was written$"),
        ({"seal": 1}, r"^file\.free is missing$"),
        ([], r"^file is \[\], not of type dict$"),
    ],
)
def test_a_changed_record_is_refused(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unsealed(Whole, value, where="file")
