"""Our English words and sentences are those of spaCy."""

import itertools
import string
from collections.abc import Iterable, Sequence

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.symbols import ORTH

from pipelines.quality.spacy_words import SpacyWords
from pipelines.quality.spans import texts_as_spans
from tests.pipelines.quality.texts import TEXTS

# spaCy takes seconds to load, and kernels take seconds to compile.
pytestmark = pytest.mark.slow

SPACY = spacy.blank("en")
SPACY.add_pipe("sentencizer")
UNITS = (  # noqa: SIM905  more readable
    "km m dm cm mm ha nm yd in ft kg g mg t lb oz m/s km/h kmh mph hPa Pa mbar mb MB kb KB gb GB "
    "tb TB T G M K %"
).split()
OURS = SpacyWords()


def readable(text: str) -> str:
    """Return a text as datatrove reads it after spaCy fails."""
    return text.replace("IS_ALPHA", "")


def wanted(text: str) -> list[str]:
    words = (token.text.strip() for token in SPACY.tokenizer(readable(text)))
    return [word for word in words if word]


def words_of(texts: Sequence[str], ours: SpacyWords = OURS) -> list[list[str]]:
    words = ours.words(texts_as_spans(texts))
    strings = words.strings()
    return [strings[first:end] for first, end in itertools.pairwise(words.offsets.tolist())]


def check_words(*texts: str) -> None:
    for text, found in zip(texts, words_of(texts), strict=True):
        assert found == wanted(text), text


def check(*texts: str) -> None:
    check_words(*texts)
    lines = [line for text in texts for line in (text, *text.split("\n"))]
    for line, found in zip(lines, OURS.num_sentences(lines).tolist(), strict=True):
        assert found == len([*SPACY(readable(line)).sents]), line


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


@given(st.lists(TEXT | ASCII.map("".join), max_size=3))
@settings(deadline=None, max_examples=150)
def test_made_texts(texts: list[str]) -> None:
    check(*texts)


@pytest.mark.parametrize(
    ("start", "end"), [("", ""), ("5", ""), ("", "a"), ("A", "S"), (".", "."), ("a", "A")]
)
def test_every_pair_of_characters_of_ascii(start: str, end: str) -> None:
    visible = [chr(code) for code in range(33, 127)]
    for first in visible:
        check_words("\n".join(f"{start}{first}{second}{end}" for second in visible))


def test_special_cases_within_affixes() -> None:
    for text in SPACY.tokenizer.rules:
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
        # spaCy also looks for :)), which is longer than :), but with a space inside it is no
        # smiley.
        *("hi:) x", "hi:) ) x", "hi:)\n) x", "hi:)  ) x", "'''Tis :)) )"),
        # White space that is a token of its own.
        *map("".join, itertools.product((" ", "  ", "\n ", " \n", "x", "x.", ""), repeat=3)),
        "x. \nx.  \n x.\t\nx.\u3000y",
        "One. Two\nthree. Four\nfive.\nSix",
        '"One." Two (three.) [four.\na.) b\nno end 。 x\nx！y ！ z',
        # A word on which spaCy fails.
        *("IS_ALPHA", "IS_ALPHA IS_ALPHA x", "aIS_ALPHAb IS_ALPHA.", "One. IS_ALPHA\n\nTwo. Three"),
        " ".join(f"5{unit} {unit}" for unit in UNITS),
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
    ours = SpacyWords()
    # There are more texts than the cache keeps, a few at a time.
    for start in range(0, 1_800, 40):
        long = " ".join(f"é{number}{'a' * 20_000}" for number in range(start, start + 40))
        assert len(words_of([long], ours)[0]) >= 40
    for text in ("One, two (three). hi:) ) x é à l’ü", *TEXTS):
        assert words_of([text], ours) == [wanted(text)]


def test_another_spacy_does_its_own_work(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    usual = spacy.blank

    def other(language: str) -> spacy.language.Language:
        made = usual(language)
        made.tokenizer.add_special_case("foobar", [{ORTH: "foo"}, {ORTH: "bar"}])
        return made

    monkeypatch.setattr(spacy, "blank", other)
    ours = SpacyWords()
    assert words_of(["a foobar IS_ALPHA.", "", "b"], ours) == [["a", "foo", "bar", "."], [], ["b"]]
    assert ours.num_sentences(["One. Two", ""]).tolist() == [2, 0]
    (line,) = caplog.messages
    assert line.startswith("spaCy itself finds English words, which is slow")
