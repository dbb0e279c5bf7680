import re

import ftfy
import pytest
from ftfy.badness import MOJIBAKE_CATEGORIES
from ftfy.fixes import unescape_html
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.steps.clean import (
    CONFIG,
    SEGMENT_CHARACTERS,
    clean,
    repair,
    without_controls,
)
from pipelines.steps.code_signs import holds_code
from tests.pipelines.steps.labelled_texts import CODE, MARKUP, PROSE, WHITESPACE

LABELLED = {**CODE, **MARKUP, **PROSE}
PLANE = "".join(map(chr, range(0x10000)))
MOJIBAKE = "".join(re.findall(f"[{''.join(MOJIBAKE_CATEGORIES.values())}]", PLANE))


def reference(text: str) -> str:
    lines = re.split("(?<=\n)", text)
    markup = next((number for number, line in enumerate(lines) if "<" in line), len(lines))
    prose = 0 if holds_code(text) else markup
    lines = [*map(unescape_html, lines[:prose]), *lines[prose:]]
    return ftfy.fix_text("".join(map(without_controls, lines)), CONFIG)


@pytest.mark.slow
def test_every_character_of_the_basic_plane() -> None:
    for character in PLANE:
        assert repair(character) == reference(character)
    # Many characters share a line, because ftfy would change the line if it changed any of them.
    rest = [character for character in PLANE if repair(character) == character != "\n"]
    assert len(rest) > 60_000
    for start in range(0, len(rest), 64):
        line = " x ".join(rest[start : start + 64])
        assert repair(line) == reference(line)


RARE = "\x00\x07\x1b[m\ud83d\ude00\u2028\ufeff"
awkward = st.text(st.sampled_from(MOJIBAKE + RARE + "abcXYZ012 .,?!;&#<>\n\r\t中文，。“”‘’"))
mojibake = st.builds(
    lambda text, codec: text.encode().decode(codec, errors="replace"),
    st.text(st.sampled_from("éüñçøß“”’–—中文。，жПø €₤☂"), max_size=8),
    st.sampled_from(["latin-1", "cp1252", "cp1251", "cp1250", "cp1253", "mac-roman", "cp437"]),
)
entities = st.sampled_from(
    ["&amp;", "&lt;", "&#x41;", "&#65;", "&eacute;", "&EACUTE;", "&amp;amp;", "<"]
)
plain = st.sampled_from(["word ", "字", "\n", "“", "”", " ", "é", "été"])


@settings(max_examples=400, deadline=None)
@given(st.lists(st.one_of(awkward, mojibake, entities, plain), max_size=12).map("".join))
def test_repair_is_ftfy(text: str) -> None:
    assert repair(text) == reference(text)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.integers(0, 40), st.lists(st.one_of(mojibake, entities), min_size=1, max_size=3))
def test_repair_is_ftfy_where_long_lines_are_cut(back: int, parts: list[str]) -> None:
    line = "é" * (SEGMENT_CHARACTERS - back) + "".join(parts) + "é"
    assert repair(line) == reference(line)


@pytest.mark.parametrize("name", LABELLED)
def test_code_and_markup_stay_whole_and_prose_is_repaired(name: str) -> None:
    text, cleaned = LABELLED[name]
    assert clean(text) == (text if cleaned is None else cleaned)
    assert clean(text, "none") == text


@pytest.mark.parametrize("name", WHITESPACE)
def test_white_space_alone_is_cleaned(name: str) -> None:
    text, cleaned = WHITESPACE[name]
    assert clean(text, "whitespace") == (text if cleaned is None else cleaned)
