"""Makes JSON that nobody would write of JSON that corpusmill wrote; the same for a seed."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

DEEP = "@deep@"
"""Stands for lists in lists, thousands of them, which json would not write."""

ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 7, 2**31, 2**53 + 1, 2**63, -(2**63), 2**64, 10**30, 10**400,
    1.5, -0.0, 1e308, float("nan"), float("inf"), "", " ", "x", "..", "../x", "/etc/hostname",
    "a/../../b", "C:\\x", "s3://bucket/x", "a\0b", "\ud800", "\udfff\ud800", "\x1b[31m", "工", "1",
    "x" * 300, "x" * 5000, "uint8", "float64", "O", "2026-13-99", [], {}, [[]], [None], {"": {}},
    [1, "2", None], {"x": [1]}, DEEP,
)  # fmt: skip

Spot = tuple[Any, Any]
"""A list or an object, and the index or key of something in it."""


def spots(value: Any) -> list[Spot]:
    """Return all places in a value that something can be put."""
    found: list[Spot] = []
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            found.append((holder, key))
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])
    return found


def _replace(holder: Any, key: Any, rng: random.Random, _: list[Spot]) -> None:
    holder[key] = rng.choice(ODD)


def _delete(holder: Any, key: Any, _: random.Random, __: list[Spot]) -> None:
    del holder[key]


def _repeat(holder: Any, key: Any, rng: random.Random, _: list[Spot]) -> None:
    if isinstance(holder, list):
        holder.insert(rng.randrange(len(holder) + 1), json.loads(json.dumps(holder[key])))
    else:
        holder[rng.choice(["x", "", "..", "../../x", f"{key} ", key.upper()])] = holder[key]


def _rename(holder: Any, key: Any, rng: random.Random, _: list[Spot]) -> None:
    if isinstance(holder, dict):
        holder[rng.choice(["x", "", "..", "../../x", "a/b", "\ud800", key[:-1]])] = holder.pop(key)


def _change(holder: Any, key: Any, rng: random.Random, _: list[Spot]) -> None:
    """Change a number or a text a little, so that it is still of its type."""
    value = holder[key]
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return
    if isinstance(value, str):
        at = rng.randrange(len(value) + 1)
        holder[key] = value[:at] + rng.choice(["..", "/", "0", "x", "-", "\0", "\n"]) + value[at:]
    else:
        holder[key] = rng.choice([value + 1, value - 1, -value, 2 * value, value * 10**6])


def _exchange(holder: Any, key: Any, rng: random.Random, every: list[Spot]) -> None:
    other, name = rng.choice(every)
    if name in other if isinstance(other, dict) else name < len(other):
        holder[key] = json.loads(json.dumps(other[name]))


_CHANGES: tuple[Callable[[Any, Any, random.Random, list[Spot]], None], ...] = (
    _replace, _replace, _replace, _delete, _repeat, _rename, _change, _change, _exchange,
)  # fmt: skip


def mutated(value: Any, seed: int) -> Any:
    """Return a copy of a value with one to three changes."""
    rng = random.Random(seed)
    whole = [json.loads(json.dumps(value))]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        every = spots(whole)
        if not every:
            break
        holder, key = rng.choice(every)
        rng.choice(_CHANGES)(holder, key, rng, every)
    return whole[0] if whole else None


def text_of(value: Any) -> str:
    """Return a value as JSON text, and some that is none: NaN, Infinity, and what DEEP means."""
    deep = "[" * 5000 + "]" * 5000
    return json.dumps(value).replace(json.dumps(DEEP), deep)


def put(path: Path, value: Any) -> None:
    """Write a value as a JSON file."""
    path.write_text(text_of(value))
