"""English words and sentences are those of spaCy: remembered by chunk, and by native loops."""

import itertools
import string
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.quality.english import ASCII_UNITS, Spacy
from pipelines.quality.words import DATATROVE, MeasuredText, Splitters
from tests.pipelines.native import fresh_splitters, loaded, splitters
from tests.pipelines.quality.texts import TEXTS

# spaCy takes seconds to load, and loops to compile.
pytestmark = pytest.mark.slow

SPACY = Spacy()

ATOMS = (
    *string.printable,
    *("word", "Word", "WORD", "can't", "Can’t", "'Tis", "’em", "it's", "Mr.", "a.m.", "10", "3.14"),
    *(":)", ":-(", "):", "8)", "(;", "¬_¬", "'''", "''", "<3", "C++", "and/or", "w/o", "\\n"),
    *("km", "km/h", "%", "US$", "C$", "A$", "€", "°C.", "°", "²", "µg", "5", "...", "…", "--", "—"),
    *("http://a.bc/d-e?f", "www.x.org", "a@b.de", "10.0.0.1", "://", ".com", "e.g.", "i.e."),
    *("é", "ß", "中文", "。", "！", "“", "”", "‘", "’", "😀", "\u0301", "\u200b", "\ufeff", "म"),
    *("।", "N.Y.", "\x1c", "\x85", "\xa0", "\u2028", "\u3000", "  ", " ", " ", " ", "\r\n"),
    *("ORTH", "LOWER"),
)  # fmt: skip
TEXT = (
    st.lists(st.sampled_from(ATOMS) | st.text(max_size=3), max_size=60)
    .map("".join)
    .filter(lambda text: text.encode("utf-8", "ignore").decode() == text)
)
ASCII = st.lists(st.sampled_from([atom for atom in ATOMS if atom.isascii()]), max_size=60)


def both() -> tuple[Splitters, Splitters]:
    return splitters("en", native=False), splitters("en", native=True)


def check_words(text: str, given: Iterable[Splitters] = ()) -> None:
    words = SPACY.words(text)
    for splitter in given or both():
        measured = MeasuredText(text, "en", splitters=splitter)
        assert measured.words(DATATROVE) == words, text
        spans = measured.spans(DATATROVE)
        assert spans.of("".join(map(chr, spans.codes))) == words, text


def check(text: str, given: Iterable[Splitters] = ()) -> None:
    check_words(text, given)
    for lines in ([text], text.split("\n")):
        number = SPACY.num_sentences(lines)
        for splitter in given or both():
            assert splitter.num_sentences(lines) == number, text


@given(TEXT | ASCII.map("".join))
@settings(deadline=None, max_examples=150)
def test_made_texts(text: str) -> None:
    check(text)


@pytest.mark.parametrize(
    ("start", "end"), [("", ""), ("5", ""), ("", "a"), ("A", "S"), (".", "."), ("a", "A")]
)
def test_every_pair_of_characters_of_ascii(start: str, end: str) -> None:
    visible = [chr(code) for code in range(33, 127)]
    for first in visible:
        check_words("\n".join(f"{start}{first}{second}{end}" for second in visible))


def test_special_cases_within_affixes() -> None:
    for text in SPACY.pipeline.tokenizer.rules:
        check(f"({text}) {text}, {text}'s '{text}' {text}{text} -{text}. x{text} {text}/x 5{text}")


def addresses() -> Iterable[str]:
    schemes = ("", "http://", "a+b.c://", "://", "x:", "me@", "a:b@")
    letters = (f"{'a' * 64}.bc", f"{'a' * 65}.bc", f"a.{'b' * 64}")
    others = "a.bc a.b a-b.c_d.efg A.BC a.Bc 1.2.3.4 10.0.0.1 a..bc a.b1".split()  # noqa: SIM905  more readable
    ends = ("", ":80", ":8", "/x-y", "?q=a-b", "#a/b", "(a)", "=a", ",a", "-", "/")
    return map("".join, itertools.product(schemes, (*letters, *others), ends, ("", "-z")))


@pytest.mark.parametrize(
    "text",
    [
        *TEXTS,
        # :)) is looked for too, and is longer than :); but with a space in it, it is none.
        *("hi:) x", "hi:) ) x", "hi:)\n) x", "hi:)  ) x", "'''Tis :)) )"),
        # White space that is a token.
        *map("".join, itertools.product((" ", "  ", "\n ", " \n", "x", "x.", ""), repeat=3)),
        "x. \nx.  \n x.\t\nx.\u3000y",
        "One. Two\nthree. Four\nfive.\nSix",
        '"One." Two (three.) [four.\na.) b\nno end 。 x\nx！y ！ z',
        # A word that spaCy cannot read.
        *("IS_ALPHA", "IS_ALPHA IS_ALPHA x", "aIS_ALPHAb IS_ALPHA.", "One. IS_ALPHA\n\nTwo. Three"),
        " ".join(f"5{unit} {unit}" for unit in ASCII_UNITS),
        " ".join(f"é{number} {number}à" for number in range(5000)),
        *(
            f"so {chunk} it is."
            for chunk in ("a" * 20_000, "1," * 700, "." * 700, "(" * 300 + ")" * 300, "ab-" * 700)
        ),
        "\n".join(addresses()),
    ],
)
def test_odd_texts(text: str) -> None:
    check(text)


def test_chunks_are_forgotten() -> None:
    pytest.importorskip("numba")
    fresh = [loaded(lambda: fresh_splitters("en"), native=native) for native in (False, True)]
    # More than is remembered, some at a time.
    long = [
        " ".join(f"{number}{'a' * 20_000}" for number in range(start, start + 40))
        for start in range(0, 1_800, 40)
    ]
    for more in (long, ()):
        for text in ("One, two (three). hi:) ) x é à l’ü", *TEXTS):
            check(text, fresh)
        for splitter, text in itertools.product(fresh, more):
            assert len(splitter.words(text, language="en", kind=DATATROVE)) >= 40
