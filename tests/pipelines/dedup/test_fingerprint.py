import functools
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.compiled import available, kernel
from pipelines.corpus.fields import value_at
from pipelines.dedup.exact import text_hashes
from pipelines.dedup.fingerprint import Fingerprinter, Fingerprints, load_fingerprinter
from pipelines.dedup.minhash import PIECE_CHARACTERS, sign
from pipelines.readers.reading import Reading
from shards.text_hash import fold
from tests.pipelines.real import real_records

compiled_only = pytest.mark.skipif(not available(), reason="numba is missing or switched off")

ENGLISH = "The old bridge over the river was closed for repairs during the whole summer."
CHINESE = "清晨的集市上，卖豆腐的老人把担子放下，慢慢地吆喝起来，邻居们提着篮子围了过来。"
SPACES = [chr(code) for code in range(0x10000) if chr(code).isspace()]
NEARLY_SPACES = [
    "\u200b",
    "\u2060",
    "\u0084",
    "\u00a1",
    "\u1681",
    "\u3001",
    "\u2030",
    "\u180e",
    "\0",
]

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
    found = load_fingerprinter(near=True, compiled=True)
    assert found.compiled
    return found


@pytest.fixture
def plain() -> Fingerprinter:
    return PLAIN


@pytest.fixture(scope="module")
def compiled() -> Fingerprinter:
    return native()


def column(texts: Sequence[str]) -> pa.Array:
    return pa.array(texts, pa.large_string())


def check_same(texts: pa.Array, one: Fingerprinter, other: Fingerprinter) -> None:
    assert one.fingerprints(texts).same_as(other.fingerprints(texts))


def test_the_plain_functions_define_fingerprints(plain: Fingerprinter) -> None:
    texts = [ENGLISH, f" {CHINESE}\n\n{ENGLISH} ", ""]
    found = plain.fingerprints(column(texts))
    folded = [fold(text) for text in texts]
    expected = Fingerprints(*text_hashes(folded), sign(folded))
    assert found.same_as(expected)
    assert Fingerprinter(near=False).fingerprints(column(texts)).signatures is None


def test_plain_fingerprints_are_made_unless_compiled_ones_are_asked_for() -> None:
    assert not load_fingerprinter(near=True).compiled


def test_plain_fingerprints_are_made_where_numba_cannot_be_imported(
    broken_numba: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert not load_fingerprinter(near=True, compiled=True).compiled
    assert caplog.messages == [broken_numba]


@compiled_only
def test_plain_fingerprints_are_made_where_loops_do_not_compile(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def untyped(data: Any, offsets: Any, *_: Any) -> Any:
        return data + offsets.no_such_thing

    monkeypatch.setattr("pipelines.dedup.kernels.fold", kernel(untyped))
    assert not load_fingerprinter(near=True, compiled=True).compiled
    [line] = caplog.messages
    assert line.startswith("Compiled code for fingerprints is not used: TypingError: ")


@compiled_only
@pytest.mark.parametrize("near", [False, True])
def test_plain_fingerprints_are_made_where_compiled_ones_differ(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, near: bool
) -> None:
    make = Fingerprinter.fingerprints

    def wrong(self: Fingerprinter, texts: pa.Array) -> Fingerprints:
        right = make(self, texts)
        if not self.compiled:
            return right
        if right.signatures is None:
            return replace(right, low=right.low + np.uint64(1))
        slots = right.signatures.slots.copy()
        slots[-1, -1] += 1
        return replace(right, signatures=replace(right.signatures, slots=slots))

    monkeypatch.setattr(Fingerprinter, "fingerprints", wrong)
    with caplog.at_level(logging.WARNING):
        found = load_fingerprinter(near=near, compiled=True)
    assert not found.compiled
    assert caplog.messages == [
        "Compiled code for fingerprints is not used: it makes others. Plain Python takes its place."
    ]


@compiled_only
@settings(max_examples=60)
@given(st.lists(TEXT, max_size=4))
def test_compiled_fingerprints_are_the_same(texts: list[str]) -> None:
    check_same(column(texts), PLAIN, native())


@compiled_only
def test_compiled_fingerprints_are_made_of_slices(
    plain: Fingerprinter, compiled: Fingerprinter
) -> None:
    texts = column([CHINESE, ENGLISH, "", f"{ENGLISH}\n{CHINESE}", CHINESE])
    check_same(texts.slice(1, 3), plain, compiled)
    check_same(texts.slice(2, 1), plain, compiled)
    check_same(texts.slice(5), plain, compiled)
    check_same(column([]), plain, compiled)


@compiled_only
def test_every_character_is_folded_and_signed_the_same(
    plain: Fingerprinter, compiled: Fingerprinter
) -> None:
    codes = [*range(0xD800), *range(0xE000, 0x21000)]
    texts = [
        "".join(f"{chr(code)}a{chr(code)}{chr(code)} {chr(code)}" for code in codes[start::2100])
        for start in range(2100)
    ]
    check_same(column(texts), plain, compiled)


@compiled_only
@pytest.mark.parametrize(
    "unit", ["a", "ab ", "é", "é b ", "清", "清 晨a", "😀", "😀清清清", "a" * 100 + " ", "กข "]
)
@pytest.mark.parametrize("more", [-1, 0, 1, 7])
def test_pieces_of_long_texts_end_at_the_same_characters(
    plain: Fingerprinter, compiled: Fingerprinter, unit: str, more: int
) -> None:
    rng = np.random.default_rng(len(unit))
    tail = "".join(rng.choice([*"ab c清晨集市"], 3000))
    text = (unit * PIECE_CHARACTERS)[: PIECE_CHARACTERS + more]
    check_same(column([text, text + tail, tail + text]), plain, compiled)


@compiled_only
@pytest.mark.parametrize(
    ("name", "field"),
    [("corpora/pile", "text"), ("corpora/wudao", "content"), ("bench/en.jsonl.zst", "text"),
     ("bench/zh.jsonl.zst", "text")],
)  # fmt: skip
def test_real_texts_have_the_same_fingerprints(
    plain: Fingerprinter, compiled: Fingerprinter, name: str, field: str
) -> None:
    records = real_records(name, Reading(text_fields=(field,)), most=400)
    check_same(column([value_at(record.value, field) for record in records]), plain, compiled)
