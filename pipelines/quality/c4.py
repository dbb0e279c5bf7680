"""C4's rules for English web pages (Raffel et al. 2020, JMLR 21-140), for lines and then for pages.

             @paper                              @datatrove, @fineweb (0.10.1)
line ends    . ? ! "                             . ? ! " '      (@fineweb: any)
a line's     5 words or more, counted after      3 words or more, counted before
             citations are removed
a page's     3 sentences or more, by end marks   5 sentences or more, by spaCy's sentencizer

@fineweb is what the FineWeb recipe runs: datatrove's filter, set to keep lines whatever they end
in. C4's list of bad words is not shipped, and no profile looks for them. The metrics count what is
in the lines that the line rules keep or have not seen yet, so thresholds of line rules are not
exact: another value of them needs the text again.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipelines.corpus.languages import LANGUAGES
from pipelines.quality.profile import Bounds, Measure, Profile, Threshold
from pipelines.quality.punctuation import TERMINAL
from pipelines.quality.words import DATATROVE, ENGLISH, UNSPACED, MeasuredText

PAPER = "C4 (JMLR 21-140), section 2.2"
PAPER_CODE = "tensorflow_datasets, text/c4_utils.py"
DATATROVE_CODE = "datatrove 0.10.1, C4QualityFilter"
FINEWEB_CODE = "datatrove, examples/fineweb.py (05194d3)"

METRICS = ("sentences", "lorem_ipsum", "curly_brackets")

LOREM_IPSUM = ("lorem ipsum",)
JAVASCRIPT = ("javascript",)
POLICIES = (
    "terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies",
    "use cookies",
)  # fmt: skip

_CITATION = re.compile(r"\[\d*]|\[edit]|\[citation needed]")
_SENTENCE_END = re.compile(r"[.?!]+[\"'”’)\]]*(?=\s|$)")
_TERMINALS = "".join(sorted(TERMINAL))
_TERMINAL = re.compile(f"[{re.escape(_TERMINALS)}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """How a variant reads lines."""

    ends: tuple[str, ...]
    num_words: Callable[[str, str], int]
    """Takes the line as it was, and without citations."""
    num_sentences: Callable[[MeasuredText, Sequence[str]], int]


_PAPER_READING = _Reading(
    ends=(".", "?", "!", '"'),
    num_words=lambda _, line: len(line.split()),
    num_sentences=lambda _, lines: sum(max(1, len(_SENTENCE_END.findall(line))) for line in lines),
)


def _num_spacy_sentences(text: MeasuredText, lines: Sequence[str]) -> int:
    # A line without end marks before its very end is one sentence: no need to ask spaCy.
    several = [line for line in lines if _TERMINAL.search(line.rstrip(_TERMINALS))]
    return len(lines) - len(several) + text.splitters.num_sentences(several)


_DATATROVE_READING = _Reading(
    ends=(".", "?", "!", '"', "'"),
    num_words=lambda before, _: len(before.split()),
    num_sentences=_num_spacy_sentences,
)


def _measure(reading: _Reading) -> Measure:
    def measure(text: MeasuredText, bounds: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
        lines = _content(text.text, bounds, reading)
        lorem_ipsum = len(lines) - len(_without(lines, LOREM_IPSUM))
        lines = _without(lines, JAVASCRIPT)
        curly_brackets = sum("{" in line for line in lines)
        lines = _without(lines, POLICIES)
        page = "\n".join(lines).strip()
        counts = (
            reading.num_sentences(text, lines),
            lorem_ipsum,
            curly_brackets,
        )
        return (text if page == text.text else text.replaced(page)), counts

    return measure


def _content(text: str, bounds: Bounds, reading: _Reading) -> list[str]:
    """Return the lines that are prose by their words and their end, without citations."""
    lines = []
    for before in map(str.strip, text.splitlines()):
        if _has_long_word(before, bounds["max_word_chars"]):
            continue
        line = _CITATION.sub("", before) if "[" in before else before
        if bounds["terminal_punctuation"] > 0 and not _ends_with(line, reading.ends):
            continue
        if reading.num_words(before, line) < bounds["min_line_words"]:
            continue
        lines.append(line)
    return lines


def _has_long_word(line: str, most: float) -> bool:
    return len(line) > most and any(len(word) > most for word in line.split())


def _ends_with(line: str, ends: tuple[str, ...]) -> bool:
    return line.endswith(ends) and not line.endswith("...")


def _without(lines: list[str], phrases: Sequence[str]) -> list[str]:
    """Return the lines that hold none of the phrases, which are in lower case."""
    lower = "\n".join(lines).lower()
    if not any(phrase in lower for phrase in phrases):
        return lines
    return [line for line in lines if not any(phrase in line.lower() for phrase in phrases)]


def _thresholds(
    *, line_words: int, sentences: int, terminal: int, sources: tuple[str, str]
) -> tuple[Threshold, ...]:
    main, code = sources
    return (
        Threshold("max_word_chars", 1000, "", "lines with a longer word are removed", code),
        Threshold(
            "terminal_punctuation", terminal, "",
            "1: lines that do not end in a mark are removed; 0: they stay", main,
        ),
        Threshold("min_line_words", line_words, "", "lines of fewer words are removed", main),
        Threshold("max_lorem_ipsum", 0, "lorem-ipsum", 'most lines with "lorem ipsum"', main),
        Threshold("max_curly_brackets", 0, "curly-brackets", "most lines with {", main),
        Threshold(
            "min_sentences", sentences, "few-sentences",
            "least number of sentences in the lines that stay", main,
        ),
    )  # fmt: skip


PROFILES = (
    Profile(
        family="c4",
        variant="paper",
        alias=True,
        about="C4's rules as the paper gives them, without the list of bad words.",
        metrics=METRICS,
        thresholds=_thresholds(line_words=5, sentences=3, terminal=1, sources=(PAPER, PAPER_CODE)),
        measure=_measure(_PAPER_READING),
        languages=LANGUAGES - UNSPACED,
    ),
    Profile(
        family="c4",
        variant="datatrove",
        about="C4's rules as datatrove's C4QualityFilter applies them.",
        metrics=METRICS,
        thresholds=_thresholds(
            line_words=3, sentences=5, terminal=1, sources=(DATATROVE_CODE, DATATROVE_CODE)
        ),
        measure=_measure(_DATATROVE_READING),
        words=DATATROVE,
        languages=frozenset({ENGLISH}),
    ),
    Profile(
        family="c4",
        variant="fineweb",
        about="C4's rules as FineWeb was made with: lines may end in anything.",
        metrics=METRICS,
        thresholds=_thresholds(
            line_words=3, sentences=5, terminal=0, sources=(FINEWEB_CODE, DATATROVE_CODE)
        ),
        measure=_measure(_DATATROVE_READING),
        words=DATATROVE,
        languages=frozenset({ENGLISH}),
    ),
)
