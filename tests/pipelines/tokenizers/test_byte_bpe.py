import json
from pathlib import Path

import pytest
import tokenizers
from tokenizers import pre_tokenizers

from pipelines.tokenizers.byte_bpe import byte_alphabet, merges
from pipelines.tokenizers.tiktoken import _merges_file


def test_byte_alphabet_is_gpt2s() -> None:
    alphabet = byte_alphabet()
    assert sorted(alphabet.values()) == list(range(256))
    assert set(alphabet) == set(pre_tokenizers.ByteLevel.alphabet())
    assert (alphabet["!"], alphabet["Ġ"], alphabet["Ċ"]) == (33, 32, 10)


def test_merges_are_found_again_in_ranks(gpt2_path: Path, byte_level: tokenizers.Tokenizer) -> None:
    ranks, _ = _merges_file(gpt2_path)
    alphabet = byte_alphabet()
    written = json.loads(byte_level.to_str())["model"]["merges"]
    pairs = [tuple(bytes(alphabet[c] for c in part) for part in pair) for pair in written]
    assert len(pairs) == 400 - 256
    assert list(merges(ranks)) == pairs


def test_ranks_that_are_no_merges_are_refused() -> None:
    ranks = {bytes([b]): b for b in range(256)} | {b"abc": 256}
    with pytest.raises(ValueError, match="no two pieces of lower rank than 256 make b'abc'"):
        list(merges(ranks))
