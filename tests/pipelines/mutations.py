"""Damages files that users give, by seed: any damage must give a clear error or be harmless."""

import copy
import itertools
import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from google.protobuf import json_format
from transformers.utils.sentencepiece_model_pb2_new import ModelProto

_Harm = Callable[[bytes, random.Random], bytes]

DEEP = 100_000
"""The number of levels of nesting, which no recursive parser can follow."""

HUGE = 10**9


def _span(content: bytes, rng: random.Random) -> tuple[int, int]:
    start = rng.randrange(len(content) + 1)
    return start, min(len(content), start + rng.choice((1, 4, 64, 4096)))


def _flip(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 3, 30))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _flip_head(content: bytes, rng: random.Random) -> bytes:
    """Flip a bit near the start of a binary file, where numbers give the sizes of tables."""
    changed = bytearray(content)
    changed[rng.randrange(min(len(changed), 128))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))]


def _behead(content: bytes, rng: random.Random) -> bytes:
    return content[rng.randrange(1, len(content)) :]


def _remove(content: bytes, rng: random.Random) -> bytes:
    start, end = _span(content, rng)
    return content[:start] + content[end:]


def _repeat(content: bytes, rng: random.Random) -> bytes:
    start, end = _span(content, rng)
    return content[:end] + content[start:end] * rng.randrange(1, 4) + content[end:]


def _fill(content: bytes, rng: random.Random) -> bytes:
    start, end = _span(content, rng)
    return content[:start] + rng.choice((b"\0", b"\xff", b" ")) * (end - start) + content[end:]


def _noise(content: bytes, rng: random.Random) -> bytes:
    start, end = _span(content, rng)
    return content[:start] + rng.randbytes(end - start) + content[end:]


def _insert(content: bytes, rng: random.Random) -> bytes:
    start, _ = _span(content, rng)
    extra = rng.choice((b"\0", b"\xed\xa0\x80", b"\xff", b"\xef\xbb\xbf", b"[" * DEEP, b"\n", b"9"))
    return content[:start] + extra + content[start:]


def _swap(content: bytes, rng: random.Random) -> bytes:
    middle = rng.randrange(len(content))
    return content[middle:] + content[:middle]


def _put_number(content: bytes, rng: random.Random) -> bytes:
    """Write a number near the start or end of a binary file, where lengths and offsets are."""
    size = rng.choice((4, 8))
    near = rng.randrange(min(len(content), 1024)) // 4 * 4
    at = rng.choice((near, max(0, len(content) - near - size)))
    number = rng.choice((0, 1, 255, 2**31 - 1, 2**31, 2**40, 2**63 - 1, 2**64 - 1))
    changed = bytearray(content)
    changed[at : at + size] = (number % 2 ** (8 * size)).to_bytes(size, "little")
    return bytes(changed[: len(content)])


_WHOLE = (b"", b"\0", b"\n", b"\xff" * 300, b"\0" * 5000, b"[" * DEEP, b'{"a":' * DEEP, b"null")
_BYTES: tuple[_Harm, ...] = (
    _flip, _flip, _flip_head, _cut, _behead, _remove, _repeat, _fill, _noise, _insert, _swap,
    _put_number,
)  # fmt: skip


def harmed_bytes(content: bytes, *, seed: int, number: int) -> Iterator[tuple[str, bytes]]:
    """Yield names of damage, each with the damaged bytes of a file."""
    rng = random.Random(seed)
    for index, whole in enumerate(_WHOLE):
        yield f"whole-{index}", whole
    for index in range(number - len(_WHOLE)):
        harm = _BYTES[index % len(_BYTES)]
        yield f"{index}{harm.__name__}", harm(content, rng)


_VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, HUGE, 2**31, 2**32, 2**63, 2**64, -(2**63), 0.5, 1e308, "", "a",
    "\ud800", "\0", "\U0010ffff", "x" * 100_000, [], {}, [[]], [None], {"": None}, {"type": "BPE"},
    float("nan"), float("inf"), [["a", "b", "c"]], ["a"], {"type": 5}, "9" * 400,
    "NaN", "-Infinity",
)  # fmt: skip


def _containers(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each object and array that is not empty, with a path that rows of a table share."""
    if isinstance(value, dict | list):
        if value:
            yield path, value
        names = value if isinstance(value, dict) else itertools.repeat("*")
        inner = value.values() if isinstance(value, dict) else value
        for name, item in zip(names, inner, strict=False):
            yield from _containers(item, f"{path}/{name}")


def _harm_json(document: Any, rng: random.Random) -> None:
    places: dict[str, list[Any]] = {}
    for path, found in _containers(document):
        places.setdefault(path, []).append(found)
    if not places:
        return
    place = rng.choice(places[rng.choice([*places])])
    key = rng.choice([*place]) if isinstance(place, dict) else rng.randrange(len(place))
    action = rng.randrange(8)
    if action == 0:
        del place[key]
    elif action == 1 and isinstance(place, dict):
        place[rng.choice(("", "\ud800", "\0", "type", "x" * 5000))] = place.pop(key)
    elif action == 1:
        place.append(copy.deepcopy(place[key]))
    elif action == 2 and isinstance(place, dict):
        place[key] = copy.deepcopy(rng.choice([*place.values()]))
    else:
        place[key] = copy.deepcopy(rng.choice(_VALUES))


def _other_json(content: bytes, rng: random.Random) -> bytes:
    document = json.loads(content)
    for _ in range(rng.choice((1, 1, 2, 5))):
        _harm_json(document, rng)
    return json.dumps(document).encode()


def harmed_json(content: bytes, *, seed: int, number: int) -> Iterator[tuple[str, bytes]]:
    """Yield names of damage, each with a JSON file with wrong, missing, huge or repeated values."""
    rng = random.Random(seed)
    for index in range(number):
        yield f"json-{index}", _other_json(content, rng)


def harmed(content: bytes, rng: random.Random) -> tuple[str, bytes]:
    """Return the name of damage and the damaged file; in half of the cases JSON stays JSON."""
    if len(content) < 2 or rng.random() < 0.1:
        return "whole", rng.choice(_WHOLE)
    if content[:1] in b"[{" and rng.random() < 0.5:
        with suppress(ValueError):  # if the file has one value on each line
            return "json", _other_json(content, rng)
    harm = rng.choice(_BYTES)
    return harm.__name__, harm(content, rng)


def harmed_models(content: bytes, *, seed: int, number: int) -> Iterator[tuple[str, bytes]]:
    """Yield names of damage, each with a SentencePiece model with bad, missing or extra fields."""
    rng = random.Random(seed)
    whole = json_format.MessageToJson(ModelProto.FromString(content)).encode()
    made = 0
    while made < number:
        with suppress(json_format.ParseError):  # if no message can contain the value
            message = json_format.Parse(_other_json(whole, rng), ModelProto(), True)
            yield f"fields-{made}", message.SerializeToString()
            made += 1
