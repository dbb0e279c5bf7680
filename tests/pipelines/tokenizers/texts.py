"""Texts for tests of tokenizers, and functions that read the tokens."""

from pathlib import Path

import pytest
from hypothesis import strategies as st

from pipelines.tokenizers.tokenizer import Tokenizer

SHARED = Path(__file__).parents[4] / "shared" / "data"


SENTENCES = [
    "The quick brown fox jumps over the lazy dog, and the dog does not mind at all.",
    "第一行。第二行！人工智能正在改变我们的生活方式，也带来了新的问题。哈哈哈哈",
    "don't you'll I'm 12 1234 x2y3 {'a': [1]} <|endoftext|> [MASK] ---- aaaa",
    "人工智能的问题，生活的方式；新的生活，新的问题。 the  dogs   jump    over",
]


AWKWARD_PARTS = [
    *" \n\t　▁，。！ＡＢ１①㈱½ﬁ…—“”《》",
    *("  ", "   ", "\n\n", "\r\n", "\x00", "\x01", "\x7f", "\xa0", "\xad", "\u200b", "\u2028"),
    *("\ufeff", "\ufffd", "\u00a8", "\u00b4", "e\u0301", "\u0301", "A\u030a", "カ\u3099", "ｶﾞ"),
    *("\u1112\u1161\u11ab", "한국", "😀", "👨\u200d👩", "\U00020000", "\U0010fffd", "\ue000", "ﷺ"),
    *("<n>", "<s>", "</s>", "<unk>", "<0x41>", "[MASK]", "▁▁", "\u0340", "क\u093c", "Ж", "İ"),
    *("哈哈哈", "----", "aaaaa", "the dog", " the", "人工智能", "的问题", "生活方式的问题"),
    *("'s", "'ll", "234", "<|endoftext|>", "。é"),
]

AWKWARD_TEXTS = st.lists(
    st.one_of(st.sampled_from(AWKWARD_PARTS), st.text(st.characters(codec="utf-8"), max_size=6)),
    max_size=30,
).map("".join)


def shared(path: str) -> Path:
    if not (SHARED / path).exists():
        pytest.skip(f"{SHARED / path} is not here")
    return SHARED / path


def ids(tokenizer: Tokenizer, text: str) -> list[int]:
    tokens, lengths, failures = tokenizer.encode_batch([text])
    assert failures == []
    assert lengths.tolist() == [len(tokens)]
    return list(map(int, tokens))
