"""Writes all output: on a terminal, in log lines, on a page, or as JSON.

    a line or table on the standard output    print_line, print_lines
    an error, a warning                       print_message, MessageFormatter
    a line that changes on a terminal         replace_line
    the page of a report                      visible
    JSON for programs                         json_text, exact

Texts, names and paths are untrusted, and terminals obey control characters in them. So all output
passes through `visible`, which replaces invisible characters with signs. No other module writes to
the standard output or the standard error.
"""

import codecs
import json
import logging
import re
import sys
from collections.abc import Iterable
from typing import Any, TextIO

_BYTES = range(0xDC80, 0xDD00)
"""The characters that Python uses for bytes of file names that are not UTF-8."""
_HIDDEN = {
    *range(0x80, 0xA0),  # C1 controls
    0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x2070),  # change the direction
    0x2028, 0x2029,  # break lines
    0xAD, 0x034F, 0x180E, 0x200B, *range(0x2060, 0x2066), 0xFEFF, *range(0xFFF9, 0xFFFC),
    0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0,
    *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B),  # invisible
    *range(0xE0000, 0xE0080),  # tags
    *range(0xD800, 0xE000),  # surrogates
    *range(0xFDD0, 0xFDF0), *(plane << 16 | low for plane in range(17) for low in (0xFFFE, 0xFFFF)),
}  # fmt: skip
"""Invisible characters, except joiners and variation selectors, which some scripts need."""
_SIGNS = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"},
    0x7F: "\u2421",
    **{code: f"\u2039U+{code:04X}\u203a" for code in _HIDDEN},
    **{code: f"\\x{code & 0xFF:02x}" for code in _BYTES},
}
# JSON contains unescaped controls only between its values.
_JSON = {code: json.dumps(chr(code))[1:-1] for code in _SIGNS.keys() - range(0x20)}

_OWN_LOGS = ("corpusmill", "pipelines", "shards", "trainer")
"""Loggers whose messages fit on one line; a line break in such a message is part of a name."""

_START_OF_LINE = "\r\033[K"
_changing: list[TextIO] = []
"""The terminal whose last line may be replaced, if there is one."""

_BREAK = re.compile("\n(?!  )")


def quantity(number: int, noun: str) -> str:
    """Return a number with its noun, which takes an s in the plural: "1 file", "2,000 files"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def visible(text: str) -> str:
    """Return a text whose invisible characters are replaced with signs.

    These are controls, escape sequences, changes of direction, line separators, characters of zero
    width, bytes that are not UTF-8, and surrogates. Line breaks and tabs stay. No sign has a
    special meaning in HTML.
    """
    return text.translate(_SIGNS)


def visible_line(text: str) -> str:
    """Return the visible form of a text, on one line."""
    return visible(text).replace("\n", "\u240a")


def message(text: str) -> str:
    """Return the visible form of an error, a warning or a note.

    Line breaks of the message are followed by two spaces; those within names are shown as signs, so
    that no name can imitate another message.
    """
    return _BREAK.sub("\u240a", visible(text))


def print_line(line: str = "", *, flush: bool = False) -> None:
    """Print a line on the standard output."""
    print_lines([line])
    if flush:
        sys.stdout.flush()


def print_lines(lines: Iterable[str]) -> int:
    """Print lines one by one, and return their number."""
    num_lines = 0
    for line in lines:
        _erase_line()
        sys.stdout.write(f"{visible_line(line)}\n")
        num_lines += 1
    return num_lines


def print_message(
    text: str, *, stream: TextIO | None = None, start: str = "", end: str = "\n"
) -> None:
    """Write a message and flush the stream.

    Args:
        text: The message.
        stream: The output stream; the standard error by default.
        start: Text written unchanged before the message.
        end: Text written after the message.
    """
    _erase_line()
    stream = stream or sys.stderr
    stream.write(f"{start}{message(text)}{end}")
    stream.flush()


def replace_line(text: str, *, stream: TextIO, end: str = "") -> None:
    """Replace the last line of a terminal with a message, until anything else is printed.

    Args:
        text: The message.
        stream: The terminal.
        end: A line break, if the message is to stay.
    """
    stream.write(f"{_START_OF_LINE}{message(text)}{end}")
    stream.flush()
    _changing[:] = [] if end else [stream]


def _erase_line() -> None:
    """Erase the line of progress that a terminal shows, if there is one."""
    while _changing:
        stream = _changing.pop()
        stream.write(_START_OF_LINE)
        stream.flush()


class MessageFormatter(logging.Formatter):
    """Formats log records of our packages and of libraries."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the message of a record; a library's message keeps its line breaks."""
        text = super().format(record)
        if record.exc_info or record.stack_info:
            return visible(text)
        if record.name.partition(".")[0] in _OWN_LOGS:
            return message(text)
        return visible(text.rstrip("\n")).replace("\n", "\n  ")


def json_text(value: Any, *, indent: int | None = None, stream: TextIO | None = None) -> str:
    """Return a value as exact JSON with visible characters only.

    Args:
        value: The value.
        indent: The number of spaces per level; None puts everything on one line.
        stream: The stream that will print the JSON; if it is not UTF-8, the JSON is all ASCII.
    """
    encoding = (stream and stream.encoding) or "utf-8"
    is_utf8 = codecs.lookup(encoding).name == "utf-8"
    return json.dumps(value, ensure_ascii=not is_utf8, indent=indent).translate(_JSON)
