"""Records of which some values cannot be had: these cost themselves, and the record if it is asked.

Valid JSON may hold what orjson refuses: numbers beyond a float, half of a surrogate pair, nesting
without end. Python's writer adds NaN and Infinity. A record is not thrown away for a field that
nobody looks at: such numbers become floats, other such values UNUSABLE, which is of no type that a
corpus expects. So a corpus that looks at one rejects the record, and it is rejected for `reason`.
"""

import math
import re
from collections.abc import Iterable
from typing import Any

import orjson

from pipelines.readers.mend import mend_json
from pipelines.readers.record import Reason, strings_in


class Unusable:
    """The type of UNUSABLE."""

    def __repr__(self) -> str:
        return "unusable"


UNUSABLE = Unusable()
"""Stands for a value that cannot be had."""


class Partial(dict[str, Any]):
    """The fields of a record of which some values could not be taken as they are."""

    def __init__(self, fields: Iterable[tuple[str, Any]], reason: Reason) -> None:
        super().__init__(fields)
        self.reason: Reason = reason
        """Why to reject the record if its corpus does."""


MAX_DEPTH = 1024
"""orjson refuses values nested more deeply."""

DEEPEST = 1 << 17
"""Values nested more deeply are not looked through."""
_CAUSES = (
    "number is infinity",
    "no low surrogate",
    "invalid low surrogate",
    "invalid high surrogate",
    "depth limit exceeded",
)
"""How orjson's messages begin if what it refuses may be passed over."""
_WORDS = ("NaN", "Infinity")

_TOKEN = re.compile(
    rb'"(?:[^"\\]|\\.)*+(?P<string>")(?:[ \t\n\r]*+(?P<key>:))?+'
    rb"|(?P<number>-?+(?:[0-9][-+.0-9eE]*+|Infinity)|NaN)"
    rb"|(?P<opener>[\[{])|(?P<closer>[\]}])|(?P<stray>\")",
    re.DOTALL,
)
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?+[0-9]++)?+|-?Infinity|NaN")
_SURROGATE = re.compile(rb"\\u(?:[dD][89a-fA-F]|0000)")
_CLOSERS = {b"[": ord("]"), b"{": ord("}")}


def salvage(raw: bytes, error: orjson.JSONDecodeError) -> Partial | None:
    """Return the object that some bytes are if what cannot be had is left out, or None.

    Args:
        raw: The bytes.
        error: Why orjson refused them.
    """
    if not _may_be_passed_over(error):
        return None
    rewriting = _Rewriting(raw)
    if not rewriting.done():
        return None
    try:
        value = orjson.loads(b"".join(rewriting.parts))
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict):
        return None
    _restore(value, rewriting.values)
    return Partial(value.items(), "bad-json")


def _may_be_passed_over(error: orjson.JSONDecodeError) -> bool:
    return error.msg.startswith(_CAUSES) or error.doc.startswith(_WORDS, error.pos)


class _Rewriting:
    """JSON with numbered strings, which begin with NUL, in place of what orjson refuses."""

    def __init__(self, raw: bytes) -> None:
        self.parts: list[bytes] = []
        """The new JSON."""
        self.values: list[Any] = []
        """What each numbered string stands for."""
        self._raw = raw
        self._taken = 0
        self._closers = bytearray()

    def done(self) -> bool:
        """Rewrite all and return True, or return False if this is no JSON."""
        for token in _TOKEN.finditer(self._raw):
            kind = token.lastgroup
            if kind == "stray" or (kind in ("opener", "closer") and not self._nest(token)):
                return False
            if len(self._closers) <= MAX_DEPTH:
                self._look_at(token, kind)
        self.parts.append(self._raw[self._taken :])
        return not self._closers

    def _nest(self, token: re.Match[bytes]) -> bool:
        """Go in or out; return False if that is not possible."""
        closers = self._closers
        if token["opener"]:
            if len(closers) == MAX_DEPTH:
                self.parts.append(self._raw[self._taken : token.start()])
            closers.append(_CLOSERS[token["opener"]])
            return len(closers) <= DEEPEST
        if not closers or closers.pop() != token[0][0]:
            return False
        if len(closers) == MAX_DEPTH:
            self._taken = token.start()
            self._put(token, UNUSABLE)
        return True

    def _look_at(self, token: re.Match[bytes], kind: str | None) -> None:
        text = token[0]
        if kind == "number":
            if _NUMBER.fullmatch(text) and not math.isfinite(value := float(text)):
                self._put(token, value)
        elif kind == "key" and _SURROGATE.search(text):
            self.parts += (self._raw[self._taken : token.start()], mend_json(text))
            self._taken = token.end()
        elif kind == "string" and _SURROGATE.search(text):
            try:
                self._put(token, orjson.loads(text))
            except orjson.JSONDecodeError:
                if mend_json(text) != text:
                    self._put(token, UNUSABLE)

    def _put(self, token: re.Match[bytes], value: Any) -> None:
        """Put a numbered string in the place of a token."""
        self.parts.append(self._raw[self._taken : token.start()])
        self.parts.append(b'"\\u0000%d"' % len(self.values))
        self.values.append(value)
        self._taken = token.end()


def _restore(value: dict[str, Any], values: list[Any]) -> None:
    """Put the values in the places of the numbered strings."""
    for container, key, text in strings_in(value):
        if text.startswith("\0"):
            container[key] = values[int(text[1:])]
