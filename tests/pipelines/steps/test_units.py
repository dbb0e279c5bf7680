import unicodedata

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipelines.steps.units import BATCH_CHARACTERS, Units, unit_batches, units

TEXTS = st.lists(
    st.text(alphabet="abAB é'’.,- \n你好。ｘカภ한\u0301\U00020000\U000e0100\ud800", max_size=40),
    max_size=6,
)


def spelled(text: str) -> list[str]:
    """Return the units of a text, found by looking at one character after another."""
    names: list[str] = []
    inside = False
    for character in text:
        if character in "'’":
            continue
        plain = unicodedata.normalize("NFKC", character) if character == "ｘ" else character
        letter = ord(plain) < 0x32000 and unicodedata.category(plain)[0] in "LMN"
        if letter and (character in "你好カภ" or ord(character) >= 0x20000):
            names.append(plain)
            inside = False
        elif letter and inside:
            names[-1] += plain.lower()
        elif letter:
            names.append(plain.lower())
            inside = True
        else:
            inside = False
    return names


@given(TEXTS)
def test_units_are_those_found_character_by_character(texts: list[str]) -> None:
    found = units(texts) if texts else Units(np.zeros(0), np.zeros(0, bool), np.zeros(0, np.int64))
    wanted = [spelled(text) for text in texts]
    assert found.ends.tolist() == np.cumsum([*map(len, wanted)]).tolist()
    names = [name for text in wanted for name in text]
    by_name = {name: int(units([name]).hashes[0]) for name in names}
    assert found.hashes.tolist() == [by_name[name] for name in names]
    assert len(set(by_name.values())) == len(by_name)
    assert found.single.tolist() == [
        name in set("你好カภ") or ord(name[0]) >= 0x20000 for name in names
    ]


def test_batches_are_limited_in_characters() -> None:
    # Each text is followed by a separator.
    half = BATCH_CHARACTERS // 2
    found = [len(batch.ends) for batch in unit_batches(["a"] * (half + 1))]
    assert found == [half, 1]
    long = "a" * (BATCH_CHARACTERS + 1)
    assert [len(batch.ends) for batch in unit_batches(["a", long, "a", "a"])] == [1, 1, 2]
