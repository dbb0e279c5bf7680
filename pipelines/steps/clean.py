"""Repairs mojibake, HTML entities and control characters in texts, and changes nothing else.

The rules are ftfy's, with the settings that datatrove and NeMo publish. ftfy reads each line
several times, so it only gets the lines that it may change: those with one of a few sequences
(`_SUSPECT`) or an entity (`_ENTITY`). Full-width punctuation, curly quotes, ligatures, line breaks
and ideographic spaces are kept, since Chinese and typeset English are written with them.
"""

import itertools
import re
from collections.abc import Iterator, Sequence

import ftfy
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from ftfy.badness import MOJIBAKE_CATEGORIES
from ftfy.chardata import CONTROL_CHARS, HTML_ENTITY_RE
from ftfy.fixes import remove_control_chars, unescape_html

from pipelines.corpus.clean_level import REPAIR, WHITESPACE
from pipelines.segments.rows import CLEAN, FilterResult, utf8
from pipelines.steps.code_signs import holds_code
from pipelines.steps.step import Step, reasons_where

EMPTY = "empty"

SEGMENT_CHARACTERS = 16_384
"""Longer lines are repaired in parts of this length."""

CONFIG = ftfy.TextFixerConfig(
    unescape_html=False,
    remove_terminal_escapes=False,
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
"""The settings of datatrove's FTFYFormatter and NeMo's UnicodeReformatter, except that entities and
escape sequences are replaced by this module."""

# Every alternative of ftfy.badness.BADNESS_RE needs one of the following, which clean prose rarely
# has: a character that is bad alone; a symbol next to any other character of mojibake; an accented
# letter (or a Cyrillic or Greek one of Windows-1251 and -1253 mojibake) next to a quotation mark or
# before an accented capital; an accented capital after a small letter.
_ANY = "".join(MOJIBAKE_CATEGORIES.values())
_CONTROL = re.escape("".join(map(chr, CONTROL_CHARS)))
_ALONE = MOJIBAKE_CATEGORIES["c1"] + "ÂÃŒœ\ud800-\udfff" + _CONTROL
_SYMBOL = "".join(MOJIBAKE_CATEGORIES[c] for c in ("bad", "law", "currency", "numeric", "box"))
_SYMBOL += "°ÎÐØÙЂ"
_SMALL = MOJIBAKE_CATEGORIES["lower_accented"]
_CAPITAL = MOJIBAKE_CATEGORIES["upper_accented"]
_QUOTE = MOJIBAKE_CATEGORIES["start_punctuation"] + MOJIBAKE_CATEGORIES["end_punctuation"]
_FIRST = f"{_ALONE}{_SYMBOL}{_SMALL}{_CAPITAL}óВГРСΒΓΞΟ"
_SUSPECT = re.compile(
    f"""
    [{_FIRST}]
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
# In ASCII text only control characters matter; searching bytes is faster than a pattern.
_ASCII_CONTROLS = bytes(code for code in CONTROL_CHARS if chr(code).isascii())
_CONTROLS = re.compile(f"[{_CONTROL}]")

_ESCAPES = re.compile(
    r"""(?: \x1b (?: \[ [?]? [0-9;]* [A-Za-z]            # colours, places of the cursor
                   | \] [^\x07\x1b\n]* (?:\x07|\x1b\\)  # titles, links
                   | [ -/]+ [0-~] ) )+""",
    re.VERBOSE,
)
"""Control sequences of terminals (ECMA-48)."""
_SEPARATORS = {0x0B: "\n", 0x1C: " ", 0x1D: " ", 0x1E: " ", 0x1F: " "}
"""Replacements of control characters that separate words or lines."""


def clean(text: str, level: str = REPAIR) -> str:
    """Return a text cleaned at one of the LEVELS."""
    if level == REPAIR:
        return repair(text)
    return without_controls(text) if level == WHITESPACE else text


def without_controls(text: str) -> str:
    """Return a text without control characters and escape sequences of terminals.

    White space replaces those that are between words; tabs, line breaks and form feeds are kept.
    """
    if not _has(_CONTROLS, text):
        return text
    text = _ESCAPES.sub(_gap, text).translate(_SEPARATORS)
    return remove_control_chars(text)


def _gap(escapes: re.Match[str]) -> str:
    """Return the replacement of escape sequences: a space between words, "" elsewhere."""
    text, start, end = escapes.string, escapes.start(), escapes.end()
    return " " if text[start - 1 : start].isalnum() and text[end : end + 1].isalnum() else ""


def repair(text: str) -> str:
    """Return a text with mojibake, entities and control characters repaired.

    Entities are unescaped once, and only in prose, which ends before the first "<" of a text that
    contains neither code nor markup.
    """
    prose = _end_of_prose(text) if "&" in text else 0
    if not (prose or _has(_SUSPECT, text)):
        return text
    pieces: list[str] = []
    done = 0
    for start, end in _suspect_lines(text, prose):
        line = text[start:end]
        if end <= prose:
            line = unescape_html(line)
        pieces += text[done:start], ftfy.fix_text(without_controls(line), CONFIG)
        done = end
    pieces.append(text[done:])
    return "".join(pieces)


def _end_of_prose(text: str) -> int:
    """Return where the part of a text with entities to unescape ends; 0 if there is none."""
    end = text.find("<") if "<" in text else len(text)
    entity = _first(_ENTITY, text, 0, end)
    return end if entity < end and not holds_code(text) else 0


def cleaned(texts: pa.Array, levels: Sequence[str] | None = None) -> tuple[pa.Array, np.ndarray]:
    """Return a column of large_string after cleaning, and which texts have changed (bool[n]).

    Args:
        texts: The column.
        levels: The level of each text; None means REPAIR for all.
    """
    before = texts.to_pylist()
    after = list(map(clean, before, levels)) if levels else list(map(repair, before))
    changed = np.array(
        [old is not new and old != new for old, new in zip(before, after, strict=True)], bool
    )
    if not changed.any():
        return texts, changed
    new = pa.array([*itertools.compress(after, changed)], pa.large_string())
    return pc.replace_with_mask(texts, pa.array(changed), new), changed


def are_blank(texts: pa.Array) -> np.ndarray:
    """Return which texts of a column of large_string are empty or white space (bool[n])."""
    data, offsets = utf8(texts)
    starts, ends = offsets[:-1], offsets[1:]
    blank: np.ndarray = starts == ends
    begun = np.flatnonzero(~blank)
    begun = begun[_SPACE_STARTS[data[starts[begun]]]]
    blank[begun] = [text.isspace() for text in texts.take(pa.array(begun)).to_pylist()]
    return blank


_SPACE_STARTS = np.zeros(256, bool)
_SPACE_STARTS[[chr(code).encode()[0] for code in range(0xD800) if chr(code).isspace()]] = True


def _has(pattern: re.Pattern[str], text: str) -> bool:
    """Return whether a text has a match; in ASCII, both patterns match only control characters."""
    if text.isascii():
        return len(text.encode("ascii").translate(None, _ASCII_CONTROLS)) < len(text)
    return pattern.search(text) is not None


def _suspect_lines(text: str, prose: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each line that ftfy may change, including its line break."""
    suspect = _first(_SUSPECT, text, 0, len(text))
    entity = _first(_ENTITY, text, 0, prose)
    end = 0
    while min(suspect, entity) < len(text):
        start = text.rfind("\n", end, min(suspect, entity)) + 1 or end
        end = text.find("\n", min(suspect, entity)) + 1 or len(text)
        yield start, end
        if suspect < end:
            suspect = _first(_SUSPECT, text, end, len(text))
        if entity < end:
            entity = _first(_ENTITY, text, end, prose)


def _first(pattern: re.Pattern[str], text: str, start: int, end: int) -> int:
    hit = pattern.search(text, start, end)
    return len(text) if hit is None else hit.start()


class CleanStep(Step):
    """Cleans each text and marks the texts that have changed; drops empty texts."""

    name = "clean"
    reasons = (EMPTY,)
    adds = ("repaired",)

    def __init__(self, level: str = "") -> None:
        """Make the step.

        Args:
            level: One of LEVELS for all texts; "" for the column CLEAN, or REPAIR if it is missing.
        """
        self._level = level

    def __call__(self, batch: pa.RecordBatch) -> FilterResult:
        """Clean the texts, add `repaired`, and drop empty texts."""
        levels = [self._level] * batch.num_rows if self._level else None
        if CLEAN.name in batch.schema.names:
            levels = levels or batch[CLEAN.name].to_pylist()
            batch = batch.drop_columns([CLEAN.name])
        batch, changed = _with_cleaned(batch, "text", levels)
        if pc.any(pc.not_equal(batch["prompt"], "")).as_py():
            batch, also = _with_cleaned(batch, "prompt", levels)
            changed = changed | also
        batch = batch.append_column("repaired", pa.array(changed))
        return FilterResult(batch, reasons_where(are_blank(batch["text"]), EMPTY))


def _with_cleaned(
    batch: pa.RecordBatch, name: str, levels: Sequence[str] | None
) -> tuple[pa.RecordBatch, np.ndarray]:
    """Return the batch with a cleaned column of text, and which rows have changed."""
    column, changed = cleaned(batch[name], levels)
    return batch.set_column(batch.schema.get_field_index(name), name, column), changed
