import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.filters import units as module
from pipelines.filters.units import Units, unit_batches, units

TEXTS = st.lists(
    st.text(alphabet="abAB é'’.,- \n你好。ｘカภ한\u0301\U00020000\U000e0100\ud800", max_size=40),
    max_size=6,
)


def spelled(text: str) -> list[str]:
    """The units of a text, character by character."""
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" .,-\n", []),
        ("Don't PANIC!", ["dont", "panic"]),
        ("Don’t-panic", ["dont", "panic"]),
        ("zero\u200bwidth soft\u00adhyphen", ["zerowidth", "softhyphen"]),
        ("Ｆｕｌｌ　width ２０２４", ["full", "width", "2024"]),
        ("a_b 3.14", ["a", "b", "3", "14"]),
        ("不要恐慌，OK？", ["不", "要", "恐", "慌", "ok"]),
        ("GPT是3代", ["gpt", "是", "3", "代"]),
        ("カタカナ、ไทย", [*"カタカナ", *"ไทย"]),
        ("한국어 단어", ["한국어", "단어"]),
        ("İstanbul straße", ["istanbul", "straße"]),
        ("x \U0001f600 y\U000e0100z", ["x", "y", "z"]),
    ],
)
def test_units_of_a_text(text: str, words: list[str]) -> None:
    alone = [int(units([word]).hashes[0]) for word in words]
    assert units([text]).hashes.tolist() == alone
    assert len(set(alone)) == len(set(words))


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


@given(TEXTS, st.integers(1, 6))
def test_a_run_hashes_alike_wherever_it_stands(texts: list[str], length: int) -> None:
    for batch in unit_batches(texts):
        everything = batch.runs(length).tolist()
        assert len(everything) == max(0, len(batch.hashes) - length + 1)
        for start, run in enumerate(everything):
            hashes = batch.hashes[start : start + length]
            alone = Units(hashes, batch.single[start : start + length], np.array([length]))
            assert alone.runs(length).tolist() == [run]


@given(TEXTS)
def test_batches_do_not_change_the_units(texts: list[str]) -> None:
    whole = [units([text]).hashes.tolist() for text in texts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BATCH_CHARACTERS", 30)
        found = [
            part.tolist()
            for batch in unit_batches(texts)
            for part in np.split(batch.hashes, batch.ends[:-1])
        ]
    assert found == whole


def test_a_text_longer_than_a_batch() -> None:
    text = "word " * (module.BATCH_CHARACTERS // 4) + "你好" * 7
    (batch,) = unit_batches([text])
    assert len(batch.hashes) == module.BATCH_CHARACTERS // 4 + 14
    assert len(set(batch.hashes.tolist())) == 3
    assert batch.runs(2)[-1] == units(["你好"]).runs(2)[0]


def test_hashes_are_pinned() -> None:
    """A change of these changes which documents are dropped: raise the version of the stages."""
    found = units(["Don't panic，不要恐慌"])
    assert [hex(value) for value in found.hashes.tolist()] == [
        "0xd30a7c499f1ec397",
        "0x6851ab33e2d282b8",
        "0xb1285560d8417ce0",
        "0x384bbf644e85371d",
        "0xca4ed83a2765b6b4",
        "0x4b81b5871a13e603",
    ]
    assert [hex(value) for value in found.runs(3).tolist()] == [
        "0xbeddf0e6ada1ba8f",
        "0xd17d941a76042a0d",
        "0x31383fb330e8aa55",
        "0x5a152f24c894a70c",
    ]
