"""Personal data in a text replaced: e-mail and IP addresses, phone and Chinese identity numbers.

The rules are conservative: what might as well be a version, a date, an amount, a book number or
part of a longer number stays. Nothing is looked up and no model is asked, so names and postal
addresses stay too. Digits are ASCII digits.

A match is replaced by a value of the same kind that nobody can own, so the text still reads as text
and no tokenizer can take the replacement for one of its special tokens, as it could `<email>`:

    email   email@example.com    domain reserved by RFC 2606; datatrove writes the same
    ip      192.0.2.1            documentation block of RFC 5737
            2001:db8::1          documentation block of RFC 3849
    phone   555-0100             reserved for fiction in the North American plan
    id      18 zeros             no region, no date, so never issued

Masking a masked text changes nothing.
"""

import ipaddress
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from pipelines.filters.personal_numbers import FICTION, find_numbers, places_of_numbers

KINDS = ("email", "id", "phone", "ip")
"""What can be masked, named as in the counts."""

EMAIL, IPV4, IPV6 = "email@example.com", "192.0.2.1", "2001:db8::1"
PHONE, ID = FICTION, "0" * 18


@dataclass(frozen=True, slots=True)
class _Found:
    start: int
    end: int
    kind: str
    replacement: str


def mask(text: str, *, kinds: Collection[str] = KINDS) -> tuple[str, dict[str, int]]:
    """Return the text with personal data replaced, and how many of each kind were.

    A text without any is returned as it is, the same object; kinds not found are not counted.

    Args:
        text: Any text.
        kinds: Those of KINDS to mask.
    """
    counts: dict[str, int] = {}
    for find in (_emails, _numbers, _ipv6, _ipv4):
        text = _replaced(text, (each for each in find(text) if each.kind in kinds), counts)
    return text, counts


def mask_all(
    texts: Sequence[str], *, kinds: Collection[str] = KINDS
) -> tuple[list[str], list[Mapping[str, int]]]:
    """Return what mask() gives for each text, several times faster: most need no look of their own.

    Args:
        texts: A batch of texts, of some megabytes at most: it is copied twice.
        kinds: Those of KINDS to mask.
    """
    masked, counts = list(texts), [_NOTHING] * len(texts)
    for index in _suspects(texts):
        masked[index], counts[index] = mask(texts[index], kinds=kinds)
    return masked, counts


_NOTHING: Mapping[str, int] = MappingProxyType({})


def _suspects(texts: Sequence[str]) -> list[int]:
    """Return the indices of the texts in which mask() may find something."""
    raws = [text.encode("utf-8", "replace") for text in texts]
    joined = b"\n".join(raws)
    hints = (hint.finditer(joined) for hint in _HINTS)
    places = [match.start() for match in itertools.chain(*hints)] + places_of_numbers(joined)
    ends = np.cumsum([len(raw) + 1 for raw in raws])
    return sorted(set(np.searchsorted(ends, places, side="right").tolist()))


def _replaced(text: str, found: Iterable[_Found], counts: dict[str, int]) -> str:
    parts, end = [], 0
    for each in found:
        parts += [text[end : each.start], each.replacement]
        end = each.end
        counts[each.kind] = counts.get(each.kind, 0) + 1
    return "".join([*parts, text[end:]]) if parts else text


# A search that starts at the @ costs nothing on ordinary text; one that starts at the local part
# would try every word. The local part has at most 64 characters (RFC 5321, 4.5.3.1.1).
_LOCAL_CHARACTERS = 64
_LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*\Z")
_DOMAIN = re.compile(
    r"@((?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+)"
    r"(xn--[A-Za-z0-9-]{0,58}[A-Za-z0-9]|[A-Za-z]{2,63})(?![A-Za-z0-9])"
    r"(?![A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{0,64}@)"  # else it is the beginning of another address
)
_RESERVED = re.compile(r"(?:.*\.)?(?:example\.(?:com|net|org)|example|invalid|test|localhost)")
"""RFC 2606: no mail is ever delivered there."""
_FILES = frozenset({"css", "gif", "jpeg", "jpg", "js", "png", "svg", "webp"})
"""No top-level domains, but suffixes of files called logo@2x.png."""


def _emails(text: str) -> Iterator[_Found]:
    end = 0
    for match in _DOMAIN.finditer(text):
        at = match.start()
        local = _LOCAL.search(text, max(end, at - _LOCAL_CHARACTERS), at)
        domain, last = (match[1] + match[2]).lower(), match[2].lower()
        if local and last not in _FILES and not _RESERVED.fullmatch(domain):
            yield _Found(local.start(), match.end(), "email", EMAIL)
            end = match.end()


def _numbers(text: str) -> Iterator[_Found]:
    for start, end, kind in find_numbers(text):
        yield _Found(start, end, kind, ID if kind == "id" else PHONE)


# Each search below begins with a plain character, which the library looks for at memory speed.
_IPV4_HINT = re.compile(r"\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]")
_IPV4 = re.compile(r"(?<![0-9A-Za-z_.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![0-9A-Za-z_]|\.[0-9])")
_IPV6_HINT = re.compile(r":(?<=[23][0-9A-Fa-f]{3}:)[0-9A-Fa-f]{0,4}:")
_IPV6 = re.compile(r"(?<![0-9A-Za-z_:.])[23][0-9A-Fa-f]{3}:[0-9A-Fa-f:]+(?![0-9A-Za-z_:.])")
"""All addresses given out so far begin with the bits 001 (IANA)."""

_EMAIL_HINT = re.compile(r"@(?<=[0-9A-Za-z!#$%&'*+/=?^_`{|}~-]@)[0-9A-Za-z]")
_HINTS = tuple(re.compile(hint.pattern.encode()) for hint in (_EMAIL_HINT, _IPV4_HINT, _IPV6_HINT))

_NOT_PUBLIC = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
        "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15",
        "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
    )
)  # fmt: skip
"""IANA's special-purpose registry, and multicast; Python's own table changes with its version."""
_DOCUMENTATION = ipaddress.IPv6Network("2001:db8::/32")


def _ipv4(text: str) -> Iterator[_Found]:
    """Yield public addresses; four single digits are left: sections and versions look like it."""
    for match in _IPV4.finditer(text) if _IPV4_HINT.search(text) else ():
        try:
            address = ipaddress.IPv4Address(match[0])
        except ValueError:
            continue
        if len(match[0]) > len("1.2.3.4") and not any(address in each for each in _NOT_PUBLIC):
            yield _Found(match.start(), match.end(), "ip", IPV4)


def _ipv6(text: str) -> Iterator[_Found]:
    for match in _IPV6.finditer(text) if _IPV6_HINT.search(text) else ():
        try:
            address = ipaddress.IPv6Address(match[0])
        except ValueError:
            continue
        if address not in _DOCUMENTATION:
            yield _Found(match.start(), match.end(), "ip", IPV6)
