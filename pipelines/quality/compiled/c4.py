"""C4's rules as compiled loops; pipelines/quality/c4.py defines the metrics.

The lines that stay are written one after the other as code points, which become a string only
where they are not the text as it was.
"""

from functools import cache

import numpy as np
import numpy.typing as npt

from pipelines.compiled import kernel
from pipelines.quality.c4 import JAVASCRIPT, LOREM_IPSUM, POLICIES
from pipelines.quality.compiled.lines import Codes, Kinds, Places, character_bits, matching, text_of
from pipelines.quality.profile import Bounds, Measure
from pipelines.quality.punctuation import TERMINAL
from pipelines.quality.spans import code_points
from pipelines.quality.words import MeasuredText

_NEXT = 21  # bits of a code point
_SPACE, _BREAK, _DIGIT, _MARK, _CLOSING, _TERMINAL, _TRIGGER, _BRACKET = 1, 2, 4, 8, 16, 32, 64, 128
_DOT, _QUESTION, _EXCLAMATION, _QUOTE, _APOSTROPHE, _OPEN, _CLOSE, _A, _Z, _SMALL_K = b".?!\"'[]AZk"
_SPOT = _BREAK | _TRIGGER | _BRACKET | _TERMINAL
_LINE_FEED, _RETURN, _KELVIN = 0x0A, 0x0D, 0x212A
_TO_SMALL = 32
_HEAD = 4
_CITATIONS = np.array([[*b"[edit]".ljust(18, b"\0")], [*b"[citation needed]\0"]], np.uint32)

Spots = npt.NDArray[np.int32]

_TRIGGERS = "jkvm"
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
        "{[",
    )


@cache
def _phrases() -> Codes:
    """Return a row for each phrase.

    Returns:
        uint32[phrases, 4 + characters]: the trigger and the character after it, where it stands,
        the length, what is found with the phrase; then the phrase, filled up with 0.
    """
    phrases = [(finds, phrase) for finds, phrases in _RULES for phrase in phrases]
    rows = np.zeros((len(phrases), _HEAD + max(len(phrase) for _, phrase in phrases)), np.uint32)
    for row, (finds, phrase) in zip(rows, phrases, strict=True):
        at = phrase.index(next(letter for letter in _TRIGGERS if letter in phrase))
        pair = ord(phrase[at]) << _NEXT | ord(phrase[at + 1])
        row[:_HEAD] = pair, at, len(phrase), finds
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
def _find_phrases(codes: Codes, first: int, last: int, at: int, phrases: Codes) -> int:
    """Return what is found in a range with the phrases that have their trigger at a place."""
    if at + 1 == last:
        return 0
    found = 0
    pair = _small(codes[at]) << _NEXT | _small(codes[at + 1])
    for index in range(len(phrases)):
        if phrases[index, 0] != pair:
            continue
        start, length = at - phrases[index, 1], phrases[index, 2]
        if start < first or start + length > last:
            continue
        same = 0
        while same < length and _small(codes[start + same]) == phrases[index, _HEAD + same]:
            same += 1
        if same == length:
            found |= phrases[index, 3]
    return found


@kernel
def _citation_end(codes: Codes, at: int, last: int, kinds: Kinds) -> int:
    """Return where the citation ends that the bracket at a place begins; the place if none does."""
    after = at + 1
    while after < last and kinds[codes[after]] & _DIGIT:
        after += 1
    if after < last and codes[after] == _CLOSE:
        return after + 1
    for citation in _CITATIONS:
        same = 0
        while citation[same] and at + same < last and codes[at + same] == citation[same]:
            same += 1
        if not citation[same]:
            return at + same
    return at


@kernel
def _copy(codes: Codes, first: int, last: int, page: Codes, to: int) -> int:
    """Copy a line to a place of the page; return where it ends there."""
    line, place = codes[first:last], page[to : to + last - first]
    for at in range(len(line)):
        place[at] = line[at]
    return to + len(line)


@kernel
def _copy_uncited(codes: Codes, first: int, last: int, page: Codes, to: int, kinds: Kinds) -> int:
    """Copy a line without its citations."""
    at = first
    while at < last:
        if codes[at] == _OPEN:
            after = _citation_end(codes, at, last, kinds)
            if after > at:
                at = after
                continue
        page[to] = codes[at]
        to += 1
        at += 1
    return to


@kernel
def _mark(codes: Codes, kinds: Kinds, marks: Kinds, spots: Spots, offset: int) -> int:
    """Write what characters are, and where those are that have to be looked at; return how many.

    The offset is added to their places.
    """
    num_spots = 0
    for at in range(len(codes)):
        mark = kinds[codes[at]]
        marks[at] = mark
        # No branch: nobody could guess when it is taken.
        spots[num_spots] = offset + at
        num_spots += mark & _SPOT != 0
    return num_spots


@kernel
def _count_words(marks: Kinds, first: int, last: int) -> int:
    """Return the number of words between white space."""
    # Indices of a slice that count up from 0 are known not to be negative, which saves much.
    line = marks[first:last]
    num_words, before = 0, _SPACE
    for at in range(len(line)):
        num_words += before & ~line[at] & _SPACE
        before = line[at]
    return num_words


@kernel
def _longest_word(marks: Kinds, first: int, last: int) -> int:
    """Return the characters of the longest word between white space."""
    longest = 0
    for at in range(first, last):
        if marks[at] & _SPACE:
            first = at + 1
        longest = max(longest, at + 1 - first)
    return longest


@kernel
def _is_same(codes: Codes, page: Codes) -> bool:
    """Return whether the page is the text."""
    for at in range(len(codes)):  # noqa: SIM110  no generators in compiled code
        if codes[at] != page[at]:
            return False
    return True


@kernel
def _ends_well(codes: Codes, first: int, last: int, apostrophe: bool) -> bool:
    """Return whether a line ends in a mark that is no ellipsis."""
    if first == last:
        return False
    end = codes[last - 1]
    if end == _DOT:
        return last - first < 3 or codes[last - 2] != _DOT or codes[last - 3] != _DOT  # noqa: PLR2004
    return end in (_QUESTION, _EXCLAMATION, _QUOTE) or (apostrophe and end == _APOSTROPHE)


@kernel
def _read_line(  # noqa: PLR0913, PLR0917  a line in three arrays
    page: Codes,
    shift: int,
    marks: Kinds,
    first: int,
    last: int,
    spots: Spots,
    phrases: Codes,
) -> tuple[int, bool, int, bool]:
    """Return what is found in a line.

    Args:
        page: Has its code points.
        shift: Which are so much further on than its marks.
        marks: What the characters are.
        first: Where its marks begin.
        last: Where they end.
        spots: Places among its marks, of characters that have to be looked at.
        phrases: See _phrases().

    Returns:
        The kinds of phrases; whether there is a curly bracket; the sentences, by marks followed by
        white space or the end; whether characters follow on those that end a sentence.
    """
    found = num_sentences = 0
    brace = several = False
    # Where the last run of marks with what closes them, and of TERMINAL, ends.
    closed = ended = -1
    for at in spots:
        mark = marks[at]
        if mark & _TRIGGER:
            found |= _find_phrases(page, first + shift, last + shift, at + shift, phrases)
        elif mark & _BRACKET:
            brace |= page[at + shift] != _OPEN
        else:  # all of _MARK are _TERMINAL too
            several |= 0 <= ended < at
            ended = at + 1
            if mark & _MARK and at >= closed:
                closed = at + 1
                while closed < last and marks[closed] & _MARK:
                    closed += 1
                while closed < last and marks[closed] & _CLOSING:
                    closed += 1
                num_sentences += closed == last or marks[closed] & _SPACE > 0
    return found, brace, num_sentences, several or 0 <= ended < last


@kernel
def _keep_lines(  # noqa: C901, PLR0912, PLR0913, PLR0915, PLR0917  one pass over the lines
    codes: Codes,
    kinds: Kinds,
    phrases: Codes,
    page: Codes,
    kept: Places,
    most_chars: float,
    least_words: float,
    terminal: bool,
    paper: bool,
) -> tuple[int, int, int, int, int]:
    """Write the lines that stay, joined by line feeds, and count what is in them.

    Args:
        codes: Code points of a text.
        kinds: See _kinds().
        phrases: See _phrases().
        page: Where the lines are written, uint32[len(codes)] or more.
        kept: Takes the lines, int64[len(codes) + 1, 4]: where each begins in the text, -1 if it
            lost citations; where it begins and ends in `page`; whether it may have several
            sentences to spaCy.
        most_chars: Lines with a longer word are removed; NaN for none.
        least_words: Lines of fewer words are removed; NaN for none.
        terminal: Whether lines must end in a mark.
        paper: Read lines as @paper, or else as @datatrove.

    Returns:
        Characters of the page, -1 if they are those of the text; its lines; sentences as the paper
        counts them; lines with "lorem ipsum"; lines with a curly bracket.
    """
    marks, spots = np.empty(len(codes), np.uint8), np.empty(len(codes), np.int32)
    num_spots = _mark(codes, kinds, marks, spots, 0)
    num_chars = num_lines = num_sentences = num_lorem_ipsum = num_braces = 0
    at = spot = 0
    while at < len(codes):
        first, first_spot, seen = at, spot, 0
        while spot < num_spots and not marks[spots[spot]] & _BREAK:
            seen |= marks[spots[spot]]
            spot += 1
        last = spots[spot] if spot < num_spots else len(codes)
        end_spot = spot
        at = last + 1
        spot += 1
        if at < len(codes) and codes[at] == _LINE_FEED and codes[last] == _RETURN:
            at += 1
            spot += 1
        while first < last and marks[first] & _SPACE:
            first += 1
        while first < last and marks[last - 1] & _SPACE:
            last -= 1
        num_words = _count_words(marks, first, last)
        if num_words and last - first > most_chars < _longest_word(marks, first, last):
            continue
        start = num_chars + 1 if num_lines else 0
        if seen & _BRACKET:
            end = _copy_uncited(codes, first, last, page, start, kinds)
        else:
            end = _copy(codes, first, last, page, start)
        cited = end - start < last - first
        if cited:
            last = first + end - start
            end_spot = first_spot + _mark(
                page[start:end], kinds, marks[first:last], spots[first_spot:], first
            )
            num_words = _count_words(marks, first, last) if paper else num_words
        if num_words < least_words or (terminal and not _ends_well(page, start, end, not paper)):
            continue
        found, brace, sentences, is_several = _read_line(
            page, start - first, marks, first, last, spots[first_spot:end_spot], phrases
        )
        num_lorem_ipsum += found & _LOREM_IPSUM > 0
        if found & _JAVASCRIPT:
            continue
        num_braces += brace
        if found & _POLICY:
            continue
        if num_lines:
            page[num_chars] = _LINE_FEED
        kept[num_lines, 0], kept[num_lines, 1] = -1 if cited else first, start
        kept[num_lines, 2], kept[num_lines, 3] = end, is_several
        num_chars = end
        num_lines += 1
        num_sentences += max(1, sentences)
    if num_chars == len(codes) and _is_same(codes, page):
        num_chars = -1
    return num_chars, num_lines, num_sentences, num_lorem_ipsum, num_braces


@kernel
def _count_kept(starts: Places, kept: Places, num_lines: int) -> int:
    """Return how many words of a text, by where they begin, are in lines kept of it.

    White space between lines is a token to spaCy, so that a line has the words it has in any text;
    -1 if one lost citations, and with them perhaps words.
    """
    num_words = word = 0
    for line in range(num_lines):
        first = kept[line, 0]
        if first < 0:
            return -1
        last = first + kept[line, 2] - kept[line, 1]
        while word < len(starts) and starts[word] < first:
            word += 1
        while word < len(starts) and starts[word] < last:
            word += 1
            num_words += 1
    return num_words


def measure_lines(*, paper: bool) -> Measure:
    """Return the measure of @paper, or of the others."""

    def measure(text: MeasuredText, bounds: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
        codes = text.codes
        page = np.empty(len(codes), np.uint32)
        kept = np.empty((len(codes) + 1, 4), np.int64)
        num_chars, num_lines, num_sentences, lorem_ipsum, braces = _keep_lines(
            codes,
            _kinds(),
            _phrases(),
            page,
            kept,
            float(bounds["max_word_chars"]),
            float(bounds["min_line_words"]),
            bounds["terminal_punctuation"] > 0,
            paper,
        )
        lines = (
            text.text if num_chars < 0 else text_of(page[:num_chars], is_ascii=text.text.isascii())
        )
        if not paper:
            several = kept[:num_lines][kept[:num_lines, 3] > 0]
            parts = [lines[start:end] for start, end in several[:, 1:3].tolist()]
            num_sentences = num_lines - len(parts) + text.splitters.num_sentences(parts)
        counts = (num_sentences, lorem_ipsum, braces)
        stripped = lines.strip()
        if stripped == text.text:
            return text, counts
        num_words = {
            kind: count
            for kind, spans in text.own_spans()
            if (count := _count_kept(spans.starts, kept, num_lines)) >= 0
        }
        return text.replaced(stripped, num_words=num_words), counts

    return measure
