"""The kernels that fold and sign texts give the same results as plain numpy."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.dedup.fingerprint import Fingerprinter
from pipelines.dedup.minhash import PIECE_CHARACTERS
from shards.text_hash import fold_spaces, text_hashes
from tests.pipelines.dedup.plain import sign

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


def check(texts: Sequence[str]) -> None:
    column = pa.array(["before", *texts], pa.large_string()).slice(1)
    found = Fingerprinter(near=True).fingerprints(column)
    folded = [fold_spaces(text) for text in texts]
    assert found.signatures is not None
    pairs = zip(
        (found.high, found.low, *found.signatures.columns),
        (*text_hashes(folded), *sign(folded).columns),
        strict=True,
    )
    for one, other in pairs:
        np.testing.assert_array_equal(one, other)


@settings(max_examples=60)
@given(st.lists(TEXT, max_size=4))
def test_any_texts(texts: list[str]) -> None:
    check(texts)


def test_every_character_and_every_seam_is_read_the_same() -> None:
    codes = [*range(0xD800), *range(0xE000, 0x21000)]
    texts = [
        "".join(f"{chr(code)}a{chr(code)}{chr(code)} {chr(code)}" for code in codes[start::2100])
        for start in range(2100)
    ]
    # Long texts are cut into pieces, inside a word or after it.
    tail = "ab c清晨集市" * 400
    for unit in ("a", "ab ", "é b ", "清 晨a", "😀清清清", "a" * 100 + " ", "กข "):
        for length in range(PIECE_CHARACTERS - 1, PIECE_CHARACTERS + 2):
            text = (unit * PIECE_CHARACTERS)[:length]
            texts += [text, text + tail, tail + text]
    check(texts)
