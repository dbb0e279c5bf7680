import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.quality.compiled import lines
from pipelines.quality.repetition import count_repeats
from pipelines.quality.spans import code_points


def repeats(parts: list[str]) -> tuple[int, int]:
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    starts = ends - np.array([len(part) for part in parts], np.int64)
    num_repeats, num_chars = lines.count_repeats(code_points("".join(parts)), starts, ends)
    return num_repeats, num_chars


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [""],
        ["", ""],
        ["a", "b", "a", "a"],
        ["a", "aa", "aaa", "aa", "a\0", "a\0\0"],
        ["\ud800", "\udfff", "\ud800", "\U0010ffff", "\U0010ffff"],
        ["x" * 1000 + end for end in "abca"],
        [str(number % 700) for number in range(1000)],
    ],
)
def test_repeats_are_those_of_strings(parts: list[str]) -> None:
    assert repeats(parts) == count_repeats(parts)


@given(st.lists(st.text(st.sampled_from("ab\0\n\ud800😀"), max_size=5)))
def test_repeats_are_those_of_any_strings(parts: list[str]) -> None:
    assert repeats(parts) == count_repeats(parts)


def test_ranges_may_overlap_and_skip() -> None:
    starts, ends = np.array([0, 1, 2, 6, 5]), np.array([2, 3, 4, 8, 5])
    assert lines.count_repeats(code_points("ababxxba"), starts, ends) == (2, 4)


def test_equal_hashes_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    # The plain function, with a hash that says nothing.
    monkeypatch.setattr(lines, "hash_range", lambda *_: np.uint64(7))
    monkeypatch.setattr(lines, "equal_ranges", lines.equal_ranges.py_func)  # type: ignore[attr-defined]
    plain = lines.count_repeats.py_func  # type: ignore[attr-defined]
    starts, ends = np.array([0, 1, 2, 3, 4]), np.array([1, 2, 3, 4, 6])
    assert plain(code_points("abcaab"), starts, ends) == (1, 1)


def test_classes_of_characters() -> None:
    every = lines.every_character()
    assert len(every) == lines.NUM_CODE_POINTS
    spaces, digits = lines.matching(r"\s"), lines.matching(r"\d")
    assert spaces == "".join(filter(str.isspace, every))
    assert digits == "".join(filter(str.isdecimal, every))
    bits = lines.character_bits(spaces, "a\U0010ffff", digits)
    assert [bits[ord(character)] for character in " a\U0010ffff٣b"] == [1, 2, 2, 4, 0]
    assert len(re.findall(r"[\s\da\U0010ffff]", every)) == np.count_nonzero(bits)
