"""A tokenizer comes back from the vocabulary of a dataset, and none but that one."""

import dataclasses
from pathlib import Path

import pytest

from pipelines.map.description import tokenizer_entry
from pipelines.tokenizers.tokenizer import Tokenizer, load_tokenizer, restore_tokenizer
from shards.errors import DamageError
from shards.manifest import TokenizerEntry
from shards.vocabulary import Vocabulary
from tests.pipelines.tokenizers.texts import SENTENCES, ids

Kept = tuple[Tokenizer, TokenizerEntry, bytes]


@pytest.fixture
def kept(spec: str) -> Kept:
    tokenizer = load_tokenizer(spec)
    return tokenizer, tokenizer_entry(spec, tokenizer), Vocabulary(tokenizer.vocabulary()).tokenizer


def test_what_a_vocabulary_keeps_gives_the_same_ids(
    kept: Kept,
) -> None:
    tokenizer, entry, content = kept
    again = restore_tokenizer(entry, content, where="v.arrow")
    assert again.special == tokenizer.special
    assert again.engine == tokenizer.engine
    assert again.vocabulary() == tokenizer.vocabulary()
    assert [ids(again, text) for text in SENTENCES] == [ids(tokenizer, text) for text in SENTENCES]


def test_another_tokenizer_is_damage(kept: Kept) -> None:
    _, entry, content = kept
    other = dataclasses.replace(entry, sha256="0" * 64)
    with pytest.raises(DamageError, match=r"in v.arrow is not the tokenizer that made the dataset"):
        restore_tokenizer(other, content, where="v.arrow")


def test_as_a_tokenizer_json_it_gives_the_same_ids(kept: Kept, tmp_path: Path) -> None:
    tokenizer, entry, content = kept
    for written in (tokenizer, restore_tokenizer(entry, content, where="v.arrow")):
        text = written.transformers_json()
        if entry.spec == "sentencepiece":
            assert text is None
            continue
        assert text is not None
        (tmp_path / "tokenizer.json").write_text(text, "utf-8")
        again = load_tokenizer(f"hf:{tmp_path / 'tokenizer.json'}")
        assert again.special == tokenizer.special
        assert [ids(again, t) for t in SENTENCES] == [ids(tokenizer, t) for t in SENTENCES]
