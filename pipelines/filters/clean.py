"""Repairs of text: mojibake, HTML entities, control characters; nothing else is touched.

The rules are ftfy's, with the settings that datatrove and NeMo publish. ftfy looks at each line
several times, so it only gets the lines that it could change: those that hold one of a few
sequences (`_SUSPECT`) or an entity (`_ENTITY`), without which it changes nothing. Full-width
punctuation, curly quotes, ligatures, line breaks and ideographic spaces stay as they are: Chinese
and typeset English are written with them.
"""

import re
from collections.abc import Iterator

import ftfy
from ftfy.badness import MOJIBAKE_CATEGORIES
from ftfy.chardata import CONTROL_CHARS, HTML_ENTITY_RE

SEGMENT_CHARACTERS = 16_384
"""ftfy's work on nested entities is quadratic in the line, so longer lines are cut for it."""

CONFIG = ftfy.TextFixerConfig(
    unescape_html="auto",
    remove_terminal_escapes=True,
    fix_encoding=True,
    restore_byte_a0=True,
    replace_lossy_sequences=True,
    decode_inconsistent_utf8=True,
    fix_c1_controls=True,
    fix_surrogates=True,
    remove_control_chars=True,
    fix_latin_ligatures=False,
    fix_character_width=False,
    uncurl_quotes=False,
    fix_line_breaks=False,
    normalization=None,
    max_decode_length=SEGMENT_CHARACTERS,
    explain=False,
)
"""As set by datatrove's FTFYFormatter and NeMo's UnicodeReformatter."""

# Every alternative of ftfy.badness.BADNESS_RE needs one of these, and clean prose hardly ever has
# one: a character that is bad alone; a symbol beside any other character of mojibake; an accented
# letter (or a Cyrillic or Greek one of Windows-1251 and -1253 mojibake) beside a quotation mark or
# before an accented capital; an accented capital after a small letter.
_ANY = "".join(MOJIBAKE_CATEGORIES.values())
_CONTROL = re.escape("".join(map(chr, CONTROL_CHARS)))
_ALONE = MOJIBAKE_CATEGORIES["c1"] + "ÂÃŒœ\ud800-\udfff" + _CONTROL
_SYMBOL = "".join(MOJIBAKE_CATEGORIES[c] for c in ("bad", "law", "currency", "numeric", "box"))
_SYMBOL += "°ÎÐØÙЂ"
_SMALL = MOJIBAKE_CATEGORIES["lower_accented"]
_CAPITAL = MOJIBAKE_CATEGORIES["upper_accented"]
_QUOTE = MOJIBAKE_CATEGORIES["start_punctuation"] + MOJIBAKE_CATEGORIES["end_punctuation"]
_SUSPECT = re.compile(
    f"""
    [{_ALONE}{_SYMBOL}{_SMALL}{_CAPITAL}óВГРСΒΓΞΟ]
    (?:
        (?<=[{_ALONE}])
        | (?<=[{_SYMBOL}]) (?: (?=[{_ANY}]) | (?<=[{_ANY}].) )
        | (?=[{_QUOTE}{_CAPITAL}])
        | (?<=[{_QUOTE}].)
        | (?<=[{_SMALL}{MOJIBAKE_CATEGORIES["lower_common"]}][{_CAPITAL}])
    )
    """,
    re.DOTALL | re.VERBOSE,
)
_ENTITY = re.compile(HTML_ENTITY_RE.pattern)
# In ASCII text only control characters matter, and bytes find them faster than a pattern.
_ASCII_CONTROLS = bytes(code for code in CONTROL_CHARS if chr(code).isascii())


def repair(text: str) -> str:
    """Return what `ftfy.fix_text(text, CONFIG)` returns, at little cost for clean text."""
    if not _has_suspect(text) and _ENTITY.search(text) is None:
        return text
    # ftfy's "auto" unescapes entities up to the first line with a "<": the rest counts as markup.
    markup = text.find("<") if "<" in text else len(text)
    pieces: list[str] = []
    done = 0
    for start, end in _suspect_lines(text, markup):
        html = "auto" if start <= markup else False
        pieces += text[done:start], ftfy.fix_text(text[start:end], CONFIG, unescape_html=html)
        done = end
    pieces.append(text[done:])
    return "".join(pieces)


def _has_suspect(text: str) -> bool:
    if text.isascii():
        return len(text.encode("ascii").translate(None, _ASCII_CONTROLS)) < len(text)
    return _SUSPECT.search(text) is not None


def _suspect_lines(text: str, markup: int) -> Iterator[tuple[int, int]]:
    """Yield where each line that ftfy might change starts and ends, line break included."""
    suspect = _first(_SUSPECT, text, 0, len(text))
    entity = _first(_ENTITY, text, 0, markup)
    end = 0
    while min(suspect, entity) < len(text):
        start = text.rfind("\n", end, min(suspect, entity)) + 1 or end
        end = text.find("\n", min(suspect, entity)) + 1 or len(text)
        yield start, end
        if suspect < end:
            suspect = _first(_SUSPECT, text, end, len(text))
        if entity < end:
            entity = _first(_ENTITY, text, end, markup)


def _first(pattern: re.Pattern[str], text: str, start: int, end: int) -> int:
    hit = pattern.search(text, start, end)
    return len(text) if hit is None else hit.start()
