import functools
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.compiled import available
from pipelines.dedup.fingerprint import Fingerprinter, load_fingerprinter
from pipelines.dedup.minhash import PIECE_CHARACTERS
from tests.pipelines.native import loaded

compiled_only = pytest.mark.skipif(not available(), reason="numba is missing or switched off")

ENGLISH = "The old bridge over the river was closed for repairs during the whole summer."
CHINESE = "清晨的集市上，卖豆腐的老人把担子放下，慢慢地吆喝起来，邻居们提着篮子围了过来。"
SPACES = [chr(code) for code in range(0x10000) if chr(code).isspace()]
NEARLY_SPACES = "\u200b\u2060\u0084\u00a1\u1681\u3001\u2030\u180e\0"

TEXT = st.one_of(
    st.text(
        st.sampled_from([*SPACES, *NEARLY_SPACES, "a", "b", "é", "清", "ก", "😀"]), max_size=60
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    st.builds(
        lambda part, separator, times: separator.join([part] * times),
        st.sampled_from([ENGLISH, CHINESE, "ab12cd", "-"]),
        st.sampled_from(["\r\n", "", " \u2028 ", ", "]),
        st.integers(0, 40),
    ),
)


PLAIN = Fingerprinter(near=True)


@functools.cache
def native() -> Fingerprinter:
    found = loaded(lambda: load_fingerprinter(near=True), native=True)
    assert found.compiled
    return found


def check(texts: Sequence[str]) -> None:
    column = pa.array(["before", *texts], pa.large_string()).slice(1)
    assert native().fingerprints(column).same_as(PLAIN.fingerprints(column))


@compiled_only
@settings(max_examples=60)
@given(st.lists(TEXT, max_size=4))
def test_compiled_fingerprints_are_the_same(texts: list[str]) -> None:
    check(texts)


@compiled_only
def test_every_character_and_every_seam_is_read_the_same() -> None:
    codes = [*range(0xD800), *range(0xE000, 0x21000)]
    texts = [
        "".join(f"{chr(code)}a{chr(code)}{chr(code)} {chr(code)}" for code in codes[start::2100])
        for start in range(2100)
    ]
    # Long texts are cut into pieces, within a word or behind it.
    tail = "ab c清晨集市" * 400
    for unit in ("a", "ab ", "é b ", "清 晨a", "😀清清清", "a" * 100 + " ", "กข "):
        for length in range(PIECE_CHARACTERS - 1, PIECE_CHARACTERS + 2):
            text = (unit * PIECE_CHARACTERS)[:length]
            texts += [text, text + tail, tail + text]
    check(texts)
