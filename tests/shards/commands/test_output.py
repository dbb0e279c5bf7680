import io
import json
import logging
import re
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.commands.output import (
    MessageFormatter,
    json_text,
    message,
    print_lines,
    print_message,
    visible,
    visible_line,
)

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\n\tb", "a\n\tb"),
        ("\0\x1b[31m\r\x7f", "␀␛[31m␍␡"),
        ("10\b\b99", "10␈␈99"),
        ("\x9b31m\x90q", "‹U+009B›31m‹U+0090›q"),
        ("\u202eevil\u2066", "‹U+202E›evil‹U+2066›"),
        ("\x85\ufeff\ufffe\U0010ffff", "‹U+0085›‹U+FEFF›‹U+FFFE›‹U+10FFFF›"),
        ("a\u2028b\u2029", "a‹U+2028›b‹U+2029›"),
        ("a\u200bb\u2060c\xad", "a‹U+200B›b‹U+2060›c‹U+00AD›"),
        ("\ud83d \udce9t\udce9", "‹U+D83D› \\xe9t\\xe9"),
        ("a\U000e0041\U000e007f\U000e0080", "a‹U+E0041›‹U+E007F›\U000e0080"),
        ("中文 ｆｕｌｌ é e\u0301 😀 Ω ไทย", "中文 ｆｕｌｌ é e\u0301 😀 Ω ไทย"),
        # Characters that scripts and emoji need are kept.
        ("👩🏽\u200d🚀 ❤\ufe0f\u200d🔥 می\u200cخواهم 葛\U000e0100",) * 2,
        ("\u061c\u200b\u061c", "‹U+061C›‹U+200B›‹U+061C›"),
    ],
)
def test_what_acts_unseen_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible_line(text) == shown.replace("\n", "␊")


OF_SCRIPTS = {"\u200c", "\u200d"}


def is_hidden(character: str) -> bool:
    """Return whether Unicode classifies a character as a control, a separator or unassigned."""
    kind = unicodedata.category(character)
    has_glyph = "NUMBER" in (name := unicodedata.name(character, "")) or name.startswith(
        ("ARABIC", "SYRIAC", "KAITHI", "EGYPTIAN")
    )
    return kind in ("Cc", "Zl", "Zp", "Cs") or (
        kind == "Cf" and (not has_glyph or character == "\u061c")
    )


def test_nothing_that_unicode_hides_is_left_by_itself() -> None:
    every = [chr(code) for code in range(sys.maxunicode + 1)]
    hidden = [character for character in every if is_hidden(character)]
    assert len(hidden) > 2000
    left = [character for character in hidden if visible(character) == character]
    assert left == ["\t", "\n", *sorted(OF_SCRIPTS)]
    assert visible_line("".join(hidden)).encode().isascii() is False


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_is_shown_in_the_same_way_twice(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    assert shown.count("\n") == text.count("\n")
    assert {c for c in shown if is_hidden(c)} <= {"\n", "\t"} | OF_SCRIPTS
    shown.encode()


@given(st.recursive(st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_json_is_exact_and_visible(value: object) -> None:
    text = json_text(value)
    assert json.loads(text) == value
    assert visible_line(text) == text
    assert json_text("中文 é") == '"中文 é"'


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "gb18030", "utf-8"])
def test_json_is_json_in_any_encoding(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = io.BytesIO()
    stream = io.TextIOWrapper(printed, encoding=encoding, errors="backslashreplace")
    monkeypatch.setattr(sys, "stdout", stream)
    value = {"é": "中文 😀"}
    print_lines(json_text(value, indent=1, stream=stream).split("\n"))
    stream.flush()
    assert json.loads(printed.getvalue().decode("utf-8")) == value
    assert printed.getvalue().isascii() is (encoding != "utf-8")


def test_only_our_own_line_breaks_begin_lines() -> None:
    assert message("x\ncorpus: done\n") == "x␊corpus: done␊"
    assert message("lacks:\n  a\n  b") == "lacks:\n  a\n  b"


def test_what_is_told_and_printed_is_visible(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["x"])
    stream = io.StringIO()
    print_message("a\x1b", stream=stream, start="\r\033[K", end="")
    assert stream.getvalue() == "\r\033[Ka␛"
    assert print_lines(f"{c}\n" for c in "\x1b\x07") == 2
    print_message("x \x9b")
    assert capsys.readouterr() == ("␛␊\n␇␊\n", "x ‹U+009B›\n")


def test_log_lines_are_messages() -> None:
    record = logging.LogRecord("shards.a", 30, "", 0, "%s\nb", ("\x1b",), None)
    assert MessageFormatter().format(record) == "␛␊b"
    record.name = "library.a"
    assert MessageFormatter().format(record) == "␛\n  b"
    try:
        raise ValueError("\x1b")
    except ValueError:
        record.exc_info = sys.exc_info()
    lines = MessageFormatter().format(record).splitlines()
    assert lines[2].startswith("Traceback")
    assert lines[-1] == "ValueError: ␛"


WINGS = ("pipelines", "shards", "trainer")
WRITES = re.compile(
    r"\w+\.(?:print_exc|print_exception|basicConfig|StreamHandler|warn)\(|sys\.std\w+\.write"
)
"""Calls that write to the terminal, besides `print`, which lint rule T20 finds."""


def test_nothing_else_writes_to_the_terminal() -> None:
    files = [path for wing in WINGS for path in sorted((ROOT / wing).rglob("*.py"))]
    found = {
        path.relative_to(ROOT).as_posix(): calls
        for path in files
        if (calls := WRITES.findall(path.read_text("utf-8")))
    }
    assert found.pop("shards/commands/output.py")
    assert found == {
        "shards/commands/command.py": ["logging.StreamHandler(", "logging.basicConfig("]
    }
