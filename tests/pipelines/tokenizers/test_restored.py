r"""A dataset's vocabulary gives back exactly the tokenizer that wrote the dataset.

Guarantee: `<\|endoftext\|>` or `[MASK]` written in a text stays text.
"""

import dataclasses
from pathlib import Path

import pytest

from pipelines.steps.description import tokenizer_entry
from pipelines.tokenizers.tokenizer import load_tokenizer, restore_tokenizer
from shards.errors import DamageError
from shards.vocabulary import Vocabulary
from tests.pipelines.tokenizers.texts import SENTENCES, ids


def test_what_a_vocabulary_keeps_gives_the_same_ids(spec: str, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(spec)
    entry, content = tokenizer_entry(spec, tokenizer), Vocabulary(tokenizer.vocabulary()).tokenizer
    again = restore_tokenizer(entry, content, where="v.arrow")
    assert again.library == tokenizer.library
    assert again.vocabulary() == tokenizer.vocabulary()
    made = [again]
    for written in (tokenizer, again):
        text = written.transformers_json()
        assert text is not None
        (tmp_path / "tokenizer.json").write_text(text, "utf-8")
        made.append(load_tokenizer(f"hf:{tmp_path / 'tokenizer.json'}"))
    for other in made:
        assert other.special == tokenizer.special
        assert [ids(other, text) for text in SENTENCES] == [ids(tokenizer, t) for t in SENTENCES]
    wrong = dataclasses.replace(entry, sha256="0" * 64)
    with pytest.raises(DamageError, match=r"in v.arrow is not the tokenizer that made the dataset"):
        restore_tokenizer(wrong, content, where="v.arrow")


def test_special_strings_in_a_text_are_text(spec: str) -> None:
    tokenizer = load_tokenizer(spec)
    table = tokenizer.vocabulary()
    special = {at for at, is_special in enumerate(table["special"].to_pylist()) if is_special}
    names = [table["bytes"][at].as_py().decode() for at in special]
    assert "[MASK]" in names
    allowed = {
        tokenizer.special["unk"],
        0,
    }  # WordPiece and SentencePiece give these for unknown characters
    for name in filter(None, names):
        assert not {*ids(tokenizer, f"a {name} b{name}")} & (special - allowed)
