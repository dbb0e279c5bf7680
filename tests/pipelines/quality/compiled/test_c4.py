import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.quality.c4 import JAVASCRIPT, LOREM_IPSUM, POLICIES
from pipelines.quality.compiled import c4
from pipelines.quality.compiled.lines import every_character
from tests.pipelines.quality.compiled.comparing import ODD, NoLibraries, check, real_texts
from tests.pipelines.quality.texts import TEXTS

NAMES = ("c4@paper", "c4@datatrove", "c4@fineweb")
SPLITTERS = NoLibraries()
EDGES = (
    "[1] [23]] [[4] [] [٣] [12 [edit] [EDIT] [citation needed] [citation needed[5]] are seen.",
    "[1]\n[2][3]\n\n",
    "[edit] a b c d e f.[1]",
    "The line ends with a mark. [1]",
    "JAVAscript is a language of the web.\njava script is none, as we all know.",
    "The cooK\u0130e policy is none of these phrases.\nUses coo\u212aies as they all do it here.",
    "LOREM IPSUM JAVASCRIPT, and so it goes on.\nlorem ipsum {, and so it goes on. Here!",
    "privacy privacy policy: and that is a line.\nterms of terms of use are what we want.",
    'one two three four five.\r\n\x1cone two three four five!\u2028one two three four five"\x85x',
    "one two three four five..\none two three four five...\n...\n..\none two three four five....",
    'One. Two?! Three.") Four.x Five.\'. Six." Seven.’ ) Eight\ud800.',
    "a b c d e f。g h.\na b c d e f。.\na b c d e f。।",
    "  a b c d e f.  ",
    "a b c d e f.\n\na b c d e f.",
    f"{'x' * 999} a b c d e.\n{'x' * 1000} a b c d e.\n{'x' * 1001} a b c d e.",
    f"{'y' * 600}\u3000{'y' * 600} c d e f.",
    "\ufeffa b c d e f.",
)


@pytest.mark.parametrize("text", [*TEXTS, *EDGES])
@pytest.mark.parametrize("name", NAMES)
def test_texts_measure_as_before(name: str, text: str) -> None:
    check(name, text, splitters=SPLITTERS)


PHRASES = (*LOREM_IPSUM, *JAVASCRIPT, *POLICIES)


def phrases() -> st.SearchStrategy[str]:
    """Return text of phrases in any case, their pieces, citations and odd characters."""
    pieces = [piece for phrase in PHRASES for piece in (phrase, *phrase.split(), phrase[:-1])]
    marks = ["[1]", "[edit]", "[citation needed]", "[citation ", "[", "]", "{", " ", " ", "\n", "."]
    known = st.sampled_from([*pieces, *pieces, *marks, *marks])
    kelvin = known.map(lambda piece: piece.replace("k", "\u212a"))
    return st.lists(st.one_of(known, known.map(str.upper), kelvin, ODD), max_size=20).map("".join)


@given(
    phrases(),
    st.sampled_from(NAMES),
    st.sampled_from([float("nan"), -1, 0, 3, 1000]),
    st.sampled_from([0, 1, float("nan")]),
    st.sampled_from([float("nan"), 0, 1, 3, 2.5]),
)
def test_any_text_measures_as_before(
    text: str, name: str, chars: float, terminal: float, words: float
) -> None:
    bounds = {
        "max_word_chars": chars, "terminal_punctuation": terminal, "min_line_words": words
    }  # fmt: skip
    check(name, text, splitters=SPLITTERS, **bounds)


@pytest.mark.parametrize("name", NAMES)
def test_real_texts_measure_as_before(name: str) -> None:
    changed = [
        check(name, text, splitters=SPLITTERS).text != text for text in real_texts("en", 400)
    ]
    assert any(changed)
    assert not all(changed)


def test_ascii_letters_come_of_nothing_else_by_lower_casing() -> None:
    small = c4._small.py_func  # type: ignore[attr-defined]
    for character in every_character():
        lower = character.lower()
        if character == "\u0130":
            assert lower == "i\u0307"
        elif character.isascii() or any(map(str.isascii, lower)):
            assert chr(small(ord(character))) == lower
        else:
            assert small(ord(character)) == ord(character)
    assert not any(phrase.startswith("i") or phrase.endswith("i") for phrase in PHRASES)


def test_all_line_breaks_are_white_space() -> None:
    every = every_character()
    breaks = {line[-1] for line in every.splitlines(keepends=True)[:-1]}
    assert all(map(str.isspace, breaks))
    assert {chr(code) for code, bits in enumerate(c4._kinds()) if bits & c4._BREAK} == breaks


def test_every_phrase_has_a_trigger() -> None:
    rows = c4._phrases()
    assert len(rows) == len(PHRASES)
    for phrase, (pair, place, length, _, *codes) in zip(PHRASES, rows.tolist(), strict=True):
        trigger, following = divmod(pair, 1 << c4._NEXT)
        assert phrase == phrase.lower() == "".join(map(chr, codes[:length]))
        assert phrase.isascii()
        assert phrase[place : place + 2] == chr(trigger) + chr(following)
        assert c4._kinds()[trigger] & c4._TRIGGER
