"""Guesses the encoding of text that is not UTF-8 from its first bytes."""

import codecs
from collections.abc import Mapping


def iconv(encoding: str) -> str:
    """Return the iconv command that converts text from an encoding named in this module."""
    return f"iconv -f {encoding.split(maxsplit=1)[0]} -t UTF-8 FILE > NEW"


_CHINESE = frozenset(
    "，。、的一是不在有人中了我他大上来來为為和国國地到以们們这這个個说說时時就也"
    "天今好年日多能都去看後后過过開开還还很起心學学生會会對对下"
)
_KANA = frozenset(map(chr, range(0x3041, 0x30FF)))
_HANGUL = frozenset("이다는에의을를가고하지은로도한기사어자리시나아있서들그인해수정대")
_ENCODINGS: Mapping[str, frozenset[str]] = {
    "GB18030 (GBK)": _CHINESE,
    "BIG5-HKSCS (Big5)": _CHINESE,
    "CP932 (Shift-JIS)": _KANA,
    "EUC-JP": _KANA,
    "CP949 (EUC-KR)": _HANGUL,
}
"""Encodings, each with characters that occur in nearly every text in that encoding. If bytes are
decoded with the wrong one of these encodings, the result is usually valid but consists of rare
characters. The first word of each key is the name that iconv and Python accept."""

_MIN_COMMON = 0.03
"""The minimum share of an encoding's frequent characters among the non-ASCII characters of a text
for the encoding to be named."""
_MIN_WIDE_BYTES = 16
_MIN_ZEROS = 0.02
"""The minimum share of zeros among the bytes at even or at odd offsets in UTF-16; ASCII characters
contain these zeros."""


def other_encoding(head: bytes) -> str | None:
    """Return the encoding of a text that is not UTF-8; None if the text is UTF-8 or unrecognised.

    Args:
        head: The first bytes of the text, which may end within a character.
    """
    # A few invalid bytes do not mean that the encoding is not UTF-8.
    foreign = [character for character in head.decode(errors="replace") if character > "\x7f"]
    if 2 * foreign.count("\ufffd") <= len(foreign):
        return None
    common = {encoding: _share_common(head, encoding) for encoding in _ENCODINGS}
    likely = max(common, key=lambda encoding: common[encoding])
    return likely if common[likely] >= _MIN_COMMON else None


def _share_common(head: bytes, encoding: str) -> float:
    """Return the share of frequent characters among non-ASCII characters; 0 if decoding fails."""
    codec, _, _ = encoding.partition(" ")
    try:
        text = codecs.getincrementaldecoder(codec)().decode(head)
    except UnicodeDecodeError:
        return 0.0
    foreign = [character for character in text if character > "\x7f"]
    return sum(each in _ENCODINGS[encoding] for each in foreign) / max(1, len(foreign))


def wide_encoding(head: bytes) -> str:
    """Return the encoding of a text in UTF-16 or UTF-32; "" if the text seems to be in neither."""
    for mark, encoding in _WIDE_MARKS.items():
        if head.startswith(mark):
            return encoding
    if len(head) < _MIN_WIDE_BYTES or 0 not in head:
        return ""
    whole = head[: len(head) // 4 * 4]
    for encoding in ("UTF-32LE", "UTF-32BE"):
        if _is_text(whole, encoding):
            return encoding
    even, odd = (2 * whole[start::2].count(0) / len(whole) for start in range(2))
    likely = "UTF-16BE" if even > odd else "UTF-16LE"
    return likely if max(even, odd) >= _MIN_ZEROS and _is_text(whole, likely) else ""


def _is_text(content: bytes, encoding: str) -> bool:
    """Return whether bytes are text in an encoding; the last character may be incomplete."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(content)
    except UnicodeDecodeError:
        return False
    return all(each.isprintable() or each.isspace() for each in text)


_WIDE_MARKS = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
