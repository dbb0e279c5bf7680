import numpy as np
import pytest

from pipelines.tokenizers.tokenizer import Tokenizer, load_tokenizer
from tests.pipelines.tokenizers.texts import ids


@pytest.fixture
def tokenizer(spec: str) -> Tokenizer:
    return load_tokenizer(spec)


def test_batches_are_texts_one_by_one(tokenizer: Tokenizer) -> None:
    texts = ["the dog", "", "第一行", "the dogs."]
    tokens, lengths, failures = tokenizer.encode_batch(texts)
    assert tokens.dtype == tokenizer.dtype == np.uint16
    assert lengths.dtype == np.int64
    assert (len(lengths), int(lengths.sum()), failures) == (4, len(tokens), [])
    parts = np.split(tokens, np.cumsum(lengths)[:-1])
    assert [part.tolist() for part in parts] == [ids(tokenizer, text) for text in texts]


def test_special_strings_are_text(tokenizer: Tokenizer) -> None:
    table = tokenizer.vocabulary()
    special = np.flatnonzero(table["special"].to_numpy())
    names = [table["bytes"][i].as_py().decode() for i in special]
    assert "[MASK]" in names
    allowed = {tokenizer.special["unk"], 0}  # what WordPiece and SentencePiece give for the unknown
    for name in filter(None, names):
        assert set(ids(tokenizer, f"a {name} b{name}")) & (set(special.tolist()) - allowed) == set()
