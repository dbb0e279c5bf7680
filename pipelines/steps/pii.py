"""Replaces personal data: e-mail and IP addresses, phone numbers and Chinese identity numbers.

The rules are conservative: a number that could also be a version, a date, an amount, a book number
or part of a longer number is kept. The rules use no look-ups and no model, so names and postal
addresses are kept too. Digits are ASCII digits.

A match is replaced by a value of the same kind that nobody can own, so that the text stays
readable. A tag such as `<email>` could be a special token of some tokenizer; these values cannot:

    email   email@example.com    domain reserved by RFC 2606; datatrove writes the same
    ip      192.0.2.1            documentation block of RFC 5737
            2001:db8::1          documentation block of RFC 3849
    phone   555-0100             reserved for fiction in the North American plan
    id      18 zeros             no region, no date, so never issued

Masking a masked text changes nothing.
"""

import datetime
import ipaddress
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from pipelines.segments.rows import FilterResult
from pipelines.steps.step import Step, no_reasons, replace_texts

KINDS = ("email", "id", "phone", "ip")
"""The kinds of data that are masked, as the counts name them."""

MASKED = tuple(pa.field(f"pii.{kind}", pa.int32()) for kind in KINDS)

EMAIL, IPV4, IPV6 = "email@example.com", "192.0.2.1", "2001:db8::1"
PHONE, ID = "555-0100", "0" * 18


@dataclass(frozen=True, slots=True)
class _Hit:
    start: int
    end: int
    kind: str
    replacement: str


def mask_text(text: str) -> tuple[str, dict[str, int]]:
    """Return the text with personal data replaced, and the number of replacements by kind.

    If nothing is replaced, the same object is returned. Kinds that do not occur are not in the
    counts.
    """
    counts: dict[str, int] = {}
    for find in (_emails, _numbers, _ipv6, _ipv4):
        text = _replace(text, find(text), counts)
    return text, counts


def mask_texts(texts: Sequence[str]) -> tuple[list[str], list[Mapping[str, int]]]:
    """Return the results of mask_text() for all texts, several times as fast as single calls.

    One search over all texts finds the few that have to be masked one by one.

    Args:
        texts: A batch of texts, a few megabytes at most: it is copied twice.
    """
    masked, counts = list(texts), [_NOTHING] * len(texts)
    for index in _suspects(texts):
        masked[index], counts[index] = mask_text(texts[index])
    return masked, counts


_NOTHING: Mapping[str, int] = MappingProxyType({})


def _suspects(texts: Sequence[str]) -> list[int]:
    """Return the indices of the texts in which mask_text() may replace something."""
    raws = [text.encode("utf-8", "replace") for text in texts]
    joined = b"\n".join(raws)
    hints = (hint.finditer(joined) for hint in _HINTS)
    places = [match.start() for match in itertools.chain(*hints)] + _places_of_numbers(joined)
    ends = np.cumsum([len(raw) + 1 for raw in raws])
    return sorted(set(np.searchsorted(ends, places, side="right").tolist()))


def _replace(text: str, hits: Iterable[_Hit], counts: dict[str, int]) -> str:
    parts, end = [], 0
    for hit in hits:
        parts += [text[end : hit.start], hit.replacement]
        end = hit.end
        counts[hit.kind] = counts.get(hit.kind, 0) + 1
    return "".join([*parts, text[end:]]) if parts else text


# A search that starts at the @ is fast on ordinary text; a search from the local part would try
# every word. The local part has at most 64 characters (RFC 5321, 4.5.3.1.1).
_LOCAL_CHARACTERS = 64
_LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*\Z")
_DOMAIN = re.compile(
    r"@((?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+)"
    r"(xn--[A-Za-z0-9-]{0,58}[A-Za-z0-9]|[A-Za-z]{2,63})(?![A-Za-z0-9])"
    r"(?![A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{0,64}@)"  # else this is the local part of another address
)
_RESERVED = re.compile(r"(?:.*\.)?(?:example\.(?:com|net|org)|example|invalid|test|localhost)")
"""Domains to which no mail is ever delivered (RFC 2606)."""
_FILES = frozenset({"css", "gif", "jpeg", "jpg", "js", "png", "svg", "webp"})
"""Endings that are not top-level domains but file types, as in logo@2x.png."""


def _emails(text: str) -> Iterator[_Hit]:
    end = 0
    for match in _DOMAIN.finditer(text):
        sign = match.start()
        local = _LOCAL.search(text, max(end, sign - _LOCAL_CHARACTERS), sign)
        domain, last = (match[1] + match[2]).lower(), match[2].lower()
        if local and last not in _FILES and not _RESERVED.fullmatch(domain):
            yield _Hit(local.start(), match.end(), "email", EMAIL)
            end = match.end()


def _numbers(text: str) -> Iterator[_Hit]:
    for start, end, kind in _find_numbers(text):
        yield _Hit(start, end, kind, ID if kind == "id" else PHONE)


# Each hint begins with a plain character, which `re` finds at memory speed.
_IPV4_HINT = re.compile(r"\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]")
_IPV4 = re.compile(r"(?<![0-9A-Za-z_.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![0-9A-Za-z_]|\.[0-9])")
_IPV6_HINT = re.compile(r":(?<=[23][0-9A-Fa-f]{3}:)[0-9A-Fa-f]{0,4}:")
_IPV6 = re.compile(r"(?<![0-9A-Za-z_:.])[23][0-9A-Fa-f]{3}:[0-9A-Fa-f:]+(?![0-9A-Za-z_:.])")
"""Matches addresses that begin with the bits 001, as all that IANA has assigned so far do."""

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
"""IANA's special-purpose registry, and multicast; tables differ between versions of Python."""
_DOCUMENTATION = ipaddress.IPv6Network("2001:db8::/32")


def _ipv4(text: str) -> Iterator[_Hit]:
    """Yield public addresses; four single digits are skipped, since they may be a version."""
    for match in _IPV4.finditer(text) if _IPV4_HINT.search(text) else ():
        try:
            address = ipaddress.IPv4Address(match[0])
        except ValueError:
            continue
        public = not any(address in network for network in _NOT_PUBLIC)
        if public and len(match[0]) > len("1.2.3.4"):
            yield _Hit(match.start(), match.end(), "ip", IPV4)


def _ipv6(text: str) -> Iterator[_Hit]:
    for match in _IPV6.finditer(text) if _IPV6_HINT.search(text) else ():
        try:
            address = ipaddress.IPv6Address(match[0])
        except ValueError:
            continue
        if address not in _DOCUMENTATION:
            yield _Hit(match.start(), match.end(), "ip", IPV6)


# Phone and identity numbers are recognized by their form only.

# Every number that is masked has at least ten digits with at most two separators between them, and
# four digits in a row unless it begins with a plus sign. The search for such digit runs reads bytes
# that are first mapped to four values, and is several times as fast as a search in characters.
_WIDE = "（）".encode()
_SHAPE = bytes(
    ord(
        "d" if chr(byte) in "0123456789" else "s" if byte in b" -()." else "w" if byte in _WIDE
        else " "
    )
    for byte in range(256)
)  # fmt: skip
_RUN = re.compile(rb"d(?:(?:s{0,2}+|s?w{3}s?)d){9,}")
_FOUR = b"dddd"
_MAX_GAP = len(" ）-".encode()) + 1
_MARGIN = 12
"""How many characters before and after a digit run may belong to a number or rule it out."""


def _runs(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each digit run in the text that may contain a number."""
    raw = text.encode("utf-8", "replace")
    shape = raw.translate(_SHAPE)
    if _FOUR not in shape and "+" not in text:
        return
    characters, seen = 0, 0  # the characters in the bytes seen
    for match in _RUN.finditer(shape):
        start, end = match.span()
        if _may_hold(raw, start, match[0]):
            first = characters + len(raw[seen:start].decode())
            characters, seen = first + len(raw[start:end].decode()), end
            yield first, characters


def _digit_runs(characters: np.ndarray) -> np.ndarray:
    """Return the start and end, int64[n, 2], of each run of ten or more digits with small gaps.

    The places are offsets in bytes. Unbroken digits after a letter are skipped, because they are
    file names or hexadecimal numbers.
    """
    digits = np.flatnonzero(characters - np.uint8(ord("0")) < np.uint8(10))
    cuts = np.flatnonzero(np.diff(digits) > _MAX_GAP)
    firsts, lasts = np.append(0, cuts + 1), np.append(cuts, len(digits) - 1)
    many = lasts - firsts >= 9  # noqa: PLR2004 - ten digits
    firsts, lasts = firsts[many], lasts[many]
    starts, ends = digits[firsts], digits[lasts] + 1
    before = characters[np.maximum(starts - 1, 0)] | 0x20
    unbroken = ends - starts == lasts - firsts + 1
    named = unbroken & (before >= ord("a")) & (before <= ord("z"))
    runs: np.ndarray = np.stack([starts, ends], axis=1)[~named]
    return runs


def _may_hold(raw: bytes, start: int, shape: bytes) -> bool:
    """Return whether a digit run may contain a number, given its shape and the byte before it."""
    before = raw[start - 1 : start]
    if len(shape) == shape.count(b"d") and (before.isalpha() or before == b"_"):
        return False
    return _FOUR in shape or before == b"+"


def _find_numbers(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end and kind ("id" or "phone") of each personal number, in order."""
    done = 0
    for start, end in _runs(text):
        begin = max(done, start - _MARGIN)
        while match := _NUMBER.search(text, begin, end + _MARGIN):
            kind = _kind(match) if match.end() <= end + len("X") else None
            begin = match.end() if kind else match.start() + 1
            if kind:
                yield match.start(), match.end(), kind
                done = begin


def _places_of_numbers(raw: bytes) -> list[int]:
    """Return the byte offsets of the digit runs in which _find_numbers() may find a number.

    Args:
        raw: Texts in UTF-8, with line breaks between them.
    """
    places = []
    for start, end in _digit_runs(np.frombuffer(raw, np.uint8)).tolist():
        shape = raw[start:end].translate(_SHAPE)
        runs = [(start + run.start(), run[0]) for run in _RUN.finditer(shape)]
        places += [place for place, run in runs if _may_hold(raw, place, run)]
    return places


# No digit, letter or decimal follows a number, and no unit that makes it an amount.
_BEFORE = r"(?<![=&#%$€£¥￥@\\])(?<![0-9][.])(?:(?<!/)|(?<=[0-9]{7}/))"
_AFTER = r"(?![0-9A-Za-z_%‰@]|[.-][0-9]|\s?(?:元|圆|美元|欧元|万|亿|字节|人民币))"
_ALONE = rf"{_BEFORE}(?<![0-9][- ])"

_CHINA = r"(?:(?:\+|00)86[- ]?)"
_MOBILE = rf"""
    {_ALONE} {_CHINA} 1[3-9][0-9]{{9}} {_AFTER}
    | {_BEFORE} (?<![0-9]-) 1[3-9][0-9]{{9}} {_AFTER}
    | {_ALONE} {_CHINA}? 1[3-9][0-9] (?P<mobile>[- ]) [0-9]{{4}} (?P=mobile) [0-9]{{4}} {_AFTER}
"""
"""Chinese mobile numbers: 1, then 3 to 9, then nine digits; unbroken or grouped as 3-4-4."""

_AREA = r"(?:10|2[0-9]|[3-9][0-9]{2})"
_LANDLINE = rf"""
    {_ALONE}
    (?: {_CHINA} (?: 0?{_AREA} | \(0?{_AREA}\) ) [- ]?
      | [(（] 0{_AREA} [)）] [- ]? | 0{_AREA} [- ] )
    [2-8][0-9]{{2,3}} [- ]? [0-9]{{4}} (?:-[0-9]{{1,5}})? {_AFTER}
"""
"""Chinese landlines: area code (010, 02x, 03xx to 09xx), seven or eight digits, and extension."""

_CODE = r"(?![2-9]00)[2-9][0-9]{2}"
_NANP = rf"""
    {_ALONE} (?: \+? 1 [-.\ ]? )?
    (?: \({_CODE}\) [ ]? [2-9][0-9]{{2}} [-.\ ] | {_CODE} (?P<nanp>[-.]) [2-9][0-9]{{2}} (?P=nanp) )
    [0-9]{{4}} {_AFTER}
"""
"""North American numbers with parentheses, dashes or dots; with spaces they could be amounts.

Area codes that end in 00 belong to services: 800 in America and China, 400 in China.
"""

_INTERNATIONAL = rf"""
    (?<![=&#%$€£¥￥@/\\)+.-]) \+ [1-9][0-9]{{0,2}}
    (?: [- ]? \([0-9]{{1,4}}\) )? (?: [- ]? [0-9]{{1,5}}+ ){{2,7}}+ {_AFTER}
"""
"""Plus sign, country code, and groups of digits; 9 to 15 digits in all (ITU-T E.164 allows 15)."""

_REGION = r"(?: 1[1-5] | 2[1-3] | 3[1-7] | 4[1-6] | 5[0-4] | 6[1-5] | 71 | 8[1-3] ) [0-9]{4}"
"""Region codes of GB/T 2260; 81 to 83 are for residents from Hong Kong, Macao and Taiwan."""
_IDENTITY = rf"""
    (?<![.]) {_REGION}
    (?: (?P<born>[0-9]{{8}}) [0-9]{{3}} [0-9Xx] | (?P<old>[0-9]{{6}}) [0-9]{{3}} )
    (?! [0-9A-Za-z_] | [.][0-9] )
"""

_NUMBER = re.compile(
    rf"""
    (?<![0-9A-Za-z_]) (?= [0-9+(（] )  # fails immediately where no number can begin
    (?: (?P<id> {_IDENTITY} ) | {_MOBILE} | {_LANDLINE} | {_NANP} | (?P<world> {_INTERNATIONAL} ) )
    """,
    re.VERBOSE,
)


def _kind(match: re.Match[str]) -> str | None:
    """Return the kind of a number; None if the match is not a personal number."""
    if match["id"]:
        return "id" if _is_identity(match) else None
    if PHONE in match[0]:
        return None
    digits = sum("0" <= character <= "9" for character in match[0])
    return "phone" if not match["world"] or 9 <= digits <= 15 else None  # noqa: PLR2004 - E.164


_OLD_WORD, _OLD_WINDOW = "身份证", 20
_WEIGHTS = tuple(2**power % 11 for power in range(17, 0, -1))


def _is_identity(match: re.Match[str]) -> bool:
    """Accept 18 digits with a valid date and check character, and 15 digits after _OLD_WORD.

    The check character is that of ISO 7064 MOD 11-2 (GB 11643-1999). The older form of 15 digits
    has no check character, and one in eighty random numbers has a valid date.
    """
    if match["old"]:
        near = match.string[max(0, match.start() - _OLD_WINDOW) : match.start()]
        return _OLD_WORD in near and _is_date("19" + match["old"])
    total = sum(int(digit) * weight for digit, weight in zip(match[0], _WEIGHTS, strict=False))
    return _is_date(match["born"]) and "10X98765432"[total % 11] == match[0][-1].upper()


def _is_date(digits: str) -> bool:
    try:
        date = datetime.date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
    except ValueError:
        return False
    return 1880 <= date.year < 2100  # noqa: PLR2004 - years of birth


class MaskStep(Step):
    """Replaces personal data in each prompt and text, and counts it by kind."""

    name = "mask"
    fields = MASKED

    def __call__(self, batch: pa.RecordBatch) -> FilterResult:
        """Mask the texts and add the counts; no row is dropped."""
        totals = np.zeros((len(KINDS), batch.num_rows), np.int32)
        for name in ("prompt", "text"):
            texts, counts = mask_texts(batch[name].to_pylist())
            batch = replace_texts(batch, name, texts, changed=np.array([*map(bool, counts)], bool))
            by_kind = [[count.get(kind, 0) for count in counts] for kind in KINDS]
            totals += np.array(by_kind, np.int32)
        for field, column in zip(MASKED, totals, strict=True):
            batch = batch.append_column(field.name, pa.array(column))
        return FilterResult(batch, no_reasons(batch))
