"""C4's rules as compiled loops; pipelines/quality/c4.py defines the metrics.

The lines that stay are written one after the other as code points, which become a string only
where they are not the text as it was.
"""

from functools import cache

import numpy as np

from pipelines.compiled import kernel
from pipelines.quality.c4 import JAVASCRIPT, LOREM_IPSUM, POLICIES
from pipelines.quality.compiled.lines import Codes, Kinds, Places, character_bits, matching, text_of
from pipelines.quality.profile import Bounds, Measure
from pipelines.quality.punctuation import TERMINAL
from pipelines.quality.words import MeasuredText, code_points

_SPACE, _BREAK, _DIGIT, _MARK, _CLOSING, _TERMINAL, _TRIGGER, _BRACE = 1, 2, 4, 8, 16, 32, 64, 128
_DOT, _QUESTION, _EXCLAMATION, _QUOTE, _APOSTROPHE, _OPEN, _CLOSE, _A, _Z, _SMALL_K = b".?!\"'[]AZk"
_LINE_FEED, _RETURN, _KELVIN = 0x0A, 0x0D, 0x212A
_TO_SMALL = 32
_HEAD = 4
_CITATIONS = np.array([[*b"[edit]".ljust(18, b"\0")], [*b"[citation needed]\0"]], np.uint32)

_TRIGGERS = "jkvpf"
"""A phrase is looked for where the first of these letters that it has stands."""
_LOREM_IPSUM, _JAVASCRIPT, _POLICY = 1, 2, 4
_RULES = ((_LOREM_IPSUM, LOREM_IPSUM), (_JAVASCRIPT, JAVASCRIPT), (_POLICY, POLICIES))


@cache
def _kinds() -> Kinds:
    """Return what the loops ask of characters."""
    spaces = matching(r"\s")
    return character_bits(
        spaces,
        (space for space in spaces if len(f"a{space}a".splitlines()) > 1),
        matching(r"\d"),
        ".?!",
        "\"'”’)]",
        TERMINAL,
        matching(f"(?i)[{_TRIGGERS}]"),
        "{",
    )


@cache
def _phrases() -> Codes:
    """Return a row for each phrase.

    Returns:
        uint32[phrases, 4 + characters]: the trigger, where it stands, the length, what is found
        with the phrase; then the phrase, filled up with 0.
    """
    phrases = [(finds, phrase) for finds, phrases in _RULES for phrase in phrases]
    rows = np.zeros((len(phrases), _HEAD + max(len(phrase) for _, phrase in phrases)), np.uint32)
    for row, (finds, phrase) in zip(rows, phrases, strict=True):
        trigger = next(letter for letter in _TRIGGERS if letter in phrase)
        row[:_HEAD] = ord(trigger), phrase.index(trigger), len(phrase), finds
        row[_HEAD : _HEAD + len(phrase)] = code_points(phrase)
    return rows


@kernel
def _small(code: int) -> int:
    """Return the small letter of A to Z and of the Kelvin sign, any other character as it is.

    Lower-casing makes an ASCII letter of nothing else but İ, of which it makes i and a dot above:
    neither begins nor ends a phrase.
    """
    if _A <= code <= _Z:
        return code + _TO_SMALL
    return _SMALL_K if code == _KELVIN else code


@kernel
def _find_phrases(codes: Codes, start: int, end: int, at: int, phrases: Codes) -> int:
    """Return what is found in a line with the phrases that have their trigger at a place."""
    found = 0
    code = _small(codes[at])
    for phrase in phrases:
        if phrase[0] != code:
            continue
        first, length = at - phrase[1], phrase[2]
        if first < start or first + length > end:
            continue
        same = 0
        while same < length and _small(codes[first + same]) == phrase[_HEAD + same]:
            same += 1
        if same == length:
            found |= phrase[3]
    return found


@kernel
def _citation_end(codes: Codes, at: int, end: int, kinds: Kinds) -> int:
    """Return where the citation ends that the bracket at a place begins; the place if none does."""
    after = at + 1
    while after < end and kinds[codes[after]] & _DIGIT:
        after += 1
    if after < end and codes[after] == _CLOSE:
        return after + 1
    for citation in _CITATIONS:
        same = 0
        while citation[same] and at + same < end and codes[at + same] == citation[same]:
            same += 1
        if not citation[same]:
            return at + same
    return at


@kernel
def _copy_line(
    codes: Codes,
    start: int,
    end: int,
    page: Codes,
    to: int,
    kinds: Kinds,
) -> int:
    """Copy a line without its citations to a place of the page; return where it ends there."""
    at = start
    while at < end:
        if codes[at] == _OPEN:
            after = _citation_end(codes, at, end, kinds)
            if after > at:
                at = after
                continue
        page[to] = codes[at]
        to += 1
        at += 1
    return to


@kernel
def _count_words(codes: Codes, start: int, end: int, kinds: Kinds) -> int:
    """Return the number of words between white space."""
    num_words, inside = 0, False
    for at in range(start, end):
        is_letter = kinds[codes[at]] & _SPACE == 0
        num_words += is_letter and not inside
        inside = is_letter
    return num_words


@kernel
def _longest_word(codes: Codes, start: int, end: int, kinds: Kinds) -> int:
    """Return the characters of the longest word between white space."""
    longest = 0
    word = start
    for at in range(start, end):
        if kinds[codes[at]] & _SPACE:
            word = at + 1
        longest = max(longest, at + 1 - word)
    return longest


@kernel
def _ends_well(codes: Codes, start: int, end: int, apostrophe: bool) -> bool:
    """Return whether a line ends in a mark that is no ellipsis."""
    if end == start:
        return False
    last = codes[end - 1]
    if last == _DOT:
        return end - start < 3 or codes[end - 2] != _DOT or codes[end - 3] != _DOT  # noqa: PLR2004
    return last in (_QUESTION, _EXCLAMATION, _QUOTE) or (apostrophe and last == _APOSTROPHE)


@kernel
def _read_line(
    codes: Codes,
    start: int,
    end: int,
    kinds: Kinds,
    phrases: Codes,
) -> tuple[int, bool, int, bool]:
    """Return what is found in a line.

    Returns:
        The kinds of phrases; whether there is a curly bracket; the sentences, by marks followed by
        white space or the end; whether characters follow on those that end a sentence.
    """
    found = num_sentences = 0
    brace = several = False
    # Where the last run of marks with what closes them, and of TERMINAL, ends.
    closed = ended = -1
    for at in range(start, end):
        kind = kinds[codes[at]]
        if kind & (_TRIGGER | _BRACE | _TERMINAL) == 0:
            continue
        if kind & _TRIGGER:
            found |= _find_phrases(codes, start, end, at, phrases)
        elif kind & _BRACE:
            brace = True
        else:  # all of _MARK are _TERMINAL too
            several |= 0 <= ended < at
            ended = at + 1
            if kind & _MARK and at >= closed:
                closed = at + 1
                while closed < end and kinds[codes[closed]] & _MARK:
                    closed += 1
                while closed < end and kinds[codes[closed]] & _CLOSING:
                    closed += 1
                num_sentences += closed == end or kinds[codes[closed]] & _SPACE > 0
    return found, brace, num_sentences, several or 0 <= ended < end


@kernel
def _keep_lines(  # noqa: C901, PLR0912, PLR0913, PLR0915, PLR0917  one pass over the lines
    codes: Codes,
    kinds: Kinds,
    phrases: Codes,
    page: Codes,
    several: Places,
    most_chars: float,
    least_words: float,
    terminal: bool,
    paper: bool,
) -> tuple[int, int, int, int, int, int]:
    """Write the lines that stay, joined by line feeds, and count what is in them.

    Args:
        codes: Code points of a text.
        kinds: See _kinds().
        phrases: See _phrases().
        page: Where the lines are written, uint32[len(codes)] or more.
        several: Where the range in `page` is written of each line that may have several sentences
            to spaCy, int64[len(codes) + 1, 2] or more.
        most_chars: Lines with a longer word are removed; NaN for none.
        least_words: Lines of fewer words are removed; NaN for none.
        terminal: Whether lines must end in a mark.
        paper: Read lines as @paper, or else as @datatrove.

    Returns:
        Characters of the page; its lines; those with several sentences to spaCy; sentences as the
        paper counts them; lines with "lorem ipsum"; lines with a curly bracket.
    """
    num_chars = num_lines = num_several = num_sentences = num_lorem_ipsum = num_braces = 0
    at = 0
    while at < len(codes):
        first = at
        num_words, inside = 0, False
        while at < len(codes):
            kind = kinds[codes[at]]
            if kind & _BREAK:
                break
            is_letter = kind & _SPACE == 0
            num_words += is_letter and not inside
            inside = is_letter
            at += 1
        last = at
        at += 1
        if at < len(codes) and codes[at] == _LINE_FEED and codes[at - 1] == _RETURN:
            at += 1
        if num_words and last - first > most_chars < _longest_word(codes, first, last, kinds):
            continue
        while first < last and kinds[codes[first]] & _SPACE:
            first += 1
        while first < last and kinds[codes[last - 1]] & _SPACE:
            last -= 1
        start = num_chars + 1 if num_lines else 0
        end = _copy_line(codes, first, last, page, start, kinds)
        if paper and end - start < last - first:
            num_words = _count_words(page, start, end, kinds)
        if num_words < least_words:
            continue
        if terminal and not _ends_well(page, start, end, not paper):
            continue
        found, brace, sentences, is_several = _read_line(page, start, end, kinds, phrases)
        num_lorem_ipsum += found & _LOREM_IPSUM > 0
        if found & _JAVASCRIPT:
            continue
        num_braces += brace
        if found & _POLICY:
            continue
        if num_lines:
            page[num_chars] = _LINE_FEED
        num_chars = end
        num_lines += 1
        num_sentences += max(1, sentences)
        if is_several:
            several[num_several, 0], several[num_several, 1] = start, end
            num_several += 1
    return num_chars, num_lines, num_several, num_sentences, num_lorem_ipsum, num_braces


def measure_lines(*, paper: bool) -> Measure:
    """Return the measure of @paper, or of the others."""

    def measure(text: MeasuredText, bounds: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
        codes = text.codes
        page = np.empty(len(codes), np.uint32)
        several = np.empty((len(codes) + 1, 2), np.int64)
        num_chars, num_lines, num_several, num_sentences, lorem_ipsum, braces = _keep_lines(
            codes,
            _kinds(),
            _phrases(),
            page,
            several,
            float(bounds["max_word_chars"]),
            float(bounds["min_line_words"]),
            bounds["terminal_punctuation"] > 0,
            paper,
        )
        same = num_chars == len(codes) and np.array_equal(page, codes)
        lines = text.text if same else text_of(page[:num_chars])
        if not paper:
            parts = [lines[start:end] for start, end in several[:num_several].tolist()]
            num_sentences = num_lines - num_several + text.splitters.num_sentences(parts)
        kept = lines.strip()
        return (
            text if kept == text.text else text.replaced(kept),
            (num_sentences, lorem_ipsum, braces),
        )

    return measure
