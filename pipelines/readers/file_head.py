"""The first bytes of a file: reading them, and saying what they show."""

import codecs

from pipelines.inputs.files import open_input, readable
from pipelines.readers.compressed import SUFFIXES, compression, is_compressed
from pipelines.readers.stream import stream_of, whole_file
from shards.errors import UserError

HEAD_BYTES = 64 << 10
"""How much of a file is looked at to tell its format; an array has to begin within it."""
BOM = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8."""

_MAGIC_BYTES = 4
_ARCHIVES = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
    b"Rar!": "rar",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"7z\xbc\xaf": "7z",
}
_ENDINGS = {codec: suffix for suffix, codec in SUFFIXES.items()}


def read_head(path: str) -> bytes:
    """Return the first HEAD_BYTES of a file, unpacked; fewer if its content ends before.

    Raises:
        UserError: It cannot be opened, or is not compressed although its name says so.
    """
    codec = compression(path)
    with open_input(path) as handle, readable(path):
        if codec is None:
            return handle.read(HEAD_BYTES)
        magic = handle.read(_MAGIC_BYTES)
        if not is_compressed(magic, codec):
            raise UserError(
                f"The input {path} is not a {codec} archive, though its name says so: it begins "
                f"with {magic!r}. Fetch it again, or give it a name that says what it is."
            )
        return stream_of(handle, whole_file(handle, path)).read(HEAD_BYTES)


def foreign_format(head: bytes) -> str | None:
    """Return, as part of a message, what a file is if it is not text in UTF-8; None if it may be.

    Args:
        head: Its first bytes.
    """
    for magic, archive in _ARCHIVES.items():
        if head.startswith(magic):
            ending = _ENDINGS.get(archive)
            remedy = f" or give its name the ending {ending}" if ending else ""
            return f"it is a {archive} archive, so unpack it first{remedy}"
    if head.startswith(b"PAR1"):
        return "it is a Parquet file, so give its name the ending .parquet"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "it is UTF-16, so convert it to UTF-8 first"
    return None


def foreign_text(head: bytes) -> str | None:
    """Return what foreign_format does, or that a file is text in another encoding.

    Args:
        head: Its first bytes.
    """
    foreign = foreign_format(head)
    if foreign is None and (encoding := other_encoding(head)):
        return f"it is not UTF-8 and reads as {encoding} does, so convert it first"
    return foreign


_ENCODINGS = ("GB18030 (GBK)", "BIG5-HKSCS (Big5)")
"""Encodings of Chinese text; the first word is the name that iconv and Python take."""
_COMMON = frozenset("，。、的一是不在有人中了我他大上来來为為和国國地到以们們这這个個说說时時就也")
"""Characters of which nearly every Chinese text, simplified or traditional, has some. The bytes of
one encoding mostly spell characters in the other, too, but rare ones."""


def other_encoding(head: bytes) -> str | None:
    """Return the encoding that Chinese text is in if it is not UTF-8; None where that is not known.

    Args:
        head: Its first bytes, which may end within a character.
    """
    # A few broken bytes in UTF-8 make no other encoding.
    foreign = [character for character in head.decode(errors="replace") if character > "\x7f"]
    if 2 * foreign.count("\ufffd") <= len(foreign):
        return None
    common = {encoding: _share_common(head, encoding) for encoding in _ENCODINGS}
    likely = max(common, key=lambda encoding: common[encoding])
    return likely if common[likely] >= 0 else None


def _share_common(head: bytes, encoding: str) -> float:
    """Return the share of common characters in Chinese text; -1 if it is not in this encoding."""
    codec, _, _ = encoding.partition(" ")
    try:
        text = codecs.getincrementaldecoder(codec)().decode(head)
    except UnicodeDecodeError:
        return -1
    foreign = [character for character in text if character > "\x7f"]
    chinese = sum("\u3000" <= each <= "\u9fff" or each > "\uff00" for each in foreign)
    if 2 * chinese <= len(foreign):
        return -1
    return sum(each in _COMMON for each in foreign) / len(foreign)


def excerpt(head: bytes) -> str:
    """Return the very first bytes as a message quotes them."""
    return repr(head[:40].decode(errors="replace"))
