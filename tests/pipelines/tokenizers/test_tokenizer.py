import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from tokenizers import models, pre_tokenizers

from pipelines.tokenizers.command_tokens import NAMES
from pipelines.tokenizers.tokenizer import Tokenizer, load_tokenizer
from shards.errors import UserError
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


def test_no_texts(tokenizer: Tokenizer) -> None:
    tokens, lengths, failures = tokenizer.encode_batch([])
    assert (tokens.shape, tokens.dtype, lengths.shape, failures) == ((0,), np.uint16, (0,), [])


def test_special_strings_are_text(tokenizer: Tokenizer) -> None:
    table = tokenizer.vocabulary()
    special = np.flatnonzero(table["special"].to_numpy())
    names = [table["bytes"][i].as_py().decode() for i in special]
    assert "[MASK]" in names
    allowed = {tokenizer.special["unk"], 0}  # what WordPiece and SentencePiece give for the unknown
    for name in filter(None, names):
        assert set(ids(tokenizer, f"a {name} b{name}")) & (set(special.tolist()) - allowed) == set()


def test_vocabulary(tokenizer: Tokenizer) -> None:
    table = tokenizer.vocabulary()
    assert table.num_rows == tokenizer.vocabulary_size
    assert tokenizer.vocabulary_size % 128 == 0
    for role in NAMES:
        i = tokenizer.special[role]
        assert table["special"][i].as_py()
        assert table["bytes"][i].as_py()
        assert not table["sentence_end"][i].as_py()
    last = table.slice(max(tokenizer.special.values()) + 1)
    assert last.num_rows > 0
    assert set(last["bytes"].to_pylist()) == {b""}
    assert all(last["special"].to_pylist())


def test_reloading_changes_nothing(spec: str, tokenizer: Tokenizer) -> None:
    again = load_tokenizer(spec)
    assert again.fingerprint == tokenizer.fingerprint
    assert len(again.fingerprint) == 64
    assert again.vocabulary() == tokenizer.vocabulary()


def test_fingerprints_tell_models_apart(spm_path: Path, tmp_path: Path) -> None:
    content = bytearray(spm_path.read_bytes())
    start = content.index(b"dog")
    content[start : start + 3] = b"cat"
    path = tmp_path / "other.model"
    path.write_bytes(content)
    assert fingerprint(path) != fingerprint(spm_path)


def fingerprint(path: Path) -> str:
    return load_tokenizer(f"sentencepiece:{path}").fingerprint


def test_failures_cost_their_text_only(tokenizer: Tokenizer) -> None:
    class PanicException(BaseException):
        """Like pyo3's, it is no Exception."""

    def panicking(texts: Sequence[str]) -> Any:
        if "bad" in texts:
            raise PanicException("capacity overflow")
        return tokenizer._model.encode(texts)

    fragile = Tokenizer(dataclasses.replace(tokenizer._model, encode=panicking))
    tokens, lengths, failures = fragile.encode_batch(["the dog", "bad", "the"])
    assert failures == [(1, "PanicException: capacity overflow")]
    assert tokens.dtype == tokenizer.dtype
    assert lengths.tolist() == [len(ids(tokenizer, "the dog")), 0, len(ids(tokenizer, "the"))]
    assert tokens.tolist() == ids(tokenizer, "the dog") + ids(tokenizer, "the")


def test_interrupts_are_no_failures(tokenizer: Tokenizer) -> None:
    def interrupted(_: Sequence[str]) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Tokenizer(dataclasses.replace(tokenizer._model, encode=interrupted)).encode_batch(["a"])


def test_injection_is_refused(tmp_path: Path) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the"]
    library = tokenizers.Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]")
    )
    library.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    path = tmp_path / "tokenizer.json"
    library.save(str(path))
    with pytest.raises(UserError, match=r'turns the text "\[PAD\]" into the special token 0'):
        load_tokenizer(f"hf:{path}")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", r'--tokenizer "": write sentencepiece:PATH, .*train_tokenizer'),
        ("gpt2", r"tiktoken:NAME or tiktoken:PATH, hf:PATH\. No tokenizer yet\?"),
        ("glm.model", r'"glm\.model": write sentencepiece:glm\.model\.'),
        ("spm:glm.model", r"write sentencepiece:PATH"),
        ("sentencepiece:", r"write sentencepiece:PATH"),
        ("sentencepiece:/no/glm.model", r"there is no file /no/glm\.model\. .*train_tokenizer"),
        ("hf:/no/tokenizer.json", r"there is no file /no/tokenizer\.json"),
        ("hf:/", r"no file tokenizer\.json or vocab\.txt in the folder\. No tokenizer yet\?"),
        ("sentencepiece:/", r"sentencepiece:/ is a folder: name the tokenizer.s file in it\.$"),
        ("tiktoken:gpt5", r"no such file, and tiktoken knows no encoding .* gpt2, "),
        ("tiktoken:/", r"expected a file called NAME\.tiktoken, or GPT-2's"),
    ],
)
def test_wrong_specs(spec: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_tokenizer(spec)


@pytest.mark.parametrize(
    ("kind", "name", "meant"),
    [("hf", "x.model", "sentencepiece"), ("sentencepiece", "x.json", "hf")],
)
def test_a_file_of_another_kind_by_its_name(
    kind: str, name: str, meant: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(b"no model of this kind")
    with pytest.raises(
        UserError, match=rf" (is no|cannot read it) .*[^.]\. Did you mean {meant}:{path}\?$"
    ):
        load_tokenizer(f"{kind}:{path}")


GARBAGE = [b"", b"not a model", b"{}", b"\x0a\xff\xff\xff\xff\x0f", b"\x0b\x00", b"[1, 2]", b"\x80"]


@pytest.mark.parametrize("content", GARBAGE)
@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        (
            "sentencepiece",
            "x.model",
            r"x\.model is no SentencePiece model \(.+\): give the \.model file",
        ),
        ("hf", "tokenizer.json", r"tokenizer\.json: tokenizers cannot read it \(.+\): expected"),
        (
            "tiktoken",
            "r50k_base.tiktoken",
            r"r50k_base\.tiktoken (is no file|has pieces for 0 of 256)",
        ),
        ("tiktoken", "x-merges.txt", r"x-vocab\.json (are not GPT-2's|does not number)"),
    ],
)
def test_files_that_are_something_else(
    tmp_path: Path, content: bytes, kind: str, name: str, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    (tmp_path / "x-vocab.json").write_bytes(content)
    with pytest.raises(UserError, match=message):
        load_tokenizer(f"{kind}:{tmp_path / name}")
