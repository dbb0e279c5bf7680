import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.tokenizers.model import Encode
from pipelines.tokenizers.sentencepiece import compiled_encoder
from tests.pipelines.tokenizers.texts import AWKWARD_TEXTS, SENTENCES
from tests.pipelines.tokenizers.trained import model_of, reference, train

Both = tuple[Encode, Encode]


@pytest.fixture(scope="module")
def both(content: bytes) -> Both:
    return compiled_encoder(model_of(content), reference(content)), reference(content)


def check(both: Both, texts: Sequence[str]) -> None:
    """Check that ids and lengths are those that the library gives."""
    (tokens, lengths), (expected, expected_lengths) = (encode(texts) for encode in both)
    assert lengths.tolist() == expected_lengths.tolist()
    assert tokens.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "texts",
    [
        [],
        [""],
        ["", " ", "\n", "  ", "a", "", " a ", ""],
        ["☂☃", "☃", "a☂☃b☂ ☃ ☂☂"],
        ["\x00", "a\x00b", "\x00\x00"],
        ["the dog", "e\u0301", "the dog", "\u200b \u200b", "the"],
        ["▁", "▁a▁", "a ▁ b", " ▁"],
        ["<s>", "a</s>b", "[MASK]<n>\n\n<n>"],
        ["a" * 5000, "哈" * 3000, " " * 2000, "ab " * 1000, "\n" * 500],
        ["\U0010fffd", "a\U0010ffffb", "\U00020000\U00020001"],
    ],
)
def test_corner_cases(both: Both, texts: list[str]) -> None:
    check(both, texts)
    for text in texts:
        check(both, [text])


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(AWKWARD_TEXTS, max_size=5))
def test_any_texts(both: Both, texts: list[str]) -> None:
    check(both, texts)


def test_models_that_spell_unknown_characters() -> None:
    content = train(byte_fallback=True, vocab_size=460)
    texts = ["the dog ☂ 的问题 ☃☃", *SENTENCES, "ﷺ ☂"]
    library = reference(content)
    asked: list[str] = []

    def watched(some: Sequence[str]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        asked.extend(some)
        return library(some)

    check((compiled_encoder(model_of(content), watched), library), texts)
    assert asked == [texts[0], texts[-1]]


def test_threads_change_nothing(nmt_nfkc: bytes) -> None:
    library = reference(nmt_nfkc)
    fast = compiled_encoder(model_of(nmt_nfkc), library)
    chosen = random.Random(0)
    words = ["".join(chosen.choices("abcdefgh", k=6)) for _ in range(3200)]
    texts = [" ".join(words[start : start + 20]) for start in range(0, len(words), 20)]
    with ThreadPoolExecutor(4) as pool:
        found = [tokens.tolist() for tokens, _ in pool.map(lambda text: fast([text]), texts)]
    assert found == [library([text])[0].tolist() for text in texts]


def test_half_a_surrogate_pair_fails_as_in_the_library(nmt_nfkc: bytes) -> None:
    library = reference(nmt_nfkc)
    with pytest.raises(RuntimeError) as expected:
        library(["a\ud800"])
    with pytest.raises(RuntimeError) as raised:
        compiled_encoder(model_of(nmt_nfkc), library)(["b", "a\ud800"])
    assert str(raised.value) == str(expected.value)
