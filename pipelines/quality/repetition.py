"""Repetition: Gopher's duplicated lines, paragraphs and n-grams of words.

Rae et al. 2021, "Scaling Language Models" (arXiv 2112.11446), table A1. The paper leaves open what
a duplicate is, and the two variants differ:

             @paper                                      @datatrove (0.10.1)
lines        non-blank, white space around them ignored  between runs of line breaks
top n-gram   length x count, without the spaces          with the spaces; counts even if single
dup n-gram   words in any repeated n-gram, each once     2nd+ n-grams, none overlapping a counted
                                                         one; equal when their letters are
shares of    characters of words (lines: of lines)       characters of the text
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from pipelines.quality.profile import Bounds, Profile, Threshold
from pipelines.quality.words import CHINESE, DATATROVE, ENGLISH, SPACES, MeasuredText

TOP_N = (2, 3, 4)
DUP_N = (5, 6, 7, 8, 9, 10)
TABLE_A1 = "Gopher (arXiv 2112.11446), table A1"
NGRAM_METRICS = (*(f"top_{n}gram" for n in TOP_N), *(f"dup_{n}gram" for n in DUP_N))

_PARAGRAPHS = re.compile(r"\n{2,}")
_LINES = re.compile(r"\n+")

# How many characters represent an n-gram in the search for candidates; see _apart.
_HEAD = 12


def count_repeats(parts: Sequence[str]) -> tuple[int, int]:
    """Return how many parts equal an earlier one, and the characters in them."""
    distinct = set(parts)
    if len(distinct) == len(parts):
        return 0, 0
    return len(parts) - len(distinct), sum(map(len, parts)) - sum(map(len, distinct))


def ratio(part: float, whole: float) -> float:
    """Return part / whole; NaN if the whole is 0."""
    return part / whole if whole else float("nan")


def datatrove_ngrams(words: Sequence[str], num_chars: int) -> tuple[float, ...]:
    """Return the nine n-gram shares (NGRAM_METRICS) as datatrove computes them.

    Args:
        words: Words without white space in them.
        num_chars: Characters of the text.
    """
    tops, _ = _tops(words)
    chars = [*(length for length, _ in tops), *_apart(words)]
    return tuple(ratio(part, num_chars) for part in chars)


def paper_ngrams(words: Sequence[str]) -> tuple[float, ...]:
    """Return the nine n-gram shares (NGRAM_METRICS) of the characters in words.

    An n-gram that occurs once is no repetition and counts 0.
    """
    tops, starts = _tops(words)
    without_spaces = (
        length - (n - 1) * count if count > 1 else 0
        for n, (length, count) in zip(TOP_N, tops, strict=True)
    )
    num_chars = sum(map(len, words))
    return tuple(ratio(chars, num_chars) for chars in (*without_spaces, *_covered(words, starts)))


def _tops(words: Sequence[str]) -> tuple[list[tuple[int, int]], Sequence[int]]:
    """Return characters and count of the commonest n-gram for each of TOP_N, the first of equals.

    The characters are those of all its occurrences, its words joined by spaces. The second value
    lists where longer repeated n-grams may start.
    """
    tops = []
    starts: Sequence[int] = range(len(words))
    for n in TOP_N:
        grams = _grams(words, n, starts)
        counts = Counter(grams)
        top = max(counts, key=counts.__getitem__, default="")
        tops.append((len(top) * counts[top], counts[top]) if top else (0, 0))
        # Where a longer n-gram is repeated, so are its first words. The first start always stays:
        # its n-gram is the answer if nothing is repeated.
        starts = _repeated(starts, grams, counts)
        if grams and (not starts or starts[0]):
            starts = [0, *starts]
    return tops, starts


def _grams(words: Sequence[str], n: int, starts: Sequence[int]) -> list[str]:
    """Return the n-grams at ascending places, none for places too near the end."""
    if len(starts) == len(words):
        return [" ".join(gram) for gram in zip(*(words[k:] for k in range(n)), strict=False)]
    last = len(words) - n
    return [" ".join(words[start : start + n]) for start in starts if start <= last]


def _repeated(starts: Sequence[int], grams: Sequence[str], counts: Counter[str]) -> Sequence[int]:
    """Return the places of n-grams that occur more than once."""
    if len(counts) == len(grams):
        return ()
    return [start for start, gram in zip(starts, grams, strict=False) if counts[gram] > 1]


def _covered(words: Sequence[str], starts: Sequence[int]) -> list[int]:
    """Return the characters of the words that are in a repeated n-gram, for each of DUP_N."""
    covered = []
    offsets = [0, *accumulate(map(len, words))]
    for n in DUP_N:
        grams = _grams(words, n, starts)
        starts = _repeated(starts, grams, Counter(grams))
        num_chars = end = 0
        for start in starts:
            num_chars += offsets[start + n] - offsets[max(start, end)]
            end = start + n
        covered.append(num_chars)
    return covered


def _apart(words: Sequence[str]) -> list[int]:
    """Return the characters in n-grams seen before, none of them overlapping, for each of DUP_N.

    Here n-grams are equal if their words without spaces spell the same, so the words are laid out
    as one string. A repeated n-gram can only begin where the next _HEAD characters occur elsewhere
    too, unless it is shorter than that: all other starts are skipped.
    """
    letters = "".join(words)
    starts = [0, *accumulate(map(len, words))]
    heads = [letters[start : start + _HEAD] for start in starts[:-1]]
    counts = Counter(heads)
    least = DUP_N[0]
    candidates = [
        index
        for index, head in enumerate(heads[: max(0, len(words) - least + 1)])
        if counts[head] > 1 or starts[index + least] - starts[index] < _HEAD
    ]
    return [_num_repeated_chars(letters, starts, candidates, n) for n in DUP_N]


def _num_repeated_chars(
    letters: str, starts: Sequence[int], candidates: Sequence[int], n: int
) -> int:
    seen: set[str] = set()
    num_chars = free = 0
    last = len(starts) - 1 - n
    for index in candidates:
        if free <= index <= last:
            gram = letters[starts[index] : starts[index + n]]
            if gram in seen:
                num_chars += len(gram)
                free = index + n
            else:
                seen.add(gram)
    return num_chars


def _measure_datatrove(text: MeasuredText, _: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    whole = text.text
    paragraphs = _PARAGRAPHS.split(whole.strip())
    lines = _LINES.split(whole)
    dup_paragraphs, dup_paragraph_chars = count_repeats(paragraphs)
    dup_lines, dup_line_chars = count_repeats(lines)
    return text, (
        ratio(dup_paragraphs, len(paragraphs)),
        ratio(dup_paragraph_chars, len(whole)),
        ratio(dup_lines, len(lines)),
        ratio(dup_line_chars, len(whole)),
        *datatrove_ngrams(text.words(DATATROVE), len(whole)),
    )


def _measure_paper(text: MeasuredText, _: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    shares: list[float] = []
    # Longer runs of line breaks leave some at the ends of parts, which are stripped.
    for separator in ("\n\n", "\n"):
        parts = [part for part in map(str.strip, text.text.split(separator)) if part]
        num_duplicates, num_chars = count_repeats(parts)
        shares += ratio(num_duplicates, len(parts)), ratio(num_chars, sum(map(len, parts)))
    return text, (*shares, *paper_ngrams(text.words(SPACES)))


def ngram_thresholds(bounds: Sequence[float], source: str) -> tuple[Threshold, ...]:
    """Return the thresholds of the nine n-gram shares; the bounds are in the same order."""
    kinds = [("top", n, "top", "in the commonest of the") for n in TOP_N]
    kinds += [("dup", n, "duplicate", "in repeated") for n in DUP_N]
    return tuple(
        Threshold(
            f"max_{metric}_{n}gram", bound, f"{rule}-{n}gram",
            f"most characters {where} {n}-grams, as a share", source,
        )
        for (metric, n, rule, where), bound in zip(kinds, bounds, strict=True)
    )  # fmt: skip


_THRESHOLDS = (
    Threshold(
        "max_dup_paragraph", 0.3, "duplicate-paragraphs",
        "most paragraphs seen before, as a share", TABLE_A1,
    ),
    Threshold(
        "max_dup_paragraph_chars", 0.2, "duplicate-paragraph-chars",
        "most characters in paragraphs seen before, as a share", TABLE_A1,
    ),
    Threshold(
        "max_dup_line", 0.3, "duplicate-lines", "most lines seen before, as a share", TABLE_A1
    ),
    Threshold(
        "max_dup_line_chars", 0.2, "duplicate-line-chars",
        "most characters in lines seen before, as a share", TABLE_A1,
    ),
    *ngram_thresholds((0.2, 0.18, 0.16, 0.15, 0.14, 0.13, 0.12, 0.11, 0.1), TABLE_A1),
)  # fmt: skip

_METRICS = ("dup_paragraph", "dup_paragraph_chars", "dup_line", "dup_line_chars", *NGRAM_METRICS)

PROFILES = (
    Profile(
        family="gopher-repetition",
        variant="paper",
        alias=True,
        about="Gopher's repetition rules; a repeated n-gram counts wherever it stands, but once.",
        metrics=_METRICS,
        thresholds=_THRESHOLDS,
        measure=_measure_paper,
        words=SPACES,
    ),
    Profile(
        family="gopher-repetition",
        variant="datatrove",
        about="Gopher's repetition rules as datatrove's GopherRepetitionFilter applies them.",
        metrics=_METRICS,
        thresholds=_THRESHOLDS,
        measure=_measure_datatrove,
        words=DATATROVE,
        languages=CHINESE | {ENGLISH},
    ),
)
