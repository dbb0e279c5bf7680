"""How all that a person reads leaves this program: on a terminal, in log lines, on a page.

    a line or table on the standard output    print_line, print_lines
    a line of it that names a command         print_note
    a text that was asked for                 print_lines, a line of it at a time; PartPrinter
    an error, a warning, progress             tell, MessageFormatter
    the page of a report                      visible
    JSON for programs                         json_text, exact

Texts, names and paths come from anywhere, and terminals obey what is in them. So everything passes
`visible`, which puts signs in place of what would act unseen; messages pass `masked` as well, which
leaves out secrets. Nothing else writes to the standard output or the standard error.
"""

import codecs
import io
import json
import logging
import re
import sys
import threading
import traceback
import warnings
from collections.abc import Iterable
from types import TracebackType
from typing import Any, TextIO

from shards.program import called
from shards.secrets import masked

_C0 = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"}
_BYTES = range(0xDC80, 0xDD00)
"""What Python makes of a byte of a name that is not UTF-8."""
_HIDDEN = {
    *range(0x80, 0xA0),  # C1 controls
    0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x2070),  # change the direction
    0x2028, 0x2029,  # break lines
    0xAD, 0x034F, 0x180E, *range(0x2060, 0x2066), 0xFEFF, *range(0xFFF9, 0xFFFC),  # not seen
    0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0,
    *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B),
    *range(0xD800, 0xE000),  # no characters
    *range(0xFDD0, 0xFDF0), *(plane << 16 | low for plane in range(17) for low in (0xFFFE, 0xFFFF)),
}  # fmt: skip
_SIGNS = {
    **_C0,
    0x7F: "\u2421",
    **{code: f"\u2039U+{code:04X}\u203a" for code in _HIDDEN},
    **{code: f"\\x{code & 0xFF:02x}" for code in _BYTES},
}

# Some unseen characters belong to a script or an emoji, and act only there.
_EMOJI = "\u2190-\u2bff\U0001f000-\U0001faff"
# Arabic to Myanmar, Khmer, Mongolian.
_JOINING = "\u0620-\u109f\u1780-\u180d\u180f-\u18af"  # Arabic to Myanmar, Khmer, …
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_IN_CONTEXT = re.compile(
    rf"(?:(?<=[{_EMOJI}\ufe0f])\u200d(?=[{_EMOJI}])"
    rf"|(?<=[{_JOINING}])[\u200b-\u200d](?=[{_JOINING}])"
    rf"|(?<=[^\s{_SELECTORS}])[{_SELECTORS}]"
    r"|(?<=\U0001f3f4)[\U000e0030-\U000e007a]{3,6}\U000e007f)"  # the flags of England and others
    rf"|([\u200b-\u200d{_SELECTORS}\U000e0000-\U000e007f])"
)

_JSON = {
    code: json.dumps(chr(code))[1:-1]
    for code in (
        *_SIGNS.keys() - range(0x20),  # no JSON has these as they are, but between its values
        *range(0x200B, 0x200E), *range(0xFE00, 0xFE10), *range(0xE0000, 0xE01F0),
    )
}  # fmt: skip

_OWN_LOGS = ("corpusmill", "pipelines", "shards", "trainer")
"""Whose messages are on one line; a line break there is part of a name."""

_BREAK = re.compile("\n(?!  )")


def visible(text: str) -> str:
    """Return a text with signs in place of what would act unseen.

    That is: controls, escape sequences, changes of direction, separators of lines, characters
    without width, bytes that are no UTF-8, surrogates. Line breaks and tabs stay, and so does what
    a script or an emoji needs. No sign means anything in HTML.
    """
    if text.isascii():
        return text.translate(_SIGNS)
    return _IN_CONTEXT.sub(_sign_out_of_context, text).translate(_SIGNS)


def visible_line(text: str) -> str:
    """Return a text as `visible` does, on one line."""
    return visible(text).replace("\n", "\u240a")


def message(text: str) -> str:
    """Return an error, a warning or a note as it is shown: visible, without secrets.

    Commands in it are named as they are called here.
    Its own line breaks are followed by two spaces; any other one is shown as a sign, so that no
    name can look like a further message.
    """
    return _BREAK.sub("\u240a", visible(masked(called(text))))


def print_line(line: str = "", *, flush: bool = False) -> None:
    """Print a line on the standard output."""
    print_lines([line])
    if flush:
        sys.stdout.flush()


def print_lines(lines: Iterable[str]) -> int:
    """Print lines as they come, and return how many there were."""
    num_lines = 0
    for line in lines:
        sys.stdout.write(f"{visible_line(line)}\n")
        num_lines += 1
    return num_lines


def print_note(line: str) -> None:
    """Print a line of our own words, with commands as they are called here."""
    print_line(called(line))


class PartPrinter:
    """Prints a text on the standard output in parts, each at once; its line breaks stay.

    What is printed is what `visible` makes of the whole, if no part ends with a character without
    width whose sign depends on the next one: U+200B to U+200D, or a tag.
    """

    def __init__(self) -> None:
        self._before = ""

    def add(self, text: str) -> None:
        """Print the next part."""
        shown = visible(self._before + text)
        sys.stdout.write(shown[len(visible(self._before)) :])
        sys.stdout.flush()
        # No sign depends on more than one character before it.
        self._before = (self._before + text)[-1:]


def tell(text: str, *, stream: TextIO | None = None, start: str = "", end: str = "\n") -> None:
    """Write a message at once.

    Args:
        text: The message.
        stream: Where to; the standard error by default.
        start: Written before it as it is, such as what returns to the start of a line.
        end: Written after it.
    """
    stream = stream or sys.stderr
    stream.write(f"{start}{message(text)}{end}")
    stream.flush()


class MessageFormatter(logging.Formatter):
    """Makes lines of a log, of our own messages and of those of libraries."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the message of a record; what a library says keeps its lines, below the first."""
        text = super().format(record)
        if record.exc_info or record.stack_info:
            return visible(masked(text))
        if record.name.partition(".")[0] in _OWN_LOGS:
            return message(text)
        return visible(masked(text.rstrip("\n"))).replace("\n", "\n  ")


def json_text(value: Any, *, indent: int | None = None, stream: TextIO | None = None) -> str:
    """Return a value as JSON that is exact, and shows nothing but visible characters.

    Args:
        value: The value.
        indent: Spaces before what is within something; all on one line if None.
        stream: Where it is printed; JSON is UTF-8, so in another encoding it is all ASCII.
    """
    encoding = (stream and stream.encoding) or "utf-8"
    is_utf8 = codecs.lookup(encoding).name == "utf-8"
    return json.dumps(value, ensure_ascii=not is_utf8, indent=indent).translate(_JSON)


def guard() -> None:
    """Make what Python itself writes pass as well: tracebacks, warnings, logs without a handler.

    What the encoding of the standard output lacks is spelt out instead of ending the command.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _show_traceback
    if threading.excepthook is threading.__excepthook__:
        threading.excepthook = _show_threads_traceback
    warnings.showwarning = _show_warning
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(MessageFormatter())


def _show_traceback(
    kind: type[BaseException], error: BaseException, frames: TracebackType | None
) -> None:
    text = "".join(traceback.format_exception(kind, error, frames))
    sys.stderr.write(visible(masked(text)))


def _show_threads_traceback(arguments: threading.ExceptHookArgs) -> None:
    if arguments.exc_type is not SystemExit and arguments.exc_value is not None:
        _show_traceback(arguments.exc_type, arguments.exc_value, arguments.exc_traceback)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    shown = warnings.formatwarning(message, category, filename, lineno, line)
    (file or sys.stderr).write(visible(masked(shown)))


def _sign_out_of_context(match: re.Match[str]) -> str:
    return match[0] if match[1] is None else f"\u2039U+{ord(match[1]):04X}\u203a"
