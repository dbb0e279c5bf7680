"""English words and sentences by spaCy's rules, as compiled loops.

The rules for a chunk (see `pipelines/quality/english.py`) are written out here for chunks of ASCII.
`Rules` is asked for the others, for loose ones, and for those that may be internet addresses; its
answers are kept in a table by chunk, beside spaCy's special cases. Every token is a range of the
text, for spaCy leaves no character out.
"""

import string
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from pipelines.compiled import kernel_in_place
from pipelines.quality.compiled.lines import Codes, Places, hash_range, matching
from pipelines.quality.english import (
    ASCII_UNITS,
    DOTTED,
    MARKS,
    PREFIXES,
    QUOTES,
    English,
    Rules,
    readable,
)
from pipelines.quality.spans import WordSpans, code_points

Classes = npt.NDArray[np.uint16]
"""What each character is, uint16[0x110000]."""
Borders = npt.NDArray[np.uint8]
"""Which characters of ASCII may stand on both sides of a border of tokens, uint8[128, 128]."""

_MOST_CHUNKS = 1 << 18
_MOST_CODES = 1 << 23
"""Chunks, and code points in them, that are remembered, in 100 MB or less; then all go."""

_UPPER, _LOWER, _DIGIT, _QUOTE, _PREFIX, _MARK, _DOTTED, _PUNCTUATION = 1, 2, 4, 8, 16, 32, 64, 128
_PLAIN, _FOREIGN, _SPACE = 256, 512, 1024
"""Bits of Classes: _PLAIN is set in ASCII where no other is, only the last two outside of it."""
_LETTER = _UPPER | _LOWER
_NUM_CODES, _NUM_ASCII = 0x110000, 128
_UNIT_CODES = max(map(len, ASCII_UNITS))

_REPLACED, _PAIRED = 1, 2
"""Bits of Borders: of pairs that replaced phrases begin with, of all pairs in phrases."""

_KEY, _CODES, _LENGTH, _COUNT, _FLAGS = range(5)
"""Columns of a table, int64[a power of 2, 8], which is open addressing by hashes: the hash of a
chunk; where its code points begin in an array, which its tokens follow, a number each; how many
code points, and tokens, there are; flags."""
_NUM_COLUMNS = 8  # a line of the processor's cache
_USED, _SPECIAL, _PAIR, _UNIT, _LOOSE = 1, 2, 4, 8, 16
"""Flags: a row in use; a special case; two tokens that a replaced phrase begins with, without
the border between them; a unit; a chunk whose tokens depend on others."""

_MOST_FLAGGED = 16
"""Most code points of special cases, pairs and units of ASCII."""

_WORD, _END, _OTHER = 0, 1, 2
"""Kinds of tokens: one with a letter or the like, an end mark, other punctuation."""
_KIND_BITS = 2
_KINDS = (1 << _KIND_BITS) - 1

_NO, _YES, _MAYBE = 0, 1, 2
_UNKNOWN = -1


@kernel_in_place
def _find(codes: Codes, start: int, end: int, table: Places, known: Codes) -> int:
    """Return the row of a range of code points, or _UNKNOWN."""
    mask = len(table) - 1
    key = np.int64(hash_range(codes, start, end))
    row = (key >> 32) & mask
    while table[row, _FLAGS]:
        if table[row, _KEY] == key and table[row, _LENGTH] == end - start:
            first, at = table[row, _CODES], 0
            while at < end - start and known[first + at] == codes[start + at]:
                at += 1
            if at == end - start:
                return int(row)
        row = (row + 1) & mask
    return _UNKNOWN


@kernel_in_place
def _flags(codes: Codes, start: int, end: int, table: Places, known: Codes) -> int:
    """Return the flags of a range of code points, 0 if they cannot be interesting."""
    if not 0 < end - start <= _MOST_FLAGGED:
        return 0
    row = _find(codes, start, end, table, known)
    return int(table[row, _FLAGS]) if row >= 0 else 0


@kernel_in_place
def _place(table: Places, known: Codes, rows: Places) -> None:
    """Enter rows into a table that has room for them."""
    mask = len(table) - 1
    for index in range(len(rows)):
        first = rows[index, _CODES]
        rows[index, _KEY] = np.int64(hash_range(known, first, first + rows[index, _LENGTH]))
        row = (rows[index, _KEY] >> 32) & mask
        while table[row, _FLAGS]:
            row = (row + 1) & mask
        for column in range(_NUM_COLUMNS):
            table[row, column] = rows[index, column]


@kernel_in_place
def _prefix_codes(codes: Codes, start: int, end: int, classes: Classes) -> int:
    """Return the length of the prefix of a range of ASCII."""
    code = codes[start]
    if classes[code] & _PREFIX:
        return 1
    if code == ord("."):
        at = start + 1
        while at < end and codes[at] == ord("."):
            at += 1
        return at - start if at - start > 1 else 0
    if code == ord("+"):
        return 0 if start + 1 < end and classes[codes[start + 1]] & _DIGIT else 1
    # A$, C$, US$
    if (code == ord("A") or code == ord("C")) and start + 1 < end:
        return 2 if codes[start + 1] == ord("$") else 0
    if code == ord("U") and start + 2 < end and codes[start + 1] == ord("S"):
        return 3 if codes[start + 2] == ord("$") else 0
    return 0


@kernel_in_place
def _suffix_codes(  # noqa: PLR0911  rules side by side
    codes: Codes, start: int, end: int, classes: Classes, table: Places, known: Codes
) -> int:
    """Return the length of the suffix of a range of ASCII."""
    if end <= start:
        return 0
    last = codes[end - 1]
    if classes[last] & _MARK:
        return 1
    if last == ord("."):
        return _stop_codes(codes, start, end, classes)
    before = codes[end - 2] if end - start > 1 else np.uint32(0)
    if before == ord("'") and (last == ord("s") or last == ord("S")):
        return 2
    if last == ord("+"):
        return 1 if classes[before] & _DIGIT else 0
    if last == ord("$"):
        return _currency_codes(codes, start, end, classes)
    return _unit_codes(codes, start, end, classes, table, known)


@kernel_in_place
def _stop_codes(codes: Codes, start: int, end: int, classes: Classes) -> int:
    """Return the length of a suffix of full stops, with which a range ends."""
    at = end
    while at > start and codes[at - 1] == ord("."):
        at -= 1
    if end - at > 1:
        return end - at
    if at > start and classes[codes[at - 1]] & _DOTTED:
        return 1
    upper = at > start + 1 and classes[codes[at - 1]] & classes[codes[at - 2]] & _UPPER
    return 1 if upper else 0


@kernel_in_place
def _currency_codes(codes: Codes, start: int, end: int, classes: Classes) -> int:
    """Return the length of $, US$, C$ or A$ behind a digit, with whose $ a range ends."""
    at = end - 1
    if at > start and (codes[at - 1] == ord("A") or codes[at - 1] == ord("C")):
        at -= 1
    elif at > start + 1 and codes[at - 1] == ord("S") and codes[at - 2] == ord("U"):
        at -= 2
    return end - at if at > start and classes[codes[at - 1]] & _DIGIT else 0


@kernel_in_place
def _unit_codes(
    codes: Codes, start: int, end: int, classes: Classes, table: Places, known: Codes
) -> int:
    """Return the length of what stands behind the last digit of a range, if it is a unit."""
    at = end
    while at > start and end - at <= _UNIT_CODES and not classes[codes[at - 1]] & _DIGIT:
        at -= 1
    if at == start or end - at > _UNIT_CODES:
        return 0
    return end - at if _flags(codes, at, end, table, known) & _UNIT else 0


@kernel_in_place
def _infix_codes(codes: Codes, start: int, at: int, end: int, classes: Classes) -> int:  # noqa: C901, PLR0911  rules side by side
    """Return the length of the infix at a place of a range of ASCII, 0 if there is none."""
    code = codes[at]
    after = classes[codes[at + 1]] if at + 1 < end else 0
    if code == ord("."):
        last = at + 1
        while last < end and codes[last] == ord("."):
            last += 1
        if last - at > 1:
            return last - at
    if at == start:
        return 0
    before = classes[codes[at - 1]]
    if code == ord("."):
        return 1 if before & (_LOWER | _QUOTE) and after & (_UPPER | _QUOTE) else 0
    if code == ord(","):
        return 1 if before & _LETTER and after & _LETTER else 0
    if code == ord(":") or code == ord("/") or (ord("<") <= code <= ord(">")):
        return 1 if before & (_LETTER | _DIGIT) and after & _LETTER else 0
    sign = code == ord("+") or code == ord("-") or code == ord("*") or code == ord("^")
    if sign and before & _DIGIT and at + 1 < end and (after & _DIGIT or codes[at + 1] == ord("-")):
        return 1
    if code == ord("~"):
        return 1 if before & (_LETTER | _DIGIT) and after & _LETTER else 0
    if code == ord("-") and before & (_LETTER | _DIGIT):
        last = at + 1
        while last < end and codes[last] == ord("-"):
            last += 1
        if last - at <= 3 and last < end and classes[codes[last]] & _LETTER:  # noqa: PLR2004  ---
            return last - at
    return 0


@kernel_in_place
def _is_address(codes: Codes, start: int, end: int, classes: Classes) -> int:
    """Return _YES, _NO, or _MAYBE: whether spaCy's expression for addresses matches.

    Without @ a match begins with a scheme and ://, or with the host, that is with all letters,
    digits and signs that hosts have: what may follow a host is none of them.
    """
    for at in range(start, end):
        if codes[at] == ord("@"):
            return _MAYBE
    host, last = start, _host_end(codes, start, end, classes)
    scheme = last
    while scheme < end and codes[scheme] == ord("+"):
        scheme = _host_end(codes, scheme + 1, end, classes)
    if scheme + 2 < end and codes[scheme] == ord(":") and codes[scheme + 1] == ord("/"):
        if codes[scheme + 2] != ord("/") or scheme - start < 2:  # noqa: PLR2004  its least length
            return _MAYBE
        host, last = scheme + 3, _host_end(codes, scheme + 3, end, classes)
    after = codes[last] if last < end else np.uint32(ord("/"))
    if after == ord(":"):
        return _MAYBE
    if not (after == ord("/") or after == ord("?") or after == ord("#")):
        return _NO
    return _is_host(codes, host, last, classes)


@kernel_in_place
def _host_end(codes: Codes, at: int, end: int, classes: Classes) -> int:
    """Return where characters end that may be in the name of a host."""
    while at < end and (
        classes[codes[at]] & (_LETTER | _DIGIT)
        or codes[at] == ord(".")
        or codes[at] == ord("-")
        or codes[at] == ord("_")
    ):
        at += 1
    return at


@kernel_in_place
def _is_host(codes: Codes, start: int, end: int, classes: Classes) -> int:
    """Return _YES, _NO, or _MAYBE for numbers: whether a range of such characters is a host.

    It is, if two small letters or more follow the last full stop, and there is one; and if before
    it there are names of up to 64 characters, the first and last of them a letter or a digit.
    """
    numbers = good = True
    begin = start
    for at in range(start, end):
        numbers = numbers and (codes[at] == ord(".") or classes[codes[at]] & _DIGIT > 0)
        if codes[at] == ord("."):
            good = good and 0 < at - begin <= 64  # noqa: PLR2004  as said above
            if good:
                outer = classes[codes[begin]] & (_LETTER | _DIGIT) > 0
                good = outer and classes[codes[at - 1]] & (_LETTER | _DIGIT) > 0
            begin = at + 1
    if numbers:
        return _MAYBE
    if not good or begin == start or not 1 < end - begin < 64:  # noqa: PLR2004  two to 63 letters
        return _NO
    for at in range(begin, end):
        if not classes[codes[at]] & _LOWER:
            return _NO
    return _YES


@kernel_in_place
def _write_known(
    row: int, at: int, count: int, table: Places, known: Codes, scratch: Places
) -> int:
    """Write the tokens that a row of the table has, from a place on; return how many are there."""
    first = table[row, _CODES] + table[row, _LENGTH]
    for index in range(first, first + table[row, _COUNT]):
        size = np.int64(known[index])
        at = int(at + (size >> _KIND_BITS))
        scratch[0, count] = (at << _KIND_BITS) | (size & _KINDS)
        count += 1
    return count


@kernel_in_place
def _kind(codes: Codes, start: int, end: int, classes: Classes) -> int:
    """Return what a token of ASCII is."""
    code = codes[start]
    if not classes[code] & _PUNCTUATION:
        return _WORD
    if end - start == 1:
        return _END if code == ord(".") or code == ord("!") or code == ord("?") else _OTHER
    for at in range(start, end):
        if not classes[codes[at]] & _PUNCTUATION:
            return _WORD
    return _OTHER


@kernel_in_place
def _split_middle(
    codes: Codes,
    place: tuple[int, int, int],
    classes: Classes,
    table: Places,
    known: Codes,
    scratch: Places,
) -> int:
    """Write where tokens of ASCII between affixes end; return how many are there, or _UNKNOWN.

    Args:
        codes: Code points of a text.
        place: Where the range begins and ends, and how many tokens stand before it.
        classes: What characters are.
        table: Chunks.
        known: Their code points and tokens.
        scratch: Where ends and kinds of tokens are written.
    """
    start, end, count = place
    if _flags(codes, start, end, table, known) & _SPECIAL:
        row = _find(codes, start, end, table, known)
        return _write_known(row, start, count, table, known, scratch)
    at = begin = start
    first = count
    while at < end:
        length = _infix_codes(codes, start, at, end, classes)
        if length and at > start:
            if at > begin:
                scratch[0, count] = (at << _KIND_BITS) | _kind(codes, begin, at, classes)
                count += 1
            begin = at + length
            scratch[0, count] = (begin << _KIND_BITS) | _kind(codes, at, begin, classes)
            count += 1
        at += max(length, 1)
    address = _is_address(codes, start, end, classes) if count > first else _NO
    if address == _MAYBE:
        return _UNKNOWN
    if address == _YES:
        count, begin = first, start
    if begin < end:
        scratch[0, count] = (end << _KIND_BITS) | _kind(codes, begin, end, classes)
        count += 1
    return count


@kernel_in_place
def _split(  # noqa: C901  the loop of Rules._split
    codes: Codes,
    place: tuple[int, int],
    classes: Classes,
    table: Places,
    known: Codes,
    scratch: Places,
) -> int:
    """Write where the tokens of a chunk of ASCII end, and return how many there are, or _UNKNOWN.

    The chunk is not in the table. Rules._split says the same.
    """
    low, high = place
    count = num_suffixes = 0
    before = _UNKNOWN
    done = False
    while low < high and high - low != before and not done:
        before = high - low
        prefix = _prefix_codes(codes, low, high, classes)
        suffix = 0
        done = prefix > 0 and _flags(codes, low + prefix, high, table, known) & _SPECIAL != 0
        if not done:
            suffix = _suffix_codes(codes, low + prefix, high, classes, table, known)
            if suffix and _flags(codes, low, high - suffix, table, known) & _SPECIAL:
                done, prefix = True, 0
        if prefix:
            low += prefix
            scratch[0, count] = (low << _KIND_BITS) | _kind(codes, low - prefix, low, classes)
            count += 1
        if suffix:
            scratch[1, num_suffixes] = high
            num_suffixes += 1
        high -= suffix
        done = done or (low < high and _flags(codes, low, high, table, known) & _SPECIAL != 0)
    if low < high:
        count = _split_middle(codes, (low, high, count), classes, table, known, scratch)
        if count < 0:
            return _UNKNOWN
    for index in range(num_suffixes - 1, -1, -1):
        last = scratch[1, index]
        scratch[0, count] = (last << _KIND_BITS) | _kind(codes, high, last, classes)
        high = last
        count += 1
    return count


@kernel_in_place
def _has_replaced(
    codes: Codes,
    place: tuple[int, int],
    borders: Borders,
    table: Places,
    known: Codes,
    scratch: Places,
) -> bool:
    """Return whether two of the tokens of a chunk of ASCII may belong to what is replaced.

    Args:
        codes: Code points of a text.
        place: Where the chunk begins, and how many tokens it has.
        borders: What may stand on both sides of a border.
        table: Chunks.
        known: Their code points and tokens.
        scratch: Where the tokens end.
    """
    start, count = place
    for index in range(1, count):
        border, end = scratch[0, index - 1] >> _KIND_BITS, scratch[0, index] >> _KIND_BITS
        if (
            borders[codes[border - 1], codes[border]] & _REPLACED
            and _flags(codes, start, end, table, known) & _PAIR
        ):
            return True
        start = border
    return False


@kernel_in_place
def _read_chunk(  # noqa: PLR0913, PLR0917  all that is known
    codes: Codes,
    place: tuple[int, int, int],
    classes: Classes,
    borders: Borders,
    table: Places,
    known: Codes,
    scratch: Places,
) -> tuple[int, bool]:
    """Write where the tokens of a chunk end; return how many, or _UNKNOWN, and if it is loose.

    Args:
        codes: Code points of a text.
        place: Where the chunk begins and ends, and the classes of its characters.
        classes: What characters are.
        borders: What may stand on both sides of a border.
        table: Chunks.
        known: Their code points and tokens.
        scratch: Where ends and kinds of tokens are written.
    """
    start, end, kind = place
    row = _find(codes, start, end, table, known)
    if row >= 0:
        count = _write_known(row, start, 0, table, known, scratch)
        return count, table[row, _FLAGS] & _LOOSE != 0
    if kind & _FOREIGN:
        return _UNKNOWN, False
    if not kind & ~_LETTER:
        scratch[0, 0] = end << _KIND_BITS
        return 1, False
    count = _split(codes, (start, end), classes, table, known, scratch)
    if count > 1 and _has_replaced(codes, (start, count), borders, table, known, scratch):
        return _UNKNOWN, False
    return count, False


@kernel_in_place
def _chunk_end(codes: Codes, at: int, end: int, classes: Classes) -> tuple[int, int]:
    """Return where the chunk ends that begins at a place, and the classes of its characters.

    A chunk with no class but letters has nothing but letters of ASCII.
    """
    found = 0
    while at < end:
        kind = classes[codes[at]]
        if kind & _SPACE:
            break
        found |= kind
        at += 1
    return at, found


@kernel_in_place
def _may_join(codes: Codes, last: int, first: int, borders: Borders) -> bool:
    """Return whether tokens may stand in a phrase, the one ending and the other beginning there."""
    if first - last != 2 or codes[last + 1] != ord(" "):  # noqa: PLR2004  one space between them
        return False
    if codes[last] >= _NUM_ASCII or codes[first] >= _NUM_ASCII:
        return True
    return bool(borders[codes[last], codes[first]] & _PAIRED)


@kernel_in_place
def _find_words(  # noqa: PLR0913, PLR0917  all that is known, and where to write
    codes: Codes,
    classes: Classes,
    borders: Borders,
    table: Places,
    known: Codes,
    scratch: Places,
    words: Places,
    unknown: Places,
) -> tuple[int, int, bool]:
    """Write where the words of a text begin and end, and where unknown chunks do.

    Returns:
        The number of words; of unknown chunks, whose words are missing; whether chunks may change
        each other's words.
    """
    num_words = num_unknown = at = 0
    unsure = previous_loose = False
    previous = -2
    while at < len(codes):
        if classes[codes[at]] & _SPACE:
            at += 1
            continue
        start = at
        at, kind = _chunk_end(codes, start, len(codes), classes)
        count, loose = _read_chunk(
            codes, (start, at, kind), classes, borders, table, known, scratch
        )
        if count < 0:
            unknown[0, num_unknown], unknown[1, num_unknown] = start, at
            num_unknown += 1
        if (loose or previous_loose) and previous >= 0:
            unsure |= _may_join(codes, previous, start, borders)
        previous, previous_loose = at - 1, loose
        for index in range(count):
            end = scratch[0, index] >> _KIND_BITS
            words[0, num_words], words[1, num_words] = start, end
            num_words += 1
            start = end
    return num_words, num_unknown, unsure


@kernel_in_place
def _count_sentences(  # noqa: C901, PLR0913, PLR0917  one pass over the lines
    codes: Codes,
    line_ends: Places,
    classes: Classes,
    borders: Borders,
    table: Places,
    known: Codes,
    scratch: Places,
    unknown: Places,
) -> tuple[int, int, bool]:
    """Count the sentences of lines that stand back to back, and write where unknown chunks are.

    Returns:
        The number of sentences; of unknown chunks, which are left out; whether chunks may change
        each other's words.
    """
    num_sentences = num_unknown = at = 0
    unsure = False
    for end in line_ends:
        after_end = previous_loose = False
        start, previous = at, -2
        num_sentences += end > start
        while at < end:
            begin = at
            while at < end and classes[codes[at]] & _SPACE:
                at += 1
            # White space is a token, but for the one space behind a word.
            if at - begin > (begin > start and codes[begin] == ord(" ")):
                num_sentences += after_end
                after_end = False
            if at == end:
                break
            begin = at
            at, kind = _chunk_end(codes, begin, end, classes)
            count, loose = _read_chunk(
                codes, (begin, at, kind), classes, borders, table, known, scratch
            )
            if count < 0:
                unknown[0, num_unknown], unknown[1, num_unknown] = begin, at
                num_unknown += 1
            if (loose or previous_loose) and previous >= 0:
                unsure |= _may_join(codes, previous, begin, borders)
            previous, previous_loose = at - 1, loose
            for index in range(count):
                token = scratch[0, index] & _KINDS
                if token == _END:
                    after_end = True
                elif token == _WORD:
                    num_sentences += after_end
                    after_end = False
    return num_sentences, num_unknown, unsure


class CompiledEnglish:
    """Words and sentences by compiled loops."""

    def __init__(self, plain: English, rules: Rules) -> None:
        """Prepare the loops.

        Args:
            plain: Does what they leave.
            rules: Its rules.
        """
        self._plain = plain
        self._table = _Table(rules)
        self._room = _room(0)

    def words(self, text: str) -> list[str]:
        """Return the words of a text, as Spacy does."""
        text = readable(text)
        spans = self.spans(text, code_points(text))
        return self._plain.words(text) if spans is None else spans.of(text)

    def spans(self, text: str, codes: Codes) -> WordSpans | None:
        """Return where the words of a text are, or None: ask for the words.

        Args:
            text: A text.
            codes: Its code points.
        """
        if readable(text) is not text:
            return None
        scratch, words, unknown = self._prepared(len(codes))
        num_unknown = _UNKNOWN
        while num_unknown:
            num_words, num_unknown, unsure = _find_words(
                codes, *self._table.arrays, scratch, words, unknown
            )
            if num_unknown:
                self._table.learn(_distinct(text, unknown[:, :num_unknown]))
        if unsure:
            return None
        return WordSpans(codes, words[0, :num_words].copy(), words[1, :num_words].copy())

    def num_sentences(self, lines: Iterable[str]) -> int:
        """Return the number of sentences in lines, as Spacy does."""
        lines = [*map(readable, lines)]
        if not lines:
            return 0
        text = "".join(lines)
        codes = code_points(text)
        line_ends = np.cumsum(np.fromiter(map(len, lines), np.int64, len(lines)))
        scratch, _, unknown = self._prepared(len(codes))
        num_unknown = _UNKNOWN
        while num_unknown:
            num_sentences, num_unknown, unsure = _count_sentences(
                codes, line_ends, *self._table.arrays, scratch, unknown
            )
            if num_unknown:
                self._table.learn(_distinct(text, unknown[:, :num_unknown]))
        return self._plain.num_sentences(lines) if unsure else int(num_sentences)

    def _prepared(self, num_codes: int) -> tuple[Places, Places, Places]:
        """Return room for the tokens of a chunk, the words of a text and its unknown chunks."""
        self._table.make_room()
        if self._room[0].shape[1] < num_codes:
            self._room = _room(num_codes + num_codes // 2)
        return self._room


class _Table:
    """Chunks and their tokens."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._classes = _classes(rules)
        self._borders = _borders(rules)
        self._flags = dict.fromkeys(ASCII_UNITS, _UNIT)
        specials = [text for text in rules.specials if text.isascii() and text.strip()]
        for texts, flag in ((specials, _SPECIAL), (map("".join, rules.replaced), _PAIR)):
            for text in texts:
                self._flags[text] = self._flags.get(text, 0) | flag
        assert max(map(len, self._flags)) <= _MOST_FLAGGED
        self.forget()

    @property
    def arrays(self) -> tuple[Classes, Borders, Places, Codes]:
        """What the kernels need to know: classes, borders, the table, known code points."""
        return self._classes, self._borders, self._table, self._known

    def forget(self) -> None:
        """Forget all chunks but special cases and their like."""
        self._num_rows = self._num_codes = 0
        self._table = np.zeros((1 << 12, _NUM_COLUMNS), np.int64)
        self._known = np.empty(1 << 15, np.uint32)
        self.learn(self._flags)

    def make_room(self) -> None:
        """Forget chunks if there are too many."""
        if self._num_rows > _MOST_CHUNKS or self._num_codes > _MOST_CODES:
            self.forget()

    def learn(self, texts: Iterable[str]) -> None:
        """Ask for the tokens of chunks that are not known, each once."""
        rows: list[list[int]] = []
        known: list[int] = []
        for text in texts:
            chunk = self._rules.chunk(text)
            flags = _USED | self._flags.get(text, 0) | (_LOOSE if chunk.loose else 0)
            first = self._num_codes + len(known)
            rows.append([0, first, len(text), len(chunk.words), flags, 0, 0, 0])
            known += map(ord, text)
            known += map(self._size, chunk.words)
        self._write(np.array(known, np.uint32), np.array(rows, np.int64))

    def _write(self, known: Codes, rows: Places) -> None:
        num_codes, num_rows = self._num_codes + len(known), self._num_rows + len(rows)
        if num_codes > len(self._known):
            grown = np.empty(1 << num_codes.bit_length(), np.uint32)
            grown[: self._num_codes] = self._known[: self._num_codes]
            self._known = grown
        self._known[self._num_codes : num_codes] = known
        if 2 * num_rows > len(self._table):
            used = self._table[self._table[:, _FLAGS] > 0]
            self._table = np.zeros((4 << num_rows.bit_length(), _NUM_COLUMNS), np.int64)
            _place(self._table, self._known, used)
        _place(self._table, self._known, rows)
        self._num_codes, self._num_rows = num_codes, num_rows

    def _size(self, word: str) -> int:
        """Return the length of a token and its kind."""
        if self._rules.is_end(word):
            kind = _END
        else:
            kind = _OTHER if self._rules.is_punctuation(word) else _WORD
        return len(word) << _KIND_BITS | kind


def _distinct(text: str, places: Places) -> Iterable[str]:
    """Return the different strings at places of a text."""
    return dict.fromkeys(text[start:end] for start, end in zip(*places.tolist(), strict=True))


def _room(num_codes: int) -> tuple[Places, Places, Places]:
    scratch, words, unknown = (np.empty((2, num_codes), np.int64) for _ in range(3))
    return scratch, words, unknown


def _classes(rules: Rules) -> Classes:
    classes = np.full(_NUM_CODES, _FOREIGN, np.uint16)
    classes[:_NUM_ASCII] = 0
    for characters, bit in (
        (string.ascii_uppercase, _UPPER),
        (string.ascii_lowercase, _LOWER),
        (string.digits, _DIGIT),
        (QUOTES, _QUOTE),
        (PREFIXES, _PREFIX),
        (MARKS, _MARK),
        (DOTTED, _DOTTED),
        (filter(rules.is_punctuation, map(chr, range(_NUM_ASCII))), _PUNCTUATION),
        (matching(r"\s"), _SPACE),
    ):
        classes[code_points("".join(characters))] |= bit
    # Others must not pass for letters.
    classes[:_NUM_ASCII][classes[:_NUM_ASCII] == 0] = _PLAIN
    return classes


def _borders(rules: Rules) -> Borders:
    borders = np.zeros((_NUM_ASCII, _NUM_ASCII), np.uint8)
    for pairs, bit in ((rules.replaced, _REPLACED), (rules.pairs, _PAIRED)):
        for first, second in pairs:
            if (first[-1] + second[0]).isascii():
                borders[ord(first[-1]), ord(second[0])] |= bit
    return borders
