r"""Texts for tokenizers, and how to look at what becomes of them.

Guarantee: `<\|endoftext\|>` or `[MASK]` written in a text stays text.
"""

from pathlib import Path

import pytest
from hypothesis import strategies as st

from pipelines.tokenizers.tokenizer import Tokenizer

SHARED = Path(__file__).parents[4] / "shared" / "data"


SENTENCES = [
    "The quick brown fox jumps over the lazy dog, and the dog does not mind.",
    "第一行。第二行！人工智能正在改变我们的生活方式，也带来了新的问题。",
    "don't you'll I'm 12 1234 x2y3 {'a': [1]} <|endoftext|> [MASK]",
]


AWKWARD_TEXTS = st.lists(
    st.sampled_from(
        ["the ", "dog", "'s", "'ll", " ", "  ", "\n", "\t", "1", "234", "行", "人工智能", "。", "é",
         "e\u0301", "\x00", "👨\u200d👩", "<|endoftext|>", "[MASK]", "<s>", "</s>", "<n>", "<unk>"]
    ),
    max_size=30,
).map("".join)  # fmt: skip


def shared(path: str) -> Path:
    if not (SHARED / path).exists():
        pytest.skip(f"{SHARED / path} is not here")
    return SHARED / path


def ids(tokenizer: Tokenizer, text: str) -> list[int]:
    tokens, lengths, failures = tokenizer.encode_batch([text])
    assert failures == []
    assert lengths.tolist() == [len(tokens)]
    return list(map(int, tokens))
